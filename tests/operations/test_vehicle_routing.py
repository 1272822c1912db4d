"""Check VehicleRouting against known optima, exact programmes and a replica in plain Python."""

from __future__ import annotations

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.operations.route_players import (
    improved_order,
    nearest_order,
    shortest_length,
    stops_of,
)
from rlbench_suite.envs.operations.vehicle_routing import (
    Params,
    distances_of,
    drive,
    legal_places,
    make_params,
    start_of_routes,
)

BURMA14 = (
    (16.47, 96.10), (16.47, 94.44), (20.09, 92.54), (22.39, 93.37), (25.23, 97.24), (22.00, 96.05),
    (20.47, 97.02), (17.20, 96.29), (16.30, 97.38), (14.05, 98.12), (16.53, 97.38), (21.52, 95.59),
    (19.41, 97.13), (20.09, 94.55),
)  # fmt: skip
"""Degrees and minutes of 14 cities (TSPLIB, Reinelt 1991, doi:10.1287/ijoc.3.4.376)."""
BURMA14_OPTIMUM = 3323
P_N16 = (
    (30, 40, 0), (37, 52, 19), (49, 49, 30), (52, 64, 16), (31, 62, 23), (52, 33, 11), (42, 41, 31),
    (52, 41, 15), (57, 58, 28), (62, 42, 8), (42, 57, 8), (27, 68, 7), (43, 67, 14), (58, 48, 6),
    (58, 27, 19), (37, 69, 11),
)  # fmt: skip
"""Coordinates and demands of P-n16-k8 (Augerat 1995, in CVRPLIB)."""
P_N16_CAPACITY, P_N16_OPTIMUM = 35, 450


def build(problem: str) -> Any:
    return card("VehicleRouting-v0").build(difficulty=problem)


def sample(problem: str, customers: int, seeds: int) -> Any:
    """Return small instances: the first customers of those of the task."""
    task = build(problem)
    keys = jax.random.split(jax.random.key(0), seeds)
    full = jax.device_get(jax.jit(jax.vmap(lambda key: task.sample_params(key, 1)))(keys))
    n = customers + 1
    small = full._replace(distance=full.distance[:, :n, :n])
    fields = ("x", "y", "demand", "opening", "closing")
    return small._replace(**{name: getattr(full, name)[:, :n] for name in fields})


# -- exact programmes ------------------------------------------------------------------------------


def tour_lengths(distance: np.ndarray, allowed: np.ndarray | None = None) -> np.ndarray:
    """Return the shortest tour from place 0 through each subset of the others (Held & Karp 1962).

    Bit i of an index stands for place i + 1. The tour of a subset that is not allowed is infinite;
    all subsets of an allowed one must be allowed.
    """
    customers = len(distance) - 1
    paths = np.full((2**customers, customers), np.inf)
    for i in range(customers):
        paths[1 << i, i] = distance[0, i + 1]
    between = distance[1:, 1:]
    subsets = range(2**customers) if allowed is None else np.flatnonzero(allowed).tolist()
    for subset in subsets:
        for i in range(customers):
            remainder = subset ^ (1 << i)
            if subset >> i & 1 and remainder:
                paths[subset, i] = (paths[remainder] + between[:, i]).min()
    lengths = (paths + distance[1:, 0]).min(1)
    lengths[0] = 0
    return lengths


def best_partition(lengths: np.ndarray) -> float:
    """Return the least sum of the lengths of subsets that part all customers."""
    totals = np.full(len(lengths), np.inf)
    totals[0] = 0
    for subset in range(1, len(lengths)):
        lowest = subset & -subset
        remainder = subset ^ lowest
        inside = remainder
        while True:  # all routes that visit the first customer of the subset
            route = inside | lowest
            totals[subset] = min(totals[subset], lengths[route] + totals[subset ^ route])
            if inside == 0:
                break
            inside = (inside - 1) & remainder
    return float(totals[-1])


def route_length(params: Any, route: Any) -> float:
    """Return the length of a route, infinite if it breaks a limit."""
    place, time, load, length = 0, 0.0, 0, 0.0
    for goal in route:
        time += params.distance[place][goal]
        length += params.distance[place][goal]
        load += params.demand[goal]
        if time > params.closing[goal] or load > params.capacity:
            return math.inf
        time = max(time, params.opening[goal]) + params.service
        place = goal
    home = params.distance[place][0]
    return length + home if time + home <= params.closing[0] else math.inf


