"""The value of a formula that is written from left to right, kept up to date with every token.

The value is exact, and its computation is compiled.

Each open parenthesis is a level, and so is the formula outside all of them. A level is a finished
sum, a term that still grows by ``*`` and ``/``, and an operator that waits for the next value.
Numbers are quotients of int32, not reduced. After a division by zero, numerator and denominator are
0, and no operation undoes that. A formula of ``n`` numbers up to ``m`` has no numerator or
denominator beyond ``2**(n - 1) * m**n``.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

MINUS, TIMES, OVER = 1, 2, 3
"""Indices in :data:`.expression.OPERATORS`."""
LEVELS = 3
"""Number of levels: one more than parentheses can be open at a time."""

Quotient = tuple[jax.Array, jax.Array]
"""Numerators and denominators, int32, of one shape."""


class Levels(NamedTuple):
    """Levels on axis 0, the innermost first.

    Levels that are not open yet are equal to a level that has just begun.
    """

    sum_top: jax.Array
    """int32 ``(LEVELS,)``"""
    sum_bottom: jax.Array
    term_top: jax.Array
    term_bottom: jax.Array
    operator: jax.Array
    """int8: index in :data:`.expression.OPERATORS` of the operator that waits for a value."""


def empty_levels() -> Levels:
    """Return the levels before the first token: every level is 0 + 0 + the next value."""
    zeros, unit = jnp.zeros(LEVELS, jnp.int32), jnp.ones(LEVELS, jnp.int32)
    return Levels(zeros, unit, zeros, unit, jnp.zeros(LEVELS, jnp.int8))


def write_value(levels: Levels, value: Quotient) -> Levels:
    """Write a number at the innermost level."""
    inner = _extend_level(_level(levels, 0), value)
    return Levels(
        *(jnp.concatenate([new[None], old[1:]]) for new, old in zip(inner, levels, strict=True))
    )


def write_operator(levels: Levels, operator: jax.Array) -> Levels:
    """Write an operator."""
    return levels._replace(
        operator=jnp.where(np.arange(LEVELS) == 0, operator.astype(jnp.int8), levels.operator)
    )


def open_parenthesis(levels: Levels) -> Levels:
    """Write an opening parenthesis."""
    return Levels(
        *(
            jnp.concatenate([new[:1], old[:-1]])
            for new, old in zip(empty_levels(), levels, strict=True)
        )
    )


def close_parenthesis(levels: Levels) -> Levels:
    """Write a closing parenthesis: the innermost level becomes a value of the next."""
    outer = Levels(
        *(
            jnp.concatenate([old[1:], new[:1]])
            for new, old in zip(empty_levels(), levels, strict=True)
        )
    )
    return write_value(outer, _value(_level(levels, 0)))


def value_of(levels: Levels) -> Quotient:
    """Return the value of the formula so far, as if every open parenthesis were closed.

    An operator that still waits for its value does not count.
    """
    return _outermost_value(_value(_level(levels, 0)), levels)


def value_with(levels: Levels, operator: jax.Array, value: Quotient) -> Quotient:
    """Return the value after one more operator and number.

    Every open parenthesis counts as closed.

    Args:
        levels: what has been written.
        operator: of any shape that broadcasts with the value's; it takes the place of one that
            waits.
        value: the number.
    """
    inner = _level(levels, 0)._replace(operator=operator)
    return _outermost_value(_value(_extend_level(inner, value)), levels)


def _level(levels: Levels, number: int) -> Levels:
    """Return one level, as scalars."""
    return Levels(*(field[number] for field in levels))


def _value(level: Levels) -> Quotient:
    """Return the sum with its last term."""
    top = level.sum_top * level.term_bottom + level.term_top * level.sum_bottom
    return top, level.sum_bottom * level.term_bottom


def _extend_level(level: Levels, value: Quotient) -> Levels:
    """Put a value into a level: it is a new term, or a factor of the last."""
    top, bottom = value
    factor = level.operator >= TIMES
    divides = level.operator == OVER
    new_bottom = jnp.where(
        divides, level.term_bottom * top, jnp.where(factor, level.term_bottom * bottom, bottom)
    )
    product = level.term_top * jnp.where(divides, bottom, top)
    new_top = jnp.where(factor, product, jnp.where(level.operator == MINUS, -top, top))
    sum_top, sum_bottom = _value(level)
    return Levels(
        jnp.where(factor, level.sum_top, sum_top),
        jnp.where(factor, level.sum_bottom, sum_bottom),
        jnp.where(new_bottom == 0, 0, new_top),
        new_bottom,
        level.operator,
    )


def _outermost_value(value: Quotient, levels: Levels) -> Quotient:
    """Return the value of the outermost level.

    Each level except the innermost takes the value of the one inside it.
    """
    for number in range(1, LEVELS):
        value = _value(_extend_level(_level(levels, number), value))
    return value
