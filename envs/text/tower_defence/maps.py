"""Maps of TowerDefence: roads of 32 cells on a grid, and the building sites beside them."""

from __future__ import annotations

from functools import cache
from itertools import combinations, pairwise, product
from typing import NamedTuple

import numpy as np

ROWS, COLUMNS = 8, 12
LENGTH = 32
"""Cells of a road."""
SITES = 8
"""Building sites beside a road."""
MAPS = 256
"""Maps, every second one for the test split."""
NEAR_REACH = 5
"""Squared distance within which cannons and mages reach."""
FAR_REACH = 9
"""Squared distance within which archers reach."""
Cell = tuple[int, int]


class Maps(NamedTuple):
    """All maps."""

    roads: np.ndarray
    """Cells of each road from the entrance to the castle, 12 * row + column, int32 ``(256, 32)``.
    """
    sites: np.ndarray
    """Cells of the sites, likewise, int32 ``(256, 8)``."""
    reach: np.ndarray
    """Cells of the road that each site reaches, near and far, as bits, uint32 ``(256, 2, 8)``."""


def road_of(rows: tuple[int, ...], turns: tuple[int, ...]) -> list[Cell]:
    """Return the road that goes from left to right along some rows.

    It changes rows in the columns ``turns``.
    """
    road = []
    for column in range(COLUMNS):
        before, after = (sum(turn < limit for turn in turns) for limit in (column, column + 1))
        step = 1 if rows[after] >= rows[before] else -1
        road += [(row, column) for row in range(rows[before], rows[after] + step, step)]
    return road


def sites_of(road: list[Cell]) -> list[Cell]:
    """Return a free cell beside every fourth cell of the road, fewer than eight if one has none."""
    sites: list[Cell] = []
    for row, column in road[1::4]:
        for site in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
            if 0 <= site[0] < ROWS and 0 <= site[1] < COLUMNS and site not in (*road, *sites):
                sites.append(site)
                break
    return sites


@cache
def maps() -> Maps:
    """Return all maps of the task, with 32 cells of road and eight sites each.

    Each road has four turns of three rows or more.
    """
    shapes = [
        rows for rows in product(range(ROWS), repeat=5)
        if min(steps := [abs(a - b) for a, b in pairwise(rows)]) >= 3
        and sum(steps) == LENGTH - COLUMNS
    ]  # fmt: skip
    bends = [turns for turns in combinations(range(1, 11), 4) if min(np.diff(turns)) >= 2]
    roads = [road_of(rows, turns) for rows, turns in product(shapes, bends)]
    layouts = []
    for road in roads[:: len(roads) // (2 * MAPS)]:
        if len(sites := sites_of(road)) == SITES:
            layouts.append((road, sites))
    assert len(layouts) >= MAPS
    road_cells, site_cells = (
        np.array(cells, np.int32) for cells in zip(*layouts[:MAPS], strict=True)
    )
    squares = ((road_cells[:, None, :] - site_cells[:, :, None]) ** 2).sum(-1)
    powers = 1 << np.arange(LENGTH, dtype=np.int64)
    reach = np.stack(
        [((squares <= limit) * powers).sum(-1) for limit in (NEAR_REACH, FAR_REACH)], 1
    ).astype(np.uint32)
    number = np.array([COLUMNS, 1], np.int32)
    return Maps(
        (road_cells * number).sum(-1, dtype=np.int32),
        (site_cells * number).sum(-1, dtype=np.int32),
        reach,
    )
