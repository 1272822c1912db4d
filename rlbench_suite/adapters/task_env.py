"""One episode at a time as a ``gymnasium.Env``: NumPy in and out, plain Python floats and bools."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import deepcopy
from types import FrameType
from typing import Any, NamedTuple, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

from rlbench_suite.adapters.action_check import ActionCheck
from rlbench_suite.adapters.frame_rate import frame_rate
from rlbench_suite.adapters.goals import WithGoals
from rlbench_suite.adapters.maskable import shown_action_space
from rlbench_suite.adapters.one_thread import OneThread
from rlbench_suite.adapters.packed_episode import PackedEpisode, StepValues
from rlbench_suite.adapters.reward_space import VectorReward, shown_reward_space
from rlbench_suite.core.component import Signals
from rlbench_suite.core.contract import check_spaces
from rlbench_suite.core.episode import (
    NO_LIMIT,
    ContextSource,
    Episode,
    average_agents,
    check_weights,
    seed_key,
    weighted_sum,
)
from rlbench_suite.core.policy import Policy, reference_player
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.foundation.unknown_names import unknown
from rlbench_suite.numerics.process import refuse_after_fork
from rlbench_suite.numerics.waiting import compiling

RENDER_MODES = ("rgb_array", "ansi")


class EnvState(NamedTuple):
    """Everything on which the rest of an episode depends.

    ``env.unwrapped.state`` reads and restores it.

    It is a value of NumPy arrays and Python's own types, so it can be pickled and put into another
    environment of the same id.
    """

    episode: Episode
    """Part of the episode that the engine computes.

    It has seed, number, steps, return and cost so far, context (``params``) and the task's own
    ``state``.
    """
    over: bool
    """True if the episode has ended, so that only a reset may follow."""
    random: Any = None
    """State of the random numbers of a simulator of the host; None for a task without a simulator.
    """

    def __getattr__(self, name: str) -> Any:
        """Raise an AttributeError that says where the fields of the task's own state are."""
        raise AttributeError(
            f"The state of an environment has episode, over and random, not {name!r}. "
            "The fields of the task's own state are in env.unwrapped.episode.state."
        )


