"""Kuramoto against its critical coupling, SciPy's integrators, and SciPy's optimal control."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import solve_continuous_are
from scipy.optimize import minimize_scalar

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Uniform
from rlbench_suite.core.policy import View, reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.marl.kuramoto import (
    EFFORT,
    MAX_PUSH,
    Kuramoto,
    Params,
    State,
    best_regulator,
    step_phases,
)
from rlbench_suite.numerics.process import precision

CARD = card("Kuramoto-v0")
N = CARD.agents


@pytest.fixture(scope="module")
def task() -> Kuramoto:
    return CARD.build()


def pairwise_speeds(phases: np.ndarray, speeds: np.ndarray, coupling: float) -> np.ndarray:
    """Return the derivative of phases as Kuramoto wrote it, as a mean over pairs."""
    return speeds + coupling * np.sin(phases[None] - phases[:, None]).mean(1)


def test_a_step_is_the_solution_of_scipy() -> None:
    """Eighth-order integration of the equation over pairs; the error falls as the fourth power."""
    rng = np.random.default_rng(0)
    errors = []
    with jax.enable_x64(True):
        step = jax.jit(step_phases)
        for _ in range(20):
            phases = rng.uniform(-np.pi, np.pi, N)
            speeds = rng.uniform(-8, 8, N)
            coupling = rng.uniform(0.2, 3)
            exact = solve_ivp(
                lambda _, y, s=speeds, k=coupling: pairwise_speeds(y, s, k),
                (0, 0.4), phases, method="DOP853", rtol=1e-12, atol=1e-12,
            ).y[:, -1]  # fmt: skip
            row = []
            for count in (4, 8, 16):
                y = phases
                for _ in range(count):
                    y = step(y, speeds, coupling, 0.4 / count)
                row.append(abs(np.asarray(y) - exact).max())
            errors.append(row)
    worst = np.max(errors, 0)
    assert worst[0] < 2e-4  # rad, at the task's period of 0.1 s
    np.testing.assert_allclose(np.log2(worst[:-1] / worst[1:]), 4, atol=0.5)


def test_rules_over_a_thousand_episodes() -> None:
    """A step from a thousand sampled starts, beside the equations over pairs in NumPy."""
    task = CARD.build(dtype="float64")
    count = 1000
    actions = np.random.default_rng(1).uniform(-1, 1, (count, N, 1))
    with precision(task):
        keys = jax.random.split(jax.random.key(0), count)
        params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, 1)
        state = jax.jit(jax.vmap(task.initial))(keys, params)
        values = jax.jit(jax.vmap(lambda *args: _step(task, *args)))(state, actions, params)
    after, reward, observation, info = jax.tree.map(np.asarray, values)
    frequencies, couplings = np.asarray(params.frequencies), np.asarray(params.coupling)
    np.testing.assert_allclose(frequencies.mean(1), 0, atol=1e-12)
    for i in range(count):
        phases = np.asarray(state.phases[i])
        speeds = frequencies[i] + 4 * actions[i, :, 0]
        k1 = pairwise_speeds(phases, speeds, couplings[i])
        k2 = pairwise_speeds(phases + 0.05 * k1, speeds, couplings[i])
        k3 = pairwise_speeds(phases + 0.05 * k2, speeds, couplings[i])
        k4 = pairwise_speeds(phases + 0.1 * k3, speeds, couplings[i])
        phases = phases + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        unit = np.exp(1j * phases)
        np.testing.assert_allclose(np.exp(1j * after.phases[i]), unit, atol=1e-12)
        mean = unit.mean()
        effort = 2 * actions[i, :, 0] ** 2
        np.testing.assert_allclose(
            reward[i], (unit * mean.conj()).real / abs(mean) - effort, atol=1e-9
        )
        assert reward[i].mean() == pytest.approx(abs(mean) - effort.mean(), abs=1e-9)
        ahead = mean * unit.conj() / abs(mean)
        np.testing.assert_allclose(observation[i, :, 0], ahead.real, atol=1e-9)
        np.testing.assert_allclose(observation[i, :, 1], ahead.imag, atol=1e-9)
        np.testing.assert_allclose(observation[i, :, 2], abs(mean), atol=1e-9)
        np.testing.assert_allclose(observation[i, :, 3], frequencies[i] / 10, atol=1e-12)
        assert info["success"][i] == (abs(mean) >= 0.85)
    assert (abs(after.phases) <= np.pi).all()


def _step(task: Kuramoto, state: Any, action: Any, params: Any) -> tuple[Any, ...]:
    after = task.transition(state, action, None, params)
    reward = task.reward(state, action, after, None, params)
    return after, reward, task.observation(after, None, params), task.info(after, params)


def settled_order(task: Kuramoto, frequencies: np.ndarray, coupling: float) -> float:
    """Return the mean order from 40 s to 60 s after random phases, without pushes."""
    params = Params(frequencies.astype(np.float32), np.float32(coupling))
    count = len(frequencies)
    noop = np.zeros((count, 1), np.float32)
    start = State(np.random.default_rng(3).uniform(-np.pi, np.pi, count).astype(np.float32))

    def step(state: State, _: None) -> tuple[State, jax.Array]:
        after = task.transition(state, noop, None, params)
        return after, task.info(after, params)["order"]

    _, orders = jax.jit(lambda state: jax.lax.scan(step, state, None, 600))(start)
    return float(np.asarray(orders)[400:].mean())


@pytest.mark.parametrize("ratio", [0.5, 1.5, 2.0, 4.0])
def test_order_follows_the_critical_coupling(ratio: float) -> None:
    """With Cauchy's frequencies the order is sqrt(1 - critical / coupling), and 0 below.

    2,000 oscillators have the quantiles of the distribution; fluctuations are of the order of
    2,000 ** -0.5 = 0.022. The fastest one per cent, which no mean phase holds, are slowed down so
    that they turn less than once a step.
    """
    count = 2000
    task = Kuramoto(replace(CARD, agents=count), difficulty=0.5, dtype="float32")
    width = 0.5
    quantiles = (np.arange(count) + 0.5) / count
    frequencies = np.clip(width * np.tan(np.pi * (quantiles - 0.5)), -30, 30)
    order = settled_order(task, frequencies, ratio * 2 * width)
    expected = np.sqrt(max(0, 1 - 1 / ratio))
    assert order == pytest.approx(expected, abs=0.06 if ratio < 1 else 0.03)


def test_two_oscillators_lock_where_the_sine_allows() -> None:
    """Their difference moves by d - coupling * sin(difference): closed form of Adler."""
    task = Kuramoto(replace(CARD, agents=2), difficulty=0.5, dtype="float32")
    noop = np.zeros((2, 1), np.float32)
    step = jax.jit(lambda state, params: task.transition(state, noop, None, params))
    state = State(np.float32([0.4, -0.4]))
    for _ in range(300):
        state = step(state, Params(np.float32([0.3, -0.3]), np.float32(1.0)))
    difference = float(state.phases[0] - state.phases[1])
    assert np.sin(difference) == pytest.approx(0.6, abs=1e-4)
    drifting = Params(np.float32([0.75, -0.75]), np.float32(1.0))
    turns, last = 0.0, difference
    steps = 2000
    for _ in range(steps):
        state = step(state, drifting)
        now = float(state.phases[0] - state.phases[1])
        turns += (now - last + np.pi) % (2 * np.pi) - np.pi
        last = now
    assert turns / (steps * 0.1) == pytest.approx(np.sqrt(1.5**2 - 1), rel=0.02)


def test_regulator_is_that_of_the_riccati_equation() -> None:
    weight = EFFORT / MAX_PUSH**2
    for pull in (0.0, 0.3, 2.0):
        regulator = best_regulator(1.7, pull)
        riccati = solve_continuous_are([[-pull]], [[1.0]], [[0.5]], [[weight]])
        assert float(regulator.gain) == pytest.approx(riccati[0, 0] / weight, rel=1e-5)
        best = minimize_scalar(
            lambda push, k=pull: (
                0.5 * ((1.7 + push) / k) ** 2 + weight * push**2 if k else (1.7 + push) ** 2
            )
        ).x
        assert float(regulator.push) == pytest.approx(best, rel=1e-4)
        if pull:
            assert float(regulator.lag) == pytest.approx((1.7 + best) / pull, rel=1e-4)


@pytest.mark.parametrize("difficulty", ["easy", "medium", "hard"])
def test_reference_ends_near_the_best_synchrony(difficulty: str) -> None:
    """The best synchrony is a search over the push of each oscillator, with its sine."""
    task = CARD.build(difficulty=difficulty)
    count = 32
    late = last_rewards(task, count)
    best = [best_synchrony(*context) for context in contexts(task, count)]
    assert late.mean() > np.mean(best) - 0.02
    assert late.mean() < np.mean(best) + 0.01


def contexts(task: Kuramoto, count: int) -> list[tuple[np.ndarray, float]]:
    keys = jax.random.split(jax.random.key(7), count)
    params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, 0)
    return list(zip(np.asarray(params.frequencies), np.asarray(params.coupling), strict=True))


def last_rewards(task: Kuramoto, count: int) -> np.ndarray:
    """Return the team's reward of the last step of each of those contexts."""
    player: Any = reference_player(task)

    def run(key: jax.Array) -> jax.Array:
        params = task.sample_params(key, 0)

        def step(state: Any, _: None) -> tuple[Any, jax.Array]:
            observation = task.observation(state, None, params)
            action, _ = player.act((), View(observation, None, None, None), None)
            after = task.transition(state, action, None, params)
            return after, task.reward(state, action, after, None, params).mean()

        _, rewards = jax.lax.scan(step, task.initial(key, params), None, CARD.horizon)
        return rewards[-1]

    return np.asarray(jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(7), count)))


