"""Whose episodes an entry plays: copies are found episode by episode, and the first to arrive has the claim."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import StringConstraints

DIGITS = 16
"""Hexadecimal digits that stand for the actions of one episode."""
LEAST_TELLING = 10
"""Equal episodes, each unlike all others of the task, from which a task counts as copied."""

Fingerprints = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{16})+$")]
"""Of the episodes of a cell, in the order of the protocol's seeds."""
Actions = Mapping[tuple[str, int], Fingerprints]
"""Fingerprints of all episodes of an entry, by task and training seed."""


def digest(rows: np.ndarray) -> str:
    """SHA-256 of rows of actions as stored: row after row, little-endian."""
    stored = np.ascontiguousarray(rows.astype(rows.dtype.newbyteorder("<"), copy=False))
    return hashlib.sha256(stored.tobytes()).hexdigest()


def by_episode(columns: Sequence[np.ndarray], lengths: np.ndarray) -> Fingerprints:
    """Fingerprints of episodes that lie one after another."""
    ends = np.cumsum(lengths, dtype=np.int64)
    rows = np.stack(columns, axis=-1)
    return "".join(digest(rows[end - n : end])[:DIGITS] for n, end in zip(lengths, ends, strict=True))


def episodes(mine: Actions) -> int:
    """Number of episodes."""
    return sum(len(text) // DIGITS for text in mine.values())


def shared(mine: Actions, theirs: Actions) -> int:
    """Number of episodes that two entries play with the same actions."""
    count = 0
    for cell in mine.keys() & theirs.keys():
        one, other = (np.frombuffer(text.encode(), f"S{DIGITS}") for text in (mine[cell], theirs[cell]))
        both = min(len(one), len(other))
        count += int((one[:both] == other[:both]).sum())
    return count


def copied_tasks(mine: Actions, earlier: Actions) -> dict[str, int]:
    """Tasks most of whose episodes are equal, and how many are.

    Actions that the earlier entry takes in several episodes of a task tell nothing: where every episode begins alike
    there may be one best play, and all who find it are equal. So some equal ones must be found once only.
    """
    found = {}
    for task in sorted({task for task, _ in mine} & {task for task, _ in earlier}):
        ours, theirs = ({cell: text for cell, text in all_.items() if cell[0] == task} for all_ in (mine, earlier))
        if 2 * (count := shared(ours, theirs)) > episodes(ours):
            times = Counter(one for text in theirs.values() for one in _each(text))
            telling = sum(
                one == other and times[other] == 1
                for cell in ours.keys() & theirs.keys()
                for one, other in zip(_each(ours[cell]), _each(theirs[cell]), strict=False)
            )
            if telling >= LEAST_TELLING:
                found[task] = count
    return found


def _each(text: Fingerprints) -> list[str]:
    return [text[i : i + DIGITS] for i in range(0, len(text), DIGITS)]


def is_copy(mine: Actions, earlier: Actions, *, same_entry: bool) -> bool:
    """Whether an entry is a copy of one that arrived before it: most of its episodes are equal.

    A new version of the same entry may keep what it likes of the old one, but not everything.
    """
    count, of = shared(mine, earlier), episodes(mine)
    return count == of if same_entry else 2 * count > of
