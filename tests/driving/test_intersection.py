"""The intersection, with whole seconds against plain Python.

Geometry, traffic lights and rewards are compared with closed forms.
"""

from __future__ import annotations

import json
import math
import sys
from itertools import product
from pathlib import Path

import junction_checks
import numpy as np
import plain_intersection
import pytest
from junction_checks import Record
from plain_junction import body, overlap

from rlbench_suite.core.registry import card
from rlbench_suite.envs.driving.roads import routes
from rlbench_suite.envs.driving.tasks.crossing_task import Demand
from rlbench_suite.envs.driving.tasks.intersection import Intersection

pytestmark = pytest.mark.of_variants
LAYOUT = Intersection.layout


class Busy(Intersection):
    """An intersection with many cars on all arms, so that many yield."""

    demand = (
        Demand(0.4, (0.3, 0.4, 0.3), cars=5),
        Demand(0.4, (0.3, 0.4, 0.3), cars=5, platoons=True),
    ) * 2


TASK = Busy(card("Intersection-v0"), difficulty=10.0, dtype="float64")


@pytest.fixture(scope="module")
def hostile_record() -> Record:
    """Play episodes under random actions."""
    return junction_checks.play(TASK, episodes=40, steps=18, shares=(0.2, 0.3, 0.5))


def test_every_second_is_that_of_a_plain_simulation(hostile_record: Record) -> None:
    """Compare places and speeds to a nanometre; an overlap of bodies is a crash."""
    junction_checks.check_seconds(plain_intersection, hostile_record)


def test_a_near_miss_is_a_collision_to_come_at_constant_speeds(hostile_record: Record) -> None:
    """Find the overlaps within 1.5 s of bodies that keep their speeds, and no others."""
    junction_checks.check_near_misses(plain_intersection, hostile_record)


def test_other_cars_never_touch_and_come_and_go_at_the_ends_of_the_road(
    hostile_record: Record,
) -> None:
    """Cars of the main road come while the light is green.

    Each car that goes has left the junction by 30 m.
    """
    junction_checks.check_others(plain_intersection, hostile_record, platoons=(1, 3))


def test_routes_are_those_of_highway_env() -> None:
    """Arms of 100 m end 11 m from the centre, and bends have radii of 9 and 13 m.

    The numbers are those of highway-env 1.12.1.
    """
    for route in range(12):
        for s in (0.0, 50.0, 99.9, 103.0, 112.0, 119.0, 140.0):
            point = routes.points(LAYOUT.route(route), s)[0, :2]
            np.testing.assert_allclose(point, plain_intersection.pose(route, s)[:2], atol=1e-9)
    for route, other_route in product(range(12), range(12)):
        for committed in (False, True):
            ours = LAYOUT.yields_to[route, other_route] or (
                committed and LAYOUT.looks_for[route, other_route]
            )
            assert ours == plain_intersection.waits(route, other_route, committed)


def test_zones_hold_every_touch_of_two_bodies() -> None:
    """Rectangles of cars on two routes that cross touch only where both are in their zones."""
    ego = Intersection.ego_route
    for other_route in (4, 5, 7, 10, 11):
        zone, other_zone = LAYOUT.zones[ego, other_route].reshape(2, 2)
        touched = 0
        for s in np.arange(97, 120, 1.0):
            for other_s in np.arange(95, LAYOUT.out[other_route], 2.0):
                ego_pose = plain_intersection.pose(ego, s)
                other_pose = plain_intersection.pose(other_route, other_s)
                if math.dist(ego_pose[:2], other_pose[:2]) < 6 and overlap(
                    body(ego_pose), body(other_pose)
                ):
                    touched += 1
                    assert zone[0] - 2.5 <= s <= zone[1] + 2.5
                    assert other_zone[0] - 2.5 <= other_s <= other_zone[1] + 2.5
        assert touched > 3


def test_only_arrival_pays(hostile_record: Record) -> None:
    """It pays less for each second; whoever crashes or waits earns nothing."""
    junction_checks.check_rewards(TASK, hostile_record, plain_intersection.out(2) + 25)


def test_who_drives_blindly_scores_less_than_three_tenths_of_the_reference() -> None:
    """Read the measured scores: the reference arrives and keeps the cost's limit.

    Blind players do not.
    """
    folder = Path(str(sys.modules[Intersection.__module__].__file__)).parent
    scores = json.loads((folder / "reference_scores.json").read_text())
    limit = card("Intersection-v0").constraint.limit
    for line in scores["rlsuite/Intersection-v0"].values():
        assert (
            max(line[name]["mean"] for name in ("noop", "random")) < 0.3 * line["reference"]["mean"]
        )
        assert line["reference"]["success"] >= 0.95
        assert line["reference"]["cost"] < limit < line["noop"]["cost"]
