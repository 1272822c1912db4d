"""Reductions over short axes, unrolled.

On CPUs, XLA reduces the last axes of a batch in a loop, one entry after another. Unrolled, the same
reduction becomes straight-line code over the whole batch. Do not use these for sums of floats,
whose bits depend on the order, nor for hundreds of entries, which take long to compile.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import jax
from jax import lax

from rlbench_suite.numerics.bit_exact import computed_once


def reduce_in_order(
    combine: Callable[[Any, Any], Any], array: jax.Array, axis: int = 0
) -> jax.Array:
    """Return the entries along an axis, combined from the first to the last."""

    def unrolled(array: jax.Array) -> jax.Array:
        entries = (
            lax.index_in_dim(array, i, axis, keepdims=False) for i in range(array.shape[axis])
        )
        result: jax.Array = functools.reduce(combine, entries)
        return result

    # If it were fused with its user, it would be computed again for every entry of the user's
    # result.
    return computed_once(unrolled)(array) if array.ndim > 1 else unrolled(array)


def sum_in_order(array: jax.Array, axis: int = 0) -> jax.Array:
    """Return the sum along an axis, in the array's own dtype."""
    return reduce_in_order(operator.add, array, axis)


def union(array: jax.Array, axis: int = 0) -> jax.Array:
    """Return the bitwise or along an axis; for booleans, True if any is true."""
    return reduce_in_order(operator.or_, array, axis)
