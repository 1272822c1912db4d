"""Stripes of 0.1 m in which contexts of a split place their landmarks."""

from typing import Any

import jax
import numpy as np


def stripes_in_use(task: Any, split: int, field: str, edge: float) -> set[int]:
    """Return the stripes, counted from x = ``-edge``, that 2,000 contexts of a split use."""
    keys = jax.random.split(jax.random.key(5), 2000)
    params = jax.jit(jax.vmap(task.sample_params, (0, None)))(keys, np.int32(split))
    x = np.array([place.x for place in getattr(params, field)], np.float64)
    stripes = np.floor((x + edge) / 0.1).astype(int)
    return set(stripes.ravel().tolist())
