"""Formulas of signal temporal logic over sampled traces, in words and in symbols."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class In:
    """Predicate: positive inside a region."""

    region: str


@dataclass(frozen=True)
class Not:
    """Negation of a predicate."""

    operand: In


@dataclass(frozen=True)
class And:
    """Conjunction."""

    operands: tuple[Formula, ...]


@dataclass(frozen=True)
class Or:
    """Disjunction."""

    operands: tuple[Formula, ...]


@dataclass(frozen=True)
class Always:
    """Now and for ``samples`` more; to the end of the trace if None."""

    operand: Formula
    samples: int | None = None


@dataclass(frozen=True)
class Eventually:
    """Now or within ``samples`` more; before the end of the trace if None."""

    operand: Formula
    samples: int | None = None


@dataclass(frozen=True)
class Until:
    """The first formula holds up to a time, and the second at that time."""

    first: Formula
    second: Formula


Formula: TypeAlias = In | Not | And | Or | Always | Eventually | Until


def lasts(formula: Formula) -> bool:
    """Tell whether a formula has a temporal operator."""
    return isinstance(formula, Always | Eventually | Until) or (
        isinstance(formula, And | Or) and any(map(lasts, formula.operands))
    )


def in_words(formula: Formula, period: float) -> str:  # noqa: PLR0911 - one a kind
    """Put a formula in English.

    Args:
        formula: the formula.
        period: duration of a sample, s.
    """

    def phrase(operand: Formula) -> str:
        return in_words(operand, period)

    match formula:
        case In(region):
            return f"in {region}"
        case Not(In(region)):
            return f"out of {region}"
        case And(operands):
            all_or_none_last = len({*map(lasts, operands)}) == 1
            conjunction = ", and " if all_or_none_last else ", and from then on "
            return conjunction.join(map(phrase, operands))
        case Or(operands):
            return "either " + ", or ".join(map(phrase, operands))
        case Always(operand, None):
            return f"always stay {phrase(operand)}"
        case Always(operand, int(samples)):
            return f"stay {phrase(operand)} for {samples * period:g} s without a break"
        case Eventually(operand, samples):
            when = "at some time" if samples is None else f"within {samples * period:g} s"
            verb = "" if isinstance(operand, Always | Eventually | Until) else "be "
            return f"{when} {verb}{phrase(operand)}"
        case Until(first, second):
            return f"stay {phrase(first)} until you are {phrase(second)}"
    raise TypeError(formula)


def in_symbols(formula: Formula, period: float) -> str:  # noqa: PLR0911 - one a kind
    """Write a formula in the notation of the literature, with bounds in s."""

    def write(operand: Formula) -> str:
        return in_symbols(operand, period)

    def bound(samples: int | None) -> str:
        return "" if samples is None else f"[0,{samples * period:g}]"

    match formula:
        case In(region):
            return region
        case Not(operand):
            return f"!{write(operand)}"
        case And(operands):
            return f"({' & '.join(map(write, operands))})"
        case Or(operands):
            return f"({' | '.join(map(write, operands))})"
        case Always(operand, samples):
            return f"G{bound(samples)} {write(operand)}"
        case Eventually(operand, samples):
            return f"F{bound(samples)} {write(operand)}"
        case Until(first, second):
            return f"({write(first)} U {write(second)})"
    raise TypeError(formula)
