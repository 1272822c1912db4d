"""The view of the player in Survival as words of bits: nine by seven cells, and the one ahead."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.numerics.bit_exact import computed_once

from .actions import RIPE
from .rules import MATERIALS, ROLES, Rules
from .state import KINDS, NOWHERE, State, sight
from .world import PLANES

ROWS, COLUMNS = 7, 9
"""Cells that are shown."""
LOOKS = (*ROLES, "arrow", "sapling", "ripe plant")
_FLIPS = np.array(
    [
        [0 if material >> plane & 1 else 2**32 - 1 for plane in range(PLANES)]
        for material in range(len(MATERIALS))
    ],
    np.uint32,
)
"""Bits to flip in each plane of the world, so that all four are set where each material is."""
_WITHIN = np.array([
    sum(1 << COLUMNS * i + j for i in range(ROWS) for j in range(COLUMNS)
        if max(abs(i - ROWS // 2), abs(j - COLUMNS // 2)) <= steps)
    for steps in range(COLUMNS // 2 + 1)
])  # fmt: skip
_SIGHT = np.stack([_WITHIN & 0xFFFFFFFF, _WITHIN >> 32], 1).astype(np.uint32)
"""Cells of the view that are seen at each sight, in two words: bit ``9 * row + column``."""
_AHEAD = np.array([30, 32, 22, 40], np.uint32)
"""Bit of the cell ahead for each direction."""


def view_words(state: State, rules: Rules) -> jax.Array:
    """Return the view, uint32 ``(2 * 19,)``: two words for each material, then for each look.

    Bit ``9 * row + column`` is a cell, the last bit of the second word the cell ahead.
    """
    halves = jnp.stack(computed_once(planes)(state.world, state.cell))
    materials = reduce(and_, (halves[:, i] ^ _FLIPS[:, i : i + 1] for i in range(PLANES)))
    looks = [word[None] for word in computed_once(look_words)(state, rules)]
    visible = computed_once(jnp.concatenate)([materials.reshape(-1), *looks]).reshape(-1, 2)
    visible &= jnp.asarray(_SIGHT)[sight(state)]
    ahead = jnp.asarray(_AHEAD)[state.facing]
    faced = jnp.where(ahead < 32, visible[:, 0], visible[:, 1]) >> (ahead & 31) & 1
    return jnp.stack([visible[:, 0], visible[:, 1] | faced << 31], 1).reshape(-1)


def planes(world: jax.Array, cell: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the two words of the view for each plane of the world, uint32 ``(4,)`` each."""
    first = (cell >> 5) - ROWS // 2
    shift = (cell & 31) - COLUMNS // 2
    left = jnp.maximum(shift, 0).astype(jnp.uint32)
    right = jnp.maximum(-shift, 0).astype(jnp.uint32)

    def visible_row(line: jax.Array) -> jax.Array:
        """Return the nine bits of a row in each plane, empty outside the world."""
        inside = (line >= 0) & (line < 32)
        return jnp.where(inside, world[jnp.clip(line, 0, 31)] >> left << right & 2**COLUMNS - 1, 0)

    rows = [visible_row(first + i) for i in range(ROWS)]
    low = rows[0] | rows[1] << 9 | rows[2] << 18 | rows[3] << 27
    return low, rows[3] >> 5 | rows[4] << 4 | rows[5] << 13 | rows[6] << 22


def look_words(state: State, rules: Rules) -> tuple[jax.Array, ...]:
    """Return the two words of the view for each look."""
    row = (state.cell >> 5) - ROWS // 2
    column = (state.cell & 31) - COLUMNS // 2

    def words(cells: tuple[Any, ...]) -> tuple[jax.Array, jax.Array]:
        """Return the two words of some cells."""
        low = []
        high = []
        for cell in cells:
            i = (cell >> 5) - row
            j = (cell & 31) - column
            inside = (cell != NOWHERE) & (i >= 0) & (i < ROWS) & (j >= 0) & (j < COLUMNS)
            # Nothing is left of a shift by more than the width of a word; negative numbers become
            # such shifts.
            bit = COLUMNS * i + j
            low.append(inside.astype(jnp.uint32) << bit.astype(jnp.uint32))
            high.append(inside.astype(jnp.uint32) << (bit - 32).astype(jnp.uint32))
        return reduce(or_, low), reduce(or_, high)

    def role_words(state: State) -> tuple[Any, ...]:
        """Return the two words for the creatures of each role."""
        return tuple(
            words(
                tuple(
                    beast for beast, kind in zip(state.beasts, KINDS, strict=True) if kind == role
                )
            )
            for role in range(len(ROLES))
        )

    words_by_role = computed_once(role_words)(state)

    def word_of_look(look: int, half: int) -> jax.Array:
        """Return a word of the creatures that have a look, whatever their role."""
        return reduce(
            or_,
            (
                jnp.where(rules.looks >> 2 * role & 3 == look, words_by_role[role][half], 0)
                for role in range(3)
            ),
        )

    def plant_words(ripe: bool) -> tuple[jax.Array, jax.Array]:
        """Return the two words of the plants that are ripe, or of those that are not."""
        plants = zip(state.plants, state.ages, strict=True)
        return words(
            tuple(jnp.where((age >= RIPE) == ripe, plant, NOWHERE) for plant, age in plants)
        )

    looks = [(word_of_look(look, 0), word_of_look(look, 1)) for look in range(len(ROLES))]
    plants = [plant_words(ripe=False), plant_words(ripe=True)]
    return tuple(word for pair in (*looks, words(state.arrows), *plants) for word in pair)
