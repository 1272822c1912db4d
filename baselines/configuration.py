"""Hyperparameters as data: a file's defaults, what a task changes, what the caller changes."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import yaml

from rlbench_suite.card import TaskCard, unknown

BUDGETS = ("smoke", "quick", "full")
FOLDER = Path(__file__).parent / "hyperparameters"

Config = TypeVar("Config")


def configure(kind: type[Config], path: Path, card: TaskCard, budget: str, overrides: dict[str, Any]) -> Config:
    """The file's defaults, then its family's, the task's own, the caller's; a mapping gives one value a budget.

    Args:
        kind: the dataclass of the hyperparameters.
        path: a YAML file with ``default``, families and task ids.
        card: the card of the task.
        budget: ``smoke``, ``quick`` or ``full``.
        overrides: the caller's own, by name.

    Raises:
        ValueError: no such budget or hyperparameter; the message names the nearest valid one.
    """
    if budget not in BUDGETS:
        raise ValueError(unknown("budget", budget, BUDGETS))
    table = yaml.safe_load(path.read_text())
    chosen = table["default"] | table.get(card.family, {}) | table.get(card.id, {}) | overrides
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name, value in chosen.items():
        if name not in known:
            raise ValueError(unknown("hyperparameter", name, known))
        of_budget = value[budget] if isinstance(value, dict) else value
        chosen[name] = tuple(of_budget) if isinstance(of_budget, list) else of_budget
    return kind(**chosen)
