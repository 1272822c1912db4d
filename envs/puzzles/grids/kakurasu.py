"""rlsuite/Kakurasu-v0: fill cells so that their numbers add up to the clue of every row and column.

Instances have exactly one solution: a random filling is kept if a search finds no second one.
``difficulty`` (of the task) is the side. See :mod:`..shared.grid_filling` for actions, observations
and rewards; the mask forbids exceeding the clue of a line and leaving too little to reach it, so a
full grid is right.

There are few small boards: up to swapping rows with columns, 32,670 instances of side 4 and 286 of
side 3, as an enumeration of all fillings shows. From side 5 on, seeds hardly ever repeat an
instance.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.reductions import sum_in_order
from rlbench_suite.puzzle.dice import Dice

from ..shared.board import Board
from ..shared.grid_filling import CellFillTask, Grid, GridPuzzle, two_symbol_mask

FILLED, BLANK = 1, 2
MAX_SIDE = 8


class Instance(NamedTuple):
    """Clues with one solution."""

    givens: np.ndarray
    """int8 ``(side**2,)``: zeros, because nothing is given."""
    row_sums: np.ndarray
    """int8 ``(side,)``: sum of the column numbers of the filled cells of each row."""
    column_sums: np.ndarray
    """int8 ``(side,)``: sum of the row numbers of the filled cells of each column."""


class KakurasuPuzzle(GridPuzzle[Instance]):
    """``tier`` is the side."""

    name = "Kakurasu"
    difficulty_is = (
        "patterns of rows that a depth-first search tries until it has proven uniqueness"
    )
    tier_is = "the side"
    tiers = range(2, MAX_SIDE + 1)
    few: ClassVar[dict[float, float]] = {3: 286, 4: 32_670}
    symbols = "#."
    fillable = 2
    meanings: ClassVar[dict[str, str]] = {"#": "filled", ".": "blank"}

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        side = self.square()
        self._sum = [sum(c + 1 for c in range(side) if row >> c & 1) for row in range(2**side)]
        """Sum of each filling of a row; bit c of a filling is column c + 1."""
        self._row_ones = [
            sum(1 << 8 * c for c in range(side) if row >> c & 1) for row in range(2**side)
        ]
        """A row with a byte for each cell."""
        tops = 128 * self._row_ones[-1]
        self._limits = [
            (tops - r * self._row_ones[-1], tops - (r * (r - 1) // 2 + 1) * self._row_ones[-1])
            for r in range(side + 1)
        ]
        """Two numbers for each r that mark bytes by their top bits when they are added.

        The first marks bytes that are at least r, the second bytes that the rows before r cannot
        make.
        """
        self._fitting: list[list[list[tuple[int, int, int]]]] = [
            [[] for _ in range(self._sum[-1] + 1)] for _ in range(side + 1)
        ]
        """Fillings for each row and sum: top bits, their contribution to the column sums, and ones.
        """
        for r, by_sum in enumerate(self._fitting):
            for row, total in enumerate(self._sum):
                by_sum[total].append(
                    (128 * self._row_ones[row], r * self._row_ones[row], self._row_ones[row])
                )
        self._sum_of = dict(zip(self._row_ones, self._sum, strict=True))
        self._cells = {
            row_ones: bytes(FILLED if row >> c & 1 else BLANK for c in range(side))
            for row, row_ones in enumerate(self._row_ones)
        }
        """The cells of such a row."""
        self._lines = {
            row_ones: self.write_answer([list(cells)]) for row_ones, cells in self._cells.items()
        }
        """The same row in the format of an answer."""
        self._counted = [
            [
                r * row_ones + (total << 8 * (side + r - 1))
                for row_ones, total in zip(self._row_ones, self._sum, strict=True)
            ]
            for r in range(1, side + 1)
        ]
        """Contribution of each filling to the sums, by row: bytes of the columns, then of the rows.
        """
        self._added = [
            dict(zip(self._cells.values(), counted, strict=True)) for counted in self._counted
        ]
        """The same contributions by cells."""
        self._searched: tuple[tuple[bytes, int], tuple[int, ...]] = (b"", 0), ()
        """Sums of the last instance that was made, and a solution.

        With them the solver need not search again.
        """

    def compose(self, dice: Dice) -> Instance:
        """Draw the clues of a uniformly random filling."""
        side = self.rows
        sums = 0
        for counted, word in zip(self._counted, dice.words(side), strict=True):
            sums += counted[word >> 64 - side]
        clues = np.frombuffer(bytearray(sums.to_bytes(2 * side, "little")), np.int8)
        return Instance(np.zeros(side**2, np.int8), clues[side:], clues[:side])

    def admits(self, instance: Instance) -> bool:
        """Return whether there is no second solution."""
        sums = self._sums(instance)
        solutions, _ = self._solutions(*sums, 2)
        self._searched = sums, solutions[0]
        return len(solutions) == 1

    def canonical(self, instance: Instance) -> bytes:
        """Return the lesser of the two forms in which rows and columns are exchanged."""
        rows, columns = instance.row_sums.tobytes(), instance.column_sums.tobytes()
        return min(rows + columns, columns + rows)

    def rules(self) -> str:
        """State the rules."""
        return (
            "Kakurasu: every cell is filled (#) or blank (.). A filled cell counts its column's "
            "number (1, 2, 3, ... from the left) towards its row's clue, and its row's number (1, "
            "2, 3, ... from the top) towards its column's clue. In every row and every column, the "
            "filled cells must add up to exactly the clue."
        )

    def clues(self, instance: Instance) -> str:
        """State the sums."""
        rows, columns = (
            " ".join(map(str, sums.tolist())) for sums in (instance.row_sums, instance.column_sums)
        )
        return (
            f"Clues of the rows, from the top: {rows}\nClues of the columns, from the left: "
            f"{columns}"
        )

    def is_sound(self, instance: Instance, cells: bytes) -> bool:
        """Check all lines at once, a byte for each row or column; no sum exceeds 36."""
        side, sums = self.rows, 0
        for r, added in enumerate(self._added):
            sums += added[cells[r * side : (r + 1) * side]]
        return (
            sums.to_bytes(2 * side, "little")
            == instance.column_sums.tobytes() + instance.row_sums.tobytes()
        )

    def broken_rule(self, instance: Instance, grid: Grid) -> str:
        """Name the first line that misses its clue."""
        across = list(zip(*grid, strict=True))
        for kind, lines, sums in (
            ("row", grid, instance.row_sums),
            ("column", across, instance.column_sums),
        ):
            for number, (line, clue) in enumerate(zip(lines, sums.tolist(), strict=True), 1):
                total = sum(position for position, value in enumerate(line, 1) if value == FILLED)
                if total != clue:
                    return f"{kind} {number} adds up to {total}, its clue is {clue}"
        return ""

    def solution(self, instance: Instance) -> Grid:
        """Return the first solution that a search finds; it is the only one."""
        return self.as_rows(b"".join([self._cells[row] for row in self._first_solution(instance)]))

    def solve(self, instance: Instance) -> str:
        """Return the same grid as text, joined from lines."""
        return "\n".join([self._lines[row] for row in self._first_solution(instance)])

    def _first_solution(self, instance: Instance) -> tuple[int, ...]:
        sums = self._sums(instance)
        searched_sums, solution = self._searched
        if searched_sums == sums:
            return solution
        solutions, _ = self._solutions(*sums, 1)
        if not solutions:
            raise ValueError("these clues have no solution")
        return solutions[0]

    def difficulty(self, instance: Instance) -> float:
        """Count the rows tried by a search for all solutions."""
        return float(self._solutions(*self._sums(instance))[1])

    def heuristic(self, instance: Instance) -> str:
        """Fill each row from its last cell on, wherever both clues have room."""
        lacking = instance.column_sums.tolist()
        grid = []
        for r, clue in enumerate(instance.row_sums.tolist(), 1):
            clue_left = clue
            line = [BLANK] * self.columns
            for c in reversed(range(self.columns)):
                if c + 1 <= clue_left and r <= lacking[c]:
                    clue_left -= c + 1
                    lacking[c] -= r
                    line[c] = FILLED
            grid.append(line)
        return self.write_answer(grid)

    @staticmethod
    def _sums(instance: Instance) -> tuple[bytes, int]:
        """Return the sums of the rows, and those of the columns as bytes of a number."""
        return instance.row_sums.tobytes(), int.from_bytes(instance.column_sums.tobytes(), "little")

    def _solutions(
        self, row_sums: bytes, lacking: int, max_solutions: float = math.inf
    ) -> tuple[list[tuple[int, ...]], int]:
        """Return all fillings, or ``max_solutions`` of them, and the number of rows tried.

        A filling has a number for each row, with a byte for each cell.

        Rows are placed from the last one. The numbers 1 to r make every sum up to r (r + 1) / 2. So
        with r rows left, the missing part of a column's sum decides exactly whether the sum is
        still possible. In the first two rows it decides which cells are filled.
        """
        all_ones, limits, fitting = self._row_ones[-1], self._limits, self._fitting
        tops = all_ones << 7
        solutions: list[tuple[int, ...]] = []
        tried = 0
        waiting: list[tuple[int, int, tuple[int, ...]]] = [(self.rows, lacking, ())]
        while waiting:
            r, lacking, below = waiting.pop()
            while r > 2:
                at_least, beyond = limits[r]
                # A sum is below 128, so no byte carries into the next.
                never = tops & ~(lacking + at_least)
                must = lacking + beyond & tops
                decided = must | never  # what must be filled can be
                rows = [row for row in fitting[r][row_sums[r - 1]] if row[0] & decided == must]
                tried += len(rows)
                if not rows:
                    break
                r -= 1
                while len(rows) > 1:
                    _, count, row = rows.pop()
                    waiting.append((r, lacking - count, (row, *below)))
                _, count, row = rows[0]
                lacking -= count
                below = (row, *below)
            else:
                first, second = lacking & all_ones, lacking >> 1 & all_ones
                if self._sum_of[second] == row_sums[1]:
                    tried += 1
                    if self._sum_of[first] == row_sums[0]:
                        tried += 1
                        solutions.append((first, second, *below))
                        if len(solutions) == max_solutions:
                            break
        return solutions, tried


class Kakurasu(CellFillTask):
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

    def allowed_symbols(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Allow the values that both clues of a cell leave open.

        A cell may be filled if both clues have room for it, and left blank if both can still be
        reached.
        """
        numbers = self.numbers
        row_sums, column_sums = self._sums(cells == FILLED)
        row_most, column_most = self._sums(cells != BLANK)
        fits = (numbers <= (instance.row_sums - row_sums)[:, None]) & (
            numbers[:, None] <= instance.column_sums - column_sums
        )
        spare = (numbers <= (row_most - instance.row_sums)[:, None]) & (
            numbers[:, None] <= column_most - instance.column_sums
        )
        return two_symbol_mask(fits, spare)

    def is_solved(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Return whether every line adds up to its clue."""
        row_sums, column_sums = self._sums(cells == FILLED)
        return (row_sums == instance.row_sums).all() & (column_sums == instance.column_sums).all()

    def facts(self, instance: Any) -> jax.Array:
        """Return row clues, then column clues, as fractions of the largest sum."""
        scale = self.dtype.type(2 / (self.side * (self.side + 1)))
        return jnp.concatenate([instance.row_sums, instance.column_sums]).astype(self.dtype) * scale

    @property
    def fact_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`facts`."""

        unit = f"{self.side * (self.side + 1) // 2}"
        return tuple(
            Component(
                f"{line}_sums",
                f"clue of each {line}: the sum of its filled cells",
                unit,
                (self.side,),
            )
            for line in ("row", "column")
        )

    def _sums(self, counted: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Sum the numbers of these cells by rows and by columns; int8 ``(side,)`` each."""
        grid = counted.reshape(self.side, self.side).astype(jnp.int8)
        return sum_in_order(grid * self.numbers, 1), sum_in_order(grid * self.numbers[:, None])

    def decorate(self, board: Board, instance: Any) -> None:
        """Draw numbers of rows and columns at the upper left, clues at the lower right."""
        for k in range(self.side):
            board.text(k, -1, str(k + 1), scale=0.6)
            board.text(-1, k, str(k + 1), scale=0.6)
            board.text(k, self.side, str(instance.row_sums[k]))
            board.text(self.side, k, str(instance.column_sums[k]))
