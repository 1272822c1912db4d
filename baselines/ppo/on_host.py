"""Train by PPO on simulators of the host.

The simulators step between one compiled program that acts and one that learns.

Networks, keys, advantages and the update are those of ``ppo.py``.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import jax
import numpy as np

from rlbench_suite.adapters.host import HostVectorEnv
from rlbench_suite.core.episode import seed_key

from ..flat_task import FlatTask, flatten_task
from ..networks import Moments
from ..training import Returns
from . import ppo
from .ppo import Actor, Config, Networks, TrainingState, Transition


class HostPrograms:
    """Programs for a simulator on the host, with the methods of ``agent.Programs``."""

    def __init__(self, task: Any, config: Config) -> None:
        self.flat = flatten_task(task, "ppo")
        self.config = config
        start_time = time.perf_counter()
        self.chunk_steps = config.chunk * config.batch
        self._start = jax.jit(partial(ppo.start, self.flat, config))
        self._sample_noise = jax.jit(self._sample_noise_of_update)
        self._act = jax.jit(self._choose_actions)
        self._learn = jax.jit(self._learn_from)
        self.chunk(self.start(0), updates=1)  # compiles
        self.seconds = time.perf_counter() - start_time

    def start(self, seed: int) -> TrainingState:
        """Return the state at the beginning of a run, including its environments."""
        networks = Networks.initial(self.flat, self.config, seed)
        key = seed_key(seed)
        return self._start(networks, key, ())._replace(
            stream=HostStream(self.flat, self.config.num_envs, key)
        )

    def policy(self, training: TrainingState) -> ppo.Policy:
        """Return the trained policy, which sees no privileged features."""
        return ppo.trained_policy(self.flat, self.config, training)

    def chunk(
        self, training: TrainingState, updates: int | None = None
    ) -> tuple[TrainingState, Returns]:
        """Do ``updates`` updates, or a chunk of the configuration if None."""
        stream: HostStream = training.stream
        training = training._replace(stream=())
        returns: list[float] = []
        for _ in range(updates or self.config.chunk):
            steps = [
                self._step(stream, training, noise, returns)
                for noise in self._sample_noise(training)
            ]
            fields: list[Any] = [
                None if leaves[0] is None else np.stack(leaves)
                for leaves in zip(*steps, strict=True)
            ]
            training = self._learn(training, Transition(*fields))
        return training._replace(stream=stream), Returns(sum(returns), len(returns))

    def _step(
        self, stream: HostStream, training: TrainingState, noise: Any, returns: list[float]
    ) -> Transition:
        x, action, log_prob, env_action = self._act(
            training.networks.actor, training.moments, stream.observations, noise
        )
        next_observations, rewards, terminated, over, final_returns = stream.step(
            np.asarray(env_action)
        )
        returns += final_returns
        host_fields: dict[str, Any] = {
            "reward": rewards[:, None].astype(np.float32),
            "next_x": next_observations.reshape(x.shape).astype(np.float32),
            "terminated": np.repeat(terminated[:, None], self.flat.agents, 1),
            "over": np.repeat(over[:, None], self.flat.agents, 1),
        }
        return Transition(x=x, mask=None, action=action, log_prob=log_prob, **host_fields)

    # JAX traces the methods below.

    def _sample_noise_of_update(self, training: TrainingState) -> jax.Array:
        return ppo.sample_noise(self.flat, self.config, ppo.split_keys(training)[0])

    def _choose_actions(
        self, actor: Actor, moments: Moments, observations: Any, noise: Any
    ) -> tuple[jax.Array, ...]:
        x, _ = jax.vmap(self.flat.observe)(observations)
        distribution = actor(self.flat, moments.normalise(x), None)
        action = distribution.sample(noise)
        return x, action, distribution.log_prob(action), jax.vmap(self.flat.env_action)(action)

    def _learn_from(self, training: TrainingState, rollout: Transition) -> TrainingState:
        return ppo.learn(self.flat, self.config, training, rollout, ppo.split_keys(training)[1])


class HostStream:
    """Running episodes of a simulator on the host; the counterpart of :class:`Stream`."""

    def __init__(self, flat: FlatTask, num_envs: int, seed: Any) -> None:
        self.env = HostVectorEnv(flat.task.card.id, num_envs, autoreset_mode="SameStep")
        entropy = [int(word) for word in np.asarray(seed)]
        # Below 2**32, and evaluation seeds are above.
        seeds = np.random.SeedSequence(entropy).generate_state(num_envs)
        self.observations, _ = self.env.reset(seed=seeds.tolist())
        self._totals = np.zeros(num_envs)

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[float]]:
        """Step once in all environments.

        Return the observations before any reset, the rewards, the flags ``terminated`` and
        ``over``, and the returns that are final.
        """
        self.observations, rewards, terminated, truncated, infos = self.env.step(actions)
        over = terminated | truncated
        self._totals += rewards
        final_returns = self._totals[over].tolist()
        self._totals[over] = 0
        next_observations = self.observations
        if over.any():
            next_observations = self.observations.copy()
            next_observations[over] = np.stack(list(infos["final_obs"][over]))
        return next_observations, rewards, terminated, over, final_returns
