"""Soft actor-critic with a temperature that sets itself.

Haarnoja et al. 2018 (arXiv:1801.01290) and 2019 (arXiv:1812.05905, Algorithm 1): a tanh-squashed Gaussian policy, the
smaller of two action values against overestimation (Fujimoto et al. 2018, arXiv:1802.09477), the temperature found by
gradient from a target entropy of minus the number of action components. Experience, normalisation and the training
loop are those of ``replay.py``.

Read from top to bottom: configuration, networks, loss, algorithm, agent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from gymnasium import spaces

from rlbench_suite.agent import CannotPlay
from rlbench_suite.task import Task

from .distributions import SquashedGaussian
from .networks import Linear, initial_layers, multilayer
from .replay import Algorithm, Experience, Learner, ReplayAgent, ReplayConfig
from .rows import Rows

LOG_STD = -5.0, 2.0
"""Range of the log standard deviation before squashing."""

# -- configuration -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config(ReplayConfig):
    """Hyperparameters. Values by task and budget are data: ``hyperparameters/sac.yaml``."""

    polyak: float = 0.005
    """Share of the networks that target networks take over at each update."""
    temperature: float = 0.1
    """Initial weight of the entropy; it learns."""
    entropy_per_component: float = -1.0
    """Target entropy by action component, nats, with actions in [-1, 1]; uniform play has 0.69."""
    evaluate: Literal["mode", "sample"] = "mode"
    """What the trained policy does: its most likely action before squashing, or a sample."""


# -- networks ------------------------------------------------------------------------------------------------------


class Networks(NamedTuple):
    """Actor, two critics, and the logarithm of the temperature."""

    actor: tuple[Linear, ...]
    critics: tuple[tuple[Linear, ...], tuple[Linear, ...]]
    log_temperature: Any

    @classmethod
    def initial(cls, rows: Rows, config: Config, seed: int) -> Networks:
        """Orthogonal weights: gain sqrt 2, 0.01 at the actor's end, 1 at the critics'."""
        generator = np.random.default_rng(seed)
        actor = initial_layers(generator, (rows.features, *config.hidden, 2 * rows.outputs), gain=0.01)
        widths = rows.features + rows.outputs, *config.hidden, 1
        critics = initial_layers(generator, widths, gain=1.0), initial_layers(generator, widths, gain=1.0)
        return cls(actor, critics, np.log(np.float32(config.temperature)))


def distribution(actor: tuple[Linear, ...], x: jax.Array) -> SquashedGaussian:
    """Actions in [-1, 1] given normalised observations ``(..., features)``."""
    mean, spread = jnp.split(multilayer(actor, x, jax.nn.relu), 2, -1)
    low, high = LOG_STD
    return SquashedGaussian(mean, low + (high - low) * (jnp.tanh(spread) + 1) / 2)


def values(critics: tuple[tuple[Linear, ...], ...], x: jax.Array, action: jax.Array) -> list[jax.Array]:
    """The action value ``(...)`` by each critic."""
    inputs = jnp.concatenate([x, action], -1)
    return [multilayer(critic, inputs, jax.nn.relu)[..., 0] for critic in critics]


# -- loss ----------------------------------------------------------------------------------------------------------


def target(networks: Networks, critics: Any, batch: Experience, noise: jax.Array, gamma: float) -> jax.Array:
    """What the critics should say: Haarnoja et al. 2019, eq. 2 and 3, with the smaller of two target critics."""
    action, log_prob = distribution(networks.actor, batch.next_x).sample_with_log_prob(noise)
    following = jnp.minimum(*values(critics, batch.next_x, action))
    following -= jnp.exp(networks.log_temperature) * log_prob
    return batch.reward + gamma * jnp.where(batch.terminated, 0, following)


def loss(networks: Networks, targets: Any, batch: Experience, key: jax.Array, config: Config) -> jax.Array:
    """The losses of critics (eq. 5), actor (eq. 7) and temperature (eq. 18), each with respect to its own weights.

    Their sum has the gradient of each, as no weight is reached by two of them.
    """
    still = jax.lax.stop_gradient
    noise, next_noise = jax.random.normal(key, (2, *batch.action.shape))
    wanted = still(target(networks, targets, batch, next_noise, config.gamma))
    critic = sum(((value - wanted) ** 2).mean() for value in values(networks.critics, batch.x, batch.action))

    action, log_prob = distribution(networks.actor, batch.x).sample_with_log_prob(noise)
    temperature = still(jnp.exp(networks.log_temperature))
    actor = (temperature * log_prob - jnp.minimum(*values(still(networks.critics), batch.x, action))).mean()

    surplus = -log_prob.mean() - config.entropy_per_component * batch.action.shape[-1]
    return 0.5 * critic + actor + networks.log_temperature * still(surplus)


# -- algorithm -----------------------------------------------------------------------------------------------------


class SoftActorCritic(Algorithm):
    """Networks, exploration and updates of SAC."""

    config: Config

    def networks(self, seed: int) -> Networks:
        """Actor, critics and temperature."""
        return Networks.initial(self.rows, self.config, seed)

    def learner(self, networks: Networks) -> Learner:
        """Targets equal to the critics."""
        critics = jax.tree.map(jnp.array, networks.critics)
        return Learner(networks, critics, self.optimiser().init(networks), jnp.int32(0))

    def optimiser(self) -> optax.GradientTransformation:
        """Adam: it scales each weight's step by that weight's own gradients, so one serves all three losses."""
        return optax.adam(self.config.learning_rate)

    def explore(
        self, networks: Networks, x: jax.Array, mask: jax.Array | None, key: jax.Array, steps: jax.Array
    ) -> jax.Array:
        """A sample of the policy; uniform at first."""
        policy_key, uniform_key = jax.random.split(key)
        shape = *x.shape[:-1], self.rows.outputs
        sample = distribution(networks.actor, x).sample(jax.random.normal(policy_key, shape))
        uniform = jax.random.uniform(uniform_key, shape, minval=-1.0, maxval=1.0)
        return jnp.where(steps < self.config.learning_starts, uniform, sample)

    def learn(self, learner: Learner, batch: Experience, key: jax.Array) -> Learner:
        """One step down the gradient of all losses; the target critics follow slowly."""
        networks, targets, state, updates = learner
        gradient = jax.grad(loss)(networks, targets, batch, key, self.config)
        change, state = self.optimiser().update(gradient, state)
        networks = optax.apply_updates(networks, change)
        targets = optax.incremental_update(networks.critics, targets, self.config.polyak)
        return Learner(networks, targets, state, updates + 1)

    def actor(self, networks: Networks) -> tuple[Linear, ...]:
        """The actor."""
        return networks.actor

    def act(self, actor: tuple[Linear, ...], x: jax.Array, mask: jax.Array | None, key: jax.Array) -> jax.Array:
        """The mode before squashing, or a sample."""
        policy = distribution(actor, x)
        if self.config.evaluate == "mode":
            return policy.mode()
        return policy.sample(jax.random.normal(key, policy.mean.shape))


# -- agent ---------------------------------------------------------------------------------------------------------


class SAC(ReplayAgent):
    """The agent ``sac``: continuous actions, one agent or many that share their weights."""

    name = "sac"
    kind = SoftActorCritic
    configuration = Config

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` where actions are not a bounded Box."""
        if not isinstance(task.action_space, spaces.Box) or not task.action_space.is_bounded():
            raise CannotPlay(f"sac plays continuous actions, a bounded Box, not {task.action_space}.")
        super().check(task)
