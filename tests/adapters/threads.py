"""Run work in threads that take turns as often as possible.

Plays in threads are compared with plays alone.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium
import numpy as np

import rlbench_suite  # noqa: F401  # registers the ids
from rlbench_suite.checking.trial import random_action

TURNS = 8
SWITCH_SECONDS = 1e-6


def run_in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Run ``work`` in threads that begin at once, and return its results."""
    barrier = threading.Barrier(count)

    def together(number: int) -> Any:
        barrier.wait()
        return work(number)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(together, range(count)))
    finally:
        sys.setswitchinterval(interval)


def assert_plays_as_alone(task_id: str) -> None:
    """Play episodes of four seeds in four threads.

    Compare them with plays one after another.
    """
    play(task_id, 0)  # compiles
    seeds = range(1, 5)
    together = run_in_threads(4, lambda number: play(task_id, seeds[number]))
    assert together == [play(task_id, seed) for seed in seeds]


def play(task_id: str, seed: int) -> list[Any]:
    """Play random actions in words, and return what was seen and earned."""
    env: Any = gymnasium.make(task_id, view="text").unwrapped
    observation, info = env.reset(seed=seed)
    outcomes: list[Any] = [observation]
    generator = np.random.default_rng(seed)
    for _ in range(TURNS):
        action = random_action(generator, env.task.action_space, info.get("action_mask"))
        observation, reward, terminated, truncated, info = env.step(spell_action(env, action))
        outcomes += [observation, np.asarray(reward).tolist()]
        if terminated or truncated:
            break
    return outcomes


def spell_action(env: Any, action: Any) -> str:
    """Return the text of an action; of a call without its arguments another one."""
    try:
        text: str = env.task.spell(np.asarray(action), env.episode.state, env.params)
    except ValueError:
        return '{"name": "get_documentation", "arguments": {}}'
    return text
