"""Voltages of power-electronic converters in parts of the link's.

They are averaged over a period (duty), or given by switch states.

Ideal switches, no dead time. Source: Mohan, Undeland & Robbins, Power Electronics (2003), chapters
7 and 8; switch states are numbered as in gym-electric-motor 3.0.3.
"""

from __future__ import annotations

from typing import NamedTuple

from ..machines.frames import Phases, Scalar


class Converter(NamedTuple):
    """Converter of one circuit of a direct-current machine."""

    legs: int
    """One leg: the circuit's other end stays at the link's lower end.

    The first leg is the state's lowest bit
    """
    lowest: float
    """Its lowest voltage in parts of the link's; the highest is 1"""
    reverses: bool
    """True if current flows both ways.

    Otherwise it stops at zero, and the voltage is then the machine's induced one.
    """


CONVERTERS = {
    "4qc": Converter(2, -1.0, True),
    "2qc": Converter(1, 0.0, True),
    "1qc": Converter(1, 0.0, False),
}
"""Converters by their names in ``card.choices``.

They are an H bridge, a half bridge, and a buck converter: a switch above and a diode below.
"""


def four_quadrant_state(state: Scalar) -> Scalar:
    """Return the voltage of an H bridge by switch state.

    The states 0..3 are both low, forward, backward, and both high.
    """
    forward, backward = state == 1, state == 2
    return forward * 1.0 - backward * 1.0


def bridge(duty: Phases) -> Phases:
    """Return the voltages by duty -1..1 of each phase, against the link's middle."""
    return Phases(0.5 * duty.a, 0.5 * duty.b, 0.5 * duty.c)


def bridge_state(state: Scalar) -> Phases:
    """Return the voltages by switch state 0..7, against the link's middle.

    The highest bit is phase a's switch: 0 and 7 are the two zero vectors.
    """
    return Phases((state >> 2 & 1) - 0.5, (state >> 1 & 1) - 0.5, (state & 1) - 0.5)
