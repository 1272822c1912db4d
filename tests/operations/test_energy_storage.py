"""Check EnergyStorage against a replica, linear programmes and a finer dynamic programme."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.operations.energy_storage import (
    HOURS,
    BestTrades,
    Params,
    Thresholds,
    swing,
    value_tables,
)


def build(difficulty: str) -> Any:
    return card("EnergyStorage-v0").build(difficulty=difficulty)


@pytest.fixture(scope="module")
def task() -> Any:
    return build("hard")


def price_without_deviation(params: Any, hour: int) -> Any:
    """Return the daily shape in EUR/MWh, in NumPy."""
    clock = (params.first_hour + hour) % 24
    daily = params.daily * np.cos(2 * np.pi * (clock - 4) / 24)
    half_daily = params.half_daily * np.cos(4 * np.pi * (clock - 8) / 24)
    return params.mean_price * (1 - daily + half_daily)


def run(task: Any, player: Any, episodes: int, seed: int = 0) -> Any:
    """Play test episodes of a player, or of random actions; return contexts, starts and steps."""
    keys = jax.random.split(jax.random.key(seed), episodes)

    def episode(key: jax.Array) -> Any:
        params = task.sample_params(key, Split.TEST)
        memory = () if player is None else player.initial(params)

        def step(carry: Any, hour: jax.Array) -> Any:
            state, memory = carry
            step_key = jax.random.fold_in(key, hour)
            if player is not None:
                view = View(task.observation(state, key, params), None, state, params)
                action, memory = player.act(memory, view, key)
            else:
                action = jax.random.uniform(jax.random.fold_in(step_key, 1), (1,), minval=-1)
            after = task.transition(state, action, step_key, params)
            reward = task.reward(state, action, after, step_key, params)
            record = (action[0], task.info(state, params)["price"], task.uniform(step_key, 2))
            return (after, memory), (state, after, reward, record)

        start = task.initial(key, params)
        return params, start, jax.lax.scan(step, (start, memory), jnp.arange(HOURS))[1]

    return jax.device_get(jax.jit(jax.vmap(episode))(keys))


# -- the rules -------------------------------------------------------------------------------------


def test_weeks_equal_a_numpy_replica(task: Any) -> None:
    """A thousand weeks of random trades, with the chances that the task draws."""
    params, start, (_, after, rewards, (actions, prices, units)) = run(task, None, 1_000)
    params = Params(*(np.asarray(field, np.float64) for field in params))
    stored = np.asarray(start.stored, np.float64)
    balls = np.array(start.balls)
    scarcity = np.zeros(1_000, bool)
    profit = np.zeros(1_000)
    often = params.scarcity_chance / (params.scarcity_chance + 0.3)
    variance = (params.daily**2 + params.half_daily**2) / 2 + params.deviation**2
    variance += often * (1 - often) * params.premium**2
    unit = params.capacity * params.mean_price * np.sqrt(variance)
    for hour in range(HOURS):
        price = price_without_deviation(params, hour)
        price = price + params.mean_price * params.deviation * (balls - 8) / 2
        price = price + params.mean_price * params.premium * scarcity
        np.testing.assert_allclose(prices[:, hour], price, rtol=1e-3, atol=1e-2)
        action = actions[:, hour].astype(np.float64)
        charged = np.minimum(np.maximum(action, 0), params.capacity - stored)
        discharged = np.minimum(np.maximum(-action, 0), stored)
        gain = price * (discharged * params.efficiency - charged / params.efficiency)
        gain -= params.wear * (charged + discharged)
        stored = stored + charged - discharged
        profit += gain
        np.testing.assert_allclose(after.stored[:, hour], stored, atol=1e-4)
        np.testing.assert_allclose(rewards[:, hour], gain / unit, rtol=1e-3, atol=1e-4)
        up, down = (
            units[:, hour, 0] < 0.9 * (16 - balls) / 16,
            units[:, hour, 0] >= 1 - 0.9 * balls / 16,
        )
        balls = balls + up - down
        begins, stays = units[:, hour, 1] < params.scarcity_chance, units[:, hour, 1] >= 0.3
        scarcity = np.where(scarcity, stays, begins)
        assert (after.balls[:, hour] == balls).mean() > 0.999  # but for chances at a boundary
        balls = np.array(after.balls[:, hour])
        assert (after.scarcity[:, hour] == scarcity).all()
    np.testing.assert_allclose(after.profit[:, -1], profit, rtol=1e-3, atol=0.5)


def test_the_swing_is_the_standard_deviation_of_prices(task: Any) -> None:
    params, _, (_, _, _, (_, prices, _)) = run(task, None, 2_000, seed=1)
    computed = np.asarray(jax.vmap(swing)(Params(*map(jnp.asarray, params))), np.float64)
    mean = prices[:, 24:].mean(1, keepdims=True)  # scarcity has its own mean after a day
    measured = ((prices[:, 24:] - mean) ** 2).mean()
    # A week's own mean takes a part of the variance with it.
    assert 0.85 < measured / (computed**2).mean() < 1.02


def test_train_and_test_mean_prices_never_overlap(task: Any) -> None:
    keys = jax.random.split(jax.random.key(0), 500)
    sample = jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))
    for split in (0, 1):
        params = jax.device_get(sample(keys, np.int32(split)))
        assert (np.floor((params.mean_price - 40) / 2) % 2 == split).all()
        assert np.unique(params.capacity).tolist() == [2, 3, 4, 5, 6]
        assert np.unique(params.first_hour).tolist() == list(range(24))


# -- optima ----------------------------------------------------------------------------------------


def best_week_with_foresight(prices: np.ndarray, stored: float, params: Any) -> float:
    """Return the largest earnings when all prices are known, EUR: a linear programme."""
    hours = len(prices)
    buying = prices / params.efficiency + params.wear
    selling = prices * params.efficiency - params.wear
    sums = np.tril(np.ones((hours, hours)))
    level = np.hstack([sums, -sums])
    result = linprog(
        np.concatenate([buying, -selling]),
        A_ub=np.vstack([level, -level]),
        b_ub=np.concatenate([np.full(hours, params.capacity - stored), np.full(hours, stored)]),
        bounds=(0, 1),
    )
    return -result.fun


def test_known_prices_are_traded_as_the_linear_programme_does() -> None:
    """The easy price has no chance in it, so that the dynamic programme has foresight, too."""
    task = build("easy")
    params, start, (_, after, _, (_, prices, _)) = run(task, BestTrades(), 8)
    for week in range(8):
        context = Params(*(float(field[week]) for field in params))
        best = best_week_with_foresight(
            prices[week].astype(np.float64), float(start.stored[week]), context
        )
        assert after.profit[week, -1] == pytest.approx(best, rel=1e-3)


def test_foresight_is_an_upper_bound_when_prices_are_uncertain(task: Any) -> None:
    params, start, (_, after, _, (_, prices, _)) = run(task, BestTrades(), 8)
    for week in range(8):
        context = Params(*(float(field[week]) for field in params))
        best = best_week_with_foresight(
            prices[week].astype(np.float64), float(start.stored[week]), context
        )
        assert 0.2 * best < after.profit[week, -1] < best + 0.01


def test_values_between_whole_mwh_are_linear(task: Any) -> None:
    """A programme with four levels a MWh, and trades of every size, finds the same values."""
    context = jax.jit(lambda key: task.sample_params(key, 1))(jax.random.key(4))
    tables = np.asarray(jax.jit(value_tables)(context)[0])
    params = Params(*(float(field) for field in jax.device_get(context)))
    levels = np.arange(0, params.capacity + 0.1, 0.25)
    balls = np.arange(17)
    chain = np.zeros((17, 17))
    for count in balls:
        chain[count, min(count + 1, 16)] += 0.9 * (16 - count) / 16
        chain[count, max(count - 1, 0)] += 0.9 * count / 16
        chain[count, count] += 0.1
    begin = params.scarcity_chance
    scarcity = np.array([[1 - begin, begin], [0.3, 0.7]])
    values = np.zeros((len(levels), 17, 2))
    for hour in reversed(range(HOURS)):
        after = np.einsum("ij,kl,sjl->sik", chain, scarcity, values)
        shape = price_without_deviation(params, hour)
        extra = params.deviation * (balls[:, None] - 8) / 2 + params.premium * np.arange(2)
        price = shape + params.mean_price * extra
        values = np.full_like(after, -np.inf)
        for i, level in enumerate(levels):
            for j, goal in enumerate(levels):
                change = goal - level
                if abs(change) <= 1:
                    bought = max(change, 0) / params.efficiency
                    sold = max(-change, 0) * params.efficiency
                    total = price * (sold - bought) - params.wear * abs(change) + after[j]
                    values[i] = np.maximum(values[i], total)
    levels_of_table = int(params.capacity) + 1
    np.testing.assert_allclose(tables[0, :levels_of_table], values[::4], rtol=2e-4, atol=0.05)


@pytest.mark.parametrize("difficulty", ["medium", "hard"])
def test_the_reference_earns_what_the_programme_expects(difficulty: str) -> None:
    task = build(difficulty)
    params, start, (_, _, rewards, _) = run(task, BestTrades(), 600, seed=2)
    values = jax.jit(jax.vmap(lambda params: value_tables(params)[0][0, :, :, 0]))(
        Params(*map(jnp.asarray, params))
    )
    below = np.minimum(start.stored.astype(int), 5)
    weeks = np.arange(600)
    table = np.asarray(values)[weeks, :, start.balls]
    slope = table[weeks, below + 1] - table[weeks, below]
    expected = table[weeks, below] + (start.stored - below) * slope
    unit = np.asarray(jax.vmap(swing)(Params(*map(jnp.asarray, params)))) * params.capacity
    difference = rewards.sum(1, dtype=np.float64) - expected / unit
    assert difference.mean() == pytest.approx(0, abs=4 * float(difference.std()) / 600**0.5)


# -- players ---------------------------------------------------------------------------------------


def test_words_and_picture(task: Any) -> None:
    context = (60.0, 0.2, 0.1, 0.3, 4.0, 0.02, 0.9, 5.0, 4.0)
    params = Params(*map(np.float32, context), first_hour=np.int32(4))
    state = task.initial(jax.random.key(0), params)._replace(balls=np.int32(10))
    words = task.describe(state, params)
    assert "4 o'clock. The price is 63.00 EUR/MWh." in words
    assert "now it is +1.0 of them" in words
    assert task.draw(state, params).shape == task.picture_shape
    assert task.noop_action().tolist() == [0]
    with pytest.raises(ValueError, match="is 0 "):
        card("EnergyStorage-v0").build(difficulty=3)


def test_players_rank_as_they_should(task: Any) -> None:
    best = play(task, BestTrades.for_task(task), range(200)).total.mean()
    rule = play(task, Thresholds.for_task(task), range(200)).total.mean()
    assert best > rule > 0
