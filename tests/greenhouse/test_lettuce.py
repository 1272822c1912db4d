"""The lettuce task: weather, money, constraints, contexts, and the grower.

Weather is compared with astronomy and climate, money and constraints with values by hand.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.registry import card
from rlbench_suite.core.task_card import load
from rlbench_suite.envs.greenhouse.physics import van_henten
from rlbench_suite.envs.greenhouse.physics.van_henten import Climate, Control, Greenhouse, Weather
from rlbench_suite.envs.greenhouse.players.lettuce_grower import Grower
from rlbench_suite.envs.greenhouse.tasks import lettuce
from rlbench_suite.envs.greenhouse.tasks.lettuce import Params, Prices, State
from rlbench_suite.envs.greenhouse.weather.maritime import Site, Sky, next_sky, sun_height, weather

SITE = Site(np.radians(52.0), 80.0, 0.0, 1.0)
MEDIAN = Sky(0.0, 0.0, 0.0)
CONTEXT = Params(SITE, Prices(20.0, 0.05, 0.2), Greenhouse())


class Constant(NamedTuple):
    """The same setting all season."""

    setting: Any

    def initial(self, params: Any) -> tuple[()]:
        return ()

    def act(self, memory: Any, view: Any, key: Any) -> Any:
        return self.setting, memory


@pytest.fixture(scope="module")
def task() -> Any:
    return card("Lettuce-v0").build()


@pytest.fixture(scope="module")
def grown(task: Any) -> Any:
    return play(task, Grower(), range(200))


def state(climate: Climate, steps: int = 10, violated: float = 0.0) -> State:
    outside = Weather(0.0, 8e-4, 6.0, 5e-3)
    built = State(climate, Control(0.0, 0.0, 0.0), MEDIAN, outside, 0, violated)
    return jax.tree.map(np.float32, built)._replace(steps=np.int32(steps))


def air(temperature: float, ppm: float, humidity: float, dry_weight: float = 0.1) -> Climate:
    vapour = 0.01 * humidity * float(van_henten.saturation_density(temperature))
    return Climate(dry_weight, van_henten.co2_density(ppm, temperature), temperature, vapour)


# -- weather ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("day", "declination"), [(79.5, 0.0), (171.5, 23.44), (265.5, 0.0), (354.5, -23.44)]
)
def test_sun_at_noon_on_equinoxes_and_solstices(day: float, declination: float) -> None:
    """Check 20 March, 21 June, 23 September and 21 December.

    Cooper's formula is known to be up to 1.5 deg off.
    """
    noon = float(sun_height(SITE._replace(start=np.floor(day)), 12 * 3600.0))
    assert np.degrees(np.arcsin(noon)) == pytest.approx(90 - 52 + declination, abs=1.5)


def test_day_length_at_midsummer_and_midwinter() -> None:
    """At 52 deg north about 16.6 and 7.6 h (geometric, centre of the sun's disc at the horizon)."""
    hours = np.arange(0, 24, 0.01)
    for day, length in ((171.0, 16.6), (354.0, 7.6)):
        up = np.asarray(sun_height(SITE._replace(start=day), hours * 3600)) > 0
        assert up.mean() * 24 == pytest.approx(length, abs=0.15)


def test_radiation_of_clear_and_overcast_skies() -> None:
    """Radiation is 910 sin(elevation) - 30 W/m2 when clear, and a quarter of it when overcast.

    Source: Kasten & Czeplak 1980.
    """
    noon = 12 * 3600.0
    clear = float(weather(SITE._replace(cloudiness=-30.0), MEDIAN, noon).radiation)
    assert clear == pytest.approx(910 * float(sun_height(SITE, noon)) - 30, rel=1e-5)
    assert float(weather(SITE._replace(cloudiness=30.0), MEDIAN, noon).radiation) == pytest.approx(
        clear / 4, rel=1e-5
    )
    assert float(weather(SITE, MEDIAN, 0.0).radiation) == 0


def test_months_are_those_of_the_climate() -> None:
    """Monthly mean temperatures and daily global radiation are those of De Bilt, 1981-2010 (KNMI).

    Radiation, J/cm2 a day, agrees within a quarter.
    """
    months = {3: (6.2, 860), 5: (13.1, 1790), 7: (17.9, 1750), 9: (14.5, 1000)}
    rng = np.random.default_rng(0)
    for month, (mean, radiation) in months.items():
        start = 30.4 * (month - 1)
        sky = Sky(*rng.standard_normal((3, 20_000)))
        outside = jax.jit(partial(weather, SITE._replace(start=start)))(
            sky, rng.uniform(0, 30.4 * 86400, 20_000)
        )
        assert np.mean(outside.temperature) == pytest.approx(mean, abs=1.0)
        assert np.mean(outside.radiation) * 8.64 == pytest.approx(radiation, rel=0.25)
        humidity = np.asarray(van_henten.relative_humidity(outside.humidity, outside.temperature))
        assert 65 < humidity.mean() < 90
        assert humidity.max() <= 100


def test_sky_is_stationary_and_remembers_as_long_as_said() -> None:
    rng = np.random.default_rng(0)
    sky, series = Sky(*rng.standard_normal((3, 4000))), []
    first = sky
    for _ in range(48):
        sky = next_sky(sky, rng.standard_normal((3, 4000)), 1800.0)
        series.append(sky)
    for i, memory in enumerate((12, 96, 24)):
        assert np.std(sky[i]) == pytest.approx(1, abs=0.05)
        assert np.mean(first[i] * sky[i]) == pytest.approx(np.exp(-24 / memory), abs=0.06)


# -- money and constraints -------------------------------------------------------------------------


def test_reward_by_hand(task: Any) -> None:
    first_state, next_state = state(air(20, 800, 70, 0.1)), state(air(20, 800, 70, 0.101))
    next_state = next_state._replace(
        applied=Control(np.float32(0.5), np.float32(1.0), np.float32(0.4))
    )
    # 1 g at 20 EUR/kg; 60 W/m2 for half an hour at 0.05 EUR/kWh; 0.6 mg/(m2 s) for half an hour at
    # 0.2 EUR/kg.
    profit = 0.001 * 20 - 0.03 * 0.05 - 0.6e-6 * 1800 * 0.2
    assert float(task.reward(first_state, None, next_state, None, CONTEXT)) == pytest.approx(
        profit, rel=1e-4
    )
    burnt = next_state._replace(climate=next_state.climate._replace(temperature=np.float32(45.5)))
    assert float(task.reward(first_state, None, burnt, None, CONTEXT)) == pytest.approx(
        profit - 0.101 * 20, rel=1e-4
    )
    assert task.terminal(burnt, None, CONTEXT)
    assert "45.5 degC" in task.why_over(burnt, CONTEXT, {})


@pytest.mark.parametrize(
    ("climate", "cost"),
    [
        (air(20, 800, 80), 0.0),
        (air(7, 800, 80), 0.3),
        (air(34, 800, 80), 0.4),
        (air(20, 1900, 80), 0.3),
        (air(20, 200, 80), 0.1),
        (air(20, 800, 95), 0.5),
        (air(9, 1700, 91), 0.3),
    ],
)
def test_cost_by_hand(task: Any, climate: Climate, cost: float) -> None:
    assert float(task.cost(None, None, state(climate), CONTEXT)) == pytest.approx(cost, abs=2e-4)


def test_return_is_the_season_s_profit(task: Any) -> None:
    """Harvest minus young plants, heat and carbon dioxide, summed apart from the rewards."""
    params = jax.tree.map(np.float32, CONTEXT)
    setting = jnp.array([0.3, 0.6, 0.1], jnp.float32)

    def advance_state(state: State, key: jax.Array) -> Any:
        next_state = task.transition(state, setting, key, params)
        return next_state, task.reward(state, setting, next_state, None, params)

    start = task.initial(jax.random.key(0), params)
    end, rewards = jax.jit(
        lambda s: jax.lax.scan(advance_state, s, jax.random.split(jax.random.key(1), 480))
    )(start)
    hours = 240
    bills = 0.1 * 150 / 1000 * hours * 0.05 + 0.3 * 1.2e-6 * 3600 * hours * 0.2
    earned = 20 * float(end.climate.dry_weight - start.climate.dry_weight)
    assert np.asarray(rewards, np.float64).sum() == pytest.approx(earned - bills, abs=2e-5)


def test_dosing_stops_above_the_interlock(task: Any) -> None:
    params = jax.tree.map(np.float32, CONTEXT)
    full = jnp.array([1.0, 0.0, 0.0], jnp.float32)
    for ppm, applied in ((1900.0, 1.0), (2100.0, 0.0)):
        next_state = task.transition(state(air(20, ppm, 70)), full, jax.random.key(0), params)
        assert float(next_state.applied.co2) == applied


def test_success_needs_weight_and_bounds(task: Any) -> None:
    heavy, light = air(20, 800, 80, 0.31), air(20, 800, 80, 0.29)
    assert task.info(state(heavy, 1920, 100.0), CONTEXT)["success"]
    assert not task.info(state(light, 1920, 100.0), CONTEXT)["success"]
    assert not task.info(state(heavy, 1920, 200.0), CONTEXT)["success"]
    assert not task.info(state(heavy._replace(temperature=46.0), 1920, 100.0), CONTEXT)["success"]


# -- players and contexts --------------------------------------------------------------------------


def test_grower_beats_every_constant_setting(task: Any, grown: Any) -> None:
    assert load(task.card.reference) is Grower
    assert grown.info["success"].mean() > 0.9
    assert grown.info["mean_violation"].mean() < 0.05
    assert (grown.length == 1920).all()
    assert grown.terminated.all()
    settings = itertools.product((0.0, 0.3, 1.0), (0.0, 0.1, 0.4, 1.0), (0.0, 0.15))
    best = max(
        play(task, Constant(np.array(setting, np.float32)), range(16)).total.mean()
        for setting in settings
    )
    assert grown.total[:16].mean() > 1.2 * best


def test_train_and_test_seasons_never_overlap(task: Any) -> None:
    keys = jax.random.split(jax.random.key(0), 5000)
    sample = jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))
    for split in (0, 1):
        params = jax.device_get(sample(keys, np.int32(split)))
        assert set(np.floor((params.site.start - 40) / 10)) == set(range(split, 20, 2))
        for value, nominal in zip(params.house, Greenhouse(), strict=True):
            np.testing.assert_allclose(
                [value.min(), value.max()], [0.9 * nominal, 1.1 * nominal], rtol=5e-3
            )
        cheap, dear = 16 / 2.20371 * 0.8, 22.285125 * 1.2
        assert cheap < params.prices.lettuce.min() < params.prices.lettuce.max() < dear
        np.testing.assert_allclose(
            np.median(params.prices.heat), np.sqrt(0.0103734 * 0.1281), rtol=0.1
        )


