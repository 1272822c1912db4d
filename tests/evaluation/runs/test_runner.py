"""The worker pool: the same numbers as in one process, whatever goes wrong on the way."""

import multiprocessing
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rlbench_suite.evaluation.cell import Cell
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.runner import Event, in_pool, in_process, plan

WALK = "rlsuite/ToyWalk-v0"


@pytest.fixture(autouse=True)
def _toys(toys: Path) -> None:
    pass


def outcomes(events: list[Event]) -> dict[Cell, list[str]]:
    kinds: dict[Cell, list[str]] = {}
    for event in events:
        if event.kind != "progress":
            kinds.setdefault(event.cell, []).append(event.kind)
    return kinds


def test_the_pool_gives_the_numbers_of_one_process(tmp_path: Path):
    manifest = plan("toy,toy-host", "ToyWalk-v0,ToyDrift-v0", 2, "smoke")
    for name in ("alone", "pool"):
        with OpenRun.open(tmp_path / name, manifest) as run, run.sitting():
            events = list(in_process(run) if name == "alone" else in_pool(run, 2))
            assert outcomes(events) == {cell: ["started", "finished"] for cell in manifest.cells()}
            assert sum(event.kind == "progress" for event in events) == 4 * 4
            run.merge()
    tables = [pq.read_table(tmp_path / name / "episodes.parquet") for name in ("alone", "pool")]
    assert tables[0].equals(tables[1])
    traces = [
        pq.read_table(tmp_path / name / "traces" / "toy-ToyDrift-v0.parquet")
        for name in ("alone", "pool")
    ]
    assert traces[0].equals(traces[1])


def test_a_crash_and_a_death_are_reported_and_the_rest_goes_on(tmp_path: Path):
    manifest = plan("toy-crash,toy-die", "ToyWalk-v0", 3, "smoke")
    with OpenRun.open(tmp_path, manifest) as run, run.sitting():
        events = list(in_pool(run, 2))
        kinds = outcomes(events)
        for agent in ("toy-crash", "toy-die"):
            assert [kinds[Cell(agent, WALK, seed)][-1] for seed in range(3)] == [
                "finished",
                "failed",
                "finished",
            ]
        errors = {event.cell: event.value for event in events if event.kind == "failed"}
        assert errors[Cell("toy-crash", WALK, 1)] == "RuntimeError: the seed 1 is too much for me"
        assert "exit code 9" in errors[Cell("toy-die", WALK, 1)]
        assert kinds[Cell("toy-die", WALK, 1)] == ["started", "retried", "started", "failed"]
        assert [(cell.agent, cell.seed) for cell in run.missing()] == [
            ("toy-crash", 1),
            ("toy-die", 1),
        ]
        assert "Traceback" in (tmp_path / "workers.log").read_text()


def test_a_stuck_cell_is_killed_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TOY_MARKS", str(tmp_path))
    with (
        OpenRun.open(tmp_path / "run", plan("toy-hang", "ToyWalk-v0", 2, "smoke")) as run,
        run.sitting(),
    ):
        next(event for event in in_process(run) if event.kind == "finished")  # seed 0; seed 1 hangs
        events = list(in_pool(run, 1, silence=10))
        assert outcomes(events) == {
            Cell("toy-hang", WALK, 1): ["started", "retried", "started", "finished"]
        }
        assert (
            next(event.value for event in events if event.kind == "retried")
            == "gave no sign of life for 10 s"
        )
    assert (tmp_path / "hung-before").exists()


def test_leaving_early_leaves_no_process_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TOY_PAUSE", "30")
    with (
        OpenRun.open(tmp_path, plan("toy", "ToyWalk-v0,ToyDrift-v0", 1, "smoke")) as run,
        run.sitting(),
    ):
        events = in_pool(run, 2)
        assert next(events).kind == "started"
        assert len(multiprocessing.active_children()) == 2
        events.close()
        assert multiprocessing.active_children() == []


@pytest.mark.parametrize(
    ("agents", "suite", "seeds", "budget", "words"),
    [
        ("tpy", "ToyWalk-v0", 1, "smoke", "Unknown agent 'tpy'. Did you mean 'toy'"),
        ("", "ToyWalk-v0", 1, "smoke", "No agent named"),
        (
            "toy",
            "ToyWok-v0",
            1,
            "smoke",
            "Unknown suite or task 'ToyWok-v0'. Did you mean 'rlsuite/ToyWalk-v0'",
        ),
        ("toy", "", 1, "smoke", "No suite or task"),
        ("toy", "ToyWalk-v0", 0, "smoke", "at least 1, got 0"),
        ("toy", "ToyWalk-v0", -3, "smoke", "at least 1, got -3"),
        ("toy", "ToyWalk-v0", 1, "ful", "Unknown budget 'ful'. Did you mean 'full'"),
        ("toy-picky", "ToyDrift-v0", 1, "smoke", "one objective is enough for me"),
    ],
)
def test_wrong_questions_are_refused(agents: str, suite: str, seeds: int, budget: str, words: str):
    with pytest.raises(ValueError, match=re.escape(words)):
        plan(agents, suite, seeds, budget)


def test_an_incomplete_agent_is_refused_before_it_trains(monkeypatch: pytest.MonkeyPatch):
    from toyfamily.agents import Learner

    monkeypatch.delattr(Learner, "save")
    with pytest.raises(ValueError, match="'toy' is incomplete: it has no save"):
        plan("toy", "ToyWalk-v0", 1, "smoke")


def test_an_agent_that_cannot_play_a_task_is_left_out_with_its_reason():
    manifest = plan("toy,toy-picky", "ToyWalk-v0,ToyDrift-v0", 1, "smoke")
    assert manifest.not_applicable == {
        "toy-picky": {"rlsuite/ToyDrift-v0": "one objective is enough for me"}
    }
    assert len(list(manifest.cells())) == 3


def test_a_task_without_measured_scores_is_refused(monkeypatch: pytest.MonkeyPatch):
    from rlbench_suite.core.registry import card

    monkeypatch.setattr(type(card(WALK)), "scores", lambda self, difficulty=None: {})
    with pytest.raises(ValueError, match="rlsuite dev calibrate rlsuite/ToyWalk-v0"):
        plan("toy", "ToyWalk-v0", 1, "smoke")
