"""rlsuite/EightPuzzle-v0 and rlsuite/FifteenPuzzle-v0: slide tiles into a hole to order them.

``difficulty`` is the number of moves of a shortest solution. See :mod:`.tiles` for actions,
observations and rewards: an action is the direction in which the hole moves, and the mask forbids
leaving the board.

On 3 x 3 cells, 181,440 arrangements can be solved, all within 31 moves (Reinefeld 1993); 116 of
them need 8 moves, 17,110 need 20 and 3,910 need 27. On 4 x 4 cells, 446 need 8 moves, 1,637,383
need 20 and 19,826,318 need 24 (OEIS A089484). Two arrangements that are reflections in the falling
diagonal are one puzzle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from ..shared.puzzle_task import Params
from .tiles import BoardState, RearrangementPuzzle, RearrangementTask

MOVES = ("U", "D", "L", "R")
_WAYS = ((-1, 0), (1, 0), (0, -1), (0, 1))
_WORDS = ("up", "down", "left", "right")


class SlidingPuzzle(RearrangementPuzzle):
    """A board with a hole, which belongs in the last cell."""

    moves = MOVES
    stride = 1
    blank: ClassVar[int]

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        side = self.side
        self._target = [
            [
                (r + down) * side + c + right
                if 0 <= r + down < side and 0 <= c + right < side
                else None
                for down, right in _WAYS
            ]
            for r in range(side)
            for c in range(side)
        ]
        """New cell of a hole after each move, by the hole's cell; None if it is off the board."""

    def board_after(self, position: bytes, move: int) -> bytes | None:
        """Swap the hole with the tile there."""
        hole = position.index(self.blank)
        target = self._target[hole][move]
        if target is None:
            return None
        board = bytearray(position)
        board[hole], board[target] = board[target], self.blank
        return bytes(board)

    def expand(self, boards: np.ndarray) -> np.ndarray:
        """Make every move that can be made."""
        holes = np.argmax(boards == self.blank, axis=1)
        moved_boards = []
        for move in range(4):
            targets = np.array([-1 if row[move] is None else row[move] for row in self._target])[
                holes
            ]
            new, hole, target = (array[targets >= 0] for array in (boards, holes, targets))
            rows = np.arange(len(new))
            new[rows, hole] = new[rows, target]
            new[rows, target] = self.blank
            moved_boards.append(new)
        return np.concatenate(moved_boards)

    def symmetries(self) -> Iterable[Sequence[int]]:
        """Return the two symmetries that keep the hole's corner.

        They are the identity and the reflection in the falling diagonal.
        """
        board = np.arange(self.cells).reshape(self.side, self.side)
        return board.ravel().tolist(), board.T.ravel().tolist()

    def rules(self) -> str:
        """State what a move is."""
        ways = ", ".join(f"{letter} ({word})" for letter, word in zip(MOVES, _WORDS, strict=True))
        return (
            f"A sliding puzzle on a {self.side} x {self.side} board: _ is the hole. A move swaps "
            "the hole with a tile next to it, and is written as the direction in which the hole "
            f"moves: {ways}."
        )

    def meaning(self, move: str) -> str:
        """Describe the direction of the hole."""
        return f"the hole moves {_WORDS[MOVES.index(move)]}"


class EightPuzzle(SlidingPuzzle):
    """The puzzle on 3 x 3 cells."""

    name = "EightPuzzle"
    tiers = range(2, 32)
    side, blank, reach = 3, 8, 31


class FifteenPuzzle(SlidingPuzzle):
    """The puzzle on 4 x 4 cells."""

    name = "FifteenPuzzle"
    tiers = range(2, 37)
    side, blank, reach = 4, 15, 16
    few: ClassVar[dict[float, float]] = {17: 115_922, 18: 223_678, 19: 429_872, 20: 818_703}


class Sliding(RearrangementTask):
    """The interactive form."""

    puzzle: SlidingPuzzle
    numbering = "tile k belongs into cell k, the last one is the hole"

    def move_tiles(self, grid: jax.Array, action: jax.Array) -> jax.Array:
        """Swap the hole with the tile that lies in the direction."""
        hole = grid == self.puzzle.blank
        targets = [jnp.roll(hole, offset, (0, 1)) for offset in _WAYS]
        target = jnp.select([action == move for move in range(3)], targets[:3], targets[3])
        tile = jnp.where(target, grid, 0).sum(dtype=jnp.int8)
        return jnp.where(hole, tile, jnp.where(target, np.int8(self.puzzle.blank), grid))

    def action_mask(self, state: BoardState, params: Params) -> jax.Array:
        """Return the directions in which there is a tile, bool ``(4,)``."""
        side = self.puzzle.side
        hole = (state.cells == self.puzzle.blank).reshape(side, side)
        return ~jnp.stack([hole[0].any(), hole[-1].any(), hole[:, 0].any(), hole[:, -1].any()])

    def why_illegal(self, action: np.ndarray, state: BoardState, params: Params) -> str:
        """Say that the move leads off the board."""
        return f"the hole cannot move {_WORDS[int(action)]}: it is at that border"


class Eight(Sliding):
    """The task on 3 x 3 cells."""

    puzzle_class = EightPuzzle


class Fifteen(Sliding):
    """The task on 4 x 4 cells."""

    puzzle_class = FifteenPuzzle
    bank_size = 512
