"""TD3+BC: an off-policy actor-critic with a cloning term that keeps it close to the dataset.

The algorithm is that of Fujimoto & Gu 2021, A Minimalist Approach to Offline Reinforcement Learning
(arXiv:2106.06860). It is TD3 (Fujimoto, van Hoof & Meger 2018, arXiv:1802.09477) with an actor that
maximises ``lambda Q(s, pi(s)) - (pi(s) - a)^2``, where ``lambda = alpha / mean |Q|``. Observations
are normalised by the dataset.

Three things differ from the paper. First, rewards are multiplied by a constant, so that values are
of order one. Lambda divides by the size of the values, so this leaves the actor's objective
unchanged, and critics of order one learn sooner. Second, learning rates fall linearly to zero.
Third, layers use tanh, as in our other agents, because controllers made of rectifiers act less
smoothly.

Read from top to bottom: configuration, networks, critic, actor, step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from rlbench_suite.core.arrays import Int

from ..networks import Linear, initial_layers, mlp
from .offline_agent import Batch, OfflineAgent, OfflineConfig, act, actor_layers

if TYPE_CHECKING:
    from ..flat_task import FlatTask

# -- configuration ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config(OfflineConfig):
    """Hyperparameters of TD3+BC.

    Their values for each task and budget are in ``hyperparameters/td3-bc.yaml``.
    """

    gamma: float = 0.99
    reward_scale: float = 1.0
    """Factor on rewards."""
    alpha: float = 2.5
    """Weight of the value relative to the cloning term; 0 is cloning alone."""
    polyak: float = 0.005
    """Step size of the target networks towards the networks at each step of the actor."""
    policy_noise: float = 0.2
    """Standard deviation of the noise on target actions, in units of half the action range."""
    noise_clip: float = 0.5
    """Bound of that noise."""
    actor_every: int = 2
    """Gradient steps of the critics for each step of the actor."""


# -- networks --------------------------------------------------------------------------------------

Critics = tuple[tuple[Linear, ...], tuple[Linear, ...]]


class LearnerState(NamedTuple):
    """State of a run between gradient steps."""

    actor: tuple[Linear, ...]
    critics: Critics
    target_actor: tuple[Linear, ...]
    target_critics: Critics
    actor_optimiser: Any
    """State of Adam for the actor."""
    critic_optimiser: Any
    """State of Adam for both critics."""
    steps: Int
    """Number of gradient steps done, int32 ``()``."""


def values(critics: Critics, x: jax.Array, action: jax.Array) -> list[jax.Array]:
    """Return the action value ``(N,)`` from each critic."""
    inputs = jnp.concatenate([x, action], -1)
    return [mlp(critic, inputs)[:, 0] for critic in critics]


def optimiser(config: Config) -> optax.GradientTransformation:
    """Return Adam with a learning rate that falls linearly to zero.

    It falls because the last policy is judged, not the best one.
    """
    return optax.adam(
        optax.linear_schedule(config.learning_rate, 0.0, config.chunks * config.chunk)
    )


# -- critic ----------------------------------------------------------------------------------------


def target(config: Config, learning: LearnerState, batch: Batch, key: jax.Array) -> jax.Array:
    """Return the critics' targets.

    A target is the reward plus the smaller of the two values of the smoothed target policy's next
    action.
    """
    noise = config.policy_noise * jax.random.normal(key, batch.action.shape)
    noise = jnp.clip(noise, -config.noise_clip, config.noise_clip)
    next_action = jnp.clip(act(learning.target_actor, batch.next_x) + noise, -1, 1)
    next_value = jnp.minimum(*values(learning.target_critics, batch.next_x, next_action))
    return config.reward_scale * batch.reward + config.gamma * jnp.where(
        batch.terminated, 0, next_value
    )


def critic_loss(critics: Critics, batch: Batch, target_value: jax.Array) -> jax.Array:
    """Return the sum of the mean squared errors of both critics."""
    first, second = values(critics, batch.x, batch.action)
    return ((first - target_value) ** 2).mean() + ((second - target_value) ** 2).mean()


# -- actor -----------------------------------------------------------------------------------------


def actor_loss(
    actor: tuple[Linear, ...], critics: Critics, batch: Batch, alpha: float
) -> jax.Array:
    """Return the loss of the actor.

    It is the negative of equation 5 of the paper, with the first critic.
    """
    action = act(actor, batch.x)
    value = values(critics, batch.x, action)[0]
    weight = alpha / jax.lax.stop_gradient(jnp.abs(value).mean() + 1e-8)
    return ((action - batch.action) ** 2).mean() - weight * value.mean()


# -- step ------------------------------------------------------------------------------------------


class TD3WithCloning:
    """The two functions of an :class:`offline_agent.Algorithm`."""

    def start(self, flat: FlatTask, config: Config, seed: int) -> LearnerState:
        """Return the initial state, with random networks and equal targets."""
        generator = np.random.default_rng(seed)
        actor = actor_layers(flat, config.hidden, generator)
        widths = flat.features + flat.outputs, *config.hidden, 1
        critics = (
            initial_layers(generator, widths, gain=1.0),
            initial_layers(generator, widths, gain=1.0),
        )
        adam = optimiser(config)
        return LearnerState(
            actor, critics, actor, critics, adam.init(actor), adam.init(critics), np.int32(0)
        )

    def step(
        self, config: Config, learning: LearnerState, batch: Batch, key: jax.Array
    ) -> LearnerState:
        """Step the critics once, and every ``actor_every`` steps the actor and the targets."""
        target_value = target(config, learning, batch, key)
        gradient = jax.grad(critic_loss)(learning.critics, batch, target_value)
        change, critic_state = optimiser(config).update(gradient, learning.critic_optimiser)
        critics: Critics = optax.apply_updates(learning.critics, change)
        learning = learning._replace(
            critics=critics, critic_optimiser=critic_state, steps=learning.steps + 1
        )

        def improve(learning: LearnerState) -> LearnerState:
            gradient = jax.grad(actor_loss)(learning.actor, learning.critics, batch, config.alpha)
            change, actor_state = optimiser(config).update(gradient, learning.actor_optimiser)
            actor = optax.apply_updates(learning.actor, change)
            networks = actor, critics
            targets = learning.target_actor, learning.target_critics
            target_actor, target_critics = optax.incremental_update(
                networks, targets, config.polyak
            )
            return learning._replace(
                actor=actor,
                actor_optimiser=actor_state,
                target_actor=target_actor,
                target_critics=target_critics,
            )

        return jax.lax.cond(
            learning.steps % config.actor_every == 0, improve, lambda unchanged: unchanged, learning
        )


class TD3BC(OfflineAgent):
    """The agent ``td3-bc``."""

    name = "td3-bc"
    algorithm = TD3WithCloning()
    config_class = Config
