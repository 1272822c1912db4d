"""Constants of the road, its drivers and the ego, and the fleets that are drawn from them.

Typical parameters of drivers: Kesting, Treiber & Helbing 2010, doi:10.1098/rsta.2010.0084, table 1.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from rlbench_suite.card import TaskCard
from rlbench_suite.context import Constant, weights

from ...alternating_bands import alternating_bands
from ...own_constants import OwnConstants
from ..arrays import Scalar
from . import traffic
from .car_following import Driver
from .traffic import Fleet

SLOWEST, FASTEST = 10.0, 30.0
"""m/s: range of target speeds."""
STRONGEST_ACCELERATION = 3.0
"""m/s^2: largest acceleration of the ego."""
STRONGEST_BRAKING = 6.0
"""m/s^2: hardest braking of the ego."""
TOP_SPEED = 40.0
"""m/s"""
KEEP_RIGHT = 0.2
"""Fraction of the reward lost in the left lane."""
CRASH = 40.0
"""s of the best driving: the most that a crash takes back. That is a whole episode at its usual length."""
CAR_LENGTH, CAR_WIDTH = 5.0, 2.0
TRUCK_LENGTH, TRUCK_WIDTH = 12.0, 2.5
"""m"""
TRUCKS = 0.25
"""Largest share of trucks."""
START_GAP = 20.0
"""m: gap of a slot at the start that a truck and the spread of positions leave."""
SLACK = START_GAP - TRUCK_LENGTH
"""m: part of it beyond the longest vehicle."""
CAR_SPEED, TRUCK_SPEED = (23.0, 31.0), (20.0, 23.0)
"""m/s: desired speeds."""
TIME_GAP, JAM_GAP = (1.0, 1.8), 2.0
"""s, m"""
CAR_ACCELERATION, TRUCK_ACCELERATION, COMFORTABLE_BRAKING = (1.0, 2.0), (0.6, 1.0), (1.5, 3.0)
"""m/s^2"""
POLITENESS = (0.0, 0.5)
START = 20.0
"""m/s: highest first speed of the ego, which pays nothing."""
CLOSE_GAPS = 0.7
"""Part of the gap that fits a speed at which the start leaves vehicles."""
USUAL_TIME_GAP = 1.4
"""s: time gap of the first speed, that of a usual driver."""


def road_constants(density: float) -> tuple[Constant, ...]:
    """Return the constants of a road with this many vehicles a metre and lane, within 10 %."""
    dense, sparse = (float(f"{1000 * density * part:.6g}") for part in (1.1, 0.9))

    def fixed(name: str, unit: str, value: float, meaning: str, **limits: Any) -> Constant:
        return Constant(name, unit, value, value, meaning, drawn=False, **limits)

    return (
        Constant("density", "", sparse, dense, "vehicles a kilometre and lane", bands=20),
        fixed("trucks", "", TRUCKS, "largest share of trucks; the share is drawn from 0 on", most=1.0, least=0.0),
        Constant("car_speed", "m/s", *CAR_SPEED, "desired speed of cars", 60.0),
        Constant("truck_speed", "m/s", *TRUCK_SPEED, "desired speed of trucks", 60.0),
        Constant("time_gap", "s", *TIME_GAP, "of the Intelligent Driver Model"),
        fixed("jam_gap", "m", JAM_GAP, "gap of standing vehicles"),
        Constant("car_acceleration", "m/s^2", *CAR_ACCELERATION, "largest of cars"),
        Constant("truck_acceleration", "m/s^2", *TRUCK_ACCELERATION, "largest of trucks"),
        Constant("comfortable_braking", "m/s^2", *COMFORTABLE_BRAKING, "", 9.0),
        Constant("politeness", "", *POLITENESS, "weight of others in lane changes", 1.0, least=0.0),
        fixed("car_length", "m", CAR_LENGTH, "and of the ego", most=25.0, least=2.0),
        fixed("car_width", "m", CAR_WIDTH, "and of the ego; lanes are 4 m wide", most=3.0, least=0.5),
        fixed("truck_length", "m", TRUCK_LENGTH, "", most=30.0, least=2.0),
        fixed("truck_width", "m", TRUCK_WIDTH, "", most=3.0, least=0.5),
        fixed("acceleration", "m/s^2", STRONGEST_ACCELERATION, "largest of the ego", most=9.0),
        fixed("braking", "m/s^2", STRONGEST_BRAKING, "hardest of the ego; tyres hold 9", most=9.0),
        fixed("top_speed", "m/s", TOP_SPEED, "of the ego", most=60.0, least=FASTEST),
        *weights(
            speed=(1.0, "of the best driving, a step"),
            keep_right=(KEEP_RIGHT, "part of it lost in the left lane"),
            crash=(CRASH, "s of shipped best driving that a crash takes back at most"),
            near_miss=(0.0, "taken off for a step that ends in a near miss"),
        ),
    )


def first_speed(own: OwnConstants) -> float:
    """Return a first speed of the ego that fits the gaps, m/s."""
    road = 2000 / sum(own.range("density"))  # m of a lane for a vehicle
    return max(SLOWEST, min(START, CLOSE_GAPS * (road - own.value("car_length")) / USUAL_TIME_GAP))


def start_gap(card: TaskCard, own: OwnConstants, vehicles: int, lanes: int) -> float:
    """Return the gap of a slot at the start that the longest vehicle and the spread of positions leave, m.

    Args:
        card: the task's.
        own: the constants.
        vehicles: number of vehicles around the ring.
        lanes: number of lanes of the ring.

    Raises:
        ValueError: the vehicles do not fit the road at the start.
    """
    needed = max(own.value("car_length"), own.value("truck_length")) + SLACK
    slot = vehicles / lanes / -(-vehicles // lanes) / (own.range("density")[1] / 1000)
    if slot < needed:
        raise ValueError(
            f"{card.id}: at density {own.range('density')[1]:g} a vehicle has {slot:.1f} m of road, "
            f"and at least {needed:.1f} m are needed at the start."
        )
    return needed


def drawn_fleet(
    own: OwnConstants, density: float, u: jax.Array, split: jax.Array, vehicles: int, per_lane: float
) -> Fleet:
    """Draw drivers, vehicles and density.

    Args:
        own: the constants.
        density: vehicles a metre and lane, as shipped.
        u: uniform numbers, ``(5 * vehicles + 3,)``.
        split: a :class:`~rlbench_suite.task.Split` value.
        vehicles: number of vehicles, with the ego.
        per_lane: vehicles a lane, around the ring.
    """

    def drawn(name: str, unit: Scalar, shipped: Scalar, scale: float = 1.0) -> Scalar:
        return own.draw(name, unit, split, shipped, scale)

    drawn_density = drawn("density", u[-1], density * alternating_bands(u[-1], split, 0.9, 1.1, bands=20), 1e-3)
    kind, speed, time_gap, eagerness, braking = (u[i * vehicles : (i + 1) * vehicles] for i in range(5))
    ego = traffic.is_ego(vehicles)
    truck = (kind < own.value("trucks") * u[-2]) & ~ego
    driver = Driver(
        desired_speed=jnp.where(
            truck, drawn("truck_speed", speed, 20 + 3 * speed), drawn("car_speed", speed, 23 + 8 * speed)
        ),
        time_gap=drawn("time_gap", time_gap, 1 + 0.8 * time_gap),
        jam_gap=jnp.full(vehicles, own.value("jam_gap"), u.dtype),
        acceleration=jnp.where(
            truck,
            drawn("truck_acceleration", eagerness, 0.6 + 0.4 * eagerness),
            drawn("car_acceleration", eagerness, 1 + eagerness),
        ),
        deceleration=drawn("comfortable_braking", braking, 1.5 + 1.5 * braking),
    )
    # Others do not know how the ego will drive: they take it for a usual driver.
    usual = Driver(FASTEST, 1.4, 2.0, 1.4, 2.0)
    return Fleet(
        driver=Driver(*(jnp.where(ego, mine, theirs) for mine, theirs in zip(usual, driver, strict=True))),
        length=jnp.where(truck, own.value("truck_length"), own.value("car_length")).astype(u.dtype),
        width=jnp.where(truck, own.value("truck_width"), own.value("car_width")).astype(u.dtype),
        politeness=drawn("politeness", u[-3], 0.5 * u[-3]),
        circumference=per_lane / drawn_density,
    )
