"""Periodic waveforms of unit amplitude, and waves within bounds that begin at a given value.

======== =========================================== ================== ==================
shape    over one turn                               steepest, a turn   inverse
======== =========================================== ================== ==================
sinus    sin(2 pi x)                                 2 pi               rising or falling
triangle from -1 to 1 and back, each in half a turn  4                  rising or falling
sawtooth from -1 to 1, then down at once             2, taken as 4      one
step     1 for half a turn, then -1                  taken as 8         anywhere in a half
======== =========================================== ================== ==================

Waveforms: scipy.signal's ``sawtooth`` (width 1 and 1/2) and ``square``. A wave that jumps
turns as slowly as if it were steeper, so that there is time to follow it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp

from ..machines.frames import Scalar

MIN_AMPLITUDE = 0.2
"""Least amplitude, in parts of the largest: a smaller wave would turn too fast."""


class Shape(NamedTuple):
    """One waveform."""

    value: Callable[[Scalar], Scalar]
    """-1..1 at a phase in [0, 1)"""
    phase: Callable[[Scalar, Scalar], Scalar]
    """A phase (turns) with a given value, by a branch uniform in [0, 1)"""
    steepness: float
    """Change of the value a turn, at most"""
    jumps: bool = False


def _sinus_phase(value: Scalar, branch: Scalar) -> Scalar:
    rising = jnp.arcsin(value) * (1 / (2 * math.pi))
    phase = jnp.where(branch < 0.5, rising, 0.5 - rising)
    return phase - jnp.floor(phase)


def _triangle_phase(value: Scalar, branch: Scalar) -> Scalar:
    rising = 0.25 * (value + 1)
    return jnp.where(branch < 0.5, rising, 1 - rising)


SHAPES = {
    "sinus": Shape(lambda phase: jnp.sin(2 * math.pi * phase), _sinus_phase, 2 * math.pi),
    "triangle": Shape(lambda phase: 1 - jnp.abs(4 * phase - 2), _triangle_phase, 4),
    "sawtooth": Shape(
        lambda phase: 2 * phase - 1, lambda value, branch: 0.5 * (value + 1), 4, True
    ),
    "step": Shape(
        lambda phase: jnp.where(phase < 0.5, 1.0, -1.0).astype(phase.dtype),
        lambda value, branch: 0.5 * branch + jnp.where(value > 0, 0.0, 0.5),
        8,
        True,
    ),
}


class Wave(NamedTuple):
    """A waveform about a middle, in any unit."""

    middle: Scalar
    amplitude: Scalar
    phase: Scalar
    """0..1, turns"""
    advance: Scalar
    """Turns a step: the frequency in parts of the sampling frequency"""

    def at(self, shape: Shape) -> Scalar:
        """Return the value."""
        return self.middle + self.amplitude * shape.value(self.phase)

    def shift(self, steps: float = 1.0) -> Wave:
        """Return the wave one step later, or a part of one."""
        phase = self.phase + steps * self.advance
        return self._replace(phase=phase - jnp.floor(phase))


def wave_through(
    name: str,
    value: Scalar,
    bounds: tuple[float, float],
    slope: Scalar,
    jump: float,
    size: Scalar,
    height_unit: Scalar,
    branch: Scalar,
) -> Wave:
    """Draw a wave that begins at a value and stays within bounds.

    Args:
        name: of :data:`SHAPES`.
        value: within the bounds.
        bounds: lowest and highest.
        slope: largest change of the wave in a step (for a wave that jumps: between jumps).
        jump: largest change at once.
        size: place of the amplitude, uniform in [0, 1), between ``MIN_AMPLITUDE`` of the largest
            and the largest.
        height_unit: position of the middle, uniform in [0, 1), among the middles that value and
            bounds allow.
        branch: where in a turn, uniform in [0, 1).
    """
    shape, (low, high) = SHAPES[name], bounds
    max_amplitude = 0.5 * min(high - low, jump) if shape.jumps else 0.5 * (high - low)
    amplitude = max_amplitude * (MIN_AMPLITUDE + (1 - MIN_AMPLITUDE) * size)
    if name == "step":  # the value is one of the two levels; the bounds may decide which
        below, above = value - low, high - value
        amplitude = jnp.minimum(amplitude, 0.5 * jnp.maximum(below, above))
        upper = jnp.where(
            jnp.minimum(below, above) >= 2 * amplitude, height_unit < 0.5, below > above
        )
        height = jnp.where(upper, 1.0, -1.0).astype(amplitude.dtype)
        middle = value - height * amplitude
    else:
        lowest = jnp.maximum(low + amplitude, value - amplitude)
        highest = jnp.minimum(high - amplitude, value + amplitude)
        middle = lowest + (highest - lowest) * height_unit
        height = jnp.clip((value - middle) / amplitude, -1, 1)
    phase = shape.phase(height, branch)
    return Wave(middle, amplitude, phase, slope / (shape.steepness * amplitude))
