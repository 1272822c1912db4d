"""Run the cells of a run on a Ray cluster.

Each worker is a Ray actor. It stays with one (agent, task) while it can, so that programs compile
once. It runs a cell in a folder of its own node and sends the finished files. Only this process
writes to the run directory, so the nodes need no shared disk, and each result is stored once, no
matter how often its cell ran.
"""

from __future__ import annotations

import logging
import math
import os
import re
import signal
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import rlbench_suite
from rlbench_suite.contexts.context import Context, keep
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.evaluation.cell import Cell, CellSpec, Event
from rlbench_suite.evaluation.runs.manifest import Manifest
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.runner import perform
from rlbench_suite.evaluation.runs.workers import LOG, SILENCE, Worker, supervise
from rlbench_suite.foundation.atomic_files import CannotWrite

CRASHES = 3
"""Number of crashes of its worker after which a cell is reported as failed."""

_LOSSES = 10
"""Number of lost nodes after which a cell is reported as failed. They rarely are its fault."""

_ENDS = 10
"""Number of processes that end before the cell begins, after which it is reported as failed."""

_RESOURCE_UNITS = 10_000
"""Ray counts resources in parts of one ten-thousandth."""

_RECOUNT = 2.0
"""Seconds between two looks at the nodes and their resources."""

_LOST = "its node was lost"
_ENDED = "its process ended before the cell began"
"""Fault of a worker that never said where it is: the process or the node was lost."""

_THREADS = (
    "XLA_PYTHON_CLIENT_PREALLOCATE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
    "PJRT_NPROC", "JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS",
)  # fmt: skip
"""Variables of ``cli.prepare_jax`` that workers of an existing cluster get.

JAX goes without its cache where the folder cannot be made.
"""


class Resources(NamedTuple):
    """Resources that Ray reserves for each cell while it runs."""

    cpus: float = 1.0
    gpus: float = 0.0
    memory: float = 0.0
    """Memory in GiB."""

    def needs(self) -> dict[str, float]:
        """Return the amounts above zero by Ray's names; memory in bytes."""
        amounts = {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory * 2**30}
        return {name: amount for name, amount in amounts.items() if amount}


def in_cluster(
    run: OpenRun,
    resources: Resources,
    address: str | None = None,
    workers: int | None = None,
    *,
    silence: float = SILENCE,
) -> Generator[Event, None, None]:
    """Run the missing cells on a Ray cluster.

    A worker that is silent for too long is killed. The cell of a lost worker is tried again. It is
    reported as failed after three crashes of its worker or the loss of ten nodes. Nodes may join
    and leave at any time.

    Args:
        run: the open run directory.
        resources: resources of each cell.
        address: address of an existing cluster, or ``auto``; None starts a cluster of this machine,
            which ends with the run.
        workers: number of cells at a time. Those without room wait for new nodes. None means as
            many as have room.
        silence: seconds without a sign of life after which a worker is killed.

    Raises:
        CannotWrite: a result cannot be stored.
        ValueError: the address is none.
        OSError: there is no cluster at the address, or no node of the cluster has the resources of
            a cell. It is raised at once, before the first event is asked for.
    """
    with ExitStack() as opened:
        opened.enter_context(_connection(address))
        _check_room(resources, _nodes())
        # Workers of a cluster that begins here inherit this process's variables, and then start
        # four seconds sooner.
        environment = (
            {name: os.environ[name] for name in _THREADS if name in os.environ} if address else {}
        )
        return _inside(
            opened.pop_all(), _supervise_actors(run, resources, environment, workers, silence)
        )


def _inside(
    connection: ExitStack, events: Generator[Event, None, None]
) -> Generator[Event, None, None]:
    """Pass on the events, then leave the cluster."""
    with connection:
        yield from events


@contextmanager
def _connection(address: str | None) -> Iterator[None]:
    handler = signal.getsignal(signal.SIGTERM)
    import ray

    if address and address != "auto" and ":" not in address:
        raise ValueError(
            "The address of a Ray cluster is HOST:PORT, as 10.0.0.1:6379, or auto, got "
            f"{address!r}."
        )
    if address and (server := re.fullmatch(r"([^/]+):(\d+)", address)):
        try:
            # Ray would try for minutes.
            socket.create_connection((server[1], int(server[2])), timeout=10).close()
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise OSError(f"Cannot connect to a Ray cluster at {address}: {reason}.") from None
    # Ray would report its use over the network.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    dashboard = None if address else False
    try:
        ray.init(
            address or "local",
            log_to_driver=False,
            logging_level=logging.ERROR,
            include_dashboard=dashboard,
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        if address == "auto":
            raise OSError(
                "No Ray cluster runs on this machine, so --address auto finds none. Start one with "
                "`ray start --head`, name another one as HOST:PORT, or leave --address out to use "
                "this machine alone."
            ) from None
        reason = str(error).splitlines()[0].rstrip(".")
        raise OSError(
            f"Cannot connect to a Ray cluster at {address or 'this machine'}: {reason}."
        ) from None
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)  # Ray has set one of its own
    try:
        yield
    finally:
        ray.shutdown()


