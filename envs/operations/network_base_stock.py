"""The reference player of inventory networks: base-stock levels that follow the season.

Every place orders up to a level, less its position: stock, less waiting customers, plus everything
on the way. A level is a quantile of the demand of the coming periods, of mean m: m + z sqrt(m) +
(z^2 - 1) / 6 (Poisson demand, Cornish & Fisher 1938).

* lost-sales: a capped base stock (Xin 2021, doi:10.1287/opre.2020.2019): no order is larger than
  the mean demand of the period in which it arrives plus some of its standard deviations. The
  critical ratio is p / (p + k h), with penalty p and holding cost h.
* serial: echelon base stock, which is optimal (Clark & Scarf 1960, doi:10.1287/mnsc.6.4.475), with
  the levels of Shang & Song 2003, doi:10.1287/mnsc.49.5.618.14626: the mean of two newsvendor
  quantiles. The position of a stage also counts everything at the places that it supplies.
* warehouse: both; the echelon of the warehouse has a critical ratio of its own.
* transshipment: an echelon base stock, and shipments after which all stores have the same quantile
  of their demand (Federgruen & Zipkin 1984, doi:10.1287/mnsc.30.1.69).

``python -m rlbench_suite.envs.operations.network_base_stock`` repeats the search for k, the cap and
the ratio, on training contexts.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import ndtri

from rlbench_suite.core.arrays import Float
from rlbench_suite.core.policy import View, privileged_player

from .inventory import ordered_sum
from .inventory_network import (
    MAX_ORDER,
    InventoryNetwork,
    Network,
    Params,
    Store,
    mean_demand,
)


class Settings(NamedTuple):
    """Numbers that a search chose."""

    times: Float = 1.0
    """k: weight of the holding cost of stores"""
    cap: Float = 10.0
    """Largest order of a store above the mean demand, in standard deviations of a period"""
    ratio: Float = 0.9
    """Critical ratio of a warehouse or a centre"""


TUNED_SETTINGS = {
    "lost-sales": {
        1: Settings(times=1.4, cap=1.0),
        2: Settings(times=1.4, cap=1.0),
        3: Settings(times=2.0, cap=0.5),
        4: Settings(times=2.0, cap=0.5),
    },
    "serial": {2: Settings()},
    "warehouse": {
        1: Settings(times=1.0, ratio=0.99),
        2: Settings(times=1.0, ratio=0.98),
        4: Settings(times=1.4, ratio=0.95),
    },
    "transshipment": {2: Settings(ratio=0.99)},
}
"""Settings by network and lead time; the nearest lead time counts."""


@privileged_player
class NetworkBaseStock(eqx.Module):
    """The player of this file's docstring."""

    settings: Settings
    network: Network = eqx.field(static=True)
    lead: int = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: InventoryNetwork) -> NetworkBaseStock:
        """Make the player of a network, with the settings found for its nearest lead time."""
        by_lead = TUNED_SETTINGS[task.card.settings["network"]]
        settings = by_lead[min(by_lead, key=lambda lead: abs(lead - task.lead))]
        return cls(settings, task.network, task.lead)

    def initial(self, params: Params) -> tuple[tuple[Float, ...], tuple[Float, ...]]:
        """Return the normal quantiles of the stages' and of the stores' levels."""
        times, _, ratio = self.settings
        if len(self.network.stages) > 1:
            return serial_quantiles(self.network, params.stores[0])
        stores = tuple(
            ndtri(store.penalty / (store.penalty + times * store.holding))
            for store in params.stores
        )
        return tuple(ndtri(ratio) for _ in self.network.stages), stores

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return orders up to the levels, one a place."""
        state, params = view.state, view.params
        stage_quantiles, store_quantiles = memory

        def means(store: Store, first: int, last: int) -> Float:
            """Return the mean demand of the coming periods from ``first`` to ``last``."""
            return ordered_sum(
                [mean_demand(store, params, state.periods + k) for k in range(first, last + 1)]
            )

        stages = len(self.network.stages)
        positions = [site.position for site in state.stores]
        requests = [
            jnp.maximum(level(z, means(store, 0, self.lead)) - position, 0)
            for z, store, position in zip(store_quantiles, params.stores, positions, strict=True)
        ]
        if self.network.stores == 1 and not stages:
            arriving = means(params.stores[0], self.lead, self.lead)
            cap = arriving + self.settings.cap * jnp.sqrt(arriving)
            requests = [jnp.minimum(requests[0], cap)]
        if not self.network.keeps_stock:
            requests = balanced_requests(
                state.stages[-1].stock,
                positions,
                [means(store, 0, self.lead) for store in params.stores],
            )
        orders: list[Float] = []
        echelon = ordered_sum(positions)
        for i in reversed(range(stages)):
            echelon = echelon + state.stages[i].position
            places = stages - i + 1
            coming = ordered_sum([means(store, 0, places * self.lead) for store in params.stores])
            orders.insert(0, jnp.maximum(level(stage_quantiles[i], coming) - echelon, 0))
        highest = [MAX_ORDER * stores for stores in self.network.supplied_stores]
        return jnp.stack(
            [
                jnp.minimum(order, high)
                for order, high in zip(orders + requests, highest, strict=True)
            ]
        ), memory


def level(z: Float, mean: Float) -> Float:
    """Return the quantile of a Poisson number of this mean, with the normal quantile ``z``."""
    return mean + z * jnp.sqrt(mean) + (z * z - 1) * (1 / 6)


def serial_quantiles(network: Network, store: Store) -> tuple[tuple[Float, ...], tuple[Float, ...]]:
    """Return the mean normal quantiles of Shang & Song, of the stages and of the store.

    With penalty b and local holding costs H_1 (store) to H_N (outermost stage), H_{N+1} = 0, place
    j has the ratios (b + H_{j+1}) / (b + H_1) and (b + H_{j+1}) / (b + H_j).
    """
    costs = [0.0, *network.stages, store.holding]
    bounds = [
        0.5
        * (
            ndtri((store.penalty + outer) / (store.penalty + store.holding))
            + ndtri((store.penalty + outer) / (store.penalty + inner))
        )
        for outer, inner in itertools.pairwise(costs)
    ]
    return tuple(bounds[:-1]), tuple(bounds[-1:])


def balanced_requests(stock: Float, positions: list[Float], means: list[Float]) -> list[Float]:
    """Return the shipments after which all stores are at the same normal quantile.

    Stores above it get nothing, and the shipments are then too large together by what they have in
    excess; the centre shares in proportion.
    """
    roots = [jnp.sqrt(mean) for mean in means]
    z = (stock + ordered_sum(positions) - ordered_sum(means)) / ordered_sum(roots)
    return [
        jnp.maximum(mean + z * root - position, 0)
        for mean, root, position in zip(means, roots, positions, strict=True)
    ]


def search(task: Any, episodes: int) -> list[tuple[float, Settings]]:
    """Return mean return and settings on training contexts, best first."""
    from rlbench_suite.adapters.rollout import play

    times, caps, ratios = GRIDS[task.card.settings["network"]]
    candidates = []
    for settings in itertools.starmap(Settings, itertools.product(times, caps, ratios)):
        player = NetworkBaseStock(settings, task.network, task.lead)
        mean = play(task, player, range(episodes), split="train").total.mean()
        candidates.append((float(mean), settings))
    return sorted(candidates, reverse=True)


GRIDS = {
    "lost-sales": ((1.0, 1.4, 2.0, 2.8), (0.25, 0.5, 1.0, 1.5, 2.5), (0.5,)),
    "warehouse": ((1.0, 1.4, 2.0), (10.0,), (0.9, 0.95, 0.98, 0.99, 0.995)),
    "transshipment": ((1.0,), (10.0,), (0.9, 0.95, 0.98, 0.99, 0.995)),
}
"""Values of each setting that the search tries; serial has nothing to search."""


if __name__ == "__main__":
    from rlbench_suite.core.registry import card

    for network in GRIDS:
        network_card = card("InventoryNetwork-v0").with_settings(network=network)
        for lead in TUNED_SETTINGS[network]:
            for total, settings in search(network_card.build(difficulty=lead), episodes=2000)[:2]:
                print(f"{network:14s} lead {lead}   return {total:9.2f}   {tuple(settings)}")
