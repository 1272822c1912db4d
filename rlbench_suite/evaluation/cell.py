"""Cells: the units of work of a run. No JAX is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple


class Cell(NamedTuple):
    """Unit of work: one agent trained on one task with one seed."""

    agent: str
    task: str
    """Id of the card."""
    seed: int

    def __str__(self) -> str:
        return f"{self.agent} on {self.task}, seed {self.seed}"


class CellSpec(NamedTuple):
    """A cell with all of its settings.

    Whoever runs it reads them here, and not from a file that may have changed.
    """

    agent: str
    task: str
    """Id of the card."""
    seed: int
    budget: str
    """Name of the number of evaluation episodes; see ``protocol.EPISODES``."""
    hyperparameters: Mapping[str, Any]
    """Hyperparameters of the agent, as its ``hyperparameters`` returned them or as JSON holds them.
    """
    on_train: bool = False
    """True if the policy is also evaluated on the train split."""

    @property
    def cell(self) -> Cell:
        """The cell without its settings."""
        return Cell(self.agent, self.task, self.seed)


class FailedCell(NamedTuple):
    """Cell that failed when it was last tried, and why."""

    agent: str
    task: str
    """Id of the card."""
    seed: int
    error: str

    def __str__(self) -> str:
        return str(Cell(self.agent, self.task, self.seed))


class Event(NamedTuple):
    """Event in the life of a cell.

    ``value`` is None for ``started``, a ``Progress`` or ``Episodes``, the ``CellResult`` of a
    ``finished`` cell, and one sentence for ``retried`` and ``failed``.
    """

    kind: Literal["started", "progress", "finished", "retried", "failed"]
    cell: Cell
    value: Any = None
