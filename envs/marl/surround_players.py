"""The reference player of Surround, Escort and Catch, which knows how the target moves.

While the target moves, the drones fly in a line behind it: each of its motions away from a drone
earns what the drone then makes good. A target that flees is driven in a circle, since it goes where
the line points. When the target rests, only the last distance to it counts. The drones then fly to
corners of the room, where the spread is largest, and come back as late as possible.
"""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import FloatArray, Int
from rlbench_suite.core.policy import View, no_memory, privileged_player

from .surround import (
    DRONES,
    FLEES,
    HALF_WIDTH,
    HEIGHT,
    REACH,
    STAYS,
    STEPS,
    TRAVEL_POINTS,
    Params,
    Point,
    State,
    Surround,
    difference,
    length,
    mean_place,
)

ORDERS = np.array(list(permutations(range(DRONES))), np.int32)
"""All assignments of drones to four places."""
CORNERS = np.array(
    [
        (-HALF_WIDTH, -HALF_WIDTH, 0.3),
        (HALF_WIDTH, HALF_WIDTH, 0.3),
        (-HALF_WIDTH, HALF_WIDTH, HEIGHT),
        (HALF_WIDTH, -HALF_WIDTH, HEIGHT),
    ]
)
"""Corners of the room that are farthest apart, the lower ones above the ground, m."""
DIRECTIONS = np.array([(-1, -1, -1), (1, 1, -1), (-1, 1, 1), (1, -1, 1)]) / np.sqrt(3)
"""Directions from the target to the corners."""
LAST_RADIUS = 0.13
"""m to the target at the end."""
KEPT_GAP = 0.12
"""m to the target and to other drones that no drone comes nearer to, if it can."""
LOWEST = 0.2
"""m above the ground that no drone goes below."""
DETOURS = REACH * np.array(
    [
        (0, 0, 1),
        (0, 0, -1),
        (1, 0, 0),
        (-1, 0, 0),
        (0, 1, 0),
        (0, -1, 0),
        *product((-1, 1), repeat=3),
    ]
)
"""Motions that avoid another drone or the target, alone or added to a motion, m."""
LINE = np.array([0.2, 0.35, 0.5, 0.65])
"""Distances behind a moving target, m."""
CIRCLE_RADIUS = 1.5
"""m from the middle of the room to a target that is driven round."""
CIRCLE_HEIGHT = 1.5
"""m"""
CORNER = 2.2
"""m from the middle along x and along y beyond which a target is in a corner."""
CLIMB = 0.3
"""Part of the height that is missing by which the direction rises."""
TINY = 1e-6


