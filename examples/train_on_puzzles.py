"""Train on a puzzle with verifiable rewards, with a stub in place of the language model.

The loop is that of a trainer such as TRL's ``GRPOTrainer(environment_factory=...)``. For each entry
of the dataset it runs a group of rollouts. Each rollout has its own environment, which scores the
answer. Advantages are relative to the group. The "model" is a table of preferences for three ways
to answer, and learns which of them is rewarded.

    python examples/train_on_puzzles.py [ID]
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable
from statistics import fmean, pstdev

from rlbench_suite.language import PuzzleDataset, environment_factory
from rlbench_suite.language.rows import instance_of
from rlbench_suite.puzzle.dice import Dice

GROUP_SIZE = 8
ENTRIES = 90
LEARNING_RATE = 0.1


def main(task_id: str = "Sudoku4-v0") -> dict[str, float]:
    """Train on the dataset and return the learned preferences."""
    environment = environment_factory(task_id, difficulty="easy")
    data = PuzzleDataset(task_id, size=ENTRIES, difficulty="easy")
    puzzle, luck = data.puzzle, random.Random(0)
    ways: dict[str, Callable[[object, int], str]] = {
        "nonsense": lambda instance, number: "I do not know",
        "guess": lambda instance, number: puzzle.guess(instance, Dice(0, number)),
        "think": lambda instance, number: puzzle.heuristic(instance),
    }
    preferences = dict.fromkeys(ways, 0.0)
    earned: list[float] = []
    for number, entry in enumerate(data):
        weights = [math.exp(value) for value in preferences.values()]
        played_ways = luck.choices(list(ways), weights, k=GROUP_SIZE)
        rewards = []
        for member, name in enumerate(played_ways):
            env = environment()
            env.reset(**entry)
            env.submit_answer(ways[name](instance_of(entry)[1], number * GROUP_SIZE + member))
            rewards.append(env.get_reward())
        spread = pstdev(rewards) or 1.0
        for name, reward in zip(played_ways, rewards, strict=True):
            preferences[name] += LEARNING_RATE * (reward - fmean(rewards)) / spread
        earned.append(fmean(rewards))
        if number % 30 == 29:
            print(f"entries {number - 28} to {number + 1}: mean reward {fmean(earned[-30:]):.2f}")
    return preferences


if __name__ == "__main__":
    main(*sys.argv[1:])
