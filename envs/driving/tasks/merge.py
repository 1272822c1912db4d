"""Merge from a ramp into the traffic of a highway before the acceleration lane ends.

The road is that of ``highway.py`` (IDM, MOBIL, kinematic bicycle at 15 Hz, five decisions, once a
second), with 40 cars and trucks on two lanes that close on themselves. The ego comes on a ramp
beside them, where nobody else drives. From 150 m on it may change to the highway. At 400 m the ramp
ends at a barrier. Behind it the drive goes on.

highway-env's merge-v0 (Leurent 2018) lets the ego drive on the highway while a scripted car merges.
There, braking pays best, because the episode ends at the end of the road and each step pays (SLOWER
earns 13.3, IDLE 5.2). Here the ego merges, an episode lasts 25 s whatever happens, and only speed
above the first one pays.

======================  ============================================================================
action                  as in ``highway.py``. A change onto the ramp, or off it before 150 m, is
                        IDLE
observation             as in ``highway.py``, with two entries before the neighbours: the way to the
                        place where the ego may merge, and to the barrier (by 150 m, cut off at
                        +-1). Lane 0 is the ramp
reward                  as in ``highway.py``: u (1 - 0.2 r), in [0, 1]; lane 1 counts as the right
                        lane. A crash takes back all that the episode has earned
terminated              a crash: the ego touches a vehicle, the barrier or an edge of the road
success                 no crash, past the barrier, and more vehicles overtaken than have overtaken
                        the ego
start                   on the ramp, at 20 m/s, in denser traffic at 15 or 10 m/s
cost                    1 for a step that ends in a crash or with less than 1.5 s to a collision,
                        with a vehicle ahead or with one behind: cutting in counts
context, difficulty     as in ``highway.py``; traffic on two lanes
======================  ============================================================================

Source: Leurent 2018, highway-env, https://github.com/Farama-Foundation/HighwayEnv (merge-v0).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View

from ..arrays import Scalar
from ..players.gap_testing import EGO_LANE, LEFT, GapTestingDriver, Manner, pace, see_ego, see_lanes
from ..traffic import traffic
from ..traffic.traffic import LANE_WIDTH, Fleet, Rules, lane_centre
from ..vehicle.bicycle import Pose
from .highway import LANE_LEFT, LEVELS, MAX_TTC, SIGHT, Highway, State

MERGING_BEGIN = 150.0  # m from the start to the place where the ego may begin to merge
BARRIER = 400.0  # m from the start to the end of the ramp
NUM_FLOWING = 40  # Vehicles on the highway
MAIN_LANES = 2  # Lanes of the highway
VEHICLES = NUM_FLOWING + 2  # With the ego, number 0, and the barrier, number 1
# Gaps that the reference takes on the ramp
RAMP_MANNER = Manner(
    0.238,
    1.0,
    closing=7.0,
    closing_second=4.4,
    remaining_gap_ahead=2.14,
    lookahead_ahead=2.84,
    remaining_gap_behind=1.57,
    lookahead_behind=0.9,
)


def rules_of(state: State) -> Rules:
    """Return the rules of the ramp: nobody enters it, and the ego leaves it between both places."""
    place = state.travelled

    def ego_may(lane: Scalar, new: Scalar) -> Scalar:
        return (new > 0) & ((lane > 0) | ((place >= MERGING_BEGIN) & (place < BARRIER)))

    def edges(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
        return jnp.where(x + place > BARRIER, LANE_WIDTH, 0), LANE_WIDTH * (MAIN_LANES + 1)

    return Rules(MAIN_LANES + 1, lambda new: new > 0, ego_may, edges, jnp.arange(VEHICLES) == 1)


class Merge(Highway):
    """Five meta-actions on a ramp, once a second."""

    vehicles = VEHICLES
    lanes = MAIN_LANES + 1
    flowing = NUM_FLOWING, MAIN_LANES
    right_lane = 1
    measures = Highway.measures | {
        "time_to_collision": (
            "with a vehicle ahead or behind in its lanes, at present speeds, at most "
            f"{MAX_TTC:.0f}, s"
        )
    }

    def initial(self, key: jax.Array, params: Fleet) -> State:
        """Start the highway's traffic in slots of equal length, and the ego on the ramp.

        The ego starts at the beginning of the ramp.
        """
        x, column, speed = self.slots(self.uniform(key, NUM_FLOWING + MAIN_LANES), params, 2)
        ramp = [0.0, BARRIER + 0.5 * params.length[1]]
        x = jnp.concatenate([self.stack(*ramp), x])
        lane = jnp.concatenate([jnp.zeros(2, jnp.int32), jnp.asarray(1 + column, jnp.int32)])
        speed = jnp.concatenate([self.stack(self.first_speed, 0.0), speed])
        return self.start(
            Pose(x, lane_centre(lane).astype(self.dtype), jnp.zeros_like(x), speed), lane, params
        )

    def road_rules(self, state: State) -> Rules:
        """Return the rules of the ramp."""
        return rules_of(state)

    def see_road(self, state: State, params: Fleet) -> list[Scalar]:
        """Return the way to both ends of the place for merging."""
        return [
            jnp.clip((place - state.travelled) * (1 / SIGHT), -1, 1)
            for place in (MERGING_BEGIN, BARRIER)
        ]

    def road_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`see_road`."""
        return (
            Component(
                "merging",
                "way to the place where it may leave the ramp; negative behind it",
                f"{SIGHT:g} m",
            ),
            Component("barrier", "way to the end of the ramp; negative behind it", f"{SIGHT:g} m"),
        )

    def time_to_collision(self, state: State, params: Fleet) -> Scalar:
        """Return the time (s) to a collision with the vehicles ahead and behind in the ego's lanes.

        It is MAX_TTC at most.
        """
        return jnp.minimum(
            super().time_to_collision(state, params), self.time_to_be_hit(state, params)
        )

    def time_to_be_hit(self, state: State, params: Fleet) -> Scalar:
        """Return the time (s) until the vehicle behind, in the ego's lanes, would hit it.

        It is MAX_TTC at most.
        """
        forward = traffic.forward_speed(state.traffic.pose)
        place = traffic.ranks(state.traffic.pose.x)

        def behind(lane: Scalar) -> Scalar:
            follower, gap = self.neighbours(state, params, place, lane)[2]
            closing = forward[follower] - forward[0]
            time = jnp.maximum(gap, 0) / jnp.where(closing > 0, closing, 1)
            return jnp.where((closing > 0) & (follower != 0), jnp.minimum(time, MAX_TTC), MAX_TTC)

        return jnp.minimum(behind(state.traffic.lane[0]), behind(state.traffic.target[0]))

    def info(self, state: State, params: Fleet) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        measured = super().info(state, params)
        return measured | {"success": measured["success"] & (state.travelled > BARRIER)}

    def kind(self, vehicle: int, params: Fleet) -> str:
        """Return what a vehicle is."""
        return "barrier" if vehicle == 1 else super().kind(vehicle, params)

    def describe_plan(self, state: State) -> str:
        """Describe target speed and lane, and the ramp."""
        begin, end = MERGING_BEGIN - float(state.travelled), BARRIER - float(state.travelled)
        if end < 0:
            return super().describe_plan(state)
        when = f"in {begin:.0f} m" if begin > 0 else "from here on"
        ramp = f"Lane 0 is a ramp. It may be left {when}, and it ends at a barrier in {end:.0f} m."
        return f"{super().describe_plan(state)} {ramp}"

    def grass(self, state: State) -> list[tuple[float, float, float, float]]:
        """Draw no ramp behind the barrier, and a gap beside the ramp."""
        place = float(state.travelled)
        return [
            (BARRIER - place, float("inf"), 0.0, LANE_WIDTH - 0.1),
            (float("-inf"), MERGING_BEGIN - place, LANE_WIDTH - 0.5, LANE_WIDTH + 0.5),
        ]


