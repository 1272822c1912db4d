"""Control the torque of a permanent-magnet machine of which a phase breaks during the episode.

The task is that of ``drive.py`` except for this table. The machine's neutral point is connected
(``machines/open_phase.py``), so two phases can still make any torque: with currents sqrt(3) times
as large, and one through the neutral point. The observation does not say which phase breaks, or
when.

======================  ============================================================================
action ``(3,)``         voltages of the phases a, b, c against the neutral point in parts of 150 V,
                        constant over a step
observation ``(12,)``   phase currents and speed (by the limits), torque, set point, error; cosine
                        and sine of the rotor's angle; the voltages of the last step
set point               within +-60 N m
cost, terminated        by the largest current of a phase
fault (context)         phase a, b or c opens at the first zero of its current after 5 to 35 ms:
                        where the rotor hardly turns, never (one episode in ten)
angle                   any at the start
======================  ============================================================================
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component

from ...shared.runge_kutta import rk4
from ..machines.frames import DQ, Phases, Scalar, Values, inverse_clarke, inverse_park, wrap_angle
from ..machines.open_phase import Currents, WithNeutral
from ..parts import components
from ..plants.plant import Plant
from ..plants.three_phase import PMSM
from ..setpoints.goals import Goal
from .drive import Drive, Params, State

PHASE_ANGLE = 2 * math.pi / 3


class Broken(NamedTuple):
    """State with the measured phase currents first, then the quantities that determine them."""

    a: Scalar
    """A"""
    b: Scalar
    """A"""
    c: Scalar
    """A"""
    d: Scalar
    """A"""
    q: Scalar
    """A"""
    zero: Scalar
    """A"""
    broken: Scalar
    """0 or 1"""
    clock: Scalar
    """s, since the start"""

    @property
    def currents(self) -> Currents:
        """Currents in rotor coordinates, A."""
        return Currents(self.d, self.q, self.zero)


def phases_of(currents: Currents, angle: Scalar) -> Phases:
    """Return phase currents, A, with the rotor at an electrical angle (rad)."""
    winding = inverse_clarke(inverse_park(DQ(currents.d, currents.q), angle))
    return Phases(winding.a + currents.zero, winding.b + currents.zero, winding.c + currents.zero)


def from_phase(phases: Phases, first: Scalar) -> Phases:
    """Return the same phases in turn, beginning with phase number ``first``."""
    a, b, c = phases
    return Phases(
        jnp.where(first < 1, a, jnp.where(first < 2, b, c)),
        jnp.where(first < 1, b, jnp.where(first < 2, c, a)),
        jnp.where(first < 1, c, jnp.where(first < 2, a, b)),
    )


class NeutralPMSM(PMSM):
    """Three half bridges on a 300 V link, and the neutral point at the link's middle."""

    nominal: Any = WithNeutral()
    tolerance: Any = WithNeutral(0.2, 0.15, 0.15, 0.1, 0, 0.0, 0.2, 0.75, 0.0)
    measured_names = ("i_a", "i_b", "i_c")
    voltages = ("u_a", "u_b", "u_c")
    unit = 150.0
    fixed = True

    def state_at_rest(self, machine: WithNeutral) -> Broken:
        """Return no currents."""
        return Broken(*(jnp.zeros_like(machine.inertia) for _ in Broken._fields))

    def measure(self, electrical: Broken) -> Values:
        """Return the phase currents."""
        return tuple(current * (1 / self.current_limit) for current in electrical[:3])

    def length(self, electrical: Broken) -> Scalar:
        """Return the largest phase current."""
        a, b, c = self.measure(electrical)
        return jnp.maximum(jnp.abs(a), jnp.maximum(jnp.abs(b), jnp.abs(c)))

    def limit_action(self, action: Values) -> Values:
        """Return the action unchanged: each phase has a half bridge of its own."""
        return action

    def voltage(self, applied: Values, electrical: Any, angle: Scalar) -> Phases:
        """Return the voltages, V."""
        return Phases(*(self.unit * share for share in applied))


class FaultyDrive(Drive):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = Drive.measures | {"broken": "phases that are open"}

    def chosen_plant(self, plant: Plant) -> Plant:
        """Return a plant with its neutral point connected."""
        return NeutralPMSM()

    def chosen_goal(self, goal: Goal) -> Goal:
        """Ask for no more torque than two phases can make."""
        return goal._replace(low=(-60.0,), high=(60.0,))

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw the machine as for any drive, and the phase that breaks."""
        params = super().sample_params(key, split)
        which = jnp.floor(3 * self.uniform(jax.random.fold_in(key, 1), 1)[0])
        return params._replace(machine=params.machine._replace(phase=which))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Begin as any drive, at any angle."""
        unit = self.uniform(jax.random.fold_in(key, 1), 1)[0]
        return super().initial(key, params)._replace(angle=2 * math.pi * (unit - 0.5))

    def integrate(self, state: State, voltage: Phases, params: Params, duration: float) -> State:
        """Return the drive ``duration`` s later, at whose end the phase may break.

        It is integrated in coordinates along that phase.
        """
        machine, electrical = params.machine, state.electrical
        phase_voltage, speed = from_phase(voltage, machine.phase), state.speed
        start = state.angle - PHASE_ANGLE * machine.phase
        turn = self.plant.pole_pairs * duration * speed

        def rate(passed: float, currents: Currents) -> Currents:
            return machine.derivative(
                currents, phase_voltage, start + passed * turn, speed, electrical.broken
            )

        currents = rk4(rate, electrical.currents, duration)
        clock, start_current = electrical.clock + duration, phases_of(electrical.currents, start).a
        end_current = phases_of(currents, start + turn).a
        opens = (clock > machine.onset) & (start_current * end_current <= 0)
        broken = jnp.maximum(electrical.broken, jnp.where(opens, 1.0, 0.0).astype(self.dtype))
        # The remaining current of a phase that opens is less than a step's change. Its later drift
        # is rounding.
        currents = currents._replace(zero=currents.zero - broken * end_current)
        angle = wrap_angle(state.angle + turn)
        a, b, c = phases_of(currents, angle)
        return state._replace(
            electrical=Broken(a, b, c, currents.d, currents.q, currents.zero, broken, clock),
            angle=angle,
        )

    def controlled_values(self, state: State, params: Params) -> Values:
        """Return the torque, N m."""
        return (params.machine.inner_torque(state.electrical.currents),)

    def action_components(self) -> tuple[Component, ...]:
        """Describe the voltages of three half bridges, which give the requested voltages."""
        return tuple(
            replace(voltage, meaning=f"{voltage.meaning}, against the neutral point")
            for voltage in components.voltages(self.plant, self.design.machine)
        )

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        error = jnp.abs(self.controlled_values(state, params)[0] - state.setpoint[0]) * (
            1 / self.goal.halving[0]
        )
        return {
            "success": (error < 1) & ~self.has_tripped(state),
            "error": error,
            "current": self.plant.length(state.electrical),
            "torque": self.controlled_values(state, params)[0],
            "speed": state.speed,
            "broken": state.electrical.broken,
        }

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw as for any drive, with the rotor's currents in its plane."""
        electrical = state.electrical
        at_rotor = state._replace(electrical=electrical._replace(a=electrical.d, b=electrical.q))
        return super().draw(at_rotor, params)
