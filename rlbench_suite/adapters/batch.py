"""Run many episodes at once as a ``gymnasium.vector.VectorEnv``.

It is made of jit and vmap; both autoreset modes come from the same code.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from rlbench_suite.adapters.action_check import ActionCheck
from rlbench_suite.adapters.frame_rate import frame_rate
from rlbench_suite.adapters.goals import WithGoals
from rlbench_suite.adapters.maskable import batched_action_space, shown_action_space
from rlbench_suite.adapters.one_thread import OneThread
from rlbench_suite.adapters.reward_space import VectorReward, shown_reward_space, with_resets
from rlbench_suite.adapters.task_env import RENDER_MODES, TaskEnv
from rlbench_suite.core.component import Signals
from rlbench_suite.core.contract import check_spaces
from rlbench_suite.core.episode import (
    Array,
    ContextSource,
    Episode,
    Step,
    advance,
    average_agents,
    begin,
    check_weights,
    reset_where,
    seed_key,
    weighted_sum,
)
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.foundation.unknown_names import unknown
from rlbench_suite.numerics.bit_exact import exact_vmap
from rlbench_suite.numerics.process import CACHED_TASKS, precision, refuse_after_fork
from rlbench_suite.numerics.waiting import announce_first_call, compiling

BACKENDS = ("numpy", "jax")
AUTORESET = {mode.value: mode for mode in AutoresetMode}


class BatchPrograms:
    """The two compiled programs of a batch: one advances all episodes, the other begins some.

    Every autoreset mode combines these two, so that an id compiles nothing else.
    """

    def __init__(self, task: Task[Any, Any]) -> None:
        self.task = task
        self._jitted_advance = jax.jit(self._advance)
        self.advance = announce_first_call(self._jitted_advance, task.card.id)
        self.reset_where = jax.jit(self._reset_where)

    def _advance(
        self, episodes: Episode, actions: jax.Array, limit: jax.Array
    ) -> tuple[Episode, Step, jax.Array]:
        """Return all episodes one step further, the steps, and which episodes are over."""
        episodes, step = exact_vmap(lambda e, a: advance(self.task, e, a, limit), episodes, actions)
        return episodes, step, step.terminated | step.truncated

    def _reset_where(
        self, done: jax.Array, episodes: Episode, last: Step, source: ContextSource
    ) -> tuple[Episode, Step, jax.Array]:
        episodes, step = reset_where(self.task, done, episodes, last, source)
        return episodes, step, step.terminated | step.truncated

    def begin(self, seeds: np.ndarray, source: ContextSource) -> tuple[Episode, Step, jax.Array]:
        """Begin the first episode of each seed, key data ``(n, 2)``.

        Raises:
            ContractError: a function of the task gives another shape or dtype than it should.
        """
        with compiling(self.task.card.id):
            return self._begin(seeds, source)

    def _begin(self, seeds: np.ndarray, source: ContextSource) -> tuple[Episode, Step, jax.Array]:
        size = len(seeds)
        space = self.task.action_space
        zeros = jax.tree.map(lambda leaf: np.zeros((size, *leaf.shape), leaf.dtype), self._shapes)
        no_episodes, no_step = zeros
        # Episode -1, so that the reset begins episode 0.
        no_episodes = no_episodes._replace(seed=seeds, index=np.full(size, -1, np.int32))
        actions = np.zeros((size, *(space.shape or ())), ActionCheck(space).dtype)
        # Shows faults now; the first step need not trace again.
        self._jitted_advance.trace(no_episodes, actions, np.int32(0))
        beginning: tuple[Episode, Step, jax.Array] = self.reset_where(
            np.ones(size, bool), no_episodes, no_step, source
        )
        return beginning

    @cached_property
    def _shapes(self) -> tuple[Episode, Step]:
        """Shapes of an episode and its step, traced once instead of at every reset."""
        source = ContextSource(np.int32(0), np.int32(-1))
        shapes: tuple[Episode, Step] = jax.eval_shape(
            lambda: begin(self.task, np.zeros(2, np.uint32), jnp.int32(0), source)
        )
        return shapes


programs = lru_cache(CACHED_TASKS)(BatchPrograms)


def check_batch(
    card: TaskCard,
    num_envs: int,
    max_episode_steps: int | None,
    autoreset_mode: AutoresetMode | str,
    backend: str,
    render_mode: str | None,
) -> tuple[AutoresetMode, int]:
    """Check the arguments of a vector env; return the autoreset mode and the time limit in steps.

    Raises:
        ValueError: an argument of a vector env is unknown or out of range.
    """
    if isinstance(num_envs, bool) or not isinstance(num_envs, (int, np.integer)) or num_envs < 1:
        raise ValueError(f"num_envs is an integer of at least 1, got {num_envs!r}.")
    backends = BACKENDS[:1] if card.host else BACKENDS
    if backend not in backends:
        raise ValueError(unknown(f"backend of {card.id}", backend, backends))
    mode = getattr(autoreset_mode, "value", autoreset_mode)
    if mode not in AUTORESET:
        raise ValueError(unknown("autoreset_mode", mode, AUTORESET))
    if render_mode is not None and render_mode not in RENDER_MODES:
        raise ValueError(unknown("render_mode", render_mode, RENDER_MODES))
    limit = card.horizon if max_episode_steps is None else max_episode_steps
    if isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 1:
        raise ValueError(
            f"max_episode_steps is an integer of at least 1, got {max_episode_steps!r}."
        )
    return AUTORESET[mode], limit


class BatchState(NamedTuple):
    """Everything on which the rest of the episodes of a batch depends."""

    episodes: Episode
    last: Step
    """The step that the batch has shown last, with the masks of the next one"""
    over: Array
    """bool ``(n,)``: episodes that are to be begun again"""


class TaskVectorEnv(WithGoals, gymnasium.vector.VectorEnv[Any, Any, Any]):
    """A batch of episodes.

    Entry ``i`` has the seed ``seed + i`` and equals the single env of that seed at every step.

    Rewards are ``(n,)``, or ``(n, k)`` for k objectives. ``reward_space`` is that of one entry, as
    in MO-Gymnasium: ``()`` or ``(k,)``. It has zero in it if some steps only reset;
    ``single_reward_space`` is the single env's. With ``backend="jax"`` observations, rewards, flags
    and infos stay on the device, and neither actions nor the need of a reset is checked.

    Args:
        task_id: id of a card.
        num_envs: number of episodes side by side, at least 1.
        max_episode_steps: time limit; the card's horizon if None.
        autoreset_mode: ``"NextStep"`` (Gymnasium's default), ``"SameStep"`` or ``"Disabled"``, or
            Gymnasium's enum.
        backend: ``"numpy"`` or ``"jax"``.
        split, difficulty, dtype, render_mode, weights: as for the single env.

    Raises:
        ValueError: a value is unknown or out of range.
    """

    def __init__(
        self,
        task_id: str,
        num_envs: int = 1,
        *,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        backend: str = "numpy",
        split: str | int = "train",
        difficulty: str | float | None = None,
        dtype: str = "float32",
        render_mode: str | None = None,
        weights: Sequence[float] | None = None,
    ) -> None:
        self.task = task = find_card(task_id).build(difficulty=difficulty, dtype=dtype)
        mode, limit = check_batch(
            task.card, num_envs, max_episode_steps, autoreset_mode, backend, render_mode
        )
        check_spaces(task)
        self._one_thread = OneThread(task.card.id)
        self.num_envs = num_envs
        self.backend = backend
        self.autoreset_mode = mode
        self.render_mode = render_mode
        self.metadata = TaskEnv.metadata | frame_rate(task.period) | {"autoreset_mode": mode}
        # Spaces hold the generator of their samples: each env has its own.
        self.single_observation_space = deepcopy(task.observation_space)
        self.single_action_space = shown_action_space(task)
        self.observation_space = batch_space(task.observation_space, num_envs)
        self.action_space = batched_action_space(task, num_envs)
        self.weights = check_weights(task, weights)
        self.single_reward_space = shown_reward_space(task, self.weights)
        self.reward_space = with_resets(self.single_reward_space, mode)
        self._limit = np.int32(limit)
        self._context_source = ContextSource.parse(split, task)
        self._check_actions = ActionCheck(task.action_space, num_envs)
        self._episodes: Episode | None = None
        self._last: Step

    @property
    def card(self) -> TaskCard:
        """Card of the task."""
        return self.task.card

    @property
    def signals(self) -> Signals:
        """Signals of one environment, as the single env's."""
        return self.task.signals

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes.

        With a seed, they are the first episodes of each entry's seed; without one, the next episode
        of each entry.

        Args:
            seed: seed of the first entry (entry ``i`` has ``seed + i``), or a list with one seed
                for each entry.
            options: ``{"reset_mask": mask}`` begins the episodes of those entries only, bool
                ``(n,)``; the others stay as they are.

        Raises:
            ValueError: a seed is negative or too large, a list or mask has another length, or there
                are other options.
            TypeError: the mask is no bool array.
            RuntimeError: another thread is in these environments, or JAX would hang
                (:func:`refuse_after_fork`).
        """
        refuse_after_fork()
        with self._one_thread:
            reset_mask = self._reset_mask(options)
            self._programs = programs(self.task)
            # Check beforehand whether any episode needs a reset, unless that would wait for an
            # accelerator.
            self._always_resets = self.backend == "jax" and jax.default_backend() != "cpu"
            with precision(self.task):
                if self._episodes is None:
                    if not reset_mask.all():
                        raise gymnasium.error.ResetNeeded(
                            "The first reset begins every episode; leave reset_mask out."
                        )
                    beginning = self._programs.begin(self._seeds(seed), self._context_source)
                else:
                    episodes = self._episodes
                    if seed is not None:
                        episodes = episodes._replace(
                            seed=np.where(reset_mask[:, None], self._seeds(seed), episodes.seed),
                            index=np.where(reset_mask, np.int32(-1), episodes.index),
                        )
                    beginning = self._programs.reset_where(
                        reset_mask, episodes, self._last, self._context_source
                    )
                self._episodes, self._last, self._over = beginning
            return self._to_backend(self._last.observation), self._infos(
                self._last.info, reset_mask
            )

    def _reset_mask(self, options: dict[str, Any] | None) -> np.ndarray:
        """Return the mask of the entries whose episodes are to begin."""
        unknown_options = dict(options or {})
        mask = unknown_options.pop("reset_mask", np.ones(self.num_envs, bool))
        if unknown_options:
            raise ValueError(
                f"{self.card.id} takes no reset options but reset_mask, got {options!r}."
            )
        if not isinstance(mask, np.ndarray) or mask.dtype != bool:
            raise TypeError(f"reset_mask is a NumPy array of bools, got {mask!r}.")
        if mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError(
                f"reset_mask has {self.num_envs} entries, one of them true at least, got {mask!r}."
            )
        return mask

    def _seeds(self, seed: Any) -> np.ndarray:
        entropy = int(np.random.SeedSequence().generate_state(1)[0]) << 31
        if seed is None or not isinstance(seed, Sequence | np.ndarray):
            first = entropy
            if seed is not None:
                seed_key(seed)  # refuses what is no seed
                first = int(seed)
            return np.stack([seed_key(first + i) for i in range(self.num_envs)])
        if len(seed) != self.num_envs:
            raise ValueError(
                f"A list of seeds has one for each of the {self.num_envs} episodes, got "
                f"{len(seed)}."
            )
        return np.stack([seed_key(entropy + i if s is None else s) for i, s in enumerate(seed)])

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step every episode.

        Raises:
            ValueError, TypeError: an action is not in the action space (NumPy backend).
            gymnasium.error.ResetNeeded: no episode was begun, or autoreset is disabled and one is
                over.
            RuntimeError: another thread is in these environments, or JAX would hang
                (:func:`refuse_after_fork`).
        """
        refuse_after_fork()
        with self._one_thread:
            if self._episodes is None:
                raise gymnasium.error.ResetNeeded("Call reset() before step().")
            disabled = self.autoreset_mode is AutoresetMode.DISABLED
            same_step = self.autoreset_mode is AutoresetMode.SAME_STEP
            if disabled and self.backend == "numpy" and (over := np.flatnonzero(self._over)).size:
                raise gymnasium.error.ResetNeeded(
                    f"Episodes are over in entries {over.tolist()}; "
                    "begin them by reset(options={'reset_mask': mask})."
                )
            if self.backend == "numpy":
                actions = self._check_actions(actions)
            with precision(self.task):
                episodes, step, over = self._programs.advance(self._episodes, actions, self._limit)
                ended = over
                # An episode that was over before this step took one step too many. Its reset undoes
                # that step.
                to_reset = over if same_step else self._over
                latest = step
                if not disabled and (self._always_resets or np.asarray(to_reset).any()):
                    episodes, latest, over = self._programs.reset_where(
                        to_reset, episodes, step, self._context_source
                    )
                self._episodes = episodes
                self._last = latest
                self._over = over
                outcome = step if same_step else latest
                reward = average_agents(self.task, outcome.reward)
                info = latest.info
                if self.weights is not None:
                    info = info | {"vector_reward": reward}
                    reward = weighted_sum(reward, self.weights, self.task.dtype)
            infos = self._infos(info)
            if same_step:
                infos |= self._final(step, ended)
            rewards = self._to_backend(reward)
            if self.reward_space.shape and self.backend == "numpy":
                rewards = rewards.view(VectorReward)
            return (
                self._to_backend(latest.observation),
                rewards,
                self._to_backend(outcome.terminated),
                self._to_backend(outcome.truncated),
                infos,
            )

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """Seed of each entry, as in Gymnasium's vector environments.

        Raises:
            gymnasium.error.ResetNeeded: no episode was begun.
        """
        return tuple(int(high) << 32 | int(low) for high, low in np.asarray(self.episodes.seed))

    @property
    def state(self) -> BatchState:
        """All running episodes as a value, like the state of a single env.

        Save it, restore it, or branch from it.

        Raises:
            gymnasium.error.ResetNeeded: no episode was begun.
            TypeError: an assigned value is not such a state.
            ValueError: it is one of another number of episodes.
        """
        return BatchState(self.episodes, self._last, self._over)

    @state.setter
    def state(self, state: BatchState) -> None:
        refuse_after_fork()
        if not isinstance(state, BatchState):
            raise TypeError(
                "state takes a value that the state of a batch has returned, got "
                f"{type(state).__name__}."
            )
        if len(self.episodes.t) != len(state.episodes.t):
            raise ValueError(
                f"A state of {len(state.episodes.t)} episodes does not fit a batch of "
                f"{self.num_envs}."
            )
        self._episodes, self._last, self._over = state

    @property
    def episodes(self) -> Episode:
        """The running episodes, batched on axis 0, as part of :attr:`state`.

        Raises:
            gymnasium.error.ResetNeeded: no episode was begun.
        """
        if self._episodes is None:
            raise gymnasium.error.ResetNeeded(
                "Call reset() first: there are no running episodes yet."
            )
        return self._episodes

    def render(self) -> tuple[Any, ...] | None:
        """Return a picture (``rgb_array``) or a description (``ansi``) of each episode.

        Raises:
            gymnasium.error.ResetNeeded: no episode was begun.
        """
        if self.render_mode is None:
            return None
        show = self.task.describe if self.render_mode == "ansi" else self.task.draw
        state, params = jax.tree.map(np.asarray, (self.episodes.state, self.episodes.params))
        return tuple(
            show(*jax.tree.map(lambda leaf, i=i: leaf[i], (state, params)))
            for i in range(self.num_envs)
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to copy: arrays on the host. A copy looks up its compiled programs."""
        state = {name: value for name, value in self.__dict__.items() if name != "_programs"}
        if self._episodes is not None:
            running = {name: state[name] for name in ("_episodes", "_last", "_over")}
            state |= jax.tree.map(np.asarray, running)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state of a copy. It continues with the same bits."""
        self.__dict__.update(state)
        if self._episodes is not None:
            refuse_after_fork()
            self._programs = programs(self.task)

    def action_masks(self) -> np.ndarray:
        """Return the actions that are legal now, bool ``(num_envs, n)``.

        Raises:
            AttributeError: the task has no masks.
        """
        if "action_mask" not in self._last.info:
            raise AttributeError(f"{self.card.id} has no action mask: every action is legal.")
        return np.array(self._last.info["action_mask"])

    def _to_backend(self, tree: Any) -> Any:
        return jax.tree.map(np.array, tree) if self.backend == "numpy" else tree

    def _infos(self, info: dict[str, Any], entries: np.ndarray | None = None) -> dict[str, Any]:
        """Return Gymnasium's infos, each with a mask of the entries it describes.

        Those are all entries, or ``entries``.
        """
        infos = {}
        for name, value in self._to_backend(info).items():
            infos[name] = (
                value.view(np.int8) if name == "action_mask" and self.backend == "numpy" else value
            )
            infos[f"_{name}"] = np.ones(self.num_envs, bool) if entries is None else entries.copy()
        return infos

    def _final(self, step: Step, done: Any) -> dict[str, Any]:
        """Return the last observation and info of episodes that just ended.

        Their form is that of Gymnasium's SAME_STEP.
        """
        if self.backend == "jax":
            return {
                "final_obs": step.observation,
                "_final_obs": done,
                "final_info": step.info,
                "_final_info": done,
            }
        done = np.array(done)
        if not done.any():
            return {}
        final_obs = np.full(self.num_envs, None, dtype=object)
        observations = self._to_backend(step.observation)
        for i in np.flatnonzero(done):
            final_obs[i] = jax.tree.map(lambda leaf, i=i: leaf[i], observations)
        final_info: dict[str, Any] = {}
        for name, value in self._infos(step.info).items():
            done_column = done.reshape(done.shape + (1,) * (value.ndim - 1))
            final_info[name] = (
                done.copy()
                if name.startswith("_")
                else np.where(done_column, value, value.dtype.type(0))
            )
        return {
            "final_obs": final_obs,
            "_final_obs": done,
            "final_info": final_info,
            "_final_info": done.copy(),
        }
