"""Show a task to networks: one vector of numbers for each agent.

All agents share the same weights.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.episode import Step, action_sizes
from rlbench_suite.core.global_state import global_state, global_state_space
from rlbench_suite.core.task import Task


class FlatTask:
    """A task with flat observations and actions.

    Each of its ``A`` agents has ``features`` inputs and ``outputs`` outputs.

    Args:
        task: the task.
        learner: name of the agent, for error messages.
        images: keep an image, a uint8 Box (height, width, channels), apart. Otherwise its pixels
            are features.

    Raises:
        CannotPlay: a space of the task does not fit; the message says which one and why.
    """

    def __init__(self, task: Task[Any, Any], learner: str, *, images: bool = False) -> None:
        if task.dtype != np.float32:
            raise CannotPlay(
                f"{learner} trains in float32; build {task.card.id} with dtype='float32'."
            )
        self.task = task
        self.agents = task.card.agents
        shapes = self._observation_shapes(learner, images)
        self.features = sum(
            math.prod(shape) for i, shape in enumerate(shapes) if i != self._image_leaf
        )
        privileged_space = task.privileged_space
        self.privileged = (
            0 if privileged_space is None else math.prod(privileged_space.shape) // self.agents
        )
        """Features of each agent that only a critic sees, in training."""
        self._read_action_space(learner)
        self.noise_shape = self.agents, len(self.choices) or self.outputs
        """Shape of the random numbers that one joint action takes."""
        self.action_features: np.ndarray | None = getattr(task, "action_features", None)
        """Features of each action, ``(actions, F)``; None where the task gives none."""

    def _observation_shapes(self, learner: str, images: bool) -> list[tuple[int, ...]]:
        """Return the shape of each leaf of an agent's observation.

        Also note which leaf is an image that is kept apart from the features.
        """
        space = self.task.observation_space
        leaves: list[Any] = (
            [space[name] for name in sorted(space)] if isinstance(space, spaces.Dict) else [space]
        )
        for leaf in leaves:
            if not isinstance(leaf, spaces.Box) or (
                self.agents > 1 and leaf.shape[:1] != (self.agents,)
            ):
                raise CannotPlay(
                    f"{learner} reads a Box or a Dict of Boxes with one row for each agent, not "
                    f"{leaf}."
                )
        shapes: list[tuple[int, ...]] = [
            leaf.shape if self.agents == 1 else leaf.shape[1:] for leaf in leaves
        ]
        image_leaves = [
            i
            for i, leaf in enumerate(leaves)
            if images and leaf.dtype == np.uint8 and len(shapes[i]) == 3
        ]
        if len(image_leaves) > 1:
            raise CannotPlay(
                f"{learner} reads at most one image, and this observation has {len(image_leaves)}: "
                f"{space}."
            )
        self._image_leaf = image_leaves[0] if image_leaves else -1
        self.image_shape: tuple[int, ...] | None = (
            shapes[self._image_leaf] if image_leaves else None
        )
        """Height, width and channels of the image that is kept apart; None without one."""
        return shapes

    def _read_action_space(self, learner: str) -> None:
        """Note what the actions of an agent are."""
        space = self.task.action_space
        self.bounds: tuple[np.ndarray, np.ndarray] | None = None
        """Lowest and highest continuous action, ``(outputs,)``; None for discrete actions."""
        self.choices: tuple[int, ...] = ()
        """Number of values of each discrete choice; empty for continuous actions."""
        if isinstance(space, spaces.Box) and space.is_bounded():
            low, high = (bound.reshape(self.agents, -1) for bound in (space.low, space.high))
            equal = (low == low[0]).all() and (high == high[0]).all()
            self.bounds = low[0], high[0]
            self.outputs = low.shape[1]
        elif isinstance(space, spaces.Discrete | spaces.MultiDiscrete) and not np.any(space.start):
            sizes = np.reshape(action_sizes(space), (self.agents, -1))
            equal = (sizes == sizes[0]).all()
            self.choices = tuple(sizes[0].tolist())
            self.outputs = sum(self.choices)
        else:
            raise CannotPlay(
                f"{learner} plays bounded Box and zero-based Discrete and MultiDiscrete actions, "
                f"not {space}."
            )
        if not equal:
            raise CannotPlay(
                f"With {learner} all agents share one policy, so they need equal action spaces, "
                f"not {space}."
            )

    @property
    def global_features(self) -> int:
        """Length of the global state."""
        return math.prod(global_state_space(self.task).shape)

    # The methods below take the values of one environment; use vmap for batches.

    def observe(
        self, observation: Any, action_mask: jax.Array | None = None
    ) -> tuple[jax.Array, jax.Array | None]:
        """Return the features ``(A, features)`` and the mask ``(A, outputs)``.

        The mask is None where every action is legal.
        """
        leaves = [
            leaf.astype(jnp.float32).reshape(self.agents, -1)
            for i, leaf in enumerate(jax.tree.leaves(observation))
            if i != self._image_leaf
        ]
        x = jnp.concatenate(leaves, -1) if leaves else jnp.zeros((self.agents, 0))
        return x, None if action_mask is None else action_mask.reshape(self.agents, -1)

    def image_in(self, observation: Any) -> jax.Array | None:
        """Return the image, uint8 ``(A, height, width, channels)``, or None where there is none."""
        if self.image_shape is None:
            return None
        image: jax.Array = jax.tree.leaves(observation)[self._image_leaf]
        return image.reshape(self.agents, *self.image_shape)

    def observe_step(self, step: Step) -> tuple[jax.Array, jax.Array | None]:
        """Return the features for training, ``(A, features + privileged)``, and the mask.

        The privileged features come last.
        """
        x, mask = self.observe(step.observation, step.info.get("action_mask"))
        if self.privileged:
            privileged = step.info["privileged"].astype(jnp.float32).reshape(self.agents, -1)
            x = jnp.concatenate([x, privileged], -1)
        return x, mask

    def observe_globally(self, step: Step) -> jax.Array:
        """Return the global state, float32 ``(global_features,)``."""
        return global_state(self.task, step).astype(jnp.float32)

    def team_reward(self, reward: jax.Array) -> jax.Array:
        """Return the reward of the team, ``()``: the mean over agents, as scores have it."""
        return self.agent_rewards(reward).mean()

    def env_action(self, action: jax.Array) -> jax.Array:
        """Return the environment's action.

        Continuous actions come in units of half the range and are clipped.
        """
        if self.bounds is not None:
            low, high = self.bounds
            middle = (high + low) / 2
            half_range = (high - low) / 2
            action = jnp.clip(middle + half_range * action, low, high)
        dtype = jax.dtypes.canonicalize_dtype(self.task.action_space.dtype)
        return action.reshape(self.task.action_space.shape).astype(dtype)

    def agent_rewards(self, reward: jax.Array) -> jax.Array:
        """Return the reward of each agent, ``(A,)``.

        The card's weights combine several objectives.
        """
        if self.task.card.objectives:
            reward = reward @ np.asarray(self.task.card.weights, np.float32)
        return reward.reshape(self.agents)


flatten_task = cache(FlatTask)
