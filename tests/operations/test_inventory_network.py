"""Check InventoryNetwork against published optima, exact recursions and a plain-Python replica."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.envs.operations.inventory_network import (
    EVEN_ORDER,
    NETWORKS,
    Params,
    Store,
    share,
)
from rlbench_suite.envs.operations.network_base_stock import (
    NetworkBaseStock,
    balanced_requests,
    level,
)
from rlbench_suite.envs.operations.standing_orders import StandingOrders

MEAN = 5.0
ZIPKIN = {
    1: {9: 5.4382, 19: 6.6757, 39: 7.8359},
    2: {9: 6.0936, 19: 7.6644, 39: 9.1064},
    4: {9: 6.84, 19: 8.89, 39: 10.79},
}
"""Optimal average costs of one store with lost sales by lead time and penalty.

Poisson demand of mean 5, holding cost 1: Zipkin 2008, doi:10.1287/opre.1070.0471, table 1. Digits
beyond its two are of a value iteration of ours.
"""


def build(network: str = "lost-sales", lead: int = 2, dtype: str = "float32") -> Any:
    return (
        card("InventoryNetwork-v0")
        .with_settings(network=network)
        .build(difficulty=lead, dtype=dtype)
    )


def steady_params(penalty: Any) -> Params:
    """Return one store whose demand has no season."""
    store = Store(jnp.float32(MEAN), jnp.float32(1), jnp.float32(penalty))
    return Params((store,), jnp.float32(0), jnp.float32(0))


def mean_costs(
    task: Any, player: Any, penalty: Any, runs: int = 1000, periods: int = 200
) -> jax.Array:
    """Return the cost a period of each run, ``(runs,)``; the first 50 periods are not counted."""
    params = steady_params(penalty)

    def run(key: jax.Array) -> jax.Array:
        memory = player.initial(params)

        def period(state: Any, t: jax.Array) -> Any:
            action = player.act(memory, View(None, None, state, params), key)[0]
            state = task.transition(state, action, jax.random.fold_in(key, t), params)
            return state, state.cost

        return jax.lax.scan(period, task.initial(key, params), jnp.arange(periods))[1][50:].mean()

    return jax.vmap(run)(jax.random.split(jax.random.key(0), runs))


# -- optima ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lead", sorted(ZIPKIN))
def test_reference_is_near_the_optimum_of_zipkin_and_never_below(lead: int) -> None:
    """A capped base stock is known to be within 2 % of the optimum on average (Xin 2021).

    The settings here are those for all contexts, so up to 5 % are allowed.
    """
    task = build(lead=lead)
    player = NetworkBaseStock.for_task(task)
    runs = jax.jit(lambda penalty: mean_costs(task, player, penalty))
    for penalty, optimum in ZIPKIN[lead].items():
        costs = np.asarray(runs(np.float32(penalty)), np.float64)
        error = costs.std() / len(costs) ** 0.5
        assert error < 0.01 * optimum
        assert optimum - 3 * error < costs.mean() < 1.05 * optimum


def clark_scarf(holding: tuple[float, ...], penalty: float, lead: int) -> tuple[float, list[int]]:
    """Return the optimal average cost of a serial system and its echelon levels, store first.

    Clark & Scarf 1960. ``holding`` are local costs, store first. Goods on the way cost nothing, so
    what the recursion charges for them is taken off.
    """
    levels = np.arange(-200, 301)
    echelon = [cost - outer for cost, outer in zip(holding, (*holding[1:], 0.0), strict=True)]

    def expected(values: np.ndarray, periods: int) -> np.ndarray:
        """Return E[values(y - demand)], with the lowest value held below the grid."""
        demand = np.arange(200)
        chances = stats.poisson.pmf(demand, MEAN * periods)
        index = np.maximum(np.arange(len(levels))[:, None] - demand, 0)
        return values[index] @ chances

    backlog = (penalty + holding[0]) * expected(np.maximum(-levels, 0.0), lead + 1)
    cost = echelon[0] * (levels - MEAN * (lead + 1)) + backlog
    best = []
    for rate in echelon[1:]:
        best.append(int(levels[cost.argmin()]))
        capped = cost[np.minimum(np.arange(len(levels)), cost.argmin())]
        cost = rate * (levels - MEAN * (lead + 1)) + expected(capped, lead)
    best.append(int(levels[cost.argmin()]))
    return float(cost.min() - MEAN * lead * sum(holding[1:])), best


def test_reference_is_near_the_optimum_of_clark_and_scarf() -> None:
    """Shang & Song 2003 report gaps below 1 % on average; the levels are rounded nowhere here."""
    holding = (1.0, *reversed(NETWORKS["serial"].stages))
    optimum, best_levels = clark_scarf(holding, 9.0, 2)
    task = build("serial")
    player = NetworkBaseStock.for_task(task)
    costs = np.asarray(jax.jit(lambda: mean_costs(task, player, 9.0, 400, 250))(), np.float64)
    error = costs.std() / len(costs) ** 0.5
    assert error < 0.015 * optimum
    assert optimum - 3 * error < costs.mean() < 1.02 * optimum + 3 * error
    stages, store = player.initial(steady_params(9.0))
    quantiles = (*store, *reversed(stages))
    for place, (z, best) in enumerate(zip(quantiles, best_levels, strict=True), 1):
        assert float(level(z, MEAN * (2 * place + 1))) == pytest.approx(best, abs=1.5)


def test_one_stage_of_the_recursion_is_the_newsvendor() -> None:
    cost, [best] = clark_scarf((1.0,), 9.0, 2)
    demand = np.arange(200)
    chances = stats.poisson.pmf(demand, 15)
    truth = [
        chances @ (np.maximum(y - demand, 0) + 9 * np.maximum(demand - y, 0)) for y in range(60)
    ]
    assert best == stats.poisson.ppf(0.9, 15) == np.argmin(truth)
    assert cost == pytest.approx(min(truth))


# -- rules -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("network", sorted(NETWORKS))
def test_a_season_equals_a_plain_python_replica(network: str) -> None:
    """Follow the order of events of the task's module, written again with lists, 20 contexts."""
    lead, contexts, periods = 3, 20, 60
    task, rules = build(network, lead), NETWORKS[network]
    places = len(rules.supplied_stores)
    high = 30.0 * np.array(rules.supplied_stores)
    rng = np.random.default_rng(1)
    shrink = rng.choice([0.2, 0.4, 1.0], (contexts, periods, 1))
    actions = (rng.uniform(0, high, (contexts, periods, places)) * shrink).astype(np.float32)
    keys = jax.random.split(jax.random.key(7), contexts)

    def episode(key: jax.Array, actions: jax.Array) -> Any:
        params = task.sample_params(key, 1)
        start = task.initial(jax.random.fold_in(key, 1000), params)

        def step(state: Any, inputs: Any) -> Any:
            action, t = inputs
            period_key = jax.random.fold_in(key, t)
            state = task.transition(state, action, period_key, params)
            observation = task.observation(state, period_key, params)
            return state, (state, task.uniform(period_key, rules.stores), observation)

        states = jax.lax.scan(step, start, (actions, jnp.arange(periods)))[1]
        return params, start, states

    results = jax.device_get(jax.jit(jax.vmap(episode))(keys, jnp.asarray(actions)))
    observations = results[2][2]
    assert (observations >= task.observation_space.low).all()
    assert (observations <= task.observation_space.high).all()
    for context in range(contexts):
        params, start, (states, units, _) = jax.tree.map(lambda leaf: leaf[context], results)  # noqa: B023
        replica = Replica(rules, params, start)
        for t in range(periods):
            cost = replica.period(actions[context, t].astype(float), units[t], t)
            sites = (*states.stages, *states.stores)
            assert float(states.cost[t]) == pytest.approx(cost, rel=1e-4, abs=1e-2)
            for site, stock, transit in zip(sites, replica.stock, replica.transit, strict=True):
                assert float(site.stock[t]) == pytest.approx(stock, rel=1e-4, abs=1e-3)
                for column, quantity in zip(site.transit, transit, strict=True):
                    assert float(column[t]) == pytest.approx(quantity, rel=1e-4, abs=1e-3)


