"""A flight controller inside the vehicle.

It turns commanded places, velocities or body rates into rotor commands.

The controller is a cascade of proportional laws, each of which sets the next one's goal::

    place  ->  velocity, yaw rate  ->  collective thrust, body rates (CTBR)  ->  rotors

All laws run once a step of the episode, at 100 Hz. They know what a flight controller measures: the
vehicle's motion, its rotor speeds, and the rotor speed at which it hovers (PX4, for one, estimates
that in flight). For all other constants (moments of inertia, torque coefficient, motor lag) they
take those of the nominal vehicle. So a hover is exact in every vehicle, and the vehicle decides how
fast set points are reached.

The levels are those that Kaufmann, Bauersfeld & Scaramuzza 2022 compare (A Benchmark Comparison of
Learned Control Policies for Agile Quadrotor Flight, arXiv:2202.10796): single-rotor thrusts,
collective thrust and body rates, linear velocities. Attitude control by tilt alone, and the order
in which demands yield when rotors saturate, follow Brescianini & D'Andrea 2018, Tilt-prioritized
quadrocopter attitude control, doi:10.1109/TCST.2018.2873224.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..physics import dynamics
from ..physics.dynamics import NOMINAL, STEP, Airframe, Quadcopter, Rotors
from ..physics.rigid_body import GRAVITY, RigidBody, Scalar, rotation_matrix
from .geometric import compensate_lag

RATE_GAIN = (40.0, 40.0, 20.0)
"""1/s about body x, y, z: angular acceleration by error in angular velocity."""
TILT_GAIN = 10.0
"""1/s: body rate by angle of tilt. It is a quarter of the gain above, for critical damping."""
VELOCITY_GAIN = 4.0
"""1/s: acceleration by error in velocity."""
PLACE_GAIN = 2.0
"""1/s: velocity by distance."""
YAW_GAIN = 4.0
"""1/s: yaw rate by yaw angle, when the nose is held along the world's x."""
LEAN = 1.0
"""Tangent of the largest tilt that the velocity controller asks for."""
LIFT = (0.3 * GRAVITY, 1.8 * GRAVITY)
"""m/s^2: least and greatest vertical acceleration by thrust that the velocity controller asks for.
"""


class BodyRates(NamedTuple):
    """Set point of the rate controller."""

    thrust: Scalar
    """m/s^2: thrust of all rotors divided by the mass; the acceleration of gravity hovers"""
    wx: Scalar
    """rad/s, about body axes"""
    wy: Scalar
    wz: Scalar


class Velocity(NamedTuple):
    """Set point of the velocity controller."""

    vx: Scalar
    """m/s, world frame"""
    vy: Scalar
    vz: Scalar
    yaw_rate: Scalar
    """rad/s, about body z"""


def towards_place(body: RigidBody, x: Scalar, y: Scalar, z: Scalar) -> Velocity:
    """Return the velocity to a place ``(x, y, z)`` m away (world frame).

    The nose turns to the world's x axis.
    """
    rotation = rotation_matrix(body)
    yaw = jnp.arctan2(rotation[3], rotation[0])
    return Velocity(PLACE_GAIN * x, PLACE_GAIN * y, PLACE_GAIN * z, -YAW_GAIN * yaw)


def towards_velocity(
    body: RigidBody,
    goal: Velocity,
    velocity_gain: Scalar = VELOCITY_GAIN,
    tilt_gain: Scalar = TILT_GAIN,
) -> BodyRates:
    """Return the thrust and the body rates that lead to a velocity; gains in 1/s."""
    az = jnp.clip(velocity_gain * (goal.vz - body.vz) + GRAVITY, *LIFT)
    ax, ay = velocity_gain * (goal.vx - body.vx), velocity_gain * (goal.vy - body.vy)
    share = jnp.minimum(1, LEAN * az / (jnp.sqrt(ax * ax + ay * ay) + 1e-9))
    ax, ay = share * ax, share * ay

    # The acceleration along body axes. A rotation about z x a turns body z there.
    r11, r12, r13, r21, r22, r23, r31, r32, r33 = rotation_matrix(body)
    bx = r11 * ax + r21 * ay + r31 * az
    by = r12 * ax + r22 * ay + r32 * az
    bz = r13 * ax + r23 * ay + r33 * az
    across = jnp.sqrt(bx * bx + by * by)
    rate = tilt_gain * jnp.arctan2(across, bz) / (across + 1e-9)
    return BodyRates(bz, -rate * by, rate * bx, goal.yaw_rate)


