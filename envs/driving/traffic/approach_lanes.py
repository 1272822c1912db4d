"""Two lanes of a signalised approach: neighbours, lane changes, turns.

The lanes share the x of ``approach.py``. From the right one (lane 0) one goes straight on or turns
right, from the left one (lane 1) straight on or left. So a lane and a way make a movement. All
movements end on lanes of their own: cars of two movements from one lane part LANE_END_DISTANCE m
behind the stop line for good. A driver follows the nearest car ahead in its lane that has not
parted, and the nearest one ahead of the same movement. The first kind of leader keeps cars apart
before they part, the second kind behind.

**Lane changes** take no time, as in SUMO's default model. Once a second drivers decide, those in
the right lane at one second, those in the left lane at the next. Who goes straight on changes by
MOBIL (``lane_changing.py``). Who is in the wrong lane for its turn changes as soon as that is safe
for it and the new follower by MOBIL's criterion. Nobody changes who drives less than
MIN_CHANGE_SPEED, or within SOLID_LINE_LENGTH m of the line.

Bodies never overlap, as on one lane. Whoever needs no more than MOBIL's b_safe of 4 m/s^2 behind a
leader can stop behind where that one stops, both braking at B = 9 m/s^2 (``approach.py``): IDM
keeps s > s* sqrt(a / (4 + a)), and this is more than (v^2 - v_leader^2) / (2 B) for all drivers of
the task. Several cars that enter a lane at once come from one lane, in which they already keep such
gaps from each other. Cars that have parted are SOLID_LINE_LENGTH + LANE_END_DISTANCE m ahead and
more, where anyone can stop.

A driver who reaches the solid line in the wrong lane takes the way that its lane allows: straight
on.

**Turns** are quarter circles from the stop line on, of the radii of highway-env's intersection (9 m
to the right, 13 m to the left), at a speed that needs LATERAL_ACCELERATION m/s^2, which is chosen.
Drivers brake before them with their comfortable deceleration b:

    v' <= sqrt(v_turn^2 + 2 b d)

Here d is the least way that can be left after the tick. As the drivers of one lane do not mark
where they go, their followers see only how they drive.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.numerics.bit_exact import computed_once

from ..arrays import Scalar
from ..roads.signal_plan import TICK
from ..vehicle.bicycle import TYRE_BRAKING
from .approach import LENGTH, NO_LEADER_GAP, OUTSIDE_PLACE, Ahead, admit, intention
from .car_following import Driver, acceleration_at_ratio, gap_ratio
from .lane_changing import Prospect, is_safe, wants_to_change

RIGHT, STRAIGHT, LEFT = 0, 1, 2  # Ways
SOLID_LINE_LENGTH = 30.0  # m before the line in which nobody changes lanes
# m behind the line at which the rear of a car leaves the lane for its own way.
LANE_END_DISTANCE = 10.0
MIN_CHANGE_SPEED = 2.0  # m/s: least speed of a car that changes lanes
POLITENESS = 0.3  # p of MOBIL
LATERAL_ACCELERATION = 3.0  # m/s^2, in bends
RADII = np.array([9.0, 0.0, 13.0])  # m, of each way; 0 for straight on
# m/s, of each way; more than anyone drives for straight on
TURN_SPEEDS = np.where(RADII > 0, np.sqrt(LATERAL_ACCELERATION * RADII), 100.0)
BENDS = math.pi / 2 * RADII  # m, of each way
SLOT_BITS = 5  # Bits of a slot
PLACE_BITS = 22  # Bits of a place: up to 65 km
PLACES_PER_METRE = 64.0
ABSENT_GROUP = 15  # Group of those who are nobody's neighbours


class LaneTraffic(NamedTuple):
    """Vehicles of every approach, each field ``(..., approaches, slots)``."""

    x: Scalar  # m from the entry
    v: Scalar  # m/s
    stops_at_light: Scalar  # bool: stops for the light
    left: Scalar  # bool: in the left lane


class Neighbour(NamedTuple):
    """A neighbour of every vehicle."""

    exists: Scalar  # bool
    slot: Scalar  # int32


# -- ways ------------------------------------------------------------------------------------------


def allowed_way(in_left: Scalar, turn: Scalar) -> jax.Array:
    """Return the way that each takes from its lane if it wants to ``turn`` so."""
    return jnp.where(turn == jnp.where(in_left, RIGHT, LEFT), STRAIGHT, turn)


def expected_way(traffic: LaneTraffic, turn: Scalar, line: Scalar) -> jax.Array:
    """Return the way that each driver expects to take: before the solid line, the one it wants."""
    return jnp.where(traffic.x < line - SOLID_LINE_LENGTH, turn, allowed_way(traffic.left, turn))


def is_in_wrong_lane(traffic: LaneTraffic, turn: Scalar) -> jax.Array:
    """Return whose lane does not lead where it wants to go."""
    return allowed_way(traffic.left, turn) != turn


def way_value(values: np.ndarray, turn: Scalar) -> jax.Array:
    """Return the value of each one's way."""
    for_right, for_straight, for_left = values.tolist()
    return jnp.where(turn == RIGHT, for_right, jnp.where(turn == LEFT, for_left, for_straight))


