"""Lettuce as lettuce-greenhouse-gym 0.1.3 has it.

Its actions, observation and reward are the peer's, and so are the clamps on its weather.

For people who come from there: ``gymnasium.make("rlsuite/Lettuce-v0", peer_compat=True)`` plays a
season whose return is that of ``LettuceGreenhouse-v0`` to 1e-6 at ``dtype="float64"``, if both have
the same weather. Give that as a record of ``weather`` with 82 days at least (``context={"weather":
"my_weather.csv"}``): with exactly 82 days a training episode begins on the first of them, a test
episode on day 41. Without a record the weather is synthetic, as that of Lettuce-v0.

======================  ============================================================================
action ``(3,)``         in [-1, 1]: change of carbon dioxide, ventilation and heating, by a tenth of
                        their ranges, 1.2 mg/(m2 s), 7.5 mm/s and 150 W/m2
observation ``(12,)``   dry weight, kg/m2; inside carbon dioxide, ppm, temperature, degC, and
                        relative humidity, %; the actuators, mg/(m2 s), mm/s and W/m2; part of the
                        season gone; outside radiation, W/m2, carbon dioxide, kg/m3, temperature,
                        degC, and vapour, kg/m3
reward                  22.285125 EUR/kg for the dry weight gained, minus heat at 0.1281 EUR/kWh,
                        carbon dioxide at 0.1906 EUR/kg, and penalties: 5e-5 a ppm out of 500..1600
                        ppm, 3e-3 a kelvin below 10 degC and 5e-3 above 20 degC, 7e-4 a per cent of
                        humidity above 80 %
terminated              harvest, after 40 days (1,920 steps)
start                   3.5 g/m2 of dry weight, 1 g/m3 of carbon dioxide, 15 degC, 8 g/m3 of vapour,
                        heating of 50 W/m2
======================  ============================================================================

Differences from Lettuce-v0 besides these: four steps of the classical Runge-Kutta method a control
step, then a clamp of the state; assimilation without a guard where its polynomial is negative;
constants are van Henten's, but for the peer's leakage of 0.75e-5 m/s. ``leakage="0.75e-4"`` is van
Henten's; both tasks take both.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ...shared.runge_kutta import rk4
from ..physics.van_henten import (
    AIR_HEIGHT,
    COMPENSATION_POINT,
    SUBSTEPS,
    Climate,
    Control,
    Greenhouse,
    Scalar,
    Weather,
    assimilation,
    canopy,
    co2_ppm,
    derivative,
    relative_humidity,
)
from .lettuce import (
    CO2_PRICES,
    HEAT_PRICES,
    KWH,
    LETTUCE_PRICES,
    SEASON,
    STEP,
    Lettuce,
    Params,
    Prices,
    State,
    actuators,
)

ACTION_SHARE = 0.1
"""Part of an actuator's range by which an action changes it."""
FIRST_HEATING = 50.0
"""W/m2"""
MIN_STATE = Climate(0.002, 0.0, 5.0, 0.0)
MAX_STATE = Climate(0.6, 0.004, 40.0, 0.051)
"""Clamps of the state."""
PRICES = Prices(LETTUCE_PRICES[1], HEAT_PRICES[1], CO2_PRICES[1])
UNITS = np.array([1e6, 1e3, 1.0])
"""mg/kg, mm/m and W/W: of the actuators."""


