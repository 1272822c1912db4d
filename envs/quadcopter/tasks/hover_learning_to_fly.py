"""Hover as in Learning to Fly in Seconds.

It has the paper's reward and curriculum, disturbances, noise, and past actions.

Dynamics: ``physics/dynamics.py``, one Runge-Kutta step of 10 ms a step of the episode, with a force
and a torque that are constant over the episode: the context. The vehicle is always the paper's.
Source: Eschmann, Albani & Loianno 2024, arXiv:2311.13081; where the paper gives no number, its
code, arplaboratory/learning-to-fly@d07592d (``src/parameters.h``, ``src/steps/curriculum.h``).

======================  ============================================================================
action ``(4,)``         commanded speed of rotor 1..4: -1 is standstill, +1 is 21,702 RPM, linear
                        between
observation ``(146,)``  position (3, m), rotation matrix body to world (9, row by row), velocity in
                        the world frame (3, m/s), angular velocity in the body frame (3, rad/s),
                        each number with Gaussian noise of deviation 0.001 (position, matrix) or
                        0.002 (velocities); the last 32 actions (128, oldest first). Rotor speeds
                        are hidden, but follow from past actions
privileged ``(28,)``    input of the paper's critic: position, matrix and velocities without noise,
                        rotor speeds, disturbance
reward                  2 - cost / 2 of the state before the step, 0 for a step that ends the
                        episode. cost = a |position|^2 + 5 (1 - q_w^2) + b |velocity|^2 + b |action
                        - 0.334|^2
difficulty              stages passed of the paper's curriculum, one every 100,000 steps of its
                        training. Each raises a, 5 at the start, by a factor of 1.2 up to 40, and b,
                        0.01 at the start, by 1.4 up to 1. easy: 0 stages; medium: 2, where the
                        paper's 300,000 steps end; hard: 14, all at their most
terminated              a crash: more than 0.6 m from the origin along an axis, or an angular
                        velocity beyond 2,000 deg/s about an axis (the code says 1,000 rad/s, which
                        neither a gyroscope measures nor a step of 10 ms follows)
success                 within 0.1 m of the origin, slower than 0.1 m/s
start                   in one of ten episodes at the origin, level; else position within 0.2 m
                        along each axis and any attitude within 90 degrees, all as likely (uniform
                        on SO(3)). Velocity within 1 m/s and angular velocity within 1 rad/s along
                        and about each axis, rotors at half their full speed, past actions 0, which
                        ask for that
context                 a force, Gaussian along each axis of the world, of deviation 1/20 of the
                        weight; a torque, Gaussian about each body axis, of deviation weight /
                        10,000 m. Train and test: quantiles of the force's vertical part in
                        alternating bands of 2.5 %
vehicle                 that of ``physics/dynamics.py``, with the paper's motor time constant of
                        0.15 s
======================  ============================================================================
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ...shared.alternating_bands import alternating_bands
from ..control.flight_controller import prioritise_tilt
from ..control.geometric import GeometricControl, SetPoint, compensate_lag
from ..physics import dynamics
from ..physics.dynamics import HOVER_ACTION, STEP, Quadcopter, Rotors
from ..physics.rigid_body import GRAVITY, RigidBody, Scalar, Wrench, leaves_cube, squared_length
from ..physics.sampling import random_attitude
from ..rendering import picture
from ..rendering.picture import Shot
from ..sensing.motion import (
    MOTION,
    SPINS,
    attitude_and_rates,
    attitude_and_rates_bound,
    describe_motion,
    format_point,
    offset,
    spins_too_fast,
)
from .flight import Flight
from .hover import ARENA, POSITION_BOUND, hover_info

AIRFRAME = dynamics.NOMINAL._replace(motor_time_constant=0.15)
FORCE_DEVIATION = dynamics.MASS * GRAVITY / 20
"""N along each axis"""
TORQUE_DEVIATION = dynamics.MASS * GRAVITY / 10_000
"""N m about each axis"""
PLACE_NOISE = 0.001
"""Standard deviation of the noise of the place (m) and of the entries of the matrix."""
MOTION_NOISE = 0.002
"""Standard deviation of the noise of velocity (m/s) and angular velocity (rad/s)."""
MAX_NOISE = 6.0
"""Standard deviations: single-precision Gaussian numbers stay within."""
HISTORY = 32
"""Past actions shown."""
GUIDANCE = 0.1
"""Fraction of episodes that begin at the origin, level."""
MAX_TURN = 0.5 * math.pi
FORCE_BANDS = 40
# As in hover, plus a force of 0.3 of the weight along each axis (six deviations).
VELOCITY_BOUND = 12.0


class Weights(NamedTuple):
    """Weights of the cost's parts that the curriculum changes."""

    position: float
    motion: float
    """Weight of velocity and action"""

    @classmethod
    def after_stages(cls, stages: float) -> Weights:
        """Return the weights after this number of stages of the curriculum."""
        return cls(min(5 * 1.2**stages, 40.0), min(0.01 * 1.4**stages, 1.0))


