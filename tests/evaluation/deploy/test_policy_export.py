"""Test exported policies: ONNX and C act as JAX does, alone and in closed loop with the task."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from typer.testing import CliRunner

from rlbench_suite.baselines.networks import Moments
from rlbench_suite.baselines.offline.offline_agent import OfflinePolicy, actor_layers
from rlbench_suite.baselines.ppo.agent import PPO
from rlbench_suite.baselines.replay.dqn import DQN
from rlbench_suite.baselines.replay.sac import SAC
from rlbench_suite.cli.evaluate import app
from rlbench_suite.core import registry
from rlbench_suite.core.policy import View
from rlbench_suite.evaluation.cell import Cell
from rlbench_suite.evaluation.deploy import c_header, policy_export
from rlbench_suite.evaluation.deploy.network import (
    Affine,
    Clip,
    Join,
    Network,
    NetworkPolicy,
    Relu,
    Scale,
)
from rlbench_suite.evaluation.policy_files import shared_library
from rlbench_suite.evaluation.policy_files.onnx_policy import OnnxPolicy
from rlbench_suite.evaluation.protocol import evaluate, evaluation_seeds
from rlbench_suite.evaluation.trajectory import play

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-O1")
OBSERVATIONS, LENGTH = 10_000, 50
needs_cc = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")


def policy_of(agent: Any, task: Any, budget: str = "smoke") -> Any:
    """Return a policy with weights that are not zero anywhere, and moments that normalise."""
    rng = np.random.default_rng(3)
    untrained = agent.untrained_policy(task, agent.config(task, budget))
    return perturb_actor(untrained, untrained.flat.features, rng)


def perturb_actor(policy: Any, features: int, rng: np.random.Generator) -> Any:
    actor = jax.tree.map(
        lambda leaf: (np.asarray(leaf) + rng.normal(0, 0.05, np.shape(leaf))).astype(np.float32),
        policy.actor,
    )
    mean, variance = (rng.normal(0, 0.2, features), rng.uniform(0.1, 0.5, features))
    moments = Moments(mean.astype(np.float32), variance.astype(np.float32), np.float32(1))
    return eqx.tree_at(lambda policy: (policy.actor, policy.moments), policy, (actor, moments))


def offline(task: Any) -> Any:
    flat = policy_of(SAC(), task).flat
    rng = np.random.default_rng(0)
    policy = OfflinePolicy(
        actor_layers(flat, (16, 16), rng), Moments.initial(flat.features), flat, None
    )
    return perturb_actor(policy, flat.features, rng)


KINDS = {
    "continuous": ("PMSMCurrent-v0", lambda task: policy_of(PPO(), task)),
    "squashed": ("PMSMCurrent-v0", lambda task: policy_of(SAC(hidden=[32]), task)),
    "offline": ("PMSMCurrent-v0", offline),
    "discrete": ("DeepSeaTreasure-v0", lambda task: policy_of(PPO(evaluate="mode"), task)),
    "masked": ("SAT-v0", lambda task: policy_of(DQN(hidden=[32], evaluate_epsilon=0.0), task)),
    "recurrent": ("TMaze-v0", lambda task: policy_of(PPO(memory=16), task)),
    "lstm": ("PMSMCurrent-v0", lambda task: policy_of(PPO(recurrent="lstm", memory=8), task)),
    "mingru": ("PMSMCurrent-v0", lambda task: policy_of(PPO(recurrent="mingru", memory=8), task)),
    "recurrent, continuous": (
        "PMSMCurrent-v0",
        lambda task: policy_of(PPO(recurrent="gru", memory=16), task),
    ),
}


@pytest.fixture(scope="module", params=KINDS)
def exported(request: Any) -> tuple[Any, Any, Any]:
    """A task, a policy and its export."""
    name, make = KINDS[request.param]
    task = registry.card(name).build()
    policy = make(task)
    network = policy_export.network_of(policy, "ppo")
    episodes = play(task, policy, evaluation_seeds(task.card, 0, "smoke")[:4])
    policy_as_network = policy_export.Export(
        Cell("ppo", task.card.id, 0),
        task,
        network,
        episodes,
        policy_export.difference(network, episodes),
    )
    return task, policy, policy_as_network


def compile_header(export: Any, folder: Path, name: str = "my drive") -> Path:
    """Write the header, run its test vectors, and compile it as a shared library."""
    file = folder / "policy.h"
    file.write_text(policy_export.c(export, name))
    assert not re.search(r"malloc|calloc|#include <(?!math.h|stdio.h)", file.read_text())
    check, library = folder / "check", folder / "policy.so"
    prefix = c_header.identifier(name).upper()
    subprocess.run(
        ["cc", *STRICT, f"-D{prefix}_MAIN", "-x", "c", file, "-o", check, "-lm"], check=True
    )
    process = subprocess.run([check], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout
    assert process.stdout.startswith("0 of ")
    subprocess.run(
        [
            "cc",
            *STRICT,
            "-shared",
            "-fPIC",
            "-DRLSUITE_LIBRARY",
            "-x",
            "c",
            file,
            "-o",
            library,
            "-lm",
        ],
        check=True,
    )
    return library


def observations_of(task: Any, rng: np.random.Generator) -> tuple[Any, np.ndarray | None]:
    """Return 10,000 observations in 200 sequences, and masks that leave at least one action."""
    sequences = OBSERVATIONS // LENGTH

    def sample(space: Any) -> np.ndarray:
        low, high = (np.clip(bound, -2, 2) for bound in (space.low, space.high))
        return rng.uniform(low, high, (LENGTH, sequences, *space.shape)).astype(np.float32)

    space = task.observation_space
    observations = (
        {name: sample(component) for name, component in space.items()}
        if isinstance(space, spaces.Dict)
        else sample(space)
    )
    if task.card.name != "SAT-v0":
        return observations, None
    masks = rng.random((LENGTH, sequences, int(task.action_space.n))) < 0.5
    masks[..., 0] |= ~masks.any(-1)
    return observations, masks


def acted_in_jax(policy: Any, observations: Any, masks: Any) -> np.ndarray:
    """Return the actions for sequences of observations, with the memory carried along."""

    def step(memory: Any, now: Any) -> Any:
        act = jax.vmap(
            lambda m, o, mask: policy.act(m, View(o, mask, None, None), jax.random.key(0))
        )
        action, memory = act(memory, *now)
        return memory, action

    count = OBSERVATIONS // LENGTH
    memory = jax.tree.map(lambda leaf: jnp.zeros((count, *leaf.shape)), policy.initial(None))
    return np.asarray(
        jax.jit(lambda m, now: jax.lax.scan(step, m, now)[1])(memory, (observations, masks))
    )


@needs_cc
def test_onnx_and_c_act_as_jax_does(
    exported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, policy, export = exported
    assert export.difference <= (0 if export.network.choices else 1e-5)
    (tmp_path / "policy.onnx").write_bytes(policy_export.onnx(export))
    library = compile_header(export, tmp_path)
    monkeypatch.setenv(shared_library.TRUSTED_VARIABLE, shared_library.sha256(library))
    players = [OnnxPolicy(tmp_path / "policy.onnx", task), shared_library.Controller(library, task)]
    observations, masks = observations_of(task, np.random.default_rng(1))
    expected = acted_in_jax(policy, observations, masks)
    assert len(np.unique(expected)) > 1
    for player in [NetworkPolicy(export.network, task), *players]:
        player.reset()
        actions = np.stack([
            player.act(
                jax.tree.map(lambda leaf, t=t: leaf[t], observations),
                None if masks is None else masks[t],
            )
            for t in range(LENGTH)
        ])  # fmt: skip
        if export.network.choices:
            # Two logits that are equal to the last bits.
            assert (actions != expected).mean() <= 1e-4
        else:
            span = task.action_space.high - task.action_space.low
            np.testing.assert_allclose(actions / span, expected / span, rtol=0, atol=1e-5)
    # In closed loop. A network's last bits differ, so a chaotic task would drift; none of these
    # does in an episode.
    seeds = evaluation_seeds(task.card, 0, "smoke")[:4]
    there = evaluate(task, policy, seeds)
    for player in players:
        here = evaluate(task, player, seeds)
        np.testing.assert_allclose(
            here.total, there.total, rtol=1e-4, atol=max(1e-4, task.card.replay_tolerance)
        )


@needs_cc
def test_eight_bits_are_stored_as_such_and_their_loss_is_told(tmp_path: Path) -> None:
    task = registry.card("PMSMCurrent-v0").build()
    network = policy_export.network_of(policy_of(PPO(hidden=[16]), task), "ppo").quantise()
    episodes = play(task, NetworkPolicy(network, task), evaluation_seeds(task.card, 0, "smoke")[:1])
    export = policy_export.Export(
        Cell("ppo", task.card.id, 0), task, network, episodes, 0.0, loss=1.5
    )
    compile_header(export, tmp_path)
    text = (tmp_path / "policy.h").read_text()
    assert "static const signed char my_drive_weight" in text
    assert "falls by 1.5" in text


@needs_cc
def test_layers_that_few_policies_have(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)

    def dense(n: int, m: int) -> Affine:
        return Affine(*(rng.normal(size=size).astype(np.float32) for size in ((n, m), m)))

    zero, unit = np.zeros(6, np.float32), np.ones(6, np.float32)
    layers = (
        Scale(zero, unit, unit),
        Clip(-2 * unit, 2 * unit),
        dense(6, 8),
        Relu(),
        Join(),
        dense(14, 5),
    )
    network = Network(layers, choices=(3, 2))
    x, mask = rng.normal(size=(32, 6)).astype(np.float32), rng.random((32, 5)) < 0.5
    vectors = c_header.Vectors(x, mask, network.run(x, mask, np.zeros((32, 0)))[0])
    assert len(np.unique(vectors.actions, axis=0)) > 3
    text = c_header.header("few", network, (), (), vectors, c_header.Origin("task", "me", "1", 0.0))
    (tmp_path / "few.h").write_text(text)
    check = tmp_path / "check"
    subprocess.run(
        ["cc", *STRICT, "-DFEW_MAIN", "-x", "c", tmp_path / "few.h", "-o", check, "-lm"], check=True
    )
    assert (
        subprocess.run([check], capture_output=True, text=True, check=True).stdout
        == "0 of 32 steps differ\n"
    )


@pytest.mark.parametrize(("task", "mean_cost", "broken"), [
    ("PMSMCurrent-v0", 10.0, False), ("PMSMCurrent-v0", 301.4, True),
    ("DeepSeaTreasure-v0", 301.4, False),
])  # fmt: skip
def test_a_policy_that_breaks_its_limit_is_warned_of(
    task: str, mean_cost: float, broken: bool
) -> None:
    card = registry.card(task)
    export = policy_export.Export(
        Cell("ppo", card.id, 0), card.build(), Network(()), [], 0.0, mean_cost=mean_cost
    )
    assert ("cost 301.4 on average, the limit is 10" in export.broken_limit) == broken
    assert bool(export.broken_limit) == broken


def test_names_and_texts_cannot_leave_their_place() -> None:
    hostile = '*/ int evil(void); /* "\\\n??/\n'
    task = registry.card("PMSMCurrent-v0").build()
    network = policy_export.network_of(policy_of(PPO(hidden=[4]), task), "ppo")
    vectors = c_header.Vectors(np.zeros((1, network.features)), None, np.zeros((1, 2)))
    plain = c_header.header("a", network, (), (), vectors, c_header.Origin("task", "ppo", "1", 0.0))
    attacked = c_header.header(
        "a", network, (), (), vectors, c_header.Origin(hostile, hostile, hostile, 0.0)
    )

    def code(text: str) -> str:
        return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)

    assert code(attacked) == code(plain)
    assert [c_header.identifier(name) for name in ("my drive", "1; evil()", "*/", "int-2")] == [
        "my_drive", "controller_1_evil", "controller", "int_2",
    ]  # fmt: skip
    broken = replace(
        network, layers=(network.layers[0]._replace(factor=np.full(network.features, np.nan)),)
    )
    with pytest.raises(ValueError, match="not finite"):
        c_header.header("a", broken, (), (), vectors, c_header.Origin("task", "ppo", "1", 0.0))


def test_native_code_is_loaded_only_where_the_command_line_trusts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(shared_library.TRUSTED_VARIABLE, raising=False)
    task, file = registry.card("PMSMCurrent-v0").build(), tmp_path / "mine.so"
    file.write_bytes(b"\x7fELF, perhaps")
    with pytest.raises(ValueError, match="add --trust"):
        shared_library.open_controller(file, trust=False)
    for arguments, words in (
        (["judge", str(file)], "add --trust"),
        (["judge", str(file), "--trust", "--agent", "ppo"], "leave --agent out"),
    ):
        result = CliRunner().invoke(app, arguments)
        assert words in str(result.exception)
    assert shared_library.TRUSTED_VARIABLE not in os.environ
    with pytest.raises(ValueError, match="is not loaded"):  # as from the folder of a stranger's run
        shared_library.Controller(file, task)
    monkeypatch.setenv(shared_library.TRUSTED_VARIABLE, "")
    checkpoint = shared_library.open_controller(file, trust=True)
    assert checkpoint.label.startswith("controller.")
    with pytest.raises(OSError, match="Cannot load"):
        shared_library.Controller(file, task)
    file.write_bytes(b"changed")
    with pytest.raises(ValueError, match="is not loaded"):
        shared_library.Controller(file, task)
