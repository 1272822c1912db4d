"""Test saved policies that are judged without training.

They play the same episodes bit for bit, and no untrusted file is run.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file, save_file

from rlbench_suite.baselines import configuration
from rlbench_suite.core import registry
from rlbench_suite.evaluation.policy_files.checkpoint import (
    Checkpoint,
    open_checkpoint,
    read_header,
)
from rlbench_suite.evaluation.report.report import Report
from rlbench_suite.evaluation.report.report_remarks import remarks
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.run import Run, read_manifest
from rlbench_suite.evaluation.runs.runner import in_pool, in_process, plan

TASK, DISCRETE_TASK = "rlsuite/PMSMCurrent-v0", "rlsuite/DeepSeaTreasure-v0"
AGENTS = ("ppo", "sac", "sb3-ppo")


def judge(
    checkpoint: Checkpoint, path: Path, task: str = TASK, seeds: int = 2, pool: bool = False
) -> Run:
    """Judge a file, as the command line does."""
    with OpenRun.open(path, plan("", task, seeds, "smoke", checkpoint)) as run, run.sitting():
        run.keep(checkpoint)
        for event in in_pool(run, 1) if pool else in_process(run):
            assert event.kind != "failed", event.value
    return run


def episodes(run: OpenRun, agent: str, seed: int, name: str = "episodes") -> list[dict[str, Any]]:
    """Return the rows of a cell, without its agent's name."""
    (folder,) = run.path.glob(f"cells/{agent}/*/{seed}")
    return pq.read_table(folder / f"{name}.parquet").drop_columns(["agent"]).to_pylist()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of some agents, two seeds each, on few steps."""
    pytest.importorskip("stable_baselines3")
    from rlbench_suite.baselines import sb3

    path = tmp_path_factory.mktemp("runs") / "trained"
    with pytest.MonkeyPatch.context() as patch:
        for module in (configuration, sb3):
            patch.setattr(module, "training_steps", lambda *_: 2_048)
        with OpenRun.open(path, plan(",".join(AGENTS), TASK, 2, "smoke")) as run, run.sitting():
            for event in in_process(run):
                assert event.kind != "failed", event.value
    return path


def policy_of(run: Path, agent: str, seed: int = 1) -> Path:
    """Return the saved policy of a cell."""
    return run / "cells" / agent / "PMSMCurrent-v0" / str(seed) / "policy.safetensors"


@pytest.mark.parametrize("agent", AGENTS)
def test_a_checkpoint_of_a_run_gives_its_episodes_to_the_bit(
    trained: Path, tmp_path: Path, agent: str
):
    file = policy_of(trained, agent)
    checkpoint = open_checkpoint(file, None)
    assert (checkpoint.agent, checkpoint.task) == (agent, TASK)
    assert checkpoint.hyperparameters["total_steps"] == 2_048
    run = judge(checkpoint, tmp_path / "run", pool=agent == "ppo")
    original = Run.read(trained)
    for name in ("episodes", "trace"):
        assert episodes(run, checkpoint.label, 1, name) == episodes(original, agent, 1, name)
        # Of another policy.
        assert episodes(run, checkpoint.label, 0, name) != episodes(original, agent, 0, name)
    saved = read_manifest(run.path).checkpoints[checkpoint.label]
    assert (saved.agent, saved.sha256) == (agent, checkpoint.sha256)
    again = policy_of(run.path, checkpoint.label, 0)  # it was saved again, and is the same
    assert open_checkpoint(again, None).hyperparameters == checkpoint.hyperparameters
    weights, before = load_file(again), load_file(file)
    assert weights.keys() == before.keys()
    assert all((weights[name] == before[name]).all() for name in weights)
    result = run.results()[0]
    assert (result.training_steps, result.train_seconds) == (0, 0)


def test_it_stands_beside_others_in_one_run_and_is_not_called_trained(
    trained: Path, tmp_path: Path
):
    path = Path(shutil.copytree(trained, tmp_path / "run"))
    checkpoint = open_checkpoint(policy_of(trained, "ppo"), None)
    run = judge(checkpoint, path)
    with OpenRun.open(path, plan("ppo", TASK, 2, "smoke", checkpoint)) as again:
        assert again.missing() == []
    report = Report.of(run)
    row = next(row for row in report.rows if row.agent == checkpoint.label)
    assert (row.step_unit, row.steps_per_second) == ("", None)
    text = " ".join(remarks(report))
    assert f"{checkpoint.label} is one saved policy of ppo, not trained here" in text
    assert "Unequal" not in text


def test_a_changed_copy_is_not_judged(toys: Path, tmp_path: Path):
    save_file({"skill": np.ones((), np.float32)}, tmp_path / "good")
    checkpoint = open_checkpoint(tmp_path / "good", "toy")
    with (
        OpenRun.open(tmp_path / "run", plan("", "ToyWalk-v0", 1, "smoke", checkpoint)) as run,
        run.sitting(),
    ):
        run.keep(checkpoint)
        copy = tmp_path / "run" / "checkpoints" / checkpoint.label
        save_file({"skill": np.zeros((), np.float32)}, copy)
        (*_, event) = in_process(run)
    assert event.kind == "failed"
    assert f"{copy} is not the file" in event.value


def rewrite_header(file: Path, to: Path, **changes: str | None) -> Path:
    """Write a copy with another header."""
    header = {
        name: text for name, text in (read_header(file) | changes).items() if text is not None
    }
    save_file(load_file(file), to, metadata=header)
    return to


def refusal_of(file: Path, agent: str | None = None, task: str = TASK) -> str:
    """Return the one sentence with which a file is refused."""
    with pytest.raises((ValueError, OSError)) as refusal:
        plan("", task, 1, "smoke", open_checkpoint(file, agent))
    assert "\n" not in str(refusal.value)
    assert str(file) in str(refusal.value)
    return str(refusal.value)


def test_what_is_no_policy_for_the_task_is_refused_in_one_sentence(trained: Path, tmp_path: Path):
    file = policy_of(trained, "ppo")
    assert f"holds a policy of ppo for {TASK}, not of ppo for {DISCRETE_TASK}" in refusal_of(
        file, task=DISCRETE_TASK
    )
    assert "holds a policy of ppo, not of sac" in refusal_of(file, "sac")
    (tmp_path / "junk").write_bytes(os.urandom(100))
    assert "does not say which agent made it" in refusal_of(tmp_path / "junk")
    assert "is not a safetensors file" in refusal_of(tmp_path / "junk", "ppo")
    assert "not a safetensors file" in refusal_of(tmp_path / "junk", "sb3-ppo")
    (tmp_path / "cut").write_bytes(file.read_bytes()[:-10])
    assert "is not a safetensors file" in refusal_of(tmp_path / "cut")
    save_file(
        {name: array.astype(np.float64) for name, array in load_file(file).items()},
        tmp_path / "wide",
    )
    assert "has type F64, expected F32" in refusal_of(tmp_path / "wide", "ppo")
    assert "No such file" in refusal_of(tmp_path / "nothing")
    assert "Is a directory" in refusal_of(tmp_path)
    with pytest.raises(ValueError, match=r"Unknown agent 'ppp'\. Did you mean 'ppo'"):
        plan(
            "",
            TASK,
            1,
            "smoke",
            open_checkpoint(rewrite_header(file, tmp_path / "a", agent=None), "ppp"),
        )
    with pytest.raises(ValueError, match="'random' reads no saved policies"):
        plan(
            "",
            TASK,
            1,
            "smoke",
            open_checkpoint(rewrite_header(file, tmp_path / "a", agent=None), "random"),
        )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"config": "{"}, "its config is not a JSON object"),
        ({"config": "[]"}, "its config is not a JSON object"),
        ({"config": "{}"}, "total_steps: Field required"),
        (
            {"config": '{"total_steps": 1, "hidden": "wide"}'},
            "hidden: Input should be a valid tuple",
        ),
        ({"config": '{"total_steps": 1, "hidden": [64, 32]}'}, "has shape"),
        ({"config": '{"total_steps": 1, "hidden": [1000000, 1000000]}'}, "too few for layers"),
        ({"config": '{"total_steps": 1, "hidden": [-1]}'}, "too few for layers"),
        (
            {"config": '{"total_steps": 1, "recurrent": "gru", "memory": 1000000000}'},
            "too few for layers",
        ),
        (
            {"config": '{"total_steps": 1, "evaluate": "worst"}'},
            "evaluate: Input should be 'mode' or 'sample'",
        ),
    ],
)
def test_hostile_headers_are_refused(
    trained: Path, tmp_path: Path, changes: dict[str, str], words: str
):
    assert words in refusal_of(
        rewrite_header(policy_of(trained, "ppo"), tmp_path / "file", **changes)
    )


def test_a_file_without_a_header_is_read_with_the_agents_name(trained: Path, tmp_path: Path):
    for agent in AGENTS:
        bare = rewrite_header(
            policy_of(trained, agent), tmp_path / agent, agent=None, task=None, config=None
        )
        assert "does not say which agent made it (its header" in refusal_of(bare)
        manifest = plan("", TASK, 1, "smoke", open_checkpoint(bare, agent))
        assert list(manifest.hyperparameters) == [
            f"{agent}.{open_checkpoint(bare, agent).sha256[:8]}"
        ]


# -- zips of stable-baselines3 ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def zipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model as SB3 saves it, of an architecture of its own."""
    sb3 = pytest.importorskip("stable_baselines3")
    import gymnasium
    import torch

    kwargs = {"net_arch": {"pi": [16], "vf": [24]}, "activation_fn": torch.nn.ELU}
    model = sb3.PPO("MlpPolicy", gymnasium.make(TASK), policy_kwargs=kwargs, seed=0, device="cpu")
    path = tmp_path_factory.mktemp("sb3") / "model.zip"
    model.save(path)
    return path


