"""Compare the speed of our highway with highway-env's highway-v0, with 50 vehicles, in one run on one machine.

    pip install highway-env && python benchmarks/highway.py

Both sides take random legal actions, with 15 simulation steps and one decision per simulated second, resets included.
highway-env runs one episode at a time and tests every pair of vehicles for collisions. Ours is measured as one
environment through ``gymnasium.make``, as a batch with NumPy arrays in and out, and as one fused program. Figures are
medians of three interleaved rounds, so that other load on the machine affects all of them.
"""

import statistics
from importlib.util import find_spec

import gymnasium
import jax
from control_peers import single

from rlbench_suite.cli import speed
from rlbench_suite.registry import card

TASK = "rlsuite/Highway-v1"
ENVS = 1024
ROUNDS = 3
SECONDS = 3.0
PEER_SECONDS = 10.0
"""Time for about forty steps."""


def peer() -> float:
    """Measure steps per second of highway-v0, without the time to choose actions."""
    import highway_env  # noqa: F401  registers its ids

    env = gymnasium.make("highway-v0", config={"vehicles_count": 49})  # and the ego
    return single(env, PEER_SECONDS)


def main() -> None:
    ours = card(TASK)
    ways = {
        f"{TASK}, one environment": lambda: speed.single(ours, SECONDS),
        f"{TASK}, batch of {ENVS}": lambda: speed.batched(ours, ENVS, SECONDS),
        f"{TASK}, {ENVS} fused": lambda: speed.fused(ours, ENVS, SECONDS),
    }
    if find_spec("highway_env"):
        ways = {"highway-env, highway-v0": peer} | ways
    else:
        print("highway-env is not installed, so only ours is measured: pip install highway-env")
    rounds = [{name: measure() for name, measure in ways.items()} for _ in range(ROUNDS)]
    figures = {name: statistics.median(one[name] for one in rounds) for name in ways}
    print(f"{jax.devices()[0]}, steps per second with 50 vehicles, median of {ROUNDS} rounds")
    base = figures.get("highway-env, highway-v0")
    for name, figure in figures.items():
        ratio = f"{figure / base:10,.0f} x" if base else ""
        print(f"{name:44s}{figure:12,.1f}{ratio}")


if __name__ == "__main__":
    main()
