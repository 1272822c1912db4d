"""Games of several sides: the contract of a game, and one side of it as a task.

A game is a task in which all sides are agents, for PettingZoo, self-play and equilibria. Seen from
one side, whose opponents are players of the family, it is a task like any other: an agent trains on
it, a reference player sets its scale, and a report compares scores.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Flag, Float, Int
from rlbench_suite.core.component import Components
from rlbench_suite.core.episode import rows_where
from rlbench_suite.core.policy import Policy, View, privileged_player
from rlbench_suite.core.task import Params, State, Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics import keys


class Game(Task[Params, State]):
    """A task of two sides or more, with one agent each, all of whom have equal spaces.

    Rewards are one for each agent. A game in turns says in :meth:`Task.acting` whose turn it is.
    """

    #: Number of equal games in an episode, such as hands of a match.
    repeats: int = 1
    #: Whether one agent loses what the others win.
    zero_sum: ClassVar[bool] = True
    #: Whether all sides see the whole state, and chance plays no part after the first position.
    perfect_information: ClassVar[bool] = False

    def exploitability(self, policy: Policy) -> float | None:
        """Return what a best response earns against a policy in one of the repeated games.

        It is the mean over seats and exact; None if it cannot be computed, as by default.
        """
        return None

    @abc.abstractmethod
    def won(self, state: State, params: Params) -> jax.Array:
        """Return which agents have won by now, bool ``(agents,)``."""

    def describe_seat(self, state: State, params: Params, seat: int) -> str:
        """Describe in words what the agent of a seat observes; by default what all do."""
        return self.describe(state, params)


class SeatState(NamedTuple):
    """A game seen from one seat."""

    game: Any
    """State of the game."""
    seat: Int
    """The agent's own seat."""
    memory: Any
    """Memory of the opponent."""
    earned: Float
    """Earnings of the agent so far."""
    forfeited: Flag
    """Whether it has lost by an illegal move."""