def test_easy_is_van_henten_s_greenhouse() -> None:
    easy = card("Lettuce-v0").build(difficulty="easy")
    np.testing.assert_allclose(
        easy.sample_params(jax.random.key(0), 0).house, Greenhouse(), rtol=1e-6
    )
    with pytest.raises(ValueError, match="relative tolerance"):
        card("Lettuce-v0").build(difficulty=0.9)


def test_extreme_settings_stay_finite_and_inside_the_space() -> None:
    """All season long, at every tolerance, loss of the crop ignored."""
    hard = card("Lettuce-v0").build(difficulty="hard")

    def season(key: jax.Array, action: jax.Array) -> Any:
        params = hard.sample_params(key, 1)

        def advance_state(state: State, k: jax.Array) -> Any:
            next_state = hard.transition(state, action, k, params)
            return next_state, (
                hard.observation(next_state, None, params),
                hard.reward(state, action, next_state, None, params),
            )

        return jax.lax.scan(advance_state, hard.initial(key, params), jax.random.split(key, 1920))[
            1
        ]

    settings = jnp.array([(1, 0, 1), (0, 0, 0), (1, 1, 1), (0, 1, 0)] * 8, jnp.float32)
    observations, rewards = jax.jit(jax.vmap(season))(
        jax.random.split(jax.random.key(1), 32), settings
    )
    assert np.isfinite(observations).all()
    assert (observations >= hard.observation_space.low).all()
    assert (observations <= hard.observation_space.high).all()
    assert (np.abs(rewards) < 30).all()


def test_words_and_picture(task: Any) -> None:
    now = state(air(20, 800, 70))
    assert "800 ppm" in task.describe(now, CONTEXT)
    assert "day 80 of the year" in task.describe(now, CONTEXT)
    assert task.draw(now, CONTEXT).shape == task.picture_shape
    assert task.action_space.contains(task.parse("0.1, 0.2, 0", now, CONTEXT))
    assert task.card.horizon == lettuce.SEASON


def test_recorded_prices_below_zero_are_in_the_space() -> None:
    time = 1800.0 * np.arange(2 * (lettuce.SEASON + 48))
    prices = {"time": time, "heat": np.where(time < 7200, -0.3, 0.2)}
    task: Any = card("Lettuce-v0", context={"prices": prices}).build()
    params = task.sample_params(jax.random.key(0), np.int32(0))._replace(row=np.int32(0))
    observation = np.asarray(
        task.observation(task.initial(jax.random.key(0), params), None, params)
    )
    assert task.named(observation)["heat_price"] * task.price_scales[1] == pytest.approx(
        -0.3, rel=1e-5
    )
    assert task.observation_space.contains(observation)
