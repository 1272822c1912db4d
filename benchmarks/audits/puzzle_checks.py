"""Check puzzle generators at scale: distinct instances, solved instances, and overlapping splits.

    python benchmarks/audits/puzzle_checks.py [--ids A-v0,B-v0] [--tiers easy,medium] [--count
    10000]
                                              [--compared 100000] [--seconds 60]

It prints a line for each puzzle and tier:

* ``instances``, ``solved``, ``distinct``: the number of train instances, at most ``--count``; the
  fraction for which the solver's answer scores 1; the fraction with distinct canonical forms.
* ``of splits``, ``overlap``: the number of instances from both splits together, about
  ``--compared``; and the number of canonical forms and question texts that the splits share, which
  must be 0.
* ``seconds``: processor time. ``--seconds`` ends the generation of each split early.
* ``estimate``: the number of instances in both splits, if all are equally likely, from the
  repetitions among the train instances.
* ``space``: the puzzle's own claim of that number. If it is infinite, 99 % of the instances must be
  distinct.
"""

import argparse
import itertools
import math
import time

from rlbench_suite.core.registry import cards
from rlbench_suite.core.task_card import SPLITS
from rlbench_suite.language.rows import puzzle_of


def main() -> None:
    """Print a line for each puzzle and tier; exit with status 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ids", help="names of puzzles, separated by commas; all by default")
    parser.add_argument("--tiers", default="easy,medium,hard", help="tiers, separated by commas")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="processor time for each split of a line"
    )
    parser.add_argument("--count", type=int, default=10_000, help="instances to solve")
    parser.add_argument(
        "--compared", type=int, default=100_000, help="instances of both splits together"
    )
    options = parser.parse_args()
    puzzle_cards = [card for card in cards().values() if card.puzzle]
    selected_names = options.ids.split(",") if options.ids else [card.name for card in puzzle_cards]
    columns = (
        "instances",
        "solved",
        "distinct",
        "of splits",
        "overlap",
        "seconds",
        "estimate",
        "space",
    )
    print(f"{'puzzle':26s}{'tier':8s}" + "".join(f"{column:>11s}" for column in columns))
    failed = []
    for card, tier in itertools.product(
        (card for card in puzzle_cards if card.name in selected_names), options.tiers.split(",")
    ):
        start = time.process_time()
        solved, distinct, sizes, overlap = check(
            card.id, tier, options.count, options.compared // 2, options.seconds
        )
        size, seconds = min(options.count, sizes[0]), time.process_time() - start
        shares = f"{size:11,d}{solved / size:11.2%}{distinct / size:11.2%}"
        space = puzzle_of(card.id, tier).space
        counts = (
            f"{sum(sizes):11,d}{overlap:11,d}{seconds:11.1f}"
            f"{2 * estimate_instance_count(size, distinct):11.3g}{space:11.3g}"
        )
        print(f"{card.name:26s}{tier:8s}{shares}{counts}", flush=True)
        if solved < size or overlap or (math.isinf(space) and distinct < 0.99 * size):
            failed.append(f"{card.name} {tier}")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def check(
    task_id: str, tier: str, count: int, compared: int, seconds: float
) -> tuple[int, int, list[int], int]:
    """Generate and solve instances of one tier.

    Returns:
        How many of the first ``count`` train instances were solved, and how many of them are
        distinct; the number of instances of each split, at most ``compared`` unless ``count`` is
        larger; the overlap of the splits.
    """
    puzzle = puzzle_of(task_id, tier)
    solved, first, sizes = 0, set(), []
    forms: list[set[bytes | int]] = []
    """Canonical forms and hashes of questions, for each split."""
    for split in SPLITS:
        split_forms: set[bytes | int] = set()
        limit = max(compared, count) if split == "train" else compared
        start, seed = time.process_time(), 0
        while seed < limit and time.process_time() - start < seconds:
            instance = puzzle.generate(seed, split)
            form = puzzle.canonical(instance)
            split_forms |= {form, hash(puzzle.question(instance))}
            if split == "train" and seed < count:
                solved += puzzle.verify(instance, puzzle.solve(instance)).solved
                first.add(form)
            seed += 1
        forms.append(split_forms)
        sizes.append(seed)
    return solved, len(first), sizes, len(set.intersection(*forms))


def estimate_instance_count(sample_size: int, distinct: int) -> float:
    """Estimate the number N of equally likely instances from the distinct ones of a sample.

    The sample holds ``sample_size`` instances.

    N solves N (1 - exp(-sample_size / N)) = distinct, here by bisection.
    """
    if distinct == sample_size:
        return math.inf
    low, high = float(distinct), float(sample_size) ** 2
    while high - low > 1e-4 * low:
        middle = (low + high) / 2
        low, high = (
            (low, middle)
            if middle * -math.expm1(-sample_size / middle) > distinct
            else (middle, high)
        )
    return low


if __name__ == "__main__":
    main()
