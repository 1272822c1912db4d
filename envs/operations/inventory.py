"""Order stock for shops and the warehouse that supplies them, before demand is known.

Periodic review, whole units. The warehouse orders from a supplier that always delivers; shops order
from the warehouse. A period goes as follows (Zipkin 2008, doi:10.1287/opre.1070.0471, for a single
shop):

1. order: shops' orders are shipped from the warehouse's stock. Short stock is shared in proportion
   to the orders, in whole units (:func:`share`); the rest of an order is cancelled. The warehouse's
   own order goes out;
2. demand: Poisson at every shop, served from stock on the shelf. Unserved demand is lost, or waits
   (backlog);
3. costs: holding of the stock left on shelves and in the warehouse, and a penalty a unit lost, or a
   unit waiting;
4. receive: a shipment with lead time L, ordered in period t, is on the shelf for the demand of
   period t + L.

A shop holds 40 units and the warehouse 150; units without room are sent away. At most forty
customers wait; further ones are lost, at the same penalty. Sensible policies never come near these
limits.

======================  ============================================================================
action                  one order a place, whole units: warehouse 0..60 (networks), then each shop
                        0..20
observation             stock and shipments on the way, next to arrive first (warehouse: of 50
                        units; then each shop: of 10 units); then mean demand (of 10 units), holding
                        cost, penalty (of 10) of each shop, and holding cost of the warehouse
                        (networks)
reward                  minus the costs of the period, in units of money
terminated              never; the task goes on, and an episode shows 100 periods
success                 so far at least 90 % of demand served from the shelf, with no more than
                        three periods' mean demand in stock on average over the periods
start                   shops: 0..2 times their mean demand on the shelf, the mean demand on the way
                        each period; warehouse: 0..4 times the mean demand of all in stock, that
                        mean on the way each period
context                 each shop's mean demand, 2.5..7.5 a period, train and test in alternating
                        bands; holding cost 0.7..1.3 and penalty 6.3..11.7 a unit and period; the
                        warehouse's holding cost is 0.3
difficulty              network (three shops, lead times 1, 2 and 3, warehouse 3, lost sales),
                        network-backlog, shop (one, lead time 2, lost sales, unlimited supply),
                        shop-backlog
======================  ============================================================================

Costs and ranges of the network follow Alvo et al. 2023, arXiv:2306.11246 (one warehouse, many
stores, lost sales).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.contexts.context import Constant
from rlbench_suite.contexts.time_series import Column, Series
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import alternating_bands
from ..shared.own_constants import OwnConstants, begin_in_record

Scalar = Any
"""A scalar array; on the host, where a state is described or drawn, a number."""

SHOP_ORDER, WAREHOUSE_ORDER = 20, 60
"""Largest orders, units."""
SHOP_UNIT, WAREHOUSE_UNIT = 10.0, 50.0
"""Units in which the observation gives quantities."""
SHELF, DEPOT = 40, 150
"""Room of a shop and of the warehouse, units; at most as many customers wait at a shop."""
MEANS = (2.5, 7.5)
"""Range of a shop's mean demand, units a period."""
HOLDING = (0.7, 1.3)
"""Range of a shop's holding cost, money a unit left and period."""
PENALTY = (6.3, 11.7)
"""Range of a shop's penalty, money a unit lost, or waiting a period."""
WAREHOUSE_HOLDING = 0.3
"""Holding cost of the warehouse, money a unit left and period."""
MIN_SERVED_SHARE = 0.9
"""Smallest share of demand that is served at once in an episode with success."""
PERIODS_IN_STOCK = 3.0
"""Largest mean stock of an episode with success, in periods of demand."""
MAX_SAMPLED_DEMAND = 28
"""Largest demand of the inverse transform.

A Poisson number of mean 7.5 is greater once in 10^9 times.
"""
MAX_MEAN_DEMAND = 60.0
"""Largest mean demand: exp(-mean) of the inverse transform is far from the smallest float32."""
MAX_LEAD = 12
"""periods"""
MAX_RECORDED_DEMAND = 1000
"""Largest demand of a record, units a period"""


