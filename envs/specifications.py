"""Seven specifications in signal temporal logic, their monitors, and the tasks that they make of any vehicle.

Each specification says G free & ..., where ``free`` is the distance to the nearest hazard or wall, and A, B, C are the
distances within the edges of three regions, negative outside. Bounds of time are numbers of samples:

====  ==========================================================
0     F A & G !B
1     F A | F B
2     F A & F B & G !C
3     F (A & F (B & F C))
4     (!A U B) & F A
5     F G[0,10] A & G !B
6     F[0,75] A & F B
====  ==========================================================

No trace satisfies more than four of them, so players have to read which one is asked.

The trace begins 10 samples before the first action, the vehicle at rest, and ends 150 samples after it. Its robustness
is that of Donze & Maler 2010 (``signal_temporal_logic.py``). The rewards of an episode add up to final minus first
min(robustness, 0), by a unit, and the payment at the end. So nothing is earned by going to and fro.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.component import Component
from rlbench_suite.task import Params, State, Task

from .signal_temporal_logic import (
    NEVER,
    Always,
    And,
    Eventually,
    Formula,
    In,
    Memory,
    Monitor,
    Not,
    Or,
    Until,
    in_words,
    written,
)

Scalar = Any

STEPS = 150
BEFORE = 10
"""Samples before the first action."""
REGIONS, HAZARDS = 3, 4
ROW = 4
"""Cells of the arena along each side."""
A, B, C = (In(name) for name in "ABC")
SAFE = Always(In("free"))
SPECIFICATIONS: tuple[Formula, ...] = tuple(
    And((SAFE, *parts))
    for parts in (
        (Eventually(A), Always(Not(B))),
        (Or((Eventually(A), Eventually(B))),),
        (Eventually(A), Eventually(B), Always(Not(C))),
        (Eventually(And((A, Eventually(And((B, Eventually(C))))))),),
        (Until(Not(A), B), Eventually(A)),
        (Eventually(Always(A, BEFORE)), Always(Not(B))),
        (Eventually(A, 75), Eventually(B)),
    )
)
MONITORS = tuple(Monitor(formula) for formula in SPECIFICATIONS)
MEMORY = max(monitor.size for monitor in MONITORS)


def drawn_specification(unit: Scalar) -> jax.Array:
    """Return the index of a specification, int32, drawn by a number in [0, 1)."""
    return jnp.minimum(jnp.floor(len(MONITORS) * unit).astype(jnp.int32), len(MONITORS) - 1)


def drawn_cells(units: jax.Array, split: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return column and row, int32 ``(8,)``, of different cells for start, regions and hazards.

    The numbers of the three regions' cells have an even sum in training, an odd one in tests. ``units``: 16 numbers in
    [0, 1).
    """
    cells = jnp.argsort(units).astype(jnp.int32)
    fits = ((cells[1] + cells[2] + cells) % 2 == split) & (np.arange(ROW**2) >= REGIONS)
    third = jnp.argmax(fits)
    cells = jnp.where(np.arange(ROW**2) == third, cells[3], cells).at[3].set(cells[third])
    used = cells[: 1 + REGIONS + HAZARDS]
    return used % ROW, used // ROW


def observed(memory: Memory, values: Mapping[str, Scalar], sample: Scalar, chosen: Scalar) -> tuple[Scalar, Memory]:
    """Return robustness and memory after one more sample, of the chosen specification."""
    found, kept = jnp.zeros_like(values["free"]), memory
    for index, monitor in enumerate(MONITORS):
        value, rest = monitor.step(memory[: monitor.size], values, sample)
        mine = chosen == index
        found = jnp.where(mine, value, found)
        padded = (*rest, *memory[monitor.size :])
        kept = tuple(jnp.where(mine, new, old) for new, old in zip(padded, kept, strict=True))
    return found, kept


