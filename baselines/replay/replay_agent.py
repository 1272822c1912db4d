"""Experience replay with a compiled training loop, shared by ``sac`` and ``dqn``.

Experience replay is from Lin 1992 (Machine Learning 8) and Mnih et al. 2015. One program does a
chunk of steps (``lax.scan``). Each step advances every environment, writes the transitions to a
replay buffer that stays on the device, and does some gradient updates on uniformly drawn
transitions. A host loop calls the program about fifteen times. As in PPO, the program depends only
on task and configuration. In multi-agent tasks all agents share the weights, and each agent's step
is one transition (parameter sharing, Gupta et al. 2017).

Truncation is not termination. Targets bootstrap from the observation after the step (the final one,
before any reset) unless the task ended there. The buffer therefore stores neither episode
boundaries nor truncation.

The buffer stores raw observations. They are normalised when used, by the running moments of all
observations so far: tasks come in all units, and old experience is then read on the same scale as
new. The moments move less and less, so the targets can follow.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from rlbench_suite.adapters.rollout import Stream
from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.arrays import Array, FlagArray, FloatArray, UInt8Array
from rlbench_suite.core.episode import Step, seed_key
from rlbench_suite.core.policy import ActingParameters, View, no_memory
from rlbench_suite.core.task import Task

from ..flat_task import FlatTask, flatten_task
from ..learning_agent import LearningAgent
from ..networks import Moments
from ..training import Returns, begin_episodes, get_compiled, step_episodes, update_key

_MAX_UPDATES_PER_CHUNK = 10_000
"""Limit that keeps a chunk to some seconds, so that a long run still reports progress."""

# -- configuration ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReplayConfig:
    """Hyperparameters that all algorithms with experience replay share."""

    total_steps: int
    """Environment steps, rounded up to whole chunks. A step of many agents counts once."""
    num_envs: int = 8
    updates: int = 4
    """Gradient updates after each step of all environments."""
    batch_size: int = 128
    """Transitions in one update; a transition is one agent's step."""
    capacity: int = 100_000
    """Approximate size of the buffer in transitions; the oldest are overwritten."""
    learning_starts: int = 1_000
    """Environment steps of random play before the first update."""
    learning_rate: float = 1e-3
    """Learning rate of Adam."""
    gamma: float = 0.99
    reward_scale: float = 1.0
    """Factor on rewards; values should be of order one to a hundred."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the ReLU layers."""
    reports: int = 15
    """Approximate number of chunks, and so of progress reports, in a run.

    There are more if a chunk would exceed ``_MAX_UPDATES_PER_CHUNK`` updates.
    """

    def __post_init__(self) -> None:
        for name in ("total_steps", "num_envs", "updates", "batch_size", "capacity", "reports"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}.")
        if not 0 <= self.gamma <= 1:
            raise ValueError(f"gamma must lie in [0, 1], got {self.gamma}.")

    @property
    def chunk(self) -> int:
        """Steps of each environment in one chunk."""
        return min(
            -(-self.total_steps // (self.num_envs * self.reports)),
            max(1, _MAX_UPDATES_PER_CHUNK // self.updates),
        )

    @property
    def chunks(self) -> int:
        """Chunks in a run."""
        return -(-self.total_steps // (self.num_envs * self.chunk))

    @property
    def steps(self) -> int:
        """Environment steps in a run."""
        return self.chunks * self.chunk * self.num_envs


# -- experience ------------------------------------------------------------------------------------


class Experience(NamedTuple):
    """Transitions, each one agent's step; axis 0 is the batch of B.

    A description of them has a ``jax.ShapeDtypeStruct`` for each array.
    """

    x: FloatArray
    """Observation before the step, float32 ``(B, features)``, not normalised."""
    action: Array
    """Action: float32 ``(B, outputs)`` in units of half its range, or int32 ``(B, choices)``."""
    reward: FloatArray
    """float32 ``(B,)``, multiplied by the scale of rewards."""
    next_x: FloatArray
    """Observation after the step, as ``x``: the final one where the episode ended."""
    next_legal: UInt8Array | None
    """Action mask after the step, packed as bits, uint8 ``(B, ceil(outputs / 8))``.

    It is None where every action is legal.
    """
    terminated: FlagArray
    """bool ``(B,)``: True where the task ended; a time limit does not count."""


class ReplayBuffer(NamedTuple):
    """Ring buffer with the latest transitions, in no particular order."""

    experience: Experience
    position: jax.Array
    """Index at which the next block is written, int32 ``()``."""
    filled: jax.Array
    """Number of transitions stored, int32 ``()``."""

    @classmethod
    def empty(cls, like: Any, capacity: int) -> ReplayBuffer:
        """Return an empty buffer for ``capacity`` transitions.

        They have the shapes of those of ``like`` (arrays or shapes).
        """
        experience = jax.tree.map(
            lambda leaf: jnp.zeros((capacity, *leaf.shape[1:]), leaf.dtype), like
        )
        return cls(experience, jnp.int32(0), jnp.int32(0))

    @property
    def capacity(self) -> int:
        """Number of transitions that fit."""
        return int(jax.tree.leaves(self.experience)[0].shape[0])

    def write(self, block: Any) -> ReplayBuffer:
        """Overwrite the oldest transitions with a block.

        Its length divides the capacity, so blocks never wrap.
        """
        size = jax.tree.leaves(block)[0].shape[0]
        experience = jax.tree.map(
            lambda old, new: jax.lax.dynamic_update_slice_in_dim(
                old, new.astype(old.dtype), self.position, 0
            ),
            self.experience,
            block,
        )
        return ReplayBuffer(
            experience,
            (self.position + size) % self.capacity,
            jnp.minimum(self.filled + size, self.capacity),
        )

    def sample(self, key: jax.Array, count: int) -> Any:
        """Return ``count`` transitions, chosen uniformly and with replacement."""
        rows = jax.random.randint(key, (count,), 0, self.filled)
        return jax.tree.map(lambda leaf: leaf[rows], self.experience)


# -- training --------------------------------------------------------------------------------------


class LearnerState(NamedTuple):
    """State that an update changes."""

    networks: Any
    """Networks of the algorithm: ``sac.Networks`` or ``dqn.Network``."""
    targets: Any
    """Slowly changing copies of networks, which compute the targets."""
    optimiser: Any
    """State of Adam."""
    updates: jax.Array
    """Number of updates done, int32 ``()``."""


class TrainingState(NamedTuple):
    """State of a run between steps."""

    learner: LearnerState
    moments: Any
    """Moments of what the networks read: :class:`Moments`, or several of them."""
    buffer: ReplayBuffer
    stream: Stream
    seed: jax.Array
    """Key data of the seed, uint32 ``(2,)``."""
    steps: jax.Array
    """Number of steps done by each environment, int32 ``()``."""


class Algorithm(ABC):
    """An algorithm that learns from replayed transitions.

    It has networks, a way to explore, one update, and the actions of the trained policy.

    JAX traces all methods except ``networks``. ``x`` is normalised everywhere.
    """

    def __init__(self, flat: FlatTask, config: Any) -> None:
        self.flat = flat
        self.config = config

    @abstractmethod
    def networks(self, seed: int) -> Any:
        """Return initial weights, made on the host."""

    @abstractmethod
    def learner(self, networks: Any) -> LearnerState:
        """Return the state at the beginning of learning."""

    @abstractmethod
    def explore(
        self, networks: Any, x: jax.Array, mask: jax.Array | None, key: jax.Array, steps: jax.Array
    ) -> jax.Array:
        """Return actions ``(environments, A, components)`` for training.

        ``steps`` is the number of environment steps so far.
        """

    @abstractmethod
    def learn(self, learner: LearnerState, batch: Experience, key: jax.Array) -> LearnerState:
        """Do one gradient update."""

    @abstractmethod
    def actor(self, networks: Any) -> Any:
        """Return the part of the networks that a policy needs."""

    @abstractmethod
    def acting_parameters(self, actor: Any, moments: Moments) -> ActingParameters:
        """Return the acting network as plain parameters, for export."""

    @abstractmethod
    def act(self, actor: Any, x: jax.Array, mask: jax.Array | None, key: jax.Array) -> jax.Array:
        """Return the actions ``(A, components)`` of the trained policy."""

    # What the algorithm stores: each agent's step by itself, unless it learns from joint ones.

    def observe(self, step: Step) -> tuple[Any, jax.Array | None]:
        """Return what the networks read in every environment after a step, and the masks."""
        return jax.vmap(self.flat.observe)(step.observation, step.info.get("action_mask"))

    def initial_moments(self) -> Any:
        """Return the moments of what :meth:`observe` returns."""
        return Moments.initial(self.flat.features)

    def acting_moments(self, moments: Any) -> Moments:
        """Return the moments that a trained policy needs."""
        acting: Moments = moments
        return acting

    def transitions(
        self, x: Any, action: jax.Array, step: Step, next_x: Any, next_mask: jax.Array | None
    ) -> Experience:
        """Return the rows that the buffer stores of a step of every environment."""
        rows = Experience(
            x,
            action,
            jax.vmap(self.flat.agent_rewards)(step.reward) * self.config.reward_scale,
            next_x,
            self.pack_mask(next_mask),
            jnp.repeat(step.terminated[:, None], self.flat.agents, 1),
        )
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), rows)

    def pack_mask(self, mask: jax.Array | None) -> jax.Array | None:
        """Pack a mask ``(..., actions)`` into bits, as the buffer stores it."""
        return None if mask is None else jnp.packbits(mask, axis=-1)

    def unpack_mask(self, packed: jax.Array | None) -> jax.Array | None:
        """Restore a mask that :meth:`pack_mask` packed."""
        return (
            None
            if packed is None
            else jnp.unpackbits(packed, axis=-1, count=self.flat.outputs).astype(bool)
        )


def step(algorithm: Algorithm, training: TrainingState) -> tuple[TrainingState, Returns]:
    """Take one step in every environment, then do some updates."""
    flat = algorithm.flat
    config = algorithm.config
    explore_key, sample_key, learn_key = jax.random.split(
        update_key(training.seed, training.steps), 3
    )

    x, mask = algorithm.observe(training.stream.last)
    done = training.steps * config.num_envs
    normalised = training.moments.normalise(x)
    action = algorithm.explore(training.learner.networks, normalised, mask, explore_key, done)
    stream, env_step, returns = step_episodes(flat, training.stream, action)
    next_x, next_mask = algorithm.observe(env_step)
    transitions = algorithm.transitions(x, action, env_step, next_x, next_mask)
    buffer = training.buffer.write(transitions)
    moments = training.moments.update(transitions.x)

    def update(
        learner: LearnerState, keys: tuple[jax.Array, jax.Array]
    ) -> tuple[LearnerState, None]:
        batch = buffer.sample(keys[0], config.batch_size)
        batch = batch._replace(x=moments.normalise(batch.x), next_x=moments.normalise(batch.next_x))
        return algorithm.learn(learner, batch, keys[1]), None

    keys = jax.random.split(sample_key, config.updates), jax.random.split(learn_key, config.updates)
    learner = jax.lax.cond(
        done + config.num_envs > config.learning_starts,
        lambda learner: jax.lax.scan(update, learner, keys)[0],
        lambda learner: learner,
        training.learner,
    )
    return TrainingState(
        learner, moments, buffer, stream, training.seed, training.steps + 1
    ), returns


def start(algorithm: Algorithm, networks: Any, seed: jax.Array, stream: Stream) -> TrainingState:
    """Return the state at the beginning of a run.

    ``seed`` is key data; ``stream`` holds the environments.
    """
    flat = algorithm.flat
    config = algorithm.config
    x, mask = algorithm.observe(stream.last)
    components = (len(flat.choices), jnp.int32) if flat.choices else (flat.outputs, jnp.float32)
    action = jnp.zeros((config.num_envs, flat.agents, components[0]), components[1])
    rows = jax.eval_shape(algorithm.transitions, x, action, stream.last, x, mask)
    # A row is one agent's step, or a joint one, and the capacity counts the steps of agents.
    steps = min(config.capacity / flat.agents, config.steps) / config.num_envs
    capacity = math.ceil(steps) * rows.reward.shape[0]
    return TrainingState(
        learner=algorithm.learner(networks),
        moments=algorithm.initial_moments(),
        buffer=ReplayBuffer.empty(rows, capacity),
        stream=stream,
        seed=seed,
        steps=jnp.int32(0),
    )


def train_chunk(algorithm: Algorithm, training: TrainingState) -> tuple[TrainingState, Returns]:
    """Do ``config.chunk`` steps in every environment. This is a pure function, to be jitted."""
    length = algorithm.config.chunk
    training, returns = jax.lax.scan(
        lambda training, _: step(algorithm, training), training, length=length
    )
    return training, jax.tree.map(jnp.sum, returns)


class ReplayPolicy(eqx.Module):
    """A trained policy: its weights and the moments that normalise its observations."""

    actor: Any
    moments: Moments
    algorithm: Algorithm = eqx.field(static=True)

    @property
    def flat(self) -> FlatTask:
        """The task."""
        return self.algorithm.flat

    @property
    def config(self) -> Any:
        """The hyperparameters."""
        return self.algorithm.config

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the action that the algorithm chooses."""
        flat = self.algorithm.flat
        x, mask = flat.observe(view.observation, view.action_mask)
        return flat.env_action(
            self.algorithm.act(self.actor, self.moments.normalise(x), mask, key)
        ), memory

    def acting_parameters(self) -> ActingParameters:
        """Return the acting network as plain parameters, for export."""
        return self.algorithm.acting_parameters(self.actor, self.moments)


class Programs:
    """Compiled ``start`` and ``train_chunk`` of an algorithm on a task; all seeds share them."""

    def __init__(self, algorithm: Algorithm) -> None:
        start_time = time.perf_counter()
        self.algorithm = algorithm
        self._start = jax.jit(partial(start, algorithm))
        self.chunk_steps = algorithm.config.chunk * algorithm.config.num_envs
        # The buffer is large, so it is donated to the program instead of copied.
        self.chunk = (
            jax.jit(partial(train_chunk, algorithm), donate_argnums=0)
            .lower(self.start(0))
            .compile()
        )
        self.seconds = time.perf_counter() - start_time

    def start(self, seed: int) -> TrainingState:
        """Return the state at the beginning of a run, including its environments."""
        key = seed_key(seed)
        stream = begin_episodes(self.algorithm.flat.task, key, self.algorithm.config.num_envs)
        training: TrainingState = self._start(self.algorithm.networks(seed), key, stream)
        return training

    def policy(self, training: TrainingState) -> ReplayPolicy:
        """Return the trained policy."""
        return ReplayPolicy(
            self.algorithm.actor(training.learner.networks),
            self.algorithm.acting_moments(training.moments),
            self.algorithm,
        )


programs = cache(Programs)


@cache
def _algorithm(algorithm_class: type[Algorithm], flat: FlatTask, config: Any) -> Algorithm:
    """Return the same object for the same arguments.

    Its compiled programs are found again that way.
    """
    return algorithm_class(flat, config)


class ReplayAgent(LearningAgent):
    """An agent that trains an :class:`Algorithm`."""

    algorithm_class: ClassVar[type[Algorithm]]

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if the algorithm cannot play the task; the message says why."""
        if task.card.host:
            raise CannotPlay(
                f"{self.name} trains in one compiled program, but {task.card.id} runs on the host."
            )
        plain = getattr(task, "plain", task)  # without sampled preferences
        if type(plain).alive is not Task.alive:
            raise CannotPlay(
                f"{self.name} stores every agent's steps, and agents of {task.card.id} die. PPO "
                "leaves out the steps of the dead."
            )
        flatten_task(task, self.name)

    def algorithm(self, task: Task[Any, Any], config: Any) -> Algorithm:
        """Return the algorithm for the task."""
        return _algorithm(self.algorithm_class, flatten_task(task, self.name), config)

    def compile(self, task: Task[Any, Any], config: Any) -> tuple[Programs, float]:
        """Return the programs for a task, and the seconds it took to compile them.

        The seconds are 0 if the programs were cached.
        """
        return get_compiled(programs, self.algorithm(task, config))

    def layer_widths(self, task: Task[Any, Any], config: Any) -> list[tuple[int, ...]]:
        """Return the widths of the layers."""
        return [(flatten_task(task, self.name).features, *config.hidden)]

    def untrained_policy(self, task: Task[Any, Any], config: Any) -> ReplayPolicy:
        """Return a policy with initial weights."""
        algorithm = self.algorithm(task, config)
        actor = algorithm.actor(algorithm.networks(0))
        return ReplayPolicy(actor, Moments.initial(algorithm.flat.features), algorithm)
