"""The spaces of rewards as environments show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from rlbench_suite.episode import scalar_return, weighted_space
from rlbench_suite.task import Task


def shown_reward_space(task: Task[Any, Any], weights: Sequence[float] | None) -> spaces.Box:
    """The space of rewards as Gymnasium gets them: a vector for objectives that are not weighted, else a number."""
    space = task.reward_space
    if weights is not None:
        return weighted_space(space, weights, task.dtype)
    if task.card.agents == 1:
        return space
    return task.box(scalar_return(task, space.low), scalar_return(task, space.high))


def with_resets(space: spaces.Box, mode: AutoresetMode) -> spaces.Box:
    """The rewards of a space, and zero where steps that only reset earn it."""
    if mode is not AutoresetMode.NEXT_STEP:
        return space
    return spaces.Box(np.minimum(space.low, 0), np.maximum(space.high, 0), space.shape, space.dtype.type)
