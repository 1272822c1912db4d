"""Deep Sea Treasure against MO-Gymnasium: its Pareto front, and every step."""

import numpy as np
import pytest

from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.core.registry import card
from rlbench_suite.envs.morl.deep_sea_treasure import DeepSeaTreasure

mo_gymnasium = pytest.importorskip("mo_gymnasium", reason="needs the extra peers")


@pytest.fixture(scope="module")
def task() -> DeepSeaTreasure:
    return card("DeepSeaTreasure-v0").build()


PEER_IDS = {
    "convex": "deep-sea-treasure-v0",
    "concave": "deep-sea-treasure-concave-v0",
    "mirrored": "deep-sea-treasure-mirrored-v0",
}


@pytest.mark.parametrize("gamma", [1.0, 0.99, 0.9])
def test_front_equals_mo_gymnasium(task: DeepSeaTreasure, gamma: float) -> None:
    peer_front = mo_gymnasium.make("deep-sea-treasure-v0").unwrapped.pareto_front(gamma)
    # Same ten points; theirs keeps those that a small gamma lets others dominate, 0.9 does.
    ours = task.pareto_front(gamma)
    undominated = [
        p for p in peer_front if not any((q >= p).all() and (q > p).any() for q in peer_front)
    ]
    np.testing.assert_allclose(ours, undominated, rtol=1e-12)
    assert len(ours) == (10 if gamma > 0.95 else len(undominated))


def test_every_step_equals_mo_gymnasium(task: DeepSeaTreasure) -> None:
    peer = mo_gymnasium.make("deep-sea-treasure-v0", float_state=True).unwrapped
    ours = TaskEnv(task)
    random = np.random.default_rng(0)
    treasures = set()
    for episode in range(150):
        expected, _ = peer.reset(seed=episode)
        observation, _ = ours.reset(seed=episode)
        np.testing.assert_array_equal(observation, expected)
        # Biased walks, or the far treasures would not be reached.
        preference = random.dirichlet([1, 2, 1, 2])
        for _ in range(100):
            action = random.choice(4, p=preference)
            expected, reward, terminated, _, _ = peer.step(action)
            observation, own_reward, own_terminated, _, info = ours.step(action)
            np.testing.assert_array_equal(
                (int(ours.episode.state.row), int(ours.episode.state.column)), peer.current_state
            )
            np.testing.assert_array_equal(observation, expected)
            np.testing.assert_array_equal(own_reward, reward)  # both float32: equal to the bit
            assert own_reward.dtype == reward.dtype
            assert own_terminated == terminated == (info["treasure"] > 0)
            assert terminated or not info["success"]
            if terminated:
                treasures.add(float(reward[0]))
                break
    assert len(treasures) >= 8


@pytest.mark.parametrize("map_name", ["concave", "mirrored"])
def test_every_step_of_the_other_maps_equals_mo_gymnasium(map_name: str) -> None:
    peer = mo_gymnasium.make(PEER_IDS[map_name]).unwrapped
    ours = TaskEnv(card("DeepSeaTreasure-v0", map=map_name).build())
    random = np.random.default_rng(0)
    for episode in range(60):
        peer.reset(seed=episode)
        ours.reset(seed=episode)
        preference = random.dirichlet([1, 2, 1, 2])
        for _ in range(100):
            action = random.choice(4, p=preference)
            _, reward, terminated, _, _ = peer.step(action)
            _, own_reward, own_terminated, _, _ = ours.step(action)
            state = ours.episode.state
            np.testing.assert_array_equal((int(state.row), int(state.column)), peer.current_state)
            np.testing.assert_array_equal(own_reward, reward)
            assert own_terminated == terminated
            if terminated:
                break
