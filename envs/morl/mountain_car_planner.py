"""Reference player of Mountain Car: it tries plans on the known motion and takes the cheapest."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Flag, Float, FloatArray, Int, IntArray
from rlbench_suite.core.policy import View, no_memory

from .mountain_car import COAST, FORCE, FORWARD, GOAL, REVERSE, MountainCar, Params, State

NEVER, BRAKE, ROLL = range(3)
"""Choices of a plan on its way left once a swing to the right would arrive: swing on, brake by
pushing forth, or coast."""
SPEEDS = (0.0, 0.015, 0.03)
"""Speeds below which plans do not push."""
SLACK = 2e-5
"""Energy above that of arrival before a plan relies on it. Steps do not keep energy exactly."""
LONGEST_PLAN = 200
"""Steps of a plan that does not arrive."""


class Plans(NamedTuple):
    """Rules that each push a car out of the valley, with one entry for each plan."""

    first_action: IntArray
    forward_speed: FloatArray
    """Least velocity to the right at which the plan pushes forth."""
    reverse_speed: FloatArray
    """Least velocity to the left at which the plan pushes back."""
    turn: IntArray
    """:data:`NEVER`, :data:`BRAKE` or :data:`ROLL`."""


_COLUMNS = zip(
    *product((REVERSE, COAST, FORWARD), SPEEDS, SPEEDS, (NEVER, BRAKE, ROLL)), strict=True
)
PLANS = Plans(*(np.array(column) for column in _COLUMNS))


class Rollout(NamedTuple):
    """Cars that follow the plans, with one entry for each plan."""

    step: Int
    """Steps so far, a scalar"""
    state: State
    cost: FloatArray
    """Weighted cost so far"""
    has_arrived: FloatArray


class RolloutPlanner(eqx.Module):
    """Plays every plan to its end in each step, and takes the first action of the cheapest.

    A plan is an action and then a rule that pumps energy into the swing. This is one step of policy
    iteration over a set of rules, a rollout (Bertsekas, Tsitsiklis & Wu 1997,
    doi:10.1023/A:1009635226865).
    """

    task: MountainCar = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: MountainCar) -> RolloutPlanner:
        """Make the player of a task."""
        return cls(task)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the first action of the cheapest plan."""
        state, params = self.task.read_observation(view.observation)
        count = len(PLANS.first_action)
        zeros = jnp.zeros(count, self.task.dtype)
        start = Rollout(
            jnp.int32(0),
            State(zeros + state.position, zeros + state.velocity),
            zeros,
            zeros > 0,
        )
        last = jax.lax.while_loop(may_improve, lambda rollout: self.advance(rollout, params), start)
        cost = jnp.where(last.has_arrived, last.cost, jnp.inf)
        best = jnp.argmin(cost)
        return jnp.asarray(PLANS.first_action, jnp.int32)[best], memory

    def advance(self, rollout: Rollout, params: Params) -> Rollout:
        """Move every car that has not arrived by a step."""
        action = jnp.where(
            rollout.step == 0, PLANS.first_action, rule_actions(rollout.state, params)
        )
        state = self.task.move(rollout.state, action, params)
        cost = jnp.zeros_like(rollout.cost)
        for weight, reward in zip(
            self.task.card.weights,
            self.task.objective_rewards(action, state, params),
            strict=True,
        ):
            cost = cost - weight * reward
        arrives = self.task.has_arrived(state)
        was_there = rollout.has_arrived
        return Rollout(
            rollout.step + 1,
            State(
                *(
                    jnp.where(was_there, before, after)
                    for before, after in zip(rollout.state, state, strict=True)
                )
            ),
            jnp.where(was_there, rollout.cost, rollout.cost + cost),
            was_there | arrives,
        )


def may_improve(rollout: Rollout) -> Flag:
    """Return whether a car on its way may still arrive at less cost than those that have."""
    cost = rollout.cost
    cheapest = jnp.min(jnp.where(rollout.has_arrived, cost, jnp.inf))
    is_open = ~rollout.has_arrived & (cost < cheapest)
    return jnp.any(is_open) & (rollout.step < LONGEST_PLAN)


def rule_actions(state: State, params: Params) -> IntArray:
    """Return the action of the rule of each plan.

    A rule pushes along the velocity, unless that is small, and coasts where the energy suffices to
    roll to the goal. On its way left, it turns as it says once a swing to the right would arrive.
    """
    position, velocity = state
    third = params.gravity * (1 / 3)
    energy = 0.5 * velocity * velocity + third * jnp.sin(3 * position)
    rolls_out = energy > third * np.sin(3 * GOAL) + SLACK
    swings_out = energy - FORCE * position > barrier(params) + SLACK
    to_the_right = jnp.where(velocity < PLANS.forward_speed, COAST, FORWARD)
    brakes = PLANS.turn == BRAKE
    to_the_right = jnp.where(brakes, FORWARD, jnp.where(rolls_out, COAST, to_the_right))
    to_the_left = jnp.where(-velocity < PLANS.reverse_speed, COAST, REVERSE)
    turning = jnp.where(brakes, FORWARD, COAST)
    to_the_left = jnp.where(swings_out & (PLANS.turn != NEVER), turning, to_the_left)
    return jnp.where(velocity >= 0, to_the_right, to_the_left).astype(jnp.int32)


def barrier(params: Params) -> Float:
    """Return the energy that it takes to leave the valley while pushing forth all the time.

    It is the potential of slope and push where the slope holds the push: g cos(3 x) is the force.
    """
    ratio = FORCE / params.gravity
    return (params.gravity * jnp.sqrt(1 - ratio * ratio) - FORCE * jnp.arccos(ratio)) * (1 / 3)
