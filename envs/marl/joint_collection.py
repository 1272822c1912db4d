"""The reference player of foraging: all agents go to the same food, and lift it together."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import FlagArray, Int, IntArray
from rlbench_suite.core.policy import View, no_memory, privileged_player

from .foraging import LOAD, Foraging

UNREACHABLE = 10_000
"""Cells: longer than any way."""
SIDES = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)], np.int32)
"""Rows and columns from a cell to its neighbours, in the order of the actions north to east."""


@privileged_player
class JointCollection(eqx.Module):
    """Sends all agents to the food that the last of them reaches first, each to a side of its own.

    All of them together lift any food. They take shortest ways around food and around agents that
    wait beside it, one after the other, and do not enter a cell that an agent before them claims.
    Among ways of the same length chance decides, so that nobody waits for ever. The player knows
    the whole field, as agents do whose sight is not limited.
    """

    task: Foraging = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Foraging) -> JointCollection:
        """Return the player of a task."""
        return cls(task)

    initial = no_memory

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the actions of all agents, ``(3,)``."""
        state, params = view.state, view.params
        agents = jnp.stack([jnp.stack(agent) for agent in state.agents])
        foods = jnp.stack([jnp.stack(food[:2]) for food in params.foods])
        is_left = jnp.stack(state.is_left)
        goals = assign_sides(agents, foods, is_left)
        arrived = (agents == goals).all(1)
        rows, columns = np.indices((self.task.size, self.task.size))
        blocked = jnp.zeros(rows.shape, bool)
        for cell, is_there in zip((*foods, *agents), (*is_left, *arrived), strict=True):
            blocked = blocked | (is_there & (rows == cell[0]) & (columns == cell[1]))
        noise = jax.random.uniform(key, (len(state.agents), 1 + len(SIDES)))
        claimed = blocked
        actions = []
        for i in range(len(state.agents)):
            steps = steps_to(goals[i], blocked)
            choices = jnp.concatenate([agents[i][None], agents[i] + SIDES])
            inside = ((choices >= 0) & (choices < self.task.size)).all(1)
            row, column = jnp.clip(choices, 0, self.task.size - 1).T
            allowed = (inside & ~claimed[row, column]).at[0].set(True)
            lengths = jnp.where(allowed, steps[row, column] + 0.5 * noise[i], 2 * UNREACHABLE)
            move = jnp.argmin(lengths)
            claimed = claimed | ((rows == row[move]) & (columns == column[move]))
            actions.append(jnp.where(arrived[i], LOAD, move).astype(jnp.int32))
        return jnp.stack(actions), memory


def assign_sides(agents: IntArray, foods: IntArray, is_left: FlagArray) -> IntArray:
    """Return the cell that each agent goes to, ``(agents, 2)``: sides of one food.

    Of all foods and all ways to share its sides out, it is the one with the shortest longest way,
    and among those the one with the shortest ways in total.
    """
    count = len(agents)
    sides = foods[:, None] + SIDES
    ways = jnp.abs(sides[:, None] - agents[:, None]).sum(-1)  # (foods, agents, sides)
    orders = np.array(list(permutations(range(len(SIDES)), count)))
    shared = ways[:, np.arange(count), orders]  # (foods, orders, agents)
    costs = shared.max(-1) * UNREACHABLE + shared.sum(-1)
    costs = jnp.where(is_left[:, None], costs, UNREACHABLE * UNREACHABLE)
    food, order = jnp.divmod(jnp.argmin(costs), len(orders))
    return sides[food, jnp.asarray(orders)[order]]


def steps_to(goal: IntArray, blocked: FlagArray) -> IntArray:
    """Return the number of steps from each cell to a goal, int32 ``(size, size)``.

    It is :data:`UNREACHABLE` where there is no way. The goal itself is always open.
    """
    size = len(blocked)
    rows, columns = np.indices(blocked.shape)
    is_goal = (rows == goal[0]) & (columns == goal[1])

    def relax(_: Int, steps: IntArray) -> IntArray:
        around = jnp.pad(steps, 1, constant_values=UNREACHABLE)
        nearest = jnp.minimum(
            jnp.minimum(around[:-2, 1:-1], around[2:, 1:-1]),
            jnp.minimum(around[1:-1, :-2], around[1:-1, 2:]),
        )
        reached = jnp.minimum(steps, nearest + 1)
        return jnp.where(
            is_goal, 0, jnp.where(blocked, UNREACHABLE, jnp.minimum(reached, UNREACHABLE))
        )

    start = jnp.where(is_goal, 0, UNREACHABLE).astype(jnp.int32)
    return jax.lax.fori_loop(0, 3 * size, relax, start)
