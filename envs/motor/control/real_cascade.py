"""The reference player under real conditions.

It is the cascade of ``cascade.py`` with what a practitioner adds to it.

* currents for a torque from a table of the saturated machine of the data sheet, of least current
  for it;
* currents controlled by their flux linkages on that machine's map, deadbeat: a voltage changes the
  flux by the same whatever the iron's saturation;
* resistance by a thermocouple in the winding, and derating: from 130 degrees Celsius of the winding
  on the current is limited, so that its square falls in proportion, to none at 140.

It knows neither the machine's age nor what its magnets' temperature is.

Sources: Pellegrino, Armando & Guglielmi 2009, doi:10.1109/TIA.2009.2027167 (control of the flux);
Schroeder, Elektrische Antriebe - Regelung von Antriebssystemen (2015), cascaded control.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from rlbench_suite.core.task import Task

from ..machines import thermal
from ..machines.frames import DQ, Scalar, Values
from ..tasks.drive import Params, State
from ..tasks.real import RealDrive
from .cascade import Cascade, learn

DERATING_TEMPERATURES = (130.0, 140.0)
"""Winding temperatures between which the current is reduced, degrees Celsius.

The full nominal current is allowed below the first, and none above the second.
"""


class RealCascade(Cascade):
    """The player of one drive under real conditions."""

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> RealCascade:
        """Return the player of such a drive.

        Raises:
            TypeError: another kind of task.
        """
        if not isinstance(task, RealDrive):
            raise TypeError(
                f"RealCascade controls drives under real conditions, got {type(task).__name__}."
            )
        return cls(task)

    def _currents(self, integral: Scalar, state: State, params: Params) -> tuple[Values, Scalar]:
        """Return the currents to reach, A, within what the winding's temperature allows."""
        plant: Any = self.task.plant
        if self.task.kind == "torque":
            current = DQ(state.electrical.d, state.electrical.q)
            flux = plant.nominal_map.flux(current)
            torque_error = self.task.controlled_values(state, params)[
                0
            ] - plant.nominal.inner_torque(flux, current)
            d, q = self._for_torque(state.setpoint[0] - torque_error, state)
        else:
            (d, q), integral = super()._currents(integral, state, params)
        cool, hot = DERATING_TEMPERATURES
        allowed_share = jnp.clip((hot - state.electrical.winding) * (1 / (hot - cool)), 0, 1)
        max_current = plant.nominal_current * jnp.sqrt(allowed_share)
        share = max_current / jnp.maximum(jnp.sqrt(d * d + q * q), jnp.maximum(max_current, 1.0))
        return (d * share, q * share), integral

    def _voltages(
        self, currents: Values, integrals: Values, state: State, measured_state: State
    ) -> tuple[Values, Values]:
        """Return the action, and the integrators' next values."""
        plant: Any = self.task.plant
        current = DQ(state.electrical.d, state.electrical.q)
        flux, goal_flux = plant.nominal_map.flux(current), plant.nominal_map.flux(DQ(*currents))
        ohm = thermal.resistance(plant.nominal.resistance, state.electrical.winding)
        turning = plant.pole_pairs * state.speed
        holding = ohm * current.d - turning * flux.q, ohm * current.q + turning * flux.d
        changing = tuple(
            (goal - present) * (1 / self.task.period)
            for goal, present in zip(goal_flux, flux, strict=True)
        )
        voltages = [
            h + c + integral for h, c, integral in zip(holding, changing, integrals, strict=True)
        ]
        shares = tuple(jnp.clip(volts * (1 / plant.unit), -3, 3) for volts in voltages)
        action = tuple(jnp.clip(share, -1, 1) for share in plant.limit_action(shares))
        lacking = tuple(
            volts * (1 / plant.unit) - share for volts, share in zip(voltages, action, strict=True)
        )
        return action, learn(integrals, changing, lacking)
