"""Fused batches done block by block are what they are whole."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import Stream, in_blocks, open_stream, step_stream
from rlbench_suite.core.episode import ContextSource, seed_key
from rlbench_suite.core.registry import card


@pytest.mark.parametrize("size", [1, 3_999, 4_000, 4_096, 8_000, 12_345, 65_536])
def test_every_entry_is_there_once_and_in_its_place(size: int) -> None:
    block_sizes = []

    def function(batch: Any) -> Any:
        block_sizes.append(len(batch[0]))
        return batch[0] + 1, batch[1] * 2

    numbers = np.arange(size)
    pairs = np.arange(6.0 * size).reshape(size, 2, 3)
    more, doubled = jax.jit(lambda batch: in_blocks(function, batch))((numbers, pairs))
    np.testing.assert_array_equal(more, numbers + 1)
    np.testing.assert_array_equal(doubled, (2 * pairs).astype(np.float32))
    assert block_sizes[0] == size if size < 4_000 else block_sizes[0] <= 4_100
    assert size < 4_000 or block_sizes[0] // 16 % 2 == 1, "a block fills an odd number of lines"
    assert -(-size // block_sizes[0]) * block_sizes[0] < size * 1.05, (
        "and little is computed for nothing"
    )


def test_streams_go_on_as_they_do_whole() -> None:
    """A task of integers, because programs compiled for speed may round differently."""
    task = card("rlsuite/Twiddle-v0").build()
    limit = np.int32(7)
    source = ContextSource.parse("train", task)
    size = 4_100
    stream = jax.jit(lambda seeds: open_stream(task, seeds, source))(
        np.stack([seed_key(i) for i in range(size)])
    )

    def run(batch: Any) -> Any:
        def body(carry: Any, t: jax.Array) -> Any:
            stream, ends = carry
            actions = (stream.episodes.seed[:, 0] + t.astype(np.uint32)) % np.uint32(
                task.action_space.n
            )
            stream, step, _ = step_stream(task, stream, actions.astype(np.int32), limit, source)
            return (stream, ends + (step.terminated | step.truncated)), None

        return jax.lax.scan(body, batch, jnp.arange(20))[0]

    undivided: tuple[Stream, jax.Array] = jax.jit(run)((stream, jnp.zeros(size, np.int32)))
    blocks = jax.jit(lambda batch: in_blocks(run, batch))((stream, jnp.zeros(size, np.int32)))
    assert int(undivided[1].min()) >= 2
    jax.tree.map(np.testing.assert_array_equal, undivided, blocks)
