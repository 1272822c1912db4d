"""rlsuite/Hitori-v0: blacken cells so that no line has a number twice among its white cells.

Instances have exactly one solution. Cells are blackened in random order until the rules allow no
further one. White cells get random numbers that keep the rules; each black cell gets a number that
stands among the white cells of its row and column. While there is a second solution, the number of
a black cell is drawn again, a few times. ``difficulty`` (of the task) is the side; on boards of
side 4 some instances repeat.

See :mod:`..shared.grid_filling` for actions, observations and rewards. The observation tells which
numbers of a line are equal; nothing else about them matters. The mask forbids black beside black,
and white in line with a white cell of the same number. Whether the white cells are connected is
judged when the grid is full.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.reductions import union
from rlbench_suite.puzzle.dice import Dice

from ..shared.board import CLUE_PAPER, FILLED, INK, LINE, PAPER, Board
from ..shared.grid_filling import CellFillTask, Grid, GridPuzzle, GridState, two_symbol_mask
from ..shared.puzzle_task import Params
from ..shared.symmetry import relabel_values, smallest_form, square_symmetries

BLACK, WHITE = 1, 2
MAX_SIDE = 9
_MAX_DRAWS = 30


class Instance(NamedTuple):
    """Numbers that can be blackened in one way."""

    givens: np.ndarray
    """int8 ``(side**2,)``: zeros, because no cell's colour is given."""
    numbers: np.ndarray
    """int8 ``(side**2,)``: from 1 to the side."""


