"""Instruments between the drive and its observers."""

from __future__ import annotations

import jax

from ..machines.frames import Scalar, Values
from .part import Design
from .quantity import Quantity


class Instruments:
    """Instruments without errors."""

    note = ""
    """Note added to the description of the measured quantities"""

    def read(
        self, measured: list[Scalar], values: Values, quantity: Quantity, key: jax.Array
    ) -> tuple[list[Scalar], Values]:
        """Return the shown values of the measured and of the controlled quantities."""
        return measured, values


class NoisyInstruments(Instruments):
    """Each instrument has one Gaussian error at each step. It enters measured and controlled quantities alike."""

    def __init__(self, deviation: float, design: Design) -> None:
        self.deviation, self.dtype = deviation, design.dtype
        self.note = f", with a Gaussian error of {deviation:g} of full scale"

    def read(
        self, measured: list[Scalar], values: Values, quantity: Quantity, key: jax.Array
    ) -> tuple[list[Scalar], Values]:
        """Add the errors."""
        errors = self.deviation * jax.random.normal(key, (len(measured) + 1,), self.dtype)
        measured = [value + errors[i] for i, value in enumerate(measured)]
        return measured, quantity.read(measured, values, errors)
