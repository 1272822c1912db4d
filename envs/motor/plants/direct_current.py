"""Direct-current machines on 60 V, a converter for each voltage: of four quadrants, two or one."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..machines import dc
from ..machines.frames import Scalar, Values
from ..power_electronics import interlocking
from ..power_electronics.converter import CONVERTERS, Converter
from ..setpoints.goals import Goal
from .plant import Base, Plant


class DirectCurrent(Plant):
    """Properties that all direct-current machines share."""

    current_limit = 210.0
    nominal_current = 97.0
    speed_limit = 400.0
    unit = 60.0
    currents: tuple[str, ...] = ("i",)
    measured_names: tuple[str, ...] = ("i",)
    voltages: tuple[str, ...] = ("u",)
    terminals: type[dc.Armature | dc.Windings] = dc.Armature
    fed: tuple[str, ...] = ("armature",)
    """Names of the circuits that the converters feed."""

    def __init__(self, converter: Converter = CONVERTERS["4qc"]) -> None:
        self.converter = converter
        self.lowest = converter.lowest
        self.converters = tuple((fed, 2**converter.legs) for fed in self.fed)

    def state_at_rest(self, machine: Any) -> Any:
        """Return no current."""
        return dc.Armature(jnp.zeros_like(machine.inertia))

    def measure(self, electrical: Any) -> Values:
        """Return the currents."""
        return tuple(current * (1 / self.current_limit) for current in electrical)

    def electrical_of(self, measured: Values, directions: Values = ()) -> Any:
        """Return the currents, A."""
        currents = dc.Windings if len(measured) > 1 else dc.Armature
        return currents(*(value * self.current_limit for value in measured))

    def voltage(self, applied: Values, electrical: Any, angle: Scalar) -> Any:
        """Return the voltage of each converter."""
        return self.terminals(*(self.unit * share for share in applied))

    def voltage_of_legs(self, legs: Values, electrical: Any, angle: Scalar) -> Any:
        """Return the voltage of each converter.

        It is measured between the legs, or from the only leg to the link's lower end.
        """
        if self.converter.legs == 2:
            legs = tuple(legs[i] - legs[i + 1] for i in range(0, len(legs), 2))
        return self.voltage(legs, electrical, angle)

    def interlocked_voltage(
        self, applied: Values, electrical: Any, angle: Scalar, share: float
    ) -> Any:
        """Keep the average of a single leg between the link's ends.

        Its diodes conduct to one of them.
        """
        if self.converter.legs == 2:
            return super().interlocked_voltage(applied, electrical, angle, share)
        changes = interlocking.lost_voltages(self.leg_currents(electrical, angle), share)
        legs = tuple(
            jnp.clip(duty + change, 0, 1) for duty, change in zip(applied, changes, strict=True)
        )
        return self.voltage_of_legs(legs, electrical, angle)

    def line_currents(self, electrical: Any) -> Values:
        """Return the current of each converter, A."""
        return tuple(electrical)

    def leg_currents(self, electrical: Any, angle: Scalar) -> Values:
        """Return the current out of one leg and, where there is another, into it."""
        currents = self.line_currents(electrical)
        if self.converter.legs == 1:
            return currents
        return tuple(signed for current in currents for signed in (current, -current))

    def conducting_state(self, electrical: Any, machine: Any) -> Any:
        """Block currents below zero where there is a diode."""
        return electrical if self.converter.reverses else self.block_currents(electrical, machine)

    def block_currents(self, electrical: Any, machine: Any) -> Any:
        """Stop each converter's current at zero."""
        return jax.tree.map(lambda current: jnp.maximum(current, 0), electrical)

    def limit_action(self, action: Values) -> Values:
        """Keep a converter of one or two quadrants from voltages below zero."""
        if self.lowest < 0:
            return action
        return tuple(jnp.maximum(share, self.lowest) for share in action)

    def attainable_goal(self, goal: Goal, kind: str) -> Goal:
        """Limit the goal to fast forward speeds and to possible signs.

        At fast speeds the induced voltage lowers currents.
        """
        if self.lowest < 0:
            return goal
        slowest, fastest = goal.speeds
        speeds, low = (max(slowest, 0.5 * fastest), fastest), goal.low
        if kind == "speed":
            low = (max(low[0], 0.5 * goal.high[0]),)
        elif not self.converter.reverses:
            low = tuple(max(value, 0.0) for value in low)
        return goal._replace(low=low, speeds=speeds)

    @property
    def rating(self) -> float:
        """Rating of the armature, VA."""
        return self.unit * self.nominal_current

    def power(self, voltage: Any, electrical: Any) -> Scalar:
        """Return the power of all converters."""
        first_power, *more_powers = (
            u * i for u, i in zip(voltage, self.line_currents(electrical), strict=True)
        )
        return sum(more_powers, first_power)


class PermExDc(DirectCurrent):
    """Permanently excited."""

    nominal = dc.PermanentlyExcited()
    tolerance = dc.PermanentlyExcited(0.2, 0.15, 0.1, 0.0)

    def base(self) -> Base:
        """Return psi I, (U - R I) / psi and U / L."""
        machine, current = self.nominal, self.nominal_current
        speed = (self.unit - machine.resistance * current) / machine.magnet_flux
        return Base(machine.magnet_flux * current, speed, self.unit / machine.inductance)

    def resistances(self) -> tuple[float, ...]:
        """Return the armature's."""
        return (self.nominal.resistance,)

    def inductances(self) -> tuple[float, ...]:
        """Return the armature's."""
        return (self.nominal.inductance,)

    def induced_voltages(self, electrical: Any, speed: Scalar) -> Values:
        """Return psi w."""
        return (self.nominal.magnet_flux * speed,)

    def currents_for(self, torque: Scalar, electrical: Any) -> Values:
        """Return T / psi."""
        return (torque / self.nominal.magnet_flux,)


