"""Launch a short PPO training in fresh processes, two at a time, and count those that hang or fail.

    python benchmarks/launch_robustness.py [LAUNCHES] [TASK]

Each launch compiles, trains for some updates and evaluates. A launch that takes longer than two minutes counts as
hung. Launches share no compiled programs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

LIMIT = 120.0
TRAINING = """
import sys
from rlbench_suite import registry
from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.ppo.agent import PPO
task = registry.card(sys.argv[1]).build()
*_, policy = PPO(total_steps=20_480, reports=2).train(task, seed=int(sys.argv[2]), budget="smoke")
print(play(task, policy, range(8)).total.mean())
"""


def launch(task: str, seed: int) -> tuple[str, float]:
    """Launch a training; return how it ended and how many seconds it took."""
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    begun = time.perf_counter()
    try:
        command = [sys.executable, "-c", TRAINING, task, str(seed)]
        done = subprocess.run(command, env=environment, timeout=LIMIT, capture_output=True, text=True, check=False)
    except subprocess.TimeoutExpired:
        return "hung", time.perf_counter() - begun
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
    return ("failed" if done.returncode else "finished"), time.perf_counter() - begun


def main() -> None:
    launches = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    task = sys.argv[2] if len(sys.argv) > 2 else "QuadcopterHover-v0"
    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(lambda seed: launch(task, seed), range(launches)))
    seconds = sorted(took for _, took in ends)
    counts = ", ".join(f"{count} {end}" for end, count in Counter(end for end, _ in ends).items())
    print(f"{launches} launches of {task}, two at a time: {counts}; median {seconds[len(seconds) // 2]:.1f} s each")
    sys.exit(any(end != "finished" for end, _ in ends))


if __name__ == "__main__":
    main()
