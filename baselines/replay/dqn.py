"""Double deep Q-learning with action masks.

The algorithm is that of Mnih et al. 2015 (Nature 518:529, Algorithm 1): epsilon-greedy exploration,
experience replay, a target network that is copied at regular intervals, and the Huber loss. As in
van Hasselt, Guez & Silver 2016 (arXiv:1509.06461), the network chooses the next action and the
target network evaluates it. Illegal actions are never taken, explored or bootstrapped from. Replay,
normalisation and the training loop are those of ``replay_agent.py``.

Read from top to bottom: configuration, network, loss, algorithm, agent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from gymnasium import spaces

from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.policy import ActingParameters
from rlbench_suite.core.task import Task

from ..networks import Linear, initial_layers, mlp
from ..scripted import nth_legal
from .replay_agent import Algorithm, Experience, LearnerState, ReplayAgent, ReplayConfig

if TYPE_CHECKING:
    from rlbench_suite.core.arrays import FloatArray

    from ..flat_task import FlatTask
    from ..networks import Moments

# -- configuration ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config(ReplayConfig):
    """Hyperparameters of DQN.

    Their values for each task and budget are in ``hyperparameters/dqn.yaml``.
    """

    target_period: int = 200
    """Updates between copies to the target network."""
    epsilon: float = 0.05
    """Final probability of a random action; it falls linearly from 1."""
    exploration: float = 0.3
    """Fraction of the run during which epsilon falls."""
    max_grad_norm: float = 10.0
    evaluate_epsilon: float = 0.0
    """Probability of a random action in the trained policy; Mnih et al. use 0.05 to break cycles.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target_period < 1:
            raise ValueError(f"target_period must be at least 1, got {self.target_period}.")
        for name in ("epsilon", "exploration", "evaluate_epsilon"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie in [0, 1], got {getattr(self, name)}.")


# -- network ---------------------------------------------------------------------------------------


class Network(NamedTuple):
    """Network of action values.

    If the task has ``action_features``, it uses them as PPO's actor does.
    """

    layers: tuple[Linear, ...]
    action_bias: FloatArray
    """float32 ``(actions,)``; None without action features."""
    direct: FloatArray
    """float32 ``(features, F)``; None without action features."""

    @classmethod
    def initial(cls, flat: FlatTask, config: Config, seed: int) -> Network:
        """Return networks with orthogonal weights.

        The gain is sqrt 2, and 1 in the last layer (0.01 with action features).
        """
        generator = np.random.default_rng(seed)
        if flat.action_features is None:
            return cls(
                initial_layers(generator, (flat.features, *config.hidden, flat.outputs), 1.0),
                None,
                None,
            )
        actions, width = flat.action_features.shape
        layers = initial_layers(generator, (flat.features, *config.hidden, width), 0.01)
        return cls(
            layers, np.zeros(actions, np.float32), np.zeros((flat.features, width), np.float32)
        )

    def values(self, flat: FlatTask, x: jax.Array, mask: jax.Array | None) -> jax.Array:
        """Return the values ``(..., actions)`` for normalised observations.

        Illegal actions have minus infinity.
        """
        values = mlp(self.layers, x, jax.nn.relu)
        if flat.action_features is not None:
            values = (values + x @ self.direct) @ flat.action_features.T.astype(
                np.float32
            ) + self.action_bias
        return values if mask is None else jnp.where(mask, values, -jnp.inf)

    def action_value(self, flat: FlatTask, x: jax.Array, action: jax.Array) -> jax.Array:
        """Return the value ``(...)`` of an action.

        With action features, only the value of that action is computed.
        """
        values = mlp(self.layers, x, jax.nn.relu)
        if flat.action_features is None:
            return jnp.take_along_axis(values, action[..., None], -1)[..., 0]
        features = jnp.asarray(flat.action_features, jnp.float32)[action]
        return ((values + x @ self.direct) * features).sum(-1) + self.action_bias[action]


# -- loss ------------------------------------------------------------------------------------------


def target(
    flat: FlatTask, network: Network, targets: Network, batch: Experience, mask: Any, gamma: float
) -> jax.Array:
    """Return the target values (van Hasselt et al. 2016, eq. 4).

    ``mask`` is the mask of the next actions.

    A terminal state has value 0, whatever its mask.
    """
    next_action = network.values(flat, batch.next_x, mask).argmax(-1)
    next_value = targets.action_value(flat, batch.next_x, next_action)
    return batch.reward + gamma * jnp.where(batch.terminated, 0, next_value)


def loss(network: Network, target_value: jax.Array, batch: Experience, flat: FlatTask) -> jax.Array:
    """Return the Huber loss of the values of the actions taken."""
    return optax.huber_loss(
        network.action_value(flat, batch.x, batch.action[:, 0]), target_value
    ).mean()


# -- algorithm -------------------------------------------------------------------------------------


class DeepQ(Algorithm):
    """Network, exploration and updates of DQN."""

    config: Config

    def networks(self, seed: int) -> Network:
        """Return the initial network."""
        return Network.initial(self.flat, self.config, seed)

    def learner(self, networks: Network) -> LearnerState:
        """Return the initial state; the target network equals the network."""
        targets = jax.tree.map(jnp.array, networks)
        return LearnerState(networks, targets, self.optimiser().init(networks), jnp.int32(0))

    def optimiser(self) -> optax.GradientTransformation:
        """Return Adam with a bound on the norm of the whole gradient."""
        config = self.config
        return optax.chain(
            optax.clip_by_global_norm(config.max_grad_norm),
            optax.adam(config.learning_rate, eps=1e-5),
        )

    def explore(
        self,
        networks: Network,
        x: jax.Array,
        mask: jax.Array | None,
        key: jax.Array,
        steps: jax.Array,
    ) -> jax.Array:
        """Choose epsilon-greedy actions.

        All are random until learning starts, and ever fewer after that.
        """
        config = self.config
        share = jnp.clip(steps / max(1.0, config.exploration * config.steps), 0, 1)
        epsilon = jnp.where(steps < config.learning_starts, 1.0, 1 + share * (config.epsilon - 1))
        return self.choose(networks, x, mask, key, epsilon)

    def choose(
        self, network: Network, x: jax.Array, mask: jax.Array | None, key: jax.Array, epsilon: Any
    ) -> jax.Array:
        """Choose the best legal action or, with probability ``epsilon``, a random one.

        The random one is uniform over the legal actions.
        """
        values = network.values(self.flat, x, mask)
        best_action = values.argmax(-1).astype(jnp.int32)
        uniform = jax.random.uniform(key, (*x.shape[:-1], 2))
        legal = jnp.ones(values.shape, bool) if mask is None else mask
        random_action = jnp.vectorize(nth_legal, signature="(n),()->()")(legal, uniform[..., 1])
        return jnp.where(uniform[..., 0] < epsilon, random_action, best_action)[..., None]

    def learn(self, learner: LearnerState, batch: Experience, key: jax.Array) -> LearnerState:
        """Take one gradient step.

        Every ``target_period`` updates, copy the network to the target network.
        """
        network, targets, optimiser_state, updates = learner
        gradient = self.gradient(network, targets, batch)
        change, optimiser_state = self.optimiser().update(gradient, optimiser_state)
        network = optax.apply_updates(network, change)
        refresh = (updates + 1) % self.config.target_period == 0
        targets = jax.tree.map(lambda new, old: jnp.where(refresh, new, old), network, targets)
        return LearnerState(network, targets, optimiser_state, updates + 1)

    def gradient(self, network: Any, targets: Any, batch: Experience) -> Any:
        """Return the gradient of the loss with respect to the network."""
        next_mask = self.unpack_mask(batch.next_legal)
        target_value = target(self.flat, network, targets, batch, next_mask, self.config.gamma)
        return jax.grad(loss)(network, target_value, batch, self.flat)

    def actor(self, networks: Network) -> Network:
        """Return the whole network."""
        return networks

    def acting_parameters(self, actor: Network, moments: Moments) -> ActingParameters:
        """Return the network of action values as plain parameters, for export."""
        return ActingParameters(
            moments=moments,
            layers=actor.layers,
            activation="relu",
            choices=self.flat.choices,
            sampled=self.config.evaluate_epsilon > 0,
            action_features=self.flat.action_features,
            direct=actor.direct,
            action_bias=actor.action_bias,
        )

    def act(
        self, actor: Network, x: jax.Array, mask: jax.Array | None, key: jax.Array
    ) -> jax.Array:
        """Return the best legal action, or a random one with probability ``evaluate_epsilon``."""
        return self.choose(actor, x, mask, key, self.config.evaluate_epsilon)


# -- agent -----------------------------------------------------------------------------------------


class DQN(ReplayAgent):
    """The agent ``dqn``, for one discrete choice a step.

    In multi-agent tasks all agents share the weights.
    """

    name = "dqn"
    algorithm_class = DeepQ
    config_class = Config

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if an agent's action is not one discrete choice."""
        space = task.action_space
        if not isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
            raise CannotPlay(f"{self.name} plays Discrete and MultiDiscrete actions, not {space}.")
        choices = 1 if isinstance(space, spaces.Discrete) else space.nvec.size // task.card.agents
        if choices > 1:
            raise CannotPlay(
                f"{self.name} makes one choice per step, but an action of {space} is {choices} "
                "choices at once."
            )
        super().check(task)