def _supervise_actors(
    run: OpenRun,
    resources: Resources,
    environment: Mapping[str, str],
    workers: int | None,
    silence: float,
) -> Generator[Event, None, None]:
    # Not before: the run may get its saved policies until now.
    crew = _Cluster(run, resources, environment, workers)
    yield from supervise(run, crew, silence)


class _Cluster:
    """Crew of actors of the cluster.

    Args:
        run: the open run directory.
        resources: resources of each cell.
        environment: variables of the actors' processes.
        workers: number of cells at a time; None means as many as have room.
    """

    def __init__(
        self,
        run: OpenRun,
        resources: Resources,
        environment: Mapping[str, str],
        workers: int | None,
    ) -> None:
        import ray

        self.run = run
        self.resources = resources
        self.workers = workers
        self.faults: Counter[tuple[Cell, str]] = Counter()
        self.nodes = _nodes()
        self.counted = -math.inf
        """Time when the nodes were counted."""
        self.lost_nodes = 0
        self.room = 0
        """Number of cells that the nodes have room for."""
        self._actor_class = ray.remote(
            num_cpus=resources.cpus, num_gpus=resources.gpus, memory=int(resources.memory * 2**30),
            runtime_env={"env_vars": environment} if environment else {},
        )(_Player)  # fmt: skip
        checkpoints = {
            name: (run.path / "checkpoints" / name).read_bytes()
            for name in run.manifest.checkpoints
        }
        contexts = [
            context for task in run.manifest.references if (context := find_card(task).context)
        ]
        self._arguments = ray.put(run.manifest), ray.put(checkpoints), ray.put(contexts)

    def size(self) -> int:
        if time.monotonic() - self.counted > _RECOUNT:  # nodes join and leave
            earlier_nodes = self.nodes
            self.nodes = _nodes()
            self.counted = time.monotonic()
            self.lost_nodes += len(earlier_nodes.keys() - self.nodes.keys())
            # The only worker waits for a node.
            self.room = max(1, _room(self.resources, self.nodes))
        return self.workers or self.room

    def hire(self) -> _Actor:
        return _Actor(self._actor_class.remote(*self._arguments), self)

    def wait(self, workers: Sequence[_Actor], seconds: float) -> list[_Actor]:
        import ray

        ready, _ = ray.wait([worker.events for worker in workers], timeout=seconds)
        return [worker for worker in workers if worker.events in ready]

    def reason_to_give_up(self, worker: _Actor, cell: Cell, fault: str) -> str | None:
        if worker.node is not None or fault != _LOST:  # else the cell had not begun
            self.faults[cell, fault] += 1
        count = self.faults[cell, fault]
        return (
            f"{fault}, {count} times"
            if count >= {_LOST: _LOSSES, _ENDED: _ENDS}.get(fault, CRASHES)
            else None
        )


class _Player:
    """Actor of a node of the cluster."""

    def __init__(
        self, manifest: Manifest, checkpoints: Mapping[str, bytes], contexts: Sequence[Context]
    ) -> None:
        self.manifest, self.checkpoints = manifest, checkpoints
        for context in contexts:  # the node has neither their files nor this machine's cache
            keep(context)

    def perform(self, spec: CellSpec) -> Iterator[tuple[Event, Any]]:
        """Run a cell and yield its events.

        They are ``started`` with the node, ``finished`` with files, ``failed`` with the log.

        A ``failed`` event takes the place of every error, so that an error of Ray means a lost
        worker.
        """
        import ray

        with tempfile.TemporaryDirectory(prefix="rlsuite-cell-") as folder:
            path = Path(folder)
            try:
                if rlbench_suite.__version__ != self.manifest.version:
                    raise ImportError(
                        f"the node has rlbench-suite {rlbench_suite.__version__}, the run is of "
                        f"{self.manifest.version}"
                    )
                (path / "checkpoints").mkdir()
                for name, content in self.checkpoints.items():
                    (path / "checkpoints" / name).write_bytes(content)
                run = OpenRun(path, self.manifest, (spec.cell,))
                for event in perform(spec, run):
                    attached: Any = None
                    if event.kind == "started":
                        attached = ray.get_runtime_context().get_node_id()
                    elif event.kind == "finished":
                        attached = {
                            file.name: file.read_bytes()
                            for file in run.cell_path(spec.cell).iterdir()
                        }
                    elif event.kind == "failed":
                        attached = (path / LOG).read_text()
                    yield event, attached
            except (ImportError, CannotWrite) as error:
                yield Event("failed", spec.cell, str(error)), ""


