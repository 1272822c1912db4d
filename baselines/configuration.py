"""Hyperparameters as data: a file's defaults, what a task changes, what the caller changes.

How long an agent trains is data of the task and the budget, not of the agent. One table
(``hyperparameters/steps.yaml``) gives every agent its ``total_steps``. An agent's own file or the caller may say
otherwise: the manifest of a run records it, and the report warns where agents trained unequally long on a task.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml

from rlbench_suite.card import TaskCard, unknown

BUDGETS = ("smoke", "quick", "full")
FOLDER = Path(__file__).parent / "hyperparameters"
STEPS = FOLDER / "steps.yaml"

Unit = Literal["environment", "gradient"]
"""Unit of the training steps; gradient steps are those of agents that learn from a dataset."""

Config = TypeVar("Config")


def training_steps(card: TaskCard, budget: str, unit: Unit = "environment") -> int:
    """Return the training steps of a task at a budget, the same for every agent.

    Args:
        card: the card of the task.
        budget: ``smoke``, ``quick`` or ``full``.
        unit: what is counted.

    Raises:
        ValueError: there is no such budget.
    """
    if budget not in BUDGETS:
        raise ValueError(unknown("budget", budget, BUDGETS))
    table = yaml.safe_load(STEPS.read_text())[unit]
    steps: int = (table["default"] | table.get(card.family, {}) | table.get(card.id, {}))[budget]
    return steps


def configure(
    kind: type[Config], path: Path, card: TaskCard, budget: str, overrides: dict[str, Any], unit: Unit = "environment"
) -> Config:
    """The file's defaults, then its family's, the task's own, the caller's; a mapping gives one value a budget.

    Args:
        kind: the dataclass of the hyperparameters.
        path: a YAML file with ``default``, families and task ids.
        card: the card of the task.
        budget: ``smoke``, ``quick`` or ``full``.
        overrides: the caller's own, by name.
        unit: what ``total_steps`` counts, for its default (:func:`training_steps`).

    Raises:
        ValueError: no such budget or hyperparameter; the message names the nearest valid one.
    """
    table = yaml.safe_load(path.read_text())
    steps = {"total_steps": training_steps(card, budget, unit)}
    chosen = steps | table["default"] | table.get(card.family, {}) | table.get(card.id, {}) | overrides
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name, value in chosen.items():
        if name not in known:
            raise ValueError(unknown("hyperparameter", name, known))
        of_budget = value[budget] if isinstance(value, dict) else value
        chosen[name] = tuple(of_budget) if isinstance(of_budget, list) else of_budget
    return kind(**chosen)
