"""The ego's situation by IDM and MOBIL, for reference players who follow and change lanes by them.

Such a player reads positions and speeds of the vehicles around it, as a driver does. It does not
know the others' parameters: MOBIL is applied with the usual driver in everyone's place. Keeping
right is an incentive in either direction (the bias of Kesting, Treiber & Helbing 2007,
doi:10.3141/1999-10, section on asymmetric rules).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..arrays import Scalar
from ..tasks.highway import (
    FASTER,
    IDLE,
    LEVELS,
    SLOWER,
    Road,
    State,
    ego_pose,
)
from ..traffic import lane_changing, traffic
from ..traffic.car_following import Driver
from ..traffic.fleet import TOP_SPEED
from ..traffic.traffic import Fleet, Rules

# Driver of the target speeds. Those end at 30 m/s; a desired speed far beyond that keeps the ego
# eager until then.
HURRIED_DRIVER = Driver(
    desired_speed=80.0, time_gap=0.475, jam_gap=1.3, acceleration=3.0, deceleration=4.0
)
USUAL_DRIVER = Driver(
    desired_speed=27.0, time_gap=1.4, jam_gap=2.0, acceleration=1.4, deceleration=2.0
)


class Situation(NamedTuple):
    """The driver's view of the road."""

    acceleration: Scalar  # Acceleration by IDM, m/s^2
    left: Scalar  # Incentive to change to the left, m/s^2; minus infinity if unsafe or impossible
    right: Scalar


def situation_of(
    mind: Driver,
    state: State,
    params: Fleet,
    target: Scalar,
    politeness: Scalar,
    keep_right: Scalar,
    rules: Rules,
) -> Situation:
    """Return the situation of an ego that drives like ``mind``.

    It is in the lane ``target``, or on its way there.
    """
    ego = traffic.is_ego(params.length.shape[0])
    guess = Driver(
        *(
            jnp.where(ego, a, b).astype(params.length.dtype)
            for a, b in zip(mind, USUAL_DRIVER, strict=True)
        )
    )
    fleet = params._replace(driver=guess)
    road = state.traffic._replace(target=jnp.where(ego, target, state.traffic.target))
    order = traffic.order_of(road.pose.x)
    acceleration = traffic.follow(road, fleet, traffic.find_leaders(road, fleet, order))[0]

    def gain_towards(direction: int) -> Scalar:
        prospect = jax.tree.map(
            lambda value: value[0], traffic.prospect(road, fleet, order, jnp.int32(direction))
        )
        gain = lane_changing.incentive(prospect, politeness) - keep_right * direction
        may_change = (target + direction >= 0) & (target + direction < rules.lanes)
        may_change = may_change & rules.ego_may(target, target + direction)
        return jnp.where(lane_changing.is_safe(prospect) & may_change, gain, -jnp.inf)

    return Situation(acceleration, gain_towards(1), gain_towards(-1))


def mind_for(task: Road, shipped: Driver) -> Driver:
    """Return the driver of an ego with the limits of a task.

    It brakes with at most two thirds of what the ego can.
    """
    if not {"acceleration", "braking", "top_speed"} & task.sheet.changed.keys():
        return shipped
    return shipped._replace(
        desired_speed=shipped.desired_speed * task.top_speed / TOP_SPEED,
        acceleration=task.acceleration,
        deceleration=min(4.0, task.braking * 2 / 3),
    )


def pace_towards(
    state: State,
    gained: Scalar,
    haste: Scalar,
    slowest: float,
    step: float,
) -> Scalar:
    """Return the action that moves the target speed by ``gained`` m/s and ``haste`` levels.

    Target speeds begin at ``slowest`` and are a ``step`` apart, m/s.
    """
    speed = ego_pose(state).speed + gained
    level = jnp.clip(jnp.floor((speed - slowest) * (1 / step) + haste), 0, LEVELS - 1)
    return jnp.where(level > state.level, FASTER, jnp.where(level < state.level, SLOWER, IDLE))
