"""Seven specifications in signal temporal logic, and their monitors.

They make tasks of any vehicle.

Each specification of :data:`SPECS` says G free & ..., where ``free`` is the distance to the nearest
hazard or wall, and A, B, C are the distances within the edges of three regions, negative outside.
Bounds of time are numbers of samples.

No trace satisfies more than four of them, so players have to read which one is asked.

The trace begins 10 samples before the first action, the vehicle at rest, and ends 150 samples after
it. Its robustness is that of Donze & Maler 2010 (``monitor.py``). The rewards of an episode add up
to final minus first min(robustness, 0), by a unit, and the payment at the end. So nothing is earned
by going to and fro.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Params, State, Task

from .formula import Always, And, Eventually, Formula, In, Not, Or, Until, in_symbols, in_words
from .monitor import MIN_ROBUSTNESS, Memory, Monitor

Scalar = Any

STEPS = 150
LEAD_IN = 10  # Samples before the first action
REGIONS, HAZARDS = 3, 4
ROW = 4  # Cells of the arena along each side
A, B, C = (In(name) for name in "ABC")
SAFE = Always(In("free"))
# Numbers of stages from the start on; a region is visited in each stage.
FIRST_STAGE, ALL_STAGES = 1, REGIONS


class Spec(NamedTuple):
    """A specification, and a plan that satisfies it."""

    terms: tuple[Formula, ...]  # What is to hold besides :data:`SAFE`
    visit: str  # Regions in the order in which the plan visits them
    # Regions that the terms forbid, each with the number of stages for which they do.
    avoid: Mapping[str, int] = MappingProxyType({})
    either_order: bool = False  # True if A and B may change places in the plan
    stay: bool = False  # True if the vehicle has to stay in the last region

    @property
    def formula(self) -> Formula:
        """All that is to hold."""
        return And((SAFE, *self.terms))


SPECS = (
    Spec((Eventually(A), Always(Not(B))), visit="A", avoid={"B": ALL_STAGES}),
    Spec((Or((Eventually(A), Eventually(B))),), visit="A", either_order=True),
    Spec(
        (Eventually(A), Eventually(B), Always(Not(C))),
        visit="AB",
        avoid={"C": ALL_STAGES},
        either_order=True,
    ),
    Spec((Eventually(And((A, Eventually(And((B, Eventually(C))))))),), visit="ABC"),
    Spec((Until(Not(A), B), Eventually(A)), visit="BA", avoid={"A": FIRST_STAGE}),
    Spec(
        (Eventually(Always(A, LEAD_IN)), Always(Not(B))),
        visit="A",
        avoid={"B": ALL_STAGES},
        stay=True,
    ),
    Spec((Eventually(A, 75), Eventually(B)), visit="AB"),
)
FORMULAS = tuple(spec.formula for spec in SPECS)
MONITORS = tuple(Monitor(formula) for formula in FORMULAS)
MEMORY = max(monitor.size for monitor in MONITORS)


def sample_specification(unit: Scalar) -> jax.Array:
    """Return the index of a specification, int32, by a number in [0, 1)."""
    return jnp.minimum(jnp.floor(len(MONITORS) * unit).astype(jnp.int32), len(MONITORS) - 1)


def sample_cells(units: jax.Array, split: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return column and row, int32 ``(8,)``, of different cells for start, regions and hazards.

    The numbers of the three regions' cells have an even sum in training, an odd one in tests.
    ``units``: 16 numbers in [0, 1).
    """
    cells = jnp.argsort(units).astype(jnp.int32)
    fits = ((cells[1] + cells[2] + cells) % 2 == split) & (np.arange(ROW**2) >= REGIONS)
    third = jnp.argmax(fits)
    cells = jnp.where(np.arange(ROW**2) == third, cells[3], cells).at[3].set(cells[third])
    used = cells[: 1 + REGIONS + HAZARDS]
    return used % ROW, used // ROW


def step_monitor(
    memory: Memory, values: Mapping[str, Scalar], sample: Scalar, specification: Scalar
) -> tuple[Scalar, Memory]:
    """Return robustness and memory of a specification after one more sample."""
    robustness = jnp.zeros_like(values["free"])
    next_memory = memory
    for index, monitor in enumerate(MONITORS):
        value, monitor_memory = monitor.step(memory[: monitor.size], values, sample)
        selected = specification == index
        robustness = jnp.where(selected, value, robustness)
        padded = (*monitor_memory, *memory[monitor.size :])
        next_memory = tuple(
            jnp.where(selected, new, old) for new, old in zip(padded, next_memory, strict=True)
        )
    return robustness, next_memory


