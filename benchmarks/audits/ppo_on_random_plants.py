"""Train PPO on random plausible motors and quadcopters, and compare it with the reference player.

    python benchmarks/audits/ppo_on_random_plants.py  # 10 motors and 10 quadcopters, a minute each
    python benchmarks/audits/ppo_on_random_plants.py PMSM Quadcopter --plants 5 --budget quick

Data sheets are those of ``random_plants.py`` and ``random_vehicles.py``, in files of their own. If
the suite refuses one, the next is taken. Random play, doing nothing and the reference player are
measured as by ``rlsuite dev calibrate``; then one seed of PPO trains with the hyperparameters of
the task. A line has the returns of the better of the first two, of the reference and of PPO, PPO's
score (0 is the first, 1 the second), and its mean cost if the task has a constraint. The last line
counts the plants on which PPO scores 0.9 or more, and on how many of these it keeps the constraint.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from random_plants import DRAWS, data_sheet
from random_vehicles import random_vehicle

from rlbench_suite.baselines.ppo.agent import PPO
from rlbench_suite.core.registry import card
from rlbench_suite.core.scale import ANCHORS, Scale
from rlbench_suite.core.task import Task
from rlbench_suite.evaluation.analysis.calibration import measure
from rlbench_suite.evaluation.protocol import evaluate, evaluation_seeds

EPISODES = 200
GOOD = 0.9
QUADCOPTER = "Quadcopter"


def sheets(kind: str) -> Iterator[dict[str, Any]]:
    """Sample data sheets of a kind of machine, or of quadcopters, without end."""
    for seed in range(1_000):
        if kind == QUADCOPTER:
            yield random_vehicle(np.random.default_rng(seed)).mapping()
        else:
            yield data_sheet(kind, seed)


def plants(kind: str, goal: str, count: int, folder: Path) -> Iterator[Task[Any, Any]]:
    """Return tasks of the first data sheets that the suite takes, each read from a file."""
    name = f"{kind}Hover-v0" if kind == QUADCOPTER else f"{kind}{goal}-v0"
    for number, sheet in enumerate(sheets(kind)):
        file = folder / f"{kind}{number}.yaml"
        file.write_text(yaml.safe_dump(sheet))
        try:
            task = card(name, context=file).build()
        except ValueError as refusal:
            print(kind, number, "refused:", str(refusal).rpartition(": ")[2], flush=True)
            continue
        yield task
        count -= 1
        if not count:
            return


def judge_ppo(task: Task[Any, Any], budget: str) -> tuple[float, bool]:
    """Print how PPO does on a plant; return its score, and whether it keeps the constraint."""
    task_card = task.card
    scale = Scale.of(measure(task, ANCHORS, episodes=EPISODES))
    assert scale is not None  # all three players play every task
    *_, policy = PPO().train(task, seed=0, budget=budget)
    record = evaluate(task, policy, evaluation_seeds(task_card, 0, budget))
    reached, cost = float(record.total.mean()), float(record.cost.mean())
    score = float(scale.score(reached))
    cost_note = (
        f", cost {cost:.3g} of {task_card.constraint.limit:g}" if task_card.constraint else ""
    )
    ends = f"{scale.zero_player} {scale.zero.mean:.4g}, reference {scale.reference.mean:.4g}"
    print(f"{task_card.id}: {ends}, ppo {reached:.4g}, score {score:.3f}{cost_note}", flush=True)
    return score, not task_card.violates(cost)


def main() -> None:
    """Print a line for each plant, and a summary."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    all_kinds = [*DRAWS, QUADCOPTER]
    parser.add_argument("kinds", nargs="*", default=all_kinds, help=f"of {', '.join(all_kinds)}")
    parser.add_argument("--plants", type=int, help="of each kind [default: 2, and 10 quadcopters]")
    parser.add_argument("--goal", default="Speed", help="of motors: Speed, Torque or Current")
    parser.add_argument("--budget", default="smoke", help="smoke, quick or full")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.kinds:
            count = options.plants or (10 if kind == QUADCOPTER else 2)
            results += [
                judge_ppo(task, options.budget)
                for task in plants(kind, options.goal, count, Path(folder))
            ]
    good = [keeps_constraint for score, keeps_constraint in results if score >= GOOD]
    print(
        (
            f"{len(good)} of {len(results)} plants at {GOOD} or more, {sum(good)} of these keep "
            "the constraint"
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