def bend_acceleration(
    traffic: LaneTraffic, turn: Scalar, driver: Driver, line: Scalar
) -> jax.Array:
    """Return the largest acceleration that the bend leaves to each driver, m/s^2."""
    turn = expected_way(traffic, turn, line)
    turn_speed = way_value(TURN_SPEEDS, turn)
    furthest = traffic.x + TICK * (traffic.v + TICK * driver.acceleration)
    fastest = jnp.sqrt(
        turn_speed * turn_speed + 2 * driver.deceleration * jnp.maximum(line - furthest, 0)
    )
    return jnp.where(
        traffic.x < line + way_value(BENDS, turn), (fastest - traffic.v) * (1 / TICK), jnp.inf
    )


# -- neighbours ------------------------------------------------------------------------------------


def order_number(group: Scalar, x: Scalar) -> jax.Array:
    """Return a number for each vehicle by group, place and slot.

    These are whole numbers, so that a minimum replaces a search.

    Of two cars side by side, in the same 1/64 m, that of the higher slot counts as ahead.
    """
    place = jnp.floor(
        PLACES_PER_METRE * jnp.clip(x - OUTSIDE_PLACE, 0, (2**PLACE_BITS - 1) / PLACES_PER_METRE)
    ).astype(jnp.int32)
    return (
        (group << (SLOT_BITS + PLACE_BITS))
        | (place << SLOT_BITS)
        | np.arange(x.shape[-1], dtype=np.int32)
    )


def find_nearest(number: jax.Array, from_number: jax.Array, *, ahead: bool) -> Neighbour:
    """Find the nearest vehicle ahead or behind.

    Args:
        number: of each vehicle by :func:`order_number`.
        from_number: what each vehicle's number would be in the group that it looks for.
        ahead: False for the nearest one behind.
    """

    def search(number: jax.Array, from_number: jax.Array) -> jax.Array:
        best = jnp.full_like(from_number, jnp.iinfo(jnp.int32).max if ahead else -1)
        for slot in range(number.shape[-1]):
            candidate = number[..., slot, None]
            if ahead:
                best = jnp.where(candidate > from_number, jnp.minimum(best, candidate), best)
            else:
                best = jnp.where(candidate < from_number, jnp.maximum(best, candidate), best)
        return best

    best = computed_once(search)(number, from_number)
    group = from_number >> (SLOT_BITS + PLACE_BITS)
    is_found = (best >> (SLOT_BITS + PLACE_BITS) == group) & (group != ABSENT_GROUP)
    return Neighbour(is_found, best & ((1 << SLOT_BITS) - 1))


def count_ahead(number: jax.Array, from_number: jax.Array, marks: jax.Array) -> jax.Array:
    """Count the marked vehicles ahead of each one in its group, int32.

    The other arguments are those of :func:`find_nearest`.
    """

    def count(number: jax.Array, from_number: jax.Array, marks: jax.Array) -> jax.Array:
        total = jnp.zeros_like(from_number)
        beyond = (from_number >> (SLOT_BITS + PLACE_BITS)) + 1 << (SLOT_BITS + PLACE_BITS)
        for slot in range(number.shape[-1]):
            candidate = number[..., slot, None]
            total = total + (
                marks[..., slot, None] & (candidate > from_number) & (candidate < beyond)
            )
        return total

    return computed_once(count)(number, from_number, marks)


def neighbour_values(values: Scalar, slot: jax.Array) -> jax.Array:
    """Return the values of neighbours."""
    return jnp.take_along_axis(jnp.broadcast_to(values, slot.shape), slot, -1, mode="clip")


def see_leaders(traffic: LaneTraffic, leader: Neighbour, front: Scalar) -> Ahead:
    """Return the gaps to leaders of vehicles whose fronts are at ``front``, and their speeds."""
    gap = neighbour_values(traffic.x, leader.slot) - LENGTH - front
    return Ahead(
        jnp.where(leader.exists, gap, NO_LEADER_GAP),
        jnp.where(leader.exists, neighbour_values(traffic.v, leader.slot), 0),
    )


def lane_groups(traffic: LaneTraffic, line: Scalar) -> jax.Array:
    """Return the lane of each vehicle as its group, until it parts from the lane."""
    on = (traffic.x >= 0) & (traffic.x - LENGTH < line + LANE_END_DISTANCE)
    return jnp.where(on, traffic.left.astype(jnp.int32), ABSENT_GROUP)


def movement_groups(traffic: LaneTraffic, turn: Scalar) -> jax.Array:
    """Return the movement of each vehicle as its group."""
    movement = allowed_way(traffic.left, turn) + jnp.where(traffic.left, 3, 0)
    return jnp.where(traffic.x >= 0, movement, ABSENT_GROUP)


