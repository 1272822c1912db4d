"""Order real-valued amounts of a good through a network of stores, warehouses and stages.

Periodic review, as in Alvo et al. 2023, arXiv:2306.11246. A period goes as follows:

1. order: every place orders from its supplier, which ships at most the stock on its shelf. Short
   stock is shared in proportion to the orders; the rest of an order is cancelled. The first place
   orders from outside, where nothing is ever short;
2. demand: Poisson at every store, served from the shelf. Unserved demand is lost, or waits;
3. costs: holding of the stock left on each shelf, and a penalty a unit lost, or a unit waiting;
4. receive: a shipment with lead time L, ordered in period t, is on the shelf for the demand of
   period t + L.

=============  =====================================================================================
network        lost-sales (one store; unserved demand is lost), serial (a store behind three
               stages; demand waits), warehouse (three stores behind a warehouse; lost),
               transshipment (three stores behind a centre that passes on all it has, in proportion
               to the orders; waits)
action         ``Box``: one order a place, units: first those of the stages or the warehouse, from
               outside inwards, up to 30 units a store that they supply; then each store 0..30
observation    of each place stock and shipments on the way, next to arrive first (of 10 units a
               store supplied); of each store mean demand (of 10 units), holding cost, penalty (of
               20); sine and cosine of the season times its amplitude
reward         minus the costs of the period, in units of money
termination    never; the task goes on, and an episode shows 100 periods
success        so far at least 95 % of demand served from the shelf, with no more than three
               periods' mean demand in stock for each place of the longest path
start          each shelf holds one to three periods' mean demand, and that demand is on the way
               for each period
context        each store's mean demand, 2..10 a period, train and test in alternating bands; its
               holding cost 0.7..1.3 and penalty 9..30 a unit and period; a season of 25 periods
               with amplitude 0..0.6 of the mean, and its phase
difficulty     lead time of every place: medium 2 periods, easy 1, hard 3, longest 4
=============  =====================================================================================

Everything but the demand is a continuous, piecewise linear function of the orders, and the demand
does not depend on them. So returns have pathwise gradients.

A shelf holds 150 units a store that it supplies, and units without room are sent away. As many
customers wait at a store at most; further ones are lost, at the same penalty.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from rlbench_suite.core.arrays import Float, Int
from rlbench_suite.core.component import Component, scaled_component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.alternating_bands import alternating_bands
from .inventory import ordered_sum, poisson

MAX_ORDER = 30.0
"""Largest order, units a store supplied."""
ROOM = 150.0
"""Room of a shelf, units a store supplied."""
UNIT = 10.0
"""Units in which the observation gives quantities, a store supplied."""
MEANS = (2.0, 10.0)
"""Range of a store's mean demand, units a period."""
HOLDING = (0.7, 1.3)
"""Range of a store's holding cost, money a unit left and period."""
PENALTY = (9.0, 30.0)
"""Range of a store's penalty, money a unit lost, or waiting a period."""
PENALTY_UNIT = 20.0
"""Money in which the observation gives penalties."""
MAX_AMPLITUDE = 0.6
"""Largest amplitude of the season, in parts of the mean demand."""
SEASON = 25
"""Periods of a season."""
MAX_DEMAND = 48
"""Largest demand of the inverse transform: one of mean 16 is greater once in 10^10 times."""
MIN_SERVED_SHARE = 0.95
"""Smallest share of demand that is served at once in an episode with success."""
PERIODS_IN_STOCK = 3.0
"""Largest mean stock of an episode with success, in periods of demand and places of a path."""
EVEN_ORDER = 1e-3
"""Units added to each order of which a transshipment centre passes on all its stock.

So it shares evenly if nobody orders.
"""
MAX_LEAD = 12
"""periods"""


class Network(NamedTuple):
    """Structure of supply."""

    stages: tuple[float, ...]
    """Holding cost of each place between outside and the stores, money a unit left and period"""
    stores: int
    backlog: bool
    """True if unserved demand waits"""
    keeps_stock: bool = True
    """True if the last place before the stores may keep stock"""

    @property
    def supplied_stores(self) -> tuple[int, ...]:
        """Number of stores that each place supplies; a store supplies itself."""
        return (self.stores,) * len(self.stages) + (1,) * self.stores


NETWORKS = {
    "lost-sales": Network((), 1, backlog=False),
    "serial": Network((0.1, 0.2, 0.5), 1, backlog=True),
    "warehouse": Network((0.3,), 3, backlog=False),
    "transshipment": Network((0.3,), 3, backlog=True, keeps_stock=False),
}
"""Network by the setting of that name."""


