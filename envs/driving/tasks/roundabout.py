"""Drive through a roundabout of two lanes.

Wait for a gap, enter the inner lane, and leave by the second exit.

Four arms meet at a ring (``junction.py``, 15 Hz), on which cars drive counterclockwise. The ego
comes from the south and leaves to the north. It keeps its line; speed is all it decides. Cars that
enter yield to those on the ring. So must the ego: its line crosses the outer lane, with cars from
the west to the east, and joins the inner one, with cars from the west to the north. They brake for
the ego only once it is in their lane. Later, cars from the east and the north yield to the ego.

Traffic lights up the western arm, which has two lanes, release platoons, about one car in 3 s and
lane for most of a cycle, then none for some seconds. The ego sees cars, not the lights. A driver
who never looks crashes in four of five episodes.

The task is highway-env's roundabout-v0 (Leurent 2018): the radii of the lanes (20 and 24 m), the
places where cars enter and leave the ring (24 degrees beside each arm), the lines of the arms and
the way of the ego are the same. There, the ego may change lanes, has target speeds of 0, 8 and 16
m/s, and four others come once, three of them on the ring, at 16 m/s, which on 20 m would need 1.3
g. No car that enters yields. Each step pays for the target speed, and a crash ends the episode, so
that waiting for 11 s pays best. The lines of the arms end 5.6 m before the ring, and cars steer to
it. Here bends join them, the western arm has a second lane, and only arrival pays.

======================  ============================================================================
action                  once a second, one of SLOWER, IDLE, FASTER. Target speeds are 0, 4.5 and 9
                        m/s, reached with 3 m/s^2 at most, 6 m/s^2 in braking. On the ring it drives
                        at most 7.1 m/s
observation             way of the ego's front to the line before the ring (by 100 m, negative
                        behind it), its speed (by 10 m/s), target speed, time left (by 100 s). Then
                        the ten nearest cars, in the order of their distance: there (0 or 1), x to
                        the east and y to the north of the centre (by 100 m), vx and vy (by 10 m/s),
                        cosine and sine of the direction, turn signal (-1 leaves by the first exit,
                        0 by the second, 1 by the third). Cut off at +-1
reward                  on arrival, 25 m behind the roundabout, 100 less 0.25 for each second; else
                        0, also for a crash
terminated              arrival, or a crash: the ego touches another car
success                 arrival
start                   30 to 40 m before the line, at 9 m/s
cost                    1 for a step that ends in a crash, or in less than 1.5 s to one if all kept
                        their speeds
context                 drivers: desired speed 7.5..8.5 m/s, time gap 0.6..1 s, acceleration
                        1.5..2.5 m/s^2; cycle of the lights 45..55 s, and its phase at the start;
                        and the time without new cars, within 10 % of the difficulty. Train and test
                        times lie in alternating bands of 1 %; equal seeds give other drivers and
                        phases on the splits
difficulty              s without new cars from the west in each cycle, some of which they fill on
                        the way; less is harder
======================  ============================================================================

Source: Leurent 2018, highway-env, https://github.com/Farama-Foundation/HighwayEnv (roundabout-v0).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..roads.routes import Route
from ..traffic import junction
from ..traffic.junction import Layout
from .crossing_task import Crossing, Demand

RADII = np.array([20.0, 24.0])  # m: of the inner and of the outer lane
# Angle between an arm and the places where its cars enter and leave the ring.
NODE_ANGLE = math.radians(24)
LANE_OFFSET = 2.0  # m from the axis of an arm to its lanes
SECOND_LANE_OFFSET = 6.0  # m from the axis to the second lane that comes from the west
# m: radii of the bends into the ring and out of it, which touch a lane of the ring at its node, and
# one of the arm.
BEND_RADII = (RADII * math.sin(NODE_ANGLE) - LANE_OFFSET) / (1 - math.sin(NODE_ANGLE))
ARM_LENGTH = 60.0  # m, to the line
LINE_DISTANCE = 31.0  # m from the line to the centre
TURNS = 3  # Routes of an arm: first, second, third exit
# m behind the line in which cars of one arm still follow each other, whatever their lanes.
DIVERGING_LENGTH = 8.0
# A car counts as in a lane already and still where its body reaches into it.
ENTERING_LENGTH = 5.0  # m before it enters a lane
LEAVING_LENGTH = 8.0  # m after it leaves a lane
JOINING_LENGTH = (
    15.0  # m before the exit's straight part in which cars of both lanes follow each other
)


def roundabout() -> Layout:
    """Return the layout: route ``3 arm + turn``; turns are first, second, third exit.

    Arms are south, east, north, west, and the second lane of the west. Cars from the second lane
    and those to the first exit take the outer lane of the ring, the others the inner one.
    """
    count = 5 * TURNS
    arm, turn = np.arange(count) // TURNS, np.arange(count) % TURNS
    outer = ((turn == 0) | (arm == 4)).astype(int)
    radius = RADII[outer]
    bend = BEND_RADII[outer]
    beside = np.where(arm == 4, SECOND_LANE_OFFSET, LANE_OFFSET)
    arm = np.minimum(arm, 3)
    c, s = np.array([1, 0, -1, 0]), np.array([0, 1, 0, -1])

    def along(arm: np.ndarray, x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return points given in the frame of the southern arm."""
        return c[arm % 4] * x - s[arm % 4] * y, s[arm % 4] * x + c[arm % 4] * y

    # The centre of a bend is as far from the arm's axis as the node's direction says: (R + r)
    # sin(node) = beside + r.
    node = np.arcsin((beside + bend) / (radius + bend))
    begins, ends = ((radius + bend) * np.cos(angle) for angle in (node, NODE_ANGLE))
    first, last = (
        angle + math.pi / 2 * (arm - 1) for angle in (node, math.pi / 2 * (turn + 1) - NODE_ANGLE)
    )
    ways = (
        ARM_LENGTH + LINE_DISTANCE - begins,
        bend * (math.pi / 2 - node),
        radius * (last - first),
        bend * (math.pi / 2 - NODE_ANGLE),
    )
    start = np.cumsum([0 * bend, *ways], 0)
    entry, leave = start[2], start[3]
    line = np.full(count, ARM_LENGTH)
    out = start[4] + ends.max() - ends
    x, y = (
        np.stack(coordinates, 1)
        for coordinates in zip(
            along(arm, beside, -ARM_LENGTH - LINE_DISTANCE),
            along(arm, beside, -begins),
            (radius * np.cos(first), radius * np.sin(first)),
            (radius * np.cos(last), radius * np.sin(last)),
            along(arm + turn - 1, LANE_OFFSET, ends),
            strict=True,
        )
    )
    heading = math.pi / 2 * (arm + 1), math.pi / 2 * (arm + turn)
    pieces = Route(
        start=start.T,
        x=x,
        y=y,
        heading=np.stack(
            [heading[0], heading[0], first + math.pi / 2, last + math.pi / 2, heading[1]], 1
        ),
        curvature=np.stack([0 * bend, -1 / bend, 1 / radius, -1 / bend, 0 * bend], 1),
    )
    same_lane = outer[:, None] == outer
    same_source = np.arange(count)[:, None] // TURNS == np.arange(count) // TURNS
    target = (arm + 1 + turn) % 4
    nowhere = np.array([np.inf, -np.inf, 0.0])

    def shared_stretches(where: np.ndarray, begin: Any, end: Any, offset: Any) -> np.ndarray:
        stretch = np.stack(np.broadcast_arrays(begin, end, offset), -1)
        return np.where(where[..., None], stretch, nowhere)

    def ring_stretches(laps: int) -> np.ndarray:
        """Return the common parts of the ring if the second route is ``laps`` laps ahead."""
        offset = entry[:, None] + radius * (first + 2 * math.pi * laps - first[:, None]) - entry
        begin = np.maximum(entry, entry[:, None] - offset)
        end = np.minimum(leave, leave[:, None] - offset)
        return shared_stretches(
            same_lane & (begin < end), begin - ENTERING_LENGTH, end + LEAVING_LENGTH, offset
        )

    approach = shared_stretches(
        same_source, -np.inf, np.where(np.eye(count), np.inf, ARM_LENGTH + DIVERGING_LENGTH), 0.0
    )
    leaving = shared_stretches(
        target[:, None] == target, out - JOINING_LENGTH, np.inf, out[:, None] - out
    )
    arms_passed = (arm[:, None] - arm) % 4
    yields_to = (arms_passed > 0) & (arms_passed <= turn)
    # In the inner lane cars follow each other from the node on.
    end = np.broadcast_to(np.where(outer, out, entry)[:, None], (count, count))
    return Layout(
        pieces=pieces,
        line=line,
        out=out,
        fastest=junction.speed_in_bend(bend),
        yields_to=yields_to,
        looks_for=np.zeros((count, count), bool),
        shared=np.stack([approach, *(ring_stretches(laps) for laps in (-1, 0, 1)), leaving], 2),
        zones=junction.find_zones(pieces, line, out, end, yields_to),
    )


class Roundabout(Crossing):
    """The task of this file's docstring."""

    layout = roundabout()
    ego_route = 1
    turns = TURNS
    demand = (
        Demand(0.0, (0.0, 1.0, 0.0)),
        Demand(0.08, (0.4, 0.6, 0.0), cars=3),
        Demand(0.02, (0.5, 0.0, 0.5), cars=3),
        Demand(0.9, (0.0, 0.0, 1.0), cars=12, platoons=True),
        Demand(0.9, (0.0, 1.0, 0.0), cars=10, platoons=True),
    )
    time_gap = 0.6, 1.0
    turn_names = (
        "leaves by the first exit",
        "leaves by the second exit",
        "leaves by the third exit",
    )
    half_picture = 60.0
