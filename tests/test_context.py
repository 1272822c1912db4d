"""Contexts of one's own: files and mappings, their ids, and what is refused."""

from __future__ import annotations

import errno
import json
import pickle
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from rlbench_suite.contexts.context import Constant, read_context, template
from rlbench_suite.contexts.plain_yaml import MAX_BYTES
from rlbench_suite.core.registry import card
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.runs.suite_file import read_suite_file

ID = "rlsuite/PMSMTorque-v0"
SERVO = """
resistance: [0.32, 0.40]
inductance_d: 0.52e-3 H
inductance_q: 0.52e-3 H
magnet_flux: [9.2e-3, 10.4e-3]
pole_pairs: 5
inertia: 3.6e-5
nominal_current: 7
current_limit: 21 A
speed_limit: 600
link_voltage: 48
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLSUITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("rlbench_suite.contexts.context._CONTEXTS", {})


def write_context(folder: Path, text: str | bytes, name: str = "my-motor.yaml") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_file_a_mapping_and_json_are_one_task(tmp_path: Path) -> None:
    with_context = card(ID, context=write_context(tmp_path, SERVO))
    values = {
        name: [low, high] if low != high else low for name, low, high in with_context.context.values
    }
    again = card(f"{ID}?context={write_context(tmp_path, json.dumps(values), 'my_motor.json')}")
    assert again.id == with_context.id
    assert with_context.id.startswith(f"{ID}?context=my_motor-")
    from_mapping = card(ID, context=values)
    assert from_mapping.context.values == with_context.context.values
    assert from_mapping.id.removeprefix(f"{ID}?context=own") == with_context.id.removeprefix(
        f"{ID}?context=my_motor"
    )


def test_an_id_is_known_without_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_context(tmp_path, SERVO)
    servo_card = card(ID, context=path)
    path.unlink()
    monkeypatch.setattr("rlbench_suite.contexts.context._CONTEXTS", {})
    assert card(servo_card.id) == servo_card == pickle.loads(pickle.dumps(servo_card))
    (stored_copy,) = (tmp_path / "cache" / "contexts").iterdir()
    stored_copy.write_text(stored_copy.read_text().replace("48", "49"))
    monkeypatch.setattr("rlbench_suite.contexts.context._CONTEXTS", {})
    with pytest.raises(ValueError, match="its copy in the cache was changed"):
        card(servo_card.id)


def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("RLSUITE_CACHE", str(tmp_path / "file" / "below"))
    with_context = card(ID, context=write_context(tmp_path, SERVO))
    assert card(with_context.id) == with_context


def test_a_full_disk_is_not_filled_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert card(ID, context=write_context(tmp_path, SERVO)).context is not None
    assert [*(tmp_path / "cache").rglob("*")] == []


def test_a_node_of_a_cluster_knows_the_contexts_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    from rlbench_suite.evaluation.runs.ray_executor import _Player

    with_context = card(ID, context=write_context(tmp_path, SERVO))
    monkeypatch.setenv("RLSUITE_CACHE", str(tmp_path / "another machine"))
    monkeypatch.setattr("rlbench_suite.contexts.context._CONTEXTS", {})
    with pytest.raises(ValueError, match="nor known by this name"):
        card(with_context.id)
    manifest: Any = None
    _Player(manifest, {}, [with_context.context])
    assert card(with_context.id) == with_context


def test_the_template_names_every_constant(tmp_path: Path) -> None:
    constants = card(ID).build().constants()
    text = template(ID, constants)
    names = [c.name.removeprefix("reward.") for c in constants]
    names_in_file = [
        line.removeprefix("# ").split(":")[0].strip() for line in text.splitlines()[2:]
    ]
    assert [name for name in names_in_file if name != "reward"] == names
    context = read_context(write_context(tmp_path, text), ID, constants)
    assert {name for name, _, _ in context.values} == {c.name for c in constants if not c.derived}


def test_environments_and_suite_files_take_it(tmp_path: Path) -> None:
    path = write_context(tmp_path, SERVO)
    env: Any = gymnasium.make(ID, context=str(path))
    batch: Any = gymnasium.make_vec(ID, num_envs=2, context=str(path))
    assert env.unwrapped.task is batch.task
    assert env.unwrapped.task.plant.nominal.pole_pairs == 5
    suite = write_context(
        tmp_path,
        (
            "name: mine\nbudget: smoke\nseeds: 2\ntasks:\n  - id: PMSMTorque-v0\n    context: "
            f"{path}\n"
        ),
        "suite.yaml",
    )
    assert read_suite_file(suite).tasks == (env.unwrapped.task.card.id,)


def test_scores_lie_beside_the_file(tmp_path: Path) -> None:
    with_context = card(ID, context=write_context(tmp_path, SERVO))
    assert with_context.scores() == {}
    assert with_context.scores_path("reference_scores.json") == tmp_path / "my-motor.scores.json"
    score = {"mean": 1.0, "low": 0.5, "high": 1.5, "episodes": 2}
    (tmp_path / "my-motor.scores.json").write_text(
        json.dumps({with_context.id: {"default": {"noop": score}}})
    )
    assert card(with_context.id).scores()["noop"].mean == 1.0
    write_context(tmp_path, SERVO.replace("48", "49"))
    assert card(ID, context=tmp_path / "my-motor.yaml").scores() == {}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("resistence: 1", "Unknown constant 'resistence'. Did you mean 'resistance'?"),
        ("resistance: -0.1", "resistance must be above 0 and finite, got -0.1 Ohm"),
        ("resistance: 0", "resistance must be above 0"),
        ("resistance: .nan", "resistance must be above 0"),
        ("resistance: 1e999", "expected a number, got '1e999'"),
        ("resistance: .inf", "got inf Ohm"),
        ("resistance: " + "9" * 400, "got inf Ohm"),
        ("resistance: 0.1 mOhm", "resistance is in Ohm, got 'mOhm'"),
        ("resistance: true", "expected a number, got 'True'"),
        ("resistance: [0.2, 0.1]", "ends below its beginning"),
        ("resistance: [0.1, 0.2, 0.3]", "a range has two numbers, got 3"),
        ("resistance: {low: 1}", "expected a number"),
        ("pole_pairs: 2.5", "must be a whole number"),
        ("pole_pairs: 1000", "at most 100"),
        ("pole_pairs: [2, 3]", "pole_pairs is fixed"),
        ("a: &a [1]\nb: *a", "anchor or alias in line 1"),
        ("x: !!python/object/apply:os.system [id]", "a tag in line 1"),
        ("resistance: 1\nresistance: 2", "the key 'resistance' twice"),
        ("[" * 5000, "nested more than"),
        ("- 1", "it is not a mapping"),
        ("", "it is not a mapping"),
        ("{}", "it sets no constant"),
        (b"\xff\xfe", "it is not UTF-8 text"),
        ("#" * (MAX_BYTES + 1), "it is larger than"),
    ],
)  # fmt: skip
def test_a_bad_file_costs_one_sentence(tmp_path: Path, text: str | bytes, sentence: str) -> None:
    path = write_context(tmp_path, text)
    with pytest.raises(ValueError, match="is not a context") as caught:
        card(ID, context=path)
    message = str(caught.value)
    assert sentence in message
    assert "\n" not in message
    assert len(message) < 600


def test_what_is_no_context_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        OSError, match=r"Cannot read the context .*none.yaml: there is no such file"
    ):
        card(ID, context=tmp_path / "none.yaml")
    with pytest.raises(
        ValueError, match=r"'/etc/passwd' is neither a file \(.yaml, .yml, .json\) nor known"
    ):
        card(f"{ID}?context=/etc/passwd")
    with pytest.raises(ValueError, match=r"SAT-v0 takes no context"):
        card("SAT-v0", context={"x": 1})
    with pytest.raises(ValueError, match=r"its name must begin with a letter or digit"):
        card(ID, context=write_context(tmp_path, SERVO, "a b?.yaml"))


def test_a_context_of_another_task_is_refused_by_its_name() -> None:
    dense = card("Highway-v0", context={"density": 40})
    assert card(dense.id) == dense
    with pytest.raises(ValueError, match="density"):
        card(f"Vicsek-v0?context={dense.id.partition('context=')[2]}").build()


def test_a_number_to_the_base_60_costs_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a number that is too large"):
        card(ID, context=write_context(tmp_path, f"inertia: {':'.join(['1'] * 300)}.5"))


def test_a_context_changes_nothing_of_the_shipped_card() -> None:
    shipped: TaskCard = card(ID)
    changed = card(ID, context={"link_voltage": 200})
    assert card(ID) is shipped
    assert changed.build().plant.link == pytest.approx(200)
    assert shipped.build().plant.link == pytest.approx(300)
    assert isinstance(changed.build().constants()[0], Constant)