class Replica:
    """The rules with Python numbers and lists."""

    def __init__(self, rules: Any, params: Any, start: Any) -> None:
        self.rules, self.params = rules, params
        sites = (*start.stages, *start.stores)
        self.stock = [float(site.stock) for site in sites]
        self.transit = [[float(q) for q in site.transit] for site in sites]

    def period(self, orders: Any, units: Any, t: int) -> float:
        """Play a period and return its costs."""
        rules, stages, cost = self.rules, len(self.rules.stages), 0.0
        sent = list(orders)
        for i in range(1, stages):
            sent[i] = min(orders[i], self.stock[i - 1])
        if stages:
            supply = self.stock[stages - 1]
            requests = [
                order + (0 if rules.keeps_stock else EVEN_ORDER) for order in orders[stages:]
            ]
            if not rules.keeps_stock or sum(requests) > supply:
                requests = [order * supply / sum(requests) for order in requests]
            sent[stages:] = requests
        for i in range(stages):
            self.stock[i] -= sent[i + 1] if i + 1 < stages else sum(sent[stages:])
            cost += rules.stages[i] * self.stock[i]
        for i, store in enumerate(self.params.stores):
            angle = 2 * math.pi * (t / 25 + float(self.params.phase))
            mean = float(store.demand) * (1 + float(self.params.amplitude) * math.sin(angle))
            stock = self.stock[stages + i] - stats.poisson.ppf(units[i], mean)
            cost += float(store.holding) * max(stock, 0) + float(store.penalty) * max(-stock, 0)
            self.stock[stages + i] = max(stock, -150) if rules.backlog else max(stock, 0)
        for i, quantity in enumerate(sent):
            self.transit[i].append(quantity)
            room = 150 * rules.supplied_stores[i]
            self.stock[i] = min(self.stock[i] + self.transit[i].pop(0), room)
        return cost


