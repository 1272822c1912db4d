"""Give simulators of the host the interfaces of every id.

They are single, shown as text or pixels, batched, played and replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, SupportsFloat

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from rlbench_suite.adapters.action_check import ActionCheck
from rlbench_suite.adapters.batch import check_batch
from rlbench_suite.adapters.one_thread import OneThread
from rlbench_suite.adapters.record import Record
from rlbench_suite.adapters.reward_space import with_resets
from rlbench_suite.adapters.task_env import EnvState, PixelEnv, TaskEnv
from rlbench_suite.adapters.text import TextEnv
from rlbench_suite.core.contract import check_action, check_memory
from rlbench_suite.core.episode import Episode, Role, draw_key, seed_key
from rlbench_suite.core.host import HostTask
from rlbench_suite.core.policy import Policy, View
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.scale import Scale
from rlbench_suite.numerics.process import precision, refuse_after_fork


class HostEnv(TaskEnv):
    """A simulator as a single environment.

    Trajectories are the simulator's own, bit for bit in float64.

    Unless the task begins its episodes itself, seeds work as in Gymnasium: ``reset(seed=s)`` seeds
    the simulator, and a reset without a seed goes on from there.
    """

    task: Any  # a HostTask; whatever TaskEnv does with the functions of a Task is overridden here

    def __init__(self, task: HostTask[Any], *args: Any, **keywords: Any) -> None:
        super().__init__(task, *args, **keywords)  # type: ignore[arg-type]
        self._simulator = task.simulator()
        self._last: Any = None
        self._total = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode: with a seed its first one, without the next one of the last seed.

        Raises:
            ValueError: the seed is negative or too large, or options are given (there are none).
            RuntimeError: another thread is in this environment.
        """
        with self._one_thread:
            first = self._turn(seed, options)
            observation, simulator_info = self.task.begin(
                self._simulator, first, self._seed, self._index, self._context_source
            )
            self._total = 0.0
            self._last = observation, 0.0, False, self._info(simulator_info, terminated=False)
            observation, *_, info = self._show()
            return observation, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step once.

        Raises:
            ValueError, TypeError: the action is not in the action space.
            gymnasium.error.ResetNeeded: no episode was begun, or it is over.
            RuntimeError: another thread is in this environment.
        """
        with self._one_thread:
            if self._last is None or self._over:
                raise self._reset_needed()
            observation, reward, terminated, _, simulator_info = self._simulator.step(
                self._check_action(action)
            )
            self.steps += 1
            self._total += float(reward)
            self._last = (
                observation,
                float(reward),
                bool(terminated),
                self._info(simulator_info, bool(terminated)),
            )
            observation, reward, terminated, truncated, info = self._show()
            truncated = truncated or self.steps >= self._limit
            self._over = terminated or truncated
            if terminated:
                info["end_reason"] = self.task.why_over(self.episode.state, self.params, info)
            return observation, reward, terminated, truncated, info

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to copy. A copy makes a new simulator and puts it into this state."""
        state = {name: value for name, value in self.__dict__.items() if name != "_simulator"}
        running = (
            None if self._last is None else (self.episode, self._simulator.unwrapped.np_random)
        )
        return state | {"_simulator": running}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state of a copy. It continues with the same bits."""
        self.__dict__.update(state)
        self._simulator = self.task.simulator()
        if state["_simulator"] is not None:
            episode, random = state["_simulator"]
            self._simulator.reset()
            self.task.set_state(self._simulator, episode.state, episode.params)
            self._simulator.unwrapped.np_random = random

    def _info(self, simulator_info: dict[str, Any], terminated: bool) -> dict[str, Any]:
        info: dict[str, Any] = self.task.info(self._simulator, simulator_info)
        info["success"] = info["success"] and not (terminated and self.task.ends_in_failure)
        scale = Scale.of(self.task.scores)
        if scale and scale.span > 0:
            info["score"] = scale.score(self._total)
        return info

    def _show(self) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, info = self._last
        return np.array(observation, self.task.dtype), reward, terminated, False, dict(info)

    def _readable_episode(self) -> Episode:
        return self.episode

    @property
    def state(self) -> EnvState:
        """The whole episode as a value, with the simulator's random numbers.

        See :attr:`TaskEnv.state`.
        """
        return super().state._replace(
            random=self._simulator.unwrapped.np_random.bit_generator.state
        )

    @state.setter
    def state(self, state: EnvState) -> None:
        TaskEnv.state.fset(self, state)  # type: ignore[attr-defined]

    def _restore_random(self, random: Any) -> None:
        self._simulator.unwrapped.np_random.bit_generator.state = random

    @property
    def episode(self) -> Episode:
        """The part of :attr:`state` without the simulator's random numbers.

        See :attr:`TaskEnv.episode`.

        Raises:
            gymnasium.error.ResetNeeded: no episode was begun.
        """
        if self._last is None:
            raise gymnasium.error.ResetNeeded(
                "Call reset() first: there is no running episode yet."
            )
        params = self.task.get_params(self._simulator)
        state = self.task.get_state(self._simulator)
        return Episode(
            self._seed,
            np.int32(self._index),
            np.int32(self.steps),
            np.float64(self._total),
            params,
            state,
        )

    @episode.setter
    def episode(self, episode: Episode) -> None:
        if self._last is None:
            raise gymnasium.error.ResetNeeded("Call reset() before restoring an episode.")
        self._go_to(episode)
        self._total = float(episode.total)
        self.task.set_state(self._simulator, episode.state, episode.params)

    def action_masks(self) -> np.ndarray:
        """Raise AttributeError: every action is legal."""
        raise AttributeError(f"{self.card.id} has no action mask: every action is legal.")

    def close(self) -> None:
        """Close the simulator."""
        self._simulator.close()


class HostTextEnv(TextEnv, HostEnv):
    """A host simulator with text observations and actions."""


class HostPixelEnv(PixelEnv, HostEnv):
    """A host simulator with images as observations."""


class HostVectorEnv(SyncVectorEnv):
    """Simulators of the host, stepped one after another.

    Arguments are those of :class:`~rlbench_suite.adapters.batch.TaskVectorEnv`.

    Raises:
        ValueError: a value is unknown, out of range, or has no meaning for a host simulator.
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
        self.task: Any = find_card(task_id).build(difficulty=difficulty, dtype=dtype)
        self.card = self.task.card
        self.signals = self.task.signals
        mode, limit = check_batch(
            self.card, num_envs, max_episode_steps, autoreset_mode, backend, render_mode
        )
        self.backend = backend
        self.single_reward_space = self.task.reward_space
        self.reward_space = with_resets(self.single_reward_space, mode)
        self._check_actions = ActionCheck(self.task.action_space, num_envs)
        self._one_thread = OneThread(self.card.id)
        super().__init__(
            [partial(_make_env, self.task, limit, split, render_mode, weights)] * num_envs,
            autoreset_mode=mode,
            copy=True,
        )

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin every episode.

        Args:
            seed: seed of the first entry (entry ``i`` has ``seed + i``), or a list with one seed
                for each entry.
            options: those of the simulators.

        Raises:
            ValueError: a seed is no integer, or out of range.
        """
        if isinstance(seed, Sequence | np.ndarray):
            return super().reset(seed=list(seed), options=options)
        if seed is not None:
            seed_key(seed)  # refuses what is no seed
            seed = int(seed)
        return super().reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step every episode.

        Raises:
            ValueError, TypeError: an action is not in the action space.
            RuntimeError: another thread is in these environments.
        """
        with self._one_thread:
            return super().step(self._check_actions(actions))


