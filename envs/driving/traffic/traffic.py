"""Traffic on a straight road of several lanes that closes on itself.

Drivers follow by IDM and change lanes by MOBIL.

Vehicle 0 is the ego, driven from outside; all others drive themselves. The road is periodic, as in
the ring roads on which traffic models are studied: a vehicle half a circumference behind the ego is
also half a circumference ahead of it. So density never changes, and nothing appears or vanishes. At
ordinary differences of speed the ego does not come around to the same neighbours within an episode.
Positions are kept relative to the ego, within half a circumference, where float32 resolves 0.03 mm.

Twice a second drivers look around (``look``): who is ahead in which lane, and is the neighbouring
lane better? They weigh the left lane at one look and the right lane at the other, so that no two
drivers move into one gap from both sides. Between looks nobody joins or leaves a lane and everyone
keeps its leader, so sub-steps search nothing.

A driver who changes lanes counts in both until its body is within the new one; so does the ego.
Everyone keeps its distance from the nearest vehicle ahead in each lane it counts in. Lanes are
numbered from the right. :class:`Rules` say how many there are, where one may change lanes, where
the road ends, and which vehicles only go straight on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..arrays import Scalar
from ..vehicle import bicycle, collision
from ..vehicle.bicycle import Motion, Pose
from ..vehicle.collision import Sweep
from . import car_following, lane_changing
from .car_following import Driver
from .lane_changing import Prospect

LANES = 4  # Number of lanes of the highway
LANE_WIDTH = 4.0  # m
VEHICLES = 50  # Number of vehicles of the highway, with the ego
SUBSTEP = 1 / 15  # s
INDEX_BITS = 6  # Bits of a vehicle's index: there are at most 64 vehicles
WORD_BITS = 32  # Bits of a word of a set
MAX_LANES = 8  # Lanes of the widest road


class Fleet(NamedTuple):
    """Properties constant during an episode; arrays ``(vehicles,)`` unless said otherwise."""

    driver: Driver  # Parameters of each driver; the ego's are those that others assume
    length: Scalar  # m
    width: Scalar  # m
    politeness: Scalar  # p of MOBIL, scalar
    circumference: Scalar  # m, scalar


class Traffic(NamedTuple):
    """Poses and lanes of all vehicles; arrays ``(vehicles,)``."""

    pose: Pose  # x relative to the ego at the last look; within half a circumference then
    lane: Scalar  # int32: the lane a vehicle comes from, or is in
    target: Scalar  # int32: the lane it goes to, or is in


class Leaders(NamedTuple):
    """Leader of each vehicle until the next look; ``(vehicles,)`` each."""

    # int32: the nearest ahead in ``lane``; a vehicle alone in its lane follows itself, once around.
    index: Scalar
    offset: Scalar  # m, added to the difference of both x it gives the bumper-to-bumper gap
    target_index: Scalar  # int32: the nearest ahead in ``target``
    target_offset: Scalar


class Order(NamedTuple):
    """Order of all vehicles along the road, int32 ``(vehicles,)`` each."""

    rank: Scalar  # Rank of each vehicle, 0 for the last
    index: Scalar  # Vehicle of each rank


class Occupied(NamedTuple):
    """Vehicles that count in each lane, as sets of ranks, uint32 ``(MAX_LANES,)`` each."""

    low: Scalar  # Bit k is rank k
    high: Scalar  # Bit k is rank 32 + k


class Rules(NamedTuple):
    """Rules of a road at one moment; positions are relative to the ego."""

    lanes: int = LANES
    # Function of a lane: may the others change to it?
    others_may: Callable[[Scalar], Any] = lambda new: True
    # Function of two neighbouring lanes: may the ego, where it is, change from the one to the
    # other?
    ego_may: Callable[[Scalar, Scalar], Any] = lambda lane, new: True
    # Function of x and y of the ego that gives the edges of the road there, m; by default those of
    # all lanes.
    edges: Callable[[Scalar, Scalar], tuple[Scalar, Scalar]] | None = None
    # Marks of vehicles that keep speed and direction, ``(vehicles,)`` bool; None if there are none.
    steady: Scalar = None


HIGHWAY = Rules()


def lane_centre(lane: Scalar) -> Scalar:
    """Return the distance of the lane's centre from the right edge of the road, m."""
    return LANE_WIDTH * (lane + 0.5)


def forward_speed(pose: Pose) -> Scalar:
    """Return the speed along the road, m/s, as those behind see it."""
    return pose.speed * jnp.cos(pose.heading)


