"""Torque and speed of a permanent-magnet machine under real conditions: saturation, iron losses, heat and age.

The task is that of ``drive.py``, word for word where this table is silent: an agent of the ideal machine can drive
here. The machine is that of ``real_pmsm.py``; how it differs from its data sheet, how old and how warm it is, no one
shows, so that an agent with a memory can learn what it drives. Heat flows 2000 times as fast as in the machine, so
that an episode of 50 or 100 ms stands for 100 or 200 s of heating.

======================  ====================================================================================
torque                  of the shaft: iron losses brake. References within +-100 N m, for at the nominal current the
                        saturated machine makes 104 N m
speed                   against 10 to 30 N m of Coulomb friction and 0.12 to 0.38 N m s of viscous friction
cost                    excess current as before, and by how much the winding exceeds 140 degrees Celsius, in parts of
                        the 15 K that are left
terminated              also at a winding of 155 degrees Celsius (class F, IEC 60085)
start                   coolant of 60 to 84 degrees Celsius; a winding 24 to 56 K above it, iron and magnets in between
context                 as before, and an age, train and test in alternating bands: the magnets have lost up to 8 % of
                        their flux, and the winding has gained up to 10 % of resistance
======================  ====================================================================================
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from ...alternating_bands import alternating_bands
from ...runge_kutta import rk4
from ..loads.load import Polynomial
from ..machines.frames import DQ, Scalar, Values
from ..plants.plant import Plant
from ..plants.real_pmsm import RealPMSM
from ..references.goals import Goal
from .drive import BANDS, Drive, Params, State

HEATING = 2000.0
"""s of heating in one of the episode."""
PERMISSIBLE, TRIP = 140.0, 155.0
"""Degrees Celsius, of the winding."""
LOST_FLUX, GAINED_RESISTANCE = 0.08, 0.1
"""Of magnets and winding at the end of their life."""
MOST_TORQUE = 100.0
"""N m, of a reference."""


class RealDrive(Drive):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = Drive.measures | {
        "winding": "temperature, degrees Celsius",
        "magnets": "temperature, degrees Celsius",
    }
    heating: ClassVar[float] = HEATING

    def chosen_plant(self, plant: Plant) -> Plant:
        """The machine as it is."""
        return RealPMSM()

    def chosen_goal(self, goal: Goal) -> Goal:
        """Less torque, or more friction."""
        if self.kind == "torque":
            return goal._replace(low=(-MOST_TORQUE,), high=(MOST_TORQUE,))
        return goal._replace(friction=Polynomial(20.0, 0.25))

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """As for any drive, aged."""
        params = super().sample_params(key, split)
        age = alternating_bands(self.uniform(jax.random.fold_in(key, 1), 1)[0], split, 0.0, 1.0, BANDS)
        machine = params.machine
        return params._replace(
            machine=machine._replace(
                resistance=machine.resistance * (1 + GAINED_RESISTANCE * age),
                magnet_flux=machine.magnet_flux * (1 - LOST_FLUX * age),
            )
        )

    def moved(self, state: State, voltage: DQ, params: Params, duration: float) -> State:
        """Flux and speed ``duration`` s later at the temperatures of the beginning; then these."""
        machine, now = params.machine, state.electrical
        iron = machine.flux_map(now.magnets)

        def rate(_: float, at: tuple[DQ, Scalar]) -> tuple[DQ, Scalar]:
            flux, speed = at
            current = iron.current(flux)
            torque = machine.inner_torque(flux, current) - machine.iron_torque(flux, speed)
            return (
                machine.flux_rate(flux, current, voltage, speed, now.winding),
                params.load.acceleration(speed, torque, machine.inertia),
            )

        flux, speed = rk4(rate, (now.flux, state.speed), duration)
        warm = machine.heated(now, flux, iron.current(flux), speed, self.heating * duration)
        return state._replace(electrical=warm, speed=speed)

    def controlled(self, state: State, params: Params) -> Values:
        """The shaft's torque, N m, or its speed, rad/s."""
        if self.kind == "torque":
            return (params.machine.shaft_torque(state.electrical, state.speed),)
        return (state.speed,)

    def tripped(self, state: State) -> jax.Array:
        """Also over-temperature."""
        return super().tripped(state) | (state.electrical.winding > TRIP)

    def cost(self, state: State, action: jax.Array, next_state: State, params: Params) -> jax.Array:
        """Excess current, and excess temperature."""
        hot = jnp.maximum(next_state.electrical.winding - PERMISSIBLE, 0) * (1 / (TRIP - PERMISSIBLE))
        return super().cost(state, action, next_state, params) + hot

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """``success`` and the measures."""
        return super().info(state, params) | {
            "torque": params.machine.shaft_torque(state.electrical, state.speed),
            "winding": state.electrical.winding,
            "magnets": state.electrical.magnets,
        }

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """What tripped it."""
        winding = float(state.electrical.winding)
        if winding > TRIP:
            return f"over-temperature: a winding of {winding:.1f} degrees Celsius, the limit is {TRIP:.0f}"
        return super().why_over(state, params, info)
