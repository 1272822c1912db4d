"""How an episode is computed so that it rounds the same alone, in a batch of any size, and inside any program.

Compilers contract ``a * b + c`` into one rounding where both land in one kernel, so the last bit of a result depends
on what is fused with it and on whether it is vectorised. Measured on the quadcopter (jax 0.10, x86 with FMA): batches
of 2 to 64 agree to the bit; a lone episode and a batch of one do not, and packing or autoreset in the same program
change last bits. Hence the rule: at least two lanes, compiled apart from what surrounds them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from rlbench_suite.compat import kept_call

Result = TypeVar("Result")


def in_lanes(function: Callable[..., Any], *args: Any) -> Any:
    """``jax.vmap(function)(*args)`` for a batch of any size on axis 0, with equal bits whatever is done with it."""
    if jax.tree.leaves(args)[0].shape[0] > 1:
        return apart(jax.vmap(function))(*args)
    doubled = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf]), args)
    return jax.tree.map(lambda leaf: leaf[:1], apart(jax.vmap(function))(*doubled))


def in_one_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that only moves small data, compiled as one kernel where XLA would launch one for each leaf.

    Never for arithmetic: the compiler sees all of it at once and may contract what it otherwise would not.
    """
    return kept_call(function, xla_cpu_small_call="true") if _on_cpu() else function


def computed_once(function: Callable[..., Result]) -> Callable[..., Result]:
    """A function whose result is stored where XLA would compute it anew for every entry of what uses it."""
    return kept_call(function) if _on_cpu() else function


def apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled by itself: fusion crosses neither calls that are kept nor branches."""

    def branch(*args: Any) -> Any:
        # Other backends may not know calls: one branch of a conditional that is always taken, unseen by the compiler.
        def never(*traced: Any) -> Any:
            return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(function, *traced))

        return jax.lax.cond(jax.lax.optimization_barrier(jnp.bool_(True)), function, never, *args)

    return kept_call(function) if _on_cpu() else branch


def _on_cpu() -> bool:
    return jax.default_backend() == "cpu"
