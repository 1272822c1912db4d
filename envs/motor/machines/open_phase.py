"""A permanent-magnet synchronous machine with a connected neutral point, of which a phase may open.

With the neutral point at the middle of the link each phase has a voltage of its own, and three
currents are free: d, q and zero (what all phases have in common). The phase that may open is called
a here; alpha lies along it, at the angle theta behind d. All phases closed, the converter gives
u_alpha, u_beta and u_0, and

    L_d di_d = u_d - R i_d + p w L_q i_q,  L_q di_q = u_q - R i_q - p w (L_d i_d + psi),  L_0 di_0 =
    u_0 - R i_0.

With a open it gives only u_beta = (u_b - u_c) / sqrt(3) and u_0 - u_alpha / 2 = (u_b + u_c) / 2.
The winding's u_alpha is then what keeps i_a = i_alpha + i_0 at zero: one linear equation
(:meth:`WithNeutral.floating`).

Sources: Bolognani, Zordan & Zigliotto 2000, Experimental fault-tolerant control of a PMSM drive,
IEEE Transactions on Industrial Electronics 47(5) (machine with neutral); Schroeder, Elektrische
Antriebe - Regelung von Antriebssystemen (2015).
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from . import synchronous
from .frames import DQ, AlphaBeta, Phases, Scalar, clarke, park

_LINEAR = synchronous.PermanentMagnet()


class Currents(NamedTuple):
    """A; as a rate, A/s."""

    d: Scalar
    q: Scalar
    zero: Scalar


class WithNeutral(NamedTuple):
    """Parameters."""

    resistance: Scalar = _LINEAR.resistance
    """Ohm, of a phase"""
    inductance_d: Scalar = _LINEAR.inductance_d
    """H"""
    inductance_q: Scalar = _LINEAR.inductance_q
    """H"""
    magnet_flux: Scalar = _LINEAR.magnet_flux
    """V s"""
    pole_pairs: Scalar = _LINEAR.pole_pairs
    inertia: Scalar = _LINEAR.inertia
    """kg m^2"""
    inductance_zero: Scalar = 0.1e-3
    """H, L_0: a leakage inductance; there is no published value"""
    onset: Scalar = 0.02
    """s, from the start: when the phase breaks"""
    phase: Scalar = 0.0
    """Number of the open phase: 0, 1 or 2 for a, b or c"""

    def _drops(self, current: Currents, electrical: Scalar) -> DQ:
        """Return the voltages, V, across resistances and by turning."""
        return DQ(
            -self.resistance * current.d + electrical * self.inductance_q * current.q,
            -self.resistance * current.q
            - electrical * (self.inductance_d * current.d + self.magnet_flux),
        )

    def floating(
        self, current: Currents, phases: Phases, angle: Scalar, electrical: Scalar
    ) -> Scalar:
        """Return u_alpha, V, of the open phase's winding: for it d(i_alpha + i_0)/dt is zero.

        ``phases``: phase voltages, V; those of b and c count; ``electrical``: angular frequency,
        rad/s.
        """
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        u_beta, common = clarke(phases).beta, 0.5 * (phases.b + phases.c)
        drops = self._drops(current, electrical)
        along_d, along_q = cos / self.inductance_d, sin / self.inductance_q
        i_beta = sin * current.d + cos * current.q
        slope = (
            along_d * (sin * u_beta + drops.d)
            - along_q * (cos * u_beta + drops.q)
            - electrical * i_beta
            + (common - self.resistance * current.zero) / self.inductance_zero
        )
        return -slope / (along_d * cos + along_q * sin + 0.5 / self.inductance_zero)

    def derivative(
        self, current: Currents, phases: Phases, angle: Scalar, speed: Scalar, broken: Scalar
    ) -> Currents:
        """Return dI/dt, A/s, under phase voltages (V) at a mechanical speed (rad/s).

        ``broken`` is 1 if phase a is open, and else 0.
        """
        electrical = self.pole_pairs * speed
        driven = clarke(phases)
        common = (phases.a + phases.b + phases.c) * (1 / 3)
        alpha = jnp.where(
            broken > 0, self.floating(current, phases, angle, electrical), driven.alpha
        )
        zero = jnp.where(broken > 0, 0.5 * (phases.b + phases.c + alpha), common)
        voltage = park(AlphaBeta(alpha, driven.beta), angle)
        drops = self._drops(current, electrical)
        return Currents(
            (voltage.d + drops.d) / self.inductance_d,
            (voltage.q + drops.q) / self.inductance_q,
            (zero - self.resistance * current.zero) / self.inductance_zero,
        )

    def inner_torque(self, current: Currents) -> Scalar:
        """Return the inner torque, N m."""
        reluctance = self.inductance_d - self.inductance_q
        return 1.5 * self.pole_pairs * (self.magnet_flux + reluctance * current.d) * current.q
