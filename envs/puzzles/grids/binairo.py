"""rlsuite/Binairo-v0: fill a grid with zeros and ones, equally many in every line.

No three symbols in a row are equal, nor are any two lines.

``difficulty`` is the side of the grid. Instances have exactly one solution: a cell is emptied only
if no solution has the other symbol in it. See :mod:`..shared.grid_filling` for actions,
observations and rewards; the mask forbids a symbol that makes three in a row, or of which its row
or column has enough.

On 4 x 4 cells there are only 72 full grids, and 33,880 instances with 6 cells to fill, up to
rotation, reflection and exchange of the symbols.
"""

from __future__ import annotations

import operator
from functools import reduce
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.bitset import unpack_bits
from rlbench_suite.puzzle.dice import Dice

from ..shared.grid_filling import FillTask, Grid, GridPuzzle, rows_as_bits
from ..shared.symmetry import relabel_values, smallest_form, square_symmetries
from .line_solver import LineSolver, Options

TO_FILL = {4: 6, 6: 22, 8: 40}
"""Cells to fill, by side."""

_NONE, _LOW_BITS, _HIGH_BITS = np.uint16(0), np.uint16(0x5555), np.uint16(0xAAAA)
"""Bits of a row, two a cell: no symbol, zeros, ones."""


class Instance(NamedTuple):
    """A grid with one solution."""

    givens: np.ndarray
    """int8 ``(side**2,)``: 0 for a cell to fill, 1 for the symbol 0, 2 for the symbol 1."""


class BinairoPuzzle(GridPuzzle[Instance]):
    """``tier`` is the side of the grid."""

    name = "Binairo"
    difficulty_is = (
        "lines that a search with propagation goes through until it has proven uniqueness"
    )
    tier_is = "the side of the grid"
    tiers = tuple(TO_FILL)
    few: ClassVar[dict[float, float]] = {4: 34_000}
    symbols = "01"
    fillable = 2

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.rows = self.columns = side = int(tier)
        solver = LineSolver(side, 2)
        numbers = ([n >> i & 1 for i in range(side)] for n in range(2**side))
        self._lines = [
            solver.arrangement(b + 1 for b in bits) for bits in numbers if not _flaw(bits)
        ]

    def compose(self, dice: Dice) -> Instance | None:
        """Draw a full grid and empty it in random order while it has one solution.

        The result is None if that ends too early.
        """
        solver = LineSolver(self.rows, 2)
        (full,) = solver.solutions([self._lines] * self.rows, [self._lines] * self.rows, 1, dice)
        cells = solver.cells(full)
        cells_to_empty = TO_FILL[self.rows]
        for cell in dice.shuffled(range(len(cells))):
            value = cells[cell]
            cells[cell] = 3 - value
            options_without_value = self._options(cells)
            cells[cell] = 0
            if solver.solutions(*options_without_value, 1):
                cells[cell] = value
            elif (cells_to_empty := cells_to_empty - 1) == 0:
                return Instance(np.array(cells, np.int8))
        return None

    def canonical(self, instance: Instance) -> bytes:
        """Return the least of the eight rotations and reflections.

        In each, the first symbol is named 0.
        """
        cells = instance.givens.tolist()
        return smallest_form(
            relabel_values(cells[i] for i in order) for order in square_symmetries(self.rows)
        )

    def rules(self) -> str:
        """State the rules."""
        half = self.rows // 2
        return (
            f"Binairo: fill the {self.rows} x {self.rows} grid with 0 and 1. Every row and every "
            f"column holds {half} "
            f"zeros and {half} ones; no row or column has three equal symbols side by side; no two "
            "rows are equal, "
            "and no two columns are equal."
        )

    def broken_rule(self, instance: Instance, grid: Grid) -> str:
        """Name the first line with a flaw, or the first two that are equal."""
        for kind, lines in (
            ("row", grid),
            ("column", [list(column) for column in zip(*grid, strict=True)]),
        ):
            for i, line in enumerate(lines):
                if flaw := _flaw([value - 1 for value in line]):
                    return f"{kind} {i + 1} {flaw}"
                if line in lines[:i]:
                    return f"{kind}s {lines.index(line) + 1} and {i + 1} are equal"
        return ""

    def solution(self, instance: Instance) -> Grid:
        """Return the first solution that a search finds; it is the only one."""
        solver = LineSolver(self.rows, 2)
        solutions = solver.solutions(*self._options(instance.givens.tolist()), 1)
        if not solutions:
            raise ValueError("this grid has no solution")
        return self.as_rows(solver.cells(solutions[0]))

    def difficulty(self, instance: Instance) -> float:
        """Count the lines that a search for a second solution reads."""
        solver = LineSolver(self.rows, 2)
        solver.solutions(*self._options(instance.givens.tolist()), 2)
        return float(solver.read)

    def heuristic(self, instance: Instance) -> str:
        """Put 0 into each cell in reading order where it fits, else 1.

        It does not fit where it would be one too many or the third in a row.
        """
        side, half = self.rows, self.rows // 2
        grid = self.clue_rows(instance)
        for r in range(side):
            for c in range(side):
                if grid[r][c] == 0:
                    row, column = grid[r], [line[c] for line in grid]
                    full = row.count(1) == half or column.count(1) == half
                    grid[r][c] = (
                        2 if full or _makes_three(row, c, 1) or _makes_three(column, r, 1) else 1
                    )
        return self.write_answer(grid)

    def _options(self, cells: list[int]) -> tuple[Options, Options]:
        """Return the arrangements of rows and columns that keep to the cells that are not 0."""
        rows = self.as_rows(cells)
        return [self._fitting_arrangements(row) for row in rows], [
            self._fitting_arrangements(column) for column in zip(*rows, strict=True)
        ]

    def _fitting_arrangements(self, line: list[int] | tuple[int, ...]) -> list[int]:
        closed = sum(3 - value << 2 * i for i, value in enumerate(line) if value)
        return [option for option in self._lines if not option & closed]


