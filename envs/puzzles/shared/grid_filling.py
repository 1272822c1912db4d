"""Puzzles in which a grid with some given cells is filled in, one symbol a cell.

One-shot, the answer is the whole grid. Interactively, one cell is filled a step:

=============  =====================================================================================
action         ``cell * k + symbol``, ``Discrete(cells * k)``, cells in reading order, ``k`` symbols
               that may be filled in; legal is an empty cell with a symbol that breaks no rule
               *visible in the grid as it is*
observation    each cell's symbol (or that it is empty) one-hot, cells in reading order; then the
               clues that are not in the grid, each scaled to [0, 1]
reward         1 / (cells to fill) for each cell filled, and +1 on completing the grid by the rules
termination    the grid is full, or no legal action is left
=============  =====================================================================================

The mask forbids visible errors and does not look ahead: every solution stays within reach, and most
fillings run into a dead end. Symbols are never taken back. The best return is 2.
"""

from __future__ import annotations

import abc
import operator
from collections.abc import Mapping, Sequence
from functools import cached_property, reduce
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.bit_exact import computed_once
from rlbench_suite.numerics.reductions import sum_in_order
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Example, Instance, Malformed, Puzzle, Verdict, wrong

from . import parsing
from .board import Board
from .puzzle_task import Params, PuzzleTask

EMPTY = "_"
Grid = list[list[int]]
"""Rows of symbol numbers: 0 for empty, ``v`` for ``symbols[v - 1]``."""

_CLUE_MASK = b"\0" + b"\xff" * 255
"""Table that turns given symbols to bytes of all ones."""


def _agree(givens: bytes, cells: bytes) -> bool:
    """Return whether all given symbols stand in their cells."""
    at_givens = int.from_bytes(cells, "little") & int.from_bytes(
        givens.translate(_CLUE_MASK), "little"
    )
    return at_givens == int.from_bytes(givens, "little")


