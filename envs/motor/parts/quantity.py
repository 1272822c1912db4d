"""Controlled quantities: currents, a torque, a speed or a position."""

from __future__ import annotations

import abc
from typing import Any

import jax
import jax.numpy as jnp

from rlbench_suite.core.component import Component, KeyFigure, scaled_component

from ..machines.frames import Scalar, Values
from ..plants.three_phase import ThreePhase
from .part import Design


class Quantity(abc.ABC):
    """One controlled quantity, or several of one kind."""

    unit: str
    loaded = False
    """True if the shaft turns a load; a test bench sets its speed otherwise"""

    def __init__(self, design: Design) -> None:
        self.plant, self.goal, self.design = design.plant, design.goal, design
        self.names: tuple[str, ...] = (type(self).__name__.lower(),)

    @abc.abstractmethod
    def value(self, machine: Any, electrical: Any, speed: Scalar, angle: Scalar) -> Values:
        """Return the values, in :attr:`unit`."""

    def estimate(self, measured: list[Scalar]) -> list[Scalar]:
        """Return what instruments show.

        The data sheet's machine computes what nobody measures.
        """
        return measured

    def read(self, measured: list[Scalar], values: Values, errors: jax.Array) -> Values:
        """Return the values that instruments show.

        ``errors`` holds an error of each value in ``measured``, and one more.
        """
        return (values[0] + errors[-1] * self.goal.scale,)

    def max_change(self, fastest: float) -> float:
        """Return the change in each continuous step that a drive keeps up.

        ``fastest`` is the change of a set point's moves.
        """
        return fastest

    def first_setpoint(self, anywhere: Values, speed: Scalar, offset: Scalar) -> Values:
        """Return the first set points.

        ``offset`` is how far those of a loaded shaft are from where it is.
        """
        return anywhere

    def limit_jointly(self, setpoint: Values) -> Values:
        """Return the set points that can be reached together."""
        return setpoint

    def joint_range(self) -> tuple[KeyFigure, ...]:
        """Return the joint ranges that :meth:`limit_jointly` keeps.

        They hold beside the range of each set point.
        """
        return ()

    def instruments(self, values: Values) -> list[Scalar]:
        """Return what is measured only where it is controlled, in parts of full scale."""
        return []

    def components(self) -> list[Component]:
        """Describe each entry of :meth:`instruments`."""
        return []


class Current(Quantity):
    """The currents that the plant names."""

    unit = "A"

    def __init__(self, design: Design) -> None:
        super().__init__(design)
        self.names = self.plant.currents

    def value(self, machine: Any, electrical: Any, speed: Scalar, angle: Scalar) -> Values:
        """Return the currents."""
        return self._in_amperes(self.plant.measure(electrical))

    def read(self, measured: list[Scalar], values: Values, errors: jax.Array) -> Values:
        """Return the measured currents."""
        return self._in_amperes(tuple(measured))

    def _in_amperes(self, measured: Values) -> Values:
        return tuple(value * self.plant.current_limit for value in measured[: len(self.names)])

    def limit_jointly(self, setpoint: Values) -> Values:
        """Keep the stator's d and q current within the nominal circle."""
        if not isinstance(self.plant, ThreePhase):
            return setpoint
        d, q, *more = setpoint
        max_q = jnp.sqrt(self.plant.nominal_current**2 - d * d)
        return d, jnp.clip(q, -max_q, max_q), *more

    def joint_range(self) -> tuple[KeyFigure, ...]:
        """Return the length of the vector of d and q current."""
        if not isinstance(self.plant, ThreePhase):
            return ()
        d, q, *_ = self.names
        return (joint_length(d, q, self.plant.nominal_current),)


def joint_length(d: str, q: str, nominal: float) -> KeyFigure:
    """Return the range of the length of the vector of two set points; ``nominal``: current, A."""
    meaning = f"length of the vector of the set points of {d} and {q}: at most the nominal current"
    return KeyFigure("setpoint_length", "A", 0.0, nominal, meaning)


def range_and_accuracy(
    name: str, unit: str, low: float, high: float, halving: float
) -> tuple[KeyFigure, ...]:
    """Return the range of a quantity's set point, and the error that halves the reward for it."""
    return (
        KeyFigure(f"setpoint_{name}", unit, low, high, f"range of the set point of {name}"),
        KeyFigure(
            f"halving_error_{name}",
            unit,
            halving,
            halving,
            f"error at which the reward for {name} is one half",
        ),
    )


class Torque(Quantity):
    """The machine's torque."""

    unit = "N m"

    def value(self, machine: Any, electrical: Any, speed: Scalar, angle: Scalar) -> Values:
        """Return the torque."""
        return (machine.torque(electrical),)

    def estimate(self, measured: list[Scalar]) -> list[Scalar]:
        """Replace the torque by that of the data sheet's machine.

        It follows from the measured currents and flux.
        """
        electrical = self.plant.electrical_of(tuple(measured[: len(self.plant.measured_names)]))
        return [*measured[:-1], self.plant.nominal.torque(electrical) * (1 / self.goal.scale)]

    def read(self, measured: list[Scalar], values: Values, errors: jax.Array) -> Values:
        """Return the shown torque."""
        return (measured[-1] * self.goal.scale,)

    def instruments(self, values: Values) -> list[Scalar]:
        """Return the torque."""
        return [values[0] * (1 / self.goal.scale)]

    def components(self) -> list[Component]:
        """Describe the torque."""
        return [scaled_component("torque", "torque of the machine", self.goal.scale, "N m")]


class Speed(Quantity):
    """The shaft's speed."""

    unit = "rad/s"
    loaded = True

    def value(self, machine: Any, electrical: Any, speed: Scalar, angle: Scalar) -> Values:
        """Return the speed."""
        return (speed,)

    def read(self, measured: list[Scalar], values: Values, errors: jax.Array) -> Values:
        """Return the measured speed."""
        return (measured[len(self.plant.measured_names)] * self.plant.speed_limit,)

    def max_change(self, fastest: float) -> float:
        """Return no more than part of the torque accelerates."""
        return min(fastest, self.goal.period * self.design.steady_acceleration)

    def first_setpoint(self, anywhere: Values, speed: Scalar, offset: Scalar) -> Values:
        """Begin near the speed at the start."""
        return (jnp.clip(speed + offset, self.goal.low[0], self.goal.high[0]),)


class Position(Quantity):
    """The shaft's angle."""

    unit = "rad"
    loaded = True

    def value(self, machine: Any, electrical: Any, speed: Scalar, angle: Scalar) -> Values:
        """Return the angle."""
        return (angle,)

    def max_change(self, fastest: float) -> float:
        """Return a pace at which a cascade without feed-forward lags by half a halving error."""
        return self.goal.halving[0] / 100

    def first_setpoint(self, anywhere: Values, speed: Scalar, offset: Scalar) -> Values:
        """Begin near zero."""
        return (jnp.clip(jnp.zeros_like(speed) + offset, self.goal.low[0], self.goal.high[0]),)


QUANTITIES: dict[str, type[Quantity]] = {
    kind.__name__.lower(): kind for kind in (Current, Torque, Speed, Position)
}
"""Quantities by the goal's name in ``card.settings``."""
