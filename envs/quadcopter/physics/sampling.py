"""Random vehicles and random attitudes."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from ...shared.alternating_bands import alternating_bands
from .data_sheet import BANDS, SHIPPED, DataSheet
from .dynamics import Airframe
from .rigid_body import Inertia, RigidBody, Scalar


def sample_airframe(units: jax.Array, split: jax.Array, sheet: DataSheet = SHIPPED) -> Airframe:
    """Return a vehicle of a data sheet, sampled by five numbers in [0, 1).

    Constants are uniform in their ranges, the mass in the split's bands.

    Shipped: mass +-20 %, inertia +-20 %, thrust coefficient +-10 %, torque coefficient +-20 %,
    motor time constant +-25 %. Train and test masses lie in alternating bands of 1 % of the nominal
    mass. One number scales all moments of inertia.
    """
    nominal, spread = sheet.nominal, sheet.spread
    mass, inertia, thrust, torque, lag = units

    def sample_around(nominal: float, spread: float, unit: Scalar) -> Scalar:
        return nominal * (1 - spread + 2 * spread * unit)

    middle, *moments = nominal.inertia
    side, *sides = spread.inertia
    return Airframe(
        inertia=Inertia(
            alternating_bands(mass, split, (1 - side) * middle, (1 + side) * middle, bands=BANDS),
            *(
                moment * sample_around(1.0, relative, inertia)
                for moment, relative in zip(moments, sides, strict=True)
            ),
        ),
        thrust_coefficient=sample_around(
            nominal.thrust_coefficient, spread.thrust_coefficient, thrust
        ),
        torque_coefficient=sample_around(
            nominal.torque_coefficient, spread.torque_coefficient, torque
        ),
        motor_time_constant=sample_around(
            nominal.motor_time_constant, spread.motor_time_constant, lag
        ),
    )


def random_attitude(units: jax.Array, max_angle: float) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Return a unit quaternion sampled by three numbers in [0, 1).

    It turns about any axis, by up to ``max_angle`` (rad).
    """
    # An axis uniform on the sphere (Archimedes: its height is uniform), and an angle.
    height, longitude, angle = 2 * units[0] - 1, 2 * math.pi * units[1], max_angle * units[2]
    across, sine = jnp.sqrt(1 - height * height), jnp.sin(0.5 * angle)
    return (
        jnp.cos(0.5 * angle),
        sine * across * jnp.cos(longitude),
        sine * across * jnp.sin(longitude),
        sine * height,
    )


def body_near_rest(units: jax.Array, spread: float) -> RigidBody:
    """Return a body near the origin, sampled by twelve numbers in [0, 1).

    It is tilted by up to 10 degrees.
    Place (m), velocity (m/s) and angular velocity (rad/s) are uniform within ``spread`` along and
    about each axis.
    """
    x, y, z, vx, vy, vz, wx, wy, wz = (spread * (2 * unit - 1) for unit in units[:9])
    return RigidBody(
        x, y, z, *random_attitude(units[9:12], math.radians(10)), vx, vy, vz, wx, wy, wz
    )
