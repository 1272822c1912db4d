"""Grey mould on tomatoes: the response, its spread, what rots, and what is seen.

The response is the published one, the spread is compared with SciPy, and drying pays.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.episode import ContextSource, begin, seed_key
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.envs.greenhouse.players.drying_grower import DryingGrower
from rlbench_suite.envs.greenhouse.players.tomato_grower import TomatoGrower
from rlbench_suite.envs.greenhouse.tasks import tomato_disease
from rlbench_suite.envs.greenhouse.tasks.grey_mould import (
    CANOPY_DAMPNESS,
    ROT_RATE,
    SPREAD_RATE,
    growth,
    rotten_part,
    spread_mould,
)

pytestmark = pytest.mark.of_variants
DAY = 48


@pytest.fixture(scope="module")
def task() -> Any:
    return card("TomatoDisease-v0").build()


def test_growth_is_the_published_response() -> None:
    """Growth is Gropin model 37 as its script states it, on the grid of that script.

    Drops on the leaves count as damp.
    """
    t, activity = np.meshgrid(np.linspace(7.007, 24.975, 21), np.linspace(0.9009, 0.984, 21))
    with jax.enable_x64(True):
        computed = np.asarray(growth(jnp.asarray(t), jnp.asarray(100 * activity - CANOPY_DAMPNESS)))
    low, best, high = -1.39, 21.4, 29.1
    warm = (t - high) * (t - low) ** 2 / (best - low)
    warm /= (best - low) * (t - best) - (best - high) * (best + low - 2 * t)
    low, best = 0.895, 0.988
    damp = (activity - 1) * (activity - low) ** 2 / (best - low)
    damp /= (best - low) * (activity - best) - (best - 1) * (best + low - 2 * activity)
    np.testing.assert_allclose(computed, warm * damp, rtol=1e-9)
    assert float(growth(21.4, 98.8 - CANOPY_DAMPNESS)) == pytest.approx(1, abs=1e-5)
    assert float(growth(21.4, 100.0)) == pytest.approx(1, abs=1e-5)
    assert [float(growth(*air)) for air in ((21.4, 83.4), (-1.5, 95.0), (29.2, 95.0))] == [0, 0, 0]


def test_mould_spreads_and_rots_as_two_populations() -> None:
    """Integrate infected and healthy parts as masses, by SciPy, over 20 days of some air."""
    air, days = (18.0, 88.0), 20
    rate = SPREAD_RATE * float(growth(*air))

    def slope(_: float, mass: np.ndarray) -> np.ndarray:
        healthy, infected = mass
        caught = rate * infected * healthy / (healthy + infected)
        return np.array([-caught, caught - ROT_RATE * infected])

    healthy, infected = solve_ivp(slope, (0, days), [0.99, 0.01], rtol=1e-10, atol=1e-12).y[:, -1]
    share, mass = jnp.float32(0.01), jnp.float32(1.0)
    for _ in range(days * DAY):
        mass = mass * (1 - rotten_part(share))
        share = spread_mould(share, *air)
    assert float(share) == pytest.approx(infected / (healthy + infected), rel=1e-3)
    assert float(mass) == pytest.approx(healthy + infected, rel=2e-3)


@pytest.fixture(scope="module")
def season(task: Any) -> tuple[np.ndarray, ...]:
    """Play ten days of a large crop with an outbreak, and the same days without mould.

    The outbreak infects 0.95 % on the fifth day.
    """
    plain = card("Tomato-v0").build()

    def grown(state: Any) -> Any:
        house = state.house
        return state._replace(
            house=house._replace(crop=house.crop._replace(leaves=jnp.float32(1e5)))
        )

    def days(task: Any, params: Any, state: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            next_state = task.transition(
                state, jnp.array([0.5, 0.0, 0.0]), jax.random.key(1), params
            )
            crop = next_state.house.crop
            return next_state, (
                crop.leaves,
                crop.fruit,
                next_state.infected,
                task.observation(next_state, None, params),
            )

        return jax.lax.scan(step, state, None, 10 * DAY)[1]

    def simulate(key: Any) -> Any:
        source = ContextSource(np.int32(1), np.int32(-1))
        episode, plain_episode = (begin(each, key, 0, source)[0] for each in (task, plain))
        mould = days(
            task, episode.params._replace(outbreak=jnp.int32(4 * DAY)), grown(episode.state)
        )
        return mould, days(plain, plain_episode.params, grown(plain_episode.state))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tomato_disease, "SPORES", 0.0095)
        mould, sound = jax.jit(simulate)(seed_key(2))
    return (*map(np.asarray, mould), np.asarray(sound[0]))


def test_an_outbreak_by_hand(season: Any) -> None:
    leaves, fruit, infected, observations, sound = season
    # Bit for bit the season of Tomato-v0.
    np.testing.assert_array_equal(leaves[: 4 * DAY], sound[: 4 * DAY])
    assert (infected[: 4 * DAY] == 0).all()
    assert infected[4 * DAY] == pytest.approx(0.0095, rel=0.06)
    assert infected[-1] > 0.01  # closed vents keep the air damp
    np.testing.assert_allclose(
        observations[:, 23], np.where(infected >= 0.01, 10 * infected, 0), rtol=1e-5
    )
    assert ((observations[:, 23] > 0) != (infected > 0)).any()  # mould spreads before it is seen
    lost = np.cumprod(1 - ROT_RATE / DAY * infected)
    # Fewer leaves, a little less growth.
    np.testing.assert_allclose(leaves[-1] / sound[-1], lost[-1], rtol=0.02)
    assert np.isfinite(fruit).all()


def test_outbreaks_are_drawn_as_the_table_says(task: Any) -> None:
    keys = jax.random.split(jax.random.key(0), 4000)
    params = jax.device_get(jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, np.int32(0)))
    plain = jax.jit(jax.vmap(card("Tomato-v0").build().sample_params, (0, None)))(keys, np.int32(0))
    for values, plain_values in zip(
        params.site + params.prices, plain.site + plain.prices, strict=True
    ):
        np.testing.assert_array_equal(values, plain_values)
    days = params.outbreak / DAY
    np.testing.assert_allclose([days.min(), days.mean(), days.max()], [30, 65, 100], atol=1.5)


def test_grower_dries_and_warms_what_has_mould() -> None:
    damp = (
        jnp.zeros(24)
        .at[jnp.array([4, 5, 6, 9, 13, 20])]
        .set(jnp.array([0.9, 0.4, 0.84, 0.5, 0.1, 1.0]))
    )
    act = partial(DryingGrower().act, (), key=None)  # type: ignore[arg-type]
    usual = TomatoGrower().act((), View(damp, None, None, None), None)[0]  # type: ignore[arg-type]
    np.testing.assert_array_equal(act(view=View(damp, None, None, None))[0], usual)  # type: ignore[arg-type]
    drying = act(view=View(damp.at[23].set(0.2), None, None, None))[0]  # type: ignore[arg-type]
    assert drying[0] > usual[0]
    assert drying[1] > usual[1] + 0.03


def test_drying_in_time_saves_a_quarter_of_the_profit(task: Any) -> None:
    heeds, ignores = (
        play(task, player, range(12))
        for player in (DryingGrower(), DryingGrower(drier=0.0, warmer=0.0))
    )
    assert ignores.total.mean() < 0.75 * heeds.total.mean()
    assert heeds.cost.mean() < ignores.cost.mean()
