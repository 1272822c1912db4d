"""The current-tracking task.

Tested are spaces, walk of the set point, rewards, ends, contexts, reference player and bits.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.episode import ContextSource, advance, begin, seed_key
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.core.task_card import load
from rlbench_suite.envs.motor.control.field_oriented_control import FieldOrientedControl
from rlbench_suite.envs.motor.machines import pmsm
from rlbench_suite.envs.motor.machines.pmsm import DQ
from rlbench_suite.envs.motor.tasks import pmsm_current
from rlbench_suite.envs.motor.tasks.pmsm_current import Params, State
from rlbench_suite.numerics.process import precision

LIMIT = np.int32(500)
TEST = ContextSource(np.int32(1), np.int32(-1))


@pytest.fixture(scope="module")
def task() -> Any:
    return card("PMSMCurrent-v0").build()


@pytest.fixture(scope="module")
def reference_runs(task: Any) -> Any:
    return play(task, FieldOrientedControl(), range(1000), split="test")


@cache
def starter(task: Any) -> Any:
    return jax.jit(partial(begin, task))


def begin_episode(task: Any, seed: int) -> Any:
    with precision(task):
        return starter(task)(seed_key(seed), 0, TEST)


def drive(speed: float, machine: pmsm.Machine | None = None) -> Params:
    """A drive whose set point stands still; the data sheet's machine if none is given."""
    return jax.tree.map(np.float32, Params(machine or pmsm.nominal_machine(), speed, 0.0))


def state(current: tuple[float, float], setpoint: tuple[float, float]) -> State:
    return jax.tree.map(np.float32, State(DQ(*current), DQ(*setpoint), DQ(0.0, 0.0)))


def step_response(task: Any, params: Params, start: State, steps: int) -> np.ndarray:
    """Currents, ``(steps, 2)``, of the reference player under a set point that stands still."""
    player = FieldOrientedControl()

    def control(carry: Any, _: None) -> Any:
        state, memory = carry
        action, memory = player.act(memory, View(None, None, state, params), None)
        state = task.transition(state, action, jax.random.key(0), params)
        return (state, memory), jnp.stack(state.current)

    return np.asarray(
        jax.jit(lambda s: jax.lax.scan(control, (s, player.initial(params)), None, steps)[1])(start)
    )


def test_reference_of_the_card_tracks_without_over_current(task: Any, reference_runs: Any) -> None:
    assert load(task.card.reference) is FieldOrientedControl
    assert not reference_runs.terminated.any()
    assert (reference_runs.length == 500).all()
    assert reference_runs.info["success"].mean() > 0.95
    assert reference_runs.total.mean() > 475


@pytest.mark.parametrize("speed", [-100.0, 0.0, 100.0])
def test_step_response_of_the_nominal_drive_settles_at_once(task: Any, speed: float) -> None:
    """The error after a step within the voltage limit is gone in one period.

    Only the resistive drop remains, which the integrator learns.
    """
    currents = step_response(task, drive(speed), state((0.0, 0.0), (-20.0, 8.0)), 1000)
    gain = np.array([pmsm.INDUCTANCE_D, pmsm.INDUCTANCE_Q]) / pmsm_current.STEP
    drop = pmsm.RESISTANCE * np.array([20.0, 8.0]) / gain
    assert (np.abs(currents[2:] - [-20, 8]) < drop + 0.02).all()
    assert np.abs(currents[-1] - [-20, 8]).max() < 0.02


@pytest.mark.parametrize("speed", [-145.0, 145.0])
def test_large_step_at_the_voltage_limit_settles_without_overshoot_into_the_trip(
    task: Any, speed: float
) -> None:
    off = pmsm.Machine(*np.array(pmsm.nominal_machine()) * [1.2, 0.85, 1.15, 1.1])
    currents = step_response(task, drive(speed, off), state((0.0, -230.0), (-30.0, 230.0)), 1500)
    assert np.hypot(*currents.T).max() < 1.2 * pmsm.NOMINAL_CURRENT
    assert np.abs(currents[200] - [-30, 230]).max() < 12  # 20 ms
    # No steady error on a machine it does not know.
    assert np.abs(currents[-1] - [-30, 230]).max() < 1


def test_reward_by_hand(task: Any) -> None:
    first_state, next_state = state((0, 0), (-60, 60)), state((-60, 60), (99, 99))
    assert float(task.reward(first_state, None, next_state, None, None)) == pytest.approx(1.0)
    assert float(
        task.reward(first_state, None, state((-48, 60), (0, 0)), None, None)
    ) == pytest.approx(0.75)
    assert float(
        task.reward(first_state, None, state((-24, 24), (0, 0)), None, None)
    ) == pytest.approx(0.25)


def test_over_current_ends_the_episode(task: Any) -> None:
    params = drive(0.0)
    assert not task.terminal(state((-240, 319), (0, 0)), None, params)
    assert task.terminal(state((-240, 321), (0, 0)), None, params)
    for q, success in ((319, True), (321, False)):
        assert bool(task.info(state((-240, q), (-240, q)), params)["success"]) == success
    assert "401 A" in task.why_over(state((-240, 321), (0, 0)), params, {})


def test_voltage_beyond_the_circle_is_shortened_in_its_direction(task: Any) -> None:
    for action, applied in (
        ((1, 1), (0.5**0.5, 0.5**0.5)),
        ((-1, 0), (-1, 0)),
        ((0.6, -0.7), (0.6, -0.7)),
    ):
        next_state = task.transition(
            state((0, 0), (0, 0)), jnp.array(action, jnp.float32), jax.random.key(0), drive(50.0)
        )
        np.testing.assert_allclose(next_state.applied, applied, rtol=1e-6)


