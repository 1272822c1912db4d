"""Compare the memories of PPO on the tasks of the suite ``memory``.

    python benchmarks/audits/memories.py [--ids KeyValue-v0,NBack-v0] [--budget quick] [--seeds 5]

Scores are normalised: 0 is the better of random play and doing nothing, 1 the reference, which is
optimal. Each has the studentised 95 % interval of the mean over training seeds. ``none`` sees the
present observation only. The ceiling is the best score of a policy without a memory, where it is
known.
"""

from __future__ import annotations

import argparse
import time

from rlbench_suite.baselines.ppo.agent import PPO
from rlbench_suite.core.registry import card, resolve_suite
from rlbench_suite.evaluation.protocol import Outcome, resolve_cell, run_cell
from rlbench_suite.evaluation.statistics.aggregates import mean

MEMORIES = ("none", "gru", "lstm", "mingru", "gtrxl")


def scores(name: str, memory: str, budget: str, seeds: int) -> list[float]:
    """Return the normalised score of each seed."""
    task_card = card(name)
    task = task_card.build()
    agent = PPO(recurrent=memory)
    values = []
    for seed in range(seeds):
        *_, outcome = run_cell(agent, task, resolve_cell(agent, task, seed, budget))
        assert isinstance(outcome, Outcome)
        values.append(task_card.normalise(float(outcome.record.total.mean())))
    return values


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--ids", help="names of tasks, separated by commas; default: the suite memory"
    )
    parser.add_argument("--budget", default="quick", help="smoke, quick or full")
    parser.add_argument("--seeds", type=int, default=5, help="training runs for each number")
    options = parser.parse_args()
    names = (
        options.ids.split(",")
        if options.ids
        else [task_card.name for task_card in resolve_suite("memory")]
    )
    print(
        f"| id | ceiling | {' | '.join(MEMORIES)} | seconds |\n| --- "
        f"|{' --- |' * (len(MEMORIES) + 2)}"
    )
    for name in names:
        began = time.perf_counter()
        task_card = card(name)
        ceiling = task_card.build().memoryless_ceiling
        row = ["" if ceiling is None else f"{task_card.normalise(ceiling):.2f}"]
        for memory in MEMORIES:
            score = mean({name: scores(name, memory, options.budget, options.seeds)})
            row.append(f"{score.point:.2f} [{score.low:.2f}, {score.high:.2f}]")
        print(f"| `{name}` | {' | '.join(row)} | {time.perf_counter() - began:.0f} |", flush=True)


if __name__ == "__main__":
    main()
