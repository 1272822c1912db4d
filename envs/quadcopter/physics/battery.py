"""A single lithium-polymer cell that feeds four rotors: it sags under current and empties.

The Thevenin circuit: an open-circuit voltage that depends on the charge left, a series resistance,
and one resistance with a capacitor beside it, whose voltage ``v`` (the cell's polarisation) follows
the current with a time constant::

    terminal voltage = open_circuit(charge) - v - R0 I,
    dv/dt = (R1 I - v) / T,    d charge/dt = -I / capacity

The rotors ask for power, so the current is the smaller root of ``(open_circuit - v - R0 I) I =
power``. Asked for more than it can give, the cell gives the most it can. Rotors reach full speed
down to the rated voltage; below it their highest speed is proportional to the voltage. The current
is held over a step, for which the circuit has a closed form; the error is of first order in the
change of the current.

Source: Chen & Rincon-Mora 2006, Accurate electrical battery model capable of predicting runtime and
I-V performance, doi:10.1109/TEC.2006.874229 (circuit; open-circuit voltage; the shorter time
constant, of a full cell). Resistances and what rotors take are fitted to Bitcraze's thrust stand
(Crazyflie 2.0, 240 mAh: current, voltage and rotor speed at each duty cycle,
wiki.bitcraze.io/misc:investigations:thrust); tests compare.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp

from .dynamics import ROTOR_SPEED_LIMIT, Airframe, Rotors, rotor_forces
from .rigid_body import Scalar

CAPACITY = 0.24 * 3600
"""C"""
SERIES_RESISTANCE = 0.118
"""ohm: of cell, connector and switches."""
POLARISATION_RESISTANCE = 0.074
"""ohm"""
TIME_CONSTANT = 0.04669 * 703.6
"""s: of polarisation, the product of resistance and capacitance, which no size of a cell changes.
"""
EFFICIENCY = 0.5
"""Efficiency of motors and switches: power at the propellers' shafts by electrical power."""
ELECTRONICS = 0.96
"""W: power of the electronics, whatever the rotors do."""
RATED_VOLTAGE = 3.7
"""V: nominal voltage of a lithium-polymer cell, down to which rotors reach their full speed."""


class Battery(NamedTuple):
    """The state of the cell."""

    charge: Scalar
    """Charge left, as a fraction of the capacity, in [0, 1]."""
    polarisation: Scalar
    """V"""


def open_circuit_voltage(charge: Scalar) -> Scalar:
    """Return the voltage (V) without a load, given the charge left."""
    return (
        3.685
        + charge * (0.2156 + charge * (-0.1178 + charge * 0.3201))
        - 1.031 * jnp.exp(-35 * charge)
    )


def rotor_power(rotors: Rotors, airframe: Airframe) -> Scalar:
    """Return the electrical power (W) of rotors at these speeds (rad/s) and of the electronics."""
    p1, p2, p3, p4 = (
        force * speed for force, speed in zip(rotor_forces(rotors, airframe), rotors, strict=True)
    )
    return airframe.torque_coefficient / EFFICIENCY * ((p1 + p2) + (p3 + p4)) + ELECTRONICS


def current(battery: Battery, power: Scalar) -> Scalar:
    """Return the current (A) at which the cell gives this power (W).

    If the cell cannot give as much, it is the current of its greatest power.
    """
    inner = open_circuit_voltage(battery.charge) - battery.polarisation
    discriminant = jnp.maximum(inner * inner - 4 * SERIES_RESISTANCE * power, 0)
    # The smaller root, in a form that does not subtract nearly equal numbers.
    return jnp.where(
        discriminant > 0,
        2 * power / (inner + jnp.sqrt(discriminant)),
        inner / (2 * SERIES_RESISTANCE),
    )


def voltage(battery: Battery, power: Scalar) -> Scalar:
    """Return the terminal voltage (V) under a load of this power (W)."""
    drop = SERIES_RESISTANCE * current(battery, power)
    return open_circuit_voltage(battery.charge) - battery.polarisation - drop


def full_speed(voltage: Scalar) -> Scalar:
    """Return the rotor speed (rad/s) of the highest command at this terminal voltage (V)."""
    return ROTOR_SPEED_LIMIT * jnp.minimum(voltage / RATED_VOLTAGE, 1)


def discharge(battery: Battery, power: Scalar, duration: float) -> Battery:
    """Return the cell after it gave this power (W) for ``duration`` seconds.

    An empty cell stays empty.
    """
    amperes = current(battery, power)
    decay = math.exp(-duration / TIME_CONSTANT)
    final_polarisation = POLARISATION_RESISTANCE * amperes
    return Battery(
        charge=jnp.maximum(battery.charge - duration / CAPACITY * amperes, 0),
        polarisation=final_polarisation + (battery.polarisation - final_polarisation) * decay,
    )
