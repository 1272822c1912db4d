"""Support the tests of puzzles that are written token by token.

There are batches of instances, and tokens played out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from fill_tasks import stack_instances

from rlbench_suite.envs.puzzles.shared.puzzle_task import Params
from rlbench_suite.envs.puzzles.shared.writing import WritingState, WritingTask


def write_tokens(
    task: WritingTask, instances: Sequence[Any], tokens: Sequence[Sequence[int]]
) -> tuple[Any, Any, Any]:
    """Write tokens until the episode is over or they end.

    Return the returns, the successes, and whether the episodes are over.
    """
    longest = max(map(len, tokens))
    padded = np.array([[*some, *[-1] * (longest - len(some))] for some in tokens], np.int32)
    key = jax.random.key(0)

    def play(instance: Any, actions: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        params = Params(instance, actions)

        def step(state: WritingState, action: jax.Array) -> tuple[WritingState, jax.Array]:
            live = (action >= 0) & ~task.terminal(state, key, params)
            after = task.transition(state, action, key, params)
            reward = jnp.where(live, task.reward(state, action, after, key, params), 0)
            return jax.tree.map(lambda new, old: jnp.where(live, new, old), after, state), reward

        last, rewards = jax.lax.scan(step, task.initial(key, params), actions)
        return rewards.sum(), task.info(last, params)["success"], task.terminal(last, key, params)

    return jax.tree.map(np.asarray, jax.jit(jax.vmap(play))(stack_instances(instances), padded))


def observations_after(
    task: WritingTask, instances: Sequence[Any], written: Sequence[int]
) -> np.ndarray:
    """Return observations of each instance once so many tokens are written."""
    key = jax.random.key(0)

    def see(instance: Any, count: jax.Array) -> jax.Array:
        return task.observation(WritingState(count, jnp.bool_(False)), key, Params(instance, count))

    return np.asarray(
        jax.jit(jax.vmap(see))(stack_instances(instances), np.array(written, np.int32))
    )


def check_rewards(
    task: WritingTask, instances: Sequence[Any], tokens: Sequence[Sequence[int]], seed: int
) -> None:
    """Right tokens earn 2 and succeed; a wrong one ends the episode with what was earned."""
    total, success, over = write_tokens(task, instances, tokens)
    assert success.all()
    assert over.all()
    np.testing.assert_allclose(total, 2, atol=1e-4)

    rng = np.random.default_rng(seed)
    places = [int(rng.integers(len(right))) for right in tokens]
    count = int(task.action_space.n)
    spoilt = [[*right] for right in tokens]
    for wrong, place in zip(spoilt, places, strict=True):
        wrong[place] = (wrong[place] + 1 + int(rng.integers(count - 1))) % count
    total, success, over = write_tokens(task, instances, spoilt)
    assert not success.any()
    assert over.all()
    expected = [place / len(right) for place, right in zip(places, tokens, strict=True)]
    np.testing.assert_allclose(total, expected, atol=1e-5)

    halves = [right[: len(right) // 2] for right in tokens]
    _, success, over = write_tokens(task, instances, halves)
    assert not success.any()
    assert not over.any()
