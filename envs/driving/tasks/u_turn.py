"""Overtake slow vehicles before and behind a U-turn, and brake for the bend.

The road is a ring of two lanes with two half circles (``bent_road.py``). Twenty-five other cars
drive as on a highway, at 45 % of the speeds they desire there, and at 55 % of that in bends. They
follow by IDM and change lanes by MOBIL (``traffic.py``, kinematic bicycle at 15 Hz). Everyone slows
down for a bend in time, with 2 m/s^2, also the ego, whatever speed it is told to keep.

The task is highway-env's u-turn-v0 (Leurent 2018). Radii of the lanes (20 and 24 m), their width
and the way before the bend (there 128 m, here 88 to 166 m, as the density asks) are the same.
There, the ego may drive 24 m/s in the bend, which would need 2.9 g; six others come once; an
episode lasts 10 s, and each step pays, so that braking pays best (SLOWER earns 6.7, IDLE 5.0).
Here, tyres bound speeds, and only speed above the first one pays.

======================  ============================================================================
action                  as in ``highway.py``; target speeds are 4, 9, 14, 19, 24 m/s. In bends the
                        ego drives at most 8 m/s
observation             as in ``highway.py``, with three entries before the neighbours: the way to
                        the beginning (0 in a bend) and to the end of the next bend (by 150 m, cut
                        off at 1), and whether it is in a bend. Places, speeds and gaps along the
                        road are measured on the line between both lanes
reward                  as in ``highway.py``, u (1 - 0.2 r), in [0, 1]; u grows from 0 at 9 m/s to 1
                        at 24 m/s. On the inner lane of a bend 8 m/s are 8.8 m/s along the road. A
                        crash takes back all
terminated              a crash: the ego touches a vehicle or an edge of the road, or turns around
success                 no crash, past the first bend, and a return of at least 6: as much as 90 m
                        more than at 9 m/s, all in the right lane
start                   half way along a straight, in either lane, at 9 m/s
cost                    as in ``highway.py``
context, difficulty     as in ``highway.py``; the ring is as long as 26 vehicles on two lanes need
======================  ============================================================================

Source: Leurent 2018, highway-env, https://github.com/Farama-Foundation/HighwayEnv (u-turn-v0).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from rlbench_suite.contexts.context import Constant
from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task_card import TaskCard

from ..arrays import Scalar
from ..pictures import road_pictures
from ..players.situation import HURRIED_DRIVER, mind_for, pace_towards, situation_of
from ..roads import routes
from ..roads.routes import Route
from ..traffic import bent_road, lane_changing, traffic
from ..traffic.bent_road import BEND_LENGTH, BEND_SPEED, EDGE_DISTANCE
from ..traffic.car_following import Driver
from ..traffic.traffic import Fleet, Rules
from ..vehicle.bicycle import Pose
from .highway import (
    LANE_LEFT,
    LANE_RIGHT,
    SIGHT,
    SPEED_TIME,
    Highway,
    Road,
    State,
)

VEHICLES = 26
LANES = 2
# Least return of a success. Who overtakes nobody earns less in about half of the episodes.
# Vehicles overtaken are no measure here: who drives well hangs back in bends, where no speed pays.
MIN_SUCCESS_RETURN = 6.0
DESIRED_SPEED_FRACTION = 0.45  # Desired speed, as a fraction of that on a highway
BEND_SPEED_FRACTION = 0.55  # Speed in bends, as a fraction of the desired one


def bend_speeds(params: Fleet) -> Scalar:
    """Return the highest speed of everyone in a bend, m/s, ``(vehicles,)``."""
    return jnp.where(
        traffic.is_ego(VEHICLES), BEND_SPEED, BEND_SPEED_FRACTION * params.driver.desired_speed
    )


class UTurn(Highway):
    """Five meta-actions on a road with U-turns, once a second."""

    vehicles = VEHICLES
    lanes = LANES
    flowing = VEHICLES, LANES
    slowest, level_step, fastest = 4.0, 5.0, 24.0

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.first_level = 1
        self.first_speed = self.slowest + self.level_step

    def constants(self) -> tuple[Constant, ...]:
        """Return the constants of the highway without trucks.

        In bends the noses of trucks would swing into the other lane.
        """
        return tuple(
            c._replace(low=0.0, high=0.0) if c.name == "trucks" else c for c in super().constants()
        )

    def sample_params(self, key: jax.Array, split: jax.Array) -> Fleet:
        """Sample drivers, vehicles and density."""
        fleet = super().sample_params(key, split)
        highway_speed = fleet.driver.desired_speed
        desired = jnp.where(
            traffic.is_ego(VEHICLES), highway_speed, DESIRED_SPEED_FRACTION * highway_speed
        )
        return fleet._replace(driver=fleet.driver._replace(desired_speed=desired))

    def initial(self, key: jax.Array, params: Fleet) -> State:
        """Start every vehicle in the middle of a lane, in slots of equal length.

        In bends vehicles start at their speeds there.
        """
        state = super().initial(key, params)
        pose = state.traffic.pose
        to_bend = bent_road.next_bend(pose.x, params.circumference)[0]
        speed = jnp.minimum(pose.speed, bent_road.speed_before(to_bend, bend_speeds(params)))
        return state._replace(traffic=state.traffic._replace(pose=pose._replace(speed=speed)))

    def drive(
        self,
        state: State,
        params: Fleet,
        control: traffic.Control,
        direction: Scalar,
        substeps: Scalar,
    ) -> State:
        """Let everyone look around, then drive for some sub-steps.

        Positions of the result are relative to the ego again.
        """
        decided, leaders = traffic.look(state.traffic, params, direction, self.road_rules(state))
        bend_limits = bend_speeds(params)

        def bounded(pose: Pose, limit: Scalar) -> tuple[Scalar, Scalar]:
            acceleration, slip = control(pose)
            return jnp.clip(
                (limit - pose.speed) * (1 / SPEED_TIME), -self.braking, acceleration
            ), slip

        def step(_: Any, carry: tuple[traffic.Traffic, Scalar]) -> tuple[traffic.Traffic, Scalar]:
            return bent_road.substep(
                carry[0], params, leaders, carry[1], state.travelled, bend_limits, bounded
            )

        driven_traffic, crashed = jax.lax.fori_loop(0, substeps, step, (decided, state.crashed))
        driven_traffic, distance = traffic.recentre(driven_traffic, params)
        return state._replace(
            traffic=traffic.finish_changes(driven_traffic, params),
            travelled=state.travelled + distance,
            crashed=crashed,
        )

    def see_road(self, state: State, params: Fleet) -> list[Scalar]:
        """Return the way to both ends of the next bend, and whether the ego is in it."""
        begin, end = bent_road.next_bend(state.travelled, params.circumference)
        return [*(jnp.minimum(distance * (1 / SIGHT), 1) for distance in (begin, end)), begin == 0]

    def road_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`see_road`."""
        return (
            Component("bend", "way to the beginning of the next bend; 0 in a bend", f"{SIGHT:g} m"),
            Component("bend_end", "way to the end of the next bend", f"{SIGHT:g} m"),
            Component("in_bend", "whether it is in a bend"),
        )

    def info(self, state: State, params: Fleet) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        through = state.travelled > bent_road.half_straight(params.circumference) + BEND_LENGTH
        return super().info(state, params) | {
            "success": ~state.crashed & through & (state.earned >= MIN_SUCCESS_RETURN)
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def describe(self, state: State, params: Fleet) -> str:
        """Describe the ego, the bend, and the vehicles around it, with units."""
        begin, end = (
            float(distance)
            for distance in bent_road.next_bend(jnp.asarray(state.travelled), params.circumference)
        )
        where = f"in {begin:.0f} m" if begin > 0 else "and you are in it"
        ego_line, *vehicle_lines = super().describe(state, params).split("\n")
        bend = (
            f"The next bend is a U-turn to the left, {where}; it ends in {end:.0f} m. You drive at "
            "most 8 m/s there."
        )
        return "\n".join([f"{ego_line} {bend}", *vehicle_lines])

    def draw(self, state: State, params: Fleet) -> np.ndarray:
        """Draw the ring from above: the others blue, the ego green, red after a crash."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "darkseagreen")
        canvas = ImageDraw.Draw(image)
        ring = float(params.circumference)
        route = Route(
            *(np.asarray(value, np.float64) for value in bent_road.centre_line(jnp.asarray(ring)))
        )
        scale = width / (2 * float(bent_road.half_straight(ring)) + 2.4 * bent_road.RADIUS)

        def pixel(x: float, y: float) -> tuple[float, float]:
            return width / 2 + scale * x, height / 2 - scale * y

        road_pictures.draw_band(canvas, pixel, route, (0.0, ring), (-EDGE_DISTANCE, EDGE_DISTANCE))
        for d in (-EDGE_DISTANCE, EDGE_DISTANCE):
            road_pictures.draw_line(canvas, pixel, route, (0.0, ring), d)
        road_pictures.draw_line(canvas, pixel, route, (0.0, ring), 0.0, dashed=True)
        pose = Pose(*(np.asarray(value, np.float64) for value in state.traffic.pose))
        for i in reversed(range(VEHICLES)):
            x, y, along = routes.points(
                route, (float(state.travelled) + pose.x[i]) % ring, pose.y[i] - EDGE_DISTANCE
            )[0]
            colour = road_pictures.vehicle_colour(i, state.crashed)
            size = float(params.length[i]), float(params.width[i])
            road_pictures.draw_car(canvas, pixel, (x, y, along + pose.heading[i]), size, colour)
        return np.asarray(image)


@privileged_player
class UTurnDriver(NamedTuple):
    """Player of ``UTurn``, which hangs back in bends.

    It follows and changes lanes by IDM and MOBIL.

    No speed pays in a bend. There it drives at the lowest target speed and changes to the right
    lane, which pays more, so that both the lane and the road ahead are free when the straight
    begins.
    """

    mind: Driver = HURRIED_DRIVER
    preview: Scalar = 0.95  # s: how far ahead the speed of IDM is predicted
    haste: Scalar = 1.19  # Speed levels that are added before the next lower level is taken
    politeness: Scalar = 0.07
    keep_right: Scalar = 1.5  # m/s^2: incentive to change to the right
    hang_back_from: Scalar = (
        15.0  # m: way to the beginning of a bend at which it begins to hang back
    )
    hang_back_until: Scalar = 10.0  # m: way to the end of a bend at which it drives on

    @classmethod
    def for_task(cls, task: Road) -> UTurnDriver:
        """Make the player of an ego with these limits.

        It keeps more distance than usual, because leaders brake for bends.
        """
        return cls(
            mind_for(task, HURRIED_DRIVER._replace(time_gap=0.66, jam_gap=2.8, deceleration=3.4))
        )

    def initial(self, params: Fleet) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return one of the five actions."""
        state: State = view.state
        target = state.traffic.target[0]
        keeps_lane = state.traffic.lane[0] == target
        situation = situation_of(
            self.mind, state, view.params, target, self.politeness, self.keep_right, Rules(LANES)
        )
        begin, end = bent_road.next_bend(state.travelled, view.params.circumference)
        hangs_back = (begin < self.hang_back_from) & (end > self.hang_back_until)
        gained = jnp.where(hangs_back, -jnp.inf, self.preview * situation.acceleration)
        pace = pace_towards(state, gained, self.haste, UTurn.slowest, UTurn.level_step)
        left_gain = jnp.where(hangs_back, -jnp.inf, situation.left)
        right_gain = jnp.where(hangs_back & (situation.right > -jnp.inf), jnp.inf, situation.right)
        side = jnp.where(left_gain >= right_gain, LANE_LEFT, LANE_RIGHT)
        change = keeps_lane & (jnp.maximum(left_gain, right_gain) > lane_changing.THRESHOLD)
        return jnp.where(change, side, pace), memory
