"""rlsuite/CheckmateInOne-v0: the move that checkmates at once.

White is to move. Positions are random placements of pieces, a third to a half of them black, in
which nobody may castle or capture en passant, black is not in check, and some move of white is
checkmate. ``difficulty`` (of the task) is the number of pieces. The task has one step:

=============  =====================================================================================
action         ``from * 64 + to``, squares from a1 along the ranks to h8: ``Discrete(4096)``; legal
               are legal moves, and a pawn that reaches the last rank becomes a queen
observation    which of the twelve pieces stands on each square, one-hot: ``Box(768)``
reward         1 for checkmate
termination    after the move
=============  =====================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Int8Array, UInt32Array
from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.puzzle.bank import Bank
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Example, Malformed, Puzzle, Verdict, wrong

from ..shared.board import CLUE_PAPER, FILLED, INK, PAPER, Board
from ..shared.puzzle_task import Params, PuzzleTask
from ..shared.symmetry import smallest_form, square_symmetries
from .chess_moves import (
    BISHOP,
    BLACK,
    KING,
    KNIGHT,
    LETTERS,
    PAWN,
    QUEEN,
    ROOK,
    WHITE,
    Move,
    is_attacked,
    legal_moves,
    make_move,
    mates,
    move_name,
    square_name,
)

PIECES = (QUEEN, ROOK, ROOK, BISHOP, BISHOP, KNIGHT, KNIGHT, PAWN, PAWN, PAWN, PAWN)
"""Pieces from which a side draws, besides its king."""
MAX_PIECES = 16
MOVES = 64 * 64
_MOVE = re.compile(r"[a-h][1-8][a-h][1-8][qrbn]?")


class Instance(NamedTuple):
    """A position with white to move and mate."""

    board: np.ndarray
    """int8 ``(64,)``, from a1 along the ranks; 0 for an empty square.

    1 to 6 stand for white pawn, knight, bishop, rook, queen and king; negative numbers for black.
    """


class CheckmatePuzzle(Puzzle[Instance]):
    """``tier`` is the number of pieces."""

    name = "CheckmateInOne"
    difficulty_is = "legal moves for each that is checkmate"
    tier_is = "the number of pieces"
    tiers = range(4, MAX_PIECES + 1)
    few: ClassVar[dict[float, float]] = {4: 360_000}

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.of_white = int(tier) // 2 + 1
        self.of_black = int(tier) - self.of_white

    def compose(self, dice: Dice) -> Instance | None:
        """Draw pieces on random squares.

        Return None if white, to move, cannot give mate in that position.
        """
        board = [0] * 64
        squares = dice.sample(range(64), self.of_white + self.of_black)
        for side, count in ((WHITE, self.of_white), (BLACK, self.of_black)):
            for piece in (KING, *dice.sample(PIECES, count - 1)):
                square = squares.pop()
                if piece == PAWN and not 8 <= square < 56:
                    return None
                board[square] = side * piece
        if is_attacked(board, board.index(BLACK * KING), WHITE):
            return None
        mating_moves = mates(board, WHITE)
        return (
            Instance(np.array(board, np.int8))
            if any(m.promotion in (0, QUEEN) for m in mating_moves)
            else None
        )

    def canonical(self, instance: Instance) -> bytes:
        """Return the lesser of the position and its mirror image.

        Without pawns, return the least of all eight images.
        """
        board = (instance.board + KING).tolist()
        symmetries = square_symmetries(8)
        if (abs(instance.board) == PAWN).any():
            symmetries = tuple(
                order for order in symmetries if order[0] in (0, 7) and order[7] in (0, 7)
            )
        return smallest_form([board[i] for i in order] for order in symmetries)

    def question(self, instance: Instance) -> str:
        """State the position and the format of the answer."""
        return (
            "Chess: White is to move and can checkmate with this move. There is no castling and no "
            "en passant. White's "
            "pieces are K Q R B N P, Black's are k q r b n "
            f"p:\n\n{diagram(instance.board.tolist())}"
            f"\n\nThe same in Forsyth-Edwards notation: {fen(instance.board.tolist())}\n\n"
            "Answer with a move that is checkmate, in UCI notation (not SAN): the square it starts "
            "from and the square "
            "it ends on; if a pawn promotes, the letter of the new piece (q, r, b or n) follows, "
            "as in e7e8q."
        )

    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Show the notation."""
        return [Example("For example, a move from e2 to e4 is written:", "e2e4")]

    def mend(self, answer: str) -> str:
        """Return the move in small letters."""
        return super().mend(answer).lower()

    def judge(self, instance: Instance, answer: str) -> Verdict:
        """Check the format, then the rules of chess, then whether it is checkmate."""
        if _MOVE.fullmatch(answer) is None:
            raise Malformed(
                "expected a move such as e2e4, or e7e8q where a pawn reaches the last rank"
            )
        board = instance.board.tolist()
        if answer in map(move_name, mates(board, WHITE)):
            return RIGHT
        legal = answer in map(move_name, legal_moves(board, WHITE))
        return wrong(f"{answer} is not checkmate" if legal else f"{answer} is not a legal move")

    def solve(self, instance: Instance) -> str:
        """Return the first move found that is checkmate."""
        return move_name(mates(instance.board.tolist(), WHITE)[0])

    def plan(self, instance: Instance) -> list[int]:
        """Return the first solution that an action of the task can express."""
        return [
            _action(move)
            for move in mates(instance.board.tolist(), WHITE)
            if move.promotion in (0, QUEEN)
        ][:1]

    def difficulty(self, instance: Instance) -> float:
        """Return one divided by the score of a player of random legal moves."""
        board = instance.board.tolist()
        return len(list(legal_moves(board, WHITE))) / len(mates(board, WHITE))

    def guess(self, instance: Instance, dice: Dice) -> str:
        """Play any legal move."""
        return move_name(dice.choice(list(legal_moves(instance.board.tolist(), WHITE))))

    def heuristic(self, instance: Instance) -> str:
        """Return a check by the heaviest piece that can give one."""
        board = instance.board.tolist()
        king = board.index(BLACK * KING)
        legal = list(legal_moves(board, WHITE))
        return move_name(
            max(
                legal,
                key=lambda m: (is_attacked(make_move(board, m)[0], king, WHITE), board[m.start]),
            )
        )

    def constants(self) -> Sequence[str]:
        """Return the moves of a rook or queen to the last rank."""
        return [f"{file}1{file}8" for file in "abcdefgh"]


