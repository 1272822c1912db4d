"""Test bit sets, keys and the random player.

Members by rank must follow the definition, keys must equal JAX's, and the random player must agree
with chance.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from rlbench_suite.baselines.scripted import Uniform, nth_legal
from rlbench_suite.core.policy import View
from rlbench_suite.numerics.bitset import BitSet, unpack_bits
from rlbench_suite.numerics.keys import bits, fold_in, normal, uniform


def masks_of(size: int) -> np.ndarray:
    """Return sets of every density, the empty and the full one among them."""
    rng = np.random.default_rng(size)
    masks = rng.random((300, size)) < rng.random((300, 1))
    masks[0], masks[1] = False, True
    return masks


@pytest.mark.parametrize("size", [1, 2, 31, 32, 33, 72, 512, 513, 729, 4096, 20_000])
def test_every_member_has_its_rank(size: int) -> None:
    mask = masks_of(size)[-1]
    there = np.flatnonzero(mask)

    @jax.jit
    def list_members(mask: jax.Array) -> tuple[jax.Array, jax.Array]:
        members = BitSet.from_mask(mask)
        return members.size, jax.vmap(members.select)(np.arange(there.size, dtype=np.int32))

    count, members_by_rank = list_members(mask)
    assert count == there.size
    np.testing.assert_array_equal(members_by_rank, there)


@pytest.mark.parametrize(("count", "width"), [(1, 1), (72, 1), (6, 12), (5, 32), (9, 18), (3, 7)])
def test_bits_are_unpacked_in_order(count: int, width: int) -> None:
    masks = np.random.default_rng(width).random((300, count, width)) < 0.5
    words = (
        (masks.astype(np.uint64) << np.arange(width, dtype=np.uint64))
        .sum(axis=-1, dtype=np.uint64)
        .astype(np.uint32)
    )
    unpacked = jax.jit(jax.vmap(lambda words: unpack_bits(list(words), width)))(words)
    np.testing.assert_array_equal(unpacked, masks.reshape(len(masks), -1))


@pytest.mark.parametrize("size", [1, 4, 32, 50, 72, 729, 4096])
def test_the_legal_action_at_a_share_is_that_of_the_definition(size: int) -> None:
    masks = masks_of(size)
    shares = np.random.default_rng(1).random(len(masks), np.float32)
    shares[:10] = np.nextafter(np.float32(1), np.float32(0))
    rank = np.cumsum(masks, axis=1)
    expected = np.argmax(rank > np.floor(shares[:, None] * rank[:, -1:].astype(np.float32)), axis=1)
    np.testing.assert_array_equal(jax.jit(jax.vmap(nth_legal))(masks, shares), expected)


def test_the_random_player_is_uniform_over_legal_actions() -> None:
    draws = 40_000
    mask = np.zeros(100, bool)
    mask[[0, 3, 31, 32, 33, 64, 95, 99]] = True
    player = Uniform(spaces.Discrete(100))

    def act(key: jax.Array) -> jax.Array:
        return player.act((), View(None, jnp.asarray(mask), None, None), key)[0]

    actions = jax.jit(jax.vmap(act))(jax.random.split(jax.random.key(0), draws))
    counts = np.bincount(actions, minlength=100)
    assert counts[~mask].sum() == 0
    expected = draws / mask.sum()
    # 99.9 % of chi-square with 7 degrees of freedom.
    assert ((counts[mask] - expected) ** 2 / expected).sum() < 24.3


def test_keys_are_those_of_jax() -> None:
    numbers = np.random.default_rng(2).integers(0, 2**32, 500, np.uint32)
    seeds = np.random.default_rng(3).integers(0, 2**32, (500, 2), np.uint32)
    keys = jax.jit(jax.vmap(fold_in))(seeds, numbers)
    jax_keys = jax.vmap(
        lambda seed, n: jax.random.key_data(jax.random.fold_in(jax.random.wrap_key_data(seed), n))
    )
    np.testing.assert_array_equal(keys, jax_keys(seeds, numbers))


@pytest.mark.parametrize("count", [1, 2, 12])
@pytest.mark.parametrize(
    ("function", "jax_function"),
    [(bits, jax.random.bits), (uniform, jax.random.uniform), (normal, jax.random.normal)],
)
def test_draws_are_those_of_jax(function: Any, jax_function: Any, count: int) -> None:
    """To the bit: alone, in a batch, and in a batch of batches."""
    seeds = np.random.default_rng(3).integers(0, 2**32, (20, 25, 2), np.uint32)

    def sample_by_jax(seed: jax.Array) -> jax.Array:
        return jax_function(jax.random.wrap_key_data(seed), (count,))

    def sample(seed: jax.Array) -> jax.Array:
        return function(seed, count)

    np.testing.assert_array_equal(jax.jit(sample)(seeds[0, 0]), jax.jit(sample_by_jax)(seeds[0, 0]))
    np.testing.assert_array_equal(
        jax.jit(jax.vmap(sample))(seeds[0]), jax.jit(jax.vmap(sample_by_jax))(seeds[0])
    )
    twice = jax.jit(jax.vmap(jax.vmap(sample)))(seeds)
    np.testing.assert_array_equal(twice, jax.jit(jax.vmap(jax.vmap(sample_by_jax)))(seeds))
