"""Play a whole game of chess against an opponent of graded strength.

LMRL-Gym (Abdulhai et al. 2023, arXiv:2311.18232) plays White against Stockfish; a win earns 1, a
loss -1, and an illegal move costs 1 each time. Here the opponent is part of the task, illegal moves
are masked, and a draw earns half a point, as in tournaments.

==========  ======  ================================================================================
difficulty  number  opponent
==========  ======  ================================================================================
``easy``    0       the better of two random moves by the measure of ``medium``, so that random play
                    seldom wins
``medium``  1       the move that wins most material at once, mate before all; of equal ones any
``hard``    2       the move after which the agent's position is worst (:func:`.players.promise`):
                    material, what the agent can capture, mobility, advanced pawns; of equal ones
                    any
==========  ======  ================================================================================

=============  =====================================================================================
action         ``Discrete(4672)``: ``64 * plane + square``, seen by the agent, whose pawns go north:
               planes of ``rules.py``. Masked: moves that are not legal
observation    ``(782,)``, seen by the agent: pawns, knights, bishops, rooks, queens, king of the
               agent, then of the opponent, each where they stand from a1 along the ranks to h8;
               rights to castle; the file of a pawn that may be captured in passing, one-hot; the
               fraction of the 50 moves that has gone; how often the position has occurred before,
               of 2
reward         when the game is over: 1 for a win, 0.5 for a draw, 0 for a loss
termination    mate, stalemate, a position for the third time, 50 moves of each side without a
               capture or a move of a pawn, material that cannot mate
success        a win
context        4 random half-moves from the first position, or 5, so that the agent is White or
               Black; material is then equal. A hash of the position that the agent sees decides its
               split: every fourth, test
=============  =====================================================================================

Differences from the rules of FIDE: draws by repetition and by 50 moves need no claim, both are
counted from the first position of the episode, and nobody resigns or offers a draw. A game that is
not over after 200 moves earns nothing.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jax import lax

from rlbench_suite.core.arrays import Int, UInt32Array
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from .notation import (
    SQUARE,
    SQUARES,
    draw_board,
    endpoints,
    fen,
    format_board,
    members,
    move_name,
    pieces,
    read_move,
)
from .opening import Params, any_rank, choice, sample_opening
from .players import FREEDOM, MATE, TIES, game_over_score, material, promise
from .rules import (
    LIMIT,
    MOVES,
    Legal,
    Position,
    advance,
    cannot_mate,
    count_occurrences,
    mix_bits,
    record_position,
)
from .sight import ACTION_COMPONENTS, OBSERVATION_COMPONENTS, OBSERVATION_SIZE, observe

CARELESS, GREEDY, FARSIGHTED = range(3)
PLAYING, WON, LOST, STALEMATE, REPETITION, FIFTY, INSUFFICIENT = range(7)
ENDS = {
    WON: "mate: you have won",
    LOST: "mate: you have lost",
    STALEMATE: "a draw: stalemate",
    REPETITION: "a draw: the position has occurred for the third time",
    FIFTY: "a draw: 50 moves without a capture or a move of a pawn",
    INSUFFICIENT: "a draw: neither side can ever mate",
}


class State(NamedTuple):
    """The game."""

    position: Position
    """The position, seen by the agent, who is to move unless the game is over."""
    legal: Legal
    """Its legal moves; none once the game is over."""
    history: UInt32Array  # (100, 2)
    """Fingerprints of positions since the last capture or move of a pawn, uint32 ``(100, 2)``.

    A position's row is its ``clock``.
    """
    repeats: Int
    """Number of earlier times that the position has occurred, int32"""
    last: Int
    """The opponent's reply to the last move, seen by the opponent, int32; -1 if there is none."""
    moves: Int
    """Moves of the agent so far, int32."""
    end: Int
    """0 while the game goes on, then 1 to 6; see :data:`ENDS`."""


