"""Distances of distributions from counts.

They are whole numbers, so that they do not depend on the order of the samples.

Samples are counted in bins of equal width: ``below[k]`` is the number of samples below the end of
bin k. The first Wasserstein distance of two samples of the same size is the area between their
distribution functions (Vallender 1974, doi:10.1137/1118101), here of the samples moved to the
beginnings of their bins. Samples beyond the ends count in the outermost bins.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

BINS = 64


class Grid(NamedTuple):
    """Bins of one quantity."""

    low: float
    width: float

    @property
    def ends(self) -> np.ndarray:
        """Ends of all bins but the last, ``(BINS - 1,)``."""
        return self.low + self.width * np.arange(1, BINS)


def count_below(values: jax.Array, grid: Grid) -> jax.Array:
    """Count the values below the end of each bin but the last, int32 ``(..., BINS - 1)``.

    ``values`` has the shape ``(..., samples)``.
    """
    ends = jnp.asarray(grid.ends, values.dtype)
    return (values[..., None, :] < ends[:, None]).sum(-1, dtype=jnp.int32)


def distance(counts: jax.Array, other_counts: jax.Array) -> jax.Array:
    """Return the first Wasserstein distance in bins times the number of samples, int32.

    Both arguments have the shape ``(..., BINS - 1)``.
    """
    return jnp.abs(counts - other_counts).sum(-1, dtype=jnp.int32)


def spread(counts: jax.Array, samples: jax.Array) -> jax.Array:
    """Return the distance to the nearest constant, in the unit of :func:`distance`.

    That is the mean distance from the median: the area between a distribution function and a step
    at the median.
    """
    return jnp.minimum(counts, samples - counts).sum(-1, dtype=jnp.int32)
