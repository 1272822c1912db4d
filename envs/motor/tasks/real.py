"""Control torque or speed of a permanent-magnet machine with saturation, iron losses, heat and age.

The task is that of ``drive.py`` except for this table, so an agent trained on the ideal machine can
drive it. The machine is that of ``plants/real_pmsm.py``. The observation hides its deviation from
the data sheet, its age and its temperatures, so that an agent with a memory can learn them. Heat
flows 2000 times as fast as in the machine: an episode of 50 or 100 ms stands for 100 or 200 s of
heating.

======================  ============================================================================
torque                  of the shaft: iron losses brake. Set points within +-100 N m, for at the
                        nominal current the saturated machine makes 104 N m
speed                   against 10 to 30 N m of Coulomb friction and 0.12 to 0.38 N m s of viscous
                        friction
cost                    excess current as before, and by how much the winding exceeds 140 degrees
                        Celsius, in parts of the 15 K that are left
terminated              also at a winding of 155 degrees Celsius (class F, IEC 60085)
start                   coolant of 60 to 84 degrees Celsius; a winding 24 to 56 K above it, iron and
                        magnets in between
context                 as before, and an age, train and test in alternating bands: the magnets have
                        lost up to 8 % of their flux, and the winding has gained up to 10 % of
                        resistance
======================  ============================================================================
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from rlbench_suite.core.task_card import TaskCard

from ...shared.alternating_bands import alternating_bands
from ...shared.runge_kutta import rk4
from ..loads.load import Polynomial
from ..machines.frames import DQ, Scalar, Values
from ..parts.limit import Limit
from ..parts.load_part import BANDS
from ..plants.plant import Plant
from ..plants.real_pmsm import RealPMSM
from ..setpoints.goals import Goal
from .drive import Drive, Params, State

HEATING_SPEEDUP = 2000.0
"""s of heating in one of the episode."""
PERMISSIBLE_TEMPERATURE = 140.0
"""Degrees Celsius, of the winding."""
TRIP_TEMPERATURE = 155.0
"""Degrees Celsius, of the winding."""
LOST_FLUX = 0.08
"""Fraction that magnets lose by the end of their life."""
GAINED_RESISTANCE = 0.1
"""Fraction that the winding gains by the end of its life."""
MAX_TORQUE = 100.0
"""N m, of a set point."""


class OverTemperature(Limit):
    """The winding's temperature; beyond the permissible one it costs."""

    def is_exceeded(self, state: State) -> jax.Array:
        """Compare with the limit."""
        return state.electrical.winding > TRIP_TEMPERATURE

    def cost(self, state: State) -> Values:
        """Return the excess over the permissible temperature.

        It is in parts of the distance from there to the limit.
        """
        return (
            jnp.maximum(state.electrical.winding - PERMISSIBLE_TEMPERATURE, 0)
            * (1 / (TRIP_TEMPERATURE - PERMISSIBLE_TEMPERATURE)),
        )

    def words(self, state: State, info: dict[str, Any]) -> str:
        """Name both in degrees Celsius."""
        winding = float(state.electrical.winding)
        if winding <= TRIP_TEMPERATURE:
            return ""
        return (
            f"over-temperature: a winding of {winding:.1f} degrees Celsius, the limit is "
            f"{TRIP_TEMPERATURE:.0f}"
        )


class RealDrive(Drive):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = Drive.measures | {
        "winding": "temperature, degC",
        "magnets": "temperature, degC",
    }
    heating: ClassVar[float] = HEATING_SPEEDUP

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.limits = *self.limits, OverTemperature()

    def chosen_plant(self, plant: Plant) -> Plant:
        """Return the machine as it is."""
        return RealPMSM()

    def chosen_goal(self, goal: Goal) -> Goal:
        """Ask for less torque, or add friction."""
        if self.kind == "torque":
            return goal._replace(low=(-MAX_TORQUE,), high=(MAX_TORQUE,))
        return goal._replace(friction=Polynomial(20.0, 0.25))

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw the machine as for any drive, then age it."""
        params = super().sample_params(key, split)
        age = alternating_bands(
            self.uniform(jax.random.fold_in(key, 1), 1)[0], split, 0.0, 1.0, BANDS
        )
        machine = params.machine
        return params._replace(
            machine=machine._replace(
                resistance=machine.resistance * (1 + GAINED_RESISTANCE * age),
                magnet_flux=machine.magnet_flux * (1 - LOST_FLUX * age),
            )
        )

    def integrate(self, state: State, voltage: DQ, params: Params, duration: float) -> State:
        """Return flux and speed ``duration`` s later, then update the temperatures.

        They are constant while the flux is integrated.
        """
        machine, electrical = params.machine, state.electrical
        iron = machine.flux_map(electrical.magnets)

        def rate(_: float, at: tuple[DQ, Scalar]) -> tuple[DQ, Scalar]:
            flux, speed = at
            current = iron.current(flux)
            torque = machine.inner_torque(flux, current) - machine.iron_torque(flux, speed)
            return (
                machine.flux_rate(flux, current, voltage, speed, electrical.winding),
                params.load.acceleration(speed, torque, machine.inertia),
            )

        flux, speed = rk4(rate, (electrical.flux, state.speed), duration)
        warm = machine.warm_up(electrical, flux, iron.current(flux), speed, self.heating * duration)
        return state._replace(electrical=warm, speed=speed)

    def controlled_values(self, state: State, params: Params) -> Values:
        """Return the shaft's torque, N m, or its speed, rad/s."""
        if self.kind == "torque":
            return (params.machine.shaft_torque(state.electrical, state.speed),)
        return (state.speed,)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        return super().info(state, params) | {
            "torque": params.machine.shaft_torque(state.electrical, state.speed),
            "winding": state.electrical.winding,
            "magnets": state.electrical.magnets,
        }
