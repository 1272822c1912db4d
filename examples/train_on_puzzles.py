"""Reinforcement learning from verifiable rewards on a puzzle, with a stub in place of the language model.

The loop is what a trainer such as TRL's ``GRPOTrainer(environment_factory=...)`` runs: for each row of the dataset a
group of rollouts, each with an environment of its own that scores the answer, and advantages relative to the group. The
"model" is a table that prefers one of three ways to answer and learns which of them is rewarded.

    python examples/train_on_puzzles.py [ID]
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable
from statistics import fmean, pstdev

from rlbench_suite.dice import Dice
from rlbench_suite.puzzle_dataset import PuzzleDataset, environment_factory

GROUP, ROWS, RATE = 8, 90, 0.1


def main(task_id: str = "Sudoku4-v0") -> dict[str, float]:
    """Train for some rows; gives what the model has learned to prefer."""
    environment = environment_factory(task_id, difficulty="easy")
    data = PuzzleDataset(task_id, size=ROWS, difficulty="easy")
    puzzle, luck = data.puzzle, random.Random(0)
    ways: dict[str, Callable[[object, int], str]] = {
        "nonsense": lambda instance, number: "I do not know",
        "guess": lambda instance, number: puzzle.guess(instance, Dice(0, number)),
        "think": lambda instance, number: puzzle.heuristic(instance),
    }
    preferences = dict.fromkeys(ways, 0.0)
    earned: list[float] = []
    for number, row in enumerate(data):
        weights = [math.exp(value) for value in preferences.values()]
        chosen = luck.choices(list(ways), weights, k=GROUP)
        rewards = []
        for member, way in enumerate(chosen):
            env = environment()
            env.reset(**row)
            env.submit_answer(ways[way](puzzle.from_plain(row["metadata"]["instance"]), number * GROUP + member))
            rewards.append(env.get_reward())
        spread = pstdev(rewards) or 1.0
        for way, reward in zip(chosen, rewards, strict=True):
            preferences[way] += RATE * (reward - fmean(rewards)) / spread
        earned.append(fmean(rewards))
        if number % 30 == 29:
            print(f"rows {number - 28} to {number + 1}: mean reward {fmean(earned[-30:]):.2f}")
    return preferences


if __name__ == "__main__":
    main(*sys.argv[1:])
