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
    """Return the space of rewards as Gymnasium gets them: vectors for objectives without weights, else numbers."""
    space = task.reward_space
    if weights is not None:
        return weighted_space(space, weights, task.dtype)
    if task.card.agents == 1:
        return space
    return task.box(scalar_return(task, space.low), scalar_return(task, space.high))


def with_resets(space: spaces.Box, mode: AutoresetMode) -> spaces.Box:
    """Return the space with zero in it, if the autoreset mode has steps that only reset and so earn zero."""
    if mode is not AutoresetMode.NEXT_STEP:
        return space
    return spaces.Box(np.minimum(space.low, 0), np.maximum(space.high, 0), space.shape, space.dtype.type)
