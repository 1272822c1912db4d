"""EcoDrivingCity against a plain simulation with trucks and cold engines, and cheap play.

Its cities are tested too.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from episode_checks import check_emissions, check_end, delay_of_second, episode_programs
from plain_signals import Junction, check_places

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Constant, Uniform
from rlbench_suite.core.episode import seed_key
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.driving.players.speed_advice import SpeedAdvice
from rlbench_suite.envs.driving.tasks.eco_driving.eco_driving_city import (
    CITIES,
    MAX_REWARD,
    CityAdvice,
)
from rlbench_suite.envs.driving.vehicle import emissions
from rlbench_suite.numerics.process import precision

pytestmark = pytest.mark.of_variants
SEEDS = range(64)


@cache
def task(penetration: float = 1.0, dtype: str = "float32") -> Any:
    return card("EcoDrivingCity-v0").build(difficulty=penetration, dtype=dtype)


@cache
def contexts(split: int) -> Any:
    """Return 4096 contexts."""
    draw = jax.jit(jax.vmap(lambda key: task().sample_params(key, jnp.int32(split))))
    return jax.tree.map(np.asarray, draw(jax.random.split(jax.random.key(split), 4096)))


def test_trucks_and_cold_engines_emit_what_is_published() -> None:
    """Compare HBEFA's HDV_D_EU4 in g/s and g/km, and the guidebook's ratio and share.

    The latter two are those of cold engines.
    """
    assert float(emissions.co2(0.0, 0.0, emissions.TRUCK)) == pytest.approx(6747.2, abs=0.1)
    for speed, grams in ((5, 1859), (10, 1184), (15, 960)):
        assert float(emissions.co2(speed, 0.0, emissions.TRUCK)) / speed == pytest.approx(
            grams, abs=0.6
        )
    assert float(emissions.co2(10.0, -1.0, emissions.TRUCK)) == 0.0
    for temperature, ratio, share in ((-10, 1.56, 0.3932), (0, 1.47, 0.342), (20, 1.29, 0.2396)):
        assert emissions.cold_ratio(temperature) == pytest.approx(ratio)
        assert emissions.cold_share(temperature) == pytest.approx(share)


def with_trucks_and_cold_engines(junction: Junction, params: Any) -> Junction:
    """Return the junction whose cars are what the context says."""
    for number, car in junction.cars.items():
        if params.truck.reshape(-1)[number]:
            car.length, car.engine, car.petrol = 10.0, (24290, 7180, 1835, 0), 0.0
        elif params.cold.reshape(-1)[number]:
            car.factor = car.petrol = 1.47 - 0.009 * float(params.temperature)
    return junction


def test_whole_episodes_agree_with_a_plain_simulation() -> None:
    """Compare every vehicle to 1e-9 under random actions at float64.

    Milligrams are whole, and delays, observations and rewards agree too.
    """
    which = task(0.5, "float64")
    rng = np.random.default_rng(0)
    cold = trucks = 0
    with precision(which):
        first, go_on = episode_programs(which)
        for seed in (0, 1, 2):
            episode, step = first(seed_key(seed), np.int32(seed % 2))
            params = jax.tree.map(np.asarray, episode.params)
            fleet, twin = (with_trucks_and_cold_engines(Junction(params), params) for _ in range(2))
            delay, saved = 0, 0.0
            while not step.terminated and not step.truncated:
                action = np.clip(rng.normal(0.2, 0.5, (48, 1)), -1, 1)
                episode, step = go_on(episode, action)
                fleet.step(action)
                twin.step(None)
                delay += delay_of_second(fleet, twin)
                check_places(episode.state.traffic, (twin, fleet))
                check_emissions(episode.state, (twin, fleet), within=2)
                for plain in (twin, fleet):
                    for lane in plain.lanes:
                        for behind, ahead in zip(lane.road[1:], lane.road, strict=False):
                            assert behind.x <= ahead.x - ahead.length + 1e-9
                np.testing.assert_allclose(
                    step.observation[:, :20], fleet.observations(0.5), atol=1e-9
                )
                observation = np.asarray(step.observation)
                for lane in fleet.lanes:
                    for car in lane.road:
                        if car.controlled and car.x < lane.line + 150:
                            between = sum(
                                car.x < o.x < lane.line for o in lane.road if o.length == 10
                            )
                            row = (
                                car.length == 10,
                                car.factor - 1,
                                between / 12 if car.x < lane.line else 0,
                            )
                            np.testing.assert_allclose(
                                observation[car.number, 20:23], row, atol=1e-9
                            )
                            trucks, cold = trucks + row[0], cold + (row[1] > 0)
                assert abs(float(step.reward[0])) <= MAX_REWARD
                saved += float(step.reward[0])
                assert int(episode.state.delay) == delay
            check_end(step, saved, fleet, twin)
    assert trucks > 0
    assert cold > 0


def test_cities_train_or_test_and_never_both() -> None:
    train, test = contexts(0), contexts(1)
    assert set(train.city.tolist()) == set(range(0, 16, 2))
    assert set(test.city.tolist()) == set(range(1, 16, 2))
    for params in (train, test):
        row = CITIES[params.city]
        assert (np.abs(params.approach / row[:, 0] - 1) < 0.081).all()
        assert np.abs(params.temperature - row[:, 7]).max() < 6.001
        assert -10.001 < params.temperature.min() < params.temperature.max() < 30.001
        first, second, offset = params.plan
        assert (np.abs(first + second + 20 - 2 * row[:, 2]) <= 20).all()
        assert min(first.min(), second.min()) >= 20
        assert (first + second).max() <= 160
        assert ((offset >= 0) & (offset < first + second + 20)).all()
        real = params.arrival < 1_000_000
        assert (params.truck & real).sum() / real.sum() == pytest.approx(
            row[:, 6].mean(), abs=0.015
        )
        expected = emissions.cold_share(params.temperature)[:, None, None] * ~params.truck
        assert params.cold.mean() == pytest.approx(expected.mean(), abs=0.01)


def test_there_are_more_than_a_million_signal_plans() -> None:
    """Count them: sums of greens, first greens and offsets of each city."""
    plans = [
        sum(13 * (2 * cycle + step) for step in range(-20, 21))
        for cycle in CITIES[:, 2].astype(int)
    ]
    assert sum(plans[::2]) == 575_640
    assert sum(plans) == 1_129_960


def test_humans_save_exactly_nothing_and_leave_in_time() -> None:
    record = play(task(), Constant(np.zeros((48, 1), np.float32)), SEEDS)
    assert (np.asarray(record.total) == 0).all()
    assert (record.info["saving"] == 0).all()
    assert (record.info["delay"] == 0).all()
    assert record.terminated.all()


def test_players_rank_sensibly_and_no_constant_pays() -> None:
    """Compare advice that counts the queue, advice that does not, and none.

    Easing off for no reason is tried too.
    """
    players = [
        reference_player(task()),
        CityAdvice(SpeedAdvice(headway=0.1, start=0.0, reserve=0.0), truck_headway=0.0),
        *(Constant(np.full((48, 1), ease, np.float32)) for ease in (0.1, 0.3)),
        Uniform(task().action_space),
    ]
    records = [play(task(), player, SEEDS) for player in players]
    advised, blind, slight, gentle, random = (record.total.mean() for record in records)
    assert advised > 1.1 * blind > 0 > slight > gentle
    assert random < slight
    assert records[0].info["success"].mean() > 0.8
    assert records[0].info["delay"].mean() < 0.3
    assert not any(record.info["success"].any() for record in records[2:])


def test_words_and_picture() -> None:
    params = jax.tree.map(lambda values: values[0], contexts(0))
    state = jax.tree.map(np.asarray, task().initial(jax.random.key(0), params))
    assert "degrees Celsius" in task().describe(state, params)
    assert task().draw(state, params).shape == task().picture_shape
