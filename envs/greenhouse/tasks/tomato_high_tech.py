"""Grow tomatoes in a high-tech glasshouse.

It has a thermal screen, LED lamps, a heat store with a boiler, and irrigation.

The task is ``tomato.py`` except for this table. Climate: ``high_tech_glasshouse.py``, 17 states;
crop: 6; water of the root zone: ``root_zone.py``; heat store: ``heat_store.py``. Heat for the pipes
comes out of the store, which a boiler charges. The boiler's flue gas is carbon dioxide for free, so
it pays to burn by day and to heat with it by night.

======================  ============================================================================
action ``(7,)``         in [0, 1]: heating, vents and carbon dioxide as in ``tomato.py``; closed
                        part of the screen; lamps 0..66.7 W/m2 of electricity; boiler 0..150 W/m2
                        into the store; irrigation 0..2 kg/(m2 h). Pipes take no more than the store
                        has, and the boiler gives no more than it holds. Of the dosed carbon
                        dioxide, 0.057 mg a joule of the boiler's heat are free, the rest is bought
observation ``(33,)``   the 23 entries of ``tomato.py``, then: temperature of the leaves (20 degC);
                        stored heat, part of the capacity of 4 MJ/m2; water of the root zone, part
                        of the capacity of 8 kg/m2; what drained in the last step (1 kg/m2); last
                        screen, lamps, boiler and irrigation; prices of electricity (0.1 EUR/kWh)
                        and of water (1 EUR/m3)
reward                  EUR/m2: value of the fresh fruit grown in the step, minus heat, bought
                        carbon dioxide, electricity and water used. Heat is paid when it leaves the
                        store, into pipes or by cooling. So the store's heat counts in full, at the
                        start and at the end
root zone               without 40 % of its water plants begin to transpire and assimilate less, in
                        proportion to what is left; what exceeds the capacity drains and is lost
start                   as in ``tomato.py``, with the store half full and the root zone full
context                 also prices of electricity, 0.04..0.14 EUR/kWh, and water, 0.5..2 EUR/m3
measures                also heat, electricity, water and bought carbon dioxide since planting, as
                        they are paid for
======================  ============================================================================

Temperature, carbon dioxide and humidity inside are those of the air below the screen.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.contexts.context import Constant, weights
from rlbench_suite.contexts.time_series import Column, Series
from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard

from ..physics import heat_store, high_tech_glasshouse, root_zone
from ..physics.glasshouse import Control, House, Scalar, co2_ppm
from ..physics.high_tech_glasshouse import Climate, Nodes, Setting
from ..pictures.high_tech_picture import picture_with_devices
from ..weather.climates import next_sky
from ..weather.records import STEP
from . import tomato_sensors
from .lettuce import KWH, MAX_DOSING_CO2
from .tomato import FRESH, Params, State, Tomato, actuators, is_crop_lost, violation

LAMP_LIMIT = 200 / 3
"""W/m2 of electricity: the LEDs of Katzin 2021, table 4.3; 200 umol/(m2 s)"""
BOILER_LIMIT = 150.0
"""W/m2: Vanthoor 2011, table 8.2"""
IRRIGATION_LIMIT = 2 / 3600
"""kg/(m2 s); chosen"""
FLUE_CO2 = 0.057
"""mg of carbon dioxide a joule of heat from gas: Vanthoor 2011, table 8.1"""
UTILITIES = {"electricity": ("EUR/kWh", 0.04, 0.14), "water": ("EUR/m3", 0.5, 2.0)}
"""Units, and ranges of the prices; chosen"""
ELECTRICITY = Column(
    "electricity", "EUR/kWh", -1, 5, "", optional=True, holds=True, longest_gap=3600.0
)
"""Recorded price, in a range that refuses EUR/MWh and ct/kWh; chosen"""
UTILITY_SCALES = 0.1, 1.0
"""Scales of the prices in observations"""
MORE_SENSORS = (
    ("leaf_temperature", "temperature of the leaves", "degC", 20.0, -20, 60),
    ("stored_heat", "heat in the store, part of its capacity", "", 1.0, 0, 1),
    ("root_water", "water of the root zone, part of its capacity", "", 1.0, 0, 1),
    ("drain", "water that drained in the last step", "kg/m2", 1.0, 0, 2),
)
"""Name, meaning, unit and scale of each measurement, and the range of its sensor"""
ENTRIES = (
    *tomato_sensors.ENTRIES,
    *(row[0] for row in MORE_SENSORS),
    "last_screen",
    "last_lamps",
    "last_boiler",
    "last_irrigation",
    "electricity_price",
    "water_price",
)
"""Names of the entries of an observation, in order"""
POSITION = {name: position for position, name in enumerate(ENTRIES)}


class Utilities(NamedTuple):
    """Prices beside those of :class:`Prices`."""

    electricity: Scalar
    """EUR/kWh"""
    water: Scalar
    """EUR/m3"""


class Devices(NamedTuple):
    """Setting of the devices that ``tomato.py`` has not, in parts of their ranges."""

    screen: Scalar
    lamps: Scalar
    boiler: Scalar
    irrigation: Scalar


class Used(NamedTuple):
    """Resources used since planting."""

    heat: Scalar
    """kWh/m2 that left the store"""
    electricity: Scalar
    """kWh/m2"""
    water: Scalar
    """kg/m2"""
    co2: Scalar
    """kg/m2 that were bought"""


class Equipment(NamedTuple):
    """State of glasshouse and devices beside those of ``tomato.py``."""

    nodes: Nodes
    heat: Scalar
    """J/m2 in the store"""
    water: Scalar
    """kg/m2 in the root zone"""
    drain: Scalar
    """kg/m2 that drained in the last step"""
    applied: Devices
    """The last setting; of the boiler what it gave"""
    used: Used


class TomatoHighTech(Tomato):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = Tomato.measures | {
        "leaf_temperature": "of the leaves, degC",
        "stored_heat": "in the store, part of its capacity, %",
        "root_water": "in the root zone, part of its capacity, %",
        "heat_used": "out of the store so far, into pipes or by cooling, kWh/m2",
        "electricity_used": "of the lamps so far, kWh/m2",
        "water_used": "for irrigation so far, kg/m2",
        "co2_bought": "carbon dioxide bought so far, kg/m2",
    }

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.device_limits = Devices(
            1.0, *(self.own_constants.value(f"{name}_limit") for name in Devices._fields[1:])
        )
        self.utility_scales = self.records.price_scales(Utilities._fields, UTILITY_SCALES)
        space: Any = self.observation_space
        low, high = zip(
            *((low / scale, high / scale) for *_, scale, low, high in MORE_SENSORS), strict=True
        )
        lowest_prices = -2 * bool(self.records.rows), 0
        self.observation_space = self.box(
            [*space.low, *low, *[0] * 4, *lowest_prices], [*space.high, *high, *[1] * 4, *[2] * 2]
        )
        self.action_space = self.box([0] * 7, [1] * 7)

    def constants(self) -> tuple[Constant, ...]:
        """Return the constants of ``tomato.py``, two more prices, and the devices' limits.

        The prices are those of electricity and water.
        """

        def limit(name: str, unit: str, value: float, meaning: str, maximum: float) -> Constant:
            return Constant(f"{name}_limit", unit, value, value, meaning, maximum, may_vary=False)

        return (
            *super().constants(),
            *(
                Constant(f"{name}_price", unit, low, high, "", minimum=0.0)
                for name, (unit, low, high) in UTILITIES.items()
            ),
            limit("lamps", "W/m2", LAMP_LIMIT, "most electricity of the lamps", 300.0),
            limit("boiler", "W/m2", BOILER_LIMIT, "most heat into the store", 500.0),
            limit(
                "irrigation", "kg/(m2 s)", IRRIGATION_LIMIT, "most water into the root zone", 0.01
            ),
            *weights(
                electricity=(1.0, "cost of electricity, taken off"),
                water=(1.0, "cost of water, taken off"),
            ),
        )

    def series(self) -> tuple[Series, ...]:
        """Return weather and prices, also of electricity."""
        weather, prices = super().series()
        return weather, prices._replace(columns=(*prices.columns, ELECTRICITY))

    def _check(self) -> None:
        """Refuse vents that the integration cannot hold, and what ``tomato.py`` refuses."""
        super()._check()
        exchange = (
            0.375 * self.own_constants.range("vents")[1] * 12.0
            + 20 * self.own_constants.range("leakage")[1]
        )  # wind of 40 m/s
        if exchange > 2 * high_tech_glasshouse.TOP_HEIGHT * high_tech_glasshouse.MAX_DECAY_RATE:
            raise ValueError(
                f"{self.card.id}: vents or leakage change the air above the screen in "
                f"{high_tech_glasshouse.TOP_HEIGHT / exchange:.2f} s, too fast to integrate."
            )

    def _reward_range(self) -> tuple[float, float]:
        """Return bounds of the reward, EUR/m2.

        They also count all electricity and water, and the store's cooling.
        """
        worst, best = super()._reward_range()
        weight = self.own_constants.weight
        own_constants = self.own_constants
        dearest = self.records.highest_price
        heat = (
            weight("heat") * dearest("heat") * heat_store.CAPACITY / heat_store.COOLING * STEP / KWH
        )
        lamps = (
            weight("electricity")
            * dearest("electricity")
            * own_constants.value("lamps_limit")
            * STEP
            / KWH
        )
        water = (
            weight("water")
            * own_constants.range("water_price")[1]
            * own_constants.value("irrigation_limit")
            * STEP
            * 1e-3
        )
        gained_back = (
            cost
            for good, cost in (("heat", heat), ("electricity", lamps))
            if self.records.pays_back(good)
        )
        return worst - (heat + lamps + water), best + sum(gained_back)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw the season as for the tomato task, and prices of electricity and water."""
        u = self.uniform(jax.random.fold_in(key, 2), len(UTILITIES))
        prices = [
            self.own_constants.sample(f"{name}_price", u[i], split)
            for i, name in enumerate(UTILITIES)
        ]
        return super().sample_params(key, split)._replace(utilities=Utilities(*prices))

    def utilities_at(self, params: Params, steps: Scalar) -> Utilities:
        """Return the prices of electricity and water after some steps."""
        sampled: Utilities = params.utilities
        return self.records.prices_at(sampled, params.row, steps)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Return a crop just planted, in soil that is colder the deeper."""
        state = super().initial(key, params)
        air, zero = state.house.air, jnp.zeros((), self.dtype)
        t, deep = air.temperature, self.climate.mean
        soil = (t + (deep - t) * (depth / 6) for depth in range(1, 6))
        cover = 0.5 * (t + state.outside.temperature)
        nodes = Nodes._make((t, t, *soil, t, cover, t, t, air.co2, air.vapour))
        devices = Devices(zero, zero, zero, zero)
        nothing = Used(zero, zero, zero, zero)
        equipment = Equipment(
            nodes,
            zero + 0.5 * heat_store.CAPACITY,
            zero + root_zone.CAPACITY,
            zero,
            devices,
            nothing,
        )
        return state._replace(equipment=equipment)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Limit heat to what the store allows, integrate half an hour, and sample weather.

        The root zone drains at the end of the half hour.
        """
        house, equipment, air = state.house, state.equipment, state.house.air
        dosing = jnp.where(co2_ppm(air.co2, air.temperature) < MAX_DOSING_CO2, action[2], 0.0)
        requested = Devices(action[3], action[4], action[5], action[6])
        stored = heat_store.pass_time(
            equipment.heat,
            requested.boiler * self.device_limits.boiler,
            action[0] * self.limits.heating,
            STEP,
        )
        applied = Control(stored.discharged * (1 / self.limits.heating), action[1], dosing)
        devices = requested._replace(boiler=stored.charged * (1 / self.device_limits.boiler))
        controls, units = actuators(applied, self.limits), self.in_units(devices)
        setting = Setting(*controls, units.screen, units.lamps, units.irrigation)
        climate = Climate(air, equipment.nodes, house.crop, house.harvest, equipment.water)
        next_climate = high_tech_glasshouse.step(
            climate, setting, state.outside, params.house, params.variety, self.climate.mean, STEP
        )
        root = root_zone.drain(next_climate.water)
        used = Used(
            equipment.used.heat
            + (1 / KWH) * heat_from_store(equipment.heat, stored.heat, units.boiler),
            equipment.used.electricity + (STEP / KWH) * units.lamps,
            equipment.used.water + STEP * units.irrigation,
            equipment.used.co2 + (1e-6 * STEP) * bought_co2(controls.co2, units.boiler),
        )
        steps = state.steps + 1
        sky = next_sky(self.climate, state.sky, self.normal(key, 5), STEP)
        return state._replace(
            house=House(next_climate.air, next_climate.crop, next_climate.harvest),
            applied=applied,
            sky=sky,
            outside=self.weather_outside(params, sky, steps),
            steps=steps,
            violation=state.violation + violation(next_climate.air, self.bounds),
            equipment=Equipment(
                next_climate.nodes, stored.heat, root.water, root.drain, devices, used
            ),
        )

    def in_units(self, devices: Devices) -> Devices:
        """Convert parts of the devices' ranges to their units."""
        return Devices(
            *(limit * fraction for limit, fraction in zip(self.device_limits, devices, strict=True))
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return shape ``(33,)``; see the table."""
        equipment = state.equipment
        measured = (
            equipment.nodes.canopy,
            equipment.heat * (1 / heat_store.CAPACITY),
            equipment.water * (1 / root_zone.CAPACITY),
            equipment.drain,
        )
        readings = [
            jnp.clip(value, low, high) * (1 / scale)
            for value, (_, _, _, scale, low, high) in zip(measured, MORE_SENSORS, strict=True)
        ]
        utilities = self.utilities_at(params, state.steps)
        prices = (
            price * (1 / scale) for price, scale in zip(utilities, self.utility_scales, strict=True)
        )
        more = self.stack(*readings, *equipment.applied, *prices)
        return jnp.concatenate([super().observation(state, key, params), more])

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        usual = list(super().observation_components())
        doubled = {f"last_{component.name}" for component in self.action_components()[3:]}
        electricity, water = self.utility_scales
        return (
            *(component for component in usual if component.name not in doubled),
            *(
                Component(name, meaning, f"{scale:g} {unit}" if unit else "1")
                for name, meaning, unit, scale, _, _ in MORE_SENSORS
            ),
            *(component for component in usual if component.name in doubled),
            Component("electricity_price", "price of electricity", f"{electricity:g} EUR/kWh"),
            Component("water_price", "price of water", f"{water:g} EUR/m3"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List seven actuators."""
        limits = self.device_limits
        return (
            *super().action_components(),
            Component("screen", "closed part of the thermal screen"),
            Component("lamps", "electricity of the lamps", f"{limits.lamps:.3g} W/m2"),
            Component("boiler", "heat of the boiler into the store", f"{limits.boiler:g} W/m2"),
            Component(
                "irrigation", "water into the root zone", f"{3600 * limits.irrigation:g} kg/(m2 h)"
            ),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the profit of the step, EUR/m2."""
        prices = self.prices_at(params, state.steps)
        utilities = self.utilities_at(params, state.steps)
        weight = self.own_constants.weight
        devices, equipment = self.in_units(next_state.equipment.applied), next_state.equipment
        store_heat = heat_from_store(state.equipment.heat, equipment.heat, devices.boiler)
        co2 = bought_co2(self.limits.co2 * next_state.applied.co2, devices.boiler)
        next_house, house = next_state.house, state.house
        hanging = jnp.where(is_crop_lost(next_house.air), 0.0, next_house.crop.fruit)
        gained = prices.tomato * (
            FRESH * (hanging - house.crop.fruit + (next_house.harvest - house.harvest))
        )
        return (
            weight("tomato") * gained
            - weight("heat") * ((1 / KWH) * prices.heat * store_heat)
            - weight("co2") * ((1e-6 * STEP) * prices.co2 * co2)
            - weight("electricity") * ((STEP / KWH) * utilities.electricity * devices.lamps)
            - weight("water") * ((1e-3 * STEP) * utilities.water * devices.irrigation)
            - weight("violation") * violation(next_house.air, self.bounds)
        )

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        equipment = state.equipment
        return super().info(state, params) | {
            "leaf_temperature": equipment.nodes.canopy,
            "stored_heat": (100 / heat_store.CAPACITY) * equipment.heat,
            "root_water": (100 / root_zone.CAPACITY) * equipment.water,
            "heat_used": equipment.used.heat,
            "electricity_used": equipment.used.electricity,
            "water_used": equipment.used.water,
            "co2_bought": equipment.used.co2,
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            "Answer with seven numbers from 0 to 1: heating, opening of the vents, carbon dioxide, "
            "closed part of the screen, lamps, boiler and irrigation, parts of their ranges."
        )

    def describe(self, state: State, params: Params) -> str:
        """Describe what ``tomato.py`` does, and the devices."""
        equipment = jax.tree.map(float, state.equipment)
        screen, lamps, boiler, irrigation = (100 * fraction for fraction in equipment.applied)
        electricity, water = map(float, self.utilities_at(params, state.steps))
        return (
            f"{super().describe(state, params)} Leaves {equipment.nodes.canopy:.1f} degC. Heat "
            f"store {100 * equipment.heat / heat_store.CAPACITY:.0f} % full, root zone "
            f"{100 * equipment.water / root_zone.CAPACITY:.0f} %, {equipment.drain:.2f} kg/m2 "
            f"drained. Last setting: screen {screen:.0f} % closed, lamps {lamps:.0f} %, boiler "
            f"{boiler:.0f} %, irrigation {irrigation:.0f} %. Prices: electricity {electricity:.3f} "
            f"EUR/kWh, water {water:.2f} EUR/m3."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the glasshouse from the side, with screen, lamps, store and root zone."""
        return picture_with_devices(
            super().draw(state, params),
            float(state.equipment.applied.screen),
            float(state.equipment.applied.lamps),
            float(state.equipment.heat) / heat_store.CAPACITY,
            float(state.equipment.water) / root_zone.CAPACITY,
        )


def heat_from_store(first_heat: Scalar, last_heat: Scalar, charge: Scalar) -> Scalar:
    """Return the heat that left the store in a step, J/m2.

    The store's heat is in J/m2, and ``charge`` in W/m2.
    """
    return STEP * charge - (last_heat - first_heat)


def bought_co2(dosed: Scalar, burnt: Scalar) -> Scalar:
    """Return the carbon dioxide that flue gas does not give, mg/(m2 s).

    ``burnt`` is the heat of the boiler, W/m2.
    """
    return jnp.maximum(0.0, dosed - FLUE_CO2 * burnt)
