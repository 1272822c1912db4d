"""Measure steps a second on all cores: one fused program in one process for each core.

    python benchmarks/peers/all_cores.py  # the worlds of text, tools and memory
    python benchmarks/peers/all_cores.py Survival-v0,motor --envs 256     # suites and ids

A program acts at random, steps, and resets finished episodes (``rlsuite bench``, column "fused", is
the same in one process, whose second thread gains little where kernels take some microseconds
each). Tasks that a simulator of the host computes are left out.
"""

import argparse

import jax
from cores import Cores, wait_for_all

from rlbench_suite.cli.task_commands import speed
from rlbench_suite.core.registry import card, resolve_suite

SECONDS = 5.0


def steps_per_second(name: str, envs: int) -> list[float]:
    """Measure a task in this process while the others do the same."""
    wait_for_all()
    return [speed.measure_fused(card(name), envs, SECONDS)]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "tasks", nargs="?", default="text,tools,memory", help="suites and ids, separated by commas"
    )
    parser.add_argument("--envs", default=256, type=int, help="environments of a process")
    arguments = parser.parse_args()
    cores = Cores()
    print(
        f"{jax.devices()[0]}, {cores.count} processes of {arguments.envs} environments, steps a "
        "second"
    )
    for task_card in resolve_suite(arguments.tasks):
        if not task_card.host:
            print(
                (
                    f"{task_card.name:24} "
                    f"{cores.sums(steps_per_second, task_card.id, arguments.envs)[0]:12,.0f}"
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
