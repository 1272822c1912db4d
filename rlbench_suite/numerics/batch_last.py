"""Computations on integers, arranged for batches of every size on CPUs.

``jax.vmap`` puts the batch axis first. Then scalars of a batch meet short arrays along different
axes, and XLA computes such code on CPUs one entry after another. With the batch axis last, both lie
side by side. A single environment, which computes a batch of two, spends its time on launching
kernels; there the whole function is one kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.numerics.bit_exact import in_one_kernel

Result = TypeVar("Result")
_SINGLE_ENV_BATCH = 2
"""Size of the batch in which a single environment computes."""


def batch_last(function: Callable[..., Result]) -> Callable[..., Result]:
    """Return a function of integers, computed for the whole batch at once under ``jax.vmap``.

    The function must also take arrays with more axes behind their own, and give such arrays. So it
    indexes and reduces first axes only, and numbers the entries of an axis by :func:`axis_numbers`.
    """

    def compute(size: int, batched: Any, args: Any) -> Any:
        def with_batch_last(leaf: Any, has_batch: bool) -> jax.Array:
            if has_batch:
                return jnp.moveaxis(leaf, 0, -1)
            return jnp.broadcast_to(jnp.asarray(leaf)[..., None], (*jnp.shape(leaf), size))

        result = _compile_for(function, size)(*jax.tree.map(with_batch_last, args, batched))
        return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, 0), result)

    return _with_batch_rule(function, compute)


def few_in_one_kernel(function: Callable[..., Result]) -> Callable[..., Result]:
    """Return a function of integers that a single environment computes in one kernel.

    The function has no scatters.
    """

    def compute(size: int, batched: Any, args: Any) -> Any:
        axes = jax.tree.map(lambda has_batch: 0 if has_batch else None, batched)
        return _compile_for(jax.vmap(function, in_axes=axes, axis_size=size), size)(*args)

    return _with_batch_rule(function, compute)


def axis_numbers(count: int, like: Any) -> np.ndarray:
    """Return the numbers from 0 on for an axis before those of an array: ``(count, 1, ...)``."""
    return np.arange(count, dtype=np.int32).reshape(count, *(1,) * np.ndim(like))


def _compile_for(function: Callable[..., Result], size: int) -> Callable[..., Result]:
    return in_one_kernel(function) if size <= _SINGLE_ENV_BATCH else function


def _with_batch_rule(
    function: Callable[..., Result], rule: Callable[[int, Any, Any], Any]
) -> Callable[..., Result]:
    batchable = jax.custom_batching.custom_vmap(function)

    @batchable.def_vmap
    def _(size: int, batched: Any, *args: Any) -> tuple[Any, Any]:
        result = rule(size, tuple(batched), args)
        return result, jax.tree.map(lambda _: True, result)

    return batchable
