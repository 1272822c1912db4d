"""Compare the training speed of our PPO and of stable-baselines3's, on the same task in one run.

    python benchmarks/ppo.py [TASK] [STEPS]

Both run in one process, on the same compiled environments, with the same number of environments, rollout length,
minibatches, epochs and network widths. Compilation does not count.
"""

from __future__ import annotations

import sys

from rlbench_suite import registry
from rlbench_suite.agent import Agent, Progress
from rlbench_suite.baselines.ppo.agent import PPO
from rlbench_suite.baselines.sb3 import SB3PPO
from rlbench_suite.task import Task

SHARED = {"envs": 32, "steps": 64, "minibatches": 4, "epochs": 6, "hidden": (64, 64)}


class MatchedPPO(SB3PPO):
    """SB3's PPO with the hyperparameters of ours."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def hyperparameters(self, task: Task, budget: str) -> dict:
        batch = SHARED["envs"] * SHARED["steps"]
        return super().hyperparameters(task, budget) | {
            "total_steps": self.steps,
            "n_envs": SHARED["envs"],
            "n_steps": SHARED["steps"],
            "batch_size": batch // SHARED["minibatches"],
            "n_epochs": SHARED["epochs"],
            "net_arch": list(SHARED["hidden"]),
        }


def rate(agent: Agent, task: Task) -> float:
    last = None
    for event in agent.train(task, seed=0, budget="smoke"):
        if isinstance(event, Progress):
            last = event
    return last.steps / last.seconds


def main() -> None:
    task = registry.card(sys.argv[1] if len(sys.argv) > 1 else "QuadcopterHover-v0").build()
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 40_960
    ours = PPO(
        total_steps=10 * steps,  # more steps, because it is faster
        num_envs=SHARED["envs"],
        num_steps=SHARED["steps"],
        minibatches=SHARED["minibatches"],
        epochs=SHARED["epochs"],
        hidden=SHARED["hidden"],
    )
    mine, theirs = rate(ours, task), rate(MatchedPPO(steps), task)
    print(f"{task.card.id}: ppo {mine:,.0f} steps/s, sb3-ppo {theirs:,.0f} steps/s, ratio {mine / theirs:.1f}")


if __name__ == "__main__":
    main()
