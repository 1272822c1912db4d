"""Soft actor-critic with a learned temperature.

The algorithm is that of Haarnoja et al. 2018 (arXiv:1801.01290) and 2019 (arXiv:1812.05905,
Algorithm 1). The policy is a tanh-squashed Gaussian. The smaller of two action values counters
overestimation (Fujimoto et al. 2018, arXiv:1802.09477). The temperature is learned by gradient; its
target entropy is minus the number of action components. Replay, normalisation and the training loop
are those of ``replay_agent.py``.

Read from top to bottom: configuration, networks, loss, algorithm, agent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from gymnasium import spaces

from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.arrays import Float
from rlbench_suite.core.policy import ActingParameters
from rlbench_suite.core.task import Task

from ..networks import Linear, initial_layers, mlp
from .replay_agent import Algorithm, Experience, LearnerState, ReplayAgent, ReplayConfig

if TYPE_CHECKING:
    from ..flat_task import FlatTask
    from ..networks import Moments

LOG_STD_RANGE = -5.0, 2.0
"""Range of the log standard deviation before squashing."""

# -- configuration ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config(ReplayConfig):
    """Hyperparameters of SAC.

    Their values for each task and budget are in ``hyperparameters/sac.yaml``.
    """

    polyak: float = 0.005
    """Step size of the target networks towards the networks at each update."""
    temperature: float = 0.1
    """Initial weight of the entropy; it is learned."""
    entropy_per_component: float = -1.0
    """Target entropy of each action component in nats, for actions in [-1, 1].

    Uniform play has 0.69.
    """
    evaluate: Literal["mode", "sample"] = "mode"
    """Action of the trained policy: the most likely one before squashing, or a sample."""


# -- networks --------------------------------------------------------------------------------------


class Networks(NamedTuple):
    """Actor, two critics, and the logarithm of the temperature."""

    actor: tuple[Linear, ...]
    critics: tuple[tuple[Linear, ...], tuple[Linear, ...]]
    log_temperature: Float
    """float32 ``()``."""

    @classmethod
    def initial(cls, flat: FlatTask, config: Config, seed: int) -> Networks:
        """Return networks with orthogonal weights.

        The gain is sqrt 2, 0.01 in the actor's last layer, and 1 in the critics' last layers.
        """
        generator = np.random.default_rng(seed)
        actor = initial_layers(
            generator, (flat.features, *config.hidden, 2 * flat.outputs), gain=0.01
        )
        widths = flat.features + flat.outputs, *config.hidden, 1
        critics = (
            initial_layers(generator, widths, gain=1.0),
            initial_layers(generator, widths, gain=1.0),
        )
        return cls(actor, critics, np.log(np.float32(config.temperature)))


class SquashedGaussian(NamedTuple):
    """The tanh of a diagonal Gaussian: actions in (-1, 1) (Haarnoja et al. 2019, appendix C)."""

    mean: jax.Array
    """Before squashing."""
    log_std: jax.Array

    def sample(self, noise: jax.Array) -> jax.Array:
        """Return an action ``(..., components)`` from one normal number for each component."""
        return jnp.tanh(self.mean + jnp.exp(self.log_std) * noise)

    def sample_with_log_prob(self, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return an action and its log density ``(...)``, summed over components."""
        sample = self.mean + jnp.exp(self.log_std) * noise
        gaussian = -0.5 * noise**2 - self.log_std - 0.5 * np.log(2 * np.pi)
        # log(1 - tanh(u)^2) in a form that neither cancels nor overflows for large |u|
        slope = 2 * (np.log(2) - sample - jax.nn.softplus(-2 * sample))
        return jnp.tanh(sample), (gaussian - slope).sum(-1)

    def mode(self) -> jax.Array:
        """Return the tanh of the mean."""
        return jnp.tanh(self.mean)


def distribution(actor: tuple[Linear, ...], x: jax.Array) -> SquashedGaussian:
    """Return the distribution of actions in [-1, 1].

    The normalised observations are ``(..., features)``.
    """
    mean, spread = jnp.split(mlp(actor, x, jax.nn.relu), 2, -1)
    low, high = LOG_STD_RANGE
    return SquashedGaussian(mean, low + (high - low) * (jnp.tanh(spread) + 1) / 2)


def values(
    critics: tuple[tuple[Linear, ...], ...], x: jax.Array, action: jax.Array
) -> list[jax.Array]:
    """Return the action value ``(...)`` from each critic."""
    inputs = jnp.concatenate([x, action], -1)
    return [mlp(critic, inputs, jax.nn.relu)[..., 0] for critic in critics]


# -- loss ------------------------------------------------------------------------------------------


def target(
    networks: Networks, critics: Any, batch: Experience, noise: jax.Array, gamma: float
) -> jax.Array:
    """Return the targets of the critics (Haarnoja et al. 2019, eqs. 2 and 3).

    They use the smaller value of the two target critics.
    """
    action, log_prob = distribution(networks.actor, batch.next_x).sample_with_log_prob(noise)
    next_value = jnp.minimum(*values(critics, batch.next_x, action))
    next_value -= jnp.exp(networks.log_temperature) * log_prob
    return batch.reward + gamma * jnp.where(batch.terminated, 0, next_value)


