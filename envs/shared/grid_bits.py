"""Sets of cells of a 32 x 32 grid as bits, so that growing and flooding work on whole rows.

A set of cells is uint32 ``(32,)``: bit ``x`` of word ``y`` is cell (x, y). Shifts drop bits at the
edge.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

SIDE = 32
"""Cells along each side."""


def count(cells: jax.Array) -> jax.Array:
    """Count the cells of a set, int32."""
    return lax.population_count(cells).astype(jnp.int32).sum()


def shift_up(cells: jax.Array) -> jax.Array:
    """Return the set moved up by one row: each cell gets the one below it."""
    return jnp.concatenate([jnp.zeros(1, cells.dtype), cells[:-1]])


def shift_down(cells: jax.Array) -> jax.Array:
    """Return the set moved down by one row."""
    return jnp.concatenate([cells[1:], jnp.zeros(1, cells.dtype)])


def grow(cells: jax.Array) -> jax.Array:
    """Return the set with all cells beside it that share a side."""
    return cells | cells << 1 | cells >> 1 | shift_up(cells) | shift_down(cells)


def flood_from(seed: jax.Array, ground: jax.Array) -> jax.Array:
    """Return all ground connected with the seed by common sides; the seed is ground."""

    def spread(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        cells, _ = state
        wider = grow(grow(cells) & ground) & ground
        return wider, (wider != cells).any()

    return lax.while_loop(lambda state: state[1], spread, (seed, jnp.bool_(True)))[0]


def majority(rock: jax.Array) -> jax.Array:
    """Make one step of the cellular automaton.

    A cell becomes rock if at least 5 of its 3 x 3 cells are rock.

    Source: Johnson, Yannakakis & Togelius 2010, Cellular automata for real-time generation of
    infinite cave levels. Full adders over whole rows add the nine bits of every cell.
    """
    single, twos = add_bits(rock << 1, rock, rock >> 1)
    ones_place, carried = add_bits(shift_up(single), single, shift_down(single))
    twos, fours = add_bits(shift_up(twos), twos, shift_down(twos))
    # ones_place + 2 (carried + twos) + 4 fours >= 5
    return fours & (carried | twos | ones_place) | carried & twos & ones_place


def add_bits(a: jax.Array, b: jax.Array, c: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Add three bits; return ones and twos."""
    return a ^ b ^ c, a & b | c & (a ^ b)


def nth_cell(cells: jax.Array, n: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return column and row of the n-th cell of a set, counted from 0.

    Cells are counted row by row from below, each row from the left.
    """
    sizes = lax.population_count(cells).astype(jnp.int32)
    ends = jnp.cumsum(sizes)
    row = (ends <= n).sum()
    within = n - (ends[row] - sizes[row])
    bits = (cells[row] >> jnp.arange(SIDE, dtype=jnp.uint32)) & 1
    return jnp.argmax(jnp.cumsum(bits.astype(jnp.int32)) > within).astype(jnp.int32), row.astype(
        jnp.int32
    )
