"""Motion of vehicles: the kinematic bicycle, and steering along a lane.

    dx/dt = v cos(psi + beta),  dy/dt = v sin(psi + beta),  dpsi/dt = (v / l_r) sin(beta),  dv/dt =
    a

Here beta is the slip angle of the centre of gravity, tan(beta) = l_r / (l_f + l_r) tan(delta), and
the centre lies half way between the axles. While steering is held, the path is a circular arc at
any speed. So a step with constant acceleration and steering has a closed form and no error of
integration.

Source: Polack, Altche, d'Andrea-Novel & de La Fortelle 2017, doi:10.1109/IVS.2017.7995816, eqs. 1
to 5. They find the model consistent with a vehicle on tyres while its lateral acceleration stays
below half of the tyres' limit. All steering here is bounded by that.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp

from ..arrays import Scalar

WHEELBASE = 0.6  # Distance of the axles, as a fraction of a vehicle's length
STEERING_LIMIT = math.pi / 4  # rad, largest angle of the front wheels
# Sine of the slip angle at the steering limit.
SLIP_LIMIT = math.sin(math.atan(0.5 * math.tan(STEERING_LIMIT)))
# m/s^2: limit of tyres on a dry road; no driver brakes harder, whatever the model asks for.
TYRE_BRAKING = 9.0
LATERAL_ACCELERATION = 0.5 * 1.0 * 9.81  # m/s^2: half of friction coefficient 1 times gravity

HEADING_TIME = 0.2  # s: time constant of the heading loop
# s: time constant of the lateral loop. It is more than four times the heading's, so that a lane
# change never overshoots.
LATERAL_TIME = 1.0
MAX_LATERAL_SPEED = 2.0  # m/s: highest speed across a lane
MAX_HEADING = 0.4  # rad: largest heading that the lateral loop asks for
CRAWL_SPEED = 1.0  # m/s: slower vehicles are steered as if they drove at this speed


class Pose(NamedTuple):
    """Place, heading and speed of a vehicle."""

    x: Scalar  # m, along the road, of the body's centre
    y: Scalar  # m, to the left, from the right edge of the road
    heading: Scalar  # rad, to the left
    speed: Scalar  # m/s, never negative


class Motion(NamedTuple):
    """Effect of a step on a vehicle."""

    end: Pose
    cosine: Scalar  # Cosine of the heading half way along the arc
    sine: Scalar


def move(
    pose: Pose, acceleration: Scalar, slip: Scalar, length: Scalar, duration: Scalar
) -> Motion:
    """Move one step; a vehicle that brakes to a stop within it stays there.

    Args:
        pose: pose at the start.
        acceleration: m/s^2, held.
        slip: sine of the slip angle, held; see :func:`slip_of_steering`.
        length: length of the vehicle, m.
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
    return Motion(end, cosine, sine)


def rear_axle(length: Scalar) -> Scalar:
    """Return l_r = l_f, m: the distance from the body's centre to an axle."""
    return 0.5 * WHEELBASE * length


def slip_of_steering(steering: Scalar) -> Scalar:
    """Return the sine of the slip angle, given the angle of the front wheels (rad)."""
    return jnp.sin(jnp.arctan(0.5 * jnp.tan(steering)))


def slip_bound(speed: Scalar, length: Scalar) -> Scalar:
    """Bound the sine of the slip angle by the steering limit and the lateral acceleration.

    That acceleration is v^2 sin(beta) / l_r.
    """
    gentle = rear_axle(length) * LATERAL_ACCELERATION / jnp.maximum(speed * speed, CRAWL_SPEED)
    return jnp.minimum(gentle, SLIP_LIMIT)


def steer_to(pose: Pose, y: Scalar, length: Scalar) -> Scalar:
    """Return the sine of the slip angle that leads to the lateral position ``y``, m.

    It comes from a heading loop within a lateral loop.

    The cascade is that of Leurent 2018 (highway-env), with a bounded lateral speed. Without the
    bound a lane change would ask for more lateral acceleration than tyres have.
    """
    speed = jnp.maximum(pose.speed, CRAWL_SPEED)
    lateral = jnp.clip((y - pose.y) / LATERAL_TIME, -MAX_LATERAL_SPEED, MAX_LATERAL_SPEED)
    heading = jnp.clip(lateral / speed, -MAX_HEADING, MAX_HEADING)
    slip = rear_axle(length) * (heading - pose.heading) / (HEADING_TIME * speed)
    bound = slip_bound(pose.speed, length)
    return jnp.clip(slip, -bound, bound)
