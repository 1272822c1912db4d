"""Test the global state that central critics read: PettingZoo's face of it, and what it holds."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pettingzoo
import pytest
from pettingzoo.test.state_test import test_parallel_env as check_parallel
from pettingzoo.test.state_test import test_state as check_state
from pettingzoo.utils import parallel_to_aec
from toy_tasks import Bandit, TwoAgents

from rlbench_suite.adapters.parallel import TaskParallelEnv
from rlbench_suite.core.episode import ContextSource, begin, seed_key
from rlbench_suite.core.global_state import global_state, global_state_of, global_state_space

IDS = [f"rlsuite/{name}-v0" for name in ("Vicsek", "Spread", "MarsFleet", "FlockFormation")]
"""With masks and with a constraint among them."""


class Team(TwoAgents):
    """Two agents that see their own numbers; whether the step is odd is privileged."""

    def __init__(self) -> None:
        super().__init__()
        self.privileged_space = self.box(0.0, 3.0, (1,))

    def transition(self, state, action, key, params):
        return type(state)(state.place + 1)

    def privileged(self, state, params):
        return jnp.stack([(2 + state.place % 2).astype(jnp.float32)])


class OwnState(Team):
    """The same team, whose global state is the number of the step."""

    def __init__(self) -> None:
        super().__init__()
        self.global_state_space = self.box(0.0, 4.0, (1,))

    def global_state(self, state, params):
        return jnp.stack([state.place.astype(jnp.float32)])


def numbers(observation: Any) -> np.ndarray:
    """Return the numbers of what an agent sees, without its mask."""
    if not isinstance(observation, dict):
        return np.ravel(observation)
    if "action_mask" in observation:
        return numbers(observation["observation"])
    return np.concatenate([np.ravel(leaf) for _, leaf in sorted(observation.items())])


@pytest.mark.parametrize("task_id", IDS)
def test_the_global_state_is_what_all_agents_see_to_the_bit(task_id: str) -> None:
    env = pettingzoo.make("parallel", task_id)
    check_parallel(env)
    observations, _ = env.reset(seed=3)
    next_state = None
    for _ in range(3):
        expected = np.concatenate([numbers(observations[agent]) for agent in env.agents])
        state = env.state()
        np.testing.assert_array_equal(state[: len(expected)], expected)
        assert state in env.state_space
        saved = env.joint_state
        actions = {agent: env.action_space(agent).sample() for agent in env.agents}
        observations, *_ = env.step(actions)
        next_state = env.state()
    env.joint_state = saved
    np.testing.assert_array_equal(env.state(), state)
    env.step(actions)
    np.testing.assert_array_equal(env.state(), next_state)


def test_pettingzoo_s_own_test_of_states() -> None:
    env = pettingzoo.make("aec", "rlsuite/Spread-v0")
    check_state(env, 3)
    assert env.state_space == pettingzoo.make("parallel", "rlsuite/Spread-v0").state_space


def test_what_is_privileged_comes_last() -> None:
    env = TaskParallelEnv(Team())
    env.reset(seed=0)
    states = [env.state()]
    for _ in range(2):
        env.step(dict.fromkeys(env.agents, 0))
        states.append(env.state())
    np.testing.assert_array_equal(states, [[0, 1, 2], [0, 1, 3], [0, 1, 2]])
    np.testing.assert_array_equal(env.state_space.low, [0, 0, 0])
    np.testing.assert_array_equal(env.state_space.high, [1, 1, 3])


def test_a_task_may_have_a_global_state_of_its_own() -> None:
    env = TaskParallelEnv(OwnState())
    env.reset(seed=0)
    env.step(dict.fromkeys(env.agents, 0))
    *_, infos = env.step(dict.fromkeys(env.agents, 0))
    np.testing.assert_array_equal(env.state(), [2.0])
    assert infos["agent_1"]["global_state"].tolist() == [2.0]
    in_turn = parallel_to_aec(env)
    in_turn.reset()
    np.testing.assert_array_equal(in_turn.state(), [0.0])
    assert in_turn.state_space == env.state_space
    assert env.state_space == env.task.global_state_space


@pytest.mark.parametrize("task", [Team(), OwnState(), Bandit(masked=True)])
def test_agents_and_the_face_read_one_function(task) -> None:
    episode, step = jax.jit(
        lambda: begin(task, seed_key(1), jnp.int32(0), ContextSource.parse("train", task))
    )()
    state = global_state(task, step)
    np.testing.assert_array_equal(state, global_state_of(task, episode))
    assert state.shape == global_state_space(task).shape
