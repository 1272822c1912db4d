"""The machines as tasks drive them: data of the drive, what is measured, and what a controller knows of each.

Currents and voltages of three-phase machines are in field coordinates: d along the magnets of a synchronous machine,
or along the rotor's flux of an induction machine, whose angle is known. Voltages are in parts of ``unit``: the supply
of a four-quadrant converter, or U / sqrt(3) of a bridge with space-vector modulation.

Sources: machines, limits and nominal values as gym-electric-motor 3.0.3 has them (doi:10.21105/joss.02498); current
loops and choice of currents: Schroeder, Elektrische Antriebe - Regelung von Antriebssystemen (2015).
"""

from __future__ import annotations

import abc
import math
from typing import Any, ClassVar

import jax.numpy as jnp

from . import converter, dc, induction, synchronous
from .frames import DQ, AlphaBeta, Phases, Scalar, clarke, park

Values = tuple[Scalar, ...]

SMALLEST_FLUX = 1e-3
"""V s, below which the direction of a rotor's flux is not looked for."""


class Plant(abc.ABC):
    """One machine with its converter; ``machine`` arguments are its parameters in a context."""

    nominal: Any
    """The data sheet's machine."""
    tolerance: Any
    """Relative, of each of its parameters, in the same structure."""
    currents: tuple[str, ...]
    """Names of the controlled currents."""
    measured_names: tuple[str, ...]
    """Names of the measured electrical quantities, of which the controlled currents are the first."""
    current_limit: float
    """A: beyond it the drive trips."""
    nominal_current: float
    """A: what the windings bear for ever."""
    speed_limit: float
    """rad/s"""
    unit: float
    """V, of each part of the action."""
    inputs: int = 1
    """Length of a continuous action."""
    pole_pairs: float = 0
    """Electrical by mechanical angle; zero where no angle matters."""

    @abc.abstractmethod
    def still(self, machine: Any) -> Any:
        """The electrical state at the start: magnetised, no torque."""

    @abc.abstractmethod
    def measured(self, electrical: Any) -> Values:
        """In the order of ``measured_names``: currents in parts of the limit, A/A; others of their nominal value."""

    @abc.abstractmethod
    def voltage(self, applied: Values, electrical: Any, angle: Scalar) -> Any:
        """The machine's voltage, V, of a continuous action already within what the converter gives."""

    @abc.abstractmethod
    def switched(self, state: Scalar, electrical: Any, angle: Scalar) -> Any:
        """The machine's voltage, V, of a switch state."""

    @abc.abstractmethod
    def resistances(self) -> tuple[float, ...]:
        """Ohm, of each controlled current's loop."""

    @abc.abstractmethod
    def inductances(self) -> tuple[float, ...]:
        """H, of each controlled current's loop."""

    @abc.abstractmethod
    def induced(self, electrical: Any, speed: Scalar) -> Values:
        """V, what each loop's voltage must overcome beyond resistance and inductance, on the data sheet's machine."""

    @abc.abstractmethod
    def currents_for(self, torque: Scalar, electrical: Any) -> Values:
        """A: currents that make a torque (N m) with little loss, on the data sheet's machine."""

    def within_reach(self, action: Values) -> Values:
        """The action, or what the converter gives instead."""
        return action

    def length(self, electrical: Any) -> Scalar:
        """The largest current in parts of the limit."""
        longest: Scalar = 0.0
        for value in self.measured(electrical):
            longest = jnp.maximum(longest, jnp.abs(value))
        return longest


class DirectCurrent(Plant):
    """What direct-current machines share."""

    current_limit, nominal_current, speed_limit, unit = 210.0, 97.0, 400.0, 60.0
    currents: tuple[str, ...] = ("i",)
    measured_names: tuple[str, ...] = ("i",)

    def still(self, machine: Any) -> Any:
        """No current."""
        return dc.Armature(jnp.zeros_like(machine.inertia))

    def measured(self, electrical: Any) -> Values:
        """Currents."""
        return tuple(current * (1 / self.current_limit) for current in electrical)

    def voltage(self, applied: Values, electrical: Any, angle: Scalar) -> Any:
        """A converter each."""
        return dc.Armature(self.unit * applied[0])

    def switched(self, state: Scalar, electrical: Any, angle: Scalar) -> Any:
        """One converter."""
        return dc.Armature(self.unit * converter.four_quadrant_state(state))


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
    """Shunt wound: only the armature's current is controlled, the field's follows the voltage slowly."""

    nominal = dc.Shunt()
    tolerance = dc.Shunt(0.2, 0.05, 0.15, 0.15, 0.05, 0.0)
    currents = ("i_a",)
    measured_names = ("i_a", "i_e")

    def still(self, machine: Any) -> Any:
        """No currents."""
        return dc.Windings(jnp.zeros_like(machine.inertia), jnp.zeros_like(machine.inertia))

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
        """T / (L' i_e), from at least a tenth of the nominal field."""
        field = jnp.maximum(electrical.field, 0.1 * self.nominal_current)
        return (torque / (self.nominal.rotation_inductance * field),)


