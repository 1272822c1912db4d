"""rlsuite/Skyscraper-v0 and rlsuite/SumSkyscraper-v0: a Latin square of towers.

Views from the edges are the clues.

A tower is seen from an edge if all towers between it and the edge are lower. A clue at the edge
gives the number of towers of its row or column that are seen from there or, in SumSkyscraper, the
sum of their heights. ``difficulty`` is the side of the grid. Instances have exactly one solution: a
clue is hidden only if no solution contradicts it.

See :mod:`..shared.grid_filling` for actions, observations and rewards; the mask forbids a height
that stands in the cell's row or column, and one that completes a row or column against its clues.
Each clue is observed one-hot, or zeros if hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.puzzle.dice import Dice

from ..shared.board import Board
from ..shared.grid_filling import CellFillTask, Grid, GridPuzzle
from ..shared.symmetry import smallest_form, square_symmetries
from .line_solver import LineSolver, Options

SHAPES = {4: (10, 4), 5: (0, 6), 6: (0, 8)}
"""Least number of given towers, and number of hidden clues, by side."""
EDGES = ("above, column", "below, column", "the left, row", "the right, row")


class Instance(NamedTuple):
    """A grid and clues with one solution."""

    givens: np.ndarray
    """int8 ``(side**2,)``: 0 for a cell to fill."""
    clues: np.ndarray
    """int8 ``(4 * side,)``: clues from above, below, left and right; 0 if hidden.

    Columns and rows are in order.
    """


class SkyscraperPuzzle(GridPuzzle[Instance]):
    """``tier`` is the side of the grid."""

    name = "Skyscraper"
    difficulty_is = (
        "lines that a search with propagation goes through until it has proven uniqueness"
    )
    tier_is = "the side of the grid"
    tiers = tuple(SHAPES)
    tells = "how many towers are seen"

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.rows = self.columns = self.fillable = side = int(tier)
        self.symbols = "123456"[:side]
        self.greatest = self.line_clue(range(1, side + 1))
        """The greatest clue there is."""
        solver = LineSolver(side, side)
        self._fitting: dict[tuple[int, int], list[int]] = {}
        """Arrangements of a line with these clues at its ends; 0 stands for any clue."""
        for heights in permutations(range(1, side + 1)):
            for first in (0, self.line_clue(heights)):
                for last in (0, self.line_clue(heights[::-1])):
                    self._fitting.setdefault((first, last), []).append(solver.arrangement(heights))

    def line_clue(self, heights: Sequence[int]) -> int:
        """Return the clue of a line, from its beginning."""
        return sum(height > max(heights[:i], default=0) for i, height in enumerate(heights))

    def compose(self, dice: Dice) -> Instance | None:
        """Draw a Latin square, and give towers until no other square has its clues.

        Then hide clues in random order as long as it stays the only one. Return None if too few can
        be hidden.
        """
        side, solver = self.rows, LineSolver(self.rows, self.rows)
        towers, hidden = SHAPES[side]
        (full,) = solver.solutions(
            [self._fitting[0, 0]] * side, [self._fitting[0, 0]] * side, 1, dice
        )
        cells = solver.cells(full)
        clues = self._clues(self.as_rows(cells))
        shown_cells = set(dice.sample(range(side * side), towers))
        givens = [value if cell in shown_cells else 0 for cell, value in enumerate(cells)]
        while len(solutions := solver.solutions(*self._options(givens, clues), 2)) > 1:
            first, second = map(solver.cells, solutions)
            cell = dice.choice([cell for cell in range(side * side) if first[cell] != second[cell]])
            givens[cell] = cells[cell]
        for position in dice.shuffled(range(4 * side)):
            clue, clues[position] = clues[position], 0
            if solver.solutions(*self._options(givens, clues, unlike=(position, clue)), 1):
                clues[position] = clue
            elif (hidden := hidden - 1) == 0:
                return Instance(np.array(givens, np.int8), np.array(clues, np.int8))
        return None

    def canonical(self, instance: Instance) -> bytes:
        """Return the least of the eight rotations and reflections."""
        cells, clues, side = instance.givens.tolist(), instance.clues.tolist(), self.rows
        width = side + 2
        framed = [0] * width**2  # a margin for the clues turns with the grid
        for r, row in enumerate(self.as_rows(cells)):
            framed[(r + 1) * width + 1 : (r + 1) * width + 1 + side] = row
        for i in range(side):
            framed[i + 1], framed[(side + 1) * width + i + 1] = clues[i], clues[side + i]
            framed[(i + 1) * width] = clues[2 * side + i]
            framed[(i + 2) * width - 1] = clues[3 * side + i]
        return smallest_form([framed[i] for i in order] for order in square_symmetries(width))

    def rules(self) -> str:
        """State the rules."""
        side = self.rows
        return (
            f"{self.name}: fill the {side} x {side} grid with the heights of towers, so that every "
            f"row and every column holds each of {' '.join(self.symbols)} exactly once. From an "
            "edge, a tower is seen if every tower between it and that edge is lower. A clue at an "
            f"edge says {self.tells} from there in its row or column."
        )

    def clues(self, instance: Instance) -> str:
        """State a line for each edge."""
        names = (
            "Clues from above, column by column from the left",
            "Clues from below, column by column from the left",
            "Clues from the left, row by row from the top",
            "Clues from the right, row by row from the top",
        )
        edges = np.asarray(instance.clues).reshape(4, self.rows).tolist()
        lines = (
            f"{name}: {' '.join(str(c or '-') for c in edge)}"
            for name, edge in zip(names, edges, strict=True)
        )
        return "\n".join((*lines, "(- is no clue)"))

    def broken_rule(self, instance: Instance, grid: Grid) -> str:
        """Name the first line that is no permutation, or the first clue that is wrong."""
        for kind, lines in (("row", grid), ("column", list(zip(*grid, strict=True)))):
            for i, line in enumerate(lines):
                if len(set(line)) < self.rows:
                    return f"{kind} {i + 1} does not hold every height"
        for position, (clue, line_clue) in enumerate(
            zip(instance.clues.tolist(), self._clues(grid), strict=True)
        ):
            if clue not in (0, line_clue):
                edge, number = divmod(position, self.rows)
                return (
                    f"from {EDGES[edge]} {number + 1}: the clue is {clue}, and {line_clue} is seen"
                )
        return ""

    def solution(self, instance: Instance) -> Grid:
        """Return the first solution that a search finds; it is the only one."""
        solver = LineSolver(self.rows, self.rows)
        solutions = solver.solutions(
            *self._options(instance.givens.tolist(), instance.clues.tolist()), 1
        )
        if not solutions:
            raise ValueError("this grid has no solution")
        return self.as_rows(solver.cells(solutions[0]))

    def difficulty(self, instance: Instance) -> float:
        """Count the lines that a search for a second solution reads."""
        solver = LineSolver(self.rows, self.rows)
        solver.solutions(*self._options(instance.givens.tolist(), instance.clues.tolist()), 2)
        return float(solver.read)

    def heuristic(self, instance: Instance) -> str:
        """Put into each cell in reading order the least height that its lines lack.

        A cell whose row and column lack no common height gets 1.
        """
        grid = self.clue_rows(instance)
        for row in grid:
            for c, value in enumerate(row):
                if value == 0:
                    used = {*row, *(line[c] for line in grid)}
                    row[c] = next((v for v in range(1, self.rows + 1) if v not in used), 1)
        return self.write_answer(grid)

    def _clues(self, grid: Grid) -> list[int]:
        """Return all clues of a full grid, in the order of an instance."""
        columns = list(zip(*grid, strict=True))
        lines = (
            *columns,
            *(column[::-1] for column in columns),
            *grid,
            *(row[::-1] for row in grid),
        )
        return [self.line_clue(line) for line in lines]

    def _options(
        self, givens: list[int], clues: list[int], unlike: tuple[int, int] | None = None
    ) -> tuple[Options, Options]:
        """Return the arrangements of rows and columns that keep givens and clues.

        ``unlike`` is a place and a clue; it keeps only the arrangements in which that place has
        another clue.
        """
        side, every = self.rows, 2**self.rows - 1
        grid = self.as_rows(givens)
        lines: Options = []
        for i, line in enumerate((*zip(*grid, strict=True), *grid)):
            first = i if i < side else side + i
            ends = clues[first], clues[first + side]
            closed = sum(
                (every ^ 1 << value - 1) << side * j for j, value in enumerate(line) if value
            )
            options = self._fitting[ends]
            if unlike and unlike[0] in (first, first + side):
                excluded_clues = (
                    (unlike[1], ends[1]) if unlike[0] == first else (ends[0], unlike[1])
                )
                unwanted = set(self._fitting[excluded_clues])
                options = [option for option in options if option not in unwanted]
            lines.append(
                [option for option in options if not option & closed] if closed else options
            )
        return lines[side:], lines[:side]


class SumSkyscraperPuzzle(SkyscraperPuzzle):
    """The same with the sum of the heights that are seen as clue."""

    name = "SumSkyscraper"
    tells = "the sum of the heights of the towers that are seen"

    def line_clue(self, heights: Sequence[int]) -> int:
        """Return the clue of a line, from its beginning."""
        return sum(
            height for i, height in enumerate(heights) if height > max(heights[:i], default=0)
        )


class Skyscraper(CellFillTask):
    """Skyscraper, one tower a step."""

    puzzle: SkyscraperPuzzle
    puzzle_class = SkyscraperPuzzle

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.side = self.puzzle.rows

    @property
    def fact_count(self) -> int:
        """Four clues a row, one-hot."""
        return 4 * self.puzzle.rows * self.puzzle.greatest

    def facts(self, instance: Any) -> jax.Array:
        """Return the clues, one-hot."""
        one_hot = instance.clues[:, None] == np.arange(1, self.puzzle.greatest + 1, dtype=np.int8)
        return one_hot.astype(self.dtype).reshape(-1)

    @property
    def fact_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`facts`."""

        meaning = (
            "[edge, line, clue]: the clue at the top, bottom, left, right, from 1 on, one-hot; "
            "zeros where hidden"
        )
        return (Component("clues", meaning, shape=(4, self.side, self.puzzle.greatest)),)

    def clue_value(self, heights: jax.Array) -> jax.Array:
        """Return what a tower adds to a clue when it is seen."""
        return jnp.ones_like(heights)

    def allowed_symbols(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Allow heights that the row and the column lack.

        The last height of a line must not contradict a clue.
        """
        side = self.side
        grid = cells.reshape(side, side)
        edges = instance.clues.reshape(2, 2, side)
        heights = np.arange(side, dtype=np.uint8)
        columns, rows = self._closed_heights(grid.T, edges[0]), self._closed_heights(grid, edges[1])
        used = rows[:, None] | columns[None, :]
        return (used.reshape(-1, 1) >> heights) & 1 == 0

    def is_solved(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Return whether every line has every height and agrees with its clues."""
        grid = cells.reshape(self.side, self.side)
        edges = instance.clues.reshape(2, 2, self.side)
        every = np.uint8(2**self.side - 1)
        conditions = [
            (self._heights(lines) == every) & self._agrees(lines, ends)
            for lines, ends in ((grid.T, edges[0]), (grid, edges[1]))
        ]
        return jnp.stack(conditions).all()

    def _heights(self, lines: jax.Array) -> jax.Array:
        """Return the heights in each line as a set of bits, uint8 ``(side,)``."""
        heights = jnp.zeros(self.side, jnp.uint8)
        for i in range(self.side):
            heights |= jnp.uint8(1) << lines[:, i].astype(jnp.uint8) >> 1
        return heights

    def _closed_heights(self, lines: jax.Array, ends: jax.Array) -> jax.Array:
        """Return the heights that must not be added to each line, as a set of bits."""
        line_sums = jnp.zeros(self.side, jnp.int8)
        gaps = jnp.zeros(self.side, jnp.int8)
        for i in range(self.side):
            line_sums += lines[:, i]
            gaps += (lines[:, i] == 0).astype(jnp.int8)
        # The height of the last tower of a line.
        lacking = np.int8(self.side * (self.side + 1) // 2) - line_sums
        full = jnp.where(lines == 0, lacking[:, None], lines)
        wrong = (gaps == 1) & ~self._agrees(full, ends)
        return jnp.where(wrong, np.uint8(2**self.side - 1), self._heights(lines))

    def _agrees(self, lines: jax.Array, ends: jax.Array) -> jax.Array:
        """Return whether full lines have the clues at their ends, ``(2, side)``."""
        agrees = jnp.ones(self.side, bool)
        for clues, order in ((ends[0], range(self.side)), (ends[1], range(self.side - 1, -1, -1))):
            visible = highest = jnp.zeros(self.side, jnp.int8)
            for i in order:
                height = lines[:, i]
                visible += jnp.where(height > highest, self.clue_value(height), np.int8(0))
                highest = jnp.maximum(highest, height)
            agrees &= (clues == 0) | (clues == visible)
        return agrees

    def decorate(self, board: Board, instance: Any) -> None:
        """Draw the clues around the grid."""
        for position, clue in enumerate(np.asarray(instance.clues).tolist()):
            edge, i = divmod(position, self.side)
            row, column = ((-1, i), (self.side, i), (i, -1), (i, self.side))[edge]
            if clue:
                board.text(row, column, str(clue), scale=0.8)


class SumSkyscraper(Skyscraper):
    """The same with the sum of the heights that are seen as clue."""

    puzzle_class = SumSkyscraperPuzzle

    def clue_value(self, heights: jax.Array) -> jax.Array:
        """Return the height of the tower."""
        return heights
