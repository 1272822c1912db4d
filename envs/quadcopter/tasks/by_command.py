"""Flights by other actions than four rotor commands: what their tasks and their reference players share.

A controller inside the vehicle (``control/flight_controller.py``) commands the rotors, and the action is its set point.
Everything else of a task stays as it is: observation, reward, ends, success, contexts. A reward that charges for rotor
commands charges for those that the controller gives, so returns compare across action levels. The question is that of
Kaufmann, Bauersfeld & Scaramuzza 2022, arXiv:2202.10796: with which actions does a policy learn best?

==============  ============================================================================================
action setting  action, each number in [-1, 1], 0 at a hover
==============  ============================================================================================
``"rates"``     ``(4,)``: collective thrust, from 0 to twice what hovers (-1 to 1); angular velocity about body x, y,
                z, +-10, +-10 and +-5 rad/s (CTBR)
``"velocity"``  ``(4,)``: velocity along each axis of the world, +-1 m/s in hover and +-3 m/s on courses; yaw rate,
                +-2 rad/s
``"waypoint"``  ``(3,)``: a place to fly to, from where the vehicle is now, +-0.5 m along each axis of the world; the
                nose turns to the world's x
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
from rlbench_suite.component import Component
from rlbench_suite.policy import View
from rlbench_suite.task import Params, State

from ..control import flight_controller
from ..control.flight_controller import BodyRates, Velocity
from ..control.geometric import GeometricControl, SetPoint
from ..physics import dynamics
from ..physics.dynamics import Airframe, Quadcopter
from ..physics.rigid_body import GRAVITY, RigidBody, Scalar
from .flight import FreeFlight

TILT_RATE = 10.0
"""rad/s: the highest that an action commands"""
TURN_RATE = 5.0
"""rad/s, about body z"""
YAW_RATE = 2.0
"""rad/s, with a velocity"""
STRIDE = 0.5
"""m along each axis"""


class Commanded(FreeFlight[Params, State]):
    """A flight with a controller between action and rotors; the task that is so flown comes after it in the bases."""

    pilot: ClassVar[Any] = GeometricControl
    """The player of the task by rotors, which knows where to be and how fast."""
    numbers: ClassVar[int]
    """Of an action."""
    words: ClassVar[str]
    """What they are, for a text player."""

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.action_space = self.box(-1, 1, (self.numbers,))

    @abc.abstractmethod
    def rotors(self, vehicle: Quadcopter, action: jax.Array, airframe: Airframe) -> jax.Array:
        """Rotor commands ``(4,)`` in [-1, 1]; ``airframe`` is what the controller takes the vehicle for."""

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """The task's under the controller's commands."""
        return super().transition(state, self.commands(state, action, params), key, params)  # type: ignore[safe-super]

    def reward(self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params) -> jax.Array:
        """The task's for the controller's commands."""
        commands = self.commands(state, action, params)
        return super().reward(state, commands, next_state, key, params)  # type: ignore[safe-super]

    def commands(self, state: State, action: jax.Array, params: Params) -> jax.Array:
        """Rotor commands by a controller that knows of the vehicle at which rotor speed it hovers."""
        taken = flight_controller.calibrated(dynamics.hover_speed(self.airframe(params)))
        return self.rotors(self.vehicle(state), action, taken)

    def noop_action(self) -> np.ndarray:
        """Zeros: set points of a hover."""
        return np.zeros(self.numbers, self.dtype)

    def how_to_act(self) -> str:
        """One line for a text player."""
        return f"Answer with numbers from -1 to 1: {self.words}."


class ByRates(Commanded[Params, State]):
    """Collective thrust and body rates."""

    numbers = 4
    words = (
        "thrust (-1 none, 0 what hovers, 1 twice that), angular velocity about forward and left (1 is "
        f"{TILT_RATE:.0f} rad/s) and up ({TURN_RATE:.0f} rad/s)"
    )

    def rotors(self, vehicle: Quadcopter, action: jax.Array, airframe: Airframe) -> jax.Array:
        """By the rate controller."""
        goal = BodyRates(GRAVITY * (1 + action[0]), TILT_RATE * action[1], TILT_RATE * action[2], TURN_RATE * action[3])
        return flight_controller.towards_body_rates(vehicle, goal, airframe)

    def action_components(self) -> tuple[Component, ...]:
        """A thrust and three rates."""
        return (
            Component("thrust", "collective thrust: -1 is none, 0 what hovers, 1 twice that"),
            Component("rate_x", "commanded angular velocity about x of the body (ahead)", f"{TILT_RATE:g} rad/s"),
            Component("rate_y", "commanded angular velocity about y of the body (left)", f"{TILT_RATE:g} rad/s"),
            Component("rate_z", "commanded angular velocity about z of the body (up)", f"{TURN_RATE:g} rad/s"),
        )


class ByVelocity(Commanded[Params, State]):
    """Velocity and yaw rate."""

    speed: ClassVar[float] = 3.0
    """m/s along each axis, the highest that an action commands"""
    numbers = 4

    @property
    def words(self) -> str:  # type: ignore[override]
        """What they are."""
        return f"velocity along x, y, z (1 is {self.speed:.0f} m/s) and yaw rate (1 is {YAW_RATE:.0f} rad/s)"

    def rotors(self, vehicle: Quadcopter, action: jax.Array, airframe: Airframe) -> jax.Array:
        """By the velocity controller."""
        speed = self.speed
        goal = Velocity(speed * action[0], speed * action[1], speed * action[2], YAW_RATE * action[3])
        return flight_controller.towards_body_rates(
            vehicle, flight_controller.towards_velocity(vehicle.body, goal), airframe
        )

    def action_components(self) -> tuple[Component, ...]:
        """A velocity and a yaw rate."""
        return (
            Component("velocity", "commanded velocity along x, y, z of the world", f"{self.speed:g} m/s", (3,)),
            Component("yaw_rate", "commanded yaw rate", f"{YAW_RATE:g} rad/s"),
        )


class ByWaypoint(Commanded[Params, State]):
    """A place, from where the vehicle is."""

    numbers = 3
    words = f"a place to fly to along x, y, z from where the vehicle is (1 is {STRIDE} m)"

    def rotors(self, vehicle: Quadcopter, action: jax.Array, airframe: Airframe) -> jax.Array:
        """By the controller of places."""
        place = (STRIDE * action[0], STRIDE * action[1], STRIDE * action[2])
        velocity = flight_controller.towards_place(vehicle.body, *place)
        goal = flight_controller.towards_velocity(vehicle.body, velocity)
        return flight_controller.towards_body_rates(vehicle, goal, airframe)

    def action_components(self) -> tuple[Component, ...]:
        """A place."""
        meaning = "place to fly to, from where the vehicle is, along x, y, z of the world"
        return (Component("place", meaning, f"{STRIDE:g} m", (3,)),)


class LevelPilot(eqx.Module):
    """What the reference players of the levels share: a law of the vehicle's motion and a set point, without memory.

    The set point is that of the task's player by rotors.
    """

    task: Commanded[Any, Any] = eqx.field(static=True)
    player: Any

    @classmethod
    def for_task(cls, task: Commanded[Any, Any]) -> LevelPilot:
        """The player."""
        return cls(task, task.pilot.for_task(task))

    def initial(self, params: Any) -> tuple[()]:
        """No memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Set points, in [-1, 1]."""
        vehicle, _, goal = self.player.aim(view.state, view.params)
        return jnp.clip(jnp.stack(self.law(vehicle.body, goal)), -1, 1), memory

    @abc.abstractmethod
    def law(self, body: RigidBody, goal: SetPoint) -> list[Scalar]:
        """The action, of any size."""


class RatesPilot(LevelPilot):
    """The reference player of ``"rates"``: a velocity, the tilt for it, the rates to that tilt."""

    def law(self, body: RigidBody, goal: SetPoint) -> list[Scalar]:
        """By the gains of the levels above."""
        rates = flight_controller.towards_velocity(body, wanted(body, goal))
        return [rates.thrust / GRAVITY - 1, rates.wx / TILT_RATE, rates.wy / TILT_RATE, rates.wz / TURN_RATE]


class VelocityPilot(LevelPilot):
    """The reference player of ``"velocity"``: the set point's, and proportional to the way there."""

    def law(self, body: RigidBody, goal: SetPoint) -> list[Scalar]:
        """By the gain of the level above."""
        speed: float = self.task.speed  # type: ignore[attr-defined]
        velocity = wanted(body, goal)
        return [velocity.vx / speed, velocity.vy / speed, velocity.vz / speed, velocity.yaw_rate / YAW_RATE]


class WaypointPilot(LevelPilot):
    """The reference player of ``"waypoint"``: the way to the set point."""

    def law(self, body: RigidBody, goal: SetPoint) -> list[Scalar]:
        """Metres to strides."""
        return [(goal.x - body.x) / STRIDE, (goal.y - body.y) / STRIDE, (goal.z - body.z) / STRIDE]


def wanted(body: RigidBody, goal: SetPoint) -> Velocity:
    """The velocity that leads to a set point, ahead of the velocity controller's lag where that accelerates."""
    velocity = flight_controller.towards_place(body, goal.x - body.x, goal.y - body.y, goal.z - body.z)
    lag = 1 / flight_controller.VELOCITY_GAIN
    return velocity._replace(
        vx=velocity.vx + (goal.vx + lag * goal.ax),
        vy=velocity.vy + (goal.vy + lag * goal.ay),
        vz=velocity.vz + (goal.vz + lag * goal.az),
    )
