"""A process for each core, with one thread for its computations: how whole batches use a processor best.

A second thread of one process gains little where kernels take some microseconds each. An accelerator is one device,
which the calling process has to itself.
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
"""In a process of :class:`Cores`, the one they all know."""


class Cores:
    """The processes, of which an accelerator needs none; they live until the program ends."""

    def __init__(self) -> None:
        self.count = (os.cpu_count() or 1) if jax.default_backend() == "cpu" else 0
        context = multiprocessing.get_context("spawn")
        if self.count:
            self.processes = ProcessPoolExecutor(self.count, context, _prepare, (context.Barrier(self.count),))

    def sums(self, measure: Callable[..., list[float]], *arguments: Any) -> list[float]:
        """What ``measure(*arguments)`` gives in every process, added up; it calls :func:`wait_for_all`."""
        if not self.count:
            return measure(*arguments)
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
