"""Deep Q-learning with double estimates and action masks.

Mnih et al. 2015 (Nature 518:529, Algorithm 1): epsilon-greedy play, experience replay, a target network that is
refreshed now and then, errors clipped by the Huber loss. Double estimates after van Hasselt, Guez & Silver 2016
(arXiv:1509.06461): the network chooses the next action, the target network says what it is worth. An illegal action is
neither taken, nor explored, nor bootstrapped from. Experience, normalisation and the training loop are those of
``replay.py``.

Read from top to bottom: configuration, network, loss, algorithm, agent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from gymnasium import spaces

from rlbench_suite.agent import CannotPlay
from rlbench_suite.task import Task

from .networks import Linear, initial_layers, multilayer
from .replay import Algorithm, Experience, Learner, ReplayAgent, ReplayConfig
from .rows import Rows
from .scripted import nth_legal

# -- configuration -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config(ReplayConfig):
    """Hyperparameters. Values by task and budget are data: ``hyperparameters/dqn.yaml``."""

    target_period: int = 200
    """Updates between refreshments of the target network."""
    epsilon: float = 0.05
    """Share of random actions in the end; it falls linearly from 1."""
    exploration: float = 0.3
    """Share of the run in which it falls."""
    max_grad_norm: float = 10.0
    evaluate_epsilon: float = 0.0
    """Share of random actions of the trained policy; Mnih et al. use 0.05, against going in circles."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target_period < 1:
            raise ValueError(f"target_period is at least 1, got {self.target_period}.")
        for name in ("epsilon", "exploration", "evaluate_epsilon"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} lies in [0, 1], got {getattr(self, name)}.")


# -- network -------------------------------------------------------------------------------------------------------


class Network(NamedTuple):
    """Action values. Where the task has ``action_features``, they are scored through them, as by PPO's actor."""

    layers: tuple[Linear, ...]
    action_bias: Any
    """``(actions,)``; None without action features."""
    direct: Any
    """``(features, F)``; None without action features."""

    @classmethod
    def initial(cls, rows: Rows, config: Config, seed: int) -> Network:
        """Orthogonal weights: gain sqrt 2, 1 at the end (0.01 where an action's features are summed up)."""
        generator, made_of = np.random.default_rng(seed), rows.action_features
        if made_of is None:
            return cls(initial_layers(generator, (rows.features, *config.hidden, rows.outputs), 1.0), None, None)
        count, width = made_of.shape
        layers = initial_layers(generator, (rows.features, *config.hidden, width), 0.01)
        return cls(layers, np.zeros(count, np.float32), np.zeros((rows.features, width), np.float32))

    def all(self, rows: Rows, x: jax.Array, mask: jax.Array | None) -> jax.Array:
        """Values ``(..., actions)`` given normalised observations ``(..., features)``; minus infinity if illegal."""
        values = multilayer(self.layers, x, jax.nn.relu)
        if rows.action_features is not None:
            values = (values + x @ self.direct) @ rows.action_features.T.astype(np.float32) + self.action_bias
        return values if mask is None else jnp.where(mask, values, -jnp.inf)

    def one(self, rows: Rows, x: jax.Array, action: jax.Array) -> jax.Array:
        """The value ``(...)`` of the actions ``(...)``; of thousands of actions, only that one is computed."""
        values = multilayer(self.layers, x, jax.nn.relu)
        if rows.action_features is None:
            return jnp.take_along_axis(values, action[..., None], -1)[..., 0]
        made_of = jnp.asarray(rows.action_features, jnp.float32)[action]
        return ((values + x @ self.direct) * made_of).sum(-1) + self.action_bias[action]


# -- loss ----------------------------------------------------------------------------------------------------------


def target(rows: Rows, network: Network, targets: Network, batch: Experience, mask: Any, gamma: float) -> jax.Array:
    """What the network should say (van Hasselt et al. 2016, eq. 4); ``mask`` is that of the next actions.

    A terminal state is worth nothing, whatever its mask.
    """
    chosen = network.all(rows, batch.next_x, mask).argmax(-1)
    following = targets.one(rows, batch.next_x, chosen)
    return batch.reward + gamma * jnp.where(batch.terminated, 0, following)