class AgainstOpponent(Task[Any, SeatState]):
    """One seat of a game; an opponent of the family plays the others.

    The seat is sampled in each episode. A step is one's own move and the replies to it. The
    opponent is a player for all agents of the game, whose action for one's own seat is not played;
    a difficulty of the card chooses it. An illegal move loses the game.
    """

    #: Players ``module:Class`` of the game by difficulty.
    opponents: ClassVar[Mapping[float | None, str]]

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty not in self.opponents:
            raise ValueError(
                f"A difficulty of {card.id} is one of {[*self.opponents]}; got {difficulty!r}."
            )
        self.game: Game[Any, Any] = card.joint().build(dtype=dtype)
        self.opponent = self.player(self.opponents[difficulty])
        self.observation_space = first_row(self.game.observation_space)
        self.action_space = first_row(self.game.action_space)
        self.reward_space = first_row(self.game.reward_space)
        self.picture_shape = self.game.picture_shape  # type: ignore[misc]
        self.measures = self.game.measures  # type: ignore[misc]

    @abc.abstractmethod
    def player(self, name: str) -> Policy:
        """Return a player of all agents of the game."""

    # -- the functions of an episode ---------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Any:
        """Sample the context of the game."""
        return self.game.sample_params(key, split)

    def initial(self, key: jax.Array, params: Any) -> SeatState:
        """Sample a seat, and play the moves of the opponent that come first."""
        data = jax.random.key_data(key)
        seat = self.bits(jax.random.wrap_key_data(keys.fold_in(data, 0)), 1)[0]
        game = self.game.initial(jax.random.wrap_key_data(keys.fold_in(data, 1)), params)
        state = SeatState(
            game,
            (seat % np.uint32(self.game.card.agents)).astype(jnp.int32),
            self.opponent.initial(params),
            jnp.zeros((), self.dtype),
            jnp.zeros((), bool),
        )
        return self._await_turn(state, keys.fold_in(data, 2), params)

    def transition(
        self, state: SeatState, action: jax.Array, key: jax.Array, params: Any
    ) -> SeatState:
        """Play one's own move, then those of the opponent until it is one's turn again."""
        data = jax.random.key_data(key)
        joint = jnp.broadcast_to(self.game.noop_action(), self.game.action_space.shape)
        memory = state.memory
        if self.game.acting(state.game, params) is None:  # all move at once
            joint, memory = self._opponents_move(state, keys.fold_in(data, 0), params)
        joint = joint.at[state.seat].set(action.astype(joint.dtype))
        state = self._play(state._replace(memory=memory), joint, keys.fold_in(data, 1), params)
        return self._await_turn(state, keys.fold_in(data, 2), params)

    def _await_turn(self, state: SeatState, data: jax.Array, params: Any) -> SeatState:
        """Let the opponent move until it is one's own turn or the game is over."""
        if self.game.acting(state.game, params) is None:
            return state

        def waits(carry: tuple[jax.Array, SeatState]) -> jax.Array:
            _, state = carry
            over = self.game.terminal(state.game, jax.random.wrap_key_data(data), params)
            acting: Any = self.game.acting(state.game, params)
            return ~over & ~acting[state.seat]

        def reply(carry: tuple[jax.Array, SeatState]) -> tuple[jax.Array, SeatState]:
            count, state = carry
            joint, memory = self._opponents_move(state, keys.fold_in(data, 2 * count), params)
            state = state._replace(memory=memory)
            return count + 1, self._play(state, joint, keys.fold_in(data, 2 * count + 1), params)

        return jax.lax.while_loop(waits, reply, (jnp.int32(0), state))[1]

    def _opponents_move(
        self, state: SeatState, data: jax.Array, params: Any
    ) -> tuple[jax.Array, Any]:
        """Return the opponent's action for all agents, and its next memory."""
        look_key, move_key = (jax.random.wrap_key_data(keys.fold_in(data, i)) for i in range(2))
        view = View(
            self.game.observation(state.game, look_key, params),
            self.game.action_mask(state.game, params),
            state.game,
            params,
        )
        return self.opponent.act(state.memory, view, move_key)

    def _play(self, state: SeatState, joint: jax.Array, data: jax.Array, params: Any) -> SeatState:
        """Make one step of the game, in which only those act whose turn it is."""
        move_key, pay_key = (jax.random.wrap_key_data(keys.fold_in(data, i)) for i in range(2))
        acting = self.game.acting(state.game, params)
        if acting is not None:
            joint = rows_where(acting, joint, self.game.noop_action())
        game = self.game.transition(state.game, joint, move_key, params)
        rewards = self.game.reward(state.game, joint, game, pay_key, params)
        return state._replace(game=game, earned=state.earned + rewards[state.seat])

    def observation(self, state: SeatState, key: jax.Array, params: Any) -> Any:
        """Return what the agent of the seat observes."""
        return jax.tree.map(
            lambda rows: rows[state.seat], self.game.observation(state.game, key, params)
        )

    def action_mask(self, state: SeatState, params: Any) -> jax.Array | None:
        """Return the legal actions of the agent of the seat."""
        mask = self.game.action_mask(state.game, params)
        return None if mask is None else mask.reshape(self.game.card.agents, -1)[state.seat]

    def reward(
        self, state: SeatState, action: jax.Array, next_state: SeatState, key: jax.Array,
        params: Any,
    ) -> jax.Array:  # fmt: skip
        """Return what the step and the replies to it earned."""
        return next_state.earned - state.earned

    def after_illegal_action(self, state: SeatState, params: Any) -> SeatState:
        """Lose by as much as one can: else who is about to lose would rather stall."""
        worst = jnp.asarray(self.reward_space.low, self.dtype)
        return state._replace(earned=worst, forfeited=jnp.ones((), bool))

    def terminal(self, state: SeatState, key: jax.Array, params: Any) -> jax.Array:
        """Return whether the game is over."""
        return state.forfeited | self.game.terminal(state.game, key, params)

    def info(self, state: SeatState, params: Any) -> dict[str, jax.Array]:
        """Return the measures of the game, and whether the agent of the seat has won."""
        won = self.game.won(state.game, params)[state.seat] & ~state.forfeited
        return self.game.info(state.game, params) | {"success": won}

    # -- text and pixels ---------------------------------------------------------------------------

    def observation_components(self) -> Components:
        """Name the entries of an observation, which are those of each agent of the game."""
        return self.game.observation_components()

    def action_components(self) -> Components:
        """Name the entries or values of an action, which are those of each agent of the game."""
        return self.game.action_components()

    def describe(self, state: SeatState, params: Any) -> str:
        """Describe what the agent of the seat observes."""
        return self.game.describe_seat(state.game, params, int(state.seat))

    def rules(self) -> str:
        """Return the rules of the game."""
        return self.game.rules()

    def draw(self, state: SeatState, params: Any) -> np.ndarray:
        """Draw the game."""
        return self.game.draw(state.game, params)


