"""Compare the wall time of a run on Ray with that of the process pool, on this machine.

    python benchmarks/speed/ray_overhead.py --agent ppo --suite smoke --seeds 2 --workers 2 --rounds
    2

Both begin with warm caches of compiled programs, and take turns. The time of Ray includes the start
of its cluster.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from rlbench_suite.cli import prepare_jax


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agent", default="ppo")
    parser.add_argument("--suite", default="smoke")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    prepare_jax(1)
    from rlbench_suite.evaluation.runs.runner import plan

    manifest = plan(options.agent, options.suite, options.seeds, "smoke")
    measure("pool", manifest, options.workers)  # fills the caches
    best = {"pool": float("inf"), "ray": float("inf")}
    for _ in range(options.rounds):
        for executor, seconds in best.items():
            now = measure(executor, manifest, options.workers)
            best[executor] = min(seconds, now)
            print(f"{executor:5} {now:7.1f} s, load {os.getloadavg()[0]:.1f}", flush=True)
    print(
        f"best of {options.rounds}: Ray takes {best['ray'] / best['pool'] - 1:+.1%} of the pool's "
        "time more"
    )


def measure(executor: str, manifest, workers: int) -> float:
    """Return the seconds of a whole run."""
    from rlbench_suite.evaluation.runs.open_run import OpenRun
    from rlbench_suite.evaluation.runs.ray_executor import Resources, in_cluster
    from rlbench_suite.evaluation.runs.runner import in_pool

    with tempfile.TemporaryDirectory() as folder, OpenRun.open(Path(folder), manifest) as run:
        began = time.perf_counter()
        events = (
            in_pool(run, workers)
            if executor == "pool"
            else in_cluster(run, Resources(), workers=workers)
        )
        for event in events:
            if event.kind == "failed":
                raise RuntimeError(f"{event.cell}: {event.value}")
        return time.perf_counter() - began


if __name__ == "__main__":
    main()
