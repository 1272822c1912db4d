"""Creatures of Survival: cows wander, zombies chase, skeletons shoot; they come and go near the player."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.bit_exact import computed_once

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
    among,
    any_of,
    distance,
    light,
)
from .world import material_at

BITE, NIGHTMARE, SHOT = 2, 7, 2
"""Health that a zombie takes, also from a sleeper, and that an arrow takes."""
REST, RELOAD = 5, 4
"""Steps that a zombie waits after a bite, and a skeleton after a shot."""
SEEN, RANGE = 8, 5
"""Distance from which creatures come towards the player, and from which skeletons shoot."""
TOO_FAR = 12
"""Distance from the player beyond which creatures vanish."""
WALKS = np.uint32(bits_of(GRASS, SAND, PATH)), np.uint32(bits_of(GRASS, SAND, PATH)), np.uint32(bits_of(PATH))
"""Materials on which a cow, a zombie and a skeleton walk."""
FLIES = np.uint32(bits_of(GRASS, SAND, PATH, WATER, LAVA))
"""Materials over which arrows fly."""
BORN = 3, 5, 3
"""Health of a new creature."""
HOMES, BORN_AWAY, CHANCES = (GRASS, GRASS, PATH), (4, 6, 4), (64, 6, 128)
"""Material and least distance at which creatures appear, and how often in 256 trials by day; zombies more at night."""
NIGHTLY = 15
"""Further trials in 256 for each eighth of light that is missing."""


class Dice(NamedTuple):
    """Eight random bits of a creature, cut into four numbers."""

    side: Any
    three: Any
    two: Any
    one: Any


def dice(words: jax.Array, creature: int) -> Dice:
    """Return the numbers of a creature."""
    roll = (words[creature // 4] >> 8 * (creature % 4) & 255).astype(jnp.int32)
    return Dice(roll & 3, roll >> 2 & 7, roll >> 5 & 3, roll >> 7)


class Wish(NamedTuple):
    """A step that a creature or an arrow wants to make."""

    target: Any
    """Cell."""
    over: Any
    """Materials on which it may be made, uint32."""
    shoots: Any
    """bool: it is that of a new arrow"""


def toward(cell: Any, target: Any) -> tuple[Any, Any]:
    """Return the steps from a cell towards another: along the longer way, and along the shorter."""
    down, right = (target >> 5) - (cell >> 5), (target & 31) - (cell & 31)
    vertical, across, along = abs(down) > abs(right), jnp.sign(right), 32 * jnp.sign(down)
    return jnp.where(vertical, along, across), jnp.where(vertical, across, along)


def wish(state: State, creature: int, words: jax.Array) -> Wish:
    """Return the wish of a creature: cows wander, zombies chase, skeletons also shoot."""
    cell, kind, (side, three, two, one) = state.beasts[creature], KINDS[creature], dice(words, creature)
    anywhere = (2 * (side & 1) - 1) * jnp.where(side & 2 != 0, 32, 1)
    away, (longer, shorter) = distance(cell, state.cell), toward(cell, state.cell)
    over: Any = WALKS[kind]
    shoots = jnp.bool_(False)
    if kind == COW:
        step = jnp.where(one == 0, 0, anywhere)
    elif kind == ZOMBIE:
        step = jnp.where((away <= SEEN) & (three != 0), jnp.where(two != 0, longer, shorter), anywhere)
    else:
        near, own = (away <= SEEN) & (two == 0), creature - SHOOTERS
        step = jnp.where(near, jnp.where(three & 1 == 1, longer, shorter), jnp.where(three < 6, 0, anywhere))
        shoots = (away <= RANGE) & (one == 1)
        loaded = (state.waits[creature] <= 1) & (state.arrows[own] == NOWHERE)
        step = jnp.where(shoots, jnp.where(loaded, longer, 0), step)
        over = jnp.where(shoots, FLIES, over)
    return Wish(cell + step, over, shoots)


def move(state: State, words: jax.Array) -> State:
    """Let all creatures and arrows act at once, then plants.

    All see where the others were. Of two that want the same free cell, the first in the list gets it.

    Args:
        state: after the player has acted.
        words: random, uint32 ``(2,)``: eight bits for each creature.
    """

    def wishes(state: State, words: jax.Array) -> tuple[Wish, ...]:
        beasts = [wish(state, creature, words) for creature in range(len(KINDS))]
        arrows = [
            Wish(arrow + flight, FLIES, jnp.bool_(False))
            for arrow, flight in zip(state.arrows, state.flights, strict=True)
        ]
        # What is not there wishes for nothing, where the player is: that part of the world has just been read.
        return tuple(
            Wish(
                jnp.where(cell == NOWHERE, state.cell, one.target), jnp.where(cell == NOWHERE, 0, one.over), one.shoots
            )
            for cell, one in zip((*state.beasts, *state.arrows), (*beasts, *arrows), strict=True)
        )

    def free(state: State, wishes: tuple[Wish, ...]) -> tuple[Any, ...]:
        """Return whether the cell of each wish is free."""
        return tuple(
            (one.over >> material_at(state.world, one.target).astype(jnp.uint32) & 1 == 1)
            & ~among(one.target, (*state.things, state.cell))
            for one in wishes
        )

    def first(wishes: tuple[Wish, ...], free: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return whether each wish is the first for a free cell."""
        return tuple(
            free[i] & ~any_of([jnp.bool_(False), *(free[j] & (wishes[j].target == one.target) for j in range(i))])
            for i, one in enumerate(wishes)
        )

    wanted = computed_once(wishes)(state, words)
    goes = computed_once(first)(wanted, computed_once(free)(state, wanted))
    return computed_once(moved)(state._replace(world=None), wanted, goes)._replace(world=state.world)


