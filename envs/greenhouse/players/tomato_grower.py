"""The reference player of the tomato tasks.

It follows a grower's set points for heating, vents and carbon dioxide.

The rules heat for a temperature by day and one by night, with the outside temperature fed forward.
They open the vents above a temperature, the more the calmer the wind. Above a relative humidity
they open them further step by step, and below it they close them again: the air is as damp half an
hour later as the setting lets it be. They dose carbon dioxide by day while the vents are nearly
closed, the less the dearer it is beside tomatoes. They use sensor values only.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.arrays import Float
from rlbench_suite.core.policy import View

from ..tasks.tomato import PRICE_SCALES, Params, Tomato
from ..tasks.tomato_constants import CO2_LIMIT, HEATING_LIMIT, Bounds
from ..tasks.tomato_sensors import POSITION, read

SHIPPED_PRICE_RATIO = PRICE_SCALES[2] / PRICE_SCALES[0]
"""Price of carbon dioxide by that of tomatoes where observations show the same number for both"""


class TomatoGrower(NamedTuple):
    """Set points and gains."""

    light: Float = 8.4
    """W/m2 of radiation above which it is day"""
    warm_day: Float = 15.5
    warm_night: Float = 17.1
    """degC: heating targets"""
    loss: Float = 3.05
    """W/(m2 K): heat for each kelvin that it is colder outside than the target"""
    sun: Float = 0.17
    """W/m2 of heat that a W/m2 of sun replaces"""
    heating_gain: Float = 28.0
    """W/(m2 K)"""
    hot: Float = 26.2
    """degC: vents open above this"""
    venting_gain: Float = 0.086
    """1/K"""
    calm: Float = 1.6
    """m/s: the opening against heat falls by half at this wind"""
    damp: Float = 85.8
    """%: vents open step by step above this relative humidity"""
    drying_gain: Float = 0.0045
    """Opening a per cent and step"""
    persistence: Float = 0.85
    """Part of the last opening that stays"""
    co2: Float = 1850.0
    """ppm: dosing target by day if carbon dioxide were free"""
    thrift: Float = 3600.0
    """Reduction of the target, ppm, where carbon dioxide costs as much a kilogram as tomatoes"""
    co2_gain: Float = 0.0147
    """mg/(m2 s) a ppm"""
    closed: Float = 0.59
    """Opening of the vents up to which carbon dioxide is dosed"""
    max_heating: Float = HEATING_LIMIT
    """W/m2"""
    max_co2: Float = CO2_LIMIT
    """mg/(m2 s)"""
    relative_price: Float = SHIPPED_PRICE_RATIO
    """Price of carbon dioxide by that of tomatoes where observations show the same number for both
    """

    @classmethod
    def for_task(cls, task: Tomato) -> TomatoGrower:
        """Make the player for the actuators, prices and bounds of a glasshouse.

        Its targets are as far within those bounds as the default targets are within the shipped
        bounds.
        """
        shipped, bounds, grower = Bounds(), task.bounds, cls()
        prices = task.price_scales[2] / task.price_scales[0]
        if (bounds, task.limits.heating, task.limits.co2, prices) == (
            shipped,
            HEATING_LIMIT,
            CO2_LIMIT,
            SHIPPED_PRICE_RATIO,
        ):
            return grower
        return grower._replace(
            warm_day=grower.warm_day + (bounds.coldest - shipped.coldest),
            warm_night=grower.warm_night + (bounds.coldest - shipped.coldest),
            hot=grower.hot + (bounds.warmest - shipped.warmest),
            damp=grower.damp + (bounds.dampest - shipped.dampest),
            co2=grower.co2 + (bounds.most_co2 - shipped.most_co2),
            max_heating=task.limits.heating,
            max_co2=task.limits.co2,
            relative_price=prices,
        )

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the setting, shape ``(3,)``."""
        observation = view.observation
        inside = read(observation, "temperature")
        ppm = read(observation, "co2")
        humidity = read(observation, "humidity")
        radiation = read(observation, "radiation")
        outside = read(observation, "outside_temperature")
        wind = read(observation, "wind")
        last_vents = observation[POSITION["last_vents"]]
        tomato = observation[POSITION["tomato_price"]]
        co2 = observation[POSITION["co2_price"]] * self.relative_price
        day = radiation > self.light
        target = jnp.where(day, self.warm_day, self.warm_night)
        heating = (
            self.heating_gain * (target - inside)
            + self.loss * (target - outside)
            - self.sun * radiation
        )
        drying = jnp.maximum(
            0.0, self.persistence * last_vents + self.drying_gain * (humidity - self.damp)
        )
        cooling = self.venting_gain * jnp.maximum(0.0, inside - self.hot)
        vents = drying + cooling * 2 * self.calm / (self.calm + wind)
        dear = co2 / jnp.maximum(tomato, 0.01)
        dosed = self.co2_gain * (self.co2 - self.thrift * dear - ppm)
        dosing = jnp.where(day & (vents <= self.closed), dosed, 0.0)
        setting = (heating / self.max_heating, vents, dosing / self.max_co2)
        return jnp.clip(jnp.stack([*setting]), 0.0, 1.0), memory