def best_synchrony(frequencies: np.ndarray, coupling: float) -> float:
    """Return the best reward of oscillators that keep their places, by search on a grid.

    Each lags by x behind the turning mean phase, which costs a push of pull * sin(x) - frequency.
    """
    x = np.linspace(-np.pi / 2, np.pi / 2, 401)[:, None]
    order = 1.0
    for _ in range(10):
        pushes = (coupling * order * np.sin(x) - frequencies) / MAX_PUSH
        values = np.where(abs(pushes) <= 1, np.cos(x) - EFFORT * pushes**2, -np.inf)
        order = np.cos(x[values.argmax(0), 0]).mean()
    return float(values.max(0).mean())


def test_splits_have_other_widths(task: Kuramoto) -> None:
    keys = jax.random.split(jax.random.key(5), 1000)
    for split in (0, 1):
        params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, np.int32(split))
        widths = np.asarray(params.coupling) / task.coupling_per_width
        bands = np.floor((widths - 0.5) * 8).astype(int)
        assert set(bands.tolist()) == set(range(split, 8, 2))


def test_the_reference_synchronises_and_random_pushes_do_not(task: Kuramoto) -> None:
    random = play(task, Uniform(task.action_space), range(64))
    assert random.info["success"].mean() < 0.02
    reference = play(task, reference_player(task), range(64))
    assert reference.info["success"].mean() > 0.95
    assert reference.total.mean() > random.total.mean() + 50


def test_words_and_picture(task: Kuramoto) -> None:
    params = Params(np.zeros(N, np.float32), np.float32(0.4))
    state = State(np.float32([0.5, *[0.0] * (N - 1)]))
    lines = task.describe(state, params).splitlines()
    assert len(lines) == N + 1
    assert "degrees behind" in lines[1]
    assert "2 degrees ahead" in lines[2]
    apart = State(np.linspace(-3, 3, N).astype(np.float32))
    assert (task.draw(state, params) != task.draw(apart, params)).any()
    with pytest.raises(ValueError, match="16 number"):
        task.parse("1 2", state, params)


def test_a_difficulty_is_a_coupling() -> None:
    with pytest.raises(ValueError, match="critical"):
        CARD.build(difficulty=0.0)
