"""Questions a second of reasoning-gym; ``puzzles.py`` runs this in an environment of its own.

    python puzzles_peer.py SECONDS NAME JSON ...   # prints what is made and verified a second, a line for each name

JSON is the dataset's configuration. Made are question and answer; verified is that answer, then the entry before's.
"""

import gc
import json
import sys
import time

import reasoning_gym

KEPT = 100


def main(seconds: float, names: list[str], configurations: list[str]) -> None:
    """A line for each."""
    for name, configuration in zip(names, configurations, strict=True):
        data = reasoning_gym.create_dataset(name, size=1_000_000, seed=1, **json.loads(configuration))
        entries = [data[0]]
        gc.collect()
        gc.freeze()  # what was imported is not searched for garbage again and again
        made, begun = 0, time.process_time()
        while (spent := time.process_time() - begun) < seconds:
            made += 1
            entry = data[made]
            if made < KEPT:
                entries.append(entry)
        a_second = made / spent
        own, others = ([entries[k - shift]["answer"] for k in range(len(entries))] for shift in (0, 1))
        rates = []
        for answers in (own, others):
            count, begun = 0, time.process_time()
            while (spent := time.process_time() - begun) < seconds:
                for answer, entry in zip(answers, entries, strict=True):
                    data.score_answer(answer=answer, entry=entry)
                count += len(entries)
            rates.append(count / spent)
        print(a_second, *rates, flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2::2], sys.argv[3::2])
