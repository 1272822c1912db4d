"""rlsuite/NinePuzzle-v0 and rlsuite/SixteenPuzzle-v0: shift rows and columns to order the tiles.

Whole rows and columns are shifted around.

``difficulty`` is the number of moves of a shortest solution; a move shifts one row or column by one
cell, and the tile that leaves at one border comes in at the other. See :mod:`.tiles` for actions,
observations and rewards; every move can be made anywhere.

On 3 x 3 cells, half of the 362,880 arrangements can be solved: 736 need 3 moves, 28,674 need 5 and
54,741 need 7, none more than 8. On 4 x 4 cells, 2,032 need 3 and 230,480 need 5. Up to 72
arrangements (128 on 4 x 4) count as one puzzle: rotated, reflected, or with all rows and columns
shifted, because moves do not depend on where the board begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np

from ..shared.symmetry import square_symmetries
from .tiles import PermutingPuzzle, PermutingTask


class ShiftingPuzzle(PermutingPuzzle):
    """A board whose rows and columns are rings."""

    wraps = True

    @classmethod
    def sources(cls) -> dict[str, np.ndarray]:
        """Return the moves with the cells that the tiles come from.

        ``R1+`` shifts to the right, ``R1-`` to the left, ``C1+`` down, ``C1-`` up.
        """
        board = np.arange(cls.side**2).reshape(cls.side, cls.side)
        sources = {}
        for line in range(cls.side):
            for sign, by in (("+", 1), ("-", -1)):
                row, column = board.copy(), board.copy()
                row[line] = np.roll(row[line], by)
                column[:, line] = np.roll(column[:, line], by)
                sources[f"R{line + 1}{sign}"], sources[f"C{line + 1}{sign}"] = row, column
        return dict(sorted(sources.items()))

    def symmetries(self) -> Iterable[Sequence[int]]:
        """Return rotations, reflections and every displacement around the rings."""
        for order in square_symmetries(self.side):
            board = np.array(order).reshape(self.side, self.side)
            for down in range(self.side):
                for right in range(self.side):
                    yield np.roll(board, (down, right), (0, 1)).ravel().tolist()

    def rules(self) -> str:
        """State what a move is."""
        return (
            f"Tiles lie on a {self.side} x {self.side} board. A move shifts one row or one column "
            "by one cell; the "
            "tile that leaves the board at one end comes in at the other. For example, R2+ shifts "
            "row 2 to the right, "
            "R2- to the left; C3+ shifts column 3 down, C3- up. Rows count from the top, columns "
            "from the left, both "
            f"from 1 to {self.side}."
        )

    def meaning(self, move: str) -> str:
        """Describe the direction of a line."""
        direction = {"R+": "right", "R-": "left", "C+": "down", "C-": "up"}[move[0] + move[-1]]
        return f"shift {'row' if move[0] == 'R' else 'column'} {move[1:-1]} {direction} by one cell"


class NinePuzzle(ShiftingPuzzle):
    """The puzzle on 3 x 3 cells."""

    name = "NinePuzzle"
    tiers = range(2, 9)
    side, reach, stride = 3, 8, 3


class SixteenPuzzle(ShiftingPuzzle):
    """The puzzle on 4 x 4 cells."""

    name = "SixteenPuzzle"
    tiers = range(2, 8)
    side, reach, stride = 4, 4, 4
    few: ClassVar[dict[float, float]] = {5: 1_876, 6: 18_899, 7: 189_124}


class Nine(PermutingTask):
    """The task on 3 x 3 cells."""

    puzzle_class = NinePuzzle


class Sixteen(PermutingTask):
    """The task on 4 x 4 cells."""

    puzzle_class = SixteenPuzzle
