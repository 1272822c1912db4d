"""Behaviour cloning: imitate the actions in a dataset.

Behaviour cloning (Pomerleau 1988, ALVINN) learns a deterministic policy by supervised learning with
the mean squared error. Random variations of the dataset's actions average out; consistent behaviour
is learned, good or bad. Other offline agents are compared with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
import optax

from .offline_agent import Batch, OfflineAgent, OfflineConfig, act, actor_layers

if TYPE_CHECKING:
    from ..flat_task import FlatTask
    from ..networks import Linear


@dataclass(frozen=True)
class Config(OfflineConfig):
    """Hyperparameters; their values for each task and budget are in ``hyperparameters/bc.yaml``."""


class LearnerState(NamedTuple):
    """State of a run between gradient steps."""

    actor: tuple[Linear, ...]
    optimiser: Any
    """State of Adam."""


def optimiser(config: Config) -> optax.GradientTransformation:
    """Return Adam with a learning rate that falls linearly to zero.

    The error then settles at its minimum.
    """
    return optax.adam(
        optax.linear_schedule(config.learning_rate, 0.0, config.chunks * config.chunk)
    )


def loss(actor: tuple[Linear, ...], batch: Batch) -> jax.Array:
    """Return the mean squared error of the actions, in units of half their range."""
    return ((act(actor, batch.x) - batch.action) ** 2).mean()


class Cloning:
    """The two functions of an :class:`offline_agent.Algorithm`."""

    def start(self, flat: FlatTask, config: Config, seed: int) -> LearnerState:
        """Return the initial state, with a random actor."""
        actor = actor_layers(flat, config.hidden, np.random.default_rng(seed))
        return LearnerState(actor, optimiser(config).init(actor))

    def step(
        self, config: Config, learning: LearnerState, batch: Batch, key: jax.Array
    ) -> LearnerState:
        """Do one gradient step."""
        gradient = jax.grad(loss)(learning.actor, batch)
        change, optimiser_state = optimiser(config).update(gradient, learning.optimiser)
        return LearnerState(optax.apply_updates(learning.actor, change), optimiser_state)


class BC(OfflineAgent):
    """The agent ``bc``."""

    name = "bc"
    algorithm = Cloning()
    config_class = Config
