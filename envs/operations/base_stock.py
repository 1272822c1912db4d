"""The reference player: base-stock levels from the distribution of demand over the lead time.

Every place orders the difference between a level and its inventory position: stock, minus waiting
customers, plus everything on the way. A shop's level is the newsvendor quantile of the Poisson
demand over lead time and one period: exactly optimal for one shop with backlog (Zipkin, Foundations
of Inventory Management, 2000, section 9.4). If sales are lost, the position overstates the need,
and a lower critical ratio serves better (Huh et al. 2009, doi:10.1287/mnsc.1080.0945). The
warehouse keeps an echelon base stock (Clark & Scarf 1960, doi:10.1287/mnsc.6.4.475): its position
also counts everything at the shops and on the way to them.

The critical ratios of the network are the best of a grid in simulation on training contexts;
``python -m rlbench_suite.envs.operations.base_stock`` repeats the search.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import poisson

from rlbench_suite.core.arrays import Float, Int
from rlbench_suite.core.policy import View, privileged_player

from .inventory import MEANS, SHOP_ORDER, WAREHOUSE_ORDER, Inventory, Params, Site

QUANTILES = 160
"""Highest level: demand of three shops over seven periods has a mean of 130 at most."""
LEVELS = np.arange(QUANTILES)


class Levels(NamedTuple):
    """Memory: base-stock levels, int32 units, fixed for an episode."""

    shops: tuple[Any, ...]
    warehouse: Any


@privileged_player
class BaseStock(NamedTuple):
    """A shop's critical ratio is p / (p + k h), with its penalty p and holding cost h."""

    leads: Any
    """Lead times of the shops"""
    warehouse_lead: Int
    """Lead time of the warehouse; 0 if there is none"""
    times: Float = 1.0
    """k: weight of the holding cost"""
    warehouse_ratio: Float = 0.5
    """Critical ratio of the warehouse"""
    levels: Any = LEVELS
    """All levels"""
    shop_order: Int = SHOP_ORDER
    warehouse_order: Int = WAREHOUSE_ORDER
    """Largest orders, units"""

    @classmethod
    def for_task(cls, task: Inventory) -> BaseStock:
        """Make the player of a network, with the ratios found for its kind."""
        network = task.network
        times, ratio = TUNED_SETTINGS[network.warehouse_lead is not None, network.backlog]
        longest = (network.warehouse_lead or 0) + sum(network.leads) + len(network.leads)
        mean = (
            MEANS[1] * task.size * longest * (len(network.leads) if network.warehouse_lead else 1)
        )
        levels = np.arange(
            max(QUANTILES, int(mean + 6 * mean**0.5))
            if task.own_constants.changed or task.size > 1
            else QUANTILES
        )
        return cls(
            network.leads,
            network.warehouse_lead or 0,
            times,
            ratio,
            levels,
            task.shop_order,
            task.warehouse_order,
        )

    def initial(self, params: Params) -> Levels:
        """Return the levels for this episode's demands and costs."""
        shops = tuple(
            quantile(
                shop.penalty / (shop.penalty + self.times * shop.holding),
                shop.demand * (lead + 1),
                self.levels,
            )
            for shop, lead in zip(params.shops, self.leads, strict=True)
        )
        echelon = sum(
            shop.demand * (self.warehouse_lead + lead + 1)
            for shop, lead in zip(params.shops, self.leads, strict=True)
        )
        return Levels(shops, quantile(self.warehouse_ratio, echelon, self.levels))

    def act(self, memory: Levels, view: View, key: jax.Array) -> tuple[jax.Array, Levels]:
        """Return orders up to the levels, int32, one a place."""
        positions = [position(shop) for shop in view.state.shops]
        orders = [
            jnp.clip(level - stock_position, 0, self.shop_order)
            for level, stock_position in zip(memory.shops, positions, strict=True)
        ]
        if view.state.warehouse is not None:
            echelon = position(view.state.warehouse) + sum(positions)
            orders.insert(0, jnp.clip(memory.warehouse - echelon, 0, self.warehouse_order))
        return jnp.stack(orders), memory


def position(site: Site) -> Any:
    """Return stock plus everything on the way."""
    return site.stock + sum(site.transit)


def quantile(ratio: Any, mean: Any, levels: Any = LEVELS) -> Any:
    """Return the quantile ``ratio`` of the Poisson distribution with this mean.

    It is the least number that is exceeded with probability 1 - ``ratio`` at most.
    """
    return (poisson.cdf(jnp.asarray(levels), mean) < ratio).sum().astype(jnp.int32)


TUNED_SETTINGS = {
    (False, True): (1.0, 0.5),
    (False, False): (2.0, 0.5),
    (True, True): (1.0, 0.98),
    (True, False): (1.5, 0.9),
}
"""Times and ratio by (has a warehouse, backlog).

One shop with backlog needs no search: 1 is optimal.
"""


def search(task: Any, episodes: int) -> list[tuple[float, float, float]]:
    """Return mean return, times and ratio on training contexts, best first."""
    from rlbench_suite.adapters.rollout import play

    ratios = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99) if task.network.warehouse_lead else (0.5,)
    candidates = []
    for times, ratio in itertools.product((0.5, 1.0, 1.5, 2.0, 2.5, 3.0), ratios):
        player = BaseStock.for_task(task)._replace(times=times, warehouse_ratio=ratio)
        candidates.append(
            (float(play(task, player, range(episodes), split="train").total.mean()), times, ratio)
        )
    return sorted(candidates, reverse=True)


if __name__ == "__main__":
    from rlbench_suite.core.registry import card

    for tier in card("Inventory-v0").difficulties:
        for total, times, ratio in search(
            card("Inventory-v0").build(difficulty=tier), episodes=1000
        )[:4]:
            print(
                f"{tier:16s} return {total:9.2f}   holding counted {times:g} times   warehouse "
                f"ratio {ratio:g}"
            )
