"""The reference players: a driver who follows by IDM and changes lanes by MOBIL, through the task's own actions.

It reads positions and speeds of the vehicles around it, as a driver does. It does not know the others' parameters:
MOBIL is applied with the usual driver in everyone's place. Keeping right is an incentive in either direction (the bias
of Kesting, Treiber & Helbing 2007, doi:10.3141/1999-10, section on asymmetric rules).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.policy import View

from . import bicycle, highway, lane_changing, traffic
from .car_following import Driver, Scalar
from .highway import FASTER, IDLE, LANE_LEFT, LANE_RIGHT, LEVEL_STEP, LEVELS, SLOWER, SLOWEST, Road, State, ego_pose
from .road_constants import STRONGEST_ACCELERATION, STRONGEST_BRAKING, TOP_SPEED
from .traffic import HIGHWAY, Fleet, Rules

EGO = Driver(desired_speed=50.0, time_gap=0.3, jam_gap=2.0, acceleration=6.0, deceleration=4.0)
"""Driver of the pedals, keener than the pedals, which bound it: gaps are as short as the limit of the cost allows."""
HURRIED = Driver(desired_speed=80.0, time_gap=0.475, jam_gap=1.3, acceleration=3.0, deceleration=4.0)
"""Driver of the target speeds. Those end at 30 m/s; a desired speed far beyond that keeps the ego eager until then."""
USUAL = Driver(desired_speed=27.0, time_gap=1.4, jam_gap=2.0, acceleration=1.4, deceleration=2.0)
POLITENESS = 0.1
KEEP_RIGHT = 0.2
"""m/s^2: bias of the incentive to the right."""


class Situation(NamedTuple):
    """The driver's view of the road."""

    acceleration: Scalar
    """Acceleration by IDM, m/s^2."""
    left: Scalar
    """Incentive to change to the left, m/s^2; minus infinity if unsafe or impossible."""
    right: Scalar


def situation_of(
    mind: Driver,
    state: State,
    params: Fleet,
    target: Scalar,
    politeness: Scalar,
    keep_right: Scalar,
    rules: Rules = HIGHWAY,
) -> Situation:
    """Return the ego's situation, on its way to or in the lane ``target``, for a driver of these parameters."""
    ego = traffic.is_ego(params.length.shape[0])
    guess = Driver(*(jnp.where(ego, a, b).astype(params.length.dtype) for a, b in zip(mind, USUAL, strict=True)))
    fleet = params._replace(driver=guess)
    road = state.traffic._replace(target=jnp.where(ego, target, state.traffic.target))
    place = traffic.ranks(road.pose.x)
    acceleration = traffic.follow(road, fleet, traffic.find_leaders(road, fleet, place))[0]

    def towards(direction: int) -> Scalar:
        prospect = jax.tree.map(lambda value: value[0], traffic.prospect(road, fleet, place, jnp.int32(direction)))
        gain = lane_changing.incentive(prospect, politeness) - keep_right * direction
        there = (target + direction >= 0) & (target + direction < rules.lanes)
        there = there & rules.ego_may(target, target + direction)
        return jnp.where(lane_changing.is_safe(prospect) & there, gain, -jnp.inf)

    return Situation(acceleration, towards(1), towards(-1))


def follow_both(mind: Driver, state: State, params: Fleet, beside: Scalar) -> Scalar:
    """Return the ego's acceleration (m/s^2) by IDM behind the vehicles ahead in its lane and in the lane ``beside``."""
    now = state.traffic
    ego = traffic.is_ego(params.length.shape[0])
    drivers = Driver(
        *(jnp.where(ego, a, b).astype(params.length.dtype) for a, b in zip(mind, params.driver, strict=True))
    )
    fleet = params._replace(driver=drivers)
    road = now._replace(lane=jnp.where(ego, now.target, now.lane), target=jnp.where(ego, beside, now.target))
    leaders = traffic.find_leaders(road, fleet, traffic.ranks(road.pose.x))
    return traffic.follow(road, fleet, leaders)[0]


def mind_for(task: Road, shipped: Driver) -> Driver:
    """Return the driver of an ego with the limits of a task; it brakes with two thirds of what it can."""
    if not {"acceleration", "braking", "top_speed"} & task.own.own.keys():
        return shipped
    return shipped._replace(
        desired_speed=shipped.desired_speed * task.top_speed / TOP_SPEED,
        acceleration=task.acceleration,
        deceleration=min(4.0, task.braking * 2 / 3),
    )