class HitoriPuzzle(GridPuzzle[Instance]):
    """``tier`` is the side."""

    name = "Hitori"
    difficulty_is = (
        "colours that a depth-first search (most repeated numbers first) tries until it has proven "
        "uniqueness"
    )
    tier_is = "the side"
    tiers = range(3, MAX_SIDE + 1)
    few: ClassVar[dict[float, float]] = {4: 11_000}
    symbols = "#."
    fillable = 2
    meanings: ClassVar[dict[str, str]] = {"#": "black", ".": "white"}

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        side = self.square()
        self._every = 2 ** (side * side) - 1
        self._not_first = self._every // (2**side - 1) * (2**side - 2)
        """The cells that are not in the first column."""
        self._beside = [self._neighbours(1 << cell) for cell in range(side * side)]
        """The neighbours of each cell."""
        self._in_line = [
            sum(
                1 << other_cell
                for other_cell in range(side * side)
                if other_cell != cell
                and (other_cell // side == cell // side or other_cell % side == cell % side)
            )
            for cell in range(side * side)
        ]
        """The other cells of its row and column."""

    def compose(self, dice: Dice) -> Instance | None:
        """Draw colours, then numbers.

        Return None if no numbers were found that leave one solution.
        """
        black = self._sample_black_cells(dice)
        numbers = self._white_numbers(black, dice)
        if numbers is None:
            return None
        black_cells = [cell for cell in range(len(numbers)) if black >> cell & 1]
        for cell in black_cells:
            numbers[cell] = self._number_in_line(cell, black, numbers, dice)
        for _ in range(_MAX_DRAWS):
            other_solutions = [
                solution for solution in islice(self._solutions(numbers), 2) if solution != black
            ]
            if not other_solutions:
                return Instance(np.zeros(len(numbers), np.int8), np.array(numbers, np.int8))
            cell = dice.choice(
                [c for c in black_cells if not other_solutions[0] >> c & 1] or black_cells
            )
            numbers[cell] = self._number_in_line(cell, black, numbers, dice)
        return None

    def canonical(self, instance: Instance) -> bytes:
        """Return the least of the eight rotations and reflections.

        Numbers are renamed in order of first occurrence.
        """
        numbers = instance.numbers.tolist()
        return smallest_form(
            relabel_values(numbers[i] for i in order) for order in square_symmetries(self.rows)
        )

    def rules(self) -> str:
        """State the rules."""
        return (
            "Hitori: every cell of the table of numbers becomes black (#) or stays white (.). No "
            "number occurs twice among the white cells of a row, or of a column. No two black "
            "cells share an edge. All white cells are connected: each can be reached from every "
            "other by steps up, down, left and right through white cells."
        )

    def clues(self, instance: Instance) -> str:
        """State the numbers."""
        rows = self.as_rows(instance.numbers.tolist())
        return "The numbers:\n" + "\n".join(" ".join(map(str, row)) for row in rows)

    def broken_rule(self, instance: Instance, grid: Grid) -> str:
        """Name the first broken rule.

        It is a repeated number, black neighbours, or white cells that are not connected.
        """
        numbers = instance.numbers.tolist()
        black = sum(
            1 << c for c, value in enumerate(v for row in grid for v in row) if value == BLACK
        )
        for cell, equal_cells in enumerate(self._repeats(numbers)):
            where = f"row {cell // self.rows + 1}, column {cell % self.rows + 1}"
            if not black >> cell & 1 and equal_cells & ~black:
                return f"the white {numbers[cell]} in {where} comes again in its row or column"
            if black >> cell & 1 and self._beside[cell] & black:
                return f"the black cell in {where} has a black neighbour"
        return (
            ""
            if self._is_connected(self._every & ~black)
            else "the white cells do not hang together"
        )

    def solution(self, instance: Instance) -> Grid:
        """Return the first solution that a search finds; it is the only one."""
        for black in self._solutions(instance.numbers.tolist()):
            return self._colour_grid(black)
        raise ValueError("these numbers have no solution")

    def difficulty(self, instance: Instance) -> float:
        """Count the colours tried by a search for all solutions."""
        tried = [0]
        for _ in self._solutions(instance.numbers.tolist(), tried):
            pass
        return float(tried[0])

    def heuristic(self, instance: Instance) -> str:
        """Blacken cells in reading order.

        A cell is blackened if a cell of its row or column that is not yet black has the same
        number, unless a neighbour is black.
        """
        black = 0
        for cell, equal_cells in enumerate(self._repeats(instance.numbers.tolist())):
            if equal_cells & ~black and not self._beside[cell] & black:
                black |= 1 << cell
        return self.write_answer(self._colour_grid(black))

    # -- generation --------------------------------------------------------------------------------

    def _sample_black_cells(self, dice: Dice) -> int:
        """Draw a set of black cells to which no further one can be added."""
        black = 0
        for cell in dice.shuffled(range(self.rows**2)):
            new_black = black | 1 << cell
            if not self._beside[cell] & black and self._is_connected(self._every & ~new_black):
                black = new_black
        return black

    def _white_numbers(self, black: int, dice: Dice) -> list[int] | None:
        """Draw numbers for the white cells, 0 for the black ones.

        Return None if a cell has no number left.
        """
        side = self.rows
        numbers = [0] * side * side
        in_columns = [0] * side
        for row in range(side):
            in_row = 0
            order = dice.shuffled(c for c in range(side) if not black >> side * row + c & 1)
            while order:
                column = min(
                    order, key=lambda c: (~(in_row | in_columns[c]) & 2**side - 1).bit_count()
                )
                order.remove(column)
                fitting = [n for n in range(side) if not (in_row | in_columns[column]) >> n & 1]
                if not fitting:
                    return None
                number = dice.choice(fitting)
                numbers[side * row + column] = number + 1
                in_row |= 1 << number
                in_columns[column] |= 1 << number
        return numbers

    def _number_in_line(self, cell: int, black: int, numbers: Sequence[int], dice: Dice) -> int:
        """Return a number that both lines of a black cell have in white cells.

        If there is none, return a number of either line.
        """
        side = self.rows
        row, column = divmod(cell, side)
        across, down = (
            {numbers[line_cell] for line_cell in line if not black >> line_cell & 1}
            for line in (range(row * side, (row + 1) * side), range(column, side * side, side))
        )
        return dice.choice(sorted(across & down or across | down))

    # -- search: a bit for every cell --------------------------------------------------------------

    def _solutions(self, numbers: Sequence[int], tried: list[int] | None = None) -> Iterator[int]:
        """Return all ways to blacken, each as the bits of the black cells."""
        repeats = self._repeats(numbers)
        order = sorted(range(len(numbers)), key=lambda cell: -repeats[cell].bit_count())

        def search(black: int, white: int, start: int) -> Iterator[int]:
            """Continue the search; all cells of ``order`` before ``start`` have a colour."""
            while start < len(order) and (black | white) >> order[start] & 1:
                start += 1
            if start == len(order):
                yield black
                return
            for colour in (BLACK, WHITE):
                if tried:
                    tried[0] += 1
                implied = self._implied_colours(repeats, black, white, order[start], colour)
                if implied:
                    yield from search(*implied, start + 1)

        return search(0, 0, 0)

    def _implied_colours(
        self, repeats: Sequence[int], black: int, white: int, cell: int, colour: int
    ) -> tuple[int, int] | None:
        """Return the black and the white cells after a cell is coloured, with all that follows.

        The result is None if that is impossible.
        """
        new_black, new_white = (1 << cell, 0) if colour == BLACK else (0, 1 << cell)
        while new_black or new_white:
            black |= new_black
            white |= new_white
            to_white = to_black = 0
            while new_black:
                to_white |= self._beside[(new_black & -new_black).bit_length() - 1]
                new_black &= new_black - 1
            while new_white:
                to_black |= repeats[(new_white & -new_white).bit_length() - 1]
                new_white &= new_white - 1
            if to_white & black or to_black & white or to_white & to_black:
                return None
            new_black, new_white = to_black & ~black, to_white & ~white
        if white & ~self._reachable_cells(white & -white, self._every & ~black):
            return None
        return black, white

    def _repeats(self, numbers: Sequence[int]) -> list[int]:
        """Return for each cell the cells of its row and column with the same number."""
        with_number = [0] * (self.rows + 1)
        for cell, number in enumerate(numbers):
            with_number[number] |= 1 << cell
        return [with_number[number] & self._in_line[cell] for cell, number in enumerate(numbers)]

    def _neighbours(self, cells: int) -> int:
        """Return the neighbours of some cells."""
        side = self.rows
        to_left, to_right = (cells & self._not_first) >> 1, cells << 1 & self._not_first
        return (to_left | to_right | cells << side | cells >> side) & self._every

    def _reachable_cells(self, start: int, ground: int) -> int:
        """Return the cells of the ground that are connected with the start."""
        reached, previous = start, 0
        while reached != previous:
            previous = reached
            reached |= self._neighbours(reached) & ground
        return reached

    def _is_connected(self, cells: int) -> bool:
        return self._reachable_cells(cells & -cells, cells) == cells

    def _colour_grid(self, black: int) -> Grid:
        return self.as_rows([BLACK if black >> cell & 1 else WHITE for cell in range(self.rows**2)])


class Hitori(CellFillTask):
    """Hitori, one cell a step."""

    puzzle: HitoriPuzzle
    puzzle_class = HitoriPuzzle

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.side = self.puzzle.rows
        self.shifts = np.arange(self.side, dtype=np.uint16)

    @property
    def fact_count(self) -> int:
        """A fact for each pair of cells in a line."""
        side = self.puzzle.rows
        return side * side * (side - 1)

    def facts(self, instance: Any) -> jax.Array:
        """Return whether two cells of a line have the same number, for all pairs and lines.

        Pairs in rows come first, then pairs in columns.
        """
        numbers = instance.numbers.reshape(self.side, self.side)
        equal = [
            jnp.concatenate(
                [lines[:, i : i + 1] == lines[:, i + 1 :] for i in range(self.side - 1)], axis=1
            )
            for lines in (numbers, numbers.T)
        ]
        return jnp.stack(equal).reshape(-1).astype(self.dtype)

    @property
    def fact_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`facts`."""

        shape = (2, self.side, self.side * (self.side - 1) // 2)
        meaning = (
            "[rows or columns, line, pair]: whether two cells have one number; pairs (0, 1), (0, "
            "2), ..."
        )
        return (Component("equal", meaning, shape=shape),)

    def allowed_symbols(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Allow the colours that the cell's neighbours and lines leave open.

        A black cell has no black neighbours. A white cell's number is not in other white cells of
        its lines.
        """
        grid = cells.reshape(self.side, self.side)
        padded = jnp.pad(grid == BLACK, 1)
        beside = padded[:-2, 1:-1] | padded[2:, 1:-1] | padded[1:-1, :-2] | padded[1:-1, 2:]
        number = self._numbers(instance)
        white = jnp.where(grid == WHITE, number, 0)
        used_numbers = self._union(white, 1)[:, None] | self._union(white, 0)
        return two_symbol_mask(~beside, used_numbers & number == 0)

    def is_solved(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Return whether the cells keep all three rules.

        No black cells touch, the white cells are connected, and no line repeats a white number.
        """
        grid = cells.reshape(self.side, self.side)
        black = grid == BLACK
        is_separate = ~(black[1:] & black[:-1]).any() & ~(black[:, 1:] & black[:, :-1]).any()
        number = jnp.where(black, 0, self._numbers(instance))
        count = (~black).astype(jnp.int8)
        different = [
            (
                lax.population_count(self._union(number, axis)) == count.sum(axis, dtype=jnp.uint16)
            ).all()
            for axis in (0, 1)
        ]
        return is_separate & different[0] & different[1] & self._is_connected(~black)

    def _numbers(self, instance: Any) -> jax.Array:
        """Return the number of each cell as a bit, uint16 ``(side, side)``."""
        return (np.uint16(1) << (instance.numbers - 1).astype(jnp.uint16)).reshape(
            self.side, self.side
        )

    @staticmethod
    def _union(bits: jax.Array, axis: int) -> jax.Array:
        return union(bits, axis)

    def _is_connected(self, cells: jax.Array) -> jax.Array:
        """Return whether some cells are connected.

        A flood starts from the first cell. It fills rows (as words) in both directions over
        distances that double, then the neighbouring rows, until nothing changes.
        """
        ground = self._union(cells.astype(jnp.uint16) << self.shifts, 1)
        first = jnp.argmax(ground != 0)
        start = jnp.where(np.arange(self.side) == first, ground & -ground, 0)

        def flood(reached: jax.Array) -> jax.Array:
            none = jnp.zeros_like(reached[:1])
            up = down = (
                reached
                | jnp.concatenate([reached[1:], none])
                | jnp.concatenate([none, reached[:-1]])
            ) & ground
            upward = downward = ground
            for step in (1 << k for k in range((self.side - 1).bit_length())):
                up |= upward & up << step
                down |= downward & down >> step
                upward &= upward << step
                downward &= downward >> step
            return up | down

        _, reached = lax.while_loop(
            lambda pair: (pair[0] != pair[1]).any(),
            lambda pair: (pair[1], flood(pair[1])),
            (start, flood(start)),
        )
        return (reached == ground).all()

    def draw(self, state: GridState, params: Params) -> np.ndarray:
        """Draw the numbers; those not yet coloured on grey."""
        board = Board(self.side, self.side, self.picture_shape)
        papers, inks = (CLUE_PAPER, INK, PAPER), (INK, LINE, FILLED)
        for cell, value in enumerate(np.asarray(state.cells).tolist()):
            row, column = divmod(cell, self.side)
            board.cell(row, column, paper=papers[value])
            board.text(row, column, str(params.instance.numbers[cell]), inks[value])
        return board.picture()
