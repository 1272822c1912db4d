"""Deep Q-learning of vector values, shared by ``envelope``, ``gpi-ls`` and ``morl-d``.

A network of action values has an output for each action and objective. What an episode is played
for, its preference, is drawn when it begins: weights, or a member of a population. Utilities, which
depend on the preference, choose actions; the rewards that are stored and learned from stay vectors,
so that every step serves all preferences.

One program does a chunk of steps. Each step advances every environment, writes the transitions to a
replay buffer on the device and does some updates, as in ``replay/replay_agent.py``. Between chunks
an agent may change what preferences are drawn from, its *plan*.

Read from top to bottom: configuration, network, training, policy, agent.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from rlbench_suite.adapters.rollout import Stream
from rlbench_suite.core.arrays import Array, FloatArray, Int
from rlbench_suite.core.episode import Step, seed_key
from rlbench_suite.core.policy import View, no_memory
from rlbench_suite.core.task import Task

from ..flat_task import FlatTask, flatten_task
from ..learning_agent import LearningAgent
from ..networks import Linear, initial_layers, mlp
from ..replay.replay_agent import Experience, LearnerState, ReplayBuffer, ReplayConfig
from ..scripted import nth_legal
from ..training import Returns, begin_episodes, get_compiled, step_episodes, update_key
from .vector_reward import TransitionMoments, check_vector_task

# -- configuration ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class VectorConfig(ReplayConfig):
    """Hyperparameters that all agents with vector values share."""

    num_envs: int = 16
    updates: int = 1
    batch_size: int = 64
    target_period: int = 200
    """Updates between copies to the target network."""
    epsilon: float = 0.05
    """Final probability of a random action; it falls linearly from 1."""
    exploration: float = 0.5
    """Fraction of the run during which epsilon falls."""
    learning_rate: float = 1e-3
    """Learning rate of Adam at first; it falls linearly to zero."""
    max_grad_norm: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target_period < 1:
            raise ValueError(f"target_period must be at least 1, got {self.target_period}.")
        for name in ("epsilon", "exploration"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie in [0, 1], got {getattr(self, name)}.")


# -- network ---------------------------------------------------------------------------------------


class VectorNetwork(NamedTuple):
    """Network of vector action values."""

    layers: tuple[Linear, ...]

    @classmethod
    def initial(
        cls, seed: int, inputs: int, hidden: tuple[int, ...], actions: int, objectives: int
    ) -> VectorNetwork:
        """Return a network with orthogonal weights, whose values are nearly 0.

        The best of many values that differ by chance alone would mislead the first targets.
        """
        widths = inputs, *hidden, actions * objectives
        return cls(initial_layers(np.random.default_rng(seed), widths, 0.01))

    def values(self, inputs: jax.Array, objectives: int) -> jax.Array:
        """Return the values ``(..., actions, k)`` for normalised inputs."""
        values = mlp(self.layers, inputs, jax.nn.relu)
        return values.reshape(*values.shape[:-1], -1, objectives)


def take_action(values: jax.Array, action: jax.Array) -> jax.Array:
    """Return the values ``(..., k)`` of an action ``(...)`` from those of all."""
    return jnp.take_along_axis(values, action[..., None, None], -2)[..., 0, :]


def forbid(utility: jax.Array, mask: jax.Array | None) -> jax.Array:
    """Return utilities of actions, minus infinity for illegal ones."""
    return utility if mask is None else jnp.where(mask, utility, -jnp.inf)


def sample_simplex(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Return weights ``shape`` that are uniform on the simplex of its last axis."""
    gaps = jax.random.exponential(key, shape)
    return gaps / gaps.sum(-1, keepdims=True)


# -- training --------------------------------------------------------------------------------------


class TrainingState(NamedTuple):
    """State of a run between steps."""

    learner: LearnerState
    moments: TransitionMoments
    buffer: ReplayBuffer
    stream: Stream
    preference: Array
    """Preferences of the running episodes, ``(environments, ...)``."""
    accrued: FloatArray
    """Rewards of the running episodes so far, ``(environments, k)``."""
    first_x: FloatArray
    """Inputs of networks at the first step of each environment's first episode."""
    plan: Any
    """Source from which preferences are drawn."""
    seed: jax.Array
    """Key data of the seed, uint32 ``(2,)``."""
    steps: Int
    """Steps done by each environment."""


