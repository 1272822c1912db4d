"""What agents share that learn from a recorded dataset: the data, the policy, and the loop around their updates.

An algorithm is two pure functions (:class:`Algorithm`): where it begins, and one step of it on a minibatch. The loop
here draws minibatches and does a chunk of steps as one compiled program; all seeds share it. No environment is touched:
steps of a run are gradient steps, and its learning curve has no returns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite import registry
from rlbench_suite.agent import CannotPlay, Progress
from rlbench_suite.card import unknown
from rlbench_suite.episode import seed_key
from rlbench_suite.policy import View
from rlbench_suite.process import refuse_after_fork
from rlbench_suite.task import Task

from . import checkpoint
from .configuration import FOLDER, Unit, configure
from .networks import Linear, Moments, initial_layers, multilayer
from .rows import Rows, rows_of
from .training import Returns, compiled, in_chunks


@dataclass(frozen=True)
class OfflineConfig:
    """Hyperparameters of every offline agent."""

    total_steps: int
    """Gradient steps; rounded up to whole chunks."""
    dataset: str = "medium"
    """Quality of the task's dataset: random, medium or expert."""
    batch: int = 256
    """Steps of the dataset in a minibatch, drawn with replacement."""
    learning_rate: float = 1e-3
    """Of Adam."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the tanh layers."""
    reports: int = 15
    """Chunks of a run, about."""

    @property
    def chunk(self) -> int:
        """Gradient steps of one chunk."""
        return -(-self.total_steps // self.reports)

    @property
    def chunks(self) -> int:
        """Chunks of a run."""
        return -(-self.total_steps // self.chunk)


class Batch(NamedTuple):
    """Steps of a dataset as networks see them."""

    x: Any
    """Normalised observation ``(N, features)``."""
    action: Any
    """``(N, components)``, in [-1, 1]: units of half the action range."""
    reward: Any
    """``(N,)``"""
    next_x: Any
    terminated: Any
    """bool ``(N,)``; an episode cut off by time is not over."""


class Algorithm(Protocol):
    """What tells one offline agent from another."""

    def start(self, rows: Rows, config: Any, seed: int) -> Any:
        """The beginning of a run (networks by NumPy on the host): a NamedTuple with the field ``actor``."""
        ...

    def step(self, config: Any, learning: Any, batch: Batch, key: jax.Array) -> Any:
        """One gradient step; traced."""
        ...


# -- data ----------------------------------------------------------------------------------------------------------


@cache
def data(task: Task[Any, Any], quality: str) -> tuple[Batch, Moments]:
    """The dataset of a task, normalised (NumPy), and by what. Builds it from its recipe where it is not installed.

    Raises:
        ValueError: the installed dataset is damaged.
    """
    wing, rows = registry.datasets(), rows_of(task, "An offline agent")
    steps = wing.load(wing.of_task(task.card.id)[quality])
    # As Fujimoto & Gu 2021, section 5: a standard deviation and 0.001, so that constant features stay harmless.
    deviation = steps.observation.std(0, dtype=np.float64) + 1e-3
    mean = steps.observation.mean(0, dtype=np.float64)
    moments = Moments(mean.astype(np.float32), (deviation**2).astype(np.float32), np.float32(len(steps.observation)))
    middle, reach = (rows.high + rows.low) / 2, (rows.high - rows.low) / 2
    batch = Batch(
        ((steps.observation - mean) / deviation).clip(-10, 10).astype(np.float32),
        ((steps.action - middle) / reach).astype(np.float32),
        steps.reward.astype(np.float32),
        ((steps.next_observation - mean) / deviation).clip(-10, 10).astype(np.float32),
        steps.terminated,
    )
    return batch, moments


# -- policy --------------------------------------------------------------------------------------------------------


def actor_layers(rows: Rows, hidden: tuple[int, ...], generator: np.random.Generator) -> tuple[Linear, ...]:
    """The network of a deterministic policy."""
    return initial_layers(generator, (rows.features, *hidden, rows.outputs), gain=0.01)


def act(actor: tuple[Linear, ...], x: jax.Array) -> jax.Array:
    """Actions in [-1, 1] given normalised observations ``(..., features)``."""
    return jnp.tanh(multilayer(actor, x))


class OfflinePolicy(eqx.Module):
    """A trained deterministic policy and the normalisation of its observations."""

    actor: tuple[Linear, ...]
    moments: Moments
    rows: Rows = eqx.field(static=True)
    config: Any = eqx.field(static=True)

    def initial(self, params: Any) -> tuple[()]:
        """No memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """The action."""
        x, _ = self.rows.look(view.observation)
        return self.rows.action(act(self.actor, self.moments.normalise(x))), memory


# -- train ---------------------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """All that a run carries from chunk to chunk."""

    learning: Any
    seed: Any
    """Key data."""
    steps: Any
    """Gradient steps done."""


def train_chunk(algorithm: Algorithm, config: Any, run: Run, dataset: Batch) -> Run:
    """``config.chunk`` gradient steps, each on a minibatch of its own; a pure function."""
    key = jax.random.fold_in(jax.random.wrap_key_data(run.seed), run.steps)
    draw_key, step_key = jax.random.split(key)
    size = dataset.reward.shape[0]
    drawn = jax.random.randint(draw_key, (config.chunk, config.batch), 0, size)

    def step(learning: Any, now: tuple[jax.Array, jax.Array]) -> tuple[Any, None]:
        chosen, key = now
        return algorithm.step(config, learning, jax.tree.map(lambda leaf: leaf[chosen], dataset), key), None

    learning, _ = jax.lax.scan(step, run.learning, (drawn, jax.random.split(step_key, config.chunk)))
    return Run(learning, run.seed, run.steps + config.chunk)


class Programs:
    """``train_chunk`` for a task, algorithm and configuration, compiled once for all seeds."""

    def __init__(self, task: Task[Any, Any], algorithm: Algorithm, config: Any) -> None:
        self.rows = rows_of(task, "An offline agent")
        batch, self.moments = data(task, config.dataset)
        self.dataset = jax.device_put(batch)
        begun = time.perf_counter()
        run = self.start(algorithm, config, 0)
        chunk = jax.jit(lambda run, dataset: train_chunk(algorithm, config, run, dataset))
        self._chunk = chunk.lower(run, self.dataset).compile()
        self.seconds = time.perf_counter() - begun

    def start(self, algorithm: Algorithm, config: Any, seed: int) -> Run:
        """The beginning of a run."""
        return Run(jax.device_put(algorithm.start(self.rows, config, seed)), seed_key(seed), np.int32(0))

    def chunk(self, run: Run) -> tuple[Run, Returns]:
        """A chunk of gradient steps; no episode is played."""
        return jax.block_until_ready(self._chunk(run, self.dataset)), Returns(0.0, 0)


programs: Any = cache(Programs)


class OfflineAgent:
    """An agent that learns from the dataset of a task.

    Args:
        overrides: hyperparameters that replace those of the file, by name.

    Raises:
        ImportError: the extra ``data`` is not installed.
    """

    name: ClassVar[str]
    learns = True
    step_unit: ClassVar[Unit] = "gradient"
    algorithm: ClassVar[Any]
    """An :class:`Algorithm`."""
    configuration: ClassVar[type[OfflineConfig]]

    def __init__(self, **overrides: Any) -> None:
        if not (find_spec("minari") and find_spec("h5py")):
            raise ImportError(
                f"The agent {self.name!r} learns from offline datasets, which need minari and h5py; install them with: "
                "pip install 'rlbench-suite[data]'"
            )
        self.overrides = overrides

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` where there is no dataset, or one of another difficulty or other spaces."""
        found = registry.datasets().of_task(task.card.id)
        if not found:
            raise CannotPlay(f"{self.name} learns from a dataset, and {task.card.id} has none (see rlsuite-data list).")
        made = {task.card.check_difficulty(entry.difficulty) for entry in found.values()}
        if task.difficulty not in made:
            raise CannotPlay(f"{task.card.id} has no dataset of difficulty {task.difficulty}.")
        rows_of(task, self.name)
        if not isinstance(task.action_space, spaces.Box) or task.card.agents > 1 or task.card.objectives:
            raise CannotPlay(f"{self.name} plays bounded Box actions of one agent with one reward.")

    def config(self, task: Task[Any, Any], budget: str) -> Any:
        """The hyperparameters, checked."""
        path = FOLDER / f"{self.name}.yaml"
        config = configure(self.configuration, path, task.card, budget, self.overrides, self.step_unit)
        found = registry.datasets().of_task(task.card.id)
        if config.dataset not in found:
            raise ValueError(unknown(f"dataset of {task.card.id}", config.dataset, found))
        return config

    def hyperparameters(self, task: Task[Any, Any], budget: str) -> dict[str, Any]:
        """What ``train`` will use, as plain data.

        Raises:
            ValueError: no such budget, hyperparameter or dataset.
        """
        return asdict(self.config(task, budget))

    def train(self, task: Task[Any, Any], *, seed: int, budget: str) -> Iterator[Progress | OfflinePolicy]:
        """Train on the dataset. Yields :class:`Progress` after each chunk and, last, the policy.

        The same seed on the same machine gives the same bits. A dataset that is not installed is built first.

        Raises:
            CannotPlay: the task has no dataset for this agent.
            ValueError: no such budget or hyperparameter, or the dataset is damaged.
        """
        refuse_after_fork()
        self.check(task)
        config = self.config(task, budget)
        program, compile_seconds = compiled(programs, task, self.algorithm, config)
        run = program.start(self.algorithm, config, seed)
        run = yield from in_chunks(program.chunk, run, config.chunks, config.chunk, compile_seconds)
        yield OfflinePolicy(run.learning.actor, program.moments, program.rows, config)

    def save(self, policy: OfflinePolicy, path: str) -> None:
        """The policy as safetensors: actor, normalisation, and in the header what they belong to."""
        checkpoint.write(path, (policy.actor, policy.moments), self.name, policy.rows.task.card.id, policy.config)

    def load(self, path: str, task: Task[Any, Any], *, budget: str = "smoke") -> OfflinePolicy:
        """A saved policy; ``budget`` chooses the hyperparameters of a file that names none.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is not a policy of this agent for this task.
        """
        config = checkpoint.read_config(path, self.name, task.card.id, self.config(task, budget))
        rows = rows_of(task, self.name)
        checkpoint.refuse_wider(path, (rows.features, *config.hidden))
        moments = Moments(*(np.zeros(rows.features, np.float32),) * 2, np.float32(0))
        like = actor_layers(rows, config.hidden, np.random.default_rng(0)), moments
        actor, moments = checkpoint.read(path, like)
        return OfflinePolicy(actor, moments, rows, config)
