"""Pareto Conditioned Networks: imitate the best episodes, each told what it was going to return.

The algorithm is that of Reymond, Bargiacchi & Nowe 2022 (arXiv:2204.05036). One network reads the
observation, the return to come and the steps to come, and gives the action. It learns by imitation
of stored episodes, which are labelled with what they returned. Training repeats three steps:

* play episodes that are asked for a little more than a stored episode returned that no other
  dominates;
* keep the episodes whose returns lie near the front, and few of them where it is crowded;
* imitate them.

The set of policies is the front of the stored episodes: each member asks for one of its returns, so
that concave parts of a front are learned as well. What an episode returned by luck can be asked for
too, but not had: the algorithm is for tasks without chance.

Two details differ. A policy of this suite is not told its rewards, so it subtracts what a second
network predicts from the last step; that network learns from the same episodes. And what networks
read is normalised by running moments instead of by constants.

``stored_episodes.py`` says which episodes are kept and what is asked for. Read from top to bottom,
as data flows: configuration, networks, episodes, training, policy, agent.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from rlbench_suite.adapters.rollout import Stream
from rlbench_suite.core.arrays import FloatArray, Int, IntArray
from rlbench_suite.core.episode import ContextSource, reset_where, scalar_return, seed_key
from rlbench_suite.core.policy import View
from rlbench_suite.core.task import Task

from ..flat_task import FlatTask, flatten_task
from ..learning_agent import LearningAgent
from ..networks import Categorical, Linear, Moments, initial_layers, mlp
from ..training import Returns, begin_episodes, get_compiled, step_episodes, update_key
from .stored_episodes import (
    Episodes,
    choose_commands,
    closeness,
    command_at,
    crowding_distance,
    is_on_front,
    next_command,
)
from .vector_reward import RewardModel, TransitionMoments, check_vector_task

# -- configuration ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config:
    """Hyperparameters of PCN, in ``hyperparameters/pcn.yaml``."""

    total_steps: int
    """Environment steps, rounded up to whole rounds of episodes."""
    num_envs: int = 32
    """Episodes of one round, played side by side."""
    updates: int = 8_000
    """Gradient updates in the whole training, spread evenly over its steps."""
    batch_size: int = 256
    """Steps of episodes in one update."""
    capacity: int = 128
    """Stored episodes."""
    learning_rate: float = 1e-3
    """Learning rate of Adam."""
    hidden: int = 64
    """Units of each layer."""
    crowding: float = 0.2
    """Crowding distance below which an episode counts as twice as far from the front."""
    members: int = 32
    """Policies of the set; the least crowded returns of a larger front."""
    reports: int = 15
    """Number of progress reports."""

    def __post_init__(self) -> None:
        for name in ("total_steps", "num_envs", "batch_size", "capacity", "members", "reports"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}.")

    @property
    def chunks(self) -> int:
        """Chunks in a run."""
        return self.reports


# -- networks --------------------------------------------------------------------------------------


class Networks(NamedTuple):
    """The policy's network, and the model of rewards."""

    observation: tuple[Linear, ...]
    """From the normalised observation to its embedding."""
    command: tuple[Linear, ...]
    """From the normalised return and steps to come to theirs."""
    action: tuple[Linear, ...]
    """From the product of both embeddings to the logits."""
    rewards: RewardModel

    @classmethod
    def initial(cls, flat: FlatTask, objectives: int, config: Config, seed: int) -> Networks:
        """Return networks with orthogonal weights, which choose nearly uniformly."""
        generator = np.random.default_rng(seed)
        units = config.hidden
        return cls(
            initial_layers(generator, (flat.features, units), 1.0),
            initial_layers(generator, (objectives + 1, units), 1.0),
            initial_layers(generator, (units, units, flat.outputs), 0.01),
            RewardModel.initial(generator, flat, objectives, units),
        )

    def logits(self, x: jax.Array, command: jax.Array) -> jax.Array:
        """Return the logits ``(..., actions)`` for normalised inputs."""
        embedding = jax.nn.sigmoid(mlp(self.observation, x))
        return mlp(self.action, embedding * jax.nn.sigmoid(mlp(self.command, command)), jax.nn.relu)


