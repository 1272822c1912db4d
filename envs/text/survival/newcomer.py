"""Heuristic player of Survival, which minds its needs first.

Otherwise it gathers the nearest thing in sight that it can use.

It reads what the observation shows, takes the usual rules for granted, and remembers nothing.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.policy import View, no_memory, privileged_player
from rlbench_suite.numerics.keys import uniform
from rlbench_suite.numerics.reductions import union

from ...shared.grid_bits import SIDE, grow
from .actions import pickaxe
from .rules import (
    DO,
    DRINK,
    EAT_COW,
    FIRST_PLACED,
    GRASS,
    LEFT,
    MAKE,
    MATERIALS,
    NOOP,
    PATH,
    PLACE_STONE,
    PLACE_TABLE,
    RECIPES,
    ROCK,
    SAND,
    SLEEP,
    STEPS,
    TABLE,
    TABLE_COST,
    TREE,
    USUAL_CONTENTS,
    USUAL_LEVELS,
    WATER,
    WOOD,
    has,
    number_of,
)
from .settler import HUNGRY, TIRED, Job, box, first_to_do
from .state import COW, SKELETON, ZOMBIE, State
from .task import Survival
from .view import COLUMNS, LOOKS, ROWS
from .world import START, single

MAX_STOCK = 5
"""Number of an item at which it gathers no more."""
TABLE_TOOLS = 0, 3, 1, 4
"""Tools that it makes: pickaxe and sword of wood, then of stone."""


def in_sight(observation: jax.Array) -> jax.Array:
    """Return the cells of each material and look in a view, uint32 ``(19, 32)``.

    They are placed as if the player were at the start.
    """
    kinds = len(MATERIALS + LOOKS)
    above = START // SIDE - ROWS // 2
    left = START % SIDE - COLUMNS // 2
    flags = (
        observation[: 64 * kinds]
        .reshape(kinds, 64)[:, : ROWS * COLUMNS]
        .reshape(kinds, ROWS, COLUMNS)
    )
    rows = (flags.astype(jnp.uint32) << np.arange(left, left + COLUMNS, dtype=np.uint32)).sum(
        2, dtype=jnp.uint32
    )
    return jnp.pad(rows, ((0, 0), (above, SIDE - above - ROWS)))


@privileged_player
class Newcomer(eqx.Module):
    """The player. Where nothing is to be done it goes straight on, and turns where it cannot."""

    @classmethod
    def for_task(cls, task: Survival) -> Newcomer:
        """Make the player; it is the same for every difficulty."""
        return cls()

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the action of the first job whose site is in sight, or a step towards it.

        Without such a job, return a step anywhere.
        """
        state: State = view.state  # of which the observation has all numbers that are read here
        visible = in_sight(jnp.asarray(view.observation))
        looks = visible[len(MATERIALS) :]
        cows = looks[COW]
        enemies = looks[ZOMBIE] | looks[SKELETON]
        free = (visible[GRASS] | visible[SAND] | visible[PATH]) & ~union(looks)
        beside = grow(single(START))

        def is_missing(achievement: int) -> jax.Array:
            return state.unlocked >> achievement & 1 == 0

        jobs = [
            Job((enemies & beside != 0).any(), enemies, DO),
            Job(state.drink <= HUNGRY, visible[WATER], DO),
            Job(state.food <= HUNGRY, cows, DO),
            Job((state.energy <= TIRED) & ~(enemies != 0).any(), free, SLEEP, True),
            Job(is_missing(FIRST_PLACED) & (number_of(state.items, ROCK) > 0), free, PLACE_STONE),
        ]
        near_table = (box(single(START)) & visible[TABLE] != 0).any()
        for tool in TABLE_TOOLS:
            can = (state.tools >> tool & 1 == 0) & has(state.items, RECIPES[tool])
            jobs += [
                Job(can & near_table, free, MAKE + tool, True),
                Job(can & (number_of(state.items, WOOD) > TABLE_COST + 1), free, PLACE_TABLE),
            ]
        useful = jnp.where(is_missing(DRINK), visible[WATER], 0) | jnp.where(
            is_missing(EAT_COW), cows, 0
        )
        for source, item in enumerate(USUAL_CONTENTS):
            usable = (pickaxe(state.tools) >= USUAL_LEVELS[source]) & (
                number_of(state.items, item) < MAX_STOCK
            )
            useful |= jnp.where(usable, visible[TREE + source], 0)
        jobs.append(Job(True, useful, DO))
        action = first_to_do(jobs, START, state.facing, free)

        open_directions = jnp.stack([(single(START + step) & free != 0).any() for step in STEPS])
        liking = uniform(jax.random.key_data(key), len(STEPS)) + (
            np.arange(len(STEPS)) == state.facing
        )
        stroll = jnp.where(
            open_directions.any(), LEFT + jnp.argmax(jnp.where(open_directions, liking, -1)), NOOP
        )
        return jnp.where(action == NOOP, stroll, action).astype(jnp.int32), memory
