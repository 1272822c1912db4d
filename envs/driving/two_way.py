"""Overtake slow vehicles on a country road through the lane of oncoming traffic.

The road is a ring of two lanes (:mod:`.traffic`: IDM, kinematic bicycle at 15 Hz). Eleven vehicles on the right drive
as the ego does, at 65 % of the speeds they desire on a highway, and never overtake. Five on the left
come towards the ego at a constant speed and do not brake for it.

highway-env's two-way-v0 (Leurent 2018) pays the index of the target speed, and a crash costs nothing (idling crashes in
every episode, at 79 % of the best return). Here speed pays as on the highway, and a crash takes back all.

======================  ====================================================================================
action                  as in :mod:`.highway`
observation             as in :mod:`.highway`; vehicles are seen within 600 m, relative speeds divided by
                        60 m/s. Lane 1 is that of oncoming traffic
reward                  as in :mod:`.highway`: u (1 - 0.2 r), in [0, 1]. A crash takes back all
terminated              a crash
success                 no crash, and more vehicles of its own lane overtaken than have overtaken the ego
start                   on the right, at 20 m/s
cost                    1 for a step that ends in a crash or with less than 1.5 s to a collision with a vehicle
                        ahead in its lanes
context                 as in :mod:`.highway`; the oncoming vehicles drive 18..22 m/s
difficulty              vehicles per kilometre of the right lane; of the left one 5 for 12 of those
======================  ====================================================================================

Source: Leurent 2018, highway-env, https://github.com/Farama-Foundation/HighwayEnv (two-way-v0).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.policy import View

from . import traffic
from .bicycle import Pose
from .car_following import Driver, Scalar
from .highway import FASTER, LANE_LEFT, LANE_RIGHT, Highway, Road, State, ego_pose
from .situation import HURRIED, mind_for, pace_towards, situation_of
from .traffic import Fleet, Rules, lane_centre

OWN, ONCOMING = 12, 5
"""Vehicles in either lane. The first are numbered first, the ego 0."""
SIGHT = 600.0
"""m: overtaking needs more foresight than a highway."""
UNHURRIED = 0.65
"""Desired speed, as a fraction of that on a highway."""
SLOWEST_ONCOMING, FASTEST_ONCOMING = 18.0, 22.0
"""m/s"""


def comes_towards() -> np.ndarray:
    """Mark the oncoming vehicles."""
    return np.arange(OWN + ONCOMING) >= OWN


class TwoWay(Highway):
    """Five meta-actions on a country road, once a second."""

    vehicles = OWN + ONCOMING
    lanes = 2
    flowing = OWN, 1
    sight = SIGHT
    speed_scale = 60.0

    def sample_params(self, key: jax.Array, split: jax.Array) -> Fleet:
        """Draw drivers, vehicles and density; an oncoming vehicle desires the speed at which it drives."""
        fleet = super().sample_params(key, split)
        # The oncoming ones share one speed, so that none runs into another.
        share = self.uniform(jax.random.fold_in(key, 1), 1)[0]
        oncoming = SLOWEST_ONCOMING + (FASTEST_ONCOMING - SLOWEST_ONCOMING) * share
        fast = fleet.driver.desired_speed
        speed = jnp.where(comes_towards(), oncoming, UNHURRIED * fast)
        desired = jnp.where(traffic.is_ego(self.vehicles), fast, speed)
        return fleet._replace(driver=fleet.driver._replace(desired_speed=desired))

    def initial(self, key: jax.Array, params: Fleet) -> State:
        """Start every vehicle in slots of equal length."""
        u = self.uniform(key, OWN + 1 + ONCOMING)
        x, _, speed = self.slots(u[: OWN + 1], params, 0)
        each = params.circumference * np.asarray(1 / ONCOMING, self.dtype)
        x = jnp.concatenate([x, each * (np.arange(ONCOMING) + 0.8 * u[OWN + 1 :])])
        speed = jnp.concatenate([speed, params.driver.desired_speed[OWN:]])
        speed = jnp.where(traffic.is_ego(self.vehicles), self.first_speed, speed)
        lane = jnp.asarray(comes_towards(), jnp.int32)
        heading = jnp.asarray(math.pi * comes_towards(), self.dtype)
        return self.start(Pose(x, lane_centre(lane).astype(self.dtype), heading, speed), lane, params)

    def road_rules(self, state: State) -> Rules:
        """Return the rules of the country road: only the ego overtakes; oncoming vehicles keep speed and lane."""
        return Rules(2, lambda new: False, steady=comes_towards())


class OvertakingDriver(NamedTuple):
    """Player of ``TwoWay``: it follows by IDM, and overtakes where the oncoming gap is long enough for it."""

    mind: Driver = HURRIED
    preview: Any = 1.0
    """s: how far ahead the speed of IDM is predicted."""
    haste: Any = 1.0
    """Speed levels that are added before the next lower level is taken."""
    near: Any = 60.0
    """m: gap to the leader from which it overtakes"""
    clearance: Any = 8.0
    """m: gap to a passed vehicle at which it turns back to the right"""
    margin: Any = 3.0
    """s: time to spare with the oncoming vehicle"""
    speed: Any = 28.0
    """m/s: mean speed in overtaking that it reckons with"""
    warning: Any = 2.6
    """s: time to collision with the leader at which it still changes lanes"""
    room: Any = 25.0
    """m: gap between two leaders in which it may turn back"""

    @classmethod
    def for_task(cls, task: Road) -> OvertakingDriver:
        """Make the player of an ego with these limits; in denser traffic it leaves more time."""
        dense = max(1000 * task.density - 4.5, 0)
        return cls(mind_for(task, HURRIED), margin=3.0 + dense / 1.5, warning=2.6 + 0.4 * dense)

    def initial(self, params: Fleet) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return one of the five actions."""
        state: State = view.state
        fleet: Fleet = view.params
        pose, ring = state.traffic.pose, fleet.circumference
        vehicles = pose.x.shape[0]
        other = ~traffic.is_ego(vehicles)
        oncoming = comes_towards()
        bodies = 0.5 * (fleet.length + fleet.length[0])
        ahead = jnp.where(pose.x < -bodies, pose.x + ring, pose.x) - bodies
        """m: gap to each vehicle ahead; negative beside the ego"""

        def nearest(which: Any) -> tuple[Scalar, Scalar]:
            gap = jnp.where(which, ahead, jnp.inf)
            return gap.min(), gap.argmin()

        mine, leader = nearest(other & ~oncoming)
        theirs, first = nearest(oncoming)
        second = jnp.where(other & ~oncoming & (np.arange(vehicles) != leader), ahead, jnp.inf).min()
        space = second - mine - fleet.length[leader]
        closing = jnp.maximum(self.speed - pose.speed[leader], 1.0)
        time = (mine + fleet.length[leader] + fleet.length[0] + self.clearance) / closing
        enough = theirs > (time + self.margin) * (self.speed + pose.speed[first])
        behind = jnp.where(other & ~oncoming & (pose.x <= bodies), -pose.x - bodies, jnp.inf).min()
        """m: gap to the nearest vehicle behind or beside in its own lane"""
        target = state.traffic.target[0]
        now = situation_of(self.mind, state, fleet, target, 0.0, 0.0, Rules(2))
        pace = pace_towards(state, self.preview * now.acceleration, self.haste)
        warned = mine < self.warning * (ego_pose(state).speed - pose.speed[leader])
        out = (target == 0) & (mine < self.near) & enough & (space > self.room) & (mine > 0) & ~warned
        # Free ahead on the right: turn back, at the latest where the oncoming vehicle is near.
        free = (behind > self.clearance) & (mine > self.clearance) & ~warned
        hurried = theirs < self.margin * (self.speed + pose.speed[first])
        back = (target == 1) & ((free & ~enough) | ((behind > 2) & (mine > 2) & hurried) | (free & (mine > self.near)))
        passing = jnp.where(state.level < 4, FASTER, pace)
        drive = jnp.where(target == 1, passing, pace)
        return jnp.where(out, LANE_LEFT, jnp.where(back, LANE_RIGHT, drive)), memory
