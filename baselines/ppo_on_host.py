"""PPO for simulators on the host, which step between one compiled program that acts and one that learns.

Networks, keys, advantages and the update are those of ``ppo.py``.
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
from .flat_task import FlatTask, flatten_task
from .networks import Moments
from .ppo import Config, Networks, PPOPolicy, TrainingState, Transition, draw_noise, learn, split_keys, start
from .training import Returns


class HostPrograms:
    """Programs for a simulator on the host, with the methods of ``ppo_agent.Programs``."""

    def __init__(self, task: Any, config: Config) -> None:
        self.flat = flat = flatten_task(task, "ppo")
        self.config = config
        begun = time.perf_counter()
        self.chunk_steps = config.chunk * config.batch
        self._start = jax.jit(partial(start, flat, config))
        self._learn = jax.jit(lambda training, seen: learn(flat, config, training, seen, split_keys(training)[1]))
        self._act = jax.jit(self._choose)
        self._noise = jax.jit(lambda training: draw_noise(flat, config, split_keys(training)[0]))
        self.chunk(self.start(0), updates=1)  # compiles
        self.seconds = time.perf_counter() - begun

    def start(self, seed: int) -> TrainingState:
        """Return the state at the beginning of a run, including its environments."""
        networks, key = Networks.initial(self.flat, self.config, seed), seed_key(seed)
        return self._start(networks, key, ())._replace(stream=HostStream(self.flat, self.config.num_envs, key))

    def policy(self, training: TrainingState) -> PPOPolicy:
        """Return the trained policy, which sees no privileged features."""
        moments = training.moments.first(self.flat.features)
        return PPOPolicy(training.networks.actor, moments, self.flat, self.config)

    def chunk(self, training: TrainingState, updates: int | None = None) -> tuple[TrainingState, Returns]:
        """Do ``updates`` updates, or a chunk of the configuration if None."""
        stream: HostStream = training.stream
        training = training._replace(stream=())
        returns: list[float] = []
        for _ in range(updates or self.config.chunk):
            steps = [self._step(stream, training, noise, returns) for noise in self._noise(training)]
            seen = Transition(*(None if part[0] is None else np.stack(part) for part in zip(*steps, strict=True)))
            training = self._learn(training, seen)
        return training._replace(stream=stream), Returns(sum(returns), len(returns))

    def _step(self, stream: HostStream, training: TrainingState, noise: Any, returns: list[float]) -> Transition:
        flat, actor = self.flat, training.networks.actor
        x, action, log_prob, played = self._act(actor, training.moments, stream.observations, noise)
        next_observations, rewards, terminated, over, ended = stream.step(np.asarray(played))
        returns += ended
        next_x = next_observations.reshape(x.shape).astype(np.float32)
        flags = (np.repeat(flag[:, None], flat.agents, 1) for flag in (terminated, over))
        return Transition(x, None, action, log_prob, rewards[:, None].astype(np.float32), next_x, *flags)

    def _choose(self, actor: Actor, moments: Moments, observations: Any, noise: Any) -> tuple[jax.Array, ...]:
        x, _ = jax.vmap(self.flat.observe)(observations)
        distribution = actor(self.flat, moments.normalise(x), None)
        action = distribution.sample(noise)
        return x, action, distribution.log_prob(action), jax.vmap(self.flat.env_action)(action)


class HostStream:
    """Running episodes of a simulator on the host; the counterpart of :class:`Stream`."""

    def __init__(self, flat: FlatTask, num_envs: int, seed: Any) -> None:
        self.env = HostVectorEnv(flat.task.card.id, num_envs, autoreset_mode="SameStep")
        entropy = [int(word) for word in np.asarray(seed)]
        seeds = np.random.SeedSequence(entropy).generate_state(num_envs)  # below 2**32, and evaluation seeds are above
        self.observations, _ = self.env.reset(seed=seeds.tolist())
        self._totals = np.zeros(num_envs)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[float]]:
        """Take a step; return observations before any reset, rewards, terminated, over, and returns that are final."""
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