def _action(move: Move) -> int:
    return 64 * move.start + move.end


def _letter(piece: int) -> str:
    return LETTERS[piece] if piece >= 0 else LETTERS[-piece].lower()


def diagram(board: Sequence[int]) -> str:
    """Return the board from white's side, ranks and files named."""
    ranks = [
        " ".join([str(r + 1), *map(_letter, board[8 * r : 8 * r + 8])]) for r in reversed(range(8))
    ]
    return "\n".join([*ranks, "  a b c d e f g h"])


def fen(board: Sequence[int]) -> str:
    """Write the position in Forsyth-Edwards notation, white to move."""
    ranks = ("".join(map(_letter, board[8 * r : 8 * r + 8])) for r in reversed(range(8)))
    return (
        "/".join(re.sub(r"\.+", lambda run: str(len(run[0])), rank) for rank in ranks)
        + " w - - 0 1"
    )


# -- the interactive form --------------------------------------------------------------------------


class PositionMoves(NamedTuple):
    """A position and its moves, as the task's actions."""

    board: Int8Array  # (64,)
    legal: UInt32Array
    """uint32 ``(128,)``: a bit for every action."""
    mating: UInt32Array
    """uint32 ``(128,)``: a bit for every action that mates."""


def chances(boards: np.ndarray) -> PositionMoves:
    """Find the moves of some positions ``(count, 64)``."""
    flags = np.zeros((2, len(boards), MOVES), bool)
    for number, board in enumerate(boards.tolist()):
        for which, moves in enumerate((legal_moves(board, WHITE), mates(board, WHITE))):
            flags[
                which, number, [_action(move) for move in moves if move.promotion in (0, QUEEN)]
            ] = True
    words = np.packbits(flags, axis=2, bitorder="little").view("<u4").astype(np.uint32)
    return PositionMoves(boards, *words)


class State(NamedTuple):
    """The move played so far."""

    action: jax.Array
    """int32: -1 before the move."""


