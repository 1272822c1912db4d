"""Turn left from a minor road across a main road without traffic lights.

Two roads of two lanes cross (``junction.py``, 15 Hz): the main road from west to east, the minor
road from south to north. The ego comes from the south and turns left to the west, across one stream
of cars and into the other one. It keeps its line; speed is all it decides. The others turn or go
straight, follow by IDM and yield. Nobody on the main road brakes for the ego.

Traffic lights up and down the main road release platoons, about one car in 3 s and direction for
most of a cycle, then none for some seconds. Both have the same cycle, so that the gaps meet at the
junction. The ego sees cars, not the lights. A driver who never looks crashes in four of five
episodes.

The task is highway-env's intersection-v0 (Leurent 2018): geometry (arms of 100 m, bends of 9 and 13
m), speeds, order of priority and arrival are the same. There, cars come evenly on all arms, each
step at 7 to 9 m/s pays 1, and arrival as much as one of those; a crash costs 5. Here only arrival
pays. Nobody turns left from the main road, nobody drives before the ego, and all slow down in
bends.

======================  ============================================================================
action                  once a second, one of SLOWER, IDLE, FASTER. Target speeds are 0, 4.5 and 9
                        m/s, reached with 3 m/s^2 at most, 6 m/s^2 in braking. In the bend it drives
                        at most 8 m/s
observation             way of the ego's front to the line before the junction (by 100 m, negative
                        behind it), its speed (by 10 m/s), target speed, time left (by 100 s). Then
                        the ten nearest cars, in the order of their distance: there (0 or 1), x to
                        the east and y to the north of the centre (by 100 m), vx and vy (by 10 m/s),
                        cosine and sine of the direction, turn signal (-1 right, 0, 1 left). Cut off
                        at +-1
reward                  on arrival, 25 m behind the junction, 100 less 0.25 for each second; else 0,
                        also for a crash
terminated              arrival, or a crash: the ego touches another car
success                 arrival
start                   30 to 40 m before the junction, at 9 m/s
cost                    1 for a step that ends in a crash, or in less than 1.5 s to one if all kept
                        their speeds
context                 drivers: desired speed 7.5..8.5 m/s, time gap 1..1.8 s, acceleration
                        1.5..2.5 m/s^2; cycle of the lights 45..55 s, and its phase at the start;
                        and the time without new cars, within 10 % of the difficulty. Train and test
                        times lie in alternating bands of 1 %; equal seeds give other drivers and
                        phases on the splits
difficulty              s without new cars on the main road in each cycle; less is harder
======================  ============================================================================

Source: Leurent 2018, highway-env, https://github.com/Farama-Foundation/HighwayEnv
(intersection-v0).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..roads.routes import Route
from ..traffic import junction
from ..traffic.junction import Layout
from .crossing_task import Crossing, Demand

ARM_LENGTH = 100.0  # m
ARM_DISTANCE = 11.0  # m from the centre to the end of an arm
RIGHT_RADIUS = 9.0  # m, of the bend to the right
LEFT_RADIUS = 13.0  # m, of the bend to the left
TURNS = 3  # Routes of an arm: right, straight, left
# m behind the line in which cars of one arm that turn differently still follow each other.
DIVERGING_LENGTH = 8.0


def intersection() -> Layout:
    """Return the layout, whose route ``3 arm + turn`` begins on an arm and takes a turn.

    The arms are south, east, north and west; the turns are right, straight and left.
    """
    count = 4 * TURNS
    arm, turn = np.arange(count) // TURNS, np.arange(count) % TURNS
    kappa = np.array([-1 / RIGHT_RADIUS, 0, 1 / LEFT_RADIUS])[turn]
    inside_length = np.array(
        [RIGHT_RADIUS * math.pi / 2, 2 * ARM_DISTANCE, LEFT_RADIUS * math.pi / 2]
    )[turn]
    c, s = np.array([1, 0, -1, 0])[arm], np.array([0, 1, 0, -1])[arm]

    def rotate(x: Any, y: Any) -> tuple[Any, Any]:
        return c * x - s * y, s * x + c * y

    first = rotate(2.0, -ARM_LENGTH - ARM_DISTANCE)
    second = rotate(2.0, -ARM_DISTANCE)
    last = rotate(
        np.array([ARM_DISTANCE, 2.0, -ARM_DISTANCE])[turn],
        np.array([-2.0, ARM_DISTANCE, 2.0])[turn],
    )
    heading = (math.pi / 2) * (arm + 1)
    last_heading = heading + (math.pi / 2) * (turn - 1)
    out = ARM_LENGTH + inside_length
    pieces = Route(
        start=np.stack([0 * out, 0 * out + ARM_LENGTH, out], 1),
        x=np.stack([first[0], second[0], last[0]], 1),
        y=np.stack([first[1], second[1], last[1]], 1),
        heading=np.stack([heading, heading, last_heading], 1),
        curvature=np.stack([0 * out, kappa, 0 * out], 1),
    )
    line = np.full(count, ARM_LENGTH)
    target = (arm + 1 + turn) % 4
    same_arm, same_target = arm[:, None] == arm, target[:, None] == target
    nowhere = np.array([np.inf, -np.inf, 0.0])
    parted = np.where(np.eye(count), np.inf, ARM_LENGTH + DIVERGING_LENGTH)
    approach = np.stack(np.broadcast_arrays(-np.inf, parted, 0.0), -1)
    approach = np.where(same_arm[..., None], approach, nowhere)
    leaving = np.stack(np.broadcast_arrays(out[None, :], np.inf, out[:, None] - out[None, :]), -1)
    leaving = np.where(same_target[..., None], leaving, nowhere)
    priority = np.where(arm % 2 == 1, 3, 1) - (turn == 2)
    # Drivers on the main road do not look for cars that have to yield to them.
    yields_to = priority > priority[:, None]
    looks_for = np.broadcast_to(priority[:, None] <= 1, (count, count))
    return Layout(
        pieces=pieces,
        line=line,
        out=out,
        fastest=junction.speed_in_bend(np.array([RIGHT_RADIUS, np.inf, LEFT_RADIUS]))[turn],
        yields_to=yields_to,
        looks_for=looks_for,
        shared=np.stack([approach, leaving], 2),
        zones=junction.find_zones(
            pieces,
            line,
            out,
            np.broadcast_to(out[:, None], (count, count)),
            (yields_to | looks_for) & ~same_arm,
        ),
    )


MAIN = Demand(0.9, (0.15, 0.85, 0.0), cars=9, platoons=True)  # Main road: no car turns left


class Intersection(Crossing):
    """The task of this file's docstring."""

    layout = intersection()
    ego_route = 2
    turns = TURNS
    demand = Demand(0.0, (0.0, 0.0, 1.0)), MAIN, Demand(0.02, (0.25, 0.5, 0.25), cars=3), MAIN
    turn_names = ("turns right", "goes straight", "turns left")
    half_picture = 60.0
