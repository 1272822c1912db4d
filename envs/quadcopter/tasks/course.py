"""Courses: points to reach one after another; after the last the first comes again.

A step is paid for three things. A context may weigh each otherwise:

===============  ===================================================================================
``progress``     metres by which the vehicle came nearer; zero in a step that ends the episode
``prize``        reaching a point
``loss``         taken off in the step that ends the episode: metres that the vehicle was nearer
                 than when lost
===============  ===================================================================================
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from rlbench_suite.contexts.context import weights

from ...shared.own_constants import OwnConstants
from ..physics.dynamics import Quadcopter
from ..physics.rigid_body import Scalar, speed_of, squared_length

BONUS = 1.0
"""Reward of a point that is reached."""
TERMS = weights(
    progress=(1.0, "metres nearer to the goal, in steps that do not end the episode"),
    prize=(BONUS, "reaching the goal"),
    loss=(1.0, "metres that it was nearer than when lost, taken off as the episode ends"),
)


def offset_to_point(vehicle: Quadcopter, number: Any, course: Any) -> tuple[Scalar, Scalar, Scalar]:
    """Return the vector from the vehicle to point ``number`` of a closed course.

    The course has arrays ``x, y, z`` (m).
    """
    index, body = number % course.x.shape[0], vehicle.body
    return course.x[index] - body.x, course.y[index] - body.y, course.z[index] - body.z


def distance_to_point(vehicle: Quadcopter, number: Any, course: Any) -> Scalar:
    """Return the distance from the vehicle to point ``number`` of its course (m)."""
    return jnp.sqrt(squared_length(*offset_to_point(vehicle, number, course)))


def tour_info(state: Any, course: Any, count: int) -> dict[str, jax.Array]:
    """Return ``success`` and the measures of a tour of ``count`` points.

    ``state.reached`` counts those reached.
    """
    body = state.vehicle.body
    return {
        "success": state.reached >= count,
        "reached": state.reached,
        "distance": distance_to_point(state.vehicle, state.reached, course),
        "speed": speed_of(body),
    }


def weighted_reward(
    context_values: OwnConstants,
    previous_distance: Scalar,
    distance: Scalar,
    *,
    prize: Scalar,
    over: Scalar,
    lost: float,
) -> Scalar:
    """Return the reward by the weights of a context.

    Args:
        context_values: the weights.
        previous_distance: distance from the goal before the step (m).
        distance: distance after it (m).
        prize: the weighted prize.
        over: whether the episode is over.
        lost: distance at which the vehicle is lost (m).
    """
    missed = context_values.weight("loss") * jnp.maximum(lost - previous_distance, 0)
    return (
        jnp.where(over, -missed, context_values.weight("progress") * (previous_distance - distance))
        + prize
    )


def reward_range(
    context_values: OwnConstants, *, nearer: float, lost: float
) -> tuple[float, float]:
    """Return the least and the largest reward of a step on a course.

    ``nearer`` is the largest progress (m).
    """
    moved = context_values.weight("progress") * nearer
    return -max(context_values.weight("loss") * lost, moved), context_values.weight("prize") + moved


def progress_reward(
    previous_vehicle: Quadcopter,
    next_vehicle: Quadcopter,
    number: Any,
    course: Any,
    *,
    reached: Scalar,
    over: Scalar,
    lost: float,
    context_values: OwnConstants | None = None,
) -> jax.Array:
    """Return the progress (m) towards point ``number``, plus ``BONUS`` if it is reached.

    A vehicle whose episode is over counts as ``lost`` m away from the point. ``context_values``
    has the weights of a context.
    """
    previous_distance, distance = (
        distance_to_point(vehicle, number, course) for vehicle in (previous_vehicle, next_vehicle)
    )
    if context_values is not None and context_values.reweighted:
        prize = jnp.where(reached, context_values.weight("prize"), 0)
        return weighted_reward(
            context_values, previous_distance, distance, prize=prize, over=over, lost=lost
        )
    return previous_distance + jnp.where(reached, BONUS, 0) - jnp.where(over, lost, distance)
