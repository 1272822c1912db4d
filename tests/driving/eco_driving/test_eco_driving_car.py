"""EcoDrivingCar against a plain simulation of its lane, who is driven, and cheap play."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from episode_checks import episode_programs
from plain_signals import Junction, check_places, colour

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Constant, Uniform
from rlbench_suite.core.episode import seed_key
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.driving.players.speed_advice import SpeedAdvice
from rlbench_suite.envs.driving.tasks.eco_driving.eco_driving_car import OWN_ENTRIES, OwnSpeedAdvice
from rlbench_suite.numerics.process import precision

pytestmark = pytest.mark.of_variants
SEEDS = range(64)


@cache
def task(dtype: str = "float32") -> Any:
    return card("EcoDrivingCar-v0").build(dtype=dtype)


@cache
def first_states() -> Any:
    """Return the first states of 512 episodes, and their contexts."""

    def first(key: jax.Array) -> Any:
        params = task().sample_params(key, jnp.int32(0))
        return task().initial(key, params), params

    return jax.tree.map(
        np.asarray, jax.jit(jax.vmap(first))(jax.random.split(jax.random.key(0), 512))
    )


def test_whole_episodes_agree_with_a_plain_simulation() -> None:
    """Compare every car to 1e-9 under random actions at float64.

    Milligrams are whole, and delays, observations and rewards agree too.
    """
    which = task("float64")
    rng = np.random.default_rng(0)
    with precision(which):
        first, go_on = episode_programs(which)
        for seed in range(4):
            episode, step = first(seed_key(seed), np.int32(seed % 2))
            params = jax.tree.map(np.asarray, episode.params)
            driven = int(params.controlled.argmax())
            fleet, twin = Junction(params), Junction(params)
            for plain in (fleet, twin):
                while np.isnan(plain.cars[driven].x):
                    plain.tick({})
            last_mg, delay, saved = fleet.lanes[0].mg, 0, 0.0
            assert int(episode.state.tick) == fleet.time
            while not step.terminated and not step.truncated:
                np.testing.assert_allclose(
                    step.observation, fleet.observations(0.0)[driven, OWN_ENTRIES], atol=1e-9
                )
                action = np.clip(rng.normal(0.2, 0.5, 1), -1, 1)
                episode, step = go_on(episode, action)
                fleet.step(np.broadcast_to(action, (12, 1)))
                twin.step(None)
                delay += max(twin.lanes[0].num_left - fleet.lanes[0].num_left, 0)
                check_places(episode.state.traffic, (twin, fleet))
                for world, plain in enumerate((twin, fleet)):
                    assert abs(int(episode.state.co2[world]) - (plain.lanes[0].mg - last_mg)) <= 1
                    positions = sorted(car.x for car in plain.lanes[0].road)
                    assert (np.diff(positions) >= 5 - 1e-9).all()
                saved += float(step.reward)
                assert int(episode.state.delay) == delay
            assert not fleet.lanes[0].ran_red
            assert saved == pytest.approx((twin.lanes[0].mg - fleet.lanes[0].mg) / 1000, abs=2e-3)
            assert step.terminated
            assert fleet.lanes[0].num_left == twin.lanes[0].num_left == len(fleet.cars)
            assert float(step.info["delay"]) == pytest.approx(delay / len(fleet.cars))


def test_the_driven_car_would_reach_a_red_light() -> None:
    """One car is driven, and at its desired speed it finds 5 s of red or more.

    Every place in the lane is driven in some episode.
    """
    _, params = first_states()
    driven = params.controlled[:, 0].argmax(-1)
    assert (params.controlled.sum((1, 2)) == 1).all()
    assert set(range(8)) <= set(driven.tolist())
    waits = []
    for i, slot in enumerate(driven):
        arrival = int(params.arrival[i, 0, slot])
        assert arrival <= 200
        reaches = arrival + int(
            np.ceil(2 * params.approach[i] / params.driver.desired_speed[i, 0, slot])
        )
        light, to_green, _ = colour(tuple(int(ticks[i]) for ticks in params.plan), 0, reaches)
        assert light == "red"
        waits.append(to_green)
    assert 10 <= min(waits) < 14
    assert max(waits) > 60


def test_a_human_in_the_car_saves_exactly_nothing() -> None:
    for action in (0.0, -1.0):
        record = play(task(), Constant(np.full(1, action, np.float32)), SEEDS)
        assert (np.asarray(record.total) == 0).all()
        assert (record.info["saving"] == 0).all()
        assert (record.info["delay"] == 0).all()
        assert record.terminated.all()
        assert not record.info["success"].any()


def test_players_rank_sensibly_and_no_constant_pays() -> None:
    """Compare advice that counts the queue, advice that does not, and none.

    Easing off for no reason is tried too.
    """
    players = [
        reference_player(task()),
        OwnSpeedAdvice(SpeedAdvice(headway=0.0, start=0.0, reserve=0.0)),
        *(Constant(np.full(1, ease, np.float32)) for ease in (0.1, 0.3, 1.0)),
        Uniform(task().action_space),
    ]
    records = [play(task(), player, SEEDS) for player in players]
    advised, blind, slight, gentle, hard, random = (record.total.mean() for record in records)
    assert advised > 1.1 * blind > 0 > slight > gentle > hard
    assert random < slight
    assert records[0].info["success"].mean() > 0.7
    assert records[0].info["delay"].mean() < 0.1
    assert not any(record.info["success"].any() for record in records[4:])


def test_words_and_picture() -> None:
    state, params = jax.tree.map(lambda values: values[0], first_states())
    text = task().describe(state, params)
    assert "you: " in text
    assert "south" not in text
    assert "cars are still to come" in text
    assert task().draw(state, params).shape == task().picture_shape
