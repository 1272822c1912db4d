"""Questions a second of reasoning-gym; ``puzzles.py`` runs this in an environment of its own.

    python puzzles_peer.py SECONDS NAME JSON ...   # prints generated and verified a second, a line for each name

JSON is the dataset's configuration. Generated are question and answer; verified is that answer.
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
        count, begun = 0, time.process_time()
        while (spent := time.process_time() - begun) < seconds:
            for entry in entries:
                data.score_answer(answer=entry["answer"], entry=entry)
            count += len(entries)
        print(a_second, count / spent, flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2::2], sys.argv[3::2])