def moved(state: State, wishes: tuple[Wish, ...], goes: tuple[Any, ...]) -> State:
    """Return the state after the wishes that are granted, but for the world."""
    beasts, waits, arrows, flights, hurt = [], [], [], [], jnp.int32(0)
    for own in range(len(state.arrows)):
        shooter, arrow = wishes[SHOOTERS + own], wishes[len(KINDS) + own]
        fires = shooter.shoots & goes[SHOOTERS + own]
        arrows.append(jnp.where(fires, shooter.target, jnp.where(goes[len(KINDS) + own], arrow.target, NOWHERE)))
        flights.append(jnp.where(fires, shooter.target - state.beasts[SHOOTERS + own], state.flights[own]))
        hurt += SHOT * ((state.arrows[own] != NOWHERE) & (arrow.target == state.cell))
    for creature, kind in enumerate(KINDS):
        beast, wait, one = state.beasts[creature], state.waits[creature], wishes[creature]
        beast = jnp.where(goes[creature] & ~one.shoots, one.target, beast)
        if kind == ZOMBIE:
            close = (beast != NOWHERE) & (distance(beast, state.cell) <= 1)
            hurt += jnp.where(close & (wait == 0), jnp.where(state.sleeping == 1, NIGHTMARE, BITE), 0)
            wait = jnp.where(close, jnp.where(wait == 0, REST, wait - 1), wait)
        elif kind == SKELETON:
            wait = jnp.where(one.shoots & goes[creature], RELOAD, jnp.maximum(wait - 1, 0))
        beasts.append(beast)
        waits.append(wait)
    eaten = [any_of(distance(beast, plant) == 1 for beast in beasts) for plant in state.plants]
    return state._replace(
        health=jnp.maximum(state.health - hurt, 0),
        beasts=tuple(beasts),
        waits=tuple(waits),
        arrows=tuple(arrows),
        flights=tuple(flights),
        plants=tuple(jnp.where(gone, NOWHERE, plant) for gone, plant in zip(eaten, state.plants, strict=True)),
        ages=tuple(age + 1 for age in state.ages),
    )


def come_and_go(state: State, word: jax.Array) -> State:
    """Let creatures that are far away vanish, zombies in daylight too, and perhaps one appear in a random cell.

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
        away = [distance(beast, state.cell) for beast in state.beasts]
        pales = (draw[4] == 0) & (brightness == BRIGHT)
        gone = [
            (far > TOO_FAR) | pales & (far > 4) if kind == ZOMBIE else far > TOO_FAR
            for far, kind in zip(away, KINDS, strict=True)
        ]
        return tuple(jnp.where(lost, NOWHERE, beast) for lost, beast in zip(gone, state.beasts, strict=True))

    def births(state: State, brightness: Any, beasts: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the cell of the draw, and whether each creature is born there."""
        row, column = (state.cell >> 5) + draw[0] - 8, (state.cell & 31) + draw[1] - 8
        inside = (row > 0) & (row < 31) & (column > 0) & (column < 31)
        cell = jnp.where(inside, 32 * row + column, NOWHERE)
        free = inside & ~among(cell, (*beasts, *state.arrows, *state.plants))
        away, material = distance(cell, state.cell), material_at(state.world, cell)
        chances = [
            chance + (NIGHTLY * (BRIGHT - brightness) if kind == ZOMBIE else 0) for kind, chance in enumerate(CHANCES)
        ]
        fit = [
            free & (draw[2] < chance) & (material == home) & (away >= least)
            for chance, home, least in zip(chances, HOMES, BORN_AWAY, strict=True)
        ]
        return cell, tuple(
            fit[kind] & (draw[3] == creature) & (beasts[creature] == NOWHERE) for creature, kind in enumerate(KINDS)
        )

    beasts = stay(state, brightness)
    cell, born = computed_once(births)(state, brightness, beasts)
    return state._replace(
        beasts=tuple(jnp.where(new, cell, beast) for new, beast in zip(born, beasts, strict=True)),
        hearts=tuple(
            jnp.where(new, BORN[kind], heart) for new, heart, kind in zip(born, state.hearts, KINDS, strict=True)
        ),
        waits=tuple(jnp.where(new, 0, wait) for new, wait in zip(born, state.waits, strict=True)),
    )
