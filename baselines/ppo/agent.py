"""The agent ``ppo``: it checks its hyperparameters and chooses how to run.

The algorithm is ``ppo.py``, or ``recurrent.py`` for a policy with a memory. It runs in one compiled
program, or beside a simulator on the host (``on_host.py``).
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache, partial
from typing import Any

import jax

from rlbench_suite.core.episode import seed_key
from rlbench_suite.core.task import Task

from ..flat_task import FlatTask, flatten_task
from ..learning_agent import LearningAgent
from ..networks import Moments
from ..training import begin_episodes, get_compiled
from . import ppo, recurrent
from .memory_units import UNITS
from .on_host import HostPrograms
from .ppo import Config


def algorithm(config: Config) -> Any:
    """Return the module with the functions of the algorithm: with a memory or without one."""
    return recurrent if config.recurrent in UNITS else ppo


def flatten_for_ppo(task: Task[Any, Any]) -> FlatTask:
    """Return the task as PPO sees it: images stay apart, except for simulators on the host."""
    return flatten_task(task, "ppo", images=not task.card.host)


class Programs:
    """Compiled ``start`` and ``train_chunk`` of a task and configuration; all seeds share them."""

    def __init__(self, flat: FlatTask, config: Config) -> None:
        start_time = time.perf_counter()
        self.flat = flat
        self.config = config
        self.algorithm = algorithm(config)
        self.chunk_steps = config.chunk * config.batch
        self._start = jax.jit(partial(self.algorithm.start, self.flat, config))
        train_chunk = jax.jit(partial(self.algorithm.train_chunk, self.flat, config))
        self.chunk = train_chunk.lower(self.start(0)).compile()
        self.seconds = time.perf_counter() - start_time

    def start(self, seed: int) -> Any:
        """Return the state at the beginning of a run, including its environments."""
        networks = self.algorithm.Networks.initial(self.flat, self.config, seed)
        key = seed_key(seed)
        return self._start(networks, key, begin_episodes(self.flat.task, key, self.config.num_envs))

    def policy(self, training: Any) -> Any:
        """Return the trained policy, which sees no privileged features."""
        return self.algorithm.trained_policy(self.flat, self.config, training)


@cache
def programs(task: Any, config: Config) -> Any:
    """Compile the programs of a task and configuration.

    Simulators on the host have their own kind of programs.
    """
    return HostPrograms(task, config) if task.card.host else Programs(flatten_for_ppo(task), config)


class PPO(LearningAgent):
    """The agent ``ppo``."""

    name = "ppo"
    config_class = Config

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if PPO cannot play the task; the message says why."""
        self.flatten(task)

    def flatten(self, task: Task[Any, Any]) -> FlatTask:
        """Return the task as the networks see it.

        Raises:
            CannotPlay: a space of the task does not fit.
        """
        return flatten_for_ppo(task)

    def config(self, task: Task[Any, Any], budget: str) -> Config:
        """Return the checked hyperparameters."""
        config: Config = super().config(task, budget)
        if config.recurrent is None:
            config = replace(
                config,
                recurrent="gru" if task.card.partially_observed and not task.card.host else "none",
            )
        if config.stagger and task.card.host:
            raise ValueError(
                f"{task.card.id} runs on the host and keeps its own time, so stagger must be False."
            )
        if config.recurrent != "none" and task.card.host:
            raise ValueError(
                f"{task.card.id} runs on the host, where PPO has no memory, so recurrent must be "
                "'none'."
            )
        if config.recurrent != "none" and config.num_envs * task.card.agents % config.minibatches:
            raise ValueError(
                f"minibatches={config.minibatches} must divide the number of sequences, "
                f"{config.num_envs} environments x {task.card.agents} agents, because a memory "
                "learns from whole sequences."
            )
        if config.batch * task.card.agents % config.minibatches:
            raise ValueError(
                f"minibatches={config.minibatches} must divide the batch of {config.num_envs} "
                f"environments x {config.num_steps} steps x {task.card.agents} agents."
            )
        return config

    def compile(self, task: Task[Any, Any], config: Config) -> tuple[Any, float]:
        """Return the programs for a task, and the seconds it took to compile them.

        The seconds are 0 if the programs were cached.
        """
        return get_compiled(programs, task, config)

    def layer_widths(self, task: Task[Any, Any], config: Config) -> list[tuple[int, ...]]:
        """Return the widths of the actor's layers and of its memory."""
        widths: list[tuple[int, ...]] = [(self.flatten(task).features, *config.hidden)]
        return [*widths, (config.memory, config.memory)] if config.recurrent in UNITS else widths

    def untrained_policy(self, task: Task[Any, Any], config: Config) -> Any:
        """Return a policy with initial weights."""
        flat = self.flatten(task)
        actor = algorithm(config).Networks.initial(flat, config, 0).actor
        return algorithm(config).Policy(actor, Moments.initial(flat.features), flat, config)
