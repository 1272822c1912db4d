"""Draw docs/tasks.png: every task of the smoke suite, some steps into an episode of its reference player.

python docs/draw_tasks.py
"""

from __future__ import annotations

from pathlib import Path

import gymnasium
import jax
import matplotlib.pyplot as plt
import numpy as np

from rlbench_suite.policy import View
from rlbench_suite.registry import SMOKE

STEPS = {"SAT-v0": 2, "Wordle-v0": 3, "PMSMCurrent-v0": 200, "QuadcopterHover-v0": 12, "DeepSeaTreasure-v0": 4}


def picture(task_id: str) -> np.ndarray:
    env = gymnasium.make(task_id, split="test", render_mode="rgb_array").unwrapped
    player = env.reference()
    observation, info = env.reset(seed=4)
    memory = player.initial(env.params)
    act = jax.jit(lambda player, *seen: player.act(*seen))
    for t in range(STEPS.get(env.card.name, 15)):
        view = View(observation, info.get("action_mask"), env.state, env.params)
        action, memory = act(player, memory, view, jax.random.key(t))
        observation, _, terminated, _, info = env.step(np.asarray(action))
        if terminated:
            break
    return env.render()


def main() -> None:
    figure, axes = plt.subplots(2, 3, figsize=(12, 7.6))
    for axis, task_id in zip(axes.flat, SMOKE, strict=True):
        axis.imshow(picture(task_id))
        axis.set_title(task_id, fontsize=11, family="monospace")
        axis.axis("off")
    figure.tight_layout()
    figure.savefig(Path(__file__).parent / "tasks.png", dpi=80)


if __name__ == "__main__":
    main()
