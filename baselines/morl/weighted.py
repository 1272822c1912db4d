"""Agents on a task with sampled preferences: one network that plays for any weights of objectives.

The weights are drawn anew in each training episode, shown to the network and multiplied onto the
reward (``core/preferences.py``; conditioned networks: Abels et al. 2019, arXiv:1809.07803). All
else is the plain agent. A weighted sum is best at points of the convex hull of a front, so that no
weights give the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.agent import CannotPlay, Progress
from rlbench_suite.core.arrays import FloatArray
from rlbench_suite.core.policy import View
from rlbench_suite.core.task import Task

from ..learning_agent import LearningAgent


def preferring(task: Task[Any, Any], agent: str) -> Any:
    """Return the task with sampled preferences.

    Raises:
        CannotPlay: the task cannot have them.
    """
    try:
        card = task.card.with_preferences()
    except ValueError as error:
        raise CannotPlay(f"{agent} samples weights of objectives. {error}") from None
    return card.build(difficulty=task.difficulty, dtype=task.dtype.name)


class WeightedPolicy(eqx.Module):
    """A policy of the task with preferences that plays the plain task for fixed weights."""

    policy: Any
    weights: FloatArray
    """float32 ``(k,)``"""

    @classmethod
    def for_card(cls, policy: Any) -> WeightedPolicy:
        """Return the policy for the weights of the plain task's card, scaled to a sum of 1."""
        weights = np.asarray(policy.flat.task.plain.card.weights, np.float32)
        return cls(policy, weights / weights.sum())

    def for_weights(self, weights: jax.Array) -> WeightedPolicy:
        """Return the policy for other weights."""
        return WeightedPolicy(self.policy, jnp.asarray(weights, jnp.float32))

    def initial(self, params: Any) -> Any:
        """Return the memory of the network."""
        return self.policy.initial(params)

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the network's action for the observation and the weights."""
        observation = self.policy.flat.task.show(view.observation, self.weights)
        action, memory = self.policy.act(memory, view._replace(observation=observation), key)
        return action, memory


class WeightedAgent(LearningAgent):
    """Base of agents that train on the task with preferences; the plain agent comes behind it."""

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if there is one objective, or the plain agent cannot play."""
        super().check(preferring(task, self.name))  # type: ignore[safe-super]

    def train(
        self,
        task: Task[Any, Any],
        *,
        seed: int,
        budget: str,
        hyperparameters: Mapping[str, Any] | None = None,
    ) -> Iterator[Progress | Any]:
        """Train on the train split of the task with preferences. Yields as the plain agent."""
        for event in super().train(
            preferring(task, self.name), seed=seed, budget=budget, hyperparameters=hyperparameters
        ):
            yield event if isinstance(event, Progress) else WeightedPolicy.for_card(event)

    def save(self, policy: WeightedPolicy, path: str) -> None:
        """Write the network as safetensors; its header names the task with preferences."""
        super().save(policy.policy, path)

    def load(self, path: str, task: Task[Any, Any], *, budget: str = "smoke") -> WeightedPolicy:
        """Read a saved policy. Errors as the plain agent."""
        return WeightedPolicy.for_card(
            super().load(path, preferring(task, self.name), budget=budget)
        )
