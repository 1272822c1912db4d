"""Starts of a file's own ``task``."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from rlbench_suite.core.episode import ContextSource, begin, seed_key

TEST = ContextSource(np.int32(1), np.int32(-1))


@pytest.fixture(scope="module")
def starts(task: Any) -> Any:
    """Starts of 500 seeds of the test split."""
    seeds = np.stack([seed_key(s) for s in range(500)])
    return jax.device_get(jax.jit(jax.vmap(lambda s: begin(task, s, 0, TEST)[0]))(seeds))


@pytest.fixture(scope="module")
def start(starts: Any) -> Any:
    """The first of them."""
    return jax.tree.map(lambda leaf: leaf[0], starts)
