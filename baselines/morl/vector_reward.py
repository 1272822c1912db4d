"""Shared parts of agents that learn from vector rewards: a check of tasks, and a model of rewards.

A policy of this suite is not told its rewards. One that follows what an episode has earned so far
predicts them from the last step: observation, action, next observation. The network that does so
learns from the agent's training steps, and is exact where a reward can be seen in these three.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.task import Task

from ..flat_task import FlatTask, flatten_task
from ..networks import Linear, Moments, initial_layers, mlp


def check_vector_task(task: Task[Any, Any], agent: str) -> None:
    """Raise :class:`CannotPlay` unless one agent makes one discrete choice for several objectives.

    Args:
        task: the task.
        agent: name of the agent that learns, for the message.

    Raises:
        CannotPlay: the message says why.
    """
    card = task.card
    if not card.objectives:
        raise CannotPlay(f"{agent} learns from vector rewards, and {card.id} has one objective.")
    if card.host:
        raise CannotPlay(f"{agent} trains in one compiled program, but {card.id} runs on the host.")
    if card.agents > 1:
        raise CannotPlay(f"{agent} plays for one agent, and {card.id} has {card.agents}.")
    if not isinstance(task.action_space, spaces.Discrete):
        raise CannotPlay(f"{agent} plays Discrete actions, not {task.action_space}.")
    flatten_task(task, agent)


class TransitionMoments(NamedTuple):
    """Moments of what the model of rewards reads and predicts."""

    x: Moments
    reward: Moments

    @classmethod
    def initial(cls, features: int, objectives: int) -> TransitionMoments:
        """Return moments of no data."""
        return cls(Moments.initial(features), Moments.initial(objectives))

    def update(self, x: jax.Array, reward: jax.Array) -> TransitionMoments:
        """Return the moments with a batch of steps added."""
        return TransitionMoments(self.x.update(x), self.reward.update(reward))


class RewardModel(NamedTuple):
    """Network that predicts the reward of a step from observation, action and next observation."""

    layers: tuple[Linear, ...]

    @classmethod
    def initial(
        cls, generator: np.random.Generator, flat: FlatTask, objectives: int, units: int
    ) -> RewardModel:
        """Return a network with a hidden layer, which predicts about the mean reward."""
        widths = 2 * flat.features + flat.outputs, units, objectives
        return cls(initial_layers(generator, widths, 0.01))

    def _normalised(
        self, moments: TransitionMoments, x: jax.Array, action: jax.Array, next_x: jax.Array
    ) -> jax.Array:
        choice = jax.nn.one_hot(action, self.layers[0].weight.shape[0] - 2 * x.shape[-1])
        inputs = [moments.x.normalise(x), choice, moments.x.normalise(next_x)]
        return mlp(self.layers, jnp.concatenate(inputs, -1), jax.nn.relu)

    def predict(
        self, moments: TransitionMoments, x: jax.Array, action: jax.Array, next_x: jax.Array
    ) -> jax.Array:
        """Return the reward ``(..., k)`` of steps; observations are not normalised."""
        deviation = jnp.sqrt(moments.reward.scale)
        return moments.reward.mean + deviation * self._normalised(moments, x, action, next_x)

    def loss(
        self,
        moments: TransitionMoments,
        x: jax.Array,
        action: jax.Array,
        next_x: jax.Array,
        reward: jax.Array,
        counts: jax.Array,
    ) -> jax.Array:
        """Return the squared error of the normalised rewards, of the steps that count.

        A reward behind which the episode ends is of no use to a policy.
        """
        error = self._normalised(moments, x, action, next_x) - moments.reward.normalise(reward)
        return ((error**2).sum(-1) * counts).mean()
