"""Compile computations so that they always round the same.

They do so alone, in a batch of any size, and inside any program.

Compilers contract ``a * b + c`` into one rounding where both operations land in one kernel. So the
last bit of a result depends on what is fused with it, and on whether it is vectorised. Measured on
the quadcopter (jax 0.10, x86 with FMA): batches of 2 to 64 agree to the bit. A lone episode and a
batch of one differ from them, and packing or autoreset in the same program change last bits. Of
nine tomato crops, the ninth differed: vectors left it over. Hence the rule: compute batches of an
even number, compiled apart from what surrounds them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from rlbench_suite.numerics.compat import call_without_inlining

Result = TypeVar("Result")


def exact_vmap(function: Callable[..., Any], *args: Any) -> Any:
    """Return ``jax.vmap(function)(*args)``, with reproducible bits.

    They are the same for a batch of any size and in any program.
    """
    size = jax.tree.leaves(args)[0].shape[0]
    compute = compile_apart(jax.vmap(function))
    if size % 2 == 0:
        return compute(*args)
    padded = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf[-1:]]), args)
    return jax.tree.map(lambda leaf: leaf[:size], compute(*padded))


def in_one_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, compiled as one kernel where XLA would launch one for each leaf.

    Use it for functions that move small data, never for arithmetic: the compiler sees all of it at
    once and may contract more than it otherwise would.
    """
    return call_without_inlining(function, xla_cpu_small_call="true") if _on_cpu() else function


def computed_once(function: Callable[..., Result]) -> Callable[..., Result]:
    """Return the function with its result stored in memory.

    Without this, XLA fuses the function into the code that uses its result, and computes the
    function again for every entry of that code's result.

    Use every number of the result. JAX cuts unused results off a call, but not inside of
    ``lax.while_loop``: there the call would compute more than elsewhere, and might round
    differently.
    """
    return call_without_inlining(function) if _on_cpu() else function


def compile_apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, compiled by itself.

    XLA fuses nothing across a call that is kept, nor across a branch.
    """

    def branch(*args: Any) -> Any:
        # Backends other than the CPU may not know kept calls. They get a conditional that always
        # takes this branch, behind a barrier that hides its constant condition from the compiler.
        def never(*traced: Any) -> Any:
            return jax.tree.map(
                lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(function, *traced)
            )

        return jax.lax.cond(jax.lax.optimization_barrier(jnp.bool_(True)), function, never, *args)

    return call_without_inlining(function) if _on_cpu() else branch


def _on_cpu() -> bool:
    device: Any = jax.config.jax_default_device  # type: ignore[attr-defined]  # a device, a platform, or None
    return (getattr(device, "platform", device) or jax.default_backend()) == "cpu"
