"""Traffic on the lanes through a signalised junction.

Here is who follows whom, who stops at the line, and how vehicles enter and leave.

A lane runs from its entry (x = 0) past the stop line (x = approach) to its exit (EXIT_DISTANCE m
past the line). Its vehicles keep their order, so that the leader of slot i is slot i - 1:
neighbours are never searched. Every driver follows by the Intelligent Driver Model, and to a driver
who is held, the stop line is a standing leader. Positions are those of the front.

The step is ballistic: x grows by dt (v + v') / 2. No driver, whatever the model or a controller
asks for, exceeds the speed from which braking at B = 9 m/s^2 stops it behind the place where its
leader can stop at the same braking (:func:`.car_following.safe_speed`). From one safe state this
makes another, so bodies never overlap. Drivers hold at amber if they can stop at the line with 3
m/s^2, and at red if they can with B. They stay held until green.

Vehicles that arrive and find no room at the entry wait before it. Those that have left drive on, so
that followers keep their leader.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..arrays import Scalar
from ..roads.signal_plan import TICK, Lights
from ..vehicle.bicycle import TYRE_BRAKING
from .car_following import Driver, acceleration_at_ratio, gap_ratio, safe_speed

LENGTH = 5.0  # m of a car
EXIT_DISTANCE = 150.0  # m from the stop line to the exit
NO_LEADER_GAP = 1e6  # m: gap of the first vehicle of a lane
OUTSIDE_PLACE = -1.0  # m: position of a vehicle that has not entered
GENTLE_BRAKING = 3.0  # m/s^2: drivers who need more to stop at amber drive on


class Traffic(NamedTuple):
    """Vehicles of every lane in their order, each field ``(..., lanes, slots)``."""

    x: Scalar  # m from the entry
    v: Scalar  # m/s
    stops_at_light: Scalar  # bool: stops for the light


class Ahead(NamedTuple):
    """The leader of every vehicle."""

    gap: Scalar  # m from bumper to bumper; NO_LEADER_GAP without a leader
    v: Scalar  # m/s; 0 without one


def leaders(x: Scalar, v: Scalar, front: Scalar, length: Scalar = LENGTH) -> Ahead:
    """Return the leaders of vehicles whose fronts are at ``front``, m.

    The leaders are the vehicles at ``x`` with this ``length``.
    """
    first = jnp.arange(x.shape[-1]) == 0
    leader_rear = jnp.roll(x - length, 1, -1)
    leader_speed = jnp.roll(v, 1, -1)
    return Ahead(
        jnp.where(first, NO_LEADER_GAP, leader_rear - front), jnp.where(first, 0, leader_speed)
    )


def holds(traffic: Traffic, light: Lights, line: Scalar) -> jax.Array:
    """Return who stops for the light; its fields have the shape ``(lanes, 1)``."""
    to_line = jnp.maximum(line - traffic.x, 0)
    braking = jnp.where(light.amber, GENTLE_BRAKING, TYRE_BRAKING)
    approaches = (traffic.x >= 0) & (traffic.x < line)
    return ~light.green & (
        traffic.stops_at_light | (approaches & (traffic.v * traffic.v <= 2 * braking * to_line))
    )


def intention(traffic: Traffic, ahead: Ahead, driver: Driver, line: Scalar) -> jax.Array:
    """Return the acceleration that drivers choose by themselves, m/s^2, unlimited.

    Who is held is part of the traffic.
    """
    v = traffic.v
    to_line = jnp.maximum(line - traffic.x, 0)
    wall = jnp.where(traffic.stops_at_light, gap_ratio(driver, v, to_line, 0), 0)
    crowded = jnp.maximum(gap_ratio(driver, v, ahead.gap, ahead.v), wall)
    return acceleration_at_ratio(driver, v, crowded)


def move(traffic: Traffic, ahead: Ahead, acceleration: Scalar, line: Scalar) -> Traffic:
    """Return the vehicles one tick later, of which those outside stand."""
    x, v = traffic.x, traffic.v
    room = ahead.gap + ahead.v * ahead.v * (0.5 / TYRE_BRAKING)
    room = jnp.maximum(jnp.where(traffic.stops_at_light, jnp.minimum(room, line - x), room), 0)
    safe = safe_speed(v, room, TYRE_BRAKING, TICK)
    free_speed = v + TICK * jnp.maximum(acceleration, -TYRE_BRAKING)
    next_speed = jnp.maximum(jnp.minimum(free_speed, safe), 0)
    distance = jnp.minimum(0.5 * TICK * (v + next_speed), room)
    on = x >= 0
    return traffic._replace(x=jnp.where(on, x + distance, x), v=jnp.where(on, next_speed, 0))


def enter(traffic: Traffic, driver: Driver, arriving: Scalar, length: Scalar = LENGTH) -> Traffic:
    """Return the traffic with those that are ``arriving`` and find room: their jam gap.

    They enter at their desired speed, or at one from which they can brake comfortably behind their
    leader.
    """
    return admit(traffic, leaders(traffic.x, traffic.v, 0, length), driver, arriving)


def admit(traffic: Traffic, ahead: Ahead, driver: Driver, arriving: Scalar) -> Traffic:
    """Return the traffic with those that are ``arriving`` and find room.

    The room is that behind the leaders, who are ahead of the entry.
    """
    room = ahead.gap - driver.jam_gap
    enters = arriving & (traffic.x < 0) & (room >= 0)
    safe = jnp.sqrt(ahead.v * ahead.v + 2 * driver.deceleration * jnp.maximum(room, 0))
    speed = jnp.minimum(driver.desired_speed, safe)
    return traffic._replace(
        x=jnp.where(enters, 0, traffic.x), v=jnp.where(enters, speed, traffic.v)
    )
