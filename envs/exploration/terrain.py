"""Terrain of caves, counts of cells and sight, on sets of cells of ``shared/grid_bits``, y up.

Cells of the outer ring are rock in every terrain, so a shift that drops a bit at the edge never
loses ground.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..shared.grid_bits import (
    SIDE,
    add_bits,
    count,
    flood_from,
    grow,
    majority,
    shift_down,
    shift_up,
)

RANGE = 6
"""Range of the lidar in cells, Euclidean."""
WINDOW = 2 * RANGE + 1
SMOOTHINGS = 3
"""Steps of the cellular automaton."""

_RING = np.full(SIDE, 1 | 1 << (SIDE - 1), np.uint32)
_RING[[0, -1]] = 2**32 - 1


def largest_region(
    ground: jax.Array, flood: Callable[[jax.Array, jax.Array], jax.Array] = flood_from
) -> jax.Array:
    """Return the connected region with the most cells.

    Of equal ones it is the one that begins lowest, then leftmost.

    Args:
        ground: the cells.
        flood: function that returns the region of a cell, given the cell and the ground that is
            left.
    """

    def next_region(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        ground_left, best = state
        row = jnp.argmax(ground_left != 0)
        first = jnp.where(jnp.arange(SIDE) == row, ground_left & (~ground_left + 1), 0)
        region = flood(first, ground_left)
        return ground_left & ~region, jnp.where(count(region) > count(best), region, best)

    def is_undecided(state: tuple[jax.Array, jax.Array]) -> jax.Array:
        ground_left, best = state
        return count(ground_left) > count(best)

    return lax.while_loop(is_undecided, next_region, (ground, jnp.zeros_like(ground)))[1]


def box_counts(cells: jax.Array, radius: int) -> list[jax.Array]:
    """Count the cells of a set in the square about each cell.

    The counts are planes of bits: ones, twos, fours and so on.
    """
    row, max_count = [cells], 1
    for i in range(1, radius + 1):
        for moved in (cells << i, cells >> i):
            max_count += 1
            row = _add_planes(row, [moved], max_count)
    total, up, down = row, row, row
    for i in range(radius):
        up, down = [shift_up(plane) for plane in up], [shift_down(plane) for plane in down]
        total = _add_planes(total, _add_planes(up, down, 2 * max_count), (2 * i + 3) * max_count)
    return total


def select_at_least(planes: list[jax.Array], number: Any) -> jax.Array:
    """Return the cells whose count is at least ``number``, an integer that may be traced.

    Counts are planes of bits, as :func:`box_counts` returns them.
    """
    less, equal = jnp.zeros_like(planes[0]), ~jnp.zeros_like(planes[0])
    for bit in reversed(range(len(planes))):
        digit = number >> bit & 1 == 1
        less = jnp.where(digit, less | equal & ~planes[bit], less)
        equal = equal & jnp.where(digit, planes[bit], ~planes[bit])
    return jnp.where(number < 2 ** len(planes), ~less, 0)


def _add_planes(a: list[jax.Array], b: list[jax.Array], max_sum: int) -> list[jax.Array]:
    """Add numbers in planes of bits; no sum exceeds ``max_sum``."""
    carry, total = jnp.zeros_like(a[0]), []
    for bit in range(max_sum.bit_length()):
        a_bit, b_bit = (n[bit] if bit < len(n) else jnp.zeros_like(carry) for n in (a, b))
        digit, carry = add_bits(a_bit, b_bit, carry)
        total.append(digit)
    return total


def random_ground(bits: jax.Array, density: Any, odd: Any) -> jax.Array:
    """Sample connected ground of caves, never empty.

    Args:
        bits: random, uint32 ``(4, 32)``.
        density: probability that a cell is rock before smoothing, in sixteenths, an integer from 1
            to 15.
        odd: bool, whether the number of cells is odd. Terrains with even and with odd numbers are
            never equal, so this keeps training and test terrains apart.

    Returns:
        The ground, uint32 ``(32,)``: the largest region after smoothing, with one more cell beside
        it if the parity requires it. Everything else is rock.
    """
    # Four bits a cell are a number from 0 to 15, the first the highest; a cell is rock if it is
    # below the density.
    less, equal = jnp.zeros_like(bits[0]), ~jnp.zeros_like(bits[0])
    for index, plane in enumerate(bits):
        digit = density >> (3 - index) & 1 == 1
        less = jnp.where(digit, less | equal & ~plane, less)
        equal = equal & jnp.where(digit, plane, ~plane)
    rock = less | _RING
    for _ in range(SMOOTHINGS):
        rock = majority(rock) | _RING
    # If all cells were rock by chance, the ground would be the middle cell.
    middle = jnp.where(jnp.arange(SIDE) == SIDE // 2, jnp.uint32(1 << SIDE // 2), 0)
    ground = largest_region(~rock | middle)
    beside = grow(ground) & ~ground & ~_RING
    row = jnp.argmax(beside != 0)
    one_more = jnp.where(jnp.arange(SIDE) == row, beside & (~beside + 1), 0)
    return jnp.where((count(ground) & 1 == 1) == odd, ground, ground | one_more)


def window(cells: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Return the cells about (x, y), uint32 ``(WINDOW,)`` of ``WINDOW`` bits.

    Bit RANGE of word RANGE is (x, y) itself.
    """
    padding = jnp.zeros(RANGE, cells.dtype)
    rows = lax.dynamic_slice(jnp.concatenate([padding, cells, padding]), (y,), (WINDOW,))
    shift = (x - RANGE).astype(jnp.int32)
    moved = jnp.where(shift >= 0, rows >> jnp.maximum(shift, 0).astype(jnp.uint32),
                      rows << jnp.maximum(-shift, 0).astype(jnp.uint32))  # fmt: skip
    return moved & np.uint32(2**WINDOW - 1)


