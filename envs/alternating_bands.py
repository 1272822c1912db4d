"""Train and test contexts that interleave and never overlap."""

from __future__ import annotations

import jax
import jax.numpy as jnp

MARGIN = 0.05
"""Fraction of a band left empty at each of its ends, so that rounding cannot carry a context across."""


def alternating_bands(unit: jax.Array, split: jax.Array, low: float, high: float, bands: int) -> jax.Array:
    """Map ``unit`` in [0, 1) to a parameter in [low, high) that is uniform over the bands of one split.

    The range is cut into ``bands`` (an even number of) equal bands. Training contexts lie in bands 0, 2, 4, ...,
    test contexts in 1, 3, 5, ...: a test asks for interpolation to values never trained on.
    """
    place = unit * (bands // 2)
    pair = jnp.floor(place)
    inside = MARGIN + (1 - 2 * MARGIN) * (place - pair)
    return low + (high - low) / bands * (2 * pair + split + inside)
