"""Find copied entries by comparing the actions of each episode.

The first entry to arrive counts as the original.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import StringConstraints

DIGITS = 16
"""Number of hexadecimal digits in the fingerprint of an episode."""
MIN_TELLING_EPISODES = 10
"""Number of equal episodes, each unlike all others of the task, from which a task counts as copied.
"""

Fingerprints = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{16})+$")]
"""Fingerprints of the episodes of a cell, one after another, in the order of the protocol's seeds.
"""
Actions = Mapping[tuple[str, int], Fingerprints]
"""Fingerprints of all episodes of an entry, by task and training seed."""


def digest(rows: np.ndarray) -> str:
    """Return the SHA-256 of actions as they are stored: row by row, little-endian."""
    stored = np.ascontiguousarray(rows.astype(rows.dtype.newbyteorder("<"), copy=False))
    return hashlib.sha256(stored.tobytes()).hexdigest()


def by_episode(columns: Sequence[np.ndarray], lengths: np.ndarray) -> Fingerprints:
    """Return the fingerprints of episodes from their concatenated actions and their lengths."""
    ends = np.cumsum(lengths, dtype=np.int64)
    rows = np.stack(columns, axis=-1)
    return "".join(
        digest(rows[end - n : end])[:DIGITS] for n, end in zip(lengths, ends, strict=True)
    )


def episodes(actions: Actions) -> int:
    """Return the number of episodes."""
    return sum(len(text) // DIGITS for text in actions.values())


def count_shared_episodes(actions: Actions, later_actions: Actions) -> int:
    """Return the number of episodes that two entries play with the same actions."""
    count = 0
    for cell in actions.keys() & later_actions.keys():
        first, second = (
            np.frombuffer(text.encode(), f"S{DIGITS}")
            for text in (actions[cell], later_actions[cell])
        )
        common_length = min(len(first), len(second))
        count += int((first[:common_length] == second[:common_length]).sum())
    return count


def copied_tasks(actions: Actions, earlier: Actions) -> dict[str, int]:
    """Return the tasks on which most episodes are equal, with the number of equal episodes.

    Actions that the earlier entry repeats in several episodes of a task are no evidence: if all
    episodes begin alike, there may be one best sequence, which everyone can find. So some equal
    episodes must occur only once.
    """
    copied = {}
    for task in sorted({task for task, _ in actions} & {task for task, _ in earlier}):
        ours, earlier_of_task = (
            {cell: text for cell, text in all_.items() if cell[0] == task}
            for all_ in (actions, earlier)
        )
        if 2 * (count := count_shared_episodes(ours, earlier_of_task)) > episodes(ours):
            times = Counter(
                episode
                for text in earlier_of_task.values()
                for episode in _split_fingerprints(text)
            )
            telling = sum(
                episode == earlier_episode and times[earlier_episode] == 1
                for cell in ours.keys() & earlier_of_task.keys()
                for episode, earlier_episode in zip(
                    _split_fingerprints(ours[cell]),
                    _split_fingerprints(earlier_of_task[cell]),
                    strict=False,
                )
            )
            if telling >= MIN_TELLING_EPISODES:
                copied[task] = count
    return copied


def _split_fingerprints(text: Fingerprints) -> list[str]:
    return [text[i : i + DIGITS] for i in range(0, len(text), DIGITS)]


def is_copy(actions: Actions, earlier: Actions, *, same_entry: bool) -> bool:
    """Return True if most episodes of an entry equal those of an earlier entry.

    A new version of the same entry may keep many episodes of the old one, but not all.
    """
    count, of = count_shared_episodes(actions, earlier), episodes(actions)
    return count == of if same_entry else 2 * count > of
