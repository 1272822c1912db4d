"""Grey mould, Botrytis cinerea: how fast it spreads in a canopy, and what rots.

Temperature and dampness set the speed.

Growth by temperature and water activity is the cardinal model with inflection (Rosso et al. 1993)
in both, fitted to Botrytis cinerea on grapes: Gropin model 37,
https://github.com/RakipInitiative/ModelRepository. Water activity is relative humidity where mould
and air are in balance; leaves in a canopy are damper than the sensor above them. How the infected
part spreads and rots is a logistic equation with constants that are chosen, not measured.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..physics.tomato_crop import DAY
from ..weather.records import STEP

Scalar = Any

MIN_GROWTH_TEMPERATURE = -1.39
"""degC: no growth below this"""
BEST_GROWTH_TEMPERATURE = 21.4
"""degC: most growth"""
MAX_GROWTH_TEMPERATURE = 29.1
"""degC: no growth above this"""
MIN_ACTIVITY = 0.895
"""Water activity below which nothing grows"""
BEST_ACTIVITY = 0.988
"""Water activity of most growth"""
MAX_ACTIVITY = 1.0
"""Water activity from which nothing grows"""
CANOPY_DAMPNESS = 6.0
"""%: relative humidity at the leaves over that of the air; chosen"""
SPREAD_RATE = 1.0
"""1/day: growth of a small infected part in the best conditions; chosen"""
ROT_RATE = 0.1
"""1/day: of what is infected; chosen"""


def growth(temperature: Scalar, humidity: Scalar) -> Scalar:
    """Return the growth of mould, 0 to 1, of its growth in the best conditions.

    Args:
        temperature: of the air, degC.
        humidity: relative, of the air, %.
    """
    # Drops on leaves are no worse than damp leaves.
    activity = jnp.minimum(0.01 * (humidity + CANOPY_DAMPNESS), BEST_ACTIVITY)
    return _cardinal(
        temperature, MIN_GROWTH_TEMPERATURE, BEST_GROWTH_TEMPERATURE, MAX_GROWTH_TEMPERATURE
    ) * _cardinal(activity, MIN_ACTIVITY, BEST_ACTIVITY, MAX_ACTIVITY)


def spread_mould(infected: Scalar, temperature: Scalar, humidity: Scalar) -> Scalar:
    """Return the infected part of leaves and fruit half an hour later.

    It is the exact solution of the logistic equation.

    The infected part grows into the healthy one at ``SPREAD_RATE``, and rots at ``ROT_RATE``. The
    part p of all that is left obeys dp/dt = (spread - rot) p (1 - p).
    """
    factor = jnp.exp((STEP / DAY) * (SPREAD_RATE * growth(temperature, humidity) - ROT_RATE))
    return infected * factor / (1.0 + infected * (factor - 1.0))


def rotten_part(infected: Scalar) -> Scalar:
    """Return the part of all leaves and fruit that rots and is taken out within half an hour."""
    return (STEP / DAY * ROT_RATE) * infected


def _cardinal(x: Scalar, minimum: float, optimum: float, maximum: float) -> Scalar:
    """Return 1 at the best value, 0 at the least and the most, and outside of them."""
    inside = (x - maximum) * (x - minimum) ** 2
    width = optimum - minimum
    scale = width * (width * (x - optimum) - (optimum - maximum) * (optimum + minimum - 2 * x))
    return jnp.where((x > minimum) & (x < maximum), inside / scale, 0.0)
