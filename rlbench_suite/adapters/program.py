"""Programs from words to words, compiled for the device that computes in the calling thread, and where they are run."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import jax
import numpy as np
from jax.sharding import SingleDeviceSharding

from rlbench_suite.adapters.executable import UnknownExecutable, read
from rlbench_suite.adapters.machine_code import MachineCode, aligned
from rlbench_suite.process import calling_thread_device


class Opened(Protocol):
    """Where a program is run: ``run`` reads the words of ``argument`` and writes those of ``result``."""

    argument: np.ndarray
    result: np.ndarray
    run: Callable[[], None]


@contextmanager
def _compiled_here() -> Iterator[None]:
    """What is compiled does not come from JAX's cache on disk, nor go there: what comes from it has lost its code."""
    name = "jax_persistent_cache_min_compile_time_secs"
    before = getattr(jax.config, name)
    jax.config.update(name, math.inf)
    try:
        yield
    finally:
        jax.config.update(name, before)


class Program:
    """A compiled function of one array, called at its machine code where that is known and gives the same.

    Args:
        function: to be traced.
        example: an argument. What machine code makes of it is compared with what JAX makes of it.
        context: in which it is compiled.
        feedback: so many words of the result are written over the first ones of the argument after each run.
    """

    def __init__(
        self,
        function: Callable[[jax.Array], jax.Array],
        example: np.ndarray,
        context: Callable[[], AbstractContextManager[Any]],
        feedback: int = 0,
    ) -> None:
        self.example, self.context, self.feedback = example, context, feedback
        with context(), _compiled_here():
            jitted = jax.jit(function, out_shardings=SingleDeviceSharding(calling_thread_device()))
            self.compiled: Any = jitted.lower(example).compile()
            self.result = np.asarray(self.compiled(example))
            """Of the example."""
        self.machine_code: MachineCode | None = None
        """None where it is called through JAX."""
        loaded: Any = self.compiled.runtime_executable()
        try:
            self.machine_code = MachineCode(read(loaded.serialize()), feedback * example.itemsize)
        except (UnknownExecutable, jax.errors.JaxRuntimeError):  # the latter where XLA cannot write it down
            return
        if self(example).tobytes() != self.result.tobytes():
            self.machine_code = None

    def open(self) -> Opened:
        """A new place to run it."""
        return Dispatched(self) if self.machine_code is None else Direct(self, self.machine_code)

    def __call__(self, argument: np.ndarray) -> np.ndarray:
        """Its result, at a place of its own."""
        place = self.open()
        place.argument[...] = argument
        place.run()
        return place.result


class Direct:
    """A place at which machine code is run."""

    def __init__(self, program: Program, code: MachineCode) -> None:
        memory = code.memory()
        self.argument = memory[code.argument].view(program.example.dtype).reshape(program.example.shape)
        self.result = memory[code.result].view(program.result.dtype).reshape(program.result.shape)
        self.run = code.at(memory)


class Dispatched:
    """A place at which a program is called through JAX, which reads its argument where it lies, if it takes it so."""

    def __init__(self, program: Program) -> None:
        self.argument, self.result = aligned(program.example), aligned(program.result)
        compiled, context = program.compiled, program.context
        with context():
            shared = jax.device_put(self.argument, calling_thread_device(), may_alias=True)
        in_place = shared.unsafe_buffer_pointer() == self.argument.ctypes.data
        argument: Any = shared if in_place else self.argument
        back = program.feedback * self.argument.itemsize

        def run() -> None:
            with context():
                result = compiled(argument)
            address = result.unsafe_buffer_pointer()
            ctypes.memmove(self.result.ctypes.data, address, self.result.nbytes)
            ctypes.memmove(self.argument.ctypes.data, address, back)

        self.run: Callable[[], None] = run
