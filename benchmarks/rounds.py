"""How often something can be done, where the machine is not always as fast. Needs nothing, for peers use it too."""

import time
from collections.abc import Callable


def rate(work: Callable[[], None], seconds: float, rounds: int) -> float:
    """Times a second of processor time, in the best of the rounds that share the seconds."""
    best = 0.0
    for _ in range(rounds):
        count, begun = 0, time.process_time()
        while (spent := time.process_time() - begun) < seconds / rounds:
            work()
            count += 1
        best = max(best, count / spent)
    return best
