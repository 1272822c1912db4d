"""Players of vehicle routing: local search over orders of customers, and the nearest customer.

The search is of the kind route first, cluster second (Beasley 1983,
doi:10.1016/0305-0483(83)90033-6): an order of all customers is split into the best feasible routes
by a shortest path (Prins 2004, doi:10.1016/S0305-0548(03)00158-8). It starts with the order in
which the rule of the nearest customer visits them. Then it takes the best change as long as one
helps: turn a section round (2-opt, Croes 1958), move one or two customers in a row (Or 1976), or
exchange two customers.
"""

from __future__ import annotations

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Flag, Float, FloatArray, IntArray
from rlbench_suite.core.policy import View, no_memory, privileged_player

from .vehicle_routing import (
    NEVER,
    STEPS,
    Params,
    VehicleRouting,
    drive,
    nearest_place,
    start_of_routes,
)

MAX_STOPS = 10
"""Largest number of customers on a route with limits."""
MAX_SECTION = 2
"""Largest number of customers in a row that are moved."""
MAX_CHANGES = 100
"""Largest number of changes of an order."""
LEAST_SAVING = 1e-4
"""Saving below which a change does not help: several roundings."""


@privileged_player
class LocalSearch(eqx.Module):
    """The player of this file's docstring. It reads from the params only what is observed."""

    has_limits: bool = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: VehicleRouting) -> LocalSearch:
        """Return the player of a task."""
        return cls(task.problem != "tsp")

    def initial(self, params: Params) -> IntArray:
        """Return the places to drive to, ``(40,)``."""
        order = improved_order(nearest_order(params), params, self.has_limits)
        return stops_of(order, params, self.has_limits)

    def act(self, memory: IntArray, view: View, key: jax.Array) -> tuple[jax.Array, IntArray]:
        """Return the next place, and all of them."""
        return memory[jnp.minimum(view.state.steps, STEPS - 1)], memory