class _Actor(Worker):
    """Driver's side of an actor."""

    def __init__(self, actor: Any, cluster: _Cluster) -> None:
        super().__init__()
        self.actor = actor
        self.cluster = cluster
        self.events: Any = None
        self.node: str | None = None
        """Id of the node of the actor; None until it has said that it has begun."""
        self.nodes_lost_before = cluster.lost_nodes
        """Nodes lost before it was made.

        If another is lost and it has no node yet, that may have been its own.
        """

    def begin(self, spec: CellSpec) -> None:
        super().begin(spec)
        self.events = self.actor.perform.remote(spec)

    def listen(self) -> Generator[Event, None, str | None]:
        """Pass on the next event; store the cell first if it is finished.

        Return the fault if the worker is dead.
        """
        import ray
        from ray.exceptions import ActorDiedError, RayError

        try:
            event, attached = ray.get(next(self.events))
        except ActorDiedError as error:
            if error.actor_init_failed:
                return (
                    f"its worker cannot start on the node ({str(error).strip().splitlines()[-1]})"
                )
            if self.node is None:
                return _ENDED
            # The cluster knows that the process is gone. If its node lives, the process alone died.
            crashed = any(node["NodeID"] == self.node and node["Alive"] for node in ray.nodes())
            return "its process died (Ray's log of its node has more)" if crashed else _LOST
        except (RayError, StopIteration):  # nothing answers, or a message was lost with its node
            return _LOST if self.node else _ENDED
        self.unheard_seconds = 0.0
        if event.kind == "started" and attached:
            self.node = attached
        if event.kind == "finished":
            event = event._replace(value=self.cluster.run.adopt(event.cell, attached))
        elif event.kind == "failed":
            self.cluster.run.record_failure(event.cell, str(event.value))
            with suppress(OSError), (self.cluster.run.path / LOG).open("a") as log:
                log.write(attached)
        if event.kind in ("finished", "failed"):
            self.cell = None
        yield event
        return None

    def find_fault(self, seconds: float, silence: float) -> str | None:
        """Return a fault as every worker does.

        Silence counts only once the worker has a place on a node.

        Its node was lost, or may have been: Ray may never report a node lost while a worker began.
        """
        if self.node is None:
            return _LOST if self.cluster.lost_nodes > self.nodes_lost_before else None
        return super().find_fault(seconds, silence) if self.node in self.cluster.nodes else _LOST

    def end(self) -> None:
        """End the worker; its node forgets the cell."""
        import ray
        from ray.exceptions import RayError

        with suppress(RayError, ValueError):
            ray.kill(self.actor)


def _nodes() -> dict[str, Mapping[str, float]]:
    """Return the resources of each node that lives, by its id."""
    import ray

    return {node["NodeID"]: node["Resources"] for node in ray.nodes() if node["Alive"]}


def _check_room(resources: Resources, nodes: Mapping[str, Mapping[str, float]]) -> None:
    """Raise :class:`OSError` if no node has room for a cell.

    The message names what the largest node has.
    """
    if not _room(resources, nodes):
        largest = max(
            nodes.values(),
            key=lambda has: [has.get(name, 0.0) for name in ("GPU", "CPU", "memory")],
            default={},
        )
        has = Resources(
            largest.get("CPU", 0.0), largest.get("GPU", 0.0), largest.get("memory", 0.0) / 2**30
        )
        needed, there = (
            f"{cpus:g} CPUs, {gpus:g} GPUs, {memory:.3g} GiB of memory"
            for cpus, gpus, memory in (resources, has)
        )
        raise OSError(
            f"No node of the cluster has room for a cell: {needed}. The largest node has {there}."
        )


def _room(resources: Resources, nodes: Mapping[str, Mapping[str, float]]) -> int:
    """Return the number of cells that all nodes together have room for."""
    needs = {name: round(amount * _RESOURCE_UNITS) for name, amount in resources.needs().items()}
    return sum(
        min(
            round(has.get(name, 0.0) * _RESOURCE_UNITS) // needed_units
            for name, needed_units in needs.items()
        )
        for has in nodes.values()
    )