def _flaw(bits: list[int]) -> str:
    """Describe the fault of a single full line; empty if it has none."""
    if any(bits[i] == bits[i + 1] == bits[i + 2] for i in range(len(bits) - 2)):
        return "has three equal symbols side by side"
    return "" if 2 * sum(bits) == len(bits) else "does not hold as many zeros as ones"


def _makes_three(line: list[int], i: int, value: int) -> bool:
    """Return whether a value at place ``i`` makes three in a row."""
    return any(
        line[j:i] + line[i + 1 : j + 3] == [value, value] for j in range(max(i - 2, 0), i + 1)
    )


class Binairo(FillTask):
    """Binairo, one symbol a step."""

    puzzle: BinairoPuzzle
    puzzle_class = BinairoPuzzle
    bank_size = 2048

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.side = self.puzzle.rows

    def mask(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Allow symbols that do not make three in a row and do not exceed half of a line."""
        rows = self._rows(cells)
        above: list[Any] = [_NONE, _NONE, *rows]
        below: list[Any] = [*rows, _NONE, _NONE]
        enough = self._complete_symbols(rows)
        free = []
        for r, row in enumerate(rows):
            thirds = (row << 2 & row << 4) | (row >> 2 & row >> 4) | (row << 2 & row >> 2)
            thirds |= (
                (above[r] & above[r + 1])
                | (below[r + 1] & below[r + 2])
                | (above[r + 1] & below[r + 1])
            )
            closed = (
                thirds
                | enough
                | self._symbol_if_complete(row, _LOW_BITS)
                | self._symbol_if_complete(row, _HIGH_BITS)
            )
            empty = ~(row | row >> 1) & _LOW_BITS
            free.append((empty | empty << 1) & ~closed & self._first_cells(self.side))
        return unpack_bits(free, 2 * self.side)

    def is_solved(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Return whether every line is balanced, without three in a row, and unlike the others."""
        side, rows = self.side, self._rows(cells)
        conditions = [lax.population_count(row & _HIGH_BITS) == side // 2 for row in rows]
        conditions.append(self._complete_symbols(rows) == self._first_cells(side))
        conditions += [row & row >> 2 & row >> 4 == 0 for row in rows]
        conditions += [rows[r] & rows[r + 1] & rows[r + 2] == 0 for r in range(side - 2)]
        conditions += [row_above != row_below for row_above, row_below in combinations(rows, 2)]
        for distance in range(1, side):
            different = reduce(operator.or_, (row ^ row >> 2 * distance for row in rows))
            conditions.append(~different & _HIGH_BITS & self._first_cells(side - distance) == 0)
        return reduce(operator.and_, conditions)

    def _rows(self, cells: jax.Array) -> list[jax.Array]:
        """Return each row as a uint16 with two bits for each cell.

        There is one bit for each symbol, in the order of actions.
        """
        return rows_as_bits(cells.astype(jnp.uint16), self.side, 2)

    def _complete_symbols(self, rows: list[jax.Array]) -> jax.Array:
        """Return the symbols of which each column has enough, as bits of a row.

        The symbols are counted in binary digits.
        """
        digits: list[Any] = [_NONE] * 4
        for row in rows:
            carried: Any = row
            for i, digit in enumerate(digits):
                digits[i], carried = digit ^ carried, digit & carried
        half = (digit if self.side // 2 >> i & 1 else ~digit for i, digit in enumerate(digits))
        full: jax.Array = reduce(operator.and_, half) & self._first_cells(self.side)
        return full

    def _symbol_if_complete(self, row: jax.Array, symbol: np.uint16) -> jax.Array:
        """Return the bits of a symbol if a row has enough of it."""
        return jnp.where(lax.population_count(row & symbol) == self.side // 2, symbol, _NONE)

    @staticmethod
    def _first_cells(cells: int) -> np.uint16:
        """Return the bits of the first cells of a row."""
        return np.uint16(4**cells - 1)
