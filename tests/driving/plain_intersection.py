"""The intersection in plain Python, for :mod:`plain_junction`, from the docstring of the task."""

from __future__ import annotations

import math

from rlbench_suite.envs.driving.tasks.intersection import Intersection

ZONES = Intersection.layout.zones
LINE = 100.0  # m along every route
# m inside the junction, and m of the bend's radius, of each turn.
INSIDE = 9 * math.pi / 2, 22.0, 13 * math.pi / 2
RADIUS = 9.0, math.inf, 13.0
PRIORITY = [1, 1, 0, 3, 3, 2, 1, 1, 0, 3, 3, 2]


def out(route: int) -> float:
    return LINE + INSIDE[route % 3]


def pose(route: int, s: float) -> tuple[float, float, float]:
    """Return place and heading, computed by the circle's centre.

    The arms are the southern one turned by 90 degrees each.
    """
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


def bend(route: int) -> float:
    return min(math.sqrt(0.5 * 9.81 * RADIUS[route % 3]), 100.0)


def distance_to(route: int, s: float, other_route: int, other_s: float) -> float:
    arm, turn = divmod(route, 3)
    its_arm, its_turn = divmod(other_route, 3)
    if route == other_route or (arm == its_arm and other_s < LINE + 8):
        return other_s - s
    if (arm + turn) % 4 == (its_arm + its_turn) % 4 and other_s >= out(other_route):
        return other_s - out(other_route) + out(route) - s
    return -1.0


def waits(route: int, other_route: int, committed: bool) -> bool:
    return PRIORITY[other_route] > PRIORITY[route] or (PRIORITY[route] <= 1 and committed)