class SeriesDc(DirectCurrent):
    """Series wound."""

    nominal = dc.Series()
    tolerance = dc.Series(0.2, 0.2, 0.15, 0.15, 0.1, 0.0)

    def base(self) -> Base:
        """Return L' I^2, the speed at which U = (R + L' w) I, and U / L."""
        current = self.nominal_current
        linked = self.nominal.rotation_inductance * self.nominal_current
        speed = (self.unit - self.resistances()[0] * current) / linked
        return Base(linked * current, speed, self.unit / self.inductances()[0])

    def resistances(self) -> tuple[float, ...]:
        """Return that of both windings together."""
        return (self.nominal.armature_resistance + self.nominal.field_resistance,)

    def inductances(self) -> tuple[float, ...]:
        """Return that of both windings together."""
        return (self.nominal.armature_inductance + self.nominal.field_inductance,)

    def induced_voltages(self, electrical: Any, speed: Scalar) -> Values:
        """Return L' w i."""
        return (self.nominal.rotation_inductance * speed * electrical.armature,)

    def currents_for(self, torque: Scalar, electrical: Any) -> Values:
        """Return the root of T / L', zero for a torque that the machine cannot make."""
        return (jnp.sqrt(jnp.maximum(torque, 0) / self.nominal.rotation_inductance),)


class ShuntDc(DirectCurrent):
    """A shunt-wound machine, of which only the armature's current is controlled.

    The field's current follows the voltage slowly.

    Below R_e / L' (235 rad/s) the field decays unless armature current raises the voltage; its
    direction never turns, so torque goes one way.
    """

    nominal = dc.Shunt()
    tolerance = dc.Shunt(0.2, 0.05, 0.15, 0.15, 0.05, 0.0)
    currents = ("i_a",)
    measured_names = ("i_a", "i_e")
    FIELD = 10.0
    """A, at the start"""

    def state_at_rest(self, machine: Any) -> Any:
        """Return a magnetised machine."""
        zero = jnp.zeros_like(machine.inertia)
        return dc.Windings(zero, zero + self.FIELD)

    def line_currents(self, electrical: Any) -> Values:
        """Return the current of both windings together, A."""
        return (electrical.armature + electrical.field,)

    def block_currents(self, electrical: Any, machine: Any) -> Any:
        """Stop the line's current at zero. The field's current then continues through the armature.

        The voltage that brings this about adds the same flux linkage (V s) to both windings.
        """
        reverse = jnp.minimum(electrical.armature + electrical.field, 0)
        armature, field = machine.armature_inductance, machine.field_inductance
        share = reverse / (armature + field)
        return dc.Windings(electrical.armature - share * field, electrical.field - share * armature)

    def resistances(self) -> tuple[float, ...]:
        """Return the armature's."""
        return (self.nominal.armature_resistance,)

    def inductances(self) -> tuple[float, ...]:
        """Return the armature's."""
        return (self.nominal.armature_inductance,)

    def induced_voltages(self, electrical: Any, speed: Scalar) -> Values:
        """Return L' w i_e."""
        return (self.nominal.rotation_inductance * speed * electrical.field,)

    def currents_for(self, torque: Scalar, electrical: Any) -> Values:
        """Return T / (L' i_e), from at least 3 A of field."""
        field = jnp.maximum(electrical.field, 0.3 * self.FIELD)
        return (torque / (self.nominal.rotation_inductance * field),)

    def speed_torques(self, electrical: Any) -> tuple[Scalar, Scalar]:
        """Return the torques that the nominal current of either sign makes with the present field.

        The torque task has smaller ones that any field can make, of one sign. A controller that
        kept to them could not brake.
        """
        max_torque = (
            self.nominal_current
            * self.nominal.rotation_inductance
            * jnp.maximum(electrical.field, 0)
        )
        return -max_torque if self.converter.reverses else 0 * max_torque, max_torque


class ExtExDc(DirectCurrent):
    """Externally excited: armature and field by a converter each."""

    nominal = dc.ExternallyExcited()
    tolerance = dc.ExternallyExcited(0.2, 0.2, 0.15, 0.15, 0.1, 0.0)
    currents = ("i_a", "i_e")
    measured_names = ("i_a", "i_e")
    voltages = ("u_a", "u_e")
    terminals = dc.Windings
    fed = ("armature", "field")
    FIELD = 80.0
    """A: field current while torque is requested.

    It changes a hundred times more slowly than the armature's.
    """

    def state_at_rest(self, machine: Any) -> Any:
        """Return a magnetised machine."""
        zero = jnp.zeros_like(machine.inertia)
        return dc.Windings(zero, zero + self.FIELD)

    def resistances(self) -> tuple[float, ...]:
        """Return the armature's and the field's."""
        return self.nominal.armature_resistance, self.nominal.field_resistance

    def inductances(self) -> tuple[float, ...]:
        """Return the armature's and the field's."""
        return self.nominal.armature_inductance, self.nominal.field_inductance

    def induced_voltages(self, electrical: Any, speed: Scalar) -> Values:
        """Return L' w i_e in the armature."""
        return self.nominal.rotation_inductance * speed * electrical.field, 0.0 * speed

    def currents_for(self, torque: Scalar, electrical: Any) -> Values:
        """Make the torque by the armature, at constant field."""
        field = jnp.maximum(electrical.field, 0.1 * self.nominal_current)
        return torque / (self.nominal.rotation_inductance * field), self.FIELD + 0.0 * torque
