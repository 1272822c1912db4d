"""Hindsight differentiable policy optimisation: gradients of returns through the task itself.

The algorithm is that of Alvo et al. 2023 (arXiv:2306.11246). Where the next state is a known,
almost everywhere differentiable function of the action and of noise that does not depend on it, the
derivative of the return of a sampled episode by the weights of a deterministic policy is an
unbiased gradient. So every update plays whole episodes, each with new noise, differentiates their
mean return, and takes a step of Adam. There are no critic, no exploration and no replay.

An agent for tasks whose card has the tag ``differentiable``. Only training looks into the task: the
policy reads observations, as those of all agents do.

Read from top to bottom: configuration, policy, training, agent.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.arrays import Int
from rlbench_suite.core.episode import scalar_return, seed_key
from rlbench_suite.core.policy import ActingParameters, View, no_memory
from rlbench_suite.core.task import Split, Task

from .configuration import InChunks
from .flat_task import FlatTask, flatten_task
from .learning_agent import LearningAgent
from .networks import Linear, Moments, initial_layers, mlp
from .training import Returns, get_compiled, update_key

TAG = "differentiable"
"""Tag of the cards of tasks whose returns have pathwise gradients."""

# -- configuration ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config(InChunks):
    """Hyperparameters of HDPO.

    Their values for each task and budget are in ``hyperparameters/hdpo.yaml``.
    """

    total_steps: int = 1_000_000
    """Environment steps, rounded up to whole chunks."""
    num_envs: int = 16
    """Episodes of an update."""
    num_steps: int | None = None
    """Length of these episodes; None for the time limit of the task."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the tanh layers."""
    learning_rate: float = 5e-3
    """Learning rate of Adam at the start; it falls to zero along a cosine."""
    reports: int = 20
    """Number of reports of progress, at most."""

    def __post_init__(self) -> None:
        for name in ("total_steps", "num_envs", "reports"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is an integer >= 1, got {getattr(self, name)!r}.")
        if self.num_steps is not None and self.num_steps < 1:
            raise ValueError(f"num_steps is an integer >= 1, got {self.num_steps!r}.")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate is a number > 0, got {self.learning_rate!r}.")

    @property
    def batch(self) -> int:
        """Environment steps of an update."""
        return self.num_envs * (self.num_steps or 1)

    @property
    def updates(self) -> int:
        """Updates of the whole training, rounded up to whole chunks."""
        return self.chunk * self.chunks


# -- policy ----------------------------------------------------------------------------------------


class Policy(eqx.Module):
    """A deterministic policy: a network that reads observations as the task scales them.

    Running moments would be those of the first policies, whose stocks are far from sensible ones.
    """

    actor: tuple[Linear, ...]
    moments: Moments
    """Moments of no data, which change nothing. Files of policies and exports have them."""
    flat: FlatTask = eqx.field(static=True)
    config: Config = eqx.field(static=True)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the action of an observation."""
        x, _ = self.flat.observe(view.observation)
        return action_of(self.flat, self.actor, x), memory

    def acting_parameters(self) -> ActingParameters:
        """Return the network as plain parameters, for export."""
        return ActingParameters(
            moments=self.moments,
            layers=self.actor,
            activation="tanh",
            bounds=self.flat.bounds,
        )


def initial_actor(flat: FlatTask, config: Config, seed: int) -> tuple[Linear, ...]:
    """Return orthogonal weights, with a gain of 0.1 in the last layer."""
    widths = flat.features, *config.hidden, flat.outputs
    return initial_layers(np.random.default_rng(seed), widths, gain=0.1)


def action_of(flat: FlatTask, actor: tuple[Linear, ...], x: jax.Array) -> jax.Array:
    """Return the environment's action for features ``(1, features)``."""
    return flat.env_action(clip_towards_inside(mlp(actor, x)))


@jax.custom_vjp
def clip_towards_inside(x: jax.Array) -> jax.Array:
    """Clip to [-1, 1], with a gradient wherever a step of descent moves back inside.

    The gradient of a plain clip is zero outside, so that a policy that once orders too much or too
    little everywhere would never change (inverting gradients, Hausknecht & Stone 2016,
    arXiv:1511.04143). A linear policy with a clip can be a base-stock policy exactly.
    """
    return jnp.clip(x, -1, 1)


def _clip_forward(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jnp.clip(x, -1, 1), x


def _clip_backward(x: jax.Array, gradient: jax.Array) -> tuple[jax.Array]:
    outwards = ((x > 1) & (gradient < 0)) | ((x < -1) & (gradient > 0))
    return (jnp.where(outwards, 0, gradient),)


clip_towards_inside.defvjp(_clip_forward, _clip_backward)


# -- training --------------------------------------------------------------------------------------


class TrainingState(NamedTuple):
    """State of a run between updates."""

    actor: tuple[Linear, ...]
    optimiser: Any
    seed: jax.Array
    """Key data of the run."""
    updates: Int
    """Number of updates so far."""


def optimiser(config: Config) -> optax.GradientTransformation:
    """Return Adam, whose step falls to zero."""
    schedule = optax.cosine_decay_schedule(config.learning_rate, config.updates)
    return optax.adam(schedule)


def play_episode(
    flat: FlatTask, config: Config, actor: tuple[Linear, ...], key: jax.Array
) -> jax.Array:
    """Return the return of an episode of the train split.

    Rewards after the end of an episode count as zero.
    """
    task = flat.task
    params_key, initial_key, steps_key = jax.random.split(key, 3)
    params = task.sample_params(params_key, jnp.int32(Split.TRAIN))

    def step(carry: tuple[Any, jax.Array], t: jax.Array) -> tuple[Any, jax.Array]:
        state, running = carry
        step_key = jax.random.fold_in(steps_key, t)
        observation_key, action_key, reward_key, end_key = jax.random.split(step_key, 4)
        x, _ = flat.observe(task.observation(state, observation_key, params))
        action = action_of(flat, actor, x)
        next_state = task.transition(state, action, action_key, params)
        reward = task.reward(state, action, next_state, reward_key, params)
        counted = jnp.where(running, scalar_return(task, reward), 0.0)
        running &= ~task.terminal(next_state, end_key, params)
        return (next_state, running), counted

    start = task.initial(initial_key, params), jnp.bool_(True)
    return jax.lax.scan(step, start, jnp.arange(config.num_steps or 1))[1].sum()


def update(
    flat: FlatTask, config: Config, training: TrainingState
) -> tuple[TrainingState, Returns]:
    """Play a batch of episodes, and move along the gradient of their mean return."""
    keys = jax.random.split(update_key(training.seed, training.updates), config.num_envs)

    def loss(actor: tuple[Linear, ...]) -> tuple[jax.Array, jax.Array]:
        returns = jax.vmap(partial(play_episode, flat, config, actor))(keys)
        return -returns.mean(), returns

    gradient, returns = jax.grad(loss, has_aux=True)(training.actor)
    change, optimiser_state = optimiser(config).update(gradient, training.optimiser)
    updated = TrainingState(
        optax.apply_updates(training.actor, change),
        optimiser_state,
        training.seed,
        training.updates + 1,
    )
    return updated, Returns(returns.sum(), jnp.int32(config.num_envs))


def train_chunk(
    flat: FlatTask, config: Config, training: TrainingState
) -> tuple[TrainingState, Returns]:
    """Do the updates of a chunk."""
    training, returns = jax.lax.scan(
        lambda training, _: update(flat, config, training), training, length=config.chunk
    )
    return training, Returns(returns.total.sum(), returns.episodes.sum())


def start(flat: FlatTask, config: Config, seed: int) -> TrainingState:
    """Return the training state at the beginning of a run."""
    actor = jax.tree.map(jnp.asarray, initial_actor(flat, config, seed))
    return TrainingState(
        actor,
        optimiser(config).init(actor),
        jnp.asarray(seed_key(seed)),
        jnp.int32(0),
    )


class Programs:
    """The compiled chunk of a task and configuration; all seeds share it."""

    def __init__(self, task: Task[Any, Any], config: Config) -> None:
        start_time = time.perf_counter()
        self.flat = flatten_task(task, "hdpo")
        self.config = config
        self.chunk_steps = config.chunk * config.batch
        train = jax.jit(partial(train_chunk, self.flat, config))
        self.chunk = train.lower(self.start(0)).compile()
        self.seconds = time.perf_counter() - start_time

    def start(self, seed: int) -> TrainingState:
        """Return the training state at the beginning of a run."""
        return start(self.flat, self.config, seed)

    def policy(self, training: TrainingState) -> Policy:
        """Return the trained policy."""
        moments = Moments.initial(self.flat.features)
        return Policy(training.actor, moments, self.flat, self.config)


programs = cache(Programs)

# -- agent -----------------------------------------------------------------------------------------


class HDPO(LearningAgent):
    """The agent ``hdpo``, for tasks that are differentiable in their actions."""

    name = "hdpo"
    config_class = Config

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if the task is not declared to be differentiable."""
        if TAG not in task.card.tags:
            raise CannotPlay(
                "hdpo differentiates returns through the task, and the card of "
                f"{task.card.id} does not declare that it is differentiable in its actions (tag "
                f"{TAG!r})."
            )
        if task.card.agents > 1:
            raise CannotPlay(f"hdpo trains one agent, and {task.card.id} has {task.card.agents}.")
        if flatten_task(task, "hdpo").bounds is None:
            raise CannotPlay(f"hdpo plays bounded Box actions, not {task.action_space}.")

    def config(self, task: Task[Any, Any], budget: str) -> Config:
        """Return the checked hyperparameters; episodes are as long as those of the task."""
        config: Config = super().config(task, budget)
        if config.num_steps is None:
            config = replace(config, num_steps=task.card.horizon)
        return config

    def compile(self, task: Task[Any, Any], config: Config) -> tuple[Programs, float]:
        """Return the programs for a task, and the seconds it took to compile them.

        The seconds are 0 if the programs were cached.
        """
        return get_compiled(programs, task, config)

    def layer_widths(self, task: Task[Any, Any], config: Config) -> list[tuple[int, ...]]:
        """Return the widths of the network's layers."""
        return [(flatten_task(task, "hdpo").features, *config.hidden)]

    def untrained_policy(self, task: Task[Any, Any], config: Config) -> Policy:
        """Return a policy with initial weights."""
        flat = flatten_task(task, "hdpo")
        return Policy(initial_actor(flat, config, 0), Moments.initial(flat.features), flat, config)