def loss(
    networks: Networks, targets: Any, batch: Experience, key: jax.Array, config: Config
) -> jax.Array:
    """Return the sum of the losses of critics (eq. 5), actor (eq. 7) and temperature (eq. 18).

    Each loss reaches only its own weights, so the gradient of the sum consists of the gradients of
    the three.
    """
    constant = jax.lax.stop_gradient
    noise, next_noise = jax.random.normal(key, (2, *batch.action.shape))
    target_value = constant(target(networks, targets, batch, next_noise, config.gamma))
    critic_values = values(networks.critics, batch.x, batch.action)
    critic_loss = sum(((value - target_value) ** 2).mean() for value in critic_values)

    action, log_prob = distribution(networks.actor, batch.x).sample_with_log_prob(noise)
    temperature = constant(jnp.exp(networks.log_temperature))
    value = jnp.minimum(*values(constant(networks.critics), batch.x, action))
    actor_loss = (temperature * log_prob - value).mean()

    surplus_entropy = -log_prob.mean() - config.entropy_per_component * batch.action.shape[-1]
    temperature_loss = networks.log_temperature * constant(surplus_entropy)
    return 0.5 * critic_loss + actor_loss + temperature_loss


# -- algorithm -------------------------------------------------------------------------------------


class SoftActorCritic(Algorithm):
    """Networks, exploration and updates of SAC."""

    config: Config

    def networks(self, seed: int) -> Networks:
        """Return initial actor, critics and temperature."""
        return Networks.initial(self.flat, self.config, seed)

    def learner(self, networks: Networks) -> LearnerState:
        """Return the initial state; the targets equal the critics."""
        critics = jax.tree.map(jnp.array, networks.critics)
        return LearnerState(networks, critics, self.optimiser().init(networks), jnp.int32(0))

    def optimiser(self) -> optax.GradientTransformation:
        """Return Adam, which serves all three losses.

        One optimiser is enough, because Adam scales each weight's step by that weight's gradients.
        """
        return optax.adam(self.config.learning_rate)

    def explore(
        self,
        networks: Networks,
        x: jax.Array,
        mask: jax.Array | None,
        key: jax.Array,
        steps: jax.Array,
    ) -> jax.Array:
        """Sample an action from the policy, or uniformly until learning starts."""
        policy_key, uniform_key = jax.random.split(key)
        shape = *x.shape[:-1], self.flat.outputs
        sample = distribution(networks.actor, x).sample(jax.random.normal(policy_key, shape))
        uniform = jax.random.uniform(uniform_key, shape, minval=-1.0, maxval=1.0)
        return jnp.where(steps < self.config.learning_starts, uniform, sample)

    def learn(self, learner: LearnerState, batch: Experience, key: jax.Array) -> LearnerState:
        """Do one gradient step on all losses; the target critics follow slowly."""
        networks, targets, optimiser_state, updates = learner
        gradient = jax.grad(loss)(networks, targets, batch, key, self.config)
        change, optimiser_state = self.optimiser().update(gradient, optimiser_state)
        networks = optax.apply_updates(networks, change)
        targets = optax.incremental_update(networks.critics, targets, self.config.polyak)
        return LearnerState(networks, targets, optimiser_state, updates + 1)

    def actor(self, networks: Networks) -> tuple[Linear, ...]:
        """Return the actor."""
        return networks.actor

    def acting_parameters(self, actor: tuple[Linear, ...], moments: Moments) -> ActingParameters:
        """Return the network of the mode as plain parameters, for export."""
        components = self.flat.outputs
        *hidden, last = actor
        mean = Linear(last.weight[:, :components], last.bias[:components])
        return ActingParameters(
            moments=moments,
            layers=(*hidden, mean),
            activation="relu",
            bounds=self.flat.bounds,
            squashed=True,
            sampled=self.config.evaluate == "sample",
        )

    def act(
        self, actor: tuple[Linear, ...], x: jax.Array, mask: jax.Array | None, key: jax.Array
    ) -> jax.Array:
        """Return the mode before squashing, or a sample."""
        policy = distribution(actor, x)
        if self.config.evaluate == "mode":
            return policy.mode()
        return policy.sample(jax.random.normal(key, policy.mean.shape))


# -- agent -----------------------------------------------------------------------------------------


class SAC(ReplayAgent):
    """The agent ``sac``, for continuous actions.

    In multi-agent tasks all agents share the weights.
    """

    name = "sac"
    algorithm_class = SoftActorCritic
    config_class = Config

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if the actions are not a bounded Box."""
        if not isinstance(task.action_space, spaces.Box) or not task.action_space.is_bounded():
            raise CannotPlay(f"{self.name} plays bounded Box actions, not {task.action_space}.")
        super().check(task)
