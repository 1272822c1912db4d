"""Envelope Q-learning: one network for all weights, which learns from what it does for other ones.

The algorithm is that of Yang, Sun & Narasimhan 2019 (arXiv:1908.08342). A vector value depends on
the weights that are played for. Its target takes the best next action for these weights among the
values for all sampled weights, their *envelope*, so that a policy for some weights that happens to
be better for other ones teaches these at once:

    y = r + gamma * arg_Q max over a', w' of w . Q(s', a', w')

Each update learns each of its steps for several weights. The loss moves from the distance of the
vectors to that of the utilities w . y and w . Q, whose landscape is rougher but which is what
counts (the paper's homotopy). Replay is uniform, where the paper's is prioritised. A weighted sum
is best at points of the convex hull of a front, so that no weights give the others.

Read from top to bottom: configuration, target, algorithm, agent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from ..replay.replay_agent import Experience, LearnerState
from .vector_q import (
    ConditionedQ,
    TrainingState,
    VectorAgent,
    VectorConfig,
    VectorNetwork,
    forbid,
    sample_simplex,
    take_action,
)

# -- configuration ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config(VectorConfig):
    """Hyperparameters of Envelope Q-learning, in ``hyperparameters/envelope.yaml``."""

    sampled_weights: int = 4
    """Weights for which an update learns each of its steps."""
    homotopy: float = 0.5
    """Fraction of the run during which the loss moves from vectors to utilities."""
    last_share: float = 1.0
    """Share of utilities in the loss then."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sampled_weights < 1:
            raise ValueError(f"sampled_weights must be at least 1, got {self.sampled_weights}.")
        for name in ("homotopy", "last_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie in [0, 1], got {getattr(self, name)}.")


# -- target ----------------------------------------------------------------------------------------


def envelope(
    values: jax.Array, target_values: jax.Array, weights: jax.Array, mask: jax.Array | None
) -> jax.Array:
    """Return the best next values for each of the weights, ``(W, B, k)``.

    Args:
        values: values of the next actions for W weights, by which the best is chosen,
            ``(W, B, actions, k)``.
        target_values: those of the target network, which are returned.
        weights: ``(W, k)``.
        mask: legal actions, ``(B, actions)``.
    """
    count, batch, actions, objectives = values.shape
    utility = jnp.einsum("wk,vbak->wbva", weights, values)
    utility = forbid(utility, None if mask is None else mask[:, None])
    best = utility.reshape(count, batch, count * actions).argmax(-1)
    candidates = target_values.swapaxes(0, 1).reshape(1, batch, count * actions, objectives)
    return take_action(jnp.broadcast_to(candidates, (count, *candidates.shape[1:])), best)


# -- algorithm -------------------------------------------------------------------------------------


class EnvelopeQ(ConditionedQ):
    """Network, exploration and updates of Envelope Q-learning."""

    config: Config

    def initial_plan(self) -> tuple[()]:
        """Return nothing: preferences are uniform on the simplex."""
        return ()

    def sample_preferences(self, plan: tuple[()], key: jax.Array, count: int) -> jax.Array:
        """Return weights that are uniform on the simplex."""
        return sample_simplex(key, (count, self.objectives))

    def utilities(
        self, networks: Any, plan: Any, preference: jax.Array, x: jax.Array, accrued: jax.Array
    ) -> jax.Array:
        """Return the weighted values."""
        return (self.values(networks, x, preference) * preference[:, None]).sum(-1)

    def learn(self, learner: LearnerState, training: TrainingState, key: jax.Array) -> LearnerState:
        """Do one update for several weights."""
        config = self.config
        sample_key, weight_key = jax.random.split(key)
        batch = self.sample(training, sample_key, config.batch_size)
        weights = sample_simplex(weight_key, (config.sampled_weights, self.objectives))
        next_values = self.values(learner.networks, batch.next_x, weights[:, None])
        target_values = self.values(learner.targets, batch.next_x, weights[:, None])
        mask = self.unpack_mask(batch.next_legal)
        later = envelope(next_values, target_values, weights, mask)
        target = batch.reward + config.gamma * jnp.where(batch.terminated[:, None], 0, later)
        duration = max(1.0, config.homotopy * config.steps / config.num_envs)
        share = self.config.last_share * jnp.clip(training.steps / duration, 0, 1)
        gradient = jax.grad(self.loss)(learner.networks, target, batch, weights, share)
        return self.descend(learner, gradient)

    def loss(
        self,
        network: VectorNetwork,
        target: jax.Array,
        batch: Experience,
        weights: jax.Array,
        share: jax.Array,
    ) -> jax.Array:
        """Return the squared error of vectors, and a growing share of that of utilities."""
        values = self.values(network, batch.x, weights[:, None])
        action = jnp.broadcast_to(batch.action, values.shape[:2])
        error = take_action(values, action) - target
        of_vectors = (error**2).sum(-1).mean()
        of_utilities = ((error * weights[:, None]).sum(-1) ** 2).mean()
        return (1 - share) * of_vectors + share * of_utilities


# -- agent -----------------------------------------------------------------------------------------


class Envelope(VectorAgent):
    """The agent ``envelope``, for several objectives and one discrete choice a step."""

    name = "envelope"
    config_class = Config
    algorithm_class = EnvelopeQ
