"""Push a ball through a maze to a goal: the Maze2D task of D4RL, with its own exact dynamics.

Source: Fu, Kumar, Nachum, Tucker & Levine 2020 (D4RL), arXiv:2004.07219, section 5: mazes, ball,
forces, time step, rewards. Mazes are of square cells of side 1 m, the ball is a disc that slides
along walls (``maze.py``).

======================  ============================================================================
action ``(2,)``         force on the ball along x and y, in units of 100 N
observation ``(6,)``    ball's x, y (m), its velocity along x and y (m/s), goal's x, y (m); the
                        origin is the lower left corner of the maze, x to the right, y up
dynamics                v <- clip(v, +-5 m/s) along each axis, then (m + b dt) v' = m v + dt * 100 N
                        * action and x' = x + dt v', dt = 0.01 s, m = 4.19 kg, b = 1 kg/s: MuJoCo's
                        Euler step (implicit in damping) of the source's model. The ball's radius is
                        0.1 m
reward, sparse          -1/600 a step, and 1 on coming within 0.5 m of the goal: a goal after 120
                        steps returns 0.8
terminated, sparse      within 0.5 m of the goal
reward, dense           exp(-distance to the goal in m), at the end of the step
terminated, dense       never: staying pays, so ending would punish success
success, sparse         within 0.5 m of the goal, not later than at 2 m/s along the shortest path
                        over the cells' centres
success, dense          within 0.5 m of the goal
start                   at rest, in the start cell, within 0.1 m of its centre along each axis
context                 the cells of start and goal, at least two cells apart along the shortest
                        path, and the goal's place within 0.1 m of its cell's centre along each
                        axis. Every fourth pair of cells, by distance, is for testing
goal                    with ``goal=True`` the observation is a ``Dict``: ``observation`` ``(4,)``,
                        the ball's x, y and velocity; ``achieved_goal`` ``(2,)``, the ball's x, y
                        (m); ``desired_goal`` ``(2,)``, the goal's. Nothing else differs. The reward
                        is a function of both goals
difficulty              0, 1, 2: umaze, medium, large with sparse reward; 10, 11, 12: the same with
                        dense reward
======================  ============================================================================

Time counts, because random pushes also reach near goals at some time. Differences from D4RL: there
the sparse task never ends, so that its return counts the steps at the goal; the goal is one fixed
cell and is not observed; the ball is drawn and collides 0.2 m away from the position observed.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.contexts.context import Constant
from rlbench_suite.core.arrays import Float
from rlbench_suite.core.component import Component, Components
from rlbench_suite.core.policy import View
from rlbench_suite.core.task import Observation, Task
from rlbench_suite.core.task_card import TaskCard

from ..shared.own_constants import OwnConstants
from .maze import LAYOUTS, Maze, Motion, move

STEP = 0.01
"""s"""
RADIUS = 0.1
"""m"""
MASS = 1000 * 4 / 3 * math.pi * RADIUS**3
"""kg: a ball of the density of water."""
DAMPING = 1.0
"""kg/s"""
FORCE = 100.0
"""N at action 1: the gear of the source's motors."""
SPEED_LIMIT = 5.0
"""m/s along each axis, before a step's force."""
GOAL_RADIUS = 0.5
"""m"""
SCATTER = 0.1
"""m: largest distance of starts and goals from the centres of their cells, along each axis."""
PACE = 2.0
"""m/s along the shortest path that success needs."""
CLEARANCE = 1e-5
"""m between ball and wall in contact, so that no rounding makes them overlap."""


class Ball(NamedTuple):
    """The ball and its drive."""

    mass: Float = MASS
    """kg"""
    damping: Float = DAMPING
    """kg/s"""
    force: Float = FORCE
    """N at action 1"""
    speed_limit: Float = SPEED_LIMIT
    """m/s along each axis, before a step's force"""

    @property
    def max_speed(self) -> float:
        """Return the highest speed along an axis after a step's force, m/s."""
        return float(
            (self.mass * self.speed_limit + STEP * self.force) / (self.mass + STEP * self.damping)
        )

    def accelerate(self, velocity: Any, action: Any) -> Any:
        """Return the velocity after one step of force, along one axis."""
        clipped = jnp.clip(velocity, -self.speed_limit, self.speed_limit)
        return (self.mass * clipped + STEP * self.force * action) * (
            1 / (self.mass + STEP * self.damping)
        )


class Params(NamedTuple):
    """The context; all m."""

    start_x: jax.Array
    """Centre of the start cell."""
    start_y: jax.Array
    goal_x: jax.Array
    goal_y: jax.Array
    ball: Ball | None = None
    """Drawn for the episode; None if every episode has the ball of the task"""


