"""Time the start of an id in a new process, with its programs in JAX's cache on disk.

python benchmarks/startup.py                 # every id
python benchmarks/startup.py rlsuite/SAT-v0  # these ids

Every id starts twice, each time in its own process. The table shows the seconds of the second start: `import` (of
gymnasium and this package), `make` (which imports JAX and the task), the first `reset` and the first `step`.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

from rlbench_suite.registry import cards

CODE = """
import sys, time
marks = [time.perf_counter()]
import gymnasium, rlbench_suite
marks.append(time.perf_counter())
env = gymnasium.make(sys.argv[1])
marks.append(time.perf_counter())
env.reset(seed=0)
marks.append(time.perf_counter())
env.step(env.action_space.sample())
marks.append(time.perf_counter())
print(*(later - earlier for earlier, later in zip(marks, marks[1:])))
"""


def started(task_id: str, cache: str) -> list[float]:
    """Return the seconds of import, make, reset and step in a new process."""
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": cache, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    command = [sys.executable, "-c", CODE, task_id]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def main() -> None:
    """Print a line for each id, and the medians."""
    chosen = sys.argv[1:] or [card.id for card in cards().values() if card.installed]
    print(
        f"{'second start of':40}" + "".join(f"{name:>10}" for name in ("import", "make", "reset", "step", "last three"))
    )
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        for task_id in chosen:
            started(task_id, cache)
            seconds = started(task_id, cache)
            rows.append([*seconds, sum(seconds[1:])])
            print(f"{task_id:40}" + "".join(f"{second:10.2f}" for second in rows[-1]), flush=True)
    print(f"{'median':40}" + "".join(f"{statistics.median(column):10.2f}" for column in zip(*rows, strict=True)))


if __name__ == "__main__":
    main()