def ending(position: Position, legal: Legal, repeats: jax.Array, mated: int) -> jax.Array:
    """Return the way in which the game ends in a position, int32; 0 if it goes on.

    The number is ``mated`` if the side to move is mated.
    """
    stuck = ~(legal.words != 0).any()
    conditions = (
        (stuck & legal.check, mated), (stuck, STALEMATE), (cannot_mate(position), INSUFFICIENT),
        (repeats >= 2, REPETITION), (position.clock >= LIMIT, FIFTY),
    )  # fmt: skip
    end = jnp.int32(PLAYING)
    for holds, name in reversed(conditions):
        end = jnp.where(holds, name, end)
    return end.astype(jnp.int32)


class Replies(NamedTuple):
    """The agent's move, then the moves that the opponent has tried."""

    tried: Int
    parent: tuple[Position, Legal]
    """The position after the agent's move, and the opponent's moves."""
    best: tuple[Position, Legal]
    """The position after the best of them, and the agent's moves."""
    score: Int
    move: Int


class Chess(Task[Params, State]):
    """The task; see the module's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "moves": "moves of the agent so far",
        "material": (
            "worth of the agent's pieces minus that of the opponent's, in hundredths of a pawn"
        ),
        "end": (
            "0 while the game goes on, 1 won, 2 lost, 3 stalemate, 4 repetition, 5 50 moves, 6 "
            "nobody can mate"
        ),
    }
    picture_shape = (8 * SQUARE, 8 * SQUARE, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.opponent = GREEDY if difficulty is None else difficulty
        if self.opponent not in (CARELESS, GREEDY, FARSIGHTED):
            raise ValueError(
                f"A difficulty of {card.id} is 0 (easy: careless), 1 (medium: greedy) or 2 (hard: "
                f"looks ahead); got {difficulty!r}."
            )
        self.observation_space = self.box(0.0, 1.0, (OBSERVATION_SIZE,))
        self.action_space = spaces.Discrete(MOVES)
        self.reward_space = self.box(0.0, 1.0, ())

    # -- the functions of an episode ---------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw colour and opening."""
        return sample_opening(self.bits(key, 2), split)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Set up the position."""
        history = record_position(jnp.zeros((LIMIT, 2), jnp.uint32), params.position)
        return State(
            params.position,
            params.legal,
            history,
            jnp.int32(0),
            jnp.int32(-1),
            jnp.int32(0),
            jnp.int32(PLAYING),
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Move, then let the opponent reply."""
        salt = self.bits(key, 1)[0]

        # The agent's move and the moves that the opponent tries share one loop, so that the rules
        # are compiled once.
        def step(replies: Replies) -> Replies:
            tried, (parent, opponent_moves), best, score, best_move = replies
            first = tried == 0
            noise = mix_bits(salt + tried.astype(jnp.uint32))
            rank = (
                any_rank(noise, opponent_moves.size()) if self.opponent == CARELESS else tried - 1
            )
            move = jnp.where(first, action.astype(jnp.int32), opponent_moves.nth(rank))
            after = advance(choice(first, state.position, parent), move)
            total = TIES * self._score(*after) + (noise % TIES).astype(jnp.int32)
            better = ~first & (total > score)
            return Replies(
                tried + 1,
                choice(first, after, (parent, opponent_moves)),
                choice(better, after, best),
                jnp.where(better, total, score),
                jnp.where(better, move, best_move),
            )

        def more(replies: Replies) -> jax.Array:
            size = replies.parent[1].size()
            return replies.tried <= (jnp.minimum(size, 2) if self.opponent == CARELESS else size)

        here = state.position, state.legal
        begin = Replies(jnp.int32(0), here, here, jnp.int32(-(2**30)), jnp.int32(-1))
        replies = lax.while_loop(more, step, begin)
        opponent_position, answers = replies.parent
        agent_position, legal = replies.best
        before = count_occurrences(state.history, opponent_position)
        history = record_position(state.history, opponent_position)
        at_once = ending(opponent_position, answers, before, WON)
        repeats = jnp.where(at_once > 0, before, count_occurrences(history, agent_position))
        end = jnp.where(at_once > 0, at_once, ending(agent_position, legal, repeats, LOST))
        return State(
            choice(at_once > 0, opponent_position.swap_sides(), agent_position),
            legal._replace(words=jnp.where(end > 0, np.uint32(0), legal.words)),
            record_position(history, agent_position),
            repeats,
            jnp.where(at_once > 0, -1, replies.move),
            state.moves + 1,
            end,
        )

    def _score(self, position: Position, legal: Legal) -> jax.Array:
        """Return what a position after the opponent's move is worth to the opponent, int32."""
        if self.opponent == FARSIGHTED:
            ended, score = game_over_score(position, legal)
            return -jnp.where(ended, score, promise(position) + FREEDOM * legal.size())
        mate = ~(legal.words != 0).any() & legal.check
        return jnp.where(mate, MATE, -material(position))

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Return which moves are legal, bool ``(4672,)``."""
        return state.legal.mask()

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the pieces of both sides, rights, clock and repetitions."""
        return observe(state.position, state.repeats, self.dtype)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return OBSERVATION_COMPONENTS

    def action_components(self) -> tuple[Component, ...]:
        """List the moves."""
        return ACTION_COMPONENTS

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the points when the game is over."""
        points = jnp.where(next_state.end == WON, 1.0, jnp.where(next_state.end > LOST, 0.5, 0.0))
        return jnp.where(state.end == PLAYING, points, 0.0).astype(self.dtype)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the game is over."""
        return state.end != PLAYING

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return success and measures."""
        return {
            "success": state.end == WON,
            "moves": state.moves,
            "material": material(state.position),
            "end": state.end,
        }

    # -- words and pictures ------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Describe the position and list the legal moves."""
        position = state.position
        black = bool(params.black)
        board = pieces(position, black)
        lines = [format_board(board), f"FEN: {fen(position, black, int(state.moves) + 1)}"]
        if int(state.last) >= 0:
            start, end = endpoints(int(state.last), not black)
            lines.append(
                f"The opponent moved {board[end]} from {SQUARES[start]} to {SQUARES[end]}."
            )
        if int(state.repeats):
            lines.append(f"The position has occurred {int(state.repeats)} times before.")
        if int(state.end) == PLAYING:
            names = sorted(move_name(move, position, black) for move in members(state.legal.words))
            lines.append(f"You are {'Black' if black else 'White'}. Legal moves: {' '.join(names)}")
        return "\n".join(lines)

    def rules(self) -> str:
        """Return the rules."""
        opponent = ("often overlooks captures", "takes what it can", "looks ahead")[
            int(self.opponent)
        ]
        return (
            f"A game of chess against an opponent that {opponent}. A win earns 1, a draw 0.5, a "
            "loss 0. Draws: "
            "stalemate, a position for the third time, 50 moves of each side without a capture or "
            "a move of a pawn, "
            "material that cannot mate. Upper-case letters are White's pieces. A move that is not "
            "legal is refused and "
            f"costs a turn. A game that is not over after {self.card.horizon} turns earns nothing."
        )

    def how_to_act(self) -> str:
        """Tell a text player how moves are written."""
        return "Answer with one move in UCI notation: e2e4, e1g1 to castle, e7e8q for a new queen."

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the move of a text in UCI notation.

        Raises:
            ValueError: the text is no such move.
        """
        return np.array(
            read_move(text.strip().lower(), state.position, bool(params.black)),
            self.action_space.dtype,
        )

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the move in UCI notation; a move off the board by its ranks and files."""
        return move_name(int(action), state.position, bool(params.black))

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Say why a move is not legal."""
        black = bool(params.black)
        name = self.spell(action, state, params)
        board = pieces(state.position, black)
        start, end = endpoints(int(action), black)
        is_own = str.islower if black else str.isupper
        if end < 0:
            return f"{name} leads off the board"
        if start not in board:
            return f"{name}: {SQUARES[start]} is empty"
        if not is_own(board[start]):
            return f"{name}: the piece on {SQUARES[start]} is not yours"
        if is_own(board.get(end, " ")):
            return f"{name}: your own piece stands on {SQUARES[end]}"
        return f"{name}: the piece does not move like this here, or your king would be in check"

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say how the game ended."""
        return f"{ENDS[int(state.end)]}, after {int(state.moves)} moves"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the board as White sees it; the opponent's last move is marked."""
        black = bool(params.black)
        marked_squares = endpoints(int(state.last), not black) if int(state.last) >= 0 else ()
        return draw_board(pieces(state.position, black), marked_squares)
