"""Compile programs from one buffer to another.

They run on the device that computes in the calling thread.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import SingleDeviceSharding

from rlbench_suite.numerics.compat import calling_thread_device
from rlbench_suite.numerics.process import HasDtype, on_the_cpu, precision


def program(
    function: Callable[[jax.Array], jax.Array], task: HasDtype, example: np.ndarray
) -> Callable[[np.ndarray], jax.Array]:
    """Trace a function of one array now, and compile it at its first call.

    JAX's jitted calls read NumPy arrays in place, and NumPy reads their results in place. So a call
    costs JAX's dispatch and no copy (``benchmarks/speed/single_env.py``). The argument may be
    changed after the call.

    Args:
        function: a function from an array to an array.
        task: the task, whose precision is used.
        example: an argument, of which only shape and dtype count. Tracing it shows faults of the
            function before anything is compiled.
    """

    def on_this_device(argument: jax.Array) -> jax.Array:
        with on_the_cpu():  # where JAX's default is another, it would be traced for that one
            return function(argument)

    jitted = jax.jit(on_this_device, out_shardings=SingleDeviceSharding(calling_thread_device()))
    with precision(task):
        jitted.trace(example)
    if task.dtype == np.float32:
        return jitted  # the context below would change nothing and would cost time at each step

    def call(argument: np.ndarray) -> jax.Array:
        with precision(task):
            return jitted(argument)

    return call
