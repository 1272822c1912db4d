"""Entries of an observation that show the vehicles around the ego on a road of lanes.

It looks at places in the ego's own lane and in the lanes beside it. :class:`Neighbour` lists the
components of a place.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from enum import IntEnum

from rlbench_suite.core.component import Component

# Names of the lanes and of the places in each of them, in order, with their meanings.
LANES = {
    "right": "in the lane to the right",
    "own": "in its own lane",
    "left": "in the lane to the left",
}
PLACES = {"ahead": "nearest ahead", "second": "second ahead", "behind": "nearest behind"}
Y_SCALE = 8.0  # m that are shown as 1
SIDEWAYS_SCALE = 4.0  # m/s that are shown as 1


class Neighbour(IntEnum):
    """Components of a place, in order."""

    THERE = 0
    GAP = 1
    SPEED = 2
    Y = 3
    SIDEWAYS = 4


THERE_NAMES = {f"{lane}_{place}_there" for lane, place in itertools.product(LANES, PLACES)}
SHAPE = len(LANES), len(PLACES), len(Neighbour)


def neighbour_components(
    lane: str, place: str, sight: float, speed_scale: float
) -> Iterator[Component]:
    """List the components of a place in a lane.

    Args:
        lane: its name in :data:`LANES`.
        place: its name in :data:`PLACES`.
        sight: m, ahead and behind, that are shown as 1.
        speed_scale: m/s that are shown as 1, of relative speeds.
    """
    which = f"{PLACES[place]} {LANES[lane]}"
    meanings = {
        Neighbour.THERE: (f"whether a vehicle is within {sight:g} m", "1"),
        Neighbour.GAP: ("gap to it, bumper to bumper; 1 for none", f"{sight:g} m"),
        Neighbour.SPEED: ("its speed along the road minus the ego's", f"{speed_scale:g} m/s"),
        Neighbour.Y: ("its y minus the ego's", f"{Y_SCALE:g} m"),
        Neighbour.SIDEWAYS: ("its speed to the left", f"{SIDEWAYS_SCALE:g} m/s"),
    }
    for neighbour in Neighbour:
        meaning, unit = meanings[neighbour]
        yield Component(f"{lane}_{place}_{neighbour.name.lower()}", f"{meaning}: {which}", unit)
