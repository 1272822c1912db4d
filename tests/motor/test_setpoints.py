"""Kinds of set points: waveforms, laws of moves, bounds and slopes.

Exact waveforms and laws are compared with SciPy's.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import signal, stats

from rlbench_suite.envs.motor.parts.setpoint_part import (
    MAX_LEVEL_SHARE,
    MIN_LEVEL_SHARE,
    SETPOINTS,
    Range,
)
from rlbench_suite.envs.motor.plants.catalogue import PLANTS
from rlbench_suite.envs.motor.setpoints.goals import GOALS
from rlbench_suite.envs.motor.setpoints.wave import SHAPES, wave_through

pytestmark = pytest.mark.of_variants

HORIZON = 200
RANGES = (
    Range(-30.0, 50.0, 0.2, float(np.log(10.0)), 2.0, np.inf),
    Range(0.0, 1.0, 0.002, float(np.log(4.0)), 0.005, 0.3),
)
STARTS = ((-29.0, 0.99), (12.0, 0.4), (50.0, 0.0))
PEERS: dict[str, Any] = {
    "sinus": np.sin,
    "triangle": partial(signal.sawtooth, width=0.5),
    "sawtooth": signal.sawtooth,
    "step": signal.square,
}


@pytest.mark.parametrize("name", SHAPES)
def test_waveforms_are_those_of_scipy(name: str) -> None:
    phase = (np.arange(997) + 0.25) / 997
    with jax.enable_x64(True):
        values = np.asarray(SHAPES[name].value(jnp.asarray(phase)))
    np.testing.assert_allclose(values, PEERS[name](2 * np.pi * phase), atol=1e-14)


@pytest.mark.parametrize("name", SHAPES)
def test_a_wave_begins_at_a_value_and_goes_on_as_its_formula_says(name: str) -> None:
    """Check 2,000 waves of either range.

    Tested are the exact waveform after 50 steps, its bounds over a turn, its slope and its jumps.
    """
    rng = np.random.default_rng(0)
    for r in RANGES:
        u = rng.random((2000, 5))
        values = r.low + (r.high - r.low) * u[:, 0]
        slope = np.asarray(r.slowest * np.exp(r.quicker * u[:, 1]))
        with jax.enable_x64(True):
            wave = wave_through(
                name, *map(jnp.asarray, (values,)), (r.low, r.high), slope, r.jump, *u[:, 2:].T
            )
            first = np.asarray(wave.at(SHAPES[name]))
            np.testing.assert_allclose(first, values, atol=1e-9 * (r.high - r.low))
            middle, amplitude, phase, advance = map(np.asarray, wave)
            for _ in range(50):
                wave = wave.shift()
            later = np.asarray(wave.at(SHAPES[name]))
        turns = phase + 50 * advance
        # Not on an edge of a jump.
        away = np.abs(turns % 1 - np.array([[0.0], [0.5], [1.0]])).min(0) > 1e-9
        exact = middle + amplitude * PEERS[name](2 * np.pi * turns)
        np.testing.assert_allclose(later[away], exact[away], atol=1e-11 * (r.high - r.low))
        assert (middle - amplitude).min() >= r.low - 1e-12
        assert (middle + amplitude).max() <= r.high + 1e-12
        fine = np.linspace(0, 1, 4001)[:-1] + 1e-5
        # Within the first half turn.
        steepest = np.abs(np.diff(PEERS[name](2 * np.pi * fine)))[:1900].max() * 4000
        assert (amplitude * steepest * advance <= slope * (1 + 1e-9)).all()
        if name in ("sinus", "triangle"):  # that slope is reached
            np.testing.assert_allclose(amplitude * steepest * advance, slope, rtol=1e-5)
        else:
            assert (2 * amplitude).max() <= min(r.jump, r.high - r.low)


def run(name: str, count: int, steps: int, pace: float = 0.3) -> np.ndarray:
    """Return float64 set points of shape ``(len(STARTS), count, steps + 1, len(RANGES))``."""
    setpoint = SETPOINTS[name](HORIZON)

    def simulate(values: Any, key: jax.Array) -> jax.Array:
        start = (
            values,
            setpoint.begin(values, RANGES, jnp.float64(pace), jax.random.fold_in(key, 99)),
        )

        def body(now: Any, t: Any) -> Any:
            after = setpoint.step(*now, RANGES, jnp.float64(pace), jax.random.fold_in(key, t))
            return after, jnp.stack(after[0])

        return jnp.concatenate(
            [jnp.stack(values)[None], jax.lax.scan(body, start, jnp.arange(steps))[1]]
        )

    with jax.enable_x64(True):
        starts = tuple(np.array(STARTS).T[:, :, None] * np.ones(count))
        keys = jax.random.split(jax.random.key(5), (len(STARTS), count))
        return np.asarray(jax.jit(jax.vmap(jax.vmap(simulate)))(starts, keys))


@pytest.mark.parametrize("name", SETPOINTS)
def test_setpoints_stay_within_bounds_and_begin_where_they_are_told(name: str) -> None:
    values = run(name, 200, HORIZON)
    np.testing.assert_array_equal(values[:, :, 0], np.array(STARTS)[:, None] * np.ones((200, 1)))
    for i, r in enumerate(RANGES):
        assert values[..., i].min() >= r.low
        assert values[..., i].max() <= r.high
        moved = np.abs(np.diff(values[..., i], axis=-1))
        assert moved.max() > 0
        if r.jump < np.inf:
            assert moved.max() <= (r.jump + r.slowest * np.exp(r.quicker) * 30) * (1 + 1e-9)
    last_values = values[1, :, -1]
    assert abs(np.corrcoef(last_values.T)[0, 1]) < 0.2, (
        "quantities move independently of each other"
    )
    assert len(np.unique(last_values[:, 0])) > 30, "episodes differ"


@pytest.mark.parametrize(
    ("name", "law"), [("walk", stats.norm), ("laplace", stats.laplace(scale=np.sqrt(0.5)))]
)
def test_moves_of_walks_are_of_their_law(name: str, law: Any) -> None:
    """Test 20,000 moves by Kolmogorov and Smirnov's test, and check their deviation.

    The moves have known seeds and are away from the bounds.
    """
    values = run(name, 200, 101)[1, :, :, 0]
    deviation = RANGES[0].slowest * np.exp(RANGES[0].quicker * 0.3)
    moves = np.diff(values, axis=-1).ravel() / deviation
    assert stats.kstest(moves[:20000], law.cdf).pvalue > 0.01
    assert moves.std() == pytest.approx(1, abs=0.02)


def test_switched_setpoints_do_each_kind_in_turn() -> None:
    """Sub-episodes have the documented lengths and kinds, and walks the documented moves.

    No kind begins with a jump.
    """
    setpoint = SETPOINTS["switched"](HORIZON)

    def simulate(key: jax.Array) -> Any:
        values = (jnp.float64(12.0), jnp.float64(0.4))
        start = (values, setpoint.begin(values, RANGES, jnp.float64(0.3), key))

        def body(now: Any, t: Any) -> Any:
            after = setpoint.step(*now, RANGES, jnp.float64(0.3), jax.random.fold_in(key, t))
            return after, (after[0][0], after[1][0].kind, after[1][0].steps_left)

        return jax.lax.scan(body, start, jnp.arange(2000))[1]

    with jax.enable_x64(True):
        value, kind, left = map(
            np.asarray, jax.jit(jax.vmap(simulate))(jax.random.split(jax.random.key(1), 300))
        )
    begins = np.diff(left, axis=1, prepend=-1) > -1
    begins[:, 0] = True
    lengths = left[begins] + 1
    assert lengths.min() >= MIN_LEVEL_SHARE * HORIZON - 1
    assert lengths.max() <= MAX_LEVEL_SHARE * HORIZON
    counts = np.bincount(kind[begins], minlength=6)
    assert stats.chisquare(counts).pvalue > 0.01
    moves = np.diff(value, axis=1)
    deviation = RANGES[0].slowest * np.exp(RANGES[0].quicker * 0.3)
    inside = (np.abs(value[:, 1:] - 10) < 30) & (np.abs(value[:, :-1] - 10) < 30)
    for number, law in enumerate((stats.norm, stats.laplace(scale=np.sqrt(0.5)))):
        some = moves[(kind[:, 1:] == number) & inside] / deviation
        assert stats.kstest(some[:20000], law.cdf).pvalue > 0.01
    start = np.abs(moves)[begins[:, 1:] & (kind[:, 1:] > 1) & (kind[:, 1:] < 4)]
    assert start.max() <= deviation * (1 + 1e-9), (
        "sine and triangle begin where the last kind ended"
    )


def test_halving_errors_are_the_parts_that_goals_say() -> None:
    """They are parts of the nominal current, and of the largest requested torque and speed."""
    for (machine, kind), goal in GOALS.items():
        largest = max(map(abs, goal.low + goal.high))
        if kind == "current":
            largest = PLANTS[machine]().nominal_current
        smallest_share, largest_share = {"speed": (0.01, 0.022), "position": (0.0, 1.0)}.get(
            kind, (0.045, 0.058)
        )
        for halving in goal.halving:
            assert smallest_share <= halving / largest <= largest_share, (machine, kind)


def test_ramps_climb_by_their_slope_and_hold_their_levels() -> None:
    """A move is a slope, nothing, or the rest of the way.

    Levels are the middle or the outer half of either side.
    """
    r, values = RANGES[0], run("ramps", 200, 2 * HORIZON, pace=1.0)[1, :, :, 0]
    moves = np.abs(np.diff(values, axis=-1))
    assert moves.max() <= r.steepest * (1 + 1e-9)
    levels = values[:, 1:][moves == 0]
    middle, half = 0.5 * (r.low + r.high), 0.5 * (r.high - r.low)
    away = np.abs(levels[np.abs(levels - values[0, 0]) > 1e-9] - middle) / half
    assert ((away < 1e-9) | (away >= 0.5)).all()
    assert (away < 1e-9).mean() > 0.05
