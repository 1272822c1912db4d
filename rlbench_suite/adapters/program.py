"""Programs from one array of words to another, for the device that computes in the calling thread."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import SingleDeviceSharding

from rlbench_suite.compat import calling_thread_device
from rlbench_suite.process import precision
from rlbench_suite.task import Described


class Program:
    """A function of one array, compiled at its first call.

    JAX's jitted calls take NumPy arrays of the host as they lie, and what they return is read where it lies: a call
    costs JAX's dispatch and no copy (``benchmarks/single_env.py``).

    Args:
        function: to be traced; from an array to an array.
        task: whose precision it is computed in.
    """

    def __init__(self, function: Callable[[jax.Array], jax.Array], task: Described) -> None:
        self.function = jax.jit(function, out_shardings=SingleDeviceSharding(calling_thread_device()))
        self.task = task
        self._single = task.dtype == np.float32

    def __call__(self, argument: np.ndarray) -> np.ndarray:
        """Return the result, which is read-only. The argument may be changed after the call."""
        if self._single:  # a context costs time at each step, and this one changes nothing
            return np.asarray(self.function(argument))
        with precision(self.task):
            return np.asarray(self.function(argument))

    def trace(self, argument: np.ndarray) -> None:
        """Trace it for the first call, which does not trace again: what is wrong in it is found, nothing compiled."""
        with precision(self.task):
            self.function.trace(argument)
