"""Questions a second of reasoning-gym; ``puzzles.py`` runs this in an environment of its own.

    python puzzles_peer.py SECONDS NAME JSON ...   # prints generated and verified a second, a line for each name

JSON is the dataset's configuration. Generated are question and answer; verified is that answer.
"""

import json
import sys
import time

import reasoning_gym


def main(seconds: float, names: list[str], configurations: list[str]) -> None:
    """A line for each."""
    for name, configuration in zip(names, configurations, strict=True):
        data = reasoning_gym.create_dataset(name, size=1_000_000, seed=1, **json.loads(configuration))
        entries = [data[0]]
        begun = time.perf_counter()
        while (spent := time.perf_counter() - begun) < seconds:
            entries.append(data[len(entries)])
        made = (len(entries) - 1) / spent
        count, begun = 0, time.perf_counter()
        while (spent := time.perf_counter() - begun) < seconds:
            for entry in entries[:100]:
                data.score_answer(answer=entry["answer"], entry=entry)
            count += len(entries[:100])
        print(made, count / spent, flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2::2], sys.argv[3::2])
