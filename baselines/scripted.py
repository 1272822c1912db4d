"""Agents that do not learn: ``random``, ``noop`` and ``reference``, the family's own player."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.episode import action_sizes
from rlbench_suite.core.policy import Policy, View, no_memory, reference_player
from rlbench_suite.core.task import Task
from rlbench_suite.numerics.bit_exact import computed_once
from rlbench_suite.numerics.bitset import BitSet
from rlbench_suite.numerics.keys import uniform


class Uniform(eqx.Module):
    """A policy that samples legal actions uniformly, or uniformly between the bounds of a Box."""

    space: spaces.Space[Any] = eqx.field(static=True)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return a random action."""
        space = self.space
        if isinstance(space, spaces.Box):
            share = jax.random.uniform(key, space.shape, space.dtype)
            return jnp.minimum(space.low + share * (space.high - space.low), space.high), memory
        sizes = action_sizes(space)
        shares = uniform(jax.random.key_data(key), len(sizes))
        if view.action_mask is None:
            action = jnp.floor(shares * np.array(sizes, np.float32)).astype(jnp.int32)
        else:
            masks = jnp.split(view.action_mask, np.cumsum(sizes)[:-1])
            # Otherwise XLA repeats the choice for every entry that reads the action.
            choice = computed_once(nth_legal)
            action = jnp.stack(
                [choice(mask, share) for mask, share in zip(masks, shares, strict=True)]
            )
        return action.reshape(space.shape), memory


def nth_legal(mask: jax.Array, share: jax.Array) -> jax.Array:
    """Return the legal action at the fraction ``share`` in [0, 1) of the list of legal actions."""
    legal = BitSet.from_mask(mask)
    rank = jnp.floor(share * legal.size).astype(jnp.int32)
    return jnp.where(rank < legal.size, legal.select(rank), 0)


class Constant(eqx.Module):
    """A policy that takes the same action at every step."""

    action: np.ndarray

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the action."""
        return jnp.asarray(self.action), memory


class Scripted:
    """An agent with a fixed policy, so that there is nothing to train or to save."""

    name: str
    learns = False

    def policy(self, task: Task[Any, Any]) -> Policy:
        """Return the policy for a task."""
        raise NotImplementedError

    def check(self, task: Task[Any, Any]) -> None:
        """Accept every task."""

    def hyperparameters(self, task: Task[Any, Any], budget: str) -> dict[str, Any]:
        """Return an empty dict: there are no hyperparameters."""
        return {}

    def train(
        self,
        task: Task[Any, Any],
        *,
        seed: int,
        budget: str,
        hyperparameters: Mapping[str, Any] | None = None,
    ) -> Iterator[Policy]:
        """Yield the policy."""
        yield self.policy(task)

    def save(self, policy: Policy, path: str) -> None:
        """Do nothing: there are no weights."""


class RandomAgent(Scripted):
    """The agent ``random``, which samples legal actions uniformly.

    Its normalised score is about 0, or below.
    """

    name = "random"

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if the actions have no uniform distribution."""
        if isinstance(task.action_space, spaces.Box) and not task.action_space.is_bounded():
            raise CannotPlay(
                f"random draws actions uniformly, but {task.action_space} has no bounds."
            )

    def policy(self, task: Task[Any, Any]) -> Policy:
        """Return a uniform policy over the task's action space."""
        return Uniform(task.action_space)


class NoopAgent(Scripted):
    """The agent ``noop``, which always takes the task's ``noop_action``."""

    name = "noop"

    def policy(self, task: Task[Any, Any]) -> Policy:
        """Return a policy that always takes the task's ``noop_action``."""
        return Constant(task.noop_action())


class ReferenceAgent(Scripted):
    """The agent ``reference``: the family's controller, solver or scripted player.

    Its normalised score is 1.
    """

    name = "reference"

    def policy(self, task: Task[Any, Any]) -> Policy:
        """Return the player that the card names."""
        return reference_player(task)
