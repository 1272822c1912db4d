"""Lettuce in a greenhouse: dry weight, carbon dioxide, temperature and humidity, after van Henten.

Four states, three controls, four weather inputs; a square metre of floor is the unit of area.
Equations and constants: van Henten, Greenhouse climate management: an optimal control approach,
thesis Wageningen 1994; van Henten 2003, Sensitivity analysis of an optimal control problem in
greenhouse climate management, doi:10.1016/S1537-5110(03)00068-0.

    dX_d/dt = c_ab g - c_r X_d q                            growth: assimilation minus respiration
    c_c dX_c/dt = -g + c_rc X_d q + u_c - (u_v + c_l)(X_c - V_c)                    carbon dioxide
    c_q dX_t/dt = u_q - (c_qv u_v + c_qo)(X_t - V_t) + c_rad V_r                              heat
    c_h dX_h/dt = (1 - e^{-c_pl X_d}) c_tr (saturated(X_t) - X_h) - (u_v + c_l)(X_h - V_h)  vapour

    g = (1 - e^{-c_pl X_d}) c_ph V_r s / (c_ph V_r + s),   q = 2^(X_t / 10 - 2.5)
    s = (-5.11e-6 X_t^2 + 2.30e-4 X_t - 6.29e-4)(X_c - 5.2e-5)

Outside about 3 to 42 degC the polynomial in ``s`` is negative: the fit does not hold there, and
``g`` would have a pole. So ``s`` is zero there. The equations are stiff under open vents, which
change the air in minutes while the crop grows over weeks. This decay is linear and is integrated
exactly (``exponential_runge_kutta.py``).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp

from .exponential_runge_kutta import exponential_rk4

Scalar = Any
"""A scalar array; on the host, where a state is described or drawn, a float."""

AIR_HEIGHT = 4.1
"""c_c and c_h: m of air over the floor."""
HEAT_CAPACITY = 30_000.0
"""c_q: J/(m2 K)"""
VENTILATION_HEAT = 1290.0
"""c_qv: J/(m3 K)"""
CANOPY_CLOSURE = 53.0
"""c_pl: m2/kg of dry weight"""
COMPENSATION_POINT = 5.2e-5
"""kg/m3 of carbon dioxide below which nothing is assimilated"""
GAS_CONSTANT = 8.3144598
"""J/(mol K)"""
PRESSURE = 101_325.0
"""Pa"""
CO2_MOLAR_MASS = 44.01e-3
WATER_MOLAR_MASS = 18.01528e-3
"""kg/mol"""
KELVIN = 273.15
SUBSTEPS = 4
"""Integration steps of a control interval.

tests/greenhouse measures their error against a stiff solver.
"""
_TINY = 1e-30


class Greenhouse(NamedTuple):
    """Constants in which greenhouses and crops differ; defaults are van Henten's."""

    yield_factor: Scalar = 0.544
    """c_ab: kg of dry weight from a kg of carbon dioxide assimilated"""
    light_use: Scalar = 3.55e-9
    """c_ph: kg/J of outside radiation"""
    respiration: Scalar = 2.65e-7
    """c_r: 1/s at 25 degC"""
    respired_co2: Scalar = 4.87e-7 / 2.65e-7
    """c_rc / c_r: kg of carbon dioxide set free by a kg of dry weight respired"""
    transpiration: Scalar = 3.6e-3
    """c_tr: m/s, from leaf to air"""
    heat_loss: Scalar = 6.1
    """c_qo: W/(m2 K) through the cover"""
    solar_gain: Scalar = 0.2
    """c_rad: fraction of the outside radiation that warms the air"""
    leakage: Scalar = 0.75e-4
    """c_l: m/s through closed vents"""


class Climate(NamedTuple):
    """The state of crop and air."""

    dry_weight: Scalar
    """X_d: kg/m2"""
    co2: Scalar
    """X_c: kg/m3"""
    temperature: Scalar
    """X_t: degC"""
    humidity: Scalar
    """X_h: vapour, kg/m3"""


class Control(NamedTuple):
    """Setting of the actuators."""

    co2: Scalar
    """u_c: kg/(m2 s)"""
    ventilation: Scalar
    """u_v: m3 of air a m2 of floor and second, m/s"""
    heating: Scalar
    """u_q: W/m2"""


class Weather(NamedTuple):
    """Conditions outside."""

    radiation: Scalar
    """V_r: global radiation, W/m2"""
    co2: Scalar
    """V_c: kg/m3"""
    temperature: Scalar
    """V_t: degC"""
    humidity: Scalar
    """V_h: vapour, kg/m3"""


def canopy(dry_weight: Scalar) -> Scalar:
    """Return the fraction of the floor that the crop covers, in [0, 1)."""
    return 1.0 - jnp.exp(-CANOPY_CLOSURE * dry_weight)


