"""The catalogue: ids that Minari takes, recipes that share no episode, claims that are measured."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import pytest

from rlbench_suite.core import registry
from rlbench_suite.datasets import access
from rlbench_suite.evaluation.protocol import calibration_seeds, evaluation_seeds

every_entry = pytest.mark.parametrize(
    "entry", access.catalogue().values(), ids=lambda entry: entry.id
)


def test_ids_are_minaris() -> None:
    from minari.dataset.minari_dataset import parse_dataset_id

    for entry in access.catalogue().values():
        assert parse_dataset_id(entry.id) == (
            f"rlsuite/{entry.folder}",
            entry.quality,
            entry.version,
        )


def test_every_task_of_the_catalogue_has_three_qualities() -> None:
    for task in {entry.task for entry in access.catalogue().values()}:
        assert list(access.of_task(task)) == ["random", "medium", "expert"]
    assert access.of_task("rlsuite/SAT-v0") == {}


@every_entry
def test_quality_is_what_its_name_says(entry: access.Entry) -> None:
    fingerprint = entry.fingerprint
    assert fingerprint is not None
    low, high = {"random": (-0.25, 0.1), "medium": (0.3, 0.7), "expert": (0.95, 1.05)}[
        entry.quality
    ]
    assert entry.score is not None
    assert low <= entry.score <= high
    assert {"x86_64", "x86_64 fma"} <= fingerprint.sha256.keys()


def test_no_two_datasets_of_a_task_share_an_episode_and_none_is_an_evaluation() -> None:
    for a, b in combinations(access.catalogue().values(), 2):
        assert a.task != b.task or not set(a.seeds) & set(b.seeds)
    for entry in access.catalogue().values():
        judged = evaluation_seeds(entry.card, 0, "full")[0], calibration_seeds(1)[0]
        assert entry.seeds[-1] < min(judged)


def test_names_may_be_short() -> None:
    full = access.find("rlsuite/hover/medium-v0")
    assert access.find("hover/medium") == access.find("hover/medium-v0") == full
    assert [entry.quality for entry in access.resolve("hover")] == ["random", "medium", "expert"]
    assert access.resolve("hover/medium, rlsuite/hover/medium-v0") == (full,)
    assert access.resolve("all") == tuple(access.catalogue().values())
    with pytest.raises(ValueError, match="Did you mean 'rlsuite/hover/medium-v0'"):
        access.find("rlsuite/hover/medum-v0")
    with pytest.raises(ValueError, match="Did you mean 'hover'"):
        access.resolve("hovr")


def test_the_command_line_answers_without_loading_anything_heavy() -> None:
    code = (
        "import sys; from rlbench_suite.cli.data import app\nfor arguments in (['list'], ['show', "
        "'hover/medium'], ['--help']):\n    try: app(arguments)\n    except SystemExit: "
        "pass\nprint('heavy:', sorted({'jax', 'minari', 'h5py', 'equinox', 'pyarrow'} & "
        "sys.modules.keys()))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert "heavy: []" in out
    assert all(entry.id in out for entry in access.catalogue().values())


def test_importing_the_suite_loads_no_minari() -> None:
    code = (
        "import sys, rlbench_suite, rlbench_suite.datasets; sys.exit('minari' in sys.modules or "
        "'jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_registry_gives_the_wing() -> None:
    assert registry.datasets() is access