class VectorQ(ABC):
    """An algorithm that learns vector values.

    JAX traces all methods but ``networks``, ``initial_plan`` and ``replan``. ``x`` is normalised
    where networks read it.
    """

    reads_accrued: bool = False
    """Whether networks also read the rewards of the episode so far, behind the observation."""

    def __init__(self, flat: FlatTask, config: Any) -> None:
        self.flat = flat
        self.config = config
        self.objectives = len(flat.task.card.objectives)
        self.features = flat.features + self.objectives * self.reads_accrued

    @abstractmethod
    def networks(self, seed: int) -> Any:
        """Return initial weights, made on the host."""

    @abstractmethod
    def initial_plan(self) -> Any:
        """Return what preferences are drawn from at first."""

    @abstractmethod
    def sample_preferences(self, plan: Any, key: jax.Array, count: int) -> jax.Array:
        """Return what ``count`` new episodes are played for."""

    @abstractmethod
    def utilities(
        self, networks: Any, plan: Any, preference: jax.Array, x: jax.Array, accrued: jax.Array
    ) -> jax.Array:
        """Return the utilities ``(n, actions)`` of a batch of n steps for their preferences."""

    @abstractmethod
    def learn(self, learner: LearnerState, training: TrainingState, key: jax.Array) -> LearnerState:
        """Do one update with steps of the buffer."""

    @abstractmethod
    def actor(self, networks: Any, plan: Any) -> Any:
        """Return what a policy needs of both, as a file holds it."""

    def record(self, plan: Any, over: jax.Array, preference: jax.Array, returns: jax.Array) -> Any:
        """Return the plan after episodes ended; ``returns`` is ``(n, k)``."""
        return plan

    def replan(self, training: TrainingState) -> TrainingState:
        """Return the state with a plan for the next chunk; not traced."""
        return training

    def observe(self, step: Step, accrued: jax.Array) -> tuple[jax.Array, jax.Array | None]:
        """Return what networks read of each environment ``(n, features)``, and the masks."""
        x, mask = jax.vmap(self.flat.observe)(step.observation, step.info.get("action_mask"))
        x = x[:, 0]
        if self.reads_accrued:
            x = jnp.concatenate([x, accrued], -1)
        return x, None if mask is None else mask[:, 0]

    def sample(self, training: TrainingState, key: jax.Array, count: int) -> Experience:
        """Return steps of the buffer; their observations are normalised."""
        batch: Experience = training.buffer.sample(key, count)
        moments = training.moments.x
        return batch._replace(x=moments.normalise(batch.x), next_x=moments.normalise(batch.next_x))

    def unpack_mask(self, packed: jax.Array | None) -> jax.Array | None:
        """Restore a mask that the buffer holds as bits."""
        if packed is None:
            return None
        return jnp.unpackbits(packed, axis=-1, count=self.flat.outputs).astype(bool)

    def optimiser(self) -> optax.GradientTransformation:
        """Return Adam with a bound on the norm of the whole gradient."""
        return optax.chain(
            optax.clip_by_global_norm(self.config.max_grad_norm),
            optax.adam(self.learning_rate(), eps=1e-5),
        )

    def learning_rate(self) -> optax.Schedule:
        """Return a learning rate that falls linearly to zero over the run.

        Where time costs little, ways to a far treasure differ by a hundredth of their values.
        """
        config = self.config
        updates = config.chunks * config.chunk * config.updates
        return optax.linear_schedule(config.learning_rate, 0.0, updates)

    def learner(self, networks: Any) -> LearnerState:
        """Return the initial state; the targets equal the networks."""
        targets = jax.tree.map(jnp.array, networks)
        return LearnerState(networks, targets, self.optimiser().init(networks), jnp.int32(0))

    def descend(self, learner: LearnerState, gradient: Any) -> LearnerState:
        """Take one gradient step.

        Every ``target_period`` updates, copy the networks to the targets.
        """
        networks, targets, optimiser, updates = learner
        change, optimiser = self.optimiser().update(gradient, optimiser)
        networks = optax.apply_updates(networks, change)
        refresh = (updates + 1) % self.config.target_period == 0
        targets = jax.tree.map(lambda new, old: jnp.where(refresh, new, old), networks, targets)
        return LearnerState(networks, targets, optimiser, updates + 1)


