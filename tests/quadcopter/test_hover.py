"""The hover task: its spaces, ends and rewards, its contexts, its reference player, its bits."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.episode import ContextSource, advance, begin, seed_key
from rlbench_suite.core.registry import card
from rlbench_suite.core.task_card import load
from rlbench_suite.envs.quadcopter.control.geometric import GeometricControl
from rlbench_suite.envs.quadcopter.physics import dynamics
from rlbench_suite.numerics.bit_exact import exact_vmap
from rlbench_suite.numerics.process import precision

LIMIT = np.int32(500)
TEST = ContextSource(np.int32(1), np.int32(-1))


@pytest.fixture(scope="module")
def task() -> Any:
    return card("QuadcopterHover-v0").build()


@pytest.fixture(scope="module")
def reference_flights(task: Any) -> Any:
    return play(task, GeometricControl(), range(1000), split="test")


@cache
def starter(task: Any) -> Any:
    return jax.jit(partial(begin, task))


def first_start(task: Any, seed: int) -> Any:
    with precision(task):
        return starter(task)(seed_key(seed), 0, TEST)


def move_vehicle(state: Any, **fields: float) -> Any:
    return state._replace(
        body=state.body._replace(**{name: np.float32(value) for name, value in fields.items()})
    )


def hovering_start(task: Any) -> tuple[Any, Any]:
    """A vehicle at rest at the origin, and its context."""
    episode, _ = first_start(task, 0)
    still = dict.fromkeys(
        ["x", "y", "z", "qx", "qy", "qz", "vx", "vy", "vz", "wx", "wy", "wz"], 0.0
    )
    return move_vehicle(jax.device_get(episode.state), qw=1.0, **still), jax.device_get(
        episode.params
    )


def test_reference_of_the_card_survives_and_ends_at_the_origin(
    task: Any, reference_flights: Any
) -> None:
    assert load(task.card.reference) is GeometricControl
    survived = ~reference_flights.terminated
    assert survived.mean() >= 0.99
    assert (reference_flights.length[survived] == 500).all()
    assert reference_flights.info["distance"][survived].max() < 0.05
    assert reference_flights.info["success"][survived].all()
    assert 470 < reference_flights.total.mean() < 500


def test_reward_is_one_at_rest_at_the_origin_and_falls_away_from_it(task: Any) -> None:
    state, params = hovering_start(task)
    action = np.full(4, dynamics.HOVER_ACTION, np.float32)

    def reward(**fields: float) -> float:
        return float(task.reward(state, action, move_vehicle(state, **fields), None, params))

    assert reward() == pytest.approx(1.0)
    assert reward(x=0.1) == pytest.approx(np.exp(-0.05), rel=1e-6)
    assert reward(vz=1.0) == pytest.approx(np.exp(-0.01), rel=1e-6)
    assert reward(qw=np.sqrt(0.5), qz=np.sqrt(0.5)) == pytest.approx(np.exp(-2.5), rel=1e-6)
    effort = float(task.reward(state, action + np.float32(0.1), state, None, params))
    assert effort == pytest.approx(np.exp(-0.01 * 4 * 0.01), rel=1e-6)


def test_terminal_limits(task: Any) -> None:
    state, params = hovering_start(task)
    inside = {"x": 0.599, "y": -0.599, "z": 0.599, "wx": 34.9, "wy": -34.9, "wz": 34.9}
    assert not task.terminal(move_vehicle(state, **inside), None, params)
    for name, value in inside.items():
        over = move_vehicle(state, **{name: 1.01 * value})
        assert task.terminal(over, None, params)
        assert ("spins" if name[0] == "w" else "0.6 m") in task.why_over(over, params, {})


def test_success_is_near_and_slow(task: Any) -> None:
    state, params = hovering_start(task)
    for fields, success in (
        ({}, True),
        ({"x": 0.09}, True),
        ({"x": 0.11}, False),
        ({"vy": 0.11}, False),
    ):
        assert bool(task.info(move_vehicle(state, **fields), params)["success"]) is success


def test_start_is_within_its_ranges_and_fills_them(task: Any) -> None:
    seeds = np.stack([seed_key(s) for s in range(4000)])
    episodes, _ = jax.jit(jax.vmap(lambda s: begin(task, s, 0, TEST)))(seeds)
    body = jax.device_get(episodes.state.body)
    for names, limit in (("x y z", 0.2), ("vx vy vz", 1.0), ("wx wy wz", 1.0)):
        for name in names.split():
            values = getattr(body, name)
            assert np.abs(values).max() <= limit
            assert values.std() == pytest.approx(limit / np.sqrt(3), rel=0.05)
    angle = 2 * np.arccos(np.clip(body.qw, -1, 1))
    assert angle.max() <= np.pi / 2 + 1e-5
    assert angle.mean() == pytest.approx(np.pi / 4, rel=0.05)
    axis = np.stack([body.qx, body.qy, body.qz]) / np.sin(angle / 2)
    assert np.abs(axis.mean(1)).max() < 0.05
    assert (axis**2).mean(1) == pytest.approx(np.full(3, 1 / 3), abs=0.02)


def test_rotor_commands_cover_the_whole_range() -> None:
    ends = dynamics.rotor_speed(np.array([-1.0, 1.0]))
    np.testing.assert_allclose(ends / dynamics.RPM, [0, 21702])
    assert dynamics.rotor_action(dynamics.rotor_speed(0.334)) == pytest.approx(0.334)


def test_train_and_test_contexts_never_overlap(task: Any) -> None:
    keys = jax.random.split(jax.random.key(0), 20_000)
    sample = jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))
    train, test = (jax.device_get(sample(keys, np.int32(split))) for split in (0, 1))
    width = 0.4 * dynamics.MASS / 40
    for params, split in ((train, 0), (test, 1)):
        band = (params.inertia.mass.astype(np.float64) - 0.8 * dynamics.MASS) / width
        assert (np.floor(band) % 2 == split).all()
        assert set(np.floor(band)) == set(range(split, 40, 2))
        inside = band - np.floor(band)
        assert inside.min() > 0.04
        assert inside.max() < 0.96
        for values, nominal, spread in (
            (params.inertia.jz, dynamics.INERTIA[2], 0.2),
            (params.thrust_coefficient, dynamics.THRUST_COEFFICIENT, 0.1),
            (params.torque_coefficient, dynamics.TORQUE_COEFFICIENT, 0.2),
            (params.motor_time_constant, dynamics.MOTOR_TIME_CONSTANT, 0.25),
        ):
            np.testing.assert_allclose(
                [values.min(), values.max()], nominal * np.array([1 - spread, 1 + spread]), 0.01
            )


def test_observation_is_always_inside_the_space(task: Any) -> None:
    """Random, bang-bang and one-sided commands, up to and including the crash."""
    rng = np.random.default_rng(0)
    size, steps = 3000, 200
    random = rng.uniform(-1, 1, (steps, size, 4))
    bang_bang = rng.choice([-1.0, 1.0], (steps // 10, size, 4)).repeat(10, 0)
    constant = np.broadcast_to(rng.choice([-1.0, 1.0], (size, 4)), (steps, size, 4))
    full = np.ones((steps, size, 4))
    seeds = np.stack([seed_key(s) for s in range(size)])

    @jax.jit
    def extremes(actions: jax.Array) -> tuple[jax.Array, ...]:
        def advance_batch(carry: Any, action: jax.Array) -> tuple[Any, tuple[jax.Array, jax.Array]]:
            episodes, over = carry
            episodes, step = jax.vmap(partial(advance, task), in_axes=(0, 0, None))(
                episodes, action, LIMIT
            )
            observation = jnp.where(over[:, None], 0, step.observation)
            return (episodes, over | step.terminated), (observation.min(0), observation.max(0))

        episodes, start_step = jax.vmap(lambda s: begin(task, s, 0, TEST))(seeds)
        (_, over), (low, high) = jax.lax.scan(
            advance_batch, (episodes, jnp.zeros(size, bool)), actions
        )
        return (
            jnp.minimum(low.min(0), start_step.observation.min(0)),
            jnp.maximum(high.max(0), start_step.observation.max(0)),
            over,
        )

    for actions in (random, bang_bang, constant, full):
        low, high, over = jax.device_get(extremes(actions.astype(np.float32)))
        assert over.mean() > 0.9
        assert task.observation_space.contains(low), low
        assert task.observation_space.contains(high), high


def test_observation_is_what_the_table_says(task: Any) -> None:
    episode, step = jax.device_get(first_start(task, 5))
    body, observation = episode.state.body, step.observation
    np.testing.assert_array_equal(observation[:3], [body.x, body.y, body.z])
    rotation = observation[3:12].reshape(3, 3)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-6)
    np.testing.assert_array_equal(
        observation[12:18], [body.vx, body.vy, body.vz, body.wx, body.wy, body.wz]
    )
    np.testing.assert_allclose(
        dynamics.rotor_speed(observation[18:]), episode.state.rotors, rtol=1e-5
    )


def test_single_batched_and_scanned_flights_are_equal_to_the_bit(
    task: Any, reference_flights: Any
) -> None:
    """500 steps of the reference player's own commands are equal by ``exact_vmap``.

    Compiled otherwise, last bits may differ.

    In a wide batch; that of the tests of every id is narrow.
    """
    size = 64
    actions = np.moveaxis(reference_flights.actions[:size], 0, 1)
    keys = np.stack([seed_key(s) for s in range(size)])

    def step(episodes: Any, action: jax.Array) -> Any:
        episodes, last = exact_vmap(lambda e, a: advance(task, e, a, LIMIT), episodes, action)
        return episodes, last.observation

    start = jax.jit(lambda seeds: exact_vmap(lambda s: begin(task, s, 0, TEST), seeds)[0])
    step_one, scan = jax.jit(step), jax.jit(lambda e, a: jax.lax.scan(step, e, a)[1])

    def step_environments(seeds: np.ndarray, commands: np.ndarray) -> np.ndarray:
        episodes, observations = start(seeds), []
        for action in commands:
            episodes, observation = step_one(episodes, action)
            observations.append(jax.device_get(observation))
        return np.stack(observations)

    batched = step_environments(keys, actions)
    assert np.asarray(scan(start(keys), actions)).tobytes() == batched.tobytes()
    for entry in (slice(0, 1), slice(size - 1, size)):
        assert (
            step_environments(keys[entry], actions[:, entry]).tobytes()
            == batched[:, entry].tobytes()
        )


def test_words_and_picture(task: Any) -> None:
    state, params = hovering_start(task)
    tilted = move_vehicle(state, x=0.25, qw=np.cos(0.25), qy=np.sin(0.25))
    words = task.describe(tilted, params)
    assert "x +0.250" in words
    assert "Tilt 28.6 degrees" in words
    picture = task.draw(tilted, params)
    assert picture.shape == task.picture_shape
    assert picture.dtype == np.uint8
    assert (picture != task.draw(state, params)).any()
    assert task.action_space.contains(task.parse("0.1 -0.2 0.3 1", state, params))
    assert task.action_space.contains(task.noop_action())
