"""Shared code of agents that learn from a recorded dataset: data, policy and training loop.

An algorithm consists of two pure functions (:class:`Algorithm`): one makes the initial state, the
other does one gradient step on a minibatch. The loop here draws minibatches and does a chunk of
steps as one compiled program, which all seeds share. No environment is used: a run counts gradient
steps, and its learning curve has no returns.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core import registry
from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.arrays import FlagArray, FloatArray, Int, UInt32Array
from rlbench_suite.core.episode import seed_key
from rlbench_suite.core.policy import ActingParameters, View, no_memory
from rlbench_suite.core.task import Task
from rlbench_suite.foundation.unknown_names import unknown

from ..flat_task import FlatTask, flatten_task
from ..learning_agent import LearningAgent
from ..networks import Linear, Moments, initial_layers, mlp
from ..training import Returns, get_compiled


@dataclass(frozen=True)
class OfflineConfig:
    """Hyperparameters that all offline agents share."""

    total_steps: int
    """Gradient steps, rounded up to whole chunks."""
    dataset: str = "medium"
    """Quality of the task's dataset: random, medium or expert."""
    batch: int = 256
    """Transitions in a minibatch, drawn with replacement."""
    learning_rate: float = 1e-3
    """Initial learning rate of Adam; it falls linearly to zero over the run."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the tanh layers."""
    reports: int = 15
    """Approximate number of chunks, and so of progress reports, in a run."""

    @property
    def chunk(self) -> int:
        """Gradient steps in one chunk."""
        return -(-self.total_steps // self.reports)

    @property
    def chunks(self) -> int:
        """Chunks in a run."""
        return -(-self.total_steps // self.chunk)


class Batch(NamedTuple):
    """Transitions of a dataset, as networks see them."""

    x: FloatArray
    """Normalised observation, float32 ``(N, features)``."""
    action: FloatArray
    """Actions, float32 ``(N, outputs)`` in [-1, 1], in units of half their range."""
    reward: FloatArray
    """float32 ``(N,)``."""
    next_x: FloatArray
    """Normalised observation after the step, as ``x``."""
    terminated: FlagArray
    """bool ``(N,)``; False where a time limit ended the episode."""


class Algorithm(Protocol):
    """The part in which offline agents differ."""

    def start(self, flat: FlatTask, config: Any, seed: int) -> Any:
        """Return the initial state, a NamedTuple with the field ``actor``.

        NumPy makes the networks on the host.
        """
        ...

    def step(self, config: Any, learning: Any, batch: Batch, key: jax.Array) -> Any:
        """Do one gradient step; JAX traces this method."""
        ...


# -- data ------------------------------------------------------------------------------------------


@cache
def read_dataset(task: Task[Any, Any], quality: str) -> tuple[Batch, Moments]:
    """Return a task's dataset as normalised NumPy arrays, and the moments that normalised it.

    A dataset that is not installed is built from its recipe first.

    Raises:
        ValueError: the installed dataset is damaged.
    """
    flat = flatten_task(task, "An offline agent")
    assert flat.bounds is not None
    datasets = registry.datasets()
    steps = datasets.load(datasets.of_task(task.card.id)[quality])
    # As in Fujimoto & Gu 2021, section 5, 0.001 is added to the deviation, so that constant
    # features do no harm.
    deviation = steps.observation.std(0, dtype=np.float64) + 1e-3
    mean = steps.observation.mean(0, dtype=np.float64)
    moments = Moments(
        mean.astype(np.float32),
        (deviation**2).astype(np.float32),
        np.float32(len(steps.observation)),
    )
    low, high = flat.bounds
    middle = (high + low) / 2
    half_range = (high - low) / 2
    batch = Batch(
        ((steps.observation - mean) / deviation).clip(-10, 10).astype(np.float32),
        ((steps.action - middle) / half_range).astype(np.float32),
        steps.reward.astype(np.float32),
        ((steps.next_observation - mean) / deviation).clip(-10, 10).astype(np.float32),
        steps.terminated,
    )
    return batch, moments


# -- policy ----------------------------------------------------------------------------------------


def actor_layers(
    flat: FlatTask, hidden: tuple[int, ...], generator: np.random.Generator
) -> tuple[Linear, ...]:
    """Return the initial network of a deterministic policy."""
    return initial_layers(generator, (flat.features, *hidden, flat.outputs), gain=0.01)


def act(actor: tuple[Linear, ...], x: jax.Array) -> jax.Array:
    """Return actions in [-1, 1] for normalised observations ``(..., features)``."""
    return jnp.tanh(mlp(actor, x))


class OfflinePolicy(eqx.Module):
    """A trained deterministic policy, and the moments that normalise its observations."""

    actor: tuple[Linear, ...]
    moments: Moments
    flat: FlatTask = eqx.field(static=True)
    config: Any = eqx.field(static=True)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the action."""
        x, _ = self.flat.observe(view.observation)
        return self.flat.env_action(act(self.actor, self.moments.normalise(x))), memory

    def acting_parameters(self) -> ActingParameters:
        """Return the acting network as plain parameters, for export."""
        return ActingParameters(
            self.moments, self.actor, "tanh", bounds=self.flat.bounds, squashed=True
        )


# -- train -----------------------------------------------------------------------------------------


class TrainingState(NamedTuple):
    """State of a run between chunks."""

    learning: Any
    """State of the algorithm: ``bc.LearnerState`` or ``td3_bc.LearnerState``."""
    seed: UInt32Array
    """Key data of the seed, uint32 ``(2,)``."""
    steps: Int
    """Number of gradient steps done, int32 ``()``."""


def train_chunk(
    algorithm: Algorithm, config: Any, run: TrainingState, dataset: Batch
) -> TrainingState:
    """Do ``config.chunk`` gradient steps, each on its own minibatch. This is a pure function."""
    key = jax.random.fold_in(jax.random.wrap_key_data(run.seed), run.steps)
    rows_key, step_key = jax.random.split(key)
    size = dataset.reward.shape[0]
    minibatches = jax.random.randint(rows_key, (config.chunk, config.batch), 0, size)

    def step(learning: Any, rows_and_key: tuple[jax.Array, jax.Array]) -> tuple[Any, None]:
        rows, key = rows_and_key
        minibatch = jax.tree.map(lambda leaf: leaf[rows], dataset)
        return algorithm.step(config, learning, minibatch, key), None

    learning, _ = jax.lax.scan(
        step, run.learning, (minibatches, jax.random.split(step_key, config.chunk))
    )
    return TrainingState(learning, run.seed, run.steps + config.chunk)


class Programs:
    """Compiled ``train_chunk`` of a task, algorithm and configuration; all seeds share it."""

    def __init__(self, task: Task[Any, Any], algorithm: Algorithm, config: Any) -> None:
        self.flat = flatten_task(task, "An offline agent")
        self.algorithm = algorithm
        self.config = config
        self.chunk_steps = config.chunk
        batch, self.moments = read_dataset(task, config.dataset)
        self.dataset = jax.device_put(batch)
        start_time = time.perf_counter()
        chunk = jax.jit(lambda training, dataset: train_chunk(algorithm, config, training, dataset))
        self._chunk = chunk.lower(self.start(0), self.dataset).compile()
        self.seconds = time.perf_counter() - start_time

    def start(self, seed: int) -> TrainingState:
        """Return the state at the beginning of a run."""
        learning = jax.device_put(self.algorithm.start(self.flat, self.config, seed))
        return TrainingState(learning, seed_key(seed), np.int32(0))

    def chunk(self, training: TrainingState) -> tuple[TrainingState, Returns]:
        """Do a chunk of gradient steps; no episode is played."""
        return jax.block_until_ready(self._chunk(training, self.dataset)), Returns(0.0, 0)

    def policy(self, training: TrainingState) -> OfflinePolicy:
        """Return the trained policy."""
        return OfflinePolicy(training.learning.actor, self.moments, self.flat, self.config)


programs: Any = cache(Programs)


class OfflineAgent(LearningAgent):
    """An agent that learns from the dataset of a task.

    A dataset that is not installed is built first.

    Args:
        overrides: hyperparameters by name; they replace those of the file.

    Raises:
        ImportError: the extra ``data`` is not installed.
    """

    step_unit = "gradient"
    algorithm: ClassVar[Any]
    """An :class:`Algorithm`."""

    def __init__(self, **overrides: Any) -> None:
        if not (find_spec("minari") and find_spec("h5py")):
            raise ImportError(
                f"The agent {self.name!r} needs minari and h5py to read offline datasets; install "
                "them with: "
                "pip install 'rlbench-suite[data]'"
            )
        super().__init__(**overrides)

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if the task cannot be learned offline.

        It needs a dataset of its difficulty, and spaces that fit the algorithm.
        """
        datasets = registry.datasets().of_task(task.card.id)
        if not datasets:
            raise CannotPlay(
                f"{self.name} learns from a dataset, but {task.card.id} has none; `rlsuite-data "
                "list` shows all."
            )
        difficulties = {task.card.check_difficulty(entry.difficulty) for entry in datasets.values()}
        if task.difficulty not in difficulties:
            raise CannotPlay(f"{task.card.id} has no dataset of difficulty {task.difficulty}.")
        flatten_task(task, self.name)
        if (
            not isinstance(task.action_space, spaces.Box)
            or task.card.agents > 1
            or task.card.objectives
        ):
            raise CannotPlay(f"{self.name} plays bounded Box actions of one agent with one reward.")

    def config(self, task: Task[Any, Any], budget: str) -> Any:
        """Return the checked hyperparameters."""
        config = super().config(task, budget)
        datasets = registry.datasets().of_task(task.card.id)
        if config.dataset not in datasets:
            raise ValueError(unknown(f"dataset of {task.card.id}", config.dataset, datasets))
        return config

    def compile(self, task: Task[Any, Any], config: Any) -> tuple[Programs, float]:
        """Return the programs for a task, and the seconds it took to compile them.

        The seconds are 0 if the programs were cached.
        """
        return get_compiled(programs, task, self.algorithm, config)

    def layer_widths(self, task: Task[Any, Any], config: Any) -> list[tuple[int, ...]]:
        """Return the widths of the actor's layers."""
        return [(flatten_task(task, self.name).features, *config.hidden)]

    def untrained_policy(self, task: Task[Any, Any], config: Any) -> OfflinePolicy:
        """Return a policy with initial weights."""
        flat = flatten_task(task, self.name)
        actor = actor_layers(flat, config.hidden, np.random.default_rng(0))
        return OfflinePolicy(actor, Moments.initial(flat.features), flat, config)
