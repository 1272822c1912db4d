"""Verify archives with bytes flipped at random places, many in turn until one ends the process.

``python fuzzing.py FOLDER FIRST`` verifies the archives of a folder from number FIRST on, a line
each on stdout.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from forgery import Forgery


def damage(honest: Path, seed: int) -> tuple[str, bytes]:
    """Return the archive with one to three bytes changed, and where.

    They lie in the zip, the claims, or a table (often its footer).
    """
    dice = random.Random(seed)
    forged = Forgery(honest)
    place = dice.choice(["zip", "submission.json", "table", "footer", "footer"])
    if place == "zip":
        data = bytearray(honest.read_bytes())
        _flip(data, dice, dice.choice([0, len(data) - 400]))
        return place, bytes(data)
    name = (
        place
        if place == "submission.json"
        else dice.choice([n for n in forged.members if n.endswith(".parquet")])
    )
    data = bytearray(forged.members[name])
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    _flip(data, dice, footer if place == "footer" else 0)
    forged.members[name] = bytes(data)
    path = honest.with_name(f"damaged-{seed}.zip")
    content = forged.write_members(path).read_bytes()
    path.unlink()
    return f"{place} of {name}", content


def _flip(data: bytearray, dice: random.Random, first: int) -> None:
    for _ in range(dice.choice([1, 1, 2, 3])):
        data[dice.randrange(first, len(data))] ^= dice.choice(
            [1 << dice.randrange(8), dice.randrange(1, 256)]
        )


def main() -> None:
    from rlbench_suite.leaderboard.verify import verify

    folder, first = Path(sys.argv[1]), int(sys.argv[2])
    for path in sorted(folder.glob("*.zip"))[first:]:
        try:
            print(verify(path).model_dump_json(), flush=True)
        except Exception as error:  # the process of one archive makes a rejection of it
            print(f"raised {type(error).__name__}", flush=True)


if __name__ == "__main__":
    main()
