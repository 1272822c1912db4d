"""Creatures of Survival, which come and go near the player.

Cows wander, zombies chase, and skeletons shoot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Flag, Int, UInt32
from rlbench_suite.numerics.bit_exact import computed_once

from .actions import bits_of
from .rules import GRASS, LAVA, PATH, SAND, WATER
from .state import (
    BRIGHT,
    COW,
    KINDS,
    NOWHERE,
    SHOOTERS,
    SKELETON,
    ZOMBIE,
    State,
    any_of,
    distance,
    is_among,
    light,
)
from .world import material_at

BITE = 2
"""Health that a zombie takes."""
NIGHTMARE = 7
"""Health that a zombie takes from a sleeper."""
SHOT = 2
"""Health that an arrow takes."""
BITE_PAUSE = 5
"""Steps that a zombie waits after a bite."""
RELOAD = 4
"""Steps that a skeleton waits after a shot."""
CHASE_DISTANCE = 8
"""Distance within which creatures come towards the player."""
SHOT_DISTANCE = 5
"""Distance within which skeletons shoot."""
MAX_DISTANCE = 12
"""Distance from the player beyond which creatures vanish."""
WALKS = (
    np.uint32(bits_of(GRASS, SAND, PATH)),
    np.uint32(bits_of(GRASS, SAND, PATH)),
    np.uint32(bits_of(PATH)),
)
"""Materials on which a cow, a zombie and a skeleton walk."""
FLIES = np.uint32(bits_of(GRASS, SAND, PATH, WATER, LAVA))
"""Materials over which arrows fly."""
NEW_HEALTH = (3, 5, 3)
"""Health of a new cow, zombie and skeleton."""
HOMES = (GRASS, GRASS, PATH)
"""Material on which cows, zombies and skeletons appear."""
MIN_NEW_DISTANCE = (4, 6, 4)
"""Least distance from the player at which they appear, in steps."""
CHANCES = (64, 6, 128)
"""Number of trials in 256 in which they appear by day; zombies appear more often at night."""
NIGHTLY = 15
"""Further trials in 256 for each eighth of light that is missing."""


class Dice(NamedTuple):
    """Eight random bits of a creature, cut into four numbers."""

    side: Int
    """A direction."""
    three_bits: Int
    two_bits: Int
    one_bit: Int


def roll_dice(words: jax.Array, creature: int) -> Dice:
    """Return the numbers of a creature."""
    roll = (words[creature // 4] >> 8 * (creature % 4) & 255).astype(jnp.int32)
    return Dice(roll & 3, roll >> 2 & 7, roll >> 5 & 3, roll >> 7)


class Wish(NamedTuple):
    """A step that a creature or an arrow wants to make."""

    target: Int
    """Cell."""
    over: UInt32
    """Materials on which it may be made, uint32."""
    shoots: Flag
    """bool: the step is that of a new arrow."""


def toward(cell: Any, target: Any) -> tuple[Any, Any]:
    """Return two steps from a cell towards another.

    The first goes along the axis of the larger distance, the second along the other one.
    """
    down = (target >> 5) - (cell >> 5)
    right = (target & 31) - (cell & 31)
    vertical = abs(down) > abs(right)
    across = jnp.sign(right)
    along = 32 * jnp.sign(down)
    return jnp.where(vertical, along, across), jnp.where(vertical, across, along)


def creature_wish(state: State, creature: int, words: jax.Array) -> Wish:
    """Return the wish of a creature: cows wander, zombies chase, skeletons also shoot."""
    cell = state.beasts[creature]
    kind = KINDS[creature]
    side, three_bits, two_bits, one_bit = roll_dice(words, creature)
    anywhere = (2 * (side & 1) - 1) * jnp.where(side & 2 != 0, 32, 1)
    away = distance(cell, state.cell)
    longer, shorter = toward(cell, state.cell)
    over: Any = WALKS[kind]
    shoots = jnp.bool_(False)
    if kind == COW:
        step = jnp.where(one_bit == 0, 0, anywhere)
    elif kind == ZOMBIE:
        step = jnp.where(
            (away <= CHASE_DISTANCE) & (three_bits != 0),
            jnp.where(two_bits != 0, longer, shorter),
            anywhere,
        )
    else:
        near = (away <= CHASE_DISTANCE) & (two_bits == 0)
        arrow_index = creature - SHOOTERS
        step = jnp.where(
            near,
            jnp.where(three_bits & 1 == 1, longer, shorter),
            jnp.where(three_bits < 6, 0, anywhere),
        )
        shoots = (away <= SHOT_DISTANCE) & (one_bit == 1)
        loaded = (state.waits[creature] <= 1) & (state.arrows[arrow_index] == NOWHERE)
        step = jnp.where(shoots, jnp.where(loaded, longer, 0), step)
        over = jnp.where(shoots, FLIES, over)
    return Wish(cell + step, over, shoots)


def move(state: State, words: jax.Array) -> State:
    """Let all creatures and arrows act at once, then plants.

    All see where the others were. Of two that want the same free cell, the first in the list gets
    it.

    Args:
        state: after the player has acted.
        words: random, uint32 ``(2,)``: eight bits for each creature.
    """

    def all_wishes(state: State, words: jax.Array) -> tuple[Wish, ...]:
        beasts = [creature_wish(state, creature, words) for creature in range(len(KINDS))]
        arrows = [
            Wish(arrow + flight, FLIES, jnp.bool_(False))
            for arrow, flight in zip(state.arrows, state.flights, strict=True)
        ]
        # What is not there wishes for nothing, where the player is: that part of the world has just
        # been read.
        return tuple(
            Wish(
                jnp.where(cell == NOWHERE, state.cell, wish.target),
                jnp.where(cell == NOWHERE, 0, wish.over),
                wish.shoots,
            )
            for cell, wish in zip((*state.beasts, *state.arrows), (*beasts, *arrows), strict=True)
        )

    def free_targets(state: State, wishes: tuple[Wish, ...]) -> tuple[Any, ...]:
        """Return whether the cell of each wish is free."""
        return tuple(
            (wish.over >> material_at(state.world, wish.target).astype(jnp.uint32) & 1 == 1)
            & ~is_among(wish.target, (*state.occupied_cells, state.cell))
            for wish in wishes
        )

    def first_claims(wishes: tuple[Wish, ...], free: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return whether each wish is the first for a free cell."""
        first = []
        for i, wish in enumerate(wishes):
            earlier = [free[j] & (wishes[j].target == wish.target) for j in range(i)]
            first.append(free[i] & ~any_of([jnp.bool_(False), *earlier]))
        return tuple(first)

    wishes = computed_once(all_wishes)(state, words)
    goes = computed_once(first_claims)(wishes, computed_once(free_targets)(state, wishes))
    return computed_once(apply_wishes)(state._replace(world=None), wishes, goes)._replace(
        world=state.world
    )


