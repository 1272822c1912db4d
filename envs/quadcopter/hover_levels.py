"""Hover by other actions than four rotor commands: body rates, velocities, places, one number for all rotors.

Each task is that of ``hover.py``, word for word: the same vehicle, observation, reward, ends, success, contexts and,
but for the last, starts. What differs is who commands the rotors: a controller inside the vehicle
(``action_levels.py``), which the action tells what to do. Effort is charged for the rotor commands that this controller
gives, so that returns compare across levels: as in Kaufmann, Bauersfeld & Scaramuzza 2022, arXiv:2202.10796, the
question is which actions a policy learns best by.

==============  ============================================================================================
action setting  action, each number in [-1, 1], 0 at a hover but for the last
==============  ============================================================================================
``"rates"``     ``(4,)``: collective thrust, from 0 to twice what hovers (-1 to 1); angular velocity about body x, y,
                z, +-10, +-10 and +-5 rad/s (CTBR)
``"velocity"``  ``(4,)``: velocity, +-1 m/s along each axis of the world; yaw rate, +-2 rad/s
``"waypoint"``  ``(3,)``: a place to fly to, from where the vehicle is now, +-0.5 m along each axis of the world; the
                nose turns to the world's x
``"one"``       ``(1,)``: the commanded speed of all four rotors: -1 is standstill, +1 is 21,702 RPM. Start: level and
                still but for a height within 0.2 m and a vertical velocity within 1 m/s, so that flight is
                vertical (``ActionType.ONE_D_RPM`` of gym-pybullet-drones, arXiv:2103.02142)
==============  ============================================================================================
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.card import TaskCard
from rlbench_suite.policy import View
from rlbench_suite.task import Task

from . import action_levels, dynamics
from .action_levels import BodyRates, Velocity
from .dynamics import Airframe, Quadcopter, Rotors
from .flight import HOVER_ACTION
from .geometric_control import ahead_of_motors
from .hover import QuadcopterHover
from .rigid_body import GRAVITY, RigidBody, Scalar

TILT_RATE = 10.0
"""rad/s: the highest that an action commands"""
TURN_RATE = 5.0
"""rad/s, about body z"""
SPEED = 1.0
"""m/s along each axis"""
YAW_RATE = 2.0
"""rad/s, with a velocity"""
STRIDE = 0.5
"""m along each axis"""
HEIGHT_GAIN = 5.0
"""rad/s: natural frequency of the reference player's height"""


class HoverLevel(QuadcopterHover):
    """The hover task with a controller between action and rotors."""

    numbers: ClassVar[int]
    """Of an action."""
    words: ClassVar[str]
    """What they are, for a text player."""

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.action_space = self.box(-1, 1, (self.numbers,))

    @abc.abstractmethod
    def rotors(self, state: Quadcopter, action: jax.Array, airframe: Airframe) -> jax.Array:
        """Rotor commands ``(4,)`` in [-1, 1]; ``airframe`` is what the controller takes the vehicle for."""

    def transition(self, state: Quadcopter, action: jax.Array, key: jax.Array, params: Airframe) -> Quadcopter:
        """That of hover under the controller's commands."""
        return super().transition(state, self.commands(state, action, params), key, params)

    def reward(
        self, state: Quadcopter, action: jax.Array, next_state: Quadcopter, key: jax.Array, params: Airframe
    ) -> jax.Array:
        """That of hover for the controller's commands."""
        return super().reward(state, self.commands(state, action, params), next_state, key, params)

    def commands(self, state: Quadcopter, action: jax.Array, params: Airframe) -> jax.Array:
        """Rotor commands by a controller that knows of the vehicle at which rotor speed it hovers."""
        return self.rotors(state, action, action_levels.calibrated(dynamics.hover_speed(params)))

    def noop_action(self) -> np.ndarray:
        """Zeros: set points of a hover."""
        return np.zeros(self.numbers, self.dtype)

    def how_to_act(self) -> str:
        """One line for a text player."""
        return f"Answer with numbers from -1 to 1: {self.words}."


class HoverRates(HoverLevel):
    """Collective thrust and body rates."""

    numbers = 4
    words = (
        "thrust (-1 none, 0 what hovers, 1 twice that), angular velocity about forward and left (1 is "
        f"{TILT_RATE:.0f} rad/s) and up ({TURN_RATE:.0f} rad/s)"
    )

    def rotors(self, state: Quadcopter, action: jax.Array, airframe: Airframe) -> jax.Array:
        """By the rate controller."""
        goal = BodyRates(GRAVITY * (1 + action[0]), TILT_RATE * action[1], TILT_RATE * action[2], TURN_RATE * action[3])
        return action_levels.towards_body_rates(state, goal, airframe)