def test_a_zip_of_sb3_plays_as_sb3_says(zipped: Path, tmp_path: Path):
    import stable_baselines3

    task = registry.card(TASK).build()
    agent: Any = registry.agent("sb3-ppo")
    policy = agent.load(str(zipped), task)
    observations = np.stack([task.observation_space.sample() for _ in range(50)])
    expected = stable_baselines3.PPO.load(zipped, device="cpu").predict(
        observations, deterministic=True
    )[0]
    assert (policy.act(observations, None) == expected).all()
    assert "does not say which agent made it (it is not a safetensors file)" in refusal_of(zipped)
    run = judge(open_checkpoint(zipped, "sb3-ppo"), tmp_path / "run", seeds=1)
    again = agent.load(str(next(run.path.glob("cells/*/*/0/policy.safetensors"))), task)
    assert (again.act(observations, None) == expected).all()


@pytest.mark.parametrize("name", ["DQN", "SAC", "TD3", "DDPG", "A2C"])
def test_zips_of_every_algorithm_are_read(name: str, tmp_path: Path):
    sb3 = pytest.importorskip("stable_baselines3")
    import gymnasium

    env = gymnasium.make(DISCRETE_TASK if name == "DQN" else TASK)
    room = {} if name == "A2C" else {"buffer_size": 1}
    model = getattr(sb3, name)("MlpPolicy", env, seed=0, device="cpu", **room)
    model.save(tmp_path / "model.zip")
    task = registry.card(DISCRETE_TASK if name == "DQN" else TASK).build()
    policy = registry.agent(f"sb3-{name.lower()}").load(str(tmp_path / "model.zip"), task)  # type: ignore[attr-defined]
    observations = np.stack([task.observation_space.sample() for _ in range(20)])
    assert (
        policy.act(observations, None) == model.predict(observations, deterministic=True)[0]
    ).all()


