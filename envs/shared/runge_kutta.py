"""The classical Runge-Kutta method of order four."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax

Y = TypeVar("Y")


def rk4(derivative: Callable[[float, Y], Y], y: Y, step: Any) -> Y:
    """Return ``y`` one step later.

    Args:
        derivative: ``dy/dt`` as a function of the fraction of the step that has passed (0, 0.5 or
            1) and of ``y``.
        y: a pytree of arrays; its derivative has the same structure.
        step: length of the step, s.

    Source: Kutta 1901; Hairer, Norsett & Wanner, Solving Ordinary Differential Equations I, table
    II.1.2.
    """

    def move_along(slope: Y, time: Any) -> Y:
        return jax.tree.map(lambda value, rate: value + time * rate, y, slope)

    k1 = derivative(0.0, y)
    k2 = derivative(0.5, move_along(k1, 0.5 * step))
    k3 = derivative(0.5, move_along(k2, 0.5 * step))
    k4 = derivative(1.0, move_along(k3, step))
    mean = jax.tree.map(lambda a, b, c, d: (a + 2 * (b + c) + d) / 6, k1, k2, k3, k4)
    return move_along(mean, step)
