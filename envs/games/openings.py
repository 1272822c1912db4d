"""Openings of a game: moves that are made before an episode begins."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.task import Split


def sample_opening(
    openings: Mapping[Split, np.ndarray], bits: jax.Array, split: jax.Array
) -> jax.Array:
    """Return an opening of a split, int32 ``(moves,)``.

    Args:
        openings: those of each split, int32 ``(n, moves)``.
        bits: random bits, uint32 ``()``.
        split: number of the split.
    """
    train, test = (
        jnp.asarray(openings[s])[(bits % np.uint32(len(openings[s]))).astype(int)] for s in Split
    )
    return jnp.where(split == Split.TEST, test, train)
