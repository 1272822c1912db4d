"""Compare the speed of our roads with that of highway-env's, in one run on one machine.

    pip install highway-env && python benchmarks/peers/driving.py  # every road
    python benchmarks/peers/driving.py rlsuite/Highway-v0 rlsuite/EcoDriving-v0

Both sides take random actions, resets included. highway-env runs one episode at a time in one
process and tests every pair of vehicles for collisions. Ours is measured as one environment through
``gymnasium.make``, as a batch with NumPy arrays in and out, and as one fused program; batches use
all cores. Figures are medians of three interleaved rounds, so that other load on the machine
affects all of them.

Where the state counts vehicles, the last column has vehicle-steps: steps by the mean number of
vehicles on the road in test episodes. Those of twins are simulated too and do not count.

A ratio appears only beside a peer that this run has measured. Where highway-env is not installed,
its steps per second of version 1.12.0 are cited, measured once on a machine with two cores.
"""

import statistics
import sys
from importlib.util import find_spec
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from control_peers import single

from rlbench_suite.cli.task_commands import speed
from rlbench_suite.core.episode import ContextSource, advance, begin, seed_key
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Task
from rlbench_suite.envs.driving.traffic.approach import EXIT_DISTANCE

ROUNDS = 3
SECONDS = 3.0
PEER_SECONDS = 10.0
"""Time for about sixty steps of highway-v0."""
EPISODES = 64
"""Episodes in which vehicles are counted."""


class Road(NamedTuple):
    """Way to measure a road."""

    envs: int
    """Environments of a batch."""
    peer: str = ""
    """highway-env's id; empty if it has no such road."""
    cited: float = 0.0
    """Its steps per second."""
    config: dict[str, Any] | None = None
    """Its settings."""


ROADS = {
    "rlsuite/Highway-v0": Road(1024, "highway-v0", 5.9, {"vehicles_count": 49}),  # and the ego
    "rlsuite/HighwayContinuous-v0": Road(1024),
    "rlsuite/Merge-v0": Road(1024, "merge-v0", 104),
    "rlsuite/Exit-v0": Road(1024, "exit-v0", 48),
    "rlsuite/TwoWay-v0": Road(1024, "two-way-v0", 160),
    "rlsuite/UTurn-v0": Road(1024, "u-turn-v0", 101),
    "rlsuite/LanguageDriving-v0": Road(1024),
    "rlsuite/Parking-v0": Road(4096, "parking-v0", 332),
    "rlsuite/LaneKeeping-v0": Road(4096, "lane-keeping-v0", 8636),
    "rlsuite/Racetrack-v0": Road(4096, "racetrack-v0", 121),
    "rlsuite/Intersection-v0": Road(1024, "intersection-v0", 33),
    "rlsuite/Roundabout-v0": Road(1024, "roundabout-v0", 58),
    "rlsuite/EcoDriving-v0": Road(1024),
    "rlsuite/EcoDrivingCar-v0": Road(1024),
    "rlsuite/EcoDrivingCity-v0": Road(1024),
    "rlsuite/EcoDrivingLanes-v0": Road(1024),
    "rlsuite/TrafficSim-v0": Road(1024),
    "rlsuite/OwnRoads-v0": Road(1024),
}


def peer(road: Road) -> float:
    """Measure steps per second of highway-env."""
    import highway_env  # noqa: F401  registers its ids

    return single(gymnasium.make(road.peer, config=road.config), PEER_SECONDS)


def vehicles(task: Task[Any, Any], horizon: int) -> float:
    """Return the mean number of vehicles on the road while ``noop`` drives.

    It is 0 where the state does not count them.
    """

    def count(state: Any, params: Any) -> Any:
        traffic, ring = getattr(state, "traffic", None), getattr(state, "ring", None)
        if ring is not None:
            return ring.v.shape[-1]
        if hasattr(traffic, "pose"):
            return traffic.pose.x.shape[-1]
        if hasattr(traffic, "stops_at_light"):
            # Vehicles wait before the entry with a negative x, and drive on behind the exit.
            on = (traffic.x[1] >= 0) & (traffic.x[1] < params.approach + EXIT_DISTANCE)
            return on.sum()
        return 0

    def episode(key: Any) -> Any:
        first, _ = begin(task, key, 0, ContextSource.parse("test", task))

        def step(carry: Any, _: None) -> Any:
            later, result = advance(task, carry, task.noop_action(), jnp.int32(horizon))
            is_over = result.terminated | result.truncated
            return later, (count(carry.state, carry.params), is_over)

        _, (counts, over) = jax.lax.scan(step, first, None, length=horizon)
        is_played = jnp.cumsum(over) - over == 0  # later steps do not count
        return jnp.where(is_played, counts, 0).sum(), is_played.sum()

    counts, steps = jax.jit(jax.vmap(episode))(
        np.stack([seed_key(seed) for seed in range(EPISODES)])
    )
    return float(counts.sum() / steps.sum())


def measure_rates(task_id: str, road: Road) -> dict[str, float]:
    """Measure steps per second in every way."""
    task_card = card(task_id)
    beside = road.peer and find_spec("highway_env")
    return {
        **({f"highway-env, {road.peer}": peer(road)} if beside else {}),
        f"{task_id}, one environment": speed.single(task_card, SECONDS),
        f"{task_id}, batch of {road.envs}": speed.measure_batch(task_card, road.envs, SECONDS),
        f"{task_id}, {road.envs} fused": speed.measure_fused(task_card, road.envs, SECONDS),
    }


def main() -> None:
    task_ids = sys.argv[1:] or list(ROADS)
    if unknown := [name for name in task_ids if name not in ROADS]:
        raise SystemExit(f"{unknown[0]} is none of the roads: {', '.join(ROADS)}")
    print(
        f"{jax.devices()[0]}, steps per second, median of {ROUNDS} rounds, ratio to the peer, "
        "vehicle-steps per second"
    )
    for task_id in task_ids:
        road, task_card = ROADS[task_id], card(task_id)
        rounds = [measure_rates(task_id, road) for _ in range(ROUNDS)]
        figures = {
            method: statistics.median(figure[method] for figure in rounds) for method in rounds[0]
        }
        base = figures.get(f"highway-env, {road.peer}", 0.0)
        if road.peer and not base:
            print(f"{f'highway-env, {road.peer}, cited':48s}{road.cited:12,.1f}")
        number = vehicles(task_card.build(), task_card.horizon)
        for method, figure in figures.items():
            ratio = f"{figure / base:10,.1f} x" if base else ""
            moved = f"{figure * number:16,.0f}" if number and method.startswith(task_id) else ""
            print(f"{method:48s}{figure:12,.1f}{ratio:>12s}{moved}", flush=True)


if __name__ == "__main__":
    main()
