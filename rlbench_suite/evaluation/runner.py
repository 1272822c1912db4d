"""Run the cells of a run: in this process, or in a pool of watched local processes (``ray_executor``: in a cluster).

An executor is a generator of :class:`Event`. The process that runs a cell stores it, so that the directory has the
whole state: closing the generator, or killing the program, loses the cells in progress and nothing else.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from functools import cache
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from rlbench_suite import registry
from rlbench_suite.agent import Agent, CannotPlay
from rlbench_suite.card import TaskCard, unknown
from rlbench_suite.evaluation import onnx_policy, shared_library
from rlbench_suite.evaluation.checkpoint import Checkpoint, SavedAgent
from rlbench_suite.evaluation.language_model import LanguageModel
from rlbench_suite.evaluation.manifest import Cell, CellSpec, Manifest
from rlbench_suite.evaluation.onnx_policy import OnnxAgent
from rlbench_suite.evaluation.protocol import EPISODES, TRAINING_SEEDS, Outcome, run_cell, training_task
from rlbench_suite.evaluation.run import Run
from rlbench_suite.evaluation.store import OpenRun
from rlbench_suite.evaluation.writing import CannotWrite
from rlbench_suite.language.chat import ChatError
from rlbench_suite.scale import ANCHORS

SILENCE = 180.0
"""Seconds without a sign of life, compilation included, after which a worker counts as stuck."""

LOG = "workers.log"
_ATTEMPTS = 2


class Event(NamedTuple):
    """Event in the life of a cell.

    ``value`` is None for ``started``, a ``Progress`` or ``Episodes``, the ``CellResult`` of a ``finished`` cell, and
    one sentence for ``retried`` and ``failed``.
    """

    kind: Literal["started", "progress", "finished", "retried", "failed"]
    cell: Cell
    value: Any = None


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
        checkpoint: a saved policy to evaluate instead of agents that train; ``agents`` is then ignored.
        model: a language model to evaluate instead of agents that train; ``agents`` is then ignored.

    Raises:
        ValueError: a name is unknown, a number out of range, a task was never calibrated or cannot be trained on
            another, the checkpoint is not for a task, or nothing is left to run.
        ImportError: an agent needs an extra that is not installed.
    """
    if budget not in EPISODES:
        raise ValueError(unknown("budget", budget, EPISODES))
    if not 1 <= seeds <= TRAINING_SEEDS:
        raise ValueError(f"The number of seeds is at most {TRAINING_SEEDS} and at least 1, got {seeds}.")
    cards = registry.resolve_suite(suite)
    players: Mapping[str, Any] = {model.name: model} if model else _players(agents, checkpoint)
    on_train = _on_train(suite, model)
    references = {}
    for card in cards:
        scores = model.anchors(card) if model else card.scores()
        if not {"random", "reference"} <= scores.keys():
            raise ValueError(f"{card.id} has no measured reference scores; run: {card.measuring_command}")
        references[card.id] = {player: vars(scores[player]) for player in ANCHORS if player in scores}
    hyperparameters: dict[str, dict[str, Any]] = {name: {} for name in players}
    not_applicable: dict[str, dict[str, str]] = {}
    for name, player in players.items():
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
        reasons = [f"{task}: {why.rstrip('.')}" for tasks in not_applicable.values() for task, why in tasks.items()]
        raise ValueError(f"None of the agents ({', '.join(players)}) can play any of the tasks: {'; '.join(reasons)}.")
    return Manifest.now(
        budget=budget,
        seeds=seeds,
        references=references,
        hyperparameters=hyperparameters,
        not_applicable=not_applicable,
        checkpoints={checkpoint.label: {"agent": checkpoint.agent, "sha256": checkpoint.sha256}} if checkpoint else {},
        models={model.name: {"model": model.endpoint.model, "base_url": model.endpoint.base_url}} if model else {},
        on_train=on_train,
    )


def _on_train(suite: str, model: LanguageModel | None) -> tuple[str, ...]:
    """Return the tasks on which agents are also evaluated on training contexts.

    Raises:
        ValueError: a language model is to be evaluated on them, but it does not train.
    """
    if registry.GENERALISATION not in map(str.strip, suite.split(",")):
        return ()
    if model:
        raise ValueError(
            f"A language model does not train here, so the suite {registry.GENERALISATION} has no meaning."
        )
    return registry.suites()[registry.GENERALISATION]


