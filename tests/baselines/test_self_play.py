"""Self-play learns from the moves of both sides, and comes closer to an equilibrium of poker."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.flat_task import flatten_task
from rlbench_suite.baselines.games.self_play import SelfPlay
from rlbench_suite.baselines.ppo import ppo
from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.registry import card


def test_kuhn_poker_becomes_hard_to_exploit() -> None:
    """Uniform play has an exploitability of 11/24, .458 chips a hand; six seeds end below .1."""
    task: Any = card("Poker-v0", game="kuhn").build()
    agent = SelfPlay(total_steps=400_000)
    before = agent.untrained_policy(task, agent.config(task, "smoke"))
    *_, policy = agent.train(task, seed=0, budget="smoke")
    assert task.game.exploitability(before) > 0.4
    assert task.game.exploitability(policy) < 0.2
    # Of four hundred matches it wins most against the other two.
    for difficulty in ("easy", "medium"):
        seat = card("Poker-v0", game="kuhn").build(difficulty=difficulty)
        assert play(seat, policy, range(100)).total.mean() > 0, difficulty


def test_a_task_without_another_side_is_refused() -> None:
    with pytest.raises(CannotPlay, match="no other side"):
        SelfPlay().check(card("SAT-v0").build())


def test_moves_that_were_not_played_change_no_policy() -> None:
    """The gradient of the actor is that of the played rows; the critic learns from all."""
    game = card("Poker-v0", game="kuhn").joint().build()
    flat = flatten_task(game, "ppo")
    config = ppo.Config(total_steps=1, hidden=(4,), entropy=0.1)
    networks = ppo.Networks.initial(flat, config, 0)
    floats = np.random.default_rng(0).normal(size=(3, 6)).astype(np.float32)
    batch = ppo.Batch(
        x=np.random.default_rng(1).normal(size=(6, flat.features)).astype(np.float32),
        mask=None,
        action=np.zeros((6, 1), np.int32),
        log_prob=floats[0],
        advantage=floats[1],
        target=floats[2],
    )
    acting = np.array([True, False, True, True, False, False])
    gradient = jax.grad(ppo.loss)
    some = gradient(networks, batch._replace(acting=acting), flat, config)
    rows = jax.tree.map(lambda leaf: leaf[acting], batch)
    expected_actor = gradient(networks, rows, flat, config).actor
    expected_critic = gradient(networks, batch, flat, config).critic
    for leaf, expected in (
        *zip(jax.tree.leaves(some.actor), jax.tree.leaves(expected_actor), strict=True),
        *zip(jax.tree.leaves(some.critic), jax.tree.leaves(expected_critic), strict=True),
    ):
        np.testing.assert_allclose(leaf, expected, rtol=1e-4, atol=1e-6)
