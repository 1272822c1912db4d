"""Robustness of signal temporal logic on whole traces, straight from its definition."""

from __future__ import annotations

from rlbench_suite.envs.shared.temporal_logic.formula import (
    Always,
    And,
    Eventually,
    Formula,
    In,
    Not,
    Or,
    Until,
)
from rlbench_suite.envs.shared.temporal_logic.monitor import MIN_ROBUSTNESS

Trace = dict[str, list[float]]
"""Values of each predicate, one a sample."""


def robustness(formula: Formula, trace: Trace, t: int = 0) -> float:  # noqa: PLR0911 - one a kind
    """Return the robustness from sample t on; windows are cut off where the trace ends."""
    end = len(next(iter(trace.values()))) - 1
    match formula:
        case In(region):
            return trace[region][t]
        case Not(operand):
            return -robustness(operand, trace, t)
        case And(operands):
            return min(robustness(operand, trace, t) for operand in operands)
        case Or(operands):
            return max(robustness(operand, trace, t) for operand in operands)
        case Always(operand, samples):
            last = end if samples is None else t + samples
            if last > end:
                return MIN_ROBUSTNESS  # the stay is not over: not satisfied yet
            return min(robustness(operand, trace, s) for s in range(t, last + 1))
        case Eventually(operand, samples):
            last = end if samples is None else min(end, t + samples)
            return max(robustness(operand, trace, s) for s in range(t, last + 1))
        case Until(first, second):
            return max(
                min(
                    robustness(second, trace, s),
                    *(robustness(first, trace, r) for r in range(t, s + 1)),
                )
                for s in range(t, end + 1)
            )
    raise TypeError(formula)
