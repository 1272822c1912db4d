"""Leave a highway by an exit on its right, from the leftmost lane.

The road is that of :mod:`.highway` (IDM, MOBIL, kinematic bicycle at 15 Hz, five decisions, once a second), with 48
vehicles on three lanes that close on themselves. The ego starts in the leftmost lane. Between 250 m and 420 m a fourth
lane lies on the right: the exit. There the exit parts from the highway, and the drive goes on along it. The others stay
on the highway.

highway-env's exit-v0 (Leurent 2018) pays almost nothing but the exit, and a crash costs nothing more than the exit
(idling earns .72, RIGHT .10 with a crash in every episode). Here speed pays as on the highway, and a crash or a missed
exit takes back all that was earned.

======================  ====================================================================================
action                  as in :mod:`.highway`. A change to the exit lane where it is not is IDLE
observation             as in :mod:`.highway`, with two entries before the neighbours: the way to the beginning of
                        the exit lane and to the place where it parts (by 150 m, cut off at +-1). Lane 0 is the exit
reward                  as in :mod:`.highway`: u (1 - 0.2 r), in [0, 1]. A crash or a missed exit takes back all
terminated              a crash; or the ego passes the exit
success                 the ego has left by the exit without a crash, and has overtaken more vehicles than have
                        overtaken it
start                   in the leftmost lane, at 20 m/s, in denser traffic at 15 or 10 m/s
cost                    1 for a step that ends in a crash or with less than 1.5 s to a collision, with a vehicle ahead
                        or with one behind: cutting in counts
context, difficulty     as in :mod:`.highway`; traffic on three lanes
======================  ====================================================================================

Source: Leurent 2018, highway-env, https://github.com/Farama-Foundation/HighwayEnv (exit-v0).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.component import Component
from rlbench_suite.policy import View

from . import lane_changing, traffic
from .bicycle import Pose
from .car_following import Driver, Scalar
from .highway import LANE_LEFT, LANE_RIGHT, SIGHT, Road, State, ego_pose, lane_of
from .merge import Merge
from .situation import HURRIED, follow_both, hurried_for, pace_towards, situation_of
from .traffic import LANE_WIDTH, Fleet, Rules, lane_centre

EXIT, GORE = 250.0, 420.0
"""m, from the start: where the exit lane begins, and where it parts from the highway."""
FLOWING, MAIN_LANES = 49, 3
"""Vehicles on the highway, with the ego, and its lanes."""


def rules_of(state: State) -> Rules:
    """Return the rules of the exit: only the ego uses it, and where it parts lies an edge on either side."""
    place = state.travelled

    def ego_may(lane: Scalar, new: Scalar) -> Scalar:
        return ((lane > 0) & (new > 0)) | ((place >= EXIT) & (place < GORE))

    def edges(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
        parted, right = x + place > GORE, y < LANE_WIDTH
        beside = (x + place < EXIT) | (parted & ~right)
        left = LANE_WIDTH * (MAIN_LANES + 1)
        return jnp.where(beside, LANE_WIDTH, 0), jnp.where(parted & right, LANE_WIDTH, left)

    return Rules(MAIN_LANES + 1, lambda new: new > 0, ego_may, edges)


class Exit(Merge):
    """Five meta-actions towards an exit, once a second."""

    vehicles = FLOWING
    lanes = MAIN_LANES + 1
    flowing = FLOWING, MAIN_LANES
    right_lane = 0

    def initial(self, key: jax.Array, params: Fleet) -> State:
        """Start every vehicle in slots of equal length, the ego in the leftmost lane."""
        x, column, speed = self.slots(self.uniform(key, FLOWING + MAIN_LANES), params, 0)
        lane = jnp.asarray(1 + (column + MAIN_LANES - 1) % MAIN_LANES, jnp.int32)
        speed = jnp.where(traffic.is_ego(FLOWING), self.first_speed, speed)
        return self.start(Pose(x, lane_centre(lane).astype(self.dtype), jnp.zeros_like(x), speed), lane, params)

    def road_rules(self, state: State) -> Rules:
        """Return the rules of the exit."""
        return rules_of(state)

    def see_road(self, state: State, params: Fleet) -> list[Scalar]:
        """Return the way to both ends of the exit lane."""
        return [jnp.clip((place - state.travelled) * (1 / SIGHT), -1, 1) for place in (EXIT, GORE)]

    def road_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`see_road`."""
        return (
            Component("exit", "way to the beginning of the exit lane; negative behind it", f"{SIGHT:g} m"),
            Component("gore", "way to the place where the exit parts; negative behind it", f"{SIGHT:g} m"),
        )

    def missed(self, state: State) -> Scalar:
        """Say whether the ego has passed the exit."""
        return (state.travelled > GORE) & (lane_of(ego_pose(state).y, self.lanes) > 0)

    def pay(self, before: State, after: State, params: Fleet) -> Scalar:
        """Return the reward of a step."""
        driven = super().pay(before, after, params)
        return jnp.where(self.missed(after), -jnp.clip(before.earned, 0, self.most_taken), driven)

    def terminal(self, state: State, key: jax.Array, params: Fleet) -> jax.Array:
        """Say whether the ego crashed or missed the exit."""
        return state.crashed | self.missed(state)

    def info(self, state: State, params: Fleet) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        measured = Road.info(self, state, params)
        left = (state.travelled > GORE) & ~self.missed(state)
        return measured | {"success": measured["success"] & left}

    def why_over(self, state: State, params: Fleet, info: dict[str, Any]) -> str:
        """Say what the ego hit, or that it missed the exit."""
        return super().why_over(state, params, info) if state.crashed else "the ego missed the exit"

    def kind(self, vehicle: int, params: Fleet) -> str:
        """Return what a vehicle is."""
        return Road.kind(self, vehicle, params)

    def describe_plan(self, state: State) -> str:
        """Describe target speed and lane, and the exit."""
        begin, end = EXIT - float(state.travelled), GORE - float(state.travelled)
        plan = super(Merge, self).describe_plan(state)
        if end < 0:
            return f"{plan} The exit lies behind."
        where = f"It begins in {begin:.0f} m" if begin > 0 else "It has begun"
        return f"{plan} Leave by lane 0, the exit. {where} and parts from the highway in {end:.0f} m."

    def grass(self, state: State) -> list[tuple[float, float, float, float]]:
        """Draw no exit lane before it begins, and a gap where it has parted."""
        place = float(state.travelled)
        return [
            (float("-inf"), EXIT - place, 0.0, LANE_WIDTH - 0.1),
            (GORE - place, float("inf"), LANE_WIDTH - 0.5, LANE_WIDTH + 0.5),
        ]


