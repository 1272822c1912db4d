"""Check what every task of a single vehicle has.

That is honest rewards, bounds, starts, contexts and references.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.episode import ContextSource, advance, begin, seed_key
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.quadcopter.physics import dynamics
from rlbench_suite.envs.quadcopter.tasks import rotor_failure

NAMES = ("Recover-v0", "Waypoints-v0", "Trajectory-v0", "Land-v0", "Gates-v0", "RotorFailure-v0")
LIMIT = np.int32(10_000)
SIZE = 512
TEST = ContextSource(np.int32(1), np.int32(-1))


@pytest.fixture(params=NAMES)
def task(request: pytest.FixtureRequest) -> Any:
    return card(f"Quadcopter{request.param}").build()


@cache
def flights_of(task: Any) -> Any:
    return play(task, reference_player(task), range(128), split="test")


def airframe(params: Any) -> Any:
    return getattr(params, "airframe", params)


def body(state: Any) -> Any:
    return getattr(state, "vehicle", state).body


def test_the_reference_player_solves_every_flight(task: Any) -> None:
    flights = flights_of(task)
    assert flights.info["success"].mean() >= 0.98
    assert flights.total.mean() == pytest.approx(task.scores["reference"].mean, rel=0.02)


def test_scores_rank_players(task: Any) -> None:
    scores = task.scores
    assert scores["reference"].low > max(scores["random"].high, scores["noop"].high)
    assert abs(scores["noop"].mean - scores["random"].mean) < 0.05 * (
        scores["reference"].mean - scores["random"].mean
    )


class FlightSummary(NamedTuple):
    """Ranges, returns and ends of the first episodes of 512 seeds under given actions."""

    low: np.ndarray
    high: np.ndarray
    """Least and greatest entries of an observation."""
    worst: np.ndarray
    best: np.ndarray
    """Rewards."""
    total: np.ndarray
    success: np.ndarray
    over: np.ndarray


@cache
def program(task: Any) -> Any:
    def fly(actions: jax.Array) -> FlightSummary:
        def advance_batch(carry: Any, action: jax.Array) -> tuple[Any, tuple[jax.Array, ...]]:
            episodes, total, success, over = carry
            episodes, step = jax.vmap(partial(advance, task), in_axes=(0, 0, None))(
                episodes, action, LIMIT
            )
            observation = jnp.where(over[:, None], 0, step.observation)
            paid = jnp.where(over, 0, step.reward)
            success = jnp.where(over, success, step.info["success"])
            extremes = observation.min(0), observation.max(0), paid.min(), paid.max()
            return (episodes, total + paid, success, over | step.terminated), extremes

        seeds = jnp.stack([seed_key(s) for s in range(SIZE)])
        episodes, first = jax.vmap(lambda s: begin(task, s, 0, TEST))(seeds)
        start = (episodes, jnp.zeros(SIZE), jnp.zeros(SIZE, bool), jnp.zeros(SIZE, bool))
        (_, total, success, over), (low, high, worst, best) = jax.lax.scan(
            advance_batch, start, actions
        )
        observation = first.observation
        return FlightSummary(
            jnp.minimum(low.min(0), observation.min(0)),
            jnp.maximum(high.max(0), observation.max(0)),
            worst.min(),
            best.max(),
            total,
            success,
            over,
        )

    return jax.jit(fly)


def summarise_flights(task: Any, actions: np.ndarray) -> FlightSummary:
    """Under actions ``(horizon, 512, 4)``, or broadcast to it."""
    shape = (task.card.horizon, SIZE, 4)
    result: FlightSummary = jax.device_get(
        program(task)(np.broadcast_to(actions, shape).astype(np.float32))
    )
    return result


def test_no_constant_action_earns_anything_worth_mentioning(task: Any) -> None:
    """Falling, flying off and standing still stay below 8 % of the way up.

    Commands go from the least to the most thrust.
    """
    actions = np.array([-1.0, 0.0, 0.3, 0.334, 0.37, 1.0])
    flights = summarise_flights(task, np.resize(actions, SIZE)[:, None])
    for number in range(len(actions)):
        assert flights.success[number :: len(actions)].mean() <= 0.05
        assert task.card.normalise(flights.total[number :: len(actions)].mean()) < 0.08


def test_observation_is_always_inside_the_space_to_the_very_end(task: Any) -> None:
    rng = np.random.default_rng(0)
    steps = task.card.horizon
    random = rng.uniform(-1, 1, (steps, SIZE, 4))
    bang_bang = rng.choice([-1.0, 1.0], (steps // 10, SIZE, 4)).repeat(10, 0)
    level = rng.choice([-1.0, 0.3, 1.0], (SIZE, 1))
    for actions in (random, bang_bang, level):
        flights = summarise_flights(task, actions)
        assert flights.over.mean() > 0.6
        assert task.observation_space.contains(flights.low), flights.low
        assert task.observation_space.contains(flights.high), flights.high
        assert task.reward_space.contains(flights.worst)
        assert task.reward_space.contains(flights.best)


def test_train_and_test_vehicles_lie_in_alternating_bands(task: Any) -> None:
    keys = jax.random.split(jax.random.key(0), 5000)
    sample = jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))
    for split in (0, 1):
        masses = np.asarray(airframe(sample(keys, np.int32(split))).inertia.mass, np.float64)
        nominal = (
            rotor_failure.NOMINAL.inertia.mass if "RotorFailure" in task.card.id else dynamics.MASS
        )
        band = (masses - 0.8 * nominal) / (0.4 * nominal / 40)
        assert set(np.floor(band)) == set(range(split, 40, 2))
        inside = band - np.floor(band)
        assert inside.min() > 0.04
        assert inside.max() < 0.96


def test_rewards_and_ends_are_told_in_words(task: Any) -> None:
    """Every end says why, and the words of a state hold what the observation shows."""
    episode, _ = jax.jit(lambda s: begin(task, s, 0, TEST))(seed_key(3))
    state, params = jax.device_get((episode.state, episode.params))
    turning = body(state)._replace(wz=np.float32(40))
    spun = (
        state._replace(vehicle=state.vehicle._replace(body=turning))
        if hasattr(state, "vehicle")
        else None
    )
    spun = state._replace(body=turning) if spun is None else spun
    assert task.terminal(spun, None, params)
    assert "spins" in task.why_over(spun, params, {})
    words = task.describe(state, params)
    for value in (body(state).vx, body(state).wy):
        assert f"{float(value):+.3f}" in words
    assert task.draw(state, params).shape == task.picture_shape


def test_gradients_through_a_flight_exist(task: Any) -> None:
    """Compare the slope of the return of three steps with finite differences, at float64.

    The three steps have one constant command.

    Nothing is compiled: the operations are few, and most are those of the task before.
    """
    double = task.card.build(dtype="float64")
    with jax.enable_x64(True):
        key = jax.random.key(1)
        params = double.sample_params(key, TEST.split)
        start = double.initial(key, params)

        def total(command: float) -> jax.Array:
            state, earned = start, 0.0
            for _ in range(3):
                action = jnp.asarray([0.0, 0.01, -0.02, 0.01]) + command
                after = double.transition(state, action, key, params)
                earned, state = earned + double.reward(state, action, after, key, params), after
            return earned

        slope = float(jax.jvp(total, (0.35,), (1.0,))[1])
        difference = (float(total(0.35 + 1e-5)) - float(total(0.35 - 1e-5))) / 2e-5
    assert slope == pytest.approx(difference, rel=1e-5)
    assert slope != 0
