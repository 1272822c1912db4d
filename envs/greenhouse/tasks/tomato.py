"""Grow tomatoes under glass for 160 days, and earn more than heat and carbon dioxide cost.

Crop: ``tomato_crop.py``; climate: ``glasshouse.py``; ten states, integrated over control intervals
of half an hour with constant actuators and weather. Weather: ``climates.py``. Profit is the value
of the fruit that grows minus the cost of heat and carbon dioxide, per square metre. Bounds on the
climate are a separate constraint.

======================  ============================================================================
action ``(3,)``         in [0, 1], of the actuators' ranges: heating 0..150 W/m2 into the pipes,
                        opening of the roof vents, carbon dioxide 0..5 mg/(m2 s). Above 2000 ppm the
                        dosing valve stays shut
observation ``(23,)``   crop: leaf area index (3), fruit on the plants (5 kg/m2 fresh), temperature
                        sum (1035 degC day: fully generative), mean temperature of about a day (20
                        degC). Inside: temperature (20 degC), carbon dioxide (1000 ppm), relative
                        humidity (100 %), pipes (50 degC). Outside: radiation (500 W/m2),
                        temperature (20 degC), relative humidity (100 %), wind (5 m/s), all now, no
                        forecast. The last action (3); fraction of the season gone; sine and cosine
                        of the time of day and of the day of the year; prices of tomatoes (1
                        EUR/kg), heat (0.05 EUR/kWh), carbon dioxide (0.2 EUR/kg). Sensors have
                        ranges: ``SENSORS``. The crop's buffer of sugar has none
reward                  EUR/m2: value of the fresh fruit grown in the step, minus heat and carbon
                        dioxide used. A lost crop's fruit on the plants is taken off. The return is
                        the season's profit: all fruit, of which the last harvest takes what hangs
                        on the plants, minus heat and carbon dioxide
cost                    sum of the climate's violations of its bounds at the end of the step:
                        temperature 15..34 degC in units of 10 K, carbon dioxide 300..1600 ppm in
                        units of 1000 ppm, relative humidity 50..85 % in units of 10 % (bounds: van
                        Laatum et al. 2025, arXiv:2410.05336)
terminated              harvest, after 160 days (7,680 steps); or the crop is lost, inside below 0
                        or above 45 degC
success                 harvested, with at least 12 kg/m2 of fresh fruit, and at most 0.25 of cost a
                        step on average
start                   planted at midnight, leaf area index 0.12, 18 degC, 75 % and 420 ppm inside
context                 planting day, 1 December to 1 March, train and test in alternating bands of
                        4.5 days; latitude +-2 deg; the year's warmth +-1.5 K and cloudiness;
                        prices; and the constants of glasshouse and crop (not shown), each within a
                        fraction of the published ones
difficulty              that fraction: 0.1, easy 0, hard 0.25
climate                 a choice: maritime, mediterranean, continental or boreal
======================  ============================================================================

Prices are drawn from ranges of this task, which are chosen and not from a market: tomatoes 0.8..1.6
EUR/kg fresh, heat 0.03..0.08 EUR/kWh, carbon dioxide 0.1..0.25 EUR/kg. A kilogram of fresh tomatoes
has 60 g of dry weight. docs/details/greenhouse.md lists which numbers have a source and which are
chosen.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.contexts.context import Constant
from rlbench_suite.contexts.time_series import Column, Series
from rlbench_suite.core.arrays import Int
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ...shared.own_constants import OwnConstants
from ..physics import glasshouse
from ..physics.glasshouse import (
    Air,
    Control,
    Glasshouse,
    House,
    Outside,
    Scalar,
    co2_density,
    co2_ppm,
    saturation_pressure,
)
from ..physics.tomato_crop import FRESH, GENERATIVE, PLANTED, Crop, Variety, leaf_area_index
from ..pictures.tomato_picture import SHAPE, picture
from ..weather.climates import CLIMATES, Sky, conditions, first_sky, next_sky
from ..weather.maritime import HOUR, OUTSIDE_CO2, YEAR, Site
from ..weather.records import DAY, STEP, Records, record_series
from .lettuce import KWH, MAX_CROP_TEMPERATURE, MAX_DOSING_CO2, MIN_CROP_TEMPERATURE
from .season import (
    TIME_COMPONENTS,
    check_tolerance,
    cost_components,
    last_setting_components,
    observation_range,
    scaled_readings,
    time_entries,
)
from .tomato_constants import CONSTANTS, RANGES, Bounds, task_constants
from .tomato_sensors import MEASURED, SCALES, SENSORS, Readings, measure, relative_humidity

DAYS = 160
SEASON = DAYS * DAY
"""steps"""
MIN_SUCCESSFUL_YIELD = 12.0
"""kg/m2 of fresh fruit; chosen"""
MAX_MEAN_COST = 0.25
"""Mean cost a step that still counts as success; chosen"""
PRICE_SCALES = 1.0, 0.05, 0.2
"""Scales of the prices in observations."""


class Prices(NamedTuple):
    """Prices that the grower pays and receives."""

    tomato: Scalar
    """EUR/kg, fresh"""
    heat: Scalar
    """EUR/kWh"""
    co2: Scalar
    """EUR/kg"""


class Params(NamedTuple):
    """The context: a site and season, prices, a glasshouse and its crop."""

    site: Site
    prices: Prices
    house: Glasshouse
    variety: Variety
    row: Scalar | None = None
    """int32: row of the records at which the season begins; None without records"""
    faults: Any = None
    """:class:`Readings` with a fault for each sensor of the air inside; None where they never fail
    """
    outbreak: Int = None
    """int32: step at which mould comes; None where it never does"""
    utilities: Any = None
    """Prices of electricity and water; None where neither is used"""


class State(NamedTuple):
    """Crop and climate, the last setting of the actuators, and the present weather.

    The setting is in fractions of the actuators' ranges.
    """

    house: House
    applied: Control
    sky: Sky
    outside: Outside
    steps: Scalar
    """int32, since planting"""
    violation: Scalar
    """Sum of the cost so far"""
    sensed: Any = None
    """:class:`Readings` of sensors that may fail, errors included; None where they never fail"""
    infected: Any = None
    """Part of leaves and fruit that mould has; None where there is none"""
    equipment: Any = None
    """State of the devices of a high-tech glasshouse; None where there are none"""


class Tomato(Task[Params, State]):
    """The task of this file's docstring."""

    period = STEP
    measures: ClassVar[dict[str, str]] = {
        "grown": "fresh fruit picked and on the plants, kg/m2",
        "picked": "fresh fruit picked, kg/m2",
        "leaf_area": "leaf area index",
        "temperature": "inside, degC",
        "co2": "inside, ppm",
        "humidity": "inside, relative, %",
        "mean_violation": "constraint cost a step so far, see cost",
    }
    picture_shape = SHAPE

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        check_tolerance(card, difficulty)
        self.climate = CLIMATES[card.settings["climate"]]
        self.own_constants = OwnConstants(card, self.constants())
        self.limits = Control(
            self.own_constants.value("heating_limit"), 1.0, self.own_constants.value("co2_limit")
        )
        self.bounds = Bounds(*(self.own_constants.value(name) for name in Bounds._fields))
        self._check()
        self.records = Records(card, self.own_constants, self.dtype)
        self.price_scales = self.records.price_scales(Prices._fields, PRICE_SCALES)
        are_prices_recorded = bool(self.records.rows)
        self.observation_space = self.box(
            *observation_range(SENSORS, SCALES, are_prices_recorded=are_prices_recorded)
        )
        self.action_space = self.box([0] * 3, [1] * 3)
        self.reward_space = self.box(*self._reward_range())

    def constants(self) -> tuple[Constant, ...]:
        """Return the constants of the task that a context may set.

        They are site, prices, glasshouse, actuators, bounds of the climate, and the weights of the
        reward's terms.
        """
        return task_constants(self.difficulty or 0.0, self.climate.latitude)

    def series(self) -> tuple[Series, ...]:
        """Return weather and prices."""
        return record_series(
            SEASON,
            Column("tomato", "EUR/kg", 0, 100, "fresh", optional=True),
            Column("wind", "m/s", 0, 40, ""),
        )

    def _check(self) -> None:
        """Refuse a glasshouse too fast for the integration, and bounds that are not in order."""
        exchange = (
            0.375 * self.own_constants.range("vents")[1] * 12.0
            + 40 * self.own_constants.range("leakage")[1]
        )  # wind of 40 m/s
        fastest = exchange / glasshouse.AIR_HEIGHT + 0.02
        if fastest > 2 * glasshouse.MAX_DECAY_RATE:
            raise ValueError(
                f"{self.card.id}: vents or leakage change the air in {1 / fastest:.1f} s, too fast "
                f"to integrate: at least {0.5 / glasshouse.MAX_DECAY_RATE:.1f} s."
            )
        for low, high in (("coldest", "warmest"), ("least_co2", "most_co2"), ("driest", "dampest")):
            if self.own_constants.value(low) >= self.own_constants.value(high):
                raise ValueError(f"{self.card.id}: {low} is not below {high}.")

    def _reward_range(self) -> tuple[float, float]:
        """Return bounds of the reward, EUR/m2.

        The lowest is 10 kg/m2 lost at the highest price. At most 40 g/m2 grow in a step.
        """
        weight = self.own_constants.weight
        dearest = Prices(*map(self.records.highest_price, Prices._fields))
        tomato = weight("tomato") * dearest.tomato
        heat = weight("heat") * dearest.heat * STEP / KWH * self.limits.heating
        co2 = weight("co2") * dearest.co2 * STEP * 1e-6 * self.limits.co2
        gained_back = heat if self.records.pays_back("heat") else 0.0
        return -(10 * tomato + heat + co2 + 30 * weight("violation")), 0.04 * tomato + gained_back

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample a planting day in the bands of the split.

        Everything else has the same distribution in both splits.
        """
        u = self.uniform(key, 16)

        def sample(name: str, i: int, scale: float = 1.0) -> Scalar:
            return self.own_constants.sample(name, u[i], split, scale)

        site = Site(
            latitude=sample("latitude", 0, math.radians(1)),
            start=sample("planting_day", 1),
            warmth=sample("warmth", 2),
            cloudiness=sample("cloudiness", 3),
        )
        prices = Prices(*(sample(f"{name}_price", 4 + i) for i, name in enumerate(RANGES)))
        constants = [sample(name, 7 + i) for i, name in enumerate(CONSTANTS)]
        split_at = len(Glasshouse._fields)
        house, variety = Glasshouse(*constants[:split_at]), Variety(*constants[split_at:])
        if not self.records.rows:
            return Params(site, prices, house, variety)
        unit = self.uniform(jax.random.fold_in(key, 1), 1)[0]
        row, start = self.records.begin(unit, split, SEASON, self.dtype)
        return Params(site._replace(start=start), prices, house, variety, row)

    def weather_outside(self, params: Params, sky: Sky, steps: Scalar) -> Outside:
        """Return the weather outside after some steps."""
        if not self.records.weather:
            radiation, warmth, dew_point, wind = conditions(
                self.climate, params.site, sky, STEP * steps.astype(self.dtype)
            )
            return Outside(
                radiation,
                warmth,
                saturation_pressure(dew_point),
                wind,
                co2_density(OUTSIDE_CO2, warmth),
            )
        row = self.records.at(self.records.weather, params.row + steps)
        temperature = row["temperature"]
        vapour = 0.01 * row["humidity"] * saturation_pressure(temperature)
        ppm = row.get("co2", OUTSIDE_CO2)
        return Outside(
            row["radiation"], temperature, vapour, row["wind"], co2_density(ppm, temperature)
        )

    def prices_at(self, params: Params, steps: Scalar) -> Prices:
        """Return the prices after some steps."""
        return self.records.prices_at(params.prices, params.row, steps)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Return a crop just planted, at midnight."""
        sky = first_sky(self.climate, self.normal(key, 5))
        zero = jnp.zeros((), self.dtype)
        temperature = zero + 18.0
        air = Air(
            temperature,
            co2_density(420.0, temperature),
            0.75 * saturation_pressure(temperature),
            zero + 30.0,
        )
        house = House(air, Crop(*(zero + value for value in PLANTED)), zero)
        outside = self.weather_outside(params, sky, jnp.int32(0))
        return State(house, Control(zero, zero, zero), sky, outside, jnp.int32(0), zero)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Integrate half an hour under the weather shown, then draw the next weather."""
        air = state.house.air
        dosing = jnp.where(co2_ppm(air.co2, air.temperature) < MAX_DOSING_CO2, action[2], 0.0)
        applied = Control(action[0], action[1], dosing)
        house = glasshouse.step(
            state.house,
            actuators(applied, self.limits),
            state.outside,
            params.house,
            params.variety,
            STEP,
        )
        steps = state.steps + 1
        sky = next_sky(self.climate, state.sky, self.normal(key, 5), STEP)
        outside = self.weather_outside(params, sky, steps)
        return State(
            house, applied, sky, outside, steps, state.violation + violation(house.air, self.bounds)
        )

    def readings(self, state: State, params: Params) -> Readings:
        """Return what the sensors of the air inside send."""
        return measure(state.house.air)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return shape ``(23,)``; see the table."""
        (air, crop, _), outside = state.house, state.outside
        measured = (
            leaf_area_index(crop),
            FRESH * crop.fruit,
            crop.temperature_sum,
            crop.mean_temperature,
            *self.readings(state, params),
            air.pipe,
            outside.radiation,
            outside.temperature,
            relative_humidity(outside.vapour, outside.temperature),
            outside.wind,
        )
        readings = scaled_readings(measured, SENSORS, SCALES)
        time = time_entries(state.steps, params.site.start, SEASON, self.dtype)
        prices = self.prices_at(params, state.steps)
        return self.stack(
            *readings,
            *state.applied,
            *time,
            *(price * (1 / scale) for price, scale in zip(prices, self.price_scales, strict=True)),
        )

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        tomato, heat, co2 = self.price_scales
        return (
            *(
                Component(name, meaning, f"{scale:g} {unit}".strip() if unit or scale != 1 else "")
                for name, meaning, unit, scale, _, _ in MEASURED
            ),
            *last_setting_components(self.action_components()),
            *TIME_COMPONENTS,
            Component(
                "tomato_price", "price of a kilogram of fresh tomatoes", f"{tomato:g} EUR/kg"
            ),
            *cost_components(heat, co2),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List three actuators."""
        return (
            Component("heating", "heat into the pipes", f"{self.limits.heating:g} W/m2"),
            Component("vents", "opening of the roof vents"),
            Component("dosing", "carbon dioxide that is dosed", f"{self.limits.co2:g} mg/(m2 s)"),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the profit of the step, EUR/m2."""
        used = actuators(next_state.applied, self.limits)
        prices = self.prices_at(params, state.steps)
        heat, co2 = (STEP / KWH) * prices.heat * used.heating, (1e-6 * STEP) * prices.co2 * used.co2
        next_house, house = next_state.house, state.house
        hanging = jnp.where(is_crop_lost(next_house.air), 0.0, next_house.crop.fruit)
        gained = prices.tomato * (
            FRESH * (hanging - house.crop.fruit + (next_house.harvest - house.harvest))
        )
        if not self.own_constants.reweighted:
            return gained - (heat + co2)
        weight = self.own_constants.weight
        costs = weight("heat") * heat + weight("co2") * co2
        return (
            weight("tomato") * gained
            - costs
            - weight("violation") * violation(next_house.air, self.bounds)
        )

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the crop is harvested or lost."""
        return (state.steps >= SEASON) | is_crop_lost(state.house.air)

    def cost(self, state: State, action: jax.Array, next_state: State, params: Params) -> jax.Array:
        """Return the climate's violation of its bounds."""
        return violation(next_state.house.air, self.bounds)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        air, crop, harvest = state.house
        mean = state.violation / jnp.maximum(state.steps, 1).astype(self.dtype)
        grown = FRESH * (harvest + crop.fruit)
        return {
            "success": (state.steps >= SEASON)
            & (grown >= MIN_SUCCESSFUL_YIELD)
            & (mean <= MAX_MEAN_COST)
            & ~is_crop_lost(air),
            "grown": grown,
            "picked": FRESH * harvest,
            "leaf_area": leaf_area_index(crop),
            "temperature": air.temperature,
            "co2": co2_ppm(air.co2, air.temperature),
            "humidity": relative_humidity(air.vapour, air.temperature),
            "mean_violation": mean,
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say whether it was harvested or lost."""
        if bool(is_crop_lost(state.house.air)):
            warmth = float(state.house.air.temperature)
            return (
                f"the crop is lost: {warmth:.1f} degC, it lives at "
                f"{MIN_CROP_TEMPERATURE:g}..{MAX_CROP_TEMPERATURE:g} degC"
            )
        return (
            f"harvest after {DAYS} days: {float(info['grown']):.1f} kg/m2 of fresh tomatoes in all"
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            "Answer with three numbers from 0 to 1: heating, opening of the vents and carbon "
            "dioxide, parts of their ranges."
        )

    def describe(self, state: State, params: Params) -> str:
        """Describe crop, climate, weather, actuators, time and prices, with units."""
        house, outside = (jax.tree.map(float, values) for values in (state.house, state.outside))
        air, crop = house.air, house.crop
        tomato, heat, co2 = map(float, self.prices_at(params, state.steps))
        inside = Readings(*map(float, self.readings(state, params)))
        days, hours = divmod(int(state.steps) * STEP / HOUR, 24)
        heated, vented, dosed = (100 * float(values) for values in state.applied)
        planted = float(params.site.start) % YEAR
        return (
            f"Day {days:.0f} of {DAYS}, {hours:04.1f} h, planted on day {planted:.0f} of the year. "
            f"Leaf area index {leaf_area_index(crop):.2f}, {FRESH * crop.fruit:.2f} kg/m2 of fruit "
            f"on the plants, {FRESH * house.harvest:.2f} kg/m2 picked. Temperature sum "
            f"{crop.temperature_sum:.0f} of {GENERATIVE:.0f} degC day, mean of a day "
            f"{crop.mean_temperature:.1f} degC. Inside {inside.temperature:.1f} degC, "
            f"{inside.co2:.0f} ppm, {inside.humidity:.0f} % humidity, pipes {air.pipe:.0f} degC. "
            f"Outside {outside.temperature:.1f} degC, {outside.radiation:.0f} W/m2 of sun, "
            f"{float(relative_humidity(outside.vapour, outside.temperature)):.0f} % humidity, wind "
            f"{outside.wind:.1f} m/s. Last setting: heating {heated:.0f} %, vents {vented:.0f} %, "
            f"carbon dioxide {dosed:.0f} %. Prices: tomatoes {tomato:.2f} EUR/kg, heat {heat:.4f} "
            f"EUR/kWh, carbon dioxide {co2:.3f} EUR/kg."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the glasshouse from the side."""
        return picture(
            state.house, state.outside, float(state.applied.vents), int(state.steps) / DAY
        )


def actuators(setting: Control, limits: Control) -> Control:
    """Convert fractions of the actuators' ranges to their units."""
    return Control(*(limit * fraction for limit, fraction in zip(limits, setting, strict=True)))


def is_crop_lost(air: Air) -> Scalar:
    """Say whether the crop froze or burnt."""
    return (air.temperature < MIN_CROP_TEMPERATURE) | (air.temperature > MAX_CROP_TEMPERATURE)


def violation(air: Air, bounds: Bounds = Bounds()) -> Scalar:  # noqa: B008 - numbers
    """Return the constraint cost of a climate; see the table."""
    t, ppm = air.temperature, co2_ppm(air.co2, air.temperature)
    damp = relative_humidity(air.vapour, t)
    return (
        jnp.maximum(0.0, jnp.maximum(bounds.coldest - t, t - bounds.warmest)) * 0.1
        + jnp.maximum(0.0, jnp.maximum(bounds.least_co2 - ppm, ppm - bounds.most_co2)) * 1e-3
        + jnp.maximum(0.0, jnp.maximum(bounds.driest - damp, damp - bounds.dampest)) * 0.1
    )
