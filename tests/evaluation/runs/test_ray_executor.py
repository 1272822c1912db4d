"""The Ray executor on a real cluster of two nodes: the same tables, whatever dies on the way."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlbench_suite.evaluation.cell import Cell, CellSpec
from rlbench_suite.evaluation.runs import ray_executor
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.ray_executor import CRASHES, Resources, in_cluster
from rlbench_suite.evaluation.runs.runner import Event, in_pool, in_process, plan

ray = pytest.importorskip("ray")
SUITE = "ToyWalk-v0,ToyDrift-v0"
WALK = "rlsuite/ToyWalk-v0"


class TwoNodes:
    """A cluster of a head without room for cells, and of nodes that can be killed."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
        )
        self.nodes: list[Any] = []
        self.grow(2)

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def grow(self, size: int) -> None:
        while len(self.nodes) < size:
            self.nodes.append(self.cluster.add_node(num_cpus=1))
        self.cluster.wait_for_nodes()

    def kill(self, node_id: str) -> None:
        lost = next(node for node in self.nodes if node.node_id == node_id)
        self.nodes.remove(lost)
        self.cluster.remove_node(lost, allow_graceful=False)


@pytest.fixture(scope="module")
def _machines() -> Iterator[TwoNodes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "plugin"))
        patch.setenv("TOY_PAUSE", "0.3")
        machines = TwoNodes()
        yield machines
        machines.cluster.shutdown()


@pytest.fixture
def machines(_machines: TwoNodes, toys: Path) -> TwoNodes:
    _machines.grow(2)
    return _machines


def kinds(events: list[Event], cell: Cell) -> list[str]:
    return [event.kind for event in events if event.cell == cell and event.kind != "progress"]


@pytest.fixture
def alone(toys: Path, tmp_path: Path) -> bytes:
    """Return the bytes of the episodes that one process finds."""
    with OpenRun.open(tmp_path / "alone", plan("toy", SUITE, 2, "smoke")) as run, run.sitting():
        list(in_process(run))
        run.merge()
    return (tmp_path / "alone" / "episodes.parquet").read_bytes()


def test_two_workers_two_nodes_and_a_lost_node_give_the_same_bytes(
    machines: TwoNodes, alone: bytes, tmp_path: Path
):
    manifest = plan("toy", SUITE, 2, "smoke")
    for name in ("pool", "whole", "lost"):
        with OpenRun.open(tmp_path / name, manifest) as run, run.sitting():
            events: list[Event] = []
            for event in (
                in_pool(run, 2)
                if name == "pool"
                else in_cluster(run, Resources(), machines.address)
            ):
                events.append(event)
                if (
                    name == "lost"
                    and [e.kind for e in events].count("finished") == 1
                    and len(machines.nodes) == 2
                ):
                    machines.kill(machines.nodes[0].node_id)
            assert sorted(event.cell for event in events if event.kind == "finished") == sorted(
                manifest.cells()
            )
            assert "failed" not in {event.kind for event in events}
            run.merge()
        assert (tmp_path / name / "episodes.parquet").read_bytes() == alone
    assert "its node was lost" in {event.value for event in events if event.kind == "retried"}


def test_a_cell_that_crashes_three_times_is_reported_and_the_rest_goes_on(
    machines: TwoNodes, tmp_path: Path
):
    with (
        OpenRun.open(tmp_path, plan("toy-crash,toy-die", "ToyWalk-v0", 3, "smoke")) as run,
        run.sitting(),
    ):
        events = list(in_cluster(run, Resources(), machines.address))
        for agent in ("toy-crash", "toy-die"):
            assert [kinds(events, Cell(agent, WALK, seed))[-1] for seed in range(3)] == [
                "finished", "failed", "finished",
            ]  # fmt: skip
        errors = {event.cell: event.value for event in events if event.kind == "failed"}
        assert errors[Cell("toy-crash", WALK, 1)] == "RuntimeError: the seed 1 is too much for me"
        assert "died" in errors[Cell("toy-die", WALK, 1)]
        assert kinds(events, Cell("toy-die", WALK, 1)).count("retried") == CRASHES - 1
        assert "Traceback" in (tmp_path / "workers.log").read_text()


def test_another_executor_finishes_what_a_cluster_began(
    machines: TwoNodes, alone: bytes, tmp_path: Path
):
    manifest = plan("toy", SUITE, 2, "smoke")
    with OpenRun.open(tmp_path / "run", manifest) as run, run.sitting():
        events = in_cluster(run, Resources(), machines.address)
        assert "finished" in (event.kind for event in events)
        events.close()
        assert not ray.is_initialized()
        assert 1 <= len(run.missing()) <= 3
    with OpenRun.open(tmp_path / "run", manifest, resume=True) as run, run.sitting():
        list(in_process(run))
        run.merge()
    assert (tmp_path / "run" / "episodes.parquet").read_bytes() == alone


