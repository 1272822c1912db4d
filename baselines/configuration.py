"""Hyperparameters, read from YAML files and changed by the caller.

The task and the budget, not the agent, decide how long an agent trains. One table
(``hyperparameters/steps.yaml``) gives every agent its ``total_steps``. An agent's own file or the
caller may override it. The manifest of a run records the steps, and the report warns if agents
trained unequally long on a task.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml

from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.foundation.unknown_names import unknown

BUDGETS = ("smoke", "quick", "full")
FOLDER = Path(__file__).parent / "hyperparameters"
STEPS = FOLDER / "steps.yaml"

Unit = Literal["environment", "gradient"]
"""Unit of the training steps; agents that learn from a dataset count gradient steps."""

Config = TypeVar("Config")


class InChunks:
    """Hyperparameters of a training in chunks of updates, with a report after each chunk."""

    total_steps: int
    reports: int

    @property
    @abstractmethod
    def batch(self) -> int:
        """Environment steps between updates."""

    @property
    def chunk(self) -> int:
        """Updates in one chunk."""
        return -(-self.total_steps // (self.batch * self.reports))

    @property
    def chunks(self) -> int:
        """Chunks in a run."""
        return -(-self.total_steps // (self.batch * self.chunk))


def training_steps(card: TaskCard, budget: str, unit: Unit = "environment") -> int:
    """Return the training steps of a task at a budget, the same for every agent.

    Args:
        card: the card of the task.
        budget: ``smoke``, ``quick`` or ``full``.
        unit: unit of the steps.

    Raises:
        ValueError: the budget does not exist.
    """
    if budget not in BUDGETS:
        raise ValueError(unknown("budget", budget, BUDGETS))
    table = yaml.safe_load(STEPS.read_text())[unit]
    steps: int = (
        table["default"] | table.get(card.family, {}) | table.get(card.registered_id, {})
    )[budget]
    return steps


def configure(
    kind: type[Config],
    path: Path,
    card: TaskCard,
    budget: str,
    overrides: dict[str, Any],
    unit: Unit | None = "environment",
) -> Config:
    """Return the hyperparameters of an agent on a task.

    Later values replace earlier ones: the file's defaults, its values for the family, for the task,
    the caller's. A mapping holds one value for each budget.

    Args:
        kind: the dataclass of the hyperparameters.
        path: YAML file with the keys ``default``, families and task ids.
        card: the card of the task.
        budget: ``smoke``, ``quick`` or ``full``.
        overrides: the caller's values by name.
        unit: unit of the default of ``total_steps`` (:func:`training_steps`); None for an agent
            that trains nothing.

    Raises:
        ValueError: the budget or a hyperparameter does not exist; the message names the nearest
            valid one.
    """
    table = yaml.safe_load(path.read_text())
    if budget not in BUDGETS:
        raise ValueError(unknown("budget", budget, BUDGETS))
    steps = {"total_steps": training_steps(card, budget, unit)} if unit else {}
    values = (
        steps
        | table["default"]
        | table.get(card.family, {})
        | table.get(card.registered_id, {})
        | overrides
    )
    for name, value in values.items():
        values[name] = value[budget] if isinstance(value, dict) else value
    return _construct(kind, values)


def restore(kind: type[Config], hyperparameters: Mapping[str, Any]) -> Config:
    """Return hyperparameters that were resolved before, as JSON holds them. No file is read.

    Args:
        kind: the dataclass of the hyperparameters.
        hyperparameters: a value for each of its fields.

    Raises:
        ValueError: one is missing, does not exist, or is out of range.
    """
    missing = [field.name for field in fields(kind) if field.name not in hyperparameters]  # type: ignore[arg-type]
    if missing:
        raise ValueError(f"Hyperparameters without a value: {', '.join(missing)}.")
    return _construct(kind, hyperparameters)


def _construct(kind: type[Config], values: Mapping[str, Any]) -> Config:
    """Return an instance of the dataclass. YAML and JSON have lists where it has tuples."""
    field_names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name in values:
        if name not in field_names:
            raise ValueError(unknown("hyperparameter", name, field_names))
    return kind(
        **{
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
    )
