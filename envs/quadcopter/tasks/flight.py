"""Base classes of the tasks of one vehicle: its rotor commands, and the dynamics that other conditions may replace.

Unless a task brings its own, the vehicle is that of Eschmann, Albani & Loianno 2024 (Learning to Fly in Seconds,
arXiv:2311.13081), with the constants of ``physics/dynamics.py``. A context (``physics/data_sheet.py``) may set others,
and other weights of the terms of a reward.
"""

from __future__ import annotations

import abc
from functools import cache
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.card import TaskCard
from rlbench_suite.component import Component, singles
from rlbench_suite.context import Constant
from rlbench_suite.task import Params, State, Task

from ...own_constants import OwnConstants
from ..control.predictor import Predictor
from ..physics import data_sheet, dynamics
from ..physics.data_sheet import SHIPPED, DataSheet
from ..physics.dynamics import ROTOR_NAMES, STEP, Airframe, Quadcopter, Rotors
from ..physics.rigid_body import RigidBody, Scalar, normalised
from ..rendering import picture
from ..rendering.picture import Pictured
from ..sensing import motion

FELT = 19
"""Entries at the end of an observation: attitude, velocities and rotor speeds."""
COMMANDS = singles(
    {
        f"rotor_{i}": f"commanded speed of rotor {i} ({where}): -1 is standstill, 1 full speed"
        for i, where in enumerate(ROTOR_NAMES, 1)
    }
)


class Flight(Pictured, Task[Params, State]):
    """A task whose actions, ``(4,)`` in [-1, 1], command the rotors of one vehicle."""

    picture_shape: ClassVar[tuple[int, int, int]] = picture.SHAPE
    period = STEP
    ends_in_failure = True
    shipped: ClassVar[DataSheet] = SHIPPED
    """The task's own vehicle"""
    takes_data_sheet: ClassVar[bool] = True
    """True if a context may set the vehicle's constants and the weights of the reward's terms"""
    terms: ClassVar[tuple[Constant, ...]] = ()
    """Weights of the terms of a reward that is a sum of several"""
    noisy: ClassVar[bool] = False
    """True if observations are noisy, so that a pilot has nothing else to go by"""

    def __new__(cls, card: TaskCard, **rest: Any) -> Any:
        """Make the flight, or the one with latency if the card asks for it."""
        late = card.settings.get("latency", "0") != "0" and not issubclass(cls, Late)
        return super().__new__(delayed(cls) if late else cls)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.sheet = data_sheet.own_sheet(card.context, self.shipped) if card.context else self.shipped
        self.own = OwnConstants(card, (*data_sheet.constants(self.shipped), *self.terms))
        self.action_space = self.box([-1] * 4, [1] * 4)
        self.quicker = (self.sheet.strongest / self.shipped.strongest) ** 0.5
        """Highest speed over a distance, by that of the shipped vehicle"""

    def constants(self) -> tuple[Constant, ...]:
        """Return the constants of the vehicle, and the weights of the reward's terms."""
        return (*data_sheet.constants(self.sheet), *self.own.present(self.terms)) if self.takes_data_sheet else ()

    def noop_action(self) -> np.ndarray:
        """Return the nominal vehicle's hover command: with rotors at standstill it would fall."""
        return np.full(4, self.sheet.hover_action, self.dtype)

    def action_components(self) -> tuple[Component, ...]:
        """List the rotor commands."""
        return COMMANDS

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            "Answer with four numbers from -1 to 1, the commanded speeds of rotors 1 to 4 (front right, rear right, "
            f"rear left, front left): -1 is standstill, 1 full speed, about {self.sheet.hover_action:.3g} carries the "
            "weight."
        )

    def equipped(self, pilot: Any) -> Any:
        """Return the pilot as it flies under the task's conditions."""
        return pilot

    def vehicle(self, state: Any) -> Quadcopter:
        """Return the vehicle in a state."""
        vehicle: Quadcopter = state.vehicle
        return vehicle

    def airframe(self, params: Any) -> Airframe:
        """Return the vehicle's constants in a context."""
        airframe: Airframe = params.airframe
        return airframe

    def with_vehicle(self, state: Any, vehicle: Quadcopter) -> Any:
        """Return the state with another vehicle."""
        return state._replace(vehicle=vehicle)

    def assumed(self, params: Any, airframe: Airframe) -> Any:
        """Return the context as a pilot assumes it who knows the course and takes this vehicle for its own."""
        return params._replace(airframe=airframe)

    def place(self, observation: jax.Array, state: Any, params: Any) -> tuple[Scalar, Scalar, Scalar]:
        """Return the vehicle's place (m) that an observation shows; ``state``: its goal's number or time."""
        return observation[0], observation[1], observation[2]

    def flown(self, vehicle: Quadcopter, action: jax.Array, airframe: Airframe, **conditions: Any) -> Quadcopter:
        """Return the vehicle one step later under constant commands; ``conditions``: those of ``dynamics.step``."""
        command = dynamics.commanded_speeds(action, self.sheet.speed_limit)
        return dynamics.step(vehicle, command, airframe, STEP, **conditions, arm=self.sheet.arm)

    def felt(self, vehicle: Quadcopter) -> tuple[Scalar, ...]:
        """Return attitude, velocities and rotor speeds, as observations show them."""
        return motion.attitude_and_rates(vehicle, self.sheet.speed_limit)

    def felt_bound(self, velocity: float) -> list[float]:
        """Return the largest absolute value of each of :meth:`felt`; ``velocity``: m/s, of the shipped vehicle."""
        turning = max(1.0, self.sheet.turning(1) / self.shipped.turning(1))
        return motion.attitude_and_rates_bound(self.quicker * velocity, turning)

    def felt_words(self, vehicle: Quadcopter) -> str:
        """Describe velocity, attitude, angular velocity and rotor speeds, with units."""
        return motion.describe_vehicle(vehicle, self.sheet.speed_limit)


