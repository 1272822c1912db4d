"""A task as networks see it: one row of numbers an agent, all rows through the same weights."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.agent import CannotPlay
from rlbench_suite.episode import Step, action_sizes
from rlbench_suite.task import Task


class Rows:
    """A task in rows: ``A`` agents, each a row of ``features`` inputs and ``outputs`` action parameters.

    Args:
        task: the task.
        learner: name of who asks, for the messages.
        pictures: whether a picture, a uint8 Box (height, width, channels), stays one. Else its pixels are features.

    Raises:
        CannotPlay: the task's spaces do not fit; the message says which and why.
    """

    def __init__(self, task: Task[Any, Any], learner: str, *, pictures: bool = False) -> None:
        self.task, self.agents = task, task.card.agents
        if task.dtype != np.float32:
            raise CannotPlay(f"{learner} trains in float32; build {task.card.id} with dtype='float32'.")
        shown = task.observation_space
        parts: list[Any] = [shown[name] for name in sorted(shown)] if isinstance(shown, spaces.Dict) else [shown]
        for part in parts:
            if not isinstance(part, spaces.Box) or (self.agents > 1 and part.shape[:1] != (self.agents,)):
                raise CannotPlay(f"{learner} reads a Box or a Dict of Boxes, one row an agent, not {part}.")
        shapes: list[tuple[int, ...]] = [part.shape if self.agents == 1 else part.shape[1:] for part in parts]
        found = [i for i, part in enumerate(parts) if pictures and part.dtype == np.uint8 and len(shapes[i]) == 3]
        if len(found) > 1:
            raise CannotPlay(f"{learner} looks at one picture, not at {len(found)}: {shown}.")
        self.picture: tuple[int, ...] | None = shapes[found[0]] if found else None
        """Height, width and channels of the picture that is kept apart from the features."""
        self._leaf = found[0] if found else -1
        self.features = sum(math.prod(shape) for i, shape in enumerate(shapes) if i != self._leaf)
        hidden = task.privileged_space
        self.privileged = 0 if hidden is None else math.prod(hidden.shape) // self.agents
        """Numbers a row that only a critic sees, in training."""
        space = task.action_space
        if isinstance(space, spaces.Box) and space.is_bounded():
            low, high = (bound.reshape(self.agents, -1) for bound in (space.low, space.high))
            alike = (low == low[0]).all() and (high == high[0]).all()
            self.low, self.high = low[0], high[0]
            self.choices: tuple[int, ...] = ()
            self.outputs = low.shape[1]
        elif isinstance(space, spaces.Discrete | spaces.MultiDiscrete) and not np.any(space.start):
            sizes = np.reshape(action_sizes(space), (self.agents, -1))
            alike = (sizes == sizes[0]).all()
            self.choices = tuple(sizes[0].tolist())
            self.outputs = sum(self.choices)
        else:
            raise CannotPlay(
                f"{learner} plays bounded Box and zero-based Discrete and MultiDiscrete actions, not {space}."
            )
        if not alike:
            raise CannotPlay(f"{learner}'s agents share one policy, so they need equal action spaces, not {space}.")
        self.noise_shape = self.agents, len(self.choices) or self.outputs
        """Random numbers that an action takes."""
        # A task with very many actions may say what they are made of: (actions, F).
        self.action_features: np.ndarray | None = getattr(task, "action_features", None)

    # One environment's values; batches by vmap.

    def look(self, observation: Any, action_mask: jax.Array | None = None) -> tuple[jax.Array, jax.Array | None]:
        """Observation ``(A, features)``, and mask ``(A, outputs)`` or None where every action is legal."""
        leaves = [
            leaf.astype(jnp.float32).reshape(self.agents, -1)
            for i, leaf in enumerate(jax.tree.leaves(observation))
            if i != self._leaf
        ]
        x = jnp.concatenate(leaves, -1) if leaves else jnp.zeros((self.agents, 0))
        return x, None if action_mask is None else action_mask.reshape(self.agents, -1)

    def picture_in(self, observation: Any) -> jax.Array | None:
        """The picture, uint8 ``(A, height, width, channels)``, or None where there is none."""
        if self.picture is None:
            return None
        picture: jax.Array = jax.tree.leaves(observation)[self._leaf]
        return picture.reshape(self.agents, *self.picture)

    def see(self, step: Step) -> tuple[jax.Array, jax.Array | None]:
        """What is seen in training, ``(A, features + privileged)``, the privileged part last; and the mask."""
        x, mask = self.look(step.observation, step.info.get("action_mask"))
        if self.privileged:
            hidden = step.info["privileged"].astype(jnp.float32).reshape(self.agents, -1)
            x = jnp.concatenate([x, hidden], -1)
        return x, mask

    def action(self, action: jax.Array) -> jax.Array:
        """What the environment gets. Continuous actions, in units of half the range, are clipped to the space."""
        if not self.choices:
            middle, reach = (self.high + self.low) / 2, (self.high - self.low) / 2
            action = jnp.clip(middle + reach * action, self.low, self.high)
        kind = jax.dtypes.canonicalize_dtype(self.task.action_space.dtype)
        return action.reshape(self.task.action_space.shape).astype(kind)

    def reward(self, reward: jax.Array) -> jax.Array:
        """``(A,)``; objectives are weighed as the card says."""
        if self.task.card.objectives:
            reward = reward @ np.asarray(self.task.card.weights, np.float32)
        return reward.reshape(self.agents)


rows_of = cache(Rows)
