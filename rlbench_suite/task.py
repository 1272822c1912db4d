"""The contract: a task is a bundle of pure functions over an immutable state.

A task is written once, in JAX, for one episode of one instance. Everything else (Gymnasium, vector, PettingZoo
and multi-objective environments, training, evaluation) is made from these functions by the kernel.

State and params are ``NamedTuple`` s of scalars and, where needed, arrays. Write the equations component by
component on scalar fields: ``vmap`` then turns each field into one contiguous array.
"""

from __future__ import annotations

import abc
from enum import IntEnum
from typing import Any, ClassVar, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite import keys
from rlbench_suite.card import TaskCard
from rlbench_suite.component import Components
from rlbench_suite.numerals import read_integer, read_real

Params = TypeVar("Params")
State = TypeVar("State")
Observation = Any
"""An array, or a dict of arrays."""


class Split(IntEnum):
    """Which contexts an episode draws from; the two never overlap. Traced, so that both share one program."""

    TRAIN = 0
    TEST = 1


class Described(abc.ABC):
    """What every task has, whatever computes it: its card, its spaces, and its words and pictures for people.

    Subclasses set the three spaces in ``__init__``. Making a task touches no JAX computation (constants are NumPy), so
    that it is safe before a fork.
    """

    #: What a task measures at every step beyond ``success``, with units: name to description.
    measures: ClassVar[dict[str, str]] = {}

    #: Optional public facts about each of many discrete actions, host float32 ``(actions, F)``: a policy that scores
    #: actions by what they are made of learns about those it has rarely tried.
    action_features: np.ndarray | None = None

    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    #: Height, width and channels of :meth:`draw`.
    picture_shape: ClassVar[tuple[int, int, int]] = (300, 300, 3)
    #: Where :meth:`Task.privileged` lies, shape ``(n,)``, or ``(agents, n)``; None where a task has nothing to tell.
    privileged_space: spaces.Box | None = None
    #: Bounds of the reward: shape ``()``, ``(k,)`` for k objectives, ``(n,)`` for n agents. Always set.
    reward_space: spaces.Box

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        self.card = card
        self.difficulty = difficulty
        self.dtype = np.dtype(dtype)
        self.scores = card.scores(difficulty)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is the task itself: equal descriptions build one object in a process."""
        return _build, (self.card, self.difficulty, self.dtype.name)

    def observation_components(self) -> Components:
        """What each entry of an observation is; every task of this suite says it."""
        return ()

    def action_components(self) -> Components:
        """What each entry of an action is, or each value of a discrete one; every task of this suite says it."""
        return ()

    @abc.abstractmethod
    def describe(self, state: Any, params: Any) -> str:
        """The state in words: all that the structured observation shows, for a language model or a terminal."""

    @abc.abstractmethod
    def draw(self, state: Any, params: Any) -> np.ndarray:
        """A picture of the state, uint8 of ``picture_shape``."""

    def draw_next(self, state: Any, params: Any, trail: list[Any]) -> np.ndarray:
        """A picture of the state as the next one of an episode; by default that of the state alone.

        Args:
            state: as of :meth:`draw`.
            params: as of :meth:`draw`.
            trail: what earlier pictures of the episode left to this one, which adds to it; empty at first.
        """
        return self.draw(state, params)

    def parse(self, text: str, state: Any, params: Any) -> np.ndarray:
        """Read an action from text. By default numbers separated by spaces or commas, as the action space asks for:
        whole ones where it is discrete.

        Raises:
            ValueError: the text is no action; the message says what was expected.
        """
        space: Any = self.action_space
        read = read_real if space.dtype.kind == "f" else read_integer
        try:
            with np.errstate(over="ignore"):  # what is beyond float32 is infinite, and refused below
                action = np.array([read(word) for word in text.replace(",", " ").split()], space.dtype)
            action = action.reshape(space.shape)
        except ValueError:
            raise ValueError(f"expected {int(np.prod(space.shape))} number(s) of {space}, got {text!r}") from None
        if not (np.isfinite(action).all() and space.contains(action)):
            raise ValueError(f"expected an action in {space}, got {text!r}")
        return action

    def how_to_act(self) -> str:
        """One line for a text player: what an action looks like."""
        numbers = int(np.prod(self.action_space.shape or (), dtype=int))
        return f"Answer with {numbers} number(s): an element of {self.action_space}."

    def why_over(self, state: Any, params: Any, info: dict[str, Any]) -> str:
        """Why :meth:`terminal` holds here, in words.

        Args:
            state: the last one, NumPy scalars and arrays.
            params: of the episode, likewise.
            info: what :meth:`Task.info` gives of them, which need not be computed again.
        """
        return "the task is over"

    def noop_action(self) -> np.ndarray:
        """The constant action of the ``noop`` player: zero, or the nearest to it that the space allows.

        In the text view a reply that is no action is played as this one, whether the mask allows it or not. A player
        who never gives an action therefore plays the same episodes as ``noop``, and scores the same.
        """
        space: Any = self.action_space
        if isinstance(space, spaces.Box):
            return np.clip(np.zeros(space.shape, space.dtype), space.low, space.high)
        return np.zeros(space.shape, space.dtype)

    def box(self, low: Any, high: Any, shape: tuple[int, ...] | None = None) -> spaces.Box:
        """A ``Box`` of this task's dtype; the bounds are broadcast to ``shape``, or to each other."""
        low, high = np.asarray(low, self.dtype), np.asarray(high, self.dtype)
        shape = np.broadcast_shapes(low.shape, high.shape) if shape is None else shape
        return spaces.Box(np.broadcast_to(low, shape), np.broadcast_to(high, shape), shape, self.dtype.type)


