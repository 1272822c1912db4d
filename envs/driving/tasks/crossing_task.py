"""Base class of tasks at junctions.

The ego drives along a given route among cars that enter, yield and leave.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ...shared.alternating_bands import alternating_bands, split_units
from ...shared.named_actions import NamedActions
from ..arrays import Scalar
from ..pictures import road_pictures
from ..roads import routes
from ..traffic import junction
from ..traffic.car_following import Driver
from ..traffic.junction import HALF_LENGTH, LENGTH, WIDTH, Cars, Layout
from ..traffic.nearest import sort_nearest
from ..traffic.traffic import SUBSTEP

SLOWER, IDLE, FASTER = range(3)
ACTIONS = ("SLOWER", "IDLE", "FASTER")
LEVELS = (0.0, 4.5, 9.0)  # m/s: target speeds
SPEED_TIME = 0.6  # s: time constant of the ego's speed control, highway-env's
MAX_ACCELERATION = 3.0  # m/s^2, of the ego
MAX_BRAKING = 6.0  # m/s^2, of the ego
SECOND = round(1 / SUBSTEP)  # Sub-steps in a step of 1 s
FIRST_HALF = 8  # Sub-steps between two looks; one less from there to the next second
LEAVING_DISTANCE = 30.0  # m behind the junction: where the others leave
ARRIVAL_DISTANCE = 25.0  # m behind the junction: where the ego has arrived
ENTRY_ROOM = 15.0  # m: free road that a car needs to enter
MEAN_DESIRED_SPEED = 8.0  # m/s: the others' mean desired speed, at which they enter
CELL_LENGTH = 17.0  # m: road of a car at the start
SECOND_COST = 0.25  # Points that a second costs on arrival, of 100
NUM_SEEN = 10  # Other cars in the observation
PLACE_SCALE = 100.0  # m that are shown as 1
SPEED_SCALE = 10.0  # m/s that are shown as 1
# s: cycle of the traffic lights up the road.
MIN_CYCLE = 45.0
MAX_CYCLE = 55.0
MAX_RED_TIME = 30.0  # s, of these lights in a cycle
TIME_TO_COLLISION = 1.5  # s: a shorter time is a near miss
SAMPLE_INTERVAL = 0.25  # s: interval at which bodies are tested for a near miss


class Demand(NamedTuple):
    """Traffic that comes on an arm."""

    entering: float  # probability that a car comes in a second
    turns: tuple[float, ...]  # shares of the turns
    cars: int = 0  # largest number of them on the road
    # whether a traffic light up the road holds them back at the end of each cycle
    platoons: bool = False


class Params(NamedTuple):
    """The context."""

    driver: Driver  # ``(cars,)``; the ego's are those that a driver expects of others
    cycle: Scalar  # s, of the traffic lights up the road
    gap: Scalar  # s at the end of each cycle in which they are red
    phase: Scalar  # s: time since a cycle began, at the start


class State(NamedTuple):
    """The cars, and the ego's record so far."""

    cars: Cars
    level: Scalar  # int32: target speed, 0 to 2
    crashed: Scalar  # bool
    arrived: Scalar  # bool
    # bool: whether it would soon touch another car at the speeds after the last step
    near_miss: Scalar
    steps: Scalar  # int32


def ego_control(speed: Scalar, level: Scalar, fastest: Scalar) -> Scalar:
    """Return the ego's acceleration towards its target speed, m/s^2."""
    speed_error = jnp.minimum(level * LEVELS[1], fastest) - speed
    return jnp.clip(speed_error * (1 / SPEED_TIME), -MAX_BRAKING, MAX_ACCELERATION)


