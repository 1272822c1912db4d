"""Loads and instruments: constant and random torques, moving benches, measurement noise."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from rlbench_suite.core.episode import ContextSource, Role, begin, draw_key, seed_key
from rlbench_suite.core.registry import card
from rlbench_suite.envs.motor.loads import ornstein_uhlenbeck
from rlbench_suite.envs.motor.loads.load import Constant
from rlbench_suite.envs.motor.setpoints.wave import SHAPES
from rlbench_suite.numerics.process import precision

pytestmark = pytest.mark.of_variants

TEST = ContextSource(np.int32(1), np.int32(-1))


def begin_episode(task: Any, seed: int = 0) -> Any:
    with precision(task):
        return jax.jit(partial(begin, task))(seed_key(seed), 0, TEST)[0]


def test_a_constant_torque_falls_at_a_constant_rate() -> None:
    load = Constant(3.0, 0.02)
    for speed in (-50.0, 0.0, 50.0):
        assert load.acceleration(speed, 0.0, 0.01) == pytest.approx(-100)
    assert load.acceleration(7.0, 3.0, 0.01) == 0


def test_ornstein_uhlenbeck_is_stationary_with_its_correlation() -> None:
    """4,000 processes of deviation 2 and 20 ms in steps of 5 ms, begun in their stationary law."""
    rng = np.random.default_rng(0)
    values = [2.0 * rng.normal(size=4000)]
    for _ in range(40):
        values.append(
            ornstein_uhlenbeck.next_value(values[-1], rng.normal(size=4000), 2.0, 0.02, 5e-3)
        )
    path = np.array(values)
    assert path.mean() == pytest.approx(0, abs=0.03)
    assert path.std(axis=1) == pytest.approx(2, rel=0.06)
    for lag in (1, 4, 8):
        correlation = (path[lag:] * path[:-lag]).mean() / 4
        assert correlation == pytest.approx(np.exp(-lag * 5e-3 / 0.02), abs=0.02)
    assert stats.kstest(path[-1] / 2, stats.norm.cdf).pvalue > 0.01


def test_one_long_step_of_ornstein_uhlenbeck_is_many_short_ones() -> None:
    """The variance that is left of a known value has the closed form s^2 (1 - e^(-2t/T)).

    It holds for any step.
    """
    rng = np.random.default_rng(1)
    for steps in (1, 10):
        value = np.full(20000, 5.0)
        for _ in range(steps):
            value = ornstein_uhlenbeck.next_value(
                value, rng.normal(size=20000), 2.0, 0.02, 0.01 / steps
            )
        assert value.mean() == pytest.approx(5 * np.exp(-0.5), abs=0.05)
        assert value.var() == pytest.approx(4 * (1 - np.exp(-1)), rel=0.04)


def test_a_drive_under_random_torque_slows_by_it() -> None:
    """The change of speed beside that under friction alone is -T h / J.

    It is taken over one step with no current.
    """
    task: Any = card("PermExDcSpeed-v0", load="ornstein-uhlenbeck").build(dtype="float64")
    episode = begin_episode(task)
    params, state = episode.params, episode.state
    with precision(task):
        step = jax.jit(task.advance_period)
        holding = (params.machine.magnet_flux * state.speed / 60,)
        pushed, free = (
            step(
                state._replace(memories=state.memories._replace(load=jnp.float64(torque))),
                holding,
                params,
            )
            for torque in (2.5, 0.0)
        )
        inertia = params.machine.inertia + params.load.inertia
        # what the current does against the change of speed within the step is of second order
        assert float(pushed.speed - free.speed) == pytest.approx(
            -2.5 * task.period / float(inertia), rel=0.02
        )
    torques = [float(begin_episode(task, seed).state.memories.load) for seed in range(40)]
    assert 0.5 < np.std(torques) / (0.1 * 16) < 1.5


def test_a_bench_moves_its_speed_along_a_sine_within_its_range() -> None:
    """The speed is the exact sine that was sampled, at every step.

    It stays within the bounds, and is no faster than half of the torque allows.
    """
    task: Any = card("PMSMTorque-v0", load="profile").build(dtype="float64")
    low, high = task.goal.speeds
    with precision(task):
        step = jax.jit(task.advance_period)
        for seed in range(3):
            episode = begin_episode(task, seed)
            wave, state = episode.state.memories.load, episode.state
            assert float(state.speed) == pytest.approx(float(wave.at(SHAPES["sinus"])), abs=1e-9)
            speeds = []
            for _ in range(50):
                state = step(state, (0.0, 0.0), episode.params)
                speeds.append(float(state.speed))
            middle, amplitude, phase, advance = map(float, wave)
            exact = middle + amplitude * np.sin(2 * np.pi * (phase + advance * np.arange(1, 51)))
            np.testing.assert_allclose(speeds, exact, rtol=0, atol=1e-9)
            assert low <= middle - amplitude < middle + amplitude <= high
            assert 2 * np.pi * amplitude * advance <= 0.4 * 120 / (2 * 0.03883) * task.period * (
                1 + 1e-9
            )


@pytest.mark.parametrize(
    "name",
    [
        "PMSMTorque-v0",
        "PermExDcSpeed-v0",
        "PMSMPosition-v0",
        "SCIMCurrent-v0",
        "PMSMCurrentFinite-v0",
    ],
)
def test_instruments_err_by_the_given_deviation_and_tell_no_more(name: str) -> None:
    """Take 2,000 looks at currents and speed of one state, and at their torque.

    The error that is shown is that of the shown value.
    """
    plain: Any = card(name).build(dtype="float64")
    task: Any = card(name, noise="0.01").build(dtype="float64")
    episode = begin_episode(plain)
    with precision(task):
        keys = jax.vmap(lambda t: draw_key(seed_key(1), 0, t, Role.OBSERVATION))(jnp.arange(2000))
        observations = np.asarray(
            jax.jit(jax.vmap(lambda key: task.observation(episode.state, key, episode.params)))(
                keys
            )
        )
        truth = np.asarray(plain.observation(episode.state, keys[0], episode.params))
    instruments = len(task.plant.measured_names) + 1
    measured = instruments + (task.kind == "torque")
    errors = (observations - truth)[:, :measured]
    for column in errors[:, :instruments].T:
        assert stats.kstest(column / 0.01, stats.norm.cdf).pvalue > 0.001
    assert np.abs(np.corrcoef(errors[:, :instruments].T) - np.eye(instruments)).max() < 0.1
    if task.kind == "torque":  # nobody measures it
        i_d, i_q = 400 * observations[:, 0], 400 * observations[:, 1]
        estimated = 1.5 * 3 * (66e-3 + (0.37e-3 - 1.2e-3) * i_d) * i_q
        np.testing.assert_allclose(
            task.goal.scale * observations[:, instruments], estimated, rtol=1e-12
        )
    names = len(task.names)
    setpoints = slice(measured, measured + names)
    np.testing.assert_array_equal(
        observations[:, setpoints], np.broadcast_to(truth[setpoints], (2000, names))
    )
    error_shown = (
        observations[:, measured + names : measured + 2 * names]
        - truth[measured + names : measured + 2 * names]
    )
    unclipped = np.abs(observations[:, measured + names : measured + 2 * names]) < 1.5
    if task.kind == "position":
        assert (error_shown * 10 * task.goal.halving[0] / task.goal.scale).std() == pytest.approx(
            0.01, rel=0.1
        )
        return
    first_of, full = {
        "current": (0, task.plant.current_limit),
        "speed": (measured - 1, task.plant.speed_limit),
        "torque": (measured - 1, task.goal.scale),
    }[task.kind]
    of = errors[:, first_of : first_of + names] * full / (10 * np.array(task.goal.halving))
    np.testing.assert_allclose(error_shown[unclipped], -of[unclipped], atol=1e-9)
    assert unclipped.any()
