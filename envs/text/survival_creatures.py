"""Creatures of Survival: cows wander, zombies chase, skeletons shoot; they come and go near the player."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.bit_exact import computed_once
from rlbench_suite.reductions import summed, union

from .survival_actions import bits_of
from .survival_rules import GRASS, LAVA, PATH, SAND, WATER
from .survival_state import (
    ARROWS,
    BRIGHT,
    COW,
    CREATURES,
    KINDS,
    NOWHERE,
    PLANTS,
    SHOOTERS,
    SKELETON,
    ZOMBIE,
    State,
    among,
    distance,
    light,
)
from .survival_world import material_at

BITE, NIGHTMARE, SHOT = 2, 7, 2
"""Health that a zombie takes, also from a sleeper, and that an arrow takes."""
REST, RELOAD = 5, 4
"""Steps that a zombie waits after a bite, and a skeleton after a shot."""
SEEN, RANGE = 8, 5
"""Distance from which creatures come towards the player, and from which skeletons shoot."""
TOO_FAR = 12
"""Distance from the player beyond which creatures vanish."""
WALKS = np.array([bits_of(GRASS, SAND, PATH), bits_of(GRASS, SAND, PATH), bits_of(PATH)], np.uint32)
"""Materials on which a cow, a zombie and a skeleton walk."""
FLIES = np.uint32(bits_of(GRASS, SAND, PATH, WATER, LAVA))
"""Materials over which arrows fly."""
BORN = np.array([3, 5, 3], np.int32)
"""Health of a new creature."""
HOMES, BORN_AWAY, CHANCES = np.array([GRASS, GRASS, PATH]), np.array([4, 6, 4]), np.array([64, 6, 128])
"""Material and least distance at which creatures appear, and how often in 256 trials by day; zombies more at night."""
NIGHTLY = 15
"""Further trials in 256 for each eighth of light that is missing."""


def toward(cells: jax.Array, target: Any) -> tuple[jax.Array, jax.Array]:
    """Return the steps from cells towards another: along the longer way, and along the shorter."""
    down, right = (target >> 5) - (cells >> 5), (target & 31) - (cells & 31)
    vertical, across, along = abs(down) > abs(right), jnp.sign(right), 32 * jnp.sign(down)
    return jnp.where(vertical, along, across), jnp.where(vertical, across, along)


def move(state: State, words: jax.Array) -> State:
    """Let all creatures and arrows act at once, then plants.

    All see where the others were. Of two that want the same free cell, the first in the list gets it.

    Args:
        state: after the player has acted.
        words: random, uint32 ``(2,)``: eight bits for each creature.
    """
    roll = (words[np.arange(7) // 4] >> 8 * (np.arange(7, dtype=np.uint32) % 4) & 255).astype(jnp.int32)
    side, three, two, one = roll & 3, roll >> 2 & 7, roll >> 5 & 3, roll >> 7
    beasts, arrows, plants = state.things[CREATURES], state.things[ARROWS], state.things[PLANTS]
    away, there = distance(beasts, state.cell), beasts != NOWHERE
    anywhere = (2 * (side & 1) - 1) * jnp.where(side & 2 != 0, 32, 1)
    longer, shorter = toward(beasts, state.cell)
    waits = jnp.where(KINDS == SKELETON, jnp.maximum(state.waits - 1, 0), state.waits)

    shoots = (KINDS == SKELETON) & (away <= RANGE) & (one == 1)
    loaded = (waits == 0) & jnp.concatenate([jnp.zeros(5, bool), arrows == NOWHERE])
    chases = (away <= SEEN) & jnp.where(KINDS == ZOMBIE, three != 0, (KINDS == SKELETON) & (two == 0))
    straight = jnp.where(KINDS == ZOMBIE, two != 0, three & 1 == 1)
    idle = jnp.where(KINDS == COW, one == 0, (KINDS == SKELETON) & (three < 6))
    step = jnp.where(chases, jnp.where(straight, longer, shorter), jnp.where(idle, 0, anywhere))
    step = jnp.where(shoots, jnp.where(loaded, longer, 0), step)

    movers = jnp.concatenate([beasts, arrows])
    target = movers + jnp.concatenate([jnp.where(there, step, 0), state.flights])
    over = jnp.concatenate([jnp.where(shoots, FLIES, WALKS[KINDS]), jnp.full(2, FLIES)])
    material = computed_once(jax.vmap(lambda cell: material_at(state.world, jnp.maximum(cell, 0))))(target)
    free = (movers != NOWHERE) & (over >> material.astype(jnp.uint32) & 1 == 1)
    free &= ~among(target, state.things) & (target != state.cell)
    earlier = np.tri(9, k=-1, dtype=bool).T
    free &= ~union((target[:, None] == target) & free[:, None] & earlier)

    fires = shoots & free[CREATURES]
    beasts = jnp.where(free[CREATURES] & ~shoots, target[CREATURES], beasts)
    strikes = (arrows != NOWHERE) & (target[ARROWS] == state.cell)
    arrows = jnp.where(free[ARROWS], target[ARROWS], NOWHERE)
    arrows = jnp.where(fires[SHOOTERS], target[SHOOTERS], arrows)
    close = (KINDS == ZOMBIE) & (beasts != NOWHERE) & (distance(beasts, state.cell) <= 1)
    bites = close & (waits == 0)
    hurt = summed(bites.astype(jnp.int32)) * jnp.where(state.sleeping == 1, NIGHTMARE, BITE)
    hurt += summed(strikes.astype(jnp.int32)) * SHOT
    waits = jnp.where(bites, REST, jnp.where(fires, RELOAD, waits - (close & (waits > 0))))
    eaten = union(distance(beasts[:, None], plants) == 1)
    return state._replace(
        needs=jnp.maximum(state.needs - hurt * (np.arange(4) == 0), 0),
        things=jnp.concatenate([beasts, arrows, jnp.where(eaten, NOWHERE, plants)]),
        waits=waits,
        flights=jnp.where(fires[SHOOTERS], step[SHOOTERS], state.flights),
        ages=state.ages + 1,
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
    beasts, brightness = state.things[CREATURES], light(state.time)
    away = distance(beasts, state.cell)
    fades = (draw[4] == 0) & (brightness == BRIGHT) & (KINDS == ZOMBIE) & (away > 4)
    beasts = jnp.where((away > TOO_FAR) | fades, NOWHERE, beasts)
    row, column = (state.cell >> 5) + draw[0] - 8, (state.cell & 31) + draw[1] - 8
    inside = (row > 0) & (row < 31) & (column > 0) & (column < 31)
    cell = jnp.where(inside, 32 * row + column, NOWHERE)
    free = inside & ~among(cell, jnp.concatenate([beasts, state.things[7:]]))
    chance = CHANCES[KINDS] + jnp.where(KINDS == ZOMBIE, NIGHTLY * (BRIGHT - brightness), 0)
    born = free & (np.arange(7) == draw[3]) & (beasts == NOWHERE) & (draw[2] < chance)
    born &= (material_at(state.world, cell) == HOMES[KINDS]) & (distance(cell, state.cell) >= BORN_AWAY[KINDS])
    return state._replace(
        things=jnp.concatenate([jnp.where(born, cell, beasts), state.things[7:]]),
        hearts=jnp.where(born, BORN[KINDS], state.hearts),
        waits=jnp.where(born, 0, state.waits),
    )
