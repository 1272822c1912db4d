"""The traffic of the intersection once more, car by car in plain Python at float64, from the tasks' docstrings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from plain_traffic import corners, overlap

from rlbench_suite.envs.driving.intersection import Intersection

ZONES = Intersection.layout.zones
"""A test of its own compares them with bodies that touch."""
LINE, INSIDE = 100.0, (9 * math.pi / 2, 22.0, 13 * math.pi / 2)
RADIUS = 9.0, math.inf, 13.0
BEND = [min(math.sqrt(0.5 * 9.81 * r), 100.0) for r in RADIUS]
PRIORITY = [1, 1, 0, 3, 3, 2, 1, 1, 0, 3, 3, 2]


def out(route: int) -> float:
    return LINE + INSIDE[route % 3]


def pose(route: int, s: float) -> tuple[float, float, float]:
    """Place and heading, by the circle's centre; arms are the southern one turned by 90 degrees each."""
    arm, turn = divmod(route, 3)
    if s <= LINE or turn == 1:
        x, y, heading = 2.0, s - LINE - 11, math.pi / 2
    else:
        r, side = RADIUS[turn], 1 if turn == 2 else -1
        angle = min((s - LINE) / r, math.pi / 2)
        x, y = 2 - side * r + side * r * math.cos(angle), -11 + r * math.sin(angle)
        heading = math.pi / 2 + side * angle
        x -= side * max(s - out(route), 0.0)
    for _ in range(arm):
        x, y = -y, x
    return x, y, heading + arm * math.pi / 2


def body(place: tuple[float, float, float], wider: float = 0.0) -> np.ndarray:
    """Corners of a car, ``(1, 4, 2)``."""
    return corners(np.array([[*place, 5 + 2 * wider, 2 + 2 * wider]]))


def ego_overlaps(route: Any, s: Any, present: Any, wider: float = 0.0) -> bool:
    """Whether a body overlaps the ego's, which is wider on all sides by so many m."""
    ego = pose(route[0], s[0])
    for i in range(1, len(s)):
        if present[i]:
            place = pose(route[i], s[i])
            near = math.hypot(place[0] - ego[0], place[1] - ego[1]) < 8
            if near and overlap(body(ego, wider), body(place)):
                return True
    return False


def look(route: Any, s: Any, v: Any, present: Any) -> list[tuple[int, float, bool]]:
    """Leader (-1 for none), way to it, and whether to stop at the line, of each car."""
    seen = []
    committed = [v[i] ** 2 / 8 > LINE - 2.5 - s[i] for i in range(len(s))]
    for i in range(len(s)):
        leader, way, stop = -1, math.inf, False
        for j in range(len(s)):
            if i == j or not present[j] or not present[i]:
                continue
            turn, other = route[i] % 3, route[j] % 3
            arm, its_arm = route[i] // 3, route[j] // 3
            if route[i] == route[j] or (arm == its_arm and s[j] < LINE + 8):
                distance = s[j] - s[i]
            elif (arm + turn) % 4 == (its_arm + other) % 4 and s[j] >= out(route[j]):
                distance = s[j] - out(route[j]) + out(route[i]) - s[i]
            else:
                distance = -1.0
            if 0 < distance < way:
                leader, way = j, distance
            (begin, end), (its_begin, its_end) = ZONES[route[i], route[j]], ZONES[route[j], route[i]]
            higher = PRIORITY[route[j]] > PRIORITY[route[i]]
            if math.isfinite(begin) and not committed[i] and (higher or (PRIORITY[route[i]] <= 1 and committed[j])):
                mine = [(z - s[i]) / max(v[i], 5.0) for z in (begin - 2.5, end + 2.5)]
                its = (its_begin - 2.5 - s[j]) / max(v[j], 5.0), (its_end + 2.5 - s[j]) / max(v[j], 1.0)
                stop |= its[1] > 0 and its[0] < mine[1] + 1.5 and its[1] + 1.5 > mine[0]
        seen.append((leader, way, bool(stop)))
    return seen


def second(route: Any, s: Any, v: Any, present: Any, driver: Any, level: int) -> tuple[list[float], list[float], bool]:
    """Places and speeds a second later, and whether the ego's body overlapped another one after any sub-step."""
    s, v, touched = list(s), list(v), False
    for k in range(15):
        if k in (0, 8):
            seen = look(route, s, v, present)
            offset = [way + s[i] - s[leader] for i, (leader, way, _) in enumerate(seen)]
        then = []
        for i in range(len(s)):
            bend = BEND[route[i] % 3] if LINE - 12 < s[i] < out(route[i]) else 100.0
            if i == 0:
                pull = min(max((min(4.5 * level, bend) - v[0]) / 0.6, -6.0), 3.0)
            else:
                v0, T, s0, a, b = (float(value[i]) for value in driver)
                ratio = 0.0
                leader, _, stop = seen[i]
                obstacles = [(s[leader] + offset[i] - s[i] - 5, v[leader])] if leader >= 0 else []
                for gap, speed in obstacles + [(LINE - 2.5 - s[i], 0.0)] * stop:
                    wanted = s0 + max(0.0, v[i] * T + v[i] * (v[i] - speed) / (2 * math.sqrt(a * b)))
                    ratio = max(ratio, wanted / max(gap, 0.1))
                pull = max(a * (1 - (v[i] / min(v0, bend)) ** 4 - ratio**2), -9.0)
            duration = min(1 / 15, v[i] / -pull) if pull < 0 else 1 / 15
            then.append((s[i] + v[i] * duration + pull * duration**2 / 2, max(v[i] + pull / 15, 0.0)))
        s, v = [place for place, _ in then], [speed for _, speed in then]
        touched |= ego_overlaps(route, s, present)
    return s, v, touched