def is_ego(vehicles: int = VEHICLES) -> Any:
    """Mark the ego, ``(vehicles,)`` bool."""
    return jnp.arange(vehicles) == 0


# -- looking around --------------------------------------------------------------------------------


def recentre(traffic: Traffic, fleet: Fleet) -> tuple[Traffic, Scalar]:
    """Return positions relative to the ego, and the distance (m) that the ego had covered.

    The positions are within half a circumference.
    """
    distance = traffic.pose.x[0]
    x = traffic.pose.x - distance
    half = 0.5 * fleet.circumference
    x = jnp.where(x >= half, x - fleet.circumference, x)
    x = jnp.where(x < -half, x + fleet.circumference, x)
    return traffic._replace(pose=traffic.pose._replace(x=x)), distance


def finish_changes(traffic: Traffic, fleet: Fleet) -> Traffic:
    """Let vehicles whose bodies are within their target lanes leave their old lanes."""
    room = 0.5 * (LANE_WIDTH - fleet.width)
    is_inside = jnp.abs(traffic.pose.y - lane_centre(traffic.target)) < room
    return traffic._replace(lane=jnp.where(is_inside, traffic.target, traffic.lane))


def ranks(x: Scalar) -> Scalar:
    """Return everyone's rank in the order of x, int32; 0 is the last.

    Equal x are ordered by index.
    """
    index = jnp.arange(x.shape[0])
    is_behind = (x < x[:, None]) | ((x == x[:, None]) & (index < index[:, None]))
    return is_behind.sum(1, dtype=jnp.int32)


def order_of(x: Scalar) -> Order:
    """Return the order of vehicles along the road."""
    rank = ranks(x)
    index = jnp.arange(x.shape[0], dtype=jnp.int32)
    return Order(rank, jnp.zeros_like(index).at[rank].set(index, unique_indices=True))


def lane_occupancy(traffic: Traffic, order: Order) -> Occupied:
    """Return who counts in which lane."""
    high = order.rank >= WORD_BITS
    bit = jnp.uint32(1) << jnp.where(high, order.rank - WORD_BITS, order.rank).astype(jnp.uint32)
    lanes = jnp.arange(MAX_LANES, dtype=jnp.int32)[:, None]
    counts = (traffic.lane == lanes) | (traffic.target == lanes)
    # Every rank is there once, so that a sum of bits is their union.
    words = (jnp.where(counts & ~high, bit, 0), jnp.where(counts & high, bit, 0))
    return Occupied(*(word.sum(1, dtype=jnp.uint32) for word in words))


def find_nearest(occupied: Occupied, order: Order, lane: Scalar, *, ahead: bool) -> Scalar:
    """Find the nearest vehicle ahead of each one, or behind it, around the circumference.

    ``lane`` gives the lane to look in for each one.

    A vehicle that finds nobody finds itself.
    """
    exists = (lane >= 0) & (lane < MAX_LANES)
    all_low, all_high = (
        jnp.where(exists, word[jnp.clip(lane, 0, MAX_LANES - 1)], 0) for word in occupied
    )
    below_low, below_high = bits_below(order.rank)
    own_low, own_high = bits_below(order.rank + 1)
    low = all_low & (~own_low if ahead else below_low)
    high = all_high & (~own_high if ahead else below_high)
    nobody = (low | high) == 0
    low, high = jnp.where(nobody, all_low, low), jnp.where(nobody, all_high, high)
    if ahead:
        word = jnp.where(low != 0, low, high)
        rank = last_bit(word & (~word + 1)) + jnp.where(low != 0, 0, WORD_BITS)
    else:
        rank = last_bit(jnp.where(high != 0, high, low)) + jnp.where(high != 0, WORD_BITS, 0)
    index = jnp.arange(lane.shape[0], dtype=jnp.int32)
    return jnp.where((low | high) == 0, index, order.index[jnp.maximum(rank, 0)])


def bits_below(rank: Scalar) -> tuple[Scalar, Scalar]:
    """Return the set of all ranks below one of 0 to 64, as two words."""
    full = jnp.uint32(0xFFFFFFFF)

    def first(count: Scalar) -> Scalar:
        is_inside = (count >= 0) & (count < WORD_BITS)
        bits = (jnp.uint32(1) << jnp.where(is_inside, count, 0).astype(jnp.uint32)) - 1
        return jnp.where(is_inside, bits, jnp.where(count < 0, 0, full))

    return first(rank), first(rank - WORD_BITS)


