"""PPO with a memory: what it remembers, where it forgets, and that it is PPO otherwise."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_tasks import Chain, Cue, Toy, TwoAgents

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.networks import mlp
from rlbench_suite.baselines.ppo.agent import PPO, programs
from rlbench_suite.baselines.ppo.memory_units import GRU
from rlbench_suite.baselines.ppo.recurrent import Policy, collect

SMALL = {
    "num_envs": 16, "num_steps": 32, "minibatches": 2, "hidden": (16,), "memory": 16, "reports": 2,
    "learning_rate": 1e-2, "total_steps": 40_000,
}  # fmt: skip
CUE = Cue()


@cache
def train_policy(recurrent: str | None, seed: int = 0) -> Any:
    *_, policy = PPO(**SMALL, recurrent=recurrent).train(CUE, seed=seed, budget="smoke")
    return policy


def test_a_memory_remembers_the_cue_and_without_one_it_is_chance() -> None:
    policy = train_policy(None)  # the card says that the task is partially observed
    assert isinstance(policy, Policy)
    assert play(CUE, policy, range(400)).total.mean() > 0.9
    memoryless = play(CUE, train_policy("none"), range(400)).total.mean()
    assert 0.4 < memoryless < 0.6  # half, give or take four standard errors


def test_the_card_decides_and_the_caller_may_overrule_it() -> None:
    observed = Cue(partially_observed=False)
    hidden = CUE
    assert PPO().hyperparameters(observed, "smoke")["recurrent"] == "none"
    assert PPO().hyperparameters(hidden, "smoke")["recurrent"] == "gru"
    assert PPO(recurrent="gru").hyperparameters(observed, "smoke")["recurrent"] == "gru"
    assert PPO(recurrent="none").hyperparameters(hidden, "smoke")["recurrent"] == "none"
    with pytest.raises(
        ValueError, match="minibatches=3 must divide the number of sequences, 16 envir"
    ):
        PPO(num_envs=16, num_steps=3, minibatches=3).hyperparameters(hidden, "smoke")


def test_the_unit_is_the_published_one() -> None:
    """Compute equations 5 to 8 of Cho et al. 2014, one number at a time in float64.

    The reset gate comes after the product as in cuDNN.
    """
    rng = np.random.default_rng(0)
    unit = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), GRU.initial(rng, 3, 4))
    x = rng.normal(size=3)
    memory = rng.normal(size=4)
    expected = np.zeros(4)
    for i in range(4):
        of_input = [
            x @ unit.inputs.weight[:, g * 4 + i] + unit.inputs.bias[g * 4 + i] for g in range(3)
        ]
        of_memory = [
            memory @ unit.recurrence.weight[:, g * 4 + i] + unit.recurrence.bias[g * 4 + i]
            for g in range(3)
        ]
        reset, keep = (1 / (1 + np.exp(-(of_input[g] + of_memory[g]))) for g in range(2))
        expected[i] = keep * memory[i] + (1 - keep) * np.tanh(of_input[2] + reset * of_memory[2])
    next_memory = jax.tree.map(jnp.asarray, unit)(jnp.asarray(x), jnp.asarray(memory))
    np.testing.assert_allclose(next_memory, expected, rtol=1e-5, atol=1e-6)


def test_learning_recalls_the_memories_of_acting_across_rollouts_and_episodes() -> None:
    """Recompute the memories of two rollouts that are cut in the middle of episodes.

    From the stored first memories and the ends of episodes alone, the same memories come out, and
    an episode's first step knows nothing of the one before.
    """
    agent = PPO(**SMALL | {"num_steps": 9, "minibatches": 1})
    config = agent.config(CUE, "smoke")
    compiled = programs(CUE, config)
    flat = compiled.flat
    training = compiled.start(0)
    collected = jax.jit(partial(collect, flat, config))
    for rollout in range(2):
        base = training.base
        stream, memory, transitions, memories, _ = collected(training, jax.random.key(rollout))
        again = base.networks.actor.unit.unroll(
            training.memory, base.moments.normalise(transitions.x), transitions.over
        )
        np.testing.assert_allclose(again, memories, rtol=1e-4, atol=1e-6)
        over = np.asarray(transitions.over)
        assert over.any()
        first = base.networks.actor.unit(
            base.moments.normalise(transitions.x), jnp.zeros_like(memories)
        )
        begins = np.nonzero(over[:-1])
        np.testing.assert_allclose(memories[1:][begins], first[1:][begins], rtol=1e-4, atol=1e-6)
        assert not np.allclose(memories[2], first[2])
        np.testing.assert_array_equal(np.asarray(memory)[over[-1]], 0)
        assert rollout == 0 or np.abs(training.memory).max() > 0
        training = training._replace(base=base._replace(stream=stream), memory=memory)


def test_playing_step_by_step_is_what_training_saw() -> None:
    """A policy's memory runs through a whole episode as it does through a rollout."""
    policy = train_policy(None)
    record = play(CUE, policy, range(64))
    unit = policy.actor.unit
    answer = record.actions[:, CUE.delay]
    cue = np.where(record.total == 1, answer, 1 - answer)
    observations = np.zeros((CUE.delay + 1, 64, 2), np.float32)
    observations[0, :, 0], observations[-1, :, 1] = 2.0 * cue - 1, 1
    x = policy.moments.normalise(jnp.asarray(observations))
    readings = unit.unroll(jnp.zeros((64, unit.size)), x, jnp.zeros(x.shape[:2], bool))
    inputs = jnp.concatenate([x, readings], -1)[-1]
    np.testing.assert_array_equal(policy.actor(policy.flat, inputs, None).mode()[:, 0], answer)


@pytest.mark.parametrize("agents", [1, 2])
def test_it_learns_what_needs_no_memory(agents: int) -> None:
    task = Chain() if agents == 1 else TwoAgents()
    agent = PPO(**SMALL | {"total_steps": 20_000}, recurrent="gru")
    *_, policy = agent.train(task, seed=1, budget="smoke")
    record = play(task, policy, range(4))
    if agents == 1:
        np.testing.assert_array_equal(record.length, 4)
    else:
        np.testing.assert_array_equal(record.actions[0, 0], [0, 1])


def test_a_time_limit_does_not_end_the_value() -> None:
    """As for PPO without a memory: 1 a step for ever is worth 5 at gamma 0.8, cut off or not."""
    task = Toy(horizon=4)
    agent = PPO(**SMALL | {"total_steps": 80_000}, gamma=0.8, recurrent="gru", scale_rewards=False)
    config = agent.config(task, "smoke")
    compiled = programs(task, config)
    training = compiled.start(0)
    for _ in range(config.chunks):
        training, _ = compiled.chunk(training)
    networks = training.base.networks
    x = training.base.moments.normalise(jnp.ones((1, 1)))
    memory = jnp.zeros((1, config.memory))
    for _ in range(4):
        memory = networks.actor.unit(x, memory)
        value = mlp(networks.critic, jnp.concatenate([x, memory], -1))
        assert abs(float(value[0, 0]) - 5) < 0.3


def test_the_same_seed_gives_the_same_bits_and_weights_survive_saving(tmp_path: Path) -> None:
    agent = PPO(**SMALL)
    policy = train_policy(None)
    *_, again = agent.train(CUE, seed=0, budget="smoke")
    path = str(tmp_path / "policy.safetensors")
    agent.save(policy, path)
    loaded = agent.load(path, CUE)
    for a, b, c in zip(*map(jax.tree.leaves, (policy, again, loaded)), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
    np.testing.assert_array_equal(
        play(CUE, policy, range(9)).actions, play(CUE, loaded, range(9)).actions
    )
