"""Control the torque of a machine whose permanent magnets lose flux during the episode.

It has no torque sensor.

The task is that of ``drive.py`` except for this table. The lost flux shows only in the voltage that
the magnets still induce, so at standstill it cannot be seen at all.

======================  ============================================================================
observation ``(6,)``    i_d, i_q and speed (by the limits), the set point, the voltages of the last
                        step
privileged ``(2,)``     the magnets' flux by its nominal value, the torque as the set point is
                        scaled
reward                  by the true torque, as before
set point               within +-60 N m
fault (context)         after 5 to 35 ms the magnets lose 10 to 60 % of their flux, at once and for
                        ever, as a short circuit or heat beyond the knee of the demagnetisation
                        curve would do; all magnets alike
======================  ============================================================================

Source: Sergakis, Salinas, Gkiolekas & Gyftakis 2025, doi:10.3390/en18051177 (how magnets fail; all
failing alike is the case that the flux linkage alone describes).
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard

from ..machines import synchronous
from ..machines.frames import DQ, Scalar, Values
from ..parts import components
from ..plants.plant import Plant
from ..plants.three_phase import PMSM
from ..setpoints.goals import Goal
from . import scope
from .drive import OBSERVATION_BOUND, Drive, Params, State

_HEALTHY = synchronous.PermanentMagnet()


class Magnetised(NamedTuple):
    """Currents and the magnets' remaining flux; rates are per second."""

    d: Scalar
    """A"""
    q: Scalar
    """A"""
    flux_share: Scalar
    """Part of the flux that the magnets began with"""
    clock: Scalar
    """s, since the start"""


class Demagnetisable(NamedTuple):
    """Parameters."""

    resistance: Scalar = _HEALTHY.resistance
    """Ohm, of a phase"""
    inductance_d: Scalar = _HEALTHY.inductance_d
    """H"""
    inductance_q: Scalar = _HEALTHY.inductance_q
    """H"""
    magnet_flux: Scalar = _HEALTHY.magnet_flux
    """V s, at the start"""
    pole_pairs: Scalar = _HEALTHY.pole_pairs
    inertia: Scalar = _HEALTHY.inertia
    """kg m^2"""
    loss: Scalar = 0.35
    """Part of the flux"""
    onset: Scalar = 0.02
    """s, from the start: when it is lost"""

    def _machine_with_flux(self, flux_share: Scalar) -> synchronous.PermanentMagnet:
        healthy = synchronous.PermanentMagnet(*self[: len(_HEALTHY)])
        return healthy._replace(magnet_flux=healthy.magnet_flux * flux_share)

    def flux(self, electrical: Magnetised) -> DQ:
        """Return flux linkages, V s."""
        return self._machine_with_flux(electrical.flux_share).flux(DQ(electrical.d, electrical.q))

    def derivative(self, electrical: Magnetised, voltage: DQ, speed: Scalar) -> Magnetised:
        """Return rates per s, under a voltage (V) at a mechanical speed (rad/s)."""
        current = DQ(electrical.d, electrical.q)
        rate = self._machine_with_flux(electrical.flux_share).derivative(current, voltage, speed)
        return Magnetised(
            *rate, jnp.zeros_like(electrical.flux_share), jnp.ones_like(electrical.clock)
        )

    def torque(self, electrical: Magnetised) -> Scalar:
        """Return the torque, N m."""
        return self._machine_with_flux(electrical.flux_share).torque(DQ(electrical.d, electrical.q))


