"""Define a single environment in its plain form.

It says what ``reset`` and ``step`` mean, without what makes them fast. ``gymnasium.make`` gives
:class:`~rlbench_suite.adapters.task_env.TaskEnv`, which shows the same values, bit for bit, in a
fraction of the time. ``tests/adapters/test_plain_env.py`` compares the two at every step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.adapters.action_check import ActionCheck
from rlbench_suite.core.episode import (
    NO_LIMIT,
    ContextSource,
    Episode,
    Step,
    advance,
    average_agents,
    begin,
    seed_key,
)
from rlbench_suite.core.task import Task
from rlbench_suite.numerics.bit_exact import exact_vmap
from rlbench_suite.numerics.process import on_the_cpu, precision


class PlainEnv(gymnasium.Env[Any, Any]):
    """A task as a Gymnasium environment, by the engine's pure functions.

    These are ``begin`` and ``advance`` (``episode.py``).

    Args:
        task: a task that JAX computes.
        split: ``"train"``, ``"test"`` or the number of one training context.
    """

    def __init__(self, task: Task[Any, Any], split: str | int = "train") -> None:
        self.task = task
        self.observation_space = task.observation_space
        self.action_space = task.action_space
        self.episode: Episode
        self.last_step: Step
        self._check_action = ActionCheck(task.action_space)
        source = ContextSource.parse(split, task)
        self._begin = compile_in_pairs(lambda seed, index: begin(task, seed, index, source))
        self._advance = compile_in_pairs(
            lambda episode, action, mask: advance(task, episode, action, NO_LIMIT, mask)
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode: with a seed its first one, without the next one of the last seed."""
        super().reset(seed=seed)
        if seed is None:
            key = self.episode.seed
            index = self.episode.index + 1
        else:
            key = seed_key(seed)
            index = np.int32(0)
        with on_the_cpu(), precision(self.task):
            self.episode, self.last_step = jax.tree.map(np.asarray, self._begin(key, index))
        return self.last_step.observation, self._info()

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step once.

        An action that the mask forbids leaves the state as it is, or loses a game;
        ``info["invalid_reason"]`` says why.
        """
        action = self._check_action(action)
        mask = self.last_step.info.get("action_mask")
        with on_the_cpu(), precision(self.task):
            self.episode, self.last_step = jax.tree.map(
                np.asarray, self._advance(self.episode, action, mask)
            )
        info = self._info()
        terminated = bool(self.last_step.terminated)
        if info.get("invalid_action"):
            info["invalid_reason"] = self.task.why_illegal(
                action, self.episode.state, self.episode.params
            )
        if terminated:
            info["end_reason"] = self.task.why_over(self.episode.state, self.episode.params, info)
        reward = average_agents(self.task, self.last_step.reward)
        return self.last_step.observation, python_scalar(reward), terminated, False, info

    def _info(self) -> dict[str, Any]:
        return {name: python_scalar(value) for name, value in self.last_step.info.items()}


def compile_in_pairs(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of one episode as a batch of two.

    A batch of one would round differently.
    """

    def compute_first_of_two(*arguments: Any) -> Any:
        pairs = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), arguments)
        return jax.tree.map(lambda leaf: leaf[0], exact_vmap(function, *pairs))

    return jax.jit(compute_first_of_two)


def python_scalar(value: np.ndarray) -> Any:
    """Return an array without axes as a float, int or bool, and any other array as it is."""
    return value if value.ndim else value.item()
