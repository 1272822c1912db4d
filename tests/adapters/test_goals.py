"""Tasks with goals: the conventions of Gymnasium-Robotics, and rewards that goals alone decide."""

import gymnasium
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.checking.checks import check_task
from rlbench_suite.core import registry

CASES = [
    ("rlsuite/PointMaze-v0", {}),
    ("rlsuite/PointMaze-v0", {"difficulty": "medium-dense"}),
    ("rlsuite/Parking-v0", {}),
]
BATCH = 8


def play(
    name: str, keywords: dict, policy_share: float
) -> tuple[gymnasium.vector.VectorEnv, list[tuple]]:
    """Play 300 steps; return (observation, reward, over).

    A share of the actions is full throttle; the others are random.
    """
    batch = gymnasium.make_vec(name, BATCH, goal=True, autoreset_mode="SameStep", **keywords)
    observations, _ = batch.reset(seed=3)
    batch.action_space.seed(0)
    rows = []
    for step in range(300):
        if name.startswith("rlsuite/PointMaze"):
            towards = observations["desired_goal"] - observations["achieved_goal"]
            actions = np.clip(towards - 0.3 * observations["observation"][:, 2:], -1, 1).astype(
                np.float32
            )
        else:
            actions = np.float32([[1, 0.1 * (i - 3)] for i in range(BATCH)])
        if step % 10 >= 10 * policy_share:
            actions = batch.action_space.sample()
        following, rewards, terminated, _, infos = batch.step(actions)
        ends = {name: key.copy() for name, key in following.items()}
        for i in np.flatnonzero(infos.get("_final_obs", [])):
            for key, value in infos["final_obs"][i].items():
                ends[key][i] = value
        rows.append((ends, rewards, terminated))
        observations = following
    return batch, rows


@pytest.mark.parametrize(("name", "keywords"), CASES)
def test_goals_alone_decide_the_rewards_and_ends_of_episodes(name: str, keywords: dict) -> None:
    batch, rows = play(name, keywords, 0.7)
    achieved, desired = (
        np.stack([ends[key] for ends, *_ in rows]) for key in ("achieved_goal", "desired_goal")
    )
    rewards = np.stack([row[1] for row in rows])
    terminated = np.stack([row[2] for row in rows])
    computed = batch.compute_reward(achieved, desired, {})
    assert computed.shape == rewards.shape == (300, BATCH)
    np.testing.assert_allclose(computed, rewards, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(batch.compute_terminated(achieved, desired, {}), terminated)
    assert not batch.compute_truncated(achieved, desired, {}).any()
    assert terminated.any() == (keywords == {})  # the dense maze never ends
    hindsight = batch.compute_reward(achieved, achieved, {})
    assert (hindsight == (1 - 1 / 600 if keywords == {} and "Maze" in name else 1)).all()
    env = gymnasium.make(name, goal=True, **keywords)
    observation, _ = env.reset(seed=0)
    reward = env.unwrapped.compute_reward(
        observation["achieved_goal"], observation["desired_goal"], {}
    )
    assert type(reward) is float
    with pytest.raises(ValueError, match=r"have shape \(\.\.\., \d\), got"):
        env.unwrapped.compute_reward(np.zeros(3), np.zeros(3), {})


@pytest.mark.parametrize(("name", "keywords"), CASES)
def test_an_env_with_goals_follows_gymnasium_robotics(name: str, keywords: dict) -> None:
    env = gymnasium.make(name, goal=True, **keywords)
    space = env.observation_space
    assert isinstance(space, gymnasium.spaces.Dict)
    assert list(sorted(space)) == ["achieved_goal", "desired_goal", "observation"]
    assert space["achieved_goal"] == space["desired_goal"]
    observation, _ = env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(5):
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        goals = observation["achieved_goal"], observation["desired_goal"], info
        assert reward == pytest.approx(env.unwrapped.compute_reward(*goals), rel=1e-6)
        assert terminated == env.unwrapped.compute_terminated(*goals)
        assert truncated == env.unwrapped.compute_truncated(*goals)


@pytest.mark.parametrize("name", ["PointMaze-v0", "Parking-v0"])
def test_goals_show_the_same_episode_and_pass_all_checks(name: str) -> None:
    plain = gymnasium.make(f"rlsuite/{name}")
    goal = gymnasium.make(f"rlsuite/{name}", goal=True)
    plain.reset(seed=1)
    goal.reset(seed=1)
    for _ in range(20):
        action = np.float32([1, 0.2])
        rewards = plain.step(action)[1], goal.step(action)[1]
        np.testing.assert_allclose(*rewards, rtol=1e-5)
        np.testing.assert_array_equal(
            np.array(plain.unwrapped.episode.state[0]), np.array(goal.unwrapped.episode.state[0])
        )
    check_task(registry.card(f"{name}?goal=True").build())


def test_an_env_without_goals_has_no_compute_reward() -> None:
    maze = gymnasium.make("rlsuite/PointMaze-v0")
    treasure = gymnasium.make("rlsuite/DeepSeaTreasure-v0")
    batch = gymnasium.make_vec("rlsuite/PointMaze-v0", 2)
    for env in (maze, treasure, batch):
        assert not hasattr(env.unwrapped, "compute_reward")
    with pytest.raises(
        AttributeError, match=r"PointMaze-v0 has no compute_reward: make it with goal=True"
    ):
        _ = maze.unwrapped.compute_reward
    with pytest.raises(ValueError, match="Unknown goal"):
        gymnasium.make("rlsuite/PointMaze-v0", goal="there")