class Store(NamedTuple):
    """Demand of a store and its costs, per period."""

    demand: Float
    """Mean demand over a season, units"""
    holding: Float
    """Money per unit left"""
    penalty: Float
    """Money per unit lost, or waiting"""


class Params(NamedTuple):
    """The context."""

    stores: tuple[Store, ...]
    amplitude: Float
    """Amplitude of the season, in parts of the mean demand"""
    phase: Float
    """Phase of the season at the first period, in parts of a season"""


class Site(NamedTuple):
    """Goods of a place, units."""

    stock: Float
    """Units on the shelf; negative: waiting customers"""
    transit: tuple[Float, ...]
    """Units on the way, next to arrive first: one number less than the lead time"""

    @property
    def position(self) -> Float:
        """Stock plus everything on the way."""
        return ordered_sum([self.stock, *self.transit])


class State(NamedTuple):
    """Goods before the orders of a period, and the books so far."""

    stages: tuple[Site, ...]
    """From outside inwards"""
    stores: tuple[Site, ...]
    cost: Float
    """Money, of the last period"""
    demanded: Float
    """Units so far"""
    served: Float
    """Units served from the shelf at once"""
    stored: Float
    """Stock at the end of each period so far, all places, summed"""
    periods: Int


class InventoryNetwork(Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "fill_rate": "part of demand so far served from the shelf at once",
        "mean_stock": "units on all shelves at the end of a period, mean so far",
        "period_cost": "money, of the last period",
    }
    picture_shape = (240, 320, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty not in range(1, MAX_LEAD + 1):
            raise ValueError(
                f"The difficulty of {card.id} is a lead time, a whole number from 1 to {MAX_LEAD} "
                f"periods, got {difficulty!r}."
            )
        self.lead = int(difficulty or 1)
        self.network = network = NETWORKS[card.settings["network"]]
        self.size = supplied = np.array(network.supplied_stores, np.float64)
        """Number of stores that each place supplies"""
        self.action_space = self.box(np.zeros(len(supplied)), MAX_ORDER * supplied)
        waits = -ROOM / UNIT if network.backlog else 0.0
        goods_low, goods_high = [], []
        for i in range(len(supplied)):
            goods_low += [waits if i >= len(network.stages) else 0.0, *[0.0] * (self.lead - 1)]
            # What is received may be as much as a centre holds.
            goods_high += [ROOM / UNIT] * self.lead
        scale = [
            network.stores if i >= len(network.stages) and not network.keeps_stock else 1
            for i in range(len(supplied))
            for _ in range(self.lead)
        ]
        high = np.array(goods_high) * scale
        low = np.array(goods_low)
        costs = [1.0, 2.0, 2.0] * network.stores
        self.observation_space = self.box(
            np.concatenate([low, np.zeros(len(costs)), [-1.0, -1.0]]),
            np.concatenate([high, costs, [1.0, 1.0]]),
        )
        waiting = ROOM * network.backlog
        dearest = max(HOLDING[1] * ROOM, PENALTY[1] * (MAX_DEMAND + waiting))
        upstream = ROOM * network.stores * math.fsum(network.stages)
        self.reward_space = self.box(-math.ceil(dearest * network.stores + upstream), 0.0)

    # -- an episode --------------------------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample mean demands in the bands of the split, and the others alike for both splits."""
        unit = self.uniform(key, 3 * self.network.stores + 2)
        stores = tuple(
            Store(
                alternating_bands(unit[3 * i], split, *MEANS, bands=20),
                HOLDING[0] + (HOLDING[1] - HOLDING[0]) * unit[3 * i + 1],
                PENALTY[0] + (PENALTY[1] - PENALTY[0]) * unit[3 * i + 2],
            )
            for i in range(self.network.stores)
        )
        return Params(stores, MAX_AMPLITUDE * unit[-2], unit[-1])

    def initial(self, key: jax.Array, params: Params) -> State:
        """Sample the shelves, with the mean demand on the way for every period."""
        stages = len(self.network.stages)
        unit = self.uniform(key, stages + len(params.stores))
        total = ordered_sum([store.demand for store in params.stores])

        def stocked_site(unit: Float, usual: Float) -> Site:
            return Site((1 + 2 * unit) * usual, (usual,) * (self.lead - 1))

        zero = jnp.zeros((), self.dtype)
        return State(
            tuple(stocked_site(unit[i], total) for i in range(stages)),
            tuple(
                stocked_site(unit[stages + i], store.demand)
                for i, store in enumerate(params.stores)
            ),
            zero,
            zero,
            zero,
            zero,
            jnp.int32(0),
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Play a period: order, demand, costs, receive."""
        network, num_stages = self.network, len(self.network.stages)
        orders = [action[i] for i in range(len(network.supplied_stores))]
        shipments = orders[:1]
        for order, supplier in zip(orders[1:num_stages], state.stages[:-1], strict=True):
            shipments.append(jnp.minimum(order, supplier.stock))
        if num_stages:
            last = state.stages[-1].stock
            shipments += share(orders[num_stages:], last, everything=not network.keeps_stock)
        cost, stored = jnp.zeros((), self.dtype), jnp.zeros((), self.dtype)
        stages = []
        for i, (stage, holding) in enumerate(zip(state.stages, network.stages, strict=True)):
            sent = shipments[i + 1] if i + 1 < num_stages else ordered_sum(shipments[num_stages:])
            left = jnp.maximum(stage.stock - sent, 0)
            cost = cost + holding * left
            stored = stored + left
            stages.append(_receive(Site(left, stage.transit), shipments[i], ROOM * network.stores))
        units = self.uniform(key, len(params.stores))
        stores, demanded, served = [], state.demanded, state.served
        for i, (site, store) in enumerate(zip(state.stores, params.stores, strict=True)):
            mean = mean_demand(store, params, state.periods)
            demand = poisson(units[i], mean, MAX_DEMAND).astype(self.dtype)
            balance = site.stock - demand
            left, short = jnp.maximum(balance, 0), jnp.maximum(-balance, 0)
            cost = cost + (store.holding * left + store.penalty * short)
            demanded = demanded + demand
            served = served + jnp.minimum(jnp.maximum(site.stock, 0), demand)
            stored = stored + left
            remains = jnp.maximum(balance, -ROOM) if network.backlog else left
            stores.append(_receive(Site(remains, site.transit), shipments[num_stages + i], ROOM))
        return State(
            tuple(stages),
            tuple(stores),
            cost,
            demanded,
            served,
            state.stored + stored,
            state.periods + 1,
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return quantities, then demands and costs, then the season; see the table."""
        factors = [1 / (UNIT * supplied) for supplied in self.network.supplied_stores]
        goods = [
            quantity * factor
            for site, factor in zip((*state.stages, *state.stores), factors, strict=True)
            for quantity in (site.stock, *site.transit)
        ]
        costs = [
            value
            for store in params.stores
            for value in (
                store.demand * (1 / UNIT),
                store.holding,
                store.penalty * (1 / PENALTY_UNIT),
            )
        ]
        angle = season_angle(params, state.periods)
        season = params.amplitude * jnp.sin(angle), params.amplitude * jnp.cos(angle)
        return self.stack(*goods, *costs, *season)

    def site_names(self) -> list[str]:
        """Return the names of all places, in the order of the action."""
        stages = [f"stage_{i + 1}" for i in range(len(self.network.stages))]
        if len(stages) == 1:
            stages = ["warehouse"]
        return stages + [f"store_{i + 1}" for i in range(self.network.stores)]

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        listed = []
        waiting = "; below zero, customers who wait" if self.network.backlog else ""
        for name, stores in zip(self.site_names(), self.network.supplied_stores, strict=True):
            words = waiting if name.startswith("store") else ""
            size = UNIT * stores
            listed.append(scaled_component(f"{name}_stock", f"stock{words}", size, "units"))
            listed += [
                scaled_component(
                    f"{name}_arriving_{ahead}",
                    f"shipment on the way that arrives in {ahead} period(s)",
                    size,
                    "units",
                )
                for ahead in range(1, self.lead)
            ]
        for i in range(1, self.network.stores + 1):
            listed += [
                scaled_component(
                    f"store_{i}_demand", "mean demand of the store a period", UNIT, "units"
                ),
                Component(
                    f"store_{i}_holding", "holding cost of the store, a unit and period", "1 money"
                ),
                scaled_component(
                    f"store_{i}_penalty",
                    "penalty of the store, a unit not served",
                    PENALTY_UNIT,
                    "money",
                ),
            ]
        return (
            *listed,
            Component("season_sine", "change of the mean demand in this period", "mean demand"),
            Component("season_cosine", "the same a quarter of a season later", "mean demand"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List an order a place."""
        return tuple(
            Component(f"{name}_order", f"amount that the {name.replace('_', ' ')} orders", "units")
            for name in self.site_names()
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
        fill_rate = state.served / jnp.maximum(state.demanded, 1)
        mean_stock = state.stored / jnp.maximum(state.periods, 1).astype(self.dtype)
        places = 1 + len(self.network.stages)
        enough = (PERIODS_IN_STOCK * places) * ordered_sum([s.demand for s in params.stores])
        return {
            "success": (fill_rate >= MIN_SERVED_SHARE) & (mean_stock <= enough),
            "fill_rate": fill_rate,
            "mean_stock": mean_stock,
            "period_cost": state.cost,
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        names = ", ".join(name.replace("_", " ") for name in self.site_names())
        space: Any = self.action_space
        high = ", ".join(f"{bound:g}" for bound in space.high)
        return f"Answer with numbers, the orders of {names}; the largest are {high}."

    def describe(self, state: State, params: Params) -> str:
        """Describe every place with its goods and its costs, and the season."""
        angle = float(season_angle(params, state.periods))
        amplitude = float(params.amplitude)
        lines = [
            f"Period {int(state.periods)}; the last one cost {float(state.cost):.1f}. Demand is "
            f"{100 * amplitude * math.sin(angle):+.1f} % from its mean now, and "
            f"{100 * amplitude * math.cos(angle):+.1f} % a quarter of a season of {SEASON} periods "
            "later."
        ]
        names = [name.replace("_", " ").capitalize() for name in self.site_names()]
        stages = len(state.stages)
        for name, site, holding in zip(names, state.stages, self.network.stages, strict=False):
            lines.append(f"{name}: {_describe_site(site)}, holding {holding:.2f} a unit.")
        unserved = "waiting" if self.network.backlog else "lost"
        for name, site, store in zip(names[stages:], state.stores, params.stores, strict=True):
            lines.append(
                f"{name}: {_describe_site(site)}; demand {float(store.demand):.2f} a period on "
                f"average, holding {float(store.holding):.3f}, a unit {unserved} costs "
                f"{float(store.penalty):.2f}."
            )
        return "\n".join(lines)

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw a bar a place: stock (green, red below zero), and shipments beside it (blue)."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)
        ground = height - 60
        canvas.line((0, ground, width, ground), fill="black")
        sites = (*state.stages, *state.stores)
        across = width / len(sites)
        for i, (site, stores) in enumerate(zip(sites, self.network.supplied_stores, strict=True)):
            left = i * across + 8
            bar = (across - 16) / (1 + len(site.transit))
            for j, quantity in enumerate((site.stock, *site.transit)):
                top = ground - max(-50.0, min(150.0, 5 * float(quantity) / stores))
                fill = "cornflowerblue"
                if j == 0:
                    fill = "red" if float(quantity) < 0 else "green"
                x = left + j * bar
                canvas.rectangle(
                    (x, min(top, ground), x + max(bar - 3, 1), max(top, ground)),
                    fill=fill,
                    outline="black",
                )
            canvas.text((left, height - 14), f"{float(site.stock):.1f}", fill="black")
        return np.asarray(image)


def share(orders: list[Float], stock: Float, *, everything: bool) -> list[Float]:
    """Return the shipments of a supplier: the orders, or all the stock in proportion to them.

    Args:
        orders: orders of the places that it supplies.
        stock: its stock.
        everything: True if it passes on all its stock, even if less was ordered.
    """
    if everything:
        orders = [order + EVEN_ORDER for order in orders]
    total = ordered_sum(orders)
    shipped_share = stock / jnp.maximum(total, EVEN_ORDER)
    if not everything:
        shipped_share = jnp.minimum(shipped_share, 1)
    return [order * shipped_share for order in orders]


def season_angle(params: Params, period: Int) -> Float:
    """Return the angle of the season in a period, rad."""
    within = jnp.remainder(period, SEASON).astype(params.phase.dtype)
    return 2 * math.pi * (within * (1 / SEASON) + params.phase)


def mean_demand(store: Store, params: Params, period: Int) -> Float:
    """Return the mean demand of a store in a period, units."""
    return store.demand * (1 + params.amplitude * jnp.sin(season_angle(params, period)))


def _receive(site: Site, shipped: Float, room: float) -> Site:
    arriving, *transit = (*site.transit, shipped)
    return Site(jnp.minimum(site.stock + arriving, room), tuple(transit))


def _describe_site(site: Site) -> str:
    stock = float(site.stock)
    words = f"{stock:.2f} in stock" if stock >= 0 else f"{-stock:.2f} waiting"
    return f"{words}, on the way {[round(float(quantity), 2) for quantity in site.transit]}"