def first_row(space: spaces.Space[Any]) -> Any:
    """Return the space of the first agent in a space of all.

    Raises:
        TypeError: the space is neither a Box nor MultiDiscrete with one row for each agent.
    """
    if isinstance(space, spaces.Box):
        low, high = space.low[0], space.high[0]
        return spaces.Box(low, high, shape=low.shape, dtype=space.low.dtype.type)
    if isinstance(space, spaces.MultiDiscrete):
        choices = space.nvec[0]
        return spaces.MultiDiscrete(choices) if choices.ndim else spaces.Discrete(int(choices))
    raise TypeError(f"{space} is neither a Box nor MultiDiscrete.")


@privileged_player
class SeatPlayer(NamedTuple):
    """A player of a whole game as a player of one seat. It reads the state of the game."""

    player: Any

    def initial(self, params: Any) -> Any:
        """Return the memory of the player."""
        return self.player.initial(params)

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the player's action for one's own seat."""
        joint, memory = self.player.act(memory, View(None, None, view.state.game, view.params), key)
        return joint[view.state.seat], memory


def is_seat_of_two(card: TaskCard) -> bool:
    """Tell whether a task is one seat of a game of two, whose opponent may be another player.

    Chess is not: its opponent is a part of the task.
    """
    has_two_sides = card.game is not None and card.game.agents == 2
    return has_two_sides and isinstance(card.build(), AgainstOpponent)


def against(task: AgainstOpponent, player: Any) -> AgainstOpponent:
    """Return a task of two seats with another opponent: a player of one seat."""
    # copy() gives the task itself, which all who build it share.
    changed: AgainstOpponent = object.__new__(type(task))
    changed.__dict__.update(task.__dict__)
    changed.opponent = Duel.in_both_seats(task.game, player)
    return changed


class Duel(eqx.Module):
    """Two players of one seat as a player of a game of two seats.

    A memory waits while it is not its player's turn. An illegal action is played as the first legal
    one.
    """

    first: Any
    second: Any
    seat: Int
    """Seat of the first player, 0 or 1."""
    game: Game[Any, Any] = eqx.field(static=True)

    @classmethod
    def in_both_seats(cls, game: Game[Any, Any], player: Any) -> Duel:
        """Return a duel of a player with itself, such as an opponent for either seat."""
        return cls(player, player, np.int32(0), game)

    def initial(self, params: Any) -> Any:
        """Return the memories of both."""
        return self.first.initial(params), self.second.initial(params)

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return an action for each seat, and the next memories."""
        acting = self.game.acting(view.state, view.params)
        data = jax.random.key_data(key)
        actions = []
        next_memories = []
        for i, player in enumerate((self.first, self.second)):
            seat = jnp.asarray(self.seat) if i == 0 else 1 - jnp.asarray(self.seat)
            seat_view = view_of_seat(view, seat)
            seat_key = jax.random.wrap_key_data(keys.fold_in(data, i))
            action, next_memory = player.act(memory[i], seat_view, seat_key)
            actions.append(_first_legal(action, seat_view.action_mask))
            if acting is not None:
                next_memory = jax.tree.map(
                    partial(jnp.where, jnp.asarray(acting)[seat]), next_memory, memory[i]
                )
            next_memories.append(next_memory)
        joint = jnp.stack(actions)
        return jnp.where(jnp.asarray(self.seat) == 0, joint, joint[::-1]), tuple(next_memories)


def view_of_seat(view: View, seat: Any) -> View:
    """Return what the player of one seat sees of a whole game."""
    observation = jax.tree.map(lambda rows: rows[seat], view.observation)
    agents = len(jax.tree.leaves(view.observation)[0])
    mask = None if view.action_mask is None else view.action_mask.reshape(agents, -1)[seat]
    earned = jnp.zeros((), jnp.float32)
    state = SeatState(view.state, seat, (), earned, jnp.zeros((), bool))
    return View(observation, mask, state, view.params)


def _first_legal(action: jax.Array, mask: jax.Array | None) -> jax.Array:
    """Return an action, or the first legal one in place of an illegal choice."""
    if mask is None or action.ndim:
        return action
    return jnp.where(mask[action], action, jnp.argmax(mask)).astype(jnp.int32)
