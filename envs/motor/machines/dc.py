"""Direct-current machines: permanently, externally excited, series and shunt wound.

A machine is its parameters, with the data sheet's values as defaults, and two functions of its
electrical state: ``derivative`` (of the currents, A/s, at a speed in rad/s) and ``torque`` (inner
torque, N m). Armature reaction, saturation and brush drop are left out.

Equations: Schroeder, Elektrische Antriebe - Grundlagen (2013), direct-current machine. Parameters:
gym-electric-motor 3.0.3 (doi:10.21105/joss.02498), after the Heinzmann PMG 132.
"""

from __future__ import annotations

from typing import NamedTuple

from .frames import Scalar


class Armature(NamedTuple):
    """The current (A) or voltage (V) of a machine with one circuit."""

    armature: Scalar


class Windings(NamedTuple):
    """Currents (A) or voltages (V) of the armature and of the field winding."""

    armature: Scalar
    field: Scalar


class PermanentlyExcited(NamedTuple):
    """Permanent magnets excite it: L di = u - R i - psi w; T = psi i."""

    resistance: Scalar = 16e-3
    """Ohm"""
    inductance: Scalar = 19e-6
    """H"""
    magnet_flux: Scalar = 0.165
    """V s"""
    inertia: Scalar = 25e-3
    """kg m^2"""

    def derivative(self, current: Armature, voltage: Armature, speed: Scalar) -> Armature:
        """Return dI/dt, A/s."""
        drop = self.resistance * current.armature + self.magnet_flux * speed
        return Armature((voltage.armature - drop) / self.inductance)

    def torque(self, current: Armature) -> Scalar:
        """Return the torque, N m."""
        return self.magnet_flux * current.armature


class Series(NamedTuple):
    """A machine with one current through armature and field.

    (L_a + L_e) di = u - (R_a + R_e) i - L' w i; T = L' i^2.
    """

    armature_resistance: Scalar = 16e-3
    """Ohm"""
    field_resistance: Scalar = 48e-3
    """Ohm"""
    armature_inductance: Scalar = 19e-6
    """H"""
    field_inductance: Scalar = 5.4e-3
    """H"""
    rotation_inductance: Scalar = 1.7e-3
    """L', H: induced voltage a field current and speed"""
    inertia: Scalar = 2.5e-3
    """kg m^2"""

    def derivative(self, current: Armature, voltage: Armature, speed: Scalar) -> Armature:
        """Return dI/dt, A/s."""
        resistance = (
            self.armature_resistance + self.field_resistance + self.rotation_inductance * speed
        )
        inductance = self.armature_inductance + self.field_inductance
        return Armature((voltage.armature - resistance * current.armature) / inductance)

    def torque(self, current: Armature) -> Scalar:
        """Return the torque, N m."""
        return self.rotation_inductance * current.armature * current.armature


class ExternallyExcited(NamedTuple):
    """A machine whose windings each have a voltage of their own.

    L_a di_a = u_a - R_a i_a - L' w i_e; L_e di_e = u_e - R_e i_e.
    """

    armature_resistance: Scalar = 16e-3
    """Ohm"""
    field_resistance: Scalar = 0.16
    """Ohm"""
    armature_inductance: Scalar = 19e-6
    """H"""
    field_inductance: Scalar = 5.4e-3
    """H"""
    rotation_inductance: Scalar = 1.7e-3
    """L', H: induced voltage a field current and speed"""
    inertia: Scalar = 2.5e-3
    """kg m^2"""

    def derivative(self, current: Windings, voltage: Windings, speed: Scalar) -> Windings:
        """Return dI/dt, A/s."""
        induced = self.rotation_inductance * speed * current.field
        return Windings(
            (voltage.armature - self.armature_resistance * current.armature - induced)
            / self.armature_inductance,
            (voltage.field - self.field_resistance * current.field) / self.field_inductance,
        )

    def torque(self, current: Windings) -> Scalar:
        """Return the torque, N m."""
        return self.rotation_inductance * current.field * current.armature


class Shunt(NamedTuple):
    """A machine with both windings at one voltage.

    With a voltage each the machine is :class:`ExternallyExcited`.
    """

    armature_resistance: Scalar = 16e-3
    """Ohm"""
    field_resistance: Scalar = 0.4
    """Ohm"""
    armature_inductance: Scalar = 19e-6
    """H"""
    field_inductance: Scalar = 5.4e-3
    """H"""
    rotation_inductance: Scalar = 1.7e-3
    """L', H: induced voltage a field current and speed"""
    inertia: Scalar = 2.5e-3
    """kg m^2"""

    def derivative(self, current: Windings, voltage: Armature, speed: Scalar) -> Windings:
        """Return dI/dt, A/s."""
        windings = Windings(voltage.armature, voltage.armature)
        return ExternallyExcited(*self).derivative(current, windings, speed)

    def torque(self, current: Windings) -> Scalar:
        """Return the torque, N m."""
        return ExternallyExcited(*self).torque(current)
