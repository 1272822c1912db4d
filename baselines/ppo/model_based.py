"""Train by model-based PPO that prepares for the worst.

It practises in a learned ensemble of models and leaves out its luckiest samples.

The agent is that of Zhang, Cao, Yao, An, Xiao & Luo 2021 for greenhouses (arXiv:2108.11645). It
learns an ensemble of models from real steps: each member gives mean and variance of the next
observation and the reward (Chua et al. 2018, arXiv:1805.12114). PPO practises on imagined rollouts
from observed states (short ones, as in Janner et al. 2019, arXiv:1906.08253), and the best of them
are left out (*sample dropout*). So the policy is made for models of the plant that treat it worse
than most.

One thing differs from the paper. Every start is played by all members with the same noise of the
actions, and the best of *these* are left out: otherwise good starts would be left out instead of
lucky models. The networks and updates of the policy are those of ``ppo.py``. It has no memory, and
takes what it observes for the state of the task.

Read from top to bottom: configuration, ensemble, imagination, training, agent.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.episode import seed_key
from rlbench_suite.core.task import Task

from ..flat_task import FlatTask, flatten_task
from ..learning_agent import LearningAgent
from ..networks import Categorical, Gaussian, Linear, Moments, initial_layers, mlp
from ..replay.replay_agent import ReplayBuffer
from ..training import Returns, begin_episodes, get_compiled
from . import ppo
from .ppo import Transition

LOG_VARIANCE_RANGE = -8.0, 1.0
"""Range of the log variance of a model's outputs, which have variance one over the data."""

# -- configuration ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config(ppo.Config):
    """Hyperparameters of PPO and of the ensemble.

    PPO's ``num_envs`` and ``num_steps`` are those of real steps.
    """

    num_envs: int = 8
    num_steps: int = 256
    members: int = 5
    """Models of the ensemble."""
    model_hidden: tuple[int, ...] = (64, 64)
    """Widths of a model's tanh layers."""
    model_rate: float = 1e-3
    """Learning rate of the models."""
    model_updates: int = 200
    """Gradient steps of each model after each collection of real steps."""
    model_batch: int = 256
    """Real steps in each of them; every member draws its own."""
    capacity: int = 100_000
    """Approximate number of real steps that are kept; the oldest are overwritten."""
    starts: int = 128
    """Observed states in which imagined rollouts start, in each update of PPO."""
    horizon: int = 16
    """Imagined steps of a rollout."""
    practices: int = 12
    """Updates of PPO after each collection of real steps."""
    dropout: float = 0.2
    """Share of the members whose rollouts are left out for each start.

    Those with the highest returns are left out.
    """

    def __post_init__(self) -> None:
        for name in ("members", "model_updates", "model_batch", "starts", "horizon", "practices"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is an integer >= 1, got {getattr(self, name)!r}.")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is a number in [0, 1), got {self.dropout!r}.")
        if self.recurrent not in (None, "none"):
            raise ValueError(
                f"mbppo has no memory, so recurrent must be 'none', got {self.recurrent!r}."
            )
        if self.stagger:
            raise ValueError(
                "mbppo starts rollouts in all observed states, so stagger must be False."
            )
        if (self.starts * self.rollouts_per_start * self.horizon) % self.minibatches:
            raise ValueError(
                f"minibatches={self.minibatches} must divide the imagined steps, {self.starts} "
                f"starts x {self.rollouts_per_start} rollouts x {self.horizon} steps."
            )

    @property
    def rollouts_per_start(self) -> int:
        """Rollouts of each start from which PPO learns."""
        return max(1, self.members - round(self.dropout * self.members))

    @property
    def practice(self) -> ppo.Config:
        """Configuration of PPO in imagination."""
        shared = {field.name: getattr(self, field.name) for field in fields(ppo.Config)}
        rollouts = self.starts * self.rollouts_per_start
        updates = self.chunks * self.chunk * self.practices
        size = {
            "total_steps": rollouts * self.horizon * updates,
            "num_envs": rollouts,
            "num_steps": self.horizon,
        }
        return ppo.Config(**shared | size | {"reports": 1})


# -- ensemble --------------------------------------------------------------------------------------


