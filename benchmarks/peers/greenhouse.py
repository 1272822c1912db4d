"""Compare the speed of our greenhouses with lettuce-greenhouse-gym and gl-gym.

All run one after another on one machine.

    pip install lettuce-greenhouse-gym==0.1.3 && python benchmarks/peers/greenhouse.py

Both sides take random actions, resets included, and one decision per control interval: half an hour
of Lettuce-v0, Tomato-v0 and lettuce-greenhouse-gym, a quarter of an hour of gl-gym, whose model has
28 states where ours has ten. A peer runs one episode at a time in one process. Ours is measured as
one environment through ``gymnasium.make``, as batches with NumPy arrays in and out, and as fused
programs, both in one process for each core (``cores.py``). Figures are medians of three interleaved
rounds, so that other load on the machine affects all of them.

gl-gym needs versions of Gymnasium and NumPy that ours cannot share, so its figure is cited, as is
that of lettuce-greenhouse-gym where it is not installed: both were measured once, on a machine with
two cores.
"""

import statistics
from importlib.util import find_spec

import gymnasium
import jax
from control_peers import single
from cores import Cores, wait_for_all

from rlbench_suite.cli.task_commands import speed
from rlbench_suite.core.registry import card

SIZES = {"rlsuite/Lettuce-v0": 4096, "rlsuite/Tomato-v0": 1024}
"""Environments of a process"""
LETTUCE = "lettuce-greenhouse-gym"
PEERS = {"rlsuite/Lettuce-v0": (LETTUCE, 7010.0), "rlsuite/Tomato-v0": ("gl-gym", 1088.0)}
"""Peer of each task, and its cited steps per second: versions 0.1.3 and 0.3.2"""
ROUNDS = 3
SECONDS = 3.0


def peer() -> float:
    """Measure steps per second of lettuce-greenhouse-gym."""
    import lettuce_greenhouse_gym  # noqa: F401  registers its id

    return single(gymnasium.make("LettuceGreenhouse-v0"), SECONDS)


def measure_rates(cores: Cores, task_id: str) -> dict[str, float]:
    """Measure steps per second of a task in every way.

    The lettuce has lettuce-greenhouse-gym beside it.
    """
    size = SIZES[task_id]
    beside = PEERS[task_id][0] == LETTUCE and find_spec("lettuce_greenhouse_gym")
    figures = {LETTUCE: peer()} if beside else {}
    figures |= {f"{task_id}, one environment": speed.single(card(task_id), SECONDS)}
    for name, method in ((f"batches of {size}", "batched"), (f"{size} fused", "fused")):
        figures[f"{task_id}, {name}"] = cores.sums(on_every_core, method, task_id, size)[0]
    return figures


def on_every_core(method: str, task_id: str, size: int) -> list[float]:
    """Measure steps per second of this process while the others do the same."""
    wait_for_all()
    return [getattr(speed, method)(card(task_id), size, SECONDS)]


def main() -> None:
    cores = Cores()
    print(
        f"{jax.devices()[0]}, {cores.count} processes, steps per second, median of {ROUNDS} rounds"
    )
    for task_id, (name, cited) in PEERS.items():
        rounds = [measure_rates(cores, task_id) for _ in range(ROUNDS)]
        figures = {
            method: statistics.median(measurement[method] for measurement in rounds)
            for method in rounds[0]
        }
        if name not in figures:
            figures = {f"{name}, cited": cited} | figures
        base = next(iter(figures.values()))
        for method, figure in figures.items():
            print(f"{method:44s}{figure:12,.0f}{figure / base:10,.1f} x", flush=True)


if __name__ == "__main__":
    main()