def test_a_cluster_that_is_not_there_or_too_small_is_refused(machines: TwoNodes, tmp_path: Path):
    with OpenRun.open(tmp_path, plan("toy", SUITE, 2, "smoke")) as run:
        with pytest.raises(
            OSError, match=r"Cannot connect to a Ray cluster at 127.0.0.1:1: Connection refused\."
        ):
            in_cluster(run, Resources(), "127.0.0.1:1")
        with pytest.raises(
            OSError, match=r"for a cell: 1 CPUs, 2 GPUs, .* The largest node has 1 CPUs, 0 GPUs,"
        ):
            in_cluster(run, Resources(gpus=2), machines.address)
        assert not ray.is_initialized()


def test_a_wrong_address_is_answered_with_what_helps(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ValueError, match=r"is HOST:PORT, as 10\.0\.0\.1:6379, or auto, got 'head'"):
        ray_executor._connection("head").__enter__()

    def no_cluster(*_: Any, **__: Any) -> None:
        raise ConnectionError("Could not find any running Ray instance. Set `--address`.")

    monkeypatch.setattr(ray, "init", no_cluster)
    with pytest.raises(
        OSError, match=r"so --address auto finds none\. Start one with `ray start --head`"
    ):
        ray_executor._connection("auto").__enter__()


def test_a_run_that_no_node_has_room_for_keeps_its_name_free(tmp_path: Path):
    program = str(Path(sys.executable).with_name("rlsuite-eval"))
    command = [
        program,
        "ray",
        "--agent",
        "random",
        "--suite",
        "SAT-v0",
        "--seeds",
        "1",
        "--out",
        str(tmp_path / "run"),
    ]
    completed = subprocess.run(
        [*command, "--cpus", "640"], capture_output=True, text=True, check=False
    )
    assert completed.returncode == 2
    assert (
        "error: No node of the cluster has room for a cell: 640 CPUs, 0 GPUs, 0 GiB"
        in completed.stderr
    )
    assert "cells to run" not in completed.stdout
    assert not (tmp_path / "run").exists()


def test_a_driver_that_is_busy_does_not_take_its_workers_for_silent(
    machines: TwoNodes, tmp_path: Path
):
    with OpenRun.open(tmp_path, plan("toy", SUITE, 2, "smoke")) as run, run.sitting():
        kinds, slept = [], 0
        for event in in_cluster(run, Resources(), machines.address, silence=2.0):
            kinds.append(event.kind)
            if event.kind == "progress" and slept < 2:
                slept += 1
                time.sleep(3)  # as an upload to a slow store does
        assert kinds.count("finished") == 4
        assert "retried" not in kinds


class NoPlayer:
    """Actor that no node can start, as where a package is missing."""

    def __init__(self, *_: object) -> None:
        raise ImportError("the node has no package for this")

    def perform(self, spec: CellSpec) -> Iterator[None]:
        yield


def test_a_worker_that_cannot_start_is_not_called_a_lost_node(
    machines: TwoNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ray_executor, "_Player", NoPlayer)
    with OpenRun.open(tmp_path, plan("toy", "ToyWalk-v0", 1, "smoke")) as run, run.sitting():
        *retried, failed = in_cluster(run, Resources(), machines.address)
    assert [event.kind for event in retried] == ["retried"] * (CRASHES - 1)
    assert failed.kind == "failed"
    assert failed.value.startswith("its worker cannot start on the node (")


def test_a_cell_that_waits_for_room_is_not_blamed_for_a_lost_node(
    machines: TwoNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ray_executor, "_LOSSES", 1)
    machines.kill(machines.nodes[-1].node_id)
    with OpenRun.open(tmp_path, plan("toy", "ToyWalk-v0", 2, "smoke")) as run, run.sitting():
        ended: dict[int, Event] = {}
        lost = None  # seed of the cell that runs when the node is lost; either may be the first
        for event in in_cluster(run, Resources(), machines.address, workers=2):
            if event.kind == "started" and lost is None:
                lost = event.cell.seed
                machines.kill(machines.nodes[-1].node_id)
                machines.grow(1)
            if event.kind in ("finished", "failed"):
                ended[event.cell.seed] = event
    assert lost is not None
    assert {seed: event.kind for seed, event in ended.items()} == {
        lost: "failed",
        1 - lost: "finished",
    }
    assert ended[lost].value == "its node was lost, 1 times"


@pytest.mark.parametrize(
    ("resources", "has", "room"),
    [
        (Resources(gpus=0.1), {"CPU": 16.0, "GPU": 1.0}, 10),
        (Resources(cpus=0.3), {"CPU": 0.9}, 3),
        (Resources(cpus=2, memory=1.5), {"CPU": 8.0, "memory": 4 * 2.0**30}, 2),
        (Resources(gpus=0.5), {"CPU": 16.0}, 0),
    ],
)
def test_room_of_a_node(resources: Resources, has: dict[str, float], room: int):
    assert ray_executor._room(resources, {"a": has, "b": has}) == 2 * room
