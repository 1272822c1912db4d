"""Compare roads, drivers and cars with highway-env itself.

Lanes are compared point by point, drivers and cars by their equations.

Places of highway-env have x to the east and y to the south, ours y to the north.
"""

from __future__ import annotations

import inspect
import math
from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.core.registry import card
from rlbench_suite.envs.driving.roads import routes
from rlbench_suite.envs.driving.roads.routes import Route
from rlbench_suite.envs.driving.tasks import crossing_task, roundabout
from rlbench_suite.envs.driving.tasks.intersection import TURNS, Intersection
from rlbench_suite.envs.driving.tasks.roundabout import Roundabout
from rlbench_suite.envs.driving.tasks.u_turn import UTurn
from rlbench_suite.envs.driving.traffic import bent_road, car_following, traffic
from rlbench_suite.envs.driving.traffic.car_following import Driver
from rlbench_suite.numerics.process import precision

pytest.importorskip("highway_env", reason="needs highway-env; see .ci/run")
from highway_env.envs.intersection_env import IntersectionEnv
from highway_env.envs.roundabout_env import RoundaboutEnv
from highway_env.envs.u_turn_env import UTurnEnv
from highway_env.road.lane import AbstractLane
from highway_env.vehicle.behavior import IDMVehicle

TOLERANCE = 1e-9


def network(env_class: Any) -> Any:
    """Return the lanes of an environment, without its vehicles."""
    env = env_class()
    env._make_road()
    return env.road.network


def points(lane: AbstractLane) -> tuple[np.ndarray, np.ndarray]:
    """Return ways along a lane, and x, y and heading there, in our axes."""
    distances = np.linspace(0, lane.length, 20)
    there = np.array(
        [[*lane.position(distance, 0), lane.heading_at(distance)] for distance in distances]
    )
    return distances, there * [1, -1, -1]


