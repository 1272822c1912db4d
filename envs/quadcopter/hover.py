"""Reach and hold a hover at the origin from a random attitude and velocity, with four rotor commands.

Dynamics: ``dynamics.py``, one Runge-Kutta step of 10 ms a step of the episode. Nothing is random after the start.
Source of the task: Eschmann, Albani & Loianno 2024 (Learning to Fly in Seconds), arXiv:2311.13081.

======================  ====================================================================================
action ``(4,)``         commanded speed of rotor 1..4: -1 is standstill, +1 is 21,702 RPM, linear between
observation ``(22,)``   position (3, m), rotation matrix body to world (9, row by row), velocity in the world
                        frame (3, m/s), angular velocity in the body frame (3, rad/s), rotor speeds (4, on the
                        action's scale). The context is not shown
reward                  exp(-cost) in (0, 1], cost = 5 |position|^2 + 5 (1 - q_w^2) + 0.01 |velocity|^2
                        + 0.01 |action - 0.334|^2: the paper's cost; as a bounded positive reward it never
                        makes ending early pay
terminated              a crash: more than 0.6 m from the origin along an axis, or an angular velocity that a
                        Crazyflie's gyroscope cannot measure (2,000 deg/s about an axis)
success                 within 0.1 m of the origin, slower than 0.1 m/s
start                   position within 0.2 m and velocity within 1 m/s along each axis, attitude turned by up
                        to 90 degrees about any axis, angular velocity within 1 rad/s about each axis, rotors
                        at the speed that would carry the weight
context                 mass +-20 %, inertia +-20 %, thrust coefficient +-10 %, torque coefficient +-20 %, motor
                        time constant +-25 %. Train and test masses lie in alternating bands of 1 % of the
                        nominal mass, so a test asks for interpolation
======================  ====================================================================================
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from rlbench_suite.card import TaskCard
from rlbench_suite.task import Task

from ..alternating_bands import alternating_bands
from . import dynamics
from .dynamics import Airframe, Quadcopter, Rotors
from .rigid_body import Inertia, RigidBody, Scalar, rotation_matrix

STEP = 0.01
"""s"""
ARENA = 0.6
"""m along each axis"""
GYROSCOPE_RANGE = math.radians(2000)
"""rad/s about each axis"""
HOVER_ACTION = 0.334
"""The nominal vehicle's hover command, as the paper's cost has it."""

# Bounds of the observation hold for every context and every action. Four rotors of the lightest, strongest vehicle
# accelerate it by at most 31 m/s^2 (41 with gravity); over the arena's 1.2 m that ends below 10 m/s. One step beyond
# the limits, where an episode ends, adds at most 0.11 m and, by full rotors and gyroscopic torque, 60 rad/s.
POSITION_BOUND = 0.75
VELOCITY_BOUND = 11.0
ANGULAR_VELOCITY_BOUND = 100.0
ROUNDING = 1e-5
"""By which entries of a rotation matrix and of normalised rotor speeds may pass one."""


class QuadcopterHover(Task[Airframe, Quadcopter]):
    """The task of this file's docstring. State: :class:`Quadcopter`. Context: :class:`Airframe`."""

    measures: ClassVar[dict[str, str]] = {
        "distance": "from the origin, m",
        "speed": "m/s",
    }
    picture_shape = (300, 600, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        bound = np.array(
            [POSITION_BOUND] * 3
            + [1 + ROUNDING] * 9
            + [VELOCITY_BOUND] * 3
            + [ANGULAR_VELOCITY_BOUND] * 3
            + [1 + ROUNDING] * 4
        )
        self.observation_space = self.box(-bound, bound)
        self.action_space = self.box([-1] * 4, [1] * 4)
        self.reward_space = self.box(0, 1)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Airframe:
        """A vehicle: every constant uniform in its range, the mass in the bands of the split."""
        mass, inertia, thrust, torque, lag = self.uniform(key, 5)

        def near(nominal: float, spread: float, unit: Scalar) -> Scalar:
            return nominal * (1 - spread + 2 * spread * unit)

        scale = near(1.0, 0.2, inertia)
        return Airframe(
            inertia=Inertia(
                alternating_bands(mass, split, 0.8 * dynamics.MASS, 1.2 * dynamics.MASS, bands=40),
                *(moment * scale for moment in dynamics.INERTIA),
            ),
            thrust_coefficient=near(dynamics.THRUST_COEFFICIENT, 0.1, thrust),
            torque_coefficient=near(dynamics.TORQUE_COEFFICIENT, 0.2, torque),
            motor_time_constant=near(dynamics.MOTOR_TIME_CONSTANT, 0.25, lag),
        )

    def initial(self, key: jax.Array, params: Airframe) -> Quadcopter:
        """A start anywhere in the ranges of the table."""
        u = self.uniform(key, 12)
        x, y, z = (0.2 * (2 * unit - 1) for unit in u[0:3])
        vx, vy, vz, wx, wy, wz = (2 * unit - 1 for unit in u[3:9])
        # An axis uniform on the sphere (Archimedes: its height is uniform), and an angle up to a right one.
        height, longitude, angle = 2 * u[9] - 1, 2 * math.pi * u[10], 0.5 * math.pi * u[11]
        across, sine = jnp.sqrt(1 - height * height), jnp.sin(0.5 * angle)
        turn = (jnp.cos(0.5 * angle), sine * across * jnp.cos(longitude), sine * across * jnp.sin(longitude))
        hover = dynamics.hover_speed(params)
        return Quadcopter(
            RigidBody(x, y, z, *turn, sine * height, vx, vy, vz, wx, wy, wz), Rotors(hover, hover, hover, hover)
        )

    def transition(self, state: Quadcopter, action: jax.Array, key: jax.Array, params: Airframe) -> Quadcopter:
        """One Runge-Kutta step under constant commands."""
        command = Rotors(*(rotor_speed(action[rotor]) for rotor in range(4)))
        return dynamics.step(state, command, params, STEP)

    def observation(self, state: Quadcopter, key: jax.Array, params: Airframe) -> jax.Array:
        """Shape ``(22,)``; see the table."""
        body = state.body
        rotors = (rotor_action(speed) for speed in state.rotors)
        velocities = (body.vx, body.vy, body.vz, body.wx, body.wy, body.wz)
        return self.stack(body.x, body.y, body.z, *rotation_matrix(body), *velocities, *rotors)

    def reward(
        self, state: Quadcopter, action: jax.Array, next_state: Quadcopter, key: jax.Array, params: Airframe
    ) -> jax.Array:
        """exp(-cost) of where the step leads."""
        body = next_state.body
        effort = [action[rotor] - HOVER_ACTION for rotor in range(4)]
        cost = (
            5 * _square(body.x, body.y, body.z)
            + 5 * _square(body.qx, body.qy, body.qz)  # 1 - q_w^2 of a unit quaternion
            + 0.01 * _square(body.vx, body.vy, body.vz)
            + 0.01 * (_square(*effort[:3]) + effort[3] * effort[3])
        )
        return jnp.exp(-cost)

    def terminal(self, state: Quadcopter, key: jax.Array, params: Airframe) -> jax.Array:
        """Whether it left the arena or spins faster than its gyroscope measures."""
        body = state.body
        outside = (jnp.abs(body.x) > ARENA) | (jnp.abs(body.y) > ARENA) | (jnp.abs(body.z) > ARENA)
        return outside | _spins(body)

    def info(self, state: Quadcopter, params: Airframe) -> dict[str, jax.Array]:
        """``success`` and the measures."""
        body = state.body
        distance, speed = jnp.sqrt(_square(body.x, body.y, body.z)), jnp.sqrt(_square(body.vx, body.vy, body.vz))
        return {"success": (distance < 0.1) & (speed < 0.1), "distance": distance, "speed": speed}

    def noop_action(self) -> np.ndarray:
        """The nominal vehicle's hover command: rotors at standstill would be a fall."""
        return np.full(4, HOVER_ACTION, self.dtype)

    def why_over(self, state: Quadcopter, params: Airframe) -> str:
        """Which of the two limits was passed."""
        if bool(_spins(state.body)):
            return f"crash: it spins faster than {GYROSCOPE_RANGE:.1f} rad/s about an axis"
        return f"crash: it is more than {ARENA} m from the origin along an axis"

    def how_to_act(self) -> str:
        """One line for a text player."""
        return (
            "Answer with four numbers from -1 to 1, the commanded speeds of rotors 1 to 4 (front right, rear right, "
            f"rear left, front left): -1 is standstill, 1 full speed, about {HOVER_ACTION} carries the weight."
        )

    def describe(self, state: Quadcopter, params: Airframe) -> str:
        """Position, attitude, velocities and rotor speeds in words, with units."""
        body = RigidBody(*(float(value) for value in state.body))
        tilt = math.degrees(math.acos(np.clip(rotation_matrix(body)[8], -1, 1)))
        rows = np.array(rotation_matrix(body)).reshape(3, 3)
        rotors = ", ".join(f"{float(rotor_action(speed)):+.3f}" for speed in state.rotors)
        return (
            f"Position x {body.x:+.3f}, y {body.y:+.3f}, z {body.z:+.3f} m; hover at the origin. "
            f"Velocity {body.vx:+.3f}, {body.vy:+.3f}, {body.vz:+.3f} m/s. "
            f"Tilt {tilt:.1f} degrees; forward points to {_words(rows[:, 0])}, left to {_words(rows[:, 1])}, "
            f"up to {_words(rows[:, 2])}. "
            f"Angular velocity about forward, left, up {body.wx:+.3f}, {body.wy:+.3f}, {body.wz:+.3f} rad/s. "
            f"Rotor speeds on the action's scale {rotors}."
        )

    def draw(self, state: Quadcopter, params: Airframe) -> np.ndarray:
        """From the side (x right, z up) and from above (x right, y up): arena, origin, vehicle, rotor thrusts."""
        size = 300
        image = Image.new("RGB", (2 * size, size), "white")
        canvas = ImageDraw.Draw(image)
        body = RigidBody(*(float(value) for value in state.body))
        rotation = np.array(rotation_matrix(body)).reshape(3, 3)
        centre = np.array([body.x, body.y, body.z])
        # Rotor arms are drawn three times their length, or a vehicle would be a dot.
        arms = 3 * dynamics.ROTOR_ARM * np.array([[1, -1, 0], [-1, -1, 0], [-1, 1, 0], [1, 1, 0]])
        tips = centre + arms @ rotation.T
        full = dynamics.ROTOR_SPEED_LIMIT
        heads = tips + np.array([0.25 * (float(n) / full) ** 2 for n in state.rotors])[:, None] * rotation[:, 2]
        for left, (title, across, up) in zip((0, size), (("side", 0, 2), ("top", 0, 1)), strict=True):

            def pixel(point: Any, left: int = left, across: int = across, up: int = up) -> tuple[float, float]:
                scale = 0.5 * size / (1.1 * ARENA)
                return left + size / 2 + scale * point[across], size / 2 - scale * point[up]

            low, high = pixel([-ARENA] * 3), pixel([ARENA] * 3)
            canvas.rectangle((low[0], high[1], high[0], low[1]), outline="silver")
            canvas.text((left + 16, 14), title, fill="gray")
            ox, oy = pixel([0, 0, 0])
            canvas.ellipse((ox - 4, oy - 4, ox + 4, oy + 4), outline="green", width=2)
            for tip, head in zip(tips, heads, strict=True):
                canvas.line((pixel(centre), pixel(tip)), fill="black", width=3)
                canvas.line((pixel(tip), pixel(head)), fill="red", width=2)
        return np.asarray(image)


def rotor_speed(action: Scalar) -> Scalar:
    """The rotor speed (rad/s) that an action in [-1, 1] commands."""
    return 0.5 * dynamics.ROTOR_SPEED_LIMIT * (action + 1)


def rotor_action(speed: Scalar) -> Scalar:
    """The action that commands a rotor speed (rad/s); inverse of :func:`rotor_speed`."""
    return 2 / dynamics.ROTOR_SPEED_LIMIT * speed - 1


def _square(x: Scalar, y: Scalar, z: Scalar) -> Scalar:
    return x * x + y * y + z * z


def _spins(body: RigidBody) -> Scalar:
    return (
        (jnp.abs(body.wx) > GYROSCOPE_RANGE)
        | (jnp.abs(body.wy) > GYROSCOPE_RANGE)
        | (jnp.abs(body.wz) > GYROSCOPE_RANGE)
    )


def _words(direction: np.ndarray) -> str:
    return "(" + ", ".join(f"{value:+.3f}" for value in direction) + ")"