class TaskEnv(WithGoals, gymnasium.Env[Any, Any]):
    """A task as a Gymnasium environment (structured view).

    ``env.unwrapped`` has the ``card``, the ``task``, ``params``, ``state`` (the whole episode as a
    value: assign a saved one to branch) and :meth:`reference`. Time limits are Gymnasium's
    ``TimeLimit`` wrapper, which ``gymnasium.make`` adds. A restored state sets its count of steps
    too.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), **frame_rate(0.0)}  # noqa: RUF012
    """Those of an environment say the pace of its task (:func:`frame_rate`)."""

    def __init__(
        self,
        task: Task[Any, Any],
        split: str | int = "train",
        render_mode: str | None = None,
        weights: Sequence[float] | None = None,
    ) -> None:
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ValueError(unknown("render_mode", render_mode, RENDER_MODES))
        check_spaces(task)
        self.task = task
        self._one_thread = OneThread(task.card.id)
        self.metadata = type(self).metadata | frame_rate(task.period)
        self.render_mode = render_mode
        # Spaces hold the generator of their samples: each env has its own.
        self.observation_space = deepcopy(task.observation_space)
        self.action_space = shown_action_space(task)
        self.weights = check_weights(task, weights)
        self.reward_space = shown_reward_space(task, self.weights)
        if self.reward_space.shape and self.card.objectives:
            self.reward_dim = len(self.card.objectives)
        self._keeps_reward = not self.task.reward_space.shape
        """True if rewards are shown as the task returns them."""
        self._context_source = ContextSource.parse(split, task)
        self._check_action = ActionCheck(task.action_space)
        self._seed: np.ndarray | None = None
        self._index = 0
        self._packed: PackedEpisode | None = None
        """The running episode; None before the first reset."""
        self._trail: list[Any] = []
        self.steps = 0
        """Steps taken in the running episode."""
        self._over = False
        self._time_limits: list[TimeLimit] = []
        """Wrappers around this environment that truncate the running episode."""
        self._limit = int(NO_LIMIT)
        """Time limit of the running episode, the smallest of these wrappers'."""

    @property
    def card(self) -> TaskCard:
        """Card of the task."""
        return self.task.card

    @property
    def signals(self) -> Signals:
        """Meaning of each quantity that an ``observation`` or ``action`` holds.

        Each has a name, a unit, a scale, a meaning and bounds.
        """
        return self.task.signals

    # -- Gymnasium's interface ---------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode: with a seed its first one, without the next one of the last seed.

        Raises:
            ValueError: the seed is negative or too large, or options are given (there are none).
            RuntimeError: another thread is in this environment, or JAX would hang
                (:func:`refuse_after_fork`).
        """
        refuse_after_fork()
        with self._one_thread:
            new_seed = self._turn(seed, options)
            assert self._seed is not None
            if self._packed is None:
                with compiling(self.card.id):
                    packed = PackedEpisode(self.task)
                    packed.begin(self._seed, self._index, self._context_source)
                self._packed = packed
            elif new_seed is None:
                self._packed.begin_next(self._seed, self._index, self._context_source)
            else:
                self._packed.begin(self._seed, self._index, self._context_source)
            observation, *_, info = self._show()
            return observation, info

    def __copy__(self) -> TaskEnv:
        """Copy everything: two environments with one buffer would step the same episode."""
        return deepcopy(self)

    def _turn(self, seed: int | None, options: dict[str, Any] | None) -> int | None:
        """Go to the first episode of a new seed, or to the next one of the last seed.

        Return the new seed; None where the last one goes on.
        """
        if options:
            raise ValueError(f"{self.card.id} takes no reset options, got {options!r}.")
        self._trail = []
        self.steps = 0
        self._over = False
        self._time_limits = resetting_time_limits()
        self._limit = min(
            (limit._max_episode_steps for limit in self._time_limits), default=int(NO_LIMIT)
        )
        if seed is None and self._seed is not None:
            self._index += 1
            return None
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        self._seed = seed_key(seed)
        self._index = 0
        super().reset(seed=int(seed) % 2**63)
        return int(seed)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step once.

        An action that the mask forbids leaves the state as it is, or loses a game;
        ``info["invalid_reason"]`` says why.

        Raises:
            ValueError, TypeError: the action is not in the action space.
            gymnasium.error.ResetNeeded: no episode was begun, or it is over.
            RuntimeError: another thread is in this environment, or JAX would hang
                (:func:`refuse_after_fork`).
        """
        refuse_after_fork()
        with self._one_thread:
            if self._packed is None or self._over:
                raise self._reset_needed()
            valid_action = self._check_action(action)
            self._packed.step(valid_action)
            observation, reward, terminated, truncated, info = self._show()
            self.steps += 1
            if self.steps >= self._limit:
                truncated = True
            if terminated or truncated:
                self._over = True
            if info.get("invalid_action"):
                episode = self._readable_episode()
                info["invalid_reason"] = self.task.why_illegal(
                    valid_action, episode.state, episode.params
                )
            if terminated:
                episode = self._readable_episode()
                info["end_reason"] = self.task.why_over(episode.state, episode.params, info)
            return observation, reward, terminated, truncated, info

    def _reset_needed(self) -> gymnasium.error.ResetNeeded:
        if self._over:
            return gymnasium.error.ResetNeeded(
                "The episode is over: call reset() before the next step()."
            )
        return gymnasium.error.ResetNeeded("Call reset() before step().")

    def _show(self) -> StepValues:
        """Return the last step as this view shows it. There is a running episode."""
        values = self._packed.read()  # type: ignore[union-attr]
        if self._keeps_reward:
            return values
        observation, reward, terminated, truncated, info = values
        reward = self._join_agents(reward)
        if self.weights is not None:
            info["vector_reward"] = reward
            reward = weighted_sum(reward, self.weights, self.task.dtype)
        elif self.card.objectives:
            reward = reward.view(VectorReward)
        return observation, reward if reward.ndim else float(reward), terminated, truncated, info

    def _join_agents(self, reward: Any) -> Any:
        """Return one reward for all agents: their mean."""
        return average_agents(self.task, reward)

    def render(self) -> Any:
        """Return a picture (``rgb_array``) or a description (``ansi``) of the current state.

        A picture may show parts of earlier pictures of the episode, such as the trail of a vehicle.

        Raises:
            gymnasium.error.ResetNeeded: no episode was begun.
        """
        if self.render_mode == "ansi":
            return self.task.describe(self.episode.state, self.params)
        if self.render_mode == "rgb_array":
            return self.task.draw_next(self.episode.state, self.params, self._trail)
        return None

    # -- what planning, masking agents and curious people need -------------------------------------

    def _readable_episode(self) -> Episode:
        """Return the running episode, to be read by the task only."""
        assert self._packed is not None
        return self._packed.value

    @property
    def state(self) -> EnvState:
        """The whole episode as a value: save it, restore it, branch from it.

        After a state is assigned, the same actions give the same observations, rewards, ends and
        infos as after it was saved, to the bit, and a time limit comes at the same step. A reset
        without a seed goes on from there too.

        Raises:
            gymnasium.error.ResetNeeded: no episode was begun.
            TypeError: an assigned value is not such a state.
        """
        return EnvState(self.episode, self._over)

    @state.setter
    def state(self, state: EnvState) -> None:
        if not isinstance(state, EnvState):
            raise TypeError(
                "state takes a value that env.unwrapped.state has returned, got "
                f"{type(state).__name__}. To change the task's own state alone: "
                "env.unwrapped.episode = env.unwrapped.episode._replace(state=...)."
            )
        self.episode = state.episode
        self._over = state.over
        self._restore_random(state.random)

    def _restore_random(self, random: Any) -> None:
        """Restore random numbers that are not functions of seed and step: simulators have some."""

    @property
    def episode(self) -> Episode:
        """The part of :attr:`state` that the engine computes.

        It has ``params`` and the task's own ``state``.

        An assigned episode is one that goes on. So a position can be made by hand, with
        ``_replace``.

        Raises:
            gymnasium.error.ResetNeeded: no episode was begun.
        """
        if self._packed is None:
            raise gymnasium.error.ResetNeeded(
                "Call reset() first: there is no running episode yet."
            )
        return self._packed.unpack()

    @episode.setter
    def episode(self, episode: Episode) -> None:
        refuse_after_fork()
        if self._packed is None:
            raise gymnasium.error.ResetNeeded("Call reset() before restoring an episode.")
        self._go_to(episode)
        self._packed.restore(episode)

    def _go_to(self, episode: Episode) -> None:
        """Set what is counted outside the compiled programs.

        That is seed, number and steps; time limits count the steps too.
        """
        self._seed = np.asarray(episode.seed, np.uint32)
        self._index = int(episode.index)
        self.steps = int(episode.t)
        self._over = False
        self._trail = []
        for limit in self._time_limits:
            wrapper: Any = limit
            wrapper._elapsed_steps = self.steps

    @property
    def params(self) -> Any:
        """The context of the episode."""
        return self.episode.params

    def action_masks(self) -> np.ndarray:
        """Return the actions that are legal now, bool ``(n,)``; agents with masks call this.

        Raises:
            AttributeError: the task has no masks.
            gymnasium.error.ResetNeeded: no episode was begun.
        """
        if self._packed is None:
            raise gymnasium.error.ResetNeeded(
                "Call reset() first: the mask is that of a running episode."
            )
        mask = self._packed.action_mask()
        if mask is None:
            raise AttributeError(f"{self.card.id} has no action mask: every action is legal.")
        return mask

    def pareto_front(self, gamma: float) -> list[np.ndarray]:
        """Return the exact front of discounted returns.

        Its format is that of MO-Gymnasium's environments.

        Raises:
            AttributeError: the task's front is not known.
        """
        exact_front = getattr(self.task, "pareto_front", None)
        if exact_front is None:
            raise AttributeError(f"{self.card.id} has no known Pareto front.")
        return list(exact_front(gamma))

    def reference(self) -> Policy:
        """Return the family's own player: a controller, solver or scripted player."""
        return reference_player(self.task)