class Crossing(NamedActions, Task[Params, State]):
    """Three meta-actions on the way through a junction, once a second."""

    measures: ClassVar[dict[str, str]] = {
        "collision": "whether the ego has crashed",
        "arrived": "whether the ego has left by its exit",
        "way": (
            "of the ego along its route from the line before the junction, negative before it, m"
        ),
        "near_miss": (
            f"whether it would touch another car within {TIME_TO_COLLISION:g} s if all kept their "
            "speeds"
        ),
        "others": "cars on the road besides the ego",
    }
    action_names = ACTIONS
    rhythm = ", once a second"
    picture_shape = (400, 400, 3)
    period = SECOND * SUBSTEP
    #: Routes, the ego's among them.
    layout: ClassVar[Layout]
    ego_route: ClassVar[int]
    #: Number of routes of an arm: route ``turns * arm + turn``.
    turns: ClassVar[int]
    #: Traffic of each arm.
    demand: ClassVar[tuple[Demand, ...]]
    #: Words for the routes of an arm.
    turn_names: ClassVar[tuple[str, ...]]
    #: s: range of the others' time gaps.
    time_gap: ClassVar[tuple[float, float]] = (1.0, 1.8)
    #: m before the line: range of the ego's first place.
    first: ClassVar[tuple[float, float]] = (30.0, 40.0)
    #: m: half of the pictured square.
    half_picture: ClassVar[float]

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty is None or not 0 <= difficulty <= MAX_RED_TIME:
            raise ValueError(
                f"The difficulty of {card.id} is the time without new cars in each cycle of the "
                f"traffic lights, in [0, {MAX_RED_TIME:g}] s, got {difficulty!r}."
            )
        self.gap = float(difficulty)
        self.arm = np.repeat(
            np.arange(len(self.demand), dtype=np.int32), [arm.cars for arm in self.demand]
        )
        self.num_others = len(self.arm)
        self.is_ego = np.arange(self.num_others + 1) == 0
        self.action_space = spaces.Discrete(len(ACTIONS))
        low = np.concatenate([[-1, 0, 0, 0], np.tile([0, -1, -1, -1, -1, -1, -1, -1], NUM_SEEN)])
        self.observation_space = self.box(low, np.ones(len(low)))
        self.reward_space = self.box(0, 100)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample drivers and traffic lights."""
        count = self.num_others + 1
        u = split_units(self.uniform(key, 3 * count + 3), split)
        speed, gap, eager = (u[k * count : (k + 1) * count] for k in range(3))

        def for_ego(usual: float, sampled: Scalar) -> Scalar:
            return jnp.where(self.is_ego, usual, sampled).astype(self.dtype)

        driver = Driver(
            desired_speed=for_ego(MEAN_DESIRED_SPEED, MEAN_DESIRED_SPEED - 0.5 + speed),
            time_gap=for_ego(1.5, self.time_gap[0] + (self.time_gap[1] - self.time_gap[0]) * gap),
            jam_gap=jnp.full(count, 2.0, self.dtype),
            acceleration=for_ego(2.0, 1.5 + eager),
            deceleration=jnp.full(count, 3.0, self.dtype),
        )
        cycle = MIN_CYCLE + (MAX_CYCLE - MIN_CYCLE) * u[-3]
        empty = alternating_bands(u[-1], split, 0.9 * self.gap, 1.1 * self.gap, bands=20)
        return Params(driver, cycle, empty, cycle * u[-2])

    def initial(self, key: jax.Array, params: Params) -> State:
        """Put the ego on its route, and cars where those are that have entered before."""
        count = self.num_others
        u = self.uniform(key, 3 * count + 1)
        occupancy, turn, place = (u[k * count : (k + 1) * count] for k in range(3))
        number = np.arange(count) - np.searchsorted(self.arm, self.arm)
        # Bodies keep 7 m from each other: a cell is that much longer than the range of places in
        # it.
        s = CELL_LENGTH * number + (CELL_LENGTH - LENGTH - 7) * place
        share = np.array(
            [1 - (1 - arm.entering) ** (CELL_LENGTH / MEAN_DESIRED_SPEED) for arm in self.demand],
            self.dtype,
        )
        entered = self.may_enter(params.phase - s * (1 / MEAN_DESIRED_SPEED), params)[
            self.arm, np.arange(count)
        ]
        ego = (
            float(self.layout.line[self.ego_route])
            - self.first[1]
            + (self.first[1] - self.first[0]) * u[-1]
        )

        def join(ego: Any, traffic: Any, dtype: Any) -> Scalar:
            return jnp.concatenate(
                [jnp.reshape(jnp.asarray(ego, dtype), 1), jnp.asarray(traffic, dtype)]
            )

        cars = Cars(
            join(self.ego_route, self.turns * self.arm + self.draw_turn(turn, self.arm), jnp.int32),
            join(ego, s, self.dtype),
            join(
                LEVELS[2],
                jnp.minimum(params.driver.desired_speed[1:], MEAN_DESIRED_SPEED),
                self.dtype,
            ),
            join(True, (occupancy < share[self.arm]) & entered, jnp.bool_),
        )
        zero, false = jnp.int32(0), jnp.bool_(False)
        return State(cars, jnp.int32(2), false, false, false, zero)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Drive for a second; then cars leave and come."""
        turn = (action == FASTER).astype(jnp.int32) - (action == SLOWER).astype(jnp.int32)
        level = jnp.clip(state.level + turn, 0, len(LEVELS) - 1)
        car_routes = junction.routes_of(state.cars, self.layout)
        cars, crashed, arrived = self.drive(state, car_routes, level, params)
        near_miss = junction.would_touch(car_routes, cars, TIME_TO_COLLISION, SAMPLE_INTERVAL)
        cars = cars._replace(
            present=cars.present & ((cars.s <= car_routes.out + LEAVING_DISTANCE) | self.is_ego)
        )
        time = params.phase + state.steps.astype(self.dtype)
        cars = self.enter(cars, self.uniform(key, 2 * len(self.demand)), time, params)
        return State(
            cars, level, crashed, arrived & ~crashed, near_miss & ~arrived, state.steps + 1
        )

    def drive(
        self, state: State, car_routes: junction.CarRoutes, level: Scalar, params: Params
    ) -> tuple[Cars, Scalar, Scalar]:
        """Return the cars a second later, and whether the ego has crashed or arrived.

        After a crash or an arrival time stands still.
        """
        end = float(self.layout.out[self.ego_route]) + ARRIVAL_DISTANCE

        def half(second: Scalar, carry: Any) -> Any:
            ahead = junction.look(carry[0], car_routes, self.layout)

            def substep(_: Any, carry: Any) -> Any:
                cars, pose, crashed, arrived = carry
                fastest = junction.bend_speed(cars, car_routes)
                acceleration = junction.follow(cars, ahead, params.driver, fastest)
                acceleration = jnp.where(
                    self.is_ego, ego_control(cars.speed, level, fastest), acceleration
                )
                s, speed = junction.roll(cars.s, cars.speed, acceleration, SUBSTEP)
                next_cars = cars._replace(s=s, speed=speed)
                next_pose = junction.poses(car_routes, next_cars)
                hit = junction.ego_touches(pose, next_pose, cars.present, SUBSTEP)
                over = crashed | arrived
                next_cars, next_pose = jax.tree.map(
                    lambda new, old: jnp.where(over, old, new), (next_cars, next_pose), (cars, pose)
                )
                return (
                    next_cars,
                    next_pose,
                    crashed | (hit & ~over),
                    arrived | (next_cars.s[0] >= end),
                )

            return jax.lax.fori_loop(0, FIRST_HALF - second, substep, carry)

        start = state.cars, junction.poses(car_routes, state.cars), state.crashed, state.arrived
        cars, _, crashed, arrived = jax.lax.fori_loop(0, 2, half, start)
        return cars, crashed, arrived

    def may_enter(self, time: Scalar, params: Params) -> Scalar:
        """Say on which arms cars may come at a time, s; ``(arms, ...)`` bool."""
        green = jnp.mod(time, params.cycle) < params.cycle - params.gap
        steady = np.array([not arm.platoons for arm in self.demand]).reshape(
            -1, *(1,) * np.ndim(time)
        )
        return steady | green

    def draw_turn(self, u: Scalar, arm: np.ndarray) -> Scalar:
        """Return turns of cars on these arms, int32, given uniform numbers."""
        shares = np.cumsum([arm_demand.turns for arm_demand in self.demand], 1).astype(self.dtype)[
            arm
        ]
        return (u[:, None] >= shares[:, :-1]).sum(1, dtype=jnp.int32)

    def enter(self, cars: Cars, u: Scalar, time: Scalar, params: Params) -> Cars:
        """Let cars come on the arms.

        A car comes only if the beginning of its arm is free and one of the arm's cars is away.
        """
        arms = np.arange(len(self.demand), dtype=np.int32)
        from_arm = self.arm == arms[:, None]
        away = from_arm & ~cars.present[1:]
        blocked = (from_arm & cars.present[1:] & (cars.s[1:] < ENTRY_ROOM)).any(1)
        share = np.array([arm.entering for arm in self.demand], self.dtype)
        comes = (u[: len(arms)] < share) & ~blocked & self.may_enter(time, params)
        first = away & (jnp.cumsum(away, 1) == 1)
        who = jnp.concatenate([jnp.zeros(1, bool), (first & comes[:, None]).any(0)])
        turn = self.draw_turn(u[len(arms) :], arms)
        route = jnp.concatenate([cars.route[:1], (self.turns * arms + turn)[self.arm]])
        came = Cars(
            route,
            jnp.zeros((), self.dtype),
            jnp.minimum(params.driver.desired_speed, MEAN_DESIRED_SPEED),
            jnp.bool_(True),
        )
        return Cars(*(jnp.where(who, new, old) for new, old in zip(came, cars, strict=True)))

    # -- what the ego sees -------------------------------------------------------------------------

    def nearest_others(self, pose: junction.Pose, present: Scalar) -> Scalar:
        """Return the indices of the others by distance, ``(NUM_SEEN,)``; 0 means nobody.

        Only cars on the road count.
        """
        dx, dy = pose.x - pose.x[0], pose.y - pose.y[0]
        index = np.arange(self.num_others + 1)
        distance = jnp.where(present & (index > 0), dx * dx + dy * dy, jnp.inf)
        order = sort_nearest(distance, NUM_SEEN)
        return jnp.where(distance[order] < jnp.inf, order, 0)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return shape ``(84,)``; see the table."""
        cars = state.cars
        middle = 0.5 * (self.turns - 1)
        pose = junction.poses(junction.routes_of(cars, self.layout), cars)
        order = self.nearest_others(pose, cars.present)
        c, s = jnp.cos(pose.heading), jnp.sin(pose.heading)
        turn = (cars.route % self.turns - middle) * np.asarray(1 / middle, self.dtype)
        places = pose.x * (1 / PLACE_SCALE), pose.y * (1 / PLACE_SCALE)
        speeds = cars.speed * c * (1 / SPEED_SCALE), cars.speed * s * (1 / SPEED_SCALE)
        rows = jnp.stack([jnp.ones_like(c), *places, *speeds, c, s, turn], 1)[order]
        other_entries = jnp.where((order > 0)[:, None], rows, 0).reshape(-1)
        ego_entries = self.stack(
            (float(self.layout.line[self.ego_route]) - HALF_LENGTH - cars.s[0]) * (1 / PLACE_SCALE),
            cars.speed[0] * (1 / SPEED_SCALE),
            state.level * (1 / (len(LEVELS) - 1)),
            1 - state.steps * (1 / self.card.horizon),
        )
        low, high = self.observation_space.low, self.observation_space.high  # type: ignore[attr-defined]
        return jnp.clip(jnp.concatenate([ego_entries, other_entries]), low, high)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        ego_components = (
            Component(
                "line",
                "way of the ego's front to the line before the junction; negative behind it",
                "100 m",
            ),
            Component("speed", "of the ego", "10 m/s"),
            Component(
                "speed_to_keep",
                "number of the speed that it keeps, of 0, 4.5 and 9 m/s",
                "2 levels",
            ),
            Component("time_left", "until the time limit", f"{self.card.horizon} s"),
        )
        names = f"{self.turn_names[0]} (-1) to {self.turn_names[-1]} (1)"
        other_components = (
            Component(f"car_{k}_{name}", f"{meaning}: car {k} by distance", unit)
            for k in range(1, NUM_SEEN + 1)
            for name, meaning, unit in (
                ("there", "whether it is on the road", "1"),
                ("x", "place to the east of the junction's centre", "100 m"),
                ("y", "place to the north of it", "100 m"),
                ("vx", "speed to the east", "10 m/s"),
                ("vy", "speed to the north", "10 m/s"),
                ("cos", "cosine of its direction, from east to the left", "1"),
                ("sin", "sine of its direction", "1"),
                ("turn", f"where it is going: {names}", "1"),
            )
        )
        return (*ego_components, *other_components)

    def action_components(self) -> tuple[Component, ...]:
        """List the three decisions."""
        meanings = "keep the next lower speed", "keep the speed", "keep the next higher speed"
        return singles(dict(zip(ACTIONS, meanings, strict=True)))

    def noop_action(self) -> np.ndarray:
        """Return IDLE."""
        return np.array(IDLE)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return 100 on arrival, less 0.25 for each second."""
        return jnp.where(next_state.arrived, 100 - SECOND_COST * next_state.steps, 0).astype(
            self.dtype
        )

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the ego has crashed or arrived."""
        return state.crashed | state.arrived

    def cost(self, state: State, action: jax.Array, next_state: State, params: Params) -> jax.Array:
        """Return 1 for a crash or a near miss."""
        return (next_state.crashed | next_state.near_miss).astype(self.dtype)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return {
            "success": state.arrived,
            "collision": state.crashed,
            "arrived": state.arrived,
            "way": state.cars.s[0] - np.asarray(self.layout.line[self.ego_route], self.dtype),
            "near_miss": state.near_miss,
            "others": state.cars.present[1:].sum(dtype=jnp.int32),
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say whether the ego crashed or arrived."""
        return (
            "the ego collided with another car" if state.crashed else "the ego has left by its exit"
        )

    def host_poses(self, state: State) -> np.ndarray:
        """Return x, y and heading of all cars, ``(cars, 3)``; plain NumPy."""
        ways = zip(state.cars.route.tolist(), state.cars.s.tolist(), strict=True)
        return np.array([routes.points(self.layout.route(route), s)[0] for route, s in ways])

    def describe(self, state: State, params: Params) -> str:
        """Describe the ego and the cars that the observation shows, with units."""
        pose = self.host_poses(state)
        cars = state.cars
        to_line = float(self.layout.line[self.ego_route]) - HALF_LENGTH - float(cars.s[0])
        where = (
            f"{to_line:.1f} m before the line of the junction"
            if to_line > 0
            else f"{-to_line:.1f} m behind the line"
        )
        lines = [
            f"You drive {float(cars.speed[0]):.1f} m/s, your front {where}, at ({pose[0, 0]:.1f}, "
            f"{pose[0, 1]:.1f}). You are to keep {LEVELS[int(state.level)]:g} m/s. "
            f"{self.card.horizon - int(state.steps)} s are left. Places are in m to the east and "
            "to the north of the junction's centre."
        ]
        distance = np.hypot(*(pose[:, k] - pose[0, k] for k in (0, 1)))
        visible = [
            i for i in np.argsort(distance, kind="stable").tolist() if i and cars.present[i]
        ][:NUM_SEEN]
        for i in visible:
            turn = self.turn_names[int(cars.route[i]) % self.turns]
            heading = math.degrees(pose[i, 2]) % 360
            lines.append(
                f"A car at ({pose[i, 0]:.1f}, {pose[i, 1]:.1f}), {float(cars.speed[i]):.1f} m/s in "
                f"direction {heading:.0f} degrees (0 is east, 90 north), which {turn}."
            )
        return "\n".join(lines)

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the junction from above: the others blue, the ego green, red after a crash."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "darkseagreen")
        canvas = ImageDraw.Draw(image)
        scale = width / (2 * self.half_picture)

        def pixel(x: float, y: float) -> tuple[float, float]:
            return width / 2 + scale * x, height / 2 - scale * y

        for r, out in enumerate(self.layout.out.tolist()):
            road_pictures.draw_band(
                canvas, pixel, self.layout.route(r), (0.0, out + 2 * LEAVING_DISTANCE), (-2.0, 2.0)
            )
        ends = 0.0, float(self.layout.out[self.ego_route]) + ARRIVAL_DISTANCE
        road_pictures.draw_line(
            canvas, pixel, self.layout.route(self.ego_route), ends, 0.0, dashed=True
        )
        pose = self.host_poses(state)
        for i in reversed(range(len(pose))):
            if state.cars.present[i]:
                colour = road_pictures.vehicle_colour(i, state.crashed)
                road_pictures.draw_car(canvas, pixel, tuple(pose[i]), (LENGTH, WIDTH), colour)
        return np.asarray(image)
