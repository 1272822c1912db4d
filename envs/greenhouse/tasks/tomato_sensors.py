"""Sensors of the tomato task: what they measure, in which ranges, and how they may fail.

Only sensors of the air inside fail.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from ..physics.glasshouse import Air, Scalar, co2_ppm, saturation_pressure
from ..physics.tomato_crop import GENERATIVE

MEASURED = (
    ("leaf_area", "leaf area index", "", 3, 0, 6),
    ("fruit", "fresh fruit on the plants", "kg/m2", 5, 0, 10),
    ("temperature_sum", "temperature sum since planting", "degC day", GENERATIVE, 0, 8000),
    ("mean_temperature", "mean temperature inside of about a day", "degC", 20, -20, 60),
    ("temperature", "temperature inside", "degC", 20, -20, 60),
    ("co2", "carbon dioxide inside", "ppm", 1000, 0, 5000),
    ("humidity", "relative humidity inside", "%", 100, 0, 100),
    ("pipe", "temperature of the pipes", "degC", 50, -20, 150),
    ("radiation", "radiation outside", "W/m2", 500, 0, 1400),
    ("outside_temperature", "temperature outside", "degC", 20, -40, 60),
    ("outside_humidity", "relative humidity outside", "%", 100, 0, 100),
    ("wind", "wind outside", "m/s", 5, 0, 40),
)
"""Name, meaning, unit and scale of each measurement, and the range of its sensor."""
SCALES = tuple(float(row[3]) for row in MEASURED)
SENSORS = tuple((float(row[4]), float(row[5])) for row in MEASURED)
ENTRIES = (
    *(row[0] for row in MEASURED),
    "last_heating",
    "last_vents",
    "last_dosing",
    "season",
    "sin_day",
    "cos_day",
    "sin_year",
    "cos_year",
    "tomato_price",
    "heat_price",
    "co2_price",
)
"""Names of the entries of an observation, in order"""
POSITION = {name: position for position, name in enumerate(ENTRIES)}
INSIDE = POSITION["temperature"]
"""Position of the three readings of the air inside, in the order of :class:`Readings`"""


class Readings(NamedTuple):
    """Values for the three sensors inside: temperature, carbon dioxide and relative humidity.

    They are readings, or anything else that each sensor has one of.
    """

    temperature: Scalar
    """degC"""
    co2: Scalar
    """ppm"""
    humidity: Scalar
    """%"""


class Fault(NamedTuple):
    """Failure of a sensor for some steps: it is silent, repeats its last reading, or drifts."""

    begin: Scalar
    """int32: first step"""
    end: Scalar
    """int32: first step after it"""
    silent: Scalar
    """bool"""
    stuck: Scalar
    """bool"""
    drift: Scalar
    """Change of the error in a step, in the reading's unit; 0 unless it drifts"""


def measure(air: Air) -> Readings:
    """Return what sound sensors read."""
    ppm = co2_ppm(air.co2, air.temperature)
    return Readings(air.temperature, ppm, relative_humidity(air.vapour, air.temperature))


def relative_humidity(vapour: Scalar, temperature: Scalar) -> Scalar:
    """Return relative humidity in per cent, at most 100: a hygrometer shows no more."""
    return jnp.minimum(100.0, 100.0 * vapour / saturation_pressure(temperature))


def read(observation: Scalar, name: str) -> Scalar:
    """Return a measurement from an observation, in its unit."""
    position = POSITION[name]
    return observation[position] * SCALES[position]
