"""Leave a highway by an exit on its right, from the leftmost lane.

The road is that of ``highway.py`` (IDM, MOBIL, kinematic bicycle at 15 Hz, five decisions, once a
second), with 48 vehicles on three lanes that close on themselves. The ego starts in the leftmost
lane. Between 250 m and 420 m a fourth lane lies on the right: the exit. There the exit parts from
the highway, and the drive goes on along it. The others stay on the highway.

highway-env's exit-v0 (Leurent 2018) pays almost nothing but the exit, and a crash costs nothing
more than the exit (idling earns .72, RIGHT .10 with a crash in every episode). Here speed pays as
on the highway, and a crash or a missed exit takes back all that was earned.

======================  ============================================================================
action                  as in ``highway.py``. A change to the exit lane where it is not is IDLE
observation             as in ``highway.py``, with two entries before the neighbours: the way to the
                        beginning of the exit lane and to the place where it parts (by 150 m, cut
                        off at +-1). Lane 0 is the exit
reward                  as in ``highway.py``: u (1 - 0.2 r), in [0, 1]. A crash or a missed exit
                        takes back all
terminated              a crash; or the ego passes the exit
success                 the ego has left by the exit without a crash, and has overtaken more
                        vehicles than have overtaken it
start                   in the leftmost lane, at 20 m/s, in denser traffic at 15 or 10 m/s
cost                    1 for a step that ends in a crash or with less than 1.5 s to a collision,
                        with a vehicle ahead or with one behind: cutting in counts
context, difficulty     as in ``highway.py``; traffic on three lanes
======================  ============================================================================

Source: Leurent 2018, highway-env, https://github.com/Farama-Foundation/HighwayEnv (exit-v0).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, privileged_player

from ..arrays import Scalar
from ..players.gap_testing import EGO_LANE, LEFT, RIGHT, Manner, pace, see_ego, see_lanes
from ..traffic import traffic
from ..traffic.fleet import TOP_SPEED
from ..traffic.traffic import LANE_WIDTH, Fleet, Rules, lane_centre
from ..vehicle.bicycle import Pose
from .highway import (
    LANE_LEFT,
    LANE_RIGHT,
    LEVELS,
    MIN_TARGET_SPEED,
    SIGHT,
    Road,
    State,
    ego_pose,
    lane_of,
)
from .merge import Merge

EXIT_BEGIN = 250.0  # m from the start to the beginning of the exit lane
GORE = 420.0  # m from the start to the place where the exit lane parts from the highway
NUM_FLOWING = 49  # Vehicles on the highway, with the ego
MAIN_LANES = 3  # Lanes of the highway
# Gaps that the reference takes
EXIT_MANNER = Manner(
    0.28,
    1.6,
    closing=2.8,
    closing_second=3.8,
    remaining_gap_ahead=3.0,
    lookahead_ahead=2.2,
    remaining_gap_behind=0.8,
    lookahead_behind=1.3,
)


def rules_of(state: State) -> Rules:
    """Return the rules of the exit, which only the ego uses.

    Where it parts from the highway, an edge lies on either side.
    """
    place = state.travelled

    def ego_may(lane: Scalar, new: Scalar) -> Scalar:
        return ((lane > 0) & (new > 0)) | ((place >= EXIT_BEGIN) & (place < GORE))

    def edges(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
        parted = x + place > GORE
        right = y < LANE_WIDTH
        beside = (x + place < EXIT_BEGIN) | (parted & ~right)
        left_edge = LANE_WIDTH * (MAIN_LANES + 1)
        return jnp.where(beside, LANE_WIDTH, 0), jnp.where(parted & right, LANE_WIDTH, left_edge)

    return Rules(MAIN_LANES + 1, lambda new: new > 0, ego_may, edges)


class Exit(Merge):
    """Five meta-actions towards an exit, once a second."""

    vehicles = NUM_FLOWING
    lanes = MAIN_LANES + 1
    flowing = NUM_FLOWING, MAIN_LANES
    right_lane = 0

    def initial(self, key: jax.Array, params: Fleet) -> State:
        """Start every vehicle in slots of equal length, the ego in the leftmost lane."""
        x, column, speed = self.slots(self.uniform(key, NUM_FLOWING + MAIN_LANES), params, 0)
        lane = jnp.asarray(1 + (column + MAIN_LANES - 1) % MAIN_LANES, jnp.int32)
        speed = jnp.where(traffic.is_ego(NUM_FLOWING), self.first_speed, speed)
        return self.start(
            Pose(x, lane_centre(lane).astype(self.dtype), jnp.zeros_like(x), speed), lane, params
        )

    def road_rules(self, state: State) -> Rules:
        """Return the rules of the exit."""
        return rules_of(state)

    def see_road(self, state: State, params: Fleet) -> list[Scalar]:
        """Return the way to both ends of the exit lane."""
        return [
            jnp.clip((place - state.travelled) * (1 / SIGHT), -1, 1) for place in (EXIT_BEGIN, GORE)
        ]

    def road_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`see_road`."""
        return (
            Component(
                "exit", "way to the beginning of the exit lane; negative behind it", f"{SIGHT:g} m"
            ),
            Component(
                "gore", "way to the place where the exit parts; negative behind it", f"{SIGHT:g} m"
            ),
        )

    def has_missed(self, state: State) -> Scalar:
        """Say whether the ego has passed the exit."""
        return (state.travelled > GORE) & (lane_of(ego_pose(state).y, self.lanes) > 0)

    def pay(self, state: State, next_state: State, params: Fleet) -> Scalar:
        """Return the reward of a step."""
        reward = super().pay(state, next_state, params)
        return jnp.where(
            self.has_missed(next_state), -jnp.clip(state.earned, 0, self.max_crash_loss), reward
        )

    def terminal(self, state: State, key: jax.Array, params: Fleet) -> jax.Array:
        """Say whether the ego crashed or missed the exit."""
        return state.crashed | self.has_missed(state)

    def info(self, state: State, params: Fleet) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        measured = Road.info(self, state, params)
        has_left = (state.travelled > GORE) & ~self.has_missed(state)
        return measured | {"success": measured["success"] & has_left}

    def why_over(self, state: State, params: Fleet, info: dict[str, Any]) -> str:
        """Say what the ego hit, or that it missed the exit."""
        return super().why_over(state, params, info) if state.crashed else "the ego missed the exit"

    def kind(self, vehicle: int, params: Fleet) -> str:
        """Return what a vehicle is."""
        return Road.kind(self, vehicle, params)

    def describe_plan(self, state: State) -> str:
        """Describe target speed and lane, and the exit."""
        begin, end = EXIT_BEGIN - float(state.travelled), GORE - float(state.travelled)
        plan = super(Merge, self).describe_plan(state)
        if end < 0:
            return f"{plan} The exit lies behind."
        where = f"It begins in {begin:.0f} m" if begin > 0 else "It has begun"
        return (
            f"{plan} Leave by lane 0, the exit. {where} and parts from the highway in {end:.0f} m."
        )

    def grass(self, state: State) -> list[tuple[float, float, float, float]]:
        """Draw no exit lane before it begins, and a gap where it has parted."""
        place = float(state.travelled)
        return [
            (float("-inf"), EXIT_BEGIN - place, 0.0, LANE_WIDTH - 0.1),
            (GORE - place, float("inf"), LANE_WIDTH - 0.5, LANE_WIDTH + 0.5),
        ]


