"""An episode of a task's reference player, for pictures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import jax
import numpy as np

from rlbench_suite.policy import View


def reference_episode(task_id: str, steps: int) -> Iterator[tuple[Any, Any]]:
    """The environment and its state at each step of an episode of the test split, ``steps`` steps at most."""
    env: Any = gymnasium.make(task_id, split="test", render_mode="rgb_array").unwrapped
    player = env.reference()
    observation, info = env.reset(seed=4)
    memory = player.initial(env.params)
    act = jax.jit(lambda player, *seen: player.act(*seen))
    yield env, env.state
    for t in range(steps):
        view = View(observation, info.get("action_mask"), env.state, env.params)
        action, memory = act(player, memory, view, jax.random.key(t))
        observation, _, terminated, _, info = env.step(np.asarray(action).astype(env.task.action_space.dtype))
        yield env, env.state
        if terminated:
            break