def order_numbers(traffic: LaneTraffic, turn: Scalar, line: Scalar) -> tuple[jax.Array, jax.Array]:
    """Return everyone's order numbers, and those with which everyone looks ahead, ``(2, ...)``.

    The first row is that of lanes, the second that of movements.
    """
    lane, movement = lane_groups(traffic, line), movement_groups(traffic, turn)
    ahead_group = jnp.stack([traffic.left.astype(jnp.int32), movement])
    return order_number(jnp.stack([lane, movement]), traffic.x), order_number(
        ahead_group, traffic.x
    )


def look_ahead(
    traffic: LaneTraffic, turn: Scalar, driver: Driver, line: Scalar
) -> tuple[Ahead, jax.Array]:
    """Return the room before each as a standing leader, and the chosen acceleration, m/s^2."""
    ahead = see_leaders(
        traffic, find_nearest(*order_numbers(traffic, turn, line), ahead=True), traffic.x
    )
    room = (ahead.gap + ahead.v * ahead.v * (0.5 / TYRE_BRAKING)).min(0)
    return Ahead(room, jnp.zeros_like(room)), intended_acceleration(
        traffic, ahead, turn, driver, line
    )


def intended_acceleration(
    traffic: LaneTraffic, ahead: Ahead, turn: Scalar, driver: Driver, line: Scalar
) -> jax.Array:
    """Return the acceleration that drivers choose behind their leaders and before bends, m/s^2.

    There are leaders in the lane and in the movement, so that ``ahead`` has the shape ``(2, ...)``.
    """
    behind = intention(traffic, ahead, driver, line).min(0)  # type: ignore[arg-type]
    return jnp.minimum(behind, bend_acceleration(traffic, turn, driver, line))


def enter(traffic: LaneTraffic, driver: Driver, arriving: Scalar) -> LaneTraffic:
    """Return the traffic with those that are ``arriving`` and find room in their lane.

    Only one vehicle of each lane may arrive at a time.
    """
    lane = jnp.where(traffic.x >= 0, traffic.left.astype(jnp.int32), ABSENT_GROUP)
    entry = order_number(traffic.left.astype(jnp.int32), jnp.full_like(traffic.x, OUTSIDE_PLACE))
    last = find_nearest(order_number(lane, traffic.x), entry, ahead=True)
    return admit(traffic, see_leaders(traffic, last, 0), driver, arriving)  # type: ignore[arg-type,return-value]


# -- lane changes ----------------------------------------------------------------------------------


def changes_lane(
    traffic: LaneTraffic, turn: Scalar, driver: Driver, line: Scalar, to_left: Scalar
) -> jax.Array:
    """Return who changes, to the left or else to the right lane."""
    x, v = traffic.x, traffic.v
    lane = lane_groups(traffic, line)
    number = order_number(lane, x)
    current = traffic.left.astype(jnp.int32)
    in_lane, in_other_lane = order_number(current, x), order_number(1 - current, x)
    wall = jnp.where(traffic.stops_at_light, gap_ratio(driver, v, jnp.maximum(line - x, 0), 0), 0)

    def drives(driver: Driver, v: Scalar, wall: Scalar, ahead: Ahead) -> jax.Array:
        return acceleration_at_ratio(
            driver, v, jnp.maximum(gap_ratio(driver, v, ahead.gap, ahead.v), wall)
        )

    old, new = (find_nearest(number, numbers, ahead=True) for numbers in (in_lane, in_other_lane))

    def follower(numbers: jax.Array, leader: Neighbour) -> tuple[jax.Array, jax.Array]:
        """Return the accelerations of a follower behind this vehicle and without it."""
        is_found, slot = find_nearest(number, numbers, ahead=False)
        follower_driver = Driver(*(neighbour_values(values, slot) for values in driver))
        fx, fv, wall_ratio = (
            neighbour_values(x, slot),
            neighbour_values(v, slot),
            neighbour_values(wall, slot),
        )
        behind = Ahead(x - LENGTH - fx, v)
        with_me = drives(follower_driver, fv, wall_ratio, behind)
        without = drives(follower_driver, fv, wall_ratio, see_leaders(traffic, leader, fx))
        return jnp.where(is_found, with_me, 0), jnp.where(is_found, without, 0)

    new_with, new_without = follower(in_other_lane, new)
    old_with, old_without = follower(in_lane, old)
    prospect = Prospect(
        drives(driver, v, wall, see_leaders(traffic, old, x)),
        drives(driver, v, wall, see_leaders(traffic, new, x)),
        new_without,
        new_with,
        old_with,
        old_without,
    )
    may = (
        (x >= 0)
        & (x < line - SOLID_LINE_LENGTH)
        & (v >= MIN_CHANGE_SPEED)
        & (traffic.left != to_left)
    )
    must = turn == jnp.where(to_left, LEFT, RIGHT)
    return may & jnp.where(
        must, is_safe(prospect), (turn == STRAIGHT) & wants_to_change(prospect, POLITENESS)
    )