def resetting_time_limits() -> list[TimeLimit]:
    """Return the ``TimeLimit`` wrappers that reset at this moment.

    Their resets have called the reset of the environment that calls this function.

    An environment does not know its wrappers, and Gymnasium's ``make`` adds this one behind our
    back. Its count of steps is part of what a state restores, and its limit is an end after which
    no step may follow. The wrappers are found among the callers: each of them passes a reset on in
    a function that has "reset" in its name.
    """
    limits = []
    frame: FrameType | None = sys._getframe(2)  # the reset of the environment
    while frame is not None and "reset" in frame.f_code.co_name:
        caller = frame.f_locals.get("self")
        # A wrapper's reset calls that of its base class with the same self.
        if isinstance(caller, TimeLimit) and caller not in limits:
            limits.append(caller)
        frame = frame.f_back
    return limits


class PixelEnv(TaskEnv):
    """The same episode seen as an image."""

    def __init__(self, task: Task[Any, Any], *args: Any, **keywords: Any) -> None:
        super().__init__(task, *args, **keywords)
        self.observation_space = spaces.Box(0, 255, task.picture_shape, np.uint8)

    def _show(self) -> StepValues:
        _, *results = super()._show()
        episode = self._readable_episode()
        return self.task.draw(episode.state, episode.params), *results