class DemagnetisablePMSM(PMSM):
    """The machine of the other tasks, with magnets that can fail."""

    nominal: Any = Demagnetisable()
    tolerance: Any = Demagnetisable(0.2, 0.15, 0.15, 0.1, 0, 0.0, 0.25 / 0.35, 0.75)
    vector: Any = Magnetised

    def state_at_rest(self, machine: Any) -> Magnetised:
        """Return no currents, and magnets that have lost nothing."""
        zero = jnp.zeros_like(machine.inertia)
        return Magnetised(zero, zero, zero + 1, zero)

    def measure(self, electrical: Any) -> Values:
        """Return the currents."""
        per = 1 / self.current_limit
        return electrical.d * per, electrical.q * per

    def voltage(self, applied: Values, electrical: Any, angle: Scalar) -> DQ:
        """Return the voltage, V."""
        return DQ(self.unit * applied[0], self.unit * applied[1])

    def induced_voltages(self, electrical: Any, speed: Scalar) -> Values:
        """Return the voltage that whole magnets of the data sheet would induce."""
        return super().induced_voltages(electrical._replace(flux_share=1.0), speed)


class DemagnetisedDrive(Drive):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = Drive.measures | {
        "flux": "of the magnets, by its nominal value"
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.privileged_space = self.box(-np.inf, np.inf, (2,))

    def chosen_plant(self, plant: Plant) -> Plant:
        """Return a plant whose magnets can fail."""
        return DemagnetisablePMSM()

    def chosen_goal(self, goal: Goal) -> Goal:
        """Ask for no more torque than weak magnets and the reluctance can make."""
        return goal._replace(low=(-60.0,), high=(60.0,))

    def integrate(self, state: State, voltage: Any, params: Params, duration: float) -> State:
        """Return currents ``duration`` s later; then the magnets may fail."""
        next_state = super().integrate(state, voltage, params, duration)
        lost_share = jnp.where(
            next_state.electrical.clock > params.machine.onset, params.machine.loss, 0
        )
        return next_state._replace(
            electrical=next_state.electrical._replace(
                flux_share=(1 - lost_share).astype(self.dtype)
            )
        )

    def _flux(self, state: State, params: Params) -> Scalar:
        """Return the magnets' flux by its nominal value."""
        return (
            params.machine.magnet_flux
            * state.electrical.flux_share
            * (1 / self.plant.nominal.magnet_flux)
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Show currents, speed, set point and voltages; see the table."""
        measured = [
            *self.plant.measure(state.electrical),
            state.speed * (1 / self.plant.speed_limit),
        ]
        return jnp.clip(
            self.stack(*measured, state.setpoint[0] * (1 / self.goal.scale), *state.applied),
            -OBSERVATION_BOUND,
            OBSERVATION_BOUND,
        )

    def observation_components(self) -> tuple[Component, ...]:
        """Describe each entry, in the order of :meth:`observation`."""
        applied = self.actuator.components("applied", "in the last step")
        return (
            *components.describe_measured(self.plant, self.design.machine),
            *self._setpoint_components(),
            *applied,
        )

    def privileged(self, state: State, params: Params) -> jax.Array:
        """Show flux and torque; see the table."""
        return self.stack(
            self._flux(state, params),
            self.controlled_values(state, params)[0] * (1 / self.goal.scale),
        )

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return super().info(state, params) | {"flux": self._flux(state, params)}

    def describe(self, state: State, params: Params) -> str:
        """Describe what is shown, with units."""
        d, q = (
            float(value) * self.plant.current_limit
            for value in self.plant.measure(state.electrical)
        )
        applied = ", ".join(f"{float(voltage):+.3f}" for voltage in state.applied)
        return (
            f"Asked for: torque {float(state.setpoint[0]):+.4g} N m. Measured: i_d {d:+.4g} A, i_q "
            f"{q:+.4g} A, speed {float(state.speed):+.4g} rad/s. Last voltage: {applied}."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw currents and the requested torque; see ``scope.py``."""
        setpoint, goal = float(state.setpoint[0]), self.goal
        gauge = scope.Gauge("torque asked for (N m)", setpoint, setpoint, goal.low[0], goal.high[0])
        d, q = (float(value) for value in self.plant.measure(state.electrical))
        share = float(self.plant.length(state.electrical))
        voltages = tuple(float(voltage) for voltage in state.applied)
        return scope.picture((d, q), share, 1.1, [gauge], voltages, ("i_d", "i_q"))
