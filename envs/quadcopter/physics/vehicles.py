"""Vehicles of the literature as data: mass, inertia, rotors, air.

Tasks and players take one as an argument.

=============  =====================================================================================
vehicle        source
=============  =====================================================================================
``CF2X``       Bitcraze Crazyflie 2.x, rotors at the corners of an X: gym-pybullet-drones (Panerati
               et al. 2021, arXiv:2103.02142) @90b178a, ``cf2x.urdf``; its thrust and inertia after
               Forster 2015, System Identification of the Crazyflie 2.0,
               doi:10.3929/ethz-b-000214143; ground effect after Shi et al. 2019, arXiv:1811.08027
``CF2P``       the same, rotors on the axes: ``cf2p.urdf``
``RACE``       a racing quadcopter of 0.83 kg: ``racer.urdf``. Its air is that of the Crazyflie, as
               there
``CRAZYFLIE``  a newer identification of the Crazyflie 2.1: rl-tools,
               ``rl/environments/l2f/parameters/dynamics/ crazyflie.h`` (Eschmann, Albani & Loianno
               2024, arXiv:2311.13081). Rotor speeds are a fraction of the highest, rotors slow down
               four times more slowly than they speed up; its air was not identified
=============  =====================================================================================
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .rigid_body import GRAVITY, Inertia, Scalar

RPM = 2 * math.pi / 60
"""rad/s"""

Four = tuple[Any, Any, Any, Any]
"""One number for each rotor."""


class Air(NamedTuple):
    """Coefficients of ``aerodynamics.py``."""

    ground: Scalar
    """Ground effect: relative thrust gained, by (propeller radius / (4 height))^2."""
    propeller_radius: Scalar
    """m"""
    drag_xy: Scalar
    """kg: rotor drag (N) by airspeed (m/s) and the sum of rotor speeds (rad/s), along body x and y.
    """
    drag_z: Scalar
    """kg: the same along body z."""
    downwash: tuple[Scalar, Scalar, Scalar]
    """N; width by distance; width at distance zero, m."""


class Vehicle(NamedTuple):
    """The constants of one vehicle. Rotor speeds are in rad/s, unless its source says otherwise."""

    inertia: Inertia
    rotor_x: Four
    """m: places of the rotors, forward of the centre of mass."""
    rotor_y: Four
    """m: places of the rotors, to the left of the centre of mass."""
    spin: Four
    """Sign of each rotor's reaction torque on the body about z; a rotor with +1 turns clockwise."""
    thrust: tuple[Scalar, Scalar, Scalar]
    """N: thrust of a rotor, as coefficients of 1, speed and speed^2."""
    torque: Scalar
    """m: reaction torque of a rotor by its thrust."""
    speed_limit: Scalar
    rising: Scalar
    """s: time constant of a rotor that speeds up; 0 for a rotor without lag."""
    falling: Scalar
    """s: time constant of a rotor that slows down."""
    air: Air


CRAZYFLIE_AIR = Air(11.36859, 2.31348e-2, 9.1785e-7, 10.311e-7, (2267.18, 0.16, -0.11))


def _speed_limit(mass: float, thrust_coefficient: float, thrust_to_weight: float) -> float:
    """Return the rotor speed of a thrust-to-weight ratio, as gym-pybullet-drones defines it.

    Its gravity is 9.8 m/s^2.
    """
    return math.sqrt(thrust_to_weight * mass * 9.8 / (4 * thrust_coefficient))


def _peer_vehicle(
    inertia: Inertia,
    rotor_x: Four,
    rotor_y: Four,
    spin: Four,
    kf: float,
    km: float,
    thrust_to_weight: float,
) -> Vehicle:
    """Return a vehicle of gym-pybullet-drones.

    Its thrust and torque coefficients are by RPM^2.
    """
    kf, km = kf / RPM**2, km / RPM**2
    limit = _speed_limit(inertia.mass, kf, thrust_to_weight)
    return Vehicle(
        inertia, rotor_x, rotor_y, spin, (0.0, 0.0, kf), km / kf, limit, 0.0, 0.0, CRAZYFLIE_AIR
    )


