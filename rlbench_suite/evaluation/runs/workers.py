"""Run the missing cells of a run with a crew of watched workers.

An executor is a function that takes an open run and yields an :class:`Event` for all that happens
to its missing cells (``runner.in_process``, ``runner.in_pool``, ``ray_executor.in_cluster``). The
directory has the whole state: closing the generator, or killing the program, loses the cells in
progress and nothing else.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Sequence
from typing import Protocol, TypeVar

from rlbench_suite.core.registry import card as find_card
from rlbench_suite.evaluation.cell import Cell, CellSpec, Event
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.players import find_player

SILENCE = 180.0
"""Seconds without a sign of life, compilation included, after which a worker counts as stuck."""

LOG = "workers.log"


class Worker(ABC):
    """Worker that runs one cell at a time."""

    def __init__(self) -> None:
        self.cell: Cell | None = None
        self.group: tuple[str, str] | None = None
        self.unheard_seconds = 0.0
        """Seconds that were spent listening for it since its last sign of life."""

    def begin(self, spec: CellSpec) -> None:
        """Start to run a cell."""
        self.cell = spec.cell
        self.group = spec[:2]
        self.unheard_seconds = 0.0

    @abstractmethod
    def listen(self) -> Generator[Event, None, str | None]:
        """Pass on the next event. Return a description of the fault if the worker is dead."""

    def find_fault(self, seconds: float, silence: float) -> str | None:
        """Count seconds without a sign of life.

        Return a description of the fault if they are too many.

        Only seconds in which this process listened count. While it stores a result, or is stopped
        itself, healthy workers would seem silent.
        """
        self.unheard_seconds += seconds
        return f"gave no sign of life for {silence:g} s" if self.unheard_seconds > silence else None

    @abstractmethod
    def end(self) -> None:
        """End the worker, whatever it does."""


AnyWorker = TypeVar("AnyWorker", bound=Worker)


class Crew(Protocol[AnyWorker]):
    """Source of workers of one kind: processes of this machine, or actors of a cluster."""

    def size(self) -> int:
        """Return the largest number of workers for now."""
        ...

    def hire(self) -> AnyWorker:
        """Return a new worker."""
        ...

    def wait(self, workers: Sequence[AnyWorker], seconds: float) -> Collection[AnyWorker]:
        """Return the workers that have an event, or died, as soon as there is one."""
        ...

    def reason_to_give_up(self, worker: AnyWorker, cell: Cell, fault: str) -> str | None:
        """Count a fault.

        Return why the cell is to be reported as failed, or None to try it again.
        """
        ...


def supervise(run: OpenRun, crew: Crew[AnyWorker], silence: float) -> Generator[Event, None, None]:
    """Run the missing cells of a run with a crew.

    A worker stays with one (agent, task) while it can, so that its programs compile once and its
    seeds run one after another. The largest groups come first, and idle workers help the largest
    one left. A worker that is silent for too long, or dies, is replaced, and its cell is tried
    again or reported as failed.

    Args:
        run: the open run directory.
        crew: source of the workers.
        silence: seconds without a sign of life after which a worker is killed.

    Raises:
        CannotWrite: a result cannot be stored; all workers are ended.
    """
    waiting = _group_missing(run)
    team: list[AnyWorker] = []
    try:
        while waiting or any(worker.cell for worker in team):
            _hand_out(waiting, team, crew.size(), crew.hire)
            busy = [worker for worker in team if worker.cell]
            longest = min(1.0, silence / 4)
            started = time.monotonic()
            ready = crew.wait(busy, longest)
            seconds = min(time.monotonic() - started, longest)
            for worker in busy:
                fault = (
                    (yield from worker.listen())
                    if worker in ready
                    else worker.find_fault(seconds, silence)
                )
                if fault and (cell := worker.cell):
                    team.remove(worker)
                    worker.end()
                    if result := run.result(cell):
                        # The worker died after it stored the result.
                        yield Event("finished", cell, result)
                    elif reason := crew.reason_to_give_up(worker, cell, fault):
                        run.record_failure(cell, reason)
                        yield Event("failed", cell, reason)
                    else:
                        waiting.setdefault(cell[:2], []).insert(0, run.manifest.spec(cell))
                        yield Event("retried", cell, fault)
    finally:
        for worker in team:
            worker.end()


def _group_missing(run: OpenRun) -> dict[tuple[str, str], list[CellSpec]]:
    """Return the missing cells by (agent, task), with the longest work first.

    Learners, long horizons and many seeds take longest.
    """
    groups: dict[tuple[str, str], list[CellSpec]] = {}
    for cell in run.missing():
        groups.setdefault(cell[:2], []).append(run.manifest.spec(cell))

    def size(group: tuple[str, str]) -> tuple[bool, int]:
        agent, task = group
        return find_player(agent, run).learns, find_card(task).horizon * len(groups[group])

    return {group: groups[group] for group in sorted(groups, key=size, reverse=True)}


def _hand_out(
    waiting: dict[tuple[str, str], list[CellSpec]],
    team: list[AnyWorker],
    size: int,
    hire: Callable[[], AnyWorker],
) -> None:
    """Give every idle worker a cell of its own group.

    Without one it takes a cell of the first group without a worker, or of the largest.

    Args:
        waiting: cells to run by group; the ones handed out are removed.
        team: all workers; new ones are added.
        size: largest size of the team.
        hire: returns a new worker.
    """
    while waiting:
        worker = next((worker for worker in team if not worker.cell), None)
        if worker is None:
            if len(team) >= size:
                return
            team.append(worker := hire())
        busy_groups = {colleague.group for colleague in team if colleague.cell}
        largest = max(waiting, key=lambda group: len(waiting[group]))
        group = next((group for group in waiting if group not in busy_groups), largest)
        if worker.group in waiting:
            group = worker.group
        spec = waiting[group].pop(0)
        if not waiting[group]:
            del waiting[group]
        worker.begin(spec)
