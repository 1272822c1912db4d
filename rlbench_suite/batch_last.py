"""Computations on integers, arranged for batches of every size on CPUs.

``jax.vmap`` puts the batch axis first. Then scalars of a batch meet short arrays along different axes, and XLA computes
such code on CPUs one entry after another. With the batch axis last, both lie side by side. A single environment, which
computes a batch of two, spends its time on launching kernels; there the whole function is one kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.bit_exact import in_one_kernel

Result = TypeVar("Result")
_FEW = 2
"""Size of the batch in which a single environment computes."""


def batch_last(function: Callable[..., Result]) -> Callable[..., Result]:
    """Return a function of integers, computed for the whole batch at once under ``jax.vmap``.

    The function must also take arrays with more axes behind their own, and give such arrays. So it indexes and reduces
    first axes only, and numbers the entries of an axis by :func:`numbered`.
    """

    def last(size: int, batched: Any, args: Any) -> Any:
        def moved(part: Any, own: bool) -> jax.Array:
            if own:
                return jnp.moveaxis(part, 0, -1)
            return jnp.broadcast_to(jnp.asarray(part)[..., None], (*jnp.shape(part), size))

        result = _whole(function, size)(*jax.tree.map(moved, args, batched))
        return jax.tree.map(lambda part: jnp.moveaxis(part, -1, 0), result)

    return _batched(function, last)


def few_in_one_kernel(function: Callable[..., Result]) -> Callable[..., Result]:
    """Return a function of integers, without scatters, that a single environment computes in one kernel."""

    def mapped(size: int, batched: Any, args: Any) -> Any:
        axes = jax.tree.map(lambda own: 0 if own else None, batched)
        return _whole(jax.vmap(function, in_axes=axes, axis_size=size), size)(*args)

    return _batched(function, mapped)


def numbered(count: int, like: Any) -> np.ndarray:
    """Return the numbers from 0 on for an axis before those of an array: ``(count, 1, ...)``."""
    return np.arange(count, dtype=np.int32).reshape(count, *(1,) * np.ndim(like))


def _whole(function: Callable[..., Result], size: int) -> Callable[..., Result]:
    return in_one_kernel(function) if size <= _FEW else function


def _batched(function: Callable[..., Result], rule: Callable[[int, Any, Any], Any]) -> Callable[..., Result]:
    called = jax.custom_batching.custom_vmap(function)

    @called.def_vmap
    def _(size: int, batched: Any, *args: Any) -> tuple[Any, Any]:
        result = rule(size, tuple(batched), args)
        return result, jax.tree.map(lambda _: True, result)

    return called