def assimilation(climate: Climate, radiation: Scalar, house: Greenhouse) -> Scalar:
    """Return g: carbon dioxide assimilated, kg/(m2 s)."""
    t = climate.temperature
    conductance = (-5.11e-6 * t + 2.30e-4) * t - 6.29e-4
    supply = jnp.maximum(conductance, 0.0) * jnp.maximum(climate.co2 - COMPENSATION_POINT, 0.0)
    light = house.light_use * radiation
    return canopy(climate.dry_weight) * light * supply / (light + supply + _TINY)


def leaf_vapour_density(temperature: Scalar) -> Scalar:
    """Return the vapour density in the leaf at a temperature (degC), kg/m3."""
    return (
        9348.0
        / 8314.0
        / (temperature + KELVIN)
        * jnp.exp(17.4 * temperature / (temperature + 239.0))
    )


def derivative(climate: Climate, control: Control, weather: Weather, house: Greenhouse) -> Climate:
    """Return the state's time derivative, per second."""
    return _split(climate, control, weather, house, Climate(0.0, 0.0, 0.0, 0.0))


def decay_rates(climate: Climate, control: Control, house: Greenhouse) -> Climate:
    """Return each state's decay rate, 1/s.

    Ventilation, the cover, and the leaves that take up vapour cause the decay.
    """
    exchange = control.ventilation + house.leakage
    return Climate(
        0.0 * climate.dry_weight,
        exchange * (1 / AIR_HEIGHT),
        (VENTILATION_HEAT * control.ventilation + house.heat_loss) * (1 / HEAT_CAPACITY),
        (exchange + canopy(climate.dry_weight) * house.transpiration) * (1 / AIR_HEIGHT),
    )


def step(
    climate: Climate,
    control: Control,
    weather: Weather,
    house: Greenhouse,
    duration: float,
    substeps: int = SUBSTEPS,
) -> Climate:
    """Return the state ``duration`` seconds later, under constant control and weather."""
    rates = decay_rates(climate, control, house)
    return exponential_rk4(
        lambda now: _split(now, control, weather, house, rates),
        rates,
        climate,
        duration / substeps,
        substeps,
    )


def _split(
    climate: Climate, control: Control, weather: Weather, house: Greenhouse, rates: Climate
) -> Climate:
    """Return the derivative without the decay ``-rates * climate``."""
    covered = canopy(climate.dry_weight)
    assimilated = assimilation(climate, weather.radiation, house)
    respired = (
        house.respiration
        * climate.dry_weight
        * jnp.exp(math.log(2.0) * (0.1 * climate.temperature - 2.5))
    )
    exchange = control.ventilation + house.leakage
    loss = VENTILATION_HEAT * control.ventilation + house.heat_loss
    from_leaves = covered * house.transpiration
    gained_co2 = house.respired_co2 * respired - assimilated + control.co2 + exchange * weather.co2
    warmed = control.heating + loss * weather.temperature + house.solar_gain * weather.radiation
    evaporated = (
        from_leaves * leaf_vapour_density(climate.temperature) + exchange * weather.humidity
    )
    per_height, per_capacity = 1 / AIR_HEIGHT, 1 / HEAT_CAPACITY
    return Climate(
        house.yield_factor * assimilated - respired,
        gained_co2 * per_height + (rates.co2 - exchange * per_height) * climate.co2,
        warmed * per_capacity + (rates.temperature - loss * per_capacity) * climate.temperature,
        evaporated * per_height
        + (rates.humidity - (exchange + from_leaves) * per_height) * climate.humidity,
    )


def co2_ppm(density: Scalar, temperature: Scalar) -> Scalar:
    """Convert carbon dioxide from kg/m3 and degC to parts per million of air."""
    return density * (temperature + KELVIN) * (1e6 * GAS_CONSTANT / (PRESSURE * CO2_MOLAR_MASS))


def co2_density(ppm: Scalar, temperature: Scalar) -> Scalar:
    """Convert to kg/m3: the inverse of :func:`co2_ppm`."""
    return ppm / (temperature + KELVIN) * (1e-6 * PRESSURE * CO2_MOLAR_MASS / GAS_CONSTANT)


def saturation_density(temperature: Scalar) -> Scalar:
    """Return the vapour density of saturated air at a temperature (degC), kg/m3.

    Source: Magnus formula.
    """
    pressure = 610.78 * jnp.exp(17.2694 * temperature / (temperature + 238.3))
    return pressure / (temperature + KELVIN) * (WATER_MOLAR_MASS / GAS_CONSTANT)


def relative_humidity(density: Scalar, temperature: Scalar) -> Scalar:
    """Return relative humidity in per cent, at most 100: a hygrometer shows no more."""
    return jnp.minimum(100.0, 100.0 * density / saturation_density(temperature))
