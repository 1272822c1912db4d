"""Limits of a drive.

Each tells when it is exceeded, which ends the episode, and the cost of coming near it.
"""

from __future__ import annotations

import abc
from typing import Any

import jax
import jax.numpy as jnp

from ..machines.frames import Values
from ..plants.plant import Plant


class Limit(abc.ABC):
    """One limit."""

    @abc.abstractmethod
    def is_exceeded(self, state: Any) -> jax.Array:
        """Tell whether the drive trips."""

    @abc.abstractmethod
    def words(self, state: Any, info: dict[str, Any]) -> str:
        """Say by how much the limit is exceeded; empty if it is not."""

    def cost(self, state: Any) -> Values:
        """Return the constraint cost of a step that ends in a state, or nothing."""
        return ()


class OverCurrent(Limit):
    """The largest current; beyond the nominal one it costs."""

    def __init__(self, plant: Plant) -> None:
        self.plant = plant

    def is_exceeded(self, state: Any) -> jax.Array:
        """Compare with the limit."""
        return self.plant.length(state.electrical) > 1

    def cost(self, state: Any) -> Values:
        """Return the excess over the nominal current, in parts of it."""
        ratio = self.plant.current_limit / self.plant.nominal_current
        return (jnp.maximum(self.plant.length(state.electrical) * ratio - 1, 0),)

    def words(self, state: Any, info: dict[str, Any]) -> str:
        """Name both in A."""
        limit = self.plant.current_limit
        current = float(info["current"]) * limit
        return (
            f"over-current: {current:.4g} A, the limit is {limit:.4g} A" if current > limit else ""
        )


class OverSpeed(Limit):
    """The speed, either way."""

    def __init__(self, plant: Plant) -> None:
        self.plant = plant

    def is_exceeded(self, state: Any) -> jax.Array:
        """Compare with the limit."""
        return jnp.abs(state.speed) > self.plant.speed_limit

    def words(self, state: Any, info: dict[str, Any]) -> str:
        """Name both in rad/s."""
        speed, limit = float(state.speed), self.plant.speed_limit
        return (
            f"over-speed: {speed:.0f} rad/s, the limit is {limit:.0f} rad/s"
            if abs(speed) > limit
            else ""
        )
