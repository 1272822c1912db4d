"""Judge many replies in worker processes, each within a time limit."""

from __future__ import annotations

import multiprocessing
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, ClassVar

from rlbench_suite.language.lenient import find_answer
from rlbench_suite.language.rows import Completion, Row, instance_of, verdict
from rlbench_suite.puzzle.puzzle import Verdict

Task = tuple[int, Row, Completion]
"""A reply to judge: its number, its row, and the reply."""

CHUNK = 32
"""Number of replies that a worker gets at a time."""
READY = "ready"
"""Message of a worker that has started, and of one that has loaded the puzzles of its replies."""
_MAX_REASON_SIZE = 500
"""Number of characters of an error that a verdict repeats."""
_MAX_START_SECONDS = 120.0
"""Seconds within which a worker must have started, or loaded puzzles."""


NO_VERDICT = "this row cannot be judged: "
"""Beginning of the reason of a verdict on a reply whose row cannot be judged.

The row is no row, or has an instance that no generator has made.
"""

_LOST = Verdict(valid=False, solved=False, optimal=False, score=0.0, reason="")


class _Worker:
    """A process and what it is doing."""

    def __init__(self, process: Any, pipe: Connection) -> None:
        self.process = process
        self.pipe = pipe
        self.ready = False
        """Whether it has started and has loaded the puzzles of its replies.

        Loading has a limit of its own.
        """
        self.since = time.monotonic()
        """Time of the last sign of life."""
        self.tasks: deque[Task] = deque()
        """Replies that it has not judged yet, the current one first."""

    def deadline(self, seconds: float) -> float:
        """Return the time by which it must show a sign of life."""
        return self.since + (seconds if self.ready else _MAX_START_SECONDS)

    def give(self, tasks: list[Task]) -> None:
        """Hand it replies to judge.

        Raises:
            OSError: its process has ended.
        """
        self.pipe.send([(row, reply) for _, row, reply in tasks])
        self.tasks.extend(tasks)
        self.ready = False
        self.since = time.monotonic()

    def end(self) -> None:
        """End the process."""
        self.pipe.close()
        self.process.kill()
        self.process.join()


def _work(pipe: Connection, judge: Callable[..., Verdict], reading: Mapping[str, Any]) -> None:
    """Judge what comes through a pipe, one verdict after another, until it is closed."""
    pipe.send(READY)
    while True:
        try:
            tasks = pipe.recv()
        except EOFError:
            return
        for row, _ in tasks:
            with suppress(Exception):  # its reply meets the error again
                instance_of(row)
        pipe.send(READY)
        try:
            for row, reply in tasks:
                pipe.send(_judge_row(judge, row, reply, reading))
        except TypeError as error:
            pipe.send(error)


def _judge_row(
    judge: Callable[..., Verdict], row: Row, reply: Completion, reading: Mapping[str, Any]
) -> Verdict:
    """Judge a reply.

    A forged row has a verdict of its own, so that it refuses no other reply of its batch.

    Raises:
        TypeError: a completion of a wrong type, or an unknown keyword.
    """
    try:
        return judge(row, reply, **reading)
    except ValueError as error:
        return Verdict(False, False, False, 0.0, f"{NO_VERDICT}{str(error)[:_MAX_REASON_SIZE]}")