class State(NamedTuple):
    """The vehicle and its past commands."""

    vehicle: Quadcopter
    past: jax.Array
    """``(128,)``: the last 32 actions, oldest first."""


class HoverLearningToFly(Flight[Wrench, State]):
    """The task of this file's docstring. Context: the disturbance."""

    takes_data_sheet = False
    measures: ClassVar[dict[str, str]] = {
        "distance": "from the origin, m",
        "speed": "m/s",
    }
    errors = ("position",)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.weights = Weights.after_stages(difficulty or 0)
        self.deviation = np.array([PLACE_NOISE] * 12 + [MOTION_NOISE] * 6, self.dtype)
        motion = [POSITION_BOUND] * 3 + attitude_and_rates_bound(VELOCITY_BOUND)[:15]
        bound = np.concatenate(
            [np.array(motion) + MAX_NOISE * self.deviation, np.ones(4 * HISTORY)]
        )
        self.observation_space = self.box(-bound, bound)
        self.privileged_space = self.box(-np.inf, np.inf, (28,))
        worst = self.weights.position * 3 * ARENA**2 + 5
        worst += self.weights.motion * (3 * VELOCITY_BOUND**2 + 4 * (1 + HOVER_ACTION) ** 2)
        self.reward_space = self.box(2 - worst / 2, 2, ())

    def sample_params(self, key: jax.Array, split: jax.Array) -> Wrench:
        """Draw the disturbance."""
        u = 2 * self.uniform(key, 6) - 1
        vertical = 2 * alternating_bands(0.5 * (u[2] + 1), split, 0.0, 1.0, bands=FORCE_BANDS) - 1
        # Within six deviations single precision tells quantiles from 0 and 1.
        normal = [
            jnp.clip(math.sqrt(2) * jax.lax.erf_inv(quantile), -6, 6)
            for quantile in (u[0], u[1], vertical, *u[3:])
        ]
        return Wrench(
            *(FORCE_DEVIATION * quantile for quantile in normal[:3]),
            *(TORQUE_DEVIATION * quantile for quantile in normal[3:]),
        )

    def initial(self, key: jax.Array, params: Wrench) -> State:
        """Sample a start from the ranges of the table."""
        u = self.uniform(key, 13)
        guided = u[12] < GUIDANCE
        x, y, z = (jnp.where(guided, 0, 0.2 * (2 * unit - 1)) for unit in u[0:3])
        motion = (2 * unit - 1 for unit in u[3:9])
        turned = random_attitude(
            jnp.stack([u[9], u[10], haar_angle(u[11], MAX_TURN) / MAX_TURN]), MAX_TURN
        )
        attitude = (
            jnp.where(guided, level, component)
            for level, component in zip((1, 0, 0, 0), turned, strict=True)
        )
        half = jnp.asarray(0.5 * dynamics.ROTOR_SPEED_LIMIT, self.dtype)
        body = RigidBody(x, y, z, *attitude, *motion)
        return State(
            Quadcopter(body, Rotors(half, half, half, half)), jnp.zeros(4 * HISTORY, self.dtype)
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Wrench) -> State:
        """Make one Runge-Kutta step under constant commands."""
        vehicle = dynamics.step(
            state.vehicle, dynamics.commanded_speeds(action), AIRFRAME, STEP, disturbance=params
        )
        return State(vehicle, jnp.concatenate([state.past[4:], action]))

    def observation(self, state: State, key: jax.Array, params: Wrench) -> jax.Array:
        """Return shape ``(146,)``; see the table."""
        noise = self.deviation * self.normal(key, 18)
        return jnp.concatenate([self._motion(state) + noise, state.past])

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        noisy = (
            replace(
                component,
                meaning=f"{component.meaning}, with Gaussian noise of deviation {noise:g}",
            )
            for component, noise in zip(
                (offset("position", "from the goal to the vehicle"), *MOTION),
                (PLACE_NOISE, PLACE_NOISE, MOTION_NOISE, MOTION_NOISE),
                strict=True,
            )
        )
        past = f"[action, rotor]: the last {HISTORY} actions, oldest first"
        return *noisy, Component("past_actions", past, shape=(HISTORY, 4))

    def privileged(self, state: State, params: Wrench) -> jax.Array:
        """Return motion without noise (18), rotor speeds (4) and the disturbance (6).

        Rotor speeds are by their limit, the disturbance by its deviation.
        """
        motion = self._motion(state)
        rotors = [speed / dynamics.ROTOR_SPEED_LIMIT for speed in state.vehicle.rotors]
        forces, torques = params[:3], params[3:]
        disturbance = [load / FORCE_DEVIATION for load in forces] + [
            load / TORQUE_DEVIATION for load in torques
        ]
        return jnp.concatenate([motion, self.stack(*rotors, *disturbance)])

    def _motion(self, state: State) -> jax.Array:
        """Return position, rotation matrix and velocities without noise: ``(18,)``."""
        body = state.vehicle.body
        return self.stack(body.x, body.y, body.z, *attitude_and_rates(state.vehicle)[:15])

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Wrench
    ) -> jax.Array:
        """Return 2 - cost / 2, or 0 if the episode ends."""
        body = state.vehicle.body
        effort = [action[rotor] - HOVER_ACTION for rotor in range(4)]
        motion = (
            squared_length(body.vx, body.vy, body.vz)
            + squared_length(*effort[:3])
            + effort[3] * effort[3]
        )
        cost = (
            self.weights.position * squared_length(body.x, body.y, body.z)
            + 5 * squared_length(body.qx, body.qy, body.qz)  # 1 - q_w^2 of a unit quaternion
            + self.weights.motion * motion
        )
        return jnp.where(self.terminal(next_state, key, params), 0, 2 - 0.5 * cost)

    def terminal(self, state: State, key: jax.Array, params: Wrench) -> jax.Array:
        """Say whether it left the arena or spins faster than its gyroscope measures."""
        body = state.vehicle.body
        return leaves_cube(body.x, body.y, body.z, ARENA) | spins_too_fast(body)

    def info(self, state: State, params: Wrench) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return hover_info(state.vehicle.body)

    def why_over(self, state: State, params: Wrench, info: dict[str, Any]) -> str:
        """Say which of the two limits was passed."""
        if bool(spins_too_fast(state.vehicle.body)):
            return SPINS
        return f"crash: it is more than {ARENA} m from the origin along an axis"

    def describe(self, state: State, params: Wrench) -> str:
        """Describe position, attitude, velocities and past actions, with units."""
        body = state.vehicle.body
        past = "; ".join(
            " ".join(f"{value:+.2f}" for value in row)
            for row in np.reshape(state.past, (HISTORY, 4))
        )
        return (
            f"Position {format_point(body[:3])} m; hover at the origin. {describe_motion(body)} "
            f"The last {HISTORY} actions, oldest first: {past}."
        )

    def shot(self, state: State, params: Wrench) -> Shot:
        """Show arena, origin and vehicle."""
        return Shot(state.vehicle, ARENA, [picture.goal((0.0, 0.0, 0.0), 0.025)])


