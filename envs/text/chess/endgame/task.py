"""Mate a perfect defender in a chess endgame.

LMRL-Gym (Abdulhai et al. 2023, arXiv:2311.18232) plays endgames against an engine, and an illegal
move costs 1 each time. Here White, the agent, has a king and one piece, or two bishops. Black, a
king alone, plays the best reply of a table of every position (``tables.py``, ``two_bishops.py``):
it draws if it can, else it lasts longest. Illegal moves are masked.

===========  ======  =========================================  ============
difficulty   number  White                                      longest mate
===========  ======  =========================================  ============
``easy``     1       king and queen                             10 moves
``medium``   2       king and rook                              16 moves
``hard``     3       king and pawn, which becomes a queen       28 moves
``bishops``  4       king and two bishops, one on each colour   19 moves
===========  ======  =========================================  ============

=============  =====================================================================================
action         ``Discrete(64)``: 0 to 7 the king's step north, north-east, ... clockwise; 8 + 7 d +
               k - 1 the piece's move by k squares in direction d. Two bishops: those of the one on
               light squares, then, from 64 on, of the other, ``Discrete(120)``. Masked: moves that
               are not legal
observation    ``(193,)``, with a pawn or bishops ``(257,)``: the squares of the white king, the
               piece (pawn, queen; light, dark bishop) and the black king, one-hot from a1 along the
               ranks to h8; the fraction of the 50 moves that is left
reward         1 - (n - 1) / 50 for mate with move n; 0 for everything else
termination    mate; stalemate, a piece is lost, or 50 moves without mate: a draw
success        mate
context        a position that is won, White to move: uniform over those that no turn or mirror
               image of the board makes equal, then turned or mirrored at random. A hash of the
               position decides its split: every fourth, test
=============  =====================================================================================

**Optimum.** Against this defender the quickest mate takes the number of moves of the table, so that
the best return is 1 - (n - 1) / 50 for a position with n. The means over positions of the test
split are exact (:attr:`Endgame.optimum`).

A pawn that promotes always becomes a queen.
"""

from __future__ import annotations

import re
from functools import cached_property, reduce
from operator import and_
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Flag, Int
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Split, Task
from rlbench_suite.core.task_card import TaskCard

from ..notation import SQUARE, SQUARES, draw_board, format_board
from .tables import (
    BISHOP,
    DIRECTIONS,
    KING_MOVES,
    MATE,
    MAX_SLIDE,
    MOVES,
    NEAR,
    NORTH,
    PAWN,
    QUEEN,
    RAYS,
    REACH,
    ROOK,
    SLIDES,
    STALEMATE,
    STEPS,
    Tables,
    solve,
)
from .two_bishops import solve_bishops

LIMIT = 50
"""Moves of White after which the game is drawn."""
PIECES = (QUEEN, ROOK, PAWN, BISHOP)
PLAYING, WON, STALEMATED, LOST_PIECE = range(4)
DRAWS = {STALEMATED: "stalemate", LOST_PIECE: "Black has captured a piece"}
NAMES = {QUEEN: "queen", ROOK: "rook", PAWN: "pawn", BISHOP: "bishop"}
PIECES_IN_WORDS = {
    QUEEN: "a queen", ROOK: "a rook", PAWN: "a pawn, which becomes a queen on the last rank",
    BISHOP: "two bishops",
}  # fmt: skip
COMPASS = ("north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west")


class Params(NamedTuple):
    """The first position: squares 0 to 63 from a1 along the ranks, int32."""

    king: Int
    piece: Int
    second: Int
    foe: Int
    shortest: Int
    """Moves of the quickest mate."""


class State(NamedTuple):
    """The position, int32."""

    king: Int
    """Square of the white king."""
    piece: Int
    """Square of the piece; of two bishops that on light squares."""
    second: Int
    """Square of the bishop on dark squares; -1 where there is none."""
    foe: Int
    """Square of the black king."""
    queen: Flag
    """Whether the piece is a queen, bool; a pawn may become one."""
    moves: Int
    """Moves of White so far."""
    end: Int
    """0 while the game goes on, 1 mate, 2 stalemate, 3 a piece is lost."""


