"""One read-only run serves all commands on results."""

import subprocess
import sys
from pathlib import Path

import pytest
from made_runs import fail_cell, make_run

from rlbench_suite.evaluation.cell import Cell, FailedCell
from rlbench_suite.evaluation.report.run_selection import select_runs
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.run import Run, read_run, violates

WALK, DRIFT = "rlsuite/ToyWalk-v0", "rlsuite/ToyDrift-v0"
SCORES = {"a": {WALK: [0.1, 0.2], DRIFT: [0.3, 0.4]}, "b": {WALK: [0.5, 0.6]}}


def test_no_command_on_results_imports_jax():
    modules = (
        "runs.run", "runs.manifest", "runs.object_store", "statistics.power",
        "report.run_selection", "report.comparison", "report.export_formats", "report.paired_cells",
        "report.verdict_remarks", "analysis.query",
    )  # fmt: skip
    program = (
        f"import sys, importlib\nfor name in {modules!r}: "
        "importlib.import_module('rlbench_suite.evaluation.' + name)"
    )
    subprocess.run(
        [sys.executable, "-c", f"{program}\nassert 'jax' not in sys.modules"], check=True
    )


def test_a_run_is_its_finished_cells_in_the_order_of_the_manifest(tmp_path: Path):
    make_run(tmp_path / "run", SCORES)
    fail_cell(tmp_path / "run", "a", DRIFT, 1)
    run = Run.read(tmp_path / "run")
    assert [result.cell for result in run.results()] == [
        Cell("a", WALK, 0), Cell("a", WALK, 1), Cell("a", DRIFT, 0), Cell("b", WALK, 0),
        Cell("b", WALK, 1),
    ]  # fmt: skip
    assert [*run.failures()] == [FailedCell("a", DRIFT, 1, "ValueError: diverged")]
    assert run.result(Cell("a", DRIFT, 1)) is None


def test_a_part_of_a_run_outlives_its_folder(tmp_path: Path):
    """Runs of object stores lie in a folder that is gone when their numbers are used."""
    path = make_run(tmp_path / "run", SCORES)
    fail_cell(path, "a", DRIFT, 1)
    run = read_run(path)
    path.rename(tmp_path / "elsewhere")
    (walk_run,) = select_runs([run], "b,a", "ToyWalk-v0")
    assert [(result.agent, result.seed) for result in walk_run.results()] == [
        ("b", 0),
        ("b", 1),
        ("a", 0),
        ("a", 1),
    ]
    assert list(walk_run.manifest.references) == [WALK]
    assert [*walk_run.failures()] == []
    (drift_run,) = select_runs([run], tasks="ToyDrift-v0")
    assert [cell.seed for cell in drift_run.failures()] == [1]


def test_a_cell_whose_result_has_not_arrived_is_unfinished(tmp_path: Path):
    """Object stores get the result of a cell last."""
    path = make_run(tmp_path / "run", SCORES)
    (path / "cells" / "a" / "ToyDrift-v0" / "1" / "result.json").unlink()
    run = read_run(path)
    assert [result.seed for result in run.results() if result.task == DRIFT] == [0]
    assert run.result(Cell("a", DRIFT, 1)) is None
    open_run = OpenRun(path, run.manifest)
    with pytest.raises(ValueError, match=r"result\.json is damaged \(No such file"):
        open_run.result(Cell("a", DRIFT, 1))


def test_a_constraint_counts_a_seed_that_breaks_it_as_zero(tmp_path: Path):
    task = "rlsuite/PMSMCurrent-v0"
    run = read_run(make_run(tmp_path / "run", {"a": {task: [0.5]}, "b": {task: [0.5]}}, {"a": 1e9}))
    broken, unbroken = run.results()
    assert (broken.constrained_score, unbroken.constrained_score) == (0.0, 0.5)
    assert (violates([broken]), violates([unbroken])) == (True, False)


def test_a_cell_outside_of_the_run_is_refused(tmp_path: Path):
    run = read_run(make_run(tmp_path / "run", SCORES))
    with pytest.raises(ValueError, match="names a cell outside of the run"):
        run.cell_path(Cell("..", WALK, 0))
