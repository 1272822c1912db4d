"""Rows of datasets of puzzles, and the one call that scores a reply to any of them."""

from __future__ import annotations

from typing import Any

from rlbench_suite.card import load, unknown
from rlbench_suite.puzzle import Puzzle
from rlbench_suite.registry import card as find_card
from rlbench_suite.registry import cards


def puzzle_of(task_id: str, difficulty: str | float | None = None) -> Puzzle[Any]:
    """Return the one-shot form of a task.

    Args:
        task_id: id of a card; ``rlsuite/`` may be left out.
        difficulty: a tier's name, or the number that defines it.

    Raises:
        ValueError: no such task or difficulty, or the task has no one-shot form.
    """
    card = find_card(task_id)
    if not card.puzzle:
        have = [other.id for other in cards().values() if other.puzzle]
        raise ValueError(f"{card.id} has no one-shot form. " + unknown("puzzle", task_id, have))
    made: Puzzle[Any] = load(card.puzzle)(card.check_difficulty(difficulty))
    return made