def apply_wishes(state: State, wishes: tuple[Wish, ...], goes: tuple[Any, ...]) -> State:
    """Return the state after the wishes that are granted, but for the world."""
    beasts = []
    waits = []
    arrows = []
    flights = []
    hurt = jnp.int32(0)
    for arrow_index in range(len(state.arrows)):
        shooter = wishes[SHOOTERS + arrow_index]
        arrow = wishes[len(KINDS) + arrow_index]
        fires = shooter.shoots & goes[SHOOTERS + arrow_index]
        arrows.append(
            jnp.where(
                fires,
                shooter.target,
                jnp.where(goes[len(KINDS) + arrow_index], arrow.target, NOWHERE),
            )
        )
        flights.append(
            jnp.where(
                fires,
                shooter.target - state.beasts[SHOOTERS + arrow_index],
                state.flights[arrow_index],
            )
        )
        hurt += SHOT * ((state.arrows[arrow_index] != NOWHERE) & (arrow.target == state.cell))
    for creature, kind in enumerate(KINDS):
        beast = state.beasts[creature]
        wait = state.waits[creature]
        wish = wishes[creature]
        beast = jnp.where(goes[creature] & ~wish.shoots, wish.target, beast)
        if kind == ZOMBIE:
            close = (beast != NOWHERE) & (distance(beast, state.cell) <= 1)
            hurt += jnp.where(
                close & (wait == 0), jnp.where(state.sleeping == 1, NIGHTMARE, BITE), 0
            )
            wait = jnp.where(close, jnp.where(wait == 0, BITE_PAUSE, wait - 1), wait)
        elif kind == SKELETON:
            wait = jnp.where(wish.shoots & goes[creature], RELOAD, jnp.maximum(wait - 1, 0))
        beasts.append(beast)
        waits.append(wait)
    eaten = [any_of(distance(beast, plant) == 1 for beast in beasts) for plant in state.plants]
    return state._replace(
        health=jnp.maximum(state.health - hurt, 0),
        beasts=tuple(beasts),
        waits=tuple(waits),
        arrows=tuple(arrows),
        flights=tuple(flights),
        plants=tuple(
            jnp.where(gone, NOWHERE, plant) for gone, plant in zip(eaten, state.plants, strict=True)
        ),
        ages=tuple(age + 1 for age in state.ages),
    )


