"""rlsuite/Campsite-v0: pitch a tent beside every tree, by the counts of rows and columns.

No two tents touch.

``difficulty`` is the side of the grid. In an instance, exactly one arrangement keeps the counts,
lets no tents touch, and puts a tent beside every tree and a tree beside every tent. It also gives
every tree a tent of its own, so the interactive task need not check the pairing; ``judge`` does.

See :mod:`..shared.grid_filling` for actions, observations and rewards; the mask forbids a tent that
touches another, has no tree beside it, or exceeds a count. It also forbids grass that leaves a row
or column too few cells for its tents.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import reduce
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.bitset import unpack_bits
from rlbench_suite.puzzle.dice import Dice

from ..shared.board import Board
from ..shared.grid_filling import FillTask, Grid, GridPuzzle, rows_as_bits
from ..shared.symmetry import smallest_form, square_symmetries

TENTS = {5: 5, 6: 7, 8: 12}
"""Side to the number of tents, and of trees."""
GRASS, TENT, TREE = 1, 2, 3


class Instance(NamedTuple):
    """Trees and counts with one solution."""

    givens: np.ndarray
    """int8 ``(side**2,)``: 3 for a tree, 0 for a cell to fill (1 for grass, 2 for a tent)."""
    counts: np.ndarray
    """int8 ``(2 * side,)``: tents in each row, then in each column."""


class CampsitePuzzle(GridPuzzle[Instance]):
    """``tier`` is the side of the grid."""

    name = "Campsite"
    difficulty_is = (
        "rows of tents that a depth-first search from the top tries until it has proven uniqueness"
    )
    tier_is = "the side of the grid"
    tiers = tuple(TENTS)
    few: ClassVar[dict[float, float]] = {5: 27_000}
    symbols = ".AT"
    fillable = 2
    meanings: ClassVar[dict[str, str]] = {".": "grass", "A": "tent", "T": "tree"}

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.rows = self.columns = int(tier)

    def compose(self, dice: Dice) -> Instance | None:
        """Draw random tents that do not touch and a random tree beside each.

        Return None if that gives no instance.
        """
        side, num_tents = self.rows, TENTS[self.rows]
        tents: set[int] = set()
        trees: set[int] = set()
        for cell in dice.shuffled(range(side * side)):
            if len(tents) < num_tents and not any(
                neighbour in tents for neighbour in self._neighbours(cell, diagonally=True)
            ):
                tents.add(cell)
        for tent in sorted(tents):
            free_cells = [
                cell for cell in self._neighbours(tent) if cell not in tents and cell not in trees
            ]
            if not free_cells:
                return None
            trees.add(dice.choice(free_cells))
        if len(tents) < num_tents:
            return None
        cells = np.zeros(side * side, np.int8)
        cells[sorted(trees)] = TREE
        rows = [sum(tent // side == i for tent in tents) for i in range(side)]
        columns = [sum(tent % side == i for tent in tents) for i in range(side)]
        instance = Instance(cells, np.array(rows + columns, np.int8))
        search = _Search(self, instance).arrangements()
        next(search)
        return instance if next(search, None) is None else None

    def canonical(self, instance: Instance) -> bytes:
        """Return the least of the eight rotations and reflections."""
        side, counts, forms = self.rows, instance.counts.tolist(), []
        cells = instance.givens.tolist()
        for order in square_symmetries(side):
            turned = order[0] // side != order[1] // side  # rows become columns
            rows, columns = order[::side], order[:side]
            if turned:
                lines = [side + i % side for i in rows] + [i // side for i in columns]
            else:
                lines = [i // side for i in rows] + [side + i % side for i in columns]
            forms.append([cells[i] for i in order] + [counts[i] for i in lines])
        return smallest_form(forms)

    def rules(self) -> str:
        """State the rules."""
        return (
            "Campsite: T is a tree, A a tent, . is grass. Put tents into some of the free cells "
            f"of the {self.rows} x "
            f"{self.rows} grid, and grass into the others, so that trees and tents can be paired "
            "off: each tree with "
            "one tent directly above, below, left or right of it, no tent used twice or left over. "
            "No two tents touch, "
            "not even diagonally. The numbers of tents in every row and every column are given."
        )

    def clues(self, instance: Instance) -> str:
        """State the number of tents in each row and column."""
        rows, columns = np.asarray(instance.counts).reshape(2, -1).tolist()
        return (
            f"Tents in the rows, from the top: {' '.join(map(str, rows))}\n"
            f"Tents in the columns, from the left: {' '.join(map(str, columns))}"
        )

    def broken_rule(self, instance: Instance, grid: Grid) -> str:
        """Name a wrong count, tents that touch, or the impossibility of a pairing."""
        counts, side = instance.counts.tolist(), self.rows
        for kind, lines, line_counts in (
            ("row", grid, counts[:side]),
            ("column", list(zip(*grid, strict=True)), counts[side:]),
        ):
            for i, (line, count) in enumerate(zip(lines, line_counts, strict=True)):
                if line.count(TENT) != count:
                    return f"{kind} {i + 1} has {line.count(TENT)} tents, not {count}"
        cells = [value for row in grid for value in row]
        tents = [cell for cell, value in enumerate(cells) if value == TENT]
        for tent in tents:
            if any(
                cells[neighbour] == TENT for neighbour in self._neighbours(tent, diagonally=True)
            ):
                return (
                    f"the tent in row {tent // side + 1}, column {tent % side + 1} touches another"
                )
        return "" if self._can_pair(cells, tents) else "trees and tents cannot be paired off"

    def solution(self, instance: Instance) -> Grid:
        """Return the first solution that a search finds; it is the only one."""
        rows = next(_Search(self, instance).arrangements(), None)
        if rows is None:
            raise ValueError("this campsite has no solution")
        clues = self.clue_rows(instance)
        return [
            [clues[r][c] or (TENT if tents >> c & 1 else GRASS) for c in range(self.columns)]
            for r, tents in enumerate(rows)
        ]

    def difficulty(self, instance: Instance) -> float:
        """Count the rows tried by a search for a second solution."""
        search = _Search(self, instance)
        for _ in search.arrangements():
            pass
        return float(search.tried)

    def heuristic(self, instance: Instance) -> str:
        """Pitch a tent in reading order wherever the counts leave room and the place is legal.

        A tree must be beside the tent, and no other tent may touch it.
        """
        side, tents_left = self.rows, instance.counts.tolist()
        cells = instance.givens.tolist()
        for cell, value in enumerate(instance.givens.tolist()):
            row, column = cell // side, side + cell % side
            if value == 0:
                lonely = not any(
                    cells[neighbour] == TENT
                    for neighbour in self._neighbours(cell, diagonally=True)
                )
                beside = any(cells[neighbour] == TREE for neighbour in self._neighbours(cell))
                fits = lonely and beside and tents_left[row] > 0 and tents_left[column] > 0
                cells[cell] = TENT if fits else GRASS
                tents_left[row] -= fits
                tents_left[column] -= fits
        return self.write_answer(self.as_rows(cells))

    def _neighbours(self, cell: int, *, diagonally: bool = False) -> list[int]:
        """Return the four neighbours of a cell, or all eight, within the grid."""
        side = self.rows
        row, column = divmod(cell, side)
        return [
            r * side + c
            for r in range(max(row - 1, 0), min(row + 2, side))
            for c in range(max(column - 1, 0), min(column + 2, side))
            if (diagonally or r == row or c == column) and (r, c) != (row, column)
        ]

    def _can_pair(self, cells: list[int], tents: list[int]) -> bool:
        """Return whether trees and tents can be paired off, by augmenting paths."""
        tent_of: dict[int, int] = {}

        def find(tent: int, tried_trees: set[int]) -> bool:
            for tree in self._neighbours(tent):
                if cells[tree] == TREE and tree not in tried_trees:
                    tried_trees.add(tree)
                    if tree not in tent_of or find(tent_of[tree], tried_trees):
                        tent_of[tree] = tent
                        return True
            return False

        return cells.count(TREE) == len(tents) and all(find(tent, set()) for tent in tents)


class _Search:
    """Depth-first search for the tents of one row after another, each row a set of bits."""

    def __init__(self, puzzle: CampsitePuzzle, instance: Instance) -> None:
        self.tried = 0
        side, self._every = puzzle.rows, 2**puzzle.rows - 1
        grid = puzzle.clue_rows(instance)
        self._counts = instance.counts.tolist()
        self._trees = [sum(1 << c for c, value in enumerate(row) if value == TREE) for row in grid]
        fields = [self._cells_beside(self._trees, r) & ~self._trees[r] for r in range(side)]
        separate = [tents for tents in range(2**side) if not tents & tents >> 1]
        self._options = [
            [tents for tents in separate if not tents & ~field and tents.bit_count() == count]
            for field, count in zip(fields, self._counts[:side], strict=True)
        ]

    def arrangements(self) -> Iterator[list[int]]:
        """Yield the tents of each row for every possible arrangement.

        In an arrangement every tree has a tent beside it and every tent a tree.
        """
        yield from self._extend([], self._counts[len(self._options) :])

    def _extend(self, rows: list[int], counts_left: list[int]) -> Iterator[list[int]]:
        if len(rows) == len(self._options):
            if not any(counts_left) and not self._lonely_trees(rows, len(rows) - 1):
                yield rows
            return
        above = rows[-1] if rows else 0
        touched = above | above << 1 | above >> 1
        for tents in self._options[len(rows)]:
            if tents & touched:
                continue
            self.tried += 1
            new_counts_left = [count - (tents >> c & 1) for c, count in enumerate(counts_left)]
            longer = [*rows, tents]
            if min(new_counts_left) >= 0 and not (
                rows and self._lonely_trees(longer, len(rows) - 1)
            ):
                yield from self._extend(longer, new_counts_left)

    def _lonely_trees(self, rows: list[int], row: int) -> int:
        """Return the trees of a row that have no tent beside them."""
        return self._trees[row] & ~self._cells_beside(rows, row)

    def _cells_beside(self, rows: list[int], row: int) -> int:
        """Return the cells of a row that have a neighbour in these sets."""
        middle = rows[row]
        above = rows[row - 1] if row else 0
        below = rows[row + 1] if row + 1 < len(rows) else 0
        return (middle << 1 | middle >> 1 | above | below) & self._every


class Campsite(FillTask):
    """Campsite, one cell a step."""

    puzzle: CampsitePuzzle
    puzzle_class = CampsitePuzzle
    bank_size = 4096

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.side = self.puzzle.rows

    @property
    def fact_count(self) -> int:
        """A count for each row and column."""
        return 2 * self.puzzle.rows

    def facts(self, instance: Any) -> jax.Array:
        """Return the counts, as fractions of the largest number of tents that fit into a line."""
        return instance.counts.astype(self.dtype) / self.dtype.type((self.side + 1) // 2)

    @property
    def fact_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`facts`."""

        unit = f"{(self.side + 1) // 2} tents"
        return tuple(
            Component(f"{line}_counts", f"how many tents stand in each {line}", unit, (self.side,))
            for line in ("row", "column")
        )

    def mask(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Allow grass and tents that the rules leave open.

        Grass must leave its lines room for tents. Tents must be beside a tree, apart, and within
        the counts.
        """
        gaps, tents, trees = self._rows(cells)
        pitched, free = self._tally(tents), self._tally(gaps)
        tents_left = [instance.counts[i] - count for i, count in enumerate(pitched)]
        lacking = self._cross([count > 0 for count in tents_left])
        spare = self._cross(
            [count > needed for count, needed in zip(free, tents_left, strict=True)]
        )
        fits, wide = self._cells_beside(trees), [row | row << 2 | row >> 2 for row in tents]
        rows = []
        for r, gap in enumerate(gaps):
            touched = reduce(operator.or_, wide[max(r - 1, 0) : r + 2])
            tent = gap & fits[r] & ~touched & lacking[r]
            rows.append(gap & spare[r] | tent << 1)
        return unpack_bits(rows, 2 * self.side)

    def is_solved(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Return whether counts are right, no tents touch, and trees and tents stand in pairs.

        Each tree must be beside a tent and each tent beside a tree.
        """
        _, tents, trees = self._rows(cells)
        conditions = [count == instance.counts[i] for i, count in enumerate(self._tally(tents))]
        conditions += [row & row << 2 == 0 for row in tents]
        conditions += [row & (near | near << 2 | near >> 2) == 0 for near, row in pairwise(tents)]
        for pieces, counterparts in ((tents, trees), (trees, tents)):
            conditions += [
                row & ~near == 0
                for row, near in zip(pieces, self._cells_beside(counterparts), strict=True)
            ]
        return reduce(operator.and_, conditions)

    def _rows(self, cells: jax.Array) -> tuple[list[jax.Array], list[jax.Array], list[jax.Array]]:
        """Return the empty cells, the tents and the trees of each row.

        A cell has two bits, of which the lower one is set.
        """
        words = rows_as_bits(cells.astype(jnp.uint32), self.side, 2)
        every = np.uint32(sum(4**i for i in range(self.side)))
        pairs = [(word & every, word >> 1 & every) for word in words]
        gaps, tents, trees = ([] for _ in range(3))
        for low, high in pairs:
            gaps.append(every & ~(low | high))
            tents.append(high & ~low)
            trees.append(high & low)
        return gaps, tents, trees

    def _tally(self, rows: list[jax.Array]) -> list[jax.Array]:
        """Count the members of a set in each row, then in each column, int8."""
        counts = [lax.population_count(row) for row in rows]
        counts += [
            reduce(operator.add, (row >> 2 * i & 1 for row in rows)) for i in range(self.side)
        ]
        return [count.astype(jnp.int8) for count in counts]

    def _cross(self, lines: list[jax.Array]) -> list[jax.Array]:
        """Return for each row its cells in these rows and columns."""
        columns = reduce(
            operator.or_,
            (line.astype(jnp.uint32) << 2 * i for i, line in enumerate(lines[self.side :])),
        )
        return [jnp.where(line, columns, 0) for line in lines[: self.side]]

    @staticmethod
    def _cells_beside(rows: list[jax.Array]) -> list[jax.Array]:
        """Return the cells that are directly beside, above or below one of these cells."""
        none = jnp.uint32(0)
        above, below = [none, *rows], [*rows[1:], none]
        return [row << 2 | row >> 2 | above[r] | below[r] for r, row in enumerate(rows)]

    def decorate(self, board: Board, instance: Any) -> None:
        """Draw the counts, on the left and above."""
        rows, columns = np.asarray(instance.counts).reshape(2, -1).tolist()
        for i in range(self.side):
            board.text(i, -1, str(rows[i]), scale=0.8)
            board.text(-1, i, str(columns[i]), scale=0.8)