def test_every_reference_can_be_held_at_every_speed() -> None:
    """On the data sheet's machine; 95 % of the limit leaves room to move."""
    angle = np.linspace(np.pi / 2, 3 * np.pi / 2, 181)
    for speed in (-150.0, 150.0):
        u = pmsm.steady_voltage(
            DQ(240 * np.cos(angle), 240 * np.sin(angle)), speed, pmsm.nominal_machine()
        )
        assert np.hypot(*u).max() < 0.95 * pmsm_current.VOLTAGE_LIMIT


def test_reference_is_a_random_walk_in_the_half_disc(task: Any) -> None:
    size, steps = 2000, 300
    keys = np.stack([seed_key(s) for s in range(size)])
    episodes, _ = jax.jit(jax.vmap(lambda s: begin(task, s, 0, TEST)))(keys)
    still = jnp.zeros((size, 2), jnp.float32)

    def advance_batch(episodes: Any, _: None) -> Any:
        episodes, _ = jax.vmap(partial(advance, task), in_axes=(0, 0, None))(episodes, still, LIMIT)
        return episodes, jnp.stack(episodes.state.setpoint)

    start = np.stack(episodes.state.setpoint)
    _, walk = jax.jit(lambda e: jax.lax.scan(advance_batch, e, None, steps))(episodes)
    walk = np.concatenate([start[None], walk])
    assert walk[:, 0].max() <= 0
    assert np.hypot(walk[:, 0], walk[:, 1]).max() < 240 * (1 + 1e-6)
    inner = (np.abs(walk[:-1, 0] + 100) < 60) & (np.abs(walk[:-1, 1]) < 100)  # away from the border
    scaled = np.diff(walk, axis=0) / np.asarray(episodes.params.deviation)
    d, q = scaled[:, 0][inner], scaled[:, 1][inner]
    assert [d.mean(), q.mean(), np.mean(d * q)] == pytest.approx([0, 0, 0], abs=0.01)
    # A normal's fourth moment.
    assert [d.std(), q.std(), np.mean(d**4)] == pytest.approx([1, 1, 3], rel=0.03)


def test_train_and_test_contexts_never_overlap(task: Any) -> None:
    keys = jax.random.split(jax.random.key(0), 20_000)
    sample = jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))
    for split in (0, 1):
        params = jax.device_get(sample(keys, np.int32(split)))
        band = (params.speed.astype(np.float64) + 150) / 7.5
        assert set(np.floor(band)) == set(range(split, 40, 2))
        inside = band - np.floor(band)
        assert inside.min() > 0.04
        assert inside.max() < 0.96
        for values, nominal, spread in zip(
            params.machine, pmsm.nominal_machine(), (0.2, 0.15, 0.15, 0.1), strict=True
        ):
            ends = nominal * np.array([1 - spread, 1 + spread])
            np.testing.assert_allclose([values.min(), values.max()], ends, rtol=0.01)
        np.testing.assert_allclose(np.median(params.deviation), np.sqrt(0.4 * 8), rtol=0.03)


def test_observation_is_always_inside_the_space(task: Any) -> None:
    """Random, bang-bang and one-sided voltages, up to and including the over-current."""
    rng = np.random.default_rng(0)
    size, steps = 3000, 300
    random = rng.uniform(-1, 1, (steps, size, 2))
    bang_bang = rng.choice([-1.0, 1.0], (steps // 10, size, 2)).repeat(10, 0)
    constant = np.broadcast_to(rng.choice([-1.0, 0.0, 1.0], (size, 2)), (steps, size, 2))
    keys = np.stack([seed_key(s) for s in range(size)])

    @jax.jit
    def extremes(actions: jax.Array) -> tuple[jax.Array, ...]:
        def advance_batch(carry: Any, action: jax.Array) -> tuple[Any, tuple[jax.Array, jax.Array]]:
            episodes, over = carry
            episodes, step = jax.vmap(partial(advance, task), in_axes=(0, 0, None))(
                episodes, action, LIMIT
            )
            observation = jnp.where(over[:, None], 0, step.observation)
            return (episodes, over | step.terminated), (observation.min(0), observation.max(0))

        episodes, _ = jax.vmap(lambda s: begin(task, s, 0, TEST))(keys)
        (_, over), (low, high) = jax.lax.scan(
            advance_batch, (episodes, jnp.zeros(size, bool)), actions
        )
        return low.min(0), high.max(0), over

    for actions in (random, bang_bang, constant):
        low, high, over = jax.device_get(extremes(actions.astype(np.float32)))
        assert over.mean() > 0.3
        assert task.observation_space.contains(low), low
        assert task.observation_space.contains(high), high


def test_words_and_picture(task: Any) -> None:
    now = state((-20.0, 35.0), (-60.0, 90.0))
    words = task.describe(now, drive(50.0))
    assert "i_d -20.0 A, i_q +35.0 A" in words
    assert "Speed +50.0 rad/s" in words
    picture = task.draw(now, drive(50.0))
    assert picture.shape == task.picture_shape
    assert picture.dtype == np.uint8
    assert (picture == [255, 0, 0]).all(-1).any()
    assert task.action_space.contains(task.parse("0.1, -0.2", now, drive(50.0)))