class Network(NamedTuple):
    """Structure of supply and lead times, the same in every episode of a tier."""

    leads: tuple[int, ...]
    """Lead times of the shops, periods, each at least 1"""
    warehouse_lead: int | None
    """Lead time of the warehouse; None without one: the shops' supplier always delivers"""
    backlog: bool
    """True if unserved demand waits"""


NETWORKS = (
    Network((1, 2, 3), 3, backlog=False),
    Network((1, 2, 3), 3, backlog=True),
    Network((2,), None, backlog=False),
    Network((2,), None, backlog=True),
)
"""Network by difficulty."""


class Shop(NamedTuple):
    """Demand of a shop and its costs, per period."""

    demand: Scalar
    """Mean of the Poisson demand, units"""
    holding: Scalar
    """Money per unit left"""
    penalty: Scalar
    """Money per unit lost, or waiting"""


class Params(NamedTuple):
    """The context."""

    shops: tuple[Shop, ...]
    warehouse_holding: Scalar
    """Money per unit and period"""
    start: Scalar | None = None
    """int32: row of the record of demand at which the episode begins; None if demand is Poisson"""


class Site(NamedTuple):
    """A shop or the warehouse; int32 units."""

    stock: Scalar
    """Units on the shelf; negative: waiting customers"""
    transit: tuple[Scalar, ...]
    """Units on the way, next to arrive first: one number less than the lead time"""


class State(NamedTuple):
    """Goods before the orders of a period, and the books so far."""

    shops: tuple[Site, ...]
    warehouse: Site | None
    cost: Scalar
    """Money, of the last period"""
    demanded: Scalar
    """int32, units so far"""
    served: Scalar
    """int32, units served from the shelf at once"""
    stored: Scalar
    """int32, stock at the end of each period so far, all places, summed"""
    periods: Scalar
    """int32"""


