"""Terrain as bits: 32 x 32 cells in 32 words, so that growing, flooding and sight work on whole rows.

A set of cells is uint32 ``(32,)``: bit ``x`` of word ``y`` is cell (x, y), x to the right, y up. Cells of the outer
ring are rock in every terrain, so a shift that drops a bit at the edge never loses ground.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

SIDE = 32
"""Cells along each side."""
RANGE = 6
"""Range of the lidar in cells, Euclidean."""
WINDOW = 2 * RANGE + 1
SMOOTHINGS = 3
"""Steps of the cellular automaton."""

_RING = np.full(SIDE, 1 | 1 << (SIDE - 1), np.uint32)
_RING[[0, -1]] = 2**32 - 1


def count(cells: jax.Array) -> jax.Array:
    """Count the cells of a set, int32."""
    return lax.population_count(cells).astype(jnp.int32).sum()


def below(cells: jax.Array) -> jax.Array:
    """Return the set moved up by one row: each cell gets the one below it."""
    return jnp.concatenate([jnp.zeros(1, cells.dtype), cells[:-1]])


def above(cells: jax.Array) -> jax.Array:
    """Return the set moved down by one row."""
    return jnp.concatenate([cells[1:], jnp.zeros(1, cells.dtype)])


def grown(cells: jax.Array) -> jax.Array:
    """Return the set with all cells beside it that share a side."""
    return cells | cells << 1 | cells >> 1 | below(cells) | above(cells)


def flooded(seed: jax.Array, ground: jax.Array) -> jax.Array:
    """Return all ground connected with the seed by common sides; the seed is ground."""

    def spread(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        cells, _ = state
        wider = grown(grown(cells) & ground) & ground
        return wider, (wider != cells).any()

    return lax.while_loop(lambda state: state[1], spread, (seed, jnp.bool_(True)))[0]


def largest_region(ground: jax.Array) -> jax.Array:
    """Return the connected region with the most cells; of equal ones the one that begins lowest, then leftmost."""

    def next_region(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        rest, best = state
        row = jnp.argmax(rest != 0)
        first = jnp.where(jnp.arange(SIDE) == row, rest & (~rest + 1), 0)
        region = flooded(first, rest)
        return rest & ~region, jnp.where(count(region) > count(best), region, best)

    def undecided(state: tuple[jax.Array, jax.Array]) -> jax.Array:
        rest, best = state
        return count(rest) > count(best)

    return lax.while_loop(undecided, next_region, (ground, jnp.zeros_like(ground)))[1]


def majority(rock: jax.Array) -> jax.Array:
    """Make one step of the cellular automaton: a cell becomes rock if at least 5 of its 3 x 3 cells are rock.

    Source: Johnson, Yannakakis & Togelius 2010, Cellular automata for real-time generation of infinite cave levels.
    Full adders over whole rows add the nine bits of every cell.
    """
    ones, twos = _add(rock << 1, rock, rock >> 1)
    ones, carried = _add(below(ones), ones, above(ones))
    twos, fours = _add(below(twos), twos, above(twos))
    # ones + 2 (carried + twos) + 4 fours >= 5
    return fours & (carried | twos | ones) | carried & twos & ones


def _add(a: jax.Array, b: jax.Array, c: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Add three bits; return ones and twos."""
    return a ^ b ^ c, a & b | c & (a ^ b)


def box_counts(cells: jax.Array, radius: int) -> list[jax.Array]:
    """Count the cells of a set in the square about each cell, as planes of bits: ones, twos, fours and so on."""
    row, most = [cells], 1
    for i in range(1, radius + 1):
        for moved in (cells << i, cells >> i):
            most += 1
            row = _plus(row, [moved], most)
    total, up, down = row, row, row
    for i in range(radius):
        up, down = [below(plane) for plane in up], [above(plane) for plane in down]
        total = _plus(total, _plus(up, down, 2 * most), (2 * i + 3) * most)
    return total


def at_least(planes: list[jax.Array], number: Any) -> jax.Array:
    """Return the cells whose number, in planes of bits, is at least ``number``, an integer that may be traced."""
    less, equal = jnp.zeros_like(planes[0]), ~jnp.zeros_like(planes[0])
    for place in reversed(range(len(planes))):
        digit = number >> place & 1 == 1
        less = jnp.where(digit, less | equal & ~planes[place], less)
        equal = equal & jnp.where(digit, planes[place], ~planes[place])
    return jnp.where(number < 2 ** len(planes), ~less, 0)


def _plus(a: list[jax.Array], b: list[jax.Array], most: int) -> list[jax.Array]:
    """Add numbers in planes of bits; no sum exceeds ``most``."""
    carry, total = jnp.zeros_like(a[0]), []
    for place in range(most.bit_length()):
        one, other = (n[place] if place < len(n) else jnp.zeros_like(carry) for n in (a, b))
        digit, carry = _add(one, other, carry)
        total.append(digit)
    return total


