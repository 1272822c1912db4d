"""Time a step and a reset of a single env, and the compiled program of a step.

python benchmarks/speed/single_env.py            # a line for each task of the smoke suite
python benchmarks/speed/single_env.py rlsuite/QuadcopterHover-v0

``step`` is a step of the env from ``gymnasium.make``, resets included; ``reset`` is one reset.
``program`` is a step's compiled program alone, in the calling thread, as the suite calls it.
``empty`` is a program that does nothing, called in the same way. ``JAX's device`` is the step's
program on JAX's own device, which runs it in another thread if large.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import gymnasium
import jax
import numpy as np

from rlbench_suite.adapters.packed_episode import programs
from rlbench_suite.core.registry import SMOKE
from rlbench_suite.numerics.program import program

STEPS = 4_000


def microseconds(work: Callable[[int], object]) -> float:
    """Return the microseconds of a call in the best of five runs.

    The call gets its number as argument.
    """
    work(0)  # compiles
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        for i in range(STEPS):
            work(i)
        best = min(best, (time.perf_counter() - start) / STEPS * 1e6)
    return best


def figures(task_id: str) -> list[float]:
    """Measure the columns of a task."""
    env = gymnasium.make(task_id)
    env.reset(seed=0)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(64)]

    def step(i: int) -> None:
        _, _, terminated, truncated, _ = env.step(actions[i % 64])
        if terminated or truncated:
            env.reset()

    compiled = programs(env.unwrapped.task)
    argument = np.zeros(compiled.action.span.stop, compiled.layout.dtype)
    empty = program(lambda buffer: buffer[:8], compiled.task, argument)
    jax_program = jax.jit(compiled.traced_advance)
    jax_argument = jax.device_put(argument, jax.devices("cpu")[0])
    return [
        microseconds(step),
        microseconds(lambda i: env.reset()),
        microseconds(lambda i: np.asarray(compiled.advance(argument))),
        microseconds(lambda i: np.asarray(empty(argument))),
        microseconds(lambda i: np.asarray(jax_program(jax_argument))),
    ]


def main() -> None:
    """Print a line for each task."""
    columns = "step", "reset", "program", "empty", "JAX's device"
    print(f"{'id':30}" + "".join(f"{column:>16}" for column in columns))
    for task_id in sys.argv[1:] or SMOKE:
        print(
            f"{task_id:30}" + "".join(f"{figure:13.2f} us" for figure in figures(task_id)),
            flush=True,
        )


if __name__ == "__main__":
    main()
