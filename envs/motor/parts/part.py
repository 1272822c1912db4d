"""The base class of the parts of a drive, and the numbers by which a part is sized."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from rlbench_suite.core.component import Component

from ..machines.frames import Values
from ..plants.plant import Plant
from ..setpoints.goals import Goal

STEADY_TORQUE_SHARE = 0.4
"""Fraction of the torque that a changing speed may take with the largest inertia."""


class Part:
    """A part that is absent: it remembers nothing and shows nothing.

    The parts of a drive derive from it.
    """

    def observe(self, memory: Any) -> Values:
        """Return what the observation shows of the memory."""
        return ()

    def components(self) -> list[Component]:
        """Describe each entry of :meth:`observe`."""
        return []

    def words(self, memory: Any) -> str:
        """Describe the memory for a text player."""
        return ""


class Design(NamedTuple):
    """Numbers by which the parts of one drive are sized."""

    machine: str
    """Name of the machine in ``card.settings``"""
    plant: Plant
    goal: Goal
    torque: Goal
    """The torque task of the same machine"""
    period: float
    """s, of a step"""
    dtype: np.dtype[Any]
    uniform: Callable[[jax.Array, int], jax.Array]
    """Function that draws the requested number of uniform numbers in [0, 1) from a key"""

    @property
    def torques(self) -> tuple[float, float]:
        """N m: the middle of the torque's range, and half of its width."""
        low, high = self.torque.low[0], self.torque.high[0]
        return 0.5 * (high + low), 0.5 * (high - low)

    @property
    def steady_acceleration(self) -> float:
        """rad/s^2 that the fraction ``STEADY_TORQUE_SHARE`` of the torque sustains."""
        return STEADY_TORQUE_SHARE * self.torques[1] / (2 * self.plant.nominal.inertia)
