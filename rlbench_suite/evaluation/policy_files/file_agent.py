"""Agents that play a policy file and cannot train."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rlbench_suite.core.task import Task
from rlbench_suite.evaluation.flat_rows import FlatRows


class FileAgent:
    """Base of agents that read policy files.

    Attributes:
        name: name of the agent.
        why_untrained: sentence that says how to play a file, for those who try to train one.
    """

    name: str
    why_untrained: ClassVar[str]
    learns = False

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if a space of the task has no place in a file's signature."""
        FlatRows(task)

    def hyperparameters(self, task: Task[Any, Any], budget: str) -> dict[str, Any]:
        """Return no hyperparameters: a file has none."""
        return {}

    def train(
        self,
        task: Task[Any, Any],
        *,
        seed: int,
        budget: str,
        hyperparameters: Mapping[str, Any] | None = None,
    ) -> Iterator[Any]:
        """Refuse to train.

        Raises:
            ValueError: always.
        """
        raise ValueError(self.why_untrained)

    def save(self, policy: Any, path: str) -> None:
        """Write nothing: the run has a copy of the file."""
