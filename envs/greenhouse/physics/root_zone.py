"""Water that plants can use in a substrate under irrigation, and what they do without it.

The substrate is a bucket: irrigation fills it, transpiration empties it, and what exceeds its
capacity drains. Plants transpire less once 40 % of its water are gone: the stress coefficient of
Allen et al. 1998, Crop evapotranspiration, FAO Irrigation and Drainage Paper 56, equation 84, with
the depletion factor of tomatoes (table 22).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from rlbench_suite.core.arrays import Float

CAPACITY = 8.0
"""kg/m2 of water that plants can use; chosen, of the size of stone wool slabs"""
DEPLETION = 0.4
"""Part of the water that plants use without stress"""


class Drained(NamedTuple):
    """Water after it has drained."""

    water: Float
    drain: Float
    """kg/m2"""


def stress(water: Any) -> Any:
    """Return the part of its transpiration without stress that a crop keeps, 1 without stress."""
    return jnp.clip(water * (1 / ((1 - DEPLETION) * CAPACITY)), 0.0, 1.0)


def drain(water: Any) -> Drained:
    """Drain what the substrate does not hold."""
    excess = jnp.maximum(0.0, water - CAPACITY)
    return Drained(water - excess, excess)
