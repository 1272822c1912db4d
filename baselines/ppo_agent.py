"""The agent ``ppo``.

The algorithm is ``ppo.py``. This file chooses how to run it: with or without a memory (``recurrent_ppo.py``), in one
compiled program or beside a simulator on the host (``ppo_on_host.py``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import jax

from rlbench_suite.episode import seed_key
from rlbench_suite.task import Task

from . import ppo, recurrent_ppo
from .flat_task import FlatTask, flatten_task
from .learning_agent import LearningAgent
from .memory_units import UNITS
from .networks import Moments
from .ppo import Config, PPOPolicy
from .ppo_on_host import HostPrograms
from .training import begin_episodes, get_compiled


class Variant(NamedTuple):
    """Functions that differ with and without a memory."""

    networks: Callable[[FlatTask, Config, int], Any]
    start: Callable[..., Any]
    train_chunk: Callable[..., Any]
    base: Callable[[Any], ppo.TrainingState]
    """Returns the part of the training state that both variants share."""
    policy: Callable[..., Any]


FEEDFORWARD = Variant(ppo.Networks.initial, ppo.start, ppo.train_chunk, lambda training: training, PPOPolicy)
RECURRENT = Variant(
    recurrent_ppo.Networks.initial,
    recurrent_ppo.start,
    recurrent_ppo.train_chunk,
    lambda training: training.base,
    recurrent_ppo.RecurrentPolicy,
)


def variant(config: Config) -> Variant:
    """Return the variant that the configuration asks for."""
    return RECURRENT if config.recurrent in UNITS else FEEDFORWARD


def flatten_for_ppo(task: Task[Any, Any]) -> FlatTask:
    """Return the task as PPO sees it: images stay apart, except for simulators on the host."""
    return flatten_task(task, "ppo", images=not task.card.host)


class Programs:
    """Compiled ``start`` and ``train_chunk`` of a task and configuration; all seeds share them."""

    def __init__(self, task: Task[Any, Any], config: Config) -> None:
        since = time.perf_counter()
        self.flat = flat = flatten_for_ppo(task)
        self.config, self.variant = config, variant(config)
        self.chunk_steps = config.chunk * config.batch
        self._start = jax.jit(partial(self.variant.start, flat, config))
        self.chunk = jax.jit(partial(self.variant.train_chunk, flat, config)).lower(self.start(0)).compile()
        self.seconds = time.perf_counter() - since

    def start(self, seed: int) -> Any:
        """Return the state at the beginning of a run, including its environments."""
        networks, key = self.variant.networks(self.flat, self.config, seed), seed_key(seed)
        return self._start(networks, key, begin_episodes(self.flat.task, key, self.config.num_envs))

    def policy(self, training: Any) -> Any:
        """Return the trained policy, which sees no privileged features."""
        base = self.variant.base(training)
        moments = base.moments.first(self.flat.features)
        return self.variant.policy(base.networks.actor, moments, self.flat, self.config)


@cache
def programs(task: Any, config: Config) -> Any:
    """Compile the programs of a task and configuration; simulators on the host have their own kind."""
    return HostPrograms(task, config) if task.card.host else Programs(task, config)


class PPO(LearningAgent):
    """The agent ``ppo``."""

    name = "ppo"
    config_class = Config

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if PPO cannot play the task; the message says why."""
        flatten_for_ppo(task)

    def config(self, task: Task[Any, Any], budget: str) -> Config:
        """Return the checked hyperparameters."""
        config: Config = super().config(task, budget)
        if config.recurrent is None:
            config = replace(config, recurrent="gru" if task.card.partially_observed and not task.card.host else "none")
        if config.stagger and task.card.host:
            raise ValueError(f"{task.card.id} runs on the host and keeps its own time, so stagger must be False.")
        if config.recurrent != "none" and task.card.host:
            raise ValueError(f"{task.card.id} runs on the host, where PPO has no memory, so recurrent must be 'none'.")
        if config.recurrent != "none" and config.num_envs * task.card.agents % config.minibatches:
            raise ValueError(
                f"minibatches={config.minibatches} must divide the number of sequences, {config.num_envs} environments "
                f"x {task.card.agents} agents, because a memory learns from whole sequences."
            )
        if config.batch * task.card.agents % config.minibatches:
            raise ValueError(
                f"minibatches={config.minibatches} must divide the batch of {config.num_envs} environments x "
                f"{config.num_steps} steps x {task.card.agents} agents."
            )
        return config

    def compile(self, task: Task[Any, Any], config: Config) -> tuple[Any, float]:
        """Return the programs for a task, and the seconds it took to compile them: 0 if they were cached."""
        return get_compiled(programs, task, config)

    def layer_widths(self, task: Task[Any, Any], config: Config) -> list[tuple[int, ...]]:
        """Return the widths of the actor's layers and of its memory."""
        widths: list[tuple[int, ...]] = [(flatten_for_ppo(task).features, *config.hidden)]
        return [*widths, (config.memory, config.memory)] if config.recurrent in UNITS else widths

    def untrained_policy(self, task: Task[Any, Any], config: Config) -> Any:
        """Return a policy with initial weights."""
        flat = flatten_for_ppo(task)
        actor = variant(config).networks(flat, config, 0).actor
        return variant(config).policy(actor, Moments.initial(flat.features), flat, config)
