"""Measure rates on a machine with varying speed."""

import time
from collections.abc import Callable


def rate(work: Callable[[], None], seconds: float, rounds: int) -> float:
    """Return calls of ``work`` per second of processor time in the best of ``rounds`` rounds that share ``seconds``."""
    best = 0.0
    for _ in range(rounds):
        count, begun = 0, time.process_time()
        while (spent := time.process_time() - begun) < seconds / rounds:
            work()
            count += 1
        best = max(best, count / spent)
    return best
