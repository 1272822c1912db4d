"""All uses of JAX features that JAX does not promise to keep, in one place.

For a new minor version of JAX, install it and run the tests; if they pass, widen the bounds in
``pyproject.toml``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
from jax.experimental.xla_metadata import set_xla_metadata
from jaxlib import xla_client


def jax_has_run() -> bool:
    """Return whether JAX has started a backend in this process."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bool(bridge and bridge.backends_are_initialized())


@cache
def calling_thread_device() -> jax.Device:
    """Return a CPU device that computes in the thread that calls.

    It is for programs of a few microseconds.

    JAX's own CPU device hands every program of more than a thousand operations to another thread.
    The two context switches take longer than a quadcopter's step
    (``benchmarks/speed/single_env.py``). The option that prevents this,
    ``jax_cpu_enable_async_dispatch``, applies to the whole process and is read once. So we open a
    client of our own and leave the user's alone.
    """
    client: Any = xla_client.make_cpu_client(asynchronous=False)
    device: jax.Device = client.local_devices()[0]
    return device


def call_without_inlining(function: Callable[..., Any], **metadata: str) -> Callable[..., Any]:
    """Return the function, called in a way that XLA's CPU compiler does not inline."""
    callee = jax.jit(function)
    return lambda *args: set_xla_metadata(callee(*args), inlineable="false", **metadata)