@privileged_player
class Escorts(eqx.Module):
    """Follows a moving target in a line, and returns to a resting one at the end."""

    task: Surround = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Surround) -> Escorts:
        """Return the player of a task."""
        return cls(task)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the motions of all drones, ``(4, 3)``."""
        state, params = view.state, view.params
        places = self.goals(state, params)
        goals = assign(state.drones, places)
        target = self.next_target(state, params)
        decided: list[FloatArray] = []
        rows = []
        for i, drone in enumerate(state.drones):
            start = jnp.stack(drone)
            place = first_free(start, goals[i], decided, target)
            decided.append(place)
            rows.append(jnp.clip((place - start) * (1 / REACH), -1, 1))
        return jnp.stack(rows).astype(self.task.dtype), memory

    def next_target(self, state: State, params: Params) -> Point:
        """Return where the target will be after this step, if it does not hesitate."""
        if self.task.target_kind == FLEES:
            return self.task.flee(state, jnp.zeros(3, self.task.dtype))
        return self.task.next_target(state, jax.random.key(0), params)

    def goals(self, state: State, params: Params) -> FloatArray:
        """Return four places to go to, ``(4, 3)``."""
        if self.task.target_kind == FLEES:
            return in_line(self.next_target(state, params), driven_direction(state))
        if self.task.target_kind == STAYS:
            return corners_and_back(state.target, state.steps)
        whole_way = difference(params.destination, params.target)
        share_of_way = (TRAVEL_POINTS - 1) / TRAVEL_POINTS
        end = Point(
            *(a + share_of_way * step for a, step in zip(params.target, whole_way, strict=True))
        )
        line = in_line(self.next_target(state, params), unit_vector(whole_way))
        moves = state.steps < TRAVEL_POINTS - 1
        return jnp.where(moves, line, corners_and_back(end, state.steps))


def corners_and_back(target: Point, steps: Int) -> FloatArray:
    """Return the places next to the corners from which the way to the target is in time."""
    last = jnp.stack(target) + LAST_RADIUS * DIRECTIONS
    reach = REACH * jnp.maximum(STEPS - 1 - steps, 0).astype(last.dtype)
    return jnp.clip(jnp.asarray(CORNERS, last.dtype), last - reach, last + reach)


def in_line(target: Point, direction: Point) -> FloatArray:
    """Return places behind a target that moves into a direction of length 1."""
    return jnp.stack(
        [
            jnp.stack([a - gap * b for a, b in zip(target, direction, strict=True)])
            for gap in LINE.tolist()
        ]
    )


def unit_vector(motion: Point) -> Point:
    """Return a motion of length 1 in the same direction."""
    scale = 1 / jnp.maximum(length(motion), TINY)
    return Point(*(component * scale for component in motion))


def driven_direction(state: State) -> Point:
    """Return where a fleeing target is to go: round the middle of the room.

    It is the way round to which the drones push it already. No drone gets behind a target in a
    corner, so that it is driven off along the nearest wall before.
    """
    x, y, z = state.target
    radius = jnp.maximum(jnp.sqrt(x * x + y * y), TINY)
    outward_x, outward_y = x / radius, y / radius
    push = difference(state.target, mean_place(state.drones))
    goes_left = outward_x * push.y - outward_y * push.x >= 0
    side = jnp.where(goes_left, 1, -1)
    error = CIRCLE_RADIUS - radius
    climb = CLIMB * (CIRCLE_HEIGHT - z)
    round_x = error * outward_x - side * outward_y
    round_y = error * outward_y + side * outward_x
    in_corner = (jnp.abs(x) > CORNER) & (jnp.abs(y) > CORNER)
    along_y = jnp.abs(x) > jnp.abs(y)
    off_x = jnp.where(along_y, 0, -jnp.sign(x))
    off_y = jnp.where(along_y, -jnp.sign(y), 0)
    return unit_vector(
        Point(jnp.where(in_corner, off_x, round_x), jnp.where(in_corner, off_y, round_y), climb)
    )


def assign(drones: tuple[Point, ...], places: FloatArray) -> FloatArray:
    """Return a place for each drone, ``(4, 3)``.

    The sum of the squared ways is the least. So drones that keep pace do not meet.
    """
    squares = []
    for drone in drones:
        gaps = jnp.stack(drone) - places
        gaps = gaps * gaps
        squares.append(gaps[:, 0] + gaps[:, 1] + gaps[:, 2])
    total = squares[0][ORDERS[:, 0]]
    for i in range(1, DRONES):
        total = total + squares[i][ORDERS[:, i]]
    return places[jnp.asarray(ORDERS)[jnp.argmin(total)]]


def first_free(
    start: FloatArray, goal: FloatArray, decided: list[FloatArray], target: Point
) -> FloatArray:
    """Return the place of a drone after a step towards a goal, ``(3,)``.

    It is the first of some places that is not too near to the target and to other drones, or the
    one that is farthest from them.

    Args:
        start: where the drone is.
        goal: where it goes.
        decided: next places of other drones.
        target: next place of the target.
    """
    straight = jnp.clip(goal - start, -REACH, REACH)
    offsets = np.asarray(DETOURS, start.dtype)
    moves = jnp.concatenate(
        [straight[None], 0.5 * straight[None], jnp.clip(straight + offsets, -REACH, REACH), offsets]
    )
    lowest = np.array([-HALF_WIDTH, -HALF_WIDTH, LOWEST])
    highest = np.array([HALF_WIDTH, HALF_WIDTH, HEIGHT])
    places = jnp.clip(start + moves, lowest, highest)
    gap = jnp.full(len(places), KEPT_GAP, start.dtype)
    for place in (jnp.stack(target), *decided):
        gap = jnp.minimum(gap, lengths(places - place))
    return places[jnp.argmax(gap)].astype(start.dtype)


def lengths(motions: FloatArray) -> FloatArray:
    """Return the lengths of motions ``(n, 3)``."""
    squares = motions * motions
    return jnp.sqrt(squares[:, 0] + squares[:, 1] + squares[:, 2])