def haar_angle(unit: Scalar, max_angle: float) -> Scalar:
    """Return the angle (rad) of a rotation that turns by at most ``max_angle``.

    The rotation is sampled uniformly from those of SO(3).

    The angle's distribution is (a - sin a) / (m - sin m), with m for ``max_angle``. That is
    Kepler's equation of eccentricity one; Newton's method solves it, starting from the root of its
    first term, the cube.
    """
    mean = unit * (max_angle - math.sin(max_angle))
    angle = jnp.cbrt(6 * mean)
    for _ in range(3):
        angle = angle - (angle - jnp.sin(angle) - mean) / jnp.maximum(1 - jnp.cos(angle), 1e-6)
    return jnp.clip(angle, 0, max_angle)


@privileged_player
class LearningToFlyPilot(NamedTuple):
    """The reference player: geometric control that knows its vehicle, motors and rotor speeds.

    It does not know the disturbance, which pushes it aside as far as its stiffness allows. Gains
    are lower than in hover, whose motors are faster. Where rotors cannot give everything, it turns
    first. It loses about six of a hundred starts, tilted far and falling: the motors take longer
    than the fall.
    """

    control: GeometricControl

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> LearningToFlyPilot:
        """Make the player."""
        return cls(GeometricControl(position=5.0, tilt=20.0, yaw=4.0, least_thrust=0.5))

    def initial(self, params: Wrench) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return four rotor commands, shape ``(4,)``, in [-1, 1]."""
        vehicle = view.state.vehicle
        forces = prioritise_tilt(
            vehicle.rotors,
            AIRFRAME,
            *self.control.thrust_and_torques(vehicle, AIRFRAME, SetPoint()),
        )
        return compensate_lag(vehicle, AIRFRAME, forces), memory
