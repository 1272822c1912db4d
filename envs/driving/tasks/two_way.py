"""Overtake slow vehicles on a country road through the lane of oncoming traffic.

The road is a ring of two lanes (``traffic.py``: IDM, kinematic bicycle at 15 Hz). Eleven vehicles
on the right drive as the ego does, at 65 % of the speeds they desire on a highway, and never
overtake. Five on the left come towards the ego at a constant speed and do not brake for it.

highway-env's two-way-v0 (Leurent 2018) pays the index of the target speed, and a crash costs
nothing (idling crashes in every episode, at 79 % of the best return). Here speed pays as on the
highway, and a crash takes back all.

======================  ============================================================================
action                  as in ``highway.py``
observation             as in ``highway.py``; vehicles are seen within 600 m, relative speeds
                        divided by 60 m/s. Lane 1 is that of oncoming traffic
reward                  as in ``highway.py``: u (1 - 0.2 r), in [0, 1]. A crash takes back all
terminated              a crash
success                 no crash, and more vehicles of its own lane overtaken than have overtaken
                        the ego
start                   on the right, at 20 m/s
cost                    1 for a step that ends in a crash or with less than 1.5 s to a collision
                        with a vehicle ahead in its lanes
context                 as in ``highway.py``; the oncoming vehicles drive 18..22 m/s
difficulty              vehicles per kilometre of the right lane; of the left one 5 for 12 of those
======================  ============================================================================

Source: Leurent 2018, highway-env, https://github.com/Farama-Foundation/HighwayEnv (two-way-v0).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.policy import View

from ..arrays import Scalar
from ..players.gap_testing import (
    AHEAD,
    BEHIND,
    EGO_LANE,
    LEFT,
    RIGHT,
    SECOND_AHEAD,
    Lanes,
    Manner,
    pace,
    see_ego,
    see_lanes,
)
from ..traffic import traffic
from ..traffic.fleet import CAR_LENGTH, MAX_ACCELERATION, MAX_TARGET_SPEED, TOP_SPEED
from ..traffic.traffic import Fleet, Rules, lane_centre
from ..vehicle.bicycle import Pose
from .highway import FASTER, IDLE, LANE_LEFT, LANE_RIGHT, LEVELS, Highway, State

NUM_SAME_WAY = 12  # Vehicles that drive as the ego does; they come first, and the ego is number 0
NUM_ONCOMING = 5
SIGHT = 600.0  # m: overtaking needs more foresight than a highway
DESIRED_SPEED_FRACTION = 0.65  # Desired speed, as a fraction of that on a highway
MIN_ONCOMING_SPEED = 18.0  # m/s
MAX_ONCOMING_SPEED = 22.0  # m/s


def comes_towards() -> np.ndarray:
    """Mark the oncoming vehicles."""
    return np.arange(NUM_SAME_WAY + NUM_ONCOMING) >= NUM_SAME_WAY


class TwoWay(Highway):
    """Five meta-actions on a country road, once a second."""

    vehicles = NUM_SAME_WAY + NUM_ONCOMING
    lanes = 2
    flowing = NUM_SAME_WAY, 1
    sight = SIGHT
    speed_scale = 60.0

    def sample_params(self, key: jax.Array, split: jax.Array) -> Fleet:
        """Sample drivers, vehicles and density.

        An oncoming vehicle desires the speed at which it drives.
        """
        fleet = super().sample_params(key, split)
        # The oncoming ones share one speed, so that none runs into another.
        share = self.uniform(jax.random.fold_in(key, 1), 1)[0]
        oncoming = MIN_ONCOMING_SPEED + (MAX_ONCOMING_SPEED - MIN_ONCOMING_SPEED) * share
        highway_speed = fleet.driver.desired_speed
        speed = jnp.where(comes_towards(), oncoming, DESIRED_SPEED_FRACTION * highway_speed)
        desired = jnp.where(traffic.is_ego(self.vehicles), highway_speed, speed)
        return fleet._replace(driver=fleet.driver._replace(desired_speed=desired))

    def initial(self, key: jax.Array, params: Fleet) -> State:
        """Start every vehicle in slots of equal length."""
        u = self.uniform(key, NUM_SAME_WAY + 1 + NUM_ONCOMING)
        x, _, speed = self.slots(u[: NUM_SAME_WAY + 1], params, 0)
        slot = params.circumference * np.asarray(1 / NUM_ONCOMING, self.dtype)
        x = jnp.concatenate([x, slot * (np.arange(NUM_ONCOMING) + 0.8 * u[NUM_SAME_WAY + 1 :])])
        speed = jnp.concatenate([speed, params.driver.desired_speed[NUM_SAME_WAY:]])
        speed = jnp.where(traffic.is_ego(self.vehicles), self.first_speed, speed)
        lane = jnp.asarray(comes_towards(), jnp.int32)
        heading = jnp.asarray(math.pi * comes_towards(), self.dtype)
        return self.start(
            Pose(x, lane_centre(lane).astype(self.dtype), heading, speed), lane, params
        )

    def road_rules(self, state: State) -> Rules:
        """Return the rules of the country road, on which only the ego overtakes.

        Oncoming vehicles keep their speeds and lanes.
        """
        return Rules(2, lambda new: False, steady=comes_towards())


class OvertakingDriver(NamedTuple):
    """Player of ``TwoWay``, which overtakes if there is enough time before the oncoming vehicle.

    There is if it will be past the vehicle ahead before the oncoming one is there.

    It reads the observation. While it has to wait, it drives so fast that it comes close to the
    vehicle ahead when the oncoming one has passed. Numbers were found by random search, and by
    trials.
    """

    manner: Manner = Manner(
        0.27, 1.46, closing=3.89, closing_second=4.85, remaining_gap_ahead=6.0, lookahead_ahead=2.2
    )
    # m/s above the possible speed from which it takes the next lower target speed
    slack: Scalar = 2.39
    margin: Scalar = 1.5  # s: time to spare with the oncoming vehicle
    overtaking_gap: Scalar = 60.0  # m: gap to the vehicle ahead from which it overtakes
    room: Scalar = (
        35.0  # m: gap between two vehicles in which it may turn back; else it passes both
    )
    clearance: Scalar = 5.0  # m: gap to the passed vehicle when the ego's body is back on the right
    back: Scalar = 1.0  # s: time until then
    # s: time to collision with the vehicle ahead at which it still changes lanes
    warning: Scalar = 2.33
    waiting: Scalar = 17.3  # m: gap to the vehicle ahead at which it waits
    acceleration: Scalar = 0.9 * MAX_ACCELERATION  # m/s^2, from one target speed to the next
    fastest: Scalar = MAX_TARGET_SPEED
    top_speed: Scalar = TOP_SPEED  # m/s; by the second one the observation divides the ego's speed

    @classmethod
    def for_task(cls, task: TwoWay) -> OvertakingDriver:
        """Make the player of an ego with the limits of a task.

        In denser traffic it leaves more time.
        """
        player = cls(margin=cls().margin + 0.43 * max(1000 * task.density - 4.5, 0))
        return player._replace(
            manner=player.manner.for_task(task),
            acceleration=0.9 * task.acceleration,
            fastest=min(MAX_TARGET_SPEED, task.top_speed),
            top_speed=task.top_speed,
        )

    def initial(self, params: Fleet) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return one of the five actions."""
        ego = see_ego(view.observation, TwoWay.own_entries)
        lanes = see_lanes(view.observation, TwoWay.speed_scale, SIGHT)
        speed = ego.speed * self.top_speed
        level = ego.speed_to_keep * (LEVELS - 1)
        on_right = ego.target_lane == 0
        keeps_lane = ego.changing == 0
        # Lane of the vehicles that it overtakes.
        vehicle = jnp.where(on_right, EGO_LANE, RIGHT)
        gap = lanes.gap[vehicle, AHEAD]
        closing = jnp.maximum(0, -lanes.gain[vehicle, AHEAD])
        meets = self.time_to_meet(lanes, speed, jnp.where(on_right, LEFT, EGO_LANE))
        enough = meets > self.time_to_pass(lanes, speed, vehicle) + self.margin
        passes = enough & lanes.occupied[vehicle, AHEAD] & (gap < self.overtaking_gap)
        out = keeps_lane & on_right & passes & (gap > self.warning * closing)
        left_behind = (
            lanes.gap[RIGHT, BEHIND] - self.back * lanes.gain[RIGHT, BEHIND] > self.clearance
        )
        can_return = left_behind & (
            gap > self.manner.remaining_gap_ahead + self.manner.lookahead_ahead * closing
        )
        turn_back = keeps_lane & ~on_right & can_return & ~passes
        # Behind a vehicle that it cannot pass yet
        wait = (lanes.gap[LEFT, AHEAD] + CAR_LENGTH) / jnp.maximum(
            -lanes.gain[LEFT, AHEAD], MIN_ONCOMING_SPEED
        )
        leader = speed + lanes.gain[EGO_LANE, AHEAD]
        arriving = jnp.maximum(leader, leader + (gap - self.waiting) / jnp.maximum(wait, 0.5))
        waits = lanes.occupied[EGO_LANE, AHEAD] & lanes.occupied[LEFT, AHEAD] & ~enough
        possible = self.manner.speeds(lanes, speed)[EGO_LANE]
        follow = pace(
            level, jnp.where(waits, jnp.minimum(possible, arriving), possible), self.slack
        )
        drive = jnp.where(on_right, follow, jnp.where(level < LEVELS - 1, FASTER, IDLE))
        return jnp.where(out, LANE_LEFT, jnp.where(turn_back, LANE_RIGHT, drive)), memory

    def time_to_meet(self, lanes: Lanes, speed: Scalar, lane: Scalar) -> Scalar:
        """Return the time (s) until the next vehicle in the oncoming lane is there.

        The ego is taken to drive its fastest.
        """
        oncoming = jnp.where(
            lanes.occupied[lane, AHEAD], -lanes.gain[lane, AHEAD] - speed, MAX_ONCOMING_SPEED
        )
        return lanes.gap[lane, AHEAD] / (self.fastest + oncoming)

    def time_to_pass(self, lanes: Lanes, speed: Scalar, lane: Scalar) -> Scalar:
        """Return the time (s) to be past the next vehicle in a lane.

        If there is no room behind that one, the second vehicle is passed too.
        """
        gap, gain = lanes.gap[lane, :BEHIND], lanes.gain[lane, :BEHIND]
        passes_both = lanes.occupied[lane, SECOND_AHEAD] & (
            gap[SECOND_AHEAD] - gap[AHEAD] - CAR_LENGTH < self.room
        )
        distance = (
            jnp.where(passes_both, gap[SECOND_AHEAD], gap[AHEAD]) + 2 * CAR_LENGTH + self.clearance
        )
        faster = -jnp.where(passes_both, gain[SECOND_AHEAD], gain[AHEAD])
        # It accelerates to its fastest, and then keeps that.
        time = jnp.maximum(self.fastest - speed, 0) / self.acceleration
        ahead = (faster + 0.5 * self.acceleration * time) * time
        accelerating = (
            jnp.sqrt(faster * faster + 2 * self.acceleration * jnp.maximum(distance, 0)) - faster
        )
        cruising_time = time + (distance - ahead) / jnp.maximum(
            faster + self.acceleration * time, 1
        )
        return jnp.where(distance < ahead, accelerating / self.acceleration, cruising_time)
