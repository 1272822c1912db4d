"""Constants of the tomato task that a context samples or a user sets.

They are site, prices, glasshouse, crop and bounds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rlbench_suite.contexts.context import Constant, weights

from ..physics.glasshouse import Glasshouse
from ..physics.tomato_crop import Variety

HEATING_LIMIT = 150.0
"""W/m2: limit of the actuator; chosen, as for lettuce.

A modern Dutch glasshouse has 300 (Katzin 2021, table 4.2).
"""
CO2_LIMIT = 5.0
"""mg/(m2 s): limit of the actuator; a modern Dutch glasshouse has 5.14 (Katzin 2021, table 4.2)"""
FIRST_DAY = -31.0
"""Earliest planting date, day of the year; 0 is 1 January; chosen"""
LAST_DAY = 59.0
"""Latest planting date, day of the year; chosen"""
RANGES = {"tomato": (0.8, 1.6), "heat": (0.03, 0.08), "co2": (0.1, 0.25)}
"""EUR/kg fresh, EUR/kWh, EUR/kg: least and largest price; chosen"""
CONSTANTS = {
    "transmission": ("", "part of the outside radiation that the cover lets through"),
    "heat_loss": ("", "factor of the heat exchanged through the cover"),
    "leakage": ("", "m3 of air a m2 of floor and m of wind, through closed vents"),
    "vents": ("", "m2 of roof vents a m2 of floor"),
    "stomatal_resistance": ("s/m", "least resistance of the stomata"),
    "electron_transport": ("umol/(m2 s)", "of the leaves at 25 degC"),
    "fruit_growth": ("mg/(m2 s)", "potential flow of carbohydrates to the fruit"),
    "maintenance": ("", "factor of the respiration for maintenance"),
}
"""Unit and meaning of each constant of :class:`Glasshouse` and :class:`Variety`."""


class Bounds(NamedTuple):
    """Bounds of the climate."""

    coldest: float = 15.0
    warmest: float = 34.0
    """degC"""
    least_co2: float = 300.0
    most_co2: float = 1600.0
    """ppm"""
    driest: float = 50.0
    dampest: float = 85.0
    """%"""


def task_constants(tolerance: float, degrees: float) -> tuple[Constant, ...]:
    """Return the constants.

    Args:
        tolerance: fraction of the published constants of glasshouse and crop within which a context
            draws them.
        degrees: latitude of the climate's middle, deg.
    """

    def fixed_constant(name: str, unit: str, value: float, meaning: str, **limits: Any) -> Constant:
        return Constant(name, unit, value, value, meaning, may_vary=False, **limits)

    def price(name: str, unit: str) -> Constant:
        return Constant(f"{name}_price", unit, *RANGES[name], "", minimum=0.0)

    usual, bounds = (*Glasshouse(), *Variety()), Bounds()
    return (
        Constant(
            "planting_day",
            "",
            FIRST_DAY,
            LAST_DAY,
            "day of the year; 0 is 1 January",
            365.0,
            minimum=-365.0,
            bands=20,
        ),
        Constant("latitude", "deg", degrees - 2, degrees + 2, "north", 66.0, minimum=0.0),
        Constant("warmth", "K", -1.5, 1.5, "over the climate's mean", 20.0, minimum=-20.0),
        Constant(
            "cloudiness",
            "",
            -0.7,
            0.7,
            "over the climate's logits of median cloud cover",
            6.0,
            minimum=-6.0,
        ),
        price("tomato", "EUR/kg"),
        price("heat", "EUR/kWh"),
        price("co2", "EUR/kg"),
        *(
            Constant(
                name,
                unit,
                float(f"{v * (1 - tolerance):.6g}"),
                float(f"{v * (1 + tolerance):.6g}"),
                meaning,
            )
            for (name, (unit, meaning)), v in zip(CONSTANTS.items(), usual, strict=True)
        ),
        fixed_constant(
            "heating_limit", "W/m2", HEATING_LIMIT, "most heat into the pipes", maximum=500.0
        ),
        fixed_constant(
            "co2_limit", "mg/(m2 s)", CO2_LIMIT, "most carbon dioxide dosed", maximum=50.0
        ),
        fixed_constant(
            "coldest",
            "degC",
            bounds.coldest,
            "bound of the climate, as are the next five",
            maximum=40.0,
            minimum=0.0,
        ),
        fixed_constant("warmest", "degC", bounds.warmest, "", maximum=45.0, minimum=0.0),
        fixed_constant("least_co2", "ppm", bounds.least_co2, "", maximum=5000.0, minimum=0.0),
        fixed_constant("most_co2", "ppm", bounds.most_co2, "", maximum=5000.0, minimum=0.0),
        fixed_constant(
            "driest", "%", bounds.driest, "relative humidity", maximum=100.0, minimum=0.0
        ),
        fixed_constant(
            "dampest", "%", bounds.dampest, "relative humidity", maximum=100.0, minimum=0.0
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
            tomato=(1.0, "value of the fruit grown"),
            heat=(1.0, "cost of heat, taken off"),
            co2=(1.0, "cost of carbon dioxide, taken off"),
            violation=(0.0, "EUR/m2 taken off for a cost of 1"),
        ),
    )
