"""Test tasks with a number of agents of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
import pettingzoo
import pytest
from gymnasium import spaces

import rlbench_suite
from rlbench_suite.baselines import configuration
from rlbench_suite.baselines.ppo.agent import PPO
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.core.task_card import id_without_agents
from rlbench_suite.evaluation.analysis import sweeps
from rlbench_suite.evaluation.protocol import EPISODES
from rlbench_suite.evaluation.runs import runner
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.run import Run

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


def test_a_run_is_swept_over_the_number_of_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Policies play among fewer and more, and the default number gives the scores of the run."""
    monkeypatch.setitem(EPISODES, "smoke", 4)
    monkeypatch.setattr(configuration, "training_steps", lambda *_: 2_048)
    plan = runner.plan("ppo,reference", "Kuramoto-v0", 1, "smoke")
    with OpenRun.open(tmp_path / "run", plan) as run, run.sitting():
        for event in runner.in_process(run):
            assert event.kind != "failed", event.value
    result = sweeps.sweep_setting(tmp_path / "run", None, "agents", ["16", "5", "40"])
    scores = {cell.agent: cell.score for cell in Run.read(tmp_path / "run").results()}
    for agent, table in result.scores().items():
        assert table.shape == (1, 3)
        assert table[0, 0] == scores[agent]
        assert len({*table[0].tolist()}) == 3


@pytest.mark.parametrize("name", ["Kuramoto-v0", "RouteChoice-v0"])
def test_ten_thousand_agents_act_as_their_mean_field(name: str) -> None:
    """Means over agents deviate as one over the square root of their number."""

    def mean_reward(count: int) -> np.ndarray:
        task = card(name, agents=count).build()
        params = task.sample_params(jax.random.key(1), np.int32(0))

        def first_reward(key: jax.Array) -> jax.Array:
            state = task.initial(key, params)
            size = np.prod(task.action_space.shape)
            draws = jax.random.uniform(key, (int(size),)).reshape(task.action_space.shape)
            is_discrete = isinstance(task.action_space, spaces.MultiDiscrete)
            action = (draws * 3).astype(int) if is_discrete else (2 * draws - 1)
            return task.reward(
                state, action, task.transition(state, action, key, params), key, params
            ).mean()

        keys = jax.random.split(jax.random.key(0), 200)
        return np.asarray(jax.jit(jax.vmap(first_reward))(keys))

    spreads = [mean_reward(count).std() for count in (100, 10_000)]
    assert spreads[0] / spreads[1] == pytest.approx(10, rel=0.35)
