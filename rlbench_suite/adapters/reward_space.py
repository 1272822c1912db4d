"""Rewards as environments show them, and their spaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from rlbench_suite.core.episode import average_agents, weighted_space
from rlbench_suite.core.task import Task


def shown_reward_space(task: Task[Any, Any], weights: Sequence[float] | None) -> spaces.Box:
    """Return the space of rewards as Gymnasium gets them.

    They are vectors for objectives without weights, else numbers; agents are averaged.
    """
    space = task.reward_space
    if task.card.agents > 1:
        space = task.box(average_agents(task, space.low), average_agents(task, space.high))
    return space if weights is None else weighted_space(space, weights, task.dtype)


def with_resets(space: spaces.Box, mode: AutoresetMode) -> spaces.Box:
    """Return the space with zero in it, if the autoreset mode needs it.

    A mode needs zero if it has steps that only reset, and so earn nothing.
    """
    if mode is not AutoresetMode.NEXT_STEP:
        return space
    return spaces.Box(
        np.minimum(space.low, 0), np.maximum(space.high, 0), space.shape, space.dtype.type
    )


class VectorReward(np.ndarray):
    """A reward of several objectives, ``(k,)`` or ``(n, k)``.

    It is an array whose errors name ``weights=``.

    Vector environments, wrappers and libraries that expect one number fail on it far from its
    cause. NumPy then says which keyword makes the reward one number. Results of computations are
    plain arrays.
    """

    ADVICE = (
        "This reward is a vector, one number for each objective. Where one number is expected, "
        "make the environment with weights=, as in gymnasium.make(ID, weights=(0.5, 0.5))."
    )

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = (), **keywords: Any
    ) -> Any:
        """Compute as plain arrays do; an error about shapes says what to do."""
        if out:
            keywords["out"] = tuple(_plain(array) for array in out)
        try:
            return getattr(ufunc, method)(*map(_plain, inputs), **keywords)
        except ValueError as error:
            raise ValueError(f"{error} {self.ADVICE}") from None

    def __float__(self) -> float:
        """Return the number of an array with one entry.

        Raises:
            TypeError: there are more.
        """
        if self.size != 1:
            raise TypeError(self.ADVICE)
        return float(self.item())


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, VectorReward) else value
