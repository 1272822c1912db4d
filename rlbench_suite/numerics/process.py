"""Set the limits of JAX in this process.

There are no calls after a fork, float64 only in a context, and not too many compiled programs.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import jax
import numpy as np

from rlbench_suite.numerics.compat import jax_has_run


class HasDtype(Protocol):
    """A task, of which only the precision counts here."""

    dtype: np.dtype[Any]


CACHED_TASKS = 32
"""Number of tasks whose programs each adapter keeps for the next env.

Every compiled kernel maps one or two pieces of memory, so a task has hundreds. Linux allows a
process 65,530. A process that made every id and kept all programs would die. Envs keep their own
programs.
"""
_forked_after_jax = False


def _note_fork() -> None:
    global _forked_after_jax  # noqa: PLW0603  (a process-wide fact: this process is a fork of one that ran JAX)
    _forked_after_jax = _forked_after_jax or jax_has_run()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def refuse_after_fork() -> None:
    """Raise an error at once if the first JAX call would hang for ever.

    Raises:
        RuntimeError: this process was forked from one that had already run JAX.
    """
    if _forked_after_jax:
        raise RuntimeError(
            "This process was forked after its parent had run JAX, and JAX would hang here. Use "
            "the batched mode gymnasium.make_vec(id, num_envs=n), or start workers afresh: "
            "AsyncVectorEnv(..., context='spawn')."
        )


def precision(task: HasDtype) -> AbstractContextManager[Any]:
    """Return the context a float64 task must run in; other code keeps JAX's default."""
    return jax.enable_x64(True) if task.dtype == np.float64 else nullcontext()


def on_the_cpu() -> AbstractContextManager[Any]:
    """Return the context in which JAX computes on the CPU.

    It does so also where JAX's default is an accelerator.

    An accelerator rounds otherwise than a CPU, and each kind of it otherwise than the next. A
    flight of 500 steps replayed from its actions then ends elsewhere. So whatever others may replay
    is computed on the CPU.

    Raises:
        RuntimeError: JAX was told to use other platforms only (``JAX_PLATFORMS``).
    """
    if jax.default_backend() == "cpu":
        return nullcontext()
    try:
        cpu = jax.devices("cpu")[0]
    except RuntimeError:
        platforms: str = jax.config.jax_platforms  # type: ignore[attr-defined]
        raise RuntimeError(
            "Episodes that others may replay are computed on the CPU, and "
            f"JAX_PLATFORMS={platforms} excludes it. Unset it, or add the CPU: "
            f"JAX_PLATFORMS={platforms},cpu."
        ) from None
    return jax.default_device(cpu)
