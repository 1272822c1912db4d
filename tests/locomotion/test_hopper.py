"""The hopper is Gymnasium's own, to the bit, under the suite's face."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest

from rlbench_suite.adapters.host import HostVectorEnv
from rlbench_suite.adapters.rollout import play, replay
from rlbench_suite.baselines.ppo.agent import PPO
from rlbench_suite.baselines.scripted import RandomAgent
from rlbench_suite.core import registry
from rlbench_suite.core.policy import reference_player
from rlbench_suite.evaluation.runs import runner

pytest.importorskip("mujoco")
ID = "rlsuite/Hopper-v0"


def actions(seed: int, count: int) -> Iterator[np.ndarray]:
    generator = np.random.default_rng(seed)
    # Weak torques keep it up for longer than full ones.
    return (generator.uniform(-0.4, 0.4, 3).astype(np.float32) for _ in range(count))


@pytest.mark.parametrize("seed", [0, 7])
def test_trajectories_are_those_of_gymnasium(seed: int) -> None:
    ours, peer = gymnasium.make(ID, dtype="float64"), gymnasium.make("Hopper-v5")
    np.testing.assert_array_equal(ours.reset(seed=seed)[0], peer.reset(seed=seed)[0])
    episodes = 0
    for action in actions(seed, 1500):
        step, peer_step = ours.step(action), peer.step(action)
        np.testing.assert_array_equal(step[0], peer_step[0])
        assert step[1:4] == peer_step[1:4]
        assert step[4]["distance"] == peer_step[4]["x_position"]
        assert step[4]["speed"] == peer_step[4]["x_velocity"]
        if step[2] or step[3]:
            episodes += 1
            np.testing.assert_array_equal(ours.reset()[0], peer.reset()[0])
    assert episodes > 3


def test_single_precision_is_the_same_trajectory_rounded() -> None:
    single, double = gymnasium.make(ID), gymnasium.make(ID, dtype="float64")
    single.reset(seed=1)
    double.reset(seed=1)
    for action in actions(1, 40):
        a, b = single.step(action), double.step(action)
        assert a[0].dtype == np.float32
        np.testing.assert_array_equal(a[0], b[0].astype(np.float32))
        assert a[1:4] == b[1:4]
        if a[2]:  # it fell
            break


def test_time_limit_is_that_of_gymnasium() -> None:
    assert registry.card(ID).horizon == gymnasium.spec("Hopper-v5").max_episode_steps


def test_a_state_put_back_goes_on_as_before() -> None:
    env: Any = gymnasium.make(ID, dtype="float64").unwrapped
    env.reset(seed=3)
    for action in actions(3, 15):
        env.step(action)
    saved = env.episode
    first = [env.step(action) for action in actions(4, 10)]
    env.reset(seed=9)
    env.episode = saved
    for action, before in zip(actions(4, 10), first, strict=True):
        observation, reward, _, _, info = env.step(action)
        np.testing.assert_array_equal(observation, before[0])
        assert (reward, info["distance"]) == (before[1], before[4]["distance"])


def test_the_reference_hops_and_its_actions_replay_to_the_bit() -> None:
    task = registry.card(ID).build()
    record = play(task, reference_player(task), range(4))
    assert (record.info["distance"] > 8).all()
    again = replay(task, record.actions, range(4))
    np.testing.assert_array_equal(again.total, record.total)
    np.testing.assert_array_equal(again.length, record.length)
    changed = record.actions.copy()
    changed[0, 5] = -changed[0, 5]
    assert replay(task, changed, range(4)).total[0] != record.total[0]


def test_ppo_learns_through_simulators_of_the_host() -> None:
    task = registry.card(ID).build()
    *_, random = RandomAgent().train(task, seed=0, budget="smoke")
    agent = PPO(total_steps=14_000, reports=3)
    first, *_, policy = agent.train(task, seed=0, budget="smoke")
    learned = play(task, policy, range(10)).total
    assert learned.mean() > 4 * play(task, random, range(10)).total.mean()
    again: Any = next(iter(agent.train(task, seed=0, budget="smoke")))
    assert (again.steps, again.episode_return) == (first.steps, first.episode_return)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"num_envs": 0}, "at least 1, got 0"),
        ({"backend": "jax"}, "backend of rlsuite/Hopper-v0"),
        ({"autoreset_mode": "SameStap"}, "Did you mean 'SameStep'"),
        ({"render_mode": "human"}, "Unknown render_mode 'human'"),
        ({"max_episode_steps": 0}, "at least 1, got 0"),
    ],
)
def test_wrong_keywords_of_a_batch(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HostVectorEnv(ID, **keywords)


def test_without_mujoco_the_rest_of_a_suite_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.mujoco")]:
        # Imported anew, and Gymnasium says in its own words what is missing.
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ImportError, match=r"rlbench-suite\[mujoco\]"):
        gymnasium.make(ID)
    plan = runner.plan("random", f"{ID},DeepSeaTreasure-v0", seeds=1, budget="smoke")
    assert "rlbench-suite[mujoco]" in plan.not_applicable["random"][ID]
    assert list(plan.hyperparameters["random"]) == ["rlsuite/DeepSeaTreasure-v0"]