class MergingDriver(NamedTuple):
    """Player of ``Merge``: that of ``Highway``, and on the ramp it takes the first gap that lasts.

    The ramp is empty, so it passes the traffic beside it first.
    """

    road: GapTestingDriver
    ramp: Manner
    slack: Scalar = 2.35  # m/s, on the ramp: as that of the highway
    # m, behind the place for merging: from here on it drives no faster than it may in the lane
    # beside it
    aligned: Scalar = 110.0

    @classmethod
    def for_task(cls, task: Merge) -> MergingDriver:
        """Make the player of an ego with the limits of a task."""
        return cls(GapTestingDriver.for_task(task), RAMP_MANNER.for_task(task))

    def initial(self, params: Fleet) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return one of the five actions."""
        ego = see_ego(view.observation, Merge.own_entries)
        way_to_merging = view.observation[Merge.own_entries] * SIGHT
        on_ramp = ego.target_lane == 0
        speed = ego.speed * self.road.top_speed
        lanes = see_lanes(view.observation, Merge.speed_scale)
        speeds = self.ramp.speeds(lanes, speed)
        has_gap = self.ramp.has_lasting_gap(lanes)[LEFT]
        beside = jnp.where(has_gap, speeds[LEFT], jnp.minimum(speeds[LEFT], speed))
        max_speed = jnp.where(
            way_to_merging < -self.aligned, jnp.minimum(speeds[EGO_LANE], beside), speeds[EGO_LANE]
        )
        merge = has_gap & (way_to_merging <= 0) & (ego.changing == 0)
        ramp = jnp.where(
            merge, LANE_LEFT, pace(ego.speed_to_keep * (LEVELS - 1), max_speed, self.slack)
        )
        road, _ = self.road.act((), view, key)
        return jnp.where(on_ramp, ramp, road), memory
