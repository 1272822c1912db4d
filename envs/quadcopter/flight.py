"""What all tasks of a single vehicle share: its commands, context, sensors, starts, words.

The vehicle, unless a task brings its own, is that of Eschmann, Albani & Loianno 2024 (Learning to Fly in Seconds,
arXiv:2311.13081), its constants those of ``dynamics.py``.
"""

from __future__ import annotations

import abc
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.card import TaskCard
from rlbench_suite.component import Component, singles
from rlbench_suite.task import Params, State, Task

from ..alternating_bands import alternating_bands
from . import dynamics, picture
from .dynamics import Airframe, Quadcopter, Rotors
from .picture import Pictured
from .rigid_body import Inertia, RigidBody, Scalar, rotation_matrix

STEP = 0.01
"""s"""
GYROSCOPE_RANGE = math.radians(2000)
"""rad/s about each axis"""
HOVER_ACTION = 0.334
"""The nominal vehicle's hover command, as the paper's cost has it."""
ANGULAR_VELOCITY_BOUND = 100.0
"""rad/s: one step beyond the gyroscope's range full rotors and gyroscopic torque add at most 60 rad/s."""
ROUNDING = 1e-5
"""By which entries of a rotation matrix and of normalised rotor speeds may pass one."""
SPINS = f"crash: it spins faster than {GYROSCOPE_RANGE:.1f} rad/s about an axis"


class Flight(Pictured, Task[Params, State]):
    """A task whose actions, ``(4,)`` in [-1, 1], command the rotors of one vehicle."""

    picture_shape: ClassVar[tuple[int, int, int]] = picture.SHAPE
    hover_action: ClassVar[float] = HOVER_ACTION

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.action_space = self.box([-1] * 4, [1] * 4)

    def noop_action(self) -> np.ndarray:
        """The nominal vehicle's hover command: rotors at standstill would be a fall."""
        return np.full(4, self.hover_action, self.dtype)

    def action_components(self) -> tuple[Component, ...]:
        """Rotor commands."""
        return COMMANDS

    def how_to_act(self) -> str:
        """One line for a text player."""
        return (
            "Answer with four numbers from -1 to 1, the commanded speeds of rotors 1 to 4 (front right, rear right, "
            f"rear left, front left): -1 is standstill, 1 full speed, about {self.hover_action} carries the weight."
        )


class FreeFlight(Flight[Params, State]):
    """A flight of which only the dynamics move the vehicle, so that other conditions can take their place."""

    def vehicle(self, state: Any) -> Quadcopter:
        """The vehicle in a state."""
        vehicle: Quadcopter = state.vehicle
        return vehicle

    def airframe(self, params: Any) -> Airframe:
        """The vehicle's constants in a context."""
        airframe: Airframe = params.airframe
        return airframe

    @abc.abstractmethod
    def moved(self, state: State, vehicle: Quadcopter, params: Params) -> State:
        """The next state, given the vehicle's."""


def rotor_speed(action: Scalar, limit: Scalar = dynamics.ROTOR_SPEED_LIMIT) -> Scalar:
    """The rotor speed (rad/s) that an action in [-1, 1] commands; ``limit`` (rad/s) is full speed."""
    return 0.5 * limit * (action + 1)


def rotor_action(speed: Scalar, limit: Scalar = dynamics.ROTOR_SPEED_LIMIT) -> Scalar:
    """The action that commands a rotor speed (rad/s); inverse of :func:`rotor_speed`."""
    return 2 / limit * speed - 1


def commanded(action: jax.Array, limit: Scalar = dynamics.ROTOR_SPEED_LIMIT) -> Rotors:
    """The rotor speeds (rad/s) that an action ``(4,)`` commands."""
    return Rotors(*(rotor_speed(action[rotor], limit) for rotor in range(4)))


NOMINAL = Airframe(
    Inertia(dynamics.MASS, *dynamics.INERTIA),
    dynamics.THRUST_COEFFICIENT,
    dynamics.TORQUE_COEFFICIENT,
    dynamics.MOTOR_TIME_CONSTANT,
)


def sample_airframe(units: jax.Array, split: jax.Array, nominal: Airframe = NOMINAL) -> Airframe:
    """A vehicle from five numbers in [0, 1): every constant uniform in its range, the mass in the split's bands.

    Mass +-20 %, inertia +-20 %, thrust coefficient +-10 %, torque coefficient +-20 %, motor time constant +-25 %. Train
    and test masses lie in alternating bands of 1 % of the nominal mass.
    """
    mass, inertia, thrust, torque, lag = units

    def near(nominal: float, spread: float, unit: Scalar) -> Scalar:
        return nominal * (1 - spread + 2 * spread * unit)

    scale = near(1.0, 0.2, inertia)
    nominal_mass, *moments = nominal.inertia
    return Airframe(
        inertia=Inertia(
            alternating_bands(mass, split, 0.8 * nominal_mass, 1.2 * nominal_mass, bands=40),
            *(moment * scale for moment in moments),
        ),
        thrust_coefficient=near(nominal.thrust_coefficient, 0.1, thrust),
        torque_coefficient=near(nominal.torque_coefficient, 0.2, torque),
        motor_time_constant=near(nominal.motor_time_constant, 0.25, lag),
    )