class Real(NamedTuple):
    """Real steps; axis 0 is the batch of B."""

    x: jax.Array
    """Features before the step, float32 ``(B, features + privileged)``, not normalised."""
    action: jax.Array
    """As the policy sampled it: float32 ``(B, outputs)``, or int32 ``(B, choices)``."""
    reward: jax.Array
    """float32 ``(B,)``."""
    next_x: jax.Array
    """Features after the step, as ``x``."""
    terminated: jax.Array
    """bool ``(B,)``."""


class Ensemble(NamedTuple):
    """Models of the task, with an axis of the members before the weights' own."""

    layers: tuple[Linear, ...]
    optimiser: Any
    moments: Moments
    """Mean and variance of the outputs: change of the features, and reward."""

    @classmethod
    def initial(cls, config: Config, inputs: int, features: int, seed: int) -> Ensemble:
        """Return models of ``features`` features that differ in their weights."""
        widths = inputs, *config.model_hidden, 2 * (features + 1) + 1
        models = [
            initial_layers(np.random.default_rng([seed, k]), widths, gain=0.01)
            for k in range(config.members)
        ]
        layers = jax.tree.map(lambda *weights: np.stack(weights), *models)
        return cls(
            layers, optax.adam(config.model_rate).init(layers), Moments.initial(features + 1)
        )


def model_input(flat: FlatTask, x: jax.Array, action: jax.Array) -> jax.Array:
    """Return the models' input: normalised features, and the action as the task sees it."""
    if not flat.choices:
        return jnp.concatenate([x, jnp.clip(action, -1, 1)], -1)
    choices = [jax.nn.one_hot(action[..., i], size) for i, size in enumerate(flat.choices)]
    return jnp.concatenate([x, *choices], -1)


