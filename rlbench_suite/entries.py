"""Reductions written out entry by entry.

On CPUs, XLA reduces the last axes of a batch in a loop, one entry after another. Written out, the same reduction
becomes straight code over the whole batch. Not for sums of floats, whose bits
depend on the order, nor for hundreds of entries, which take long to compile.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import jax
from jax import lax

from rlbench_suite.lanes import computed_once


def folded(combine: Callable[[Any, Any], Any], array: jax.Array, axis: int = 0) -> jax.Array:
    """The entries along an axis, combined from the first to the last."""

    def combined(array: jax.Array) -> jax.Array:
        entries = (lax.index_in_dim(array, i, axis, keepdims=False) for i in range(array.shape[axis]))
        result: jax.Array = functools.reduce(combine, entries)
        return result

    # Fused with what uses it, it would be computed anew for every entry of that.
    return computed_once(combined)(array) if array.ndim > 1 else combined(array)


def summed(array: jax.Array, axis: int = 0) -> jax.Array:
    """The sum along an axis, of the array's own dtype."""
    return folded(operator.add, array, axis)


def union(array: jax.Array, axis: int = 0) -> jax.Array:
    """The union of sets of bits along an axis; of flags, whether there is any."""
    return folded(operator.or_, array, axis)
