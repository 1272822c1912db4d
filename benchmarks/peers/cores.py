"""Run measurements in one single-threaded process for each core.

Batches use a processor best this way.

A second thread in one process gains little if kernels take some microseconds each. With an
accelerator, the calling process measures alone.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.synchronize import Barrier
from typing import Any

import jax

_barriers: list[Barrier] = []
"""In a process of :class:`Cores`, the barrier that all of them share; otherwise empty."""


class Cores:
    """Pool of one process for each core, or of none with an accelerator.

    It lives until the program ends.
    """

    def __init__(self) -> None:
        self.count = (os.cpu_count() or 1) if jax.default_backend() == "cpu" else 0
        context = multiprocessing.get_context("spawn")
        if self.count:
            self.processes = ProcessPoolExecutor(
                self.count, context, _prepare, (context.Barrier(self.count),)
            )

    def sums(self, measure: Callable[..., list[float]], *arguments: Any) -> list[float]:
        """Call ``measure(*arguments)`` in every process and add up the results.

        The function must call :func:`wait_for_all`.
        """
        if not self.count:
            return measure(*arguments)
        rows = [self.processes.submit(measure, *arguments) for _ in range(self.count)]
        return [sum(column) for column in zip(*(row.result() for row in rows), strict=True)]


def wait_for_all() -> None:
    """Wait until every process has called this, so that all start timing together.

    Outside a pool, return at once.

    Raises:
        threading.BrokenBarrierError: a process has not arrived within ten minutes.
    """
    for barrier in _barriers:
        barrier.wait(600)


def _prepare(barrier: Barrier) -> None:
    """Limit XLA to one thread, before JAX is used."""
    os.environ["NPROC"] = "1"  # XLA reads its number of threads here
    _barriers.append(barrier)