def monitor_lead_in(values: Mapping[str, Scalar], specification: Scalar) -> tuple[Scalar, Memory]:
    """Return robustness and memory after the samples before the first action.

    All these samples have the same values.
    """
    zero = jnp.zeros_like(values["free"])
    memory: Memory = (jnp.full_like(zero, MIN_ROBUSTNESS),) * MEMORY

    def step(sample: Scalar, carry: tuple[Scalar, Memory]) -> tuple[Scalar, Memory]:
        _, memory = carry
        return step_monitor(memory, values, sample, specification)

    robustness, memory = jax.lax.fori_loop(0, LEAD_IN + 1, step, (zero, memory))
    return robustness, memory


class SpecifiedTask(Task[Params, State], abc.ABC):
    """A task whose vehicle is to satisfy a specification over the whole trace.

    Its params have ``specification``, the index; its state ``memory`` of the monitor,
    ``robustness`` of the trace and ``safety``, the least value of ``free``, both so far, and
    ``steps``.
    """

    unit: ClassVar[float]  # m of robustness that pay 1
    ends_in_failure = False

    def reward(
        self, state: Any, action: jax.Array, next_state: Any, key: jax.Array, params: Any
    ) -> jax.Array:
        """Return the change of robustness, and the payment at the end; see the table."""
        gain = self.worth(next_state.robustness) - self.worth(state.robustness)
        bonus = (is_satisfied(next_state) & ~is_satisfied(state)).astype(self.dtype)
        penalty = ((next_state.safety <= 0) & (state.safety > 0)).astype(self.dtype)
        return gain + bonus - penalty

    def worth(self, robustness: Scalar) -> Scalar:
        """Return the pay of a robustness, of which only values below zero count."""
        return jnp.clip(robustness, -2 * self.unit, 0) / self.unit

    def terminal(self, state: Any, key: jax.Array, params: Any) -> jax.Array:
        """Tell whether the trace is over, or the vehicle in a hazard."""
        return (state.steps >= STEPS) | (state.safety <= 0)

    def info(self, state: Any, params: Any) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return {
            "success": is_satisfied(state),
            "robustness": state.robustness,
            "specification": params.specification,
            "collided": state.safety <= 0,
        }

    def monitor_observation(self, state: Any, params: Any, scale: float) -> list[jax.Array]:
        """Return the entries of :func:`monitored_components`.

        Values of predicates are divided by ``scale`` (m).
        """
        one_hot = (params.specification == np.arange(len(MONITORS))).astype(self.dtype)
        return [
            one_hot,
            self.stack(*state.memory) / scale,
            self.stack(
                state.safety / scale,
                state.robustness / scale,
                state.steps.astype(self.dtype) / STEPS,
            ),
        ]

    def describe_specification(self, state: Any, params: Any) -> str:
        """Describe the specification, in words and as a formula."""
        formula = FORMULAS[int(params.specification)]
        period = self.period
        return (
            f"Specification: {in_words(formula, period)}.\nAs a formula: "
            f"{in_symbols(formula, period)}.\nIts clock shows {LEAD_IN * period:g} s before the "
            f"first step and {(LEAD_IN + STEPS) * period:g} s after the last: {STEPS} steps of "
            f"{period:g} s."
        )

    def describe_monitor(self, state: Any, params: Any) -> str:
        """Describe robustness, safety and the memory of the monitor."""
        size = MONITORS[int(params.specification)].size
        memory = " ".join(f"{float(value):.2f}" for value in state.memory[:size])
        return (
            f"Robustness so far: {float(state.robustness):.2f} m; least distance to hazards and "
            f"walls: {float(state.safety):.2f} m; memory of the monitor: {memory}. Step "
            f"{int(state.steps)} of {STEPS}, clock "
            f"{(LEAD_IN + int(state.steps)) * self.period:.1f} s."
        )


def monitored_components(unit: str) -> tuple[Component, ...]:
    """List the entries that a monitor adds to an observation.

    ``unit`` is that of values of predicates.
    """
    return (
        Component(
            "specification", "one-hot: which of the seven is to hold", shape=(len(MONITORS),)
        ),
        Component("memory", "of the specification's monitor, padded", unit, (MEMORY,)),
        Component("safety", "least distance to hazards and walls so far", unit),
        Component("robustness", "of the trace so far", unit),
        Component("time", "part of the trace that is gone"),
    )


def is_satisfied(state: Any) -> Scalar:
    """Tell whether the whole trace satisfies the specification."""
    return (state.steps >= STEPS) & (state.robustness > 0)