def predict(
    layers: tuple[Linear, ...], inputs: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return what one model predicts.

    These are the mean and the log variance of the normalised outputs, and the logit of an end.
    """
    outputs = mlp(layers, inputs)
    size = (outputs.shape[-1] - 1) // 2
    mean, spread, end = jnp.split(outputs, [size, 2 * size], -1)
    low, high = LOG_VARIANCE_RANGE
    return mean, low + (high - low) * jax.nn.sigmoid(spread), end[..., 0]


def model_loss(
    layers: tuple[Linear, ...], inputs: jax.Array, outputs: jax.Array, ends: jax.Array
) -> jax.Array:
    """Return the negative log likelihood of one model, up to a constant.

    Each output counts with its deviation, or rare events would be taken for noise (beta-NLL with
    beta = 0.5, Seitzer, Tavakoli, Antic & Martius 2022, arXiv:2203.09168).
    """
    mean, log_variance, logit = predict(layers, inputs)
    deviation = jax.lax.stop_gradient(jnp.exp(0.5 * log_variance))
    gaussian = deviation * 0.5 * (log_variance + (outputs - mean) ** 2 * jnp.exp(-log_variance))
    return (gaussian.sum(-1) + optax.sigmoid_binary_cross_entropy(logit, ends)).mean()


def fit(
    flat: FlatTask,
    config: Config,
    ensemble: Ensemble,
    moments: Moments,
    buffer: ReplayBuffer,
    key: jax.Array,
) -> Ensemble:
    """Do ``config.model_updates`` gradient steps of every model."""

    def descend(carry: tuple[Any, Any], key: jax.Array) -> tuple[tuple[Any, Any], None]:
        layers, optimiser_state = carry

        def gradient(layers: tuple[Linear, ...], key: jax.Array) -> Any:
            batch: Real = buffer.sample(key, config.model_batch)
            outputs = jnp.concatenate([batch.next_x - batch.x, batch.reward[:, None]], -1)
            inputs = model_input(flat, moments.normalise(batch.x), batch.action)
            ends = batch.terminated.astype(jnp.float32)
            return jax.grad(model_loss)(layers, inputs, ensemble.moments.normalise(outputs), ends)

        gradients = jax.vmap(gradient)(layers, jax.random.split(key, config.members))
        change, optimiser_state = optax.adam(config.model_rate).update(gradients, optimiser_state)
        return (optax.apply_updates(layers, change), optimiser_state), None

    keys = jax.random.split(key, config.model_updates)
    (layers, optimiser_state), _ = jax.lax.scan(
        descend, (ensemble.layers, ensemble.optimiser), keys
    )
    return ensemble._replace(layers=layers, optimiser=optimiser_state)


# -- imagination -----------------------------------------------------------------------------------


def imagine(
    flat: FlatTask,
    config: Config,
    actor: Any,
    moments: Moments,
    ensemble: Ensemble,
    buffer: ReplayBuffer,
    key: jax.Array,
) -> Transition:
    """Play every start in every model, and return the rollouts that are not left out.

    Where a model ends the episode, the rollout goes on from another observed state.
    """
    noise_of = Categorical.noise if flat.choices else Gaussian.noise
    scale = jnp.sqrt(ensemble.moments.scale)
    shape = config.members, config.starts

    def step(x: jax.Array, key: jax.Array) -> tuple[jax.Array, Transition]:
        action_key, model_key, end_key, start_key = jax.random.split(key, 4)
        normalised = moments.normalise(x)
        distribution = actor(flat, normalised, None)
        noise = noise_of(action_key, (config.starts, flat.noise_shape[1]))
        action = distribution.sample(jnp.broadcast_to(noise, (config.members, *noise.shape)))
        mean, log_variance, logit = jax.vmap(predict)(
            ensemble.layers, model_input(flat, normalised, action)
        )
        outputs = mean + jnp.exp(0.5 * log_variance) * jax.random.normal(model_key, mean.shape)
        change = ensemble.moments.mean + scale * jnp.clip(outputs, -10, 10)
        next_x = x + change[..., :-1]
        ended = jax.random.uniform(end_key, shape) < jax.nn.sigmoid(logit)
        transition = Transition(
            x,
            None,
            action,
            distribution.log_prob(action),
            change[..., -1],
            next_x,
            terminated=ended,
            over=ended,
        )
        fresh = buffer.sample(start_key, config.starts).x
        return jnp.where(ended[..., None], fresh, next_x), transition

    start_key, key = jax.random.split(key)
    starts = jnp.broadcast_to(
        buffer.sample(start_key, config.starts).x, (*shape, moments.mean.shape[0])
    )
    rollouts = jax.lax.scan(step, starts, jax.random.split(key, config.horizon))[1]
    rollouts = rollouts._replace(over=rollouts.over.at[-1].set(True))
    return drop_best(config, rollouts)


def drop_best(config: Config, rollouts: Transition) -> Transition:
    """Leave out the rollouts with the highest returns among those of each start.

    Args:
        config: says how many rollouts of a start remain.
        rollouts: ``(steps, members, starts, ...)``.

    Returns:
        The remaining rollouts, ``(steps, rollouts, 1, ...)``.
    """
    members = rollouts.reward.sum(0).argsort(0)[: config.rollouts_per_start]
    starts = np.arange(config.starts)
    return jax.tree.map(
        lambda leaf: jax.lax.collapse(leaf[:, members, starts], 1, 3)[:, :, None], rollouts
    )


# -- training --------------------------------------------------------------------------------------


class TrainingState(NamedTuple):
    """State of a run between rounds."""

    ppo: ppo.TrainingState
    ensemble: Ensemble
    buffer: ReplayBuffer


def train_round(
    flat: FlatTask, config: Config, training: TrainingState
) -> tuple[TrainingState, Returns]:
    """Collect real steps, fit the models, and practise in them."""
    policy, ensemble, buffer = training
    collect_key, key = ppo.split_keys(policy)
    stream, rollout, returns = ppo.collect(flat, config, policy, collect_key)
    real = Real(rollout.x, rollout.action, rollout.reward, rollout.next_x, rollout.terminated)
    real = jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 3), real)
    buffer = buffer.write(real)
    moments = policy.moments.update(real.x)
    outputs = jnp.concatenate([real.next_x - real.x, real.reward[:, None]], -1)
    ensemble = ensemble._replace(moments=ensemble.moments.update(outputs))
    fit_key, key = jax.random.split(key)
    ensemble = fit(flat, config, ensemble, moments, buffer, fit_key)

    def practise(policy: ppo.TrainingState, key: jax.Array) -> tuple[ppo.TrainingState, None]:
        imagine_key, learn_key = jax.random.split(key)
        imagined = imagine(
            flat, config, policy.networks.actor, moments, ensemble, buffer, imagine_key
        )
        policy = ppo.learn(flat, config.practice, policy, imagined, learn_key)
        return policy._replace(moments=moments), None  # of real steps only

    policy = policy._replace(stream=stream, moments=moments)
    policy, _ = jax.lax.scan(practise, policy, jax.random.split(key, config.practices))
    return TrainingState(policy, ensemble, buffer), returns


def start(
    flat: FlatTask, config: Config, networks: Any, ensemble: Ensemble, seed: jax.Array, stream: Any
) -> Any:
    """Return the state at the beginning of a run.

    ``seed`` is key data; ``stream`` holds the environments.
    """
    policy = ppo.start(flat, config.practice, networks, seed, stream)
    capacity = (
        -(-min(config.capacity, config.chunks * config.chunk * config.batch) // config.batch)
        * config.batch
    )
    x = jnp.zeros((1, flat.features + flat.privileged))
    transition = Real(
        x=x,
        action=jnp.zeros((1, len(flat.choices)), jnp.int32)
        if flat.choices
        else jnp.zeros((1, flat.outputs)),
        reward=jnp.zeros(1),
        next_x=x,
        terminated=jnp.zeros(1, bool),
    )
    return TrainingState(policy, ensemble, ReplayBuffer.empty(transition, capacity))


def train_chunk(
    flat: FlatTask, config: Config, training: TrainingState
) -> tuple[TrainingState, Returns]:
    """Do ``config.chunk`` rounds. This is a pure function, to be jitted."""
    training, returns = jax.lax.scan(
        lambda training, _: train_round(flat, config, training), training, length=config.chunk
    )
    return training, jax.tree.map(jnp.sum, returns)


class Programs:
    """Compiled ``start`` and ``train_chunk`` of a task and configuration; all seeds share them."""

    def __init__(self, flat: FlatTask, config: Config) -> None:
        start_time = time.perf_counter()
        self.flat = flat
        self.config = config
        self.chunk_steps = config.chunk * config.batch
        self._start = jax.jit(partial(start, flat, config))
        self.chunk = (
            jax.jit(partial(train_chunk, flat, config), donate_argnums=0)
            .lower(self.start(0))
            .compile()
        )
        self.seconds = time.perf_counter() - start_time

    def start(self, seed: int) -> Any:
        """Return the state at the beginning of a run, including its environments."""
        flat = self.flat
        config = self.config
        key = seed_key(seed)
        features = flat.features + flat.privileged
        ensemble = Ensemble.initial(config, features + flat.outputs, features, seed)
        stream = begin_episodes(flat.task, key, config.num_envs)
        return self._start(ppo.Networks.initial(flat, config, seed), ensemble, key, stream)

    def policy(self, training: TrainingState) -> ppo.Policy:
        """Return the trained policy, which sees no privileged features."""
        return ppo.trained_policy(self.flat, self.config, training.ppo)


programs = cache(Programs)


# -- agent -----------------------------------------------------------------------------------------


class ModelBasedPPO(LearningAgent):
    """The agent ``mbppo``."""

    name = "mbppo"
    config_class = Config

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` where a model of features and reward does not suffice.

        The message says why.
        """
        card = task.card
        flatten_task(task, self.name)
        if card.host:
            raise CannotPlay(
                f"{card.id} runs on the host, and mbppo trains in one compiled program."
            )
        if card.agents > 1:
            raise CannotPlay(f"{card.id} has {card.agents} agents, and mbppo models one.")
        if task.defines("action_mask"):
            raise CannotPlay(f"{card.id} has action masks, which mbppo does not model.")

    def compile(self, task: Task[Any, Any], config: Config) -> tuple[Programs, float]:
        """Return the programs for a task, and the seconds it took to compile them.

        The seconds are 0 if the programs were cached.
        """
        return get_compiled(programs, flatten_task(task, self.name), config)

    def layer_widths(self, task: Task[Any, Any], config: Config) -> list[tuple[int, ...]]:
        """Return the widths of the actor's layers."""
        return [(flatten_task(task, self.name).features, *config.hidden)]

    def untrained_policy(self, task: Task[Any, Any], config: Config) -> ppo.Policy:
        """Return a policy with initial weights."""
        flat = flatten_task(task, self.name)
        return ppo.Policy(
            ppo.Networks.initial(flat, config, 0).actor,
            Moments.initial(flat.features),
            flat,
            config,
        )