class HoverVelocity(HoverLevel):
    """Velocity and yaw rate."""

    numbers = 4
    words = f"velocity along x, y, z (1 is {SPEED:.0f} m/s) and yaw rate (1 is {YAW_RATE:.0f} rad/s)"

    def rotors(self, state: Quadcopter, action: jax.Array, airframe: Airframe) -> jax.Array:
        """By the velocity controller."""
        goal = Velocity(SPEED * action[0], SPEED * action[1], SPEED * action[2], YAW_RATE * action[3])
        return action_levels.towards_body_rates(state, action_levels.towards_velocity(state.body, goal), airframe)


class HoverWaypoint(HoverLevel):
    """A place, from where the vehicle is."""

    numbers = 3
    words = f"a place to fly to along x, y, z from where the vehicle is (1 is {STRIDE} m)"

    def rotors(self, state: Quadcopter, action: jax.Array, airframe: Airframe) -> jax.Array:
        """By the controller of places."""
        place = (STRIDE * action[0], STRIDE * action[1], STRIDE * action[2])
        velocity = action_levels.towards_place(state.body, *place)
        return action_levels.towards_body_rates(state, action_levels.towards_velocity(state.body, velocity), airframe)


class HoverOne(HoverLevel):
    """All rotors alike: vertical flight."""

    numbers = 1
    words = (
        f"the commanded speed of all four rotors, -1 standstill, 1 full speed, about {HOVER_ACTION} carries the weight"
    )

    def initial(self, key: jax.Array, params: Airframe) -> Quadcopter:
        """That of hover, all but height and vertical velocity taken away."""
        start = super().initial(key, params)
        still = dict.fromkeys(("x", "y", "qx", "qy", "qz", "vx", "vy", "wx", "wy", "wz"), jnp.zeros((), self.dtype))
        return start._replace(body=start.body._replace(qw=jnp.ones((), self.dtype), **still))

    def rotors(self, state: Quadcopter, action: jax.Array, airframe: Airframe) -> jax.Array:
        """The same for each."""
        return jnp.broadcast_to(action[0], (4,))

    def noop_action(self) -> np.ndarray:
        """The nominal vehicle's hover command."""
        return np.full(1, HOVER_ACTION, self.dtype)


class LevelPilot(eqx.Module):
    """What the reference players of the levels share: a proportional law each, without memory."""

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> LevelPilot:
        """The player."""
        return cls()

    def initial(self, params: Airframe) -> tuple[()]:
        """No memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Set points, in [-1, 1]."""
        return jnp.clip(jnp.stack(self.law(view.state, view.params)), -1, 1), memory

    @abc.abstractmethod
    def law(self, state: Quadcopter, params: Airframe) -> list[Scalar]:
        """The set points, of any size."""


class RatesPilot(LevelPilot):
    """The reference player of ``"rates"``: the velocity home, the tilt for it, the rates to that tilt."""

    def law(self, state: Quadcopter, params: Airframe) -> list[Scalar]:
        """By the gains of the levels above."""
        goal = action_levels.towards_velocity(state.body, home(state.body))
        return [goal.thrust / GRAVITY - 1, goal.wx / TILT_RATE, goal.wy / TILT_RATE, goal.wz / TURN_RATE]


class VelocityPilot(LevelPilot):
    """The reference player of ``"velocity"``: proportional to the way home."""

    def law(self, state: Quadcopter, params: Airframe) -> list[Scalar]:
        """By the gains of the level above."""
        goal = home(state.body)
        return [goal.vx / SPEED, goal.vy / SPEED, goal.vz / SPEED, goal.yaw_rate / YAW_RATE]


class WaypointPilot(LevelPilot):
    """The reference player of ``"waypoint"``: the way home."""

    def law(self, state: Quadcopter, params: Airframe) -> list[Scalar]:
        """Metres to strides."""
        return [-state.body.x / STRIDE, -state.body.y / STRIDE, -state.body.z / STRIDE]


class OnePilot(LevelPilot):
    """The reference player of ``"one"``: a critically damped law on height that knows vehicle and motors."""

    def law(self, state: Quadcopter, params: Airframe) -> list[Scalar]:
        """The rotor command for that thrust, ahead of the motors' lag."""
        body = state.body
        acceleration = GRAVITY - HEIGHT_GAIN * (HEIGHT_GAIN * body.z + 2 * body.vz)
        force = 0.25 * params.inertia.mass * acceleration
        return [ahead_of_motors(state, params, Rotors(force, force, force, force))[0]]


def home(body: RigidBody) -> Velocity:
    """The velocity to the origin."""
    return action_levels.towards_place(body, -body.x, -body.y, -body.z)
