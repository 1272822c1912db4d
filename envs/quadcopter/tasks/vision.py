"""Fly to one ball after another, round pillars, by the image of a camera on board.

Dynamics: ``physics/dynamics.py`` with rotor drag, Runge-Kutta steps of 10 ms. An autopilot,
geometric control that knows its vehicle, holds a velocity and a rate of turn that are commanded
every 40 ms, four steps. Nothing is random after the start. The camera:
``sensing/onboard_camera.py``. No observation contains the places of vehicle, ball and pillars.

Source of the task: navigation of quadcopters by images and velocity commands, as in Loquercio et
al. 2018 (DroNet), doi:10.1109/LRA.2018.2795643; flight to a seen target as image-based visual
servoing, Chaumette & Hutchinson 2006, doi:10.1109/MRA.2006.250573; progress as reward after Song et
al. 2021, arXiv:2103.08624, eq. 2.

========================  ==========================================================================
action ``(4,)``           velocity ahead, to the left and upward (1 is 1.5, 1.5 and 1 m/s; level, in
                          the direction of the heading) and rate of turn to the left (1 is 2 rad/s)
observation               ``picture``, uint8 ``(24, 32, 3)``: rows from the top, columns from the
                          left, red, green and blue; 90 degrees wide, ahead along the body's x axis.
                          ``felt``, ``(10,)``, in the body frame: up (3), velocity (3, m/s), angular
                          velocity (3, rad/s); height over the floor (m)
reward                    metres by which it came nearer to the ball, plus 1 for reaching it (0.4
                          m). A crash counts as ending 10 m away from it, which costs more than
                          coming nearer had brought. Hovering earns nothing
terminated                a crash: into a pillar or the floor; further than 6 m from the middle or
                          higher than 4 m; an angular velocity beyond 2,000 deg/s about an axis
success                   all four balls reached
start                     within 0.1 m of the middle and 1.2 m high, heading anywhere, tilted by up
                          to 10 degrees, slow (0.1 m/s and 0.1 rad/s an axis), rotors at the speed
                          of hovering
context                   four red balls of radius 0.25 m every 90 degrees, counter-clockwise,
                          around a ring, 1.5 to 2.5 m from its middle, 1 to 2 m high, the first
                          anywhere; only the next one is there, and the first comes again after the
                          last. Four blue pillars of radius 0.1 m, between them, 1 to 2 m from the
                          middle. The vehicle, as in hover: mass +-20 % (train and test in
                          alternating bands of 1 %), inertia +-20 %, thrust coefficient +-10 %,
                          torque coefficient +-20 %, motor time constant +-25 %
========================  ==========================================================================
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Float, Int
from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..control.geometric import GeometricControl, SetPoint
from ..physics import dynamics
from ..physics.dynamics import STEP, Airframe, Quadcopter, Rotors, rotor_speed
from ..physics.rigid_body import RigidBody, Scalar, rotation_matrix, squared_length
from ..physics.sampling import body_near_rest, sample_airframe
from ..physics.vehicles import CRAZYFLIE_AIR
from ..rendering import picture
from ..rendering.picture import Pictured, Shot
from ..rendering.scene import Ball, Shape, prism
from ..sensing import motion, onboard_camera
from ..sensing.onboard_camera import BLUE, COLUMNS, LEFT, PIXEL, RED, ROWS, UP
from . import course
from .course import BONUS, offset_to_point, progress_reward

COUNT = 4
"""Number of balls, and of pillars."""
SUBSTEPS = 4
LIMITS = (1.5, 1.5, 1.0, 2.0)
"""m/s, m/s, m/s, rad/s: commands of actions at one."""
BALL_RADIUS = 0.25
"""m"""
PILLAR_RADIUS = 0.1
"""m"""
REACHED_DISTANCE = 0.4
"""m: distance at which a ball is reached."""
VEHICLE = 0.063
"""m: the arm, 0.0397 m, and the propeller's radius, 0.0231 m."""
LOST_DISTANCE = 6.0
"""m from the middle"""
CEILING = 4.0
"""m"""
CRASH = 10.0
"""m: distance that a crash counts as; a ball is never that far away."""
START_HEIGHT = 1.2
SHOWN_HEIGHT = 2.2
"""m: height of pillars in pictures of the scene; in the task they have no end."""
BLUES = "#3552c4", "#4868e0"
# Rotors and gravity accelerate it by at most 41 m/s^2, over a diagonal of 12.7 m; one step may lead
# beyond.
VELOCITY_BOUND = 35.0
# Full rotors and gyroscopic torque add at most 60 rad/s in 10 ms to what the gyroscope can measure.
ANGULAR_VELOCITY_BOUND = 300.0
HEIGHT_BOUND = CEILING + 1.5

