"""Supplies of the converters' link, whose voltage is constant without one.

A capacitor C feeds the converters, which lose nothing: the current that they draw is the machine's
electrical power by the link's voltage. In parts of the nominal voltage U, with the drive's rating S
(VA),

    C = T S / (r U^2),   R = r U^2 / S,   T dv/dt = i_source - i_braking - r P / (v S),

where i_source is (e - v) for a source e behind R. P / v is the power at v = 1, because voltages
grow with the link's. The voltage thus drops by r at rated power.

========= ==========================================================================================
rc        a constant source, which takes power back
ac1, ac3  single- and three-phase mains of 50 Hz through a bridge of diodes. They take no power
          back; above ``BRAKING_VOLTAGE`` a resistor takes it. The source's peak is 1.1 and pi/3 of
          the nominal voltage; any phase at the start
========= ==========================================================================================

Source: Mohan, Undeland & Robbins, Power Electronics (2003), chapter 5 (diode rectifiers) and
section 13-5 (braking). In gym-electric-motor 3.0.3 a link on mains has no rectifier: its voltage is
the sine itself, of either sign, which no converter with diodes withstands. Its AC3 feeds a machine
without a converter. Its RC supply takes the converter's current from the step before.
"""

from __future__ import annotations

import abc
import math
from typing import Any, NamedTuple

import jax.numpy as jnp

from ..machines.frames import Scalar

VOLTAGE_DROP = 0.05
"""r, the fraction by which the voltage drops at rated power"""
TIME_CONSTANT = 4e-3
"""T, s; as of gym-electric-motor's RC supply"""
MAINS_FREQUENCY = 50.0
"""Hz"""
BRAKING_VOLTAGE = 1.15
"""Voltage above which the braking resistor is switched on in proportion."""
BRAKING_GAIN = 10.0
"""Its current by R's at the same voltage."""


class Link(NamedTuple):
    """Memory of a supply."""

    voltage: Scalar
    """Voltage in parts of the nominal one"""
    phase: Any = ()
    """0..1, turns of the mains; nothing where there is none"""


class Supply(abc.ABC):
    """One kind of supply."""

    @abc.abstractmethod
    def begin(self, unit: Scalar) -> Link:
        """Begin at nominal voltage; ``unit`` uniform in [0, 1)."""

    @abc.abstractmethod
    def rate(self, voltage: Scalar, phase: Any, current: Scalar) -> Scalar:
        """Return dv/dt, 1/s, while the converters draw this power in parts of S, at v = 1."""

    def advance_phase(self, phase: Any, duration: float) -> Any:
        """Return the phase after ``duration`` s."""
        return phase


class RC(Supply):
    """A constant source."""

    def begin(self, unit: Scalar) -> Link:
        """Begin charged."""
        return Link(jnp.ones_like(unit))

    def rate(self, voltage: Scalar, phase: Any, current: Scalar) -> Scalar:
        """Charge towards the source's voltage."""
        return (1 - voltage - VOLTAGE_DROP * current) * (1 / TIME_CONSTANT)


class Rectifier(Supply):
    """Mains through diodes."""

    @abc.abstractmethod
    def source(self, phase: Scalar) -> Scalar:
        """Return the rectified voltage without load, in parts of the nominal one."""

    def begin(self, unit: Scalar) -> Link:
        """Begin charged, at any phase."""
        return Link(jnp.ones_like(unit), unit)

    def rate(self, voltage: Scalar, phase: Any, current: Scalar) -> Scalar:
        """Let current pass the diodes one way only."""
        passing = jnp.maximum(self.source(phase) - voltage, 0)
        braking = BRAKING_GAIN * jnp.maximum(voltage - BRAKING_VOLTAGE, 0)
        return (passing - braking - VOLTAGE_DROP * current) * (1 / TIME_CONSTANT)

    def advance_phase(self, phase: Any, duration: float) -> Any:
        """Turn the phase by the mains' frequency."""
        later = phase + MAINS_FREQUENCY * duration
        return later - jnp.floor(later)


class SinglePhase(Rectifier):
    """Two pulses a turn."""

    def source(self, phase: Scalar) -> Scalar:
        """Return a sine without its sign."""
        return 1.1 * jnp.abs(jnp.sin(2 * math.pi * phase))


class MainsOfThreePhases(Rectifier):
    """Six pulses a turn."""

    def source(self, phase: Scalar) -> Scalar:
        """Return the highest phase less the lowest.

        It is a sixth of a turn about each peak of a cosine.
        """
        sixths = 6 * phase
        return (math.pi / 3) * jnp.cos((math.pi / 3) * (sixths - jnp.floor(sixths + 0.5)))


SUPPLIES: dict[str, type[Supply]] = {"rc": RC, "ac1": SinglePhase, "ac3": MainsOfThreePhases}
"""Supplies by their names in ``card.choices``; ``ideal`` is none."""