class ExtExDc(DirectCurrent):
    """Externally excited: armature and field by a converter each."""

    nominal = dc.ExternallyExcited()
    tolerance = dc.ExternallyExcited(0.2, 0.2, 0.15, 0.15, 0.1, 0.0)
    currents = ("i_a", "i_e")
    measured_names = ("i_a", "i_e")
    inputs = 2
    FIELD = 80.0
    """A, the field current held where torque is asked for; it moves a hundred times slower than the armature's."""

    def still(self, machine: Any) -> Any:
        """Magnetised."""
        zero = jnp.zeros_like(machine.inertia)
        return dc.Windings(zero, zero + self.FIELD)

    def voltage(self, applied: Values, electrical: Any, angle: Scalar) -> Any:
        """A converter each."""
        return dc.Windings(self.unit * applied[0], self.unit * applied[1])

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


class ThreePhase(Plant):
    """What three-phase machines share: two voltages in field coordinates within a circle."""

    inputs = 2
    currents: tuple[str, ...] = ("i_d", "i_q")
    measured_names: tuple[str, ...] = ("i_d", "i_q")

    @property
    def link(self) -> float:
        """V, of the inverter's direct-current link."""
        return self.unit * math.sqrt(3)

    def within_reach(self, action: Values) -> Values:
        """Shortened to the unit circle in its own direction."""
        d, q = action
        share = 1 / jnp.maximum(1, jnp.sqrt(d * d + q * q))
        return d * share, q * share

    def length(self, electrical: Any) -> Scalar:
        """Of the current's vector."""
        d, q = self.measured(electrical)[:2]
        return jnp.sqrt(d * d + q * q)

    def phases(self, state: Scalar) -> AlphaBeta:
        """V, the bridge's voltage in the stator's coordinates by switch state."""
        a, b, c = converter.bridge_state(state)
        return clarke(Phases(self.link * a, self.link * b, self.link * c))


class Synchronous(ThreePhase):
    """A machine in rotor coordinates."""

    def still(self, machine: Any) -> Any:
        """No currents."""
        return DQ(jnp.zeros_like(machine.inertia), jnp.zeros_like(machine.inertia))

    def measured(self, electrical: Any) -> Values:
        """Currents."""
        per = 1 / self.current_limit
        return electrical.d * per, electrical.q * per

    def voltage(self, applied: Values, electrical: Any, angle: Scalar) -> Any:
        """Constant in rotor coordinates over a step."""
        return DQ(self.unit * applied[0], self.unit * applied[1])

    def switched(self, state: Scalar, electrical: Any, angle: Scalar) -> Any:
        """Constant in rotor coordinates over a step, which is short."""
        return park(self.phases(state), angle)

    def resistances(self) -> tuple[float, ...]:
        """Of a phase."""
        return self.nominal.resistance, self.nominal.resistance

    def inductances(self) -> tuple[float, ...]:
        """Of the axes."""
        return self.nominal.inductance_d, self.nominal.inductance_q


class PMSM(Synchronous):
    """With permanent magnets, on a 300 V link."""

    nominal = synchronous.PermanentMagnet()
    tolerance = synchronous.PermanentMagnet(0.2, 0.15, 0.15, 0.1, 0, 0.0)
    current_limit, nominal_current, speed_limit = 400.0, 240.0, 4000 * math.pi / 30
    unit = 300 / math.sqrt(3)
    pole_pairs = 3

    def induced(self, electrical: Any, speed: Scalar) -> Values:
        """Each axis by the other's flux."""
        electric, linked = self.pole_pairs * speed, self.nominal.flux(electrical)
        return -electric * linked.q, electric * linked.d

    def currents_for(self, torque: Scalar, electrical: Any) -> Values:
        """Maximum torque per ampere, Morimoto et al. 1990, doi:10.1109/28.60058, eq. 9.

        i_d of an i_q is closed form; the i_q of a torque by Newton's method, from the side where the torque is convex.
        """
        machine = self.nominal
        saliency = machine.inductance_q - machine.inductance_d
        half = machine.magnet_flux / (2 * saliency)
        wanted = torque * (1 / (1.5 * self.pole_pairs))
        i_q = wanted / machine.magnet_flux
        for _ in range(5):
            root = jnp.sqrt(half * half + i_q * i_q)
            linked = machine.magnet_flux - saliency * (half - root)
            i_q = i_q - (linked * i_q - wanted) / (linked + saliency * i_q * i_q / root)
        return half - jnp.sqrt(half * half + i_q * i_q), i_q