def assumed_airframe(hover: Scalar) -> Airframe:
    """Return the vehicle that the controller assumes: the nominal one with this hover speed.

    The hover speed is that of a rotor (rad/s).
    """
    return NOMINAL._replace(thrust_coefficient=0.25 * dynamics.MASS * GRAVITY / (hover * hover))


def towards_body_rates(vehicle: Quadcopter, goal: BodyRates, airframe: Airframe) -> jax.Array:
    """Return rotor commands ``(4,)`` in [-1, 1] that lead to body rates.

    They suit a vehicle with the constants of ``airframe``.
    """
    body, (mass, jx, jy, jz) = vehicle.body, airframe.inertia
    wx, wy, wz = body.wx, body.wy, body.wz
    kx, ky, kz = RATE_GAIN
    tx = jx * kx * (goal.wx - wx) + (jz - jy) * wy * wz
    ty = jy * ky * (goal.wy - wy) + (jx - jz) * wz * wx
    tz = jz * kz * (goal.wz - wz) + (jy - jx) * wx * wy
    forces = prioritise_tilt(vehicle.rotors, airframe, mass * goal.thrust, tx, ty, tz)
    return compensate_lag(vehicle, airframe, forces)


def prioritise_tilt(
    rotors: Rotors, airframe: Airframe, thrust: Scalar, tx: Scalar, ty: Scalar, tz: Scalar
) -> Rotors:
    """Return the rotor thrusts (N) nearest to a thrust (N) and torques (N m) in one step.

    If rotors cannot give everything, thrust yields to roll and pitch, and yaw yields to all.
    ``rotors`` are their speeds now (rad/s).
    """
    decay = jnp.exp(-STEP / airframe.motor_time_constant)
    rise = (1 - decay) * dynamics.ROTOR_SPEED_LIMIT
    coefficient = airframe.thrust_coefficient
    lowest = [coefficient * (decay * speed) ** 2 for speed in rotors]
    highest = [coefficient * (decay * speed + rise) ** 2 for speed in rotors]

    tilting = dynamics.allocate(0.0, tx, ty, 0.0, airframe)
    low = _maximum([bound - force for bound, force in zip(lowest, tilting, strict=True)])
    high = _minimum([bound - force for bound, force in zip(highest, tilting, strict=True)])
    # If low exceeds high, rotors cannot even give roll and pitch; both ends then miss by the same
    # amount.
    mean_force = jnp.where(low > high, 0.5 * (low + high), jnp.clip(0.25 * thrust, low, high))
    pushing = [mean_force + force for force in tilting]

    signs = (-1.0, 1.0, -1.0, 1.0)
    down = [bound - force for bound, force in zip(lowest, pushing, strict=True)]
    up = [bound - force for bound, force in zip(highest, pushing, strict=True)]
    low = _maximum(
        [low if sign > 0 else -high for sign, low, high in zip(signs, down, up, strict=True)]
    )
    high = _minimum(
        [high if sign > 0 else -low for sign, low, high in zip(signs, down, up, strict=True)]
    )
    turning = jnp.clip(
        0.25 * tz / airframe.torque_coefficient, jnp.minimum(low, 0), jnp.maximum(high, 0)
    )
    return Rotors(*(force + sign * turning for force, sign in zip(pushing, signs, strict=True)))


def _maximum(values: list[Scalar]) -> Scalar:
    first, second, third, fourth = values
    return jnp.maximum(jnp.maximum(first, second), jnp.maximum(third, fourth))


def _minimum(values: list[Scalar]) -> Scalar:
    first, second, third, fourth = values
    return jnp.minimum(jnp.minimum(first, second), jnp.minimum(third, fourth))
