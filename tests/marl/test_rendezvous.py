"""Rendezvous against its rules in NumPy, SciPy's smallest circles, and a theorem of Ando et al."""

from itertools import combinations
from typing import Any

import jax
import numpy as np
import pytest
from scipy.optimize import minimize

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Uniform
from rlbench_suite.core.policy import View, reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.marl.rendezvous import (
    Rendezvous,
    State,
    connected_length,
    enclosing_centre,
)
from rlbench_suite.numerics.process import precision

CARD = card("Rendezvous-v0")
N = CARD.agents
TEAMMATES = np.array([[j for j in range(N) if j != i] for i in range(N)])


@pytest.fixture(scope="module")
def task() -> Rendezvous:
    return CARD.build()


def places(state: Any) -> np.ndarray:
    return np.asarray(state.x, np.float64) + 1j * np.asarray(state.y, np.float64)


def sampled_starts(task: Rendezvous, count: int, split: int = 1) -> tuple[Any, Any]:
    keys = jax.random.split(jax.random.key(0), count)
    params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, np.int32(split))
    return jax.jit(jax.vmap(task.initial))(keys, params), params


def test_rules_over_a_thousand_episodes() -> None:
    """Every step of episodes with random steps, beside complex numbers in NumPy."""
    task = CARD.build(dtype="float64")
    count = 1000
    rng = np.random.default_rng(1)
    with precision(task):
        state, params = sampled_starts(task, count)
        step = jax.jit(jax.vmap(lambda *args: _step(task, *args)))
        place = places(state)
        for _ in range(CARD.horizon):
            action = rng.uniform(-1, 1, (count, N, 2))
            move = action[..., 0] + 1j * action[..., 1]
            state, reward, observation, info = step(state, action, params)
            place = place + 0.1 * move / np.maximum(abs(move), 1)
            np.testing.assert_allclose(places(state), place, atol=1e-12)
            middle = place.mean(1, keepdims=True)
            np.testing.assert_allclose(reward, -abs(place - middle), atol=1e-12)
            gaps = place[:, None] - place[:, :, None]
            relative = np.take_along_axis(gaps, np.tile(TEAMMATES, (count, 1, 1)), 2)
            in_sight = abs(relative) <= 1
            relative = np.where(in_sight, relative, 0)
            rows = np.stack([in_sight, relative.real, relative.imag], -1).reshape(count, N, -1)
            np.testing.assert_allclose(observation, rows, atol=1e-12)
            np.testing.assert_allclose(info["diameter"], abs(gaps).max((1, 2)), atol=1e-12)
            np.testing.assert_array_equal(info["success"], abs(gaps).max((1, 2)) < 0.2)


def _step(task: Rendezvous, state: Any, action: Any, params: Any) -> tuple[Any, ...]:
    after = task.transition(state, action, None, params)
    reward = task.reward(state, action, after, None, params)
    return after, reward, task.observation(after, None, params), task.info(after, params)


@pytest.mark.parametrize(("difficulty", "link"), [("easy", 0.6), ("medium", 0.9), ("hard", 0.99)])
def test_agents_start_on_a_tree(difficulty: str, link: float) -> None:
    state, _ = sampled_starts(CARD.build(difficulty=difficulty), 500)
    place = places(state)
    for i in range(1, N):
        gaps = abs(place[:, :i] - place[:, i : i + 1])
        assert (abs(gaps - link) < 1e-5).any(1).all()


def test_smallest_circles_are_those_of_scipy() -> None:
    """The largest distance from the centre is the least that a search finds."""
    rng = np.random.default_rng(2)
    with jax.enable_x64(True):
        centre_of = jax.jit(enclosing_centre)
        for count in (1, 2, 3, 6):
            for _ in range(10):
                points = rng.uniform(-1, 1, N) + 1j * rng.uniform(-1, 1, N)
                points[0] = 0
                member = np.arange(N) < count
                x, y = centre_of(points.real, points.imag, member)
                radius = abs(points[:count] - complex(x, y)).max()
                optimum = minimize(
                    lambda c, p=points[:count]: abs(p - complex(*c)).max(),
                    [points[:count].real.mean(), points[:count].imag.mean()],
                    method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-9, "maxiter": 2000},
                )  # fmt: skip
                assert radius == pytest.approx(optimum.fun, abs=1e-6)


def test_steps_within_half_circles_keep_neighbours() -> None:
    """Whatever two agents choose within the bound, they still see each other."""
    rng = np.random.default_rng(3)
    with jax.enable_x64(True):
        bound = jax.jit(lambda a, b: connected_length(*a, *b, np.array([True]), 1.0))
        for _ in range(200):
            gap = rng.uniform(0, 1) * np.exp(2j * np.pi * rng.uniform())
            moved = []
            for partner in (gap, -gap):
                ahead = np.exp(2j * np.pi * rng.uniform())
                free = bound((ahead.real, ahead.imag), (partner.real[None], partner.imag[None]))
                moved.append(ahead * rng.choice([1, rng.uniform()]) * float(free))
            assert abs(gap + moved[1] - moved[0]) <= 1 + 1e-12


@pytest.mark.parametrize("difficulty", ["easy", "medium", "hard"])
def test_who_sees_whom_does_so_for_ever(difficulty: str) -> None:
    """Theorem of Ando et al.: links are never lost, and all meet."""
    task = CARD.build(difficulty=difficulty)
    state, params = sampled_starts(task, 200)
    player: Any = reference_player(task)

    def step(state: State, params: Any) -> State:
        view = View(task.observation(state, None, params), None, None, None)
        action, _ = player.act((), view, None)
        return task.transition(state, action, None, params)

    step_all = jax.jit(jax.vmap(step))
    linked = links(state)
    for _ in range(CARD.horizon):
        state = step_all(state, params)
        now = links(state)
        assert (now | ~linked).all()
        linked = now
    assert linked.all()
    place = places(state)
    assert abs(place[:, None] - place[:, :, None]).max() < 0.05


def links(state: Any) -> np.ndarray:
    """Return which pairs see each other, ``(episodes, pairs)``."""
    x, y = np.asarray(state.x), np.asarray(state.y)
    pairs = np.array(list(combinations(range(N), 2))).T
    return np.hypot(x[:, pairs[0]] - x[:, pairs[1]], y[:, pairs[0]] - y[:, pairs[1]]) <= 1


def test_splits_have_other_sectors(task: Rendezvous) -> None:
    for split in (0, 1):
        _, params = sampled_starts(task, 500, split)
        sectors = np.floor((np.asarray(params.direction, np.float64) + np.pi) / (2 * np.pi) * 16)
        assert set(sectors.astype(int).tolist()) == set(range(split, 16, 2))


def test_players(task: Rendezvous) -> None:
    record = play(task, reference_player(task), range(64))
    random = play(task, Uniform(task.action_space), range(64))
    assert record.info["success"].all()
    assert not random.info["success"].any()
    assert record.total.mean() > random.total.mean() + 20


def test_words_and_picture(task: Rendezvous) -> None:
    x = np.float32([0, 0.5, 0, 5, 6, 9])
    state = State(x, np.zeros(N, np.float32))
    lines = task.describe(state, None).splitlines()
    assert lines[1] == "agent_0: agent_1 at (+0.50, +0.00), agent_2 at (+0.00, +0.00)"
    assert lines[-1] == "agent_5: nobody"
    assert (task.draw(state, None) != task.draw(State(x, x), None)).any()
    with pytest.raises(ValueError, match="12 number"):
        task.parse("1 2", state, None)


def test_a_difficulty_is_a_length_within_sight() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        CARD.build(difficulty=1.0)
