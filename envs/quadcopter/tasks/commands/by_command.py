"""Base classes of tasks and reference players whose actions are set points of a flight controller.

A controller inside the vehicle (``control/flight_controller.py``) commands the rotors, and the
action is its set point. Everything else of a task stays as it is: observation, reward, ends,
success, contexts. A reward that charges for rotor commands charges for those that the controller
gives, so returns compare across action levels. The question is that of Kaufmann, Bauersfeld &
Scaramuzza 2022, arXiv:2202.10796: with which actions does a policy learn best?

==============  ====================================================================================
action setting  action, each number in [-1, 1], 0 at a hover
==============  ====================================================================================
``"rates"``     ``(4,)``: collective thrust, from 0 to twice the hover's (-1 to 1); angular velocity
                about body x, y, z, +-10, +-10 and +-5 rad/s (CTBR)
``"velocity"``  ``(4,)``: velocity along each axis of the world, +-1 m/s in hover and +-3 m/s on
                courses; yaw rate, +-2 rad/s
``"waypoint"``  ``(3,)``: a place to fly to, from where the vehicle is now, +-0.5 m along each axis
                of the world; the nose turns to the world's x
==============  ====================================================================================
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.core.policy import View, no_memory, privileged_player
from rlbench_suite.core.task import Params, State
from rlbench_suite.core.task_card import TaskCard

from ...control import flight_controller
from ...control.flight_controller import BodyRates, Velocity
from ...control.geometric import GeometricControl, SetPoint
from ...physics import dynamics
from ...physics.dynamics import Airframe, Quadcopter
from ...physics.rigid_body import GRAVITY, RigidBody, Scalar
from ..flight import FreeFlight

TILT_RATE = 10.0
"""rad/s: highest body rate about x and y that an action commands"""
TURN_RATE = 5.0
"""rad/s: highest body rate about z"""
YAW_RATE = 2.0
"""rad/s: highest yaw rate that accompanies a velocity"""
STRIDE = 0.5
"""m along each axis: farthest place that an action commands"""


class Commanded(FreeFlight[Params, State]):
    """A flight with a flight controller between action and rotors.

    A subclass names the task by rotors as its next base.
    """

    takes_data_sheet = False
    pilot: ClassVar[Any] = GeometricControl
    """Reference player of the task by rotors; it knows the set point."""
    action_size: ClassVar[int]
    """Numbers in an action."""
    meaning: ClassVar[str]
    """Meaning of these numbers, for a text player."""

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.action_space = self.box(-1, 1, (self.action_size,))

    @abc.abstractmethod
    def rotors(self, vehicle: Quadcopter, action: jax.Array, airframe: Airframe) -> jax.Array:
        """Return rotor commands ``(4,)`` in [-1, 1].

        ``airframe`` is the vehicle that the controller assumes.
        """

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Make the task's transition under the controller's commands."""
        return super().transition(state, self.commands(state, action, params), key, params)  # type: ignore[safe-super]

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the task's reward for the controller's commands."""
        commands = self.commands(state, action, params)
        return super().reward(state, commands, next_state, key, params)  # type: ignore[safe-super]

    def commands(self, state: State, action: jax.Array, params: Params) -> jax.Array:
        """Return the rotor commands of the flight controller.

        It knows the rotor speed at which its vehicle hovers.
        """
        nominal_airframe = flight_controller.assumed_airframe(
            dynamics.hover_speed(self.airframe(params))
        )
        return self.rotors(self.vehicle(state), action, nominal_airframe)

    def noop_action(self) -> np.ndarray:
        """Return zeros: set points of a hover."""
        return np.zeros(self.action_size, self.dtype)

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return f"Answer with numbers from -1 to 1: {self.meaning}."


class ByRates(Commanded[Params, State]):
    """Actions are collective thrust and body rates."""

    action_size = 4
    meaning = (
        "thrust (-1 none, 0 what hovers, 1 twice that), angular velocity about forward and left (1 "
        "is "
        f"{TILT_RATE:.0f} rad/s) and up ({TURN_RATE:.0f} rad/s)"
    )

    def rotors(self, vehicle: Quadcopter, action: jax.Array, airframe: Airframe) -> jax.Array:
        """Return rotor commands of the rate controller."""
        goal = BodyRates(
            GRAVITY * (1 + action[0]),
            TILT_RATE * action[1],
            TILT_RATE * action[2],
            TURN_RATE * action[3],
        )
        return flight_controller.towards_body_rates(vehicle, goal, airframe)

    def action_components(self) -> tuple[Component, ...]:
        """List a thrust and three rates."""
        return (
            Component("thrust", "collective thrust: -1 is none, 0 what hovers, 1 twice that"),
            Component(
                "rate_x",
                "commanded angular velocity about x of the body (ahead)",
                f"{TILT_RATE:g} rad/s",
            ),
            Component(
                "rate_y",
                "commanded angular velocity about y of the body (left)",
                f"{TILT_RATE:g} rad/s",
            ),
            Component(
                "rate_z",
                "commanded angular velocity about z of the body (up)",
                f"{TURN_RATE:g} rad/s",
            ),
        )


class ByVelocity(Commanded[Params, State]):
    """Actions are velocity and yaw rate."""

    speed: ClassVar[float] = 3.0
    """m/s along each axis: highest velocity that an action commands"""
    action_size = 4

    @property
    def meaning(self) -> str:  # type: ignore[override]
        """Say what the numbers mean."""
        return (
            f"velocity along x, y, z (1 is {self.speed:.0f} m/s) and yaw rate (1 is {YAW_RATE:.0f} "
            "rad/s)"
        )

    def rotors(self, vehicle: Quadcopter, action: jax.Array, airframe: Airframe) -> jax.Array:
        """Return rotor commands of the velocity controller."""
        speed = self.speed
        goal = Velocity(
            speed * action[0], speed * action[1], speed * action[2], YAW_RATE * action[3]
        )
        return flight_controller.towards_body_rates(
            vehicle, flight_controller.towards_velocity(vehicle.body, goal), airframe
        )

    def action_components(self) -> tuple[Component, ...]:
        """List a velocity and a yaw rate."""
        return (
            Component(
                "velocity",
                "commanded velocity along x, y, z of the world",
                f"{self.speed:g} m/s",
                (3,),
            ),
            Component("yaw_rate", "commanded yaw rate", f"{YAW_RATE:g} rad/s"),
        )


class ByWaypoint(Commanded[Params, State]):
    """Actions are places, relative to the vehicle."""

    action_size = 3
    meaning = f"a place to fly to along x, y, z from where the vehicle is (1 is {STRIDE} m)"

    def rotors(self, vehicle: Quadcopter, action: jax.Array, airframe: Airframe) -> jax.Array:
        """Return rotor commands of the position controller."""
        waypoint = (STRIDE * action[0], STRIDE * action[1], STRIDE * action[2])
        velocity = flight_controller.towards_place(vehicle.body, *waypoint)
        goal = flight_controller.towards_velocity(vehicle.body, velocity)
        return flight_controller.towards_body_rates(vehicle, goal, airframe)

    def action_components(self) -> tuple[Component, ...]:
        """List a place."""
        meaning = "place to fly to, from where the vehicle is, along x, y, z of the world"
        return (Component("place", meaning, f"{STRIDE:g} m", (3,)),)


@privileged_player
class CommandPilot(eqx.Module):
    """Base class of the reference players, which have no memory.

    Each is a law of the vehicle's motion and a set point.

    The set point is that of the task's player by rotors.
    """

    task: Commanded[Any, Any] = eqx.field(static=True)
    player: Any

    @classmethod
    def for_task(cls, task: Commanded[Any, Any]) -> CommandPilot:
        """Make the player."""
        return cls(task, task.pilot.for_task(task))

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return set points, in [-1, 1]."""
        vehicle, _, goal = self.player.aim(view.state, view.params)
        return jnp.clip(jnp.stack(self.law(vehicle.body, goal)), -1, 1), memory

    @abc.abstractmethod
    def law(self, body: RigidBody, goal: SetPoint) -> list[Scalar]:
        """Return the action before it is clipped."""


