"""The reference player of the high-tech glasshouse.

It follows a grower's rules for screen, lamps, boiler and irrigation.

Heating, vents and carbon dioxide follow the rules of ``tomato_grower.py``, in which lamps count as
sun and a closed screen saves heat. The screen closes in the dark while it is cold outside, and
opens a gap for damp air. Lamps burn while the sun is weak, outside a dark period, if electricity is
cheap beside tomatoes. The boiler burns for carbon dioxide while the store takes its heat, else for
heat once the store is nearly empty. Irrigation refills the root zone without drain. The rules use
sensor values only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.arrays import Float
from rlbench_suite.core.policy import View

from ..physics import root_zone
from ..physics.high_tech_glasshouse import LAMP_PAR
from ..tasks.tomato import Params
from ..tasks.tomato_high_tech import (
    BOILER_LIMIT,
    FLUE_CO2,
    IRRIGATION_LIMIT,
    LAMP_LIMIT,
    POSITION,
    UTILITY_SCALES,
    TomatoHighTech,
)
from ..tasks.tomato_sensors import SCALES, read
from ..weather.records import STEP
from .tomato_grower import TomatoGrower


class HighTechGrower(NamedTuple):
    """Set points and gains."""

    grower: TomatoGrower = TomatoGrower(damp=85.0)
    cold_night: Float = 14.0
    cold_day: Float = 3.0
    """degC outside below which the screen is closed"""
    dusk: Float = 30.0
    """W/m2 of radiation below which it is night for the screen"""
    gap: Float = 0.1
    """Opening of the screen a per cent of humidity above"""
    gap_damp: Float = 81.0
    """%"""
    saving: Float = 0.4
    """Part of the loss of heat that a closed screen keeps"""
    weak: Float = 150.0
    """W/m2 of radiation below which lamps burn"""
    worth: Float = 0.1
    """EUR/kWh: lamps burn below this price of electricity where tomatoes are at 1 EUR/kg"""
    dark: Float = 6.0
    """h without lamps"""
    middle: Float = 21.0
    """Hour of the day in the middle of them"""
    lit: Float = 2.9
    """W/m2 of sun outside that a W/m2 of the lamps' light stands for"""
    reserve: Float = 0.25
    """Part of the store below which the boiler burns for heat"""
    refill: Float = 300.0
    """W/m2 a part of the store"""
    moist: Float = 0.85
    """Part of the root zone's water below which it is irrigated"""
    watering: Float = 0.6
    """Part of what lacks that is irrigated in a step"""
    max_lamps: Float = LAMP_LIMIT
    max_boiler: Float = BOILER_LIMIT
    """W/m2"""
    max_irrigation: Float = IRRIGATION_LIMIT
    """kg/(m2 s)"""
    electricity_scale: Float = UTILITY_SCALES[0]
    tomato_scale: Float = 1.0
    """EUR/kWh and EUR/kg of the prices that observations show as 1"""

    @classmethod
    def for_task(cls, task: TomatoHighTech) -> HighTechGrower:
        """Make the player for the actuators, prices and bounds of a glasshouse."""
        usual, limits = TomatoGrower.for_task(task), task.device_limits
        return cls(
            usual._replace(damp=usual.damp + (cls().grower.damp - TomatoGrower().damp)),
            max_lamps=limits.lamps,
            max_boiler=limits.boiler,
            max_irrigation=limits.irrigation,
            electricity_scale=task.utility_scales[0],
            tomato_scale=task.price_scales[0],
        )

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the setting, shape ``(7,)``."""
        observation = view.observation
        usual = self.grower
        humidity = read(observation, "humidity")
        radiation = read(observation, "radiation")
        outside = read(observation, "outside_temperature")
        stored_heat = observation[POSITION["stored_heat"]]
        water = observation[POSITION["root_water"]]
        electricity = observation[POSITION["electricity_price"]] * self.electricity_scale
        tomato = observation[POSITION["tomato_price"]] * self.tomato_scale

        darkest_angle = (2 * math.pi / 24) * self.middle
        sine = observation[POSITION["sin_day"]]
        cosine = observation[POSITION["cos_day"]]
        from_dark = cosine * jnp.cos(darkest_angle) + sine * jnp.sin(darkest_angle)
        is_resting = from_dark > jnp.cos((math.pi / 24) * self.dark)
        are_lamps_on = (radiation < self.weak) & ~is_resting & (electricity < self.worth * tomato)
        lamps = jnp.where(are_lamps_on, 1.0, 0.0)

        cold = jnp.where(radiation < self.dusk, self.cold_night, self.cold_day)
        gap = self.gap * jnp.maximum(0.0, humidity - self.gap_damp)
        screen = jnp.clip(jnp.where(outside < cold, 1.0 - gap, 0.0), 0.0, 1.0)

        light = radiation + self.lit * LAMP_PAR * self.max_lamps * lamps
        sun = POSITION["radiation"]
        as_sun = view._replace(observation=observation.at[sun].set(light * (1 / SCALES[sun])))
        rule = usual._replace(loss=usual.loss * (1 - self.saving * screen))
        (heating, vents, dosing), _ = rule.act((), as_sun, key)

        for_heat = heating * usual.max_heating + self.refill * (self.reserve - stored_heat)
        for_co2 = dosing * usual.max_co2 * (1 / FLUE_CO2)
        boiler = jnp.maximum(for_heat, for_co2) * (1 / self.max_boiler)
        lacking = jnp.maximum(0.0, self.moist - water) * (self.watering * root_zone.CAPACITY / STEP)
        irrigation = lacking * (1 / self.max_irrigation)
        setting = (heating, vents, dosing, screen, lamps, boiler, irrigation)
        return jnp.clip(jnp.stack(setting), 0.0, 1.0), memory
