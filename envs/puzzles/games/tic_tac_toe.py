"""rlsuite/TicTacToe-v0: the best move in noughts and crosses on 4 x 4 cells, four in a row.

X is to move. One-shot, a move is right if no other move leads to a better result for X when both
sides play perfectly. Interactively, the game is played to its end against a perfect opponent:

=============  =====================================================================================
action         the cell for an X, ``Discrete(16)``, in reading order; legal are the empty ones
observation    whether each cell is empty, X, O, one-hot, cells in reading order: ``Box(48)``
reward         1 when the game ends as well for X as it could from the first position; 0 otherwise
termination    four in a row, or no empty cell left
=============  =====================================================================================

The opponent plays one of its best moves, each with equal probability. Positions are random, with as
many O as X or one more. Some moves are best and some are not, and no move of either side completes
four in a row. ``difficulty`` (of the task) is the number of empty cells. Every game from there is
solved to the end. Up to rotation and reflection, some 6,700 positions with 4 empty cells come up,
and some 24,000 with 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Int8Array, IntArray
from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics.keys import bits
from rlbench_suite.puzzle.bank import Bank
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Example, Puzzle, Verdict, wrong

from ..shared import parsing
from ..shared.board import FILLED, INK, Board
from ..shared.puzzle_task import Params, PuzzleTask
from ..shared.symmetry import smallest_form, square_symmetries

SIDE = 4
CELLS = SIDE**2
X, O = 1, 2  # noqa: E741 - the names of the players
SYMBOLS = "_XO"
MAX_EMPTY_CELLS = 9
_OVER = 4
_ROWS = [sum(1 << SIDE * r + c for c in range(SIDE)) for r in range(SIDE)]
_COLUMNS = [sum(1 << SIDE * r + c for r in range(SIDE)) for c in range(SIDE)]
_DIAGONALS = [
    sum(1 << SIDE * k + c for k, c in enumerate(order))
    for order in (range(SIDE), range(SIDE)[::-1])
]
LINES = _ROWS + _COLUMNS + _DIAGONALS
"""The ten lines of four, as bits."""
_LINES_OF = [[line for line in LINES if line >> cell & 1] for cell in range(CELLS)]


class Position(NamedTuple):
    """A position with X to move."""

    cells: np.ndarray
    """int8 ``(16,)``: 0 empty, 1 X, 2 O; in reading order."""


class TicTacToePuzzle(Puzzle[Position]):
    """``tier`` is the number of empty cells."""

    name = "TicTacToe"
    difficulty_is = (
        "positions that a search for the value of every move looks at, each counted once"
    )
    tier_is = "the number of empty cells"
    tiers = range(2, MAX_EMPTY_CELLS + 1)
    few: ClassVar[dict[float, float]] = {4: 6_700, 6: 24_000}

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.empty = int(tier)

    def compose(self, dice: Dice) -> Position | None:
        """Draw symbols at random.

        Return None if a move could complete four in a row, or all moves are equally good.
        """
        stones = CELLS - self.empty
        cells = [0] * CELLS
        for number, cell in enumerate(dice.sample(range(CELLS), stones)):
            cells[cell] = O if number < (stones + 1) // 2 else X
        x_cells, o_cells = (_bits(cells, player) for player in (X, O))
        for player, opponent in ((x_cells, o_cells), (o_cells, x_cells)):
            if any((line & player).bit_count() >= 3 and not line & opponent for line in LINES):
                return None
        values = values_of_moves(x_cells, o_cells)
        return Position(np.array(cells, np.int8)) if len(set(values.values())) > 1 else None

    def from_plain(self, plain: dict[str, Any]) -> Position:
        """Return the position of a list of cells.

        Raises:
            ValueError: other fields or shapes, no symbol, or another number of empty cells than
                this tier's, whose games may take too long to solve.
        """
        position = super().from_plain(plain)
        cells = position.cells.tolist()
        if not set(cells) <= {0, X, O}:
            raise ValueError(f"a cell is 0 (empty), {X} (X) or {O} (O), got {cells}.")
        if cells.count(0) != self.empty:
            raise ValueError(f"{self.empty} cells are empty at this tier, got {cells.count(0)}.")
        return position

    def canonical(self, instance: Position) -> bytes:
        """Return the least of the eight rotations and reflections."""
        cells = instance.cells.tolist()
        return smallest_form([cells[i] for i in order] for order in square_symmetries(SIDE))

    def question(self, instance: Position) -> str:
        """State the rules, the position, and the format of the answer."""
        return (
            "4-in-a-row on a 4 x 4 board: X and O take turns to put their symbol into an empty "
            "cell (_). The first "
            "to have four in a row, a column or a diagonal wins; if the board is full and nobody "
            "has, it is a draw. "
            f"X is to move:\n\n{position_text(instance.cells.tolist())}\n\n"
            "Find a best move for X: one after which, with perfect play by both, the game ends at "
            "least as well for X "
            "as after any other move (a win is better than a draw, a draw better than a loss). "
            "Answer with its row and "
            "its column, each a number from 1 to 4 counted from the upper left, separated by a "
            "space."
        )

    def example_answers(self, instance: Position) -> Sequence[Example]:
        """Show the notation."""
        return [Example("For example, a move to row 2 and column 3 is written:", "2 3")]

    def judge(self, instance: Position, answer: str) -> Verdict:
        """Check the format, then whether the cell is empty, then the value of the move."""
        row, column = parsing.integers(
            answer, 1, SIDE, min_count=2, max_count=2, what="row or column"
        )
        values = self._values(instance)
        cell = (row - 1) * SIDE + column - 1
        if cell not in values:
            return wrong(f"row {row}, column {column} is not empty")
        best = max(values.values())
        if values[cell] < best:
            ends = {-1: "a loss", 0: "a draw", 1: "a win"}
            return wrong(
                f"row {row}, column {column} leads to {ends[values[cell]]}, another move to "
                f"{ends[best]}"
            )
        return RIGHT

    def solve(self, instance: Position) -> str:
        """Return one of the best moves.

        The position decides which one, so that no cell is the answer too often.
        """
        values = self._values(instance)
        moves = [cell for cell, value in values.items() if value == max(values.values())]
        return _cell_name(
            moves[blake2b(instance.cells.tobytes(), digest_size=1).digest()[0] % len(moves)]
        )

    def plan(self, instance: Position) -> list[int]:
        """Return only the first of the best moves.

        Later ones depend on the opponent's choices.
        """
        values = self._values(instance)
        return [max(values, key=values.__getitem__)]

    def difficulty(self, instance: Position) -> float:
        """Return the size of the search's table."""
        solver = Solver()
        solver.values_of_moves(*(_bits(instance.cells.tolist(), player) for player in (X, O)))
        return float(len(solver.value_of_position))

    def guess(self, instance: Position, dice: Dice) -> str:
        """Play any empty cell."""
        return _cell_name(dice.choice(np.flatnonzero(instance.cells == 0).tolist()))

    def heuristic(self, instance: Position) -> str:
        """Look one move ahead: take the cell that prepares or stops most rows of four.

        A line counts for a player who can still complete it in the moves left. One with two marks
        or more is worth 10 if X can complete it, 5 if O can. Every line without an O is worth 1.
        """
        x_cells, o_cells = (_bits(instance.cells.tolist(), player) for player in (X, O))
        empty = np.flatnonzero(instance.cells == 0).tolist()

        def strong(line: int, player: int, moves: int) -> bool:
            return (line & player).bit_count() >= max(2, SIDE - moves)

        def merit(cell: int) -> int:
            open_to_x = [line for line in _LINES_OF[cell] if not line & o_cells]
            open_to_o = [line for line in _LINES_OF[cell] if not line & x_cells]
            prepared = sum(strong(line, x_cells, (self.empty + 1) // 2) for line in open_to_x)
            stopped = sum(strong(line, o_cells, self.empty // 2) for line in open_to_o)
            return 10 * prepared + 5 * stopped + len(open_to_x)

        return _cell_name(max(empty, key=merit))

    def constants(self) -> Sequence[str]:
        """Return every cell."""
        return [_cell_name(cell) for cell in range(CELLS)]

    @staticmethod
    def _values(instance: Position) -> dict[int, int]:
        return values_of_moves(*(_bits(instance.cells.tolist(), player) for player in (X, O)))


def values_of_moves(player_cells: int, rival_cells: int) -> dict[int, int]:
    """Return the value of each move for the player to move, by cell.

    A win is 1, a draw 0, a loss -1.

    Nobody has won yet.

    The same as :class:`Solver` finds, by far fewer positions. Only those lines count that one
    player can still complete in the moves that are left; cells on none of them are all alike; where
    a line can be completed at once, or must be stopped, nothing else is tried.
    """
    value_of_position: dict[tuple[int, int], int] = {}

    def value_of_move(
        own_cells: int, opponent_cells: int, cell: int, my_lines: list[int], their_lines: list[int]
    ) -> int:
        own_cells |= 1 << cell
        key = (opponent_cells, own_cells)
        if key not in value_of_position:
            value_of_position[key] = value(
                opponent_cells,
                own_cells,
                [line for line in their_lines if not line >> cell & 1],
                my_lines,
            )
        return -value_of_position[key]

    def value(
        own_cells: int, opponent_cells: int, my_lines: list[int], their_lines: list[int]
    ) -> int:
        empty = ~(own_cells | opponent_cells) & 2**CELLS - 1
        moves_left = empty.bit_count()
        my_lines = [
            line
            for line in my_lines
            if (line & own_cells).bit_count() >= SIDE - (moves_left + 1) // 2
        ]
        their_lines = [
            line
            for line in their_lines
            if (line & opponent_cells).bit_count() >= SIDE - moves_left // 2
        ]
        if any((line & own_cells).bit_count() == SIDE - 1 for line in my_lines):
            return 1
        threats = {
            line & ~opponent_cells
            for line in their_lines
            if (line & opponent_cells).bit_count() == SIDE - 1
        }
        if len(threats) > 1:
            return -1
        live = 0
        for line in my_lines + their_lines:
            live |= line
        elsewhere = empty & ~live
        moves = threats.pop() if threats else empty & live | elsewhere & -elsewhere
        best, best_possible = -1 if their_lines else 0, 1 if my_lines else 0
        while best < best_possible and moves:
            cell = (moves & -moves).bit_length() - 1
            moves &= moves - 1
            best = max(best, value_of_move(own_cells, opponent_cells, cell, my_lines, their_lines))
        return best

    my_lines, their_lines = (
        [line for line in LINES if not line & opponent] for opponent in (rival_cells, player_cells)
    )
    return {
        cell: 1
        if _completes(player_cells | 1 << cell, cell)
        else value_of_move(player_cells, rival_cells, cell, my_lines, their_lines)
        for cell in range(CELLS)
        if not (player_cells | rival_cells) >> cell & 1
    }


class Solver:
    """Solver of positions by full search.

    The value of a position is 1 if the player to move wins, 0 for a draw, -1 for a loss.
    """

    def __init__(self) -> None:
        self.value_of_position: dict[tuple[int, int], int] = {}

    def values_of_moves(self, own_cells: int, opponent_cells: int) -> dict[int, int]:
        """Return the value of each move for the player to move, by cell."""
        empty = [cell for cell in range(CELLS) if not (own_cells | opponent_cells) >> cell & 1]
        return {cell: self._value_of_move(own_cells, opponent_cells, cell) for cell in empty}

    def _value_of_move(self, own_cells: int, opponent_cells: int, cell: int) -> int:
        own_cells |= 1 << cell
        return 1 if _completes(own_cells, cell) else -self.value(opponent_cells, own_cells)

    def value(self, own_cells: int, opponent_cells: int) -> int:
        """Return the value of a position in which nobody has won, for the player to move."""
        key = (own_cells, opponent_cells)
        if key not in self.value_of_position:
            best = -1
            empty = ~(own_cells | opponent_cells) & 2**CELLS - 1
            if not empty:
                best = 0
            while empty and best < 1:
                cell = (empty & -empty).bit_length() - 1
                empty &= empty - 1
                best = max(best, self._value_of_move(own_cells, opponent_cells, cell))
            self.value_of_position[key] = best
        return self.value_of_position[key]


def _completes(player: int, cell: int) -> bool:
    """Return whether a player has a line through the cell."""
    return any(player & line == line for line in _LINES_OF[cell])


def _bits(cells: Sequence[int], player: int) -> int:
    return sum(1 << cell for cell, owner in enumerate(cells) if owner == player)


def _cell_name(cell: int) -> str:
    return f"{cell // SIDE + 1} {cell % SIDE + 1}"


def position_text(cells: Sequence[int]) -> str:
    """Return a position as the prompt shows it."""
    return "\n".join(
        " ".join(SYMBOLS[owner] for owner in cells[r * SIDE : (r + 1) * SIDE]) for r in range(SIDE)
    )


# -- the interactive form --------------------------------------------------------------------------


class GameTree(NamedTuple):
    """A first position with the values of all positions that can follow.

    There are ``3**e`` ways to fill its ``e`` empty cells.
    """

    cells: Int8Array  # (16,)
    weights: IntArray
    """int32 ``(16,)``: amount that an X in the cell adds to the number of a position.

    An O adds twice as much.

    The amounts are 1, 3, 9, ... for the empty cells in reading order, 0 for the others.
    """
    values: Int8Array
    """int8 ``(3**e,)``: value for X of the position of each number, -1, 0 or 1.

    The value is 4 more if the game is over.
    """


def games(positions: np.ndarray) -> GameTree:
    """Return the games from some positions ``(count, 16)`` by retrograde analysis.

    The positions have equally many empty cells.
    """
    where = np.array([np.flatnonzero(cells == 0) for cells in positions])
    empty = where.shape[1]
    powers = 3 ** np.arange(empty)
    weights = np.zeros(positions.shape, np.int32)
    np.put_along_axis(weights, where, powers.astype(np.int32)[None], 1)

    digits = np.arange(3**empty)[:, None] // powers % 3  # (positions, empty cells): nothing, X or O
    won: list[np.ndarray] = []
    for player in (X, O):
        bits = ((positions == player) << np.arange(CELLS)).sum(1, dtype=np.uint16)[:, None]
        added = ((digits == player)[None] * (1 << where[:, None, :])).sum(2, dtype=np.uint16)
        won.append(np.asarray(np.stack([((bits | added) & line) == line for line in LINES]).any(0)))
    filled = (digits > 0).sum(1)
    values: np.ndarray = won[0].astype(np.int8) - won[1].astype(np.int8)
    over = won[0] | won[1] | (filled == empty)
    for number in np.argsort(-filled, kind="stable").tolist():
        free = powers[digits[number] == 0]
        if free.size:
            of_x = filled[number] % 2 == 0
            values_after = values[:, number + (1 if of_x else 2) * free]
            best = values_after.max(1) if of_x else values_after.min(1)
            values[:, number] = np.where(over[:, number], values[:, number], best)
    return GameTree(positions, weights, values + _OVER * over.astype(np.int8))


class State(NamedTuple):
    """The board."""

    cells: jax.Array
    """int8 ``(16,)``: 0 empty, 1 X, 2 O."""


class TicTacToe(PuzzleTask[State]):
    """Tic-tac-toe on 4 x 4 cells against a perfect opponent."""

    puzzle: TicTacToePuzzle
    puzzle_class = TicTacToePuzzle
    bank_size = 512
    measures: ClassVar[dict[str, str]] = {
        "value": "what perfect play would make of the position for X: -1, 0 or 1"
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.action_space = spaces.Discrete(CELLS)
        self.observation_space = self.box(0.0, 1.0, (3 * CELLS,))
        self.reward_space = self.box(0.0, 1.0)

    @cached_property
    def bank(self) -> Bank:
        """The positions with the values of all positions that can follow."""
        bank = super().bank
        return bank._replace(instances=games(bank.instances.cells))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Begin with the first position."""
        return State(params.instance.cells)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Place an X, and the opponent's O unless the game is over."""
        cells = jnp.where(np.arange(CELLS) == action, np.int8(X), state.cells)
        number = self._number(cells, params)
        replies = params.instance.values[number + O * params.instance.weights]
        worth = jnp.where(cells == 0, replies - _OVER * (replies > 1), X + O)
        luck = jnp.where(worth == worth.min(), bits(jax.random.key_data(key), CELLS) | 1, 0)
        reply = jnp.where(np.arange(CELLS) == jnp.argmax(luck), np.int8(O), cells)
        return State(jnp.where(params.instance.values[number] > 1, cells, reply))

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the cells one-hot."""
        return (state.cells[:, None] == np.arange(3, dtype=np.int8)).astype(self.dtype).reshape(-1)

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the cells."""
        return (
            Component(
                "cells", "[row, column, content]: nothing, X or O, one-hot", shape=(SIDE, SIDE, 3)
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe each action: a cell."""
        return (Component("mark", "[row, column]: put an X into the cell", shape=(SIDE, SIDE)),)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return 1 for the best possible end."""
        moved = (state.cells != next_state.cells).any()
        return (moved & self._success(next_state, params)).astype(self.dtype)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the game is over."""
        return self._entry(state, params) > 1

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: the game is over and ended as well as it could."""
        return {
            "success": self._success(state, params),
            "value": self._value(state, params).astype(self.dtype),
        }

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Return the empty cells, bool ``(16,)``."""
        return state.cells == 0

    def _number(self, cells: jax.Array, params: Params) -> jax.Array:
        return (cells * params.instance.weights).sum(dtype=jnp.int32)

    def _entry(self, state: State, params: Params) -> jax.Array:
        return params.instance.values[self._number(state.cells, params)]

    def _value(self, state: State, params: Params) -> jax.Array:
        entry = self._entry(state, params)
        return entry - _OVER * (entry > 1)

    def _success(self, state: State, params: Params) -> jax.Array:
        return self.terminal(state, jnp.int32(0), params) & (
            self._value(state, params) == params.instance.values[0]
        )

    # -- host side ---------------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Show the rules in a line, and the board."""
        return (
            "Four in a row wins. You are X and to "
            f"move:\n\n{position_text(np.asarray(state.cells).tolist())}"
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        return "Answer 'ROW COLUMN', counted from 1, to put an X into an empty cell (_)."

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Read ``2 3``: row 2, column 3.

        Raises:
            ValueError: anything else.
        """
        row, column = parsing.integers(
            " ".join(text.split()), 1, SIDE, min_count=2, max_count=2, what="row or column"
        )
        return np.asarray((row - 1) * SIDE + column - 1, self.action_space.dtype)

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return row and column."""
        row, column = divmod(int(action), SIDE)
        return f"{row + 1} {column + 1}"

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Say that the cell is taken."""
        row, column = divmod(int(action), SIDE)
        return f"row {row + 1}, column {column + 1} is not empty"

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say how the game ended."""
        return {1: "X has won", 0: "the board is full, a draw", -1: "O has won"}[int(info["value"])]

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the board; X in blue."""
        board = Board(SIDE, SIDE, self.picture_shape)
        for cell, owner in enumerate(np.asarray(state.cells).tolist()):
            row, column = divmod(cell, SIDE)
            board.cell(row, column)
            if owner:
                board.text(row, column, SYMBOLS[owner], FILLED if owner == X else INK)
        return board.picture()


@privileged_player
class PerfectPlayer(NamedTuple):
    """Player of the first move that loses nothing."""

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> PerfectPlayer:
        """Return the player of any task of this kind."""
        return cls()

    def initial(self, params: Params) -> tuple[()]:
        """Begin without memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the legal move with the best value of the position after it."""
        game, cells = view.params.instance, view.state.cells
        values_after = game.values[(cells * game.weights).sum(dtype=jnp.int32) + game.weights]
        worth = values_after - _OVER * (values_after > 1)
        return jnp.argmax(jnp.where(cells == 0, worth, -2)).astype(jnp.int32), memory
