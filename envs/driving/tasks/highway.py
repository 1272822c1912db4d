"""Drive fast on a highway among human-like drivers, without touching anyone.

Traffic: ``traffic.py`` (IDM, MOBIL, kinematic bicycle), 49 cars and trucks besides the ego on four
lanes, simulated at 15 Hz for 40 s. The task is highway-env's highway-v0 (Leurent 2018), with these
changes: tyres bound speeds, lane changes and braking; the ego may be told to slow down to 10 m/s
(traffic does); collisions are found between sub-steps too; driving on at the first speed pays
nothing; and a crash takes back what was earned.

======================  ============================================================================
action, ``Highway``     once a second, one of LANE_LEFT, IDLE, LANE_RIGHT, FASTER, SLOWER. Target
                        speeds are 10, 15, 20, 25, 30 m/s, reached with 3 m/s^2 at most, 6 m/s^2 in
                        braking; a lane change takes about 3 s. Every action is legal, as in
                        highway-env: a speed beyond the ends, a lane beyond the edges, and during a
                        change any lane but the old one, to turn back, is IDLE
action,                 five times a second, ``(2,)`` in [-1, 1]: acceleration (1 is +3 m/s^2, -1 is
``HighwayContinuous``   -6 m/s^2; not beyond 0 and 40 m/s) and steering, as a fraction of the
                        largest angle to the left: 45 degrees or the angle of a lateral acceleration
                        of 4.9 m/s^2, whichever is less
observation             the ego: speed (by 40 m/s), y (by the road's width of 16 m), heading (by 90
                        degrees), offset from its lane's centre (by a lane's width of 4 m, to the
                        left), return so far (by that of 40 s of the best driving); ``Highway`` adds
                        the target speed, the target lane (0 the right one, 1 the left one), and
                        whether it changes lanes. Then nine places, in the lane to the right, its
                        own, and to the left, each nearest ahead, second ahead, nearest behind:
                        occupied (0 or 1), gap from bumper to bumper (by 150 m; 1 if nobody is
                        within that), speed along the road relative to the ego (by 20 m/s), y
                        relative to the ego (by 8 m), own lateral speed (by 4 m/s). Its own lane is
                        the target lane in ``Highway``, the one it is in otherwise. Left is
                        positive. Cut off at +-1
reward                  u (1 - 0.2 r), in [0, 1]; u is the mean speed along the road over the step,
                        from 0 at the ego's first speed to 1 at 30 m/s and above, as in highway-env;
                        r is the distance from the centre of the right lane, as a fraction of the
                        road: keep right. A crash takes back all that the episode has earned, so
                        that its return is 0 (at most what 40 s can earn)
terminated              a crash: the ego touches a vehicle or an edge of the road, or turns by more
                        than 90 degrees
success                 no crash, and the ego has overtaken more vehicles than have overtaken it: it
                        drove faster than the traffic
start                   in any lane at 20 m/s, the lower end of highway-env's rewarded speeds; in
                        denser traffic, where gaps are too short for that, at 15 or 10 m/s
cost                    1 for a step that ends with less than 1.5 s to a collision with a vehicle
                        ahead in its lanes, at present speeds; for a crash that of a second, 1 or 5
context                 the drivers: cars (desired speed 23..31 m/s, 5 x 2 m) and, up to a quarter,
                        trucks (20..23 m/s, 12 x 2.5 m), time gaps 1..1.8 s, accelerations 1..2
                        m/s^2 (trucks 0.6..1), comfortable braking 1.5..3 m/s^2, politeness 0..0.5;
                        and density, within 10 % of the difficulty. Train and test densities lie in
                        alternating bands of 1 %, so a test asks for interpolation
difficulty              vehicles per kilometre and lane: 16 flows at 20 to 25 m/s, 25 is close to a
                        jam
======================  ============================================================================

Source: Leurent 2018, An Environment for Autonomous Driving Decision-Making (highway-env),
https://github.com/Farama-Foundation/HighwayEnv; typical parameters of drivers: Kesting, Treiber &
Helbing 2010, doi:10.1098/rsta.2010.0084, table 1.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.contexts.context import Constant
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ...shared.named_actions import NamedActions
from ...shared.own_constants import OwnConstants
from ..arrays import Scalar
from ..pictures import road_pictures
from ..traffic import traffic
from ..traffic.fleet import (
    CRASH_SECONDS,
    MAX_TARGET_SPEED,
    MIN_TARGET_SPEED,
    START_GAP_FRACTION,
    first_speed,
    road_constants,
    sample_fleet,
    start_gap,
)
from ..traffic.traffic import (
    INDEX_BITS,
    LANE_WIDTH,
    LANES,
    SUBSTEP,
    VEHICLES,
    Fleet,
    Rules,
    Traffic,
    lane_centre,
)
from ..vehicle import bicycle
from ..vehicle.bicycle import Pose
from . import seen_neighbours
from .observation_bounds import lower_bounds
from .seen_neighbours import SIDEWAYS_SCALE, Y_SCALE, neighbour_components

LANE_LEFT, IDLE, LANE_RIGHT, FASTER, SLOWER = range(5)
ACTIONS = ("LANE_LEFT", "IDLE", "LANE_RIGHT", "FASTER", "SLOWER")
LEVELS = 5  # Number of target speeds
LEVEL_STEP = (MAX_TARGET_SPEED - MIN_TARGET_SPEED) / (LEVELS - 1)
SPEED_TIME = 0.6  # s: time constant of the ego's speed control, highway-env's
START_SPEED_FRACTION = 0.95  # Others start at no more than this fraction of their desired speeds
MAX_START_SPEED = 25.0  # m/s, of the others
SIGHT = 150.0  # m, ahead and behind
TIME_TO_COLLISION = 1.5  # s: a shorter time to collision is a near miss
MAX_TTC = 100.0  # s: time to collision (TTC) if none is ahead
SECOND = round(1 / SUBSTEP)  # Sub-steps in a second
# Sub-steps between the look to the left and that to the right; one less from there to the next
# second.
FIRST_HALF = 8

# Components of the ego that are never negative.
NONNEGATIVE = {"speed", "y", "earned", "speed_to_keep", "target_lane", "changing"}


class State(NamedTuple):
    """The road, and the ego's record so far."""

    traffic: Traffic
    travelled: Scalar  # m, covered by the ego along the road
    level: Scalar  # int32: target speed, 0 to LEVELS - 1
    lane_changes: Scalar  # int32: lines the ego has crossed
    # int32: vehicles that the ego has overtaken minus those that have overtaken it.
    overtaken: Scalar
    earned: Scalar  # Return so far
    crashed: Scalar  # bool
    steps: Scalar  # int32