def last_bit(word: Scalar) -> Scalar:
    """Return the number of the highest bit of a word, -1 if none is set, int32."""
    return WORD_BITS - 1 - jax.lax.clz(word).astype(jnp.int32)


def wrap_offset(
    x: Scalar, front: Scalar, index: Scalar, front_index: Scalar, fleet: Fleet
) -> Scalar:
    """Return what to add to ``front - x``, m.

    It is a circumference if the vehicle ahead lies beyond the end of the positions, and else 0.
    """
    wraps = (front < x) | ((front == x) & (front_index <= index))
    return jnp.where(wraps, fleet.circumference, 0)


def find_leaders(traffic: Traffic, fleet: Fleet, order: Order) -> Leaders:
    """Find everyone's leaders."""
    index = jnp.arange(order.rank.shape[0], dtype=jnp.int32)
    x = traffic.pose.x
    occupied = lane_occupancy(traffic, order)

    def ahead(lane: Scalar) -> tuple[Scalar, Scalar]:
        leader = find_nearest(occupied, order, lane, ahead=True)
        bodies = 0.5 * (fleet.length + fleet.length[leader])
        return leader, wrap_offset(x, x[leader], index, leader, fleet) - bodies

    return Leaders(*ahead(traffic.lane), *ahead(traffic.target))


def prospect(traffic: Traffic, fleet: Fleet, order: Order, direction: Scalar) -> Prospect:
    """Return what changing to the next lane would do to everyone and to both followers.

    ``direction`` is 1 for the left lane and -1 for the right one.
    """
    index = jnp.arange(order.rank.shape[0], dtype=jnp.int32)
    x, speed = traffic.pose.x, traffic.pose.speed
    forward = forward_speed(traffic.pose)
    new = traffic.target + direction
    occupied = lane_occupancy(traffic, order)
    old_leader = find_nearest(occupied, order, traffic.target, ahead=True)
    old_follower = find_nearest(occupied, order, traffic.target, ahead=False)
    new_leader = find_nearest(occupied, order, new, ahead=True)
    new_follower = find_nearest(occupied, order, new, ahead=False)

    def ahead(leader: Scalar) -> Scalar:
        return x[leader] - x + wrap_offset(x, x[leader], index, leader, fleet)

    def behind(follower: Scalar) -> Scalar:
        return x - x[follower] + wrap_offset(x[follower], x, follower, index, fleet)

    def behind_leader(leader: Scalar) -> Scalar:
        gap = ahead(leader) - 0.5 * (fleet.length + fleet.length[leader])
        return car_following.acceleration(fleet.driver, speed, gap, forward[leader])

    def followers(follower: Scalar, leader: Scalar) -> tuple[Scalar, Scalar]:
        """Return the acceleration of a follower behind this vehicle, and of one without it.

        Without it the follower is behind this vehicle's leader.
        """
        driver = Driver(*(value[follower] for value in fleet.driver))
        length = 0.5 * fleet.length[follower]
        gap = behind(follower) - length - 0.5 * fleet.length
        further = jnp.where(follower == index, 0, behind(follower)) + ahead(leader)
        without = further - length - 0.5 * fleet.length[leader]
        return (
            car_following.acceleration(driver, speed[follower], gap, forward),
            car_following.acceleration(driver, speed[follower], without, forward[leader]),
        )

    new_with, new_without = followers(new_follower, new_leader)
    old_with, old_without = followers(old_follower, old_leader)
    return Prospect(
        behind_leader(old_leader),
        behind_leader(new_leader),
        new_without,
        new_with,
        old_with,
        old_without,
    )


def change_lanes(
    traffic: Traffic, fleet: Fleet, order: Order, direction: Scalar, rules: Rules = HIGHWAY
) -> Traffic:
    """Let the others decide by MOBIL whether to change to the next lane.

    ``direction`` is 1 for the left lane, -1 for the right one, and 0 for none.
    """
    new = traffic.target + direction
    may = (
        (traffic.lane == traffic.target)
        & (new != traffic.target)
        & (new >= 0)
        & (new < rules.lanes)
        & rules.others_may(new)
        & (traffic.pose.speed > bicycle.CRAWL_SPEED)
        & ~is_ego(order.rank.shape[0])
    )
    wants = lane_changing.wants_to_change(
        prospect(traffic, fleet, order, direction), fleet.politeness
    )
    return traffic._replace(target=jnp.where(may & wants, new, traffic.target))