def from_window(rows: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Return the cells of a window about (x, y) as a set; cells outside the map are dropped.

    It is the inverse of :func:`window`.
    """
    shift = (x - RANGE).astype(jnp.int32)
    moved = jnp.where(shift >= 0, rows << jnp.maximum(shift, 0).astype(jnp.uint32),
                      rows >> jnp.maximum(-shift, 0).astype(jnp.uint32))  # fmt: skip
    padding = jnp.zeros(SIDE, rows.dtype)
    return lax.dynamic_slice(
        jnp.concatenate([padding, moved, padding]), (SIDE + RANGE - y,), (SIDE,)
    )


def line(x: int, y: int) -> list[tuple[int, int]]:
    """List the cells strictly between (0, 0) and (x, y).

    There is one a column along the longer axis, the nearest to the line.

    Bresenham 1965, doi:10.1147/sj.41.0025; a tie goes away from the axis.
    """
    length = max(abs(x), abs(y))

    def nearest(product: int) -> int:
        magnitude = (2 * abs(product) + length) // (2 * length)
        return magnitude if product >= 0 else -magnitude

    return [(nearest(x * i), nearest(y * i)) for i in range(1, length)]


def _sight_lines() -> tuple[np.ndarray, np.ndarray]:
    """Return the cells that hide each cell of the window, and whether it is in range.

    The cells that hide one have two rows of the window a word.
    """
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


def visible_cells(ground: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Return the cells, ground and rock, that the lidar at (x, y) sees.

    They are in range, and no rock is on the line between.
    """
    rock = window(~ground, x, y)
    rock = jnp.concatenate([rock, jnp.zeros(1, rock.dtype)])
    rock = rock[0::2] | rock[1::2] << 16
    visible = ((rock & _BETWEEN) == 0).all(-1) & _IN_RANGE
    rows = (visible.astype(jnp.uint32) << np.arange(WINDOW, dtype=np.uint32)).sum(
        1, dtype=jnp.uint32
    )
    return from_window(rows, x, y)