class Trap:
    """Runs a command when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.mark),)


def change_members(zipped: Path, to: Path, **members: bytes) -> Path:
    """Write a copy with other members."""
    with zipfile.ZipFile(zipped) as source, zipfile.ZipFile(to, "w") as copy:
        for name in source.namelist():
            copy.writestr(name, members.get(name.replace(".", "_"), source.read(name)))
    return to


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_nothing_in_a_zip_is_run(zipped: Path, tmp_path: Path):
    import base64

    import torch

    mark = tmp_path / "mark"
    weights = io.BytesIO()
    torch.save({"weight": Trap(mark)}, weights)
    for number, hostile in enumerate((weights.getvalue(), pickle.dumps(Trap(mark)), b"")):
        file = change_members(zipped, tmp_path / f"weights{number}.zip", policy_pth=hostile)
        assert "policy.pth cannot be read as weights only" in refusal_of(file, "sb3-ppo")
    with zipfile.ZipFile(zipped) as source:
        data = json.loads(source.read("data"))
    for name in data:
        if isinstance(data[name], dict) and ":serialized:" in data[name]:
            data[name][":serialized:"] = base64.b64encode(pickle.dumps(Trap(mark))).decode()
    file = change_members(zipped, tmp_path / "data.zip", data=json.dumps(data).encode())
    plan("", TASK, 1, "smoke", open_checkpoint(file, "sb3-ppo"))  # read without them
    assert not mark.exists()


def test_zips_that_cannot_be_read_safely_or_fit_nothing_are_refused(zipped: Path, tmp_path: Path):
    with zipfile.ZipFile(zipped) as source:
        data = json.loads(source.read("data"))

    def refusal(task: str = TASK, **changes: Any) -> str:
        return refusal_of(
            change_members(zipped, tmp_path / "m.zip", data=json.dumps(data | changes).encode()),
            "sb3-ppo",
            task,
        )

    kwargs = {name: value for name, value in data["policy_kwargs"].items() if name[0] != ":"}
    assert "activation_fn" in kwargs
    assert "Unknown activation" in refusal(
        policy_kwargs=kwargs | {"activation_fn": "<class 'mine.Sine'>"}
    )
    assert "features_extractor_class=" in refusal(
        policy_kwargs=kwargs | {"features_extractor_class": "<class 'mine.CNN'>"}
    )
    assert "net_arch=wide" in refusal(policy_kwargs=kwargs | {"net_arch": "wide"})
    assert "too few for layers" in refusal(policy_kwargs=kwargs | {"net_arch": [10**6, 10**6]})
    # Each fits, all do not.
    assert "too few for layers" in refusal(policy_kwargs=kwargs | {"net_arch": [8] * 100_000})
    assert "has shape" in refusal(policy_kwargs=kwargs | {"net_arch": [16]})
    assert "has shape" in refusal(task=DISCRETE_TASK)
    assert "gSDE" in refusal(use_sde=True)
    assert "not a JSON object with policy_kwargs" in refusal(policy_kwargs=3)
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        archive.writestr("photo.jpg", b"")
    assert "is not a zip that stable-baselines3's model.save() wrote" in refusal_of(
        tmp_path / "photos.zip", "sb3-ppo"
    )


def test_zips_that_are_damaged_or_inflate_to_more_than_they_take_are_refused(
    zipped: Path, tmp_path: Path
):
    """Torch inflates compressed weights, which it does not write.

    A small file could take any memory.
    """
    with zipfile.ZipFile(zipped) as source:
        policy = source.read("policy.pth")
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(policy)) as stored,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name in stored.namelist():
            archive.writestr(name, bytes(2**24) if "/data/" in name else stored.read(name))
    file = change_members(zipped, tmp_path / "bomb.zip", policy_pth=packed.getvalue())
    assert "and would inflate to" in refusal_of(file, "sb3-ppo")

    with zipfile.ZipFile(tmp_path / "deflated.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data", "{}" * 1000)
        archive.writestr("policy.pth", policy)
    deflated = bytearray((tmp_path / "deflated.zip").read_bytes())
    encrypted = deflated.copy()
    start = deflated.index(b"policy.pth") + len("policy.pth")
    deflated[start : start + 40] = b"\xff" * 40
    (tmp_path / "broken.zip").write_bytes(deflated)
    for place in (6, encrypted.index(b"PK\1\2") + 8):
        encrypted[place] |= 1
    (tmp_path / "encrypted.zip").write_bytes(encrypted)
    for name in ("broken.zip", "encrypted.zip"):
        assert "is not a zip that stable-baselines3's model.save() wrote" in refusal_of(
            tmp_path / name, "sb3-ppo"
        )
