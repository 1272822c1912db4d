"""Constants of the road, its drivers and the ego, and fleets sampled from them.

Typical parameters of drivers: Kesting, Treiber & Helbing 2010, doi:10.1098/rsta.2010.0084, table 1.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from rlbench_suite.contexts.context import Constant, weights
from rlbench_suite.core.task_card import TaskCard

from ...shared.alternating_bands import alternating_bands
from ...shared.own_constants import OwnConstants
from ..arrays import Scalar
from . import traffic
from .car_following import Driver
from .traffic import Fleet

MIN_TARGET_SPEED = 10.0  # m/s
MAX_TARGET_SPEED = 30.0  # m/s
MAX_ACCELERATION = 3.0  # m/s^2, of the ego
MAX_BRAKING = 6.0  # m/s^2, of the ego
TOP_SPEED = 40.0  # m/s, of the ego
# s of the best driving that a crash takes back at most: a whole episode of the usual length.
CRASH_SECONDS = 40.0
CAR_LENGTH = 5.0  # m
TRUCK_LENGTH = 12.0  # m
DENSITY_SPREAD = (0.9, 1.1)  # Range of an episode's density, as fractions of the difficulty's
DENSITY_BANDS = 20
# m: part of a vehicle's slot of road at the start that is left beyond the longest vehicle.
START_ROOM = 8.0
MAX_FIRST_SPEED = 20.0  # m/s, of the ego; it pays nothing
# Gap at the start, as a fraction of the desired one: it sets how fast vehicles drive at first.
START_GAP_FRACTION = 0.7
# Others do not know how the ego will drive: they take it for this driver.
USUAL_DRIVER = Driver(
    desired_speed=MAX_TARGET_SPEED, time_gap=1.4, jam_gap=2.0, acceleration=1.4, deceleration=2.0
)


def road_constants(density: float) -> tuple[Constant, ...]:
    """Return the constants of a road.

    Its density varies around ``density``, in vehicles a metre and lane.
    """
    sparse, dense = (float(f"{1000 * density * fraction:.6g}") for fraction in DENSITY_SPREAD)

    def fixed_constant(name: str, unit: str, value: float, meaning: str, **limits: Any) -> Constant:
        return Constant(name, unit, value, value, meaning, may_vary=False, **limits)

    return (
        Constant(
            "density", "", sparse, dense, "vehicles a kilometre and lane", bands=DENSITY_BANDS
        ),
        fixed_constant(
            "trucks",
            "",
            0.25,
            "largest share of trucks; the share is drawn from 0 on",
            maximum=1.0,
            minimum=0.0,
        ),
        Constant("car_speed", "m/s", 23.0, 31.0, "desired speed of cars", 60.0),
        Constant("truck_speed", "m/s", 20.0, 23.0, "desired speed of trucks", 60.0),
        Constant("time_gap", "s", 1.0, 1.8, "of the Intelligent Driver Model"),
        fixed_constant("jam_gap", "m", 2.0, "gap of standing vehicles"),
        Constant("car_acceleration", "m/s^2", 1.0, 2.0, "largest of cars"),
        Constant("truck_acceleration", "m/s^2", 0.6, 1.0, "largest of trucks"),
        Constant("comfortable_braking", "m/s^2", 1.5, 3.0, "", 9.0),
        Constant("politeness", "", 0.0, 0.5, "weight of others in lane changes", 1.0, minimum=0.0),
        fixed_constant("car_length", "m", CAR_LENGTH, "and of the ego", maximum=25.0, minimum=2.0),
        fixed_constant(
            "car_width", "m", 2.0, "and of the ego; lanes are 4 m wide", maximum=3.0, minimum=0.5
        ),
        fixed_constant("truck_length", "m", TRUCK_LENGTH, "", maximum=30.0, minimum=2.0),
        fixed_constant("truck_width", "m", 2.5, "", maximum=3.0, minimum=0.5),
        fixed_constant(
            "acceleration", "m/s^2", MAX_ACCELERATION, "largest of the ego", maximum=9.0
        ),
        fixed_constant(
            "braking", "m/s^2", MAX_BRAKING, "hardest of the ego; tyres hold 9", maximum=9.0
        ),
        fixed_constant(
            "top_speed", "m/s", TOP_SPEED, "of the ego", maximum=60.0, minimum=MAX_TARGET_SPEED
        ),
        *weights(
            speed=(1.0, "of the best driving, a step"),
            keep_right=(0.2, "part of it lost in the left lane"),
            crash=(CRASH_SECONDS, "s of shipped best driving that a crash takes back at most"),
            near_miss=(0.0, "taken off for a step that ends in a near miss"),
        ),
    )


def first_speed(constants: OwnConstants) -> float:
    """Return a first speed of the ego that fits the gaps, m/s."""
    slot = 2000 / sum(constants.range("density"))  # m of a lane for a vehicle
    gap = slot - constants.value("car_length")
    return max(
        MIN_TARGET_SPEED, min(MAX_FIRST_SPEED, START_GAP_FRACTION * gap / USUAL_DRIVER.time_gap)
    )


def start_gap(card: TaskCard, constants: OwnConstants, vehicles: int, lanes: int) -> float:
    """Return how much of a slot at the start the random positions leave free, m.

    Args:
        card: the task's.
        constants: of the road.
        vehicles: number of vehicles around the ring.
        lanes: number of lanes of the ring.

    Raises:
        ValueError: the vehicles do not fit the road at the start.
    """
    needed = max(constants.value("car_length"), constants.value("truck_length")) + START_ROOM
    _, dense = constants.range("density")
    slot = vehicles / lanes / -(-vehicles // lanes) / (dense / 1000)
    if slot < needed:
        raise ValueError(
            f"{card.id}: at density {dense:g} a vehicle has {slot:.1f} m of road, "
            f"and at least {needed:.1f} m are needed at the start."
        )
    return needed


def sample_density(
    constants: OwnConstants, density: float, unit: Scalar, split: jax.Array
) -> Scalar:
    """Sample the density, in vehicles a metre and lane.

    It varies around ``density``, or within the range of a user's own context.
    """
    if "density" in constants:
        return constants.sample("density", unit, split, scale=1e-3)
    return density * alternating_bands(unit, split, *DENSITY_SPREAD, DENSITY_BANDS)


def sample_fleet(
    constants: OwnConstants,
    density: float,
    u: jax.Array,
    split: jax.Array,
    vehicles: int,
    per_lane: float,
) -> Fleet:
    """Sample drivers, vehicles and density.

    Args:
        constants: of the road.
        density: vehicles a metre and lane, as shipped.
        u: uniform numbers, ``(5 * vehicles + 3,)``.
        split: a :class:`~rlbench_suite.core.task.Split` value.
        vehicles: number of vehicles, with the ego.
        per_lane: vehicles a lane, around the ring.
    """
    kind, speed, time_gap, eagerness, braking = (
        u[i * vehicles : (i + 1) * vehicles] for i in range(5)
    )
    u_politeness, u_trucks, u_density = u[-3], u[-2], u[-1]

    def sample(name: str, unit: Scalar) -> Scalar:
        return constants.sample(name, unit, split)

    ego = traffic.is_ego(vehicles)
    truck = (kind < constants.value("trucks") * u_trucks) & ~ego
    driver = Driver(
        desired_speed=jnp.where(truck, sample("truck_speed", speed), sample("car_speed", speed)),
        time_gap=sample("time_gap", time_gap),
        jam_gap=jnp.full(vehicles, constants.value("jam_gap"), u.dtype),
        acceleration=jnp.where(
            truck, sample("truck_acceleration", eagerness), sample("car_acceleration", eagerness)
        ),
        deceleration=sample("comfortable_braking", braking),
    )
    return Fleet(
        driver=Driver(
            *(
                jnp.where(ego, usual, sampled)
                for usual, sampled in zip(USUAL_DRIVER, driver, strict=True)
            )
        ),
        length=jnp.where(
            truck, constants.value("truck_length"), constants.value("car_length")
        ).astype(u.dtype),
        width=jnp.where(truck, constants.value("truck_width"), constants.value("car_width")).astype(
            u.dtype
        ),
        politeness=sample("politeness", u_politeness),
        circumference=per_lane / sample_density(constants, density, u_density, split),
    )
