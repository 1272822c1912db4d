"""Runs that can be packed; SCHEMA.md tells the schema as it is."""

import shutil
from importlib.resources import files
from pathlib import Path

import pytest
from forgery import DRIFT, WALK, Forgery

from rlbench_suite.leaderboard.pack import choose_agent, pack
from rlbench_suite.leaderboard.schema import CellClaim, Entry, Origin, Submission, TaskClaim
from rlbench_suite.leaderboard.verify import verify


def test_a_part_of_a_run_can_be_packed(toy_run: Path, tmp_path: Path):
    pack(toy_run, Entry(name="drifter", agent="random"), tmp_path / "a.zip", suite=DRIFT)
    verdict = verify(tmp_path / "a.zip")
    assert verdict.accepted
    assert list(verdict.scores) == [DRIFT]
    assert sorted(Forgery(tmp_path / "a.zip").members) == [
        "actions/ToyDrift-v0.parquet", "episodes/ToyDrift-v0.parquet", "submission.json",
    ]  # fmt: skip


def test_one_agent_is_chosen(toy_run: Path):
    with pytest.raises(
        ValueError, match=r"several agents \(toy, random\); choose one with --agent"
    ):
        choose_agent(toy_run, None)
    with pytest.raises(ValueError, match="Did you mean 'toy'"):
        choose_agent(toy_run, "tyo")
    assert choose_agent(toy_run, "random") == "random"


def test_unfinished_and_damaged_runs_are_not_packed(toy_run: Path, tmp_path: Path):
    run = Path(shutil.copytree(toy_run, tmp_path / "run"))
    entry = Entry(name="toy", agent="toy")
    with pytest.raises(ValueError, match="Unknown suite or task"):
        pack(run, entry, tmp_path / "a.zip", suite="nope")
    with pytest.raises(ValueError, match="has toy not on rlsuite/SAT-v0"):
        pack(run, entry, tmp_path / "a.zip", suite="SAT-v0")
    cell = run / "cells" / "toy" / "ToyWalk-v0" / "1"
    (cell / "trace.parquet").write_bytes((cell / "trace.parquet").read_bytes()[:-40])
    with pytest.raises(ValueError, match="damaged"):
        pack(run, entry, tmp_path / "a.zip")
    shutil.rmtree(cell)
    with pytest.raises(
        ValueError, match=f"lacks toy on {WALK}, seed 1; finish it with rlsuite-eval --resume"
    ):
        pack(run, entry, tmp_path / "a.zip")
    with pytest.raises(ValueError, match="not a run directory"):
        pack(tmp_path, entry, tmp_path / "a.zip")
    assert not list(tmp_path.glob("*.zip*"))
    assert not list(tmp_path.glob(".rlsuite-*"))


def test_a_task_with_settings_of_its_own_is_not_packed(toy_run: Path, tmp_path: Path):
    run = Path(shutil.copytree(toy_run, tmp_path / "run"))
    text = (run / "manifest.json").read_text()
    (run / "manifest.json").write_text(
        text.replace('"rlsuite/ToyWalk-v0"', '"rlsuite/SAT-v0?difficulty=hard"')
    )
    with pytest.raises(
        ValueError,
        match=r"as they are registered, and rlsuite/SAT-v0\?difficulty=hard has settings",
    ):
        pack(run, Entry(name="toy", agent="toy"), tmp_path / "a.zip")


def test_the_page_names_every_field_of_the_schema():
    text = files("rlbench_suite.leaderboard").joinpath("SCHEMA.md").read_text()
    for model in (Submission, Entry, Origin, TaskClaim, CellClaim):
        for name in model.model_fields:
            assert f"`{name}`" in text, f"{model.__name__}.{name}"
