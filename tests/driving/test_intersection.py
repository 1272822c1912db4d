"""The intersection: whole seconds against plain Python, geometry, traffic lights and rewards in closed form."""

from __future__ import annotations

import json
import math
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.envs.driving import routes
from rlbench_suite.envs.driving.crossing_task import FASTER, SLOWER, Demand
from rlbench_suite.envs.driving.intersection import Intersection
from rlbench_suite.process import precision
from rlbench_suite.registry import card

sys.path.insert(0, str(Path(__file__).parent))
import plain_junction
from plain_junction import body, overlap

pytestmark = pytest.mark.of_variants
LAYOUT = Intersection.layout
EPISODES, STEPS = 64, 12


class Busy(Intersection):
    """An intersection with many cars on all arms, so that many yield."""

    demand = (Demand(0.4, (0.3, 0.4, 0.3), cars=5), Demand(0.4, (0.3, 0.4, 0.3), cars=5, platoons=True)) * 2


@pytest.fixture(scope="module")
def hostile() -> Any:
    """Params, and states before and after steps under random actions, at float64; leaves begin with step, episode."""
    task = Busy(card("Intersection-v0"), difficulty=10.0, dtype="float64")
    with precision(task):
        keys = jax.random.split(jax.random.key(5), EPISODES)
        params = jax.jit(jax.vmap(lambda key: task.sample_params(key, jnp.int32(1))))(keys)
        start = jax.jit(jax.vmap(task.initial))(keys, params)
        actions = np.random.default_rng(0).integers(0, 3, (STEPS, EPISODES), dtype=np.int32)

        def one(state: Any, row: Any) -> Any:
            moved = jax.vmap(lambda key: jax.random.fold_in(key, row[1]))(keys)
            after = jax.vmap(task.transition)(state, row[0], moved, params)
            return after, (state, after)

        scan = jax.jit(lambda start: jax.lax.scan(one, start, (actions, np.arange(STEPS)))[1])
        return jax.tree.map(np.asarray, (params, *scan(start)))


def test_every_second_is_that_of_a_plain_simulation(hostile: Any) -> None:
    """Places and speeds to a nanometre; an overlap of bodies is a crash, and a crash leaves no room for a body."""
    params, before, after = hostile
    compared = crashes = 0
    for t in range(STEPS):
        for e in range(EPISODES):
            old, new = (jax.tree.map(lambda leaf: leaf[t, e], tree) for tree in (before, after))  # noqa: B023
            if old.crashed or old.arrived:
                continue
            cars = old.cars
            driver = [value[e] for value in params.driver]
            state = cars.route.tolist(), cars.s.tolist(), cars.speed.tolist(), cars.present.tolist()
            s, v, touched = plain_junction.second(*state, driver, int(new.level))
            assert new.crashed or not touched
            # The margin of the test for collisions, and the way of two cars in a sub-step, are less than 1.5 m.
            last = new.cars.route.tolist(), new.cars.s.tolist(), cars.present.tolist()
            assert not new.crashed or plain_junction.ego_overlaps(*last, 1.5)
            crashes += int(touched)
            if not (new.crashed or new.arrived):
                there = cars.present & new.cars.present & (new.cars.s > 0)
                np.testing.assert_allclose(new.cars.s[there], np.array(s)[there], rtol=0, atol=1e-9)
                np.testing.assert_allclose(new.cars.speed[there], np.array(v)[there], rtol=0, atol=1e-9)
                compared += 1
    assert compared > 100
    assert crashes > 3


def test_a_near_miss_is_a_collision_to_come_at_constant_speeds(hostile: Any) -> None:
    """Overlaps within 1.5 s, every 0.05 s, are all found; those found come within 1.3 m (turns in 0.25 s)."""
    _, before, after = hostile
    found = 0
    for t in range(STEPS):
        for e in range(EPISODES):
            new = jax.tree.map(lambda leaf: leaf[t, e], after)  # noqa: B023
            if before.crashed[t, e] or before.arrived[t, e] or new.arrived:
                continue
            cars, there = new.cars, (before.cars.present[t, e] & after.cars.present[t, e]).tolist()
            ways = [(cars.s + cars.speed * k * 0.05).tolist() for k in range(31)]
            comes = lambda wider: any(plain_junction.ego_overlaps(cars.route.tolist(), s, there, wider) for s in ways)  # noqa: B023, E731
            assert comes(1.3) if new.near_miss else not comes(0.0)
            found += int(new.near_miss)
    assert found > 20


