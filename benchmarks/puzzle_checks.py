"""Generators at scale: how many instances differ, whether the verifier takes the solver's answer, whether splits meet.

    python benchmarks/puzzle_checks.py [--ids A-v0,B-v0] [--seconds 60] [--count 10000]

For every puzzle and difficulty: of ``count`` train instances the share that differ by their canonical form, and of
those whose solver's answer scores 1; then how many canonical forms ``5 * count`` train instances share with as many of
the test split, which has to be none. Where a part would take longer than ``seconds`` of processor time it is cut short;
``instances`` says how many there were. A puzzle with few instances (``space``) repeats them.
"""

import argparse
import itertools
import time
from collections.abc import Iterator
from typing import Any

from rlbench_suite.puzzle import Puzzle
from rlbench_suite.puzzle_dataset import puzzle_of
from rlbench_suite.registry import cards


def instances(puzzle: Puzzle[Any], split: str, count: int, seconds: float) -> Iterator[Any]:
    """Those of seeds 0, 1, ... as far as time allows."""
    begun = time.process_time()
    for seed in range(count):
        if time.process_time() - begun > seconds:
            return
        yield puzzle.generate(seed, split)


def main() -> None:
    """A line for each puzzle and difficulty."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--ids", help="names of puzzles, separated by commas; all by default")
    parser.add_argument("--seconds", type=float, default=60.0, help="of processor time, for each part of a line")
    parser.add_argument(
        "--count", type=int, default=10_000, help="instances to solve; five times as many of each split"
    )
    options = parser.parse_args()
    known = [card for card in cards().values() if card.puzzle]
    wanted = options.ids.split(",") if options.ids else [card.name for card in known]
    columns = ("instances", "distinct", "solved", "train", "test", "in both", "space")
    print(f"{'puzzle':26s}{'tier':8s}" + "".join(f"{column:>11s}" for column in columns))
    failed = []
    for card, tier in itertools.product((card for card in known if card.name in wanted), ("easy", "medium", "hard")):
        puzzle = puzzle_of(card.id, tier)
        forms: list[bytes] = []
        right = 0
        for instance in instances(puzzle, "train", options.count, options.seconds):
            forms.append(puzzle.canonical(instance))
            right += puzzle.verify(instance, puzzle.solve(instance)).score == 1
        train, test = (
            {puzzle.canonical(instance) for instance in instances(puzzle, split, 5 * options.count, options.seconds)}
            for split in ("train", "test")
        )
        shares = f"{len(set(forms)) / len(forms):11.2%}{right / len(forms):11.2%}"
        counts = f"{len(train):11,d}{len(test):11,d}{len(train & test):11,d}{puzzle.space:11.4g}"
        print(f"{card.name:26s}{tier:8s}{len(forms):11,d}{shares}{counts}", flush=True)
        if right < len(forms) or train & test:
            failed.append(f"{card.name} {tier}")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
