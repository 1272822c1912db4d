"""Behaviour cloning: the policy that errs least about what the player of a dataset did.

Pomerleau 1988 (ALVINN), as supervised learning of a deterministic policy by mean squared error. What a dataset's player
does by chance is averaged out; what it does by habit is learned, good or bad. The yardstick of every offline agent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
import optax

from .networks import Linear
from .offline import Batch, OfflineAgent, OfflineConfig, act, actor_layers
from .rows import Rows


@dataclass(frozen=True)
class Config(OfflineConfig):
    """Hyperparameters. Values by task and budget are data: ``hyperparameters/bc.yaml``."""


class Learning(NamedTuple):
    """What a run carries."""

    actor: tuple[Linear, ...]
    optimiser: Any


def optimiser(config: Config) -> optax.GradientTransformation:
    """Adam, its learning rate falling linearly to zero: the error ends at its floor, not in noise around it."""
    return optax.adam(optax.linear_schedule(config.learning_rate, 0.0, config.chunks * config.chunk))


def loss(actor: tuple[Linear, ...], batch: Batch) -> jax.Array:
    """Mean squared error of the actions, in units of half their range."""
    return ((act(actor, batch.x) - batch.action) ** 2).mean()


class Cloning:
    """The algorithm."""

    def start(self, rows: Rows, config: Config, seed: int) -> Learning:
        """A random actor."""
        actor = actor_layers(rows, config.hidden, np.random.default_rng(seed))
        return Learning(actor, optimiser(config).init(actor))

    def step(self, config: Config, learning: Learning, batch: Batch, key: jax.Array) -> Learning:
        """One step down the gradient."""
        gradient = jax.grad(loss)(learning.actor, batch)
        change, state = optimiser(config).update(gradient, learning.optimiser)
        return Learning(optax.apply_updates(learning.actor, change), state)


class BC(OfflineAgent):
    """The agent ``bc``."""

    name = "bc"
    algorithm = Cloning()
    configuration = Config