def step(algorithm: VectorQ, training: TrainingState) -> tuple[TrainingState, Returns]:
    """Take one step in every environment, then do some updates."""
    flat = algorithm.flat
    config = algorithm.config
    key = update_key(training.seed, training.steps)
    explore_key, learn_key, preference_key = jax.random.split(key, 3)

    x, mask = algorithm.observe(training.stream.last, training.accrued)
    steps_done = training.steps * config.num_envs
    utility = forbid(
        algorithm.utilities(
            training.learner.networks,
            training.plan,
            training.preference,
            training.moments.x.normalise(x),
            training.accrued,
        ),
        mask,
    )
    share = jnp.clip(steps_done / max(1.0, config.exploration * config.steps), 0, 1)
    epsilon = jnp.where(steps_done < config.learning_starts, 1.0, 1 + share * (config.epsilon - 1))
    action = choose(utility, mask, explore_key, epsilon)

    stream, env_step, returns = step_episodes(flat, training.stream, action[:, None, None])
    over = env_step.terminated | env_step.truncated
    accrued = training.accrued + env_step.reward
    next_x, next_mask = algorithm.observe(env_step, accrued)
    packed = None if next_mask is None else jnp.packbits(next_mask, axis=-1)
    rows = Experience(x, action, env_step.reward, next_x, packed, env_step.terminated)
    preference = algorithm.sample_preferences(training.plan, preference_key, config.num_envs)
    training = training._replace(
        buffer=training.buffer.write(rows),
        moments=training.moments.update(x, env_step.reward),
        stream=stream,
        preference=jax.vmap(jnp.where)(over, preference, training.preference),
        plan=algorithm.record(training.plan, over, training.preference, accrued),
        accrued=jnp.where(over[:, None], 0, accrued),
        steps=training.steps + 1,
    )

    def update(learner: LearnerState, key: jax.Array) -> tuple[LearnerState, None]:
        return algorithm.learn(learner, training, key), None

    learner = jax.lax.cond(
        steps_done + config.num_envs > config.learning_starts,
        lambda learner: jax.lax.scan(update, learner, jax.random.split(learn_key, config.updates))[
            0
        ],
        lambda learner: learner,
        training.learner,
    )
    return training._replace(learner=learner), returns


def choose(
    utility: jax.Array, mask: jax.Array | None, key: jax.Array, epsilon: jax.Array
) -> jax.Array:
    """Choose the best legal action or, with probability ``epsilon``, a random one, ``(n,)``."""
    uniform = jax.random.uniform(key, (utility.shape[0], 2))
    legal = jnp.ones(utility.shape, bool) if mask is None else mask
    random_action = jax.vmap(nth_legal)(legal, uniform[:, 1])
    best_action = utility.argmax(-1).astype(jnp.int32)
    return jnp.where(uniform[:, 0] < epsilon, random_action, best_action)


def start(
    algorithm: VectorQ, networks: Any, plan: Any, seed: jax.Array, stream: Stream
) -> TrainingState:
    """Return the state at the beginning of a run."""
    config = algorithm.config
    accrued = jnp.zeros((config.num_envs, algorithm.objectives))
    x, mask = algorithm.observe(stream.last, accrued)
    packed = None if mask is None else jnp.packbits(mask, axis=-1)
    over = jnp.zeros(config.num_envs, bool)
    rows = Experience(x, jnp.zeros(config.num_envs, jnp.int32), accrued, x, packed, over)
    capacity = math.ceil(min(config.capacity, config.steps) / config.num_envs) * config.num_envs
    # The key of an update that no run reaches.
    key = update_key(seed, jnp.int32(-1))
    return TrainingState(
        learner=algorithm.learner(networks),
        moments=TransitionMoments.initial(algorithm.features, algorithm.objectives),
        buffer=ReplayBuffer.empty(rows, capacity),
        stream=stream,
        preference=algorithm.sample_preferences(plan, key, config.num_envs),
        accrued=accrued,
        first_x=x,
        plan=plan,
        seed=seed,
        steps=jnp.int32(0),
    )


def train_chunk(algorithm: VectorQ, training: TrainingState) -> tuple[TrainingState, Returns]:
    """Do ``config.chunk`` steps in every environment. This is a pure function, to be jitted."""
    training, returns = jax.lax.scan(
        lambda training, _: step(algorithm, training), training, length=algorithm.config.chunk
    )
    return training, jax.tree.map(jnp.sum, returns)


class Programs:
    """Compiled programs of an algorithm on a task; all seeds share them."""

    def __init__(self, algorithm: VectorQ, policy_class: type[Any]) -> None:
        start_time = time.perf_counter()
        self.algorithm = algorithm
        self.policy_class = policy_class
        self.chunk_steps = algorithm.config.chunk * algorithm.config.num_envs
        self._start = jax.jit(lambda *args: start(algorithm, *args))
        self._chunk = (
            jax.jit(lambda training: train_chunk(algorithm, training), donate_argnums=0)
            .lower(self.start(0))
            .compile()
        )
        self.seconds = time.perf_counter() - start_time

    def start(self, seed: int) -> TrainingState:
        """Return the state at the beginning of a run, including its environments."""
        algorithm = self.algorithm
        key = seed_key(seed)
        stream = begin_episodes(algorithm.flat.task, key, algorithm.config.num_envs)
        training: TrainingState = self._start(
            algorithm.networks(seed), algorithm.initial_plan(), key, stream
        )
        return training

    def chunk(self, training: TrainingState) -> tuple[TrainingState, Returns]:
        """Train for one chunk, then plan the next."""
        training, returns = self._chunk(training)
        return self.algorithm.replan(training), returns

    def policy(self, training: TrainingState) -> Any:
        """Return the trained set of policies."""
        actor = self.algorithm.actor(training.learner.networks, training.plan)
        return self.policy_class.for_card(actor, training.moments, self.algorithm)


