"""rlsuite/StarBattle-v0: one star in every row, column and region, no two of them touching.

``difficulty`` is the side of the grid. Instances have exactly one solution: as long as there is a
second one, one of its cells moves to a neighbouring region. On the smallest grid some cells are
given. See :mod:`..shared.grid_filling` for actions, observations and rewards; the mask forbids a
star that touches another or is the second of its row, column or region, and an empty cell that
leaves one of them without a place for its star. Regions are observed one-hot.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.reductions import union
from rlbench_suite.puzzle.dice import Dice

from ..shared.board import Board
from ..shared.grid_filling import CellFillTask, Grid, GridPuzzle, two_symbol_mask
from ..shared.symmetry import relabel_values, smallest_form, square_symmetries

NUM_GIVENS = {5: 12, 6: 0, 7: 0}
"""Number of given cells, by side."""
NOTHING, STAR = 1, 2
REPAIRS = 60
"""Number of changes of a cell's region after which a draw is abandoned."""


class Instance(NamedTuple):
    """Regions with one solution."""

    givens: np.ndarray
    """int8 ``(side**2,)``: 0 for a cell to fill, 1 for no star, 2 for a star."""
    regions: np.ndarray
    """int8 ``(side**2,)``: the region of each cell, from 0."""


class StarBattlePuzzle(GridPuzzle[Instance]):
    """``tier`` is the side of the grid."""

    name = "StarBattle"
    difficulty_is = (
        "stars that a depth-first search, row after row, tries until it has proven uniqueness"
    )
    tier_is = "the side of the grid"
    tiers = tuple(NUM_GIVENS)
    symbols = ".*"
    fillable = 2
    meanings: ClassVar[dict[str, str]] = {".": "empty", "*": "star"}

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.rows = self.columns = side = int(tier)
        steps = ((0, 1), (1, 0), (0, -1), (-1, 0))
        self._beside = [
            [
                r * side + c
                for dr, dc in steps
                if 0 <= (r := cell // side + dr) < side > (c := cell % side + dc) >= 0
            ]
            for cell in range(side * side)
        ]

    def compose(self, dice: Dice) -> Instance | None:
        """Draw stars, grow regions around them, and repair these to leave one solution.

        The result is None on failure.
        """
        side = self.rows
        columns = dice.shuffled(range(side))
        if any(abs(column - next_column) < 2 for column, next_column in pairwise(columns)):
            return None
        stars = [r * side + c for r, c in enumerate(columns)]
        regions = self._grow_regions(stars, dice)
        empty = [0] * side**2
        for _ in range(REPAIRS):
            other_solutions = [s for s in _Search(self, empty, regions).solutions(2) if s != stars]
            if not other_solutions:
                givens = empty
                for cell in dice.sample(range(side * side), NUM_GIVENS[side]):
                    givens[cell] = STAR if cell in stars else NOTHING
                return Instance(np.array(givens, np.int8), np.array(regions, np.int8))
            moves = [
                (cell, regions[neighbour])
                for cell in other_solutions[0]
                if cell not in stars and self._is_dispensable(cell, regions)
                for neighbour in self._beside[cell]
                if regions[neighbour] != regions[cell]
            ]
            if not moves:
                return None
            cell, region = dice.choice(moves)
            regions[cell] = region
        return None

    def canonical(self, instance: Instance) -> bytes:
        """Return the least of the eight rotations and reflections.

        Regions are renamed in order of first occurrence.
        """
        givens, regions = instance.givens.tolist(), instance.regions.tolist()
        return smallest_form(
            relabel_values(regions[i] + 1 for i in order) + [givens[i] for i in order]
            for order in square_symmetries(self.rows)
        )

    def rules(self) -> str:
        """State the rules."""
        return (
            f"Star Battle: put stars (*) into the {self.rows} x {self.rows} grid and leave the "
            "other cells empty (.). "
            "Every row, every column and every region holds exactly one star, and no two stars "
            "touch, not even "
            "diagonally. The regions are named by letters."
        )

    def clues(self, instance: Instance) -> str:
        """State the regions."""
        names = ["ABCDEFG"[region] for region in instance.regions.tolist()]
        rows = (names[r * self.columns : (r + 1) * self.columns] for r in range(self.rows))
        return "\n".join(("Regions:", *(" ".join(row) for row in rows)))

    def broken_rule(self, instance: Instance, grid: Grid) -> str:
        """Name a unit with a wrong number of stars, or two stars that touch."""
        side, regions = self.rows, instance.regions.tolist()
        stars = [r * side + c for r in range(side) for c in range(side) if grid[r][c] == STAR]
        for kind, unit_of in (
            ("row", [star // side for star in stars]),
            ("column", [star % side for star in stars]),
            ("region", [regions[star] for star in stars]),
        ):
            for i in range(side):
                if (count := unit_of.count(i)) != 1:
                    return (
                        f"{kind} {'ABCDEFG'[i] if kind == 'region' else i + 1} holds {count} "
                        "stars, not one"
                    )
        for row, (upper, next_star) in enumerate(pairwise(stars), 1):
            if abs(upper % side - next_star % side) == 1:
                return f"the stars in rows {row} and {row + 1} touch"
        return ""

    def solution(self, instance: Instance) -> Grid:
        """Return the first solution that a search finds; it is the only one."""
        solutions = _Search(self, instance.givens.tolist(), instance.regions.tolist()).solutions(1)
        if not solutions:
            raise ValueError("this grid has no solution")
        return self.as_rows(
            [STAR if cell in solutions[0] else NOTHING for cell in range(self.rows**2)]
        )

    def difficulty(self, instance: Instance) -> float:
        """Count the stars tried by a search for a second solution."""
        search = _Search(self, instance.givens.tolist(), instance.regions.tolist())
        search.solutions(2)
        return float(search.tried)

    def heuristic(self, instance: Instance) -> str:
        """Place stars in reading order, wherever no star so far is in the way."""
        side, regions = self.rows, instance.regions.tolist()
        cells = instance.givens.tolist()
        stars = [cell for cell, value in enumerate(cells) if value == STAR]
        for cell, value in enumerate(cells):
            if value == 0:
                clash = any(
                    cell // side == star // side
                    or cell % side == star % side
                    or regions[cell] == regions[star]
                    or max(abs(cell // side - star // side), abs(cell % side - star % side)) == 1
                    for star in stars
                )
                cells[cell] = NOTHING if clash else STAR
                stars += [] if clash else [cell]
        return self.write_answer(self.as_rows(cells))

    def _grow_regions(self, seeds: list[int], dice: Dice) -> list[int]:
        """Return a region around each seed.

        Again and again, a random border cell joins a region beside it.
        """
        regions = [-1] * self.rows**2
        for region, seed in enumerate(seeds):
            regions[seed] = region
        border = [(cell, seed) for seed in seeds for cell in self._beside[seed]]
        while border:
            i = dice.below(len(border))
            border[i], border[-1] = border[-1], border[i]
            cell, parent = border.pop()
            if regions[cell] < 0:
                regions[cell] = regions[parent]
                border += [
                    (neighbour, cell) for neighbour in self._beside[cell] if regions[neighbour] < 0
                ]
        return regions

    def _is_dispensable(self, cell: int, regions: list[int]) -> bool:
        """Return whether the region of a cell stays connected without it."""
        other_cells = {
            other_cell
            for other_cell, region in enumerate(regions)
            if region == regions[cell] and other_cell != cell
        }
        reached = [next(iter(other_cells))] if other_cells else []
        connected = set(reached)
        for member in reached:  # grows as it is gone through
            new = other_cells.intersection(self._beside[member]) - connected
            connected |= new
            reached += new
        return len(connected) == len(other_cells) > 0


class _Search:
    """Depth-first search that places one star in each row; columns are bits."""

    def __init__(self, puzzle: StarBattlePuzzle, givens: list[int], regions: list[int]) -> None:
        self.tried = 0
        side = self._side = puzzle.rows
        self._regions = [
            [1 << region for region in regions[r * side : (r + 1) * side]] for r in range(side)
        ]
        self._open = []
        for r in range(side):
            row = givens[r * side : (r + 1) * side]
            open_value = STAR if STAR in row else 0
            self._open.append(sum(1 << c for c, value in enumerate(row) if value == open_value))

    def solutions(self, max_solutions: int) -> list[list[int]]:
        """Return the cells with stars, row by row, of at most ``max_solutions`` solutions."""
        return self._extend([], 0, 0, 0, max_solutions)

    def _extend(
        self, stars: list[int], columns: int, regions: int, above: int, max_solutions: int
    ) -> list[list[int]]:
        row = len(stars)
        if row == self._side:
            return [stars]
        solutions: list[list[int]] = []
        free = self._open[row] & ~(columns | above << 1 | above >> 1)
        while free and len(solutions) < max_solutions:
            column = free & -free
            free ^= column
            column_number = column.bit_length() - 1
            region = self._regions[row][column_number]
            if not region & regions:
                self.tried += 1
                longer = [*stars, row * self._side + column_number]
                solutions += self._extend(
                    longer,
                    columns | column,
                    regions | region,
                    column,
                    max_solutions - len(solutions),
                )
        return solutions


class StarBattle(CellFillTask):
    """Star Battle, one cell a step."""

    puzzle: StarBattlePuzzle
    puzzle_class = StarBattlePuzzle

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.side = self.puzzle.rows
        self.every = np.uint8(2**self.side - 1)

    @property
    def fact_count(self) -> int:
        """Number of facts: a one-hot region for each cell."""
        return self.puzzle.rows**3

    def facts(self, instance: Any) -> jax.Array:
        """Return the regions, one-hot."""
        return self._members(instance).astype(self.dtype).reshape(-1)

    @property
    def fact_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`facts`."""

        meaning = "[row, column, region]: which region the cell belongs to, one-hot"
        return (Component("regions", meaning, shape=(self.side,) * 3),)

    def allowed_symbols(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Allow stars that are the first of their units and touch none.

        An empty cell is allowed if it leaves every unit a place.
        """
        side, shifts = self.side, np.arange(self.side, dtype=np.uint8)
        members = self._members(instance)
        stars, gaps = (cells == value for value in (STAR, 0))
        rows = self._columns_of(stars)
        touched = rows | rows << 1 | rows >> 1
        touched |= jnp.concatenate([touched[1:], touched[:1] & 0]) | jnp.concatenate(
            [touched[:1] & 0, touched[:-1]]
        )
        columns = union(rows)
        closed = jnp.where(rows > 0, self.every, touched | columns)
        second = (members & (members & stars[:, None]).any(0)).any(1)
        star = ((closed[:, None] >> shifts) & 1 == 0).reshape(-1) & ~second
        last = (
            members & (~(members & stars[:, None]).any(0) & ((members & gaps[:, None]).sum(0) == 1))
        ).any(1)
        grid = gaps.reshape(side, side)
        last_of_row = (rows == 0) & (grid.sum(1) == 1)
        last_of_column = ((columns >> shifts) & 1 == 0) & (grid.sum(0) == 1)
        nothing = ~(last | (last_of_row[:, None] | last_of_column[None, :]).reshape(-1))
        return two_symbol_mask(nothing, star)

    def is_solved(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Return whether every unit has one star and no two touch."""
        stars = cells == STAR
        rows = self._columns_of(stars)
        touching = rows[1:] & (rows[:-1] << 1 | rows[:-1] >> 1)
        columns = union(rows)
        single = (
            (lax.population_count(rows) == 1).all()
            & (columns == self.every)
            & (touching == 0).all()
        )
        return single & (self._members(instance) & stars[:, None]).any(0).all()

    def _members(self, instance: Any) -> jax.Array:
        """Return the region of each cell one-hot, bool ``(cells, side)``."""
        members: jax.Array = instance.regions[:, None] == np.arange(self.side, dtype=np.int8)
        return members

    def _columns_of(self, marked: jax.Array) -> jax.Array:
        """Return the marked columns of each row as a set, uint8 ``(side,)``."""
        grid = marked.reshape(self.side, self.side).astype(jnp.uint8)
        columns = jnp.zeros(self.side, jnp.uint8)
        for i in range(self.side):
            columns |= grid[:, i] << i
        return columns

    def decorate(self, board: Board, instance: Any) -> None:
        """Draw the borders of the regions."""
        side = self.side
        regions = np.pad(np.asarray(instance.regions).reshape(side, side), 1, constant_values=-1)
        for r in range(side + 1):
            for c in range(side + 1):
                if regions[r, c + 1] != regions[r + 1, c + 1] and c < side:
                    board.line(r, c, r, c + 1)
                if regions[r + 1, c] != regions[r + 1, c + 1] and r < side:
                    board.line(r, c, r + 1, c)
