"""rlsuite/Sudoku-v0 and rlsuite/Sudoku4-v0: every row, column and box holds every digit once.

Instances have exactly one solution: a cell is emptied only if no other digit in it can be
completed. ``difficulty`` is the number of cells to fill. See :mod:`..shared.grid_filling` for
actions, observations and rewards; the mask forbids a digit that stands in the cell's row, column or
box.

There are few 4 x 4 puzzles: up to names of digits, rotation and reflection there are 11,658 with 6
cells to fill, 11,208 with 9 and 1,494 with 11, both splits together.

Full grids are filled cell by cell with a random digit that fits, with backtracking. So every grid
can come up, but not with equal probability.
"""

from __future__ import annotations

import operator
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.reductions import union
from rlbench_suite.puzzle.dice import Dice

from ..shared.board import Board
from ..shared.grid_filling import CellFillTask, Grid, GridPuzzle
from ..shared.symmetry import rename_values, square_forms


class Instance(NamedTuple):
    """A grid with one solution."""

    givens: np.ndarray
    """int8 ``(side**2,)``: 0 for a cell to fill."""


class SudokuPuzzle(GridPuzzle[Instance]):
    """``tier`` is the number of cells to fill; ``box`` the side of a box, 3 for the usual game."""

    name = "Sudoku"
    difficulty_is = (
        "digits that a depth-first search (fewest candidates first) tries until it has proven "
        "uniqueness"
    )
    tier_is = "the number of cells to fill"
    tiers = range(1, 57)
    box = 3

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.rows = self.columns = self.fillable = side = self.box**2
        self.symbols = "123456789"[:side]
        cells = range(side**2)
        units = [
            (i // side, i % side, i // side // self.box * self.box + i % side // self.box)
            for i in cells
        ]
        self._every = 2**side**2 - 1
        self._outside = [
            sum(1 << j for j in cells if not any(map(operator.eq, units[i], units[j])))
            for i in cells
        ]
        """Set of the cells outside each cell's row, column and box."""
        self._sums = _UnitSums(self.box)

    def compose(self, dice: Dice) -> Instance | None:
        """Draw a full grid and empty it in random order while it has one solution.

        The result is None if that ends too early.
        """
        side = self.rows
        cells = bytearray(side**2)
        if not self._fill([self._every] * side, self._every, cells, dice):
            return None
        cells_to_empty = int(self.tier)
        fits, empty = [0] * side, 0
        for cell in dice.shuffled(range(side**2)):
            digit = cells[cell] - 1
            cells[cell] = 0
            previous_cells, fits[digit] = fits[digit], self._fitting_cells(cells, digit)
            if self._other_solution(fits, empty, cell, digit):
                fits[digit] = previous_cells
                cells[cell] = digit + 1
                continue
            empty |= 1 << cell
            cells_to_empty -= 1
            if cells_to_empty == 0:
                return Instance(np.frombuffer(cells, np.int8))
        return None

    def canonical(self, instance: Instance) -> bytes:
        """Return the least of the eight rotations and reflections.

        Digits are renamed in order of first occurrence.
        """
        return min(map(rename_values, square_forms(instance.givens.tobytes(), self.rows)))

    def rules(self) -> str:
        """State the rules."""
        return (
            f"Sudoku: every row, every column and every {self.box} x {self.box} box holds each of "
            f"{' '.join(self.symbols)} exactly once. The boxes tile the grid, beginning at its "
            "upper left corner."
        )

    def is_sound(self, instance: Instance, cells: bytes) -> bool:
        """Check all units at once."""
        return self._sums.keeps_rules(cells)

    def broken_rule(self, instance: Instance, grid: Grid) -> str:
        """Name the first unit that lacks a digit."""
        side = self.box
        boxes = (  # hardly ever looked at
            [value for row in grid[r : r + side] for value in row[c : c + side]]
            for r in range(0, self.rows, side)
            for c in range(0, self.rows, side)
        )
        for kind, units in (("row", grid), ("column", zip(*grid, strict=True)), ("box", boxes)):
            for number, unit in enumerate(units, 1):
                if len(set(unit)) < self.rows:
                    return f"{kind} {number} does not hold every digit"
        return ""

    def solution(self, instance: Instance) -> Grid:
        """Return the first solution that a search finds; it is the only one."""
        cells = bytearray(instance.givens.tobytes())
        if not self._complete(*self._open_cells(cells), cells):
            raise ValueError("this grid has no solution")
        return self.as_rows(cells)

    def difficulty(self, instance: Instance) -> float:
        """Count the digits tried by a search for a second solution."""
        tried = 0

        def search(fits: list[int], empty: int) -> None:
            nonlocal tried
            if not empty:
                return
            cell = self._most_constrained_cell(fits, empty)
            for digit, cells in enumerate(fits):
                if cells >> cell & 1:
                    tried += 1
                    search(self._put_digit(fits, cell, digit), empty ^ 1 << cell)

        search(*self._open_cells(instance.givens.tobytes()))
        return float(tried)

    def heuristic(self, instance: Instance) -> str:
        """Put into each cell in reading order the least digit that fits, or 1 where none does."""
        cells = bytearray(instance.givens.tobytes())
        fits, _ = self._open_cells(cells)
        for cell in range(len(cells)):
            if not cells[cell]:
                digit = next(
                    (digit for digit, fitting in enumerate(fits) if fitting >> cell & 1), 0
                )
                cells[cell] = digit + 1
                fits[digit] &= self._outside[cell]
        return self.write_answer(self.as_rows(cells))

    # -- search: for each digit the set of the cells that it fits, a bit each; filled cells do not
    # matter in it -------

    def _open_cells(self, cells: bytes | bytearray) -> tuple[list[int], int]:
        """Return the cells that each digit fits, and the empty cells."""
        empty = int(cells.translate(_EMPTY)[::-1], 2)
        return [self._fitting_cells(cells, digit) for digit in range(self.rows)], empty

    def _fitting_cells(self, cells: bytes | bytearray, digit: int) -> int:
        """Return the cells whose units lack the digit."""
        fitting, at = self._every, cells.find(digit + 1)
        while at >= 0:
            fitting &= self._outside[at]
            at = cells.find(digit + 1, at + 1)
        return fitting

    def _put_digit(self, fits: list[int], cell: int, digit: int) -> list[int]:
        """Return the cells that each digit fits after this digit is put into this cell."""
        narrowed = fits.copy()
        narrowed[digit] &= self._outside[cell]
        return narrowed

    @staticmethod
    def _most_constrained_cell(fits: list[int], empty: int) -> int:
        """Return the first empty cell that at most one digit fits.

        If there is none, return the first that the fewest digits fit.
        """
        odd = twos = fours = eights = (
            0  # counts all cells at once: a bit of their number of digits in each
        )
        for cells in fits:
            carry = odd & cells
            odd ^= cells
            carried = twos & carry
            twos ^= carry
            eights |= fours & carried
            fours ^= carried
        if candidates := empty & ~(twos | fours | eights):
            return (candidates & -candidates).bit_length() - 1
        candidates = empty
        for plane in (eights, fours, twos, odd):
            candidates = candidates & ~plane or candidates
        return (candidates & -candidates).bit_length() - 1

    def _fill(self, fits: list[int], empty: int, cells: bytearray, dice: Dice) -> bool:
        """Fill the empty cells in place, digits in random order; return True if it worked.

        ``fits`` is consumed.
        """
        while empty:
            cell = self._most_constrained_cell(fits, empty)
            empty ^= 1 << cell
            digits = [digit for digit, fitting in enumerate(fits) if fitting >> cell & 1]
            if len(digits) != 1:
                for digit in dice.shuffled(digits):
                    cells[cell] = digit + 1
                    if self._fill(self._put_digit(fits, cell, digit), empty, cells, dice):
                        return True
                return False
            cells[cell] = digits[0] + 1
            fits[digits[0]] &= self._outside[cell]
        return True

    def _complete(self, fits: list[int], empty: int, cells: bytearray) -> bool:
        """Fill the empty cells in place, and return whether it can be done.

        Cells that one digit fits are filled first.
        """
        while empty:
            once = twice = 0
            for fitting in fits:
                twice |= once & fitting
                once |= fitting
            if empty & ~once:
                return False
            forced = empty & ~twice
            if not forced:
                return self._branch(fits, empty, cells)
            empty ^= forced
            for digit, fitting in enumerate(fits):
                still_fitting, forced_cells = fitting, fitting & forced
                while forced_cells:
                    cell = forced_cells.bit_length() - 1
                    forced_cells ^= 1 << cell
                    if (
                        not still_fitting >> cell & 1
                    ):  # another of these cells, in one unit with this, has the digit
                        return False
                    still_fitting &= self._outside[cell]
                    cells[cell] = digit + 1
                fits[digit] = still_fitting
        return True

    def _branch(self, fits: list[int], empty: int, cells: bytearray) -> bool:
        """Try every digit in the cell that the fewest fit."""
        cell = self._most_constrained_cell(fits, empty)
        for digit, fitting in enumerate(fits):
            if fitting >> cell & 1:
                cells[cell] = digit + 1
                if self._complete(self._put_digit(fits, cell, digit), empty ^ 1 << cell, cells):
                    return True
        return False

    def _other_solution(self, fits: list[int], empty: int, cell: int, digit: int) -> bool:
        """Return whether the grid can be completed with another digit in the cell just emptied."""
        scratch = bytearray(self.rows**2)
        for other_digit, fitting_cells in enumerate(fits):
            fitting = fitting_cells >> cell & 1 and other_digit != digit
            if fitting and self._complete(self._put_digit(fits, cell, other_digit), empty, scratch):
                return True
        return False


_EMPTY = b"1" + b"0" * 255
"""Table that turns cells to binary digits."""


class _UnitSums:
    """A check that every unit of a full grid has every digit.

    Digit d counts as 2**d, and every cell has 16 bits of one long number. ``side`` powers of two
    sum to 2**side - 1 only if all are different. A multiplication adds up the cells of each row at
    the row's last cell, and those of each box. The remainder modulo 2**(16 side) - 1 adds up the
    rows, which are its digits.
    """

    def __init__(self, box: int) -> None:
        side = box**2
        row, cells = 16 * side, range(side)
        counted = [1 << digit for digit in range(side)]
        self._low, self._high = (
            bytes([0, *(x >> shift & 255 for x in counted)]).ljust(256) for shift in (0, 8)
        )
        self._across = sum(1 << 16 * k for k in cells)
        self._around = sum(1 << row * (k // box) + 16 * (k % box) for k in cells)
        row_ends = [row * k + 16 * (side - 1) for k in cells]
        box_ends = [
            row * (k // box * box + box - 1) + 16 * (k % box * box + box - 1) for k in cells
        ]
        self._row_ends, self._box_ends = (
            sum(0xFFFF << at for at in ends) for ends in (row_ends, box_ends)
        )
        full = 2**side - 1
        self._full_rows, self._full_boxes = (
            sum(full << at for at in ends) for ends in (row_ends, box_ends)
        )
        self._columns, self._full_columns = 2**row - 1, full * self._across

    def keeps_rules(self, cells: bytes) -> bool:
        """Return whether a full grid keeps every rule.

        ``cells`` are digits from 1 on, row by row.
        """
        wide = bytearray(2 * len(cells))
        wide[::2], wide[1::2] = cells.translate(self._low), cells.translate(self._high)
        word = int.from_bytes(wide, "little")
        return (
            word * self._across & self._row_ends == self._full_rows
            and word * self._around & self._box_ends == self._full_boxes
            and word % self._columns == self._full_columns
        )


class Sudoku4Puzzle(SudokuPuzzle):
    """The puzzle on 4 x 4 cells."""

    name = "Sudoku4"
    box = 2
    tiers = range(1, 12)
    few: ClassVar[dict[float, float]] = {
        1: 26,
        2: 206,
        3: 854,
        4: 2_816,
        5: 6_498,
        6: 11_658,
        7: 15_476,
        8: 15_606,
        9: 11_208,
        10: 5_512,
        11: 1_494,
    }


class Sudoku(CellFillTask):
    """Sudoku, one digit a step."""

    puzzle: SudokuPuzzle
    puzzle_class = SudokuPuzzle

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.side, self.box_side = self.puzzle.rows, self.puzzle.box

    def allowed_symbols(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Allow digits that are not in the row, column or box."""
        rows, columns, boxes = self._units(cells)
        side, box = self.side, self.box_side
        used = (
            rows[:, None]
            | columns[None, :]
            | jnp.repeat(jnp.repeat(boxes, box, axis=0), box, axis=1)
        )
        return (used.reshape(-1, 1) >> np.arange(side, dtype=np.uint16)) & 1 == 0

    def is_solved(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Return whether every unit has every digit."""
        return jnp.stack([(unit == 2**self.side - 1).all() for unit in self._units(cells)]).all()

    def _units(self, cells: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return the digits of all rows, columns and boxes as sets of bits.

        Rows and columns are ``(side,)``, boxes ``(box, box)``.
        """
        side, box, none = self.side, self.box_side, np.uint16(0)
        digits = jnp.where(cells > 0, np.uint16(1) << (cells - 1).astype(jnp.uint16), none).reshape(
            side, side
        )
        boxes = digits.reshape(box, box, box, box)
        return (
            union(digits, 1),
            union(digits),
            union(union(boxes, 3), 1),
        )

    def decorate(self, board: Board, instance: Any) -> None:
        """Draw the borders of the boxes."""
        for k in range(0, self.side + 1, self.box_side):
            board.line(k, 0, k, self.side)
            board.line(0, k, self.side, k)


class Sudoku4(Sudoku):
    """The task on 4 x 4 cells."""

    puzzle_class = Sudoku4Puzzle
