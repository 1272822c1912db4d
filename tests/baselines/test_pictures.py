"""Test PPO on pictures.

The tests check what the encoder computes, that its inputs are right, and that it learns.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from toy_tasks import Chain, Picture

from rlbench_suite.adapters.rollout import Stream, play
from rlbench_suite.baselines.flat_task import flatten_task
from rlbench_suite.baselines.networks import CODE_SIZE, PATCHES, Encoder
from rlbench_suite.baselines.ppo import ppo, recurrent
from rlbench_suite.baselines.ppo.agent import PPO
from rlbench_suite.baselines.training import begin_episodes
from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.episode import seed_key
from rlbench_suite.core.registry import card

SMALL = {
    "num_envs": 32, "num_steps": 16, "minibatches": 2, "hidden": (32,), "memory": 16, "reports": 2,
    "learning_rate": 5e-3,
}  # fmt: skip
TASK = Picture()


@pytest.mark.parametrize("size", [(8, 16, 3), (9, 13, 1)])
def test_the_encoder_is_a_convolution_with_strides_as_long_as_its_kernels(
    size: tuple[int, ...],
) -> None:
    """XLA's own convolutions, padded below and right."""
    rng = np.random.default_rng(0)
    encoder = jax.tree.map(
        lambda leaf: rng.normal(size=leaf.shape).astype(np.float32), Encoder.initial(rng, size)
    )
    pictures = rng.integers(0, 256, (5, *size)).astype(np.uint8)
    x = pictures / np.float32(255)
    for (side, channels), layer in zip(PATCHES, encoder.layers, strict=True):
        kernel = layer.weight.reshape(side, side, -1, channels)
        padding = [(0, -length % side) for length in x.shape[1:3]]
        x = jax.lax.conv_general_dilated(
            x, kernel, (side, side), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jnp.maximum(x + layer.bias, 0)
    expected = jnp.maximum(x.reshape(5, -1) @ encoder.last.weight + encoder.last.bias, 0)
    codes = encoder(jnp.asarray(pictures))
    assert codes.shape == (5, CODE_SIZE)
    # Sums of hundreds, in another order.
    np.testing.assert_allclose(codes, expected, rtol=1e-4, atol=1e-3)


def test_a_picture_stays_whole_and_the_rest_is_a_row() -> None:
    flat = flatten_task(TASK, "ppo", images=True)
    assert (flat.features, flat.image_shape) == (1, (14, 14, 3))
    observation = {
        "asked": jnp.ones(1),
        "picture": jnp.arange(588, dtype=jnp.uint8).reshape(14, 14, 3),
    }
    np.testing.assert_array_equal(flat.observe(observation)[0], [[1]])
    np.testing.assert_array_equal(flat.image_in(observation), [observation["picture"]])
    with_pixels = flatten_task(TASK, "dqn")
    assert (with_pixels.features, with_pixels.image_shape, with_pixels.image_in(observation)) == (
        589,
        None,
        None,
    )
    alone = flatten_task(card("Jigsaw-v0", observation="pixels").build(), "ppo", images=True)
    assert (alone.features, alone.image_shape) == (0, (36, 36, 3))
    assert flatten_task(Chain(), "ppo", images=True).image_shape is None
    two = Picture()
    two.observation_space = spaces.Dict(
        {"left": TASK.observation_space["picture"], "right": TASK.observation_space["picture"]}
    )
    with pytest.raises(CannotPlay, match="at most one image, and this observation has 2"):
        PPO().check(two)


@pytest.mark.parametrize("recurrent", ["none", "gru"])
def test_pictures_are_learned_from(recurrent: str, tmp_path: Path) -> None:
    """An agent that reads the pictures has more than 3.6 of four answers right.

    Chance and the mean of the pixels have one right, and an agent that does not read the colour
    asked for at most two and a half.
    """
    agent = PPO(**SMALL, recurrent=recurrent, total_steps=60_000)
    *_, policy = agent.train(TASK, seed=0, budget="smoke")
    record = play(TASK, policy, range(100))
    assert record.total.mean() > 3.6
    path = str(tmp_path / "policy.safetensors")
    agent.save(policy, path)
    np.testing.assert_array_equal(
        play(TASK, agent.load(path, TASK), range(100)).actions, record.actions
    )


@pytest.mark.parametrize("kind", [ppo, recurrent])
def test_seeds_vmapped_learn_what_each_learns_alone(kind: Any) -> None:
    config = PPO(**SMALL, total_steps=1, recurrent="gru" if kind is recurrent else "none").config(
        TASK, "smoke"
    )
    flat = flatten_task(TASK, "ppo", images=True)

    def run(networks: Any, seed: jax.Array, stream: Stream) -> Any:
        training = kind.train_chunk(flat, config, kind.start(flat, config, networks, seed, stream))[
            0
        ]
        return (training.base if kind is recurrent else training).networks

    runs = [
        (
            kind.Networks.initial(flat, config, seed),
            seed_key(seed),
            begin_episodes(TASK, seed_key(seed), config.num_envs),
        )
        for seed in range(2)
    ]
    together = jax.jit(jax.vmap(run))(*jax.tree.map(lambda *leaves: np.stack(leaves), *runs))
    alone = jax.jit(run)
    for i in range(2):
        for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(alone(*runs[i])), strict=True):
            # Sums in another order, over an update.
            np.testing.assert_allclose(a[i], b, rtol=1e-3, atol=1e-4)
