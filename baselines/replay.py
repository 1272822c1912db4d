"""Learning from replayed experience, compiled: what ``sac`` and ``dqn`` share around their own update.

Lin 1992 (Machine Learning 8); Mnih et al. 2015. One program does a chunk of steps (``lax.scan``): a step of every
environment, its transitions written to a ring buffer that stays on the device, some gradient updates on rows drawn
from the ring with equal chances. A host loop calls it some fifteen times. As in PPO, the program depends on task and
configuration only, and a task of many agents is played by all of them through the same weights, each agent's step a
row of experience (parameter sharing, Gupta et al. 2017).

Truncation is not termination: what follows a step is bootstrapped from the observation the step led to (the final one,
before any reset) unless the task ended there. Which episode that row belongs to, and whether its time was up, is then
of no importance, and is not stored.

Observations are stored as they are and normalised when used, by the running moments of all that was seen so far: tasks
come in all units, and old experience is then read on the same scale as new. Moments move ever less, so targets follow.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.adapters.rollout import Stream, step_stream
from rlbench_suite.agent import CannotPlay, Progress
from rlbench_suite.episode import Draw, scalar_return, seed_key
from rlbench_suite.policy import View
from rlbench_suite.process import refuse_after_fork
from rlbench_suite.task import Task

from . import checkpoint
from .configuration import FOLDER, configure
from .networks import Moments
from .rows import Rows, rows_of
from .training import Returns, begun, compiled, in_chunks

_MOST_UPDATES = 10_000
"""Updates of one chunk at most: seconds, so that a long run still gives signs of life."""

# -- configuration -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReplayConfig:
    """Hyperparameters that every algorithm on replayed experience has."""

    total_steps: int
    """Environment steps (a step of many agents counts once); rounded up to whole chunks."""
    num_envs: int = 8
    updates: int = 4
    """Gradient updates after each step of all environments."""
    batch_size: int = 128
    """Rows of one update; one row is one agent's step."""
    capacity: int = 100_000
    """Rows kept, about; the oldest are overwritten."""
    learning_starts: int = 1_000
    """Environment steps of random play before the first update."""
    learning_rate: float = 1e-3
    """Of Adam."""
    gamma: float = 0.99
    reward_scale: float = 1.0
    """Rewards are multiplied by it: values should be of order one to a hundred."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the ReLU layers."""
    reports: int = 15
    """Chunks of a run, about; more where a chunk would make more than ``_MOST_UPDATES`` updates."""

    def __post_init__(self) -> None:
        for name in ("total_steps", "num_envs", "updates", "batch_size", "capacity", "reports"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is at least 1, got {getattr(self, name)}.")
        if not 0 <= self.gamma <= 1:
            raise ValueError(f"gamma lies in [0, 1], got {self.gamma}.")

    @property
    def chunk(self) -> int:
        """Steps of all environments in one chunk."""
        return min(-(-self.total_steps // (self.num_envs * self.reports)), max(1, _MOST_UPDATES // self.updates))

    @property
    def chunks(self) -> int:
        """Chunks of a run."""
        return -(-self.total_steps // (self.num_envs * self.chunk))

    @property
    def steps(self) -> int:
        """Environment steps of a run."""
        return self.chunks * self.chunk * self.num_envs


# -- experience ----------------------------------------------------------------------------------------------------


class Experience(NamedTuple):
    """One agent's step; batched on axis 0."""

    x: Any
    """Observation before the step, as it was."""
    action: Any
    """In units of half the range, or the number of the choice."""
    reward: Any
    next_x: Any
    """Observation after the step: the final one where the episode ended."""
    next_legal: Any
    """Mask of the actions after the step, eight to a byte; None where every action is legal."""
    terminated: Any
    """Whether the task ended; a time limit does not count."""


class Ring(NamedTuple):
    """The latest rows of experience in a buffer of fixed size, in no particular order."""

    rows: Experience
    place: Any
    """Where the next block is written."""
    filled: Any
    """Rows that hold something."""

    @classmethod
    def empty(cls, like: Any, capacity: int) -> Ring:
        """Room for ``capacity`` rows shaped like one batch entry of ``like`` (arrays or their shapes)."""
        rows = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape[1:]), leaf.dtype), like)
        return cls(rows, jnp.int32(0), jnp.int32(0))

    @property
    def capacity(self) -> int:
        """Rows there is room for."""
        return int(jax.tree.leaves(self.rows)[0].shape[0])

    def write(self, block: Any) -> Ring:
        """With a block more, over the oldest rows. Its length divides the capacity: none straddles the end."""
        size = jax.tree.leaves(block)[0].shape[0]
        rows = jax.tree.map(
            lambda old, new: jax.lax.dynamic_update_slice_in_dim(old, new.astype(old.dtype), self.place, 0),
            self.rows,
            block,
        )
        return Ring(rows, (self.place + size) % self.capacity, jnp.minimum(self.filled + size, self.capacity))

    def sample(self, key: jax.Array, count: int) -> Any:
        """``count`` rows, each equally likely, drawn with replacement."""
        chosen = jax.random.randint(key, (count,), 0, self.filled)
        return jax.tree.map(lambda leaf: leaf[chosen], self.rows)


# -- training ------------------------------------------------------------------------------------------------------


class Learner(NamedTuple):
    """What an update changes."""

    networks: Any
    targets: Any
    """Slower copies that targets are computed with."""
    optimiser: Any
    updates: Any
    """Updates done."""


class Training(NamedTuple):
    """All that a run carries from step to step."""

    learner: Learner
    moments: Moments
    ring: Ring
    stream: Stream
    seed: Any
    """Key data of the seed."""
    steps: Any
    """Steps done by every environment."""


class Algorithm(ABC):
    """What an algorithm adds: networks, how to explore, one update, and the policy that is left in the end.

    All but ``networks`` is traced. ``x`` is normalised everywhere.
    """

    def __init__(self, rows: Rows, config: Any) -> None:
        self.rows, self.config = rows, config

    @abstractmethod
    def networks(self, seed: int) -> Any:
        """Initial weights, made on the host."""

    @abstractmethod
    def learner(self, networks: Any) -> Learner:
        """The beginning of learning."""

    @abstractmethod
    def explore(
        self, networks: Any, x: jax.Array, mask: jax.Array | None, key: jax.Array, steps: jax.Array
    ) -> jax.Array:
        """Actions ``(environments, A, components)``; ``steps`` environment steps were made so far."""

    @abstractmethod
    def learn(self, learner: Learner, batch: Experience, key: jax.Array) -> Learner:
        """One gradient update."""

    @abstractmethod
    def actor(self, networks: Any) -> Any:
        """The part of the networks that a policy needs."""

    @abstractmethod
    def act(self, actor: Any, x: jax.Array, mask: jax.Array | None, key: jax.Array) -> jax.Array:
        """Actions ``(A, components)`` of the trained policy."""

    def pack(self, mask: jax.Array | None) -> jax.Array | None:
        """A mask ``(..., actions)`` as it is stored."""
        return None if mask is None else jnp.packbits(mask, axis=-1)

    def unpack(self, packed: jax.Array | None) -> jax.Array | None:
        """What :meth:`pack` stored."""
        return None if packed is None else jnp.unpackbits(packed, axis=-1, count=self.rows.outputs).astype(bool)


def step(algorithm: Algorithm, training: Training) -> tuple[Training, Returns]:
    """One step of every environment, then some updates."""
    rows, config, task = algorithm.rows, algorithm.config, algorithm.rows.task
    learner, moments, ring, stream, seed, steps = training
    _, own_key = jax.random.split(jax.random.wrap_key_data(seed))
    explore_key, sample_key, learn_key = jax.random.split(jax.random.fold_in(own_key, steps), 3)

    x, mask = jax.vmap(rows.look)(stream.last.observation, stream.last.info.get("action_mask"))
    done = steps * config.num_envs
    action = algorithm.explore(learner.networks, moments.normalise(x), mask, explore_key, done)
    draw, limit = Draw.parse("train", task), np.int32(task.card.horizon)
    stream, made, totals = step_stream(task, stream, jax.vmap(rows.action)(action), limit, draw)
    next_x, next_mask = jax.vmap(rows.look)(made.observation, made.info.get("action_mask"))
    seen = Experience(
        x,
        action,
        jax.vmap(rows.reward)(made.reward) * config.reward_scale,
        next_x,
        algorithm.pack(next_mask),
        jnp.repeat(made.terminated[:, None], rows.agents, 1),
    )
    seen = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), seen)
    ring, moments = ring.write(seen), moments.update(seen.x)

    def update(learner: Learner, keys: tuple[jax.Array, jax.Array]) -> tuple[Learner, None]:
        batch = ring.sample(keys[0], config.batch_size)
        batch = batch._replace(x=moments.normalise(batch.x), next_x=moments.normalise(batch.next_x))
        return algorithm.learn(learner, batch, keys[1]), None

    keys = jax.random.split(sample_key, config.updates), jax.random.split(learn_key, config.updates)
    learner = jax.lax.cond(
        done + config.num_envs > config.learning_starts,
        lambda learner: jax.lax.scan(update, learner, keys)[0],
        lambda learner: learner,
        learner,
    )
    over = made.terminated | made.truncated
    ended = Returns(jnp.where(over, scalar_return(task, totals), 0).sum(), over.sum())
    return Training(learner, moments, ring, stream, seed, steps + 1), ended


