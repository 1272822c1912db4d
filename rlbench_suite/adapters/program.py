"""Programs from one array of words to another, for the device that computes in the calling thread."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import SingleDeviceSharding

from rlbench_suite.compat import calling_thread_device
from rlbench_suite.process import precision
from rlbench_suite.task import Described


def program(
    function: Callable[[jax.Array], jax.Array], task: Described, example: np.ndarray
) -> Callable[[np.ndarray], jax.Array]:
    """Trace a function of one array, and compile it at its first call.

    JAX's jitted calls take NumPy arrays of the host as they lie, and NumPy reads what they return where it lies: a call
    costs JAX's dispatch and no copy (``benchmarks/single_env.py``). The argument may be changed after the call.

    Args:
        function: from an array to an array.
        task: whose precision it is computed in.
        example: an argument, of which only shape and dtype count. What is wrong in the function shows while tracing,
            before anything is compiled.
    """
    jitted = jax.jit(function, out_shardings=SingleDeviceSharding(calling_thread_device()))
    with precision(task):
        jitted.trace(example)
    if task.dtype == np.float32:
        return jitted  # the context below would change nothing, and costs time at each step

    def call(argument: np.ndarray) -> jax.Array:
        with precision(task):
            return jitted(argument)

    return call