class PeerLettuce(Lettuce):
    """The task of this file's docstring."""

    cost = Task.cost  # type: ignore[assignment]  # none: the reward has the penalties

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.action_space = self.box([-1] * 3, [1] * 3)
        max_actuation = UNITS * np.array(self.limits)
        low = [0.002, 0, 5, 0, *[0] * 3, 0, 0, 0, -60, 0]
        high = [0.6, 2400, 40, 100, *max_actuation, 1, 1400, 0.01, 60, 0.2]
        self.observation_space = self.box(low, high)
        self.reward_space = self.box(-60, 30)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw as Lettuce does, with fixed prices."""
        params = super().sample_params(key, split)
        fixed = {name: jnp.full((), value, self.dtype) for name, value in PRICES._asdict().items()}
        context_prices = {
            name: getattr(params.prices, name)
            for name in fixed
            if f"{name}_price" in self.own_constants
        }
        return params._replace(prices=Prices(**(fixed | context_prices)))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Return the transplant."""
        state = super().initial(key, params)
        start = Climate(*(jnp.full((), value, self.dtype) for value in (0.0035, 1e-3, 15.0, 0.008)))
        heating = jnp.full((), min(1.0, FIRST_HEATING / self.limits.heating), self.dtype)
        return state._replace(climate=start, applied=state.applied._replace(heating=heating))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Change the actuators, integrate half an hour, clamp, then draw the next weather."""
        setting = Control(
            *(
                jnp.clip(fraction + ACTION_SHARE * action[i], 0.0, 1.0)
                for i, fraction in enumerate(state.applied)
            )
        )
        control, climate = actuators(setting, self.limits), state.climate

        def slopes(_: float, climate: Climate) -> Climate:
            return unguarded_derivative(climate, control, state.outside, params.house)

        for _ in range(SUBSTEPS):
            climate = rk4(slopes, climate, STEP / SUBSTEPS)
        climate = Climate(
            *(jnp.clip(x, a, b) for x, a, b in zip(climate, MIN_STATE, MAX_STATE, strict=True))
        )
        return self.advance_state(state, climate, setting, key, params)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return shape ``(12,)``; see the table."""
        inside, outside = state.climate, state.outside
        used = (
            limit * fraction
            for limit, fraction in zip(UNITS * np.array(self.limits), state.applied, strict=True)
        )
        entries = self.stack(
            inside.dry_weight,
            co2_ppm(inside.co2, inside.temperature),
            inside.temperature,
            relative_humidity(inside.humidity, inside.temperature),
            *used,
            state.steps.astype(self.dtype) / SEASON,
            *outside,
        )
        low, high = self.observation_space.low, self.observation_space.high  # type: ignore[attr-defined]
        return jnp.clip(entries, low, high)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return (
            Component("dry_weight", "dry weight of the crop", "1 kg/m2"),
            Component("co2", "carbon dioxide inside", "1 ppm"),
            Component("temperature", "temperature inside", "1 degC"),
            Component("humidity", "relative humidity inside", "1 %"),
            Component("dosing", "carbon dioxide that is dosed", "1 mg/(m2 s)"),
            Component("ventilation", "air exchanged through vents, a floor area", "1 mm/s"),
            Component("heating", "heat that is supplied", "1 W/m2"),
            Component("season", "part of the season that is gone"),
            Component("radiation", "radiation outside", "1 W/m2"),
            Component("outside_co2", "carbon dioxide outside", "1 kg/m3"),
            Component("outside_temperature", "temperature outside", "1 degC"),
            Component("outside_humidity", "vapour outside", "1 kg/m3"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List three changes."""
        co2, ventilation, heating = ACTION_SHARE * UNITS * np.array(self.limits)
        return (
            Component(
                "change_of_dosing",
                "more carbon dioxide than in the last step",
                f"{co2:g} mg/(m2 s)",
            ),
            Component(
                "change_of_ventilation", "more air than in the last step", f"{ventilation:g} mm/s"
            ),
            Component("change_of_heating", "more heat than in the last step", f"{heating:g} W/m2"),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return profit minus penalties; see the table."""
        used = actuators(next_state.applied, self.limits)
        prices = self.prices_at(params, state.steps)
        gained = prices.lettuce * (next_state.climate.dry_weight - state.climate.dry_weight)
        costs = (STEP / KWH) * prices.heat * used.heating + STEP * prices.co2 * used.co2
        return gained - costs - penalty(next_state.climate)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the crop is harvested."""
        return state.steps >= SEASON

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            "Answer with three numbers from -1 to 1: changes of carbon dioxide, ventilation and "
            "heating, by a tenth of their ranges."
        )


def unguarded_derivative(
    climate: Climate, control: Control, weather: Weather, house: Greenhouse
) -> Climate:
    """Return the state's time derivative with the paper's assimilation.

    It follows the paper's polynomial everywhere; ``van_henten.py`` guards where that makes no
    sense.
    """
    t, light = climate.temperature, house.light_use * weather.radiation
    supply = ((-5.11e-6 * t + 2.30e-4) * t - 6.29e-4) * (climate.co2 - COMPENSATION_POINT)
    plain = canopy(climate.dry_weight) * jnp.where(
        light > 0, light * supply / (light + supply), 0.0
    )
    difference = plain - assimilation(climate, weather.radiation, house)
    rates = derivative(climate, control, weather, house)
    return rates._replace(
        dry_weight=rates.dry_weight + house.yield_factor * difference,
        co2=rates.co2 - difference * (1 / AIR_HEIGHT),
    )


def penalty(climate: Climate) -> Scalar:
    """Return what the reward takes off for a climate; see the table."""

    def price_below(bound: float, value: Any, weight: float) -> Any:
        return weight * jnp.maximum(0.0, bound - value)

    ppm = co2_ppm(climate.co2, climate.temperature)
    humidity = relative_humidity(climate.humidity, climate.temperature)
    return (
        price_below(500.0, ppm, 5e-5)
        + price_below(-1600.0, -ppm, 5e-5)
        + price_below(10.0, climate.temperature, 3e-3)
        + price_below(-20.0, -climate.temperature, 5e-3)
        + price_below(-80.0, -humidity, 7e-4)
    )
