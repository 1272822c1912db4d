"""Drivers that test gaps.

For such a driver each lane has a speed that can be driven in it, and a gap that lasts or does not.

They read the observation only: gaps and speeds of the nearest vehicles in three lanes. They are the
reference players of the highway, by target speeds and by pedals, and of ``merge.py``. Numbers were
found by random search on training episodes. Unlike drivers by MOBIL, these take no account of what
a change costs others, beyond that the gap lasts.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.policy import View

from ..arrays import Scalar
from ..tasks import seen_neighbours
from ..tasks.highway import (
    FASTER,
    IDLE,
    LANE_LEFT,
    LANE_RIGHT,
    LEVEL_STEP,
    LEVELS,
    MIN_TARGET_SPEED,
    SIGHT,
    SLOWER,
    Highway,
    Road,
    lane_of,
)
from ..tasks.highway_continuous import HighwayContinuous
from ..tasks.seen_neighbours import Neighbour
from ..traffic.fleet import CAR_LENGTH, MAX_ACCELERATION, MAX_BRAKING, MAX_TARGET_SPEED, TOP_SPEED
from ..traffic.traffic import LANE_WIDTH, LANES, lane_centre

RIGHT, EGO_LANE, LEFT = range(3)
AHEAD, SECOND_AHEAD, BEHIND = range(3)
FREE_LANE_SPEED = MAX_TARGET_SPEED + 1  # m/s: speed of an empty lane. Faster lanes are not better.


class Ego(NamedTuple):
    """The ego as the observation shows it, in the observation's scales."""

    speed: Scalar
    y: Scalar
    heading: Scalar
    offset: Scalar
    earned: Scalar
    speed_to_keep: Scalar = 0
    target_lane: Scalar = 0
    changing: Scalar = 0


class Lanes(NamedTuple):
    """Neighbours as the observation shows them, by lane and place.

    Lanes are the one to the right, the ego's own and the one to the left. Places are nearest ahead,
    second ahead and nearest behind.
    """

    occupied: jax.Array  # bool ``(lanes, places)``
    gap: jax.Array  # m; ``SIGHT`` for nobody
    gain: jax.Array  # m/s: speed relative to the ego; 0 for nobody


def see_ego(observation: jax.Array, count: int) -> Ego:
    """Read the ego from the first ``count`` components of an observation.

    ``Highway`` has 8 of them, ``HighwayContinuous`` 5.
    """
    return Ego(*(observation[i] for i in range(count)))


def see_lanes(observation: jax.Array, speed_scale: float, sight: float = SIGHT) -> Lanes:
    """Read the neighbours from the last components of an observation.

    ``speed_scale`` is the scale of relative speeds (m/s), ``sight`` that of gaps (m).
    """
    entries = observation[-math.prod(seen_neighbours.SHAPE) :].reshape(seen_neighbours.SHAPE)
    occupied = entries[:, :, Neighbour.THERE] > 0
    return Lanes(
        occupied,
        jnp.where(occupied, entries[:, :, Neighbour.GAP] * sight, sight),
        entries[:, :, Neighbour.SPEED] * speed_scale,
    )


