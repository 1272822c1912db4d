"""Angles of the rotor or the shaft, as far as they matter."""

from __future__ import annotations

import math
from typing import Any

from rlbench_suite.core.component import Component

from ..machines.frames import Scalar, Values, wrap_angle
from ..plants.plant import Plant
from . import components


class Angle:
    """An angle without effect: it stays at its first value."""

    def __init__(self, plant: Plant, is_shown: bool) -> None:
        self.plant = plant
        self.is_shown = is_shown
        """True if the observation shows the directions that the effect of a switch state depends on
        """

    def begin(self, unit: Scalar, zero: Scalar) -> Scalar:
        """Return the angle at the start, rad; ``unit``: uniform in [0, 1)."""
        return zero

    def integrated_angle(self, angle: Scalar) -> Any:
        """Return the angle if a step integrates it."""
        return ()

    def rate(self, speed: Scalar) -> Any:
        """Return the rate of :meth:`integrated_angle`, rad/s."""
        return ()

    def advance(self, angle: Scalar, integrated: Any, speed: Scalar, duration: float) -> Scalar:
        """Return the angle ``duration`` s later, from the speed before (rad/s)."""
        return angle

    def electrical(self, angle: Scalar) -> Scalar:
        """Return the rotor's electrical angle, rad."""
        return angle

    def observe(self, electrical: Any, angle: Scalar) -> Values:
        """Return cosine and sine of each angle on which the effect of a switch state depends."""
        return self.plant.directions(electrical, self.electrical(angle)) if self.is_shown else ()

    def components(self) -> list[Component]:
        """Describe each entry of :meth:`observe`."""
        return components.turning(self.plant) if self.is_shown else []

    def words(self, angle: Scalar) -> str:
        """Tell the rotor's angle."""
        return f" Angle {float(self.electrical(angle)):+.3f} rad." if self.is_shown else ""


class RotorAngle(Angle):
    """The rotor's electrical angle within a turn."""

    def begin(self, unit: Scalar, zero: Scalar) -> Scalar:
        """Return any angle."""
        return 2 * math.pi * (unit - 0.5)

    def advance(self, angle: Scalar, integrated: Any, speed: Scalar, duration: float) -> Scalar:
        """Turn by the speed before."""
        return wrap_angle(angle + (self.plant.pole_pairs * duration) * speed)


class ShaftAngle(Angle):
    """The shaft's own angle, with full turns counted; a step integrates it."""

    def integrated_angle(self, angle: Scalar) -> Scalar:
        """Return the angle."""
        return angle

    def rate(self, speed: Scalar) -> Scalar:
        """Return the speed."""
        return speed

    def advance(self, angle: Scalar, integrated: Scalar, speed: Scalar, duration: float) -> Scalar:
        """Return the integrated angle."""
        return integrated

    def electrical(self, angle: Scalar) -> Scalar:
        """Return the angle times the pole pairs."""
        return self.plant.pole_pairs * angle
