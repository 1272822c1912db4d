"""rlsuite/Minesweeper-v0: mark every hidden cell of a board as mine or safe.

The board is static: nothing is uncovered, and reasoning is enough. Instances have exactly one
solution. Without any one of the shown numbers there would be others. Mines are scattered and all
other cells shown. If the numbers and the count of mines leave one solution, numbers are hidden in
random order as long as it stays the only one. ``difficulty`` (of the task) is the side; 22 % of the
cells are mines. There are some 12,000 instances of side 4.

See :mod:`..shared.grid_filling` for actions, observations and rewards. The mask forbids exceeding
the number of mines around a cell or in all, and leaving too few cells to reach them, so a full grid
is right.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rlbench_suite.numerics.bitset import unpack_bits
from rlbench_suite.puzzle.dice import Dice

from ..shared.grid_filling import FillTask, Grid, GridPuzzle, at_least, rows_as_bits
from ..shared.symmetry import smallest_form, square_symmetries
from .neighbours import neighbours

MINED, SAFE, NUMBERED = 1, 2, 3
"""Symbols; ``NUMBERED + k`` is a safe cell that shows the number k."""
MAX_SIDE = 9
MINE_SHARE = 0.22

Number = list[Any]
"""Number for each cell of a row, as its binary digits from the lowest on.