def _players(names: str, checkpoint: Checkpoint | None) -> dict[str, Agent]:
    """Return the checkpoint, or the agents of a comma-separated list, by their names in the run."""
    if checkpoint:
        return {checkpoint.label: SavedAgent(checkpoint, _agent(checkpoint.agent))}
    players = {name: _agent(name) for name in dict.fromkeys(filter(None, map(str.strip, names.split(","))))}
    if not players:
        raise ValueError(f"No agent named in {names!r}. Known: {', '.join(registry.agent_entry_points())}.")
    for name, player in players.items():
        if lacks := [part for part in ("check", "hyperparameters", "train", "save") if not hasattr(player, part)]:
            raise ValueError(f"The agent {name!r} is incomplete: it has no {' and no '.join(lacks)} (see agent.py).")
    return players


def _check_installed(card: TaskCard) -> None:
    """Raise :class:`CannotPlay` if a task's simulator is not installed, so that the rest of the suite can run."""
    if card.host:
        simulated: Any = card.build()
        try:
            simulated.simulator().close()
        except ImportError as error:
            raise CannotPlay(str(error)) from None


@cache
def _agent(name: str) -> Agent:
    if name == shared_library.NAME:
        return shared_library.ControllerAgent()
    return OnnxAgent() if name == onnx_policy.NAME else registry.agent(name)


def player(name: str, run: Run) -> Agent:
    """Return the agent of that name in a run: one of the registry, or a checkpoint."""
    checkpoint = run.checkpoint(name)
    return SavedAgent(checkpoint, _agent(checkpoint.agent)) if checkpoint else _agent(name)


def perform(spec: CellSpec, run: OpenRun, model: LanguageModel | None = None) -> Iterator[Event]:
    """Run and store one cell in this process. Errors of the agent or the task become a ``failed`` event.

    Args:
        spec: the cell and its settings.
        run: the run that stores its result.
        model: the language model that plays it; None if an agent of the run does.

    Raises:
        CannotWrite: the result cannot be stored.
        ChatError: the server of a language model cannot be used.
    """
    cell = spec.cell
    yield Event("started", cell)
    try:
        import jax

        agent: Any = model or player(cell.agent, run)
        task = registry.card(cell.task).build()
        play_itself = getattr(agent, "play", None)
        events: Iterator[Any] = (
            play_itself(task, seed=spec.seed, budget=spec.budget, folder=run.path)
            if play_itself
            else run_cell(agent, task, spec)
        )
        for event in events:
            if isinstance(event, Outcome):
                result = run.write(cell, event, agent, task, jax.devices()[0].device_kind)
            else:
                yield Event("progress", cell, event)
        yield Event("finished", cell, result)
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
    for cell in run.missing():
        yield from perform(run.manifest.spec(cell), run, model)


def in_pool(run: OpenRun, workers: int, *, silence: float = SILENCE) -> Generator[Event, None, None]:
    """Run the missing cells in ``workers`` fresh processes.

    A worker stays with one (agent, task) while it can, so that its programs compile once and its seeds run one after
    another. The largest groups come first, and idle workers help the largest one left. A worker that is silent for too
    long, or dies, is replaced. Its cell is tried once more and then reported as failed.

    Args:
        run: the open run directory.
        workers: number of processes, at least 1.
        silence: seconds without a sign of life after which a worker is killed.

    Raises:
        CannotWrite: a result cannot be stored; all workers are ended.
    """
    waiting = groups_of_missing(run)
    attempts: Counter[Cell] = Counter()
    team: list[_Process] = []
    try:
        while waiting or any(worker.cell for worker in team):
            attempts.update(hand_out(waiting, team, workers, lambda: _Process(run)))
            at_work = {worker.connection: worker for worker in team if worker.cell}
            longest, began = min(1.0, silence / 4), time.monotonic()
            ready = wait(at_work, longest)
            seconds = min(time.monotonic() - began, longest)
            for connection, worker in at_work.items():
                trouble = (yield from worker.listen()) if connection in ready else worker.is_silent(seconds, silence)
                if trouble and (lost := worker.cell):
                    worker.end()
                    team.remove(worker)
                    if result := run.result(lost):
                        yield Event("finished", lost, result)  # the worker died after it stored the result
                    elif attempts[lost] < _ATTEMPTS:
                        waiting.setdefault(lost[:2], []).insert(0, run.manifest.spec(lost))
                        yield Event("retried", lost, trouble)
                    else:
                        run.record_failure(lost, f"{trouble}, {_ATTEMPTS} times")
                        yield Event("failed", lost, f"{trouble}, {_ATTEMPTS} times")
    finally:
        for worker in team:
            worker.end()


