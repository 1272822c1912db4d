"""Courses: points to reach one after another; after the last the first comes again."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..physics.dynamics import Quadcopter
from ..physics.rigid_body import Scalar, speed_of, squared_length

BONUS = 1.0
"""Reward of a point that is reached."""


def offset_to_point(vehicle: Quadcopter, number: Any, course: Any) -> tuple[Scalar, Scalar, Scalar]:
    """Return the vector from the vehicle to point ``number`` of a closed course (arrays ``x, y, z``, m)."""
    place, body = number % course.x.shape[0], vehicle.body
    return course.x[place] - body.x, course.y[place] - body.y, course.z[place] - body.z


def distance_to_point(vehicle: Quadcopter, number: Any, course: Any) -> Scalar:
    """Return the distance from the vehicle to point ``number`` of its course (m)."""
    return jnp.sqrt(squared_length(*offset_to_point(vehicle, number, course)))


def tour_info(state: Any, course: Any, count: int) -> dict[str, jax.Array]:
    """Return ``success`` and the measures of a tour of ``count`` points; ``state.reached`` counts those reached."""
    body = state.vehicle.body
    return {
        "success": state.reached >= count,
        "reached": state.reached,
        "distance": distance_to_point(state.vehicle, state.reached, course),
        "speed": speed_of(body),
    }


def progress_reward(
    before: Quadcopter, after: Quadcopter, number: Any, course: Any, *, reached: Scalar, over: Scalar, lost: float
) -> jax.Array:
    """Return the metres by which a vehicle came nearer to point ``number``, plus ``BONUS`` if the point is reached.

    A vehicle whose episode is over counts as ``lost`` m away from the point.
    """
    away, now = (distance_to_point(vehicle, number, course) for vehicle in (before, after))
    return away + jnp.where(reached, BONUS, 0) - jnp.where(over, lost, now)
