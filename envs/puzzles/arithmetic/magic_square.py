"""rlsuite/MagicSquare-v0: complete a square of the numbers 1 to n * n so that all lines sum alike.

``difficulty`` is the side n. Any completion is right; there is at least one. See
:mod:`..shared.grid_filling` for actions, observations and rewards; the mask forbids a number that
stands elsewhere, and one that completes a row, column or diagonal with another sum or brings an
unfinished one to the sum or above.

There is one magic square of side 3 up to rotations and reflections. By
:meth:`MagicSquarePuzzle.canonical` it gives 196 different instances with 4 to 7 cells to fill, so
the easy tier is small. There are 880 squares of side 4, drawn by search, and 275,305,224 of side 5.
For side 5, a regular square is repeatedly emptied in part and completed at random.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import permutations
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import Malformed

from ..shared import parsing
from ..shared.grid_filling import CellFillTask, Grid, GridPuzzle
from ..shared.symmetry import smallest_form

TO_FILL = {3: (4, 7), 4: (10, 10), 5: (14, 14)}
"""Least and greatest number of cells to fill, by side."""
MAX_TRIED_NUMBERS = 250
"""Numbers that the search for a full square tries before it gives up.

The search finds most squares after few numbers.
"""
ROUNDS = {3: 1, 4: 1, 5: 4}
"""Number of times that cells are emptied, by side."""


class Instance(NamedTuple):
    """A square that can be completed."""

    givens: np.ndarray
    """int8 ``(side**2,)``: 0 for a cell to fill."""


class MagicSquarePuzzle(GridPuzzle[Instance]):
    """``tier`` is the side of the square."""

    name = "MagicSquare"
    difficulty_is = (
        "numbers that a depth-first search (fullest line first) tries until it has found every "
        "completion"
    )
    tier_is = "the side of the square"
    tiers = tuple(TO_FILL)
    few: ClassVar[dict[float, float]] = {3: 180, 4: 700_000}

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.rows = self.columns = side = int(tier)
        self.fillable = side**2
        self.symbols = tuple(str(number) for number in range(1, side**2 + 1))
        self.sum = side * (side**2 + 1) // 2
        self.lines = _lines(side)
        self.through = [
            [k for k, line in enumerate(self.lines) if cell in line] for cell in range(side**2)
        ]

    def compose(self, dice: Dice) -> Instance | None:
        """Draw a magic square and empty random cells.

        Return None if the search for one takes too long.
        """
        full = self._regular_square(dice) if self.rows == 5 else [0] * self.fillable
        for _ in range(ROUNDS[self.rows]):
            full = next(_Search(self, full, dice, MAX_TRIED_NUMBERS).completions(), full)
            if not all(full):
                return None
            emptied = dice.sample(range(self.fillable), dice.between(*TO_FILL[self.rows]))
            full = [0 if cell in emptied else value for cell, value in enumerate(full)]
        return Instance(np.array(full, np.int8))

    def _regular_square(self, dice: Dice) -> list[int]:
        """Return a full square whose digits in base ``side`` are two orthogonal Latin squares.

        Both Latin squares are made of knight's moves.
        """
        side = self.rows
        high, low = dice.shuffled(range(side)), dice.shuffled(range(side))
        cells = ((r, c) for r in range(side) for c in range(side))
        return [side * high[(r + 2 * c) % side] + low[(2 * r + c) % side] + 1 for r, c in cells]

    def canonical(self, instance: Instance) -> bytes:
        """Return the least of the forms that :func:`magic_symmetries` gives.

        Numbers are counted from below and from above.
        """
        cells = instance.givens.tolist()
        turned = [self.fillable + 1 - value if value else 0 for value in cells]
        return smallest_form(
            [form[i] for i in order]
            for form in (cells, turned)
            for order in magic_symmetries(self.rows)
        )

    def read(self, answer: str) -> bytes:
        """Return a line of numbers for each row."""
        lines = answer.split("\n")
        if len(lines) != self.rows:
            raise Malformed(f"expected {self.rows} lines, got {len(lines)}")
        side = self.rows
        read = (
            parsing.integers(line.rstrip(" "), 1, self.fillable, min_count=side, max_count=side)
            for line in lines
        )
        return b"".join(map(bytes, read))

    def likeness(self, instance: Instance, answer: str, best: str) -> float:
        """Return the share of the lines that have the sum, times the share of different numbers.

        Return 0 if a given was changed.
        """
        cells = self.read(answer)
        keeps_givens = all(
            clue in (0, cell) for clue, cell in zip(self._givens(instance), cells, strict=True)
        )
        sums = (
            sum(sum(cells[i] for i in line) == self.sum for line in self.lines)
            if keeps_givens
            else 0
        )
        return sums / len(self.lines) * len(set(cells)) / len(cells)

    def effortless(self, instance: Instance, best: str) -> float:
        """Return 0: an answer that ignores the prompt does not keep the givens."""
        return 0.0

    def rules(self) -> str:
        """State the rules."""
        return (
            f"Magic square: fill the {self.rows} x {self.rows} grid with the numbers 1 to "
            f"{self.fillable}, each exactly once, so that every row, every column and both main "
            f"diagonals add up to {self.sum}."
        )

    def broken_rule(self, instance: Instance, grid: Grid) -> str:
        """Name a repeated number, or the first line with another sum."""
        cells = [value for row in grid for value in row]
        if len(set(cells)) < len(cells):
            return f"{next(v for v in cells if cells.count(v) > 1)} is there more than once"
        for k, line in enumerate(self.lines):
            if (line_sum := sum(cells[i] for i in line)) != self.sum:
                side = self.rows
                names = ("the diagonal from the upper left", "the diagonal from the upper right")
                where = (
                    f"{('row', 'column')[k // side]} {k % side + 1}"
                    if k < 2 * side
                    else names[k - 2 * side]
                )
                return f"{where} has the sum {line_sum}, not {self.sum}"
        return ""

    def solution(self, instance: Instance) -> Grid:
        """Return the first completion that a search finds."""
        completion = next(_Search(self, instance.givens.tolist()).completions(), None)
        if completion is None:
            raise ValueError("this square cannot be completed")
        return self.as_rows(completion)

    def difficulty(self, instance: Instance) -> float:
        """Count the numbers tried by a search for all completions."""
        search = _Search(self, instance.givens.tolist())
        for _ in search.completions():
            pass
        return float(search.tried)

    def heuristic(self, instance: Instance) -> str:
        """Fill the last empty cell of each line by its sum.

        Then put the least unused numbers into the rest.
        """
        cells = instance.givens.tolist()
        while forced := [line for line in self.lines if sum(cells[i] == 0 for i in line) == 1]:
            cell = next(i for i in forced[0] if cells[i] == 0)
            cells[cell] = min(max(self.sum - sum(cells[i] for i in forced[0]), 1), self.fillable)
        unused = iter(sorted(set(range(1, self.fillable + 1)).difference(cells)))
        return self.write_answer(self.as_rows([value or next(unused) for value in cells]))


class _Search:
    """Depth-first search for completions of a square.

    It first fills the cell that the fewest numbers fit.

    Args:
        puzzle: holds the lines.
        cells: numbers; 0 for a cell to fill.
        dice: source of a random order of trials; without it, the least number is tried first.
        max_tries: number of trials after which the search gives up.
    """

    def __init__(
        self,
        puzzle: MagicSquarePuzzle,
        cells: list[int],
        dice: Dice | None = None,
        max_tries: int | None = None,
    ) -> None:
        self.tried = 0
        self._puzzle = puzzle
        self._cells = list(cells)
        self._dice = dice
        self._max_tries = max_tries
        self._free = sum(1 << v for v in range(1, puzzle.fillable + 1) if v not in cells)
        self._sums_left = [puzzle.sum - sum(cells[i] for i in line) for line in puzzle.lines]
        self._gaps = [sum(cells[i] == 0 for i in line) for line in puzzle.lines]

    def completions(self) -> Iterator[list[int]]:
        """Return every completion, as a list of its own."""
        next_cell = self._next_cell()
        if next_cell is None:
            if not any(self._sums_left):
                yield list(self._cells)
            return
        cell, fitting = next_cell
        numbers = [v for v in range(1, self._puzzle.fillable + 1) if fitting >> v & 1]
        for number in self._dice.shuffled(numbers) if self._dice else numbers:
            if self._max_tries is not None and self.tried >= self._max_tries:
                return
            self.tried += 1
            self._put(cell, number, 1)
            yield from self.completions()
            self._put(cell, number, -1)

    def _put(self, cell: int, number: int, sign: int) -> None:
        self._cells[cell] = number if sign > 0 else 0
        self._free ^= 1 << number
        for k in self._puzzle.through[cell]:
            self._sums_left[k] -= sign * number
            self._gaps[k] -= sign

    def _next_cell(self) -> tuple[int, int] | None:
        """Return the empty cell that the fewest numbers fit, and these numbers as bits.

        The result is None if no cell is empty.
        """
        best, fewest = None, 999
        highest = self._free.bit_length() - 1
        lowest = (self._free & -self._free).bit_length() - 1
        for cell, value in enumerate(self._cells):
            if value:
                continue
            low, high = lowest, highest
            for k in self._puzzle.through[cell]:
                other_gaps, sum_left = self._gaps[k] - 1, self._sums_left[k]
                low = max(low, sum_left - other_gaps * highest)
                high = min(high, sum_left - other_gaps * lowest)
            fitting = self._free >> low << low & (1 << high + 1) - 1 if low <= high else 0
            if (count := fitting.bit_count()) < fewest:
                best, fewest = (cell, fitting), count
                if count < 2:
                    break
        return best


@cache
def _lines(side: int) -> tuple[tuple[int, ...], ...]:
    """Return the cells of rows, columns, and the two diagonals."""
    board = np.arange(side * side).reshape(side, side)
    lines = (*board, *board.T, board.diagonal(), board[:, ::-1].diagonal())
    return tuple(tuple(line.tolist()) for line in lines)


@cache
def magic_symmetries(side: int) -> tuple[tuple[int, ...], ...]:
    """Return the moves of cells that keep every magic square magic.

    They reorder rows and columns alike so that opposite ones stay opposite, reverse one of the two
    or not, and transpose or not. Each move holds, for each cell, the cell that goes there.
    """
    board = np.arange(side * side).reshape(side, side)
    alike = [
        p
        for p in permutations(range(side))
        if all(p[i] + p[side - 1 - i] == side - 1 for i in range(side))
    ]
    moved = (board[np.ix_(p, q)] for p in alike for q in (p, p[::-1]))
    return tuple({tuple(order.ravel().tolist()) for move in moved for order in (move, move.T)})


class MagicSquare(CellFillTask):
    """Magic squares, one number a step."""

    puzzle: MagicSquarePuzzle
    puzzle_class = MagicSquarePuzzle
    bank_size = 512

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.side = self.puzzle.rows
        self.numbers = np.arange(1, self.cells + 1, dtype=np.int16)

    def allowed_symbols(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Allow unused numbers that leave every line a way to the sum."""
        side = self.side
        grid = cells.astype(jnp.int16).reshape(side, side)
        low, high = self._bounds(grid.sum(1), (grid == 0).sum(1, dtype=jnp.int16))
        lows, highs = self._bounds(grid.sum(0), (grid == 0).sum(0, dtype=jnp.int16))
        low = jnp.maximum(low[:, None], lows[None, :])
        high = jnp.minimum(high[:, None], highs[None, :])
        for on in (np.eye(side, dtype=bool), np.eye(side, dtype=bool)[::-1]):
            diagonal = jnp.where(on, grid, np.int16(0)).sum(dtype=jnp.int16)
            min_number, max_number = self._bounds(diagonal, ((grid == 0) & on).sum(dtype=jnp.int16))
            low = jnp.where(on, jnp.maximum(low, min_number), low)
            high = jnp.where(on, jnp.minimum(high, max_number), high)
        used = (grid.reshape(-1, 1) == self.numbers).any(0)
        return (low.reshape(-1, 1) <= self.numbers) & (high.reshape(-1, 1) >= self.numbers) & ~used

    def _bounds(self, line_sums: jax.Array, gaps: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the least and the greatest number that may be added to each line.

        Lines have sums so far, and numbers of gaps.
        """
        sums_left = np.int16(self.puzzle.sum) - line_sums.astype(jnp.int16)
        return jnp.where(gaps == 1, sums_left, np.int16(1)), jnp.where(
            gaps == 1, sums_left, sums_left - 1
        )

    def is_solved(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Return whether every number is there and every line has the sum."""
        grid = cells.astype(jnp.int16).reshape(self.side, self.side)
        sums = [grid.sum(0), grid.sum(1), jnp.trace(grid)[None], jnp.trace(grid[::-1])[None]]
        every = (cells[:, None] == np.arange(1, self.cells + 1, dtype=np.int8)).any(0).all()
        return every & (jnp.concatenate(sums) == self.puzzle.sum).all()