class GridPuzzle(Puzzle[Instance]):
    """The one-shot form.

    An instance has the field ``givens``, int8 ``(rows * columns,)``: 0 where a cell is to fill.

    Subclasses set the four attributes in ``__init__``.
    """

    rows: int
    columns: int
    symbols: Sequence[str]
    """Symbols; the fillable ones come first.

    Each has one character unless a puzzle has its own :meth:`read`.
    """
    fillable: int
    """Number of fillable symbols. The other symbols occur only as givens."""
    meanings: ClassVar[Mapping[str, str]] = {}
    """Meanings of the symbols that do not explain themselves."""

    def square(self) -> int:
        """Make the grid a square whose side is the tier, and return the side."""
        self.rows = self.columns = int(self.tier)
        return self.rows

    def symbol_list(self, count: int) -> str:
        """Return the first symbols, with their meanings if these are not obvious."""
        return ", ".join(
            f"{symbol} ({self.meanings[symbol]})" if symbol in self.meanings else symbol
            for symbol in self.symbols[:count]
        )

    @abc.abstractmethod
    def rules(self) -> str:
        """State the rules in words, and the meanings of the symbols."""

    @abc.abstractmethod
    def broken_rule(self, instance: Instance, grid: Grid) -> str:
        """Name the rule that a full grid breaks, in words; empty if none.

        Givens were checked before.
        """

    @abc.abstractmethod
    def solution(self, instance: Instance) -> Grid:
        """Return a full grid that breaks no rule, by exact search."""

    def clues(self, instance: Instance) -> str:
        """State the clues that are not in the grid, in words; empty if there are none."""
        return ""

    def question(self, instance: Instance) -> str:
        """State the rules, the clues and the grid."""
        givens: bytes = instance.givens.tobytes()  # type: ignore[attr-defined]
        grid = self.write_answer(self.as_rows(givens)) if any(givens) else self._blank
        paragraphs = (self.rules(), self.clues(instance), grid, self._task)
        return "\n\n".join([paragraph for paragraph in paragraphs if paragraph]) + (
            ", the given symbols unchanged." if any(givens) else "."
        )

    @cached_property
    def _blank(self) -> str:
        """A grid without givens."""
        return self.write_answer(self.as_rows(bytes(self.rows * self.columns)))

    @cached_property
    def _task(self) -> str:
        """Request for an answer, without the full stop."""
        return (
            f"Replace every {EMPTY} with {self.choices} and answer with the whole grid: "
            f"{self.rows} lines of {self.columns} symbols separated by single spaces"
        )

    @property
    def choices(self) -> str:
        """The symbols to fill in, as part of a sentence."""
        fill = self.symbols[: self.fillable]
        if self.meanings:
            return " or ".join(f"'{symbol}' ({self.meanings[symbol]})" for symbol in fill)
        return " or ".join(fill) if len(fill) == 2 else f"one of {' '.join(fill)}"

    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Show a small grid."""
        return self._small

    @cached_property
    def _small(self) -> list[Example]:
        rows, columns = 2, 3
        cells = [1 + cell % self.fillable for cell in range(rows * columns)]
        lead = f"For example, the answer for a grid of {rows} lines of {columns} symbols could be:"
        return [Example(lead, self.write_answer([cells[:columns], cells[columns:]]))]

    def judge(self, instance: Instance, answer: str) -> Verdict:
        """Check the format, then the givens, then the rules."""
        cells = self.read(answer)
        givens: bytes = instance.givens.tobytes()  # type: ignore[attr-defined]
        if not self._keeps_clues(givens, cells) and (reason := self._changed_given(givens, cells)):
            return wrong(reason)
        if self.is_sound(instance, cells):
            return RIGHT
        reason = self.broken_rule(instance, self.as_rows(cells))
        return wrong(reason) if reason else RIGHT

    def is_sound(self, instance: Instance, cells: bytes) -> bool:
        """Return whether a quick check shows that a full grid breaks no rule.

        Cells are in reading order. If not, :meth:`broken_rule` decides.
        """
        return False

    def read(self, answer: str) -> bytes:
        """Return the symbol numbers of the grid that an answer writes down, in reading order.

        Raises:
            Malformed: another shape, or another symbol.
        """
        return parsing.cells(answer, self.rows, self.columns, self._letters)

    @property
    def caseless(self) -> Sequence[str]:
        """Symbols."""
        return self.symbols

    def mend(self, answer: str) -> str:
        """Give a grid the layout that the prompt asks for."""
        lines = parsing.rows_of(answer, self.rows, self.columns, self.symbols)
        return "\n".join(" ".join(self.restore_case(line)) for line in lines)

    @cached_property
    def _letters(self) -> str:
        return "".join(self.symbols)

    def _keeps_clues(self, givens: bytes, cells: bytes) -> bool:
        """Return whether a quick check shows that givens are kept and other cells are filled.

        Other cells must hold fillable symbols.
        """
        return self.fillable == len(self.symbols) and _agree(givens, cells)

    def _changed_given(self, givens: bytes, cells: bytes) -> str:
        """Name the first given that was not kept, in words; empty if all were kept.

        Raises:
            Malformed: another cell holds a symbol that is not fillable.
        """
        for cell, (value, clue) in enumerate(zip(cells, givens, strict=True)):
            if value != clue and (clue or value > self.fillable):
                where = f"row {cell // self.columns + 1}, column {cell % self.columns + 1}"
                if clue:
                    return f"the symbol in {where} was given and is not to be changed"
                raise Malformed(f"{where}: {self.symbols[value - 1]} is not to be filled in")
        return ""

    def solve(self, instance: Instance) -> str:
        """Return the grid of :meth:`solution`."""
        return self.write_answer(self.solution(instance))

    def plan(self, instance: Instance) -> list[int]:
        """Fill in :meth:`solution` in reading order."""
        flat = [value for row in self.solution(instance) for value in row]
        empty = [cell for cell, value in enumerate(self._givens(instance)) if value == 0]
        return [cell * self.fillable + flat[cell] - 1 for cell in empty]

    def guess(self, instance: Instance, dice: Dice) -> str:
        """Keep the givens and fill everything else at random."""
        fixed = self.clue_rows(instance)
        return self.write_answer(
            [[value or 1 + dice.below(self.fillable) for value in row] for row in fixed]
        )

    def constants(self) -> Sequence[str]:
        """Return a grid full of one symbol, for each symbol."""
        lines = ((symbol + " ") * self.columns for symbol in self.symbols[: self.fillable])
        return ["\n".join([line.rstrip()] * self.rows) for line in lines]

    def likeness(self, instance: Instance, answer: str, best: str) -> float:
        """Return the share of the cells to fill that agree with the solution.

        It is 0 if a given was changed.
        """
        givens: bytes = instance.givens.tobytes()  # type: ignore[attr-defined]
        cells, solution = self.read(answer), self.read(best)
        if not _agree(givens, cells):
            return 0.0
        cells_to_fill = givens.count(0)
        return (sum(map(operator.eq, cells, solution)) - len(cells) + cells_to_fill) / cells_to_fill

    def effortless(self, instance: Instance, best: str) -> float:
        """Return the share of the commonest symbol in the cells to fill."""
        filled = [
            b for clue, b in zip(self._givens(instance), self.read(best), strict=True) if not clue
        ]
        return max(map(filled.count, set(filled))) / len(filled)

    def clue_rows(self, instance: Instance) -> Grid:
        """Return the givens as rows."""
        return self.as_rows(self._givens(instance))

    def as_rows(self, cells: Sequence[int]) -> Grid:
        """Return cells in reading order as rows."""
        return [
            list(cells[at : at + self.columns])
            for at in range(0, self.rows * self.columns, self.columns)
        ]

    def write_answer(self, grid: Grid) -> str:
        """Return a grid in the format of an answer, with ``_`` for empty cells."""
        symbol_of = (EMPTY, *self.symbols).__getitem__
        return "\n".join([" ".join(map(symbol_of, row)) for row in grid])

    @staticmethod
    def _givens(instance: Instance) -> list[int]:
        givens: list[int] = instance.givens.tolist()  # type: ignore[attr-defined]
        return givens


class GridState(NamedTuple):
    """The grid so far."""

    cells: jax.Array
    """int8 ``(rows * columns,)``: 0 empty, ``v`` for the symbol ``v`` of the puzzle."""
    empty: jax.Array
    """int32: number of empty cells."""
    at_first: jax.Array
    """int32: number of cells that were empty at first."""


def two_symbol_mask(first: jax.Array, second: jax.Array) -> jax.Array:
    """Return which of two symbols each cell allows, bool ``(cells, 2)``.

    There is one argument for each symbol.
    """

    def alternate(first: jax.Array, second: jax.Array) -> jax.Array:
        # This does not use ``stack``, for which XLA would check for every entry which of the two it
        # comes from.
        return jnp.where(np.arange(2) == 0, first[:, None], second[:, None])

    # This is a call, so that each of the two is computed only once and only for its own entries.
    return computed_once(alternate)(first.reshape(-1), second.reshape(-1))


def rows_as_bits(values: jax.Array, columns: int, bits: int) -> list[jax.Array]:
    """Return each row of a grid as one word, the first cell lowest.

    Args:
        values: what a cell adds to the word of its row, unsigned ``(cells,)``.
        columns: cells a row.
        bits: by how many bits a cell lies above the one before.
    """

    def words(values: jax.Array) -> list[jax.Array]:
        placed = [values[i] << bits * (i % columns) for i in range(values.shape[0])]
        return [
            reduce(operator.or_, placed[i : i + columns]) for i in range(0, len(placed), columns)
        ]

    return computed_once(words)(values)


def at_least(numbers: Sequence[jax.Array], thresholds: Sequence[jax.Array]) -> jax.Array:
    """Return the cells of a row whose number is at least the other number, as a word.

    Args:
        numbers: binary digits from the lowest on, each a word with a bit for each cell.
        thresholds: as many.
    """
    borrowed = jnp.zeros_like(numbers[0])
    for a, b in zip(numbers, thresholds, strict=True):
        borrowed = ~a & b | ~(a ^ b) & borrowed
    return ~borrowed


class FillTask(PuzzleTask[GridState]):
    """The interactive form.

    Subclasses define :meth:`mask`, :meth:`is_solved`, and :meth:`facts` if clues lie outside the
    grid.
    """

    puzzle: GridPuzzle[Any]
    measures: ClassVar[dict[str, str]] = {"filled": "fraction of the cells to fill that are filled"}
    picture_shape: ClassVar[tuple[int, int, int]] = (360, 360, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        puzzle = self.puzzle
        self.cells = puzzle.rows * puzzle.columns
        self.contents = len(puzzle.symbols) + 1
        self.action_space = spaces.Discrete(self.cells * puzzle.fillable)
        self.observation_space = self.box(0.0, 1.0, (self.cells * self.contents + self.fact_count,))
        self.reward_space = self.box(0.0, 2.0)

    # -- what a puzzle defines ---------------------------------------------------------------------

    @abc.abstractmethod
    def mask(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Return the symbols allowed in each empty cell, bool ``(cells * fillable,)``.

        They are those that the other cells do not rule out.
        """

    @abc.abstractmethod
    def is_solved(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Return whether a full grid keeps every rule: bool."""

    @property
    def fact_count(self) -> int:
        """Number of :meth:`facts`."""
        return 0

    def facts(self, instance: Any) -> jax.Array:
        """Return the clues outside the grid, scaled to [0, 1]: ``(fact_count,)``."""
        return jnp.zeros(0, self.dtype)

    @property
    def fact_components(self) -> tuple[Component, ...]:
        """Components of the numbers of :meth:`facts`."""
        return ()

    def decorate(self, board: Board, instance: Any) -> None:
        """Draw everything besides the symbols: clues at the margins, thick lines."""

    # -- the task ----------------------------------------------------------------------------------

    def initial(self, key: jax.Array, params: Params) -> GridState:
        """Begin with the givens."""
        empty = sum_in_order((params.instance.givens == 0).astype(jnp.int32))
        return GridState(params.instance.givens, empty, empty)

    def transition(
        self, state: GridState, action: jax.Array, key: jax.Array, params: Params
    ) -> GridState:
        """Fill one cell."""
        cell, value = action // self.puzzle.fillable, action % self.puzzle.fillable + 1
        cells = jnp.where(np.arange(self.cells) == cell, value.astype(jnp.int8), state.cells)
        return state._replace(cells=cells, empty=state.empty - 1)

    def observation(self, state: GridState, key: jax.Array, params: Params) -> jax.Array:
        """Return the symbols one-hot, then the facts."""
        one_hot = state.cells[:, None] == np.arange(self.contents, dtype=np.int8)
        return jnp.concatenate(
            [one_hot.astype(self.dtype).reshape(-1), self.facts(params.instance)]
        )

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the cells, then the facts."""
        puzzle = self.puzzle
        meaning = (
            "[row, column, content]: what the cell holds, one-hot: nothing, "
            f"{puzzle.symbol_list(len(puzzle.symbols))}"
        )
        return Component(
            "cells", meaning, shape=(puzzle.rows, puzzle.columns, self.contents)
        ), *self.fact_components

    def action_components(self) -> tuple[Component, ...]:
        """Describe each action: a cell and a symbol."""
        puzzle = self.puzzle
        meaning = (
            "[row, column, symbol]: put the symbol into the cell, of "
            f"{puzzle.symbol_list(puzzle.fillable)}"
        )
        return (Component("fill", meaning, shape=(puzzle.rows, puzzle.columns, puzzle.fillable)),)

    def reward(
        self,
        state: GridState,
        action: jax.Array,
        next_state: GridState,
        key: jax.Array,
        params: Params,
    ) -> jax.Array:
        """Return progress, plus 1 for a solution."""
        share = (state.empty - next_state.empty).astype(self.dtype) / state.at_first.astype(
            self.dtype
        )
        return share + ((state.empty > 0) & self._success(next_state, params)).astype(self.dtype)

    def terminal(self, state: GridState, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the grid is full, or stuck."""
        return ~self.action_mask(state, params).any()

    def info(self, state: GridState, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: the grid is full and keeps every rule."""
        filled = (state.at_first - state.empty).astype(self.dtype) / state.at_first.astype(
            self.dtype
        )
        return {"success": self._success(state, params), "filled": filled}

    def action_mask(self, state: GridState, params: Params) -> jax.Array:
        """Return the symbols that break no visible rule in each empty cell.

        They are bool ``(cells * fillable,)``.
        """
        return computed_once(self.mask)(state.cells, params.instance)

    def _success(self, state: GridState, params: Params) -> jax.Array:
        return (state.empty == 0) & self.is_solved(state.cells, params.instance)

    # -- host side ---------------------------------------------------------------------------------

    def describe(self, state: GridState, params: Params) -> str:
        """Show the rules, the clues and the grid as it is."""
        grid = self.puzzle.write_answer(self.puzzle.as_rows(np.asarray(state.cells).tolist()))
        paragraphs = (self.puzzle.rules(), self.puzzle.clues(params.instance), grid)
        return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        return (
            f"Answer 'ROW COLUMN SYMBOL', such as '1 2 {self.puzzle.symbols[0]}', to fill an empty "
            f"cell ({EMPTY}). Rows and columns count from 1. The symbol is {self.puzzle.choices}."
        )

    def parse(self, text: str, state: GridState, params: Params) -> np.ndarray:
        """Read ``2 3 7``: symbol 7 into row 2, column 3.

        Raises:
            ValueError: anything else.
        """
        words = text.split()
        if len(words) != 3:
            raise ValueError(f"expected 'ROW COLUMN SYMBOL', got {text[:40]!r}")
        puzzle = self.puzzle
        row = parsing.integer(words[0], 1, puzzle.rows, "row")
        column = parsing.integer(words[1], 1, puzzle.columns, "column")
        value = parsing.word(words[2], puzzle.symbols[: puzzle.fillable])
        action = ((row - 1) * puzzle.columns + column - 1) * puzzle.fillable + value
        return np.asarray(action, self.action_space.dtype)

    def spell(self, action: np.ndarray, state: GridState, params: Params) -> str:
        """Return row, column and symbol."""
        cell, value = divmod(int(action), self.puzzle.fillable)
        row, column = divmod(cell, self.puzzle.columns)
        return f"{row + 1} {column + 1} {self.puzzle.symbols[value]}"

    def why_illegal(self, action: np.ndarray, state: GridState, params: Params) -> str:
        """Say that the cell is filled already, or that another cell is in the way."""
        cell, value = divmod(int(action), self.puzzle.fillable)
        row, column = divmod(cell, self.puzzle.columns)
        where = f"row {row + 1}, column {column + 1}"
        if int(state.cells[cell]):
            return f"{where} is filled already"
        return (
            f"{self.puzzle.symbols[value]} in {where} breaks a rule together with what the grid "
            "shows"
        )

    def why_over(self, state: GridState, params: Params, info: dict[str, Any]) -> str:
        """Say whether the grid is solved, full but wrong, or stuck."""
        if (np.asarray(state.cells) == 0).any():
            return "no empty cell can be filled without breaking a rule"
        return "the puzzle is solved" if info["success"] else "the grid is full and breaks a rule"

    def draw(self, state: GridState, params: Params) -> np.ndarray:
        """Draw the grid: givens on grey, the player's symbols in blue."""
        return self.draw_shape(state, params, self.picture_shape)

    def draw_shape(
        self, state: GridState, params: Params, shape: tuple[int, int, int]
    ) -> np.ndarray:
        """Draw the grid in a picture of any shape."""
        puzzle = self.puzzle
        board = Board(puzzle.rows, puzzle.columns, shape)
        givens, cells = (
            puzzle.as_rows(np.asarray(c).tolist()) for c in (params.instance.givens, state.cells)
        )
        for r in range(puzzle.rows):
            for c in range(puzzle.columns):
                board.cell(r, c, (EMPTY, *puzzle.symbols)[cells[r][c]], is_clue=givens[r][c] != 0)
        self.decorate(board, params.instance)
        return board.picture()


class CellFillTask(FillTask):
    """A puzzle that gives the allowed symbols of every cell, filled or not."""

    @abc.abstractmethod
    def allowed_symbols(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Return the symbols that the other cells allow in each cell: bool ``(cells, fillable)``.

        Filled cells may have any values.
        """

    def mask(self, cells: jax.Array, instance: Any) -> jax.Array:
        """Allow what fits, in empty cells."""
        return ((cells == 0)[:, None] & self.allowed_symbols(cells, instance)).reshape(-1)