def start(algorithm: Algorithm, networks: Any, seed: jax.Array, stream: Stream) -> Training:
    """The beginning of a run; ``seed`` is key data, ``stream`` its environments."""
    rows, config = algorithm.rows, algorithm.config
    block = config.num_envs * rows.agents
    room = math.ceil(min(config.capacity, config.steps * rows.agents) / block) * block
    x, mask = jax.vmap(rows.look)(stream.last.observation, stream.last.info.get("action_mask"))
    if rows.choices:
        action = jax.ShapeDtypeStruct((1, len(rows.choices)), jnp.int32)
    else:
        action = jax.ShapeDtypeStruct((1, rows.outputs), jnp.float32)
    number, flag = jax.ShapeDtypeStruct((1,), jnp.float32), jax.ShapeDtypeStruct((1,), bool)
    legal = None if mask is None else algorithm.pack(mask[0])
    return Training(
        learner=algorithm.learner(networks),
        moments=Moments(jnp.zeros(rows.features), jnp.ones(rows.features), jnp.float32(0)),
        ring=Ring.empty(Experience(x[0], action, number, x[0], legal, flag), room),
        stream=stream,
        seed=seed,
        steps=jnp.int32(0),
    )


def train_chunk(algorithm: Algorithm, training: Training) -> tuple[Training, Returns]:
    """``config.chunk`` steps of every environment; a pure function, to be jitted."""
    length = algorithm.config.chunk
    training, ended = jax.lax.scan(lambda training, _: step(algorithm, training), training, length=length)
    return training, jax.tree.map(jnp.sum, ended)