class AllMoments(NamedTuple):
    """Moments of what the networks read."""

    transition: TransitionMoments
    command: Moments
    """Moments of returns to come and steps to come, ``(k + 1,)``."""


def mask_logits(logits: jax.Array, mask: jax.Array | None) -> jax.Array:
    """Return logits that never choose an illegal action."""
    return logits if mask is None else jnp.where(mask, logits, -jnp.inf)


# -- episodes --------------------------------------------------------------------------------------


class _Playing(NamedTuple):
    """State of a round while its episodes run."""

    t: Int
    running: jax.Array
    """bool ``(n,)``"""
    stream: Stream
    command: FloatArray
    """``(n, k + 1)``"""
    episodes: Episodes


def play_round(
    flat: FlatTask,
    networks: Networks,
    moments: AllMoments,
    stream: Stream,
    command: jax.Array,
    key: jax.Array,
) -> tuple[Stream, Episodes]:
    """Play one whole episode in every environment, each for a command ``(k + 1,)``.

    Actions are sampled. The environments begin new episodes then.
    """
    count = command.shape[0]
    horizon = flat.task.card.horizon
    objectives = command.shape[1] - 1

    def body(playing: _Playing) -> _Playing:
        t, running, stream, command, episodes = playing
        x, mask = jax.vmap(flat.observe)(
            stream.last.observation, stream.last.info.get("action_mask")
        )
        x = x[:, 0]
        logits = networks.logits(
            moments.transition.x.normalise(x), moments.command.normalise(command)
        )
        logits = mask_logits(logits, None if mask is None else mask[:, 0])
        noise = jax.random.uniform(jax.random.fold_in(key, t), (count, 1))
        action = Categorical((logits,)).sample(noise)
        stream, step, _ = step_episodes(flat, stream, action[:, None])
        reward = jnp.where(running[:, None], step.reward, 0)
        episodes = Episodes(
            episodes.x.at[:, t].set(x),
            episodes.action.at[:, t].set(action[:, 0]),
            episodes.reward.at[:, t].set(reward),
            episodes.length + running,
        )
        return _Playing(
            t + 1,
            running & ~(step.terminated | step.truncated),
            stream,
            next_command(command, reward),
            episodes,
        )

    empty = Episodes(
        jnp.zeros((count, horizon, flat.features)),
        jnp.zeros((count, horizon), jnp.int32),
        jnp.zeros((count, horizon, objectives)),
        jnp.zeros(count, jnp.int32),
    )
    start = _Playing(jnp.int32(0), jnp.ones(count, bool), stream, command, empty)
    end = jax.lax.while_loop(lambda playing: playing.running.any(), body, start)
    source = ContextSource.parse("train", flat.task)
    fresh = reset_where(
        flat.task, jnp.ones(count, bool), end.stream.episodes, end.stream.last, source
    )
    return Stream(*fresh), end.episodes


# -- training --------------------------------------------------------------------------------------


class TrainingState(NamedTuple):
    """State of a run between rounds."""

    networks: Networks
    moments: AllMoments
    optimiser: Any
    episodes: Episodes
    stream: Stream
    seed: jax.Array
    """Key data of the seed, uint32 ``(2,)``."""
    rounds: Int
    updates: Int
    steps: Int
    """Environment steps done."""
    chunks: Int
    """Chunks done."""


