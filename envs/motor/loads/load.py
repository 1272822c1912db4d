"""Loads against which the shaft works."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from ..machines.frames import Scalar

BREAKAWAY_TIME = 1e-3
"""Time constant with which Coulomb friction stops a coasting rotor, s.

It holds for a rotor slower than ``a * BREAKAWAY_TIME / J``.
"""


class Polynomial(NamedTuple):
    """T_L = sign(w) (a + c w^2) + b w; about standstill a is replaced by J w / ``BREAKAWAY_TIME``.

    Source: gym-electric-motor 3.0.3 (doi:10.21105/joss.02498), PolynomialStaticLoad.
    """

    coulomb: Scalar = 0.0
    """a, N m"""
    viscous: Scalar = 0.0
    """b, N m s"""
    quadratic: Scalar = 0.0
    """c, N m s^2"""
    inertia: Scalar = 1e-5
    """kg m^2, of the load alone"""

    def acceleration(self, speed: Scalar, torque: Scalar, rotor_inertia: Scalar) -> Scalar:
        """Return dw/dt, rad/s^2, under an inner torque (N m)."""
        inertia = self.inertia + rotor_inertia
        slowing = speed * (inertia / BREAKAWAY_TIME)
        coulomb = jnp.clip(slowing, -self.coulomb, self.coulomb)
        quadratic = self.quadratic * speed * jnp.abs(speed)
        return (torque - coulomb - quadratic - self.viscous * speed) / inertia


class ConstantSpeed(NamedTuple):
    """A test bench that holds the speed."""

    def acceleration(self, speed: Scalar, torque: Scalar, rotor_inertia: Scalar) -> Scalar:
        """Return zero."""
        return 0.0 * speed


class Constant(NamedTuple):
    """A torque of one size and direction at any speed, as a hoist's: (J + J_L) dw/dt = T - T_L."""

    torque: Scalar
    """T_L, N m"""
    inertia: Scalar
    """kg m^2, of the load alone"""

    def acceleration(self, speed: Scalar, torque: Scalar, rotor_inertia: Scalar) -> Scalar:
        """Return dw/dt, rad/s^2, under an inner torque (N m)."""
        return (torque - self.torque) / (self.inertia + rotor_inertia)
