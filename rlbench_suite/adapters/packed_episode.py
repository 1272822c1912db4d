"""Hold a running episode in its fast form.

One buffer is read and written by compiled programs, and readers give the values of its bytes.

:class:`~rlbench_suite.adapters.task_env.TaskEnv` plays it. What it computes, without the speed, is
in ``plain_env.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.adapters.action_check import ActionCheck
from rlbench_suite.core.episode import NO_LIMIT, ContextSource, Episode, Step, advance, begin
from rlbench_suite.core.task import Task
from rlbench_suite.numerics.bit_exact import compile_apart, exact_vmap, in_one_kernel
from rlbench_suite.numerics.packing import Field, Layout
from rlbench_suite.numerics.process import CACHED_TASKS, on_the_cpu, precision, refuse_after_fork
from rlbench_suite.numerics.program import program
from rlbench_suite.numerics.waiting import compiling

StepValues = tuple[Any, Any, bool, bool, dict[str, Any]]
"""Observation, reward, terminated, truncated and info, as ``gymnasium.Env.step`` returns them."""


class Programs:
    """The two compiled programs of a single env. Both return buffers of an ``(Episode, Step)``.

    ``begin`` returns two: the ordered episode and the one after it. ``advance`` returns the next
    step of an episode. Both compute a batch of two, because a batch of one rounds differently
    (``bit_exact.py``).

    Raises:
        ContractError: a function of the task gives another shape or dtype than it should.
    """

    def __init__(self, task: Task[Any, Any]) -> None:
        self.task = task
        seeds = np.zeros((2, 2), np.uint32)
        indices = np.zeros(2, np.int32)
        with on_the_cpu(), precision(task):
            # One function gives the shapes and the program, so that it is traced once.
            self._begin_two = compile_apart(jax.vmap(partial(begin, task), in_axes=(0, 0, None)))
            pairs = jax.eval_shape(
                self._begin_two, seeds, indices, ContextSource(np.int32(0), np.int32(-1))
            )
        shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), pairs)
        self.layout = Layout(shapes, np.uint64 if task.dtype == np.float64 else np.uint32)
        action_shape = task.action_space.shape or ()
        action_span = slice(self.layout.size, self.layout.size + math.prod(action_shape))
        self.action = Field(action_span, action_shape, ActionCheck(task.action_space).dtype)
        """The action's field, behind the episode and its step."""
        self.fields: tuple[Episode, Step] = self.layout.treedef.unflatten(self.layout.fields)
        self.begin = program(self.traced_begin, task, np.zeros(5, np.uint32))
        """Takes an :func:`order`."""
        self.advance = program(
            self.traced_advance, task, np.zeros(self.action.span.stop, self.layout.dtype)
        )
        """Takes the buffer of an episode and its step, with an action behind them."""

    @cached_property
    def action_mask(self) -> Callable[[Any, Any], jax.Array]:
        """Compiled function from state and params to mask, for a restored episode."""
        return jax.jit(self.task.action_mask)

    def traced_begin(self, order: jax.Array) -> jax.Array:
        """Return the buffers of the ordered episode and of the next one, ``(2, size)``; traced."""
        seed = order[:2]
        index, *source = order[2:].astype(np.int32)
        seeds = jnp.stack([seed, seed])
        indices = jnp.stack([index, index + 1])
        return in_one_kernel(self.layout.pack)(
            self._begin_two(seeds, indices, ContextSource(*source))
        )

    def traced_advance(self, memory: jax.Array) -> jax.Array:
        """Return the buffer after one step; traced."""
        arguments = in_one_kernel(self._unpack_twice)(memory)
        return in_one_kernel(self.layout.pack_first)(exact_vmap(self._step, *arguments))

    def _unpack_twice(self, memory: jax.Array) -> tuple[Episode, jax.Array, jax.Array | None]:
        """Unpack the arguments of a step, each twice.

        They are the episode, the action, and the mask that was shown.
        """
        episode, last = self.layout.unpack(memory)
        action = self.layout.value(memory, self.action)
        arguments = episode, action, last.info.get("action_mask")
        return jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), arguments)

    def _step(
        self, episode: Episode, action: jax.Array, mask: jax.Array | None
    ) -> tuple[Episode, Step]:
        return advance(self.task, episode, action, NO_LIMIT, mask)

    def reader(self, buffer: np.ndarray) -> Callable[[], StepValues]:
        """Return a function that reads the step in this buffer.

        It returns Python's own scalars, and copies of arrays.
        """

        def copier(field: Field, dtype: Any = None) -> Callable[[], np.ndarray]:
            return self.layout.reader(buffer, field, dtype or field.dtype)

        observation, reward, terminated, truncated, info = self.fields[1]
        mask_dtypes = {"action_mask": np.int8}  # what Space.sample(mask) asks for
        arrays = {
            name: copier(field, mask_dtypes.get(name))
            for name, field in info.items()
            if field.shape
        }
        copy_rewards = copier(reward) if reward.shape else None
        copiers = jax.tree.map(copier, observation, is_leaf=lambda node: isinstance(node, Field))
        copy_observation = partial(copy_each, copiers) if isinstance(observation, dict) else copiers
        scalar_names = sorted(
            (name for name in info if name not in arrays), key=lambda name: info[name].span.start
        )
        # Three calls are faster than one whose result is then taken apart.
        read_scalars = self.layout.scalar_reader([info[name] for name in scalar_names])
        read_reward = self.layout.scalar_reader([] if copy_rewards else [reward])
        read_ends = self.layout.scalar_reader([terminated, truncated])

        def read() -> StepValues:
            values: dict[str, Any] = dict(zip(scalar_names, read_scalars(buffer)))  # noqa: B905  # a check takes time
            for name, copy in arrays.items():
                values[name] = copy()
            reward = read_reward(buffer)[0] if copy_rewards is None else copy_rewards()
            return copy_observation(), reward, *read_ends(buffer), values

        return read


