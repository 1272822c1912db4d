"""A flight whose commands arrive late, around any flight by rotor commands.

A command is applied after ``latency`` ms, one step of the episode each 10 ms. At the start commands
that carry the weight are under way. Observations show the commands under way, and a reward that
charges for commands charges for those that arrive. So the vehicle flies as without latency under
the same commands, sent that much earlier.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.contexts.context import Constant
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ..control.predictor import Predictor
from ..physics import dynamics
from ..physics.dynamics import STEP, Quadcopter, Rotors
from ..physics.rigid_body import RigidBody, Scalar, normalise, quaternion_of
from ..rendering import picture
from ..rendering.picture import Pictured, Shot
from ..sensing import motion
from .flight import Flight

PLACE_NOISE = 0.001
"""Standard deviation of the noise of place (m) and attitude (rad), that of arXiv:2311.13081."""
MOTION_NOISE = 0.002
"""Standard deviation of the noise of velocity (m/s) and angular velocity (rad/s), from there too.
"""
ROTOR_NOISE = 0.001
"""Standard deviation of the noise of a rotor's speed, by its full speed."""


class Delayed(NamedTuple):
    """The state of a flight whose commands arrive late."""

    inner: Any
    """State of the flight without latency"""
    commands: tuple[tuple[Scalar, Scalar, Scalar, Scalar], ...]
    """Commands under way, the oldest first"""


