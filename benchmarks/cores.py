"""A process for each core, with one thread for its computations: how whole batches use a processor best.

A second thread of one process gains little where kernels take some microseconds each.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.synchronize import Barrier
from typing import Any

_barriers: list[Barrier] = []
"""In a process of :class:`Cores`, the one they all know."""


class Cores:
    """The processes; they live until the program ends."""

    def __init__(self) -> None:
        self.count = os.cpu_count() or 1
        context = multiprocessing.get_context("spawn")
        self.processes = ProcessPoolExecutor(self.count, context, _prepare, (context.Barrier(self.count),))

    def sums(self, measure: Callable[..., list[float]], *arguments: Any) -> list[float]:
        """What ``measure(*arguments)`` gives in every process, added up; it calls :func:`wait_for_all`."""
        rows = [self.processes.submit(measure, *arguments) for _ in range(self.count)]
        return [sum(column) for column in zip(*(row.result() for row in rows), strict=True)]


def wait_for_all() -> None:
    """Return when every process has come here, so that what is timed next runs in all at once; alone, at once.

    Raises:
        threading.BrokenBarrierError: another process has not come for ten minutes.
    """
    for barrier in _barriers:
        barrier.wait(600)


def _prepare(barrier: Barrier) -> None:
    """Before JAX is used."""
    os.environ["NPROC"] = "1"  # where XLA looks for how many
    _barriers.append(barrier)
