"""Signal temporal logic over sampled traces, compiled to monitors of constant memory.

Robustness of a formula at a time (Donze & Maler 2010, doi:10.1007/978-3-642-15297-9_9): a predicate's is its value;
"not" changes the sign; "and" and "or" are minimum and maximum; always and eventually are minimum and maximum over time;
``p`` until ``q`` is the maximum over times of ``q`` there and ``p`` up to there. A positive robustness means satisfied.

A monitor reads one sample at a time and gives the robustness of the trace so far. The compiler passes a *gate* inwards,
the value of having begun a part at each time:

    V(part, gate)(t) = max over s <= t of min(gate(s), robustness of the part on samples s to t)

so that, for example, V(eventually part, gate) = V(part, running maximum of gate). It takes conjunctions and
disjunctions of formulas at the top, and below an "eventually" those of the fragment in which one part at most lasts:
chains ("eventually A, and from then on eventually B"), stays of a given number of samples, and untils.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import jax.numpy as jnp

NEVER = -1000.0
"""Robustness of what has not begun, below any value of a predicate."""


@dataclass(frozen=True)
class In:
    """Predicate: positive inside a region."""

    region: str


@dataclass(frozen=True)
class Not:
    """Negation of a predicate."""

    part: In


@dataclass(frozen=True)
class And:
    """Conjunction."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Or:
    """Disjunction."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Always:
    """Now and for ``samples`` more; to the end of the trace if None."""

    part: Formula
    samples: int | None = None


@dataclass(frozen=True)
class Eventually:
    """Now or within ``samples`` more; before the end of the trace if None."""

    part: Formula
    samples: int | None = None


@dataclass(frozen=True)
class Until:
    """The first part holds up to a time, and the second at that time."""

    first: Formula
    second: Formula


Formula = In | Not | And | Or | Always | Eventually | Until

Memory = tuple[Any, ...]
Step = Callable[[Memory, Any, Mapping[str, Any]], tuple[Any, Memory]]
"""Takes memory, gate and values of the predicates; returns V and the next memory."""


def instant(formula: Formula, values: Mapping[str, Any]) -> Any:
    """Return the robustness of a formula without temporal operators.

    Raises:
        ValueError: it has one.
    """
    match formula:
        case In(region):
            return values[region]
        case Not(part):
            return -instant(part, values)
        case And(parts):
            return reduce(jnp.minimum, (instant(part, values) for part in parts))
        case Or(parts):
            return reduce(jnp.maximum, (instant(part, values) for part in parts))
    raise ValueError(f"{formula} lasts longer than a sample.")


def lasts(formula: Formula) -> bool:
    """Say whether a formula has a temporal operator."""
    return isinstance(formula, Always | Eventually | Until) or (
        isinstance(formula, And | Or) and any(map(lasts, formula.parts))
    )


def compiled(formula: Formula) -> tuple[int, Step]:
    """Return the size of the memory, which begins as ``NEVER``, and the step of V.

    Raises:
        ValueError: the formula is beyond the fragment.
    """
    match formula:
        case And(parts) if lasts(formula):
            lasting = [part for part in parts if lasts(part)]
            if len(lasting) > 1:
                raise ValueError(f"two parts of {formula} last below a temporal operator.")
            size, step = compiled(lasting[0])
            now = And(tuple(part for part in parts if not lasts(part)))

            def both(memory: Memory, gate: Any, values: Mapping[str, Any]) -> tuple[Any, Memory]:
                return step(memory, jnp.minimum(gate, instant(now, values)) if now.parts else gate, values)

            return size, both
        case Or(parts) if lasts(formula):
            each = [compiled(part) for part in parts]

            def either(memory: Memory, gate: Any, values: Mapping[str, Any]) -> tuple[Any, Memory]:
                found: Any = NEVER
                kept: Memory = ()
                at = 0
                for size, step in each:
                    value, rest = step(memory[at : at + size], gate, values)
                    found, kept, at = jnp.maximum(found, value), (*kept, *rest), at + size
                return found, kept

            return sum(size for size, _ in each), either
        case Eventually(part, None):
            size, step = compiled(part)

            def later(memory: Memory, gate: Any, values: Mapping[str, Any]) -> tuple[Any, Memory]:
                begun = jnp.maximum(memory[0], gate)
                value, rest = step(memory[1:], begun, values)
                return value, (begun, *rest)

            return size + 1, later
        case Always(part, int(samples)):

            def stay(memory: Memory, gate: Any, values: Mapping[str, Any]) -> tuple[Any, Memory]:
                now = instant(part, values)
                windows = [jnp.minimum(old, now) for old in (gate, *memory[1:])]
                best = jnp.maximum(memory[0], windows[-1])
                return best, (best, *windows[:-1])

            return samples + 1, stay
        case Until(first, second):

            def until(memory: Memory, gate: Any, values: Mapping[str, Any]) -> tuple[Any, Memory]:
                kept = jnp.minimum(jnp.maximum(memory[1], gate), instant(first, values))
                best = jnp.maximum(memory[0], jnp.minimum(kept, instant(second, values)))
                return best, (best, kept)

            return 2, until
        case In() | Not() | And() | Or():

            def once(memory: Memory, gate: Any, values: Mapping[str, Any]) -> tuple[Any, Memory]:
                best = jnp.maximum(memory[0], jnp.minimum(gate, instant(formula, values)))
                return best, (best,)

            return 1, once
    raise ValueError(f"{formula} may stand at the top of a formula only.")


class Monitor:
    """Robustness of a formula on the samples so far, by one step a sample.

    Attributes:
        formula: the formula.
        size: number of scalars in the memory, which begins as ``NEVER`` everywhere.
    """

    def __init__(self, formula: Formula) -> None:
        self.formula = formula
        self.size: int
        self._parts: list[Monitor] = []
        match formula:
            case And(parts) | Or(parts) if lasts(formula):
                self._parts = [Monitor(part) for part in parts]
                self.size = sum(part.size for part in self._parts)
            case Always(_, None):
                self.size = 1
            case Eventually(part, int()):
                self.size, self._step = compiled(part)
            case _:
                self.size, self._step = compiled(formula)

    def step(self, memory: Memory, values: Mapping[str, Any], sample: Any) -> tuple[Any, Memory]:
        """Return the robustness with one more sample, and the next memory.

        Args:
            memory: ``size`` scalars.
            values: value of each predicate at the sample.
            sample: number of the sample, int32 from 0.
        """
        if self._parts:
            found: list[Any] = []
            kept: Memory = ()
            for monitor in self._parts:
                at = len(kept)
                value, rest = monitor.step(memory[at : at + monitor.size], values, sample)
                found, kept = [*found, value], (*kept, *rest)
            return reduce(jnp.minimum if isinstance(self.formula, And) else jnp.maximum, found), kept
        match self.formula:
            case Always(part, None):
                now = instant(part, values)
                least = jnp.where(sample == 0, now, jnp.minimum(memory[0], now))
                return least, (least,)
            case Eventually(_, int(samples)):
                return self._step(memory, jnp.where(sample <= samples, -NEVER, NEVER), values)
        return self._step(memory, jnp.where(sample == 0, -NEVER, NEVER), values)


def in_words(formula: Formula, period: float) -> str:  # noqa: PLR0911 - one a kind
    """Say a formula in English.

    Args:
        formula: the formula.
        period: duration of a sample, s.
    """

    def said(part: Formula) -> str:
        return in_words(part, period)

    match formula:
        case In(region):
            return f"in {region}"
        case Not(In(region)):
            return f"out of {region}"
        case And(parts):
            return (", and " if len({*map(lasts, parts)}) == 1 else ", and from then on ").join(map(said, parts))
        case Or(parts):
            return "either " + ", or ".join(map(said, parts))
        case Always(part, None):
            return f"always stay {said(part)}"
        case Always(part, int(samples)):
            return f"stay {said(part)} for {samples * period:g} s without a break"
        case Eventually(part, samples):
            when = "at some time" if samples is None else f"within {samples * period:g} s"
            return f"{when} {'' if isinstance(part, Always | Eventually | Until) else 'be '}{said(part)}"
        case Until(first, second):
            return f"stay {said(first)} until you are {said(second)}"
    raise TypeError(formula)


def written(formula: Formula, period: float) -> str:  # noqa: PLR0911 - one a kind
    """Write a formula in the notation of the literature, with bounds in s."""

    def inner(part: Formula) -> str:
        return written(part, period)

    def bound(samples: int | None) -> str:
        return "" if samples is None else f"[0,{samples * period:g}]"

    match formula:
        case In(region):
            return region
        case Not(part):
            return f"!{inner(part)}"
        case And(parts):
            return f"({' & '.join(map(inner, parts))})"
        case Or(parts):
            return f"({' | '.join(map(inner, parts))})"
        case Always(part, samples):
            return f"G{bound(samples)} {inner(part)}"
        case Eventually(part, samples):
            return f"F{bound(samples)} {inner(part)}"
        case Until(first, second):
            return f"({inner(first)} U {inner(second)})"
    raise TypeError(formula)