def turn(units: jax.Array, most: float) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """A unit quaternion from three numbers in [0, 1): any axis, an angle up to ``most`` (rad)."""
    # An axis uniform on the sphere (Archimedes: its height is uniform), and an angle.
    height, longitude, angle = 2 * units[0] - 1, 2 * math.pi * units[1], most * units[2]
    across, sine = jnp.sqrt(1 - height * height), jnp.sin(0.5 * angle)
    return (
        jnp.cos(0.5 * angle),
        sine * across * jnp.cos(longitude),
        sine * across * jnp.sin(longitude),
        sine * height,
    )


def hovering_rotors(airframe: Airframe) -> Rotors:
    """Rotors at the speed (rad/s) that carries the weight."""
    hover = dynamics.hover_speed(airframe)
    return Rotors(hover, hover, hover, hover)


def attitude_and_rates(state: Quadcopter, limit: float = dynamics.ROTOR_SPEED_LIMIT) -> tuple[Scalar, ...]:
    """Rotation matrix by rows (9), velocity (3, m/s), angular velocity (3, rad/s), rotors on the action's scale (4)."""
    body = state.body
    rotors = (rotor_action(speed, limit) for speed in state.rotors)
    return (*rotation_matrix(body), body.vx, body.vy, body.vz, body.wx, body.wy, body.wz, *rotors)


ROTORS = ("front right", "rear right", "rear left", "front left")
"""Rotors 1 to 4."""
ROTOR_SPEEDS = Component(
    "rotors", f"speed of each rotor ({', '.join(ROTORS)}): -1 is standstill, 1 full speed", "1", (4,)
)
MOTION = (
    Component("rotation", "rotation matrix from the body to the world, row by row", "1", (3, 3)),
    Component("velocity", "velocity along x, y, z of the world", "m/s", (3,)),
    Component("angular_velocity", "angular velocity about x (ahead), y (left), z (up) of the body", "rad/s", (3,)),
)
ATTITUDE_AND_RATES = (*MOTION, ROTOR_SPEEDS)
"""What :func:`attitude_and_rates` gives."""
COMMANDS = singles(
    {
        f"rotor_{i}": f"commanded speed of rotor {i} ({where}): -1 is standstill, 1 full speed"
        for i, where in enumerate(ROTORS, 1)
    }
)


def offset(name: str, meaning: str) -> Component:
    """A vector along the axes of the world, m."""
    return Component(name, f"{meaning}, along x, y, z of the world", "m", (3,))


def attitude_and_rates_bound(velocity: float) -> list[float]:
    """The largest size of each of :func:`attitude_and_rates`, given that of a velocity (m/s)."""
    return [1 + ROUNDING] * 9 + [velocity] * 3 + [ANGULAR_VELOCITY_BOUND] * 3 + [1 + ROUNDING] * 4


def spins(body: RigidBody) -> Scalar:
    """Whether it turns faster about an axis than a Crazyflie's gyroscope can measure (2,000 deg/s)."""
    return (abs(body.wx) > GYROSCOPE_RANGE) | (abs(body.wy) > GYROSCOPE_RANGE) | (abs(body.wz) > GYROSCOPE_RANGE)


def squared(x: Scalar, y: Scalar, z: Scalar) -> Scalar:
    """Squared length of a vector."""
    return x * x + y * y + z * z


def ahead(vehicle: Quadcopter, number: Any, course: Any) -> tuple[Scalar, Scalar, Scalar]:
    """From the vehicle to point ``number`` of a course that begins anew after its last (arrays ``x, y, z``, m)."""
    place, body = number % course.x.shape[0], vehicle.body
    return course.x[place] - body.x, course.y[place] - body.y, course.z[place] - body.z


def distance(vehicle: Quadcopter, number: Any, course: Any) -> Scalar:
    """From the vehicle to point ``number`` of its course (m)."""
    return jnp.sqrt(squared(*ahead(vehicle, number, course)))


def tour_info(state: Any, course: Any, count: int) -> dict[str, jax.Array]:
    """``success`` and measures of a tour of so many points, of which ``state.reached`` are reached."""
    body = state.vehicle.body
    return {
        "success": state.reached >= count,
        "reached": state.reached,
        "distance": distance(state.vehicle, state.reached, course),
        "speed": jnp.sqrt(squared(body.vx, body.vy, body.vz)),
    }


def words(state: Quadcopter, limit: float = dynamics.ROTOR_SPEED_LIMIT) -> str:
    """Velocity, attitude, angular velocity and rotor speeds, with units."""
    rotors = ", ".join(f"{float(rotor_action(speed, limit)):+.3f}" for speed in state.rotors)
    return f"{words_of_motion(state.body)} Rotor speeds on the action's scale {rotors}."


def words_of_motion(body: RigidBody) -> str:
    """Velocity, attitude and angular velocity, with units."""
    body = RigidBody(*(float(value) for value in body))
    tilt = math.degrees(math.acos(np.clip(rotation_matrix(body)[8], -1, 1)))
    rows = np.array(rotation_matrix(body)).reshape(3, 3)
    return (
        f"Velocity {body.vx:+.3f}, {body.vy:+.3f}, {body.vz:+.3f} m/s. "
        f"Tilt {tilt:.1f} degrees; forward points to {place(rows[:, 0])}, left to {place(rows[:, 1])}, "
        f"up to {place(rows[:, 2])}. "
        f"Angular velocity about forward, left, up {body.wx:+.3f}, {body.wy:+.3f}, {body.wz:+.3f} rad/s."
    )


def place(point: np.ndarray | tuple[Scalar, ...]) -> str:
    """Three numbers in brackets."""
    return "(" + ", ".join(f"{float(value):+.3f}" for value in point) + ")"
