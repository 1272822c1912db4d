"""Number of the context of an episode, for tasks on the host whose contexts are numbered."""

from __future__ import annotations

import numpy as np

from rlbench_suite.core.episode import ContextSource
from rlbench_suite.puzzle.dice import Dice


def context_number(
    source: ContextSource, key: np.ndarray, index: int, stream: int
) -> tuple[int, int]:
    """Return split and number of an episode's context.

    Args:
        source: split, and the number that was asked for; a negative one stands for none.
        key: two words of the seed from which the number is drawn otherwise, uint32.
        index: number of the episode.
        stream: number that separates the draws of a task from those of others.
    """
    number = int(source.context)
    if number < 0:
        high = int(key[0])
        low = int(key[1])
        number = Dice(stream, high << 32 | low, index).below(2**31)
    return int(source.split), number