def searched_length(params: Any, has_limits: bool) -> float:
    """Return the length of the routes that the reference finds."""
    order = improved_order(nearest_order(params), params, has_limits)
    return shortest_length(order, params, has_limits)


# -- known optima ----------------------------------------------------------------------------------


def test_the_reference_finds_the_shortest_tour_of_burma14() -> None:
    degrees = np.trunc(BURMA14)
    latitude, longitude = np.pi * (degrees + 5 * (np.array(BURMA14) - degrees) / 3).T / 180
    q1 = np.cos(longitude[:, None] - longitude)
    q2 = np.cos(latitude[:, None] - latitude)
    q3 = np.cos(latitude[:, None] + latitude)
    angle = np.arccos(np.clip(0.5 * ((1 + q1) * q2 - (1 - q1) * q3), -1, 1))
    distance = np.floor(6378.388 * angle + 1)
    np.fill_diagonal(distance, 0)
    assert tour_lengths(distance)[-1] == BURMA14_OPTIMUM
    coordinates = jnp.array(BURMA14, jnp.float32)
    params = jax.jit(make_params)(*coordinates.T, jnp.array(distance, jnp.float32))
    length = jax.jit(searched_length, static_argnums=1)(params, False)
    assert BURMA14_OPTIMUM <= float(length) <= 1.03 * BURMA14_OPTIMUM
    assert float(length) < float(params.rule_length)


def test_the_reference_comes_near_the_best_routes_of_p_n16_k8() -> None:
    x, y, demand = np.array(P_N16, np.float32).T
    distance = np.rint(np.asarray(distances_of(x, y)))
    params = jax.jit(make_params)(
        x, y, distance.astype(np.float32), demand[1:].astype(np.int32), np.int32(P_N16_CAPACITY)
    )
    loads = ((np.arange(2**15)[:, None] >> np.arange(15)) & 1) @ demand[1:]
    lengths = tour_lengths(distance, loads <= P_N16_CAPACITY)
    totals = np.full(len(lengths), np.inf)
    totals[0] = 0
    routes = np.flatnonzero(np.isfinite(lengths))[1:]
    for subset in range(1, len(lengths)):
        inside = routes[(routes & ~subset == 0) & (routes & (subset & -subset) > 0)]
        totals[subset] = (lengths[inside] + totals[subset ^ inside]).min()
    assert totals[-1] == P_N16_OPTIMUM
    length = float(jax.jit(searched_length, static_argnums=1)(params, True))
    assert P_N16_OPTIMUM <= length <= 1.05 * P_N16_OPTIMUM


def test_the_reference_is_near_held_and_karp() -> None:
    instances = sample("tsp", 9, 40)
    search = jax.jit(jax.vmap(lambda params: searched_length(params, False)))
    found_lengths = np.asarray(search(instances), np.float64)
    optima = np.array([tour_lengths(distance)[-1] for distance in instances.distance])
    gaps = found_lengths / optima - 1
    assert gaps.min() > -1e-5
    assert gaps.mean() < 0.02


@pytest.mark.parametrize("problem", ["cvrp", "time-windows"])
def test_the_reference_is_near_the_best_partition(problem: str) -> None:
    """All routes of seven customers in all orders are tried."""
    instances = sample(problem, 7, 12)
    search = jax.jit(jax.vmap(lambda params: searched_length(params, True)))
    found_lengths = np.asarray(search(instances), np.float64)
    optima = []
    for i in range(12):
        params = jax.tree.map(lambda leaf, i=i: leaf[i].tolist(), instances)
        lengths = np.full(2**7, np.inf)
        lengths[0] = 0
        for size in range(1, 8):
            for route in itertools.permutations(range(1, 8), size):
                subset = sum(1 << (place - 1) for place in route)
                lengths[subset] = min(lengths[subset], route_length(params, route))
        optima.append(best_partition(lengths))
    gaps = found_lengths / np.array(optima) - 1
    assert gaps.min() > -1e-5
    assert gaps.mean() < 0.03