def assert_same(ours: np.ndarray, peer_points: np.ndarray) -> None:
    np.testing.assert_allclose(ours[:, :2], peer_points[:, :2], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(
        np.exp(1j * ours[:, 2]), np.exp(1j * peer_points[:, 2]), rtol=0, atol=TOLERANCE
    )


# -- intersection-v0 -------------------------------------------------------------------------------


@pytest.mark.parametrize(("arm", "turn"), list(product(range(4), range(TURNS))))
def test_lanes_of_the_intersection(arm: int, turn: int) -> None:
    """The way in, the bend or straight, and the way out: places, headings, lengths and widths."""
    net, layout, route = network(IntersectionEnv), Intersection.layout, TURNS * arm + turn
    corner = -arm % 4  # theirs are south, west, north, east
    exit_ = (corner + (-1, 2, 1)[turn]) % 4
    nodes = f"o{corner}", f"ir{corner}", f"il{exit_}", f"o{exit_}"
    begin = 0.0
    for k in range(3):
        lane = net.get_lane((nodes[k], nodes[k + 1], 0))
        distances, peer_points = points(lane)
        assert_same(routes.points(layout.route(route), begin + distances), peer_points)
        assert lane.width_at(0) == 4
        begin += lane.length
        if k < 2:
            assert begin == pytest.approx((layout.line, layout.out)[k][route], abs=TOLERANCE)


def test_priorities_of_the_intersection() -> None:
    """Compare who yields: cars on lanes of lower priority."""
    net = network(IntersectionEnv)
    priority = np.empty(4 * TURNS)
    for arm, turn in product(range(4), range(TURNS)):
        corner = -arm % 4
        priority[TURNS * arm + turn] = net.get_lane(
            (f"ir{corner}", f"il{(corner + (-1, 2, 1)[turn]) % 4}", 0)
        ).priority
    np.testing.assert_array_equal(Intersection.layout.yields_to, priority > priority[:, None])


def test_speeds_and_arrival_of_the_intersection() -> None:
    config = IntersectionEnv.default_config()
    assert tuple(config["action"]["target_speeds"]) == crossing_task.LEVELS
    assert (
        inspect.signature(IntersectionEnv.has_arrived).parameters["exit_distance"].default
        == crossing_task.ARRIVAL_DISTANCE
    )


# -- roundabout-v0 ---------------------------------------------------------------------------------

NODES = "se", "ex", "ee", "nx", "ne", "wx", "we", "sx"
"""Around the ring: entries and exits of the arms."""
ONE_LANE = range(4 * TURNS)
"""Routes of arms with one lane, as all of theirs have; the second lane of the west is ours alone.
"""


@pytest.mark.parametrize("route", ONE_LANE)
def test_ring_of_the_roundabout(route: int) -> None:
    """The way around is their lane of the same radius, from node to node."""
    net, layout = network(RoundaboutEnv), Roundabout.layout
    arm, turn = divmod(route, TURNS)
    _, _, begin, end, _ = layout.pieces.start[route]
    outer = int(turn == 0)
    for k in range(2 * arm, 2 * arm + 2 * turn + 1):
        lane = net.get_lane((NODES[k % 8], NODES[(k + 1) % 8], outer))
        distances, peer_points = points(lane)
        assert lane.radius == roundabout.RADII[outer] == 1 / layout.pieces.curvature[route, 2]
        assert_same(routes.points(layout.route(route), begin + distances), peer_points)
        assert lane.width_at(0) == 4
        begin += lane.length
    assert begin == pytest.approx(end, abs=TOLERANCE)


@pytest.mark.parametrize("route", ONE_LANE)
def test_arms_of_the_roundabout(route: int) -> None:
    """The straight ways in and out lie on their lanes, in the same direction."""
    net, layout = network(RoundaboutEnv), Roundabout.layout
    arm, turn = divmod(route, TURNS)
    way_in, way_out = "senw"[arm], "senw"[(arm + turn + 1) % 4]
    begin, bend = layout.pieces.start[route, [0, 1]]
    out = layout.out[route]
    for lane, ways in (
        (net.get_lane((f"{way_in}er", f"{way_in}es", 0)), np.linspace(begin, bend, 20)),
        (net.get_lane((f"{way_out}xs", f"{way_out}xr", 0)), np.linspace(out, out + 25, 20)),
    ):
        for x, y, heading in routes.points(layout.route(route), ways):
            assert lane.local_coordinates(np.array([x, -y]))[1] == pytest.approx(0, abs=TOLERANCE)
            assert math.cos(heading + lane.heading_at(0)) == pytest.approx(1, abs=TOLERANCE)


def test_named_differences_of_the_roundabout() -> None:
    """Their arms are longer and end 5.6 m before the ring, and their speeds need 1.3 g there."""
    net = network(RoundaboutEnv)
    access, ring = net.get_lane(("ses", "se", 0)), net.get_lane(("se", "ex", 1))
    gap = math.dist(access.position(access.length, 0), ring.position(0, 0))
    assert round(gap, 1) == 5.6
    fastest = max(RoundaboutEnv.default_config()["action"]["target_speeds"])
    assert round(fastest**2 / net.get_lane(("se", "ex", 0)).radius / 9.81, 1) == 1.3
    assert abs(net.get_lane(("ser", "ses", 0)).start[1]) == 170
    assert (Roundabout.layout.fastest < 9).all()


# -- u-turn-v0 -------------------------------------------------------------------------------------


@pytest.mark.parametrize("lane", [0, 1])
def test_lanes_of_the_u_turn(lane: int) -> None:
    """Compare the way from 128 m before a bend to 128 m behind it.

    The ring has straights of 256 m.
    """
    net = network(UTurnEnv)
    ring = 4 * 128 + 2 * bent_road.BEND_LENGTH
    with precision(card("UTurn-v0").build(dtype="float64")):
        route = Route(*(np.asarray(value) for value in bent_road.centre_line(jnp.float64(ring))))
    begin, d = 0.0, 2 - 4.0 * lane
    shift = np.array([0, -net.get_lane(("b", "c", 0)).center[1], 0])
    for nodes, radius in (
        (("a", "b"), math.inf),
        (("b", "c"), bent_road.RADII[lane]),
        (("c", "d"), math.inf),
    ):
        peer_lane = net.get_lane((*nodes, lane))
        distances, peer_points = points(peer_lane)
        assert getattr(peer_lane, "radius", math.inf) == radius
        # They are told along each lane, ours along the line between both.
        along = begin + distances * (1 if math.isinf(radius) else bent_road.RADIUS / radius)
        assert_same(routes.points(route, along, d) + shift, peer_points)
        assert peer_lane.width_at(0) == traffic.LANE_WIDTH
        begin = along[-1]
    assert begin == pytest.approx(256 + bent_road.BEND_LENGTH, abs=TOLERANCE)


def test_named_differences_of_the_u_turn() -> None:
    """Their speeds need 2.9 g in the bend.

    Ours is their lowest target speed, and the bend's length is theirs.
    """
    net, config = network(UTurnEnv), UTurnEnv.default_config()
    inner = net.get_lane(("b", "c", 0)).radius
    speeds = config["action"]["target_speeds"]
    assert round(max(speeds) ** 2 / inner / 9.81, 1) == 2.9
    assert min(speeds) == bent_road.BEND_SPEED
    assert max(speeds) == UTurn.fastest


# -- drivers ---------------------------------------------------------------------------------------


def test_drivers_follow_by_the_same_equation() -> None:
    """Free acceleration and desired gap are equal.

    Their gap is from centre to centre, and may become negative.
    """
    env = RoundaboutEnv()
    env._make_road()
    lane = env.road.network.get_lane(("ser", "ses", 0))
    limits = IDMVehicle.COMFORT_ACC_MAX, -IDMVehicle.COMFORT_ACC_MIN
    driver = Driver(15.0, IDMVehicle.TIME_WANTED, IDMVehicle.DISTANCE_WANTED, *limits)
    negative = 0
    with precision(card("Roundabout-v0").build(dtype="float64")):
        for speed, leader_speed in np.random.default_rng(0).uniform(0, 40, (200, 2)):
            cars = [
                IDMVehicle(env.road, lane.position(x, 0), lane.heading, v)
                for x, v in ((0, speed), (40, leader_speed))
            ]
            cars[0].target_speed, cars[0].DELTA = driver.desired_speed, 4.0
            free = car_following.acceleration_at_ratio(driver, speed, 0.0)
            assert cars[0].acceleration(cars[0]) == pytest.approx(float(free), abs=TOLERANCE)
            peer_gap = cars[0].desired_gap(*cars)
            ours = float(car_following.desired_gap(driver, speed, leader_speed))
            assert max(peer_gap, driver.jam_gap) == pytest.approx(ours, abs=TOLERANCE)
            negative += peer_gap < 0
    assert negative > 0