class ReplayPolicy(eqx.Module):
    """A trained policy: the weights it needs and the normalisation of its observations, frozen."""

    actor: Any
    moments: Moments
    algorithm: Algorithm = eqx.field(static=True)

    def initial(self, params: Any) -> tuple[()]:
        """No memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """The algorithm's idea of the best action."""
        rows = self.algorithm.rows
        x, mask = rows.look(view.observation, view.action_mask)
        return rows.action(self.algorithm.act(self.actor, self.moments.normalise(x), mask, key)), memory


class Programs:
    """``start`` and ``train_chunk`` of an algorithm on a task, compiled once for all seeds."""

    def __init__(self, algorithm: Algorithm) -> None:
        since = time.perf_counter()
        self.algorithm = algorithm
        self._start = jax.jit(partial(start, algorithm))
        training = self.start(algorithm.networks(0), seed_key(0))
        # The ring is large: it is given to the program and comes back, not copied.
        self.chunk = jax.jit(partial(train_chunk, algorithm), donate_argnums=0).lower(training).compile()
        self.seconds = time.perf_counter() - since

    def start(self, networks: Any, seed: np.ndarray) -> Training:
        """The beginning of a run, environments included."""
        task, num_envs = self.algorithm.rows.task, self.algorithm.config.num_envs
        training: Training = self._start(networks, seed, begun(task, seed, num_envs))
        return training


