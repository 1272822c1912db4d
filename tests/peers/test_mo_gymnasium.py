"""Multi-objective tasks against MO-Gymnasium, step by step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.core.registry import card
from rlbench_suite.envs.morl.deep_sea_treasure import DeepSeaTreasure
from rlbench_suite.envs.morl.mountain_car import State
from rlbench_suite.envs.morl.resource_gathering import DEATH, PublishedMap
from rlbench_suite.envs.morl.water_reservoir import PUBLISHED_LEVELS, release_of

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


class Recorder:
    """A generator that keeps the last number it has drawn."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.number: float | None = None

    def random(self) -> float:
        self.number = float(self.generator.random())
        return self.number


def test_every_step_of_resource_gathering_equals_mo_gymnasium() -> None:
    peer = mo_gymnasium.make("resource-gathering-v0").unwrapped
    ours: PublishedMap = card("ResourceGathering-v0", map="published").build()
    params = ours.sample_params(None, None)
    random = np.random.default_rng(0)
    deaths = loot = 0
    for episode in range(100):
        peer.reset(seed=episode)
        peer.np_random = Recorder(episode)
        state = ours.initial(None, params)
        preference = random.dirichlet([2, 1, 1, 1])
        for _ in range(100):
            action = random.choice(4, p=preference)
            peer.np_random.number = None
            expected, reward, terminated, _, _ = peer.step(action)
            number = peer.np_random.number
            next_state = ours.move(state, action, 0.0 if number is None else number, params)
            assert bool(next_state.dead) == (number is not None and number < DEATH)
            np.testing.assert_array_equal(tuple(map(int, next_state[:4])), expected)
            own_reward = ours.reward(state, action, next_state, None, params)
            np.testing.assert_array_equal(own_reward, reward)
            assert bool(ours.terminal(next_state, None, params)) == terminated
            state = next_state
            if terminated:
                deaths += reward[0] < 0
                loot += reward[1:].sum() > 0
                break
    assert deaths > 5
    assert loot > 0


def test_the_front_of_resource_gathering_has_more_points_than_that_of_mo_gymnasium() -> None:
    """Its points, discounted once less, are six of the nine."""
    gamma = 0.9
    peer_front = mo_gymnasium.make("resource-gathering-v0").unwrapped.pareto_front(gamma)
    ours = card("ResourceGathering-v0", map="published").build().pareto_front(gamma)
    gaps = np.abs(ours[:, None] - np.array(peer_front) / gamma).max(-1)
    assert (gaps.min(0) < 1e-9).all()
    assert len(ours) == len(peer_front) + 3


@pytest.mark.parametrize("depth", [5, 6, 7])
def test_every_leaf_of_the_fruit_tree_equals_mo_gymnasium(depth: int) -> None:
    peer = mo_gymnasium.make("fruit-tree-v0", depth=depth).unwrapped
    task = card("FruitTree-v0", preference="none").build(difficulty=depth)
    np.testing.assert_array_equal(task.pareto_front(0.99), peer.pareto_front(0.99))
    ours = TaskEnv(task)
    for leaf in range(0, 2**depth, 3):
        peer.reset()
        ours.reset(seed=0)
        for level in reversed(range(depth)):
            action = leaf >> level & 1
            expected, reward, terminated, _, _ = peer.step(action)
            _, own_reward, own_terminated, _, _ = ours.step(action)
            state = ours.episode.state
            np.testing.assert_array_equal((int(state.row), int(state.index)), expected)
            np.testing.assert_array_equal(own_reward, reward)
            assert own_terminated == terminated


CAR_IDS = {
    "pushes": "mo-mountaincar-v0",
    "moves": "mo-mountaincar-timemove-v0",
    "speed": "mo-mountaincar-timespeed-v0",
    "moves-speed": "mo-mountaincar-3d-v0",
}


