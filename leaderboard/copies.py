"""Whose episodes an entry plays: copies are found episode by episode, and the first to arrive has the claim."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import StringConstraints

DIGITS = 16
"""Hexadecimal digits that stand for the actions of one episode."""

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


def is_copy(mine: Actions, earlier: Actions, *, same_entry: bool) -> bool:
    """Whether an entry is a copy of one that arrived before it: most of its episodes are equal.

    A new version of the same entry may keep what it likes of the old one, but not everything.
    """
    count, of = shared(mine, earlier), episodes(mine)
    return count == of if same_entry else 2 * count > of
