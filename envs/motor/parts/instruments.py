"""Instruments between the drive and its observers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.component import Component

from ..machines.frames import Scalar, Values
from . import components
from .part import Design
from .quantity import Quantity

COUNTS_PER_TURN = 20_000
"""Counts in a turn of the encoder: 5,000 lines, and four edges of the two tracks for each."""


class Instruments:
    """Instruments without errors, for torque too."""

    def __init__(self, design: Design) -> None:
        self.design, self.plant = design, design.plant

    def begin(self, speed: Scalar, key: jax.Array) -> Any:
        """Return the memory at the start."""
        return ()

    def next_memory(self, memory: Any, first_speed: Scalar, last_speed: Scalar) -> Any:
        """Return the memory one period later.

        The speed (rad/s) went from ``first_speed`` to ``last_speed`` in it.
        """
        return memory

    def read(
        self,
        measured: list[Scalar],
        values: Values,
        quantity: Quantity,
        memory: Any,
        key: jax.Array,
    ) -> tuple[list[Scalar], Values]:
        """Return the shown values of the measured and of the controlled quantities."""
        return measured, values

    def components(self, quantity: Quantity) -> list[Component]:
        """Describe each measured quantity."""
        return [
            *components.describe_measured(self.plant, self.design.machine),
            *quantity.components(),
        ]


class NoisyInstruments(Instruments):
    """Each instrument has one Gaussian error at each step.

    It enters measured and controlled quantities alike.

    Nobody measures the torque: the data sheet's machine makes it at the measured currents.
    """

    def __init__(self, design: Design, deviation: float) -> None:
        super().__init__(design)
        self.deviation = deviation
        self.note = f", with a Gaussian error of {deviation:g} of full scale"

    def read(
        self,
        measured: list[Scalar],
        values: Values,
        quantity: Quantity,
        memory: Any,
        key: jax.Array,
    ) -> tuple[list[Scalar], Values]:
        """Add the errors."""
        errors = self.deviation * jax.random.normal(key, (len(measured) + 1,), self.design.dtype)
        noisy = [value + errors[i] for i, value in enumerate(measured)]
        readings = quantity.estimate(self.with_speed(noisy, memory))
        return readings, quantity.read(readings, values, errors)

    def with_speed(self, measured: list[Scalar], memory: Any) -> list[Scalar]:
        """Return the measured quantities with the speed that is shown."""
        return measured

    def components(self, quantity: Quantity) -> list[Component]:
        """Describe each measured quantity with its error, and the estimated torque."""
        estimated = [
            replace(
                component, meaning=f"{component.meaning} of the data sheet at the measured currents"
            )
            for component in quantity.components()
        ]
        return [
            *components.describe_measured(self.plant, self.design.machine, self.note),
            *estimated,
        ]


class Counts(NamedTuple):
    """Memory of an encoder."""

    fraction: Scalar
    """0..1: turned since the last edge, in counts"""
    counted: Scalar
    """Number of edges in the last period, negative backwards"""


class EncoderAndNoise(NoisyInstruments):
    """Noisy currents, and an incremental encoder. The speed is the difference of two of its counts.

    One count in a period is :attr:`quantum` (rad/s), so that the shown speed jumps by it. The
    counts add up without error. The angle between the speeds of a period's ends is that of their
    mean.
    """

    def __init__(self, design: Design, deviation: float) -> None:
        super().__init__(design, deviation)
        self.quantum = 2 * math.pi / (COUNTS_PER_TURN * design.period)

    def begin(self, speed: Scalar, key: jax.Array) -> Counts:
        """Return any angle between two edges, and the edges of a period at this speed."""
        fraction = jax.random.uniform(key, (), self.design.dtype)
        return Counts(fraction, -jnp.floor(fraction - speed * (1 / self.quantum)))

    def next_memory(self, memory: Counts, first_speed: Scalar, last_speed: Scalar) -> Counts:
        """Count the edges of a period."""
        position = memory.fraction + (first_speed + last_speed) * (0.5 / self.quantum)
        counted = jnp.floor(position)
        return Counts(position - counted, counted)

    def with_speed(self, measured: list[Scalar], memory: Counts) -> list[Scalar]:
        """Show the speed of the counts instead."""
        at = len(self.plant.measured_names)
        return [
            *measured[:at],
            memory.counted * (self.quantum / self.plant.speed_limit),
            *measured[at + 1 :],
        ]

    def components(self, quantity: Quantity) -> list[Component]:
        """Describe the speed by its source."""
        measured, at = super().components(quantity), len(self.plant.measured_names)
        meaning = (
            "mechanical speed of the shaft, by an encoder's counts in a period of "
            f"{self.quantum:.4g} rad/s each"
        )
        return [*measured[:at], replace(measured[at], meaning=meaning), *measured[at + 1 :]]
