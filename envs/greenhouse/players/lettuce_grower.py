"""The reference player: a grower's rules for heating, vents and carbon dioxide.

The rules heat in proportion to the lack of temperature, by day and by night; open the vents in
proportion to the excess of temperature and humidity; and dose carbon dioxide by day while the vents
are nearly closed. They use sensor values only.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.core.arrays import Float
from rlbench_suite.core.policy import View

from ..physics.van_henten import Control
from ..tasks.lettuce import (
    CO2_LIMIT,
    HEATING_LIMIT,
    POSITION,
    SCALES,
    VENTILATION_LIMIT,
    Bounds,
    Lettuce,
    Params,
)


class Grower(NamedTuple):
    """Set points and gains."""

    light: Float = 20.0
    """W/m2 of radiation above which it is day"""
    warm_day: Float = 11.0
    """degC: heating target by day"""
    warm_night: Float = 11.0
    """degC: heating target by night"""
    heating_gain: Float = 20.0
    """W/(m2 K)"""
    hot: Float = 28.0
    """degC: vents open above this"""
    venting_gain: Float = 4e-3
    """m/(s K)"""
    damp: Float = 90.0
    """%: vents open above this relative humidity"""
    drying_gain: Float = 0.1e-3
    """m/s a per cent"""
    co2: Float = 1550.0
    """ppm: dosing target by day"""
    co2_gain: Float = 2e-8
    """kg/(m2 s) a ppm"""
    closed: Float = 7.5e-3
    """m/s: carbon dioxide is dosed up to this ventilation"""
    max_ventilation: Float = VENTILATION_LIMIT
    """m/s"""
    per_unit: Control = Control(1 / CO2_LIMIT, 1 / VENTILATION_LIMIT, 1 / HEATING_LIMIT)
    """Part of an actuator's range by SI unit"""

    @classmethod
    def for_task(cls, task: Lettuce) -> Grower:
        """Make the player for the actuators and the bounds of a greenhouse.

        Its targets are as far within those bounds as the default targets are within the shipped
        bounds.
        """
        shipped, bounds, grower = Bounds(), task.bounds, cls()
        if bounds == shipped and task.limits == Control(
            CO2_LIMIT, VENTILATION_LIMIT, HEATING_LIMIT
        ):
            return grower
        return grower._replace(
            warm_day=grower.warm_day + (bounds.coldest - shipped.coldest),
            warm_night=grower.warm_night + (bounds.coldest - shipped.coldest),
            hot=grower.hot + (bounds.warmest - shipped.warmest),
            damp=grower.damp + (bounds.dampest - shipped.dampest),
            co2=grower.co2 + (bounds.most_co2 - shipped.most_co2),
            max_ventilation=task.limits.ventilation,
            per_unit=Control(*(1 / limit for limit in task.limits)),
        )

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the setting, shape ``(3,)``."""
        ppm, inside, humidity, radiation = (
            view.observation[POSITION[name]] * float(SCALES[POSITION[name]])
            for name in ("co2", "temperature", "humidity", "radiation")
        )
        day = radiation > self.light
        heating = self.heating_gain * (jnp.where(day, self.warm_day, self.warm_night) - inside)
        venting = self.venting_gain * jnp.maximum(0.0, inside - self.hot)
        drying = self.drying_gain * jnp.maximum(0.0, humidity - self.damp)
        ventilation = jnp.minimum(venting + drying, self.max_ventilation)
        dosing = jnp.where(
            day & (ventilation <= self.closed), self.co2_gain * (self.co2 - ppm), 0.0
        )
        setting = (
            value * per_unit
            for value, per_unit in zip((dosing, ventilation, heating), self.per_unit, strict=True)
        )
        return jnp.clip(jnp.stack([*setting]), 0.0, 1.0), memory
