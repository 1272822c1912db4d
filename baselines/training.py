"""Code that all learning agents share: first episodes, cached programs, and the loop over chunks of training."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.adapters.rollout import Stream, first_episodes
from rlbench_suite.agent import Progress
from rlbench_suite.keys import fold_in
from rlbench_suite.task import Task


class Returns(NamedTuple):
    """Returns of the episodes that ended: the sum of their scalar returns, and how many ended."""

    total: Any
    episodes: Any


def begin_episodes(task: Task[Any, Any], seed: np.ndarray, num_envs: int) -> Stream:
    """Start the environments of a run on the train split. ``seed`` is key data; the environments use one half of it."""
    return first_episodes(task, np.asarray(_environment_keys(seed, num_envs)), "train")


@partial(jax.jit, static_argnums=1)
def _environment_keys(seed: jax.Array, num_envs: int) -> jax.Array:
    key, _ = jax.random.split(jax.random.wrap_key_data(seed))  # the algorithm draws from the other half
    return jax.vmap(partial(fold_in, jax.random.key_data(key)))(jnp.arange(num_envs))


def get_compiled(programs: Any, *description: Any) -> tuple[Any, float]:
    """Return the programs for a description, and the seconds it took to compile them: 0 if they were cached."""
    before = programs.cache_info().misses
    found = programs(*description)
    return found, found.seconds if programs.cache_info().misses > before else 0.0


def train_in_chunks(
    chunk: Callable[[Any], tuple[Any, Returns]], running: Any, chunks: int, steps: int, compile_seconds: float
) -> Generator[Progress, None, Any]:
    """Train for ``chunks`` chunks of ``steps`` steps, yield progress after each, and return the last training state."""
    begun = time.perf_counter()
    for done in range(1, chunks + 1):
        running, ended = chunk(running)
        total, episodes = float(ended.total), int(ended.episodes)
        yield Progress(
            steps=done * steps,
            total_steps=chunks * steps,
            seconds=time.perf_counter() - begun,
            compile_seconds=compile_seconds,
            episode_return=total / episodes if episodes else float("nan"),
        )
    return running