def ego_pose(state: State) -> Pose:
    """Return the ego's pose, as scalars."""
    return Pose(*(value[0] for value in state.traffic.pose))


def lane_of(y: Scalar, lanes: int = LANES) -> Scalar:
    """Return the lane at a lateral position, int32."""
    return jnp.clip(jnp.floor(y * (1 / LANE_WIDTH)), 0, lanes - 1).astype(jnp.int32)


class Road(Task[Fleet, State]):
    """Base class of tasks on straight roads: drivers, start, rewards, ends, pictures."""

    measures: ClassVar[dict[str, str]] = {
        "collision": "whether the ego has crashed",
        "mean_speed": "of the ego along the road since the start, m/s",
        "distance": "travelled by the ego along the road, m",
        "lane_changes": "lines between lanes that the ego has crossed",
        "overtaken": "vehicles that the ego has overtaken minus those that have overtaken it",
        "time_to_collision": (
            f"with a vehicle ahead in the ego's lanes, at present speeds, at most {MAX_TTC:.0f}, s"
        ),
    }
    picture_shape: ClassVar[tuple[int, int, int]] = (160, 800, 3)
    #: Number of vehicles, with the ego, and of lanes.
    vehicles: ClassVar[int] = VEHICLES
    lanes: ClassVar[int] = LANES
    #: Vehicles and lanes of the ring, where traffic flows around.
    flowing: ClassVar[tuple[int, int]] = (VEHICLES, LANES)
    #: Lane that counts as the right one.
    right_lane: ClassVar[int] = 0
    #: m, ahead and behind.
    sight: ClassVar[float] = SIGHT
    #: m/s, by which the observation divides relative speeds.
    speed_scale: ClassVar[float] = 20.0
    #: m/s: the lowest target speed, the step to the next one, and the speed that pays most.
    slowest: ClassVar[float] = MIN_TARGET_SPEED
    level_step: ClassVar[float] = LEVEL_STEP
    fastest: ClassVar[float] = MAX_TARGET_SPEED
    #: Sub-steps of a step.
    substeps: ClassVar[int]
    #: Number of entries of the observation about the ego itself.
    own_entries: ClassVar[int]

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty is None or not 2 <= difficulty <= 30:
            raise ValueError(
                f"The difficulty of {card.id} is a number of vehicles a kilometre and lane in [2, "
                f"30], got {difficulty!r}."
            )
        self.density = difficulty / 1000
        self.sheet = OwnConstants(card, self.constants())
        self.car_length = self.sheet.value("car_length")
        self.truck_length = self.sheet.value("truck_length")
        self.acceleration = self.sheet.value("acceleration")
        self.braking = self.sheet.value("braking")
        self.top_speed = self.sheet.value("top_speed")
        self.keep_right = self.sheet.weight("keep_right")
        self.start_gap = start_gap(card, self.sheet, *self.flowing)
        self.first_level = int((first_speed(self.sheet) - self.slowest) // self.level_step)
        self.first_speed = self.slowest + self.level_step * self.first_level
        self.period = self.substeps * SUBSTEP
        self.road_width = LANE_WIDTH * self.lanes
        nonnegative = NONNEGATIVE | seen_neighbours.THERE_NAMES
        low = lower_bounds(self.observation_components(), nonnegative)  # type: ignore[arg-type]
        self.observation_space = self.box(low, np.ones(len(low)))
        self.max_crash_loss = self.sheet.weight("crash") / self.period
        speed = self.sheet.weight("speed")
        worst = (
            self.max_crash_loss
            + self.sheet.weight("near_miss")
            + speed * max(0.0, self.keep_right - 1)
        )
        self.reward_space = self.box(-worst, speed)

    def constants(self) -> tuple[Constant, ...]:
        """Return the traffic's density, the drivers, the ego's limits and the reward's weights."""
        return road_constants(self.density)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Fleet:
        """Sample drivers, vehicles and density."""
        u = self.uniform(key, 5 * self.vehicles + 3)
        return sample_fleet(
            self.sheet, self.density, u, split, self.vehicles, self.flowing[0] / self.flowing[1]
        )

    def initial(self, key: jax.Array, params: Fleet) -> State:
        """Start every vehicle in the middle of a lane, at a speed that suits the gaps.

        Vehicles stand in slots of equal length.
        """
        lanes = self.lanes
        u = self.uniform(key, self.vehicles + lanes + 1)
        x, column, speed = self.slots(u[:-1], params, 0)
        x = jnp.where(x - x[0] >= 0.5 * params.circumference, x - params.circumference, x)
        shift = jnp.floor(lanes * u[-1]).astype(jnp.int32)
        lane = (column.astype(np.int32) + shift) % lanes
        speed = jnp.where(traffic.is_ego(self.vehicles), self.first_speed, speed)
        return self.start(
            Pose(x, lane_centre(lane).astype(self.dtype), jnp.zeros_like(x), speed), lane, params
        )

    def slots(self, u: Scalar, params: Fleet, first: int) -> tuple[Scalar, np.ndarray, Scalar]:
        """Return x (m), column and speed (m/s) of the traffic that flows, in slots of equal length.

        Args:
            u: uniform numbers, one for each vehicle and each lane.
            params: the drivers.
            first: number of the first vehicle that flows.
        """
        vehicles, lanes = self.flowing
        index = np.arange(vehicles)
        column = index % lanes
        in_column = np.bincount(column)[column]
        slot = params.circumference * (1 / in_column).astype(self.dtype)
        spread = 0.5 * (slot - self.start_gap)
        x = slot * (index // lanes + u[vehicles : vehicles + lanes][column]) + spread * (
            u[:vehicles] - 0.5
        )
        flowing = slice(first, first + vehicles)
        gap_speed = START_GAP_FRACTION * (slot - self.car_length) / params.driver.time_gap[flowing]
        speed = jnp.minimum(
            START_SPEED_FRACTION * params.driver.desired_speed[flowing],
            jnp.minimum(gap_speed, MAX_START_SPEED),
        )
        return x, column, speed

    def start(self, pose: Pose, lane: Scalar, params: Fleet) -> State:
        """Return the state of an episode that begins with these poses and lanes."""
        recentred, _ = traffic.recentre(Traffic(pose, lane, lane), params)
        count, zero = jnp.int32(0), jnp.zeros((), self.dtype)
        level, crashed = jnp.int32(self.first_level), jnp.bool_(False)
        return State(recentred, zero, level, count, count, zero, crashed, count)

    def road_rules(self, state: State) -> Rules:
        """Return the rules of the road at the ego's place."""
        return Rules(self.lanes)

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
        rules = self.road_rules(state)
        decided, leaders = traffic.look(state.traffic, params, direction, rules)
        driven_traffic, crashed = traffic.drive(
            decided, params, leaders, state.crashed, control, substeps, rules
        )
        driven_traffic, distance = traffic.recentre(driven_traffic, params)
        return state._replace(
            traffic=traffic.finish_changes(driven_traffic, params),
            travelled=state.travelled + distance,
            crashed=crashed,
        )

    def close_step(self, state: State, next_state: State, params: Fleet) -> State:
        """Update the counts and the return."""
        crossed = lane_of(ego_pose(state).y, self.lanes) != lane_of(
            ego_pose(next_state).y, self.lanes
        )
        old_x, new_x = state.traffic.pose.x, next_state.traffic.pose.x
        # Not half a ring away, where ahead becomes behind.
        beside = jnp.abs(new_x) < 0.25 * params.circumference
        steady = self.road_rules(state).steady
        if steady is not None:
            beside = beside & ~steady
        net_overtaken = (beside & (old_x > 0) & (new_x <= 0)).sum() - (
            beside & (old_x <= 0) & (new_x > 0)
        ).sum()
        return next_state._replace(
            lane_changes=next_state.lane_changes + crossed.astype(jnp.int32),
            overtaken=next_state.overtaken + net_overtaken.astype(jnp.int32),
            earned=state.earned + self.pay(state, next_state, params),
            steps=next_state.steps + 1,
        )

    # -- what the ego sees -------------------------------------------------------------------------

    def neighbours(
        self, state: State, params: Fleet, place: Scalar, lane: Scalar
    ) -> list[tuple[Scalar, Scalar]]:
        """Find the nearest ahead, the second ahead and the nearest behind in a lane.

        Each is an index (the ego's if there is nobody) and a gap, m.
        """
        x = state.traffic.pose.x
        index = jnp.arange(self.vehicles, dtype=jnp.int32)
        in_lane = ((state.traffic.lane == lane) | (state.traffic.target == lane)) & ~traffic.is_ego(
            self.vehicles
        )
        nobody = self.vehicles << INDEX_BITS

        def order(between: Scalar) -> Scalar:
            between = jnp.where(between < 0, between + self.vehicles, between)
            return jnp.where(in_lane, (between << INDEX_BITS) | index, nobody)

        ahead, behind = order(place - place[0]), order(place[0] - place)
        first, last = ahead.min(), behind.min()
        second = jnp.where(ahead > first, ahead, nobody).min()
        neighbours = []
        for key, sign in ((first, 1), (second, 1), (last, -1)):
            vehicle = key & ((1 << INDEX_BITS) - 1)
            distance = sign * x[vehicle]
            distance = jnp.where(distance < 0, distance + params.circumference, distance)
            gap = distance - 0.5 * (params.length[0] + params.length[vehicle])
            neighbours.append((vehicle, jnp.where(vehicle == 0, params.circumference, gap)))
        return neighbours

    def see(self, state: State, params: Fleet, lane: Scalar) -> list[Scalar]:
        """Return the entries about the others around a lane that counts as the ego's own.

        They have the order of :data:`.seen_neighbours.SHAPE`.
        """
        pose = state.traffic.pose
        ego = ego_pose(state)
        forward = traffic.forward_speed(pose)
        sideways = pose.speed * jnp.sin(pose.heading)
        place = traffic.ranks(pose.x)
        entries = []
        for neighbour in (lane - 1, lane, lane + 1):
            for vehicle, gap in self.neighbours(state, params, place, neighbour):
                visible = (vehicle != 0) & (gap < self.sight)
                entries.append(visible)
                entries.append(jnp.where(visible, jnp.clip(gap * (1 / self.sight), -1, 1), 1))
                for value, scale in (
                    (forward[vehicle] - forward[0], self.speed_scale),
                    (pose.y[vehicle] - ego.y, Y_SCALE),
                    (sideways[vehicle], SIDEWAYS_SCALE),
                ):
                    entries.append(jnp.where(visible, jnp.clip(value * (1 / scale), -1, 1), 0))
        return entries

    def see_itself(self, state: State, lane: Scalar) -> list[Scalar]:
        """Return the first five entries, about the ego."""
        ego = ego_pose(state)
        return [
            jnp.clip(ego.speed * (1 / self.top_speed), 0, 1),
            jnp.clip(ego.y * (1 / self.road_width), 0, 1),
            jnp.clip(ego.heading * (2 / math.pi), -1, 1),
            jnp.clip((ego.y - lane_centre(lane)) * (1 / LANE_WIDTH), -1, 1),
            jnp.clip(state.earned * (self.period / CRASH_SECONDS), 0, 1),
        ]

    def see_road(self, state: State, params: Fleet) -> list[Scalar]:
        """Return the entries about the road itself."""
        return []

    def road_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`see_road`."""
        return ()

    def own_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`see_itself`."""
        return (
            Component("speed", "speed of the ego", f"{self.top_speed:g} m/s"),
            Component("y", "place across the road, from its right edge", f"{self.road_width:g} m"),
            Component("heading", "direction, relative to the road; left is positive", "90 degrees"),
            Component(
                "offset",
                "place relative to the centre of its lane; left is positive",
                f"{LANE_WIDTH:g} m",
            ),
            Component(
                "earned",
                "return so far, which a crash takes back",
                f"{CRASH_SECONDS / self.period:g}",
            ),
        )

    def others_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`see`."""
        places = itertools.product(seen_neighbours.LANES, seen_neighbours.PLACES)
        return tuple(
            component
            for lane, place in places
            for component in neighbour_components(lane, place, self.sight, self.speed_scale)
        )

    def time_to_collision(self, state: State, params: Fleet) -> Scalar:
        """Return the time (s) to a collision with the vehicle ahead in the ego's lanes.

        It holds at present speeds and is MAX_TTC at most.
        """
        forward = traffic.forward_speed(state.traffic.pose)
        place = traffic.ranks(state.traffic.pose.x)

        def ahead(lane: Scalar) -> Scalar:
            leader, gap = self.neighbours(state, params, place, lane)[0]
            closing = forward[0] - forward[leader]
            time = jnp.maximum(gap, 0) / jnp.where(closing > 0, closing, 1)
            return jnp.where((closing > 0) & (leader != 0), jnp.minimum(time, MAX_TTC), MAX_TTC)

        return jnp.minimum(ahead(state.traffic.lane[0]), ahead(state.traffic.target[0]))

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Fleet
    ) -> jax.Array:
        """Return the mean speed over the step, reduced in lanes to the left.

        A crash gives what it takes back instead.
        """
        return self.pay(state, next_state, params)

    def pay(self, state: State, next_state: State, params: Fleet) -> Scalar:
        """Return the reward of a step."""
        speed = (next_state.travelled - state.travelled) * (1 / self.period)
        speed_fraction = jnp.clip(
            (speed - self.first_speed) * (1 / (self.fastest - self.first_speed)), 0, 1
        )
        max_offset = LANE_WIDTH * (self.lanes - 1 - self.right_lane)
        offset = jnp.clip(
            (ego_pose(next_state).y - lane_centre(self.right_lane)) * (1 / max_offset), 0, 1
        )
        reward = speed_fraction * (1 - self.keep_right * offset)
        if "reward.speed" in self.sheet or "reward.near_miss" in self.sheet:
            near_miss = self.time_to_collision(next_state, params) < TIME_TO_COLLISION
            reward = self.sheet.weight("speed") * reward - jnp.where(
                near_miss, self.sheet.weight("near_miss"), 0
            )
        return jnp.where(
            next_state.crashed, -jnp.clip(state.earned, 0, self.max_crash_loss), reward
        )

    def terminal(self, state: State, key: jax.Array, params: Fleet) -> jax.Array:
        """Say whether the ego crashed."""
        return state.crashed

    def cost(self, state: State, action: jax.Array, next_state: State, params: Fleet) -> jax.Array:
        """Return 1 for a near miss, and for a crash the steps of a second."""
        near_miss = self.time_to_collision(next_state, params) < TIME_TO_COLLISION
        crash_steps = np.asarray(SECOND / self.substeps, self.dtype)
        return jnp.where(next_state.crashed, crash_steps, near_miss.astype(self.dtype))

    def info(self, state: State, params: Fleet) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        time = jnp.maximum(state.steps, 1) * np.asarray(self.period, self.dtype)
        return {
            "success": ~state.crashed & (state.overtaken > 0),
            "collision": state.crashed,
            "mean_speed": state.travelled / time,
            "distance": state.travelled,
            "lane_changes": state.lane_changes,
            "overtaken": state.overtaken,
            "time_to_collision": self.time_to_collision(state, params),
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def why_over(self, state: State, params: Fleet, info: dict[str, Any]) -> str:
        """Say what the ego hit."""
        ego = jax.tree.map(float, ego_pose(state))
        if abs(ego.heading) > math.pi / 2:
            return "the ego turned around"
        width = self.sheet.value("car_width")
        half = 0.5 * (
            self.car_length * abs(math.sin(ego.heading)) + width * abs(math.cos(ego.heading))
        )
        if ego.y < half + 0.1 or ego.y > self.road_width - half - 0.1:
            return "the ego hit the edge of the road"
        return "the ego collided with another vehicle"

    def describe(self, state: State, params: Fleet) -> str:
        """Describe the ego and the vehicles around it, with units."""
        ego = jax.tree.map(float, ego_pose(state))
        pose = Pose(*(np.asarray(value, np.float64) for value in state.traffic.pose))
        lanes, targets = np.asarray(state.traffic.lane), np.asarray(state.traffic.target)
        turn = abs(math.degrees(ego.heading))
        side = "left" if ego.heading >= 0 else "right"
        lines = [
            f"You drive {ego.speed:.1f} m/s at {ego.y:.1f} m from the right edge of a road of "
            f"{self.lanes} lanes of {LANE_WIDTH:.0f} m (lane 0 is the right one), heading "
            f"{turn:.1f} degrees to the {side}. {self.describe_plan(state)}"
        ]
        length = np.asarray(params.length, np.float64)
        for i in np.argsort(-pose.x).tolist():
            gap = abs(pose.x[i]) - 0.5 * (length[0] + length[i])
            if i == 0 or gap > self.sight:
                continue
            where = (
                f"lane {lanes[i]}"
                if lanes[i] == targets[i]
                else f"changing from lane {lanes[i]} to {targets[i]}"
            )
            side = (
                "beside you" if gap < 0 else f"{gap:.0f} m {'ahead' if pose.x[i] > 0 else 'behind'}"
            )
            oncoming = " towards you" if math.cos(pose.heading[i]) < 0 else ""
            lines.append(
                f"A {self.kind(i, params)} {side}, {where}, {pose.speed[i]:.1f} m/s{oncoming}."
            )
        return "\n".join(lines)

    def describe_plan(self, state: State) -> str:
        """Describe the ego's target speed and lane; nothing if it is driven by hand."""
        return ""

    def kind(self, vehicle: int, params: Fleet) -> str:
        """Return what a vehicle is."""
        return "truck" if params.length[vehicle] > self.car_length else "car"

    def grass(self, state: State) -> list[tuple[float, float, float, float]]:
        """List the rectangles without a lane, each from and to x and from and to y, m.

        x is relative to the ego.
        """
        return []

    def draw(self, state: State, params: Fleet) -> np.ndarray:
        """Draw the road from above; traffic drives to the right.

        The others are blue. The ego is green, and red after a crash.
        """
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "darkseagreen")
        canvas = ImageDraw.Draw(image)
        scale = 4.0
        middle = 0.35 * width  # pixels a metre

        def pixel(x: float, y: float) -> tuple[float, float]:
            return middle + scale * x, height / 2 - scale * (y - self.road_width / 2)

        canvas.rectangle((0, pixel(0, self.road_width)[1], width, pixel(0, 0)[1]), fill="dimgray")
        for low_x, high_x, low, high in self.grass(state):
            begin = pixel(max(low_x, -middle / scale), 0)[0]
            end = pixel(min(high_x, width / scale), 0)[0]
            if begin < end:
                canvas.rectangle(
                    (begin, pixel(0, high)[1], end, pixel(0, low)[1]), fill="darkseagreen"
                )
        dash = 12.0
        first = -float(state.travelled) % dash - dash * math.ceil(middle / scale / dash)
        for lane in range(self.lanes + 1):
            y = pixel(0, lane * LANE_WIDTH)[1]
            if lane in (0, self.lanes):
                canvas.line((0, y, width, y), fill="white", width=2)
                continue
            for x in np.arange(first, (width - middle) / scale, dash):
                canvas.line((pixel(x, 0)[0], y, pixel(x + dash / 3, 0)[0], y), fill="white")
        pose = Pose(*(np.asarray(value, np.float64) for value in state.traffic.pose))
        for i in reversed(range(self.vehicles)):
            ahead = np.array([math.cos(pose.heading[i]), math.sin(pose.heading[i])])
            left = np.array([-ahead[1], ahead[0]])
            half = 0.5 * np.array([params.length[i], params.width[i]], np.float64)
            corners = [
                pixel(
                    *(np.array([pose.x[i], pose.y[i]]) + a * half[0] * ahead + b * half[1] * left)
                )
                for a, b in ((1, 1), (1, -1), (-1, -1), (-1, 1))
            ]
            colour = road_pictures.vehicle_colour(i, state.crashed)
            canvas.polygon(corners, fill=colour, outline="black")
        return np.asarray(image)


