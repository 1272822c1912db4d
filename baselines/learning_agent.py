"""Base of the agents that learn: hyperparameters, the training loop, and saved policies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, ClassVar, Protocol

import equinox as eqx

from rlbench_suite.core.agent import Progress
from rlbench_suite.core.task import Task
from rlbench_suite.numerics.process import refuse_after_fork

from . import checkpoint
from .configuration import FOLDER, Unit, configure, restore
from .training import Returns, train_in_chunks


class Programs(Protocol):
    """Compiled programs of an algorithm on a task; all seeds share them."""

    chunk_steps: int
    """Training steps in one chunk."""

    def start(self, seed: int) -> Any:
        """Return the training state at the beginning of a run."""
        ...

    def chunk(self, training: Any) -> tuple[Any, Returns]:
        """Train for one chunk."""
        ...

    def policy(self, training: Any) -> Any:
        """Return the trained policy."""
        ...


class LearningAgent(ABC):
    """An agent that learns, with its hyperparameters in ``hyperparameters/NAME.yaml``.

    A policy of it has the fields ``actor`` and ``moments``, which are saved, and ``flat`` and
    ``config``.

    Args:
        overrides: hyperparameters by name; they replace those of the file.
    """

    name: ClassVar[str]
    config_class: ClassVar[type[Any]]
    step_unit: ClassVar[Unit] = "environment"
    learns = True

    def __init__(self, **overrides: Any) -> None:
        self.overrides = overrides

    @abstractmethod
    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if the agent cannot play the task; the message says why."""

    @abstractmethod
    def compile(self, task: Task[Any, Any], config: Any) -> tuple[Programs, float]:
        """Return the programs for a task, and the seconds it took to compile them.

        The seconds are 0 if the programs were cached.
        """

    @abstractmethod
    def layer_widths(self, task: Task[Any, Any], config: Any) -> list[tuple[int, ...]]:
        """Return widths of consecutive layers.

        A file of weights must be large enough to hold those of such layers.
        """

    @abstractmethod
    def untrained_policy(self, task: Task[Any, Any], config: Any) -> Any:
        """Return a policy with initial weights."""

    def config(self, task: Task[Any, Any], budget: str) -> Any:
        """Return the checked hyperparameters."""
        path = FOLDER / f"{self.name}.yaml"
        return configure(self.config_class, path, task.card, budget, self.overrides, self.step_unit)

    def hyperparameters(self, task: Task[Any, Any], budget: str) -> dict[str, Any]:
        """Return the hyperparameters of the file and the overrides, as plain data.

        Raises:
            ValueError: the budget or a hyperparameter does not exist, or a value is out of range.
        """
        return asdict(self.config(task, budget))

    def train(
        self,
        task: Task[Any, Any],
        *,
        seed: int,
        budget: str,
        hyperparameters: Mapping[str, Any] | None = None,
    ) -> Iterator[Progress | Any]:
        """Train on the train split.

        Yields :class:`Progress` after each chunk and, last, the policy.

        The same seed on the same machine gives the same bits. ``hyperparameters`` replace those
        that the file and the overrides give for the budget, which are then not read.

        Raises:
            CannotPlay: the agent cannot play the task.
            ValueError: the budget or a hyperparameter does not exist, a value is out of range, or a
                dataset is damaged.
        """
        refuse_after_fork()
        self.check(task)
        config = (
            self.config(task, budget)
            if hyperparameters is None
            else restore(self.config_class, hyperparameters)
        )
        programs, compile_seconds = self.compile(task, config)
        training = programs.start(seed)
        training = yield from train_in_chunks(
            programs.chunk, training, config.chunks, programs.chunk_steps, compile_seconds
        )
        yield programs.policy(training)

    def save(self, policy: Any, path: str) -> None:
        """Write the policy as safetensors, with its weights and its normalisation.

        The header names agent, task and configuration.
        """
        checkpoint.write(
            path, (policy.actor, policy.moments), self.name, policy.flat.task.card.id, policy.config
        )

    def load(self, path: str, task: Task[Any, Any], *, budget: str = "smoke") -> Any:
        """Read a saved policy. ``budget`` chooses the hyperparameters if the file names none.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is not a policy of this agent for this task.
        """
        config = checkpoint.read_config(path, self.name, task.card.id, self.config(task, budget))
        for widths in self.layer_widths(task, config):
            checkpoint.refuse_wider(path, widths)
        policy = self.untrained_policy(task, config)
        weights = checkpoint.read(path, (policy.actor, policy.moments))
        return eqx.tree_at(lambda policy: (policy.actor, policy.moments), policy, weights)