def test_other_cars_never_touch_and_come_and_go_at_the_ends_of_the_road(hostile: Any) -> None:
    """Cars of the main road come while the light is green; each that goes has left the junction by 30 m."""
    params, before, after = hostile
    came = 0
    for t in range(STEPS):
        for e in range(EPISODES):
            old, new = (jax.tree.map(lambda leaf: leaf[t, e], tree.cars) for tree in (before, after))  # noqa: B023
            fresh = new.present & (~old.present | (new.s < old.s))
            assert (new.s[fresh] == 0).all()
            red = (params.phase[e] + t) % params.cycle[e] > params.cycle[e] - params.gap[e]
            assert not (red and (fresh & (new.route // 3 % 2 == 1)).any())
            gone = old.present & ~new.present
            assert (new.s[gone] > LAYOUT.out[new.route[gone]] + 30).all()
            came += int(fresh.sum())
            there = np.flatnonzero(new.present)[1:].tolist()
            place = {i: plain_junction.pose(int(new.route[i]), float(new.s[i])) for i in there}
            for i, j in combinations(there, 2):
                if math.dist(place[i][:2], place[j][:2]) < 6:
                    assert not overlap(body(place[i]), body(place[j]))
    assert came > 50


def test_routes_are_those_of_highway_env() -> None:
    """Arms of 100 m end 11 m from the centre, bends have radii of 9 and 13 m (highway-env 1.12.1)."""
    for route in range(12):
        for s in (0.0, 50.0, 99.9, 103.0, 112.0, 119.0, 140.0):
            point = routes.points(LAYOUT.route(route), s)[0, :2]
            np.testing.assert_allclose(point, plain_junction.pose(route, s)[:2], atol=1e-9)
    np.testing.assert_array_equal(LAYOUT.priority, plain_junction.PRIORITY)


def test_zones_hold_every_touch_of_two_bodies() -> None:
    """Rectangles of cars on two routes that cross touch only where both are in their zones."""
    ego = Intersection.ego_route
    for other in (4, 5, 7, 10, 11):
        mine, its = LAYOUT.zones[ego, other], LAYOUT.zones[other, ego]
        touched = 0
        for s in np.arange(97, 120, 1.0):
            for way in np.arange(95, LAYOUT.out[other], 2.0):
                one, two = plain_junction.pose(ego, s), plain_junction.pose(other, way)
                if math.dist(one[:2], two[:2]) < 6 and overlap(body(one), body(two)):
                    touched += 1
                    assert mine[0] - 2.5 <= s <= mine[1] + 2.5
                    assert its[0] - 2.5 <= way <= its[1] + 2.5
        assert touched > 3


def test_arrival_pays_and_neither_a_crash_nor_waiting_does() -> None:
    """Arrival after t s pays 100 - t / 4, everything else 0."""
    env = gymnasium.make("rlsuite/Intersection-v0", difficulty="easy").unwrapped
    env.reset(seed=0)
    for _ in range(100):
        assert env.step(SLOWER)[1] == 0
    assert not env.step(SLOWER)[4]["success"]
    ends = set()
    for seed in range(12):
        env.reset(seed=seed)
        reward, terminated, step = 0.0, False, 0
        while not terminated:
            assert reward == 0
            _, reward, terminated, _, info = env.step(FASTER)
            step += 1
        assert info["success"] == (not info["collision"])
        assert reward == (100 - step / 4 if info["success"] else 0)
        ends.add(bool(info["success"]))
    assert ends == {True, False}


def test_who_drives_blindly_scores_less_than_three_tenths_of_the_reference() -> None:
    """The measured scores: the reference arrives and keeps the cost's limit, blind players do not."""
    folder = Path(str(sys.modules[Intersection.__module__].__file__)).parent
    scores = json.loads((folder / "reference_scores.json").read_text())
    limit = card("Intersection-v0").constraint.limit
    for line in scores["rlsuite/Intersection-v0"].values():
        assert max(line[name]["mean"] for name in ("noop", "random")) < 0.3 * line["reference"]["mean"]
        assert line["reference"]["success"] >= 0.95
        assert line["reference"]["cost"] < limit < line["noop"]["cost"]
