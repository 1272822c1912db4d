"""Keys are a function of (seed, episode, step, role): equal to JAX's own, never repeated."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest

from rlbench_suite.core.episode import Role, draw_key, seed_key


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**32 - 1])
def test_a_seed_is_the_key_of_jax(seed: int) -> None:
    np.testing.assert_array_equal(seed_key(seed), jax.random.key_data(jax.random.key(seed)))


def test_seeds_wider_than_32_bits_are_all_different() -> None:
    seeds = [0, 1, 2**32, 2**32 + 1, 2**63, 2**64 - 1]
    assert len({seed_key(seed).tobytes() for seed in seeds}) == len(seeds)


def test_no_two_draws_share_a_key() -> None:
    draw = jax.jit(lambda seed, index, t, role: jax.random.key_data(draw_key(seed, index, t, role)))
    keys = [
        np.asarray(draw(seed_key(seed), np.int32(index), np.int32(t), role)).tobytes()
        for seed, index, t, role in itertools.product((0, 1), (0, 1, 2), (0, 1, 2, 499), Role)
    ]
    assert len(set(keys)) == len(keys)
