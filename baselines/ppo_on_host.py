"""How PPO collects from a simulator of the host: it steps between a program that acts and one that learns.

Everything else is ``ppo.py``: networks, keys, advantages, the update.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import jax
import numpy as np

from rlbench_suite.adapters.host import HostVectorEnv
from rlbench_suite.episode import seed_key

from .actor import Actor
from .networks import Moments
from .ppo import Config, Networks, Training, Transition, learn, make_noise, start, update_keys
from .rows import Rows, rows_of
from .training import Returns


class HostPrograms:
    """``start`` and ``chunk`` for a simulator of the host, as ``ppo.Programs`` has them for pure tasks."""

    def __init__(self, task: Any, config: Config) -> None:
        self.rows = rows = rows_of(task, "ppo")
        self.config = config
        begun = time.perf_counter()
        arguments = Networks.initial(rows, config, 0), seed_key(0)
        self._start = jax.jit(partial(start, rows, config))
        self._learn = jax.jit(lambda training, seen: learn(rows, config, training, seen, update_keys(training)[1]))
        self._act = jax.jit(self._choose)
        self._noise = jax.jit(lambda training: make_noise(rows, config, update_keys(training)[0]))
        self.chunk(self.start(*arguments), updates=1)  # compiles
        self.seconds = time.perf_counter() - begun

    def start(self, networks: Networks, seed: Any) -> Training:
        """The beginning of a run, environments included."""
        return self._start(networks, seed, ())._replace(stream=HostStream(self.rows, self.config.num_envs, seed))

    def chunk(self, training: Training, updates: int | None = None) -> tuple[Training, Returns]:
        """Some updates; those of a chunk of the configuration if not said."""
        stream: HostStream = training.stream
        training = training._replace(stream=())
        returns: list[float] = []
        for _ in range(updates or self.config.chunk):
            steps = [self._step(stream, training, noise, returns) for noise in self._noise(training)]
            seen = Transition(*(None if part[0] is None else np.stack(part) for part in zip(*steps, strict=True)))
            training = self._learn(training, seen)
        return training._replace(stream=stream), Returns(sum(returns), len(returns))

    def _step(self, stream: HostStream, training: Training, noise: Any, returns: list[float]) -> Transition:
        rows, actor = self.rows, training.networks.actor
        x, action, log_prob, played = self._act(actor, training.moments, stream.observations, noise)
        next_observations, rewards, terminated, over, ended = stream.step(np.asarray(played))
        returns += ended
        next_x = next_observations.reshape(x.shape).astype(np.float32)
        flags = (np.repeat(flag[:, None], rows.agents, 1) for flag in (terminated, over))
        return Transition(x, None, action, log_prob, rewards[:, None].astype(np.float32), next_x, *flags)

    def _choose(self, actor: Actor, moments: Moments, observations: Any, noise: Any) -> tuple[jax.Array, ...]:
        x, _ = jax.vmap(self.rows.look)(observations)
        distribution = actor(self.rows, moments.normalise(x), None)
        action = distribution.sample(noise)
        return x, action, distribution.log_prob(action), jax.vmap(self.rows.action)(action)


class HostStream:
    """Running episodes of a host simulator: what :class:`Stream` is for pure tasks."""

    def __init__(self, rows: Rows, num_envs: int, seed: Any) -> None:
        self.env = HostVectorEnv(rows.task.card.id, num_envs, autoreset_mode="SameStep")
        entropy = [int(word) for word in np.asarray(seed)]
        seeds = np.random.SeedSequence(entropy).generate_state(num_envs)  # below 2**32: no evaluation seed is
        self.observations, _ = self.env.reset(seed=seeds.tolist())
        self._totals = np.zeros(num_envs)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[float]]:
        """Observations before any reset, rewards, terminated, over, and the returns of the episodes that ended."""
        self.observations, rewards, terminated, truncated, infos = self.env.step(actions)
        over = terminated | truncated
        self._totals += rewards
        ended = self._totals[over].tolist()
        self._totals[over] = 0
        final = self.observations
        if over.any():
            final = self.observations.copy()
            final[over] = np.stack(list(infos["final_obs"][over]))
        return final, rewards, terminated, over, ended