class Inventory(Task[Params, State]):
    """The task of this file's docstring."""

    networks: ClassVar[tuple[Network, ...]] = NETWORKS
    measures: ClassVar[dict[str, str]] = {
        "fill_rate": "part of demand so far served from the shelf at once",
        "mean_stock": "units in shops and warehouse at the end of a period, mean so far",
        "period_cost": "money, of the last period",
    }
    picture_shape = (240, 320, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty not in range(len(self.networks)):
            names = ", ".join(f"{name} ({number:g})" for name, number in card.difficulties.items())
            raise ValueError(f"The difficulty of {card.id} is one of {names}, got {difficulty!r}.")
        self.network = self.networks[int(difficulty or 0)]
        self.own_constants = OwnConstants(card, self.constants())
        self._resize()
        leads, supplied = self.network.leads, self.network.warehouse_lead is not None
        orders = [self.shop_order + 1] * len(leads)
        self.action_space = spaces.MultiDiscrete(
            [self.warehouse_order + 1, *orders] if supplied else orders
        )
        shop_bounds = [
            self._scale(np.int32(quantity), SHOP_UNIT) for quantity in (self.shelf, self.shop_order)
        ]
        shops = [shop_bounds[min(i, 1)] for lead in leads for i in range(lead)]
        depot_bounds = [
            self._scale(np.int32(quantity), WAREHOUSE_UNIT)
            for quantity in (self.depot, self.warehouse_order)
        ]
        warehouse = [depot_bounds[min(i, 1)] for i in range(self.network.warehouse_lead or 0)]
        high = np.array(warehouse + shops + [2.0] * (3 * len(leads) + supplied))
        low = np.zeros(len(high))
        if self.network.backlog:
            low[len(warehouse) + np.cumsum([0, *leads[:-1]])] = -shop_bounds[0]
        self.observation_space = self.box(low, high)
        holding, penalty = self._max_over_shops("holding"), self._max_over_shops("penalty")
        dearest = max(
            holding * self.shelf,
            penalty * (self.largest_demand + self.shelf * self.network.backlog),
        )
        depot_cost = self.own_constants.value("warehouse_holding") * self.depot if supplied else 0.0
        self.reward_space = self.box(-np.ceil(dearest * len(leads) + depot_cost), 0)

    def constants(self) -> tuple[Constant, ...]:
        """Return demand, costs and lead time of each shop, and those of the warehouse."""
        listed = []
        for i, lead in enumerate(self.networks[int(self.difficulty or 0)].leads, 1):
            listed += [
                Constant(
                    f"shop_{i}_demand", "", *MEANS,
                    "mean demand, units a period; room and largest orders grow with it",
                    maximum=MAX_MEAN_DEMAND, bands=20,
                ),
                Constant(f"shop_{i}_holding", "", *HOLDING, "money a unit left and period"),
                Constant(
                    f"shop_{i}_penalty", "", *PENALTY, "money a unit lost, or waiting a period",
                    minimum=0.0,
                ),
                Constant(
                    f"shop_{i}_lead", "", lead, lead, "periods from order to shelf", MAX_LEAD,
                    is_integer=True, may_vary=False,
                ),
            ]  # fmt: skip
        if (depot_lead := self.networks[int(self.difficulty or 0)].warehouse_lead) is not None:
            cost, lead = WAREHOUSE_HOLDING, depot_lead
            listed += [
                Constant(
                    "warehouse_holding", "", cost, cost, "money a unit left and period",
                    minimum=0.0, may_vary=False
                ),
                Constant(
                    "warehouse_lead", "", lead, lead, "periods from order to warehouse",
                    MAX_LEAD, is_integer=True, may_vary=False,
                ),
            ]  # fmt: skip
        return tuple(listed)

    def series(self) -> tuple[Series, ...]:
        """Return the demand of the shops."""
        shops = range(1, len(self.networks[int(self.difficulty or 0)].leads) + 1)
        columns = tuple(
            Column(f"shop_{i}", "units", 0, MAX_RECORDED_DEMAND, f"demand of shop {i}")
            for i in shops
        )
        words = "demand of each period, in place of Poisson demand"
        return (
            Series("demand", words, columns, "periods", 1, 2 * self.card.horizon, is_integer=True),
        )

    def _resize(self) -> None:
        """Fit network, room, largest orders, scales and the record of demand to the context."""
        network, shops = self.network, range(1, len(self.network.leads) + 1)
        leads = tuple(int(self.own_constants.value(f"shop_{i}_lead")) for i in shops)
        depot_lead: int | None = (
            None
            if network.warehouse_lead is None
            else int(self.own_constants.value("warehouse_lead"))
        )
        self.network = Network(leads, depot_lead, network.backlog)
        record = self.card.context.record("demand") if self.card.context else None
        self.record = None if record is None else record.values().astype(np.int32)
        if self.record is None:
            max_mean = self._max_over_shops("demand")
        elif demands := [
            f"shop_{i}_demand" for i in shops if f"shop_{i}_demand" in self.own_constants
        ]:
            raise ValueError(
                f"{self.card.id}: {demands[0]} follows from the record of demand; leave it out."
            )
        else:
            max_mean = max(float(self.record.mean(0).max()), 0.25 * float(self.record.max()))
        self.size = size = max(1.0, max_mean / MEANS[1])
        """Room and orders by those of the shipped network"""
        self.shelf, self.depot = math.ceil(SHELF * size), math.ceil(DEPOT * size)
        self.shop_order = math.ceil(SHOP_ORDER * size)
        self.warehouse_order = math.ceil(WAREHOUSE_ORDER * size)
        self.largest_demand = MAX_SAMPLED_DEMAND
        if self.record is not None:
            self.largest_demand = int(self.record.max())
        elif size > 1:
            self.largest_demand = math.ceil(max_mean + 7 * math.sqrt(max_mean) + 2)
        self.holding_scale = max(1.0, 0.51 * self._max_over_shops("holding"))
        if depot_lead is not None:
            self.holding_scale = max(
                self.holding_scale, 0.51 * self.own_constants.value("warehouse_holding")
            )
        self.penalty_scale = max(1.0, 0.051 * self._max_over_shops("penalty"))

    def _max_over_shops(self, quantity: str) -> float:
        """Return the largest value of a quantity at any shop."""
        return max(
            self.own_constants.range(f"shop_{i}_{quantity}")[1]
            for i in range(1, len(self.network.leads) + 1)
        )

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample mean demands in the bands of the split, and costs alike for both splits."""
        u = self.uniform(key, 3 * len(self.network.leads))
        sample, start = self.own_constants.sample_or_shipped, None
        means: list[Scalar] = [
            sample(
                f"shop_{i + 1}_demand",
                u[3 * i],
                split,
                alternating_bands(u[3 * i], split, *MEANS, bands=20),
            )
            for i in range(len(self.network.leads))
        ]
        if self.record is not None:
            unit = self.uniform(jax.random.fold_in(key, 1), 1)[0]
            start = begin_in_record(unit, split, len(self.record), self.card.horizon)
            means = [jnp.asarray(mean, self.dtype) for mean in self.record.mean(0)]
        shops = tuple(
            Shop(
                mean,
                sample(
                    f"shop_{i + 1}_holding", v, split, HOLDING[0] + (HOLDING[1] - HOLDING[0]) * v
                ),
                sample(
                    f"shop_{i + 1}_penalty", w, split, PENALTY[0] + (PENALTY[1] - PENALTY[0]) * w
                ),
            )
            for i, mean in enumerate(means)
            for v, w in [(u[3 * i + 1], u[3 * i + 2])]
        )
        holding = (
            WAREHOUSE_HOLDING
            if self.network.warehouse_lead is None
            else self.own_constants.value("warehouse_holding")
        )
        return Params(shops, jnp.asarray(holding, self.dtype), start)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Sample shelves and warehouse, with a usual shipment on the way for every period."""
        u = self.uniform(key, len(params.shops) + 1)

        def stocked_site(unit: Scalar, max_stock: Scalar, usual: Scalar, lead: int) -> Site:
            stock = jnp.floor(unit * (max_stock + 1)).astype(jnp.int32)
            return Site(stock, (jnp.round(usual).astype(jnp.int32),) * (lead - 1))

        shops = tuple(
            stocked_site(u[i], 2 * shop.demand, shop.demand, lead)
            for i, (shop, lead) in enumerate(zip(params.shops, self.network.leads, strict=True))
        )
        total = ordered_sum([shop.demand for shop in params.shops])
        lead = self.network.warehouse_lead
        warehouse = None if lead is None else stocked_site(u[-1], 4 * total, total, lead)
        zero = jnp.int32(0)
        return State(shops, warehouse, jnp.zeros((), self.dtype), zero, zero, zero, zero)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Play a period: order, demand, costs, receive."""
        num_sites = len(state.shops) + (state.warehouse is not None)
        orders = [action[i].astype(jnp.int32) for i in range(num_sites)]
        units = self.uniform(key, len(params.shops))
        cost, stored = jnp.zeros((), self.dtype), jnp.int32(0)
        warehouse = state.warehouse
        if warehouse is None:
            shipped = orders
        else:
            shipped = share(orders[1:], warehouse.stock)
            stored = warehouse.stock - ordered_sum(shipped)
            cost = params.warehouse_holding * stored
            warehouse = _receive(Site(stored, warehouse.transit), orders[0], self.depot)
        shops, demanded, served = [], state.demanded, state.served
        for i, (site, shop) in enumerate(zip(state.shops, params.shops, strict=True)):
            if self.record is None:
                demand = poisson(units[i], shop.demand, self.largest_demand)
            else:
                demand = jnp.asarray(self.record)[params.start + state.periods, i]
            balance = site.stock - demand
            leftover, short = jnp.maximum(balance, 0), jnp.maximum(-balance, 0)
            cost = cost + (shop.holding * leftover + shop.penalty * short)
            demanded = demanded + demand
            served = served + jnp.minimum(jnp.maximum(site.stock, 0), demand)
            stored = stored + leftover
            remains = jnp.maximum(balance, -self.shelf) if self.network.backlog else leftover
            shops.append(_receive(Site(remains, site.transit), shipped[i], self.shelf))
        return State(
            tuple(shops),
            warehouse,
            cost,
            demanded,
            served,
            state.stored + stored,
            state.periods + 1,
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return quantities, then costs; see the table."""
        units = [WAREHOUSE_UNIT] * (state.warehouse is not None) + [SHOP_UNIT] * len(state.shops)
        sites = (state.warehouse, *state.shops) if state.warehouse is not None else state.shops
        quantities = [
            self._scale(quantity, unit)
            for site, unit in zip(sites, units, strict=True)
            for quantity in (site.stock, *site.transit)
        ]
        holding_factor, penalty_factor = 1 / self.holding_scale, 0.1 / self.penalty_scale
        costs = [
            value
            for s in params.shops
            for value in (
                s.demand * (0.1 / self.size),
                s.holding * holding_factor,
                s.penalty * penalty_factor,
            )
        ]
        return self.stack(
            *quantities,
            *costs,
            *([] if state.warehouse is None else [params.warehouse_holding * holding_factor]),
        )

    def _scale(self, quantity: Scalar, unit: float) -> Scalar:
        """Return a number of units as observations show it."""
        return quantity.astype(self.dtype) * (1 / (unit * self.size))

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        shops = [f"shop_{i}" for i in range(1, len(self.network.leads) + 1)]
        shop_unit = f"{SHOP_UNIT * self.size:g} units"
        depot_unit = f"{WAREHOUSE_UNIT * self.size:g} units"
        sites = [
            (name, lead, shop_unit) for name, lead in zip(shops, self.network.leads, strict=True)
        ]
        if self.network.warehouse_lead is not None:
            sites.insert(0, ("warehouse", self.network.warehouse_lead, depot_unit))
        waiting = "; below zero, customers who wait" if self.network.backlog else ""
        quantities = (
            Component(
                f"{name}_arriving_{ahead}",
                f"units on the way that arrive in {ahead} period(s)",
                unit,
            )
            if ahead
            else Component(f"{name}_stock", f"units in stock{waiting}", unit)
            for name, lead, unit in sites
            for ahead in range(lead)
        )
        holding_unit = f"{self.holding_scale:g} money"
        penalty_unit = f"{10 * self.penalty_scale:g} money"
        costs = (
            component
            for name in shops
            for component in (
                Component(f"{name}_demand", "mean demand of the shop a period", shop_unit),
                Component(
                    f"{name}_holding", "holding cost of the shop, a unit and period", holding_unit
                ),
                Component(
                    f"{name}_penalty", "penalty of the shop, a unit not served", penalty_unit
                ),
            )
        )
        holding = Component(
            "warehouse_holding", "holding cost of the warehouse, a unit and period", holding_unit
        )
        return *quantities, *costs, *([] if self.network.warehouse_lead is None else [holding])

    def action_components(self) -> tuple[Component, ...]:
        """List an order a place."""
        orders = [f"shop_{i}" for i in range(1, len(self.network.leads) + 1)]
        if self.network.warehouse_lead is not None:
            orders.insert(0, "warehouse")
        return tuple(
            Component(f"{name}_order", f"units that the {name.replace('_', ' ')} orders", "1 unit")
            for name in orders
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return minus the costs of the period."""
        return -next_state.cost

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return false: only the time limit ends an episode."""
        return jnp.bool_(False)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        fill_rate = state.served.astype(self.dtype) / jnp.maximum(state.demanded, 1).astype(
            self.dtype
        )
        mean_stock = state.stored.astype(self.dtype) / jnp.maximum(state.periods, 1).astype(
            self.dtype
        )
        enough = PERIODS_IN_STOCK * ordered_sum([shop.demand for shop in params.shops])
        return {
            "success": (fill_rate >= MIN_SERVED_SHARE) & (mean_stock <= enough),
            "fill_rate": fill_rate,
            "mean_stock": mean_stock,
            "period_cost": state.cost,
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        shops = len(self.network.leads)
        maximum = self.warehouse_order
        first = (
            ""
            if self.network.warehouse_lead is None
            else f"the warehouse's order, 0 to {maximum}, then "
        )
        return (
            f"Answer with whole numbers: {first}the order of each of {shops} shop(s), 0 to "
            f"{self.shop_order}."
        )

    def describe(self, state: State, params: Params) -> str:
        """Describe every place with its stock, its shipments and its costs."""
        lines = [f"Period {int(state.periods)}; the last one cost {float(state.cost):.1f}."]
        if state.warehouse is not None:
            lines.append(
                f"Warehouse: {_describe_site(state.warehouse)}, holding "
                f"{float(params.warehouse_holding):.2f} a unit."
            )
        unserved = "waiting" if self.network.backlog else "lost"
        for i, (site, shop) in enumerate(zip(state.shops, params.shops, strict=True)):
            lines.append(
                f"Shop {i + 1}: {_describe_site(site)}; demand {float(shop.demand):.2f} a period "
                f"on average, holding {float(shop.holding):.2f}, a unit {unserved} costs "
                f"{float(shop.penalty):.2f}."
            )
        return "\n".join(lines)

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw a bar a place: stock (green, red below zero), and shipments beside it (blue).

        The next shipment to arrive comes first.
        """
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)
        ground = height - 60
        canvas.line((0, ground, width, ground), fill="black")
        bars = [("W", state.warehouse, 100.0 * self.size)] if state.warehouse is not None else []
        bars += [(str(i + 1), shop, 30.0 * self.size) for i, shop in enumerate(state.shops)]
        across = width / len(bars)
        for i, (name, site, full) in enumerate(bars):
            left = i * across + 8
            bar = (across - 16) / (1 + len(site.transit))
            for j, quantity in enumerate((site.stock, *site.transit)):
                top = ground - max(-50.0, min(150.0, 150 * int(quantity) / full))
                fill = "cornflowerblue"
                if j == 0:
                    fill = "red" if int(quantity) < 0 else "green"
                x = left + j * bar
                canvas.rectangle(
                    (x, min(top, ground), x + bar - 3, max(top, ground)), fill=fill, outline="black"
                )
            canvas.text((left, height - 14), f"{name}: {int(site.stock)}", fill="black")
        return np.asarray(image)


def share(orders: list[Scalar], stock: Scalar) -> list[Scalar]:
    """Return the shipments: the orders, or all the stock in proportion to them.

    Each shop's shipment is a difference of cumulated fractions rounded down. So the shipments are
    whole, add up to the stock, and are each less than one unit from the exact proportion.
    """
    total, shipped = ordered_sum(orders), []
    divisor = jnp.maximum(total, 1)
    previous_total: Scalar = 0
    cumulated: Scalar = 0
    for order in orders:
        cumulated = cumulated + order
        shipped_total = jnp.where(
            total <= stock, cumulated, cumulated * jnp.minimum(stock, total) // divisor
        )
        shipped.append(shipped_total - previous_total)
        previous_total = shipped_total
    return shipped


def poisson(unit: Scalar, mean: Scalar, largest: int = MAX_SAMPLED_DEMAND) -> Scalar:
    """Sample a Poisson number by inverse transform.

    It counts the values of the distribution that are below a uniform number.
    """
    probability = jnp.exp(-mean)
    cumulated, number = probability, jnp.int32(0)
    for k in range(1, largest + 1):
        number = number + (unit >= cumulated).astype(jnp.int32)
        probability = probability * (mean * (1 / k))
        cumulated = cumulated + probability
    return number


def _receive(site: Site, shipped: Scalar, room: int) -> Site:
    arriving, *transit = (*site.transit, shipped)
    return Site(jnp.minimum(site.stock + arriving, room), tuple(transit))


def ordered_sum(values: list[Scalar]) -> Scalar:
    """Sum in a fixed order."""
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _describe_site(site: Site) -> str:
    stock = int(site.stock)
    stock_words = f"{stock} in stock" if stock >= 0 else f"{-stock} waiting"
    return f"{stock_words}, on the way {[int(quantity) for quantity in site.transit]}"