class FreeFlight(Flight[Params, State]):
    """A flight whose vehicle moves by the dynamics alone, so that other conditions can replace them."""

    @abc.abstractmethod
    def moved(self, state: State, vehicle: Quadcopter, params: Params) -> State:
        """Return the next state, given the next vehicle."""


class Waiting(NamedTuple):
    """The state of a flight whose commands arrive late."""

    calm: Any
    """State of the flight without latency"""
    commands: tuple[tuple[Scalar, Scalar, Scalar, Scalar], ...]
    """Commands under way, the oldest first"""


PLACE_NOISE, MOTION_NOISE = 0.001, 0.002
"""Standard deviations of noise, those of arXiv:2311.13081: m and rad; m/s and rad/s."""
ROTOR_NOISE = 0.001
"""Standard deviation of the noise of a rotor's speed, by its full speed."""


class Late(Flight[Any, Any]):
    """A flight whose commands arrive late; the flight without latency follows it in a subclass's bases.

    A command is applied after ``latency`` ms, one step of the episode each 10 ms. At the start commands that carry the
    weight are under way. Observations show the commands under way, and a reward that charges for commands charges for
    those that arrive. So the vehicle flies as without latency under the same commands, given that much earlier.
    """

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.delay = round(0.001 * int(card.settings["latency"]) / STEP)
        space: Any = self.observation_space
        bound = np.concatenate([space.high, np.ones(4 * self.delay)])
        self.observation_space = self.box(-bound, bound)

    def equipped(self, pilot: Any) -> Any:
        """Return a predictor around the pilot."""
        return Predictor(self, pilot)

    def initial(self, key: jax.Array, params: Any) -> Any:
        """Return the flight's start, with commands under way that carry the weight."""
        hold = dynamics.rotor_action(dynamics.hover_speed(self.airframe(params)), self.sheet.speed_limit)
        return Waiting(super().initial(key, params), ((hold,) * 4,) * self.delay)  # type: ignore[safe-super]

    def transition(self, state: Any, action: jax.Array, key: jax.Array, params: Any) -> Any:
        """Apply the command that arrives; the command given now waits."""
        queue = (*state.commands, tuple(action[rotor] for rotor in range(4)))
        return Waiting(self.arrived(state.calm, self.arriving(state, action), key, params), queue[1:])

    def arriving(self, state: Any, action: jax.Array) -> jax.Array:
        """Return the command that arrives in a step in which ``action`` is given."""
        return jnp.stack(state.commands[0]) if self.delay else action

    def arrived(self, calm: Any, command: jax.Array, key: jax.Array, params: Any) -> Any:
        """Return the next state of the flight without latency."""
        return super().transition(calm, command, key, params)  # type: ignore[safe-super]

    def observation(self, state: Any, key: jax.Array, params: Any) -> jax.Array:
        """Return the flight's observation, with noise where sensors have it, and the commands under way."""
        calm = self.measured(state.calm, key) if self.noisy else state.calm
        shown = super().observation(calm, key, params)  # type: ignore[safe-super]
        if not self.delay:
            return shown
        return jnp.concatenate([shown, self.stack(*(part for command in state.commands for part in command))])

    def measured(self, calm: Any, key: jax.Array) -> Any:
        """Return the state with the vehicle as its sensors measure it."""
        noise = self.normal(key, 16)
        x, y, z, roll, pitch, yaw = (PLACE_NOISE * part for part in noise[:6])
        vx, vy, vz, wx, wy, wz = (MOTION_NOISE * part for part in noise[6:12])
        body, rotors = self.vehicle(calm)
        w, i, j, k = body.qw, body.qx, body.qy, body.qz
        roll, pitch, yaw = 0.5 * roll, 0.5 * pitch, 0.5 * yaw
        turned = normalised(
            RigidBody(
                body.x + x,
                body.y + y,
                body.z + z,
                w - i * roll - j * pitch - k * yaw,
                i + w * roll + j * yaw - k * pitch,
                j + w * pitch + k * roll - i * yaw,
                k + w * yaw + i * pitch - j * roll,
                body.vx + vx,
                body.vy + vy,
                body.vz + vz,
                body.wx + wx,
                body.wy + wy,
                body.wz + wz,
            )
        )
        limit = self.sheet.speed_limit
        speeds = (
            jnp.clip(speed + ROTOR_NOISE * limit * noise[12 + rotor], 0, limit) for rotor, speed in enumerate(rotors)
        )
        return self.with_vehicle(calm, Quadcopter(turned, Rotors(*speeds)))

    def seen(self, observation: jax.Array, calm: Any, params: Any) -> Quadcopter:
        """Return the vehicle that an observation shows."""
        end = observation.shape[0] - 4 * self.delay
        felt = [observation[end - FELT + entry] for entry in range(FELT)]
        rotors = (dynamics.rotor_speed(entry, self.sheet.speed_limit) for entry in felt[15:])
        x, y, z = self.place(observation, calm, params)
        return Quadcopter(RigidBody(x, y, z, *attitude(felt[:9]), *felt[9:15]), Rotors(*rotors))

    def observation_components(self) -> Any:
        """List the entries of the flight's observation and the commands under way."""
        shown = super().observation_components()
        if not self.delay:
            return shown
        words = "[step, rotor]: commands that have not arrived yet, the oldest first"
        return *shown, Component("under_way", words, shape=(self.delay, 4))

    def reward(self, state: Any, action: jax.Array, next_state: Any, key: jax.Array, params: Any) -> jax.Array:
        """Return the flight's reward for the command that arrives."""
        command = self.arriving(state, action)
        return super().reward(state.calm, command, next_state.calm, key, params)  # type: ignore[safe-super]

    def terminal(self, state: Any, key: jax.Array, params: Any) -> jax.Array:
        """Return that of the flight."""
        return super().terminal(_calm(state), key, params)  # type: ignore[safe-super]

    def info(self, state: Any, params: Any) -> dict[str, jax.Array]:
        """Return that of the flight."""
        return super().info(state.calm, params)  # type: ignore[safe-super]

    def why_over(self, state: Any, params: Any, info: dict[str, Any]) -> str:
        """Return that of the flight."""
        return super().why_over(state.calm, params, info)

    def describe(self, state: Any, params: Any) -> str:
        """Describe the flight without noise, and the commands under way."""
        waiting = "; ".join(" ".join(f"{float(part):+.3f}" for part in command) for command in state.commands)
        said = super().describe(state.calm, params)  # type: ignore[safe-super]
        return f"{said} Commands under way, the oldest first: {waiting}." if self.delay else said

    def shot(self, state: Any, params: Any) -> Any:
        """Show the flight."""
        return super().shot(state.calm, params)  # type: ignore[safe-super]