_programs = cache(Programs)


@cache
def _algorithm(algorithm_class: type[VectorQ], flat: FlatTask, config: Any) -> VectorQ:
    return algorithm_class(flat, config)


# -- one network for all weights -------------------------------------------------------------------


class ConditionedActor(NamedTuple):
    """Contents of a file of a policy for all weights."""

    networks: VectorNetwork
    """It reads normalised observation and weights."""
    plan: Any


class ConditionedQ(VectorQ):
    """Vector values of a network that also reads weights; a preference is weights ``(k,)``."""

    def networks(self, seed: int) -> VectorNetwork:
        """Return the initial network."""
        inputs = self.features + self.objectives
        return VectorNetwork.initial(
            seed, inputs, self.config.hidden, self.flat.outputs, self.objectives
        )

    def values(self, network: VectorNetwork, x: jax.Array, weights: jax.Array) -> jax.Array:
        """Return the values ``(..., actions, k)`` of play for weights ``(..., k)``."""
        shape = jnp.broadcast_shapes(x.shape[:-1], weights.shape[:-1])
        # Weights are small beside normalised observations: centred, and as far apart as those.
        centred = (weights * self.objectives - 1) * math.sqrt(self.objectives)
        x = jnp.broadcast_to(x, (*shape, x.shape[-1]))
        centred = jnp.broadcast_to(centred, (*shape, self.objectives))
        return network.values(jnp.concatenate([x, centred], -1), self.objectives)

    def actor(self, networks: VectorNetwork, plan: Any) -> ConditionedActor:
        """Return both."""
        return ConditionedActor(networks, plan)


class ConditionedPolicy(eqx.Module):
    """A policy that plays for weights, of which the utilities depend."""

    actor: ConditionedActor
    moments: TransitionMoments
    weights: FloatArray
    """float32 ``(k,)``; their sum is 1."""
    algorithm: VectorQ = eqx.field(static=True)

    @classmethod
    def for_card(
        cls, actor: ConditionedActor, moments: TransitionMoments, algorithm: VectorQ
    ) -> ConditionedPolicy:
        """Return the policy for the weights of the card, scaled to a sum of 1."""
        weights = np.asarray(algorithm.flat.task.card.weights, np.float32)
        return cls(actor, moments, weights / weights.sum(), algorithm)

    @property
    def flat(self) -> FlatTask:
        """The task."""
        return self.algorithm.flat

    @property
    def config(self) -> Any:
        """The hyperparameters."""
        return self.algorithm.config

    def for_weights(self, weights: jax.Array) -> ConditionedPolicy:
        """Return the policy for other weights."""
        return ConditionedPolicy(
            self.actor, self.moments, jnp.asarray(weights, jnp.float32), self.algorithm
        )

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the legal action with the best utility."""
        x, mask = self.flat.observe(view.observation, view.action_mask)
        utility = self.algorithm.utilities(
            self.actor.networks,
            self.actor.plan,
            jnp.asarray(self.weights)[None],
            self.moments.x.normalise(x),
            jnp.zeros((1, self.algorithm.objectives)),
        )
        action = forbid(utility, mask)[0].argmax(-1).astype(jnp.int32)
        return self.flat.env_action(action), memory


# -- agent -----------------------------------------------------------------------------------------


class VectorAgent(LearningAgent):
    """An agent that trains a :class:`VectorQ`."""

    algorithm_class: ClassVar[type[VectorQ]]
    policy_class: ClassVar[type[Any]] = ConditionedPolicy

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if the agent cannot play the task; the message says why."""
        check_vector_task(task, self.name)

    def algorithm(self, task: Task[Any, Any], config: Any) -> VectorQ:
        """Return the algorithm for the task."""
        return _algorithm(self.algorithm_class, flatten_task(task, self.name), config)

    def compile(self, task: Task[Any, Any], config: Any) -> tuple[Programs, float]:
        """Return the programs for a task, and the seconds it took to compile them."""
        return get_compiled(_programs, self.algorithm(task, config), self.policy_class)

    def layer_widths(self, task: Task[Any, Any], config: Any) -> list[tuple[int, ...]]:
        """Return the widths of the layers."""
        return [(self.algorithm(task, config).features, *config.hidden)]

    def untrained_policy(self, task: Task[Any, Any], config: Any) -> Any:
        """Return a set of policies with initial weights."""
        algorithm = self.algorithm(task, config)
        actor = algorithm.actor(algorithm.networks(0), algorithm.initial_plan())
        moments = TransitionMoments.initial(algorithm.features, algorithm.objectives)
        return self.policy_class.for_card(actor, moments, algorithm)
