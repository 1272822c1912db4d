"""The network of Braess's paradox: travel times, the best flows, and those of selfish drivers.

Four junctions and five roads, from 1 to 4 (Braess 1968; in English doi:10.1287/trsc.1050.0127):

    top      1-2, 2-4
    bottom   1-3, 3-4
    bridge   1-2, 2-3, 3-4

The time on a road is its free time plus its congestion times the share of drivers on it. So the
mean travel time is a convex quadratic function of the shares of two routes. So is the potential
whose minimum is the equilibrium of selfish drivers (Beckmann, McGuire & Winsten 1956; Rosenthal
1973, doi:10.1007/BF01737559, for whole drivers). Both have closed forms: the point where the
gradient is zero, or the best point of the three edges of the triangle of shares.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Float, Int

TOP, BOTTOM, BRIDGE = range(3)
ROUTES = {"top": "1-2-4", "bottom": "1-3-4", "bridge": "1-2-3-4"}
"""Names of the kinds of routes, and the junctions that they pass."""
NEARBY = np.array(
    sorted(
        ((i, j) for i in range(-2, 3) for j in range(-2, 3)), key=lambda d: d[0] ** 2 + d[1] ** 2
    ),
    np.int32,
)
"""Drivers more on top and on bottom that are tried after rounding, the nearest first."""
ROUNDING = 3e-7
"""Relative difference below which totals are equal; of equal ones the nearest counts."""


class Roads(NamedTuple):
    """A number for each road."""

    from_1_to_2: Float
    from_2_to_4: Float
    from_1_to_3: Float
    from_3_to_4: Float
    from_2_to_3: Float


class Flows(NamedTuple):
    """Drivers or shares of drivers of each kind of route."""

    top: Float | Int
    bottom: Float | Int
    bridge: Float | Int


class Network(NamedTuple):
    """The roads; times are in minutes."""

    free: Roads
    """Time on the empty road."""
    congestion: Roads
    """Additional time if all drivers use the road."""


def shares_of_roads(shares: Flows) -> Roads:
    """Return the share of drivers on each road."""
    return Roads(
        shares.top + shares.bridge,
        shares.top,
        shares.bottom,
        shares.bottom + shares.bridge,
        shares.bridge,
    )


def road_times(network: Network, shares: Flows) -> Roads:
    """Return the time on each road, min."""
    return Roads(
        *(
            free + congestion * share
            for free, congestion, share in zip(*network, shares_of_roads(shares), strict=True)
        )
    )


def route_times(network: Network, shares: Flows) -> Flows:
    """Return the time of each kind of route, min."""
    roads = road_times(network, shares)
    return Flows(
        roads.from_1_to_2 + roads.from_2_to_4,
        roads.from_1_to_3 + roads.from_3_to_4,
        roads.from_1_to_2 + roads.from_2_to_3 + roads.from_3_to_4,
    )


def mean_time(network: Network, shares: Flows) -> jax.Array:
    """Return the mean travel time of all drivers, min."""
    times = route_times(network, shares)
    return shares.top * times.top + shares.bottom * times.bottom + shares.bridge * times.bridge


def best_flows(network: Network, drivers: int) -> Flows:
    """Return the numbers of drivers with the least mean travel time, int32."""
    doubled = Roads(*(2 * congestion for congestion in network.congestion))
    return _minimal_flows(Network(network.free, doubled), drivers)


def equilibrium_flows(network: Network, drivers: int) -> Flows:
    """Return numbers of drivers in which none gains by changing the route alone, int32.

    They have the least potential: the sum, over roads, of the times that drivers would have who
    enter the road one after another.
    """
    half_driver = 0.5 / drivers
    free = Roads(*(f + half_driver * c for f, c in zip(*network, strict=True)))
    return _minimal_flows(Network(free, network.congestion), drivers)


def _minimal_flows(network: Network, drivers: int) -> Flows:
    """Return whole drivers with the least sum of ``free x + congestion x**2 / 2`` over roads."""
    free, slope = network
    # The gradient is zero where top_slope top + between bottom = top_end, and likewise for bottom.
    between = slope.from_2_to_3
    top_slope = slope.from_2_to_4 + slope.from_3_to_4 + between
    bottom_slope = slope.from_1_to_3 + slope.from_1_to_2 + between
    top_end = slope.from_3_to_4 + between - free.from_2_to_4 + free.from_3_to_4 + free.from_2_to_3
    bottom_end = (
        slope.from_1_to_2 + between - free.from_1_to_3 + free.from_1_to_2 + free.from_2_to_3
    )
    determinant = top_slope * bottom_slope - between * between
    top = (top_end * bottom_slope - bottom_end * between) / determinant
    bottom = (bottom_end * top_slope - top_end * between) / determinant
    is_inside = (top >= 0) & (bottom >= 0) & (top + bottom <= 1)
    no_bridge = jnp.clip(
        (top_end - bottom_end + bottom_slope - between) / (top_slope + bottom_slope - 2 * between),
        0,
        1,
    )
    edges = (
        (0 * top, jnp.clip(bottom_end / bottom_slope, 0, 1)),
        (jnp.clip(top_end / top_slope, 0, 1), 0 * top),
        (no_bridge, 1 - no_bridge),
    )

    def total(top: jax.Array, bottom: jax.Array) -> jax.Array:
        loads = shares_of_roads(Flows(top, bottom, 1 - top - bottom))
        terms = [f * x + 0.5 * c * x * x for f, c, x in zip(free, slope, loads, strict=True)]
        return terms[0] + terms[1] + terms[2] + terms[3] + terms[4]

    least_time = jnp.where(is_inside, total(top, bottom), jnp.inf)
    for edge_top, edge_bottom in edges:
        edge_total = total(edge_top, edge_bottom)
        is_less = edge_total < least_time
        top = jnp.where(is_less, edge_top, top)
        bottom = jnp.where(is_less, edge_bottom, bottom)
        least_time = jnp.where(is_less, edge_total, least_time)
    on_top = jnp.round(top * drivers).astype(jnp.int32) + NEARBY[:, 0]
    on_bottom = jnp.round(bottom * drivers).astype(jnp.int32) + NEARBY[:, 1]
    is_possible = (on_top >= 0) & (on_bottom >= 0) & (on_top + on_bottom <= drivers)
    share = 1 / drivers
    totals = jnp.where(is_possible, total(on_top * share, on_bottom * share), jnp.inf)
    choice = jnp.argmax(totals <= (1 + ROUNDING) * totals.min())  # the first one
    return Flows(on_top[choice], on_bottom[choice], drivers - on_top[choice] - on_bottom[choice])
