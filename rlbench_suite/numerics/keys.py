"""Compute JAX's random numbers faster in batches on CPUs, with the same bits.

There are forms of ``jax.random.fold_in``, ``bits``, ``uniform`` and ``normal``.

On CPUs, JAX runs the rounds of Threefry in a loop, which stores the result of each round in memory.
In this file they are unrolled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rlbench_suite.numerics.bit_exact import computed_once

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


@jax.jit
def fold_in(key: jax.Array, number: jax.Array) -> jax.Array:
    """Return the key data that ``jax.random.fold_in`` gives, uint32 ``(2,)``.

    The argument is the data of a Threefry key.

    Threefry-2x32 with 20 rounds: Salmon et al. 2011, doi:10.1145/2063384.2063405.
    """
    schedule = key[0], key[1], key[0] ^ key[1] ^ _PARITY
    x0 = schedule[0]
    x1 = jnp.asarray(number).astype(jnp.uint32) + schedule[1]
    for i in range(5):
        for rotation in _ROTATIONS[i % 2]:
            x0 += x1
            x1 = x0 ^ (x1 << np.uint32(rotation) | x1 >> np.uint32(32 - rotation))
        x0 += schedule[(i + 1) % 3]
        x1 += schedule[(i + 2) % 3] + np.uint32(i + 1)
    return jnp.stack([x0, x1])


def bits(key: jax.Array, count: int) -> jax.Array:
    """Sample what ``jax.random.bits`` samples from the key with this data: uint32 ``(count,)``."""
    return _sample(key, count, lambda bits: bits)


def uniform(key: jax.Array, count: int) -> jax.Array:
    """Sample what ``jax.random.uniform`` samples from the key with this data.

    The numbers are float32 ``(count,)`` in [0, 1).
    """
    return _sample(key, count, _fraction)


def normal(key: jax.Array, count: int) -> jax.Array:
    """Sample what ``jax.random.normal`` samples from the key with this data.

    The numbers are float32 ``(count,)``.
    """
    low = np.nextafter(np.float32(-1), np.float32(0))

    def quantile(bits: jax.Array) -> jax.Array:
        return np.sqrt(np.float32(2)) * lax.erf_inv(
            jnp.maximum(low, _fraction(bits) * (1 - low) + low)
        )

    return _sample(key, count, quantile)


def standard_normal(key: jax.Array, count: int, dtype: Any) -> jax.Array:
    """Sample what ``jax.random.normal`` samples from a key, in a dtype: shape ``(count,)``."""
    if dtype == np.float64:
        return jax.random.normal(key, (count,), dtype)
    return normal(jax.random.key_data(key), count)


def _fraction(bits: jax.Array) -> jax.Array:
    # A number in [1, 2) with these bits behind the point, minus one.
    return lax.bitcast_convert_type(bits >> np.uint32(9) | np.uint32(0x3F800000), jnp.float32) - 1


def _sample(key: jax.Array, count: int, transform: Callable[[jax.Array], jax.Array]) -> jax.Array:
    numbers = np.arange(count, dtype=np.uint32)

    def sample_numbers(key: jax.Array, numbers: np.ndarray) -> jax.Array:
        x0, x1 = fold_in(key, numbers)
        return transform(x0 ^ x1)

    @jax.custom_batching.custom_vmap
    def sample(key: jax.Array) -> jax.Array:
        return sample_numbers(key, numbers)

    @sample.def_vmap
    def _(size: int, batched: list[bool], keys: jax.Array) -> tuple[jax.Array, bool]:
        # The batch axis comes last, because it fills vector instructions.
        return sample_numbers(keys.T, numbers[:, None]).T, True

    return computed_once(sample)(key)
