"""Grow tomatoes while sensors fail: each sensor of the air inside fails once a season.

The task is ``tomato.py`` except for this table. The valve that stops dosing above 2000 ppm has a
sensor of its own, and so has the mean temperature of about a day.

======================  ============================================================================
observation ``(26,)``   the 23 entries of ``tomato.py``, then a flag each for temperature, carbon
                        dioxide and relative humidity inside: 1 while the sensor sends nothing. Its
                        entry is then 0
fault (context)         for each of the three sensors: begin, any time of the season; duration, 1 to
                        14 days; and kind, equally often. A silent sensor sends nothing. A stuck one
                        repeats its last reading, and one that drifts errs more from step to step,
                        in the end by up to 4 K, 400 ppm or 12 %, too much or too little; neither
                        has a flag
======================  ============================================================================

Cost and success go by the air itself. How often, how long and how much sensors fail is chosen, not
measured.
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard

from ..physics.glasshouse import Scalar
from ..weather.records import DAY
from .tomato import SEASON, Params, State, Tomato
from .tomato_sensors import ENTRIES, Fault, Readings, measure

MIN_FAULT_STEPS = 1 * DAY
"""steps: shortest fault"""
MAX_FAULT_STEPS = 14 * DAY
"""steps: longest fault"""
MAX_DRIFT = Readings(4.0, 400.0, 12.0)
"""Largest error of a sensor that drifts: K, ppm, %"""
NAMES = Readings("temperature", "carbon dioxide", "relative humidity")
FIRST_FLAG = len(ENTRIES)
"""Position of the three flags of silent sensors in an observation, in the order of ``NAMES``"""


class TomatoFaulty(Tomato):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = Tomato.measures | {
        "failing": "sensors of the air inside that fail now"
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        space: Any = self.observation_space
        self.observation_space = self.box([*space.low, 0, 0, 0], [*space.high, 1, 1, 1])

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw the season as for the tomato task, and the faults."""
        u = self.uniform(jax.random.fold_in(key, 2), 12)

        def fault(i: int) -> Fault:
            begin = jnp.floor(SEASON * u[i])
            steps = jnp.floor(MIN_FAULT_STEPS + (MAX_FAULT_STEPS - MIN_FAULT_STEPS) * u[3 + i])
            silent, stuck = 3 * u[6 + i] < 1, (3 * u[6 + i] >= 1) & (3 * u[6 + i] < 2)
            drift = jnp.where(silent | stuck, 0.0, MAX_DRIFT[i] * (2 * u[9 + i] - 1) / steps)
            return Fault(
                begin.astype(jnp.int32), (begin + steps).astype(jnp.int32), silent, stuck, drift
            )

        return super().sample_params(key, split)._replace(faults=Readings(*map(fault, range(3))))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Return a crop just planted, with what the sensors measure."""
        state = super().initial(key, params)
        return state._replace(sensed=measure(state.house.air))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Grow as ever; stuck sensors keep their readings, and others drift."""
        next_state = super().transition(state, action, key, params)
        sensed = [
            _sense(fault, next_state.steps, new, old)
            for fault, new, old in zip(
                params.faults, measure(next_state.house.air), state.sensed, strict=True
            )
        ]
        return next_state._replace(sensed=Readings(*sensed))

    def silent_sensors(self, state: State, params: Params) -> Readings:
        """Say which sensors send nothing."""
        return Readings(
            *(_is_failing(fault, state.steps) & fault.silent for fault in params.faults)
        )

    def readings(self, state: State, params: Params) -> Readings:
        """Return what the sensors send, 0 where they send nothing."""
        silent = self.silent_sensors(state, params)
        return Readings(
            *(jnp.where(none, 0.0, value) for none, value in zip(silent, state.sensed, strict=True))
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return shape ``(26,)``; see the table."""
        flags = self.stack(*self.silent_sensors(state, params))
        return jnp.concatenate([super().observation(state, key, params), flags])

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        flags = (
            Component(f"{field}_silent", f"1 while the sensor of {name} inside sends nothing")
            for field, name in zip(Readings._fields, NAMES, strict=True)
        )
        return (*super().observation_components(), *flags)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        failing = [_is_failing(fault, state.steps).astype(jnp.int32) for fault in params.faults]
        return super().info(state, params) | {"failing": failing[0] + failing[1] + failing[2]}

    def describe(self, state: State, params: Params) -> str:
        """Describe what is measured, and which sensors send nothing."""
        silent = [
            name
            for name, none in zip(NAMES, self.silent_sensors(state, params), strict=True)
            if none
        ]
        missing = (
            f" No reading inside of {' and '.join(silent)}: 0 stands for it." if silent else ""
        )
        return super().describe(state, params) + missing


def _is_failing(fault: Fault, steps: Scalar) -> Scalar:
    return (steps >= fault.begin) & (steps < fault.end)


def _sense(fault: Fault, steps: Scalar, true_value: Scalar, last_reading: Scalar) -> Scalar:
    """Return the reading after some steps."""
    drifted = true_value + fault.drift * (steps - fault.begin).astype(true_value.dtype)
    failing = _is_failing(fault, steps)
    return jnp.where(failing & fault.stuck, last_reading, jnp.where(failing, drifted, true_value))
