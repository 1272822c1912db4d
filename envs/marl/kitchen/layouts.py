"""Floor plans of the kitchen, and what can be read off them before an episode begins."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import permutations
from typing import NamedTuple

import numpy as np

from rlbench_suite.core.arrays import Int

from .words import pack

FLOOR, COUNTER, ONIONS, DISHES, POT, SERVING = range(6)
"""Kinds of cells. Onions and dishes are endless piles."""
SYMBOLS = " XODPS"
"""Symbol of each kind in a plan, as in Overcooked-AI."""
KINDS = ("floor", "counter", "onions", "dishes", "pot", "serving")
STEPS = ((-1, 0), (1, 0), (0, 1), (0, -1))
"""Rows and columns to the cell ahead, for a cook who faces north, south, east and west."""


class Place(NamedTuple):
    """A cell; row 0 is the first in the north, column 0 the first in the west."""

    row: Int
    column: Int


class Layout:
    """A kitchen.

    Args:
        name: as in Overcooked-AI.
        plan: its rows from the north, a symbol a cell. The outermost cells are no floor.
        good: soups that a good team serves in an episode.
    """

    def __init__(self, name: str, plan: Sequence[str], good: int) -> None:
        self.name = name
        self.plan = tuple(plan)
        self.good = good
        self.height = len(plan)
        self.width = len(plan[0])
        self.kinds = np.array([[SYMBOLS.index(symbol) for symbol in row] for row in plan])
        self.words = tuple(pack(row) for row in self.kinds.tolist())
        """Kinds of the cells, a word a row."""

    def cells(self, kind: int) -> list[Place]:
        """Return the cells of a kind, row by row."""
        return [Place(*cell) for cell in np.argwhere(self.kinds == kind).tolist()]

    @cached_property
    def floor(self) -> list[Place]:
        """Cells on which a cook may stand."""
        return self.cells(FLOOR)

    @cached_property
    def counters(self) -> list[Place]:
        """Counters that a cook can reach."""
        return [cell for cell in self.cells(COUNTER) if self.neighbours(cell)]

    @cached_property
    def pots(self) -> list[Place]:
        """Cells with pots."""
        return self.cells(POT)

    @cached_property
    def fixtures(self) -> list[Place]:
        """Piles of onions and of dishes, pots and places to serve, in this order."""
        return [cell for kind in (ONIONS, DISHES, POT, SERVING) for cell in self.cells(kind)]

    def neighbours(self, cell: Place) -> list[Place]:
        """Return the floor next to a cell."""
        beside = [Place(cell.row + down, cell.column + right) for down, right in STEPS]
        return [place for place in beside if place in self.floor]

    def mirrored_counters(self, rows: bool, columns: bool) -> list[Place]:
        """Return the counters in reach, row by row as in a mirrored kitchen.

        Args:
            rows: whether north and south are exchanged.
            columns: whether east and west are exchanged.
        """
        down, right = -1 if rows else 1, -1 if columns else 1
        return sorted(self.counters, key=lambda cell: (down * cell.row, right * cell.column))

    @cached_property
    def rooms(self) -> dict[Place, int]:
        """Number of the room in which each cell of the floor lies."""
        numbers: dict[Place, int] = {}
        for cell in self.floor:
            if cell in numbers:
                continue
            number = len(set(numbers.values()))
            border = [cell]
            while border:
                place = border.pop()
                if place not in numbers:
                    numbers[place] = number
                    border += self.neighbours(place)
        return numbers

    @cached_property
    def starts(self) -> list[tuple[Place, Place]]:
        """Pairs of cells in which two cooks may start: one in each room where there are two."""
        rooms = self.rooms
        is_shared = len(set(rooms.values())) == 1
        return [
            (first, second)
            for first, second in permutations(self.floor, 2)
            if is_shared or rooms[first] != rooms[second]
        ]


LAYOUTS = {
    layout.name: layout
    for layout in (
        Layout("cramped_room", ["XXPXX", "O   O", "X   X", "XDXSX"], 8),
        Layout(
            "asymmetric_advantages",
            ["XXXXXXXXX", "O XSXOX S", "X   P   X", "X   P   X", "XXXDXDXXX"],
            12,
        ),
        Layout("coordination_ring", ["XXXPX", "X   P", "D X X", "O   X", "XOSXX"], 9),
        Layout("forced_coordination", ["XXXPX", "O X P", "O X X", "D X X", "XXXSX"], 10),
        Layout("counter_circuit", ["XXXPPXXX", "X      X", "D XXXX S", "X      X", "XXXOOXXX"], 8),
    )
}
