"""Measure rates on a machine with varying speed."""

import time
from collections.abc import Callable


def rate(work: Callable[[], None], seconds: float, rounds: int) -> float:
    """Return calls of ``work`` per second of processor time in the best of several rounds.

    The ``rounds`` rounds share ``seconds``.
    """
    best = 0.0
    for _ in range(rounds):
        count, start = 0, time.process_time()
        while (elapsed := time.process_time() - start) < seconds / rounds:
            work()
            count += 1
        best = max(best, count / elapsed)
    return best
