"""Test ONNX files as saved policies: they play as NumPy or JAX does, and faults get a sentence."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core import registry
from rlbench_suite.evaluation.policy_files import onnx_policy
from rlbench_suite.evaluation.policy_files.checkpoint import open_checkpoint
from rlbench_suite.evaluation.policy_files.onnx_policy import OnnxAgent, OnnxPolicy
from rlbench_suite.evaluation.protocol import evaluate, evaluation_seeds
from rlbench_suite.evaluation.report.report import Report
from rlbench_suite.evaluation.report.report_remarks import remarks
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.runner import in_pool, in_process, plan
from rlbench_suite.leaderboard.pack import pack
from rlbench_suite.leaderboard.schema import Entry
from rlbench_suite.leaderboard.verify import verify

DRIVE = "rlsuite/PMSMCurrent-v0"
TREASURE = "rlsuite/DeepSeaTreasure-v0"
SWARM = "rlsuite/QuadcopterMultiHover-v0"
FLOAT, BOOL, INT = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64


def save_model(
    path: Path,
    inputs: Mapping[str, tuple[int, Sequence[Any]]],
    outputs: Mapping[str, tuple[int, Sequence[Any]]],
    nodes: Sequence[onnx.NodeProto],
    weights: Mapping[str, np.ndarray],
    **metadata: str,
) -> Path:
    """Write a model."""
    graph = helper.make_graph(
        nodes, "policy",
        [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items()],
        [helper.make_tensor_value_info(name, *kind) for name, kind in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, metadata)
    onnx.save(model, path)
    return path


def linear(
    path: Path, features: int, outputs: int, answer: str = "mean", **metadata: str
) -> tuple[Path, Any, Any]:
    """Write ``observation @ weights + bias``; return the file and both."""
    rng = np.random.default_rng(7)
    weights = rng.normal(size=(features, outputs)).astype(np.float32)
    bias = rng.normal(size=outputs).astype(np.float32)
    save_model(
        path,
        {"observation": (FLOAT, ["n", features])},
        {answer: (FLOAT, ["n", outputs])},
        [helper.make_node("Gemm", ["observation", "weights", "bias"], [answer])],
        {"weights": weights, "bias": bias},
        **metadata,
    )
    return path, weights, bias


class Linear(NamedTuple):
    """The same policy in JAX."""

    weights: jax.Array
    bias: jax.Array
    low: jax.Array
    high: jax.Array

    def initial(self, params: Any) -> Any:
        return ()

    def act(self, memory: Any, view: Any, key: jax.Array) -> tuple[jax.Array, Any]:
        with jax.default_matmul_precision("highest"):
            x = jnp.concatenate(
                [leaf.reshape(self.low.shape[0], -1) for leaf in jax.tree.leaves(view.observation)],
                -1,
            )
            mean = x @ self.weights + self.bias
        return jnp.clip(mean, self.low, self.high).reshape(view_shape(self)), memory


def view_shape(policy: Linear) -> tuple[int, ...]:
    return policy.low.shape if policy.low.shape[0] > 1 else policy.low.shape[1:]


@pytest.mark.parametrize("task_id", [DRIVE, SWARM])
def test_a_linear_policy_returns_what_it_returns_in_jax(tmp_path: Path, task_id: str):
    task: Any = registry.card(task_id).build()
    agents = task.card.agents
    low, high = (
        bound.reshape(agents, -1) for bound in (task.action_space.low, task.action_space.high)
    )
    features = sum(int(np.prod(component.shape)) for component in components(task)) // agents
    file, weights, bias = linear(tmp_path / "policy.onnx", features, low.shape[1])
    seeds = evaluation_seeds(task.card, 0, "smoke")[:8]
    here = evaluate(task, OnnxPolicy(file, task), seeds)
    there = play(
        task,
        Linear(jnp.asarray(weights), jnp.asarray(bias), jnp.asarray(low), jnp.asarray(high)),
        seeds,
    )
    np.testing.assert_array_equal(here.length, there.length)
    # Sums of two matrix libraries differ in last bits, which the dynamics carry on.
    np.testing.assert_allclose(here.total, there.total, rtol=1e-3)
    assert np.ptp(here.total) > 0


def components(task: Any) -> list[Any]:
    space = task.observation_space
    return [space[name] for name in space] if hasattr(space, "keys") else [space]


class Counter:
    """A policy of the host with a memory.

    It prefers the action whose number is its step, and takes a legal one.
    """

    def __init__(self, actions: int) -> None:
        self.actions, self.t = actions, 0

    def act(self, observations: Any, masks: np.ndarray | None) -> np.ndarray:
        count = len(
            next(iter(observations.values())) if isinstance(observations, dict) else observations
        )
        logits = np.broadcast_to(
            -np.abs(np.arange(self.actions) - self.t).astype(np.float32), (count, self.actions)
        )
        self.t += 1
        return np.where(masks, logits, -np.inf).argmax(1) if masks is not None else logits.argmax(1)


@pytest.mark.parametrize("task_id", [TREASURE, "rlsuite/SAT-v0"])
def test_a_memory_and_a_mask_are_used(tmp_path: Path, task_id: str):
    task: Any = registry.card(task_id).build()
    actions = int(task.action_space.n)
    features = sum(int(np.prod(component.shape)) for component in components(task))
    masked = task_id != TREASURE
    file = save_model(
        tmp_path / "counter.onnx",
        {"observation": (FLOAT, ["n", features]), "state": (FLOAT, ["n", 1])}
        | ({"action_mask": (BOOL, [None, actions])} if masked else {}),
        {"logits": (FLOAT, ["n", actions]), "next_state": (FLOAT, ["n", 1])},
        [
            helper.make_node("Sub", ["numbers", "state"], ["distance"]),
            helper.make_node("Abs", ["distance"], ["far"]),
            helper.make_node("Neg", ["far"], ["open" if masked else "logits"]),
            *(
                [helper.make_node("Where", ["action_mask", "open", "never"], ["logits"])]
                if masked
                else []
            ),
            helper.make_node("Add", ["state", "one"], ["next_state"]),
        ],
        {
            "numbers": np.arange(actions, dtype=np.float32)[None],
            "one": np.ones((1, 1), np.float32),
            "never": np.full((1, 1), -1e9, np.float32),
        },
    )
    seeds, policy = evaluation_seeds(task.card, 0, "smoke")[:6], OnnxPolicy(file, task)
    expected = evaluate(task, Counter(actions), seeds)
    for _ in range(2):  # the second time begins with a fresh memory
        record = evaluate(task, policy, seeds)
        np.testing.assert_array_equal(record.actions, expected.actions)
        np.testing.assert_array_equal(record.total, expected.total)
    assert len(np.unique(record.actions)) > 1


def test_it_is_judged_like_any_saved_policy(tmp_path: Path):
    task: Any = registry.card(DRIVE).build()
    file, *_ = linear(tmp_path / "mine.ONNX", task.observation_space.shape[0], 2, task=DRIVE)
    checkpoint = open_checkpoint(file, None)
    assert (checkpoint.agent, checkpoint.task, checkpoint.hyperparameters) == ("onnx", DRIVE, {})
    runs = []
    for execute in (in_process, partial(in_pool, workers=1)):
        with (
            OpenRun.open(
                tmp_path / f"run{len(runs)}", plan("", DRIVE, 1, "smoke", checkpoint)
            ) as run,
            run.sitting(),
        ):
            run.keep(checkpoint)
            for event in execute(run):
                assert event.kind != "failed", event.value
            run.merge()
        runs.append(run)
    first, second = (run.read_episodes(run.results()[0].cell).to_pylist() for run in runs)
    assert first == second
    assert len(first) == 50
    assert f"{checkpoint.label} is one saved policy of onnx" in " ".join(
        remarks(Report.of(runs[0]))
    )
    # A board replays actions. It neither has the file nor needs it.
    pack(runs[0].path, Entry(name="mine", agent=checkpoint.label), tmp_path / "a.zip")
    assert verify(tmp_path / "a.zip").accepted
    assert {Path(name).suffix for name in zipfile.ZipFile(tmp_path / "a.zip").namelist()} == {
        ".json",
        ".parquet",
    }


def test_a_command_line_names_another_agent(tmp_path: Path):
    file, *_ = linear(tmp_path / "policy.onnx", 3, 2)
    with pytest.raises(ValueError, match="is an ONNX file, not a policy of ppo; leave --agent out"):
        open_checkpoint(file, "ppo")
    with pytest.raises(OSError, match="Cannot read the checkpoint"):
        open_checkpoint(tmp_path / "none.onnx", None)
    os.mkfifo(tmp_path / "pipe.onnx")
    with pytest.raises(
        OSError, match=r"Cannot read the checkpoint .*pipe\.onnx: it is no plain file"
    ):
        open_checkpoint(tmp_path / "pipe.onnx", None)
    with pytest.raises(ValueError, match="trains nothing; play one by rlsuite-eval judge FILE"):
        OnnxAgent().train(registry.card(DRIVE).build(), seed=0, budget="smoke")


IDENTITY = [helper.make_node("Identity", ["observation"], ["mean"])]


@pytest.mark.parametrize(
    ("inputs", "outputs", "words"),
    [
        ({"obs": (FLOAT, ["n", 9])}, None, "Unknown input 'obs'. Did you mean 'observation'?"),
        ({"state": (FLOAT, ["n", 2])}, None, "it has no input 'observation'"),
        ({"observation": (FLOAT, ["n", 4])}, None,
         r"float32 of shape \(n, {d}\) .* has float32 of shape \(n, 4\)"),
        ({"observation": (FLOAT, [1, "d"])}, None, r"float32 of shape \(n, {d}\) with n not fixed"),
        ({"observation": (TensorProto.DOUBLE, ["n", "d"])}, None, "this file has double"),
        ({"observation": (FLOAT, ["n", "d"]), "action_mask": (BOOL, ["n", 2])}, None,
         "'action_mask'"),
        (None, {"action": "mean", "mean": "mean"},
         "one of the outputs action, mean, logits, and has action and mean"),
        (None, {"next_state": "mean"}, "and has none"),
        (None, {"actions": "mean"}, "Unknown output 'actions'. Did you mean 'action'?"),
        (None, {"logits": "mean"},
         "gives 'logits', but rlsuite/PMSMCurrent-v0 needs action or mean"),
        (None, {"mean": "wide"},
         r"of shape \(2, 2\) for 2 rows; this file gave float32 of shape \(2, {d}\)"),
        (None, {"mean": "nan"}, "gave a number in 'mean' that is not finite"),
        ({"observation": (FLOAT, ["n", "d"]), "state": (FLOAT, ["n", 2])}, None,
         "needs the output 'next_state'"),
    ],
)  # fmt: skip
def test_a_file_with_another_signature_is_refused(
    tmp_path: Path, inputs: Any, outputs: Any, words: str
):
    task: Any = registry.card(DRIVE).build()
    (d,) = task.observation_space.shape
    inputs = inputs or {"observation": (FLOAT, ["n", "d"])}
    outputs = outputs or {"mean": "mean"}
    wide, first = outputs.get("mean") == "wide", next(iter(inputs))
    double = inputs[first][0] == TensorProto.DOUBLE
    kind = TensorProto.DOUBLE if double else FLOAT
    nodes = [
        helper.make_node("Identity", [first], ["all"]),
        helper.make_node("Slice", ["all", "start", "stop", "axis"], ["two"]),
        helper.make_node("Div", ["two", "two"], ["ones"]),  # 0 / 0
    ]
    for name, source in outputs.items():
        tensor = "ones" if source == "nan" else "two"
        nodes.append(helper.make_node("Identity", ["all" if wide else tensor], [name]))
    file = save_model(
        tmp_path / "wrong.onnx",
        inputs,
        {name: (kind, ["n", "k"]) for name in outputs},
        nodes,
        {"start": np.array([0]), "stop": np.array([2]), "axis": np.array([1])},
    )
    with pytest.raises(ValueError, match=words.replace("{d}", str(d))) as caught:
        OnnxPolicy(file, task)
    assert "\n" not in str(caught.value)


def test_a_loop_is_refused(tmp_path: Path):
    """One of 2**62 turns would keep an evaluation for ever; it is found in a branch, too."""
    file, *_ = linear(tmp_path / "policy.onnx", 9, 2)
    model = onnx.load(file)
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["goes"])],
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("goes", TensorProto.BOOL, [])],
    )
    loop = helper.make_node("Loop", ["turns", "always"], [], body=body)
    branch = helper.make_graph([loop], "branch", [], [])
    for node in (
        loop,
        helper.make_node("If", ["always"], [], then_branch=branch, else_branch=branch),
    ):
        looped = onnx.ModelProto()
        looped.CopyFrom(model)
        looped.graph.initializer.append(numpy_helper.from_array(np.array(2**62), "turns"))
        looped.graph.initializer.append(numpy_helper.from_array(np.array(True), "always"))
        looped.graph.node.append(node)
        onnx.save(looped, file)
        with pytest.raises(ValueError, match="has the operator Loop, which may never end"):
            open_checkpoint(file, None)


def test_what_is_no_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    task = registry.card(DRIVE).build()
    for number, data in enumerate(
        (b"", b"hello", b"\x08\x07", bytes(100), b"PK\x03\x04" + bytes(50))
    ):
        file = tmp_path / f"{number}.onnx"
        file.write_bytes(data)
        with pytest.raises(ValueError, match="is not an ONNX file"):
            open_checkpoint(file, None)
    file, *_ = linear(tmp_path / "policy.onnx", 9, 2)
    model, plain = onnx.load(file), onnx.load(file)
    onnx.save(
        model,
        tmp_path / "apart.onnx",
        save_as_external_data=True,
        location="weights",
        size_threshold=0,
    )
    with pytest.raises(ValueError, match="keeps weights in other files; export it as one file"):
        open_checkpoint(tmp_path / "apart.onnx", None)
    plain.graph.node[0].domain = "foreign"
    plain.opset_import.append(helper.make_opsetid("foreign", 1))
    onnx.save(plain, file)
    with pytest.raises(ValueError, match="onnxruntime cannot run") as caught:
        OnnxPolicy(file, task)
    assert "\n" not in str(caught.value)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'rlbench-suite\[onnx\]'"):
        onnx_policy.read_task(file)
