"""Computations on short arrays with the batch axis last, where it fills vector instructions.

``jax.vmap`` puts the batch axis first. Then scalars of a batch meet short arrays along different axes, and XLA computes
such code on CPUs one entry after another. With the batch axis last, both lie side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

Result = TypeVar("Result")


def batch_last(function: Callable[..., Result]) -> Callable[..., Result]:
    """Return the function of arrays, computed for the whole batch at once under ``jax.vmap``.

    The function must also take arrays with more axes behind their own, and give such arrays. So it indexes and reduces
    first axes only, and numbers the entries of an axis by :func:`numbered`.
    """
    called = jax.custom_batching.custom_vmap(function)

    @called.def_vmap
    def _(size: int, batched: Any, *args: Any) -> tuple[Any, Any]:
        def last(part: Any, own: bool) -> jax.Array:
            if own:
                return jnp.moveaxis(part, 0, -1)
            return jnp.broadcast_to(jnp.asarray(part)[..., None], (*jnp.shape(part), size))

        result = function(*jax.tree.map(last, args, tuple(batched)))
        return jax.tree.map(lambda part: jnp.moveaxis(part, -1, 0), result), jax.tree.map(lambda _: True, result)

    return called


def numbered(count: int, like: Any) -> np.ndarray:
    """Return the numbers from 0 on for an axis before those of an array: ``(count, 1, ...)``."""
    return np.arange(count, dtype=np.int32).reshape(count, *(1,) * np.ndim(like))
