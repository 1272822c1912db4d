"""Compare fast computations with NumPy, for batches of every size.

They have the batch axis last, or run in one kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.numerics.batch_last import axis_numbers, batch_last, few_in_one_kernel
from rlbench_suite.numerics.bitset import flags_and_numbers
from rlbench_suite.numerics.reductions import sum_in_order


def double_and_sum(numbers: Any, index: Any, table: Any) -> tuple[Any, Any]:
    """Double the number at an index, and add up all; the table shifts them."""
    doubled = jnp.where(axis_numbers(4, index) == index, 2 * numbers, numbers)
    return doubled, sum_in_order(doubled) + sum_in_order(table)


@pytest.mark.parametrize("arranged", [batch_last, few_in_one_kernel])
@pytest.mark.parametrize("shape", [(), (2,), (3,), (2, 3)])
def test_batches_of_every_size_are_those_of_numpy(
    arranged: Callable[..., Any], shape: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 99, (*shape, 4)).astype(np.int32)
    index = rng.integers(0, 4, shape).astype(np.int32)
    table = np.arange(5, dtype=np.int32)
    run: Any = arranged(double_and_sum)
    for _ in shape:
        run = jax.vmap(run, in_axes=(0, 0, None))
    doubled, total = jax.jit(run)(numbers, index, table)
    expected = numbers * (1 + (np.arange(4) == index[..., None]))
    np.testing.assert_array_equal(doubled, expected)
    np.testing.assert_array_equal(total, expected.sum(-1) + 10)


@pytest.mark.parametrize("shape", [(), (2,), (5,), (2, 3)])
@pytest.mark.parametrize(("count", "words"), [(64, 2), (70, 3), (33, 2)])
def test_flags_are_followed_by_numbers(shape: tuple[int, ...], count: int, words: int) -> None:
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**32, (*shape, words), dtype=np.uint64).astype(np.uint32)
    numbers = rng.random((*shape, 40)).astype(np.float32)
    run: Any = lambda bits, numbers: flags_and_numbers(bits, count, numbers)  # noqa: E731
    for _ in shape:
        run = jax.vmap(run)
    flags = (bits[..., None] >> np.arange(32, dtype=np.uint32) & 1).reshape(*shape, -1)[..., :count]
    np.testing.assert_array_equal(jax.jit(run)(bits, numbers), np.concatenate([flags, numbers], -1))
    if len(shape) == 1:  # the same flags for all
        alike = jax.vmap(lambda numbers: flags_and_numbers(bits[0], count, numbers))(numbers)
        flags = np.broadcast_to(flags[0], (*shape, count))
        np.testing.assert_array_equal(alike, np.concatenate([flags, numbers], -1))