def loss(network: Network, wanted: jax.Array, batch: Experience, rows: Rows) -> jax.Array:
    """The Huber loss of the values of the actions taken."""
    return optax.huber_loss(network.one(rows, batch.x, batch.action[:, 0]), wanted).mean()


# -- algorithm -----------------------------------------------------------------------------------------------------


class DeepQ(Algorithm):
    """Network, exploration and updates of DQN."""

    config: Config

    def networks(self, seed: int) -> Network:
        """The action values."""
        return Network.initial(self.rows, self.config, seed)

    def learner(self, networks: Network) -> Learner:
        """A target network equal to the network."""
        targets = jax.tree.map(jnp.array, networks)
        return Learner(networks, targets, self.optimiser().init(networks), jnp.int32(0))

    def optimiser(self) -> optax.GradientTransformation:
        """Adam, with a bound on the norm of the whole gradient."""
        config = self.config
        return optax.chain(optax.clip_by_global_norm(config.max_grad_norm), optax.adam(config.learning_rate, eps=1e-5))

    def explore(
        self, networks: Network, x: jax.Array, mask: jax.Array | None, key: jax.Array, steps: jax.Array
    ) -> jax.Array:
        """Epsilon-greedy: random throughout until learning starts, then ever less."""
        config = self.config
        share = jnp.clip(steps / max(1.0, config.exploration * config.steps), 0, 1)
        epsilon = jnp.where(steps < config.learning_starts, 1.0, 1 + share * (config.epsilon - 1))
        return self.choose(networks, x, mask, key, epsilon)

    def choose(self, network: Network, x: jax.Array, mask: jax.Array | None, key: jax.Array, epsilon: Any) -> jax.Array:
        """The best legal action or, with probability ``epsilon``, any legal one, all equally likely."""
        values = network.all(self.rows, x, mask)
        dice = jax.random.uniform(key, (*x.shape[:-1], 2))
        legal = jnp.ones(values.shape, bool) if mask is None else mask
        anything = jnp.vectorize(nth_legal, signature="(n),()->()")(legal, dice[..., 1])
        return jnp.where(dice[..., 0] < epsilon, anything, values.argmax(-1).astype(jnp.int32))[..., None]

    def learn(self, learner: Learner, batch: Experience, key: jax.Array) -> Learner:
        """One step down the gradient; the target network is refreshed every ``target_period`` updates."""
        network, targets, state, updates = learner
        wanted = target(self.rows, network, targets, batch, self.unpack(batch.next_legal), self.config.gamma)
        gradient = jax.grad(loss)(network, wanted, batch, self.rows)
        change, state = self.optimiser().update(gradient, state)
        network = optax.apply_updates(network, change)
        refresh = (updates + 1) % self.config.target_period == 0
        targets = jax.tree.map(lambda new, old: jnp.where(refresh, new, old), network, targets)
        return Learner(network, targets, state, updates + 1)

    def actor(self, networks: Network) -> Network:
        """The whole network."""
        return networks

    def act(self, actor: Network, x: jax.Array, mask: jax.Array | None, key: jax.Array) -> jax.Array:
        """The best legal action, or now and then a random one."""
        return self.choose(actor, x, mask, key, self.config.evaluate_epsilon)


# -- agent ---------------------------------------------------------------------------------------------------------


class DQN(ReplayAgent):
    """The agent ``dqn``: one discrete choice a step, one agent or many that share their weights."""

    name = "dqn"
    kind = DeepQ
    configuration = Config

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` where an agent's action is not one discrete choice."""
        space, agents = task.action_space, task.card.agents
        if not isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
            raise CannotPlay(f"dqn compares the values of discrete actions, one by one; {space} has no finite number.")
        parts = 1 if isinstance(space, spaces.Discrete) else space.nvec.size // agents
        if parts > 1:
            raise CannotPlay(f"dqn makes one choice a step; an action of {space} is {parts} choices at once.")
        super().check(task)
