"""Stored episodes, which of them lie on the front of all returns, and what to ask for next.

These are the parts of Pareto Conditioned Networks (Reymond, Bargiacchi & Nowe 2022,
arXiv:2204.05036) that need no network; ``pcn.py`` has the rest. A *command* is a return and a
number of steps, which an episode is asked for.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.arrays import FloatArray, IntArray


class Episodes(NamedTuple):
    """Episodes of T steps at most; what lies behind an end is arbitrary. Axis 0 is the batch."""

    x: FloatArray
    """Observations, not normalised, ``(n, T, features)``."""
    action: IntArray
    """``(n, T)``"""
    reward: FloatArray
    """``(n, T, k)``; 0 behind an end."""
    length: IntArray
    """``(n,)``"""

    @property
    def returns(self) -> jax.Array:
        """Undiscounted vector returns, ``(n, k)``."""
        return self.reward.sum(1)


def command_at(reward: jax.Array, length: jax.Array, t: jax.Array) -> jax.Array:
    """Return what episodes returned from a step on, and their steps from there, ``(n, k + 1)``.

    Args:
        reward: ``(n, T, k)``; 0 behind an end.
        length: ``(n,)``
        t: number of the step in each episode, ``(n,)``.
    """
    later = jnp.arange(reward.shape[1]) >= t[:, None]
    to_come = (reward * later[..., None]).sum(1)
    return jnp.concatenate([to_come, (length - t)[:, None]], -1)


def next_command(command: jax.Array, reward: jax.Array) -> jax.Array:
    """Return the command ``(..., k + 1)`` after a step: its reward had, and one step less."""
    to_come = command[..., :-1] - reward
    steps = jnp.maximum(command[..., -1:] - 1, 1)
    return jnp.concatenate([to_come, steps], -1)


def is_on_front(returns: jax.Array) -> jax.Array:
    """Return which returns ``(n, k)`` no other dominates; of equal ones the first only."""
    at_least = (returns[:, None] >= returns[None]).all(-1)
    equal = (returns[:, None] == returns[None]).all(-1)
    earlier = jnp.arange(len(returns))[:, None] < jnp.arange(len(returns))
    return ~((at_least & ~equal) | (equal & earlier)).any(0)


def crowding_distance(points: jax.Array) -> jax.Array:
    """Return how far apart the neighbours of each point are, ``(n,)``.

    It is the sum over objectives of the distance between the next smaller and the next larger
    value, in parts of the objective's range, and 1 at both ends (Deb et al. 2002,
    doi:10.1109/4235.996017).
    """
    span = jnp.maximum(jnp.ptp(points, axis=0), 1e-8)
    order = jnp.argsort(points, axis=0)
    ordered = jnp.take_along_axis(points, order, 0)
    gaps = jnp.pad((ordered[2:] - ordered[:-2]) / span, ((1, 1), (0, 0)), constant_values=1.0)
    ranks = jnp.argsort(order, axis=0)
    return jnp.take_along_axis(gaps, ranks, 0).sum(-1)


def closeness(returns: jax.Array, crowding: float) -> jax.Array:
    """Return how much each return ``(n, k)`` is worth keeping, ``(n,)``.

    It is minus the distance to the front, in parts of each objective's range, and twice that where
    returns are crowded. Those that are equal to an earlier one come behind it.
    """
    front = is_on_front(returns)
    scaled = returns / jnp.maximum(jnp.ptp(returns, axis=0), 1e-8)
    squares = ((scaled[:, None] - scaled[None]) ** 2).sum(-1)
    distance = jnp.sqrt(jnp.where(front, squares, jnp.inf).min(1))
    earlier = jnp.arange(len(returns))[:, None] < jnp.arange(len(returns))
    repeated = ((squares == 0) & earlier).any(0)
    distance += 1e-5 * repeated
    return -distance * jnp.where(crowding_distance(returns) <= crowding, 2, 1)


def choose_commands(episodes: Episodes, count: int, key: jax.Array) -> jax.Array:
    """Return commands ``(count, k + 1)``, each a little better than an episode of the front.

    In one objective more is asked for, by up to a standard deviation of the front, and two steps
    less in length.
    """
    which_key, objective_key, noise_key = jax.random.split(key, 3)
    returns = episodes.returns
    front = is_on_front(returns)
    which = jax.random.categorical(which_key, jnp.where(front, 0.0, -jnp.inf), shape=(count,))
    share = front / front.sum()
    mean = share @ returns
    deviation = jnp.sqrt(share @ (returns - mean) ** 2)
    objectives = returns.shape[1]
    objective = jax.random.randint(objective_key, (count,), 0, objectives)
    noise = jax.random.uniform(noise_key, (count, 1))
    more = jax.nn.one_hot(objective, objectives) * deviation * noise
    steps = jnp.maximum(episodes.length[which] - 2, 1)
    return jnp.concatenate([returns[which] + more, steps[:, None]], -1)
