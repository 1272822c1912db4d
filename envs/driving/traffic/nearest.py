"""Vehicles in the order of their distance."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ..arrays import Scalar


def sort_nearest(distance: Scalar, count: int) -> Scalar:
    """Return the indices of the ``count`` smallest distances, int32 ``(count,)``.

    Of equal distances the first one comes first.

    There may be fewer distances than that; the indices behind them are 0.
    """
    index = np.arange(distance.shape[0])
    is_nearer = (distance < distance[:, None]) | (
        (distance == distance[:, None]) & (index < index[:, None])
    )
    return (is_nearer.sum(1, dtype=jnp.int32) == np.arange(count)[:, None]).argmax(1)