@pytest.mark.parametrize(("problem", "published"), [("tsp", 3.84), ("cvrp", 6.14)])
def test_the_reference_is_near_published_mean_optima(problem: str, published: float) -> None:
    """Kool et al. 2019 list the optima of the same distribution, to two decimals."""
    instances = sample(problem, 20, 100)
    search = jax.jit(jax.vmap(lambda params: searched_length(params, problem != "tsp")))
    lengths = np.asarray(search(instances), np.float64)
    error = 4 * lengths.std() / 100**0.5
    assert published - error < lengths.mean() < 1.06 * published + error


# -- the rules -------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", ["tsp", "cvrp", "time-windows"])
def test_routes_equal_a_replica(problem: str) -> None:
    """A thousand episodes of random legal moves in all: masks, lengths and ends."""
    episodes = 340
    task = build(problem)
    keys = jax.random.split(jax.random.key(2), episodes)
    instances = jax.jit(jax.vmap(lambda key: task.sample_params(key, Split.TEST)))(keys)

    def episode(key: jax.Array, params: Params) -> Any:
        def step(state: Any, number: jax.Array) -> Any:
            mask = task.action_mask(state, params)
            unit = jax.random.uniform(jax.random.fold_in(key, number), (21,))
            place = jnp.argmax(jnp.where(mask, unit, -1)).astype(jnp.int32)
            after = task.transition(state, place, key, params)
            return after, (mask, place, task.reward(state, place, after, key, params))

        return jax.lax.scan(step, task.initial(key, params), jnp.arange(40))[1]

    masks, places, rewards = jax.device_get(jax.jit(jax.vmap(episode))(keys, instances))
    for index in range(episodes):
        params = jax.tree.map(lambda leaf, i=index: leaf[i].tolist(), jax.device_get(instances))
        waiting = set(range(1, 21))
        route: list[int] = []
        for number in range(40):
            legal = {place for place in waiting if route_length(params, [*route, place]) < math.inf}
            if route and problem != "tsp":
                legal.add(0)
            assert set(np.flatnonzero(masks[index, number]).tolist()) == legal
            place = int(places[index, number])
            x, y = params.x, params.y
            last = route[-1] if route else 0
            driven = math.hypot(x[last] - x[place], y[last] - y[place])
            route = [*route, place] if place else []
            waiting.discard(place)
            if not waiting:
                driven += math.hypot(x[place] - x[0], y[place] - y[0])
            assert rewards[index, number] == pytest.approx(-driven, abs=2e-6)
            if not waiting:
                break
        assert not waiting


def test_the_stops_of_the_reference_are_legal_and_as_long_as_it_computes() -> None:
    instances = sample("time-windows", 12, 30)

    def run(params: Params) -> Any:
        order = nearest_order(params)
        stops = stops_of(order, params, True)
        truck = start_of_routes(12, params.distance.dtype).truck

        def step(carry: Any, place: jax.Array) -> Any:
            truck, length = carry
            is_over = truck.waiting == 0
            is_legal = legal_places(truck, params)[place] | is_over
            place = jnp.where(is_over, 0, place)
            length = length + params.distance[truck.place, place]
            return (drive(truck, place, params), length), is_legal

        (truck, length), legal = jax.lax.scan(step, (truck, jnp.float32(0)), stops)
        return truck.waiting, length, legal, shortest_length(order, params, True)

    waiting, length, legal, expected = jax.jit(jax.vmap(run))(instances)
    assert (waiting == 0).all()
    assert legal.all()
    np.testing.assert_allclose(length, expected, rtol=1e-5)


def test_train_and_test_depots_never_overlap() -> None:
    task = build("cvrp")
    keys = jax.random.split(jax.random.key(0), 400)
    draw = jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))
    for split in (0, 1):
        params = jax.device_get(draw(keys, np.int32(split)))
        assert (np.floor(params.x[:, 0] * 20) % 2 == split).all()
        assert np.unique(params.demand[:, 1:]).tolist() == list(range(1, 10))


# -- players ---------------------------------------------------------------------------------------


def test_words_and_picture() -> None:
    task = build("time-windows")
    params = jax.jit(lambda key: task.sample_params(key, 1))(jax.random.key(0))
    state = task.initial(jax.random.key(0), params)
    words = task.describe(state, params)
    assert "The truck is at the depot" in words
    assert words.count("window") == 20
    assert task.draw(state, params).shape == task.picture_shape
    assert task.why_illegal(np.array(0), state, params) == "the truck is at the depot"
    with pytest.raises(ValueError, match="got 3"):
        build(3)
