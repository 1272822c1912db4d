"""Score trivial one-shot answers to a puzzle, and those of the exact solver.

A model's score is meaningful if it exceeds the best score of the trivial players. Its skill is
(score - chance) / (1 - chance).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from rlbench_suite.core.task_card import Score
from rlbench_suite.evaluation.statistics.aggregates import mean
from rlbench_suite.evaluation.statistics.wilson import rounded_score, wilson_interval
from rlbench_suite.puzzle.dice import Dice, stream_of
from rlbench_suite.puzzle.puzzle import Puzzle

PLAYERS = {
    "nothing": "the empty answer",
    "guess": "a random answer of the right format",
    "constant": "the best answer to give always",
    "heuristic": "a cheap rule of thumb",
    "solver": "the exact solver",
    "classifier": "the answer that a cheap classifier predicts",
    "kind": "a cheap classifier's share of right predictions of the kind of answer",
}
"""Players and their descriptions.

``benchmarks/audits/shortcuts.py`` measures the last two where a puzzle has few answers or kinds of
answers. A kind is, for instance, whether there is a solution. The scores also have ``difficulty``,
the mean difficulty of the instances.
"""
NO_SKILL = ("difficulty", "kind")
"""Entries that are no scores of answers, so that they have no skill."""

FREQUENT_SOLUTIONS = 5
"""Number of frequent solutions tried as constants, besides those that the puzzle names."""

MAX_INSTANCES = 200
"""Largest number of training instances on which the best constant is chosen."""


def skill(score: float, chance: float) -> float:
    """Return the score rescaled so that 0 is chance and 1 is every instance solved."""
    return (score - chance) / (1 - chance)


def measure_one_shot(puzzle: Puzzle[Any], count: int) -> dict[str, Score]:
    """Return scores on ``count`` test instances with 95 % intervals, and their mean difficulty.

    Raises:
        ValueError: fewer than two instances.
    """
    if count < 2:
        raise ValueError(f"An interval needs at least 2 instances, got {count}.")
    instances = [puzzle.generate(seed, "test") for seed in range(count)]
    stream = stream_of(puzzle.name, "guess")
    constant = best_constant(puzzle, min(count, MAX_INSTANCES))
    players: dict[str, Callable[[int, Any], str]] = {
        "nothing": lambda seed, instance: "",
        "guess": lambda seed, instance: puzzle.guess(instance, Dice(stream, seed)),
        "constant": lambda seed, instance: constant,
        "heuristic": lambda seed, instance: puzzle.heuristic(instance),
        "solver": lambda seed, instance: puzzle.solve(instance),
    }
    scores = {
        name: wilson_interval(
            [puzzle.verify(each, answer(seed, each)).score for seed, each in enumerate(instances)]
        )
        for name, answer in players.items()
    }
    difficulties = np.array([puzzle.difficulty(instance) for instance in instances])
    spread = mean({puzzle.name: difficulties}, replicates=2_000, method="percentile")
    return scores | {"difficulty": rounded_score(spread.point, spread.low, spread.high, count)}


def best_constant(puzzle: Puzzle[Any], count: int) -> str:
    """Return the constant answer with the best score on training instances; the first of equals."""
    instances = [puzzle.generate(seed, "train") for seed in range(count)]
    common = Counter(puzzle.solve(instance) for instance in instances).most_common(
        FREQUENT_SOLUTIONS
    )
    candidates = [*puzzle.constants(), *(answer for answer, _ in common)]
    return max(
        candidates, key=lambda answer: sum(puzzle.verify(each, answer).score for each in instances)
    )
