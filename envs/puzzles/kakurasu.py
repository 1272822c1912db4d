"""rlsuite/Kakurasu-v0: fill cells so that the numbers of the filled ones add up to the clue of every row and column.

Instances have exactly one solution: random fillings are searched for a second one, and kept where there is none.
``difficulty`` (of the task) is the side. See :mod:`.grid` for actions, observations and rewards; the mask forbids what
takes a line beyond its clue, and what leaves too little to reach it. A grid that is filled in is therefore right.

Small boards are few: up to swapping rows with columns there are 32,670 instances of side 4, and 286 of side 3, as
enumerating all fillings shows. From side 5 on seeds hardly ever repeat one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.card import TaskCard
from rlbench_suite.dice import Dice
from rlbench_suite.entries import summed

from .board import Board
from .grid import FillTask, Grid, GridPuzzle, either
from .symmetry import least

FILLED, BLANK = 1, 2
LARGEST_SIDE = 8


class Instance(NamedTuple):
    """Clues with one solution."""

    givens: np.ndarray
    """int8 ``(side**2,)``: zeros, for nothing is given."""
    row_sums: np.ndarray
    """int8 ``(side,)``: what the column numbers of the filled cells of each row add up to."""
    column_sums: np.ndarray
    """int8 ``(side,)``: what the row numbers of the filled cells of each column add up to."""


class KakurasuPuzzle(GridPuzzle[Instance]):
    """``tier`` is the side."""

    name = "Kakurasu"
    difficulty_is = "patterns of rows that a depth-first search tries until it has proven uniqueness"
    symbols = "#."
    fillable = 2

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        side = self.square(2, LARGEST_SIDE)
        self._sum = [sum(c + 1 for c in range(side) if row >> c & 1) for row in range(2**side)]
        """What a row adds up to; bit c is its column c + 1."""
        self._with_sum: list[list[int]] = [[] for _ in range(self._sum[-1] + 1)]
        for row, total in enumerate(self._sum):
            self._with_sum[total].append(row)

    def compose(self, dice: Dice) -> Instance | None:
        """The clues of a uniformly random filling; None if they have another solution too."""
        side = self.rows
        filled = [dice.below(2**side) for _ in range(side)]
        column_sums = [sum(r + 1 for r in range(side) if filled[r] >> c & 1) for c in range(side)]
        instance = Instance(
            np.zeros(side * side, np.int8),
            np.array([self._sum[row] for row in filled], np.int8),
            np.array(column_sums, np.int8),
        )
        return instance if len(list(islice(self._solutions(instance), 2))) == 1 else None

    def canonical(self, instance: Instance) -> bytes:
        """The lesser of the two ways to say which clues are those of the rows."""
        rows, columns = instance.row_sums.tolist(), instance.column_sums.tolist()
        return least((rows + columns, columns + rows))

    def rules(self) -> str:
        """The rules."""
        return (
            "Kakurasu: every cell is filled (#) or blank (.). A filled cell counts its column's number (1, 2, 3, ... "
            "from the left) towards its row's clue, and its row's number (1, 2, 3, ... from the top) towards its "
            "column's clue. In every row and every column the filled cells add up to exactly the clue."
        )

    def clues(self, instance: Instance) -> str:
        """The sums."""
        rows, columns = (" ".join(map(str, sums.tolist())) for sums in (instance.row_sums, instance.column_sums))
        return f"Clues of the rows, from the top: {rows}\nClues of the columns, from the left: {columns}"

    def broken(self, instance: Instance, grid: Grid) -> str:
        """The first line that misses its clue."""
        across = list(zip(*grid, strict=True))
        for kind, lines, sums in (("row", grid, instance.row_sums), ("column", across, instance.column_sums)):
            for number, (line, wanted) in enumerate(zip(lines, sums.tolist(), strict=True), 1):
                total = sum(place for place, value in enumerate(line, 1) if value == FILLED)
                if total != wanted:
                    return f"{kind} {number} adds up to {total}, its clue is {wanted}"
        return ""

    def solution(self, instance: Instance) -> Grid:
        """By search; the first found is the only one."""
        for filled in self._solutions(instance):
            return [[FILLED if row >> c & 1 else BLANK for c in range(self.columns)] for row in filled]
        raise ValueError("these clues have no solution")

    def difficulty(self, instance: Instance) -> float:
        """Rows tried by a search for all solutions."""
        tried = [0]
        for _ in self._solutions(instance, tried):
            pass
        return float(tried[0])

    def heuristic(self, instance: Instance) -> str:
        """Each row from its last cell: fill what exceeds neither what its row nor what its column still lacks."""
        lacking = instance.column_sums.tolist()
        grid = []
        for r, wanted in enumerate(instance.row_sums.tolist(), 1):
            rest = wanted
            line = [BLANK] * self.columns
            for c in reversed(range(self.columns)):
                if c + 1 <= rest and r <= lacking[c]:
                    rest -= c + 1
                    lacking[c] -= r
                    line[c] = FILLED
            grid.append(line)
        return self.written(grid)

    def _solutions(self, instance: Instance, tried: list[int] | None = None) -> Iterator[list[int]]:
        """All fillings, a word for each row. Rows are placed from the last: the numbers 1 to r make every sum up to
        r (r + 1) / 2, so what a column lacks with r rows left tells exactly whether it can still be had.
        """
        side = self.rows
        row_sums = instance.row_sums.tolist()
        filled = [0] * side

        def place(r: int, lacking: list[int]) -> Iterator[list[int]]:
            if r == 0:
                yield filled.copy()
                return
            most = r * (r - 1) // 2  # of the rows before this one
            must = may = 0
            for c, lack in enumerate(lacking):
                may |= (lack >= r) << c
                must |= (lack > most) << c
            if must & ~may:
                return
            for row in self._with_sum[row_sums[r - 1]]:
                if row & must == must and not row & ~may:
                    if tried:
                        tried[0] += 1
                    filled[r - 1] = row
                    yield from place(r - 1, [lack - r if row >> c & 1 else lack for c, lack in enumerate(lacking)])

        return place(side, instance.column_sums.tolist())


class Kakurasu(FillTask):
    """Kakurasu, one cell a step."""

    puzzle: KakurasuPuzzle
    puzzle_class = KakurasuPuzzle

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.side = side = self.puzzle.rows
        self.numbers = np.arange(1, side + 1, dtype=np.int8)

    @property
    def fact_count(self) -> int:
        """A clue for each line."""
        return 2 * self.puzzle.rows

    def allowed(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Fill what fits into both clues; leave blank where both can still be reached."""
        numbers = self.numbers
        row_sums, column_sums = self._sums(cells == FILLED)
        row_most, column_most = self._sums(cells != BLANK)
        fits = (numbers <= (instance.row_sums - row_sums)[:, None]) & (
            numbers[:, None] <= instance.column_sums - column_sums
        )
        spare = (numbers <= (row_most - instance.row_sums)[:, None]) & (
            numbers[:, None] <= column_most - instance.column_sums
        )
        return either(fits, spare)

    def solved(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Whether every line adds up to its clue."""
        row_sums, column_sums = self._sums(cells == FILLED)
        return (row_sums == instance.row_sums).all() & (column_sums == instance.column_sums).all()

    def facts(self, instance: Any) -> jax.Array:
        """Row clues, then column clues, as fractions of the largest sum."""
        most = self.dtype.type(2 / (self.side * (self.side + 1)))
        return jnp.concatenate([instance.row_sums, instance.column_sums]).astype(self.dtype) * most

    def _sums(self, counted: jax.Array) -> tuple[jax.Array, jax.Array]:
        """What rows and columns add up to if these cells count; int8 ``(side,)`` each."""
        grid = counted.reshape(self.side, self.side).astype(jnp.int8)
        return summed(grid * self.numbers, 1), summed(grid * self.numbers[:, None])

    def decorate(self, board: Board, instance: Any) -> None:
        """Numbers of rows and columns at the upper left, clues at the lower right."""
        for k in range(self.side):
            board.text(k, -1, str(k + 1), scale=0.6)
            board.text(-1, k, str(k + 1), scale=0.6)
            board.text(k, self.side, str(instance.row_sums[k]))
            board.text(self.side, k, str(instance.column_sums[k]))