def groups_of_missing(run: OpenRun) -> dict[tuple[str, str], list[CellSpec]]:
    """Return the missing cells by (agent, task), with the longest work first: learners, long horizons, many seeds."""
    groups: dict[tuple[str, str], list[CellSpec]] = {}
    for cell in run.missing():
        groups.setdefault(cell[:2], []).append(run.manifest.spec(cell))

    def size(group: tuple[str, str]) -> tuple[bool, int]:
        agent, task = group
        return player(agent, run).learns, registry.card(task).horizon * len(groups[group])

    return {group: groups[group] for group in sorted(groups, key=size, reverse=True)}


class Worker:
    """Worker that runs one cell at a time."""

    def __init__(self) -> None:
        self.cell: Cell | None = None
        self.group: tuple[str, str] | None = None
        self.unheard = 0.0
        """Seconds that were spent listening for it since its last sign of life."""

    def begin(self, spec: CellSpec) -> None:
        """Start to run a cell."""
        self.cell, self.group, self.unheard = spec.cell, spec[:2], 0.0

    def is_silent(self, seconds: float, silence: float) -> str | None:
        """Count seconds without a sign of life. Return a description of the fault if they are too many.

        Only seconds in which this process listened count. While it stores a result, or is stopped itself, healthy
        workers would seem silent.
        """
        self.unheard += seconds
        return f"gave no sign of life for {silence:g} s" if self.unheard > silence else None


AnyWorker = TypeVar("AnyWorker", bound=Worker)


def hand_out(
    waiting: dict[tuple[str, str], list[CellSpec]], team: list[AnyWorker], size: int, hire: Callable[[], AnyWorker]
) -> Iterator[Cell]:
    """Give every idle worker a cell of its own group, or of the first group without a worker, or of the largest.

    Args:
        waiting: cells to run by group; the ones handed out are removed.
        team: all workers; new ones are added.
        size: largest size of the team.
        hire: returns a new worker.

    Yields:
        Each cell that a worker has begun.
    """
    while waiting:
        worker = next((worker for worker in team if not worker.cell), None)
        if worker is None:
            if len(team) >= size:
                return
            team.append(worker := hire())
        taken = {other.group for other in team if other.cell}
        group = next((group for group in waiting if group not in taken), max(waiting, key=lambda g: len(waiting[g])))
        if worker.group in waiting:
            group = worker.group
        spec = waiting[group].pop(0)
        if not waiting[group]:
            del waiting[group]
        worker.begin(spec)
        yield spec.cell


class _Process(Worker):
    """Spawned process of this machine. A forked process would hang in JAX."""

    def __init__(self, run: OpenRun) -> None:
        super().__init__()
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, run.path, run.manifest), daemon=True)
        # Ctrl-C reaches every process of the terminal. The workers inherit the handler that ignores it.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self.process.start()
        finally:
            signal.signal(signal.SIGINT, handler)
        theirs.close()

    def begin(self, spec: CellSpec) -> None:
        super().begin(spec)
        with suppress(OSError):  # it died while idle, which `listen` will notice
            self.connection.send(spec)

    def listen(self) -> Generator[Event, None, str | None]:
        """Pass on the worker's next event. Return a description of the fault if the worker is dead."""
        try:
            event: Event | CannotWrite = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            return f"its process died (exit code {self.process.exitcode}; see {LOG})"
        if isinstance(event, CannotWrite):
            raise event
        self.unheard = 0.0
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
    threading.Thread(target=_leave_with, args=(multiprocessing.parent_process(),), daemon=True).start()
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