class Judge:
    """Workers that judge replies. Use it as a context manager, or :meth:`close` it.

    Workers are spawned, so a script that makes one needs ``if __name__ == "__main__":``. A reply
    that takes longer than the limit, or ends its worker, is invalid and scores 0; its worker is
    replaced. A reply to a row that cannot be judged is invalid too, and a warning tells how many
    there are.

    Args:
        processes: number of workers.
        seconds: time limit of a reply.
        reading: keywords of :func:`.rows.verdict`, such as ``lenient``.

    Raises:
        ValueError: no worker, a limit that is not positive, or wrong tags.
    """

    _judge: ClassVar[Callable[..., Verdict]] = staticmethod(verdict)

    def __init__(self, processes: int = 2, *, seconds: float = 5.0, **reading: Any) -> None:
        if processes < 1 or not seconds > 0:
            raise ValueError(
                f"A judge needs at least 1 process and more than 0 seconds, got {processes}, "
                f"{seconds}."
            )
        # Refuses wrong tags.
        find_answer("", **{name: value for name, value in reading.items() if name != "partial"})
        self.seconds = seconds
        self._reading = reading
        self._turn = threading.Lock()
        """Lock of the thread whose replies are judged.

        The answers of a worker do not say whose replies they are about.
        """
        self._workers = [self._start() for _ in range(processes)]

    def verdicts(self, rows: Iterable[Row], completions: Iterable[Completion]) -> list[Verdict]:
        """Judge each reply to its row; see :func:`.rows.verdict`.

        Verdicts are in the order of the replies.

        Threads that share a judge take turns.

        Raises:
            ValueError: not as many rows as completions, or the judge is closed.
            TypeError: a completion of a wrong type.
            RuntimeError: a worker did not start.
        """
        if not self._workers:
            raise ValueError("This judge is closed; make another.")
        tasks = [
            (number, row, reply)
            for number, (row, reply) in enumerate(zip(rows, completions, strict=True))
        ]
        chunks = deque(tasks[start : start + CHUNK] for start in range(0, len(tasks), CHUNK))
        verdicts: list[Verdict] = [_LOST] * len(tasks)
        with self._turn:
            try:
                self._judge_all(chunks, verdicts)
            except BaseException:
                # Verdicts on these replies must not be taken for those on later ones.
                self._workers = [
                    self._restart(worker) if worker.tasks else worker for worker in self._workers
                ]
                raise
        reasons = [judged.reason for judged in verdicts if judged.reason.startswith(NO_VERDICT)]
        if reasons:
            first = reasons[0].removeprefix(NO_VERDICT)
            warnings.warn(
                f"{len(reasons)} of {len(verdicts)} rows cannot be judged, and replies to them "
                f"score 0. The first: {first}",
                stacklevel=2,
            )
        return verdicts

    def _judge_all(self, chunks: deque[list[Task]], verdicts: list[Verdict]) -> None:
        """Judge replies and put the verdicts in their places."""
        error: Exception | None = None
        while (chunks and not error) or any(worker.tasks for worker in self._workers):
            for index, worker in enumerate(self._workers):
                if worker.ready and not worker.tasks and chunks and not error:
                    try:
                        worker.give(chunks[0])
                    except OSError:  # it was killed while it had nothing to do
                        self._workers[index] = self._restart(worker)
                    else:
                        chunks.popleft()
            busy = [worker for worker in self._workers if worker.tasks or not worker.ready]
            limit = min(worker.deadline(self.seconds) for worker in busy) - time.monotonic()
            wait([worker.pipe for worker in busy], max(limit, 0))
            for worker in busy:
                try:
                    error = self._take(worker, verdicts) or error
                    late = time.monotonic() > worker.deadline(self.seconds)
                    reason = (
                        f"judging this answer took longer than {self.seconds:g} s" if late else ""
                    )
                except (EOFError, OSError):
                    reason = "judging this answer ended its process"
                if reason:
                    self._replace(worker, reason, verdicts, chunks)
        if error:
            raise error

    def scores(self, rows: Iterable[Row], completions: Iterable[Completion]) -> list[float]:
        """Score each reply to its row, see :meth:`verdicts`."""
        return [judged.score for judged in self.verdicts(rows, completions)]

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.end()
        self._workers = []

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @staticmethod
    def _take(worker: _Worker, verdicts: list[Verdict]) -> Exception | None:
        """Take all that a worker has sent, and return the error if it met one."""
        while worker.pipe.poll():
            sent = worker.pipe.recv()
            worker.since = time.monotonic()
            if sent == READY:
                worker.ready = True
            elif isinstance(sent, Exception):
                worker.tasks.clear()
                worker.ready = True
                return sent
            else:
                verdicts[worker.tasks.popleft()[0]] = sent
        return None

    def _replace(
        self, worker: _Worker, reason: str, verdicts: list[Verdict], chunks: deque[list[Task]]
    ) -> None:
        """Replace a worker that hangs or has ended.

        The reply that it judged scores 0; others are judged again.

        Raises:
            RuntimeError: it had not even started.
        """
        if not worker.tasks:
            worker.end()
            raise RuntimeError(
                f"A process for judging did not start within {_MAX_START_SECONDS:g} s. A script "
                "needs `if __name__ == '__main__':` around its use of Judge."
            )
        guilty, *waiting = worker.tasks
        verdicts[guilty[0]] = Verdict(False, False, False, 0.0, reason)
        if waiting:
            chunks.appendleft(waiting)
        self._workers[self._workers.index(worker)] = self._restart(worker)

    def _restart(self, worker: _Worker) -> _Worker:
        """End a worker and start another."""
        worker.end()
        return self._start()

    def _start(self) -> _Worker:
        """Start a worker."""
        context = multiprocessing.get_context("spawn")
        our_end, worker_end = context.Pipe()
        process = context.Process(
            target=_work, args=(worker_end, type(self)._judge, self._reading), daemon=True
        )
        process.start()
        worker_end.close()
        return _Worker(process, our_end)
