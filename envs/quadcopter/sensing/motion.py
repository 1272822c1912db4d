"""A vehicle's motion as its sensors give it.

It has observation entries with bounds and meanings, and a description in text.
"""

from __future__ import annotations

import math

import numpy as np

from rlbench_suite.core.component import Component

from ..physics import dynamics
from ..physics.dynamics import ROTOR_NAMES, Quadcopter, rotor_action
from ..physics.rigid_body import RigidBody, Scalar, rotation_matrix

GYROSCOPE_RANGE = math.radians(2000)
"""rad/s about each axis"""
ANGULAR_VELOCITY_BOUND = 100.0
"""rad/s: bound of an observation. One step beyond the gyroscope's range adds at most 60 rad/s."""
ROUNDING = 1e-5
"""Slack of bounds for rounding, of entries of a rotation matrix and of normalised rotor speeds."""
SPINS = f"crash: it spins faster than {GYROSCOPE_RANGE:.1f} rad/s about an axis"


ROTOR_SPEEDS = Component(
    "rotors",
    f"speed of each rotor ({', '.join(ROTOR_NAMES)}): -1 is standstill, 1 full speed",
    "1",
    (4,),
)
MOTION = (
    Component("rotation", "rotation matrix from the body to the world, row by row", "1", (3, 3)),
    Component("velocity", "velocity along x, y, z of the world", "m/s", (3,)),
    Component(
        "angular_velocity",
        "angular velocity about x (ahead), y (left), z (up) of the body",
        "rad/s",
        (3,),
    ),
)
ATTITUDE_AND_RATES = (*MOTION, ROTOR_SPEEDS)
"""Entries of :func:`attitude_and_rates`."""
SIZE = sum(component.size for component in ATTITUDE_AND_RATES)
"""Numbers in :func:`attitude_and_rates`."""


def attitude_and_rates(
    state: Quadcopter, limit: float = dynamics.ROTOR_SPEED_LIMIT
) -> tuple[Scalar, ...]:
    """Return rotation matrix, velocity, angular velocity and rotors.

    They are the matrix by rows (9), m/s (3), rad/s (3), and rotor speeds on the action's scale (4).
    """
    body = state.body
    rotors = (rotor_action(speed, limit) for speed in state.rotors)
    return (*rotation_matrix(body), body.vx, body.vy, body.vz, body.wx, body.wy, body.wz, *rotors)


def attitude_and_rates_bound(velocity: float, turning: float = 1.0) -> list[float]:
    """Return the largest absolute value of each of :func:`attitude_and_rates`.

    ``velocity`` is the largest velocity (m/s).

    ``turning``: largest angular acceleration, by that of the Crazyflie.
    """
    rate = GYROSCOPE_RANGE + turning * (ANGULAR_VELOCITY_BOUND - GYROSCOPE_RANGE)
    return [1 + ROUNDING] * 9 + [velocity] * 3 + [rate] * 3 + [1 + ROUNDING] * 4


def offset(name: str, meaning: str) -> Component:
    """Describe an observed vector along the axes of the world, m."""
    return Component(name, f"{meaning}, along x, y, z of the world", "m", (3,))


def spins_too_fast(body: RigidBody) -> Scalar:
    """Say whether it turns faster about an axis than a Crazyflie's gyroscope can measure.

    That is 2,000 deg/s.
    """
    return (
        (abs(body.wx) > GYROSCOPE_RANGE)
        | (abs(body.wy) > GYROSCOPE_RANGE)
        | (abs(body.wz) > GYROSCOPE_RANGE)
    )


def describe_vehicle(state: Quadcopter, limit: float = dynamics.ROTOR_SPEED_LIMIT) -> str:
    """Describe velocity, attitude, angular velocity and rotor speeds, with units."""
    rotors = ", ".join(f"{float(rotor_action(speed, limit)):+.3f}" for speed in state.rotors)
    return f"{describe_motion(state.body)} Rotor speeds on the action's scale {rotors}."


def describe_motion(body: RigidBody) -> str:
    """Describe velocity, attitude and angular velocity, with units."""
    body = RigidBody(*(float(value) for value in body))
    tilt = math.degrees(math.acos(np.clip(rotation_matrix(body)[8], -1, 1)))
    rows = np.array(rotation_matrix(body)).reshape(3, 3)
    return (
        f"Velocity {body.vx:+.3f}, {body.vy:+.3f}, {body.vz:+.3f} m/s. Tilt {tilt:.1f} degrees; "
        f"forward points to {format_point(rows[:, 0])}, left to {format_point(rows[:, 1])}, up to "
        f"{format_point(rows[:, 2])}. Angular velocity about forward, left, up {body.wx:+.3f}, "
        f"{body.wy:+.3f}, {body.wz:+.3f} rad/s."
    )


def format_point(point: np.ndarray | tuple[Scalar, ...]) -> str:
    """Write three numbers in brackets."""
    return "(" + ", ".join(f"{float(value):+.3f}" for value in point) + ")"
