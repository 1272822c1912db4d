"""Measure what blind play earns: the best of many action sequences fixed before an episode begins.

    python benchmarks/audits/open_loop.py [--suite all | --ids A-v0,B-v0?difficulty=hard] [--players
    1000]
                                          [--seconds 60]

For each task it draws as many steady players (the no-op, constants, ladders) as sequences (periodic
or not), plays all of them on the same training contexts, improves the best ones, and lets the
winner play 1,024 episodes of the test split (16 of a simulator of the host).
``rlbench_suite/evaluation/analysis/open_loop.py`` has the details. The columns:

* ``score``: mean score of the winner, with half of its 95 % interval; 0 is the better of random
  play and doing nothing, 1 the reference;
* ``success``: fraction of its test episodes that succeed;
* ``player``: kind of the winner; ``tried``: players that were tried before the seconds were over;
* ``verdict``: ``low`` up to 0.25; ``explained`` above it if the card has a reason (``open_loop``),
  else ``too high``.

Exit code 1 says that a score is too high.
"""

from __future__ import annotations

import argparse
import sys

from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.registry import cards, suites
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.analysis.open_loop import BlindScore, BlindSearch

HEADER = "| task | score | success | player | tried | verdict |\n|" + " --- |" * 6


def verdict(card: TaskCard, result: BlindScore) -> str:
    """Judge a score."""
    if result.within_limit:
        return "low"
    return "explained" if card.open_loop else "too high"


def line(card: TaskCard, result: BlindScore) -> str:
    """Return the row of a task."""
    cells = (
        card.name,
        f"{result.score:.3f} +- {result.half_width:.3f}",
        f"{result.success:.3f}",
        result.player.kind + " (heeds the mask)" * result.player.heeds_mask,
        f"{result.tried:,}",
        verdict(card, result),
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--suite", default="all", help="suite of tasks")
    parser.add_argument("--ids", help="tasks in place of a suite, separated by commas")
    parser.add_argument(
        "--players", type=int, default=1_000, help="number of steady players, and of sequences"
    )
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="time of the search on a task, with compilation"
    )
    options = parser.parse_args()
    names = options.ids.split(",") if options.ids else suites()[options.suite]
    print(HEADER, flush=True)
    failed = False
    for name in names:
        card = find_card(name)
        if name not in cards() and not card.installed:
            print(f"{card.id} was left out: {card.requires} is not installed.", file=sys.stderr)
            continue
        try:
            result = BlindSearch(card.build()).best(options.players, seconds=options.seconds)
        except ValueError as why:
            print(f"{card.id} was left out: {why}.", file=sys.stderr)
            continue
        print(line(card, result), flush=True)
        failed |= verdict(card, result) == "too high"
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
