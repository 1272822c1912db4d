"""Drive along a road of your own, among vehicles that do again what was recorded.

Roads, the way and the recording come from a scenario (``scenario.py``). The ego keeps its lane on
the shortest way from its start to its goal; speed is all it decides. Recorded vehicles do not react
to it (``replay.py``): they neither brake nor yield, so that the ego answers for every gap. A speed
limiter keeps the speed limit of the lanes, and in bends that of tyres; it brakes in time with 2
m/s^2.

The shipped scenario is a recording of simulated traffic on the main road of ``intersection.py``
over 400 s (``python -m rlbench_suite.envs.driving.tasks.record_scenario``): turn left from a minor
road without traffic lights. Another one is a context (``context={"scenario": "my_town.json"}``).

======================  ============================================================================
action                  five times a second, ``(1,)`` in [-1, 1]: acceleration (1 is +3 m/s^2, -1 is
                        -6 m/s^2, not below standing still, not beyond the limiter)
observation             the ego: speed, speed of the limiter (by 20 m/s), way to the goal (by 200
                        m), time left (by 60 s); points of its way 10, 20, 40 m ahead, ahead and to
                        the left of it (by 40 m). Then the eight nearest vehicles within 100 m, in
                        the order of their distance: there (0 or 1), place ahead and to the left (by
                        100 m), velocity ahead and to the left (by 20 m/s), cosine and sine of the
                        direction, relative to the ego, and length (by 20 m). Cut off at +-1
reward                  at the goal 100 less 0.5 for each second; else 0, also for a crash
terminated              the goal, or a crash: the ego's rectangle overlaps that of another vehicle,
                        20 times a second
success                 the goal
start                   where the scenario says, at a random speed and a random time of the
                        recording, at which nobody is in the way for 1.5 s (the best of 16 draws)
cost                    1 for a step that ends in less than 1.5 s to a crash if the ego kept its
                        speed; for a crash that of a second, 5
context                 speed at the start, limits of the ego, the scenario. Training episodes lie
                        in the first half of the recording, test episodes in the second half
======================  ============================================================================

Source: replay of recorded traffic as in Kothari et al. 2021, DriverGym, arXiv:2111.06889.
"""

from __future__ import annotations

import json
import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from rlbench_suite.contexts.context import Constant
from rlbench_suite.contexts.document import Document
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ...shared.own_constants import OwnConstants
from ..arrays import Scalar
from ..pictures import road_pictures
from ..roads import routes, scenario
from ..traffic import junction, replay
from ..traffic.nearest import sort_nearest
from ..traffic.replay import Vehicles
from ..vehicle import collision
from ..vehicle.bicycle import LATERAL_ACCELERATION, Pose
from ..vehicle.collision import Body

STEP = 0.2  # s
SUBSTEPS = 4  # Samples of a step at which bodies are tested
HORIZON = 300  # Steps of an episode
LIMITER_BRAKING = 2.0  # m/s^2
LATERAL_FRACTION = 0.65  # Part of the lateral acceleration that the limiter allows in bends
LIMITER_TIME = 0.6  # s: time constant of the limiter
SECOND_COST = 0.5  # Points that a second costs
NUM_SEEN = 8  # Vehicles in the observation
SIGHT = 100.0  # m: distance in which vehicles are seen, which is shown as 1
SPEED_SCALE = 20.0  # m/s that are shown as 1
WAY_DISTANCES = (10.0, 20.0, 40.0)  # m: points of the way in the observation
TIME_TO_COLLISION = 1.5  # s: a shorter time is a near miss
SAMPLE_INTERVAL = 0.25  # s: interval at which bodies are tested for a near miss
START_CANDIDATES = 16  # Times of the recording, of which one begins an episode


class Params(NamedTuple):
    """The context."""

    begin: Scalar  # s of the recording
    speed: Scalar  # m/s at the start


class State(NamedTuple):
    """The ego, and what it has met."""

    s: Scalar  # m along its way
    speed: Scalar  # m/s
    crashed: Scalar  # bool
    arrived: Scalar  # bool
    # bool: whether it would soon touch another vehicle at its speed after the last step
    near_miss: Scalar
    steps: Scalar  # int32


