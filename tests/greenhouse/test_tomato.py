"""The tomato task: money and constraints by hand, contexts, records, and a grower.

The grower beats simpler players.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.episode import ContextSource, advance, begin, seed_key
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.core.task_card import load
from rlbench_suite.envs.greenhouse.physics.glasshouse import (
    Air,
    Control,
    Glasshouse,
    House,
    Outside,
    co2_density,
    saturation_pressure,
)
from rlbench_suite.envs.greenhouse.physics.tomato_crop import FRESH, Crop, Variety
from rlbench_suite.envs.greenhouse.players.tomato_grower import TomatoGrower
from rlbench_suite.envs.greenhouse.tasks import tomato
from rlbench_suite.envs.greenhouse.tasks.tomato import Params, Prices, State
from rlbench_suite.envs.greenhouse.tasks.tomato_sensors import ENTRIES
from rlbench_suite.envs.greenhouse.weather.climates import Sky
from rlbench_suite.envs.greenhouse.weather.maritime import Site

CONTEXT = Params(Site(0.9, 0.0, 0.0, 0.0), Prices(1.0, 0.05, 0.2), Glasshouse(), Variety())


class Constant(NamedTuple):
    """The same setting all season."""

    setting: Any

    def initial(self, params: Any) -> tuple[()]:
        return ()

    def act(self, memory: Any, view: Any, key: Any) -> Any:
        return self.setting, memory


@pytest.fixture(scope="module")
def task() -> Any:
    return card("Tomato-v0").build()


def state(
    temperature: float,
    ppm: float,
    humidity: float,
    fruit: float = 6e4,
    steps: int = 10,
    **more: Any,
) -> State:
    air = Air(
        temperature,
        co2_density(ppm, temperature),
        0.01 * humidity * float(saturation_pressure(temperature)),
        40.0,
    )
    house = House(air, Crop(1e4, fruit, 9e4, 5e4, 1200.0, 20.0), more.get("harvest", 0.0))
    built = State(
        house,
        Control(*more.get("applied", (0.0, 0.0, 0.0))),
        Sky(0.0, 0.0, 0.0, 0.0, False),
        Outside(0.0, 8.0, 800.0, 3.0, 700.0),
        0,
        more.get("violated", 0.0),
    )
    return jax.tree.map(np.float32, built)._replace(steps=np.int32(steps))


def test_entries_are_those_of_the_components(task: Any) -> None:
    assert tuple(component.name for component in task.observation_components()) == ENTRIES


def test_reward_by_hand(task: Any) -> None:
    first_state = state(20, 800, 70)
    next_state = state(20, 800, 70, 6.03e4, applied=(0.4, 1.0, 0.5), harvest=300.0)
    # 600 mg of dry weight are 10 g fresh, at 1 EUR/kg; 60 W/m2 for half an hour at 0.05 EUR/kWh;
    # 2.5 mg/(m2 s) at 0.2.
    profit = 0.01 * 1.0 - 0.03 * 0.05 - 2.5e-6 * 1800 * 0.2
    assert float(task.reward(first_state, None, next_state, None, CONTEXT)) == pytest.approx(
        profit, rel=1e-3
    )
    air = next_state.house.air._replace(temperature=np.float32(45.5))
    burnt = next_state._replace(house=next_state.house._replace(air=air))
    assert float(task.reward(first_state, None, burnt, None, CONTEXT)) == pytest.approx(
        profit - 6.03e4 / 6e4, rel=1e-3
    )
    assert task.terminal(burnt, None, CONTEXT)
    assert "45.5 degC" in task.why_over(burnt, CONTEXT, {})


@pytest.mark.parametrize(
    ("climate", "cost"),
    [
        ((20, 800, 70), 0.0),
        ((12, 800, 70), 0.3),
        ((38, 800, 70), 0.4),
        ((20, 1900, 70), 0.3),
        ((20, 200, 70), 0.1),
        ((20, 800, 90), 0.5),
        ((20, 800, 40), 1.0),
        ((14, 1700, 86), 0.3),
    ],
)
def test_cost_by_hand(task: Any, climate: tuple[float, float, float], cost: float) -> None:
    assert float(task.cost(None, None, state(*climate), CONTEXT)) == pytest.approx(cost, abs=5e-4)


def test_success_needs_fruit_bounds_and_a_harvest(task: Any) -> None:
    plenty, season = {"fruit": 2e5, "harvest": 6e5}, tomato.SEASON
    assert task.info(state(20, 800, 70, steps=season, violated=1900.0, **plenty), CONTEXT)[
        "success"
    ]
    assert not task.info(state(20, 800, 70, steps=season, violated=1950.0, **plenty), CONTEXT)[
        "success"
    ]
    assert not task.info(state(20, 800, 70, fruit=2e5, harvest=5e5, steps=season), CONTEXT)[
        "success"
    ]
    assert not task.info(state(46, 800, 70, steps=season, **plenty), CONTEXT)["success"]
    assert not task.info(state(20, 800, 70, steps=season - 1, **plenty), CONTEXT)["success"]


def test_dosing_stops_above_the_interlock(task: Any) -> None:
    params, full = jax.tree.map(np.float32, CONTEXT), np.array([0, 0, 1], np.float32)
    next_dosing = jax.jit(
        lambda now: task.transition(now, full, jax.random.key(0), params).applied.co2
    )
    assert [float(next_dosing(state(20, ppm, 70))) for ppm in (1900.0, 2100.0)] == [1, 0]


def test_train_and_test_seasons_never_overlap(task: Any) -> None:
    keys = jax.random.split(jax.random.key(0), 5000)
    sample = jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))
    for split in (0, 1):
        params = jax.device_get(sample(keys, np.int32(split)))
        assert set(np.floor((params.site.start + 31) / 4.5)) == set(range(split, 20, 2))
        for value, nominal in zip(
            (*params.house, *params.variety), (*Glasshouse(), *Variety()), strict=True
        ):
            np.testing.assert_allclose(
                [value.min(), value.max()], [0.9 * nominal, 1.1 * nominal], rtol=5e-3
            )
        assert 0.8 <= params.prices.tomato.min() < params.prices.tomato.max() < 1.6
        assert np.median(params.prices.heat) == pytest.approx(0.055, rel=0.05)


def test_easy_has_the_published_constants() -> None:
    easy = card("Tomato-v0").build(difficulty="easy")
    params = jax.jit(easy.sample_params)(jax.random.key(0), 0)
    np.testing.assert_allclose(
        (*params.house, *params.variety), (*Glasshouse(), *Variety()), rtol=1e-6
    )
    with pytest.raises(ValueError, match="relative tolerance"):
        card("Tomato-v0").build(difficulty=0.9)


def test_grower_beats_every_constant_setting(task: Any) -> None:
    assert load(task.card.reference) is TomatoGrower
    grown = play(task, TomatoGrower(), range(16))
    assert (grown.length == tomato.SEASON).all()
    assert grown.terminated.all()
    assert grown.info["mean_violation"].mean() < tomato.MAX_MEAN_COST
    settings = [(0, 0, 0), (0.3, 0.1, 0), (0.3, 0.1, 0.2), (0.4, 0.2, 0.1), (0.5, 0.1, 0.1)]
    best = max(
        play(task, Constant(np.array(c, np.float32)), range(16)).total.mean() for c in settings
    )
    assert grown.total.mean() > max(10.0, 2 * best)


def test_losing_the_crop_to_keep_the_limit_does_not_pay(task: Any) -> None:
    """A grower who does not mind damp air breaks the limit.

    Losing the crop at the best moment before that does not pay.
    """
    grower, limit = TomatoGrower(damp=100.0), task.card.constraint.limit

    def season(key: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            episode, last = carry
            action, _ = grower.act(
                (), View(last.observation, None, episode.state, episode.params), key
            )
            next_episode, result = advance(task, episode, action, tomato.SEASON + 1)
            hanging = episode.params.prices.tomato * FRESH * next_episode.state.house.crop.fruit
            return (next_episode, result), (
                next_episode.total,
                next_episode.total - hanging,
                next_episode.state.violation,
            )

        return jax.lax.scan(
            step, begin(task, key, 0, ContextSource(np.int32(1), np.int32(-1))), None, tomato.SEASON
        )[1]

    full, lost, violated = jax.jit(jax.vmap(season))(
        np.stack([seed_key(seed) for seed in range(4)])
    )
    assert violated[:, -1].mean() > 1.5 * limit
    assert np.where(violated <= limit, lost, -np.inf).max(1).mean() < 0.4 * full[:, -1].mean()


def test_words_and_picture(task: Any) -> None:
    now = state(20, 800, 70)
    assert "800 ppm" in task.describe(now, CONTEXT)
    assert "day 0 of the year" in task.describe(now, CONTEXT)
    assert task.draw(now, CONTEXT).shape == task.picture_shape
    assert task.action_space.contains(task.parse("0.1, 0.2, 0", now, CONTEXT))
    assert task.card.horizon == tomato.SEASON