def pace_towards(
    state: State, gained: Scalar, haste: Scalar, slowest: float = SLOWEST, step: float = LEVEL_STEP
) -> Scalar:
    """Return the action that moves the target speed towards a gain of speed (m/s); ``haste`` levels are added.

    Target speeds begin at ``slowest`` and are a ``step`` apart, m/s.
    """
    speed = ego_pose(state).speed + gained
    level = jnp.clip(jnp.floor((speed - slowest) * (1 / step) + haste), 0, LEVELS - 1)
    return jnp.where(level > state.level, FASTER, jnp.where(level < state.level, SLOWER, IDLE))


def hurried_for(task: Road) -> Driver:
    """Return the driver of the target speeds. It keeps a longer time gap in dense traffic, to keep the cost's limit."""
    mind = mind_for(task, HURRIED)
    return mind._replace(time_gap=mind.time_gap + 0.02 * max(1000 * task.density - 16, 0))


class ReferenceDriver(NamedTuple):
    """Player of ``Highway``: it changes lanes if worthwhile, else moves the target speed towards that of IDM."""

    mind: Driver = HURRIED
    preview: Any = 1.0
    """s: how far ahead the speed of IDM is predicted."""
    haste: Any = 1.32
    """Speed levels that are added before the next lower level is taken."""
    politeness: Any = POLITENESS
    keep_right: Any = 0.3

    @classmethod
    def for_task(cls, task: Road) -> ReferenceDriver:
        """Make the player of an ego with these limits, in traffic of this density."""
        return cls(hurried_for(task))

    def initial(self, params: Fleet) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return one of the five actions."""
        state: State = view.state
        settled = state.traffic.lane[0] == state.traffic.target[0]
        situation = situation_of(
            self.mind, state, view.params, state.traffic.target[0], self.politeness, self.keep_right
        )
        pace = pace_towards(state, self.preview * situation.acceleration, self.haste)
        side = jnp.where(situation.left >= situation.right, LANE_LEFT, LANE_RIGHT)
        best = jnp.maximum(situation.left, situation.right)
        change = settled & (best > lane_changing.THRESHOLD)
        return jnp.where(change, side, pace), memory


class ContinuousReferenceDriver(NamedTuple):
    """Player of ``HighwayContinuous``: it accelerates by IDM and steers along its target lane, which it remembers."""

    mind: Driver = EGO
    acceleration: Any = STRONGEST_ACCELERATION
    braking: Any = STRONGEST_BRAKING
    """m/s^2: limits of the ego"""
    politeness: Any = POLITENESS
    keep_right: Any = KEEP_RIGHT

    @classmethod
    def for_task(cls, task: Road) -> ContinuousReferenceDriver:
        """Make the player of an ego with these limits."""
        return cls(mind_for(task, EGO), task.acceleration, task.braking)

    def initial(self, params: Fleet) -> Scalar:
        """Return the memory: no lane chosen yet."""
        return jnp.int32(-1)

    def act(self, memory: Scalar, view: View, key: jax.Array) -> tuple[jax.Array, Scalar]:
        """Return acceleration and steering, shape ``(2,)``."""
        state: State = view.state
        ego, length = ego_pose(state), view.params.length[0]
        target = jnp.where(memory < 0, highway.lane_of(ego.y), memory)
        settled = jnp.abs(ego.y - traffic.lane_centre(target)) < 0.25 * traffic.LANE_WIDTH
        situation = situation_of(self.mind, state, view.params, target, self.politeness, self.keep_right)
        best = jnp.maximum(situation.left, situation.right)
        aside = jnp.where(situation.left >= situation.right, 1, -1)
        change = settled & (best > lane_changing.THRESHOLD)
        target = jnp.where(change, target + aside, target).astype(jnp.int32)
        wanted = situation.acceleration
        limit = jnp.where(wanted > 0, self.acceleration, self.braking)
        slip = bicycle.steer_to(ego, traffic.lane_centre(target), length)
        action = jnp.stack([wanted / limit, slip / bicycle.slip_bound(ego.speed, length)])
        return jnp.clip(action, -1, 1), target
