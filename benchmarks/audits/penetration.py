"""Print how much CO2 speed advice saves in EcoDriving, with intervals, by share of controlled cars.

    python benchmarks/audits/penetration.py [--id EcoDrivingCity-v0] [--shares 0,0.2,1] [--episodes
    512]

The reference player drives each share on the same test seeds. The columns are means over episodes:
CO2 and fuel that all traffic saves against the twin without agents, in per cent, with half of the
95 % interval; delay in seconds per car; and the part of the episodes that succeed. Fuel is another
model than CO2, so both should agree roughly.
"""

from __future__ import annotations

import argparse

from yardsticks import TEST_SEEDS, interval

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--id", default="EcoDriving-v0", help="of the task")
    parser.add_argument(
        "--shares",
        default="0,0.1,0.2,0.3,0.5,0.75,1",
        help="of controlled cars, separated by commas",
    )
    parser.add_argument("--episodes", type=int, default=512, help="test episodes of each share")
    options = parser.parse_args()
    print(
        "| controlled | CO2 saved, % | fuel saved, % | delay, s | success |\n| --- | --- | --- | "
        "--- | --- |"
    )
    for share in map(float, options.shares.split(",")):
        task = card(options.id).build(difficulty=share)
        info = play(
            task, reference_player(task), range(TEST_SEEDS, TEST_SEEDS + options.episodes)
        ).info
        savings = (interval(info[name]) for name in ("saving", "fuel_saving"))
        saved = " | ".join(f"{mean:.1f} +- {half:.1f}" for mean, half in savings)
        delay, success = info["delay"].mean(), info["success"].mean()
        print(f"| {share:.0%} | {saved} | {delay:.3f} | {success:.0%} |", flush=True)


if __name__ == "__main__":
    main()
