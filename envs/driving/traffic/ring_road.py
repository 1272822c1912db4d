"""Cars on one lane that closes on itself, each behind the same leader for ever.

Some are humans, and others are driven from outside.

Car i follows car i - 1, and car 0 follows the last one. The state is the gap to the leader and the
speed, so positions are not needed and neighbours are never searched. Accelerations last for a tick
of half a second, in which a car that brakes to a stop stays where it stops.

Humans follow by the Intelligent Driver Model with random accelerations on top. They never exceed
the acceleration after which braking at B = 4 m/s^2 stops them behind the place where their leader
can stop at the same braking (:func:`.car_following.safe_speed`). Where no such speed is left, they
stop within that room. From one safe state this makes another, so nobody collides if all keep this
bound (:func:`safe`) and brake no harder than B.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from ..arrays import Scalar
from .car_following import Driver, acceleration, safe_speed

TICK = 0.5  # s
BRAKING = 4.0  # m/s^2: the hardest braking, and the largest acceleration
LENGTH = 5.0  # m of a car


class Ring(NamedTuple):
    """All cars in their order; arrays ``(..., cars)``."""

    gap: Scalar  # m from bumper to bumper
    v: Scalar  # m/s


def leader_value(values: Scalar) -> Scalar:
    """Return the value of each car's leader."""
    return jnp.roll(values, 1, -1)


def safe_acceleration(gap: Scalar, v: Scalar, leader_v: Scalar) -> Scalar:
    """Return the largest acceleration that leaves room to stop, m/s^2, at least -B."""
    room = jnp.maximum(gap + leader_v * leader_v * (0.5 / BRAKING), 0)
    safe_v = safe_speed(v, room, BRAKING, TICK)
    stops = jnp.where(room > 0, -0.5 * v * v / jnp.where(room > 0, room, 1), -BRAKING)
    return jnp.maximum(jnp.where(safe_v >= 0, (safe_v - v) * (1 / TICK), stops), -BRAKING)


def human_acceleration(ring: Ring, driver: Driver, disturbance: Scalar) -> Scalar:
    """Return the accelerations of humans, m/s^2, each with its own ``disturbance``."""
    leader = leader_value(ring.v)
    free_acceleration = acceleration(driver, ring.v, ring.gap, leader) + disturbance
    return jnp.clip(
        jnp.minimum(free_acceleration, safe_acceleration(ring.gap, ring.v, leader)),
        -BRAKING,
        BRAKING,
    )


def move(ring: Ring, pedal: Scalar) -> Ring:
    """Return the cars a tick later."""
    v = ring.v
    next_v = jnp.maximum(v + TICK * pedal, 0)
    # A car that stops within the tick covers v^2 / 2 |a|.
    stops = v + TICK * pedal < 0
    distance = jnp.where(
        stops, 0.5 * v * v / jnp.where(stops, -pedal, 1), 0.5 * TICK * (v + next_v)
    )
    return Ring(ring.gap + leader_value(distance) - distance, next_v)