def test_short_stock_is_shared_in_proportion() -> None:
    stock = np.float32(6)
    orders = [np.float32(q) for q in (1, 2, 9)]
    np.testing.assert_allclose(share(orders, stock, everything=False), [0.5, 1, 4.5], rtol=1e-6)
    np.testing.assert_allclose(share(orders, np.float32(20), everything=False), orders)
    np.testing.assert_allclose(
        share(orders, np.float32(24), everything=True), [2, 4, 18], rtol=1e-2
    )
    nothing = [np.float32(0)] * 3
    np.testing.assert_allclose(share(nothing, stock, everything=True), [2, 2, 2], rtol=1e-6)
    np.testing.assert_allclose(share(nothing, stock, everything=False), [0, 0, 0])


def test_balanced_requests_leave_all_stores_at_one_quantile() -> None:
    means, positions = [9.0, 16.0, 25.0], [8.0, 15.0, 20.0]
    requests = balanced_requests(15.0, positions, means)
    assert sum(float(request) for request in requests) == pytest.approx(15)
    z = [
        (float(request) + position - mean) / mean**0.5
        for request, position, mean in zip(requests, positions, means, strict=True)
    ]
    assert z == pytest.approx([8 / 12] * 3)


@pytest.mark.parametrize("network", ["lost-sales", "warehouse"])
def test_returns_have_pathwise_gradients(network: str) -> None:
    """The derivative by each standing order is that of a difference, in float64."""
    with jax.enable_x64(True):
        task = build(network, 2, "float64")
        key = jax.random.key(3)
        params = task.sample_params(key, 0)
        start = task.initial(key, params)

        def total(orders: jax.Array) -> jax.Array:
            def step(state: Any, t: jax.Array) -> Any:
                next_state = task.transition(state, orders, jax.random.fold_in(key, t), params)
                return next_state, task.reward(state, orders, next_state, key, params)

            return jax.lax.scan(step, start, jnp.arange(40))[1].sum()

        orders = jnp.asarray(6.3 * task.size)
        value, gradient = jax.jit(jax.value_and_grad(total))(orders)
        difference = jax.jit(jax.vmap(total))(orders + 1e-6 * jnp.eye(len(orders))) - value
        assert float(jnp.abs(gradient).max()) > 1
        np.testing.assert_allclose(gradient, difference / 1e-6, rtol=1e-3, atol=1e-2)


def test_train_and_test_demands_never_overlap() -> None:
    task = build("warehouse")
    keys = jax.random.split(jax.random.key(0), 4000)
    sample = jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))
    for split in (0, 1):
        for store in jax.device_get(sample(keys, np.int32(split))).stores:
            assert set(np.floor((store.demand - 2) / 0.4)) == set(range(split, 20, 2))


def test_reference_is_far_above_the_best_constant_order() -> None:
    task = build()
    best = play(task, NetworkBaseStock.for_task(task), range(300))
    assert best.info["success"].mean() > 0.9
    standing = play(task, StandingOrders.for_task(task), range(300))
    assert best.total.mean() > standing.total.mean() / 4
    assert standing.info["success"].mean() < 0.05


def test_words_picture_and_settings() -> None:
    task = build("serial")
    params = task.sample_params(jax.random.key(0), 0)
    state = task.initial(jax.random.key(0), params)
    text = task.describe(state, params)
    assert "Period 0" in text
    assert "Stage 3: " in text
    assert "a unit waiting costs" in text
    assert task.draw(state, params).shape == task.picture_shape
    assert task.parse("1.5 0 30 2", state, params).tolist() == [1.5, 0, 30, 2]
    with pytest.raises(ValueError, match="expected an action"):
        task.parse("1 2 3 31", state, params)
    with pytest.raises(ValueError, match="whole number from 1 to 12"):
        build(lead=13)
    with pytest.raises(ValueError, match="lost-sales"):
        card("InventoryNetwork-v0").with_settings(network="lost-sale")
