"""rlsuite/Twiddle-v0: rotate blocks of 2 x 2 tiles on a 3 x 3 board until all are in order.

``difficulty`` is the number of moves of a shortest solution; a move turns one block by a quarter.
See :mod:`.tiles` for actions, observations and rewards; every move can be made anywhere. The puzzle
is known from Simon Tatham's collection.

All 362,880 arrangements can be solved within 11 moves: 1,996 need 4, 130,042 need 7 and 39,706 need
9. Up to eight of them are one puzzle, rotated and reflected.
"""

from __future__ import annotations

import numpy as np

from .tiles import PermutingPuzzle, PermutingTask


class TwiddlePuzzle(PermutingPuzzle):
    """A board with four blocks, named A to D in reading order."""

    name = "Twiddle"
    tiers = range(2, 12)
    side, reach, stride = 3, 11, 4

    @classmethod
    def sources(cls) -> dict[str, np.ndarray]:
        """Return the moves: ``A+`` turns clockwise, ``A-`` counterclockwise."""
        board = np.arange(9).reshape(3, 3)
        sources = {}
        for block, name in enumerate("ABCD"):
            row, column = divmod(block, 2)
            here = np.s_[row : row + 2, column : column + 2]
            for sign, quarters in (("+", -1), ("-", 1)):
                turned = board.copy()
                turned[here] = np.rot90(board[here], quarters)
                sources[name + sign] = turned
        return sources

    def rules(self) -> str:
        """State what a move is."""
        return (
            "Tiles lie on a 3 x 3 board. A move turns one block of 2 x 2 tiles by a quarter turn, "
            "+ clockwise or - counterclockwise: A+ or A- the upper left block, B+ or B- the upper "
            "right, C+ or C- the lower left, D+ or D- the lower right."
        )

    def meaning(self, move: str) -> str:
        """Describe the turn of a block."""
        block = {"A": "upper left", "B": "upper right", "C": "lower left", "D": "lower right"}[
            move[0]
        ]
        return (
            f"turn the {block} block by a quarter "
            f"{'clockwise' if move[1] == '+' else 'counterclockwise'}"
        )


class Twiddle(PermutingTask):
    """The interactive form."""

    puzzle_class = TwiddlePuzzle