class State(NamedTuple):
    """The ball, and the time."""

    ball: Motion
    steps: jax.Array
    """int32: since the start"""


class PointMaze(Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {"distance": "from the goal, straight, m"}
    picture_shape = (360, 480, 3)
    period = STEP

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty not in card.difficulties.values():
            raise ValueError(
                f"The difficulty of {card.id} is one of {dict(card.difficulties)}, got "
                f"{difficulty!r}."
            )
        self.has_goals = card.settings["goal"] == "True"
        number = int(difficulty or 0)
        self.dense = number >= 10
        self.maze = maze = Maze(list(LAYOUTS.values())[number % 10])
        self.own_constants = OwnConstants(card, self.constants())
        self.ball, self.radius, self.goal_radius = self._ball()
        train, test = maze.pairs
        self.pairs = np.concatenate([train, test])
        self.step_cost = 1 / card.horizon
        self.first = np.array([0, len(train)], np.int32)
        self.count = np.array([len(train), len(test)], np.int32)
        # A corner may turn both axes' velocity into one axis' until the next step.
        corner, speed = [maze.width, maze.height], 1.001 * math.sqrt(2) * self.max_speed
        if self.has_goals:
            self.observation_space = spaces.Dict(
                observation=self.box([0, 0, -speed, -speed], [*corner, speed, speed]),
                achieved_goal=self.box([0, 0], corner),
                desired_goal=self.box([0, 0], corner),
            )
        else:
            self.observation_space = self.box(
                [0, 0, -speed, -speed, 0, 0], [*corner, speed, speed, *corner]
            )
        self.action_space = self.box([-1, -1], [1, 1])
        self.reward_space = self.box(0 if self.dense else -self.step_cost, 1)

    def constants(self) -> tuple[Constant, ...]:
        """Return the ball, its drive and the size of the goal."""
        return (
            Constant("mass", "kg", MASS, MASS, "of the ball; shipped, that of a ball of water"),
            Constant(
                "damping",
                "kg/s",
                DAMPING,
                DAMPING,
                "force against the motion, by the speed",
                minimum=0.0,
            ),
            Constant("force", "N", FORCE, FORCE, "on the ball at action 1, along each axis"),
            Constant(
                "speed_limit",
                "m/s",
                SPEED_LIMIT,
                SPEED_LIMIT,
                "along each axis, before a step's force",
            ),
            Constant(
                "radius",
                "m",
                RADIUS,
                RADIUS,
                "of the ball; corridors are 1 m wide",
                maximum=0.35,
                may_vary=False,
            ),
            Constant(
                "goal_radius",
                "m",
                GOAL_RADIUS,
                GOAL_RADIUS,
                "distance from the goal that counts",
                may_vary=False,
            ),
        )

    def _ball(self) -> tuple[Ball, float, float]:
        """Return the ball (of ranges, the middle), its radius and that of the goal.

        Raises:
            ValueError: the ball of a context is too fast to be followed between walls.
        """
        self.ranges = [self.own_constants.range(name) for name in Ball._fields]
        (mass, _), (damping, _), (_, force), (_, speed) = self.ranges
        self.max_speed = Ball(mass, damping, force, speed).max_speed
        radius = self.own_constants.value("radius")
        if math.sqrt(2) * self.max_speed * STEP >= 0.5 - radius:
            raise ValueError(
                f"{self.card.id}: a ball that reaches {self.max_speed:.3g} m/s moves too far "
                f"between walls in a step of {STEP:g} s: lower speed_limit or force, or raise mass."
            )
        middle = Ball(*(low if low == high else 0.5 * (low + high) for low, high in self.ranges))
        return middle, radius, self.own_constants.value("goal_radius")

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample a pair of cells of the split, and the goal's place in its cell."""
        u = self.uniform(key, 3)
        count = jnp.asarray(self.count)[split]
        rank = jnp.floor(u[0] * count.astype(self.dtype)).astype(jnp.int32)
        pair = jnp.asarray(self.pairs)[
            jnp.asarray(self.first)[split] + jnp.minimum(rank, count - 1)
        ]
        start_column, start_row, goal_column, goal_row = (
            coordinate.astype(self.dtype) for coordinate in pair
        )
        ball = None
        if any(low < high for low, high in self.ranges):
            v = self.uniform(jax.random.fold_in(key, 1), len(Ball._fields))
            ball = Ball(
                *(
                    self.own_constants.sample_or_shipped(name, v[i], split, self.ball[i])
                    for i, name in enumerate(Ball._fields)
                )
            )
            ball = Ball(*(jnp.asarray(value, self.dtype) for value in ball))
        return Params(
            start_column + 0.5,
            start_row + 0.5,
            goal_column + 0.5 + SCATTER * (2 * u[1] - 1),
            goal_row + 0.5 + SCATTER * (2 * u[2] - 1),
            ball,
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start at rest near the centre of the start cell."""
        u = self.uniform(key, 2)
        zero = jnp.zeros((), self.dtype)
        x, y = params.start_x + SCATTER * (2 * u[0] - 1), params.start_y + SCATTER * (2 * u[1] - 1)
        return State(Motion(x, y, zero, zero), jnp.int32(0))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Apply the force, then move between the walls."""
        ball = params.ball or self.ball
        x, y, vx, vy = state.ball
        pushed = Motion(x, y, ball.accelerate(vx, action[0]), ball.accelerate(vy, action[1]))
        return State(move(self.maze.rows, pushed, STEP, self.radius + CLEARANCE), state.steps + 1)

    def observation(self, state: State, key: jax.Array, params: Params) -> Observation:
        """Return shape ``(6,)``, or three parts; see the table."""
        if self.has_goals:
            return {
                "observation": self.stack(*state.ball),
                "achieved_goal": self.stack(state.ball.x, state.ball.y),
                "desired_goal": self.stack(params.goal_x, params.goal_y),
            }
        return self.stack(*state.ball, params.goal_x, params.goal_y)

    def observation_components(self) -> Components:
        """List the entries of :meth:`observation`, in order."""
        position = Component(
            "position",
            "x (to the right) and y (up) of the ball, from the lower left corner",
            "m",
            (2,),
        )
        velocity = Component("velocity", "velocity of the ball along x and y", "m/s", (2,))
        goal = Component("goal", "x and y of the goal, from the lower left corner", "m", (2,))
        if self.has_goals:
            return {
                "observation": (position, velocity),
                "achieved_goal": (position,),
                "desired_goal": (goal,),
            }
        return position, velocity, goal

    def action_components(self) -> tuple[Component, ...]:
        """List the force."""
        return (
            Component("force", "force on the ball along x and y", f"{self.ball.force:g} N", (2,)),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the reward of the table."""
        return self._pay(distance_to_goal(next_state, params))

    def _pay(self, distance: jax.Array) -> jax.Array:
        """Return the reward of a step that ends this far from the goal, m."""
        reached = (distance <= self.goal_radius).astype(self.dtype)
        return jnp.exp(-distance) if self.dense else reached - self.step_cost

    def goal_reward(self, achieved: jax.Array, desired: jax.Array) -> jax.Array:
        """Return the reward of a step that ends at one place when another is the goal.

        Both places are x, y in m.
        """
        return self._pay(distance_between(achieved, desired))

    def goal_terminal(self, achieved: jax.Array, desired: jax.Array) -> jax.Array:
        """Say whether the ball is at the goal, if the reward is sparse."""
        return (
            jnp.bool_(False)
            if self.dense
            else distance_between(achieved, desired) <= self.goal_radius
        )

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether it is at the goal, if the reward is sparse."""
        return (
            jnp.bool_(False) if self.dense else distance_to_goal(state, params) <= self.goal_radius
        )

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the distance."""
        distance = distance_to_goal(state, params)
        in_time = self.dense | (state.steps <= self.deadline(params))
        return {"success": (distance <= self.goal_radius) & in_time, "distance": distance}

    def deadline(self, params: Params) -> jax.Array:
        """Return the steps in which a goal must be reached to count as success, int32."""
        start_x, start_y, goal_x, goal_y = (
            jnp.floor(value).astype(jnp.int32) for value in params[:4]
        )
        cells = jnp.asarray(self.maze.steps)[
            self.maze.number(goal_x, goal_y), self.maze.number(start_x, start_y)
        ]
        return cells * round(1 / (PACE * STEP))

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Name the only end there is."""
        return f"the ball is within {self.goal_radius} m of the goal"

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            "Answer with two numbers from -1 to 1: the force along x (to the right) and along y "
            "(up)."
        )

    def describe(self, state: State, params: Params) -> str:
        """Describe the map, and positions and velocity with units."""
        lines = [list(line) for line in self.maze.picture]
        x, y, vx, vy = (float(value) for value in state.ball)
        goal_x, goal_y = float(params.goal_x), float(params.goal_y)
        lines[self.maze.height - 1 - int(goal_y)][int(goal_x)] = "G"
        lines[self.maze.height - 1 - int(y)][int(x)] = "B"
        return "\n".join([
            "The maze, cells of 1 m (# wall, B ball, G goal; the origin is the lower left corner):",
            *("".join(line) for line in lines),
            f"Ball at x {x:.3f}, y {y:.3f} m, velocity {vx:+.3f}, {vy:+.3f} m/s. Goal at x "
            f"{goal_x:.3f}, y {goal_y:.3f} m, {math.hypot(goal_x - x, goal_y - y):.3f} m away.",
        ])  # fmt: skip

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw walls, goal, ball and velocity from above, x to the right and y up.

        The green circle about the goal is the region that counts.
        """
        height, width, _ = self.picture_shape
        scale = min(height // self.maze.height, width // self.maze.width)
        left = (width - scale * self.maze.width) // 2
        bottom = (height + scale * self.maze.height) // 2
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)

        def disc(x: float, y: float, radius: float, **colours: Any) -> None:
            middle, size = (left + scale * x, bottom - scale * y), scale * radius
            canvas.ellipse(
                (middle[0] - size, middle[1] - size, middle[0] + size, middle[1] + size), **colours
            )

        for row, column in np.argwhere(self.maze.wall):
            x, y = left + scale * column, bottom - scale * (row + 1)
            canvas.rectangle((x, y, x + scale - 1, y + scale - 1), fill="dimgray")
        goal_x, goal_y = float(params.goal_x), float(params.goal_y)
        disc(goal_x, goal_y, self.goal_radius, outline="green")
        disc(goal_x, goal_y, 0.12, fill="green")
        x, y, vx, vy = (float(value) for value in state.ball)
        disc(x, y, self.radius, fill="royalblue")
        ball_pixel = left + scale * x, bottom - scale * y
        canvas.line(
            (*ball_pixel, ball_pixel[0] + 0.2 * scale * vx, ball_pixel[1] - 0.2 * scale * vy),
            fill="black",
            width=2,
        )
        return np.asarray(image)


def distance_to_goal(state: State, params: Params) -> jax.Array:
    """Return the distance to the goal in a straight line, through walls, m."""
    dx, dy = params.goal_x - state.ball.x, params.goal_y - state.ball.y
    return jnp.sqrt(dx * dx + dy * dy)


def distance_between(achieved: jax.Array, desired: jax.Array) -> jax.Array:
    """Return the distance between two places ``(2,)`` in a straight line, m."""
    dx, dy = desired[0] - achieved[0], desired[1] - achieved[1]
    return jnp.sqrt(dx * dx + dy * dy)


SWING = math.sqrt(10.0 * FORCE / MASS)
"""Angular frequency (rad/s) at which the shipped ball swings on the planner's spring, 15.4.

The spring pulls with full force at 0.1 m.
"""


class WaypointPD(NamedTuple):
    """The planner, which follows the shortest path from cell to cell.

    A PD controller leads it to the centre of each next cell.

    D4RL made its data with a planner and a PD controller as well. The planner knows the map, which
    is fixed, and the observation.
    """

    towards: np.ndarray
    """int32 ``(cells, cells)``: :attr:`.maze.Maze.next_cell`."""
    width: np.ndarray
    """int32: columns of the maze."""
    stiffness: Float = 10.0
    """Fraction of full force per metre"""
    damping: Float = 2 * math.sqrt(10.0 * MASS / FORCE)
    """Fraction of full force for a metre a second, for critical damping"""

    @classmethod
    def for_task(cls, task: PointMaze) -> WaypointPD:
        """Make the planner of the maze, with gains by which its ball swings as the shipped one."""
        towards, width = task.maze.next_cell, np.asarray(task.maze.width, np.int32)
        if task.ball == Ball():
            return cls(towards, width)
        per_force = task.ball.mass / task.ball.force
        stiffness = SWING * SWING * per_force
        return cls(
            towards,
            width,
            stiffness,
            max(0.0, 2 * SWING * per_force - task.ball.damping / task.ball.force),
        )

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the force towards the next waypoint, which in the goal's cell is the goal."""
        if isinstance(view.observation, dict):
            x, y, vx, vy = view.observation["observation"]
            goal_x, goal_y = view.observation["desired_goal"]
        else:
            x, y, vx, vy, goal_x, goal_y = view.observation
        width = jnp.asarray(self.width)
        ball_cell = jnp.floor(y).astype(jnp.int32) * width + jnp.floor(x).astype(jnp.int32)
        goal = jnp.floor(goal_y).astype(jnp.int32) * width + jnp.floor(goal_x).astype(jnp.int32)
        cell = jnp.asarray(self.towards)[goal, ball_cell]
        arrived = ball_cell == goal
        target_x = jnp.where(arrived, goal_x, (cell % width).astype(x.dtype) + 0.5)
        target_y = jnp.where(arrived, goal_y, (cell // width).astype(y.dtype) + 0.5)
        force_x = self.stiffness * (target_x - x) - self.damping * vx
        force_y = self.stiffness * (target_y - y) - self.damping * vy
        return jnp.clip(jnp.stack([force_x, force_y]), -1, 1), memory
