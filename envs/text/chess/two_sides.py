"""Play chess against another agent: both sides of the game of ``task.py``.

Agent 0 moves first. It is White or Black, as the opening asks.

=============  =====================================================================================
action         ``MultiDiscrete([4672, 4672])``: a move of each agent, as its side sees it; only that
               of the agent whose turn it is counts. Masked: moves that are not legal
observation    ``(2, 782)``: that of ``task.py``, seen by each agent
reward         ``(2,)``: when the game is over 1 for a win, 0.5 for a draw, 0 for a loss
termination    that of ``task.py``
success        agent 0 has won
context        that of ``task.py``
=============  =====================================================================================
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Int, UInt32Array
from rlbench_suite.core.component import Component
from rlbench_suite.core.game import Game
from rlbench_suite.core.task_card import TaskCard

from .notation import SQUARE, draw_board, endpoints, fen, format_board, pieces
from .opening import Params, sample_opening
from .players import material
from .rules import LIMIT, MOVES, Legal, Position, advance, count_occurrences, record_position
from .sight import ACTION_COMPONENTS, OBSERVATION_COMPONENTS, OBSERVATION_SIZE, observe
from .task import LOST, PLAYING, ending

AGENTS = np.arange(2)


class State(NamedTuple):
    """The game."""

    position: Position
    """The position, seen by the side to move."""
    legal: Legal
    """Its legal moves; none once the game is over."""
    history: UInt32Array
    """Fingerprints of positions since the last capture or move of a pawn, ``(100, 2)``."""
    repeats: Int
    """Number of earlier times that the position has occurred."""
    last: Int
    """The last move, seen by who made it; -1 before the first one."""
    plies: Int
    """Moves of both sides so far."""
    end: Int
    """0 while the game goes on; else how it ended for the side to move, as in ``task.py``."""


class ChessGame(Game[Params, State]):
    """The task; see the module's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "plies": "moves of both sides so far",
        "material": "worth of agent 0's pieces minus that of agent 1's, in hundredths of a pawn",
    }
    zero_sum = False  # a draw earns both half a point
    picture_shape = (8 * SQUARE, 8 * SQUARE, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.observation_space = self.box(0.0, 1.0, (2, OBSERVATION_SIZE))
        self.action_space = spaces.MultiDiscrete([MOVES, MOVES])
        self.reward_space = self.box(0.0, 1.0, (2,))

    # -- the functions of an episode ---------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw colours and opening."""
        return sample_opening(self.bits(key, 2), split)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Set up the position."""
        history = record_position(jnp.zeros((LIMIT, 2), jnp.uint32), params.position)
        nothing = jnp.int32(0)
        return State(
            params.position, params.legal, history, nothing, jnp.int32(-1), nothing,
            jnp.int32(PLAYING),
        )  # fmt: skip

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Make the move of the side to move."""
        move = action[state.plies % 2].astype(jnp.int32)
        position, legal = advance(state.position, move)
        repeats = count_occurrences(state.history, position)
        end = ending(position, legal, repeats, LOST)
        return State(
            position,
            legal._replace(words=jnp.where(end > 0, np.uint32(0), legal.words)),
            record_position(state.history, position),
            repeats,
            move,
            state.plies + 1,
            end,
        )

    def acting(self, state: State, params: Params) -> jax.Array:
        """Return whose turn it is."""
        return state.plies % 2 == AGENTS

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Return which moves are legal; all are for the agent that waits, bool ``(9344,)``."""
        legal = state.legal.mask()
        return jnp.concatenate([legal | ~acts for acts in self.acting(state, params)])

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return what each agent sees, ``(2, 782)``."""
        mover, waiting = (
            observe(position, state.repeats, self.dtype)
            for position in (state.position, state.position.swap_sides())
        )
        is_agent_0 = state.plies % 2 == 0
        return jnp.where(is_agent_0, jnp.stack([mover, waiting]), jnp.stack([waiting, mover]))

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the points of both agents when the game is over, ``(2,)``."""
        points = jnp.where(
            next_state.end == LOST, self.won(next_state, params).astype(self.dtype), 0.5
        )
        has_ended = (state.end == PLAYING) & (next_state.end != PLAYING)
        return jnp.where(has_ended, points, 0.0).astype(self.dtype)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the game is over."""
        return state.end != PLAYING

    def won(self, state: State, params: Params) -> jax.Array:
        """Return which agent has won, bool ``(2,)``: who waits while the other is mated."""
        return (state.end == LOST) & ~self.acting(state, params)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return whether agent 0 has won, and the measures."""
        sign = jnp.where(state.plies % 2 == 0, 1, -1)
        return {
            "success": self.won(state, params)[0],
            "plies": state.plies,
            "material": sign * material(state.position),
        }

    # -- names, words and pictures -----------------------------------------------------------------

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of what an agent sees."""
        return OBSERVATION_COMPONENTS

    def action_components(self) -> tuple[Component, ...]:
        """Say what the move of each agent is."""
        (move,) = ACTION_COMPONENTS
        return (
            Component(move.name, f"[agent]: 64 * plane + square of {move.meaning}", shape=(2,)),
        )

    def _is_black_to_move(self, state: State, params: Params) -> bool:
        return bool(params.black) ^ bool(state.plies % 2)

    def describe(self, state: State, params: Params) -> str:
        """Show the board, and say whose turn it is."""
        black = self._is_black_to_move(state, params)
        position = state.position
        move_number = int(state.plies) // 2 + 1
        return (
            f"{format_board(pieces(position, black))}\nFEN: {fen(position, black, move_number)}\n"
            f"{'Black' if black else 'White'}, agent {int(state.plies) % 2}, is to move."
        )

    def rules(self) -> str:
        """Say how the game goes."""
        return (
            "A game of chess. A win earns 1, a draw 0.5, a loss 0. Draws: stalemate, a position "
            "for the third time, 50 moves of each side without a capture or a move of a pawn, "
            "material that cannot mate."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the board as White sees it; the last move is marked."""
        black = self._is_black_to_move(state, params)
        marked_squares = endpoints(int(state.last), not black) if int(state.last) >= 0 else ()
        return draw_board(pieces(state.position, black), marked_squares)
