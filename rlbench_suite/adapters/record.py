"""The record of finished episodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlbench_suite.core.arrays import Array


class Record(NamedTuple):
    """Finished episodes, batched on axis 0 (NumPy)."""

    total: np.ndarray
    """Undiscounted return, ``(n, *reward shape)``."""
    length: np.ndarray
    """Steps, int ``(n,)``."""
    terminated: np.ndarray
    """True if the task ended the episode, False if the time limit did; bool ``(n,)``."""
    info: dict[str, np.ndarray]
    """The last step's info (``success``, measures), each ``(n,)``."""
    cost: Array
    """Summed constraint cost of the task's dtype, ``(n,)``; zeros where the task has none."""
    actions: Array
    """``(n, horizon, *action shape)``; entries from ``length`` on are zeros."""
