"""Mean-field PPO: all agents share one actor, and one critic that reads how the population spreads.

Where many like agents play, it matters how many see what, not who does. A mean embedding says that:
the mean over agents of features of what each sees (Hüttenrauch, Sosic & Neumann 2019,
arXiv:1807.06613, sections 3.2 and 3.3). Its length does not depend on the number of agents, where
the global state that the critic of ``mappo`` reads grows with it. Two kinds of features are here:

* ``kernel``: Gaussian bumps around the centres of the bins of each entry of an observation,
* ``histogram``: whether the entry falls into the bin.

Training is central, acting is not: the actor reads what its agent observes, and all agents learn
from the mean of their rewards, as with ``mappo``. So one policy serves any number of agents.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.task import Task

from ..flat_task import FlatTask
from ..ppo.agent import Programs
from ..ppo.ppo import Config as PPOConfig
from ..training import get_compiled
from .mappo import MAPPO, CentralTask


@dataclass(frozen=True)
class Config(PPOConfig):
    """Hyperparameters of mean-field PPO, in ``hyperparameters/mean-field-ppo.yaml``."""

    embedding: Literal["kernel", "histogram"] = "kernel"
    """Features whose means the critic reads."""
    bins: int = 8
    """Features of each entry of an observation."""

    def __post_init__(self) -> None:
        if self.embedding not in ("kernel", "histogram"):
            raise ValueError(f"embedding is 'kernel' or 'histogram', got {self.embedding!r}.")
        if self.bins < 2:
            raise ValueError(f"bins must be at least 2, got {self.bins}.")


def mean_embedding(x: jax.Array, bins: int, embedding: str) -> jax.Array:
    """Return the mean over agents of features of entries in [0, 1], ``(entries * bins,)``.

    Args:
        x: ``(agents, entries)``.
        bins: features of each entry.
        embedding: ``kernel`` or ``histogram``.
    """
    centres = (np.arange(bins, dtype=np.float32) + 0.5) / bins
    distance = (x[..., None] - centres) * bins
    if embedding == "kernel":
        features = jnp.exp(-0.5 * distance * distance)
    else:
        number = jnp.clip(jnp.floor(x * bins), 0, bins - 1)
        features = (number[..., None] == np.arange(bins)).astype(x.dtype)
    return features.mean(0).ravel()


class MeanFieldTask(CentralTask):
    """A task as PPO sees it, whose critic reads a mean embedding behind the observation."""

    def __init__(self, task: Task[Any, Any], bins: int, embedding: str) -> None:
        self.bins = bins
        self.embedding = embedding
        super().__init__(task)
        low, high = (
            np.concatenate([bound.reshape(self.agents, -1) for bound in bounds], -1)
            for bounds in zip(*(bounds_of(leaf) for leaf in leaves_of(task)), strict=True)
        )
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise CannotPlay(
                f"mean-field-ppo bins what agents see, and observations of {task.card.id} have no "
                "bounds."
            )
        self._low = low
        self._per_range = 1 / np.maximum(high - low, 1e-6)

    @property
    def global_features(self) -> int:
        """Length of the mean embedding."""
        return self.features * self.bins

    def observe_globally(self, step: Any) -> jax.Array:
        """Return the mean embedding, float32 ``(global_features,)``."""
        x, _ = self.observe(step.observation)
        return mean_embedding((x - self._low) * self._per_range, self.bins, self.embedding)


def leaves_of(task: Task[Any, Any]) -> list[Any]:
    """Return the Boxes of an observation space, in the order of the features."""
    space = task.observation_space
    return [space[name] for name in sorted(space)] if isinstance(space, spaces.Dict) else [space]


def bounds_of(space: spaces.Box) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of a Box in float32."""
    return space.low.astype(np.float32), space.high.astype(np.float32)


see_mean_field = cache(MeanFieldTask)


@cache
def programs(task: Any, config: Any) -> Programs:
    """Compile PPO's programs for the mean-field view of a task."""
    return Programs(see_mean_field(task, config.bins, config.embedding), config)


class MeanFieldPPO(MAPPO):
    """The agent ``mean-field-ppo``, for tasks of several agents."""

    name = "mean-field-ppo"
    config_class = Config

    def flatten(self, task: Task[Any, Any]) -> FlatTask:
        """Return the task with a mean embedding for the critic."""
        return see_mean_field(task, Config.bins, Config.embedding)

    def compile(self, task: Task[Any, Any], config: Any) -> tuple[Any, float]:
        """Return the programs for a task, and the seconds it took to compile them."""
        return get_compiled(programs, task, config)
