"""The reference player of item gathering: the best tours of two agents.

Dynamic programming over sets of items finds them.

The shortest tour through a set of items follows from those through smaller sets (Held & Karp 1962,
doi:10.1137/0110015). Two agents that are never in each other's way can gather what two disjoint
sets weigh whose tours are short enough, so that the best pair of sets is the most they can gather.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Flag, FlagArray, Float, FloatArray, Int, IntArray
from rlbench_suite.core.policy import View, privileged_player

from .foraging import Cell
from .item_gathering import ITEMS, KIND_OF_ITEM, SIZE, ItemGathering, Params, is_same

SETS = np.arange(1 << ITEMS, dtype=np.int32)
"""Sets of items: bit i is set if item i is in the set."""
CONTAINS = (SETS[:, None] >> np.arange(ITEMS) & 1).astype(bool)
"""Whether a set has an item, ``(256, 8)``."""
WITHOUT = SETS[:, None] & ~(1 << np.arange(ITEMS, dtype=np.int32))
"""A set without an item, ``(256, 8)``."""
UNREACHABLE = 1_000
"""Steps: longer than any tour."""
STEP_COST = 1e-4
"""Weight that a step of a tour is worth, so that of equally good tours the shorter ones count."""


class Tours(NamedTuple):
    """Tours of one agent, for each set of items."""

    lengths: IntArray
    """Steps of the shortest tour through a set, ``(256,)``."""
    first_items: IntArray
    """Item with which it begins, ``(256,)``."""


class Plan(NamedTuple):
    """A set of items for each of two agents."""

    sets: tuple[Int, Int]
    gain: Float
    """Weight of all items, less the cost of the steps."""


def steps_between(cells: IntArray, cells_b: IntArray) -> IntArray:
    """Return the steps from each of some cells to each of others, ``(n, m)``."""
    rows, columns = jnp.divmod(cells, SIZE)
    rows_b, columns_b = jnp.divmod(cells_b, SIZE)
    return jnp.abs(rows[:, None] - rows_b) + jnp.abs(columns[:, None] - columns_b)


def tour_lengths(items: IntArray) -> IntArray:
    """Return the steps from an item through a set of items, ``(256, 8)``."""
    steps = steps_between(items, items)

    def extend(_: Int, lengths: IntArray) -> IntArray:
        # From item j to item k of a set, and on through the set without k: ``(256, 8, 8)``.
        onward = lengths[WITHOUT, np.arange(ITEMS)]
        through = jnp.where(CONTAINS, onward, UNREACHABLE)[:, None] + steps
        return jnp.where((SETS == 0)[:, None], 0, through.min(-1))

    nothing = jnp.where(
        (SETS == 0)[:, None], 0, jnp.full((len(SETS), ITEMS), UNREACHABLE, jnp.int32)
    )
    return jax.lax.fori_loop(0, ITEMS, extend, nothing)


def tours_from(cell: Int, items: IntArray, lengths: IntArray) -> Tours:
    """Return the shortest tours of an agent in a cell."""
    steps = steps_between(cell[None], items)[0]
    onward = lengths[WITHOUT, np.arange(ITEMS)]
    through = jnp.where(CONTAINS, steps + onward, UNREACHABLE)
    first_items = jnp.argmin(through, axis=1).astype(jnp.int32)
    return Tours(jnp.where(SETS == 0, 0, through.min(1)), first_items)


def best_plan(
    tours: tuple[Tours, Tours], weights: FloatArray, is_left: FlagArray, steps: Int | int
) -> Plan:
    """Return the best two disjoint sets of items that are left.

    Args:
        tours: of both agents.
        weights: of the items, ``(8,)``.
        is_left: which items are left, ``(8,)``.
        steps: steps left.
    """
    dtype = weights.dtype
    total = reduce(add, [jnp.where(CONTAINS[:, k], weights[k], 0) for k in range(ITEMS)])
    is_there = (~CONTAINS | is_left).all(1)
    gains = []
    for lengths, _ in tours:
        gain = total - np.asarray(STEP_COST, dtype) * lengths.astype(dtype)
        gains.append(jnp.where(is_there & (lengths <= steps), gain, -jnp.inf))
    # Best set of the second agent among all subsets of a set.
    best, best_sets = gains[1], jnp.asarray(SETS)
    for k in range(ITEMS):
        smaller = WITHOUT[:, k]
        is_better = best[smaller] > best
        best_sets = jnp.where(is_better, best_sets[smaller], best_sets)
        best = jnp.maximum(best, best[smaller])
    complements = SETS[::-1]  # the complement of each set
    joint = gains[0] + best[complements]
    first = jnp.argmax(joint).astype(jnp.int32)
    return Plan((first, best_sets[complements][first]), joint[first])


def step_towards(agent: Cell, goal: Cell, is_free: Any) -> tuple[Int, Cell]:
    """Return the action that leads to a goal, and the next cell.

    It goes along the longer axis first, and along the other one where that cell is not free.

    Args:
        agent: its cell.
        goal: where it goes.
        is_free: function that tells whether a cell is free.
    """
    down, right = goal.row - agent.row, goal.column - agent.column
    below = Cell(agent.row + jnp.sign(down), agent.column)
    beside = Cell(agent.row, agent.column + jnp.sign(right))
    by_row = jnp.where(down == 0, 0, jnp.where(down < 0, 1, 2))
    by_column = jnp.where(right == 0, 0, jnp.where(right < 0, 3, 4))
    row_first = jnp.abs(down) >= jnp.abs(right)
    row_works = (down != 0) & is_free(below)
    column_works = (right != 0) & is_free(beside)
    takes_row = row_works & (row_first | ~column_works)
    action = jnp.where(takes_row, by_row, jnp.where(column_works, by_column, 0))
    row = jnp.where(takes_row, below.row, agent.row)
    column = jnp.where(~takes_row & column_works, beside.column, agent.column)
    return action.astype(jnp.int32), Cell(row, column)


@privileged_player
class BestTours(eqx.Module):
    """Sends each agent along its tour, and plans again in every step.

    It reads the cells of the items from the context, which the observation shows as a grid.
    """

    task: ItemGathering = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: ItemGathering) -> BestTours:
        """Return the player of a task."""
        return cls(task)

    def initial(self, params: Params) -> IntArray:
        """Return the lengths of all tours that begin at an item, ``(256, 8)``."""
        return tour_lengths(params.items)

    def act(self, memory: IntArray, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the actions of both agents, ``(2,)``."""
        state, params = view.state, view.params
        cells = [SIZE * agent.row + agent.column for agent in state.agents]
        first_tours, second_tours = (tours_from(cell, params.items, memory) for cell in cells)
        plan = best_plan(
            (first_tours, second_tours),
            params.weights[KIND_OF_ITEM],
            state.is_left,
            state.steps_left,
        )
        goals = []
        for agent, tours, items in zip(
            state.agents, (first_tours, second_tours), plan.sets, strict=True
        ):
            row, column = jnp.divmod(params.items[tours.first_items[items]], SIZE)
            is_idle = items == 0
            goals.append(
                Cell(jnp.where(is_idle, agent.row, row), jnp.where(is_idle, agent.column, column))
            )
        second_is_idle = plan.sets[1] == 0

        def is_free_for_first(cell: Cell) -> Flag:
            return ~(second_is_idle & is_same(cell, state.agents[1]))

        action, claimed = step_towards(state.agents[0], goals[0], is_free_for_first)
        second_action, _ = step_towards(
            state.agents[1], goals[1], lambda cell: ~is_same(cell, claimed)
        )
        return jnp.stack([action, second_action]), memory
