"""What JAX can do in this process: after a fork, in float64, in the calling thread."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import jax
import numpy as np
from jaxlib import xla_client

from rlbench_suite.task import Described

_forked_after_jax = False


def _note_fork() -> None:
    global _forked_after_jax  # noqa: PLW0603  (a process-wide fact: this process is a fork of one that ran JAX)
    bridge = sys.modules.get("jax._src.xla_bridge")
    _forked_after_jax = _forked_after_jax or bool(bridge and bridge.backends_are_initialized())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def refuse_after_fork() -> None:
    """Raise at once where the first JAX call would hang for ever.

    Raises:
        RuntimeError: this process was forked from one that had already run JAX.
    """
    if _forked_after_jax:
        raise RuntimeError(
            "This process was forked after its parent had run JAX, and JAX would hang here. Use the batched mode "
            "gymnasium.make_vec(id, num_envs=n), or start workers afresh: AsyncVectorEnv(..., context='spawn')."
        )


def precision(task: Described) -> AbstractContextManager[Any]:
    """The context a float64 task must run in; other code keeps JAX's default."""
    return jax.enable_x64(True) if task.dtype == np.float64 else nullcontext()


@cache
def calling_thread_device() -> jax.Device:
    """A CPU device that computes in the thread that calls, for programs of a few microseconds.

    JAX's own CPU device hands every program of more than a thousand operations to another thread: two context
    switches, which take longer than a quadcopter's step (``benchmarks/single_env.py``). The switch for it,
    ``jax_cpu_enable_async_dispatch``, is the whole process's and read once, so we open a client of our own and leave
    the user's alone.
    """
    client: Any = xla_client.make_cpu_client(asynchronous=False)
    device: jax.Device = client.local_devices()[0]
    return device
