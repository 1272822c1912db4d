"""Hysteresis and eddy-current losses of a machine's stator, and the torque by which they brake.

They follow from frequency and flux.

    P = (k_h |w| + k_e w^2) psi^2, at the electrical angular frequency w and the stator's flux
    linkage psi

Hysteresis by Steinmetz's law with an exponent of two, eddy currents by Maxwell's equations in thin
sheets; Bertotti's excess losses (w psi)^1.5 are spread over both coefficients, as usual where they
are fitted to measured losses.

Sources: Bertotti 1988, doi:10.1109/20.43994 (separation of losses); Morimoto, Tong, Takeda & Hirasa
1994, Loss minimization control of PMSM drives, IEEE Transactions on Industrial Electronics 41(5)
(iron losses in d and q).
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from .frames import DQ, Scalar

HYSTERESIS_SPEED = 10.0
"""Electrical speed below which hysteresis brakes in proportion to the speed, rad/s.

So the rotor can stand still.
"""


class IronLosses(NamedTuple):
    """Coefficients of one machine.

    The defaults lose 0.8 kW at 1000 rad/s (electrical) and 0.1 V s.
    """

    hysteresis: Scalar = 30.0
    """k_h, W s / (V s)^2"""
    eddy: Scalar = 0.05
    """k_e, W s^2 / (V s)^2"""

    def torque(self, flux: DQ, speed: Scalar, pole_pairs: Scalar) -> Scalar:
        """Return the torque that the shaft lacks of the inner torque, N m.

        It has the sign of ``speed`` (rad/s).
        """
        electrical = pole_pairs * speed
        direction = jnp.clip(electrical * (1 / HYSTERESIS_SPEED), -1, 1)
        square = flux.d * flux.d + flux.q * flux.q
        return pole_pairs * (self.hysteresis * direction + self.eddy * electrical) * square

    def power(self, flux: DQ, speed: Scalar, pole_pairs: Scalar) -> Scalar:
        """Return the power, W."""
        return self.torque(flux, speed, pole_pairs) * speed