def rested(values: Mapping[str, Scalar], chosen: Scalar) -> tuple[Scalar, Memory]:
    """Return robustness and memory after the samples before the first action, all with the same values."""
    zero = jnp.zeros_like(values["free"])
    memory: Memory = (jnp.full_like(zero, NEVER),) * MEMORY

    def rest(sample: Scalar, now: tuple[Scalar, Memory]) -> tuple[Scalar, Memory]:
        return observed(now[1], values, sample, chosen)

    robustness, memory = jax.lax.fori_loop(0, BEFORE + 1, rest, (zero, memory))
    return robustness, memory


class SpecifiedTask(Task[Params, State], abc.ABC):
    """A task whose vehicle is to satisfy a specification over the whole trace.

    Its params have ``specification``, the index; its state ``memory`` of the monitor, ``robustness`` of the trace and
    ``safety``, the least value of ``free``, both so far, and ``steps``.
    """

    unit: ClassVar[float]
    """m of robustness that pay 1."""
    ends_in_failure = False

    def reward(self, state: Any, action: jax.Array, next_state: Any, key: jax.Array, params: Any) -> jax.Array:
        """Return the change of robustness, and the payment at the end; see the table."""
        before, after = (self.worth(value.robustness) for value in (state, next_state))
        paid = (satisfied(next_state) & ~satisfied(state)).astype(self.dtype)
        lost = ((next_state.safety <= 0) & (state.safety > 0)).astype(self.dtype)
        return after - before + paid - lost

    def worth(self, robustness: Scalar) -> Scalar:
        """Return the pay of a robustness: that below zero counts."""
        return jnp.clip(robustness, -2 * self.unit, 0) / self.unit

    def terminal(self, state: Any, key: jax.Array, params: Any) -> jax.Array:
        """Say whether the trace is over, or the vehicle in a hazard."""
        return (state.steps >= STEPS) | (state.safety <= 0)

    def info(self, state: Any, params: Any) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return {
            "success": satisfied(state),
            "robustness": state.robustness,
            "specification": params.specification,
            "collided": state.safety <= 0,
        }

    def monitored(self, state: Any, params: Any, scale: float) -> list[jax.Array]:
        """Return the entries of :func:`monitored_components`; values of predicates are divided by ``scale`` (m)."""
        chosen = (params.specification == np.arange(len(MONITORS))).astype(self.dtype)
        return [
            chosen,
            self.stack(*state.memory) / scale,
            self.stack(state.safety / scale, state.robustness / scale, state.steps.astype(self.dtype) / STEPS),
        ]

    def told(self, state: Any, params: Any) -> str:
        """Say the specification, in words and as a formula."""
        formula, period = SPECIFICATIONS[int(params.specification)], self.period
        return (
            f"Specification: {in_words(formula, period)}.\nAs a formula: {written(formula, period)}.\n"
            f"Its clock shows {BEFORE * period:g} s before the first step and {(BEFORE + STEPS) * period:g} s after "
            f"the last: {STEPS} steps of {period:g} s."
        )

    def told_progress(self, state: Any, params: Any) -> str:
        """Say what the monitor knows."""
        size = MONITORS[int(params.specification)].size
        memory = " ".join(f"{float(value):.2f}" for value in state.memory[:size])
        return (
            f"Robustness so far: {float(state.robustness):.2f} m; least distance to hazards and walls: "
            f"{float(state.safety):.2f} m; memory of the monitor: {memory}. Step {int(state.steps)} of {STEPS}, "
            f"clock {(BEFORE + int(state.steps)) * self.period:.1f} s."
        )


def monitored_components(unit: str) -> tuple[Component, ...]:
    """List the entries that a monitor adds to an observation; ``unit``: that of values of predicates."""
    return (
        Component("specification", "one-hot: which of the seven is to hold", shape=(len(MONITORS),)),
        Component("memory", "of the specification's monitor, padded", unit, (MEMORY,)),
        Component("safety", "least distance to hazards and walls so far", unit),
        Component("robustness", "of the trace so far", unit),
        Component("time", "part of the trace that is gone"),
    )


def satisfied(state: Any) -> Scalar:
    """Say whether the whole trace satisfies the specification."""
    return (state.steps >= STEPS) & (state.robustness > 0)
