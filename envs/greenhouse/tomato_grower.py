"""The reference player: a grower's set points for heating, vents and carbon dioxide in a glasshouse with tomatoes.

The rules heat for a temperature by day and one by night, with the outside temperature fed forward; open the vents in
proportion to the excess of temperature and humidity, the more the calmer the wind; and dose carbon dioxide by day while
the vents are nearly closed. They use sensor values only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.policy import View

from .tomato import CO2_LIMIT, HEATING_LIMIT, SCALES, Bounds, Params, Tomato


class TomatoGrower(NamedTuple):
    """Set points and gains."""

    light: Any = 14.0
    """W/m2 of radiation above which it is day"""
    warm_day: Any = 16.3
    warm_night: Any = 17.3
    """degC: heating targets"""
    loss: Any = 3.6
    """W/(m2 K): heat for each kelvin that it is colder outside than the target"""
    sun: Any = 0.35
    """W/m2 of heat that a W/m2 of sun replaces"""
    heating_gain: Any = 20.0
    """W/(m2 K)"""
    hot: Any = 22.6
    """degC: vents open above this"""
    venting_gain: Any = 0.065
    """1/K"""
    damp: Any = 80.0
    """%: vents open above this relative humidity"""
    drying_gain: Any = 0.0083
    """Opening a per cent"""
    calm: Any = 1.7
    """m/s: the vents' gains fall by half at this wind"""
    co2: Any = 1110.0
    """ppm: dosing target by day"""
    co2_gain: Any = 0.023
    """mg/(m2 s) a ppm"""
    closed: Any = 0.39
    """Opening of the vents up to which carbon dioxide is dosed"""
    most_heating: Any = HEATING_LIMIT
    """W/m2"""
    most_co2: Any = CO2_LIMIT
    """mg/(m2 s)"""

    @classmethod
    def for_task(cls, task: Tomato) -> TomatoGrower:
        """Make the player for the actuators and the bounds of a glasshouse: its targets are as far within them as those
        for the shipped bounds.
        """
        usual, own, mine = Bounds(), task.bounds, cls()
        if own == usual and (task.limits.heating, task.limits.co2) == (HEATING_LIMIT, CO2_LIMIT):
            return mine
        return mine._replace(
            warm_day=mine.warm_day + (own.coldest - usual.coldest),
            warm_night=mine.warm_night + (own.coldest - usual.coldest),
            hot=mine.hot + (own.warmest - usual.warmest),
            damp=mine.damp + (own.dampest - usual.dampest),
            co2=mine.co2 + (own.most_co2 - usual.most_co2),
            most_heating=task.limits.heating,
            most_co2=task.limits.co2,
        )

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the setting, shape ``(3,)``."""
        inside, ppm, humidity = (view.observation[i] * SCALES[i] for i in (4, 5, 6))
        radiation, outside, wind = (view.observation[i] * SCALES[i] for i in (8, 9, 11))
        day = radiation > self.light
        target = jnp.where(day, self.warm_day, self.warm_night)
        heating = self.heating_gain * (target - inside) + self.loss * (target - outside) - self.sun * radiation
        drying = self.drying_gain * jnp.maximum(0.0, humidity - self.damp)
        venting = self.venting_gain * jnp.maximum(0.0, inside - self.hot)
        vents = (venting + drying) * 2 * self.calm / (self.calm + wind)
        dosing = jnp.where(day & (vents <= self.closed), self.co2_gain * (self.co2 - ppm), 0.0)
        setting = (heating / self.most_heating, vents, dosing / self.most_co2)
        return jnp.clip(jnp.stack([*setting]), 0.0, 1.0), memory