@privileged_player
class NearestCustomer(eqx.Module):
    """Drives to the nearest legal customer. It reads from the params only what is observed."""

    @classmethod
    def for_task(cls, task: VehicleRouting) -> NearestCustomer:
        """Return the player."""
        return cls()

    initial = no_memory

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the next place."""
        return nearest_place(view.state.truck, view.params), memory


def nearest_order(params: Params) -> IntArray:
    """Return the customers in the order of the rule of the nearest customer, ``(n,)``."""
    customers = len(params.x) - 1
    truck = start_of_routes(customers, params.distance.dtype).truck

    def step(carry: Any, _: None) -> tuple[Any, None]:
        truck, order, count = carry
        place = nearest_place(truck, params)
        is_next = (jnp.arange(customers) == count) & (place > 0)
        order = jnp.where(is_next, place, order)
        return (drive(truck, place, params), order, count + (place > 0)), None

    start = truck, jnp.zeros(customers, jnp.int32), jnp.int32(0)
    (_, order, _), _ = jax.lax.scan(step, start, None, 2 * customers)
    return order


def changed_orders(customers: int) -> np.ndarray:
    """Return all changes of an order as places to read from, int32 ``(changes, n)``."""
    numbers = list(range(customers))
    orders = {tuple(numbers)}
    for first, last in itertools.combinations(range(customers + 1), 2):
        section = numbers[first:last]
        remaining = numbers[:first] + numbers[last:]
        orders.add(tuple(numbers[:first] + section[::-1] + numbers[last:]))
        if len(section) <= MAX_SECTION:
            for place in range(len(remaining) + 1):
                orders.add(tuple(remaining[:place] + section + remaining[place:]))
    for first, second in itertools.combinations(numbers, 2):
        exchanged = list(numbers)
        exchanged[first], exchanged[second] = second, first
        orders.add(tuple(exchanged))
    return np.array(sorted(orders), np.int32)


def improved_order(order: IntArray, params: Params, has_limits: bool) -> IntArray:
    """Return the order after all changes that help."""
    changes = changed_orders(len(params.x) - 1)
    length_of = jax.vmap(lambda order: shortest_length(order, params, has_limits))

    def helps(carry: tuple[IntArray, Float, Flag, Any]) -> Flag:
        return carry[2] & (carry[3] < MAX_CHANGES)

    def step(carry: tuple[IntArray, Float, Flag, Any]) -> tuple[IntArray, Float, Flag, Any]:
        order, length, _, count = carry
        orders = order[changes]
        lengths = length_of(orders)
        best = jnp.argmin(lengths)
        is_better = lengths[best] < length - LEAST_SAVING
        order = jnp.where(is_better, orders[best], order)
        return order, jnp.where(is_better, lengths[best], length), is_better, count + 1

    start = order, jnp.asarray(NEVER, params.distance.dtype), jnp.bool_(True), jnp.int32(0)
    return jax.lax.while_loop(helps, step, start)[0]


def shortest_length(order: IntArray, params: Params, has_limits: bool) -> Float:
    """Return the length of the best routes that visit customers in an order."""
    if not has_limits:
        tour = jnp.concatenate([jnp.zeros(1, jnp.int32), order])
        legs = params.distance[tour, jnp.concatenate([order, jnp.zeros(1, jnp.int32)])]
        total = legs[0]
        for i in range(1, len(params.x)):
            total = total + legs[i]
        return total
    return best_split(route_lengths(order, params))[0][-1]


def route_lengths(order: IntArray, params: Params) -> FloatArray:
    """Return the length of the route of each section of an order, by first customer and size.

    It is ``NEVER`` for a section that is no feasible route, ``(n, 10)``.
    """
    customers = len(params.x) - 1
    places = jnp.concatenate([order, jnp.zeros(MAX_STOPS, jnp.int32)])
    # What each place needs is looked up once; then sections are slices.
    to_depot = params.distance[places, 0]
    onward = params.distance[places[:-1], places[1:]]
    opening, closing = params.opening[places], params.closing[places]
    demand = params.demand[places]
    time = jnp.zeros(customers, params.distance.dtype)
    length = time
    load = jnp.zeros(customers, jnp.int32)
    is_feasible = jnp.ones(customers, bool)
    lengths = []
    for stops in range(MAX_STOPS):
        section = slice(stops, stops + customers)
        leg = onward[stops - 1 : stops - 1 + customers] if stops else params.distance[0, order]
        arrival = time + leg
        time = jnp.maximum(arrival, opening[section]) + params.service
        length = length + leg
        load = load + demand[section]
        home = to_depot[section]
        is_feasible = (
            is_feasible
            & (places[section] > 0)
            & (arrival <= closing[section])
            & (time + home <= params.closing[0])
            & (load <= params.capacity)
        )
        lengths.append(jnp.where(is_feasible, length + home, NEVER))
    return jnp.stack(lengths, 1)


def best_split(lengths: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the least length of the first k customers, and the size of the last route there.

    Both are for k = 1, 2, ..., n.
    """
    customers = len(lengths)
    ends = np.arange(1, customers + 1)[:, None]
    sizes = np.arange(1, MAX_STOPS + 1)
    last_routes = jnp.where(
        ends >= sizes, lengths[np.maximum(ends - sizes, 0), sizes - 1], NEVER
    )  # by end and size

    def step(totals: FloatArray, routes: FloatArray) -> tuple[FloatArray, tuple[Float, Any]]:
        """Take totals of the last ten ends, the latest one first."""
        candidates = totals + routes
        size = jnp.argmin(candidates)
        total = candidates[size]
        return jnp.concatenate([total[None], totals[:-1]]), (total, size + 1)

    start = jnp.full(MAX_STOPS, NEVER, lengths.dtype).at[0].set(0)
    return jax.lax.scan(step, start, last_routes)[1]


def stops_of(order: IntArray, params: Params, has_limits: bool) -> IntArray:
    """Return the places to drive to that visit customers in an order, ``(40,)``."""
    customers = len(params.x) - 1
    if not has_limits:
        return jnp.concatenate([order, jnp.zeros(STEPS - customers, jnp.int32)])
    _, sizes = best_split(route_lengths(order, params))
    # From the last customer to the first: does a route end after this one?
    is_end: list[jax.Array] = []
    end = jnp.int32(customers)
    for k in range(customers, 0, -1):
        is_end.insert(0, end == k)
        end = jnp.where(end == k, k - sizes[k - 1], end)
    stops = jnp.zeros(STEPS, jnp.int32)
    position = jnp.int32(0)
    for k in range(customers):
        stops = jnp.where(jnp.arange(STEPS) == position, order[k], stops)
        position = position + 1 + is_end[k]
    return stops.astype(jnp.int32)
