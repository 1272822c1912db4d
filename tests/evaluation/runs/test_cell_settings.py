"""Test that a cell trains with the manifest's settings, however files change after planning."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from safetensors import safe_open

from rlbench_suite.baselines import configuration, learning_agent, mpc
from rlbench_suite.baselines.mpc import MPC
from rlbench_suite.baselines.ppo.agent import PPO
from rlbench_suite.core import registry
from rlbench_suite.evaluation.cell import Cell
from rlbench_suite.evaluation.protocol import resolve_cell
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.runner import in_pool, in_process, plan

DRIFT = "rlsuite/ToyDrift-v0"
SHORT = {
    "total_steps": 256, "num_envs": 4, "num_steps": 16, "minibatches": 2, "epochs": 1,
    "hidden": [8], "reports": 2, "learning_rate": 1e-3,
}  # fmt: skip


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy of the folder with the hyperparameters, which the agents read in its place."""
    folder = tmp_path / "hyperparameters"
    shutil.copytree(configuration.FOLDER, folder)
    for module in (configuration, learning_agent, mpc):
        monkeypatch.setattr(module, "FOLDER", folder)
    monkeypatch.setattr(configuration, "STEPS", folder / "steps.yaml")
    return folder


def write_settings(file: Path, values: dict[str, Any]) -> None:
    file.write_text(yaml.safe_dump({"default": values}))


def trained_with(file: Path) -> Any:
    with safe_open(str(file), framework="numpy") as policy:
        return json.loads(policy.metadata()["config"])


def test_a_file_edited_after_the_plan_does_not_change_what_is_trained(
    toys: Path, settings: Path, tmp_path: Path
):
    write_settings(settings / "ppo.yaml", SHORT)
    manifest = plan("ppo", DRIFT, 1, "smoke")
    cell = Cell("ppo", DRIFT, 0)
    for name in ("before", "after"):
        with OpenRun.open(tmp_path / name, manifest) as run, run.sitting():
            assert [event.value for event in in_process(run) if event.kind == "failed"] == []
            assert (
                trained_with(run.cell_path(cell) / "policy.safetensors")
                == manifest.hyperparameters["ppo"][DRIFT]
            )
        write_settings(settings / "ppo.yaml", SHORT | {"learning_rate": 1.0, "total_steps": 512})
    policies = [
        tmp_path / name / "cells/ppo/ToyDrift-v0/0/policy.safetensors"
        for name in ("before", "after")
    ]
    assert policies[0].read_bytes() == policies[1].read_bytes()


def test_a_run_is_not_resumed_with_edited_settings(toys: Path, settings: Path, tmp_path: Path):
    write_settings(settings / "ppo.yaml", SHORT)
    with OpenRun.open(tmp_path / "run", plan("ppo", DRIFT, 1, "smoke")) as run, run.sitting():
        pass
    write_settings(settings / "ppo.yaml", SHORT | {"learning_rate": 1.0})
    edited = plan("ppo", DRIFT, 1, "smoke")
    words = (
        r"has ppo's learning_rate on rlsuite/ToyDrift-v0 = 0\.001, but now it is 1\.0; choose "
        r"another --out"
    )
    with pytest.raises(ValueError, match=words), OpenRun.open(tmp_path / "run", edited):
        pass


def test_workers_get_the_settings_of_the_plan(
    toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    manifest = plan("toy", DRIFT, 1, "smoke")
    monkeypatch.setenv("TOY_STEPS", "4000")  # in the worker too
    with OpenRun.open(tmp_path, manifest) as run, run.sitting():
        assert [event.value for event in in_pool(run, 1) if event.kind == "failed"] == []
        (result,) = run.results()
    assert result.training_steps == manifest.hyperparameters["toy"][DRIFT]["steps"] == 1000


def test_other_libraries_train_with_the_settings_of_the_plan(
    toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    sb3 = pytest.importorskip("rlbench_suite.baselines.sb3", exc_type=ImportError)
    table = yaml.safe_load(sb3.HYPERPARAMETERS.read_text())
    table["sb3-a2c"]["default"] |= {"total_steps": 160, "net_arch": [8]}
    monkeypatch.setattr(sb3, "HYPERPARAMETERS", tmp_path / "sb3.yaml")
    (tmp_path / "sb3.yaml").write_text(yaml.safe_dump(table))
    manifest = plan("sb3-a2c", DRIFT, 1, "smoke")
    table["sb3-a2c"]["default"]["total_steps"] = 320
    (tmp_path / "sb3.yaml").write_text(yaml.safe_dump(table))
    with OpenRun.open(tmp_path / "run", manifest) as run, run.sitting():
        assert [event.value for event in in_process(run) if event.kind == "failed"] == []
        policy = run.cell_path(Cell("sb3-a2c", DRIFT, 0)) / "policy.safetensors"
    assert trained_with(policy) == manifest.hyperparameters["sb3-a2c"][DRIFT]


def test_a_planner_plays_with_the_settings_of_the_plan(toys: Path, settings: Path):
    task = registry.card(DRIFT).build()
    spec = resolve_cell(MPC(), task, 0, "smoke")
    (settings / "mpc.yaml").unlink()
    (policy,) = MPC().train(task, seed=0, budget="smoke", hyperparameters=spec.hyperparameters)
    assert policy.config == mpc.Config(**spec.hyperparameters)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"learning_rat": 1.0}, "Unknown hyperparameter 'learning_rat'"),
        (None, "without a value: total_steps,"),
    ],
)
def test_incomplete_and_unknown_settings_are_refused(
    toys: Path, change: dict[str, Any] | None, words: str
):
    task = registry.card(DRIFT).build()
    hyperparameters = {} if change is None else PPO().hyperparameters(task, "smoke") | change
    with pytest.raises(ValueError, match=words):
        next(iter(PPO().train(task, seed=0, budget="smoke", hyperparameters=hyperparameters)))
