"""The lidar of MarsExplorer: rays from the rover's cell, on sets of cells of ``shared/grid_bits``.

There are 32 rays at equal angles, the first along x, each sampled at 200 points from the rover to 6
cells away. A sample lies in the cell whose centre is nearest.

A ray ends on the first cell of rock, or at the edge of the map. With ``bugs=True`` it ends as in
MarsExplorer:

* The distance from the rover to the centre of the nearest cell of rock on the ray is cut to whole
  cells, and the ray is half a cell longer, 6 cells at most. So rays at an angle run on past the
  corners of rock.
* Rays along an axis then end on the border of two cells, which Python rounds to the even one. So
  they show what is behind the rock from every second place.
* Samples outside the map are moved to the nearest cell of the map, so that rays run on along its
  edge, behind rock.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.numerics.reductions import union

from .terrain import RANGE, WINDOW, from_window, window

RAYS = 32
SAMPLES = 200
MAP = 21
"""Cells along a side of the map."""
INSIDE = np.where(np.arange(32) < MAP, 2**MAP - 1, 0).astype(np.uint32)
"""The cells of the map, uint32 ``(32,)``."""


def visible_cells(ground: jax.Array, x: jax.Array, y: jax.Array, *, bugs: bool) -> jax.Array:
    """Return the cells, ground and rock, that the rays from (x, y) reach.

    The outer ring of the map is ground.
    """
    rock = _pack_row_pairs(window(~ground & INSIDE, x, y))
    ends, visible = (
        (_BUGGY_ENDS, jnp.asarray(_BUGGY_VISIBLE)[x & 1, y & 1])
        if bugs
        else (_ENDS, jnp.asarray(_VISIBLE))
    )
    open_still, sets = jnp.ones(RAYS, bool), jnp.zeros(visible.shape[::2], visible.dtype)
    for index in range(ends.shape[1]):
        is_end = ((rock & ends[:, index]) != 0).any(-1) & open_still
        sets = sets | jnp.where(is_end[:, None], visible[:, index], 0)
        open_still = open_still & ~is_end
    words = union(sets | jnp.where(open_still[:, None], visible[:, -1], 0))
    rows = jnp.stack([words & 0xFFFF, words >> 16], 1).reshape(-1)[:WINDOW]
    if bugs:
        rows = _move_inside(rows, x, y)
    return from_window(rows, x, y) & INSIDE


def _pack_row_pairs(rows: jax.Array) -> jax.Array:
    """Put two rows of a window into a word, uint32 ``(7,)``."""
    rows = jnp.concatenate([rows, jnp.zeros(1, rows.dtype)])
    return rows[0::2] | rows[1::2] << 16


def _move_inside(rows: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Move the cells of a window that lie outside the map to the nearest cell inside.

    The window is centred at (x, y).
    """
    first, last = (
        jnp.clip(edge + RANGE, 0, WINDOW - 1).astype(jnp.uint32) for edge in (-x, MAP - 1 - x)
    )
    columns_before, columns_after = (jnp.uint32(1) << first) - 1, ~((jnp.uint32(2) << last) - 1)
    rows = (
        rows
        | ((rows & columns_before) != 0).astype(jnp.uint32) << first
        | ((rows & columns_after) != 0).astype(jnp.uint32) << last
    )
    lowest, highest = (jnp.clip(edge + RANGE, 0, WINDOW - 1) for edge in (-y, MAP - 1 - y))
    row = np.arange(WINDOW)
    under, over = union(jnp.where(row < lowest, rows, 0)), union(jnp.where(row > highest, rows, 0))
    return rows | jnp.where(row == lowest, under, 0) | jnp.where(row == highest, over, 0)


def _samples(x: int, y: int, length: float) -> np.ndarray:
    """Return the cells about (x, y) of the samples on each ray, int ``(RAYS, SAMPLES, 2)``."""
    angles = np.linspace(0, 2 * np.pi, RAYS, endpoint=False)
    ends = np.array([x, y]) + length * np.stack([np.cos(angles), np.sin(angles)], 1)
    return (np.linspace([x, y], ends, SAMPLES, axis=1).round() - [x, y]).astype(int)


def _pack(cells: np.ndarray) -> np.ndarray:
    """Pack cells about the rover, ``(n, 2)``, into a set, uint32 ``(7,)`` of two rows a word."""
    words = np.zeros((WINDOW + 1) // 2, np.uint32)
    columns, rows = cells.T + RANGE
    np.bitwise_or.at(
        words, rows // 2, np.left_shift(1, columns + 16 * (rows % 2)).astype(np.uint32)
    )
    return words


def _rays() -> tuple[np.ndarray, np.ndarray]:
    """Return for each ray the cells at which it may end, and what it shows if it ends there.

    All of them are sets of cells about the rover; a set of ends holds one cell.

    Their shapes are ``(RAYS, places, 7)`` and ``(RAYS, places + 1, 7)``; the last set is that of a
    ray without rock.
    """
    paths = [
        np.array(list(dict.fromkeys(map(tuple, ray.tolist())))) for ray in _samples(0, 0, RANGE)
    ]
    num_ends = max(map(len, paths)) - 1
    ends = [[_pack(path[index : index + 1]) for index in range(1, num_ends + 1)] for path in paths]
    visible = [
        [_pack(path[: index + 1]) for index in [*range(1, num_ends + 1), num_ends]]
        for path in paths
    ]
    return np.array(ends), np.array(visible)


def _buggy_rays() -> tuple[np.ndarray, np.ndarray]:
    """Return the same for rays as in MarsExplorer, where the places are distances in whole cells.

    The sets that rays show also depend on whether x and y are odd: ``(2, 2, RAYS, RANGE, 7)``.
    """
    distances = range(1, RANGE)
    ends = [
        [_pack(ray[np.floor(np.hypot(*ray.T)) == distance]) for distance in distances]
        for ray in _samples(0, 0, RANGE)
    ]
    lengths = [*(distance + 0.5 for distance in distances), float(RANGE)]

    def visible_from(x: int, y: int) -> np.ndarray:
        return np.stack([[_pack(ray) for ray in _samples(x, y, length)] for length in lengths], 1)

    # Rounding to even needs the sign of real places: the first two cells from the edge whose rays
    # stay positive.
    places = (RANGE, RANGE + 1)
    visible = [[visible_from(x, y) for y in places] for x in places]
    return np.array(ends), np.array(visible)


_ENDS, _VISIBLE = _rays()
_BUGGY_ENDS, _BUGGY_VISIBLE = _buggy_rays()