class SynRM(Synchronous):
    """Without magnets, on an 80 V link."""

    nominal = synchronous.Reluctance()
    tolerance = synchronous.Reluctance(0.2, 0.15, 0.15, 0, 0.0)
    current_limit, nominal_current, speed_limit = 18.0, 10.0, 4300 * math.pi / 30
    unit = 80 / math.sqrt(3)
    pole_pairs = 4
    LEAST = 2.0
    """A: i_d is never less, so that torque answers quickly."""

    def induced(self, electrical: Any, speed: Scalar) -> Values:
        """Each axis by the other's flux."""
        electric, machine = self.pole_pairs * speed, self.nominal
        return -electric * machine.inductance_q * electrical.q, electric * machine.inductance_d * electrical.d

    def currents_for(self, torque: Scalar, electrical: Any) -> Values:
        """|i_q| = i_d: the least current for a torque."""
        constant = 1.5 * self.pole_pairs * (self.nominal.inductance_d - self.nominal.inductance_q)
        i_d = jnp.maximum(jnp.sqrt(jnp.abs(torque) / constant), self.LEAST)
        return i_d, torque / (constant * i_d)


class SCIM(ThreePhase):
    """Squirrel cage, on a 420 V link; field coordinates turn with the rotor's flux."""

    nominal = induction.Induction()
    tolerance = induction.Induction(0.2, 0.2, 0.1, 0.1, 0.1, 0, 0.0)
    current_limit, nominal_current, speed_limit = 5.5, 3.9, 4000 * math.pi / 30
    unit = 420 / math.sqrt(3)
    measured_names = ("i_d", "i_q", "psi_r")
    pole_pairs = 2
    MAGNETISING: ClassVar[float] = 2.2
    """A, i_d that is held where torque is asked for."""
    FLUX: ClassVar[float] = 143.75e-3 * 2.2
    """V s, nominal, of the rotor."""

    def still(self, machine: Any) -> Any:
        """The rotor's flux nominal, along alpha, and the current that holds it."""
        zero = jnp.zeros_like(machine.inertia)
        return induction.Electrical(
            AlphaBeta(zero + self.MAGNETISING, zero), AlphaBeta(machine.mutual_inductance * self.MAGNETISING, zero)
        )

    def field(self, electrical: Any) -> tuple[Scalar, Scalar, Scalar]:
        """Length (V s) of the rotor's flux, cosine and sine of its angle."""
        flux = electrical.flux
        length = jnp.sqrt(flux.alpha * flux.alpha + flux.beta * flux.beta)
        per = 1 / jnp.maximum(length, SMALLEST_FLUX)
        return length, flux.alpha * per, flux.beta * per

    def vector(self, electrical: Any) -> DQ:
        """A, the stator's current in field coordinates."""
        _, cos, sin = self.field(electrical)
        current = electrical.current
        return DQ(cos * current.alpha + sin * current.beta, cos * current.beta - sin * current.alpha)

    def measured(self, electrical: Any) -> Values:
        """Currents and the rotor's flux."""
        current, per = self.vector(electrical), 1 / self.current_limit
        return current.d * per, current.q * per, self.field(electrical)[0] * (1 / self.FLUX)

    def voltage(self, applied: Values, electrical: Any, angle: Scalar) -> Any:
        """Turned with the field's angle at the start of a step, then constant in the stator's coordinates."""
        _, cos, sin = self.field(electrical)
        d, q = self.unit * applied[0], self.unit * applied[1]
        return self._short_circuited(AlphaBeta(cos * d - sin * q, sin * d + cos * q))

    def switched(self, state: Scalar, electrical: Any, angle: Scalar) -> Any:
        """In the stator's coordinates."""
        return self._short_circuited(self.phases(state))

    def _short_circuited(self, stator: AlphaBeta) -> induction.Voltages:
        return induction.Voltages(stator, AlphaBeta(0.0 * stator.alpha, 0.0 * stator.beta))

    def resistances(self) -> tuple[float, ...]:
        """Of the stator."""
        return self.nominal.stator_resistance, self.nominal.stator_resistance

    def inductances(self) -> tuple[float, ...]:
        """Transient."""
        return self.nominal.transient_inductance(), self.nominal.transient_inductance()

    def induced(self, electrical: Any, speed: Scalar) -> Values:
        """By the rotor's flux and the turning of the coordinates."""
        machine, current = self.nominal, self.vector(electrical)
        flux = self.field(electrical)[0]
        coupling = machine.mutual_inductance / machine.rotor_inductance()
        slip = machine.rotor_resistance * coupling * current.q / jnp.maximum(flux, 0.1 * self.FLUX)
        turning = self.pole_pairs * speed + slip
        decay = machine.rotor_resistance / machine.rotor_inductance() * (machine.mutual_inductance * current.d - flux)
        transient = machine.transient_inductance()
        return coupling * decay - turning * transient * current.q, turning * (transient * current.d + coupling * flux)

    def currents_for(self, torque: Scalar, electrical: Any) -> Values:
        """At the flux that there is; the magnetising current constant."""
        machine = self.nominal
        flux = jnp.maximum(self.field(electrical)[0], 0.1 * self.FLUX)
        coupling = machine.mutual_inductance / machine.rotor_inductance()
        return self.MAGNETISING + 0.0 * torque, torque / (1.5 * self.pole_pairs * coupling * flux)


PLANTS: dict[str, type[Plant]] = {
    plant.__name__: plant for plant in (PermExDc, ExtExDc, SeriesDc, ShuntDc, PMSM, SynRM, SCIM)
}
