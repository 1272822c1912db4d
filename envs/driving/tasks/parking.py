"""Park a car in a given spot of an empty lot, forwards or backwards, and stand still there.

The car is the kinematic bicycle of ``bicycle.py`` (5 x 2 m), driven at up to 5 m/s forwards and
backwards. Its steps are exact: while pedal and wheel are held, its rear axle moves on a circle. The
lot and its spots are those of highway-env's parking-v0 (Leurent 2018). There, driving through the
spot counts as parking, and its threshold lets a car stand 4.8 m aside. Here each step pays 1 that
ends with the car at rest in its place, and an episode has one length.

======================  ============================================================================
action                  five times a second, ``(2,)`` in [-1, 1]: acceleration (by 3 m/s^2; not
                        beyond 5 m/s forwards or backwards) and angle of the front wheels (by 45
                        degrees, to the left)
observation             x and y of the car's centre (by 35 m and 21 m), cosine and sine of its
                        heading, speed (by 5 m/s), return so far (by 200), x and y of the goal,
                        cosine and sine of the goal's heading, and the goal as seen from the car:
                        ahead and to the left (by 35 m, cut off at +-1), cosine and sine of the turn
reward                  1 if the step ends with the car parked, else exp(-d / 5) / 20, d the
                        distance to the goal in m plus 2 m for each radian of turn. A crash takes
                        back all that was earned
parked                  at most 0.5 m along the goal's heading, 0.3 m across it, 0.1 rad of turn,
                        0.1 m/s
terminated              a crash: a corner of the car leaves the lot of 70 x 42 m
success                 parked at the end
goal                    with ``goal=True`` the observation is a ``Dict``: ``observation``,
                        ``achieved_goal`` and ``desired_goal``, each ``(5,)``: x and y (by 35 m and
                        21 m), cosine and sine of a heading, and speed (by 5 m/s), of the car, of
                        the car again, and of the goal, whose speed is 0. The reward is a function
                        of both goals. So a crash pays as any other step and takes nothing back: it
                        ends the episode, and costs what would have followed
start                   in the middle of the lot, at rest, in any direction
cost                    1 for a step that ends in a crash
context                 one of 28 spots of 4 x 8 m in two rows, nose to the wall or away from it;
                        and the direction of the start. Train and test directions lie in alternating
                        bands of 9 degrees
======================  ============================================================================

The reference plans the shortest path of a car that reverses (``reeds_shepp.py``) anew at each step,
and follows it.

Source: Leurent 2018, highway-env, https://github.com/Farama-Foundation/HighwayEnv (parking-v0).
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.core.component import Component, Components
from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task import Observation, Task
from rlbench_suite.core.task_card import TaskCard

from ...shared.alternating_bands import alternating_bands
from ..arrays import Scalar
from ..vehicle import bicycle, reeds_shepp
from ..vehicle.bicycle import Pose
from .observation_bounds import lower_bounds

STEP = 0.2  # s
MAX_ACCELERATION = 3.0  # m/s^2
MAX_SPEED = 5.0  # m/s, forwards and backwards
LENGTH = 5.0  # m, of the car
WIDTH = 2.0  # m, of the car
# m: half of the lot along and across the rows.
HALF_X = 35.0
HALF_Y = 21.0
SPOTS = 14  # Spots of a row
SPOT_WIDTH = 4.0  # m
ROW_DISTANCE = 10.0  # m from the middle of the lot to the middle of a row
# Tolerances of parking.
MAX_ALONG = 0.5  # m
MAX_ACROSS = 0.3  # m
MAX_TURN = 0.1  # rad
MAX_PARKED_SPEED = 0.1  # m/s
MAX_NEARNESS_REWARD = 0.05  # of a car that is not parked
NEARNESS_DISTANCE = 5.0  # m in which that reward falls to 1/e
RADIAN_DISTANCE = 2.0  # m that count as much as a radian


class Params(NamedTuple):
    """The context."""

    x: Scalar  # m, of the goal
    y: Scalar
    heading: Scalar  # rad, of the goal
    start: Scalar  # rad, heading at the start


class PoseEntry(IntEnum):
    """Entries of a pose as goals and observations show it, in order."""

    X = 0
    Y = 1
    COSINE = 2
    SINE = 3
    SPEED = 4


class State(NamedTuple):
    """The car."""

    pose: Pose  # of its centre, in m from the middle of the lot; the speed is negative backwards
    earned: Scalar  # Return so far
    crashed: Scalar  # bool


def roll(pose: Pose, acceleration: Scalar, slip: Scalar, duration: float) -> Pose:
    """Move one step, forwards or backwards, on an exact arc.

    ``slip`` is the sine of the slip angle, which is held.
    """
    gained = acceleration * duration
    distance = duration * (pose.speed + 0.5 * gained)
    half_turn = 0.5 * distance * slip / bicycle.rear_axle(LENGTH)
    middle = pose.heading + half_turn
    square = half_turn * half_turn
    chord = distance * (1 - square / 6 * (1 - square / 20 * (1 - square / 42)))
    cosine, sine, along = jnp.cos(middle), jnp.sin(middle), jnp.sqrt(1 - slip * slip)
    return Pose(
        pose.x + chord * (cosine * along - sine * slip),
        pose.y + chord * (sine * along + cosine * slip),
        reeds_shepp.wrap(middle + half_turn),
        pose.speed + gained,
    )


def goal_from(pose: Pose, params: Params) -> tuple[Scalar, Scalar, Scalar]:
    """Return the goal as the car sees it: m ahead, m to the left, rad to turn."""
    dx, dy = params.x - pose.x, params.y - pose.y
    c, s = jnp.cos(pose.heading), jnp.sin(pose.heading)
    return c * dx + s * dy, c * dy - s * dx, reeds_shepp.wrap(params.heading - pose.heading)


def is_parked(pose: Pose, params: Params, share: float = 1.0) -> Scalar:
    """Say whether the car is at rest in its place, within a share of the tolerances."""
    dx, dy = pose.x - params.x, pose.y - params.y
    c, s = jnp.cos(params.heading), jnp.sin(params.heading)
    turn = reeds_shepp.wrap(params.heading - pose.heading)
    in_place = (jnp.abs(c * dx + s * dy) <= share * MAX_ALONG) & (
        jnp.abs(c * dy - s * dx) <= share * MAX_ACROSS
    )
    return (
        in_place & (jnp.abs(turn) <= share * MAX_TURN) & (jnp.abs(pose.speed) <= MAX_PARKED_SPEED)
    )


def pose_components(whose: str) -> tuple[Component, ...]:
    """Describe a pose and its speed, ``(5,)``, of the car or the goal."""
    meanings = {
        PoseEntry.X: (f"place of the {whose} along the rows", f"{HALF_X:g} m"),
        PoseEntry.Y: (f"place of the {whose} across the rows", f"{HALF_Y:g} m"),
        PoseEntry.COSINE: (f"of the {whose}'s heading", "1"),
        PoseEntry.SINE: (f"of the {whose}'s heading", "1"),
        PoseEntry.SPEED: (f"of the {whose}, negative backwards", f"{MAX_SPEED:g} m/s"),
    }
    return tuple(Component(entry.name.lower(), *meanings[entry]) for entry in PoseEntry)


class Parking(Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "collision": "whether the car has touched a wall",
        "distance": "to the goal, m",
        "turn": "between the car's heading and the goal's, rad",
    }
    ends_in_failure = True
    picture_shape = (336, 560, 3)
    period = STEP

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.action_space = self.box([-1, -1], [1, 1])
        self.has_goals = card.settings["goal"] == "True"
        if self.has_goals:
            names = ("observation", "achieved_goal", "desired_goal")
            self.observation_space = spaces.Dict(
                {name: self.box(-1, 1, (len(PoseEntry),)) for name in names}
            )
        else:
            low = lower_bounds(self.observation_components(), {"earned"})  # type: ignore[arg-type]
            self.observation_space = self.box(low, np.ones(len(low)))
        self.reward_space = self.box(-card.horizon, 1)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample spot, nose and direction of the start."""
        u = self.uniform(key, 3)
        spot = jnp.floor(2 * SPOTS * u[0])
        column = spot % SPOTS
        row = jnp.where(spot < SPOTS, 1.0, -1.0)
        nose = jnp.where(u[1] < 0.5, row, -row)
        x = SPOT_WIDTH * (column - 0.5 * (SPOTS - 1))
        start = alternating_bands(u[2], split, -math.pi, math.pi, bands=40)
        return Params(
            *(
                jnp.asarray(v, self.dtype)
                for v in (x, ROW_DISTANCE * row, 0.5 * math.pi * nose, start)
            )
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start at rest in the middle of the lot."""
        zero = jnp.zeros((), self.dtype)
        return State(Pose(zero, zero, params.start, zero), zero, jnp.bool_(False))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Drive for a fifth of a second."""
        pose = state.pose
        room = [(limit - pose.speed) * (1 / STEP) for limit in (-MAX_SPEED, MAX_SPEED)]
        push = jnp.clip(MAX_ACCELERATION * action[0], *room)
        end = roll(pose, push, bicycle.slip_of_steering(bicycle.STEERING_LIMIT * action[1]), STEP)
        c, s = jnp.abs(jnp.cos(end.heading)), jnp.abs(jnp.sin(end.heading))
        x, y = 0.5 * (LENGTH * c + WIDTH * s), 0.5 * (LENGTH * s + WIDTH * c)
        crashed = (jnp.abs(end.x) + x > HALF_X) | (jnp.abs(end.y) + y > HALF_Y)
        earned = state.earned + self.pay(state, end, crashed, params)
        earned = jnp.minimum(earned, self.card.horizon)  # the limit may be lifted
        return State(end, earned, crashed)

    def pay(self, state: State, end: Pose, crashed: Scalar, params: Params) -> Scalar:
        """Return the reward of a step that ends at a pose."""
        if self.has_goals:
            return self.goal_reward(self.achieved_goal(end), self.desired_goal(params))
        distance = jnp.hypot(params.x - end.x, params.y - end.y)
        distance = distance + RADIAN_DISTANCE * jnp.abs(
            reeds_shepp.wrap(params.heading - end.heading)
        )
        nearness = MAX_NEARNESS_REWARD * jnp.exp(distance * (-1 / NEARNESS_DISTANCE))
        return jnp.where(
            crashed, -state.earned, jnp.where(is_parked(end, params), 1, nearness)
        ).astype(self.dtype)

    def achieved_goal(self, pose: Pose) -> jax.Array:
        """Return what the car has reached, ``(5,)``; see the table."""
        heading = jnp.cos(pose.heading), jnp.sin(pose.heading)
        return jnp.clip(
            self.stack(pose.x / HALF_X, pose.y / HALF_Y, *heading, pose.speed / MAX_SPEED), -1, 1
        )

    def desired_goal(self, params: Params) -> jax.Array:
        """Return the goal, ``(5,)``; see the table."""
        return self.achieved_goal(
            Pose(params.x, params.y, params.heading, jnp.zeros((), self.dtype))
        )

    def goal_reward(self, achieved: jax.Array, desired: jax.Array) -> jax.Array:
        """Return the reward of a step that ends at one pose when another is the goal.

        Both have the shape ``(5,)``; see the table.
        """
        dx = HALF_X * (achieved[PoseEntry.X] - desired[PoseEntry.X])
        dy = HALF_Y * (achieved[PoseEntry.Y] - desired[PoseEntry.Y])
        c, s = desired[PoseEntry.COSINE], desired[PoseEntry.SINE]
        turn = jnp.abs(
            jnp.arctan2(
                c * achieved[PoseEntry.SINE] - s * achieved[PoseEntry.COSINE],
                c * achieved[PoseEntry.COSINE] + s * achieved[PoseEntry.SINE],
            )
        )
        nearness = MAX_NEARNESS_REWARD * jnp.exp(
            (jnp.hypot(dx, dy) + RADIAN_DISTANCE * turn) * (-1 / NEARNESS_DISTANCE)
        )
        in_place = (jnp.abs(c * dx + s * dy) <= MAX_ALONG) & (
            jnp.abs(c * dy - s * dx) <= MAX_ACROSS
        )
        parked = (
            in_place
            & (turn <= MAX_TURN)
            & (
                MAX_SPEED * jnp.abs(achieved[PoseEntry.SPEED] - desired[PoseEntry.SPEED])
                <= MAX_PARKED_SPEED
            )
        )
        return jnp.where(parked, 1, nearness).astype(self.dtype)

    def goal_terminal(self, achieved: jax.Array, desired: jax.Array) -> jax.Array:
        """Say whether a car at the achieved pose touches a wall; the goal has no influence."""
        c, s = jnp.abs(achieved[PoseEntry.COSINE]), jnp.abs(achieved[PoseEntry.SINE])
        x, y = 0.5 * (LENGTH * c + WIDTH * s), 0.5 * (LENGTH * s + WIDTH * c)
        return (HALF_X * jnp.abs(achieved[PoseEntry.X]) + x > HALF_X) | (
            HALF_Y * jnp.abs(achieved[PoseEntry.Y]) + y > HALF_Y
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> Observation:
        """Return shape ``(14,)``, or three parts; see the table."""
        pose = state.pose
        if self.has_goals:
            achieved = self.achieved_goal(pose)
            return {
                "observation": achieved,
                "achieved_goal": achieved,
                "desired_goal": self.desired_goal(params),
            }
        ahead, left, turn = goal_from(pose, params)
        entries = (
            *(
                pose.x * (1 / HALF_X),
                pose.y * (1 / HALF_Y),
                jnp.cos(pose.heading),
                jnp.sin(pose.heading),
            ),
            *(pose.speed * (1 / MAX_SPEED), state.earned * (1 / self.card.horizon)),
            *(
                params.x * (1 / HALF_X),
                params.y * (1 / HALF_Y),
                jnp.cos(params.heading),
                jnp.sin(params.heading),
            ),
            *(ahead * (1 / HALF_X), left * (1 / HALF_X), jnp.cos(turn), jnp.sin(turn)),
        )
        low, high = self.observation_space.low, self.observation_space.high  # type: ignore[attr-defined]
        return jnp.clip(self.stack(*entries), low, high)

    def observation_components(self) -> Components:
        """List the entries of :meth:`observation`, in order."""
        if self.has_goals:
            car, goal = pose_components("car"), pose_components("goal")
            return {"observation": car, "achieved_goal": car, "desired_goal": goal}
        return (
            Component("x", "place of the car's centre along the rows", f"{HALF_X:g} m"),
            Component("y", "place of the car's centre across the rows", f"{HALF_Y:g} m"),
            Component("cosine", "of the car's heading"),
            Component("sine", "of the car's heading"),
            Component("speed", "negative backwards", f"{MAX_SPEED:g} m/s"),
            Component("earned", "return so far, which a crash takes back", f"{self.card.horizon}"),
            Component("goal_x", "place of the goal along the rows", f"{HALF_X:g} m"),
            Component("goal_y", "place of the goal across the rows", f"{HALF_Y:g} m"),
            Component("goal_cosine", "of the goal's heading"),
            Component("goal_sine", "of the goal's heading"),
            Component("ahead", "way to the goal along the car's heading", f"{HALF_X:g} m"),
            Component("left", "way to the goal to the car's left", f"{HALF_X:g} m"),
            Component("turn_cosine", "of the turn to the goal's heading"),
            Component("turn_sine", "of the turn to the goal's heading; left is positive"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List pedal and wheel."""
        return (
            Component(
                "acceleration", "forwards; negative backwards", f"{MAX_ACCELERATION:g} m/s^2"
            ),
            Component("steering", "angle of the front wheels to the left", "45 degrees"),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return 1 if parked, else a little for being near; after a crash what it takes back."""
        return self.pay(state, next_state.pose, next_state.crashed, params)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the car touched a wall."""
        return state.crashed

    def cost(self, state: State, action: jax.Array, next_state: State, params: Params) -> jax.Array:
        """Return 1 for a crash."""
        return next_state.crashed.astype(self.dtype)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        pose = state.pose
        return {
            "success": is_parked(pose, params) & ~state.crashed,
            "collision": state.crashed,
            "distance": jnp.hypot(params.x - pose.x, params.y - pose.y),
            "turn": jnp.abs(reeds_shepp.wrap(params.heading - pose.heading)),
        }

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say that the car hit a wall."""
        return "the car hit the wall of the lot"

    def describe(self, state: State, params: Params) -> str:
        """Describe car and goal, with units."""
        pose = Pose(*(float(value) for value in state.pose))
        ahead, left, turn = (float(value) for value in goal_from(pose, params))
        return (
            f"Your car stands at x = {pose.x:.2f} m, y = {pose.y:.2f} m of a lot of "
            f"{2 * HALF_X:.0f} x {2 * HALF_Y:.0f} m (0, 0 is its middle), heading "
            f"{math.degrees(pose.heading):.1f} degrees, at {pose.speed:.2f} m/s. The goal is at x "
            f"= {float(params.x):.2f} m, y = {float(params.y):.2f} m, heading "
            f"{math.degrees(float(params.heading)):.1f} degrees: {ahead:.2f} m ahead of you, "
            f"{left:.2f} m to the left, turned by {math.degrees(turn):.1f} degrees to the left. "
            f"You have earned {float(state.earned):.2f}."
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            f"Answer with two numbers from -1 to 1: acceleration (1 is {MAX_ACCELERATION:g} m/s^2 "
            "forwards) and angle of "
            "the front wheels (1 is 45 degrees to the left), for the next 0.2 s. Stop in the goal "
            "and stay there."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the lot from above: the goal green with a nose, the car blue, red after a crash."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "dimgray")
        canvas = ImageDraw.Draw(image)
        scale = width / (2 * HALF_X)

        def pixel(x: float, y: float) -> tuple[float, float]:
            return scale * (x + HALF_X), scale * (HALF_Y - y)

        for row in (-ROW_DISTANCE, ROW_DISTANCE):
            for i in range(SPOTS + 1):
                x = SPOT_WIDTH * (i - 0.5 * SPOTS)
                canvas.line((*pixel(x, row - 4), *pixel(x, row + 4)), fill="white")

        def body(x: float, y: float, heading: float, colour: str) -> None:
            c, s = math.cos(heading), math.sin(heading)
            corners = [(1, 0.5), (0.7, 1), (-1, 1), (-1, -1), (0.7, -1), (1, -0.5)]
            points = [(LENGTH / 2 * a, WIDTH / 2 * b) for a, b in corners]
            outline = [pixel(x + c * a - s * b, y + s * a + c * b) for a, b in points]
            canvas.polygon(outline, fill=colour, outline="black")

        body(float(params.x), float(params.y), float(params.heading), "limegreen")
        pose = Pose(*(float(value) for value in state.pose))
        body(pose.x, pose.y, pose.heading, "red" if bool(state.crashed) else "cornflowerblue")
        return np.asarray(image)


@privileged_player
class ParkingDriver(NamedTuple):
    """Player of ``Parking``, which follows the shortest path of a car that reverses.

    It plans the path anew at each step.
    """

    # rad: angle of the front wheels in curves; some is left to correct
    wheel: Scalar = math.radians(43)
    speed: Scalar = 5.0  # m/s
    braking: Scalar = 2.1  # m/s^2, towards the end of a stretch
    stop_share: Scalar = 0.9  # Share of the tolerances within which it stops

    @classmethod
    def for_task(cls, task: Parking) -> ParkingDriver:
        """Make the player."""
        return cls()

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return acceleration and steering, shape ``(2,)``."""
        pose: Pose = view.state.pose
        ahead, left, turn = goal_from(pose, view.params)
        rear = bicycle.rear_axle(LENGTH)
        # The rear axle moves along its heading: it is the point that a path leads.
        x, y = ahead + rear - rear * jnp.cos(turn), left - rear * jnp.sin(turn)
        radius = 2 * rear / jnp.tan(self.wheel)
        plan = reeds_shepp.shortest_path(x / radius, y / radius, turn)
        length = plan.stretch * radius
        speed = plan.direction * jnp.minimum(self.speed, jnp.sqrt(2 * self.braking * length))
        stop = is_parked(pose._replace(speed=0.0), view.params, self.stop_share)
        speed = jnp.where(stop, 0, speed)
        push = jnp.clip((speed - pose.speed) / (STEP * MAX_ACCELERATION), -1, 1)
        covered = jnp.abs(pose.speed + 0.5 * STEP * MAX_ACCELERATION * push) * STEP / radius
        curve = plan.curvature(jnp.maximum(covered, 1e-3)) / radius
        wheel = jnp.arctan(2 * rear * curve) / bicycle.STEERING_LIMIT
        return jnp.clip(jnp.stack([push, jnp.where(stop, 0, wheel)]), -1, 1), memory
