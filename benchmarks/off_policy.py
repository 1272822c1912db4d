"""Compare the training speed of our SAC and of stable-baselines3's, on the same task in one run.

    python benchmarks/off_policy.py [TASK] [STEPS]

Both run in one process, on the same compiled environments, with the same number of environments, updates per step,
batch size and network widths. Compilation does not count.
"""

from __future__ import annotations

import sys

from rlbench_suite import registry
from rlbench_suite.agent import Agent, Progress
from rlbench_suite.baselines.replay.sac import SAC
from rlbench_suite.baselines.sb3 import SB3SAC
from rlbench_suite.task import Task

SHARED = {"num_envs": 8, "updates": 4, "batch_size": 128, "learning_starts": 200, "hidden": (64, 64)}


class MatchedSAC(SB3SAC):
    """SB3's SAC with the hyperparameters of ours."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def hyperparameters(self, task: Task, budget: str) -> dict:
        return super().hyperparameters(task, budget) | {
            "total_steps": self.steps,
            "n_envs": SHARED["num_envs"],
            "gradient_steps": SHARED["updates"],
            "batch_size": SHARED["batch_size"],
            "learning_starts": SHARED["learning_starts"],
            "net_arch": list(SHARED["hidden"]),
        }


def rate(agent: Agent, task: Task) -> float:
    """Measure steps per second after the initial random play, in which nothing is learned."""
    events = [event for event in agent.train(task, seed=0, budget="smoke") if isinstance(event, Progress)]
    first = next(event for event in events if event.steps > SHARED["learning_starts"])
    return (events[-1].steps - first.steps) / (events[-1].seconds - first.seconds)


def main() -> None:
    task = registry.card(sys.argv[1] if len(sys.argv) > 1 else "QuadcopterHover-v0").build()
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 4_000
    ours = SAC(total_steps=5 * steps, **SHARED)  # more steps, because it is faster
    mine, theirs = rate(ours, task), rate(MatchedSAC(steps), task)
    print(
        f"{task.card.id}, {SHARED['updates']} updates every {SHARED['num_envs']} steps: "
        f"sac {mine:,.0f} steps/s, sb3-sac {theirs:,.0f} steps/s, ratio {mine / theirs:.1f}"
    )


if __name__ == "__main__":
    main()
