"""A permanent-magnet synchronous machine in rotor coordinates (d along the magnets, q ahead of it).

Amplitude-invariant transformation: a current vector's length is the amplitude of the phase
currents. Fundamental wave, constant inductances, no iron losses. Currents and voltages are scalar
fields, so that a batch is one array a field.

Source: Schroeder, Elektrische Antriebe - Regelung von Antriebssystemen (2015); parameters of the
nominal machine: gym-electric-motor 3.0.3 (doi:10.21105/joss.02498), Cont-CC-PMSM-v0.
"""

from __future__ import annotations

from typing import NamedTuple

from ...shared.runge_kutta import rk4
from .frames import DQ, Scalar
from .synchronous import PermanentMagnet

__all__ = ["DQ", "Machine", "Scalar"]

POLE_PAIRS = 3
RESISTANCE = 18e-3
"""Ohm, of a phase."""
INDUCTANCE_D = 0.37e-3
"""H"""
INDUCTANCE_Q = 1.2e-3
"""H"""
MAGNET_FLUX = 66e-3
"""V s"""
NOMINAL_CURRENT = 240.0
"""A, amplitude."""
CURRENT_LIMIT = 400.0
"""A, amplitude."""
SUPPLY_VOLTAGE = 300.0
"""V, of the inverter's direct-current link."""


class Machine(NamedTuple):
    """The electrical constants of one machine."""

    resistance: Scalar
    """Ohm"""
    inductance_d: Scalar
    """H"""
    inductance_q: Scalar
    """H"""
    magnet_flux: Scalar
    """V s"""


def nominal_machine() -> Machine:
    """Return the machine of the data sheet."""
    return Machine(RESISTANCE, INDUCTANCE_D, INDUCTANCE_Q, MAGNET_FLUX)


def flux(current: DQ, machine: Machine) -> DQ:
    """Return flux linkages, V s."""
    return PermanentMagnet(*machine, POLE_PAIRS).flux(current)


def derivative(current: DQ, voltage: DQ, speed: Scalar, machine: Machine) -> DQ:
    """Return dI/dt, A/s, at a mechanical ``speed`` (rad/s).

    L di = u - R i - p w J psi, with d psi_d = L_d di_d.
    """
    return PermanentMagnet(*machine, POLE_PAIRS).derivative(current, voltage, speed)


def step(current: DQ, voltage: DQ, speed: Scalar, machine: Machine, duration: float) -> DQ:
    """Return the currents ``duration`` s later.

    Voltage and speed stay constant in rotor coordinates.
    """
    return rk4(lambda _, present: derivative(present, voltage, speed, machine), current, duration)


def torque(current: DQ, machine: Machine) -> Scalar:
    """Return the inner torque, N m: 3/2 p (psi + (L_d - L_q) i_d) i_q."""
    return PermanentMagnet(*machine, POLE_PAIRS).torque(current)


def steady_voltage(current: DQ, speed: Scalar, machine: Machine) -> DQ:
    """Return the voltage (V) that holds a current at a mechanical speed (rad/s)."""
    electrical = POLE_PAIRS * speed
    linked = flux(current, machine)
    return DQ(
        machine.resistance * current.d - electrical * linked.q,
        machine.resistance * current.q + electrical * linked.d,
    )