def copy_each(copiers: dict[str, Callable[[], np.ndarray]]) -> dict[str, np.ndarray]:
    """Copy the arrays of an observation that is a dict."""
    return {name: copy() for name, copy in copiers.items()}


def order(seed: np.ndarray, index: int, source: ContextSource) -> np.ndarray:
    """Return the argument of :attr:`Programs.begin`, uint32 ``(5,)``.

    It holds the two words of the seed, the number of the episode, the split, and the context.
    """
    return np.array([*seed, index, *source], np.int64).astype(np.uint32)


programs = lru_cache(CACHED_TASKS)(Programs)


class PackedEpisode:
    """A running episode and its last step in one buffer.

    A copy has a buffer of its own and continues with equal bits.

    Args:
        task: the task.
        memory: the bytes of an episode to continue; None before the first episode.

    Attributes:
        read: function that reads the last step.

    Raises:
        ContractError: a function of the task gives another shape or dtype than it should.
        RuntimeError: JAX would hang in this process (:func:`refuse_after_fork`).
    """

    def __init__(self, task: Task[Any, Any], memory: np.ndarray | None = None) -> None:
        refuse_after_fork()
        self.task = task
        self._programs = programs(task)
        layout = self._programs.layout
        action = self._programs.action
        self._memory = np.zeros(action.span.stop, layout.dtype)
        """The argument of the next step: the buffer, and behind it the action."""
        if memory is not None:
            self._memory[:] = memory
        self._buffer = self._memory[: layout.size]
        number_dtype = layout.float if action.dtype.kind == "f" else layout.signed
        self._action = self._memory[action.span].view(number_dtype).reshape(action.shape)
        self.read = self._programs.reader(self._buffer)
        self._advance = self._programs.advance
        self._compiled = False
        """True after the first step, which compiles."""
        self._next_buffer: np.ndarray | None = None
        """Buffer of the next episode if it has been computed with this one."""
        self._unpacked: Episode | None = None
        """Value of the episode if it was unpacked since the last change of the buffer."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Describe a copy by task and bytes. It looks up its programs and makes its own views."""
        return PackedEpisode, (self.task, self._memory.copy())

    def begin(self, seed: np.ndarray, index: int, source: ContextSource) -> None:
        """Begin an episode, and compute the beginning of the next one with it."""
        buffers = self._programs.begin(order(seed, index, source))
        self._buffer[:], self._next_buffer = np.asarray(buffers)
        self._unpacked = None

    def begin_next(self, seed: np.ndarray, index: int, source: ContextSource) -> None:
        """Begin the episode that follows the one begun last, whose number is ``index``."""
        if self._next_buffer is None:
            self.begin(seed, index, source)
            return
        self._buffer[:] = self._next_buffer
        self._next_buffer = None
        self._unpacked = None

    def step(self, action: np.ndarray) -> None:
        """Make one step."""
        self._action[...] = action
        if self._compiled:
            self._buffer[:] = self._advance(self._memory)
        else:
            with compiling(self.task.card.id):
                self._buffer[:] = self._advance(self._memory)
            self._compiled = True
        self._unpacked = None

    def unpack(self) -> Episode:
        """Return the episode as a value of its own, which may be changed."""
        episode: Episode = self._programs.layout.unpack_numpy(self._buffer.copy())[0]
        return episode

    @property
    def value(self) -> Episode:
        """The episode as a value to be read only, unpacked once a step."""
        if self._unpacked is None:
            self._unpacked = self.unpack()
        return self._unpacked

    def restore(self, episode: Episode) -> None:
        """Go on from another episode."""
        _, last = self._programs.layout.unpack_numpy(self._buffer)
        if "action_mask" in last.info:
            with precision(self.task):
                last.info["action_mask"] = self._programs.action_mask(episode.state, episode.params)
        self._buffer[:] = self._programs.layout.pack_numpy((episode, last))
        self._next_buffer = None
        self._unpacked = None

    def action_mask(self) -> np.ndarray | None:
        """Return a copy of the mask of the next action, bool ``(n,)``.

        It is None if the task has no masks.
        """
        field = self._programs.fields[1].info.get("action_mask")
        return None if field is None else self._programs.layout.read(self._buffer, field).copy()
