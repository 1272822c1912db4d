"""Provide the code that all learning agents share.

It runs episodes on the train split, caches programs, and loops over chunks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.adapters.rollout import Stream, first_episodes, step_stream
from rlbench_suite.core.agent import Progress
from rlbench_suite.core.arrays import Float, Int
from rlbench_suite.core.episode import ContextSource, Step, scalar_return
from rlbench_suite.core.task import Task
from rlbench_suite.numerics.keys import fold_in

if TYPE_CHECKING:
    from .flat_task import FlatTask


class Returns(NamedTuple):
    """Returns of the episodes that ended: the sum of their scalar returns, and how many ended."""

    total: Float
    """Sum of the undiscounted scalar returns: a number, or float32 ``()`` inside a program."""
    episodes: Int
    """Number of episodes: a number, or int32 ``()`` inside a program."""


def begin_episodes(task: Task[Any, Any], seed: np.ndarray, num_envs: int) -> Stream:
    """Start the environments of a run on the train split.

    ``seed`` is key data; the environments use one half of it.
    """
    return first_episodes(task, np.asarray(_environment_keys(seed, num_envs)), "train")


@partial(jax.jit, static_argnums=1)
def _environment_keys(seed: jax.Array, num_envs: int) -> jax.Array:
    key, _ = jax.random.split(jax.random.wrap_key_data(seed))
    return jax.vmap(partial(fold_in, jax.random.key_data(key)))(jnp.arange(num_envs))


def update_key(seed: jax.Array, updates: jax.Array) -> jax.Array:
    """Return the key of an update.

    It comes from the half of the seed's key data that the environments do not use.
    """
    _, key = jax.random.split(jax.random.wrap_key_data(seed))
    return jax.random.fold_in(key, updates)


def step_episodes(
    flat: FlatTask, stream: Stream, action: jax.Array
) -> tuple[Stream, Step, Returns]:
    """Take one step in every environment; episodes that end begin again.

    Args:
        flat: the task.
        stream: running episodes on the train split.
        action: actions of networks ``(environments, A, components)``.

    Returns:
        The running episodes; the step, with the observation before any reset; and the returns of
        episodes that ended.
    """
    task = flat.task
    limit = np.int32(task.card.horizon)
    source = ContextSource.parse("train", task)
    stream, step, totals = step_stream(
        task, stream, jax.vmap(flat.env_action)(action), limit, source
    )
    over = step.terminated | step.truncated
    return stream, step, Returns(jnp.where(over, scalar_return(task, totals), 0).sum(), over.sum())


def get_compiled(programs: Any, *description: Any) -> tuple[Any, float]:
    """Return the programs for a description, and the seconds it took to compile them.

    The seconds are 0 if the programs were cached.
    """
    misses = programs.cache_info().misses
    compiled = programs(*description)
    if programs.cache_info().misses > misses:
        return compiled, compiled.seconds
    return compiled, 0.0


def train_in_chunks(
    chunk: Callable[[Any], tuple[Any, Returns]],
    training: Any,
    chunks: int,
    steps: int,
    compile_seconds: float,
) -> Generator[Progress, None, Any]:
    """Train for ``chunks`` chunks of ``steps`` steps.

    Yield progress after each chunk, and return the last training state.
    """
    start = time.perf_counter()
    for done in range(1, chunks + 1):
        training, returns = chunk(training)
        total = float(returns.total)
        episodes = int(returns.episodes)
        yield Progress(
            steps=done * steps,
            total_steps=chunks * steps,
            seconds=time.perf_counter() - start,
            compile_seconds=compile_seconds,
            episode_return=total / episodes if episodes else float("nan"),
        )
    return training
