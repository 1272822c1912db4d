"""Monitors of formulas of signal temporal logic, of constant memory.

Robustness of a formula at a time (Donze & Maler 2010, doi:10.1007/978-3-642-15297-9_9): a
predicate's is its value; "not" changes the sign; "and" and "or" are minimum and maximum; always and
eventually are minimum and maximum over time; ``p`` until ``q`` is the maximum over times of ``q``
there and ``p`` up to there. A positive robustness means satisfied.

A monitor reads one sample at a time and gives the robustness of the trace so far. The compiler
passes a *gate* inwards, the value of having begun an operand at each time:

    V(operand, gate)(t) = max over s <= t of min(gate(s), robustness of the operand on samples s to
    t)

so that, for example, V(eventually operand, gate) = V(operand, running maximum of gate). It takes
conjunctions and disjunctions of formulas at the top, and below an "eventually" those of the
fragment in which at most one operand lasts: chains ("eventually A, and from then on eventually B"),
stays of a given number of samples, and untils.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, TypeAlias

import jax.numpy as jnp

from .formula import Always, And, Eventually, Formula, In, Not, Or, Until, lasts

MIN_ROBUSTNESS = -1000.0  # Robustness of what has not begun, below any value of a predicate
Memory: TypeAlias = tuple[Any, ...]
# Takes memory, gate and values of the predicates; returns V and the next memory.
Step: TypeAlias = Callable[[Memory, Any, Mapping[str, Any]], tuple[Any, Memory]]


def instant_robustness(formula: Formula, values: Mapping[str, Any]) -> Any:
    """Return the robustness of a formula without temporal operators.

    Raises:
        ValueError: it has one.
    """
    match formula:
        case In(region):
            return values[region]
        case Not(operand):
            return -instant_robustness(operand, values)
        case And(operands):
            return reduce(
                jnp.minimum, (instant_robustness(operand, values) for operand in operands)
            )
        case Or(operands):
            return reduce(
                jnp.maximum, (instant_robustness(operand, values) for operand in operands)
            )
    raise ValueError(f"{formula} lasts longer than a sample.")


def compile_step(formula: Formula) -> tuple[int, Step]:
    """Return the size of the memory, which begins as ``MIN_ROBUSTNESS``, and the step of V.

    Raises:
        ValueError: the formula is beyond the fragment.
    """
    match formula:
        case And(operands) if lasts(formula):
            lasting = [operand for operand in operands if lasts(operand)]
            if len(lasting) > 1:
                raise ValueError(f"two parts of {formula} last below a temporal operator.")
            size, step = compile_step(lasting[0])
            momentary = And(tuple(operand for operand in operands if not lasts(operand)))

            def step_conjunction(
                memory: Memory, gate: Any, values: Mapping[str, Any]
            ) -> tuple[Any, Memory]:
                if momentary.operands:
                    gate = jnp.minimum(gate, instant_robustness(momentary, values))
                return step(memory, gate, values)

            return size, step_conjunction
        case Or(operands) if lasts(formula):
            steps = [compile_step(operand) for operand in operands]

            def step_disjunction(
                memory: Memory, gate: Any, values: Mapping[str, Any]
            ) -> tuple[Any, Memory]:
                robustness: Any = MIN_ROBUSTNESS
                next_memory: Memory = ()
                for size, step in steps:
                    start = len(next_memory)
                    value, operand_memory = step(memory[start : start + size], gate, values)
                    robustness = jnp.maximum(robustness, value)
                    next_memory += operand_memory
                return robustness, next_memory

            return sum(size for size, _ in steps), step_disjunction
        case Eventually(operand, None):
            size, step = compile_step(operand)

            def step_eventually(
                memory: Memory, gate: Any, values: Mapping[str, Any]
            ) -> tuple[Any, Memory]:
                best_gate = jnp.maximum(memory[0], gate)
                value, operand_memory = step(memory[1:], best_gate, values)
                return value, (best_gate, *operand_memory)

            return size + 1, step_eventually
        case Always(operand, int(samples)):

            def step_stay(
                memory: Memory, gate: Any, values: Mapping[str, Any]
            ) -> tuple[Any, Memory]:
                robustness = instant_robustness(operand, values)
                windows = [jnp.minimum(old, robustness) for old in (gate, *memory[1:])]
                best = jnp.maximum(memory[0], windows[-1])
                return best, (best, *windows[:-1])

            return samples + 1, step_stay
        case Until(first, second):

            def step_until(
                memory: Memory, gate: Any, values: Mapping[str, Any]
            ) -> tuple[Any, Memory]:
                lasting_first = jnp.minimum(
                    jnp.maximum(memory[1], gate), instant_robustness(first, values)
                )
                best = jnp.maximum(
                    memory[0], jnp.minimum(lasting_first, instant_robustness(second, values))
                )
                return best, (best, lasting_first)

            return 2, step_until
        case In() | Not() | And() | Or():

            def step_momentary(
                memory: Memory, gate: Any, values: Mapping[str, Any]
            ) -> tuple[Any, Memory]:
                best = jnp.maximum(
                    memory[0], jnp.minimum(gate, instant_robustness(formula, values))
                )
                return best, (best,)

            return 1, step_momentary
    raise ValueError(f"{formula} may stand at the top of a formula only.")


class Monitor:
    """Robustness of a formula on the samples so far, by one step a sample.

    Attributes:
        formula: the formula.
        size: number of scalars in the memory, which begins as ``MIN_ROBUSTNESS`` everywhere.
    """

    def __init__(self, formula: Formula) -> None:
        self.formula = formula
        self.size: int
        self._monitors: list[Monitor] = []
        match formula:
            case And(operands) | Or(operands) if lasts(formula):
                self._monitors = [Monitor(operand) for operand in operands]
                self.size = sum(monitor.size for monitor in self._monitors)
            case Always(_, None):
                self.size = 1
            case Eventually(operand, int()):
                self.size, self._step = compile_step(operand)
            case _:
                self.size, self._step = compile_step(formula)

    def step(self, memory: Memory, values: Mapping[str, Any], sample: Any) -> tuple[Any, Memory]:
        """Return the robustness with one more sample, and the next memory.

        Args:
            memory: ``size`` scalars.
            values: value of each predicate at the sample.
            sample: number of the sample, int32 from 0.
        """
        if self._monitors:
            robustnesses: list[Any] = []
            next_memory: Memory = ()
            for monitor in self._monitors:
                start = len(next_memory)
                value, monitor_memory = monitor.step(
                    memory[start : start + monitor.size], values, sample
                )
                robustnesses.append(value)
                next_memory += monitor_memory
            combine = jnp.minimum if isinstance(self.formula, And) else jnp.maximum
            return reduce(combine, robustnesses), next_memory
        match self.formula:
            case Always(operand, None):
                robustness = instant_robustness(operand, values)
                minimum = jnp.where(sample == 0, robustness, jnp.minimum(memory[0], robustness))
                return minimum, (minimum,)
            case Eventually(_, int(samples)):
                return self._step(
                    memory,
                    jnp.where(sample <= samples, -MIN_ROBUSTNESS, MIN_ROBUSTNESS),
                    values,
                )
        return self._step(memory, jnp.where(sample == 0, -MIN_ROBUSTNESS, MIN_ROBUSTNESS), values)
