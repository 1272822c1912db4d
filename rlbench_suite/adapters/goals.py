"""Tasks with goals as Gymnasium-Robotics' ``GoalEnv`` shows them, for hindsight experience replay.

Source: Andrychowicz et al. 2017, arXiv:1707.01495. An observation is a ``Dict`` of ``observation``,
``achieved_goal`` and ``desired_goal``, and the reward is a function of the last two. So a replay
buffer may put another goal in place of the desired one and compute what the step would have earned.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from rlbench_suite.core.task import Task
from rlbench_suite.numerics.process import CACHED_TASKS, on_the_cpu, precision, refuse_after_fork

Compute = Callable[[Any, Any, Any], Any]
"""Function of achieved goals ``(..., g)``, desired goals ``(..., g)`` and infos.

The infos have no influence.
"""


class WithGoals:
    """The methods of a ``GoalEnv``.

    An environment without goals does not have them, as ``hasattr`` says.
    """

    task: Any

    @property
    def compute_reward(self) -> Compute:
        """Function that returns the rewards of steps that end at achieved goals.

        Its arguments are ``(achieved_goal, desired_goal, info)``.

        Goals are ``(g,)``, which gives a float, or ``(..., g)``, which gives an array ``(...)``.

        Raises:
            AttributeError: the task has no goals.
        """
        self._refuse_without_goals("compute_reward")
        return lambda achieved_goal, desired_goal, info: goal_rewards(
            self.task, achieved_goal, desired_goal
        )

    @property
    def compute_terminated(self) -> Compute:
        """Function that returns whether the task is over at achieved goals.

        Its arguments are ``(achieved_goal, desired_goal, info)``.

        Raises:
            AttributeError: the task has no goals.
        """
        self._refuse_without_goals("compute_terminated")
        return lambda achieved_goal, desired_goal, info: goal_ends(
            self.task, achieved_goal, desired_goal
        )

    @property
    def compute_truncated(self) -> Compute:
        """Function ``(achieved_goal, desired_goal, info)`` that returns False: only time truncates.

        Raises:
            AttributeError: the task has no goals.
        """
        self._refuse_without_goals("compute_truncated")
        return lambda achieved_goal, desired_goal, info: np.zeros(
            np.shape(achieved_goal)[:-1], bool
        )[()]

    def _refuse_without_goals(self, name: str) -> None:
        if has_goals(self.task):
            return
        advice = (
            "make it with goal=True"
            if "goal" in self.task.card.choices
            else "its observations show no goals"
        )
        raise AttributeError(f"{self.task.card.id} has no {name}: {advice}.")


def has_goals(task: Any) -> bool:
    """Return whether a task gives the reward of an achieved and a desired goal."""
    return bool(getattr(task, "has_goals", False))


def goal_rewards(task: Task[Any, Any], achieved: Any, desired: Any) -> Any:
    """Return the rewards of steps that end at achieved goals ``(..., g)``.

    The desired goals are ``(..., g)`` too.

    Raises:
        ValueError: the shapes of the goals are not those of the task, or do not fit each other.
    """
    return _compute(task, "goal_reward", achieved, desired)


def goal_ends(task: Task[Any, Any], achieved: Any, desired: Any) -> Any:
    """Return whether the task is over at achieved goals ``(..., g)``.

    The desired goals are ``(..., g)`` too.

    Raises:
        ValueError: the shapes of the goals are not those of the task, or do not fit each other.
    """
    return _compute(task, "goal_terminal", achieved, desired)


@lru_cache(CACHED_TASKS)
def _program(task: Task[Any, Any], name: str) -> Any:
    return jax.jit(jax.vmap(getattr(task, name)))


def _compute(task: Task[Any, Any], name: str, achieved: Any, desired: Any) -> Any:
    refuse_after_fork()
    achieved, desired = np.broadcast_arrays(
        np.asarray(achieved, task.dtype), np.asarray(desired, task.dtype)
    )
    space: Any = task.observation_space
    size = space["achieved_goal"].shape
    if achieved.shape[-1:] != size:
        raise ValueError(
            f"Goals of {task.card.id} have shape (..., {size[0]}), got {achieved.shape}."
        )
    shape = achieved.shape[:-1]
    count = int(np.prod(shape, dtype=int))
    rows = max(2, 1 << (count - 1).bit_length())  # few programs, whatever the number of goals
    pairs = np.zeros((2, rows, *size), task.dtype)
    pairs[0, :count] = achieved.reshape(count, *size)
    pairs[1, :count] = desired.reshape(count, *size)
    with on_the_cpu(), precision(task):
        results = np.asarray(_program(task, name)(*pairs))[:count]
    return results.reshape(shape) if shape else results[0].item()