class Manner(NamedTuple):
    """Gaps that a driver takes."""

    time_gap: Scalar = 0.283  # s, to the vehicle ahead
    jam_gap: Scalar = 1.75  # m, to it if it stands
    closing: Scalar = 2.76  # s in which it closes up
    closing_second: Scalar = 3.77  # s in which it closes up to the second vehicle ahead
    # m: gap ahead in another lane that remains after ``lookahead_ahead``
    remaining_gap_ahead: Scalar = 3.16
    lookahead_ahead: Scalar = 1.53  # s
    # m: gap behind in another lane that remains after ``lookahead_behind``
    remaining_gap_behind: Scalar = 0.78
    lookahead_behind: Scalar = 1.32  # s

    def for_task(self, task: Road) -> Manner:
        """Return the manner of an ego with the limits of a task.

        With weaker brakes it closes up more slowly.
        """
        slower = max(1.0, MAX_BRAKING / task.braking)
        return self._replace(
            closing=self.closing * slower, closing_second=self.closing_second * slower
        )

    def speeds(self, lanes: Lanes, speed: Scalar) -> Scalar:
        """Return the speed that can be driven in each of the three lanes, m/s."""
        leader = speed + lanes.gain[:, :BEHIND]
        vehicles = jnp.arange(1, 3)
        room = (
            lanes.gap[:, :BEHIND]
            - vehicles * (self.jam_gap + self.time_gap * leader)
            - CAR_LENGTH * (vehicles - 1)
        )
        reached = leader + room / jnp.stack([self.closing, self.closing_second])
        return jnp.where(lanes.occupied[:, :BEHIND], reached, FREE_LANE_SPEED).min(
            1, initial=FREE_LANE_SPEED
        )

    def has_lasting_gap(self, lanes: Lanes) -> Scalar:
        """Say of each of the three lanes whether a gap in it lasts, bool ``(3,)``."""
        gain = lanes.gain
        lasts_ahead = lanes.gap[:, AHEAD] > (
            self.remaining_gap_ahead + self.lookahead_ahead * jnp.maximum(0, -gain[:, AHEAD])
        )
        lasts_behind = lanes.gap[:, BEHIND] > (
            self.remaining_gap_behind + self.lookahead_behind * jnp.maximum(0, gain[:, BEHIND])
        )
        return lasts_ahead & lasts_behind


ONCE_A_SECOND = Manner()
WITH_PEDALS = Manner(
    0.1,
    3.0,
    closing=2.4,
    closing_second=5.0,
    remaining_gap_ahead=3.0,
    lookahead_ahead=1.5,
    remaining_gap_behind=2.0,
    lookahead_behind=1.4,
)


def pace(level: Scalar, max_speed: Scalar, slack: Scalar) -> Scalar:
    """Return the action that moves a target speed up to ``max_speed`` m/s.

    It moves the target speed down if that is more than ``slack`` above ``max_speed``.
    """
    target = MIN_TARGET_SPEED + LEVEL_STEP * level
    return jnp.where(
        target + LEVEL_STEP <= max_speed,
        FASTER,
        jnp.where(target > max_speed + slack, SLOWER, IDLE),
    )


