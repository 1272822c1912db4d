"""One env at a time: what a step and a reset cost, and what the compiled program of a step costs on two devices.

python benchmarks/single_env.py            # a line for each task of the smoke suite
python benchmarks/single_env.py rlsuite/QuadcopterHover-v0

``step`` is through ``gymnasium.make``, resets included; ``reset`` is one of them. The others are calls of a program
alone, result as a NumPy array included. ``empty`` returns what it is given. The program of a step runs on the device of
the suite, which computes in the ``calling thread``, and on the ``JAX device``, which hands what is larger to another.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import gymnasium
import jax
import numpy as np

from rlbench_suite.adapters.single import order, programs
from rlbench_suite.episode import Draw, seed_key
from rlbench_suite.registry import SMOKE

STEPS = 4_000


def microseconds(work: Callable[[int], object]) -> float:
    """Of a call with a number of its own; the best of five runs."""
    work(0)  # compiles
    best = np.inf
    for _ in range(5):
        begun = time.perf_counter()
        for i in range(STEPS):
            work(i)
        best = min(best, (time.perf_counter() - begun) / STEPS * 1e6)
    return best


def figures(task_id: str) -> list[float]:
    """The columns of a task."""
    env = gymnasium.make(task_id)
    env.reset(seed=0)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(64)]

    def step(i: int) -> None:
        _, _, terminated, truncated, _ = env.step(actions[i % 64])
        if terminated or truncated:
            env.reset()

    task = env.unwrapped.task
    program, here = programs(task), programs(task).memory()
    here.take(program.begin(order(seed_key(0), 0, Draw.parse("train", task))))  # the first of its rows
    own, there = jax.jit(program.advance.__wrapped__), jax.device_put(here.words.copy(), jax.devices("cpu")[0])
    empty = jax.jit(lambda words: words[: program.layout.size])
    return [
        microseconds(step),
        microseconds(lambda i: env.reset()),
        microseconds(lambda i: np.asarray(empty(here.argument))),
        microseconds(lambda i: np.asarray(program.advance(here.argument))),
        microseconds(lambda i: np.asarray(own(there))),
    ]


def main() -> None:
    """A line for each task."""
    print(f"{'id':30}{'step':>12}{'reset':>12}{'empty':>12}{'calling thread':>18}{'JAX device':>14}")
    for task_id in sys.argv[1:] or SMOKE:
        step, reset, empty, here, there = figures(task_id)
        print(f"{task_id:30}{step:9.1f} us{reset:9.1f} us{empty:9.1f} us{here:15.1f} us{there:11.1f} us", flush=True)


if __name__ == "__main__":
    main()