@privileged_player
class ExitingDriver(NamedTuple):
    """Player of ``Exit``, which tests gaps.

    The nearer the exit, the slower a lane to the right may be.
    """

    manner: Manner
    slack: Scalar = (
        1.3  # m/s above the possible speed from which it takes the next lower target speed
    )
    faster: Scalar = 4.4  # m/s by which a lane to the left must be faster
    slower: Scalar = 3.5  # m/s by which a lane to the right may be slower
    # m, from the start: from here on that may be more, and it changes to the left no longer
    relaxed: Scalar = 60.0
    urgency: Scalar = 0.2  # 1/s: how much more, by the way since then
    # m, from the start: from here on it drives no faster than it may in the lane to the right
    aligned: Scalar = 150.0
    yielding: Scalar = 1.0  # m/s by which it slows down where the gap to the right does not last
    top_speed: Scalar = TOP_SPEED  # m/s, by which the observation divides the ego's speed

    @classmethod
    def for_task(cls, task: Exit) -> ExitingDriver:
        """Make the player of an ego with the limits of a task."""
        return cls(EXIT_MANNER.for_task(task), top_speed=task.top_speed)

    def initial(self, params: Fleet) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return one of the five actions."""
        place = view.state.travelled
        ego = see_ego(view.observation, Exit.own_entries)
        lanes = see_lanes(view.observation, Exit.speed_scale)
        speed = ego.speed * self.top_speed
        speeds = self.manner.speeds(lanes, speed)
        has_gap = self.manner.has_lasting_gap(lanes)
        lane = jnp.round(ego.target_lane * MAIN_LANES)
        keeps_lane = ego.changing == 0
        beside = jnp.where(
            has_gap[RIGHT], speeds[RIGHT], jnp.minimum(speeds[RIGHT], speed - self.yielding)
        )
        hurried = (place > self.aligned) & (lane > 1) & keeps_lane
        max_speed = jnp.minimum(speeds[EGO_LANE], jnp.maximum(beside, MIN_TARGET_SPEED))
        max_speed = jnp.where(hurried, max_speed, speeds[EGO_LANE])
        relaxed_way = jnp.maximum(place - self.relaxed, 0)
        lasting = speeds[RIGHT] > speeds[EGO_LANE] - (self.slower + self.urgency * relaxed_way)
        goes_right = (
            jnp.where(lane > 1, lasting, (lane == 1) & (place >= EXIT_BEGIN))
            & keeps_lane
            & has_gap[RIGHT]
        )
        goes_left = (
            keeps_lane
            & has_gap[LEFT]
            & (lane > 0)
            & (speeds[LEFT] > speeds[EGO_LANE] + self.faster)
            & (relaxed_way == 0)
        )
        goes_left = goes_left & (lane < MAIN_LANES)
        drive = pace(ego.speed_to_keep * (LEVELS - 1), max_speed, self.slack)
        return jnp.where(goes_right, LANE_RIGHT, jnp.where(goes_left, LANE_LEFT, drive)), memory
