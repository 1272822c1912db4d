"""Measure how well PPO plays easy puzzles after a quick budget, and its processor time.

    python benchmarks/audits/puzzles_ppo.py [--ids A-v0,B-v0] [--difficulty easy] [--seed 0]

Training runs in one process, compilation included. Success is measured on the 200 held-out episodes
of a full budget, with Wilson's 95 % interval.
"""

import argparse
import time
from typing import Any

from rlbench_suite.core import registry
from rlbench_suite.core.task_card import Score
from rlbench_suite.evaluation.protocol import evaluate, evaluation_seeds
from rlbench_suite.evaluation.statistics.wilson import wilson_interval


def main() -> None:
    """Print a line for each puzzle."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ids", help="names of puzzles, separated by commas; all by default")
    parser.add_argument("--difficulty", default="easy")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    names = (
        options.ids.split(",")
        if options.ids
        else [c.name for c in registry.cards().values() if c.puzzle]
    )
    agent = registry.agent("ppo")
    print(
        f"{'puzzle':26s}{'success':>9s}{'interval':>18s}{'random':>9s}"
        f"{'minutes of processor time':>28s}"
    )
    for name in names:
        task = registry.card(name).build(difficulty=options.difficulty)
        seeds = evaluation_seeds(task.card, options.seed, "full")
        chance = success(task, policy_of("random", task), seeds)
        start = time.process_time()
        policy: Any = list(agent.train(task, seed=options.seed, budget="quick"))[-1]
        minutes = (time.process_time() - start) / 60
        s = success(task, policy, seeds)
        print(
            (
                f"{name:26s}{s.mean:9.3f}   [{s.low:.3f}, "
                f"{s.high:.3f}]{chance.mean:9.3f}{minutes:28.1f}"
            ),
            flush=True,
        )


def success(task: Any, policy: Any, seeds: range) -> Score:
    """Return the fraction of episodes that end in success."""
    return wilson_interval(evaluate(task, policy, seeds).info["success"].astype(float).tolist())


def policy_of(name: str, task: Any) -> Any:
    """Return the policy of an agent that does not learn."""
    return list(registry.agent(name).train(task, seed=0, budget="quick"))[-1]


if __name__ == "__main__":
    main()