class GapTestingDriver(NamedTuple):
    """Player of ``Highway``, which takes free gaps in faster lanes.

    It returns to the right where that is no slower.
    """

    manner: Manner = ONCE_A_SECOND
    # m/s above the possible speed from which it takes the next lower target speed
    slack: Scalar = 2.85
    faster: Scalar = 1.2  # m/s by which a lane to the left must be faster
    slower: Scalar = 0.74  # m/s by which a lane to the right may be slower
    top_speed: Scalar = TOP_SPEED  # m/s, by which the observation divides the ego's speed
    lanes: Scalar = LANES
    right_lane: Scalar = 0

    @classmethod
    def for_task(cls, task: Highway) -> GapTestingDriver:
        """Make the player of an ego with the limits of a task.

        In dense traffic it keeps a longer gap.
        """
        longer = 0.0117 * max(1000 * task.density - 16, 0)
        manner = ONCE_A_SECOND._replace(time_gap=ONCE_A_SECOND.time_gap + longer)
        return cls(
            manner.for_task(task),
            top_speed=task.top_speed,
            lanes=task.lanes,
            right_lane=task.right_lane,
        )

    def initial(self, params: Any) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return one of the five actions."""
        ego = see_ego(view.observation, Highway.own_entries)
        lanes = see_lanes(view.observation, Highway.speed_scale)
        speeds = self.manner.speeds(lanes, ego.speed * self.top_speed)
        has_gap = self.manner.has_lasting_gap(lanes)
        lane = jnp.round(ego.target_lane * (self.lanes - 1))
        drive = pace(ego.speed_to_keep * (LEVELS - 1), speeds[EGO_LANE], self.slack)
        may = (ego.changing == 0) & (drive != SLOWER)
        right = (
            may
            & has_gap[RIGHT]
            & (lane > self.right_lane)
            & (speeds[RIGHT] > speeds[EGO_LANE] - self.slower)
        )
        left = (
            may
            & has_gap[LEFT]
            & (lane < self.lanes - 1)
            & (speeds[LEFT] > speeds[EGO_LANE] + self.faster)
        )
        return jnp.where(right, LANE_RIGHT, jnp.where(left, LANE_LEFT, drive)), memory


class GapTestingPedals(NamedTuple):
    """Player of ``HighwayContinuous``, which remembers its target lane and steers to its centre."""

    manner: Manner = WITH_PEDALS
    faster: Scalar = 0.5  # m/s by which a lane to the left must be faster
    slower: Scalar = 0.5  # m/s by which a lane to the right may be slower
    gain: Scalar = 1.2  # 1/s: acceleration by the difference to the possible speed
    approach: Scalar = 1.0  # 1/s: lateral speed by the distance from the centre of the lane
    sharpest: Scalar = 0.2  # rad: largest heading in a change of lanes
    # part of a lane's width, to the centre of its lane, from which it counts in the next one, too
    between: Scalar = 0.15
    turn: Scalar = 15.0  # 1/rad: steering by the difference to the heading that it wants
    acceleration: Scalar = MAX_ACCELERATION
    braking: Scalar = MAX_BRAKING  # m/s^2: limits of the ego
    top_speed: Scalar = TOP_SPEED  # m/s, by which the observation divides the ego's speed

    @classmethod
    def for_task(cls, task: HighwayContinuous) -> GapTestingPedals:
        """Make the player of an ego with the limits of a task."""
        player = cls(acceleration=task.acceleration, braking=task.braking, top_speed=task.top_speed)
        return player._replace(manner=player.manner.for_task(task))

    def initial(self, params: Any) -> Scalar:
        """Return the memory: no lane chosen yet."""
        return jnp.int32(-1)

    def act(self, memory: Scalar, view: View, key: jax.Array) -> tuple[jax.Array, Scalar]:
        """Return acceleration and steering, shape ``(2,)``."""
        ego = see_ego(view.observation, HighwayContinuous.own_entries)
        lanes = see_lanes(view.observation, HighwayContinuous.speed_scale)
        speed = ego.speed * self.top_speed
        y = ego.y * (LANES * LANE_WIDTH)
        heading = ego.heading * (math.pi / 2)
        speeds = self.manner.speeds(lanes, speed)
        has_gap = self.manner.has_lasting_gap(lanes)
        lane = lane_of(y)
        target = jnp.where(memory < 0, lane, memory)
        keeps_lane = jnp.abs(y - lane_centre(target)) < 0.15 * LANE_WIDTH
        left = (
            keeps_lane
            & has_gap[LEFT]
            & (lane < LANES - 1)
            & (speeds[LEFT] > speeds[EGO_LANE] + self.faster)
        )
        right = (
            keeps_lane
            & has_gap[RIGHT]
            & (lane > 0)
            & (speeds[RIGHT] > speeds[EGO_LANE] - self.slower)
            & ~left
        )
        target = (target + left - right).astype(jnp.int32)
        # Between two lanes it keeps its distance in both.
        offset = y - lane_centre(lane)
        beside = jnp.where(offset > 0, speeds[LEFT], speeds[RIGHT])
        between = jnp.abs(offset) > self.between * LANE_WIDTH
        target_speed = jnp.where(between, jnp.minimum(speeds[EGO_LANE], beside), speeds[EGO_LANE])
        acceleration = self.gain * (target_speed - speed)
        pedal = acceleration / jnp.where(acceleration > 0, self.acceleration, self.braking)
        aim = self.approach * (lane_centre(target) - y) / jnp.maximum(speed, 5)
        wheel = self.turn * (jnp.clip(aim, -self.sharpest, self.sharpest) - heading)
        return jnp.clip(jnp.stack([pedal, wheel]), -1, 1), target