class RatesPilot(CommandPilot):
    """The reference player of ``"rates"``.

    A desired velocity asks for a tilt, and the tilt for rates.
    """

    def law(self, body: RigidBody, goal: SetPoint) -> list[Scalar]:
        """Return thrust and rates, by the gains of the flight controller's outer loops."""
        rates = flight_controller.towards_velocity(body, desired_velocity(body, goal))
        return [
            rates.thrust / GRAVITY - 1,
            rates.wx / TILT_RATE,
            rates.wy / TILT_RATE,
            rates.wz / TURN_RATE,
        ]


class VelocityPilot(CommandPilot):
    """The reference player of ``"velocity"``.

    It flies the set point's velocity, plus one proportional to the way there.
    """

    def law(self, body: RigidBody, goal: SetPoint) -> list[Scalar]:
        """Return velocity and yaw rate, by the gain of the flight controller's position loop."""
        speed: float = self.task.speed  # type: ignore[attr-defined]
        velocity = desired_velocity(body, goal)
        return [
            velocity.vx / speed,
            velocity.vy / speed,
            velocity.vz / speed,
            velocity.yaw_rate / YAW_RATE,
        ]


class WaypointPilot(CommandPilot):
    """The reference player of ``"waypoint"``: the way to the set point."""

    def law(self, body: RigidBody, goal: SetPoint) -> list[Scalar]:
        """Return the way to the set point in strides."""
        return [(goal.x - body.x) / STRIDE, (goal.y - body.y) / STRIDE, (goal.z - body.z) / STRIDE]


def desired_velocity(body: RigidBody, goal: SetPoint) -> Velocity:
    """Return the velocity that leads to a set point.

    The set point's acceleration compensates the velocity controller's lag.
    """
    velocity = flight_controller.towards_place(
        body, goal.x - body.x, goal.y - body.y, goal.z - body.z
    )
    lag = 1 / flight_controller.VELOCITY_GAIN
    return velocity._replace(
        vx=velocity.vx + (goal.vx + lag * goal.ax),
        vy=velocity.vy + (goal.vy + lag * goal.ay),
        vz=velocity.vz + (goal.vz + lag * goal.az),
    )
