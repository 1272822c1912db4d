"""Measure steps per second of processor time on one core, in one fused program.

    python benchmarks/speed/fused_steps.py Spread-v0,Foraging-v0 --envs 256

Environments act at random and begin new episodes. Each figure is the best of three rounds, so that
other work on the machine matters less. The process keeps to one thread, as measurements of other
libraries per processor second do.
"""

import argparse
import os
import time


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", help="suites and ids, separated by commas")
    parser.add_argument("--envs", default=256, type=int, help="environments of the batch")
    parser.add_argument("--seconds", default=1.0, type=float, help="length of a round")
    arguments = parser.parse_args()
    os.environ["PJRT_NPROC"] = "1"  # before JAX is loaded

    from rlbench_suite.cli.task_commands.speed import measure_fused
    from rlbench_suite.core.registry import resolve_suite

    for card in resolve_suite(arguments.tasks):
        rounds = [
            measure_fused(card, arguments.envs, arguments.seconds, time.process_time)
            for _ in range(3)
        ]
        print(f"{card.name:24} {max(rounds):12,.0f}", flush=True)


if __name__ == "__main__":
    main()
