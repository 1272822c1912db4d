"""The state of Survival: the world, the player, creatures and plants; cells, distances, daylight.

All numbers are int32 but for sets of bits, which are uint32. Each creature, arrow and plant has
fixed entries in short tuples of scalars, because batches of scalars are faster than batches of
short arrays.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import jax.numpy as jnp

from rlbench_suite.core.arrays import Int, UInt32, UInt32Array

DAY = 300
"""Steps of a day."""
MIDNIGHT = 240
"""Step of a day at which it is darkest."""
BRIGHT = 8
"""Light of the day; it is 0 at midnight."""
COW, ZOMBIE, SKELETON = range(3)
KINDS = (COW, COW, ZOMBIE, ZOMBIE, ZOMBIE, SKELETON, SKELETON)
"""Role of each creature (index in ``ROLES``)."""
SHOOTERS = 5
"""Number of the first skeleton; each has an arrow."""
NOWHERE = 0
"""Cell of what is not there: a corner of the edge."""


class State(NamedTuple):
    """Everything that changes."""

    world: UInt32Array
    """Materials, uint32 ``(32, 4)``; see ``world.py``."""
    cell: Int
    """Cell of the player."""
    facing: Int
    """Index in ``DIRECTIONS``."""
    health: Int
    food: Int
    drink: Int
    energy: Int
    """Needs, from 0 to 9."""
    recovery: Int
    """Half steps towards the next change of health."""
    hunger: Int
    thirst: Int
    """Half steps since food and since drink fell."""
    fatigue: Int
    """Steps awake since energy fell, or, if negative, asleep since it rose."""
    sleeping: Int
    """1 while asleep."""
    items: UInt32
    """Numbers of items, packed; see ``rules.py``."""
    tools: UInt32
    """Set of tools."""
    unlocked: UInt32
    """Set of achievements."""
    time: Int
    """Steps so far."""
    beasts: tuple[Any, ...]
    """Cells of the seven creatures."""
    hearts: tuple[Any, ...]
    """Health of each."""
    waits: tuple[Any, ...]
    """Steps until each can hurt again."""
    arrows: tuple[Any, ...]
    """Cells of the two skeletons' arrows."""
    flights: tuple[Any, ...]
    """Change of the cell of each at a step."""
    plants: tuple[Any, ...]
    """Cells of two plants."""
    ages: tuple[Any, ...]
    """Steps since each was placed or eaten."""

    @property
    def occupied_cells(self) -> tuple[Any, ...]:
        """Cells of creatures, arrows and plants."""
        return (*self.beasts, *self.arrows, *self.plants)


def first_state(world: Any, start: int) -> State:
    """Return the state at the start of an episode.

    The player is rested and fed, has nothing, and nobody is near.
    """
    zero = jnp.int32(0)
    full = jnp.int32(9)
    nothing = jnp.uint32(0)
    return State(
        world=world, cell=jnp.int32(start), facing=jnp.int32(3), health=full, food=full, drink=full,
        energy=full, recovery=zero, hunger=zero, thirst=zero, fatigue=zero, sleeping=zero,
        items=nothing, tools=nothing, unlocked=nothing, time=zero, beasts=(zero,) * 7,
        hearts=(zero,) * 7, waits=(zero,) * 7, arrows=(zero,) * 2, flights=(zero,) * 2,
        plants=(zero,) * 2, ages=(zero,) * 2,
    )  # fmt: skip


def light(time: Any) -> Any:
    """Return the light at a step, from 0 at midnight to 8 by day."""
    away = abs((time - MIDNIGHT + DAY // 2) % DAY - DAY // 2)
    return (away // 8).clip(max=BRIGHT)


def sight(state: State) -> Any:
    """Return how many cells away one can see: 4 by day, 1 at midnight, none asleep."""
    return (1 + (3 * light(state.time)) // BRIGHT) * (1 - state.sleeping)


def distance(cell: Any, target: Any) -> Any:
    """Return the number of steps between two cells."""
    return abs((cell >> 5) - (target >> 5)) + abs((cell & 31) - (target & 31))


def is_among(cell: Any, cells: tuple[Any, ...]) -> Any:
    """Return whether a cell is one of some cells."""
    return any_of(cell == member for member in cells)


def any_of(flags: Any) -> Any:
    """Return whether one of some flags is set."""
    return reduce(or_, flags)