def random_ground(bits: jax.Array, density: Any, odd: Any) -> jax.Array:
    """Draw connected ground of caves, never empty.

    Args:
        bits: random, uint32 ``(4, 32)``.
        density: probability that a cell is rock before smoothing, in sixteenths, an integer from 1 to 15.
        odd: bool, whether the number of cells is odd. Terrains with even and with odd numbers are never equal, so this
            keeps training and test terrains apart.

    Returns:
        The ground, uint32 ``(32,)``: the largest region after smoothing, with one more cell beside it if the parity
        requires it. Everything else is rock.
    """
    # Four bits a cell are a number from 0 to 15, the first the highest; a cell is rock if it is below the density.
    less, equal = jnp.zeros_like(bits[0]), ~jnp.zeros_like(bits[0])
    for place, plane in enumerate(bits):
        digit = density >> (3 - place) & 1 == 1
        less = jnp.where(digit, less | equal & ~plane, less)
        equal = equal & jnp.where(digit, plane, ~plane)
    rock = less | _RING
    for _ in range(SMOOTHINGS):
        rock = majority(rock) | _RING
    # If all cells were rock by chance, the ground would be the middle cell.
    middle = jnp.where(jnp.arange(SIDE) == SIDE // 2, jnp.uint32(1 << SIDE // 2), 0)
    ground = largest_region(~rock | middle)
    beside = grown(ground) & ~ground & ~_RING
    row = jnp.argmax(beside != 0)
    one_more = jnp.where(jnp.arange(SIDE) == row, beside & (~beside + 1), 0)
    return jnp.where((count(ground) & 1 == 1) == odd, ground, ground | one_more)


def nth(cells: jax.Array, n: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return column and row of the n-th cell of a set, from 0, row by row from below, each from the left."""
    sizes = lax.population_count(cells).astype(jnp.int32)
    ends = jnp.cumsum(sizes)
    row = (ends <= n).sum()
    within = n - (ends[row] - sizes[row])
    bits = (cells[row] >> jnp.arange(SIDE, dtype=jnp.uint32)) & 1
    return jnp.argmax(jnp.cumsum(bits.astype(jnp.int32)) > within).astype(jnp.int32), row.astype(jnp.int32)


def window(cells: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Return the cells about (x, y), uint32 ``(WINDOW,)`` of ``WINDOW`` bits; bit RANGE of word RANGE is (x, y)
    itself.
    """
    padding = jnp.zeros(RANGE, cells.dtype)
    rows = lax.dynamic_slice(jnp.concatenate([padding, cells, padding]), (y,), (WINDOW,))
    shift = (x - RANGE).astype(jnp.int32)
    moved = jnp.where(shift >= 0, rows >> jnp.maximum(shift, 0).astype(jnp.uint32),
                      rows << jnp.maximum(-shift, 0).astype(jnp.uint32))  # fmt: skip
    return moved & np.uint32(2**WINDOW - 1)


def from_window(seen: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Return the cells of a window about (x, y) as a set: the inverse of :func:`window`; cells outside are dropped."""
    shift = (x - RANGE).astype(jnp.int32)
    moved = jnp.where(shift >= 0, seen << jnp.maximum(shift, 0).astype(jnp.uint32),
                      seen >> jnp.maximum(-shift, 0).astype(jnp.uint32))  # fmt: skip
    padding = jnp.zeros(SIDE, seen.dtype)
    return lax.dynamic_slice(jnp.concatenate([padding, moved, padding]), (SIDE + RANGE - y,), (SIDE,))


def line(x: int, y: int) -> list[tuple[int, int]]:
    """List the cells strictly between (0, 0) and (x, y): one a column along the longer axis, the nearest to the line.

    Bresenham 1965, doi:10.1147/sj.41.0025; a tie goes away from the axis.
    """
    length = max(abs(x), abs(y))

    def nearest(product: int) -> int:
        magnitude = (2 * abs(product) + length) // (2 * length)
        return magnitude if product >= 0 else -magnitude

    return [(nearest(x * i), nearest(y * i)) for i in range(1, length)]


def _sight_lines() -> tuple[np.ndarray, np.ndarray]:
    """Return the cells that hide each cell of the window, two rows of the window a word, and whether it is in range."""
    between = np.zeros((WINDOW, WINDOW, (WINDOW + 1) // 2), np.uint32)
    in_range = np.zeros((WINDOW, WINDOW), bool)
    for y in range(-RANGE, RANGE + 1):
        for x in range(-RANGE, RANGE + 1):
            in_range[y + RANGE, x + RANGE] = x * x + y * y <= RANGE * RANGE
            for column, row in line(x, y):
                word, half = divmod(row + RANGE, 2)
                between[y + RANGE, x + RANGE, word] |= np.uint32(1 << column + RANGE + 16 * half)
    return between, in_range


_BETWEEN, _IN_RANGE = _sight_lines()


def seen_from(ground: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Return the cells, ground and rock, that the lidar at (x, y) sees: in range, with no rock on the line between."""
    rock = window(~ground, x, y)
    rock = jnp.concatenate([rock, jnp.zeros(1, rock.dtype)])
    rock = rock[0::2] | rock[1::2] << 16
    visible = ((rock & _BETWEEN) == 0).all(-1) & _IN_RANGE
    rows = (visible.astype(jnp.uint32) << np.arange(WINDOW, dtype=np.uint32)).sum(1, dtype=jnp.uint32)
    return from_window(rows, x, y)
