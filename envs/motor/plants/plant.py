"""A machine with its converters, as tasks and controllers use it.

Currents and voltages of three-phase machines are in field coordinates: d along the magnets of a
synchronous machine, or along the rotor's flux of an induction machine, whose angle is known.
Voltages are in parts of ``units``: the supply of a four-quadrant converter, or U / sqrt(3) of a
bridge with space-vector modulation.

Sources: machines, limits and nominal values as gym-electric-motor 3.0.3 has them
(doi:10.21105/joss.02498) unless said; current loops and choice of currents: Schroeder, Elektrische
Antriebe - Regelung von Antriebssystemen (2015).
"""

from __future__ import annotations

import abc
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..machines.frames import Scalar, Values
from ..power_electronics import interlocking
from ..setpoints.goals import Goal


class Base(NamedTuple):
    """Base values of a drive, by which its goals scale."""

    torque: float
    """N m, by the nominal current"""
    speed: float
    """Speed up to which the converter's voltage holds the nominal current, rad/s.

    It is below zero if the voltage never holds it.
    """
    current_rate: float
    """A/s, by full voltage at standstill"""


class Plant(abc.ABC):
    """One machine with its converter; ``machine`` arguments are its parameters in a context."""

    nominal: Any
    """The data sheet's machine."""
    tolerance: Any
    """Relative, of each of its parameters, in the same structure."""
    currents: tuple[str, ...]
    """Names of the controlled currents."""
    measured_names: tuple[str, ...]
    """Names of the measured electrical quantities, of which the controlled currents are the first.
    """
    current_limit: float
    """A: beyond it the drive trips."""
    nominal_current: float
    """A: what the windings bear for ever."""
    speed_limit: float
    """rad/s"""
    unit: float
    """V, of a part of the action of one."""
    voltages: tuple[str, ...]
    """Names of the parts of a continuous action."""
    converters: tuple[tuple[str, int], ...]
    """Circuit and number of switch states of each converter.

    The drive's state counts those of the first converter fastest.
    """
    lowest: float = -1.0
    """Lowest value of each part of a continuous action."""
    pole_pairs: float = 0
    """Electrical divided by mechanical angle; zero if no angle matters."""
    fixed: bool = False
    """True if a continuous voltage stays constant in the stator's coordinates.

    The rotor's angle matters then.
    """
    turning: int = 0
    """Angles that the effect of a switch state depends on."""

    @property
    def units(self) -> tuple[float, ...]:
        """Unit of each part of the action, V."""
        return (self.unit,) * len(self.voltages)

    @property
    def inputs(self) -> int:
        """Length of a continuous action."""
        return len(self.voltages)

    @property
    def states(self) -> int:
        """Number of switch states of all converters together."""
        return math.prod(states for _, states in self.converters)

    def base(self) -> Base | None:
        """Return the base values; None for a machine whose data sheet cannot be replaced."""
        return None

    @abc.abstractmethod
    def state_at_rest(self, machine: Any) -> Any:
        """Return the electrical state at the start: magnetised, no torque."""

    @abc.abstractmethod
    def measure(self, electrical: Any) -> Values:
        """Return the quantities of ``measured_names``.

        Currents are in parts of the limit, others in parts of their nominal value.
        """

    @abc.abstractmethod
    def electrical_of(self, measured: Values, directions: Values = ()) -> Any:
        """Invert :meth:`measure`.

        ``directions`` are those of an induction machine's flux, as :meth:`directions` returns them.
        """

    @abc.abstractmethod
    def voltage(self, applied: Values, electrical: Any, angle: Scalar) -> Any:
        """Return the machine's voltage, V, for a continuous action.

        The action is within the converter's limits.
        """

    @property
    def switches(self) -> int:
        """Number of legs of all converters together: the bits of a switch state."""
        return round(math.log2(self.states))

    def legs(self, state: Scalar) -> Values:
        """Return 0 or 1 for each leg at the link's lower or upper end, by switch state."""
        return tuple(state >> bit & 1 for bit in range(self.switches))

    @abc.abstractmethod
    def voltage_of_legs(self, legs: Values, electrical: Any, angle: Scalar) -> Any:
        """Return the machine's voltage, V, of legs at these parts of the link's voltage.

        ``angle`` is electrical, in rad.
        """

    @abc.abstractmethod
    def leg_currents(self, electrical: Any, angle: Scalar) -> Values:
        """Return the current out of each leg, A; ``angle``: electrical, rad."""

    def interlocked_voltage(
        self, applied: Values, electrical: Any, angle: Scalar, share: float
    ) -> Any:
        """Return the voltage of :meth:`voltage` less what interlocking loses.

        Both switches of every leg are off for ``share`` of the period.
        """
        changes = interlocking.lost_voltages(self.leg_currents(electrical, angle), share)
        nothing = self.voltage_of_legs((0.0,) * len(changes), electrical, angle)
        changed = self.voltage_of_legs(changes, electrical, angle)
        voltage = self.voltage(applied, electrical, angle)
        return jax.tree.map(lambda full, a, b: full + (a - b), voltage, changed, nothing)

    def conducting_state(self, electrical: Any, machine: Any) -> Any:
        """Return the electrical state without currents that the converter's diodes block."""
        return electrical

    def switched_voltage(self, state: Scalar, electrical: Any, angle: Scalar) -> Any:
        """Return the machine's voltage, V, of a switch state.

        It is constant over a step, which is short.
        """
        return self.voltage_of_legs(self.legs(state), electrical, angle)

    @property
    @abc.abstractmethod
    def rating(self) -> float:
        """Apparent power at nominal current and the largest voltage, VA."""

    @abc.abstractmethod
    def power(self, voltage: Any, electrical: Any) -> Scalar:
        """Return the power that the machine's terminals take, W."""

    @abc.abstractmethod
    def resistances(self) -> tuple[float, ...]:
        """Return the resistance of each controlled current's loop, Ohm."""

    @abc.abstractmethod
    def inductances(self) -> tuple[float, ...]:
        """Return the inductance of each controlled current's loop, H."""

    @abc.abstractmethod
    def induced_voltages(self, electrical: Any, speed: Scalar) -> Values:
        """Return the voltage, V, that each loop must overcome beyond resistance and inductance.

        It follows from the data sheet.
        """

    @abc.abstractmethod
    def currents_for(self, torque: Scalar, electrical: Any) -> Values:
        """Return currents, A, that make a torque (N m) with little loss.

        They are those of the data sheet's machine.
        """

    def speed_torques(self, electrical: Any) -> tuple[Scalar, Scalar] | None:
        """Return the least and the largest torque, N m, that control of the speed asks for.

        None where it is the range of the torque task.
        """
        return None

    def currents_within(self, period: float, torque: Scalar, electrical: Any) -> Values:
        """Return :meth:`currents_for` a torque that is to be reached in a period (s) or more."""
        return self.currents_for(torque, electrical)

    def holding_action(self, electrical: Any, speed: Scalar) -> Values:
        """Return the continuous action that keeps the currents of the data sheet's machine."""
        currents = (value * self.current_limit for value in self.measure(electrical)[: self.inputs])
        induced = self.induced_voltages(electrical, speed)
        return self.limit_action(
            tuple(
                jnp.clip((resistance * current + volts) * (1 / unit), -1, 1)
                for resistance, current, volts, unit in zip(
                    self.resistances(), currents, induced, self.units, strict=True
                )
            )
        )

    def changing_voltages(self, errors: Values, period: float, speed: Scalar) -> Values:
        """Return the voltage, V, that removes errors (A) in a period (s).

        It follows from the data sheet's inductances.
        """
        return tuple(
            inductance / period * error
            for inductance, error in zip(self.inductances(), errors, strict=True)
        )

    def limit_changes(self, changing: Values, holding: Values) -> Values:
        """Return the changing voltages, V, that a controller may request.

        It requests them besides the voltages that hold the currents.
        """
        return changing

    def lack_per_integrator(self, lacking: Values) -> Values:
        """Return the lack of voltage that stops each integrator, in parts of a unit.

        ``lacking`` is the lack of each converter.
        """
        return lacking

    def directions(self, electrical: Any, angle: Scalar) -> Values:
        """Return cosine and sine of each angle that the effect of a switch state depends on."""
        return ()

    def limit_action(self, action: Values) -> Values:
        """Return the action, limited to what the converter can give."""
        return action

    def attainable_goal(self, goal: Goal, kind: str) -> Goal:
        """Return the machine's goal of a kind (``current``, ...).

        It is reduced to what the converter can follow.
        """
        return goal

    def length(self, electrical: Any) -> Scalar:
        """Return the largest current in parts of the limit."""
        max_current: Scalar = 0.0
        for value in self.measure(electrical):
            max_current = jnp.maximum(max_current, jnp.abs(value))
        return max_current