A digit is a word with a bit for each cell.
"""
_DIGITS = 4
_HALF = 16
_NONE = np.uint32(0)


class Instance(NamedTuple):
    """Numbers that leave one arrangement of mines."""

    givens: np.ndarray
    """int8 ``(side**2,)``: numbers shown, and 0 for a hidden cell."""


class MinesweeperPuzzle(GridPuzzle[Instance]):
    """``tier`` is the side."""

    name = "Minesweeper"
    difficulty_is = (
        "cells that a depth-first search guesses, beyond what single numbers force, to prove "
        "uniqueness"
    )
    tier_is = "the side"
    tiers = range(3, MAX_SIDE + 1)
    few: ClassVar[dict[float, float]] = {4: 8_800}
    symbols = "*.012345678"
    fillable = 2
    meanings: ClassVar[dict[str, str]] = {"*": "mine", ".": "safe"}

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        side = self.square()
        self.mines = round(MINE_SHARE * side * side)
        self._around = neighbours(side, diagonally=True)

    def compose(self, dice: Dice) -> Instance | None:
        """Draw mines and all numbers, then hide numbers.

        Return None if all numbers together leave other solutions.
        """
        cells = self.rows**2
        mines = sum(1 << cell for cell in dice.sample(range(cells), self.mines))
        safe = [cell for cell in range(cells) if not mines >> cell & 1]
        givens = [0] * cells
        for cell in safe:
            givens[cell] = NUMBERED + (self._around[cell] & mines).bit_count()
        if not self._has_one_solution(givens):
            return None
        for cell in dice.shuffled(safe):
            symbol, givens[cell] = givens[cell], 0
            if not self._has_one_solution(givens):
                givens[cell] = symbol
        return Instance(np.array(givens, np.int8))

    def canonical(self, instance: Instance) -> bytes:
        """Return the least of the eight rotations and reflections."""
        cells = instance.givens.tolist()
        return smallest_form([cells[i] for i in order] for order in square_symmetries(self.rows))

    def rules(self) -> str:
        """State the rules."""
        return (
            "Minesweeper: every hidden cell (_) is a mine (*) or safe (.). A digit is a safe cell "
            "with exactly that "
            "many mines among the up to eight cells around it, diagonals included. There are "
            "exactly "
            f"{self.mines} mines."
        )

    def broken_rule(self, instance: Instance, grid: Grid) -> str:
        """Name a wrong count of mines, or the first number with a wrong count around it."""
        cells = [value for row in grid for value in row]
        mines = sum(1 << cell for cell, value in enumerate(cells) if value == MINED)
        if (count := mines.bit_count()) != self.mines:
            return f"there are {count} mines, not {self.mines}"
        for cell, value in enumerate(cells):
            if (
                value >= NUMBERED
                and (count := (self._around[cell] & mines).bit_count()) != value - NUMBERED
            ):
                where = f"row {cell // self.rows + 1}, column {cell % self.rows + 1}"
                return f"the number in {where} has {count} mines around it, not {value - NUMBERED}"
        return ""

    def solution(self, instance: Instance) -> Grid:
        """Return the first solution that a search finds; it is the only one."""
        givens = instance.givens.tolist()
        for mines in self._solutions(givens):
            return self._marked_grid(givens, mines)
        raise ValueError("these numbers have no solution")

    def difficulty(self, instance: Instance) -> float:
        """Count the cells guessed by a search for all solutions."""
        guessed = [0]
        for _ in self._solutions(instance.givens.tolist(), guessed):
            pass
        return float(guessed[0])

    def heuristic(self, instance: Instance) -> str:
        """Mark a cell as a mine if a number beside it has no more hidden cells than mines.

        Otherwise mark it as safe.
        """
        givens, mines = instance.givens.tolist(), 0
        hidden = sum(1 << cell for cell, value in enumerate(givens) if not value)
        for cell, value in enumerate(givens):
            around = self._around[cell] & hidden
            if value and around.bit_count() == value - NUMBERED:
                mines |= around
        return self.write_answer(self._marked_grid(givens, mines))

    # -- search: a bit for every cell --------------------------------------------------------------

    def _has_one_solution(self, givens: Sequence[int]) -> bool:
        return len(list(islice(self._solutions(givens), 2))) == 1

    def _solutions(self, givens: Sequence[int], guessed: list[int] | None = None) -> Iterator[int]:
        """Return all arrangements of mines, each as bits."""
        hidden = sum(1 << cell for cell, value in enumerate(givens) if not value)
        counts = [
            (self._around[c] & hidden, value - NUMBERED) for c, value in enumerate(givens) if value
        ]
        counts.append((hidden, self.mines))

        def search(mines: int, unknown: int) -> Iterator[int]:
            forced = self._force_cells(counts, mines, unknown)
            if forced is None:
                return
            mines, unknown = forced
            if not unknown:
                yield mines
                return
            open_counts = (cells & unknown for cells, _ in counts if cells & unknown)
            cell = min(open_counts, key=int.bit_count)
            cell &= -cell
            if guessed:
                guessed[0] += 1
            yield from search(mines | cell, unknown ^ cell)
            yield from search(mines, unknown ^ cell)

        return search(0, hidden)

    @staticmethod
    def _force_cells(
        counts: Sequence[tuple[int, int]], mines: int, unknown: int
    ) -> tuple[int, int] | None:
        """Return the mines and the unknown cells after all that single counts force.

        The result is None if a count is impossible.
        """
        previous_unknown = -1
        while previous_unknown != unknown:
            previous_unknown = unknown
            for cells, count in counts:
                if open_cells := cells & unknown:
                    lacking = count - (cells & mines).bit_count()
                    if lacking == 0:
                        unknown ^= open_cells
                    elif lacking == open_cells.bit_count():
                        mines |= open_cells
                        unknown ^= open_cells
                    elif not 0 < lacking < open_cells.bit_count():
                        return None
                elif (cells & mines).bit_count() != count:
                    return None
        return mines, unknown

    def _marked_grid(self, givens: Sequence[int], mines: int) -> Grid:
        return self.as_rows(
            [value or (MINED if mines >> cell & 1 else SAFE) for cell, value in enumerate(givens)]
        )


class Minesweeper(FillTask):
    """Minesweeper, one cell a step."""

    puzzle: MinesweeperPuzzle
    puzzle_class = MinesweeperPuzzle

    def mask(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Return the marks that every number around a cell and the count of mines still allow."""
        rows = self._rows(cells)
        mines_left, num_unknown = self.puzzle.mines - _count(rows.mines), _count(rows.unknown)
        near_full, near_tight = _widen(rows.full_cells()), _widen(rows.tight_cells())
        free = [
            jnp.where(spare, unknown & ~near[r], 0) >> c & 1
            for r, unknown in enumerate(rows.unknown)
            for c in range(self.puzzle.columns)
            for near, spare in ((near_full, mines_left > 0), (near_tight, mines_left < num_unknown))
        ]
        return unpack_bits(free, 1)

    def is_solved(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Return whether every number and the count of all mines are right."""
        rows = self._rows(cells)
        rows_of_flags = zip(rows.full_cells(), rows.tight_cells(), rows.numbered, strict=True)
        conditions = (full & tight == numbered for full, tight, numbered in rows_of_flags)
        return reduce(operator.and_, conditions) & (_count(rows.mines) == self.puzzle.mines)

    def _rows(self, cells: jax.Array) -> Rows:
        """Return the marks and numbers of the rows."""
        columns = self.puzzle.columns
        digits = (
            cells >> 2 * k & 1 | (cells >> 2 * k + 1 & 1).astype(jnp.uint32) << _HALF
            for k in range(2)
        )
        words = [rows_as_bits(pair.astype(jnp.uint32), columns, 1) for pair in digits]
        symbols = [
            [half for word in pair for half in (word & np.uint32(2**_HALF - 1), word >> _HALF)]
            for pair in zip(*words, strict=True)
        ]
        every = np.uint32(2**columns - 1)
        return Rows(
            symbols,
            mines=[a & ~(b | c | d) for a, b, c, d in symbols],
            unknown=[~(a | b | c | d) & every for a, b, c, d in symbols],
            numbered=[a & b | c | d for a, b, c, d in symbols],
        )


class Rows(NamedTuple):
    """A board row by row: sets of columns, as words."""

    symbols: list[Number]
    mines: list[jax.Array]
    unknown: list[jax.Array]
    numbered: list[jax.Array]

    def full_cells(self) -> list[jax.Array]:
        """Return the cells with a number that have all their mines."""
        showing = zip(self.numbered, self.symbols, _symbols(self.mines), strict=True)
        return [numbered & at_least(count, symbol) for numbered, symbol, count in showing]

    def tight_cells(self) -> list[jax.Array]:
        """Return the numbered cells around which all unknown cells must be mines."""
        possible = [
            mines | unknown for mines, unknown in zip(self.mines, self.unknown, strict=True)
        ]
        showing = zip(self.numbered, self.symbols, _symbols(possible), strict=True)
        return [numbered & at_least(symbol, count) for numbered, symbol, count in showing]


def _symbols(rows: list[jax.Array]) -> list[Number]:
    """Return the symbol of the number around each cell."""
    offset = [np.uint32(2**32 - 1) if NUMBERED >> k & 1 else _NONE for k in range(_DIGITS)]
    return [_plus(count, offset) for count in _count_around(rows)]


def _count_around(rows: list[jax.Array]) -> list[Number]:
    """Count the members of a set around each cell, including the cell itself."""
    numbers: list[Number] = [[row, *[_NONE] * (_DIGITS - 1)] for row in (_NONE, *rows, _NONE)]
    lines: list[Number] = [reduce(_plus, numbers[r : r + 3]) for r in range(len(rows))]
    return [reduce(_plus, (line, [d << 1 for d in line], [d >> 1 for d in line])) for line in lines]


def _plus(first: Number, second: Number) -> Number:
    """Return the sums, cell by cell."""
    carried, total = _NONE, []
    for a, b in zip(first, second, strict=True):
        total.append(a ^ b ^ carried)
        carried = a & b | carried & (a ^ b)
    return total


def _widen(rows: list[jax.Array]) -> list[jax.Array]:
    """Return these cells and all cells around them."""
    wide: list[Any] = [_NONE, *(row | row << 1 | row >> 1 for row in rows), _NONE]
    return [reduce(operator.or_, wide[r : r + 3]) for r in range(len(rows))]


def _count(rows: list[jax.Array]) -> jax.Array:
    """Return how many cells there are in all, int32."""
    return reduce(operator.add, (lax.population_count(row) for row in rows)).astype(jnp.int32)
