"""One env at a time: steps on JAX's own CPU device and on the suite's, which computes in the calling thread.

python benchmarks/single_env.py            # a line for each task of the smoke suite
python benchmarks/single_env.py rlsuite/QuadcopterHover-v0
"""

from __future__ import annotations

import sys
import time

import gymnasium
import jax
import numpy as np

from rlbench_suite.adapters import single
from rlbench_suite.registry import SMOKE

STEPS = 20_000


def microseconds(task_id: str) -> float:
    """Of a step through ``gymnasium.make``, resets included; the best of five runs."""
    single.programs.cache_clear()
    env = gymnasium.make(task_id)
    env.reset(seed=0)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(64)]
    env.step(actions[0])  # compiles
    env.reset()  # the next step may follow a reset
    best = np.inf
    for _ in range(5):
        begun = time.perf_counter()
        for i in range(STEPS // 5):
            _, _, terminated, truncated, _ = env.step(actions[i % 64])
            if terminated or truncated:
                env.reset()
        best = min(best, (time.perf_counter() - begun) / (STEPS // 5) * 1e6)
    return best


def main() -> None:
    """Time each task both ways, in one process."""
    own = single.calling_thread_device
    print(f"{'id':30}{'JAX device':>14}{'calling thread':>16}{'ratio':>8}")
    for task_id in sys.argv[1:] or SMOKE:
        single.calling_thread_device = lambda: jax.devices("cpu")[0]
        theirs = microseconds(task_id)
        single.calling_thread_device = own
        ours = microseconds(task_id)
        print(f"{task_id:30}{theirs:11.1f} us{ours:13.1f} us{theirs / ours:8.1f}")


if __name__ == "__main__":
    main()
