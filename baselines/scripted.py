"""Players that learn nothing: ``random``, ``noop``, and ``reference``, the family's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.agent import CannotPlay
from rlbench_suite.bit_exact import computed_once
from rlbench_suite.bitset import BitSet
from rlbench_suite.episode import action_sizes
from rlbench_suite.keys import uniform
from rlbench_suite.policy import Policy, View, reference_player
from rlbench_suite.task import Task


class Uniform(eqx.Module):
    """Every legal action equally likely; uniform between the bounds of a Box."""

    space: spaces.Space[Any] = eqx.field(static=True)

    def initial(self, params: Any) -> tuple[()]:
        """No memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """A random action."""
        space = self.space
        if isinstance(space, spaces.Box):
            share = jax.random.uniform(key, space.shape, space.dtype)
            return jnp.minimum(space.low + share * (space.high - space.low), space.high), memory
        sizes = action_sizes(space)
        shares = uniform(jax.random.key_data(key), len(sizes))
        if view.action_mask is None:
            chosen = jnp.floor(shares * np.array(sizes, np.float32)).astype(jnp.int32)
        else:
            parts = jnp.split(view.action_mask, np.cumsum(sizes)[:-1])
            choice = computed_once(nth_legal)  # or each entry of what looks at the action would choose anew
            chosen = jnp.stack([choice(part, share) for part, share in zip(parts, shares, strict=True)])
        return chosen.reshape(space.shape), memory


def nth_legal(mask: jax.Array, share: jax.Array) -> jax.Array:
    """The legal action that lies at ``share`` in [0, 1) of the row of legal ones."""
    legal = BitSet.from_mask(mask)
    rank = jnp.floor(share * legal.size).astype(jnp.int32)
    return jnp.where(rank < legal.size, legal.select(rank), 0)


class Constant(eqx.Module):
    """The same action at every step."""

    action: np.ndarray

    def initial(self, params: Any) -> tuple[()]:
        """No memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """The action."""
        return jnp.asarray(self.action), memory


class Scripted:
    """An agent whose policy is known beforehand: it plays every task, and has nothing to train or to save."""

    name: str
    learns = False

    def policy(self, task: Task[Any, Any]) -> Policy:
        """The policy for a task."""
        raise NotImplementedError

    def check(self, task: Task[Any, Any]) -> None:
        """It can play every task."""

    def hyperparameters(self, task: Task[Any, Any], budget: str) -> dict[str, Any]:
        """None."""
        return {}

    def train(self, task: Task[Any, Any], *, seed: int, budget: str) -> Iterator[Policy]:
        """Yields the policy."""
        yield self.policy(task)

    def save(self, policy: Policy, path: str) -> None:
        """Nothing: there are no weights."""


class RandomAgent(Scripted):
    """The agent ``random``: uniform over legal actions. Its score is 0 on the normalised scale."""

    name = "random"

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` where there is no uniform distribution over the actions."""
        if isinstance(task.action_space, spaces.Box) and not task.action_space.is_bounded():
            raise CannotPlay(f"random draws actions uniformly, and {task.action_space} has no bounds.")

    def policy(self, task: Task[Any, Any]) -> Policy:
        """Uniform over the task's action space."""
        return Uniform(task.action_space)


class NoopAgent(Scripted):
    """The agent ``noop``: the task's own idea of doing nothing."""

    name = "noop"

    def policy(self, task: Task[Any, Any]) -> Policy:
        """The task's ``noop_action`` for ever."""
        return Constant(task.noop_action())


class ReferenceAgent(Scripted):
    """The agent ``reference``: the family's controller, solver or scripted player. Its score is 1."""

    name = "reference"

    def policy(self, task: Task[Any, Any]) -> Policy:
        """The player that the card names."""
        return reference_player(task)
