"""Observers of speed and angle from currents and voltages, by the voltage that magnets induce.

A direct-current machine: psi w = u - R i - L di/dt, low-pass filtered.

A synchronous machine: in coordinates at an estimated angle the extended electromotive force

    e = u - R i - L_d di/dt + p w L_q J i,  of length E = p w ((L_d - L_q) i_d + psi) - (L_d - L_q)
    di_q/dt,

lies along q if the estimate is right, and shows to d by -E sin(error) if not: a phase-locked loop
brings that to zero. The first angle and speed are read from the first step, without voltage: a
short circuit drives the current along -q, by p w psi T / L_q.

Sources: Schroeder, Elektrische Antriebe - Regelung von Antriebssystemen (2015), drives without
sensors; Chen, Tomita, Doki & Okuma 2003, An extended electromotive force model for sensorless
control of interior permanent-magnet synchronous motors, IEEE Transactions on Industrial Electronics
50(2).
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from ..machines.dc import PermanentlyExcited
from ..machines.frames import AlphaBeta, Scalar, park, wrap_angle
from ..machines.synchronous import PermanentMagnet

FILTER = 0.2
"""Part by which the direct-current estimate follows what a step shows."""
BANDWIDTH = 800.0
"""rad/s: both poles of the phase-locked loop."""
MIN_EMF = 5.0
"""V: an extended force that is shorter, as in quick changes of i_q, corrects little."""


def induced_speed(
    machine: PermanentlyExcited, voltage: Scalar, currents: tuple[Scalar, Scalar], period: float
) -> Scalar:
    """Return the speed, rad/s, that one step of constant ``voltage`` (V) shows.

    ``currents`` are those at its beginning and at its end, A.
    """
    first, last = currents
    mean, slope = 0.5 * (first + last), (last - first) / period
    return (voltage - machine.resistance * mean - machine.inductance * slope) / machine.magnet_flux


class Rotor(NamedTuple):
    """The estimate."""

    angle: Scalar
    """rad, electrical"""
    speed: Scalar
    """rad/s, mechanical"""


def estimate_from_short_circuit(
    current: AlphaBeta, machine: PermanentMagnet, period: float
) -> Rotor:
    """Estimate a forward rotor from the current (A) after a first step without voltage."""
    length = jnp.sqrt(current.alpha * current.alpha + current.beta * current.beta)
    electrical = length * (machine.inductance_q / (machine.magnet_flux * period))
    # i_q falls as the step goes on and draws i_d after it: to first order by p w T L_q / (2 L_d) of
    # i_q.
    magnet_current = 0.5 * period * electrical * (machine.inductance_q / machine.inductance_d)
    return Rotor(
        wrap_angle(jnp.arctan2(current.alpha, -current.beta) + magnet_current),
        electrical / machine.pole_pairs,
    )


def track_rotor(
    previous: Rotor,
    machine: PermanentMagnet,
    voltage: AlphaBeta,
    currents: tuple[AlphaBeta, AlphaBeta],
    period: float,
) -> Rotor:
    """Update the estimate by a step of constant ``voltage`` (V).

    ``currents`` are those at its beginning and at its end, A.
    """
    turn = machine.pole_pairs * previous.speed * period
    first, last = park(currents[0], previous.angle), park(currents[1], previous.angle + turn)
    voltage_dq = park(voltage, previous.angle + 0.5 * turn)
    electrical = machine.pole_pairs * previous.speed
    saliency = machine.inductance_d - machine.inductance_q
    d, q = 0.5 * (first.d + last.d), 0.5 * (first.q + last.q)
    slope_d, slope_q = (last.d - first.d) / period, (last.q - first.q) / period
    voltage_error = (
        voltage_dq.d
        - machine.resistance * d
        - machine.inductance_d * slope_d
        + electrical * machine.inductance_q * q
    )
    force = electrical * (saliency * d + machine.magnet_flux) - saliency * slope_q
    error = jnp.clip(-voltage_error * force / (force * force + MIN_EMF * MIN_EMF), -1, 1)
    pole = BANDWIDTH * period
    return Rotor(
        wrap_angle(previous.angle + turn + 2 * pole * error),
        previous.speed + pole * pole / (machine.pole_pairs * period) * error,
    )