class CheckmateInOne(PuzzleTask[State]):
    """The interactive form: one move, which must checkmate."""

    puzzle: CheckmatePuzzle
    puzzle_class = CheckmatePuzzle
    bank_size = 512  # their moves are found whenever the task is made
    picture_shape = (360, 360, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.action_space = spaces.Discrete(MOVES)
        self.observation_space = self.box(0.0, 1.0, (12 * 64,))
        self.reward_space = self.box(0.0, 1.0)
        start, end = np.divmod(np.arange(MOVES), 64)
        squares = np.eye(64, dtype=np.float32)
        self.action_features = np.concatenate([squares[start], squares[end]], axis=1)

    @cached_property
    def bank(self) -> Bank:
        """The positions with their moves."""
        bank = super().bank
        return bank._replace(instances=chances(bank.instances.board))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Begin with no move."""
        return State(jnp.int32(-1))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Return the move."""
        return State(action.astype(jnp.int32))

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return which piece stands on each square."""
        pieces = np.array(
            [side * piece for side in (WHITE, BLACK) for piece in range(PAWN, KING + 1)], np.int8
        )
        return (params.instance.board[:, None] == pieces).astype(self.dtype).reshape(-1)

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the piece on each square."""
        meaning = (
            "[square, piece]: which piece stands there, one-hot: pawn, knight, bishop, rook, "
            "queen, king of white, then of black; squares a1, b1, ... h8"
        )
        return (Component("board", meaning, shape=(64, 12)),)

    def action_components(self) -> tuple[Component, ...]:
        """Describe each action: from a square to a square."""
        meaning = (
            "[from, to]: move a piece between two squares, a1, b1, ... h8; a pawn on the last rank "
            "becomes a queen"
        )
        return (Component("move", meaning, shape=(64, 64)),)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return 1 for checkmate."""
        return ((state.action < 0) & self._success(next_state, params)).astype(self.dtype)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the move was made."""
        return state.action >= 0

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: the move was checkmate."""
        return {"success": self._success(state, params)}

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Return the legal moves, bool ``(4096,)``."""
        return (params.instance.legal[:, None] >> np.arange(32, dtype=np.uint32) & 1 != 0).reshape(
            -1
        )

    def _success(self, state: State, params: Params) -> jax.Array:
        action = jnp.maximum(state.action, 0)
        bit = params.instance.mating[action // 32] >> (action % 32).astype(jnp.uint32) & 1
        return (state.action >= 0) & (bit != 0)

    # -- host side ---------------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Show the board."""
        board = diagram(np.asarray(params.instance.board).tolist())
        return f"White is to move and can checkmate with this move.\n\n{board}"

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        return "Answer with a move such as e2e4; a pawn that reaches the last rank becomes a queen."

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Read ``e2e4``; a ``q`` may follow.

        Raises:
            ValueError: anything else.
        """
        move = text.strip().lower().removesuffix("q")
        if _MOVE.fullmatch(move) is None or len(move) != 4:
            raise ValueError(f"expected a move such as e2e4, got {text[:40]!r}")
        start, end = (
            8 * int(name[1]) - 8 + "abcdefgh".index(name[0]) for name in (move[:2], move[2:])
        )
        return np.asarray(64 * start + end, self.action_space.dtype)

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the move."""
        start, end = (
            f"{'abcdefgh'[square % 8]}{square // 8 + 1}" for square in divmod(int(action), 64)
        )
        return start + end

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Say that the laws of chess forbid the move."""
        start, end = divmod(int(action), 64)
        return f"{square_name(start)}{square_name(end)} is not a legal move"

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Return whether it was checkmate."""
        return "it is checkmate" if info["success"] else "the move was no checkmate"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the board before the move, white's pieces in blue; the move as a line."""
        board = Board(8, 8, self.picture_shape)
        for square, piece in enumerate(np.asarray(params.instance.board).tolist()):
            row, column = 7 - square // 8, square % 8
            board.cell(row, column, paper=PAPER if (row + column) % 2 == 0 else CLUE_PAPER)
            if piece:
                board.text(row, column, _letter(piece).upper(), FILLED if piece > 0 else INK)
        if (action := int(state.action)) >= 0:
            start, end = divmod(action, 64)
            board.line(7.5 - start // 8, start % 8 + 0.5, 7.5 - end // 8, end % 8 + 0.5, FILLED)
        board.text(-0.8, 3.5, "White (blue) moves and checkmates", INK, 0.6)
        for index in range(8):
            board.text(8 - 0.2, index, "abcdefgh"[index], INK, 0.7)
            board.text(7 - index, -0.8, str(index + 1), INK, 0.7)
        return board.picture()