def come_and_go(state: State, word: jax.Array) -> State:
    """Let creatures vanish that are far away, and perhaps let one appear in a random cell.

    Zombies also vanish in daylight.

    Args:
        state: after all have moved.
        word: random bits, uint32.
    """
    draw = [
        (word >> shift & (2**width - 1)).astype(jnp.int32)
        for shift, width in ((0, 4), (4, 4), (8, 8), (16, 3), (19, 6))
    ]
    brightness = light(state.time)

    def stay(state: State, brightness: Any) -> tuple[Any, ...]:
        """Return the cells of the creatures that have not vanished."""
        distances = [distance(beast, state.cell) for beast in state.beasts]
        pales = (draw[4] == 0) & (brightness == BRIGHT)
        vanishing = [
            (gap > MAX_DISTANCE) | pales & (gap > 4) if kind == ZOMBIE else gap > MAX_DISTANCE
            for gap, kind in zip(distances, KINDS, strict=True)
        ]
        return tuple(
            jnp.where(goes, NOWHERE, beast)
            for goes, beast in zip(vanishing, state.beasts, strict=True)
        )

    def births(state: State, brightness: Any, beasts: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the cell of the draw, and whether each creature is born there."""
        row = (state.cell >> 5) + draw[0] - 8
        column = (state.cell & 31) + draw[1] - 8
        inside = (row > 0) & (row < 31) & (column > 0) & (column < 31)
        cell = jnp.where(inside, 32 * row + column, NOWHERE)
        free = inside & ~is_among(cell, (*beasts, *state.arrows, *state.plants))
        away = distance(cell, state.cell)
        material = material_at(state.world, cell)
        chances = [
            chance + (NIGHTLY * (BRIGHT - brightness) if kind == ZOMBIE else 0)
            for kind, chance in enumerate(CHANCES)
        ]
        fit = [
            free & (draw[2] < chance) & (material == home) & (away >= min_distance)
            for chance, home, min_distance in zip(chances, HOMES, MIN_NEW_DISTANCE, strict=True)
        ]
        return cell, tuple(
            fit[kind] & (draw[3] == creature) & (beasts[creature] == NOWHERE)
            for creature, kind in enumerate(KINDS)
        )

    beasts = stay(state, brightness)
    cell, born = computed_once(births)(state, brightness, beasts)
    return state._replace(
        beasts=tuple(jnp.where(new, cell, beast) for new, beast in zip(born, beasts, strict=True)),
        hearts=tuple(
            jnp.where(new, NEW_HEALTH[kind], heart)
            for new, heart, kind in zip(born, state.hearts, KINDS, strict=True)
        ),
        waits=tuple(jnp.where(new, 0, wait) for new, wait in zip(born, state.waits, strict=True)),
    )
