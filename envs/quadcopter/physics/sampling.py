"""Random vehicles and random attitudes."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from ...alternating_bands import alternating_bands
from .dynamics import NOMINAL, Airframe
from .rigid_body import Inertia, RigidBody, Scalar


def sample_airframe(units: jax.Array, split: jax.Array, nominal: Airframe = NOMINAL) -> Airframe:
    """Return a vehicle drawn by five numbers in [0, 1): constants uniform in their ranges, the mass in the split's
    bands.

    Mass +-20 %, inertia +-20 %, thrust coefficient +-10 %, torque coefficient +-20 %, motor time constant +-25 %. Train
    and test masses lie in alternating bands of 1 % of the nominal mass.
    """
    mass, inertia, thrust, torque, lag = units

    def near(nominal: float, spread: float, unit: Scalar) -> Scalar:
        return nominal * (1 - spread + 2 * spread * unit)

    scale = near(1.0, 0.2, inertia)
    nominal_mass, *moments = nominal.inertia
    return Airframe(
        inertia=Inertia(
            alternating_bands(mass, split, 0.8 * nominal_mass, 1.2 * nominal_mass, bands=40),
            *(moment * scale for moment in moments),
        ),
        thrust_coefficient=near(nominal.thrust_coefficient, 0.1, thrust),
        torque_coefficient=near(nominal.torque_coefficient, 0.2, torque),
        motor_time_constant=near(nominal.motor_time_constant, 0.25, lag),
    )


def random_attitude(units: jax.Array, most: float) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Return a unit quaternion drawn by three numbers in [0, 1): any axis, an angle up to ``most`` (rad)."""
    # An axis uniform on the sphere (Archimedes: its height is uniform), and an angle.
    height, longitude, angle = 2 * units[0] - 1, 2 * math.pi * units[1], most * units[2]
    across, sine = jnp.sqrt(1 - height * height), jnp.sin(0.5 * angle)
    return (
        jnp.cos(0.5 * angle),
        sine * across * jnp.cos(longitude),
        sine * across * jnp.sin(longitude),
        sine * height,
    )


def nearly_at_rest(units: jax.Array, spread: float) -> RigidBody:
    """Return a body near the origin drawn by twelve numbers in [0, 1), tilted by up to 10 degrees.

    Place (m), velocity (m/s) and angular velocity (rad/s) are uniform within ``spread`` along and about each axis.
    """
    x, y, z, vx, vy, vz, wx, wy, wz = (spread * (2 * unit - 1) for unit in units[:9])
    return RigidBody(x, y, z, *random_attitude(units[9:12], math.radians(10)), vx, vy, vz, wx, wy, wz)
