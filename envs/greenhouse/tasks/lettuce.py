"""Grow lettuce for forty days, and earn more than its carbon dioxide and heat cost.

Crop and climate: ``van_henten.py``, integrated over control intervals of half an hour with constant
actuators and weather. Weather: ``maritime.py``. Profit is the value of the crop's growth minus the
cost of carbon dioxide and heat, per square metre. Bounds on the climate are a separate constraint.

======================  ============================================================================
action ``(3,)``         in [0, 1], of the actuators' ranges: carbon dioxide 0..1.2 mg/(m2 s),
                        ventilation 0..7.5 mm/s, heating 0..150 W/m2. Above 2000 ppm the dosing
                        valve stays shut
observation ``(18,)``   crop dry weight (by 0.25 kg/m2); inside carbon dioxide (1000 ppm),
                        temperature (20 degC), relative humidity (100 %); outside radiation (500
                        W/m2), temperature (20 degC), relative humidity (100 %), all now, no
                        forecast; the last action (3); fraction of the season gone; sine and cosine
                        of the time of day and of the day of the year; prices of lettuce (20
                        EUR/kg), heat (0.1 EUR/kWh), carbon dioxide (0.2 EUR/kg). Sensors have
                        ranges: ``SENSORS``
reward                  EUR/m2: value of the dry weight gained in the step minus carbon dioxide and
                        heat used. A lost crop's value is taken off. The return is the season's
                        profit: harvest minus young plants, carbon dioxide and heat
cost                    sum of the climate's violations of its bounds at the end of the step:
                        temperature 10..30 degC in units of 10 K, carbon dioxide 300..1600 ppm in
                        units of 1000 ppm, relative humidity at most 90 % in units of 10 %
terminated              harvest, after 40 days (1,920 steps); or the crop is lost, inside below 0 or
                        above 45 degC
success                 harvested, with at least 0.3 kg/m2 of dry weight, and at most 0.1 of cost a
                        step on average
start                   planted at midnight, 3.5 g/m2 of dry weight, 15 degC, 80 % and 400 ppm
                        inside
context                 planting day, 10 February to 28 August, train and test in alternating bands
                        of ten days; latitude 50..54 deg; the year's warmth +-1.5 K and cloudiness;
                        prices; and the constants of greenhouse and crop (not shown), each within a
                        fraction of van Henten's
difficulty              that fraction: 0.1, easy 0, hard 0.25
leakage                 a choice: through closed vents 0.75e-4 m/s (van Henten) or, as in present
                        benchmarks, 0.75e-5 m/s
======================  ============================================================================

Prices lie between two published sheets, by a level in [0, 1] on a logarithmic scale and +-20 %
each. Level 0 is van Henten 1994: lettuce 16 Hfl/kg of dry weight, heat 6.35e-9 Hfl/J, carbon
dioxide 0.42 Hfl/kg, at 2.20371 Hfl/EUR. Level 1 is that of present greenhouse benchmarks: 22.285125
EUR/kg, 0.1281 EUR/kWh, 0.1906 EUR/kg.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from rlbench_suite.contexts.context import Constant, weights
from rlbench_suite.contexts.time_series import Column, Series
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from ...shared.alternating_bands import alternating_bands
from ...shared.own_constants import OwnConstants
from ..physics import van_henten
from ..physics.van_henten import (
    Climate,
    Control,
    Greenhouse,
    Scalar,
    Weather,
    co2_ppm,
    relative_humidity,
)
from ..weather.maritime import HOUR, OUTSIDE_CO2, Site, Sky, next_sky, weather
from ..weather.records import DAY, STEP, Records, record_series
from .season import (
    TIME_COMPONENTS,
    check_tolerance,
    cost_components,
    last_setting_components,
    observation_range,
    scaled_readings,
    time_entries,
)

SEASON = 40 * DAY
"""steps"""
CO2_LIMIT = 1.2e-6
"""kg/(m2 s): limit of the actuator, as are the next two (van Henten 1994)"""
VENTILATION_LIMIT = 7.5e-3
"""m/s"""
HEATING_LIMIT = 150.0
"""W/m2"""
MIN_TEMPERATURE = 10.0
"""degC: bound of the climate, as are the next four"""
MAX_TEMPERATURE = 30.0
"""degC"""
MIN_CO2 = 300.0
"""ppm"""
MAX_CO2 = 1600.0
"""ppm"""
MAX_HUMIDITY = 90.0
"""%"""
MIN_CROP_TEMPERATURE = 0.0
"""degC: the crop dies below this"""
MAX_CROP_TEMPERATURE = 45.0
"""degC: the crop dies above this. Open vents keep it cooler on any summer day"""
MAX_DOSING_CO2 = 2000.0
"""ppm: above this the dosing valve stays shut; the model was fitted well below."""
HARVEST_WEIGHT = 0.3
"""kg/m2 of dry weight"""
MAX_MEAN_COST = 0.1
"""Mean cost a step that still counts as success."""
FIRST_DAY = 40.0
"""Earliest planting date, day of the year"""
LAST_DAY = 240.0
"""Latest planting date, day of the year"""
EUR_PER_GUILDER = 1 / 2.20371
"""EUR"""
KWH = 3.6e6
"""J"""
LETTUCE_PRICES = (16 * EUR_PER_GUILDER, 22.285125)
"""EUR/kg of dry weight, at price levels 0 and 1."""
HEAT_PRICES = (6.35e-9 * EUR_PER_GUILDER * KWH, 0.1281)
"""EUR/kWh"""
CO2_PRICES = (0.42 * EUR_PER_GUILDER, 0.1906)
"""EUR/kg"""
PRICE_SPREAD = 0.2
PRICE_SCALES = 20.0, 0.1, 0.2
"""Scales of the prices in observations."""
MEASURED = {
    "dry_weight": ("dry weight of the crop", "kg/m2"),
    "co2": ("carbon dioxide inside", "ppm"),
    "temperature": ("temperature inside", "degC"),
    "humidity": ("relative humidity inside", "%"),
    "radiation": ("radiation outside", "W/m2"),
    "outside_temperature": ("temperature outside", "degC"),
    "outside_humidity": ("relative humidity outside", "%"),
}
"""Meaning and unit of each measurement, by name."""
POSITION = {name: position for position, name in enumerate(MEASURED)}
"""Position of each measurement in observations."""
SCALES = np.array([0.25, 1000, 20, 100, 500, 20, 100])
"""Scales of the seven measurements, in their units."""
SENSORS = np.array([[0, 1], [0, 5000], [-20, 60], [0, 100], [0, 1000], [-40, 60], [0, 100]])
"""Ranges of the seven measurements."""
GREENHOUSE = {
    "yield_factor": ("", "kg of dry weight from a kg of carbon dioxide assimilated"),
    "light_use": ("kg/J", "carbon dioxide assimilated by outside radiation"),
    "respiration": ("1/s", "at 25 degC"),
    "respired_co2": ("", "kg of carbon dioxide set free by a kg of dry weight respired"),
    "transpiration": ("m/s", "from leaf to air"),
    "heat_loss": ("W/(m2 K)", "through the cover"),
    "solar_gain": ("", "fraction of the outside radiation that warms the air"),
    "leakage": ("m/s", "air exchanged through closed vents"),
}
"""Unit and meaning of each constant of :class:`Greenhouse`."""


class Prices(NamedTuple):
    """Prices that the grower pays and receives."""

    lettuce: Scalar
    """EUR/kg of dry weight"""
    heat: Scalar
    """EUR/kWh"""
    co2: Scalar
    """EUR/kg"""


class Params(NamedTuple):
    """The context: a site and season, prices, a greenhouse and its crop."""

    site: Site
    prices: Prices
    house: Greenhouse
    row: Scalar | None = None
    """int32: row of the records at which the season begins; None without records"""


class Bounds(NamedTuple):
    """Bounds of the climate."""

    coldest: float = MIN_TEMPERATURE
    warmest: float = MAX_TEMPERATURE
    """degC"""
    least_co2: float = MIN_CO2
    most_co2: float = MAX_CO2
    """ppm"""
    dampest: float = MAX_HUMIDITY
    """%"""


class State(NamedTuple):
    """Crop and climate, the last setting of the actuators, and the present weather.

    The setting is in fractions of the actuators' ranges.
    """

    climate: Climate
    applied: Control
    sky: Sky
    outside: Weather
    steps: Scalar
    """int32, since planting"""
    violation: Scalar
    """Sum of the cost so far"""


class Lettuce(Task[Params, State]):
    """The task of this file's docstring."""

    period = STEP
    measures: ClassVar[dict[str, str]] = {
        "dry_weight": "kg/m2",
        "temperature": "inside, degC",
        "co2": "inside, ppm",
        "humidity": "inside, relative, %",
        "mean_violation": "constraint cost a step so far, see cost",
    }
    picture_shape = (240, 320, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        check_tolerance(card, difficulty)
        self.own_constants = OwnConstants(card, self.constants())
        self.limits = Control(
            *(self.own_constants.value(f"{name}_limit") for name in Control._fields)
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

    @property
    def usual(self) -> Greenhouse:
        """The greenhouse about which others are drawn."""
        return Greenhouse(leakage=float(self.card.settings["leakage"]))

    def constants(self) -> tuple[Constant, ...]:
        """Return the constants of the task that a context may set.

        They are site, prices, greenhouse, actuators, bounds of the climate, and the weights of the
        reward's terms.
        """
        tolerance = self.difficulty or 0.0

        def fixed_constant(
            name: str, unit: str, value: float, meaning: str, **limits: Any
        ) -> Constant:
            return Constant(name, unit, value, value, meaning, may_vary=False, **limits)

        def price(name: str, sheets: tuple[float, float], unit: str) -> Constant:
            low, high = min(sheets) * (1 - PRICE_SPREAD), max(sheets) * (1 + PRICE_SPREAD)
            return Constant(
                f"{name}_price", unit, float(f"{low:.6g}"), float(f"{high:.6g}"), "", minimum=0.0
            )

        return (
            Constant(
                "planting_day",
                "",
                FIRST_DAY,
                LAST_DAY,
                "day of the year; 0 is 1 January",
                365.0,
                minimum=0.0,
                bands=20,
            ),
            Constant("latitude", "deg", 50.0, 54.0, "north", 66.0, minimum=0.0),
            Constant(
                "warmth",
                "K",
                -1.5,
                1.5,
                "over the climate's mean, 10.1 degC in a year",
                20.0,
                minimum=-20.0,
            ),
            Constant(
                "cloudiness", "", 0.0, 2.0, "logit of the median cloud cover", 6.0, minimum=-6.0
            ),
            price("lettuce", LETTUCE_PRICES, "EUR/kg"),
            price("heat", HEAT_PRICES, "EUR/kWh"),
            price("co2", CO2_PRICES, "EUR/kg"),
            *(
                Constant(
                    name,
                    unit,
                    float(f"{v * (1 - tolerance):.6g}"),
                    float(f"{v * (1 + tolerance):.6g}"),
                    meaning,
                )
                for (name, (unit, meaning)), v in zip(GREENHOUSE.items(), self.usual, strict=True)
            ),
            fixed_constant(
                "co2_limit", "kg/(m2 s)", CO2_LIMIT, "most carbon dioxide dosed", maximum=1e-4
            ),
            fixed_constant(
                "ventilation_limit", "m/s", VENTILATION_LIMIT, "most air exchanged through vents"
            ),
            fixed_constant("heating_limit", "W/m2", HEATING_LIMIT, "most heat", maximum=1000.0),
            fixed_constant(
                "coldest",
                "degC",
                MIN_TEMPERATURE,
                "bound of the climate, as are the next four",
                maximum=40.0,
                minimum=0.0,
            ),
            fixed_constant("warmest", "degC", MAX_TEMPERATURE, "", maximum=45.0, minimum=0.0),
            fixed_constant("least_co2", "ppm", MIN_CO2, "", maximum=5000.0, minimum=0.0),
            fixed_constant("most_co2", "ppm", MAX_CO2, "", maximum=5000.0, minimum=0.0),
            fixed_constant(
                "dampest", "%", MAX_HUMIDITY, "relative humidity", maximum=100.0, minimum=0.0
            ),
            fixed_constant(
                "first_day",
                "",
                0.0,
                "day of the year on which records begin, at midnight",
                maximum=365.0,
                minimum=0.0,
            ),
            *weights(
                lettuce=(1.0, "value of the dry weight gained"),
                heat=(1.0, "cost of heat, taken off"),
                co2=(1.0, "cost of carbon dioxide, taken off"),
                violation=(0.0, "EUR/m2 taken off for a cost of 1"),
            ),
        )

    def series(self) -> tuple[Series, ...]:
        """Return weather and prices."""
        return record_series(
            SEASON, Column("lettuce", "EUR/kg", 0, 1000, "of dry weight", optional=True)
        )

    def _check(self) -> None:
        """Refuse a greenhouse too fast for the integration, and bounds that are not in order."""
        exchange = (
            self.limits.ventilation
            + self.own_constants.range("leakage")[1]
            + self.own_constants.range("transpiration")[1]
        )
        loss = (
            van_henten.VENTILATION_HEAT * self.limits.ventilation
            + self.own_constants.range("heat_loss")[1]
        )
        fastest = max(exchange / van_henten.AIR_HEIGHT, loss / van_henten.HEAT_CAPACITY)
        if fastest * STEP / van_henten.SUBSTEPS > 3:
            raise ValueError(
                f"{self.card.id}: ventilation_limit, leakage, transpiration or heat_loss change "
                f"the air in {1 / fastest:.0f} s, too fast for the integration: at least "
                f"{STEP / van_henten.SUBSTEPS / 3:.0f} s."
            )
        for low, high in (("coldest", "warmest"), ("least_co2", "most_co2")):
            if self.own_constants.value(low) >= self.own_constants.value(high):
                raise ValueError(f"{self.card.id}: {low} is not below {high}.")

    def _reward_range(self) -> tuple[float, float]:
        """Return bounds of the reward, EUR/m2.

        The lowest is 1 kg/m2 lost at the highest price. At most 4 g/m2 grow in a step.
        """
        if not self.own_constants.changed and not self.records.rows:
            return -30.0, 1.0
        weight = self.own_constants.weight
        dearest = Prices(*map(self.records.highest_price, Prices._fields))
        lettuce = weight("lettuce") * dearest.lettuce
        heat = weight("heat") * dearest.heat * STEP / KWH * self.limits.heating
        co2 = weight("co2") * dearest.co2 * STEP * self.limits.co2
        gained_back = heat if self.records.pays_back("heat") else 0.0
        return -(
            1.2 * lettuce + heat + co2 + 30 * weight("violation")
        ), 0.04 * lettuce + gained_back

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Sample a planting day in the bands of the split.

        Everything else has the same distribution in both splits.
        """
        u = self.uniform(key, 16)

        def interpolate(low: float, high: float, unit: Scalar) -> Scalar:
            return low + (high - low) * unit

        def price(sheets: tuple[float, float], unit: Scalar) -> Scalar:
            level = sheets[0] * jnp.exp(math.log(sheets[1] / sheets[0]) * u[4])
            return level * interpolate(1 - PRICE_SPREAD, 1 + PRICE_SPREAD, unit)

        def sample(name: str, i: int, shipped: Scalar, scale: float = 1.0) -> Scalar:
            return self.own_constants.sample_or_shipped(name, u[i], split, shipped, scale)

        site = Site(
            latitude=sample(
                "latitude",
                0,
                interpolate(math.radians(50), math.radians(54), u[0]),
                math.radians(1),
            ),
            start=sample(
                "planting_day", 1, alternating_bands(u[1], split, FIRST_DAY, LAST_DAY, bands=20)
            ),
            warmth=sample("warmth", 2, interpolate(-1.5, 1.5, u[2])),
            cloudiness=sample("cloudiness", 3, interpolate(0.0, 2.0, u[3])),
        )
        sheets = zip(Prices._fields, (LETTUCE_PRICES, HEAT_PRICES, CO2_PRICES), strict=True)
        prices = Prices(
            *(
                sample(f"{name}_price", 5 + i, price(s, u[5 + i]))
                for i, (name, s) in enumerate(sheets)
            )
        )
        tolerance = self.difficulty or 0.0
        house = Greenhouse(
            *(
                sample(name, 8 + i, v * interpolate(1 - tolerance, 1 + tolerance, u[8 + i]))
                for i, (name, v) in enumerate(zip(GREENHOUSE, self.usual, strict=True))
            )
        )
        if not self.records.rows:
            return Params(site, prices, house)
        unit = self.uniform(jax.random.fold_in(key, 1), 1)[0]
        row, start = self.records.begin(unit, split, SEASON, self.dtype)
        return Params(site._replace(start=start), prices, house, row)

    def weather_outside(self, params: Params, sky: Sky, steps: Scalar) -> Weather:
        """Return the weather outside after some steps."""
        if not self.records.weather:
            return weather(params.site, sky, STEP * steps.astype(self.dtype))
        row = self.records.at(self.records.weather, params.row + steps)
        temperature = row["temperature"]
        return Weather(
            row["radiation"],
            van_henten.co2_density(row.get("co2", OUTSIDE_CO2), temperature),
            temperature,
            0.01 * row["humidity"] * van_henten.saturation_density(temperature),
        )

    def prices_at(self, params: Params, steps: Scalar) -> Prices:
        """Return the prices after some steps."""
        return self.records.prices_at(params.prices, params.row, steps)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Return a crop just planted, at midnight."""
        sky = Sky(*self.normal(key, 3))
        zero = jnp.zeros((), self.dtype)
        temperature = zero + 15.0
        air = (
            van_henten.co2_density(400.0, temperature),
            temperature,
            0.8 * van_henten.saturation_density(temperature),
        )
        outside = self.weather_outside(params, sky, jnp.int32(0))
        return State(
            Climate(zero + 3.5e-3, *air),
            Control(zero, zero, zero),
            sky,
            outside,
            jnp.int32(0),
            zero,
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Integrate half an hour under the weather shown, then draw the next weather."""
        ppm = co2_ppm(state.climate.co2, state.climate.temperature)
        dosing = jnp.where(ppm < MAX_DOSING_CO2, action[0], 0.0)
        applied = Control(dosing, action[1], action[2])
        climate = van_henten.step(
            state.climate, actuators(applied, self.limits), state.outside, params.house, STEP
        )
        return self.advance_state(state, climate, applied, key, params)

    def advance_state(
        self, state: State, climate: Climate, applied: Control, key: jax.Array, params: Params
    ) -> State:
        """Return the state after a step, with the computed climate and the next weather."""
        steps = state.steps + 1
        sky = next_sky(state.sky, self.normal(key, 3), STEP)
        outside = self.weather_outside(params, sky, steps)
        return State(
            climate, applied, sky, outside, steps, state.violation + violation(climate, self.bounds)
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return shape ``(18,)``; see the table."""
        inside, outside = state.climate, state.outside
        measured = (
            inside.dry_weight,
            co2_ppm(inside.co2, inside.temperature),
            inside.temperature,
            relative_humidity(inside.humidity, inside.temperature),
            outside.radiation,
            outside.temperature,
            relative_humidity(outside.humidity, outside.temperature),
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
        lettuce, heat, co2 = self.price_scales
        return (
            *(
                Component(name, meaning, f"{scale:g} {unit}")
                for (name, (meaning, unit)), scale in zip(MEASURED.items(), SCALES, strict=True)
            ),
            *last_setting_components(self.action_components()),
            *TIME_COMPONENTS,
            Component(
                "lettuce_price", "price of a kilogram of lettuce, dry weight", f"{lettuce:g} EUR/kg"
            ),
            *cost_components(heat, co2),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List three actuators."""
        return (
            Component(
                "dosing", "carbon dioxide that is dosed", f"{1e6 * self.limits.co2:g} mg/(m2 s)"
            ),
            Component(
                "ventilation",
                "how far the vents are open: air exchanged a floor area",
                f"{1e3 * self.limits.ventilation:g} mm/s",
            ),
            Component("heating", "heat that is supplied", f"{self.limits.heating:g} W/m2"),
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the profit of the step, EUR/m2."""
        used = actuators(next_state.applied, self.limits)
        prices = self.prices_at(params, state.steps)
        heat, co2 = (STEP / KWH) * prices.heat * used.heating, STEP * prices.co2 * used.co2
        standing = jnp.where(is_crop_lost(next_state.climate), 0.0, next_state.climate.dry_weight)
        gained = standing - state.climate.dry_weight
        if not self.own_constants.reweighted:
            return prices.lettuce * gained - (heat + co2)
        weight = self.own_constants.weight
        costs = weight("heat") * heat + weight("co2") * co2
        broken = weight("violation") * violation(next_state.climate, self.bounds)
        return weight("lettuce") * (prices.lettuce * gained) - costs - broken

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the crop is harvested or lost."""
        return (state.steps >= SEASON) | is_crop_lost(state.climate)

    def cost(self, state: State, action: jax.Array, next_state: State, params: Params) -> jax.Array:
        """Return the climate's violation of its bounds."""
        return violation(next_state.climate, self.bounds)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        climate = state.climate
        mean = state.violation / jnp.maximum(state.steps, 1).astype(self.dtype)
        return {
            "success": (climate.dry_weight >= HARVEST_WEIGHT)
            & (mean <= MAX_MEAN_COST)
            & ~is_crop_lost(climate),
            "dry_weight": climate.dry_weight,
            "temperature": climate.temperature,
            "co2": co2_ppm(climate.co2, climate.temperature),
            "humidity": relative_humidity(climate.humidity, climate.temperature),
            "mean_violation": mean,
        }

    # -- text and pixels ---------------------------------------------------------------------------

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say whether it was harvested or lost."""
        if bool(is_crop_lost(state.climate)):
            return (
                f"the crop is lost: {float(state.climate.temperature):.1f} degC, it lives at "
                f"{MIN_CROP_TEMPERATURE:g}..{MAX_CROP_TEMPERATURE:g} degC"
            )
        return f"harvest after 40 days: {float(state.climate.dry_weight):.3f} kg/m2 of dry weight"

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            "Answer with three numbers from 0 to 1: carbon dioxide, ventilation and heating, parts "
            "of their ranges."
        )

    def describe(self, state: State, params: Params) -> str:
        """Describe crop, climate, weather, actuators, time and prices, with units."""
        inside, outside = (jax.tree.map(float, values) for values in (state.climate, state.outside))
        lettuce, heat, co2 = map(float, self.prices_at(params, state.steps))
        days, hours = divmod(int(state.steps) * STEP / HOUR, 24)
        dosed, vented, heated = (100 * float(values) for values in state.applied)
        return (
            f"Day {days:.0f} of 40, {hours:04.1f} h, planted on day {float(params.site.start):.0f} "
            f"of the year. Crop {inside.dry_weight:.4f} kg/m2. Inside {inside.temperature:.1f} "
            f"degC, {float(co2_ppm(inside.co2, inside.temperature)):.0f} ppm, "
            f"{float(relative_humidity(inside.humidity, inside.temperature)):.0f} % humidity. "
            f"Outside {outside.temperature:.1f} degC, {outside.radiation:.0f} W/m2 of sun, "
            f"{float(relative_humidity(outside.humidity, outside.temperature)):.0f} % humidity. "
            f"Last setting: carbon dioxide {dosed:.0f} %, ventilation {vented:.0f} %, heating "
            f"{heated:.0f} %. Prices: lettuce {lettuce:.2f} EUR/kg dry, heat {heat:.4f} EUR/kWh, "
            f"carbon dioxide {co2:.3f} EUR/kg."
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the greenhouse from the side.

        The crop shows its weight, vents their opening, pipes their heat, and the sky its sun.
        """
        height, width, _ = self.picture_shape
        light = min(1.0, float(state.outside.radiation) / 700)
        image = Image.new(
            "RGB",
            (width, height),
            tuple(int(c) for c in (20 + 120 * light, 30 + 160 * light, 80 + 160 * light)),
        )
        canvas = ImageDraw.Draw(image)
        ground, eaves, ridge = height - 40, 110, 50
        canvas.rectangle((0, ground, width, height), fill=(95, 75, 50))
        warm = min(1.0, max(0.0, float(state.climate.temperature) / 40))
        canvas.polygon(
            (
                (40, ground),
                (40, eaves),
                (width / 2, ridge),
                (width - 40, eaves),
                (width - 40, ground),
            ),
            fill=(int(120 + 120 * warm), 200, int(240 - 140 * warm)),
            outline="white",
        )
        opening = 40 * float(state.applied.ventilation)
        canvas.line((width / 2, ridge, width / 2 + 70, ridge + 30 - opening), fill="white", width=4)
        pipe = int(60 + 195 * float(state.applied.heating))
        canvas.line((50, ground - 8, width - 50, ground - 8), fill=(pipe, 60, 60), width=5)
        radius = 4 + 14 * min(1.0, float(state.climate.dry_weight) / 0.3)
        for x in range(64, width - 60, 32):
            canvas.ellipse(
                (x - radius, ground - 12 - 1.4 * radius, x + radius, ground - 12),
                fill=(40, 140, 50),
            )
        canvas.text((8, 4), f"day {int(state.steps) / 48:.1f}", fill="white")
        canvas.text(
            (8, 18),
            (
                f"{float(state.climate.temperature):.1f} C in, "
                f"{float(state.outside.temperature):.1f} C out"
            ),
            fill="white",
        )
        canvas.text(
            (8, height - 16), f"{1000 * float(state.climate.dry_weight):.0f} g/m2", fill="white"
        )
        return np.asarray(image)


def actuators(setting: Control, limits: Control) -> Control:
    """Convert fractions of the actuators' ranges to SI units."""
    return Control(*(limit * fraction for limit, fraction in zip(limits, setting, strict=True)))


def is_crop_lost(climate: Climate) -> Scalar:
    """Say whether the crop froze or burnt."""
    return (climate.temperature < MIN_CROP_TEMPERATURE) | (
        climate.temperature > MAX_CROP_TEMPERATURE
    )


def violation(climate: Climate, bounds: Bounds = Bounds()) -> Scalar:  # noqa: B008 - numbers
    """Return the constraint cost of a climate; see the table."""
    t, ppm = climate.temperature, co2_ppm(climate.co2, climate.temperature)
    damp = relative_humidity(climate.humidity, t)
    return (
        jnp.maximum(0.0, jnp.maximum(bounds.coldest - t, t - bounds.warmest)) * 0.1
        + jnp.maximum(0.0, jnp.maximum(bounds.least_co2 - ppm, ppm - bounds.most_co2)) * 1e-3
        + jnp.maximum(0.0, damp - bounds.dampest) * 0.1
    )
