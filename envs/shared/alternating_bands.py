"""Train and test contexts that interleave and never overlap.

Their random numbers differ between the splits.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

MARGIN = 0.05
"""Fraction of a band left empty at each of its ends.

So rounding cannot carry a context across.
"""


def alternating_bands(
    unit: jax.Array, split: jax.Array, low: float, high: float, bands: int
) -> jax.Array:
    """Map ``unit`` in [0, 1) to a parameter in [low, high), uniform over the bands of a split.

    The range is cut into ``bands`` (an even number of) equal bands. Training contexts lie in bands
    0, 2, 4, ..., test contexts in 1, 3, 5, ...: a test asks for interpolation to values never
    trained on.
    """
    pairs = unit * (bands // 2)
    pair = jnp.floor(pairs)
    inside = MARGIN + (1 - 2 * MARGIN) * (pairs - pair)
    return low + (high - low) / bands * (2 * pair + split + inside)


def split_bits(bits: jax.Array, split: jax.Array) -> jax.Array:
    """Return random bits that differ between the splits, uint32.

    Those of the train split are the given ones.

    Equal seeds give equal bits on both splits. A task whose splits divide only something that is
    rarely seen samples from these, so that equal seeds show different episodes. They are as uniform
    as the given ones.
    """
    return bits ^ jnp.asarray(split, jnp.uint32) * np.uint32(0x9E3779B9)


def split_units(units: jax.Array, split: jax.Array) -> jax.Array:
    """Return random numbers in [0, 1) that differ between the splits.

    Those of the train split are the given ones.

    They are to numbers what :func:`split_bits` is to bits.
    """
    return jnp.where(split == 1, jnp.where(units < 0.5, units + 0.5, units - 0.5), units)
