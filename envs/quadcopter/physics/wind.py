"""Wind with gusts: a mean wind and Dryden turbulence at low altitude.

Turbulence has three independent parts: along the mean wind, across it, and vertical. White noise
drives a shaping filter for each. The mean wind carries turbulence past a vehicle (Taylor's frozen
field), so a scale length ``L`` becomes the time constant ``L / speed``:

* along: first order, autocorrelation ``s^2 exp(-|t| / T)``;
* across, vertical: second order, ``s sqrt(T) (1 + sqrt(3) T s') / (1 + T s')^2`` in the Laplace
  variable ``s'``, autocorrelation ``s^2 exp(-|t| / T) (1 - |t| / (2 T))``.

Steps are exact in distribution for every length, because a filter's decay and the covariance of its
noise have closed forms. Standard deviations ``s`` and scale lengths follow from the wind and the
height above ground.

Source: MIL-F-8785C (1980), Flying Qualities of Piloted Airplanes, secs. 3.7.1 (Dryden's spectra)
and 3.7.3 (low altitude: mean wind by height, scale lengths, intensities); also in MIL-HDBK-1797
(1997). For quadcopters: Waslander & Wang 2009, doi:10.2514/6.2009-1983.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .rigid_body import Scalar

FOOT = 0.3048
"""m"""
HEIGHT = 10.0
"""feet: height of the flight above ground, the lowest for which the specification holds."""
ROUGHNESS = 0.15
"""feet: roughness length of the terminal flight phases."""
_GROUND = 0.177 + 0.000823 * HEIGHT
LENGTH = HEIGHT / _GROUND**1.2 * FOOT
"""m: scale length of turbulence along and across the mean wind."""
VERTICAL_LENGTH = HEIGHT * FOOT
"""m: scale length of vertical turbulence."""
VERTICAL_INTENSITY = 0.1 * math.log(20 / ROUGHNESS) / math.log(HEIGHT / ROUGHNESS)
"""Standard deviation of vertical turbulence, relative to the mean wind's speed.

It is a tenth of the wind at 20 feet.
"""
INTENSITY = VERTICAL_INTENSITY / _GROUND**0.4
"""Standard deviation of turbulence along and across the mean wind, relative to its speed."""
NORMALS = 5
"""Normal random numbers that a step needs."""
_TERMS = 12
"""Terms of the power series in :func:`_moment`.

They are exact to rounding for steps up to a fifth of a time constant.
"""


class Wind(NamedTuple):
    """The mean wind."""

    speed: Scalar
    """m/s, at the height of flight"""
    heading: Scalar
    """rad: direction that it blows to, from the world's x axis towards y."""


class Gusts(NamedTuple):
    """States of the shaping filters, m/s.

    A second-order filter is two first-order lags in series.
    """

    along: Scalar
    across: Scalar
    across_lagged: Scalar
    vertical: Scalar
    vertical_lagged: Scalar


def stationary_gusts(wind: Wind, normals: jax.Array) -> Gusts:
    """Sample turbulence of a wind that has blown for long, from five normal numbers ``(5,)``.

    The numbers are independent.
    """
    n1, n2, n3, n4, n5 = normals
    strong, weak = INTENSITY * wind.speed, VERTICAL_INTENSITY * wind.speed
    # The variances of a filter's two lags are s^2 / 2 and s^2 / 4, the covariance s^2 / 4.
    first = math.sqrt(0.5)
    second, third = math.sqrt(0.125), math.sqrt(0.125)
    return Gusts(
        along=strong * n1,
        across=strong * first * n2,
        across_lagged=strong * (second * n2 + third * n3),
        vertical=weak * first * n4,
        vertical_lagged=weak * (second * n4 + third * n5),
    )


def blow(gusts: Gusts, wind: Wind, normals: jax.Array, duration: float) -> Gusts:
    """Return the turbulence ``duration`` seconds later, from five normal numbers ``(5,)``.

    The numbers are independent. Without wind there is no turbulence.
    """
    n1, n2, n3, n4, n5 = normals
    strong, weak = INTENSITY * wind.speed, VERTICAL_INTENSITY * wind.speed
    slow, quick = duration / LENGTH * wind.speed, duration / VERTICAL_LENGTH * wind.speed
    across, across_lagged = _second_order(gusts.across, gusts.across_lagged, slow, strong, n2, n3)
    vertical, vertical_lagged = _second_order(
        gusts.vertical, gusts.vertical_lagged, quick, weak, n4, n5
    )
    return Gusts(
        along=jnp.exp(-slow) * gusts.along + strong * jnp.sqrt(2 * _moment(0, slow)) * n1,
        across=across,
        across_lagged=across_lagged,
        vertical=vertical,
        vertical_lagged=vertical_lagged,
    )


def _second_order(
    lag: Scalar, lagged: Scalar, passed: Scalar, intensity: Scalar, first: Scalar, second: Scalar
) -> tuple[Scalar, Scalar]:
    """Return both lags of a filter after ``passed`` time constants, from two normal numbers.

    Their noise has the covariances ``s^2`` times the integrals of ``exp(-2 x)``, ``x exp(-2 x)``
    and ``x^2 exp(-2 x)``. The Cholesky factor is written out.
    """
    decay = jnp.exp(-passed)
    m0, m1, m2 = (_moment(power, passed) for power in range(3))
    root = jnp.sqrt(m0)
    shared = m1 / jnp.maximum(root, 1e-30)
    independent = jnp.sqrt(jnp.maximum(m2 - shared * shared, 0))
    return (
        decay * lag + intensity * root * first,
        decay * (lagged + passed * lag) + intensity * (shared * first + independent * second),
    )


def _moment(power: int, end: Scalar) -> Scalar:
    """Return the integral of ``x^power exp(-2 x)`` from 0 to ``end``.

    The function sums the series of the incomplete gamma function, whose terms are all positive. For
    a short step the closed form would subtract numbers that agree to the last digits of single
    precision.
    """
    total = 1.0
    for term in range(_TERMS, 0, -1):
        total = 1 + 2 * end / (power + 1 + term) * total
    return jnp.exp(-2 * end) * end ** (power + 1) / (power + 1) * total


def air_velocity(gusts: Gusts, wind: Wind) -> tuple[Scalar, Scalar, Scalar]:
    """Return the velocity of the air in the world frame (m/s)."""
    along = wind.speed + gusts.along
    across = _output(gusts.across, gusts.across_lagged)
    cosine, sine = jnp.cos(wind.heading), jnp.sin(wind.heading)
    return (
        along * cosine - across * sine,
        along * sine + across * cosine,
        _output(gusts.vertical, gusts.vertical_lagged),
    )


def _output(lag: Scalar, lagged: Scalar) -> Scalar:
    """Return the output of a second-order filter; its zero mixes its two lags."""
    return math.sqrt(3) * lag + (1 - math.sqrt(3)) * lagged
