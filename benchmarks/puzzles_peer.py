"""Questions a second of reasoning-gym; ``puzzles.py`` runs this in an environment of its own.

    python puzzles_peer.py SECONDS ROUNDS NAME JSON ...

Prints what is made and verified a second, a line for each name, in the best of the rounds.
JSON is the dataset's configuration. Made are question and answer; verified is that answer, then the entry before's.
"""

import gc
import itertools
import json
import sys
from typing import Any

import reasoning_gym
from rounds import rate

KEPT = 100


def main(seconds: float, rounds: int, names: list[str], configurations: list[str]) -> None:
    """A line for each."""
    for name, configuration in zip(names, configurations, strict=True):
        data = reasoning_gym.create_dataset(name, size=1_000_000, seed=1, **json.loads(configuration))
        entries: list[Any] = []
        places = itertools.count()
        gc.collect()
        gc.freeze()  # what was imported is not searched for garbage again and again

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