AUTOPILOT = GeometricControl(position=1.5, tilt=20.0, yaw=8.0, lean=0.4)
"""Control with gentle gains.

An autopilot that leans and turns harder sinks under erratic commands, and exploration ends on the
floor.
"""


class Params(NamedTuple):
    """The context."""

    airframe: Airframe
    x: jax.Array
    """``(4,)`` m: the balls, in the order of visit."""
    y: jax.Array
    z: jax.Array
    pillar_x: jax.Array
    """``(4,)`` m"""
    pillar_y: jax.Array


class State(NamedTuple):
    """The vehicle, its autopilot's heading, and its progress."""

    vehicle: Quadcopter
    heading: jax.Array
    """rad, in [-pi, pi], from x counter-clockwise: heading that the autopilot holds."""
    reached: jax.Array
    """int32: balls reached so far."""


class QuadcopterVision(Pictured, Task[Params, State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "reached": "balls reached so far",
        "distance": "from the ball it flies to, m",
        "speed": "m/s",
    }
    picture_shape: ClassVar[tuple[int, int, int]] = picture.SHAPE
    period = SUBSTEPS * STEP

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        motion_bound = (
            [1 + motion.ROUNDING] * 3
            + [VELOCITY_BOUND] * 3
            + [ANGULAR_VELOCITY_BOUND] * 3
            + [HEIGHT_BOUND]
        )
        bound = np.array(motion_bound)
        pixels = spaces.Box(0, 255, (ROWS, COLUMNS, 3), np.uint8)
        self.observation_space = spaces.Dict({"felt": self.box(-bound, bound), "picture": pixels})
        self.action_space = self.box([-1] * 4, [1] * 4)
        self.reward_space = self.box(-CRASH, BONUS + VELOCITY_BOUND * SUBSTEPS * STEP, ())

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            "Answer with four numbers from -1 to 1: velocity ahead, to the left and upward (1 is "
            f"{LIMITS[0]}, {LIMITS[1]} and {LIMITS[2]} m/s) and rate of turn to the left (1 is "
            f"{LIMITS[3]} rad/s)."
        )

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample a vehicle, balls and pillars."""
        u = self.uniform(key, 6 + 3 * COUNT)
        out, up, between = u[6:].reshape(3, COUNT)
        around = 2 * math.pi * (u[5] + np.arange(COUNT, dtype=self.dtype) / COUNT)
        radius, pillar_radius = 1.5 + out, 1 + between
        x, y = radius * jnp.cos(around), radius * jnp.sin(around)
        beside = around + math.pi / COUNT
        pillars = pillar_radius * jnp.cos(beside), pillar_radius * jnp.sin(beside)
        return Params(sample_airframe(u[:5], split), x, y, 1 + up, *pillars)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start in the middle, nearly at rest, heading anywhere."""
        u = self.uniform(key, 13)
        heading, body = math.pi * (2 * u[12] - 1), body_near_rest(u, 0.1)
        body = turn_vehicle(body._replace(z=START_HEIGHT + body.z), heading)
        vehicle = Quadcopter(body, dynamics.hovering_rotors(params.airframe))
        return State(vehicle, heading, jnp.int32(0))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Make four Runge-Kutta steps under the autopilot, then check the ball."""
        forward, left, upward, turn = (limit * action[i] for i, limit in enumerate(LIMITS))

        def fly(_: int, moving: tuple[Quadcopter, Scalar]) -> tuple[Quadcopter, Scalar]:
            vehicle, heading = moving
            heading = wrap_angle(heading + STEP * turn)
            # Geometric control holds heading zero, so the autopilot's frame is the world turned by
            # the heading.
            body = turn_vehicle(vehicle.body, -heading)
            goal = SetPoint(body.x, body.y, body.z, forward, left, upward)
            command = AUTOPILOT.command(Quadcopter(body, vehicle.rotors), params.airframe, goal)
            speeds = Rotors(*(rotor_speed(command[rotor]) for rotor in range(4)))
            return dynamics.step(vehicle, speeds, params.airframe, STEP, CRAZYFLIE_AIR), heading

        vehicle, heading = jax.lax.fori_loop(0, SUBSTEPS, fly, (state.vehicle, state.heading))
        reaches_ball = (
            squared_length(*offset_to_point(vehicle, state.reached, params)) < REACHED_DISTANCE**2
        )
        return State(vehicle, heading, state.reached + reaches_ball)

    def camera(self, state: State, params: Params) -> jax.Array:
        """Return the camera's image, uint8 ``(24, 32, 3)``."""
        ball = state.reached % COUNT
        pillars = [(params.pillar_x[i], params.pillar_y[i]) for i in range(COUNT)]
        middle = params.x[ball], params.y[ball], params.z[ball]
        return onboard_camera.picture(
            state.vehicle.body, middle, BALL_RADIUS, pillars, PILLAR_RADIUS
        )

    def photograph(self, state: State, params: Params) -> np.ndarray:
        """Return the same on the host."""
        return np.asarray(_compiled_camera(self, state, params))

    def observation(self, state: State, key: jax.Array, params: Params) -> dict[str, jax.Array]:
        """Return picture and measurements; see the table."""
        return {
            "felt": self.stack(*body_measurements(state)),
            "picture": self.camera(state, params),
        }

    def observation_components(self) -> dict[str, tuple[Component, ...]]:
        """List measurements and picture."""
        axes = "along x (ahead), y (left), z (up) of the body"
        motion_components = (
            Component("up", f"the world's upward direction, {axes}", "1", (3,)),
            Component("velocity", f"velocity {axes}", "m/s", (3,)),
            Component(
                "angular_velocity",
                f"angular velocity {axes.replace('along', 'about')}",
                "rad/s",
                (3,),
            ),
            Component("height", "height over the floor", "m"),
        )
        picture = (
            "[row, column, channel]: what the camera sees, from the top and from the left; red, "
            "green, blue"
        )
        return {
            "felt": motion_components,
            "picture": (Component("picture", picture, shape=(ROWS, COLUMNS, 3)),),
        }

    def action_components(self) -> tuple[Component, ...]:
        """List a velocity and a rate of turn."""
        ahead, left, up, turn = (f"{limit:g}" for limit in LIMITS)
        return (
            Component("ahead", "commanded velocity ahead, level", f"{ahead} m/s"),
            Component("left", "commanded velocity to the left, level", f"{left} m/s"),
            Component("up", "commanded velocity upward", f"{up} m/s"),
            Component("turn", "commanded rate of turn to the left", f"{turn} rad/s"),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return progress, plus a prize for a ball, minus the cost of a crash."""
        reached, over = next_state.reached > state.reached, self.terminal(next_state, key, params)
        return progress_reward(
            state.vehicle,
            next_state.vehicle,
            state.reached,
            params,
            reached=reached,
            over=over,
            lost=CRASH,
        )

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether it hit something, is lost or spins faster than its gyroscope measures."""
        return (
            has_hit(state.vehicle.body, params)
            | is_lost(state.vehicle.body)
            | motion.spins_too_fast(state.vehicle.body)
        )

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return course.tour_info(state, params, COUNT)

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say which of the ends it was."""
        if bool(has_hit(state.vehicle.body, params)):
            return "crash: it flew into a pillar or the floor"
        if bool(motion.spins_too_fast(state.vehicle.body)):
            return motion.SPINS
        return (
            f"crash: it is lost, more than {LOST_DISTANCE:.0f} m from the middle or "
            f"{CEILING:.0f} m high"
        )

    def describe(self, state: State, params: Params) -> str:
        """Describe the picture in letters (R ball, B pillar, dots floor), and the measurements.

        Measurements have units.
        """
        image = self.photograph(state, params)
        letters = np.where(is_like(image, RED), "R", np.where(is_like(image, BLUE), "B", "."))
        letters = np.where(image.min(-1) == int(255 * onboard_camera.SKY), " ", letters)
        up, velocity, rates = (
            motion.format_point(body_measurements(state)[i : i + 3]) for i in (0, 3, 6)
        )
        rows = "\n".join("".join(row) for row in letters)
        return (
            f"{int(state.reached)} balls reached. Ahead, 90 degrees wide (R ball, B pillar, . "
            f"floor):\n{rows}\nAhead, left, up in the body frame: up is {up}, velocity {velocity} "
            f"m/s, angular velocity {rates} rad/s. Height {float(state.vehicle.body.z):.3f} m."
        )

    def shot(self, state: State, params: Params) -> Shot:
        """Show the vehicle, balls (the present one in red), pillars, and the camera's image."""
        goal = int(state.reached) % COUNT
        things: list[Shape] = []
        for i, centre in enumerate(np.array([params.x, params.y, params.z], float).T):
            things.append(
                Ball(centre[None], "red" if i == goal else picture.LATER_GOAL, BALL_RADIUS)
            )
        for x, y in np.array([params.pillar_x, params.pillar_y], float).T:
            things += prism(x, y, PILLAR_RADIUS, SHOWN_HEIGHT, BLUES)
        on_board = self.photograph(state, params)
        return Shot(
            state.vehicle, 2.4, things, centre=(0.0, 0.0, 1.2), below=1.2, on_board=on_board
        )


_compiled_camera = jax.jit(QuadcopterVision.camera, static_argnums=0)


def turn_vehicle(body: RigidBody, angle: Scalar) -> RigidBody:
    """Turn attitude and velocity about the vertical (rad, counter-clockwise); the place stays."""
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    half_cosine, half_sine = jnp.cos(0.5 * angle), jnp.sin(0.5 * angle)
    return body._replace(
        qw=half_cosine * body.qw - half_sine * body.qz,
        qx=half_cosine * body.qx - half_sine * body.qy,
        qy=half_cosine * body.qy + half_sine * body.qx,
        qz=half_cosine * body.qz + half_sine * body.qw,
        vx=cosine * body.vx - sine * body.vy,
        vy=sine * body.vx + cosine * body.vy,
    )


def wrap_angle(angle: Scalar) -> Scalar:
    """Bring an angle within 2 pi of zero into [-pi, pi]."""
    return angle - 2 * math.pi * (
        (angle > math.pi).astype(angle.dtype) - (angle < -math.pi).astype(angle.dtype)
    )


def body_measurements(state: State) -> tuple[Scalar, ...]:
    """Return up, velocity and angular velocity in the body frame, and height: ten numbers."""
    body = state.vehicle.body
    r = rotation_matrix(body)
    velocity = (r[i] * body.vx + r[i + 3] * body.vy + r[i + 6] * body.vz for i in range(3))
    return (*r[6:], *velocity, body.wx, body.wy, body.wz, body.z)


def has_hit(body: RigidBody, params: Params) -> Scalar:
    """Say whether it touches the floor or a pillar."""
    hit = body.z < VEHICLE
    for i in range(COUNT):
        hit = hit | (
            squared_length(params.pillar_x[i] - body.x, params.pillar_y[i] - body.y, 0.0)
            < (PILLAR_RADIUS + VEHICLE) ** 2
        )
    return hit


def is_lost(body: RigidBody) -> Scalar:
    """Say whether it left the arena."""
    return (squared_length(body.x, body.y, 0.0) > LOST_DISTANCE**2) | (body.z > CEILING)


def is_like(image: Any, colour: tuple[float, float, float]) -> Any:
    """Say whether pixels ``(..., 3)`` have a hue.

    Their ratios are those of the colour within a half.
    """
    strongest = int(np.argmax(colour))
    other_channels = (i for i in range(3) if i != strongest)
    first_dominates, second_dominates = (
        image[..., strongest] > 1.5 * image[..., i] for i in other_channels
    )
    return first_dominates & second_dominates


class VisionPilot(NamedTuple):
    """The reference player: it uses nothing but the observation.

    Red pixels are the ball: their centroid gives its direction, their number its distance. The
    player turns and flies there. It steps aside before a pillar, whose width in blue columns gives
    its distance. If it sees no ball, it turns to the left, and after a whole turn it flies ahead a
    little, for the ball may be behind a pillar.
    """

    speed: Float = 0.9
    """m/s"""
    turning: Float = 2.5
    """1/s: rate of turn by bearing."""
    beside: Float = 0.5
    """Slope between ball and pillar at which a pillar is in the way."""
    wary: Float = 1.4
    """m from a pillar at which it begins to step aside."""
    aside: Float = 1.2
    """1/s: velocity aside by metres into that distance."""
    search_height: Float = 1.5
    """m"""
    patience: Int = 90
    """Steps of search after which it moves."""

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> VisionPilot:
        """Make the pilot of this task."""
        return cls()

    def initial(self, params: Any) -> jax.Array:
        """Return the steps since it saw the ball, int32."""
        return jnp.int32(0)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return velocity and rate of turn, shape ``(4,)``, in [-1, 1]."""
        image, feels = view.observation["picture"], view.observation["felt"]
        red, blue = is_like(image, RED), is_like(image, BLUE)
        left, up, count = centroid(red)
        sees = count > 0
        forward, sideways, rise = level_direction(left, up, feels)
        distance = jnp.sqrt(squared_length(forward, sideways, rise))
        depth = BALL_RADIUS * jnp.sqrt(math.pi / (jnp.maximum(count, 1) * PIXEL**2))

        # Pillars near the way, in a band two pixels high about the horizon: how near, and on which
        # side.
        onward, beside, above = level_direction(LEFT, UP, feels)
        away = beside / onward - sideways / forward
        in_the_way = blue & (jnp.abs(above) < PIXEL) & (jnp.abs(away) < self.beside)
        pixels = in_the_way.sum()
        on_the_left = 2 * (in_the_way & (away > 0)).sum() > pixels
        pillar = 2 * PILLAR_RADIUS / (0.5 * jnp.maximum(pixels, 1) * PIXEL)
        encroachment = jnp.where(
            (pixels > 0) & (pillar < depth), jnp.maximum(self.wary - pillar, 0), 0
        )
        evasion = self.aside * encroachment * jnp.where(on_the_left, -1, 1)

        pace = self.speed / distance
        seeking = (
            pace * forward,
            pace * sideways + evasion,
            pace * rise,
            self.turning * jnp.arctan2(sideways, forward),
        )
        waiting = memory + 1
        searching = (
            jnp.where(waiting > self.patience, 0.5, 0),
            0.0,
            self.search_height - feels[-1],
            LIMITS[3],
        )
        command = [
            jnp.where(sees, seek, search) / limit
            for seek, search, limit in zip(seeking, searching, LIMITS, strict=True)
        ]
        return jnp.clip(jnp.stack(command), -1, 1), jnp.where(sees, 0, waiting)


def level_direction(left: Any, up: Any, feels: jax.Array) -> tuple[Any, Any, Any]:
    """Return the direction seen at these slopes in a level frame: ahead, left, up.

    ``feels`` begins with up.
    """
    gx, gy, gz = feels[0], feels[1], feels[2]
    rise = gx + left * gy + up * gz
    level = jnp.sqrt(jnp.maximum(1 - gx * gx, 0.01))  # of the body's x axis
    return (1 - gx * rise) / level, (left * gz - up * gy) / level, rise


def centroid(mask: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the mean slopes of the pixels in a mask ``(24, 32)``, and their number.

    The slopes are to the left and upward.

    The sums are in whole numbers, so that their order does not matter.
    """
    count = mask.sum()
    twice_left = jnp.where(mask, COLUMNS - 1 - 2 * np.arange(COLUMNS), 0).sum()
    twice_up = jnp.where(mask, ROWS - 1 - 2 * np.arange(ROWS)[:, None], 0).sum()
    half_pixel = 0.5 * PIXEL / jnp.maximum(count, 1)
    return half_pixel * twice_left, half_pixel * twice_up, count
