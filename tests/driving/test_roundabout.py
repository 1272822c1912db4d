"""The roundabout: whole seconds against plain Python, geometry, zones and rewards."""

from __future__ import annotations

import json
import math
import sys
from itertools import product
from pathlib import Path

import junction_checks
import numpy as np
import plain_roundabout
import pytest
from junction_checks import Record
from plain_junction import body, overlap
from plain_roundabout import LINE, ZONES, distance_to, pose, waits

from rlbench_suite.core.registry import card
from rlbench_suite.envs.driving.roads import routes
from rlbench_suite.envs.driving.tasks.crossing_task import Demand
from rlbench_suite.envs.driving.tasks.roundabout import Roundabout

pytestmark = pytest.mark.of_variants
LAYOUT = Roundabout.layout
USED = [
    3 * source + turn
    for source, arm in enumerate(Roundabout.demand)
    for turn in range(3)
    if arm.turns[turn]
]
"""Routes on which cars drive."""


class Busy(Roundabout):
    """A roundabout with many cars on all arms, so that many yield."""

    demand = tuple(
        Demand(0.4, arm.turns, cars=4, platoons=arm.platoons) for arm in Roundabout.demand
    )


TASK = Busy(card("Roundabout-v0"), difficulty=10.0, dtype="float64")


@pytest.fixture(scope="module")
def hostile_record() -> Record:
    """Play episodes under random actions."""
    return junction_checks.play(TASK, episodes=24, steps=26, shares=(0.2, 0.3, 0.5))


def test_every_second_is_that_of_a_plain_simulation(hostile_record: Record) -> None:
    """Compare places and speeds to a nanometre; an overlap of bodies is a crash."""
    junction_checks.check_seconds(plain_roundabout, hostile_record)


def test_a_near_miss_is_a_collision_to_come_at_constant_speeds(hostile_record: Record) -> None:
    """Find the overlaps within 1.5 s of bodies that keep their speeds, and no others."""
    junction_checks.check_near_misses(plain_roundabout, hostile_record)


def test_other_cars_never_touch_and_come_and_go_at_the_ends_of_the_road(
    hostile_record: Record,
) -> None:
    """Cars of the west come while the light is green.

    Each car that goes has left the roundabout by 30 m.
    """
    junction_checks.check_others(plain_roundabout, hostile_record, platoons=(3, 4))


def test_only_arrival_pays(hostile_record: Record) -> None:
    """It pays less for each second; whoever crashes or waits earns nothing."""
    junction_checks.check_rewards(TASK, hostile_record, plain_roundabout.out(1) + 25)


def test_routes_are_arcs_that_join_the_lanes() -> None:
    """Routes go around the circles' centres without a kink.

    Radii are 20 and 24 m, and nodes lie at 24 degrees, as in highway-env.
    """
    for route in range(15):
        s = np.arange(0, LAYOUT.out[route] + 30, 1.7)
        ours = routes.points(LAYOUT.route(route), s)
        plain = np.array([pose(route, float(distance)) for distance in s])
        np.testing.assert_allclose(ours[:, :2], plain[:, :2], rtol=0, atol=1e-9)
        np.testing.assert_allclose(np.cos(ours[:, 2] - plain[:, 2]), 1, rtol=0, atol=1e-12)
        assert np.hypot(*np.diff(ours[:, :2], axis=0).T).max() < 1.7 + 1e-9
        assert plain_roundabout.out(route) == pytest.approx(LAYOUT.out[route], abs=1e-9)
        assert plain_roundabout.bend(route) == pytest.approx(LAYOUT.fastest[route])
    for route, other_route in product(range(15), range(15)):
        assert LAYOUT.yields_to[route, other_route] == waits(route, other_route, False)
    assert not LAYOUT.looks_for.any()


def test_bodies_touch_only_where_one_yields_or_follows() -> None:
    """Move rectangles along two routes, and look where they touch.

    They touch only where both are in their zones, or one knows the other in its lane.
    """
    zones = follows = 0
    for route, other_route in product(USED, USED):
        if route == other_route:
            continue
        distances = np.arange(LINE - 5, LAYOUT.out[route] + 10, 1.5)
        other_distances = np.arange(LINE - 5, LAYOUT.out[other_route] + 10, 1.5)
        places, other_places = (
            [pose(r, float(s)) for s in line]
            for r, line in ((route, distances), (other_route, other_distances))
        )
        dx, dy = (np.array(places)[:, None, k] - np.array(other_places)[:, k] for k in (0, 1))
        is_close = np.hypot(dx, dy) < math.hypot(5, 2)
        for i, j in np.argwhere(is_close):
            if not overlap(body(places[i]), body(other_places[j])):
                continue
            s, its_s = float(distances[i]), float(other_distances[j])
            ahead = (
                distance_to(route, s, other_route, its_s),
                distance_to(other_route, its_s, route, s),
            )
            begin, end, its_begin, its_end = ZONES[route, other_route]
            back = ZONES[other_route, route]
            inside = begin - 2.5 <= s <= end + 2.5 and its_begin - 2.5 <= its_s <= its_end + 2.5
            inside |= (
                back[0] - 2.5 <= its_s <= back[1] + 2.5 and back[2] - 2.5 <= s <= back[3] + 2.5
            )
            zones += inside
            follows += not inside
            assert inside or ahead != (-1, -1)
    assert zones > 100
    assert follows > 100


def test_who_drives_blindly_scores_less_than_three_tenths_of_the_reference() -> None:
    """Read the measured scores: the reference arrives and keeps the cost's limit.

    Blind players do not.
    """
    folder = Path(str(sys.modules[Roundabout.__module__].__file__)).parent
    scores = json.loads((folder / "reference_scores.json").read_text())
    limit = card("Roundabout-v0").constraint.limit
    for line in scores["rlsuite/Roundabout-v0"].values():
        assert (
            max(line[name]["mean"] for name in ("noop", "random")) < 0.3 * line["reference"]["mean"]
        )
        assert line["reference"]["success"] >= 0.95
        assert line["reference"]["cost"] < limit < line["noop"]["cost"]
