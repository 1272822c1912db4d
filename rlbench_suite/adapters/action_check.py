"""Checks of the actions that people and agents give, before any program sees them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from rlbench_suite.core.contract import wrong_shape

INTEGERS = {int, np.int64, np.int32}
MAX_LOOPED = 8
"""Largest number of values that are compared faster one by one than by NumPy."""


class ActionCheck:
    """A check of actions, which returns the array that the program expects.

    It refuses actions outside the space with a sentence.
    """

    def __init__(self, space: spaces.Space[Any], batch: int | None = None) -> None:
        self.space = space
        self.shape = (*(() if batch is None else (batch,)), *(space.shape or ()))
        self.discrete = isinstance(space, spaces.Discrete) and batch is None
        self.bounds: tuple[float, float] | None = None
        """Bounds of every number if there are few numbers and all have the same bounds."""
        if isinstance(space, spaces.Box):
            self.dtype = space.dtype
            self.low = space.low
            self.high = space.high
            if batch is None and len(self.shape) == 1 and math.prod(self.shape) <= MAX_LOOPED:
                pairs = {*zip(space.low.tolist(), space.high.tolist(), strict=True)}
                self.bounds = pairs.pop() if len(pairs) == 1 else None
        elif isinstance(space, spaces.Discrete):
            self.dtype = np.dtype(np.int32)
            self.low = space.start
            self.high = space.start + space.n - 1
        elif isinstance(space, spaces.MultiDiscrete):
            self.dtype = np.dtype(np.int32)
            self.low = space.start
            self.high = space.start + space.nvec - 1
        else:
            raise TypeError(f"action spaces are Box, Discrete or MultiDiscrete, got {space}")

    def __call__(self, action: Any) -> np.ndarray:
        """Return the action as an array of the right shape and dtype.

        Raises:
            ValueError: wrong shape, not finite, or outside the space.
            TypeError: not numbers, or floats for a discrete space.
        """
        if self.discrete and type(action) in INTEGERS and self.low <= action <= self.high:
            return np.int32(action)  # type: ignore[return-value]  # the common case, ten times as fast
        if (
            self.bounds
            and type(action) is np.ndarray
            and action.dtype == self.dtype
            and action.shape == self.shape
        ):
            low, high = self.bounds
            for number in action.tolist():
                if not low <= number <= high:
                    break
            else:
                return action
        array = np.asarray(action)
        if array.dtype.kind not in ("iu" if self.dtype.kind == "i" else "fiu"):
            raise TypeError(
                f"An action of {self.space} is of dtype {self.dtype}, got {array.dtype}: "
                f"{action!r}."
            )
        if array.shape != self.shape:
            raise ValueError(f"{wrong_shape(self.space, self.shape, array.shape)}: {action!r}.")
        inside = (array >= self.low) & (array <= self.high)  # NaN fails both comparisons
        if b"\0" in inside.tobytes():  # all() takes as long as the rest of the check
            fault = "not finite" if not np.isfinite(array).all() else "out of bounds"
            raise ValueError(f"The action is {fault}: {action!r}. Allowed: {self.space}.")
        return array.astype(self.dtype, copy=False)
