"""rlsuite/Sudoku-v0 and rlsuite/Sudoku4-v0: every row, column and box holds every digit once.

Instances have exactly one solution: a cell is emptied only if no other digit there can be completed. ``difficulty`` is
the number of cells to fill. See :mod:`.grid` for actions, observations and rewards; the mask forbids a digit that
stands in the cell's row, column or box.

Full grids are filled cell by cell with a random digit that fits, with backtracking, so that every grid can come up, but
not with equal probability.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.card import TaskCard
from rlbench_suite.dice import Dice
from rlbench_suite.entries import union

from .board import Board
from .grid import FillTask, Grid, GridPuzzle
from .symmetry import least, relabelled, square_symmetries


class Instance(NamedTuple):
    """A grid with one solution."""

    givens: np.ndarray
    """int8 ``(side**2,)``: 0 for a cell to fill."""


class SudokuPuzzle(GridPuzzle[Instance]):
    """``tier`` is the number of cells to fill; ``box`` the side of a box, 3 for the usual game."""

    name = "Sudoku"
    difficulty_is = "digits that a depth-first search (fewest candidates first) tries until it has proven uniqueness"
    box = 3
    most_empty = 56

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        if tier not in range(1, self.most_empty + 1):
            most = self.most_empty
            raise ValueError(f"{self.name}: difficulty is the number of cells to fill, 1 to {most}, got {tier!r}.")
        self.rows = self.columns = self.fillable = side = self.box**2
        self.symbols = "123456789"[:side]
        self._every = 2**side - 1
        boxes = (r // self.box * self.box + c // self.box for r in range(side) for c in range(side))
        self._units = [(i // side, side + i % side, 2 * side + b) for i, b in enumerate(boxes)]
        """The row, column and box of each cell, numbered through."""

    def compose(self, dice: Dice) -> Instance | None:
        """A full grid, emptied in random order as long as it has one solution; None if too little can be emptied."""
        used = [0] * (3 * self.rows)
        cells = [0] * self.rows**2
        if not self._complete(cells, used, list(range(len(cells))), dice):
            return None
        left = int(self.tier)
        empty: list[int] = []
        for cell in dice.shuffled(range(len(cells))):
            digit = cells[cell]
            self._put(cells, used, cell, 0)
            empty.append(cell)
            if self._other_solution(cells, used, empty, cell, digit):
                self._put(cells, used, cell, digit)
                empty.pop()
            elif (left := left - 1) == 0:
                digits = [mask.bit_length() for mask in cells]
                return Instance(np.array(digits, np.int8))
        return None

    def canonical(self, instance: Instance) -> bytes:
        """The least of the eight rotations and reflections, digits renamed in the order in which they come up."""
        cells = instance.givens.tolist()
        return least(relabelled(cells[i] for i in order) for order in square_symmetries(self.rows))

    def rules(self) -> str:
        """The rules."""
        return (
            f"Sudoku: every row, every column and every {self.box} x {self.box} box holds each of "
            f"{' '.join(self.symbols)} exactly once. The boxes divide the grid, beginning at its upper left corner."
        )

    def broken(self, instance: Instance, grid: Grid) -> str:
        """The first unit that lacks a digit."""
        side = self.box
        boxes = [
            [value for row in grid[r : r + side] for value in row[c : c + side]]
            for r in range(0, self.rows, side)
            for c in range(0, self.rows, side)
        ]
        for kind, units in (("row", grid), ("column", zip(*grid, strict=True)), ("box", boxes)):
            for number, unit in enumerate(units, 1):
                if len(set(unit)) < self.rows:
                    return f"{kind} {number} does not hold every digit"
        return ""

    def solution(self, instance: Instance) -> Grid:
        """By search; the first found is the only one."""
        cells, used, empty = self._opened(instance)
        if not self._complete(cells, used, empty, None):
            raise ValueError("this grid has no solution")
        return self.as_rows([mask.bit_length() for mask in cells])

    def difficulty(self, instance: Instance) -> float:
        """Digits tried by a search for a second solution."""
        cells, used, empty = self._opened(instance)
        tried = 0

        def search(empty: list[int]) -> None:
            nonlocal tried
            if not empty:
                return
            cell, free = self._fewest(used, empty)
            rest = [other for other in empty if other != cell]
            while free:
                digit = free & -free
                free ^= digit
                tried += 1
                self._put(cells, used, cell, digit)
                search(rest)
                self._put(cells, used, cell, 0)

        search(empty)
        return float(tried)

    def heuristic(self, instance: Instance) -> str:
        """Each cell in reading order gets the least digit that fits, or 1 where none does."""
        cells, used, empty = self._opened(instance)
        for cell in empty:
            free = self._free(used, cell)
            self._put(cells, used, cell, free & -free or 1)
        return self.written(self.as_rows([mask.bit_length() for mask in cells]))

    # -- search: a digit is a bit, a unit the set of its digits -------------------------------------------------------

    def _opened(self, instance: Instance) -> tuple[list[int], list[int], list[int]]:
        """The grid for a search: cells (a bit each, 0 empty), digits used in each unit, and the empty cells."""
        cells = [0] * self.rows**2
        used = [0] * (3 * self.rows)
        for cell, value in enumerate(instance.givens.tolist()):
            if value:
                self._put(cells, used, cell, 1 << value - 1)
        return cells, used, [cell for cell, digit in enumerate(cells) if not digit]

    def _put(self, cells: list[int], used: list[int], cell: int, digit: int) -> None:
        """Write a digit into a cell, or take the one there away."""
        change = cells[cell] ^ digit
        cells[cell] = digit
        for unit in self._units[cell]:
            used[unit] ^= change

    def _free(self, used: list[int], cell: int) -> int:
        """The digits that fit."""
        row, column, box = self._units[cell]
        return self._every & ~(used[row] | used[column] | used[box])

    def _fewest(self, used: list[int], empty: list[int]) -> tuple[int, int]:
        """The empty cell that fewest digits fit, and those."""
        best, best_free, best_count = -1, 0, 99
        for cell in empty:
            row, column, box = self._units[cell]
            free = self._every & ~(used[row] | used[column] | used[box])
            if (count := free.bit_count()) < best_count:
                best, best_free, best_count = cell, free, count
                if count < 2:
                    break
        return best, best_free

    def _complete(self, cells: list[int], used: list[int], empty: list[int], dice: Dice | None) -> bool:
        """Fill the empty cells, in place; digits in random order if there are dice. Whether it can be done."""
        if not empty:
            return True
        cell, free = self._fewest(used, empty)
        rest = [other for other in empty if other != cell]
        digits = [1 << v for v in range(self.rows) if free >> v & 1]
        for digit in dice.shuffled(digits) if dice else digits:
            self._put(cells, used, cell, digit)
            if self._complete(cells, used, rest, dice):
                return True
            self._put(cells, used, cell, 0)
        return False

    def _other_solution(self, cells: list[int], used: list[int], empty: list[int], cell: int, digit: int) -> bool:
        """Whether the grid can be completed with another digit in the cell just emptied; the grid stays as it is."""
        free = self._free(used, cell) & ~digit
        rest = empty[:-1]
        while free:
            other = free & -free
            free ^= other
            trial, in_use = cells.copy(), used.copy()
            self._put(trial, in_use, cell, other)
            if self._complete(trial, in_use, rest, None):
                return True
        return False


class Sudoku4Puzzle(SudokuPuzzle):
    """On 4 x 4 cells."""

    name = "Sudoku4"
    box = 2
    most_empty = 11


class Sudoku(FillTask):
    """Sudoku, one digit a step."""

    puzzle: SudokuPuzzle
    puzzle_class = SudokuPuzzle

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.side, self.box_side = self.puzzle.rows, self.puzzle.box

    def allowed(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Digits that are not in the row, column or box."""
        rows, columns, boxes = self._units(cells)
        side, box = self.side, self.box_side
        used = rows[:, None] | columns[None, :] | jnp.repeat(jnp.repeat(boxes, box, axis=0), box, axis=1)
        return (used.reshape(-1, 1) >> np.arange(side, dtype=np.uint16)) & 1 == 0

    def solved(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Whether every unit has every digit."""
        return jnp.stack([(unit == 2**self.side - 1).all() for unit in self._units(cells)]).all()

    def _units(self, cells: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """The digits of rows, columns ``(side,)`` and boxes ``(box, box)``, as sets of bits."""
        side, box, none = self.side, self.box_side, np.uint16(0)
        digits = jnp.where(cells > 0, np.uint16(1) << (cells - 1).astype(jnp.uint16), none).reshape(side, side)
        boxes = digits.reshape(box, box, box, box)
        return (
            union(digits, 1),
            union(digits),
            union(union(boxes, 3), 1),
        )

    def decorate(self, board: Board, instance: Any) -> None:
        """The borders of the boxes."""
        for k in range(0, self.side + 1, self.box_side):
            board.line(k, 0, k, self.side)
            board.line(0, k, self.side, k)


class Sudoku4(Sudoku):
    """On 4 x 4 cells."""

    puzzle_class = Sudoku4Puzzle
