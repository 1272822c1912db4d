"""Run the cells of a run in this process, or in a pool of watched local processes.

``ray_executor`` runs them in a cluster.

The process that runs a cell stores it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from rlbench_suite.core import registry
from rlbench_suite.core.agent import CannotPlay, Progress
from rlbench_suite.core.scale import ANCHORS
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.cell import Cell, CellSpec, Event
from rlbench_suite.evaluation.policy_files.checkpoint import Checkpoint
from rlbench_suite.evaluation.protocol import (
    EPISODES,
    TRAINING_SEEDS,
    Outcome,
    run_cell,
    training_task,
)
from rlbench_suite.evaluation.runs.language_model import LanguageModel
from rlbench_suite.evaluation.runs.manifest import CellResult, Manifest
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.players import find_player, line_up
from rlbench_suite.evaluation.runs.workers import LOG, SILENCE, Worker, supervise
from rlbench_suite.foundation.atomic_files import CannotWrite
from rlbench_suite.foundation.unknown_names import unknown
from rlbench_suite.language.chat import ChatError

_ATTEMPTS = 2
"""Faults of its workers after which a cell is reported as failed."""


def plan(
    agents: str,
    suite: str,
    seeds: int,
    budget: str,
    checkpoint: Checkpoint | None = None,
    model: LanguageModel | None = None,
) -> Manifest:
    """Check the request before anything runs, and return the manifest of the run.

    Args:
        agents: comma-separated names of agents.
        suite: comma-separated names of suites and ids.
        seeds: number of training seeds, 0 to ``seeds - 1``.
        budget: ``smoke``, ``quick`` or ``full``.
        checkpoint: a saved policy to evaluate instead of agents that train; ``agents`` is then
            ignored.
        model: a language model to evaluate instead of agents that train; ``agents`` is then
            ignored.

    Raises:
        ValueError: a name is unknown, a number out of range, a task was never calibrated or cannot
            be trained on another, the checkpoint is not for a task, or nothing is left to run.
        ImportError: an agent needs an extra that is not installed.
    """
    if budget not in EPISODES:
        raise ValueError(unknown("budget", budget, EPISODES))
    if not 1 <= seeds <= TRAINING_SEEDS:
        raise ValueError(
            f"The number of seeds is at most {TRAINING_SEEDS} and at least 1, got {seeds}."
        )
    cards = registry.resolve_suite(suite)
    lineup = line_up(agents, checkpoint, model)
    on_train = _tasks_on_train(suite, model)
    references = {}
    for card in cards:
        scores = lineup.anchors(card)
        if not {"random", "reference"} <= scores.keys():
            raise ValueError(
                f"{card.id} has no measured reference scores; run: {card.measuring_command}"
            )
        references[card.id] = {
            player: vars(scores[player]) for player in ANCHORS if player in scores
        }
    hyperparameters: dict[str, dict[str, Any]] = {name: {} for name in lineup.players}
    not_applicable: dict[str, dict[str, str]] = {}
    for name, player in lineup.players.items():
        for card in cards:
            try:
                _check_installed(card)
                trained = training_task(card.build())
                player.check(trained)
                if checkpoint:
                    next(iter(player.train(trained, seed=0, budget=budget)))  # it can be read
                hyperparameters[name][card.id] = player.hyperparameters(trained, budget)
            except CannotPlay as reason:
                not_applicable.setdefault(name, {})[card.id] = str(reason)
    if not any(hyperparameters.values()):
        reasons = [
            f"{task}: {why.rstrip('.')}"
            for tasks in not_applicable.values()
            for task, why in tasks.items()
        ]
        raise ValueError(
            f"None of the agents ({', '.join(lineup.players)}) can play any of the tasks: "
            f"{'; '.join(reasons)}."
        )
    return Manifest.now(
        budget=budget,
        seeds=seeds,
        references=references,
        hyperparameters=hyperparameters,
        not_applicable=not_applicable,
        on_train=on_train,
        **lineup.manifest_entries,
    )


def _tasks_on_train(suite: str, model: LanguageModel | None) -> tuple[str, ...]:
    """Return the tasks on which agents are also evaluated on training contexts.

    Raises:
        ValueError: a language model is to be evaluated on them, but it does not train.
    """
    if registry.GENERALISATION not in map(str.strip, suite.split(",")):
        return ()
    if model:
        raise ValueError(
            f"A language model does not train here, so the suite {registry.GENERALISATION} has no "
            "meaning."
        )
    return registry.suites()[registry.GENERALISATION]


def _check_installed(card: TaskCard) -> None:
    """Raise :class:`CannotPlay` if a task's simulator is not installed.

    The rest of the suite can run then.
    """
    if card.host:
        simulated: Any = card.build()
        try:
            simulated.simulator().close()
        except ImportError as error:
            raise CannotPlay(str(error)) from None


CellRunner = Callable[[CellSpec, OpenRun], Iterator[Any]]
"""Runs and stores a cell; yields its progress and, last, its :class:`CellResult`."""


def train_cell(spec: CellSpec, run: OpenRun) -> Iterator[Progress | CellResult]:
    """Train and evaluate the agent of a cell, and store the result.

    Yield ``Progress`` and, last, the result.

    Raises:
        CannotWrite: the result cannot be stored.
        ValueError: as :func:`~rlbench_suite.evaluation.protocol.run_cell`.
    """
    import jax

    agent = find_player(spec.agent, run)
    task = registry.card(spec.task).build()
    for event in run_cell(agent, task, spec):
        if isinstance(event, Outcome):
            yield run.write(spec.cell, event, agent, task, jax.devices()[0].device_kind)
        else:
            yield event


def perform(spec: CellSpec, run: OpenRun, cell_runner: CellRunner = train_cell) -> Iterator[Event]:
    """Run and store one cell in this process.

    Errors of the agent or the task become a ``failed`` event.

    Args:
        spec: the cell and its settings.
        run: the run that stores its result.
        cell_runner: runs and stores the cell.

    Raises:
        CannotWrite: the result cannot be stored.
        ChatError: the server of a language model cannot be used.
    """
    cell = spec.cell
    yield Event("started", cell)
    try:
        for event in cell_runner(spec, run):
            yield Event("finished" if isinstance(event, CellResult) else "progress", cell, event)
    except (CannotWrite, ChatError):  # the next cells could not be stored or played either
        raise
    except Exception as error:
        with suppress(OSError), (run.path / LOG).open("a") as log:
            log.write(f"\n{cell}\n{traceback.format_exc()}")
        run.record_failure(cell, f"{type(error).__name__}: {error}")
        yield Event("failed", cell, f"{type(error).__name__}: {error}")


def in_process(run: OpenRun, model: LanguageModel | None = None) -> Generator[Event, None, None]:
    """Run the missing cells one after another in this process, without a watchdog.

    Args:
        run: the open run directory.
        model: the language model that plays them; None if the run's agents do.

    Raises:
        CannotWrite: a result cannot be stored.
        ChatError: the server of the language model cannot be used.
    """
    cell_runner: CellRunner = model.play_cell if model else train_cell
    for cell in run.missing():
        yield from perform(run.manifest.spec(cell), run, cell_runner)


def in_pool(
    run: OpenRun, workers: int, *, silence: float = SILENCE
) -> Generator[Event, None, None]:
    """Run the missing cells in ``workers`` fresh processes.

    The cell of a worker that is silent for too long, or dies, is tried once more and then reported
    as failed.

    Args:
        run: the open run directory.
        workers: number of processes, at least 1.
        silence: seconds without a sign of life after which a worker is killed.

    Raises:
        CannotWrite: a result cannot be stored; all workers are ended.
    """
    yield from supervise(run, _Pool(run, workers), silence)


class _Pool:
    """Crew of processes of this machine."""

    def __init__(self, run: OpenRun, workers: int) -> None:
        self.run = run
        self.workers = workers
        self.faults: Counter[Cell] = Counter()

    def size(self) -> int:
        return self.workers

    def hire(self) -> _Process:
        return _Process(self.run)

    def wait(self, workers: Sequence[_Process], seconds: float) -> list[_Process]:
        ready = wait([worker.connection for worker in workers], seconds)
        return [worker for worker in workers if worker.connection in ready]

    def reason_to_give_up(self, worker: _Process, cell: Cell, fault: str) -> str | None:
        self.faults[cell] += 1
        return f"{fault}, {_ATTEMPTS} times" if self.faults[cell] >= _ATTEMPTS else None


class _Process(Worker):
    """Spawned process of this machine. A forked process would hang in JAX."""

    def __init__(self, run: OpenRun) -> None:
        super().__init__()
        context = multiprocessing.get_context("spawn")
        self.connection, worker_connection = context.Pipe()
        self.process = context.Process(
            target=_serve, args=(worker_connection, run.path, run.manifest), daemon=True
        )
        # Ctrl-C reaches every process of the terminal. The workers inherit the handler that ignores
        # it.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self.process.start()
        finally:
            signal.signal(signal.SIGINT, handler)
        worker_connection.close()

    def begin(self, spec: CellSpec) -> None:
        super().begin(spec)
        with suppress(OSError):  # it died while idle, which `listen` will notice
            self.connection.send(spec)

    def listen(self) -> Generator[Event, None, str | None]:
        """Pass on the worker's next event.

        Return a description of the fault if the worker is dead.
        """
        try:
            event: Event | CannotWrite = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            return f"its process died (exit code {self.process.exitcode}; see {LOG})"
        if isinstance(event, CannotWrite):
            raise event
        self.unheard_seconds = 0.0
        if event.kind in ("finished", "failed"):
            self.cell = None
        yield event
        return None

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def _leave_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _serve(connection: Connection, path: Path, manifest: Manifest) -> None:
    """Run cells in a worker until its parent closes the connection or dies."""
    threading.Thread(
        target=_leave_with, args=(multiprocessing.parent_process(),), daemon=True
    ).start()
    log = os.open(path / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(log, stream.fileno())
    run = OpenRun(path, manifest)
    while True:
        spec = connection.recv()
        try:
            for event in perform(spec, run):
                connection.send(event)
        except CannotWrite as error:
            connection.send(error)
