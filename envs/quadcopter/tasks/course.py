"""Courses: points to reach one after another; after the last the first comes again."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..physics.dynamics import Quadcopter
from ..physics.rigid_body import Scalar, squared_length


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
        "speed": jnp.sqrt(squared_length(body.vx, body.vy, body.vz)),
    }