def _make_env(task: Any, limit: int, *args: Any) -> gymnasium.Env[Any, Any]:
    return TimeLimit(HostEnv(task, *args), limit)


Choose = Callable[[Any, Sequence[HostEnv], int], np.ndarray]
"""Function that returns the actions ``(n, ...)`` of all episodes.

Its arguments are observations ``(n, ...)``, environments and the step number.
"""


def play(
    task: HostTask[Any],
    choose: Choose,
    seeds: Sequence[int] | np.ndarray,
    split: str | int,
    limit: int | None = None,
) -> Record:
    """Play the first episode of each seed.

    Args:
        task: the task.
        choose: function that chooses the actions.
        seeds: environment seeds.
        split: as for the single env.
        limit: time limit in steps, the card's horizon if None.
    """
    horizon = task.card.horizon if limit is None else limit
    envs = [HostEnv(task, split) for _ in seeds]
    observations = np.stack(
        [env.reset(seed=int(seed))[0] for env, seed in zip(envs, seeds, strict=True)]
    )
    actions = np.zeros(
        (len(envs), horizon, *(task.action_space.shape or ())), task.action_space.dtype
    )
    length = np.zeros(len(envs), np.int32)
    terminated = np.zeros(len(envs), bool)
    infos: list[dict[str, Any]] = [{}] * len(envs)
    for t in range(horizon):
        alive = np.flatnonzero(~terminated)
        if not alive.size:
            break
        next_actions = choose(observations, envs, t)
        for i in alive:
            actions[i, t] = next_actions[i]
            observations[i], _, terminated[i], _, infos[i] = envs[i].step(actions[i, t])
            length[i] = t + 1
    total = np.array([env.episode.total for env in envs])
    for env in envs:
        env.close()
    info = {
        name: np.array([last_info[name] for last_info in infos])
        for name in ("success", *task.measures)
    }
    return Record(total, length, terminated, info, np.zeros(len(envs)), actions)


def player(task: HostTask[Any], policy: Any, seeds: Sequence[int] | np.ndarray) -> Choose:
    """Return the ``choose`` of :func:`play` for a policy, compiled or of the host."""
    if not isinstance(policy, Policy):
        return lambda observations, envs, t: np.asarray(policy.act(observations, None))
    refuse_after_fork()
    keys = np.stack([seed_key(int(seed)) for seed in seeds])
    memory: Any = None
    space = task.action_space

    @jax.jit
    def act(memory: Any, observations: Any, state: Any, params: Any, t: Any) -> Any:
        def act_once(memory: Any, observation: Any, state: Any, params: Any, seed: Any) -> Any:
            key = draw_key(seed, jnp.int32(0), t, Role.POLICY)
            action, next_memory = policy.act(memory, View(observation, None, state, params), key)
            return check_action(policy, action, space), check_memory(policy, next_memory, memory)

        return jax.vmap(act_once)(memory, observations, state, params, keys)

    def choose(observations: Any, envs: Sequence[HostEnv], t: int) -> np.ndarray:
        nonlocal memory
        episodes = [env.episode for env in envs]
        state, params = jax.tree.map(
            lambda *leaves: np.stack(leaves), *((e.state, e.params) for e in episodes)
        )
        with precision(task):
            if t == 0:
                memory = jax.vmap(policy.initial, axis_size=len(keys))(params)
            actions, memory = act(memory, observations, state, params, np.int32(t))
        return np.asarray(actions)

    return choose
