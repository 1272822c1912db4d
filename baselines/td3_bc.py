"""TD3+BC: an off-policy actor-critic held near the dataset by a cloning term.

Fujimoto & Gu 2021, A Minimalist Approach to Offline Reinforcement Learning (arXiv:2106.06860): TD3 (Fujimoto, van Hoof
& Meger 2018, arXiv:1802.09477) whose actor maximises ``lambda Q(s, pi(s)) - (pi(s) - a)^2`` with
``lambda = alpha / mean |Q|``, on observations normalised over the dataset.

Three things differ from the paper. Rewards are multiplied by a constant, so that values are of order one: lambda
divides by the values' own size, so the actor's objective stays as it is, and critics of order one learn sooner.
Learning rates fall linearly to zero. Layers are of tanh, as all of ours: controllers of rectifiers come out rougher.

Read from top to bottom: configuration, critic, actor, step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from .networks import Linear, initial_layers, multilayer
from .offline import Batch, OfflineAgent, OfflineConfig, act, actor_layers
from .rows import Rows

# -- configuration -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config(OfflineConfig):
    """Hyperparameters. Values by task and budget are data: ``hyperparameters/td3-bc.yaml``."""

    gamma: float = 0.99
    reward_scale: float = 1.0
    """What rewards are multiplied by."""
    alpha: float = 2.5
    """Weight of the value against cloning; 0 is cloning alone."""
    polyak: float = 0.005
    """Share of the networks that target networks take over at each of the actor's steps."""
    policy_noise: float = 0.2
    """Standard deviation of the noise on target actions, in units of half the action range."""
    noise_clip: float = 0.5
    actor_every: int = 2
    """Gradient steps of the critics for one of the actor."""


# -- networks ------------------------------------------------------------------------------------------------------

Critics = tuple[tuple[Linear, ...], tuple[Linear, ...]]


class Learning(NamedTuple):
    """What a run carries."""

    actor: tuple[Linear, ...]
    critics: Critics
    target_actor: tuple[Linear, ...]
    target_critics: Critics
    actor_optimiser: Any
    critic_optimiser: Any
    steps: Any


def values(critics: Critics, x: jax.Array, action: jax.Array) -> list[jax.Array]:
    """The action value ``(N,)`` by each critic."""
    inputs = jnp.concatenate([x, action], -1)
    return [multilayer(critic, inputs)[:, 0] for critic in critics]


def optimiser(config: Config) -> optax.GradientTransformation:
    """Adam, its learning rate falling linearly to zero: what is judged is the last policy, not the best."""
    return optax.adam(optax.linear_schedule(config.learning_rate, 0.0, config.chunks * config.chunk))


# -- critic --------------------------------------------------------------------------------------------------------


def target(config: Config, learning: Learning, batch: Batch, key: jax.Array) -> jax.Array:
    """What the critics should say: the reward and the smaller value of what a smoothed target policy does next."""
    noise = config.policy_noise * jax.random.normal(key, batch.action.shape)
    noise = jnp.clip(noise, -config.noise_clip, config.noise_clip)
    next_action = jnp.clip(act(learning.target_actor, batch.next_x) + noise, -1, 1)
    following = jnp.minimum(*values(learning.target_critics, batch.next_x, next_action))
    return config.reward_scale * batch.reward + config.gamma * jnp.where(batch.terminated, 0, following)


def critic_loss(critics: Critics, batch: Batch, wanted: jax.Array) -> jax.Array:
    """Sum of both critics' mean squared errors."""
    first, second = values(critics, batch.x, batch.action)
    return ((first - wanted) ** 2).mean() + ((second - wanted) ** 2).mean()


# -- actor ---------------------------------------------------------------------------------------------------------


def actor_loss(actor: tuple[Linear, ...], critics: Critics, batch: Batch, alpha: float) -> jax.Array:
    """Equation 5 of the paper, by the first critic, as a loss."""
    action = act(actor, batch.x)
    value = values(critics, batch.x, action)[0]
    weight = alpha / jax.lax.stop_gradient(jnp.abs(value).mean() + 1e-8)
    return ((action - batch.action) ** 2).mean() - weight * value.mean()


# -- step ----------------------------------------------------------------------------------------------------------


class TD3WithCloning:
    """The algorithm."""

    def start(self, rows: Rows, config: Config, seed: int) -> Learning:
        """Random networks, targets equal to them."""
        generator = np.random.default_rng(seed)
        actor = actor_layers(rows, config.hidden, generator)
        widths = rows.features + rows.outputs, *config.hidden, 1
        critics = initial_layers(generator, widths, gain=1.0), initial_layers(generator, widths, gain=1.0)
        adam = optimiser(config)
        return Learning(actor, critics, actor, critics, adam.init(actor), adam.init(critics), np.int32(0))

    def step(self, config: Config, learning: Learning, batch: Batch, key: jax.Array) -> Learning:
        """One step of the critics and, at every ``actor_every``-th, one of the actor and the targets."""
        wanted = target(config, learning, batch, key)
        gradient = jax.grad(critic_loss)(learning.critics, batch, wanted)
        change, critic_state = optimiser(config).update(gradient, learning.critic_optimiser)
        critics: Critics = optax.apply_updates(learning.critics, change)
        learning = learning._replace(critics=critics, critic_optimiser=critic_state, steps=learning.steps + 1)

        def improve(learning: Learning) -> Learning:
            gradient = jax.grad(actor_loss)(learning.actor, learning.critics, batch, config.alpha)
            change, actor_state = optimiser(config).update(gradient, learning.actor_optimiser)
            actor = optax.apply_updates(learning.actor, change)
            near = (actor, critics), (learning.target_actor, learning.target_critics)
            target_actor, target_critics = optax.incremental_update(*near, config.polyak)
            return learning._replace(
                actor=actor, actor_optimiser=actor_state, target_actor=target_actor, target_critics=target_critics
            )

        return jax.lax.cond(learning.steps % config.actor_every == 0, improve, lambda same: same, learning)


class TD3BC(OfflineAgent):
    """The agent ``td3-bc``."""

    name = "td3-bc"
    algorithm = TD3WithCloning()
    configuration = Config