class Highway(NamedActions, Road):
    """Five meta-actions, once a second."""

    action_names = ACTIONS
    rhythm = ", once a second"
    substeps = SECOND
    own_entries = 8

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.action_space = spaces.Discrete(len(ACTIONS))

    def possible_actions(self, state: State) -> jax.Array:
        """Return which actions are not played as IDLE, bool ``(5,)``."""
        may = self.road_rules(state).ego_may
        lane, target = state.traffic.lane[0], state.traffic.target[0]
        return jnp.stack(
            [
                (target < self.lanes - 1)
                & ((target < lane) | ((target == lane) & may(target, target + 1))),
                jnp.bool_(True),
                (target > 0) & ((target > lane) | ((target == lane) & may(target, target - 1))),
                state.level < LEVELS - 1,
                state.level > 0,
            ]
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Fleet) -> State:
        """Drive for a second."""
        action = jnp.where(self.possible_actions(state)[action], action, IDLE)
        lane, target = state.traffic.lane[0], state.traffic.target[0]
        direction = (action == LANE_LEFT).astype(jnp.int32) - (action == LANE_RIGHT).astype(
            jnp.int32
        )
        new_target = target + direction
        # Turning back swaps both lanes, because the ego still counts in the one it leaves.
        new_lane = jnp.where(new_target == lane, target, lane)
        ego = traffic.is_ego(self.vehicles)
        level = (
            state.level
            + (action == FASTER).astype(jnp.int32)
            - (action == SLOWER).astype(jnp.int32)
        )
        commanded = state.traffic._replace(
            lane=jnp.where(ego & (direction != 0), new_lane, state.traffic.lane),
            target=jnp.where(ego, new_target, state.traffic.target),
        )
        y = lane_centre(new_target)
        speed = self.slowest + self.level_step * level

        def control(pose: Pose) -> tuple[Scalar, Scalar]:
            acceleration = (speed - pose.speed) * (1 / SPEED_TIME)
            acceleration = jnp.clip(acceleration, -self.braking, self.acceleration)
            return acceleration, bicycle.steer_to(pose, y, params.length[0])

        def half(looks_right: Scalar, state: State) -> State:
            return self.drive(state, params, control, 1 - 2 * looks_right, FIRST_HALF - looks_right)

        next_state = jax.lax.fori_loop(0, 2, half, state._replace(traffic=commanded, level=level))
        return self.close_step(state, next_state, params)

    def observation(self, state: State, key: jax.Array, params: Fleet) -> jax.Array:
        """Return shape ``(53,)``; see the table."""
        lane, target = state.traffic.lane[0], state.traffic.target[0]
        return self.stack(
            *self.see_itself(state, target),
            state.level * (1 / (LEVELS - 1)),
            target * (1 / (self.lanes - 1)),
            lane != target,
            *self.see_road(state, params),
            *self.see(state, params, target),
        )

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        steps = f"{self.lanes - 1} lane{'s' * (self.lanes > 2)}"
        speeds = f"number of the speed that it keeps, of {self.slowest:g} to {self.fastest:g} m/s"
        return (
            *self.own_components(),
            Component("speed_to_keep", speeds, f"{LEVELS - 1} levels"),
            Component(
                "target_lane", "lane it drives in or changes to, counted from the right", steps
            ),
            Component("changing", "whether it is changing lanes"),
            *self.road_components(),
            *self.others_components(),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the five decisions."""
        lanes = (
            "change to the lane to the left",
            "keep lane and speed",
            "change to the lane to the right",
        )
        speeds = "keep the next higher speed", "keep the next lower speed"
        return singles(dict(zip(ACTIONS, (*lanes, *speeds), strict=True)))

    def noop_action(self) -> np.ndarray:
        """Return IDLE."""
        return np.array(IDLE)

    def describe_plan(self, state: State) -> str:
        """Describe target speed and lane."""
        speed = self.slowest + self.level_step * int(state.level)
        return f"You are to keep {speed:.0f} m/s in lane {int(state.traffic.target[0])}."