def _x_frame(arm: float) -> tuple[Four, Four]:
    """Place rotors 1 to 4 at front right, rear right, rear left and front left.

    They are ``arm`` (m) from the centre.
    """
    side = arm / math.sqrt(2)
    return (side, -side, -side, side), (-side, -side, side, side)


ALTERNATING_SPIN: Four = (-1.0, 1.0, -1.0, 1.0)

CF2X = _peer_vehicle(
    Inertia(0.027, 1.4e-5, 1.4e-5, 2.17e-5),
    *_x_frame(0.0397),
    ALTERNATING_SPIN,
    3.16e-10,
    7.94e-12,
    2.25,
)

CF2P = _peer_vehicle(
    Inertia(0.027, 2.3951e-5, 2.3951e-5, 3.2347e-5),
    (0.0397, 0.0, -0.0397, 0.0),
    (0.0, 0.0397, 0.0, -0.0397),
    ALTERNATING_SPIN,
    3.16e-10,
    7.94e-12,
    2.25,
)

_RACE_X, _RACE_Y = _x_frame(0.109)
RACE = _peer_vehicle(
    Inertia(0.83, 0.003113, 0.003113, 0.003113),
    _RACE_X,
    (
        -_RACE_Y[0],
        -_RACE_Y[1],
        -_RACE_Y[2],
        -_RACE_Y[3],
    ),  # counted the other way round, and turning so
    (1.0, -1.0, 1.0, -1.0),
    8.47e-9,
    2.13e-11,
    4.17,
)

CRAZYFLIE = Vehicle(
    inertia=Inertia(0.0306, 9.4166e-6, 9.6441e-6, 1.74595e-5),
    rotor_x=(0.028, -0.028, -0.028, 0.028),
    rotor_y=(-0.028, -0.028, 0.028, 0.028),
    spin=ALTERNATING_SPIN,
    thrust=(0.00352526, 0.01437313, 0.09223048),
    torque=4.665e-3,
    speed_limit=1.0,
    rising=0.05545,
    falling=0.24939,
    air=Air(0.0, 2.31348e-2, 0.0, 0.0, (0.0, 0.16, -0.11)),
)


def thrusts(speeds: Four, vehicle: Vehicle) -> Four:
    """Return the thrust of each rotor (N)."""
    c0, c1, c2 = vehicle.thrust
    return tuple(c0 + (c1 + c2 * speed) * speed for speed in speeds)


def thrust_and_torques(forces: Four, vehicle: Vehicle) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Return the thrust (N) and the torques (N m) of rotors with ``forces`` (N).

    The thrust is along body z, the torques are about body x, y and z.
    """
    f1, f2, f3, f4 = forces
    (x1, x2, x3, x4), (y1, y2, y3, y4), (s1, s2, s3, s4) = (
        vehicle.rotor_x,
        vehicle.rotor_y,
        vehicle.spin,
    )
    return (
        (f1 + f2) + (f3 + f4),
        (y1 * f1 + y2 * f2) + (y3 * f3 + y4 * f4),
        -((x1 * f1 + x2 * f2) + (x3 * f3 + x4 * f4)),
        vehicle.torque * ((s1 * f1 + s2 * f2) + (s3 * f3 + s4 * f4)),
    )


def lag(speeds: Four, command: Four, vehicle: Vehicle, duration: float) -> Four:
    """Return rotor speeds ``duration`` seconds later under constant commands.

    They follow with a first-order lag, which is slower downwards.
    """

    def approach(speed: Scalar, goal: Scalar) -> Scalar:
        constant = jnp.where(goal > speed, vehicle.rising, vehicle.falling)
        return goal + (speed - goal) * jnp.exp(-duration / jnp.maximum(constant, 1e-6))

    return jax.tree.map(approach, speeds, command)


def hover_speed(vehicle: Vehicle, gravity: float = GRAVITY) -> Scalar:
    """Return the rotor speed at which four rotors carry the weight."""
    c0, c1, c2 = vehicle.thrust
    missing = 0.25 * vehicle.inertia.mass * gravity - c0
    return (jnp.sqrt(c1 * c1 + 4 * c2 * missing) - c1) / (2 * c2)
