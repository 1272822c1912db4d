"""The agent ``ppo``: hyperparameters, training, and saved policies.

The algorithm is ``ppo.py``. This file chooses how to run it: with or without a memory (``recurrent_ppo.py``), in one
compiled program or beside a simulator on the host (``ppo_on_host.py``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np

from rlbench_suite.agent import Progress
from rlbench_suite.episode import seed_key
from rlbench_suite.process import refuse_after_fork
from rlbench_suite.task import Task

from . import checkpoint, ppo, recurrent_ppo
from .configuration import FOLDER, configure
from .networks import Moments
from .ppo import Config, PPOPolicy
from .ppo_on_host import HostPrograms
from .rows import Rows, rows_of
from .training import begun, compiled, in_chunks

HYPERPARAMETERS = FOLDER / "ppo.yaml"


class Variant(NamedTuple):
    """What differs with and without a memory."""

    networks: Callable[[Rows, Config, int], Any]
    start: Callable[..., Any]
    train_chunk: Callable[..., Any]
    base: Callable[[Any], ppo.Training]
    """What of a run's state is PPO's own."""
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
    return RECURRENT if config.recurrent == "gru" else FEEDFORWARD


def rows_for(task: Task[Any, Any]) -> Rows:
    """The task as PPO sees it: pictures apart, but for simulators of the host."""
    return rows_of(task, "ppo", pictures=not task.card.host)


class Programs:
    """``start`` and ``train_chunk`` of a task and configuration, compiled once for all seeds."""

    def __init__(self, task: Task[Any, Any], config: Config) -> None:
        self.rows = rows = rows_for(task)
        self.config = config
        since = time.perf_counter()
        kind = variant(config)
        self._start = jax.jit(partial(kind.start, rows, config))
        training = self.start(kind.networks(rows, config, 0), seed_key(0))
        self.chunk = jax.jit(partial(kind.train_chunk, rows, config)).lower(training).compile()
        self.seconds = time.perf_counter() - since

    def start(self, networks: Any, seed: np.ndarray) -> Any:
        """The beginning of a run, environments included."""
        return self._start(networks, seed, begun(self.rows.task, seed, self.config.num_envs))


@cache
def programs(task: Any, config: Config) -> Any:
    """The programs of a task and configuration; simulators of the host have their own."""
    return HostPrograms(task, config) if task.card.host else Programs(task, config)


class PPO:
    """The agent ``ppo``.

    Args:
        overrides: hyperparameters that replace those of the file, by name.
    """

    name = "ppo"
    learns = True

    def __init__(self, **overrides: Any) -> None:
        self.overrides = overrides

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` with the reason if PPO cannot play the task."""
        rows_for(task)

    def config(self, task: Task[Any, Any], budget: str) -> Config:
        """The hyperparameters, checked."""
        config = configure(Config, HYPERPARAMETERS, task.card, budget, self.overrides)
        if config.recurrent is None:
            config = replace(config, recurrent="gru" if task.card.partially_observed else "none")
        if config.stagger and task.card.host:
            raise ValueError(f"{task.card.id} runs on the host, which keeps its own time: stagger must be False.")
        if config.recurrent == "gru" and config.num_envs * task.card.agents % config.minibatches:
            raise ValueError(
                f"{config.minibatches} minibatches do not divide the sequences of {config.num_envs} environments x "
                f"{task.card.agents} agents, which a memory keeps whole."
            )
        if config.batch * task.card.agents % config.minibatches:
            raise ValueError(
                f"{config.minibatches} minibatches do not divide a batch of {config.num_envs} environments x "
                f"{config.num_steps} steps x {task.card.agents} agents."
            )
        return config

    def hyperparameters(self, task: Task[Any, Any], budget: str) -> dict[str, Any]:
        """What ``train`` will use, as plain data.

        Raises:
            ValueError: no such budget or hyperparameter, or one out of range.
        """
        return asdict(self.config(task, budget))

    def train(self, task: Task[Any, Any], *, seed: int, budget: str) -> Iterator[Progress | PPOPolicy]:
        """Train on the train split. Yields :class:`Progress` after each chunk and, last, the policy.

        The same seed on the same machine gives the same bits.

        Raises:
            CannotPlay: the task's spaces are not for PPO.
            ValueError: no such budget or hyperparameter.
        """
        refuse_after_fork()
        self.check(task)
        config = self.config(task, budget)
        kind = variant(config)
        program, compile_seconds = compiled(programs, task, config)
        training = program.start(kind.networks(program.rows, config, seed), seed_key(seed))
        steps = config.chunk * config.batch
        training = yield from in_chunks(program.chunk, training, config.chunks, steps, compile_seconds)
        trained = kind.base(training)
        moments = trained.moments.of_first(program.rows.features)  # a policy sees nothing privileged
        yield kind.policy(trained.networks.actor, moments, program.rows, config)

    def save(self, policy: PPOPolicy, path: str) -> None:
        """The policy as safetensors: actor, normalisation, and in the header what they belong to."""
        checkpoint.write(path, (policy.actor, policy.moments), self.name, policy.rows.task.card.id, policy.config)

    def load(self, path: str, task: Task[Any, Any], *, budget: str = "smoke") -> PPOPolicy:
        """A saved policy; ``budget`` chooses the hyperparameters of a file that names none.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is not a policy of PPO for this task.
        """
        config = checkpoint.read_config(path, self.name, task.card.id, self.config(task, budget))
        rows = rows_for(task)
        checkpoint.refuse_wider(path, (rows.features, *config.hidden))
        if config.recurrent == "gru":
            checkpoint.refuse_wider(path, (config.memory, config.memory))
        like = (
            variant(config).networks(rows, config, 0).actor,
            Moments(*(np.zeros(rows.features, np.float32),) * 2, np.float32(0)),
        )
        actor, moments = checkpoint.read(path, like)
        return variant(config).policy(actor, moments, rows, config)
