"""Check Inventory against queueing theory, dynamic programmes, a replica and published optima.

The queueing results are closed forms, the programmes are exact, the replica is plain Python.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import View
from rlbench_suite.core.registry import card
from rlbench_suite.core.task_card import load
from rlbench_suite.envs.operations import inventory
from rlbench_suite.envs.operations.base_stock import BaseStock, quantile
from rlbench_suite.envs.operations.inventory import (
    Inventory,
    Network,
    Params,
    Shop,
    Site,
    State,
    poisson,
    share,
)

MEAN = 5.0
DEMANDS = np.arange(inventory.MAX_SAMPLED_DEMAND + 1)
CHANCES = stats.poisson.pmf(DEMANDS, MEAN) / stats.poisson.cdf(inventory.MAX_SAMPLED_DEMAND, MEAN)


class OneShop(Inventory):
    """One shop with a lead time from 1 to 3, lost sales (0 to 2) or backlog (3 to 5)."""

    networks = tuple(
        Network((lead,), None, backlog) for backlog in (False, True) for lead in (1, 2, 3)
    )


class ConstantOrders(NamedTuple):
    """Orders the same every period."""

    orders: Any

    def initial(self, params: Any) -> tuple[()]:
        return ()

    def act(self, memory: Any, view: Any, key: Any) -> Any:
        return self.orders, memory


@pytest.fixture(scope="module")
def task() -> Any:
    return card("Inventory-v0").build()


def one_shop_task(lead: int, backlog: bool) -> OneShop:
    return OneShop(card("Inventory-v0"), difficulty=3 * backlog + lead - 1, dtype="float32")


def one_shop_params(penalty: float) -> Params:
    return jax.tree.map(np.float32, Params((Shop(MEAN, 1.0, penalty),), 0.3))


def empty_state(task: Inventory) -> State:
    """Nothing anywhere."""
    zero = np.int32(0)
    shops = tuple(Site(zero, (zero,) * (lead - 1)) for lead in task.network.leads)
    lead = task.network.warehouse_lead
    return State(
        shops,
        None if lead is None else Site(zero, (zero,) * (lead - 1)),
        np.float32(0),
        zero,
        zero,
        zero,
        zero,
    )


def mean_costs(
    task: Inventory, params: Params, decide: Any, shops: int = 3000, periods: int = 200
) -> np.ndarray:
    """Return the cost a period of each of many runs from nothing, ``(shops,)``.

    The first 50 periods are not counted.
    """

    def run(key: jax.Array) -> jax.Array:
        def period(state: State, t: jax.Array) -> tuple[State, jax.Array]:
            state = task.transition(state, decide(state), jax.random.fold_in(key, t), params)
            return state, state.cost

        return jax.lax.scan(
            period, jax.tree.map(jnp.asarray, empty_state(task)), jnp.arange(periods)
        )[1][50:].mean()

    return np.asarray(
        jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(0), shops)), np.float64
    )


def assert_mean(sample: np.ndarray, truth: float) -> None:
    """Within four standard errors, which are less than 0.5 % of the truth."""
    error = sample.std() / np.sqrt(len(sample))
    assert error < 5e-3 * truth
    assert abs(sample.mean() - truth) < 4 * error


def order_up_to(level: int) -> Any:
    def decide(state: State) -> jax.Array:
        position = state.shops[0].stock + sum(state.shops[0].transit)
        return jnp.clip(level - position, 0, inventory.SHOP_ORDER)[None]

    return decide


# -- backlog: closed form --------------------------------------------------------------------------


def base_stock_cost(level: int, penalty: float, lead: int) -> float:
    """Return E[h (S - D)+ + p (D - S)+], D Poisson over lead time and one period.

    Zipkin 2000, section 9.4.
    """
    demand = np.arange(400)
    chance = stats.poisson.pmf(demand, MEAN * (lead + 1))
    return float(chance @ (np.maximum(level - demand, 0) + penalty * np.maximum(demand - level, 0)))


@pytest.mark.parametrize(("lead", "penalty"), [(1, 9.0), (2, 4.0), (3, 19.0)])
def test_backlog_costs_follow_the_newsvendor_formula(lead: int, penalty: float) -> None:
    best = int(quantile(penalty / (1 + penalty), MEAN * (lead + 1)))
    costs = [base_stock_cost(level, penalty, lead) for level in range(60)]
    assert (
        best
        == int(np.argmin(costs))
        == stats.poisson.ppf(penalty / (1 + penalty), MEAN * (lead + 1))
    )
    for level in (best - 3, best, best + 4):
        assert_mean(
            mean_costs(one_shop_task(lead, True), one_shop_params(penalty), order_up_to(level)),
            costs[level],
        )


def test_reference_orders_up_to_the_optimal_level() -> None:
    task = one_shop_task(2, True)
    player = BaseStock.for_task(task)
    levels = player.initial(one_shop_params(9.0))
    assert int(levels.shops[0]) == stats.poisson.ppf(0.9, 15.0)
    state = empty_state(task)._replace(shops=(Site(np.int32(-4), (np.int32(6),)),))
    action, _ = player.act(levels, View(None, None, state, one_shop_params(9.0)), None)
    assert action.tolist() == [min(20, int(levels.shops[0]) - 2)]


# -- lost sales: exact dynamic programme -----------------------------------------------------------

MAX_STOCK = 40
"""Stock that the dynamic programme sees; optimal policies hold less than half of it."""


@cache
def lost_sales_optimum(lead: int, penalty: float) -> tuple[float, np.ndarray]:
    """Return the least average cost and the best order in every state, by value iteration.

    A state is the stock and the shipments on the way.

    Relative value iteration; Odoni's bounds enclose the optimal average cost to 1e-6.
    """
    orders = np.arange(16)
    stock = np.arange(MAX_STOCK + 1)
    costs = np.maximum(stock[:, None] - DEMANDS, 0) + penalty * np.maximum(
        DEMANDS - stock[:, None], 0
    )
    expected = costs @ CHANCES
    leaves = np.zeros((MAX_STOCK + 1, MAX_STOCK + 1))  # chance of stock s leaving k
    for s in stock:
        np.add.at(leaves[s], np.maximum(s - DEMANDS, 0), CHANCES)
    shape = (MAX_STOCK + 1, *(len(orders),) * (lead - 1))
    value = np.zeros(shape)
    while True:
        if lead == 1:  # the order itself arrives
            arrived = value[np.minimum(stock[:, None] + orders, MAX_STOCK)]  # (left, order)
            ahead = expected[:, None] + leaves @ arrived
        else:  # the next shipment arrives, the order joins the queue
            # (left, next, rest..., order) of the new state.
            arrived = value[np.minimum(stock[:, None] + orders, MAX_STOCK)]
            flat = arrived.reshape(MAX_STOCK + 1, -1)
            ahead = (expected[:, None] + leaves @ flat).reshape(arrived.shape)
        new = ahead.min(-1)
        gain = new - value
        value = new - new.flat[0]
        if gain.max() - gain.min() < 1e-6:
            return float((gain.max() + gain.min()) / 2), ahead.argmin(-1)


@pytest.mark.parametrize(
    ("lead", "penalty", "published"),
    [(1, 4.0, 4.04), (1, 9.0, 5.44), (1, 19.0, 6.68), (1, 39.0, 7.84),
     (2, 4.0, 4.40), (2, 9.0, 6.09), (2, 19.0, 7.66), (2, 39.0, 9.11),
     (3, 4.0, 4.60), (3, 9.0, 6.53)],
)  # fmt: skip
def test_dynamic_programme_gives_zipkin_s_optima(
    lead: int, penalty: float, published: float
) -> None:
    """Optimal costs agree with Zipkin 2008, Old and new methods for lost-sales inventory systems.

    Its demand is Poisson with mean 5.
    """
    assert lost_sales_optimum(lead, penalty)[0] == pytest.approx(published, abs=0.0051)


@pytest.mark.parametrize(("lead", "penalty"), [(1, 9.0), (2, 4.0), (2, 19.0)])
def test_optimal_policy_costs_in_simulation_what_the_dynamic_programme_says(
    lead: int, penalty: float
) -> None:
    average, table = lost_sales_optimum(lead, penalty)
    orders = jnp.asarray(table, jnp.int32)

    def decide(state: State) -> jax.Array:
        place = state.shops[0]
        return orders[(jnp.minimum(place.stock, MAX_STOCK), *place.transit)][None]

    task, params = one_shop_task(lead, False), one_shop_params(penalty)
    assert_mean(mean_costs(task, params, decide), average)
    # Where sales are lost no base-stock level is optimal (Karlin & Scarf 1958); the best one is
    # worse, but not much.
    best = min(
        mean_costs(task, params, order_up_to(level), shops=500).mean() for level in range(10, 26, 3)
    )
    assert 1.002 * average < best < 1.25 * average


# -- the parts -------------------------------------------------------------------------------------


def test_demand_is_poisson() -> None:
    units = (np.arange(200_000) + 0.5) / 200_000
    for mean in (2.5, 5.0, 7.5):
        demands = np.asarray(jax.jit(poisson)(units.astype(np.float32), np.float32(mean)))
        counts = np.bincount(demands, minlength=30)[:30] / len(units)
        np.testing.assert_allclose(counts, stats.poisson.pmf(np.arange(30), mean), atol=1.5e-5)


def test_short_stock_is_shared_in_proportion_in_whole_units() -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        orders, stock = rng.integers(0, 21, 3), int(rng.integers(0, 70))
        shipped = np.array(
            [int(quantity) for quantity in share([np.int32(o) for o in orders], np.int32(stock))]
        )
        if orders.sum() <= stock:
            assert (shipped == orders).all()
        else:
            assert shipped.sum() == stock
            assert (shipped >= 0).all()
            assert (shipped <= orders).all()
            assert (np.abs(shipped - orders * stock / orders.sum()) < 1).all()


@pytest.mark.parametrize("difficulty", ["network", "network-backlog", "shop", "shop-backlog"])
def test_a_season_equals_a_plain_python_replica(difficulty: str) -> None:
    """Follow the order of events of the task's module, written again with lists.

    Demands are read off the served and lost units.
    """
    task = card("Inventory-v0").build(difficulty=difficulty)
    params = task.sample_params(jax.random.key(3), 0)
    state = task.initial(jax.random.key(4), params)
    step = jax.jit(lambda s, a, k: task.transition(s, a, k, params))
    rng = np.random.default_rng(1)
    stock = [int(place.stock) for place in state.shops]
    transit = [[int(q) for q in place.transit] for place in state.shops]
    depot = None if state.warehouse is None else int(state.warehouse.stock)
    inbound = [] if state.warehouse is None else [int(q) for q in state.warehouse.transit]
    for t in range(60):
        key = jax.random.fold_in(jax.random.key(5), t)
        action = rng.integers(0, task.action_space.nvec // (1 if t % 3 else 3))
        units = np.asarray(task.uniform(key, len(stock)))
        orders, cost = [int(a) for a in action], 0.0
        if depot is not None:
            bought, *orders = orders
            shipped = [
                int(quantity) for quantity in share([np.int32(o) for o in orders], np.int32(depot))
            ]
            depot -= sum(shipped)
            cost += float(params.warehouse_holding) * depot
            inbound.append(bought)
            depot = min(depot + inbound.pop(0), 150)
            orders = shipped
        for i, place in enumerate(params.shops):
            demand = int(stats.poisson.ppf(units[i], float(place.demand)))
            stock[i] -= demand
            cost += float(place.holding) * max(stock[i], 0) + float(place.penalty) * max(
                -stock[i], 0
            )
            if not task.network.backlog:
                stock[i] = max(stock[i], 0)
            stock[i] = max(stock[i], -40)
            transit[i].append(orders[i])
            stock[i] = min(stock[i] + transit[i].pop(0), 40)
        state = step(state, jnp.asarray(action), key)
        assert [int(place.stock) for place in state.shops] == stock
        assert [[int(q) for q in place.transit] for place in state.shops] == transit
        if depot is not None:
            assert (int(state.warehouse.stock), [int(q) for q in state.warehouse.transit]) == (
                depot,
                inbound,
            )
        assert float(state.cost) == pytest.approx(cost, rel=1e-5)
        assert float(task.reward(None, None, state, None, params)) == -float(state.cost)


def test_no_unit_is_made_or_lost(task: Any) -> None:
    """Units in the system = units before + bought from outside - sold."""
    params = task.sample_params(jax.random.key(0), 1)
    state = task.initial(jax.random.key(1), params)
    units_held = lambda s: sum(int(leaf) for leaf in jax.tree.leaves((s.shops, s.warehouse)))  # noqa: E731
    rng = np.random.default_rng(0)
    for t in range(40):
        action = rng.integers(0, task.action_space.nvec // 3)  # no shelf overflows
        after = task.transition(state, jnp.asarray(action), jax.random.key(t), params)
        assert units_held(after) == units_held(state) + action[0] - int(after.served - state.served)
        state = after


def test_train_and_test_demands_never_overlap(task: Any) -> None:
    keys = jax.random.split(jax.random.key(0), 4000)
    sample = jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))
    for split in (0, 1):
        for place in jax.device_get(sample(keys, np.int32(split))).shops:
            assert set(np.floor((place.demand - 2.5) / 0.25)) == set(range(split, 20, 2))
            assert (place.penalty.min(), place.penalty.max()) == pytest.approx(
                (6.3, 11.7), abs=0.02
            )


def test_reference_is_far_above_constant_orders(task: Any) -> None:
    assert load(task.card.reference) is BaseStock
    best = play(task, BaseStock.for_task(task), range(300))
    assert best.info["success"].mean() > 0.7
    assert best.info["fill_rate"].mean() > 0.85
    constant_orders = (
        (0, 0, 0, 0),
        (12, 4, 4, 4),
        (15, 5, 5, 5),
        (15, 20, 20, 20),
        (18, 6, 6, 6),
        (25, 7, 7, 7),
    )
    returns = [
        play(task, ConstantOrders(np.array(orders, np.int32)), range(100)).total.mean()
        for orders in constant_orders
    ]
    assert best.total.mean() > max(returns) / 2


def test_words_picture_and_difficulties(task: Any) -> None:
    state = empty_state(task)._replace(periods=np.int32(7))
    params = task.sample_params(jax.random.key(0), 0)
    assert "Period 7" in task.describe(state, params)
    assert "Warehouse: 0 in stock, on the way [0, 0]" in task.describe(state, params)
    assert task.draw(state, params).shape == task.picture_shape
    with pytest.raises(ValueError, match=r"network-backlog \(1\)"):
        card("Inventory-v0").build(difficulty=7)


@pytest.mark.parametrize(
    "text", ["1.5 0 0 0", "1 2 3", "nan 0 0 0", "1e300 0 0 0", "-1 0 0 0", "one 0 0 0"]
)
def test_an_order_in_words_is_whole_numbers_in_range(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        card("rlsuite/Inventory-v0").build().parse(text, None, None)
    assert card("rlsuite/Inventory-v0").build().parse("60, 0 20 1", None, None).tolist() == [
        60,
        0,
        20,
        1,
    ]
