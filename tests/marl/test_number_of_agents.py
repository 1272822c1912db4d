"""Test tasks with a number of agents of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
import pettingzoo
import pytest

import rlbench_suite
from rlbench_suite.baselines.ppo.agent import PPO
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.core.task_card import id_without_agents

ID = "rlsuite/Vicsek-v0"


def test_a_card_of_another_number_has_an_id_of_its_own_and_no_scores() -> None:
    many = card(ID, agents=64)
    assert many.id == f"{ID}?agents=64"
    assert (many.agents, many.registered_id, many.scores()) == (64, ID, {})
    assert many.build() is card(f"{ID}?agents=64").build()
    assert card(f"{ID}?agents=64", agents=16) is card(ID)
    hard = card(ID, agents=np.int64(64), difficulty="hard")
    assert hard.id == f"{ID}?agents=64&difficulty=hard" == card(hard.id).id
    assert id_without_agents(hard.id) == f"{ID}?difficulty=hard"
    assert card(ID).build() is not many.build()


@pytest.mark.parametrize("number", [15, 257, "many", 20.5, True, "1e2", -64])
def test_a_number_out_of_range_is_refused_with_the_range(number: Any) -> None:
    with pytest.raises(ValueError, match=f"{ID} has 16 to 256 agents, 16 by default; got agents="):
        card(ID, agents=number)


def test_a_fixed_number_is_no_keyword() -> None:
    for name in ("SAT-v0", "Spread-v0"):
        with pytest.raises(TypeError, match="unexpected keyword argument 'agents'"):
            card(name, agents=3)


def test_every_face_has_the_agents() -> None:
    env = gymnasium.make(ID, agents=24)
    observation, _ = env.reset(seed=0)
    assert observation.shape == (24, 6)
    world = pettingzoo.make("parallel", ID, agents=24)
    views, _ = world.reset(seed=0)
    np.testing.assert_array_equal(np.stack([*views.values()]), observation)
    assert world.state().shape == (24 * 6,)
    batch = gymnasium.make_vec(ID, 3, agents=24)
    assert batch.observation_space.shape == (3, 24, 6)
    batch.close()
    assert rlbench_suite.make("Vicsek-v0?agents=24").unwrapped.card.agents == 24


def test_a_policy_plays_among_more_agents_than_it_was_saved_with(tmp_path: Path) -> None:
    """Each agent of 48 acts as one of 16 would that sees the same."""
    small, large = card(ID).build(), card(ID, agents=48).build()
    agent = PPO(hidden=(16,))
    path = str(tmp_path / "policy.safetensors")
    agent.save(agent.untrained_policy(small, agent.config(small, "smoke")), path)
    rows = np.random.default_rng(0).uniform(-1, 1, (48, 6)).astype(np.float32)
    key = jax.random.key(0)

    def act(task: Any, observation: np.ndarray) -> np.ndarray:
        return np.asarray(
            agent.load(path, task).act((), View(observation, None, None, None), key)[0]
        )

    together = act(large, rows)
    apart = np.concatenate([act(small, rows[i : i + 16]) for i in (0, 16, 32)])
    np.testing.assert_allclose(together, apart, rtol=1e-5, atol=1e-7)
    assert len(np.unique(together)) == 48
    with pytest.raises(ValueError, match="holds a policy of ppo for rlsuite/Vicsek-v0, not of ppo"):
        agent.load(path, card("FlockFormation-v0").build())
