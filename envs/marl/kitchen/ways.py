"""Shortest ways in a kitchen, tabulated for each cell in which the other cook may be in the way."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from .layouts import STEPS, Layout, Place

UNREACHABLE = 1_000
"""Steps: farther than any way."""


class Ways(NamedTuple):
    """Tables of a layout. Cells of the floor have numbers, row by row."""

    targets: tuple[Place, ...]
    """All that a cook can act on: piles, pots, places to serve, and counters in reach."""
    numbers: np.ndarray
    """Number of each cell of the floor, and their count for other cells, ``(height, width)``."""
    next_cells: np.ndarray
    """Cell after a stay and after each move, ``(floor, 5)``."""
    steps: np.ndarray
    """Moves between cells, ``(floor, floor)``."""
    distances: np.ndarray
    """Moves and turns after which a cook faces a target, ``(floor + 1, floor, 4, targets)``.

    The first axis is the cell that is blocked, and no cell at last.
    """


@cache
def find_ways(layout: Layout) -> Ways:
    """Compute the tables of a layout."""
    targets = (*layout.fixtures, *layout.counters)
    count = len(layout.floor)
    numbers = np.full((layout.height, layout.width), count, np.int32)
    for number, cell in enumerate(layout.floor):
        numbers[cell] = number
    next_cells = np.tile(np.arange(count, dtype=np.int32)[:, None], (1, 5))
    faced = np.full((count, 4, len(targets)), UNREACHABLE, np.int32)
    for number, cell in enumerate(layout.floor):
        for heading, (down, right) in enumerate(STEPS):
            ahead = Place(cell.row + down, cell.column + right)
            if numbers[ahead] < count:
                next_cells[number, 1 + heading] = numbers[ahead]
            if ahead in targets:
                faced[number, heading, targets.index(ahead)] = 0
    distances = np.stack([shortest(faced, next_cells, blocked) for blocked in range(count + 1)])
    steps = np.where(np.eye(count, dtype=bool), 0, UNREACHABLE).astype(np.int32)
    for _ in range(count):
        for action in range(1, 5):
            steps = np.minimum(steps, 1 + steps[next_cells[:, action]])
    return Ways(targets, numbers, next_cells, steps, distances)


def shortest(distances: np.ndarray, next_cells: np.ndarray, blocked: int) -> np.ndarray:
    """Return the distances of shortest ways, ``(floor, 4, targets)``.

    Args:
        distances: 0 where a cook faces a target, and far elsewhere.
        next_cells: as in the tables.
        blocked: the cell that cannot be entered, in front of which a cook only turns.
    """
    cells = np.arange(len(next_cells))
    while True:
        before = distances
        for action in range(1, 5):
            ahead = next_cells[:, action]
            ahead = np.where(ahead == blocked, cells, ahead)
            onward = 1 + distances[ahead, action - 1]
            distances = np.minimum(distances, onward[:, None])
        if (before == distances).all():
            return distances