@pytest.mark.parametrize("rewards", CAR_IDS)
def test_every_step_of_mountain_car_equals_mo_gymnasium(rewards: str) -> None:
    """A push along the velocity for most steps, so that all episodes arrive."""
    peer = mo_gymnasium.make(CAR_IDS[rewards]).unwrapped
    ours = card("MOMountainCar-v0", rewards=rewards).build()
    params = ours.sample_params(None, None)
    random = np.random.default_rng(0)
    arrivals = 0
    for episode in range(3):
        start, _ = peer.reset(seed=episode)
        peer.state = tuple(start)
        state = State(*start)
        for _ in range(200):
            action = np.int32(2 if state.velocity >= 0 else 0)
            if random.random() < 0.2:
                action = np.int32(random.integers(3))
            expected, reward, terminated, _, _ = peer.step(int(action))
            state = ours.transition(state, action, None, params)
            np.testing.assert_allclose(state, expected, rtol=1e-4, atol=1e-5)  # float32 here
            own_reward = ours.reward(None, action, state, None, params)
            np.testing.assert_allclose(own_reward, reward, atol=2e-4)
            assert bool(ours.terminal(state, None, params)) == terminated
            if terminated:
                arrivals += 1
                break
    assert arrivals == 3


def test_every_step_of_deterministic_mines_equals_mo_gymnasium() -> None:
    """Random actions, half of which mine or brake, from random places."""
    peer = mo_gymnasium.make("minecart-deterministic-v0").unwrapped
    with jax.enable_x64(True):
        ours = card("Minecart-v0", mines="deterministic").build(dtype="float64")
        params = ours.only_context()
        noise = np.zeros(8)
        step = jax.jit(lambda state, action: ours.drive(state, action, noise, params))
        random = np.random.default_rng(0)
        loads = 0.0
        for episode in range(40):
            peer.reset(seed=episode)
            peer.cart.pos = random.uniform(0.2, 1, 2)
            peer.cart.departed = True
            state = ours.initial(None, params)._replace(
                x=jnp.float64(peer.cart.pos[0]),
                y=jnp.float64(peer.cart.pos[1]),
                has_left=jnp.bool_(True),
            )
            for action in random.choice(6, 12, p=[0.3, 0.1, 0.1, 0.2, 0.1, 0.2]):
                expected, reward, terminated, _, _ = peer.step(int(action))
                next_state = step(state, jnp.int32(action))
                observation = ours.observation(next_state, None, params)
                np.testing.assert_allclose(observation, expected, atol=1e-6)
                own_reward = ours.reward(state, action, next_state, None, params)
                np.testing.assert_allclose(own_reward, reward, atol=1e-6)
                assert bool(next_state.is_back) == terminated
                state = next_state
                if terminated:
                    break
            loads += float(state.first + state.second)
    assert loads > 1


@pytest.mark.parametrize("aims", ["2", "3", "4"])
def test_every_step_of_the_water_reservoir_equals_mo_gymnasium(aims: str) -> None:
    """Random shares of what can be released, with the peer's inflow."""
    peer = mo_gymnasium.make("water-reservoir-v0", nO=int(aims), normalized_action=True).unwrapped
    with jax.enable_x64(True):
        ours = card("WaterReservoir-v0", aims=aims, inflow="published").build(dtype="float64")
        params = ours.sample_params(None, None)
        random = np.random.default_rng(0)
        for episode in range(10):
            (level,), _ = peer.reset(seed=episode)
            assert np.isclose(level, PUBLISHED_LEVELS).any()
            state = ours.at_level(level)
            for step in range(100):
                action = random.random(1)
                (level,), reward, _, truncated, _ = peer.step(action)
                inflow = float(np.ravel(peer.dam_inflow)[0])
                release = release_of(action[0], state.reservoir.level)
                next_state = ours.flow(state, release, inflow, params)
                own_reward = ours.reward(state, action, next_state, None, params)
                np.testing.assert_allclose(next_state.reservoir.level, level, rtol=1e-5, atol=1e-4)
                np.testing.assert_allclose(own_reward, reward, rtol=1e-5, atol=1e-3)
                assert truncated == (step + 1 == ours.card.horizon)
                state = next_state
