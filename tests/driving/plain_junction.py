"""Traffic at a junction once more, car by car in plain Python at float64.

It follows the docstrings of ``junction.py``.

A junction is a module (:mod:`plain_intersection`, :mod:`plain_roundabout`) with

* ``LINE``: m along every route, the line;
* ``out(route)``: m along the route, the beginning of the last arm;
* ``bend(route)``: m/s, speed in its narrowest bend;
* ``pose(route, s)``: x, y and heading;
* ``distance_to(route, s, other, other_s)``: distance to the other car along the own route, -1 if it
  is not on it;
* ``waits(route, other, committed)``: whether drivers yield to a car that is ``committed`` or not;
* ``ZONES``: where bodies touch. A test of its own compares them with bodies that touch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from plain_traffic import corners, overlap


def body(place: tuple[float, float, float], wider: float = 0.0) -> np.ndarray:
    """Return the corners of a car, ``(1, 4, 2)``."""
    return corners(np.array([[*place, 5 + 2 * wider, 2 + 2 * wider]]))


def ego_overlaps(junction: Any, route: Any, s: Any, present: Any, wider: float = 0.0) -> bool:
    """Say whether a body overlaps the ego's, which is ``wider`` on all sides by so many m."""
    ego = junction.pose(route[0], s[0])
    for i in range(1, len(s)):
        if present[i]:
            place = junction.pose(route[i], s[i])
            is_close = math.hypot(place[0] - ego[0], place[1] - ego[1]) < 8
            if is_close and overlap(body(ego, wider), body(place)):
                return True
    return False


def look(junction: Any, route: Any, s: Any, v: Any, present: Any) -> list[tuple[int, float, bool]]:
    """Return each car's leader (-1 for none), the way to it, and whether to stop at the line."""
    vehicles = []
    committed = [v[i] ** 2 / 8 > junction.LINE - 2.5 - s[i] for i in range(len(s))]
    for i in range(len(s)):
        leader, gap, stop = -1, math.inf, False
        for j in range(len(s)):
            if i == j or not present[j] or not present[i]:
                continue
            distance = junction.distance_to(route[i], s[i], route[j], s[j])
            if 0 < distance < gap:
                leader, gap = j, distance
            begin, end, its_begin, its_end = junction.ZONES[route[i], route[j]]
            if (
                math.isfinite(begin)
                and not committed[i]
                and junction.waits(route[i], route[j], committed[j])
            ):
                window = [(z - s[i]) / max(v[i], 5.0) for z in (begin - 2.5, end + 2.5)]
                its = (
                    (its_begin - 2.5 - s[j]) / max(v[j], 5.0),
                    (its_end + 2.5 - s[j]) / max(v[j], 1.0),
                )
                stop |= its[1] > 0 and its[0] < window[1] + 1.5 and its[1] + 1.5 > window[0]
        vehicles.append((leader, gap, bool(stop)))
    return vehicles


def drive_second(
    junction: Any, route: Any, s: Any, v: Any, present: Any, driver: Any, level: int
) -> tuple[list[float], list[float], bool]:
    """Return places and speeds a second later, and whether the ego's body overlapped another one.

    Bodies are tested after each sub-step.
    """
    s, v, touched = list(s), list(v), False
    for k in range(15):
        if k in (0, 8):
            vehicles = look(junction, route, s, v, present)
            offset = [
                distance + s[i] - s[leader] for i, (leader, distance, _) in enumerate(vehicles)
            ]
        then = []
        for i in range(len(s)):
            bend = (
                junction.bend(route[i])
                if junction.LINE - 12 < s[i] < junction.out(route[i])
                else 100.0
            )
            if i == 0:
                pull = min(max((min(4.5 * level, bend) - v[0]) / 0.6, -6.0), 3.0)
            else:
                v0, T, s0, a, b = (float(value[i]) for value in driver)
                ratio = 0.0
                leader, _, stop = vehicles[i]
                obstacles = [(s[leader] + offset[i] - s[i] - 5, v[leader])] if leader >= 0 else []
                for gap, speed in obstacles + [(junction.LINE - 2.5 - s[i], 0.0)] * stop:
                    desired_gap = s0 + max(
                        0.0, v[i] * T + v[i] * (v[i] - speed) / (2 * math.sqrt(a * b))
                    )
                    ratio = max(ratio, desired_gap / max(gap, 0.1))
                pull = max(a * (1 - (v[i] / min(v0, bend)) ** 4 - ratio**2), -9.0)
            duration = min(1 / 15, v[i] / -pull) if pull < 0 else 1 / 15
            then.append(
                (s[i] + v[i] * duration + pull * duration**2 / 2, max(v[i] + pull / 15, 0.0))
            )
        s, v = [place for place, _ in then], [speed for _, speed in then]
        touched |= ego_overlaps(junction, route, s, present)
    return s, v, touched
