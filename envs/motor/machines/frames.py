"""Three-phase quantities as phases, and as vectors of the stator (alpha, beta) or rotating (d, q).

Amplitude-invariant: a vector's length is the amplitude of the phases it stands for. Components are
scalar fields, so that a batch is one array a field.

Source: Schroeder, Elektrische Antriebe - Regelung von Antriebssystemen (2015), space vectors.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp

Scalar = Any
"""A scalar array; on the host, where a state is described or drawn, a float."""

Values = tuple[Scalar, ...]

HALF_ROOT3 = math.sqrt(3) / 2


class Phases(NamedTuple):
    """Currents (A) or voltages (V) of three phases, 120 degrees apart."""

    a: Scalar
    b: Scalar
    c: Scalar


class AlphaBeta(NamedTuple):
    """A vector in the stator's coordinates, with alpha along phase a.

    It holds currents (A), voltages (V) or flux linkages (V s).
    """

    alpha: Scalar
    beta: Scalar


class DQ(NamedTuple):
    """A vector in rotating coordinates: currents (A), voltages (V) or flux linkages (V s)."""

    d: Scalar
    q: Scalar


def clarke(phases: Phases) -> AlphaBeta:
    """Turn phases into the stator's coordinates; what all three have in common is lost."""
    return AlphaBeta(
        (2 / 3) * phases.a - (1 / 3) * (phases.b + phases.c),
        (phases.b - phases.c) * (1 / (2 * HALF_ROOT3)),
    )


def inverse_clarke(vector: AlphaBeta) -> Phases:
    """Return the three phases, which add up to zero."""
    half, across = 0.5 * vector.alpha, HALF_ROOT3 * vector.beta
    return Phases(vector.alpha, across - half, -across - half)


def park(vector: AlphaBeta, angle: Scalar) -> DQ:
    """Return a vector of the stator in coordinates that are ahead of it by ``angle`` (rad)."""
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    return DQ(cos * vector.alpha + sin * vector.beta, cos * vector.beta - sin * vector.alpha)


def inverse_park(vector: DQ, angle: Scalar) -> AlphaBeta:
    """Invert :func:`park`."""
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    return AlphaBeta(cos * vector.d - sin * vector.q, sin * vector.d + cos * vector.q)


def wrap_angle(angle: Scalar) -> Scalar:
    """Return the same angle in [-pi, pi)."""
    return angle - 2 * math.pi * jnp.floor(angle * (1 / (2 * math.pi)) + 0.5)