def _calm(state: Any) -> Any:
    """Return the state of the flight without latency; a flight's own functions call each other with it."""
    return state.calm if isinstance(state, Waiting) else state


def attitude(matrix: list[Scalar]) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Return the unit quaternion of a rotation matrix, given row by row.

    Of the four formulas the one with the largest divisor is used (Diebel 2006, Representing Attitude, eq. 145).
    """
    r11, r12, r13, r21, r22, r23, r31, r32, r33 = matrix
    rows = (
        (1 + r11 + r22 + r33, r32 - r23, r13 - r31, r21 - r12),
        (r32 - r23, 1 + r11 - r22 - r33, r12 + r21, r13 + r31),
        (r13 - r31, r12 + r21, 1 - r11 + r22 - r33, r23 + r32),
        (r21 - r12, r13 + r31, r23 + r32, 1 - r11 - r22 + r33),
    )
    best: tuple[Scalar, ...] = rows[0]
    size = best[0]
    for number, row in enumerate(rows[1:], 1):
        better = row[number] > size
        best = tuple(jnp.where(better, new, old) for new, old in zip(row, best, strict=True))
        size = jnp.where(better, row[number], size)
    length = jnp.sqrt(best[0] * best[0] + best[1] * best[1] + best[2] * best[2] + best[3] * best[3])
    qw, qx, qy, qz = (part / length for part in best)
    return qw, qx, qy, qz


@cache
def delayed(flight: type[Flight[Any, Any]]) -> type[Late]:
    """Return the class of a flight with latency."""
    return type(f"{flight.__name__}Late", (Late, flight), {"__doc__": f"{flight.__name__} with latency."})