class WithLatency(Pictured, Task[Any, Delayed]):
    """A flight whose commands arrive late; ``noisy``: whether its sensors have noise."""

    picture_shape: ClassVar[tuple[int, int, int]] = picture.SHAPE
    period = STEP

    def __init__(self, inner: Flight[Any, Any], *, noisy: bool = False) -> None:
        super().__init__(inner.card, difficulty=inner.difficulty, dtype=inner.dtype.name)
        self.inner = inner
        self.noisy = noisy
        self.sheet = inner.sheet
        self.measures = inner.measures  # type: ignore[misc]
        self.errors = inner.errors  # type: ignore[misc]
        self.ends_in_failure = inner.ends_in_failure  # type: ignore[misc]
        self.delay = round(0.001 * int(inner.card.settings["latency"]) / STEP)
        space: Any = inner.observation_space
        bound = np.concatenate([space.high, np.ones(4 * self.delay)])
        self.observation_space = self.box(-bound, bound)
        self.action_space = inner.action_space
        self.reward_space = inner.reward_space

    @property
    def success_meaning(self) -> str:
        """Return what ``success`` means in the flight without latency."""
        return self.inner.success_meaning

    def constants(self) -> tuple[Constant, ...]:
        """Return those of the flight without latency."""
        return self.inner.constants()

    def noop_action(self) -> np.ndarray:
        """Return the flight's hover command."""
        return self.inner.noop_action()

    def action_components(self) -> tuple[Component, ...]:
        """List the rotor commands."""
        return self.inner.action_components()

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return self.inner.how_to_act()

    def make_pilot(self, make: Callable[[Any], Any]) -> Any:
        """Return a predictor around the pilot of the flight without latency."""
        return Predictor(self, make(self.inner))

    def sample_params(self, key: jax.Array, split: jax.Array) -> Any:
        """Sample a context of the flight without latency."""
        return self.inner.sample_params(key, split)

    def initial(self, key: jax.Array, params: Any) -> Delayed:
        """Return the flight's start, with commands under way that carry the weight."""
        hold = dynamics.rotor_action(
            dynamics.hover_speed(self.inner.airframe(params)), self.sheet.speed_limit
        )
        return Delayed(self.inner.initial(key, params), ((hold,) * 4,) * self.delay)

    def transition(self, state: Delayed, action: jax.Array, key: jax.Array, params: Any) -> Delayed:
        """Apply the command that arrives; ``action`` joins the end of the queue."""
        queue = (*state.commands, tuple(action[rotor] for rotor in range(4)))
        inner = self.inner.transition(
            state.inner, self.arriving_command(state, action), key, params
        )
        return Delayed(inner, queue[1:])

    def arriving_command(self, state: Delayed, action: jax.Array) -> jax.Array:
        """Return the command that arrives in a step whose action is ``action``, shape ``(4,)``."""
        return jnp.stack(state.commands[0]) if self.delay else action

    def observation(self, state: Delayed, key: jax.Array, params: Any) -> jax.Array:
        """Return the flight's observation and the commands under way.

        It is noisy where sensors are.
        """
        inner = self.measure(state.inner, key) if self.noisy else state.inner
        observation = self.inner.observation(inner, key, params)
        if not self.delay:
            return observation
        return jnp.concatenate(
            [observation, self.stack(*(speed for command in state.commands for speed in command))]
        )

    def observation_components(self) -> Any:
        """List the entries of the flight's observation and the commands under way."""
        components = self.inner.observation_components()
        if not self.delay:
            return components
        meaning = "[step, rotor]: commands that have not arrived yet, the oldest first"
        return *components, Component("under_way", meaning, shape=(self.delay, 4))

    def measure(self, inner: Any, key: jax.Array) -> Any:
        """Return the flight's state with the vehicle as its sensors measure it."""
        noise = self.normal(key, 16)
        dx, dy, dz, roll, pitch, yaw = (PLACE_NOISE * number for number in noise[:6])
        dvx, dvy, dvz, dwx, dwy, dwz = (MOTION_NOISE * number for number in noise[6:12])
        body, rotors = self.inner.vehicle(inner)
        w, i, j, k = body.qw, body.qx, body.qy, body.qz
        roll, pitch, yaw = 0.5 * roll, 0.5 * pitch, 0.5 * yaw
        measured_body = normalise(
            RigidBody(
                body.x + dx,
                body.y + dy,
                body.z + dz,
                w - i * roll - j * pitch - k * yaw,
                i + w * roll + j * yaw - k * pitch,
                j + w * pitch + k * roll - i * yaw,
                k + w * yaw + i * pitch - j * roll,
                body.vx + dvx,
                body.vy + dvy,
                body.vz + dvz,
                body.wx + dwx,
                body.wy + dwy,
                body.wz + dwz,
            )
        )
        limit = self.sheet.speed_limit
        speeds = (
            jnp.clip(speed + ROTOR_NOISE * limit * noise[12 + rotor], 0, limit)
            for rotor, speed in enumerate(rotors)
        )
        return self.inner.with_vehicle(inner, Quadcopter(measured_body, Rotors(*speeds)))

    def observed_vehicle(self, observation: jax.Array, inner: Any, params: Any) -> Quadcopter:
        """Return the vehicle that an observation shows.

        ``inner`` is the flight's state, which has its goal or time.
        """
        end = observation.shape[0] - 4 * self.delay
        entries = [observation[end - motion.SIZE + number] for number in range(motion.SIZE)]
        rotors = (dynamics.rotor_speed(entry, self.sheet.speed_limit) for entry in entries[15:])
        x, y, z = self.inner.observed_position(observation, inner, params)
        return Quadcopter(
            RigidBody(x, y, z, *quaternion_of(entries[:9]), *entries[9:15]), Rotors(*rotors)
        )

    def reward(
        self, state: Delayed, action: jax.Array, next_state: Delayed, key: jax.Array, params: Any
    ) -> jax.Array:
        """Return the flight's reward for the command that arrives."""
        command = self.arriving_command(state, action)
        return self.inner.reward(state.inner, command, next_state.inner, key, params)

    def terminal(self, state: Delayed, key: jax.Array, params: Any) -> jax.Array:
        """Return that of the flight."""
        return self.inner.terminal(state.inner, key, params)

    def info(self, state: Delayed, params: Any) -> dict[str, jax.Array]:
        """Return that of the flight."""
        return self.inner.info(state.inner, params)

    def why_over(self, state: Delayed, params: Any, info: dict[str, Any]) -> str:
        """Return that of the flight."""
        return self.inner.why_over(state.inner, params, info)

    def describe(self, state: Delayed, params: Any) -> str:
        """Describe the flight without noise, and the commands under way."""
        text = self.inner.describe(state.inner, params)
        commands = "; ".join(
            " ".join(f"{float(speed):+.3f}" for speed in command) for command in state.commands
        )
        return f"{text} Commands under way, the oldest first: {commands}." if self.delay else text

    def shot(self, state: Delayed, params: Any) -> Shot:
        """Show the flight."""
        return self.inner.shot(state.inner, params)


class MakeFlight(Protocol):
    """A function that makes the task of a card, called as :meth:`TaskCard.build` calls it."""

    def __call__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> Task[Any, Any]:
        """Make the task."""


def with_latency(flight: type[Flight[Any, Any]]) -> MakeFlight:
    """Return the function that makes a flight behind the latency of the card's settings."""

    def make(card: TaskCard, *, difficulty: float | None, dtype: str) -> Task[Any, Any]:
        inner = flight(card, difficulty=difficulty, dtype=dtype)
        return inner if card.settings.get("latency", "0") == "0" else WithLatency(inner)

    return make
