"""The contract: a task is a bundle of pure functions over an immutable state.

A task is written once, in JAX, for one episode of one instance. Everything else (Gymnasium, vector,
PettingZoo and multi-objective environments, training, evaluation) is made from these functions by
the engine.

State and params are ``NamedTuple`` s of scalars and, where needed, arrays. Write the equations
component by component on scalar fields, because ``vmap`` then turns each field into one contiguous
array.
"""

from __future__ import annotations

import abc
import re
import sys
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, ClassVar, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.contexts.context import Constant
from rlbench_suite.contexts.document import Document
from rlbench_suite.contexts.numerals import read_integer, read_real
from rlbench_suite.contexts.time_series import Series
from rlbench_suite.core.component import Components, KeyFigure, Signals, named, signals
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.numerics import keys

Params = TypeVar("Params")
State = TypeVar("State")
Observation = Any
"""An array, or a dict of arrays."""


class Split(IntEnum):
    """The set from which the context of an episode is sampled. The two sets never overlap.

    The value is traced, so that both splits share one program.
    """

    TRAIN = 0
    TEST = 1


_SUCCESS_ROW = re.compile(
    r"^(?:\| )?success(?:, (\w+))?(?: {2,}| \| )(.+(?:\n {6,}.+)*)", re.MULTILINE
)
"""A row of the table in the docstring of a task's file.

There may be one for each kind of reward, named after a comma.
"""
_SUCCESS_MEASURED = re.compile(r"``success``: (.+?)\.?$", re.MULTILINE)
"""The words in a docstring of :meth:`Task.info`, in the first paragraph that has them."""
_LINE_BREAK = re.compile(r"(?<=\S)\n[ \t]*(?=\S)")
"""A line break within a paragraph."""


