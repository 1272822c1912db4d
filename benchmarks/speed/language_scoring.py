"""Measure how many model replies are scored per second, and how long hostile replies take.

    python benchmarks/speed/language_scoring.py [--ids A-v0,B-v0]

One process scores replies to test rows of the default tier that came back from JSON, eight replies
a row, as the groups of a trainer are. The columns are replies per second by
``rlbench_suite.language.score``:

* ``right``: text, then the answer of the exact solver;
* ``other``: the answer to the row before, which the rules judge;
* ``guess``: a random answer of the right format;
* ``partial``: the same with partial credit;
* ``lenient``: the right answer in a code fence inside the tags, read leniently;
* ``fenced``: a random answer of the right format in a code fence, read leniently;
* ``hostile``: milliseconds of processor time for the slowest of the replies in :data:`HOSTILE`,
  strict or lenient.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from best_rate import rate

from rlbench_suite.core.registry import cards
from rlbench_suite.language import PuzzleDataset, score
from rlbench_suite.language.rows import Row, instance_of
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import CLOSING, OPENING

ROWS = 16
GROUP = 8
SECONDS = 0.2
ROUNDS = 3
COLUMNS = ("right", "other", "guess", "partial", "lenient", "fenced")

MEGABYTE = 1_000_000
HOSTILE: dict[str, str] = {
    "spaces": " " * MEGABYTE,
    "tags": (OPENING + CLOSING) * (MEGABYTE // 17),
    "openings": OPENING * (MEGABYTE // 8),
    "closings": CLOSING * (MEGABYTE // 9),
    "echoes": f"between {OPENING} and {CLOSING} " * (MEGABYTE // 30),
    "digits": OPENING + "9" * MEGABYTE + CLOSING,
    "long answer": OPENING + "1 " * 4_999 + CLOSING,
    "nesting": OPENING + "(" * 4_999 + "1" + ")" * 4_999 + CLOSING,
    "operators": OPENING + "1" + "+1" * 4_900 + CLOSING,
    "boxes": "\\boxed{" * (MEGABYTE // 7) + "}" * 1000,
    "thoughts": "<think>" * (MEGABYTE // 7) + f"{OPENING}1{CLOSING}",
    "unicode": OPENING + "\U0001f600\u0661\u202e" * (MEGABYTE // 3) + CLOSING,
    "short unicode": OPENING + "\u0661\uff11\u202e" * 3_000 + CLOSING,
    "fences": OPENING + "`" * 9_000 + CLOSING,
    "commas": OPENING + "1," * 4_900 + CLOSING,
    "lines": OPENING + "\n" * 9_900 + CLOSING,
}
"""Replies that are long, deeply nested or full of tags."""


def tag_answer(answer: str) -> str:
    return f"{OPENING}{answer}{CLOSING}"


def rates(rows: Sequence[Row]) -> list[float]:
    """Measure replies per second, a number for each of :data:`COLUMNS`."""
    instances = [instance_of(row) for row in rows]
    guesses = [
        puzzle.guess(instance, Dice(0, seed)) for seed, (puzzle, instance) in enumerate(instances)
    ]
    answers = [row["answer"] for row in rows]
    kinds: list[tuple[list[str], dict[str, bool]]] = [
        ([f"Let me think.\n{tag_answer(answer)}\nDone." for answer in answers], {}),
        ([tag_answer(answer) for answer in [answers[-1], *answers[:-1]]], {}),
        ([tag_answer(guess) for guess in guesses], {}),
        ([tag_answer(guess) for guess in guesses], {"partial": True}),
        ([tag_answer(f"```\n{answer}\n```") for answer in answers], {"lenient": True}),
        ([tag_answer(f"```\n{guess}\n```") for guess in guesses], {"lenient": True}),
    ]
    return [
        rate(scoring(rows, replies, reading), SECONDS, ROUNDS) * len(rows) * GROUP
        for replies, reading in kinds
    ]


def scoring(
    rows: Sequence[Row], replies: Sequence[str], reading: dict[str, bool]
) -> Callable[[], None]:
    """Return a function that scores each reply, :data:`GROUP` times."""
    pairs = [(row, reply) for row, reply in zip(rows, replies, strict=True) for _ in range(GROUP)]

    def work() -> None:
        for row, reply in pairs:
            score(row, reply, **reading)

    return work


def slowest(row: Row) -> tuple[float, str]:
    """Return the seconds that the slowest hostile reply takes, and its name."""
    times = []
    for name, reply in HOSTILE.items():
        for reading in (
            {},
            {"lenient": True},
            {"partial": True},
            {"lenient": True, "outside_thoughts": True},
        ):
            start = time.process_time()
            score(row, reply, **reading)
            times.append((time.process_time() - start, f"{name} {' '.join(reading)}"))
    return max(times)


def main() -> None:
    """Print a line for each puzzle, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ids", help="names of puzzles, separated by commas; all by default")
    options = parser.parse_args()
    names = (
        options.ids.split(",")
        if options.ids
        else [card.name for card in cards().values() if card.puzzle]
    )
    print(f"{'puzzle':22s}" + "".join(f"{column:>11s}" for column in COLUMNS) + "    hostile")
    table: list[Any] = []
    for name in names:
        rows = json.loads(json.dumps(PuzzleDataset(name, split="test", size=ROWS)[:]))
        seconds, worst = slowest(rows[0])
        table.append((*rates(rows), seconds * 1000))
        print(
            f"{name:22s}"
            + "".join(f"{value:11,.0f}" for value in table[-1][:-1])
            + f"{seconds * 1000:8.1f} ms, {worst}",
            flush=True,
        )
    medians = [statistics.median(column) for column in zip(*table, strict=True)]
    print(
        f"{'median':22s}"
        + "".join(f"{value:11,.0f}" for value in medians[:-1])
        + f"{max(row[-1] for row in table):8.1f} ms at most"
    )


if __name__ == "__main__":
    main()
