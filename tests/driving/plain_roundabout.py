"""The roundabout in plain Python, for :mod:`plain_junction`, from the docstring of the task."""

from __future__ import annotations

import math

from rlbench_suite.envs.driving.tasks.roundabout import Roundabout

ZONES = Roundabout.layout.zones
LINE = 60.0  # m along every route
LINE_DISTANCE = 31.0  # m from the centre
NODE_ANGLE = math.radians(24)


def lane(route: int) -> tuple[float, float, float]:
    """Return the radii on the ring and of the bends, and how far the lane is from its axis."""
    source, turn = divmod(route, 3)
    radius = 24.0 if turn == 0 or source == 4 else 20.0
    # The bend touches a line 2 m beside the axis, and the ring 24 degrees from it.
    return (
        radius,
        (radius * math.sin(NODE_ANGLE) - 2) / (1 - math.sin(NODE_ANGLE)),
        6.0 if source == 4 else 2.0,
    )


def bend_begin(route: int, beside: float) -> float:
    """Return the distance from the centre at which a bend begins."""
    radius, r, _ = lane(route)
    return math.sqrt((radius + r) ** 2 - (beside + r) ** 2)


def node(route: int) -> float:
    _, r, beside = lane(route)
    return math.atan2(beside + r, bend_begin(route, beside))


def piece_ends(route: int) -> tuple[float, float, float, float]:
    """Return the ways along the route to the ends of its four pieces.

    The pieces are the straight, the bend, the ring, and the bend out of it.
    """
    radius, r, beside = lane(route)
    straight = LINE + LINE_DISTANCE - bend_begin(route, beside)
    entry = straight + r * (math.pi / 2 - node(route))
    leave = entry + radius * (math.pi / 2 * (route % 3 + 1) - NODE_ANGLE - node(route))
    return straight, entry, leave, leave + r * (math.pi / 2 - NODE_ANGLE)


def out(route: int) -> float:
    outer = 0  # its bends are wider, so that they end farther from the centre
    return piece_ends(route)[3] + bend_begin(outer, 2.0) - bend_begin(route, 2.0)


def bend(route: int) -> float:
    return math.sqrt(0.5 * 9.81 * lane(route)[1])


def pose_on_bend(route: int, beside: float, d: float) -> tuple[float, float, float]:
    """Return place and heading on the way into the ring from the south.

    The place is ``d`` m behind the beginning of the bend.
    """
    r, y = lane(route)[1], -bend_begin(route, beside)
    if d < 0:
        return beside, y + d, math.pi / 2
    return beside + r - r * math.cos(d / r), y + r * math.sin(d / r), math.pi / 2 - d / r


def pose(route: int, s: float) -> tuple[float, float, float]:
    """Return place and heading, computed by the circles' centres."""
    radius, _, beside = lane(route)
    straight, entry, leave, end = piece_ends(route)
    arm, turn = min(route // 3, 3), route % 3
    if s < entry:
        x, y, heading = pose_on_bend(route, beside, s - straight)
    elif s < leave:
        angle = node(route) - math.pi / 2 + (s - entry) / radius
        x, y, heading = radius * math.cos(angle), radius * math.sin(angle), angle + math.pi / 2
    else:  # the way out is the mirror image of the way in
        x, y, heading = pose_on_bend(route, 2.0, end - s)
        x, heading, arm = -x, -heading, arm + turn + 1
    for _ in range(arm):
        x, y = -y, x
    return x, y, heading + arm * math.pi / 2


def distance_to(route: int, s: float, other_route: int, other_s: float) -> float:
    source, turn = divmod(route, 3)
    its_source, its_turn = divmod(other_route, 3)
    if route == other_route or (source == its_source and other_s < LINE + 8):
        return other_s - s
    if lane(route)[0] == lane(other_route)[0]:
        radius = lane(route)[0]
        (_, entry, leave, _), (_, its_entry, its_leave, _) = (
            piece_ends(route),
            piece_ends(other_route),
        )
        for laps in (-1, 0, 1):
            angle = (
                math.pi / 2 * (min(its_source, 3) - min(source, 3))
                + node(other_route)
                - node(route)
            )
            place = entry + radius * (angle + 2 * math.pi * laps) + other_s - its_entry
            if entry - 5 <= place < leave + 8 and its_entry - 5 <= other_s < its_leave + 8:
                return place - s
    if (min(source, 3) + turn) % 4 == (min(its_source, 3) + its_turn) % 4 and other_s >= out(
        other_route
    ) - 15:
        return other_s - out(other_route) + out(route) - s
    return -1.0


def waits(route: int, other_route: int, committed: bool) -> bool:
    """Say whether the other car drives past the arm by which one enters."""
    return 1 <= (min(route // 3, 3) - min(other_route // 3, 3)) % 4 <= other_route % 3