def _build(card: TaskCard, difficulty: float | None, dtype: str) -> Described:
    return card.build(difficulty=difficulty, dtype=dtype)


class Task(Described, Generic[Params, State]):
    """A task made of pure functions, defined below. Keys are ``jax.random`` keys, never reused: the kernel gives each
    function a key of its own that depends only on the episode and the step.
    """

    # -- the functions of an episode, in the order of use ------------------------------------------------------

    @abc.abstractmethod
    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """The context of an episode: physical constants, layout, instance. ``split`` is a :class:`Split` value."""

    @abc.abstractmethod
    def initial(self, key: jax.Array, params: Params) -> State:
        """The first state."""

    @abc.abstractmethod
    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """The next state. Called with legal actions only (see :meth:`action_mask`)."""

    @abc.abstractmethod
    def observation(self, state: State, key: jax.Array, params: Params) -> Observation:
        """What the agent sees; inside ``observation_space``. Per-agent observations are stacked on axis 0."""

    @abc.abstractmethod
    def reward(self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params) -> jax.Array:
        """Shape ``reward_space.shape``. An illegal action is rewarded with ``next_state`` equal to ``state``."""

    @abc.abstractmethod
    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Whether the task is over. Time limits are truncation and none of a task's business."""

    @abc.abstractmethod
    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """``success`` (bool: would the episode count as solved if it ended here) and the task's measures."""

    def action_mask(self, state: State, params: Params) -> jax.Array | None:
        """Legal actions, bool ``(n,)`` (multi-discrete: the parts one after another), or None if all are.

        An illegal action is refused by the kernel: the state stays, time passes, ``info`` says why.
        """
        return None

    def privileged(self, state: State, params: Params) -> jax.Array | None:
        """What a critic may see in training beside the observation, shaped like ``privileged_space``: the true state,
        the context; None where there is no such space. It is shown as ``info["privileged"]``; a policy that is
        evaluated never sees it.
        """
        return None

    def cost(self, state: State, action: jax.Array, next_state: State, params: Params) -> jax.Array | None:
        """Constraint cost of the step (safe RL), or None where the task has no constraint."""
        return None

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Why :meth:`action_mask` forbids ``action`` here, in words."""
        return f"action {action} is masked in this state"

    # -- small conveniences ------------------------------------------------------------------------------------

    def uniform(self, key: jax.Array, count: int) -> jax.Array:
        """``count`` uniform numbers in [0, 1) from one draw, shape ``(count,)``, of this task's dtype."""
        if self.dtype == np.float64:
            return jax.random.uniform(key, (count,), self.dtype)
        return keys.uniform(jax.random.key_data(key), count)

    def normal(self, key: jax.Array, count: int) -> jax.Array:
        """``count`` standard normal numbers from one draw, shape ``(count,)``, of this task's dtype."""
        return keys.standard_normal(key, count, self.dtype)

    def stack(self, *values: jax.Array | float) -> jax.Array:
        """Scalars to one vector of this task's dtype."""
        return jnp.stack([jnp.asarray(value, self.dtype) for value in values])