programs = cache(Programs)


@cache
def _algorithm(kind: type[Algorithm], rows: Rows, config: Any) -> Algorithm:
    """One object a description, so that compiled programs are found again."""
    return kind(rows, config)


class ReplayAgent:
    """An agent that trains an :class:`Algorithm`.

    Args:
        overrides: hyperparameters that replace those of the file, by name.
    """

    name: ClassVar[str]
    kind: ClassVar[type[Algorithm]]
    configuration: ClassVar[type[ReplayConfig]]
    learns = True

    def __init__(self, **overrides: Any) -> None:
        self.overrides = overrides

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` with the reason if the algorithm cannot play the task."""
        if task.card.host:
            raise CannotPlay(f"{self.name} collects inside its compiled program, and {task.card.id} runs on the host.")
        rows_of(task, self.name)

    def config(self, task: Task[Any, Any], budget: str) -> Any:
        """The hyperparameters, checked."""
        return configure(self.configuration, FOLDER / f"{self.name}.yaml", task.card, budget, self.overrides)

    def hyperparameters(self, task: Task[Any, Any], budget: str) -> dict[str, Any]:
        """What ``train`` will use, as plain data.

        Raises:
            ValueError: no such budget or hyperparameter, or one out of range.
        """
        return asdict(self.config(task, budget))

    def algorithm(self, task: Task[Any, Any], config: Any) -> Algorithm:
        """The algorithm on the task.

        Raises:
            CannotPlay: the task's spaces are not for it.
        """
        self.check(task)
        return _algorithm(self.kind, rows_of(task, self.name), config)

    def train(self, task: Task[Any, Any], *, seed: int, budget: str) -> Iterator[Progress | ReplayPolicy]:
        """Train on the train split. Yields :class:`Progress` after each chunk and, last, the policy.

        The same seed on the same machine gives the same bits.

        Raises:
            CannotPlay: the task's spaces are not for the algorithm.
            ValueError: no such budget or hyperparameter, or one out of range.
        """
        refuse_after_fork()
        config = self.config(task, budget)
        algorithm = self.algorithm(task, config)
        program, compile_seconds = compiled(programs, algorithm)
        training = program.start(algorithm.networks(seed), seed_key(seed))
        steps = config.chunk * config.num_envs
        training = yield from in_chunks(program.chunk, training, config.chunks, steps, compile_seconds)
        yield ReplayPolicy(algorithm.actor(training.learner.networks), training.moments, algorithm)

    def save(self, policy: ReplayPolicy, path: str) -> None:
        """The policy as safetensors: weights, normalisation, and in the header what they belong to."""
        algorithm = policy.algorithm
        owner = self.name, algorithm.rows.task.card.id
        checkpoint.write(path, (policy.actor, policy.moments), *owner, algorithm.config)

    def load(self, path: str, task: Task[Any, Any], *, budget: str = "smoke") -> ReplayPolicy:
        """A saved policy; ``budget`` chooses the hyperparameters of a file that names none.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is not a policy of this agent for this task.
        """
        config = checkpoint.read_config(path, self.name, task.card.id, self.config(task, budget))
        checkpoint.refuse_wider(path, (rows_of(task, self.name).features, *config.hidden))
        algorithm = self.algorithm(task, config)
        empty = Moments(*(np.zeros(algorithm.rows.features, np.float32),) * 2, np.float32(0))
        actor, moments = checkpoint.read(path, (algorithm.actor(algorithm.networks(0)), empty))
        return ReplayPolicy(actor, moments, algorithm)