def look(
    traffic: Traffic, fleet: Fleet, direction: Scalar, rules: Rules = HIGHWAY
) -> tuple[Traffic, Leaders]:
    """Update lanes and leaders. Expects positions just made relative to the ego."""
    order = order_of(traffic.pose.x)
    traffic = change_lanes(traffic, fleet, order, direction, rules)
    return traffic, find_leaders(traffic, fleet, order)


# -- driving ---------------------------------------------------------------------------------------

# Function of the ego's pose that gives its acceleration (m/s^2) and sine of the slip angle.
Control = Callable[[Pose], tuple[Scalar, Scalar]]


def follow(traffic: Traffic, fleet: Fleet, leaders: Leaders) -> Scalar:
    """Return everyone's acceleration by IDM, m/s^2, limited to the hardest braking."""
    pose = traffic.pose
    forward = forward_speed(pose)

    def ratio_to(leader: Scalar, offset: Scalar) -> Scalar:
        gap = pose.x[leader] - pose.x + offset
        return car_following.gap_ratio(fleet.driver, pose.speed, gap, forward[leader])

    ratio = jnp.maximum(
        ratio_to(leaders.index, leaders.offset),
        ratio_to(leaders.target_index, leaders.target_offset),
    )
    acceleration = car_following.acceleration_at_ratio(fleet.driver, pose.speed, ratio)
    return jnp.maximum(acceleration, -bicycle.TYRE_BRAKING)


def substep(
    traffic: Traffic,
    fleet: Fleet,
    leaders: Leaders,
    crashed: Scalar,
    control: Control,
    rules: Rules = HIGHWAY,
) -> tuple[Traffic, Scalar]:
    """Move everyone by SUBSTEP and say whether the ego has crashed by then.

    After a crash time stands still.
    """
    pose = traffic.pose
    ego_acceleration, ego_slip = control(Pose(*(value[0] for value in pose)))
    ego = is_ego(pose.x.shape[0])
    acceleration = jnp.where(ego, ego_acceleration, follow(traffic, fleet, leaders))
    slip = jnp.where(
        ego, ego_slip, bicycle.steer_to(pose, lane_centre(traffic.target), fleet.length)
    )
    if rules.steady is not None:
        acceleration, slip = (jnp.where(rules.steady, 0, value) for value in (acceleration, slip))
    motion = bicycle.move(pose, acceleration, slip, fleet.length, SUBSTEP)
    hit = ego_crashes(pose, motion, fleet, rules)
    end = jax.tree.map(lambda new, old: jnp.where(crashed, old, new), motion.end, pose)
    return traffic._replace(pose=end), crashed | hit


def ego_crashes(start: Pose, motion: Motion, fleet: Fleet, rules: Rules = HIGHWAY) -> Scalar:
    """Say whether the ego touched a vehicle or an edge during a sub-step, or turned around."""
    everyone = Sweep(start, motion, fleet.length, fleet.width)
    ego: Sweep = jax.tree.map(lambda value: value[0], everyone)
    hit = (collision.collide(ego, everyone, SUBSTEP) & ~is_ego(start.x.shape[0])).any()
    half = 0.5 * (ego.length * jnp.abs(ego.motion.sine) + ego.width * jnp.abs(ego.motion.cosine))
    half = half + collision.turn_margin(ego) + collision.chord_margin(SUBSTEP)
    low = jnp.minimum(ego.start.y, ego.motion.end.y)
    high = jnp.maximum(ego.start.y, ego.motion.end.y)
    turned = jnp.abs(ego.motion.end.heading) > 0.5 * jnp.pi
    right, left = (
        rules.edges(ego.motion.end.x, ego.motion.end.y)
        if rules.edges
        else (0, LANE_WIDTH * rules.lanes)
    )
    return hit | (low < right + half) | (high > left - half) | turned


def drive(
    traffic: Traffic,
    fleet: Fleet,
    leaders: Leaders,
    crashed: Scalar,
    control: Control,
    substeps: Scalar,
    rules: Rules = HIGHWAY,
) -> tuple[Traffic, Scalar]:
    """Move everyone by ``substeps`` sub-steps, without new leaders."""

    def step(_: Any, carry: tuple[Traffic, Scalar]) -> tuple[Traffic, Scalar]:
        return substep(carry[0], fleet, leaders, carry[1], control, rules)

    return jax.lax.fori_loop(0, substeps, step, (traffic, crashed))
