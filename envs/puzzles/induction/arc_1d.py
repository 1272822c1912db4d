"""rlsuite/Arc1D-v0: infer from examples how a rule changes a strip of coloured cells, and apply it.

``difficulty`` is the number of steps of the rule. See :mod:`.composed_rules` for proofs, actions,
observations and rewards. Instances that differ by names of colours, by reflection or by the order
of their examples are one: the family of rules is closed under the first two.

The puzzle is the one-dimensional ARC of Xu et al. (2024, arXiv:2305.18354), with steps that can be
composed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import permutations
from typing import Any, ClassVar

import numpy as np

from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import Example

from ..shared import parsing
from .composed_rules import (
    InductionPuzzle,
    InductionTask,
    Instance,
    Step,
    pack_entries,
    pick_entries,
    sort_examples,
)

COLOURS = (1, 2, 3)
"""Colours other than 0, the colour of the ground."""

_VIEWS = [
    (direction, bytes((0, *names)).ljust(256))
    for direction in (1, -1)
    for names in permutations(COLOURS)
]
"""Directions, each with a table that renames colours."""

Where = Callable[[Any, Any], Any]
"""Function that selects cells of strips: bool ``(n, width)``."""


def _mirror(rows: Any, of: Any) -> Any:
    return rows[:, ::-1]


def _mirror_step(step: Step) -> Step:
    """Mirror the strip."""
    return lambda rows, of: step(rows[:, ::-1], of)[:, ::-1]


def _left_neighbour(rows: Any, of: Any) -> Any:
    """Return the left neighbour of each cell; ground beyond the end."""
    return of.pad(rows[:, :-1], ((0, 0), (1, 0)))


def _right_neighbour(rows: Any, of: Any) -> Any:
    return of.pad(rows[:, 1:], ((0, 0), (0, 1)))


def _nearest_left_colour(rows: Any, of: Any) -> Any:
    """Return the colour of the nearest coloured cell at or to the left of each cell.

    It is the ground's where there is none.
    """
    width = rows.shape[1]
    at_or_left = np.tril(np.ones((width, width), bool))
    nearest = of.where((rows != 0)[:, None, :] & at_or_left, np.arange(width), -1).max(axis=2)
    return pick_entries(rows, nearest, 0, of)


def _fill_gaps(rows: Any, of: Any) -> Any:
    left_colour, right_colour = (
        _nearest_left_colour(rows, of),
        _mirror_step(_nearest_left_colour)(rows, of),
    )
    return of.where(left_colour == right_colour, left_colour, rows)


def _paint(where: Where, colour: int) -> Step:
    """Paint some cells in another colour."""
    return lambda rows, of: of.where(where(rows, of), np.int8(colour), rows)


def _lone_cells(rows: Any, of: Any) -> Any:
    return (rows != _left_neighbour(rows, of)) & (rows != _right_neighbour(rows, of))


def _inner_cells(rows: Any, of: Any) -> Any:
    return (rows == _left_neighbour(rows, of)) & (rows == _right_neighbour(rows, of))


def _block_lengths(rows: Any, of: Any) -> Any:
    """Return the length of the block of each coloured cell, 0 for ground."""
    number = of.cumsum(rows != _left_neighbour(rows, of), axis=1)
    together = (number[:, :, None] == number[:, None, :]).sum(axis=2)
    return of.where(rows != 0, together, 0)


def _longest_blocks(rows: Any, of: Any) -> Any:
    lengths = _block_lengths(rows, of)
    return (lengths == lengths.max(axis=1, keepdims=True)) & (rows != 0)


def _swap_colours(first: int, second: int) -> Step:
    """Exchange two colours."""
    names = np.arange(4, dtype=np.int8)
    names[[first, second]] = second, first
    return lambda rows, of: sum(
        of.where(rows == old, np.int8(new), np.int8(0)) for old, new in enumerate(names)
    )


def _coloured_cells(rows: Any, of: Any) -> Any:
    return rows != 0


def _cells_of_colour(colour: int) -> Where:
    return lambda rows, of: rows == colour


def _grow_blocks(rows: Any, of: Any) -> Any:
    """Make blocks one cell longer to the right."""
    return of.where(rows == 0, _left_neighbour(rows, of), rows)


@cache
def _smallest_view(strip: bytes) -> tuple[bytes, list[tuple[int, bytes]]]:
    """Return the least form of a strip over all views, and the views that give it."""
    forms = [strip[::direction].translate(names) for direction, names in _VIEWS]
    return min(forms), [
        view for form, view in zip(forms, _VIEWS, strict=True) if form == min(forms)
    ]


class Arc1DPuzzle(InductionPuzzle):
    """The puzzle on strips of cells in three colours."""

    name = "Arc1D"
    symbols = "0123"
    sizes: ClassVar = {1: (3, 7), 2: (3, 7), 3: (3, 8)}
    tiers = tuple(sizes)
    steps: ClassVar = {
        "reflect the strip": _mirror,
        "shift everything one cell to the right; "
        "what leaves the strip is lost, 0 comes in": _left_neighbour,
        "shift everything one cell to the left; "
        "what leaves the strip is lost, 0 comes in": _right_neighbour,
        "push the coloured cells to the left end, in their order": lambda rows, of: pack_entries(
            rows, rows != 0, 0, of
        ),
        "push the coloured cells to the right end, in their order": _mirror_step(
            lambda rows, of: pack_entries(rows, rows != 0, 0, of)
        ),
        "fill each run of 0s between two cells of the same colour with that colour": _fill_gaps,
        "remove each block that is one cell long": _paint(_lone_cells, 0),
        "hollow out each block: remove its cells except the first and the last": _paint(
            _inner_cells, 0
        ),
        "lengthen each block by one cell to the right, if a 0 is there": _grow_blocks,
        "lengthen each block by one cell to the left, if a 0 is there": _mirror_step(_grow_blocks),
        "give each 0 the colour of the nearest coloured cell to its left, "
        "if there is one": _nearest_left_colour,
        "give each 0 the colour of the nearest coloured cell to its right, "
        "if there is one": _mirror_step(_nearest_left_colour),
        "remove each block that is shorter than the longest": _paint(
            lambda rows, of: (rows != 0) & ~_longest_blocks(rows, of), 0
        ),
        **{
            f"swap the colours {a} and {b}": _swap_colours(a, b)
            for a, b in ((1, 2), (1, 3), (2, 3))
        },
        **{f"give every coloured cell the colour {c}": _paint(_coloured_cells, c) for c in COLOURS},
        **{f"remove every cell of colour {c}": _paint(_cells_of_colour(c), 0) for c in COLOURS},
        **{
            f"give the longest block (all of them, if several are) the colour {c}": _paint(
                _longest_blocks, c
            )
            for c in COLOURS
        },
    }

    @staticmethod
    def weights(rows: np.ndarray) -> np.ndarray:
        """Return the weight with which each row is drawn.

        Mostly a cell equals the one to its left. Otherwise it is more often ground than another
        colour.
        """
        left_cells, cells = rows[:, :-1], rows[:, 1:]
        return np.where(cells == left_cells, 3, np.where(cells == 0, 2, 1)).prod(axis=1)

    @staticmethod
    def worth_showing(rows: np.ndarray) -> np.ndarray:
        """Leave out empty strips."""
        has_colour: np.ndarray = (rows != 0).any(axis=1)
        return has_colour

    def rules(self) -> str:
        """State what a strip is."""
        return (
            f"A strip has {self.width} cells. Each has a colour, 1, 2 or 3, or is empty: 0. A "
            "block is a maximal run "
            "of cells of one colour; empty cells form no block."
        )

    def how_to_answer(self) -> str:
        """Return a strip."""
        return (
            f"Answer with the strip: {self.width} symbols among 0 1 2 3 separated by single "
            "spaces, on one line."
        )

    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Show a short strip."""
        return [Example("For example, the answer for a strip of 4 cells could be:", "0 2 2 1")]

    def mend(self, answer: str) -> str:
        """Give the strip the layout that the prompt asks for."""
        return "\n".join(map(" ".join, parsing.rows_of(answer, 1, self.width, self.symbols)))

    def read(self, answer: str) -> list[int]:
        """Return a strip."""
        return parsing.grid(answer, 1, self.width, self.symbols)[0]

    @staticmethod
    def smallest_form(row: bytes) -> bytes:
        """Return the least form over all names of colours and both directions."""
        return _smallest_view(row)[0]

    def canonical(self, instance: Instance) -> bytes:
        """Return the query in its least form over colour names and directions.

        If there are several such forms, the least examples decide.
        """
        inputs, outputs = instance.inputs.tobytes(), instance.outputs.tobytes()
        query, views = _smallest_view(instance.query.tobytes())
        return query + min(
            [
                sort_examples(
                    self.width,
                    inputs[::direction].translate(names),
                    outputs[::direction].translate(names),
                )
                for direction, names in views
            ]
        )

    def guess(self, instance: Instance, dice: Dice) -> str:
        """Give each cell of the query a colour at random, or leave it as it is."""
        return self.write_answer(
            [dice.choice((*COLOURS, 0, value)) for value in instance.query.tolist()]
        )

    def constants(self) -> Sequence[str]:
        """Return a strip of one colour."""
        return [self.write_answer([colour] * self.width) for colour in range(len(self.symbols))]


class Arc1D(InductionTask):
    """The task on strips."""

    puzzle_class = Arc1DPuzzle
    bank_size = 1024
    papers = ("#1d2733", "#e69f00", "#56b4e9", "#009e73")
