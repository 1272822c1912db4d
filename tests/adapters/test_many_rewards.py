"""Test tasks whose agents have several objectives each, die, or join late, on toys."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pettingzoo.test import parallel_api_test
from toy_tasks import Mortals, TwoAgentsTwoObjectives

from rlbench_suite.adapters import batch
from rlbench_suite.adapters.parallel import TaskParallelEnv
from rlbench_suite.adapters.plain_env import PlainEnv
from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.checking.checks import findings
from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.episode import scalar_return
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import agent
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard


class Constant(tuple[int, ...]):
    """A policy that always takes the same joint action."""

    def initial(self, params: Any) -> tuple[()]:
        return ()

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        return jnp.array(self, jnp.int32), memory


jax.tree_util.register_static(Constant)


def faults(task: Task[Any, Any]) -> dict[str, Any]:
    """Return what breaks the contract; toys pay what they like and have one context."""
    object.__setattr__(task.card, "reference", "")
    faults = {finding.check: finding.faults for finding in findings(task) if finding.faults}
    faults.pop("train and test apart", None)
    return faults


@pytest.mark.parametrize("make", [TwoAgentsTwoObjectives, Mortals])
def test_the_toys_keep_the_contract(make: type[Task[Any, Any]]) -> None:
    assert not faults(make())


def test_each_agent_has_a_vector_of_its_objectives() -> None:
    env = TaskParallelEnv(TwoAgentsTwoObjectives())
    env.reset(seed=0)
    _, rewards, *_ = env.step({"agent_0": 0, "agent_1": 1})
    assert {agent: reward.tolist() for agent, reward in rewards.items()} == {
        "agent_0": [1, 0],
        "agent_1": [1, -2],
    }
    assert all(rewards[agent] in env.reward_space(agent) for agent in env.agents)
    assert env.reward_space("agent_0").shape == (2,)


def test_weights_make_one_number_of_each_agents_vector() -> None:
    env = TaskParallelEnv(TwoAgentsTwoObjectives(), weights=(1.0, 0.25))
    env.reset(seed=0)
    _, rewards, _, _, infos = env.step({"agent_0": 1, "agent_1": 1})
    assert rewards == {"agent_0": -0.5, "agent_1": 0.5}
    assert infos["agent_1"]["vector_reward"].tolist() == [1, -2]
    assert env.reward_space("agent_0").low == -0.5


def test_one_environment_of_all_agents_shows_their_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    task = TwoAgentsTwoObjectives()
    monkeypatch.setattr(batch, "find_card", lambda task_id: task.card)
    monkeypatch.setattr(TaskCard, "build", lambda card, **_: task)
    for make in (TaskEnv, PlainEnv):
        env: Any = make(task)
        env.reset(seed=0)
        _, reward, *_ = env.step(np.array([0, 1]))
        assert reward.tolist() == [1, -1]
    env = TaskEnv(task, weights=(1.0, 0.25))
    env.reset(seed=0)
    _, reward, *_, info = env.step(np.array([0, 1]))
    assert reward == 0.75
    assert info["vector_reward"].tolist() == [1, -1]
    envs = batch.TaskVectorEnv(task.card.id, 3)
    envs.reset(seed=0)
    _, rewards, *_ = envs.step(np.array([[0, 1]] * 3))
    assert rewards.tolist() == [[1, -1]] * 3
    record = play(task, Constant((0, 1)), range(2))
    assert record.total.tolist() == [[[4, 0], [4, -8]]] * 2
    assert scalar_return(task, record.total).tolist() == [2, 2]


def test_the_agents_of_pettingzoo_are_those_alive() -> None:
    env = TaskParallelEnv(Mortals(), max_cycles=6)
    observations, infos = env.reset(seed=0)
    assert env.agents == list(observations) == list(infos) == ["agent_0", "agent_1"]
    living = []
    deaths = []
    joining_rewards = []
    while env.agents:
        results = env.step(dict.fromkeys(env.agents, 1))
        agents = list(results[0])
        assert all(list(result) == agents for result in results)
        _, rewards, terminations, truncations, _ = results
        joining_rewards.append(rewards.get("agent_2"))
        deaths += [(len(living) + 1, agent) for agent in agents if terminations[agent]]
        living.append(env.agents)
    assert deaths == [(2, "agent_0")]
    assert living == [
        ["agent_0", "agent_1"],
        ["agent_1"],
        ["agent_1", "agent_2"],
        ["agent_1", "agent_2"],
        ["agent_1", "agent_2"],
        [],
    ]
    assert joining_rewards == [None, None, 0, 1, 1, 1]
    assert all(truncations.values())


def test_a_restored_episode_has_the_agents_that_lived_then() -> None:
    env = TaskParallelEnv(Mortals(), max_cycles=6)
    env.reset(seed=0)
    saved = env.joint_state
    for _ in range(3):
        env.step(dict.fromkeys(env.agents, 0))
    assert env.agents == ["agent_1", "agent_2"]
    env.joint_state = saved
    assert env.agents == ["agent_0", "agent_1"]


def test_pettingzoos_own_test_passes_with_deaths_and_vectors() -> None:
    for task in (Mortals(), TwoAgentsTwoObjectives()):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            parallel_api_test(TaskParallelEnv(task, max_cycles=6), num_cycles=30)


def test_the_dead_earn_nothing_and_their_actions_are_not_played() -> None:
    record = play(Mortals(), Constant((1, 1, 1)), range(2))
    assert record.total.tolist() == [[2, 6, 3]] * 2


def test_agents_with_a_replay_buffer_refuse_tasks_whose_agents_die() -> None:
    with pytest.raises(CannotPlay, match="agents of rlsuite/Toy-v0 die"):
        next(agent("dqn").train(Mortals(), seed=0, budget="smoke"))


class Undying(Mortals):
    """Its first agent comes back in step 4."""

    def alive(self, state, params):
        lives = super().alive(state, params)
        return lives.at[0].set(lives[0] | (state.place >= 4))


class Restless(Mortals):
    """Its mask lets a dead agent choose only what it may not do."""

    def action_mask(self, state, params):
        return jnp.stack([self.alive(state, params), jnp.ones(3, bool)], 1).ravel()


@pytest.mark.parametrize(
    ("make", "fault"), [(Undying, "lives again"), (Restless, "forbids the no-op action")]
)
def test_faults_of_agents_that_die_are_named(make: type[Mortals], fault: str) -> None:
    assert fault in str(faults(make())["agents that die"])
