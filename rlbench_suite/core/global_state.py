"""The global state: what a central critic sees in training, one vector for all agents.

PettingZoo's worlds show it (``state()``, ``state_space``), and agents that train together read it
(``mappo``, ``qmix``). A trained policy never does.

A task may have a global state of its own (:meth:`Task.global_state`). Otherwise it is the flat
observations of all agents one after another, and behind them what is privileged: a critic may see
that too, and with it a value is more exact. Action masks are no part of it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.episode import (
    Episode,
    Role,
    Step,
    central_info,
    draw_key,
    shown_observation,
)
from rlbench_suite.core.task import Task
from rlbench_suite.numerics.bit_exact import exact_vmap
from rlbench_suite.numerics.process import CACHED_TASKS, on_the_cpu, precision, refuse_after_fork


def global_state_space(task: Task[Any, Any]) -> spaces.Box:
    """Return the space of the global state: a Box ``(n,)`` of the task's dtype.

    Raises:
        TypeError: an observation holds something else than a Box or a MultiDiscrete.
    """
    if task.global_state_space is not None:
        return task.global_state_space
    space = task.observation_space
    subspaces = (
        [space[name] for name in sorted(space)] if isinstance(space, spaces.Dict) else [space]
    )
    bounds = [_bounds(task, subspace) for subspace in subspaces]
    privileged = task.privileged_space

    def join(entries: list[np.ndarray], last: np.ndarray) -> np.ndarray:
        return np.concatenate([flat_rows(entries, task.card.agents, np).ravel(), last.ravel()])

    nothing = np.zeros(0)
    return task.box(
        join([low for low, _ in bounds], nothing if privileged is None else privileged.low),
        join([high for _, high in bounds], nothing if privileged is None else privileged.high),
    )


def _bounds(task: Task[Any, Any], space: spaces.Space[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest values of an entry of an observation."""
    if isinstance(space, spaces.Box):
        return space.low, space.high
    if isinstance(space, spaces.MultiDiscrete):
        return space.start, space.start + space.nvec - 1
    raise TypeError(
        f"The observation of {task.card.id} holds {space}, which is neither a Box nor a "
        "MultiDiscrete."
    )


def global_state(task: Task[Any, Any], step: Step) -> jax.Array:
    """Return the global state after a step, ``(n,)`` of the task's dtype; traced."""
    if "global_state" in step.info:
        state: jax.Array = step.info["global_state"]
        return state
    vectors = [flat_rows(jax.tree.leaves(step.observation), task.card.agents, jnp).ravel()]
    if task.privileged_space is not None:
        vectors.append(step.info["privileged"].ravel())
    return jnp.concatenate([vector.astype(task.dtype) for vector in vectors])


def flat_rows(leaves: list[Any], agents: int, numpy: Any) -> Any:
    """Return the numbers of an observation with a row for each agent, NumPy or JAX."""
    return numpy.concatenate(
        [leaf.reshape(agents, math.prod(leaf.shape) // agents) for leaf in leaves], -1
    )


def global_state_of(task: Task[Any, Any], episode: Episode) -> np.ndarray:
    """Return the global state of an episode that is a value: a running or a restored one."""
    refuse_after_fork()
    with on_the_cpu(), precision(task):
        return np.asarray(_compiled(task)(episode))


@lru_cache(CACHED_TASKS)
def _compiled(task: Task[Any, Any]) -> Any:
    """Return the compiled function from an episode to its global state."""

    def look(episode: Episode) -> jax.Array:
        seed, index, t, _, params, state, *_ = episode
        observation = shown_observation(
            task, state, draw_key(seed, index, t, Role.OBSERVATION), params
        )
        nothing = jnp.zeros(())
        info = central_info(task, state, params)
        return global_state(task, Step(observation, nothing, nothing, nothing, info))

    def look_exactly(episode: Episode) -> jax.Array:
        return exact_vmap(look, jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], episode))[0]

    return jax.jit(look_exactly)