def turn_square(square: Any, by: Any) -> Any:
    """Return a square on a mirrored board.

    The bits of ``by`` mirror it left to right (bit 0), top to bottom (1) and in the diagonal (2).
    """
    rank, file = square >> 3, square & 7
    rank, file = rank ^ 7 * (by >> 1 & 1), file ^ 7 * (by & 1)
    swap = by >> 2 & 1
    return 8 * (rank + swap * (file - rank)) + file + swap * (rank - file)


def colour(square: int) -> int:
    """Return 1 for a light square, 0 for a dark one."""
    return (square // 8 + square) % 2


def king_steps(king: Any) -> list[tuple[Any, Any]]:
    """Return the square of a king's step in each direction, and whether it is on the board."""
    rank, file = king >> 3, king & 7
    steps = [(rank + up, file + right) for up, right in STEPS.tolist()]
    return [(8 * up + right, ((up | right) & ~7) == 0) for up, right in steps]


def touch(first: Any, second: Any) -> Any:
    """Return whether two squares touch or are the same."""
    rank, file = (first >> 3) - (second >> 3), (first & 7) - (second & 7)
    return (rank * rank <= 1) & (file * file <= 1)


class Endgame(Task[Params, State]):
    """The task; see the module's docstring.

    Attributes:
        piece: the piece besides the king: ``Q``, ``R``, ``P``, or ``B`` for two bishops.
    """

    measures: ClassVar[dict[str, str]] = {
        "moves": "moves of White so far",
        "shortest": (
            "moves of the quickest mate from the first position once the game is over, -1 before"
        ),
        "end": "0 while the game goes on, 1 mate, 2 stalemate, 3 a piece is lost",
    }
    counts_turns = True
    picture_shape = (8 * SQUARE, 8 * SQUARE, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        number = 1.0 if difficulty is None else difficulty
        if number not in range(1, len(PIECES) + 1):
            raise ValueError(
                f"A difficulty of {card.id} is 1 (queen), 2 (rook), 3 (pawn) or 4 (bishops); got "
                f"{difficulty!r}."
            )  # fmt: skip
        self.piece = PIECES[int(number) - 1]
        self.planes = 4 if self.piece in (PAWN, BISHOP) else 3
        self.observation_space = self.box(0.0, 1.0, (64 * self.planes + 1,))
        self.action_space = spaces.Discrete(MOVES + DIRECTIONS * MAX_SLIDE * (self.piece == BISHOP))
        self.reward_space = self.box(0.0, 1.0, ())

    # -- positions, on the host --------------------------------------------------------------------

    @cached_property
    def _starts(self) -> tuple[np.ndarray, int]:
        """Return won positions as numbers, train first, and the number of those for training.

        One position stands for each set of equal ones.
        """
        squares = self._squares_of(np.flatnonzero(self._tables[0].distance > 0).astype(np.int32))
        images = [self._number(*self._turn(squares, by)) for by in range(self._images)]
        canonical = np.unique(np.min(images, 0)).astype(np.int32)
        test = hash_numbers(canonical) % 4 == 0
        return np.concatenate([canonical[~test], canonical[test]]), int((~test).sum())

    @property
    def _images(self) -> int:
        """Number of turns and mirror images of the board that keep the rules."""
        return 2 if self.piece == PAWN else 8

    @property
    def _tables(self) -> list[Tables]:
        """Return the tables of all endgames that may come up: a pawn becomes a queen."""
        if self.piece == BISHOP:
            return [solve_bishops()]
        return [solve(piece) for piece in ((PAWN, QUEEN) if self.piece == PAWN else self.piece)]

    def _number(self, king: Any, piece: Any, second: Any, foe: Any) -> Any:
        """Return the number of a position in its table."""
        if self.piece == BISHOP:
            return king << 16 | piece >> 1 << 11 | second >> 1 << 6 | foe
        return king << 12 | piece << 6 | foe

    def _squares_of(self, number: Any) -> tuple[Any, Any, Any, Any]:
        """Return white king, piece, second bishop and black king of a number."""
        if self.piece != BISHOP:
            return number >> 12, number >> 6 & 63, number * 0 - 1, number & 63
        light = number >> 11 & 31
        dark = number >> 6 & 31
        return (
            number >> 16,
            2 * light + (light >> 2 & 1 ^ 1),
            2 * dark + (dark >> 2 & 1),
            number & 63,
        )

    def _turn(self, squares: tuple[Any, Any, Any, Any], by: Any) -> tuple[Any, Any, Any, Any]:
        """Return a position on a board that is turned; see :func:`turn_square`.

        Light squares may become dark.
        """
        king, piece, second, foe = squares
        king, piece, foe = turn_square(king, by), turn_square(piece, by), turn_square(foe, by)
        if self.piece == BISHOP:
            second = turn_square(second, by)
            swap = (by ^ by >> 1) & 1
            piece, second = piece + swap * (second - piece), second + swap * (piece - second)
        return king, piece, second, foe

    @cached_property
    def optimum(self) -> float:
        """Best expected return on the test split."""
        starts, train = self._starts
        distance = self._tables[0].distance.ravel()[starts[train:]].astype(float)
        return float(1 - (distance.mean() - 1) / LIMIT)

    @cached_property
    def _replies(self) -> np.ndarray:
        """Return Black's replies by number, int8; those to a queen that was a pawn come last."""
        return np.concatenate([tables.reply.ravel() for tables in self._tables])

    @cached_property
    def _best_moves(self) -> np.ndarray:
        """Return White's best moves, likewise."""
        return np.concatenate([tables.best.ravel() for tables in self._tables])

    # -- the game ----------------------------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw a won position of the split."""
        starts, train = self._starts
        bits = jax.random.bits(key, (2,), jnp.uint32)
        test = split == Split.TEST
        size = jnp.where(test, len(starts) - train, train).astype(jnp.uint32)
        index = (bits[0] % size).astype(jnp.int32) + jnp.where(test, train, 0)
        number = jnp.asarray(starts)[index]
        by = (bits[1] & np.uint32(self._images - 1)).astype(jnp.int32)
        distance = jnp.asarray(self._tables[0].distance.ravel()[starts])
        return Params(*self._turn(self._squares_of(number), by), distance[index].astype(jnp.int32))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Set up the position."""
        queen = jnp.bool_(self.piece == QUEEN)
        return State(
            params.king,
            params.piece,
            params.second,
            params.foe,
            queen,
            jnp.int32(0),
            jnp.int32(PLAYING),
        )

    def move_white(self, state: State, action: jax.Array) -> tuple[jax.Array, ...]:
        """Return king, piece and second bishop after a move of White.

        The last value says whether the piece is a queen then.
        """
        action = action.astype(jnp.int32)
        rise, right = (jnp.asarray(STEPS[:, axis], jnp.int32) for axis in (0, 1))
        by_king = action < KING_MOVES
        by_second = action >= MOVES
        move = jnp.maximum(action - KING_MOVES, 0) % (MOVES - KING_MOVES)
        direction = jnp.where(by_king, jnp.minimum(action, DIRECTIONS - 1), move // MAX_SLIDE)
        step = (8 * rise[direction] + right[direction]) * jnp.where(
            by_king, 1, move % MAX_SLIDE + 1
        )
        king = jnp.where(by_king, state.king + step, state.king)
        piece = jnp.where(by_king | by_second, state.piece, state.piece + step)
        second = jnp.where(by_second, state.second + step, state.second)
        queen = state.queen | ((piece >= 56) if self.piece == PAWN else False)
        return king, piece, second, queen

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move, then let Black reply."""
        rise, right = (jnp.asarray(STEPS[:, axis], jnp.int32) for axis in (0, 1))
        king, piece, second, queen = self.move_white(state, action)
        number = self._number(king, piece, second, state.foe)
        reply = jnp.asarray(self._replies)[number + (64**3 * queen if self.piece == PAWN else 0)]
        toward = jnp.minimum(reply.astype(jnp.int32), DIRECTIONS - 1)
        foe = jnp.where(reply < DIRECTIONS, state.foe + 8 * rise[toward] + right[toward], state.foe)
        captured = (foe == piece) | (foe == second)
        draw = jnp.where(reply == STALEMATE, STALEMATED, jnp.where(captured, LOST_PIECE, PLAYING))
        end = jnp.where(reply == MATE, WON, draw).astype(jnp.int32)
        after = State(king, piece, second, foe, queen, state.moves + 1, end)
        if self.piece == PAWN:  # other pieces always have a move
            stuck = ~self.action_mask(after, params).any() & (end == PLAYING)
            after = after._replace(end=jnp.where(stuck, STALEMATED, end).astype(jnp.int32))
        return after

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Return which moves are legal, bool ``(64,)``."""
        pieces = [state.piece, state.second] if self.piece == BISHOP else [state.piece]
        king = [
            reduce(and_, (square != piece for piece in pieces), on & ~touch(square, state.foe))
            for square, on in king_steps(state.king)
        ]
        slide_directions = np.isin(
            np.arange(DIRECTIONS), SLIDES[QUEEN if self.piece == PAWN else self.piece]
        )
        reaches = [self._reachable(piece, state.king) for piece in pieces]
        slides = [jnp.asarray(slide_directions)[:, None] & reach for reach in reaches]
        if self.piece == PAWN:
            ahead = [(state.piece + 8 * steps != state.foe) for steps in (1, 2)]
            one_step = reaches[0][NORTH, 0] & ahead[0]
            two_steps = reaches[0][NORTH, 1] & ahead[0] & ahead[1] & (state.piece < 16)
            pushes = (
                jnp.zeros((DIRECTIONS, MAX_SLIDE), bool)
                .at[NORTH, 0]
                .set(one_step)
                .at[NORTH, 1]
                .set(two_steps)
            )
            slides = [jnp.where(state.queen, slides[0], pushes)]
        return jnp.concatenate([jnp.stack(king), *(moves.ravel() for moves in slides)])

    def _reachable(self, piece: Any, king: Any) -> jax.Array:
        """Return whether a sliding piece reaches the square k + 1 steps away: bool ``(8, 7)``."""
        reach = (
            jnp.asarray(self._reach)[64 * piece + king] >> np.arange(0, 24, 3, dtype=np.uint32) & 7
        )
        return jnp.arange(MAX_SLIDE, dtype=jnp.uint32) < reach[:, None]

    @cached_property
    def _reach(self) -> np.ndarray:
        """Return :data:`.tables.REACH`, packed: three bits a direction, uint32 ``(4096,)``."""
        return (
            (REACH.astype(np.uint32) << np.arange(0, 24, 3, dtype=np.uint32))
            .sum(-1)
            .astype(np.uint32)
            .ravel()
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the pieces' squares, one-hot, and the fraction of moves left."""
        board = np.arange(64)
        piece = state.piece
        planes = [board == state.king, board == piece, board == state.foe]
        if self.piece == PAWN:
            planes[1:2] = [planes[1] & ~state.queen, planes[1] & state.queen]
        if self.piece == BISHOP:
            planes.insert(2, board == state.second)
        fraction_left = ((LIMIT - state.moves).astype(self.dtype) / LIMIT)[None]
        return jnp.concatenate([*(plane.astype(self.dtype) for plane in planes), fraction_left])

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        bishops = ["bishop on light squares", "bishop on dark squares"]
        pieces = (
            bishops if self.piece == BISHOP else [NAMES[self.piece], "queen"][: self.planes - 2]
        )
        squares = "squares a1, b1, ..., h8"
        return (
            *(
                Component(
                    name.replace(" ", "_"),
                    f"where the {name} stands, one-hot; {squares}",
                    shape=(64,),
                )
                for name in ("white king", *pieces, "black king")
            ),
            Component("moves_left", "fraction of the 50 moves that is left"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the moves."""
        directions = "north, north-east, ... clockwise"
        return (
            Component("king", f"move the king by a step: {directions}", shape=(KING_MOVES,)),
            *(
                Component(
                    name,
                    f"[direction, squares - 1]: move it; {directions}",
                    shape=(DIRECTIONS, MAX_SLIDE),
                )
                for name in (
                    ("light_bishop", "dark_bishop") if self.piece == BISHOP else ("piece",)
                )
            ),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return 1 for mate, minus a fiftieth for every move before."""
        won = (next_state.end == WON) & (state.end != WON)
        return jnp.where(won, LIMIT + 1 - next_state.moves, 0).astype(self.dtype) / LIMIT

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the game is over."""
        return (state.end != PLAYING) | (state.moves >= LIMIT)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, mate, and the measures."""
        over = (state.end != PLAYING) | (state.moves >= LIMIT)
        return {
            "success": state.end == WON,
            "moves": state.moves,
            "shortest": jnp.where(over, params.shortest, -1),
            "end": state.end,
        }

    # -- host side ---------------------------------------------------------------------------------

    def _board(self, state: State) -> dict[int, str]:
        """Return the pieces by square, in letters of the Forsyth-Edwards notation."""
        letter = QUEEN if bool(state.queen) else self.piece
        second = {int(state.second): letter} if self.piece == BISHOP else {}
        return {int(state.piece): letter, **second, int(state.king): "K", int(state.foe): "k"}

    def describe(self, state: State, params: Params) -> str:
        """Describe the board: a diagram, the squares in words, and the moves that are left."""
        board = self._board(state)
        names = {"K": "white king", "k": "black king"} | {
            letter: f"white {name}" for letter, name in NAMES.items()
        }
        squares = ", ".join(
            f"{names[letter]} {SQUARES[square]}" for square, letter in sorted(board.items())
        )
        return (
            f"{format_board(board)}\n{squares[0].upper()}{squares[1:]}. Moves left: "
            f"{LIMIT - int(state.moves)}."
        )

    def rules(self) -> str:
        """Return the rules."""
        return (
            f"A chess endgame: you are White, with a king (K) and {PIECES_IN_WORDS[self.piece]}; "
            "Black has a king (k) "
            "alone and defends perfectly. Mate Black in as few moves as possible. Mate with move "
            "1, 2, 3, ... earns 1, "
            f"{1 - 1 / LIMIT:g}, {1 - 2 / LIMIT:g}, ... Stalemate, the loss of a piece, and "
            f"{LIMIT} moves without "
            "mate are draws, which earn nothing. A move that is not legal is refused. After "
            f"{self.card.horizon} replies the game is over."
        )

    def how_to_act(self) -> str:
        """Tell a text player how moves are written."""
        return (
            "Answer with one move: from and to square, such as e2e3, or in algebraic notation, "
            "such as Ke3."
        )

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the move of a text: ``e2e3``, ``e7e8q``, ``Ke3``, ``Qd7#``, ``e8=Q``.

        Raises:
            ValueError: the text is no move of the king or the piece along a line.
        """
        move = text.strip().rstrip("+#")
        if match := re.fullmatch(r"([a-h][1-8])([a-h][1-8])q?", move.lower()):
            from_square, to_square = map(SQUARES.index, match.groups())
        elif match := re.fullmatch(r"([KQRB]?)([a-h][1-8])(=?Q)?", move):
            letter = match[1] or PAWN
            to_square = SQUARES.index(match[2])
            fits = [
                square
                for square, board_letter in self._board(state).items()
                if board_letter == letter
            ]
            fits = [
                square for square in fits if letter != BISHOP or colour(square) == colour(to_square)
            ]
            from_square = fits[0] if fits else -1
        else:
            raise ValueError(f"expected a move such as e2e3 or Ke3, got {text.strip()[:100]!r}")
        if from_square < 0 or from_square not in (
            int(state.king),
            int(state.piece),
            int(state.second),
        ):
            raise ValueError(f"no white piece for {text.strip()[:100]!r}: {self._pieces(state)}")
        directions, steps = np.nonzero(RAYS[from_square] == to_square)
        if not len(directions) or (from_square == int(state.king) and steps[0]):
            raise ValueError(
                f"no king or {NAMES[self.piece]} moves from {SQUARES[from_square]} to "
                f"{SQUARES[to_square]}"
            )
        direction, step = int(directions[0]), int(steps[0])
        first = MOVES if from_square == int(state.second) else KING_MOVES
        number = (
            direction if from_square == int(state.king) else first + MAX_SLIDE * direction + step
        )
        return np.array(number, self.action_space.dtype)

    def _pieces(self, state: State) -> str:
        """Say where White's pieces stand."""
        pieces = {square: letter for square, letter in self._board(state).items() if letter != "k"}
        return "yours are " + " and ".join(
            f"{letter} on {SQUARES[square]}" for square, letter in pieces.items()
        )

    def _squares(self, action: int, state: State) -> tuple[int, int]:
        """Return the square from which a move goes, and that to which it goes; -1 off the board."""
        if action < KING_MOVES:
            return int(state.king), int(RAYS[int(state.king), action, 0])
        start = int(state.second if action >= MOVES else state.piece)
        return start, int(RAYS[(start, *self._direction_and_distance(action))])

    def _direction_and_distance(self, action: int) -> tuple[int, int]:
        """Return direction and squares, less 1, of a move."""
        if action < KING_MOVES:
            return action, 0
        return divmod((action - KING_MOVES) % (MOVES - KING_MOVES), MAX_SLIDE)

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the move in UCI notation.

        A move off the board is given by its number of squares and its direction.
        """
        start, target = self._squares(int(action), state)
        if target >= 0:
            return SQUARES[start] + SQUARES[target]
        direction, step = self._direction_and_distance(int(action))
        return f"{SQUARES[start]} {step + 1} {COMPASS[direction]}"

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Say which rule forbids the move."""
        start, target = self._squares(int(action), state)
        if target < 0:
            return f"{self.spell(action, state, params)} leads off the board"
        name = "king" if action < KING_MOVES else NAMES[QUEEN if bool(state.queen) else self.piece]
        move = f"{SQUARES[start]}{SQUARES[target]}"
        if target in (int(state.king), int(state.piece), int(state.second)):
            return f"{move}: your own piece stands on {SQUARES[target]}"
        if name == "king" and NEAR[target, int(state.foe)]:
            return f"{move}: the kings would touch"
        odd = self._direction_and_distance(int(action))[0] % 2
        if name == "pawn" or (name == "rook" and odd) or (name == "bishop" and not odd):
            return f"{move}: a {name} does not move like this here"
        return f"{move}: a piece stands between"

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say how the game ended."""
        quickest = f"the quickest mate took {int(params.shortest)}"
        if int(state.end) == WON:
            return f"mate with move {int(state.moves)}; {quickest}"
        return f"a draw: {DRAWS.get(int(state.end), f'{LIMIT} moves without mate')}; {quickest}"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the board."""
        return draw_board(self._board(state))


def hash_numbers(number: np.ndarray) -> np.ndarray:
    """Mix the bits of numbers, uint32 (Wellons 2018, lowbias32)."""
    number = number.astype(np.uint32)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        number = (number ^ number >> np.uint32(shift)) * np.uint32(factor)
    return number ^ number >> np.uint32(16)