class Algorithm:
    """PCN on a task. JAX traces all methods but ``initial_networks``."""

    def __init__(self, flat: FlatTask, config: Config) -> None:
        self.flat = flat
        self.config = config
        self.objectives = len(flat.task.card.objectives)
        self.optimiser = optax.adam(config.learning_rate)
        self.chunk_steps = -(-config.total_steps // config.reports)

    def initial_networks(self, seed: int) -> Networks:
        """Return initial weights, made on the host."""
        return Networks.initial(self.flat, self.objectives, self.config, seed)

    def initial_moments(self) -> AllMoments:
        """Return moments of no data."""
        transition = TransitionMoments.initial(self.flat.features, self.objectives)
        return AllMoments(transition, Moments.initial(self.objectives + 1))

    def start(self, networks: Networks, seed: jax.Array, stream: Stream) -> TrainingState:
        """Return the state after a first round, in which every command is zero."""
        config = self.config
        moments = self.initial_moments()
        commands = jnp.zeros((config.num_envs, self.objectives + 1))
        key = update_key(seed, jnp.int32(0))
        stream, episodes = play_round(self.flat, networks, moments, stream, commands, key)
        copies = jnp.arange(config.capacity) % config.num_envs
        return TrainingState(
            networks=networks,
            moments=moments,
            optimiser=self.optimiser.init(networks),
            episodes=jax.tree.map(lambda leaf: leaf[copies], episodes),
            stream=stream,
            seed=seed,
            rounds=jnp.int32(1),
            updates=jnp.int32(0),
            steps=episodes.length.sum(),
            chunks=jnp.int32(0),
        )

    def train_chunk(self, training: TrainingState) -> tuple[TrainingState, Returns]:
        """Do rounds until the chunk's steps are done."""
        last_step = (training.chunks + 1) * self.chunk_steps

        def body(carry: tuple[TrainingState, Returns]) -> tuple[TrainingState, Returns]:
            training, returns = carry
            training, more = self.round(training)
            return training, jax.tree.map(jnp.add, returns, more)

        training, returns = jax.lax.while_loop(
            lambda carry: carry[0].steps < last_step,
            body,
            (training, Returns(jnp.float32(0), jnp.int32(0))),
        )
        return training._replace(chunks=training.chunks + 1), returns

    def round(self, training: TrainingState) -> tuple[TrainingState, Returns]:
        """Imitate, then play a round of episodes and keep the best of all."""
        config = self.config
        key = update_key(training.seed, training.rounds)
        command_key, play_key, learn_key = jax.random.split(key, 3)
        training = self.imitate(training, learn_key)
        commands = choose_commands(training.episodes, config.num_envs, command_key)
        stream, new_episodes = play_round(
            self.flat, training.networks, training.moments, training.stream, commands, play_key
        )
        candidates = jax.tree.map(
            lambda *leaves: jnp.concatenate(leaves), training.episodes, new_episodes
        )
        _, best = jax.lax.top_k(closeness(candidates.returns, config.crowding), config.capacity)
        returns = scalar_return(self.flat.task, new_episodes.returns)
        training = training._replace(
            episodes=jax.tree.map(lambda leaf: leaf[best], candidates),
            stream=stream,
            rounds=training.rounds + 1,
            steps=training.steps + new_episodes.length.sum(),
        )
        return training, Returns(returns.sum(), jnp.int32(config.num_envs))

    def imitate(self, training: TrainingState, key: jax.Array) -> TrainingState:
        """Do the updates that the steps so far ask for."""
        config = self.config
        due_updates = training.steps.astype(jnp.float32) * (config.updates / config.total_steps)

        def body(training: TrainingState) -> TrainingState:
            batch = self.sample(training.episodes, jax.random.fold_in(key, training.updates))
            moments = AllMoments(
                training.moments.transition.update(batch.x, batch.reward),
                training.moments.command.update(batch.command),
            )
            gradient = jax.grad(loss)(training.networks, moments, batch)
            change, optimiser = self.optimiser.update(gradient, training.optimiser)
            return training._replace(
                networks=optax.apply_updates(training.networks, change),
                moments=moments,
                optimiser=optimiser,
                updates=training.updates + 1,
            )

        return jax.lax.while_loop(lambda training: training.updates < due_updates, body, training)

    def sample(self, episodes: Episodes, key: jax.Array) -> Batch:
        """Return steps, each of an episode that is drawn uniformly, and uniform in it."""
        episode_key, step_key = jax.random.split(key)
        count = self.config.batch_size
        rows = jax.random.randint(episode_key, (count,), 0, self.config.capacity)
        length = episodes.length[rows]
        t = jnp.floor(jax.random.uniform(step_key, (count,)) * length).astype(jnp.int32)
        t = jnp.minimum(t, length - 1)
        next_t = jnp.minimum(t + 1, length - 1)
        return Batch(
            x=episodes.x[rows, t],
            action=episodes.action[rows, t],
            command=command_at(episodes.reward[rows], length, t),
            reward=episodes.reward[rows, t],
            next_x=episodes.x[rows, next_t],
            goes_on=t + 1 < length,
        )

    def commands(self, episodes: Episodes) -> jax.Array:
        """Return the members' commands ``(members, k + 1)``; minus infinity behind the last."""
        front = is_on_front(episodes.returns)
        distance = jnp.where(front, crowding_distance(episodes.returns), -jnp.inf)
        count = min(self.config.members, self.config.capacity)
        value, rows = jax.lax.top_k(distance, count)
        commands = jnp.concatenate([episodes.returns, episodes.length[:, None]], -1)[rows]
        commands = jnp.where(jnp.isfinite(value)[:, None], commands, -jnp.inf)
        missing = self.config.members - count
        return jnp.pad(commands, ((0, missing), (0, 0)), constant_values=-jnp.inf)


class Batch(NamedTuple):
    """Steps of stored episodes, ``(B, ...)``."""

    x: FloatArray
    action: IntArray
    command: FloatArray
    """Return and steps that followed, ``(B, k + 1)``."""
    reward: FloatArray
    next_x: FloatArray
    goes_on: jax.Array
    """bool: the episode had another step, whose observation is ``next_x``."""


def loss(networks: Networks, moments: AllMoments, batch: Batch) -> jax.Array:
    """Return the cross-entropy of the actions, and the loss of the model of rewards."""
    x = moments.transition.x.normalise(batch.x)
    logits = networks.logits(x, moments.command.normalise(batch.command))
    imitation = optax.softmax_cross_entropy_with_integer_labels(logits, batch.action).mean()
    return imitation + networks.rewards.loss(
        moments.transition, batch.x, batch.action, batch.next_x, batch.reward, batch.goes_on
    )


class Programs:
    """Compiled programs of PCN on a task; all seeds share them."""

    def __init__(self, algorithm: Algorithm) -> None:
        start_time = time.perf_counter()
        self.algorithm = algorithm
        self.chunk_steps = algorithm.chunk_steps
        self._start = jax.jit(algorithm.start)
        self._commands = jax.jit(algorithm.commands)
        training = self.start(0)
        self.chunk = jax.jit(algorithm.train_chunk, donate_argnums=0).lower(training).compile()
        self.seconds = time.perf_counter() - start_time

    def start(self, seed: int) -> TrainingState:
        """Return the state at the beginning of a run, including its environments."""
        algorithm = self.algorithm
        key = seed_key(seed)
        stream = begin_episodes(algorithm.flat.task, key, algorithm.config.num_envs)
        training: TrainingState = self._start(algorithm.initial_networks(seed), key, stream)
        return training

    def policy(self, training: TrainingState) -> Policy:
        """Return the trained set of policies."""
        actor = Actor(training.networks, self._commands(training.episodes))
        return Policy.for_card(actor, training.moments, self.algorithm)


_programs = cache(Programs)
_algorithm = cache(Algorithm)


# -- policy ----------------------------------------------------------------------------------------


class Actor(NamedTuple):
    """Contents of a file of a set of policies."""

    networks: Networks
    commands: FloatArray
    """Return and steps of each member, ``(members, k + 1)``; minus infinity for none."""


class Memory(NamedTuple):
    """Memory of the steps so far."""

    command: FloatArray
    """Return and steps to come, ``(k + 1,)``."""
    x: FloatArray
    """Last observation, not normalised, ``(features,)``."""
    action: Int
    """Last action; -1 at first."""


class Policy(eqx.Module):
    """Asks for the member's return that is best for weights, or for that of a certain member."""

    actor: Actor
    moments: AllMoments
    weights: FloatArray
    """float32 ``(k,)``"""
    member: Int
    """Number of the member; -1 for the best one."""
    algorithm: Algorithm = eqx.field(static=True)

    @classmethod
    def for_card(cls, actor: Actor, moments: AllMoments, algorithm: Algorithm) -> Policy:
        """Return the policy for the weights of the card."""
        weights = np.asarray(algorithm.flat.task.card.weights, np.float32)
        return cls(actor, moments, weights, np.int32(-1), algorithm)

    @property
    def flat(self) -> FlatTask:
        """The task."""
        return self.algorithm.flat

    @property
    def config(self) -> Config:
        """The hyperparameters."""
        return self.algorithm.config

    @property
    def members(self) -> np.ndarray:
        """Numbers of the members."""
        return np.flatnonzero(np.isfinite(np.asarray(self.actor.commands)[:, 0]))

    def for_member(self, member: jax.Array) -> Policy:
        """Return the policy that asks for the return of one member."""
        return eqx.tree_at(lambda policy: policy.member, self, jnp.asarray(member, jnp.int32))

    def for_weights(self, weights: jax.Array) -> Policy:
        """Return the policy that asks for the best return for other weights."""
        values = jnp.asarray(weights, jnp.float32), jnp.int32(-1)
        return eqx.tree_at(lambda policy: (policy.weights, policy.member), self, values)

    def initial(self, params: Any) -> Memory:
        """Return the command of the member."""
        commands = jnp.asarray(self.actor.commands)
        # A product with minus infinity is no number where the weight is 0.
        utility = jnp.maximum(commands[:, :-1], -1e30) @ jnp.asarray(self.weights)
        best = jnp.argmax(utility).astype(jnp.int32)
        member = jnp.where(self.member < 0, best, self.member)
        return Memory(commands[member], jnp.zeros(self.flat.features), jnp.int32(-1))

    def act(self, memory: Memory, view: View, key: jax.Array) -> tuple[jax.Array, Memory]:
        """Return the most likely action for what is still asked for."""
        features, mask = self.flat.observe(view.observation, view.action_mask)
        x = features[0]
        networks = self.actor.networks
        reward = networks.rewards.predict(self.moments.transition, memory.x, memory.action, x)
        command = jnp.where(memory.action < 0, memory.command, next_command(memory.command, reward))
        logits = networks.logits(
            self.moments.transition.x.normalise(x), self.moments.command.normalise(command)
        )
        logits = mask_logits(logits, None if mask is None else mask[0])
        action = logits.argmax(-1).astype(jnp.int32)
        return self.flat.env_action(action), Memory(command, x, action)


# -- agent -----------------------------------------------------------------------------------------


class PCN(LearningAgent):
    """The agent ``pcn``, for several objectives and one discrete choice a step."""

    name = "pcn"
    config_class = Config

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if the agent cannot play the task; the message says why."""
        check_vector_task(task, self.name)

    def algorithm(self, task: Task[Any, Any], config: Config) -> Algorithm:
        """Return the algorithm for the task."""
        return _algorithm(flatten_task(task, self.name), config)

    def compile(self, task: Task[Any, Any], config: Config) -> tuple[Programs, float]:
        """Return the programs for a task, and the seconds it took to compile them."""
        return get_compiled(_programs, self.algorithm(task, config))

    def layer_widths(self, task: Task[Any, Any], config: Config) -> list[tuple[int, ...]]:
        """Return the widths of the layers."""
        flat = flatten_task(task, self.name)
        return [(flat.features, config.hidden), (config.hidden, config.hidden, flat.outputs)]

    def untrained_policy(self, task: Task[Any, Any], config: Config) -> Policy:
        """Return a policy with initial weights, and no members."""
        algorithm = self.algorithm(task, config)
        commands = np.full((config.members, algorithm.objectives + 1), -np.inf, np.float32)
        actor = Actor(algorithm.initial_networks(0), commands)
        return Policy.for_card(actor, algorithm.initial_moments(), algorithm)
