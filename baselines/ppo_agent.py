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
from .flat_task import FlatTask, flatten_task
from .networks import Moments
from .ppo import Config, PPOPolicy
from .ppo_on_host import HostPrograms
from .training import begin_episodes, get_compiled, train_in_chunks

HYPERPARAMETERS = FOLDER / "ppo.yaml"


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
    return RECURRENT if config.recurrent == "gru" else FEEDFORWARD


def flatten_for_ppo(task: Task[Any, Any]) -> FlatTask:
    """Return the task as PPO sees it: images stay apart, except for simulators on the host."""
    return flatten_task(task, "ppo", images=not task.card.host)


class Programs:
    """Compiled ``start`` and ``train_chunk`` of a task and configuration; all seeds share them."""

    def __init__(self, task: Task[Any, Any], config: Config) -> None:
        self.flat = flat = flatten_for_ppo(task)
        self.config = config
        since = time.perf_counter()
        kind = variant(config)
        self._start = jax.jit(partial(kind.start, flat, config))
        training = self.start(kind.networks(flat, config, 0), seed_key(0))
        self.chunk = jax.jit(partial(kind.train_chunk, flat, config)).lower(training).compile()
        self.seconds = time.perf_counter() - since

    def start(self, networks: Any, seed: np.ndarray) -> Any:
        """Return the state at the beginning of a run, including its environments."""
        return self._start(networks, seed, begin_episodes(self.flat.task, seed, self.config.num_envs))


@cache
def programs(task: Any, config: Config) -> Any:
    """Compile the programs of a task and configuration; simulators on the host have their own kind."""
    return HostPrograms(task, config) if task.card.host else Programs(task, config)


class PPO:
    """The agent ``ppo``.

    Args:
        overrides: hyperparameters by name; they replace those of the file.
    """

    name = "ppo"
    learns = True

    def __init__(self, **overrides: Any) -> None:
        self.overrides = overrides

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if PPO cannot play the task; the message says why."""
        flatten_for_ppo(task)

    def config(self, task: Task[Any, Any], budget: str) -> Config:
        """Return the checked hyperparameters."""
        config = configure(Config, HYPERPARAMETERS, task.card, budget, self.overrides)
        if config.recurrent is None:
            config = replace(config, recurrent="gru" if task.card.partially_observed else "none")
        if config.stagger and task.card.host:
            raise ValueError(f"{task.card.id} runs on the host and keeps its own time, so stagger must be False.")
        if config.recurrent == "gru" and task.card.host:
            raise ValueError(f"{task.card.id} runs on the host, where PPO has no memory, so recurrent must be 'none'.")
        if config.recurrent == "gru" and config.num_envs * task.card.agents % config.minibatches:
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

    def hyperparameters(self, task: Task[Any, Any], budget: str) -> dict[str, Any]:
        """Return the hyperparameters that ``train`` will use, as plain data.

        Raises:
            ValueError: the budget or a hyperparameter does not exist, or a value is out of range.
        """
        return asdict(self.config(task, budget))

    def train(self, task: Task[Any, Any], *, seed: int, budget: str) -> Iterator[Progress | PPOPolicy]:
        """Train on the train split. Yields :class:`Progress` after each chunk and, last, the policy.

        The same seed on the same machine gives the same bits.

        Raises:
            CannotPlay: PPO cannot play the task.
            ValueError: the budget or a hyperparameter does not exist, or a value is out of range.
        """
        refuse_after_fork()
        self.check(task)
        config = self.config(task, budget)
        kind = variant(config)
        program, compile_seconds = get_compiled(programs, task, config)
        training = program.start(kind.networks(program.flat, config, seed), seed_key(seed))
        steps = config.chunk * config.batch
        training = yield from train_in_chunks(program.chunk, training, config.chunks, steps, compile_seconds)
        trained = kind.base(training)
        moments = trained.moments.first(program.flat.features)  # a policy sees no privileged features
        yield kind.policy(trained.networks.actor, moments, program.flat, config)

    def save(self, policy: PPOPolicy, path: str) -> None:
        """Write the policy as safetensors: the actor and its normalisation; the header names agent, task and config."""
        checkpoint.write(path, (policy.actor, policy.moments), self.name, policy.flat.task.card.id, policy.config)

    def load(self, path: str, task: Task[Any, Any], *, budget: str = "smoke") -> PPOPolicy:
        """Read a saved policy. ``budget`` chooses the hyperparameters if the file names none.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is not a policy of PPO for this task.
        """
        config = checkpoint.read_config(path, self.name, task.card.id, self.config(task, budget))
        flat = flatten_for_ppo(task)
        checkpoint.refuse_wider(path, (flat.features, *config.hidden))
        if config.recurrent == "gru":
            checkpoint.refuse_wider(path, (config.memory, config.memory))
        like = (
            variant(config).networks(flat, config, 0).actor,
            Moments(*(np.zeros(flat.features, np.float32),) * 2, np.float32(0)),
        )
        actor, moments = checkpoint.read(path, like)
        return variant(config).policy(actor, moments, flat, config)
