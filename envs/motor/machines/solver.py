"""Methods that integrate a step, besides the Runge-Kutta method of order four.

=========== ========================================================================================
euler       one explicit step of order one: what a fast simulation or a simple observer makes of the
            machine
exact       the exponential of a linear system, by its series applied to the state: a machine at
            constant speed
=========== ========================================================================================

Sources: Hairer, Norsett & Wanner, Solving Ordinary Differential Equations I (1993), section II.1;
Al-Mohy & Higham 2011, doi:10.1137/100788860, the action of the exponential of a matrix by its
truncated Taylor series.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax

from ...shared.runge_kutta import rk4

Y = TypeVar("Y")
TERMS = {4: 10, 8: 18}
"""Terms by the bytes of a number.

Where the matrix times the step has norm one, the others are less than rounding.
"""


def euler(derivative: Callable[[float, Y], Y], y: Y, step: Any) -> Y:
    """Return ``y`` one step later; arguments as of :func:`~..runge_kutta.rk4`."""
    return jax.tree.map(lambda value, rate: value + step * rate, y, derivative(0.0, y))


def step_exact(derivative: Callable[[float, Y], Y], y: Y, step: Any) -> Y:
    """Return ``y`` one step later, where dy/dt = A y + b.

    The series is y + h f + h/2 A (h f) + h/3 A (h/2 A (h f)) + ...

    Arguments as of :func:`~..runge_kutta.rk4`; the derivative's first one is not used.
    """

    def rate(at: Y) -> Y:
        return derivative(0.0, at)

    term = jax.tree.map(lambda slope: step * slope, rate(y))
    total = jax.tree.map(lambda value, first: value + first, y, term)
    for k in range(2, TERMS[jax.tree.leaves(y)[0].dtype.itemsize] + 1):
        _, product = jax.jvp(rate, (y,), (term,))
        term = jax.tree.map(lambda slope, k=k: (step / k) * slope, product)
        total = jax.tree.map(lambda value, next_one: value + next_one, total, term)
    return total


SOLVERS: dict[str, Callable[..., Any]] = {"rk4": rk4, "euler": euler, "exact": step_exact}
"""Methods by their names in ``card.choices``."""
