"""How vehicles move: the kinematic bicycle, and how they are steered along a lane.

    dx/dt = v cos(psi + beta),  dy/dt = v sin(psi + beta),  dpsi/dt = (v / l_r) sin(beta),  dv/dt = a

with the slip angle beta of the centre of gravity, tan(beta) = l_r / (l_f + l_r) tan(delta), and the centre half way
between the axles. While steering is held the path is a circular arc whatever the speed does, so a step with constant
acceleration and steering has a closed form and no error of integration.

Source: Polack, Altche, d'Andrea-Novel & de La Fortelle 2017, doi:10.1109/IVS.2017.7995816, eqs. 1 to 5. They find the
model consistent with a vehicle on tyres while its lateral acceleration stays below half of what the tyres hold: all
steering here is bounded by that.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp

from .car_following import Scalar

WHEELBASE = 0.6
"""Distance of the axles in parts of a vehicle's length."""
STEERING_LIMIT = math.pi / 4
"""rad, of the front wheels."""
SLIP_LIMIT = math.sin(math.atan(0.5 * math.tan(STEERING_LIMIT)))
"""Sine of the slip angle at the steering limit."""
LATERAL_ACCELERATION = 0.5 * 1.0 * 9.81
"""m/s^2: half of friction coefficient 1 times gravity."""

HEADING_TIME = 0.2
"""s: time constant of the heading loop."""
LATERAL_TIME = 1.0
"""s: time constant of the lateral loop; above four times the heading's, so that a lane change never overshoots."""
LATERAL_SPEED = 2.0
"""m/s: the fastest a lane is crossed."""
LARGEST_HEADING = 0.4
"""rad, that the lateral loop asks for."""
CRAWL = 1.0
"""m/s: slower vehicles are steered as if they drove that fast."""


class Pose(NamedTuple):
    """Where a vehicle is and how fast."""

    x: Scalar
    """m, along the road: the middle of the body."""
    y: Scalar
    """m, to the left, from the right edge of the road."""
    heading: Scalar
    """rad, to the left."""
    speed: Scalar
    """m/s, never negative."""


class Motion(NamedTuple):
    """What a step did to a vehicle."""

    end: Pose
    middle_heading: Scalar
    """rad, half way along the arc."""
    cosine: Scalar
    """Of the middle heading."""
    sine: Scalar


def move(pose: Pose, acceleration: Scalar, slip: Scalar, length: Scalar, duration: Scalar) -> Motion:
    """One step; a vehicle that brakes to a stop within it stays there.

    Args:
        pose: at the start.
        acceleration: m/s^2, held.
        slip: sine of the slip angle, held; see :func:`slip_of_steering`.
        length: m, of the vehicle.
        duration: s.
    """
    gained = acceleration * duration
    stops = pose.speed + gained < 0
    distance = jnp.where(
        stops,
        pose.speed * pose.speed / (-2 * jnp.where(stops, acceleration, -1)),
        duration * (pose.speed + 0.5 * gained),
    )
    half_turn = 0.5 * distance * slip / rear_axle(length)
    middle = pose.heading + half_turn
    # The chord of the arc lies in the direction of the middle heading plus beta.
    square = half_turn * half_turn
    chord = distance * (1 - square / 6 * (1 - square / 20 * (1 - square / 42 * (1 - square / 72))))
    cosine, sine = jnp.cos(middle), jnp.sin(middle)
    slip_cosine = jnp.sqrt(1 - slip * slip)
    end = Pose(
        pose.x + chord * (cosine * slip_cosine - sine * slip),
        pose.y + chord * (sine * slip_cosine + cosine * slip),
        middle + half_turn,
        jnp.maximum(pose.speed + gained, 0),
    )
    return Motion(end, middle, cosine, sine)


def rear_axle(length: Scalar) -> Scalar:
    """l_r = l_f, m: from the middle of the body to an axle."""
    return 0.5 * WHEELBASE * length


def slip_of_steering(steering: Scalar) -> Scalar:
    """Sine of the slip angle from the angle of the front wheels (rad)."""
    half = 0.5 * jnp.tan(steering)
    return half / jnp.sqrt(1 + half * half)


def slip_bound(speed: Scalar, length: Scalar) -> Scalar:
    """Largest sine of the slip angle: by the steering limit, and by the lateral acceleration v^2 sin(beta) / l_r."""
    gentle = rear_axle(length) * LATERAL_ACCELERATION / jnp.maximum(speed * speed, CRAWL)
    return jnp.minimum(gentle, SLIP_LIMIT)


def steer_to(pose: Pose, y: Scalar, length: Scalar) -> Scalar:
    """Sine of the slip angle that leads to the lateral position ``y``: a heading loop within a lateral loop.

    The cascade of Leurent 2018 (highway-env), with a bounded lateral speed: unbounded, a change of lanes would ask for
    more lateral acceleration than tyres have.
    """
    speed = jnp.maximum(pose.speed, CRAWL)
    lateral = jnp.clip((y - pose.y) / LATERAL_TIME, -LATERAL_SPEED, LATERAL_SPEED)
    heading = jnp.clip(lateral / speed, -LARGEST_HEADING, LARGEST_HEADING)
    slip = rear_axle(length) * (heading - pose.heading) / (HEADING_TIME * speed)
    bound = slip_bound(pose.speed, length)
    return jnp.clip(slip, -bound, bound)
