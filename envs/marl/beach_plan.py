"""The reference player of the beach: the best distribution that everybody can still walk to.

The worth of a distribution is a sum over sections, so that dynamic programming from the left finds
the best one: the state is the number of people of each type in the sections so far. People of one
type can reach a distribution if and only if they can when they keep their order. So the number of
them in the first sections is bounded from below by those who cannot walk out of these, and from
above by those who can walk in.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import FloatArray, Int, IntArray
from rlbench_suite.core.policy import View, privileged_player

from .beach import MOVES, SECTIONS, STAY, Beach, Params, ranks


class Table(NamedTuple):
    """Result of one section of the dynamic programme, for each number of people so far."""

    worths: FloatArray
    """Best worth of the sections so far, ``(a + 1, b + 1)``; minus infinity if out of reach."""
    choices: IntArray
    """Number of the people in the last of these sections, ``(a + 1, b + 1)``."""


@privileged_player
class BestPlan(eqx.Module):
    """Sends everybody to the best distribution in reach, which it finds when the day begins.

    It knows the places of all sections, as people do whose sight is not limited.
    """

    task: Beach = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Beach) -> BestPlan:
        """Return the player of a task."""
        return cls(task)

    def initial(self, params: Params) -> IntArray:
        """Return the section that each person goes to, ``(n,)``."""
        return assign(params, best_counts(self.task, params))

    def act(self, memory: IntArray, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the moves towards these sections, ``(n,)``."""
        return STAY + jnp.sign(memory - view.state.sections), memory


def section_worths(task: Beach) -> np.ndarray:
    """Return a section's part of the score by its places and its people of each type.

    It is float64 ``(11, a + 1, b + 1)``, where a is the largest number of people of the first type
    and b that of the second.
    """
    count = task.card.agents
    smallest, largest = task.minority
    first, second = np.indices((largest + 1, count - smallest + 1))
    fits = first + second <= count
    people = np.where(fits, first + second, 0)
    values = task.values.astype(np.float64)[:, people]
    mixtures = task.mixtures.astype(np.float64)[first, second]
    by_capacity, by_mixture = task.card.weights
    if task.card.settings["reward"] == "individual":
        worths = (by_capacity * values + by_mixture * mixtures) * people / count
    else:
        worths = by_capacity * values + by_mixture * mixtures / SECTIONS
    return np.where(fits, worths, -np.inf)


def best_counts(task: Beach, params: Params) -> IntArray:
    """Return the best numbers of people of each type in each section, ``(6, 2)``."""
    worths = jnp.asarray(section_worths(task), task.dtype)[params.places]
    totals = [(params.types == kind).sum(dtype=jnp.int32) for kind in range(2)]
    low_counts, high_counts = bounds(params)
    shape = worths.shape[1:]
    first, second = np.indices(shape)

    def add_section(table: FloatArray, section: tuple[Any, ...]) -> tuple[FloatArray, IntArray]:
        worth, low, high = section
        result = best_with(table, worth)
        in_reach = (first >= low[0]) & (first <= high[0]) & (second >= low[1]) & (second <= high[1])
        return jnp.where(in_reach, result.worths, -jnp.inf), result.choices

    nobody = jnp.full(shape, -jnp.inf, task.dtype).at[0, 0].set(0)
    _, choices = jax.lax.scan(add_section, nobody, (worths, low_counts, high_counts))

    def take_back(left: tuple[Int, Int], choice: IntArray) -> tuple[tuple[Int, Int], IntArray]:
        people = jnp.stack(jnp.divmod(choice[left], shape[1]))
        return (left[0] - people[0], left[1] - people[1]), people

    _, counts = jax.lax.scan(take_back, (totals[0], totals[1]), choices, reverse=True)
    return counts.astype(jnp.int32)


def best_with(table: FloatArray, worth: FloatArray) -> Table:
    """Return the best worths with one more section, whose people are chosen."""
    rows, columns = table.shape
    padded = jnp.pad(table, ((rows - 1, 0), (columns - 1, 0)), constant_values=-jnp.inf)

    def compare(number: Int, best: Table) -> Table:
        row, column = jnp.divmod(number, columns)
        start = (rows - 1 - row, columns - 1 - column)
        earlier = jax.lax.dynamic_slice(padded, start, (rows, columns))
        worths = earlier + worth[row, column]
        better = worths > best.worths
        return Table(
            jnp.where(better, worths, best.worths), jnp.where(better, number, best.choices)
        )

    nothing = Table(jnp.full_like(table, -jnp.inf), jnp.zeros(table.shape, jnp.int32))
    result: Table = jax.lax.fori_loop(0, rows * columns, compare, nothing)
    return result


def bounds(params: Params) -> tuple[IntArray, IntArray]:
    """Return the fewest and most people of each type in the first sections, each ``(6, 2)``."""
    low_counts: list[IntArray] = []
    high_counts: list[IntArray] = []
    for section in range(SECTIONS):
        cannot_leave = params.start <= section - MOVES
        can_enter = params.start <= section + MOVES
        for flags, rows in ((cannot_leave, low_counts), (can_enter, high_counts)):
            rows.append(
                jnp.stack([(flags & (params.types == k)).sum(dtype=jnp.int32) for k in range(2)])
            )
    return jnp.stack(low_counts), jnp.stack(high_counts)


def assign(params: Params, counts: IntArray) -> IntArray:
    """Return the section of each person, ``(n,)``: people of a type keep their order."""
    sections = jnp.zeros(len(params.types), jnp.int32)
    for kind in range(2):
        is_kind = params.types == kind
        rank = ranks(jnp.where(is_kind, params.start, SECTIONS))
        so_far = jnp.int32(0)
        target = jnp.zeros_like(sections)
        for section in range(SECTIONS - 1):
            so_far = so_far + counts[section, kind]
            target = target + (rank >= so_far)
        sections = jnp.where(is_kind, target, sections)
    return sections
