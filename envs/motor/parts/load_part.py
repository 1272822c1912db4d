"""Test benches that set the speed of the shaft, and loads that the machine drives."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Int

from ...shared.alternating_bands import alternating_bands
from ...shared.own_constants import begin_in_record
from ..loads import ornstein_uhlenbeck
from ..loads.load import Constant, ConstantSpeed, Polynomial
from ..machines.frames import Scalar
from ..setpoints.wave import SHAPES, Wave, wave_through
from .part import Design, Part

BANDS = 40
"""Alternating bands of train and test."""
HOIST_SHARE = 0.3
"""Fraction of the torque's range, about its middle, that a constant load takes."""
DISTURBANCE_SIZE = 0.1
"""Deviation of an Ornstein-Uhlenbeck load, in parts of half the torque's range."""
DISTURBANCE_SECONDS = 0.02
"""Time constant of an Ornstein-Uhlenbeck load, s."""
MAX_JUMP_TORQUE = 0.2
"""Largest torque of a load that jumps, in parts of half the torque's range."""
MEAN_JUMP_SECONDS = 0.05
"""Mean time between its jumps, s."""
SINUS = SHAPES["sinus"]


def within_tolerance(nominal: float, tolerance: float, unit: Scalar) -> Scalar:
    """Return a number within a relative tolerance of a nominal one; ``unit``: uniform in [0, 1)."""
    return nominal * (1 - tolerance + 2 * tolerance * unit)


class Bench(Part):
    """A test bench that holds the speed."""

    def __init__(self, design: Design) -> None:
        self.design = design

    def sample(self, u: jax.Array, split: jax.Array) -> tuple[Any, Scalar]:
        """Return the load and the speed at the start, rad/s.

        ``u`` are uniform numbers, of which the last four belong to the load.
        """
        return ConstantSpeed(), alternating_bands(u[-1], split, *self.design.goal.speeds, BANDS)

    def begin(self, speed: Scalar, key: jax.Array) -> Any:
        """Return the memory at the start."""
        return ()

    def integrated_speed(self, speed: Scalar) -> Any:
        """Return the speed if a step integrates it."""
        return ()

    def speed(self, memory: Any, held_speed: Scalar, integrated: Any, turns: Scalar) -> Scalar:
        """Return the speed, rad/s, a fraction of a step after it was ``held_speed``."""
        return held_speed

    def acceleration(
        self, load: Any, memory: Any, speed: Scalar, torque: Scalar, inertia: Scalar
    ) -> Any:
        """Return the rate of the integrated speed, rad/s^2, under the machine's torque (N m)."""
        return ()

    def advance(self, memory: Any, turns: float) -> Any:
        """Return the memory a fraction of a step later."""
        return memory

    def next_memory(self, memory: Any, key: jax.Array) -> Any:
        """Return the memory in the next step."""
        return memory


class Profile(Bench):
    """A test bench that moves the speed along a sine; the memory is its :class:`Wave`."""

    def begin(self, speed: Scalar, key: jax.Array) -> Wave:
        """Draw a sine that begins at this speed."""
        u = self.design.uniform(key, 4)
        slope = self.design.period * self.design.steady_acceleration * jnp.exp(-math.log(10) * u[0])
        return wave_through(
            "sinus", speed, self.design.goal.speeds, slope, math.inf, u[1], u[2], u[3]
        )

    def speed(self, memory: Wave, held_speed: Scalar, integrated: Any, turns: Scalar) -> Scalar:
        """Return the sine's value."""
        return memory.shift(turns).at(SINUS)

    def advance(self, memory: Wave, turns: float) -> Wave:
        """Move along the sine."""
        return memory.shift(turns)


class Friction(Bench):
    """A load of inertia, Coulomb and viscous friction."""

    def sample(self, u: jax.Array, split: jax.Array) -> tuple[Any, Scalar]:
        """Return a load with an inertia in the bands of the split, and any speed."""
        design = self.design
        inertia = alternating_bands(u[-1], split, 0.0, design.plant.nominal.inertia, BANDS)
        low, high = design.goal.speeds
        return self.resistance(u[-3], inertia), low + (high - low) * u[-4]

    def resistance(self, unit: Scalar, inertia: Scalar) -> Any:
        """Return the load that resists the shaft; ``unit``: uniform in [0, 1)."""
        friction, zero = self.design.goal.friction, jnp.zeros((), self.design.dtype)
        return Polynomial(
            within_tolerance(friction.coulomb, 0.5, unit),
            within_tolerance(friction.viscous, 0.5, unit),
            zero,
            inertia,
        )

    def integrated_speed(self, speed: Scalar) -> Scalar:
        """Return the speed."""
        return speed

    def speed(self, memory: Any, held_speed: Scalar, integrated: Scalar, turns: Scalar) -> Scalar:
        """Return the integrated speed."""
        return integrated

    def acceleration(
        self, load: Any, memory: Any, speed: Scalar, torque: Scalar, inertia: Scalar
    ) -> Scalar:
        """Return the acceleration by the machine's torque minus the load's."""
        return load.acceleration(speed, torque, inertia)


