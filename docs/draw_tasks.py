"""Draw docs/tasks.png: every task of the smoke suite, some steps into an episode of its reference player.

python docs/draw_tasks.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from reference_episode import reference_episode

from rlbench_suite.registry import SMOKE

STEPS = {"SAT-v0": 2, "Wordle-v0": 3, "PMSMCurrent-v0": 200, "QuadcopterHover-v0": 12, "DeepSeaTreasure-v0": 4}


def picture(task_id: str) -> np.ndarray:
    """The state after some steps."""
    *_, (env, state) = reference_episode(task_id, STEPS.get(task_id.removeprefix("rlsuite/"), 15))
    return env.task.draw(state, env.params)


def main() -> None:
    """Draw the picture."""
    figure, axes = plt.subplots(2, 3, figsize=(12, 7.6))
    for axis, task_id in zip(axes.flat, SMOKE, strict=True):
        axis.imshow(picture(task_id))
        axis.set_title(task_id, fontsize=11, family="monospace")
        axis.axis("off")
    figure.tight_layout()
    figure.savefig(Path(__file__).parent / "tasks.png", dpi=80)


if __name__ == "__main__":
    main()
