"""The contract of an agent: something that can be trained on a task and gives a policy.

Agents are reached by name through the registry. ``train`` is a generator so that the runner can show progress,
watch for hangs and stop it between updates, without callbacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from rlbench_suite.policy import Policy
from rlbench_suite.task import Task


class CannotPlay(ValueError):
    """The agent cannot play the task; the message says why. Known before anything runs."""


class Progress(NamedTuple):
    """State of a training run: one row of a learning curve."""

    steps: int
    """Environment steps so far."""
    total_steps: int
    seconds: float
    """Training time so far, compilation excluded."""
    compile_seconds: float
    episode_return: float
    """Mean undiscounted scalar return of the training episodes that ended since the last report; NaN if none."""


class HostPolicy(Protocol):
    """A policy that runs on the host, on NumPy batches (torch, language models)."""

    def act(self, observations: Any, action_masks: np.ndarray | None) -> np.ndarray:
        """Actions for a batch of observations, shape ``(n, ...)``."""
        ...


class Agent(Protocol):
    """A named way to get a policy for a task.

    An agent may have two things more. ``load(path, task, *, budget)`` reads what ``save`` wrote, so that saved policies
    can be judged; ``budget`` chooses the hyperparameters where the file names none. ``step_unit`` is ``"gradient"``
    where training steps are not steps of the environment but gradient steps on a dataset.
    """

    name: str
    #: Whether a result depends on the training seed; players that learn nothing are run once a seed all the same.
    learns: bool

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` with the reason if the agent cannot play the task."""
        ...

    def hyperparameters(self, task: Task[Any, Any], budget: str) -> dict[str, Any]:
        """What ``train`` will use: plain data, recorded in the manifest. ``budget``: smoke, quick or full."""
        ...

    def train(self, task: Task[Any, Any], *, seed: int, budget: str) -> Iterator[Progress | Policy | HostPolicy]:
        """Train on the train split. Yields ``Progress`` after each chunk of work and, last, the policy."""
        ...

    def save(self, policy: Any, path: str) -> None:
        """Write the policy's weights to ``path`` as safetensors (nothing for players without weights)."""
        ...
