"""Truth tables: the value of a formula under every assignment at once.

A table is a whole number with one bit for each assignment.

Assignment a gives variable v = 1, 2, ... the value of bit v - 1 of a. The tables are exact and need
no search, up to some 20 variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache


@cache
def value_table(variable: int, variables: int) -> int:
    """Return the assignments in which a variable (0, 1, ...) is true.

    They are 2**variable zeros, then as many ones, and so on.
    """
    period = 2 << variable
    table = ((1 << period // 2) - 1) << period // 2
    while period < 1 << variables:
        table |= table << period
        period *= 2
    return table


def satisfying_assignments(clause: Iterable[int], variables: int) -> int:
    """Return the assignments that satisfy a clause."""
    every, assignments = (1 << (1 << variables)) - 1, 0
    for literal in clause:
        table = value_table(abs(literal) - 1, variables)
        assignments |= table if literal > 0 else every ^ table
    return assignments


def models_of(clauses: Iterable[Iterable[int]], variables: int) -> int:
    """Return the assignments that satisfy every clause."""
    models = (1 << (1 << variables)) - 1
    for clause in clauses:
        models &= satisfying_assignments(clause, variables)
    return models


def least_unsatisfied(clauses: Sequence[Iterable[int]], variables: int) -> tuple[int, int]:
    """Return the least number of clauses left unsatisfied, and the assignments that reach it.

    Digit i of every assignment's count, in binary, is one table; a clause is added to all counts at
    once, carry by carry.
    """
    every = (1 << (1 << variables)) - 1
    digits: list[int] = []
    for clause in clauses:
        carry, digit = every ^ satisfying_assignments(clause, variables), 0
        while carry:
            if digit == len(digits):
                digits.append(0)
            digits[digit], carry = digits[digit] ^ carry, digits[digit] & carry
            digit += 1
    min_unsatisfied, best = 0, every
    for digit in reversed(range(len(digits))):
        if lower := best & ~digits[digit]:
            best = lower
        else:
            min_unsatisfied += 1 << digit
    return min_unsatisfied, best
