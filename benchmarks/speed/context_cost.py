"""Count the programs that a context of one's own compiles, and the seconds that takes.

The environment is a single one.

Each task is made as shipped, then with two contexts that differ in one constant, all with an empty
cache of programs. Run: ``python benchmarks/speed/context_cost.py``.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

CACHE = Path(tempfile.mkdtemp())
os.environ |= {
    "JAX_COMPILATION_CACHE_DIR": str(CACHE),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "RLSUITE_CACHE": tempfile.mkdtemp(),
}

import gymnasium  # noqa: E402 - after the environment is set

import rlbench_suite  # noqa: E402, F401 - registers the ids

CONSTANTS = {
    "PointMaze-v0": ("mass", 5.0, 6.0),
    "PMSMSpeed-v0": ("inertia", 0.02, 0.03),
    "Inventory-v0": ("shop_1_holding", 1.0, 2.0),
    "Lettuce-v0": ("warmth", 1.0, 2.0),
}
"""A constant of each task, and its values in two contexts."""


def cost(task_id: str, **keywords: Any) -> tuple[int, float]:
    """Return the programs compiled for an environment's first episode, and the CPU seconds."""
    before, start = len(list(CACHE.glob("*-cache"))), time.process_time()
    env: Any = gymnasium.make(f"rlsuite/{task_id}", **keywords)
    env.reset(seed=0)
    env.step(env.action_space.sample())
    return len(list(CACHE.glob("*-cache"))) - before, time.process_time() - start


def main() -> None:
    """Print a line for each task and context."""
    for task_id, (name, *values) in CONSTANTS.items():
        shipped = cost(task_id)
        print(
            f"{task_id:14s} shipped                     {shipped[0]} programs, {shipped[1]:.1f} s"
        )
        for value in values:
            programs, seconds = cost(task_id, context={name: value})
            print(f"{task_id:14s} {f'{name}: {value:g}':27s} {programs} programs, {seconds:.1f} s")


if __name__ == "__main__":
    main()