class OwnRoads(Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "collision": "whether the ego has crashed",
        "arrived": "whether the ego has reached its goal",
        "way": "left to the goal, m",
        "near_miss": (
            f"whether it would touch a vehicle within {TIME_TO_COLLISION:g} s if it kept its speed"
        ),
        "others": "recorded vehicles on the road",
    }
    picture_shape = (400, 400, 3)
    period = STEP

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.sheet = OwnConstants(card, self.constants())
        self.acceleration = self.sheet.value("acceleration")
        self.braking = self.sheet.value("braking")
        record = card.context.record("scenario") if card.context else None
        self.scenario = (
            scenario.Scenario.model_validate(json.loads(record.data))
            if record
            else scenario.load_shipped()
        )
        self.recording = replay.recording_of(self.scenario.trajectories)
        self.route, limits, self.start, self.goal = scenario.route_of(self.scenario)
        bend = np.sqrt(
            LATERAL_FRACTION * LATERAL_ACCELERATION / np.maximum(np.abs(self.route.curvature), 1e-9)
        )
        self.limits = np.minimum(limits, bend)
        self.ends = np.append(self.route.start[1:], np.inf)
        self.length, self.width = self.scenario.ego.length, self.scenario.ego.width
        longest = HORIZON * STEP
        if self.scenario.duration < 2 * longest:
            raise ValueError(
                f"{card.id}: a recording has at least {2 * longest:g} s, so that episodes of train "
                f"and test lie apart in it, got {self.scenario.duration:g} s."
            )
        if self.fastest_time() > longest:
            raise ValueError(
                f"{card.id}: at the speed limits the way of {self.goal - self.start:.0f} m takes "
                f"{self.fastest_time():.0f} s, and an episode has {longest:g} s."
            )
        self.action_space = self.box([-1], [1])
        low = np.concatenate(
            [np.zeros(4), -np.ones(2 * len(WAY_DISTANCES)), np.tile([0] + [-1] * 6 + [0], NUM_SEEN)]
        )
        self.observation_space = self.box(low, np.ones(len(low)))
        self.reward_space = self.box(0, 100)

    def fastest_time(self) -> float:
        """Return the time from start to goal at the speed limits, s."""
        ends = np.clip(np.append(self.route.start[1:], np.inf), self.start, self.goal)
        return float((np.diff(np.append(self.start, ends)) / self.limits).sum())

    def constants(self) -> tuple[Constant, ...]:
        """Return the speed at the start and the limits of the ego."""
        return (
            Constant("first_speed", "m/s", 6.0, 9.0, "of the ego at the start", 100.0, minimum=0.0),
            Constant("acceleration", "m/s^2", 3.0, 3.0, "largest of the ego", 9.0, may_vary=False),
            Constant(
                "braking",
                "m/s^2",
                6.0,
                6.0,
                "hardest of the ego; tyres hold 9",
                9.0,
                may_vary=False,
            ),
        )

    def series(self) -> tuple[Document, ...]:
        """Return the scenario."""
        return (
            Document(
                "scenario",
                "roads, the ego's way, recorded vehicles; see docs/extend/scenarios.md",
                scenario.check,
            ),
        )

    # -- the model ---------------------------------------------------------------------------------

    def limiter(self, s: Scalar) -> Scalar:
        """Return the highest speed at a place of the way, m/s."""
        to_piece = jnp.maximum(np.asarray(self.route.start, self.dtype) - s, 0)
        limits = np.asarray(self.limits, self.dtype)
        speeds = jnp.sqrt(limits * limits + 2 * LIMITER_BRAKING * to_piece)
        return jnp.where(s < np.asarray(self.ends, self.dtype), speeds, jnp.inf).min()

    def pose(self, s: Scalar, speed: Scalar) -> Pose:
        """Return the ego's pose."""
        return Pose(*routes.place_at(self.route, s)[:3], speed)

    def touches(self, ego: Pose, vehicles: Vehicles, wider: Scalar = 0.0) -> Scalar:
        """Say whether the ego's body, longer and ``wider`` by so much (m), overlaps another one."""
        ego_body = Body(ego.x, ego.y, ego.heading, self.length + wider, self.width + wider)
        bodies = Body(*vehicles.pose[:3], vehicles.length, vehicles.width)
        return (collision.overlap(ego_body, bodies) & vehicles.present).any()

    def would_touch(self, s: Scalar, speed: Scalar, time: Scalar) -> Scalar:
        """Say whether the ego would soon touch another vehicle if it kept its speed.

        ``time`` is a time of the recording, s.
        """
        times = SAMPLE_INTERVAL * np.arange(1, round(TIME_TO_COLLISION / SAMPLE_INTERVAL) + 1)

        def touches(t: Scalar) -> Scalar:
            return self.touches(
                self.pose(s + speed * t, speed), replay.vehicles_at(self.recording, time + t)
            )

        return jax.vmap(touches)(np.asarray(times, self.dtype)).any()

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample the first speed, and a time of the recording at which nobody is in the way."""
        u = self.uniform(key, START_CANDIDATES + 1)
        speed = self.sheet.sample("first_speed", u[-1], split)
        start = jnp.asarray(self.start, self.dtype)
        speed = jnp.minimum(speed, self.limiter(start))
        half = 0.5 * self.scenario.duration
        begin = half * split + (half - HORIZON * STEP) * u[:-1]

        def blocked(time: Scalar) -> Scalar:
            touches_now = self.touches(
                self.pose(start, speed), replay.vehicles_at(self.recording, time)
            )
            return touches_now | self.would_touch(start, speed, time)

        return Params(begin[jnp.argmin(jax.vmap(blocked)(begin))], speed)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Return the ego at its start."""
        false = jnp.bool_(False)
        return State(
            jnp.asarray(self.start, self.dtype), params.speed, false, false, false, jnp.int32(0)
        )

    def recorded_vehicles(self, state: State, params: Params) -> Vehicles:
        """Return the recorded vehicles at the time of a state."""
        return replay.vehicles_at(
            self.recording, params.begin + state.steps.astype(self.dtype) * STEP
        )

    def control(self, s: Scalar, speed: Scalar, pedal: Scalar) -> Scalar:
        """Return the ego's acceleration, m/s^2, which the limiter may reduce below the pedal's."""
        pedal_acceleration = jnp.where(pedal > 0, pedal * self.acceleration, pedal * self.braking)
        return jnp.clip(
            (self.limiter(s) - speed) * (1 / LIMITER_TIME), -self.braking, pedal_acceleration
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Drive for a fifth of a second; after a crash or at the goal time stands still."""
        begin = params.begin + state.steps.astype(self.dtype) * STEP

        def substep(k: Scalar, state: State) -> State:
            pull = self.control(state.s, state.speed, action[0])
            s, speed = junction.roll(state.s, state.speed, pull, STEP / SUBSTEPS)
            vehicles = replay.vehicles_at(
                self.recording, begin + (k + 1).astype(self.dtype) * (STEP / SUBSTEPS)
            )
            hit = self.touches(self.pose(s, speed), vehicles)
            next_state = state._replace(
                s=s, speed=speed, crashed=hit, arrived=~hit & (s >= self.goal)
            )
            return jax.tree.map(
                lambda new, old: jnp.where(state.crashed | state.arrived, old, new),
                next_state,
                state,
            )

        next_state = jax.lax.fori_loop(0, SUBSTEPS, substep, state)
        near_miss = self.would_touch(next_state.s, next_state.speed, begin + STEP)
        return next_state._replace(near_miss=near_miss & ~next_state.arrived, steps=state.steps + 1)

    # -- what the ego sees -------------------------------------------------------------------------

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return shape ``(74,)``; see the table."""
        ego = self.pose(state.s, state.speed)
        vehicles = self.recorded_vehicles(state, params)
        c, s = jnp.cos(ego.heading), jnp.sin(ego.heading)

        def from_ego(x: Scalar, y: Scalar, scale: float) -> tuple[Scalar, Scalar]:
            return (c * x + s * y) * (1 / scale), (c * y - s * x) * (1 / scale)

        poses_ahead = [self.pose(state.s + ahead, state.speed) for ahead in WAY_DISTANCES]
        points = [
            value
            for p in poses_ahead
            for value in from_ego(p.x - ego.x, p.y - ego.y, WAY_DISTANCES[-1])
        ]
        ego_entries = self.stack(
            state.speed * (1 / SPEED_SCALE),
            self.limiter(state.s) * (1 / SPEED_SCALE),
            (self.goal - state.s) * (1 / 200),
            1 - state.steps * (1 / HORIZON),
            *points,
        )
        order, visible = find_nearest(ego, vehicles)
        pose = vehicles.pose
        turn = pose.heading - ego.heading
        speeds = pose.speed * jnp.cos(pose.heading), pose.speed * jnp.sin(pose.heading)
        rows = jnp.stack(
            [
                jnp.ones_like(pose.x),
                *from_ego(pose.x - ego.x, pose.y - ego.y, SIGHT),
                *from_ego(*speeds, SPEED_SCALE),
                jnp.cos(turn),
                jnp.sin(turn),
                vehicles.length * (1 / 20),
            ],
            1,
        )
        rows = jnp.where(visible[:, None], rows[order], 0).reshape(-1)
        low, high = self.observation_space.low, self.observation_space.high  # type: ignore[attr-defined]
        return jnp.clip(jnp.concatenate([ego_entries, rows]), low, high)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        ego_components = (
            Component("speed", "of the ego", f"{SPEED_SCALE:g} m/s"),
            Component("limiter", "highest speed here", f"{SPEED_SCALE:g} m/s"),
            Component("goal", "way to the goal", "200 m"),
            Component("time_left", "until the time limit", f"{HORIZON * STEP:g} s"),
        )
        way_components = (
            Component(
                f"way_{ahead:g}_{name}",
                f"place of its way {ahead:g} m on, {meaning} the ego",
                f"{WAY_DISTANCES[-1]:g} m",
            )
            for ahead in WAY_DISTANCES
            for name, meaning in (("ahead", "ahead of"), ("left", "to the left of"))
        )
        vehicle_components = (
            Component(f"vehicle_{k}_{name}", f"{meaning}: vehicle {k} by distance", unit)
            for k in range(1, NUM_SEEN + 1)
            for name, meaning, unit in (
                ("there", f"whether it is within {SIGHT:g} m", "1"),
                ("ahead", "place ahead of the ego", f"{SIGHT:g} m"),
                ("left", "place to the left of the ego", f"{SIGHT:g} m"),
                ("v_ahead", "velocity in the direction of the ego", f"{SPEED_SCALE:g} m/s"),
                ("v_left", "velocity to the left of that", f"{SPEED_SCALE:g} m/s"),
                ("cos", "cosine of its direction, relative to the ego, to the left", "1"),
                ("sin", "sine of it", "1"),
                ("length", "of it", "20 m"),
            )
        )
        return (*ego_components, *way_components, *vehicle_components)

    def action_components(self) -> tuple[Component, ...]:
        """List the pedal."""
        return (
            Component(
                "pedal",
                (
                    f"acceleration, {self.acceleration:g} m/s^2 at 1; brake, {self.braking:g} "
                    "m/s^2 at -1"
                ),
            ),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return 100 at the goal, less 0.5 for each second."""
        arrival_points = jnp.maximum(100 - SECOND_COST * STEP * next_state.steps, 0)
        return jnp.where(next_state.arrived, arrival_points, 0).astype(self.dtype)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the ego has crashed or reached its goal."""
        return state.crashed | state.arrived

    def cost(self, state: State, action: jax.Array, next_state: State, params: Params) -> jax.Array:
        """Return 1 for a near miss, and for a crash the steps of a second."""
        near_miss = next_state.near_miss.astype(self.dtype)
        return jnp.where(next_state.crashed, np.asarray(1 / STEP, self.dtype), near_miss)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return {
            "success": state.arrived,
            "collision": state.crashed,
            "arrived": state.arrived,
            "way": self.goal - state.s,
            "near_miss": state.near_miss,
            "others": self.recorded_vehicles(state, params).present.sum(dtype=jnp.int32),
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say whether the ego crashed or arrived."""
        return (
            "the ego collided with another vehicle"
            if state.crashed
            else "the ego has reached its goal"
        )

    def host_others(self, state: State, params: Params) -> list[tuple[float, ...]]:
        """Return x, y, heading, speed, length and width of the vehicles on the road.

        The result is plain Python.
        """
        vehicles = jax.tree.map(
            np.asarray, self.recorded_vehicles(*jax.tree.map(jnp.asarray, (state, params)))
        )
        rows = np.stack([*vehicles.pose, vehicles.length, vehicles.width], 1)[vehicles.present]
        return [tuple(row) for row in rows.tolist()]

    def describe(self, state: State, params: Params) -> str:
        """Describe the ego and the vehicles that the observation shows, with units."""
        s = float(state.s)
        x, y, heading = routes.points(self.route, s)[0].tolist()
        c, sine = math.cos(heading), math.sin(heading)

        def say_place(px: float, py: float) -> str:
            ahead, left = c * (px - x) + sine * (py - y), c * (py - y) - sine * (px - x)
            return (
                f"{abs(ahead):.1f} m {'ahead' if ahead >= 0 else 'behind'}, {abs(left):.1f} m "
                "to the "
            ) + ("left" if left >= 0 else "right")

        way_text = "; ".join(
            f"{a:g} m on: {say_place(*routes.points(self.route, s + a)[0, :2].tolist())}"
            for a in WAY_DISTANCES
        )
        limit = float(self.limiter(jnp.asarray(state.s)))
        lines = [
            f"You drive {float(state.speed):.1f} m/s on your lane; the limiter allows {limit:.1f} "
            f"m/s here. {self.goal - s:.1f} m are left to the goal, and "
            f"{STEP * (HORIZON - int(state.steps)):.1f} s. Your way {way_text}."
        ]
        rows = sorted(
            self.host_others(state, params), key=lambda row: math.hypot(row[0] - x, row[1] - y)
        )
        for px, py, direction, speed, length, _ in rows[:NUM_SEEN]:
            if math.hypot(px - x, py - y) < SIGHT:
                turn = math.degrees(math.remainder(direction - heading, 2 * math.pi))
                lines.append(
                    f"A vehicle of {length:.1f} m, {say_place(px, py)}, drives {speed:.1f} m/s in "
                    f"a direction {turn:.0f} degrees to the left of yours."
                )
        return "\n".join(lines)

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return "Answer with a number from -1 (brake) to 1 (accelerate) for the next 0.2 s."

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw 120 m of the roads from above, north up.

        The others are blue. The ego is green, and red after a crash.
        """
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "darkseagreen")
        canvas = ImageDraw.Draw(image)
        scale = width / 120
        x, y, heading = routes.points(self.route, float(state.s))[0].tolist()

        def pixel(px: float, py: float) -> tuple[float, float]:
            return width / 2 + scale * (px - x), height / 2 - scale * (py - y)

        for lane in self.scenario.lanes:
            side = 0.5 * lane.width
            ends = 0.0, scenario.length_of(lane)
            road_pictures.draw_band(canvas, pixel, scenario.line_of(lane), ends, (-side, side))
        road_pictures.draw_line(
            canvas, pixel, self.route, (self.start, self.goal), 0.0, dashed=True
        )
        for row in self.host_others(state, params):
            road_pictures.draw_car(canvas, pixel, row[:3], row[4:], "cornflowerblue")  # type: ignore[arg-type]
        colour = "red" if bool(state.crashed) else "lime"
        road_pictures.draw_car(canvas, pixel, (x, y, heading), (self.length, self.width), colour)
        return np.asarray(image)


def find_nearest(ego: Pose, vehicles: Vehicles) -> tuple[Scalar, Scalar]:
    """Return the slots of the nearest vehicles by distance, and whether each is in sight.

    Both have the shape ``(NUM_SEEN,)``.
    """
    dx, dy = vehicles.pose.x - ego.x, vehicles.pose.y - ego.y
    square = jnp.where(vehicles.present, dx * dx + dy * dy, jnp.inf)
    order = sort_nearest(square, NUM_SEEN)
    return order, (np.arange(NUM_SEEN) < square.shape[0]) & (square[order] < SIGHT * SIGHT)
