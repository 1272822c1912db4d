"""Measure how many puzzles reasoning-gym generates and verifies per second.

    python puzzles_peer.py SECONDS ROUNDS NAME JSON ...

``puzzles.py`` runs this file in an environment of its own. JSON is the configuration of the dataset NAME. A line for
each name shows, for the best round, entries generated, answers verified, and answers to the previous entry verified.
"""

import gc
import itertools
import json
import sys
from typing import Any

import reasoning_gym
from best_rate import rate

KEPT = 100


def main(seconds: float, rounds: int, names: list[str], configurations: list[str]) -> None:
    """Print a line for each dataset."""
    for name, configuration in zip(names, configurations, strict=True):
        data = reasoning_gym.create_dataset(name, size=1_000_000, seed=1, **json.loads(configuration))
        entries: list[Any] = []
        places = itertools.count()
        gc.collect()
        gc.freeze()  # garbage collection skips imported modules

        def make(data: Any = data, places: Any = places, entries: list[Any] = entries) -> None:
            entry = data[next(places)]
            if len(entries) < KEPT:
                entries.append(entry)

        rates = [rate(make, seconds, rounds)]
        for shift in (0, 1):
            answers = [entries[k - shift]["answer"] for k in range(len(entries))]

            def score(data: Any = data, answers: Any = answers, entries: list[Any] = entries) -> None:
                for answer, entry in zip(answers, entries, strict=True):
                    data.score_answer(answer=answer, entry=entry)

            rates.append(rate(score, seconds, rounds) * len(entries))
        print(*rates, flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3::2], sys.argv[4::2])