class ExitingDriver(NamedTuple):
    """Player of ``Exit``: the driver of ``Highway`` with an incentive to the right that grows towards the exit."""

    mind: Driver = HURRIED
    preview: Any = 1.5
    """s: how far ahead the speed of IDM is predicted."""
    haste: Any = 1.3
    """Speed levels that are added before the next lower level is taken."""
    politeness: Any = 0.1
    keep_right: Any = 0.3
    """m/s^2: incentive to change to the right"""
    urgency: Any = 4000.0
    """m^2/s^2: further incentive, divided by the way to the last place for the change"""
    spare: Any = 160.0
    """m: way that a change to the right takes"""
    early: Any = 45.0
    """m: way at which it begins to make room for the change"""

    @classmethod
    def for_task(cls, task: Road) -> ExitingDriver:
        """Make the player of an ego with these limits, in traffic of this density; it follows closely."""
        mind = hurried_for(task)
        return cls(mind._replace(time_gap=mind.time_gap - 0.075))

    def initial(self, params: Fleet) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return one of the five actions."""
        state: State = view.state
        target = state.traffic.target[0]
        settled = state.traffic.lane[0] == target
        way = GORE - state.travelled - self.spare * target
        bias = self.keep_right + self.urgency / jnp.maximum(way, 10.0)
        now = situation_of(self.mind, state, view.params, target, self.politeness, bias, rules_of(state))
        # Near the exit it also keeps its distance from the vehicle ahead in the lane that it must enter.
        aligned = follow_both(self.mind, state, view.params, jnp.maximum(target - 1, 0))
        hurried = (target > 0) & (way < self.early)
        pace = pace_towards(state, self.preview * jnp.where(hurried, aligned, now.acceleration), self.haste)
        left = jnp.where(target == 0, -jnp.inf, now.left)
        side = jnp.where(left >= now.right, LANE_LEFT, LANE_RIGHT)
        change = settled & (jnp.maximum(left, now.right) > lane_changing.THRESHOLD)
        return jnp.where(change, side, pace), memory