class Hoist(Friction):
    """A load of constant torque."""

    def resistance(self, unit: Scalar, inertia: Scalar) -> Constant:
        """Draw the torque."""
        middle, half_range = self.design.torques
        return Constant(middle + HOIST_SHARE * half_range * (2 * unit - 1), inertia)


class Disturbed(Friction):
    """Friction and an Ornstein-Uhlenbeck torque; the memory is that torque, N m."""

    @property
    def deviation(self) -> float:
        """N m."""
        return DISTURBANCE_SIZE * self.design.torques[1]

    def begin(self, speed: Scalar, key: jax.Array) -> Scalar:
        """Draw a torque of the stationary process."""
        return self.deviation * jax.random.normal(key, (), self.design.dtype)

    def acceleration(
        self, load: Any, memory: Any, speed: Scalar, torque: Scalar, inertia: Scalar
    ) -> Scalar:
        """Return the acceleration by the machine's torque minus friction and random torque."""
        return super().acceleration(load, memory, speed, torque - memory, inertia)

    def next_memory(self, memory: Any, key: jax.Array) -> Scalar:
        """Draw the next torque."""
        normal = jax.random.normal(jax.random.fold_in(key, 1), (), self.design.dtype)
        return ornstein_uhlenbeck.next_value(
            memory, normal, self.deviation, DISTURBANCE_SECONDS, self.design.period
        )


class Stepped(Friction):
    """Friction and a torque that jumps at random times; the memory is that torque, N m."""

    def begin(self, speed: Scalar, key: jax.Array) -> Scalar:
        """Begin without it."""
        return jnp.zeros_like(speed)

    def acceleration(
        self, load: Any, memory: Any, speed: Scalar, torque: Scalar, inertia: Scalar
    ) -> Scalar:
        """Return the acceleration by the machine's torque minus friction and load."""
        return super().acceleration(load, memory, speed, torque - memory, inertia)

    def next_memory(self, memory: Any, key: jax.Array) -> Scalar:
        """Draw another torque now and then."""
        u = self.design.uniform(jax.random.fold_in(key, 1), 2)
        max_torque = MAX_JUMP_TORQUE * self.design.torques[1]
        return jnp.where(
            u[0] < self.design.period / MEAN_JUMP_SECONDS, max_torque * (2 * u[1] - 1), memory
        )


class RecordedFriction(NamedTuple):
    """Friction, and the row of a record at which the episode begins."""

    friction: Polynomial
    row: Int
    """int32"""

    @property
    def inertia(self) -> Scalar:
        """kg m^2, of the load alone."""
        return self.friction.inertia

    def acceleration(self, speed: Scalar, torque: Scalar, rotor_inertia: Scalar) -> Scalar:
        """Return dw/dt, rad/s^2, under an inner torque (N m) less that of the record."""
        return self.friction.acceleration(speed, torque, rotor_inertia)


class RecordedLoad(Friction):
    """Friction and the torque of a record; the memory is the step, int32."""

    def __init__(self, design: Design, table: np.ndarray, horizon: int) -> None:
        super().__init__(design)
        self.table, self.horizon = table, horizon

    def sample(self, u: jax.Array, split: jax.Array) -> tuple[Any, Scalar]:
        """Return friction, a row in the split's half of the record, and any speed.

        The row comes from the number that chooses the row of a recorded set point, so that records
        as long as each other run together.
        """
        friction, speed = super().sample(u, split)
        return RecordedFriction(
            friction, begin_in_record(u[-2], split, len(self.table), self.horizon + 1)
        ), speed

    def begin(self, speed: Scalar, key: jax.Array) -> Any:
        """Return step 0."""
        return jnp.int32(0)

    def acceleration(
        self, load: Any, memory: Any, speed: Scalar, torque: Scalar, inertia: Scalar
    ) -> Scalar:
        """Return the acceleration by the machine's torque minus friction and recorded torque."""
        against = jnp.asarray(self.table)[load.row + memory]
        return super().acceleration(load, memory, speed, torque - against, inertia)

    def next_memory(self, memory: Any, key: jax.Array) -> Any:
        """Return the next step."""
        return memory + 1


LOADS: dict[str, type[Bench]] = {
    "bench": Bench,
    "profile": Profile,
    "friction": Friction,
    "constant": Hoist,
    "ornstein-uhlenbeck": Disturbed,
    "steps": Stepped,
}
"""Loads by their names in ``card.settings``."""