class Described(abc.ABC):
    """The part of a task that pure functions and simulators share.

    It has card, spaces, and text and pictures for people.

    Subclasses set the three spaces in ``__init__``. Making a task touches no JAX computation
    (constants are NumPy), so that it is safe before a fork.
    """

    #: Measures of each step besides ``success``: name to description. That of a measure with a unit
    #: ends with the unit, after a comma unless it is all of it: ``of the shaft, N m``. Recordings
    #: take the unit from there.
    measures: ClassVar[dict[str, str]] = {}

    #: Optional public facts about each of many discrete actions, host float32 ``(actions, F)``.
    #: With them a policy can score actions that it has rarely tried.
    action_features: np.ndarray | None = None

    #: Seconds of one step; 0 where a step has no duration.
    period: float = 0.0

    #: Names of observed signals that are errors: a perfect player keeps them at zero.
    errors: ClassVar[tuple[str, ...]] = ()

    #: True if an episode that is over before its time limit has failed: a crash, a fall. It then
    #: has no success.
    ends_in_failure: ClassVar[bool] = False

    #: Best expected return of a policy that sees only the present observation; None where it is not
    #: known.
    memoryless_ceiling: float | None = None

    #: True if :meth:`describe_turn` says itself how many turns are left.
    counts_turns: ClassVar[bool] = False

    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    #: Height, width and channels of :meth:`draw`.
    picture_shape: ClassVar[tuple[int, int, int]] = (300, 300, 3)
    #: Space of :meth:`Task.privileged`, shape ``(n,)`` or ``(agents, n)``; None where a task has no
    #: such information.
    privileged_space: spaces.Box | None = None
    #: Space of :meth:`Task.global_state`, shape ``(n,)``; None where the observations of all agents
    #: are the global state (:mod:`rlbench_suite.core.global_state`).
    global_state_space: spaces.Box | None = None
    #: Bounds of the reward: shape ``()``, ``(k,)`` for k objectives, ``(n,)`` for n agents. Always
    #: set.
    reward_space: spaces.Box

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        self.card = card
        self.difficulty = difficulty
        self.dtype = np.dtype(dtype)
        self.scores = card.scores(difficulty)

    def __reduce__(self) -> tuple[Any, ...]:
        """Make a copy the task itself, because equal descriptions build one object in a process."""
        return _build, (self.card, self.difficulty, self.dtype.name)

    @property
    def has_cost(self) -> bool:
        """True if the task has a constraint cost, :meth:`Task.cost`.

        Its card then has the limit.
        """
        return self.defines("cost")

    def defines(self, function: str) -> bool:
        """Tell whether the task has an optional function of its own, such as ``action_mask``."""
        of_every_task = getattr(Task, function)
        return getattr(type(self), function, of_every_task) is not of_every_task

    @property
    def task_of_players(self) -> Any:
        """The task that its players are made for: this one, or a plain one that is played alike."""
        return self

    @property
    def price_names(self) -> tuple[str, ...]:
        """Names of what a reward takes: ``cost``, ``effort``, or ``time`` where it has neither.

        They are objectives beside the reward (:mod:`rlbench_suite.core.objectives`).
        """
        prices = {"cost": self.has_cost, "effort": isinstance(self.action_space, spaces.Box)}
        return tuple(name for name, counts in prices.items() if counts) or ("time",)

    @property
    def success_meaning(self) -> str:
        """The sentence that says what ``success`` means; empty if no docstring does.

        It is the row ``success`` of the table in the docstring of the task's file, or that of a
        base class. A file without such a row says it in the docstring of ``info``.
        """
        for task_class in type(self).__mro__:
            rows = _SUCCESS_ROW.findall(sys.modules[task_class.__module__].__doc__ or "")
            doc = getattr(task_class.__dict__.get("info"), "__doc__", None) or ""
            measured = _SUCCESS_MEASURED.search(_LINE_BREAK.sub(" ", doc))
            texts = [
                f"{reward_kind}: {text}" if reward_kind else text for reward_kind, text in rows
            ]
            if not texts and measured:
                texts = [measured[1]]
            if texts:
                meaning = " ".join("; ".join(texts).removesuffix(" |").split())
                return re.sub(r":\w+:`[~.]*([^`]*)`", r"\1", meaning).replace("``", "")
        return ""

    def observation_components(self) -> Components:
        """Return the meaning of each entry of an observation.

        Every task of this suite defines it.
        """
        return ()

    def action_components(self) -> Components:
        """Return the meaning of each entry or discrete value of an action.

        Every task of this suite defines it.
        """
        return ()

    def named(self, observation: Any) -> dict[str, Any]:
        """Return the entries of an observation by the names of :meth:`observation_components`."""
        return named(self.observation_components(), observation)

    def energy(self, quantities: Mapping[str, np.ndarray]) -> float | None:
        """Return the energy that an episode took from its supply, J; None where it is not known.

        Args:
            quantities: columns of a recording (``evaluation/trajectory.py``) by name without unit,
                each ``(steps,)``.
        """
        return None

    @property
    def signals(self) -> Signals:
        """Meaning of each quantity that an ``observation`` or ``action`` holds.

        Each has a name, a unit, a scale, a meaning and bounds.
        """
        return signals(self)

    def key_figures(self) -> tuple[KeyFigure, ...]:
        """Return ranges and accuracies in physical units that no space shows.

        Those of set points are an example; by default there are none.

        They are those of the task as it is built, with a context of one's own too.
        """
        return ()

    def constants(self) -> tuple[Constant, ...]:
        """Return the constants that a user's context may set (``card.context``).

        By default there are none.
        """
        return ()

    def series(self) -> tuple[Series | Document, ...]:
        """Return the series of conditions and the documents that a user's context may give.

        By default there are none.
        """
        return ()

    @abc.abstractmethod
    def describe(self, state: Any, params: Any) -> str:
        """Describe in words everything that the observation shows.

        A language model or a terminal reads it.
        """

    def rules(self) -> str:
        """Return what a player must know of every episode: goal, rules, meaning of marks.

        A conversation says it once.

        By default the name and the summary of the card, since :meth:`describe` explains itself.
        """
        return f"{self.card.name}: {self.card.summary}"

    def describe_turn(self, known_state: Any | None, state: Any, params: Any) -> str:
        """Describe a state to a player who has read :meth:`rules` and the turns before.

        By default the text of :meth:`describe` without the paragraphs at its beginning that have
        not changed. Paragraphs are parted by empty lines.

        Args:
            known_state: the state that the player was told of last; None if the player knows
                nothing of this episode, and everything is to be said.
            state: as for :meth:`describe`.
            params: as for :meth:`describe`.
        """
        paragraphs = self.describe(state, params).split("\n\n")
        if known_state is not None:
            known_paragraphs = self.describe(known_state, params).split("\n\n")
            while len(paragraphs) > 1 and paragraphs[:1] == known_paragraphs[:1]:
                paragraphs = paragraphs[1:]
                known_paragraphs = known_paragraphs[1:]
        return "\n\n".join(paragraphs)

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools that are the actions, as OpenAI's JSON schemas; by default none.

        :meth:`parse` of a task with tools reads calls of them, ``{"name": ..., "arguments":
        {...}}``.
        """
        return []

    @abc.abstractmethod
    def draw(self, state: Any, params: Any) -> np.ndarray:
        """Draw the state, uint8 of ``picture_shape``."""

    def draw_next(self, state: Any, params: Any, trail: list[Any]) -> np.ndarray:
        """Draw the state as the next picture of an episode.

        By default the picture is of the state alone.

        Args:
            state: as for :meth:`draw`.
            params: as for :meth:`draw`.
            trail: notes from earlier pictures of the episode, to which this one adds; empty at
                first.
        """
        return self.draw(state, params)

    def parse(self, text: str, state: Any, params: Any) -> np.ndarray:
        """Read an action from text.

        By default the text has numbers separated by spaces or commas, integers for a discrete
        space.

        Raises:
            ValueError: the text is no action; the message says what was expected.
        """
        space: Any = self.action_space
        read = read_real if space.dtype.kind == "f" else read_integer
        try:
            with np.errstate(
                over="ignore"
            ):  # numbers beyond float32 become infinite and are refused below
                action = np.array(
                    [read(word) for word in text.replace(",", " ").split()], space.dtype
                )
            action = action.reshape(space.shape)
        except ValueError:
            raise ValueError(
                f"expected {int(np.prod(space.shape))} number(s) of {space}, got {text!r}"
            ) from None
        if not (np.isfinite(action).all() and space.contains(action)):
            raise ValueError(f"expected an action in {space}, got {text!r}")
        return action

    def spell(self, action: np.ndarray, state: Any, params: Any) -> str:
        """Return the reply that plays an action: the inverse of :meth:`parse`.

        By default its numbers.

        Two replies may play equal moves: of two equal numbers on the table, either may be meant.
        """
        digits = np.finfo(action.dtype).precision + 3 if action.dtype.kind == "f" else 0
        return " ".join(
            f"{number:.{digits}g}" if digits else str(number)
            for number in np.ravel(action).tolist()
        )

    def how_to_act(self) -> str:
        """Return one line that tells a text player what an action looks like."""
        numbers = int(np.prod(self.action_space.shape or (), dtype=int))
        return f"Answer with {numbers} number(s): an element of {self.action_space}."

    def why_over(self, state: Any, params: Any, info: dict[str, Any]) -> str:
        """Say in words why the episode is over.

        Args:
            state: the last state, NumPy scalars and arrays.
            params: the episode's context, likewise.
            info: the result of :meth:`Task.info`, so that it need not be computed again.
        """
        return "the task is over"

    def noop_action(self) -> np.ndarray:
        """Return the constant action of the ``noop`` player.

        It is zero, or the allowed action nearest to zero.

        In the text view a reply that is no action is played as this one, whether the mask allows it
        or not. A player who never gives an action therefore plays the same episodes as ``noop``,
        and scores the same.
        """
        space: Any = self.action_space
        if isinstance(space, spaces.Box):
            return np.clip(np.zeros(space.shape, space.dtype), space.low, space.high)
        return np.zeros(space.shape, space.dtype)

    def box(self, low: Any, high: Any, shape: tuple[int, ...] | None = None) -> spaces.Box:
        """Return a ``Box`` of this task's dtype.

        The bounds are broadcast to ``shape``, or to each other.
        """
        low = np.asarray(low, self.dtype)
        high = np.asarray(high, self.dtype)
        shape = np.broadcast_shapes(low.shape, high.shape) if shape is None else shape
        return spaces.Box(
            np.broadcast_to(low, shape), np.broadcast_to(high, shape), shape, self.dtype.type
        )


def _build(card: TaskCard, difficulty: float | None, dtype: str) -> Described:
    return card.build(difficulty=difficulty, dtype=dtype)


class Task(Described, Generic[Params, State]):
    """A task made of the pure functions below.

    Keys are ``jax.random`` keys. The engine gives each function a key of its own, which depends
    only on the episode and the step and is never used twice.
    """

    #: True if observations are a ``Dict`` of ``observation``, ``achieved_goal`` and
    #: ``desired_goal``, and the reward is a function of both goals (:meth:`goal_reward`), for
    #: hindsight experience replay.
    has_goals: bool = False

    # -- the functions of an episode, in the order of use ------------------------------------------

    @abc.abstractmethod
    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the context of an episode: physical constants, layout, instance.

        ``split`` is a :class:`Split`.
        """

    @abc.abstractmethod
    def initial(self, key: jax.Array, params: Params) -> State:
        """Return the first state."""

    @abc.abstractmethod
    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Return the next state.

        The result for an action that is masked (see :meth:`action_mask`) is discarded.
        """

    @abc.abstractmethod
    def observation(self, state: State, key: jax.Array, params: Params) -> Observation:
        """Return the observation, inside ``observation_space``.

        Those of several agents are stacked on axis 0.
        """

    @abc.abstractmethod
    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the reward, shape ``reward_space.shape``.

        After an illegal action ``next_state`` is that of :meth:`after_illegal_action`.
        """

    @abc.abstractmethod
    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the task is over. The engine handles time limits, which truncate."""

    @abc.abstractmethod
    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` (bool) and the task's measures.

        ``success`` says whether an episode that ended here would be solved.
        """

    def action_mask(self, state: State, params: Params) -> jax.Array | None:
        """Return which actions are legal, bool ``(n,)``; None if all are.

        The parts of a multi-discrete action follow one another.

        The engine refuses an illegal action: the state stays unless :meth:`after_illegal_action`
        says otherwise, time passes, and ``info`` says why.
        """
        return None

    def after_illegal_action(self, state: State, params: Params) -> State:
        """Return the state after an illegal action; by default the same one."""
        return state

    def alive(self, state: State, params: Params) -> jax.Array | None:
        """Return which agents act and earn, bool ``(agents,)``; None if all do to the end.

        An agent may join late, and does not come back once it has died. The engine plays the no-op
        action for an agent that is not alive, which an action mask has to allow, and pays it
        nothing. An agent that dies in a step is paid for that step.
        """
        return None

    def acting(self, state: State, params: Params) -> jax.Array | None:
        """Return which agents move now, bool ``(agents,)``; None if all move in every step.

        A game in turns tells whose turn it is. The engine plays the no-op action for the others,
        which an action mask has to allow. They may earn something all the same.
        """
        return None

    def privileged(self, state: State, params: Params) -> jax.Array | None:
        """Return what a critic may see in training besides the observation.

        The true state and the context are examples.

        It has the shape of ``privileged_space``, or is None if there is no such space.
        ``info["privileged"]`` shows it. A policy in evaluation never sees it.
        """
        return None

    def global_state(self, state: State, params: Params) -> jax.Array | None:
        """Return the task's own global state, one vector for all agents.

        It has the shape of ``global_state_space``, or is None if there is no such space.
        ``info["global_state"]`` shows it. A policy in evaluation never sees it.
        """
        return None

    def cost(
        self, state: State, action: jax.Array, next_state: State, params: Params
    ) -> jax.Array | None:
        """Return the constraint cost of the step (safe RL), or None if the task has no constraint.

        The card says what it counts and what an episode may cost on average (``constraint``).
        """
        return None

    def goal_reward(self, achieved: jax.Array, desired: jax.Array) -> jax.Array:
        """Return the reward of a step that ends at an achieved goal ``(g,)``.

        The desired goal is another ``(g,)``.

        Only for a task that :attr:`has_goals`; :meth:`reward` then returns the same.
        """
        raise NotImplementedError

    def goal_terminal(self, achieved: jax.Array, desired: jax.Array) -> jax.Array:
        """Return whether the task is over at an achieved goal when another is desired.

        It agrees with :meth:`terminal`.
        """
        raise NotImplementedError

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Say in words why :meth:`action_mask` forbids ``action`` here."""
        return f"action {action} is masked in this state"

    # -- small conveniences ------------------------------------------------------------------------

    def uniform(self, key: jax.Array, count: int) -> jax.Array:
        """Sample ``count`` uniform numbers in [0, 1) from one key.

        Their shape is ``(count,)``, their dtype that of this task.
        """
        if self.dtype == np.float64:
            return jax.random.uniform(key, (count,), self.dtype)
        return keys.uniform(jax.random.key_data(key), count)

    def bits(self, key: jax.Array, count: int) -> jax.Array:
        """Sample ``count`` words of random bits from one key, uint32 ``(count,)``."""
        return keys.bits(jax.random.key_data(key), count)

    def normal(self, key: jax.Array, count: int) -> jax.Array:
        """Sample ``count`` standard normal numbers from one key.

        Their shape is ``(count,)``, their dtype that of this task.
        """
        return keys.standard_normal(key, count, self.dtype)

    def stack(self, *values: jax.Array | float) -> jax.Array:
        """Stack scalars into one vector of this task's dtype."""
        return jnp.stack([jnp.asarray(value, self.dtype) for value in values])
