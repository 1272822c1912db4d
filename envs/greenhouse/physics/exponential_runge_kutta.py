"""An exponential Runge-Kutta method of order four, for equations with quickly decaying components.

The equations are ``dy/dt = -rate * y + remainder(y)`` with one constant rate a component. The decay
is integrated exactly at any rate, the remainder as in the classical method. With rates of zero it
is the classical method; with a constant remainder it is exact.

Source: Cox & Matthews 2002, doi:10.1006/jcph.2002.6995, equations 26 to 29 (ETDRK4).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import jax

Y = TypeVar("Y")

_TERMS = 17
"""Terms of the series of phi_3: exact to float64 on [-1.5, 0]."""


def phi_functions(z: Any) -> tuple[Any, Any, Any, Any]:
    """Return ``exp(z)`` and phi_1, phi_2 and phi_3 of ``z`` in [-1.5, 0].

    They are defined by phi_0(z) = exp(z) and phi_k(z) = (phi_{k-1}(z) - 1 / (k-1)!) / z.

    The definition cancels for small ``z``; the series of phi_3 and the recursion downwards do not.
    """
    phi_3 = 0.0 * z
    for k in reversed(range(_TERMS)):
        phi_3 = phi_3 * z + 1 / math.factorial(k + 3)
    phi_2 = 0.5 + z * phi_3
    phi_1 = 1.0 + z * phi_2
    return 1.0 + z * phi_1, phi_1, phi_2, phi_3


def double_argument(functions: tuple[Any, Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
    """Return ``exp`` and phi_1, phi_2, phi_3 of ``2 z`` from those of ``z``; nothing cancels."""
    decay, phi_1, phi_2, phi_3 = functions
    return (
        decay * decay,
        0.5 * (decay + 1) * phi_1,
        0.25 * (phi_1 * phi_1 + 2 * phi_2),
        0.125 * (phi_1 * phi_2 + phi_2 + 2 * phi_3),
    )


def exponential_rk4(
    remainder: Callable[[Y], Y], rates: Y, y: Y, step: float, count: int, doublings: int = 0
) -> Y:
    """Return ``y`` after ``count`` steps of ``step`` seconds.

    Args:
        remainder: ``dy/dt + rates * y`` as a function of ``y``; autonomous.
        rates: decay rates, 1/s, not negative and at most 3 * 2**doublings / ``step``; a pytree like
            ``y``.
        y: a pytree of arrays.
        step: length of one step, s.
        count: number of steps.
        doublings: how often the phi functions are doubled, for larger rates.
    """
    leaves, kind = jax.tree.flatten(y)
    half = [
        phi_functions(-(0.5 ** (1 + doublings)) * step * rate) for rate in jax.tree.leaves(rates)
    ]
    for _ in range(doublings):
        half = [double_argument(functions) for functions in half]
    weights = []
    for functions in half:
        _, full_1, full_2, full_3 = double_argument(functions)
        first, middle = full_1 - 3 * full_2 + 4 * full_3, 2 * full_2 - 4 * full_3
        weights.append((step * first, step * middle, step * (4 * full_3 - full_2)))

    def at(values: list[Any]) -> list[Any]:
        return jax.tree.leaves(remainder(jax.tree.unflatten(kind, values)))

    for _ in range(count):
        n_0 = at(leaves)
        a = [
            d * y + 0.5 * step * p * n for (d, p, _, _), y, n in zip(half, leaves, n_0, strict=True)
        ]
        n_a = at(a)
        b = [
            d * y + 0.5 * step * p * n for (d, p, _, _), y, n in zip(half, leaves, n_a, strict=True)
        ]
        n_b = at(b)
        c = [
            d * s + 0.5 * step * p * (2 * n - m)
            for (d, p, _, _), s, n, m in zip(half, a, n_b, n_0, strict=True)
        ]
        n_c = at(c)
        leaves = [
            d * d * y + (first * n + middle * (m_a + m_b) + last * m_c)
            for (d, _, _, _), (first, middle, last), y, n, m_a, m_b, m_c in zip(
                half, weights, leaves, n_0, n_a, n_b, n_c, strict=True
            )
        ]
    result: Y = jax.tree.unflatten(kind, leaves)
    return result
