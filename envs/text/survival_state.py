"""The state of Survival: the world, the player, creatures and plants; cells, distances and daylight.

All numbers are int32 but for sets of bits, which are uint32. Creatures, arrows and plants have fixed places in short
arrays, so that all of them act in one computation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.reductions import union

DAY, MIDNIGHT = 300, 240
"""Steps of a day, and the step of a day at which it is darkest."""
BRIGHT = 8
"""Light of the day; it is 0 at midnight."""
KINDS = np.array([0, 0, 1, 1, 1, 2, 2], np.int32)
"""Part that each creature plays (index in ``ROLES``): two cows, three zombies, two skeletons."""
COW, ZOMBIE, SKELETON = range(3)
CREATURES, ARROWS, PLANTS = slice(0, 7), slice(7, 9), slice(9, 11)
"""Creatures, the arrow of each skeleton, and plants, among all things."""
SHOOTERS = slice(5, 7)
NOWHERE = 0
"""Cell of what is not there: a corner of the edge."""
HEALTH, FOOD, WATERED, ENERGY = range(4)


class State(NamedTuple):
    """Everything that changes."""

    world: Any
    """Materials, uint32 ``(32, 4)``; see ``survival_world.py``."""
    cell: Any
    """Cell of the player."""
    facing: Any
    """Index in ``DIRECTIONS``."""
    needs: Any
    """Health, food, drink and energy, from 0 to 9, ``(4,)``."""
    counts: Any
    """``(4,)``: half steps towards the next change of health; half steps since food and since drink fell; steps awake
    since energy fell, or, if negative, asleep since it rose."""
    sleeping: Any
    """1 while asleep."""
    items: Any
    """Numbers of items, packed; see ``survival_rules.py``."""
    tools: Any
    """Set of tools."""
    unlocked: Any
    """Set of achievements."""
    time: Any
    """Steps so far."""
    things: Any
    """Cells of creatures, arrows and plants, ``(11,)``."""
    hearts: Any
    """Health of creatures, ``(7,)``."""
    waits: Any
    """Steps until creatures can hurt again, ``(7,)``."""
    flights: Any
    """Change of the cell of each arrow at a step, ``(2,)``."""
    ages: Any
    """Steps since each plant was placed or eaten, ``(2,)``."""


def first_state(world: Any, start: int) -> State:
    """Return the state at the start of an episode: rested and fed, with nothing, and nobody near."""
    zero, nothing = jnp.int32(0), jnp.uint32(0)
    return State(
        world=world, cell=jnp.int32(start), facing=jnp.int32(3), needs=jnp.full(4, 9, jnp.int32),
        counts=jnp.zeros(4, jnp.int32), sleeping=zero, items=nothing, tools=nothing, unlocked=nothing, time=zero,
        things=jnp.zeros(11, jnp.int32), hearts=jnp.zeros(7, jnp.int32), waits=jnp.zeros(7, jnp.int32),
        flights=jnp.zeros(2, jnp.int32), ages=jnp.zeros(2, jnp.int32),
    )  # fmt: skip


def light(time: Any) -> Any:
    """Return the light at a step, from 0 at midnight to 8 by day."""
    away = abs((time - MIDNIGHT + DAY // 2) % DAY - DAY // 2)
    return jnp.minimum(away // 8, BRIGHT)


def sight(state: State) -> Any:
    """Return how many cells away one can see: 4 by day, 1 at midnight, none asleep."""
    return (1 + (3 * light(state.time)) // BRIGHT) * (1 - state.sleeping)


def distance(one: Any, other: Any) -> Any:
    """Return the number of steps between two cells."""
    return abs((one >> 5) - (other >> 5)) + abs((one & 31) - (other & 31))


def among(cell: Any, cells: jax.Array) -> jax.Array:
    """Return whether a cell, or each of some, is one of some cells ``(n,)``."""
    return union(cells.reshape(-1, *(1,) * jnp.ndim(cell)) == cell)
