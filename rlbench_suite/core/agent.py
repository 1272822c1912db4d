"""The contract of an agent, which trains on a task and gives a policy.

The registry finds agents by name. ``train`` is a generator, so that the runner can show progress,
notice hangs and stop it between updates, without callbacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from rlbench_suite.core.policy import Policy
from rlbench_suite.core.task import Task


class CannotPlay(ValueError):
    """An error, raised before anything runs, that says why the agent cannot play the task."""


class Progress(NamedTuple):
    """State of a training run: one point of a learning curve."""

    steps: int
    """Environment steps so far."""
    total_steps: int
    seconds: float
    """Training time so far, compilation excluded."""
    compile_seconds: float
    episode_return: float
    """Mean undiscounted scalar return of the training episodes since the last report.

    It is that of the episodes that ended; NaN if none did.
    """


class HostPolicy(Protocol):
    """A policy that runs on the host, on NumPy batches (torch, ONNX).

    A policy with a memory also has ``reset()``, which is called before a batch of episodes begins.
    """

    def act(self, observations: Any, action_masks: np.ndarray | None) -> np.ndarray:
        """Return the actions for a batch of observations, shape ``(n, ...)``."""
        ...


class Agent(Protocol):
    """A named way to get a policy for a task.

    Two more attributes are optional. ``load(path, task, *, budget)`` reads what ``save`` wrote, so
    that saved policies can be judged; ``budget`` chooses the hyperparameters where the file has
    none. ``step_unit`` is ``"gradient"`` where training steps are gradient steps on a dataset, not
    steps of the environment.
    """

    name: str
    #: Whether a result depends on the training seed. Players that learn nothing are still run once
    #: for each seed.
    learns: bool

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` with the reason if the agent cannot play the task."""
        ...

    def hyperparameters(self, task: Task[Any, Any], budget: str) -> dict[str, Any]:
        """Return all hyperparameters as plain data, for the manifest.

        ``budget`` is smoke, quick or full.
        """
        ...

    def train(
        self,
        task: Task[Any, Any],
        *,
        seed: int,
        budget: str,
        hyperparameters: Mapping[str, Any] | None = None,
    ) -> Iterator[Progress | Policy | HostPolicy]:
        """Train on the train split.

        Yield ``Progress`` after each chunk of work and, last, the policy.

        ``hyperparameters`` are all that the agent uses: what :meth:`hyperparameters` returned when
        the run was planned, read back from JSON, so that tuples are lists. None means what it
        returns now.
        """
        ...

    def save(self, policy: Any, path: str) -> None:
        """Write the policy's weights to ``path`` as safetensors.

        Players without weights write nothing.
        """
        ...
