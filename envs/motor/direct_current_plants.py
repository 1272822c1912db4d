"""Direct-current machines on 60 V, a four-quadrant converter for each voltage."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from . import dc
from .frames import Scalar
from .plant import Plant, Values


class DirectCurrent(Plant):
    """What direct-current machines share."""

    current_limit, nominal_current, speed_limit, unit = 210.0, 97.0, 400.0, 60.0
    currents: tuple[str, ...] = ("i",)
    measured_names: tuple[str, ...] = ("i",)
    voltages: tuple[str, ...] = ("u",)
    converters: tuple[tuple[str, int], ...] = (("armature", 4),)

    def still(self, machine: Any) -> Any:
        """No current."""
        return dc.Armature(jnp.zeros_like(machine.inertia))

    def measured(self, electrical: Any) -> Values:
        """Currents."""
        return tuple(current * (1 / self.current_limit) for current in electrical)

    def voltage(self, applied: Values, electrical: Any, angle: Scalar) -> Any:
        """A converter each."""
        return dc.Armature(self.unit * applied[0])

    def across(self, legs: Values, electrical: Any, angle: Scalar) -> Any:
        """One converter."""
        return dc.Armature(self.unit * (legs[0] - legs[1]))

    def line_current(self, electrical: Any) -> Scalar:
        """A, of the converter."""
        return electrical.armature

    def leg_currents(self, electrical: Any, angle: Scalar) -> Values:
        """Out of one leg and into the other."""
        current = self.line_current(electrical)
        return current, -current

    @property
    def rating(self) -> float:
        """Of the armature."""
        return self.unit * self.nominal_current

    def power(self, voltage: Any, electrical: Any) -> Scalar:
        """Of the converter."""
        return voltage.armature * self.line_current(electrical)


class PermExDc(DirectCurrent):
    """Permanently excited."""

    nominal = dc.PermanentlyExcited()
    tolerance = dc.PermanentlyExcited(0.2, 0.15, 0.1, 0.0)

    def resistances(self) -> tuple[float, ...]:
        """Of the armature."""
        return (self.nominal.resistance,)

    def inductances(self) -> tuple[float, ...]:
        """Of the armature."""
        return (self.nominal.inductance,)

    def induced(self, electrical: Any, speed: Scalar) -> Values:
        """psi w."""
        return (self.nominal.magnet_flux * speed,)

    def currents_for(self, torque: Scalar, electrical: Any) -> Values:
        """T / psi."""
        return (torque / self.nominal.magnet_flux,)


class SeriesDc(DirectCurrent):
    """Series wound."""

    nominal = dc.Series()
    tolerance = dc.Series(0.2, 0.2, 0.15, 0.15, 0.1, 0.0)

    def resistances(self) -> tuple[float, ...]:
        """Of both windings."""
        return (self.nominal.armature_resistance + self.nominal.field_resistance,)

    def inductances(self) -> tuple[float, ...]:
        """Of both windings."""
        return (self.nominal.armature_inductance + self.nominal.field_inductance,)

    def induced(self, electrical: Any, speed: Scalar) -> Values:
        """L' w i."""
        return (self.nominal.rotation_inductance * speed * electrical.armature,)

    def currents_for(self, torque: Scalar, electrical: Any) -> Values:
        """The root of T / L', zero for a torque it cannot make."""
        return (jnp.sqrt(jnp.maximum(torque, 0) / self.nominal.rotation_inductance),)


class ShuntDc(DirectCurrent):
    """Shunt wound: only the armature's current is controlled, the field's follows the voltage slowly.

    Below R_e / L' (235 rad/s) the field decays unless armature current raises the voltage; its direction never
    turns, so torque goes one way.
    """

    nominal = dc.Shunt()
    tolerance = dc.Shunt(0.2, 0.05, 0.15, 0.15, 0.05, 0.0)
    currents = ("i_a",)
    measured_names = ("i_a", "i_e")
    FIELD = 10.0
    """A, at the start"""

    def still(self, machine: Any) -> Any:
        """Magnetised."""
        zero = jnp.zeros_like(machine.inertia)
        return dc.Windings(zero, zero + self.FIELD)

    def line_current(self, electrical: Any) -> Scalar:
        """A, of both windings."""
        return electrical.armature + electrical.field

    def resistances(self) -> tuple[float, ...]:
        """Of the armature."""
        return (self.nominal.armature_resistance,)

    def inductances(self) -> tuple[float, ...]:
        """Of the armature."""
        return (self.nominal.armature_inductance,)

    def induced(self, electrical: Any, speed: Scalar) -> Values:
        """L' w i_e."""
        return (self.nominal.rotation_inductance * speed * electrical.field,)

    def currents_for(self, torque: Scalar, electrical: Any) -> Values:
        """T / (L' i_e), from at least 3 A of field."""
        field = jnp.maximum(electrical.field, 0.3 * self.FIELD)
        return (torque / (self.nominal.rotation_inductance * field),)


class ExtExDc(DirectCurrent):
    """Externally excited: armature and field by a converter each."""

    nominal = dc.ExternallyExcited()
    tolerance = dc.ExternallyExcited(0.2, 0.2, 0.15, 0.15, 0.1, 0.0)
    currents = ("i_a", "i_e")
    measured_names = ("i_a", "i_e")
    voltages = ("u_a", "u_e")
    converters = (("armature", 4), ("field", 4))
    FIELD = 80.0
    """A, the field current held where torque is asked for; it moves a hundred times slower than the armature's."""

    def still(self, machine: Any) -> Any:
        """Magnetised."""
        zero = jnp.zeros_like(machine.inertia)
        return dc.Windings(zero, zero + self.FIELD)

    def voltage(self, applied: Values, electrical: Any, angle: Scalar) -> Any:
        """A converter each."""
        return dc.Windings(self.unit * applied[0], self.unit * applied[1])

    def across(self, legs: Values, electrical: Any, angle: Scalar) -> Any:
        """A converter each."""
        return dc.Windings(self.unit * (legs[0] - legs[1]), self.unit * (legs[2] - legs[3]))

    def leg_currents(self, electrical: Any, angle: Scalar) -> Values:
        """Of the armature's converter and the field's."""
        return electrical.armature, -electrical.armature, electrical.field, -electrical.field

    def power(self, voltage: Any, electrical: Any) -> Scalar:
        """Of both."""
        return voltage.armature * electrical.armature + voltage.field * electrical.field

    def resistances(self) -> tuple[float, ...]:
        """Of armature and field."""
        return self.nominal.armature_resistance, self.nominal.field_resistance

    def inductances(self) -> tuple[float, ...]:
        """Of armature and field."""
        return self.nominal.armature_inductance, self.nominal.field_inductance

    def induced(self, electrical: Any, speed: Scalar) -> Values:
        """L' w i_e in the armature."""
        return self.nominal.rotation_inductance * speed * electrical.field, 0.0 * speed

    def currents_for(self, torque: Scalar, electrical: Any) -> Values:
        """By the armature, at constant field."""
        field = jnp.maximum(electrical.field, 0.1 * self.nominal_current)
        return torque / (self.nominal.rotation_inductance * field), self.FIELD + 0.0 * torque
