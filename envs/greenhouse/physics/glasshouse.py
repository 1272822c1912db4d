"""The climate of a glasshouse with a tomato crop.

Its states are air temperature, carbon dioxide, vapour, and the temperature of the heating pipes.

Four states of the air beside the six of the crop (``tomato_crop.py``). The equations are those of
chapter 8 of Vanthoor 2011, A model-based greenhouse design method, thesis Wageningen,
https://edepot.wur.nl/170301 (also Vanthoor et al. 2011, doi:10.1016/j.biosystemseng.2011.06.001),
without screens, lamps, air above a screen, and soil. What lies together here and apart there:

* Air, canopy and floor have one temperature; their capacities add up (a floor of 2 cm of concrete).
* All solar radiation that crop and floor absorb warms that air: 0.85 of what the cover lets
  through.
* The cover has no state. Its inner side exchanges heat with the air by convection (1.86 |dT|^0.33)
  and by a constant 4.5 W/(m2 K) in place of thermal radiation; its outer side by wind. Heat set
  free by condensation leaves through it.
* Vents open in the roof alone; half as high again as the leakage of the original, because it enters
  the air whole.

Integration: ``exponential_runge_kutta.py``; decay by ventilation, cover, leaves and condensation is
integrated exactly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.numerics.bit_exact import computed_once

from . import tomato_crop
from .exponential_runge_kutta import exponential_rk4
from .tomato_crop import Crop, Flows, Variety

Scalar = Any

AIR_HEIGHT = 3.8
"""m of air over the floor"""
AIR_CAPACITY = 1200.0
"""J/(m3 K)"""
FLOOR_CAPACITY = 40_480.0
"""J/(m2 K) a m2 of floor"""
LEAF_CAPACITY = 1200.0
"""J/(m2 K) a m2 of leaf"""
COVER_AREA = 1.286
"""m2 of cover a m2 of floor"""
LATENT_HEAT = 2.45e6
"""J/kg"""
PSYCHROMETRIC = 65.8
"""Pa/K"""
BOUNDARY_RESISTANCE = 275.0
"""s/m, of leaves"""
WATER_GAS_CONSTANT = 8314.0 / 18.0
"""J/(kg K), of vapour"""
OUTER_CONVECTION = 2.8
"""W/(m2 K), without wind"""
WIND_CONVECTION = 1.2
"""W s/(m3 K), by the wind's speed"""
PIPE_AREA = 0.3
"""m2 of pipe a m2 of floor"""
PIPE_CAPACITY = (
    0.25 * 3.141592653589793 * 1.875 * ((0.051**2 - 0.047**2) * 7850 * 640 + 0.047**2 * 1000 * 4180)
)
"""J/(m2 K): steel and water of 1.875 m of pipe a m2 of floor"""
RADIATION_CONSTANT = 0.88 * 5.67e-8
"""W/(m2 K4), of pipes"""
LIGHT = 4.6 * 0.5 * 0.9 * 0.93
"""umol of absorbed photons a J of radiation through the cover, under full cover by leaves"""
EXTINCTION = 0.7
SUBSTEP = 450.0
"""Length of an integration step, s.

tests/greenhouse measures its error against a stiff solver.
"""
MAX_DECAY_RATE = 3 * 2**4 / SUBSTEP
"""1/s: largest decay rate that the integration takes"""


class Glasshouse(NamedTuple):
    """Constants in which glasshouses differ."""

    transmission: Scalar = 0.78
    """Part of the outside radiation that the cover lets through.

    The tenth that the frame takes is counted apart.
    """
    heat_loss: Scalar = 1.0
    """Factor of the heat exchanged through the cover"""
    leakage: Scalar = 1e-4
    """m3 of air a m2 of floor and second, for each m/s of wind, through closed vents"""
    vents: Scalar = 0.1
    """m2 of roof vents a m2 of floor"""
    stomatal_resistance: Scalar = 82.0
    """s/m: least resistance of the stomata"""


class Air(NamedTuple):
    """The state of the climate."""

    temperature: Scalar
    """degC: air, canopy and floor"""
    co2: Scalar
    """mg/m3"""
    vapour: Scalar
    """Pa"""
    pipe: Scalar
    """degC"""


class House(NamedTuple):
    """The whole state."""

    air: Air
    crop: Crop
    harvest: Scalar
    """mg/m2 of CH2O: fruit picked so far"""


class Control(NamedTuple):
    """Setting of the actuators."""

    heating: Scalar
    """W/m2 into the pipes"""
    vents: Scalar
    """Opening of the roof vents, in [0, 1]"""
    co2: Scalar
    """mg/(m2 s)"""


class Outside(NamedTuple):
    """Conditions outside."""

    radiation: Scalar
    """W/m2, global"""
    temperature: Scalar
    """degC"""
    vapour: Scalar
    """Pa"""
    wind: Scalar
    """m/s"""
    co2: Scalar
    """mg/m3"""


class Fluxes(NamedTuple):
    """Fluxes a m2 of floor."""

    pipe: Scalar
    sun: Scalar
    cover: Scalar
    vented: Scalar
    """W/m2: from the pipes, from the sun; out through the cover and with the air, without vapour"""
    transpired: Scalar
    condensed: Scalar
    vented_vapour: Scalar
    """kg/(m2 s): from leaves; to the cover; out with the air"""
    vented_co2: Scalar
    """mg/(m2 s): out with the air"""
    exchange: Scalar
    """m/s: air that leaves and enters"""


def saturation_pressure(temperature: Scalar) -> Scalar:
    """Return the vapour pressure of saturated air, Pa."""
    return 610.78 * jnp.exp(17.2694 * temperature / (temperature + 238.3))


def co2_ppm(density: Scalar, temperature: Scalar) -> Scalar:
    """Convert carbon dioxide from mg/m3 and degC to parts per million."""
    return density * (temperature + 273.15) * (8.3144598 / (101_325.0 * 0.04401))


def co2_density(ppm: Scalar, temperature: Scalar) -> Scalar:
    """Convert to mg/m3: the inverse of :func:`co2_ppm`."""
    return ppm / (temperature + 273.15) * (101_325.0 * 0.04401 / 8.3144598)


def fluxes(air: Air, crop: Crop, control: Control, outside: Outside, house: Glasshouse) -> Fluxes:
    """Return the fluxes of heat, vapour and carbon dioxide."""
    t, difference = air.temperature, air.temperature - outside.temperature
    area = tomato_crop.leaf_area_index(crop)
    through = 0.9 * house.transmission * outside.radiation

    # Ventilation: stack and wind (8.65), leakage (8.71).
    mean = 0.5 * (t + outside.temperature) + 273.15
    driven = jnp.sqrt(
        jnp.abs(9.81 * 0.68 * difference) / (2 * mean) + 0.09 * outside.wind * outside.wind + 1e-12
    )
    exchange = 0.375 * house.vents * control.vents * driven + house.leakage * jnp.maximum(
        outside.wind, 0.25
    )
    kelvin, outside_kelvin = t + 273.15, outside.temperature + 273.15
    vented_vapour = (
        exchange
        * (air.vapour / kelvin - outside.vapour / outside_kelvin)
        * (1 / WATER_GAS_CONSTANT)
    )

    # Transpiration (8.47 to 8.52), and dew on the leaves.
    deficit = saturation_pressure(t) - air.vapour
    lack, dew = jnp.maximum(0.0, deficit), jnp.maximum(0.0, -deficit)
    resistance = stomata(through, co2_ppm(air.co2, t), lack, house)
    conductance = (2 * AIR_CAPACITY / (LATENT_HEAT * PSYCHROMETRIC)) * area
    transpired = conductance * (
        lack / (BOUNDARY_RESISTANCE + resistance) - dew * (1 / BOUNDARY_RESISTANCE)
    )

    # Cover (table 8.4).
    inner = 1.86 * _power(difference, 0.33) + 4.5
    outer = OUTER_CONVECTION + WIND_CONVECTION * outside.wind
    through_cover = house.heat_loss * COVER_AREA * inner * outer / (inner + outer)
    glass = (outside.temperature * outer + t * inner) / (inner + outer)
    wet = jnp.maximum(0.0, air.vapour - saturation_pressure(glass))
    condensed = (6.4e-9 * 1.86 * COVER_AREA) * _power(t - glass, 0.33) * wet

    # Pipes (table 8.4), by convection and radiation.
    over = air.pipe - t
    radiated = fourth(air.pipe + 273.15) - fourth(kelvin)
    pipe = PIPE_AREA * (1.99 * _power(over, 0.32) * over + RADIATION_CONSTANT * radiated)
    return Fluxes(
        pipe,
        0.85 * through,
        through_cover * difference,
        AIR_CAPACITY * exchange * difference,
        transpired,
        condensed,
        vented_vapour,
        exchange * (air.co2 - outside.co2),
        exchange,
    )


def light(crop: Crop, radiation: Scalar, house: Glasshouse) -> Scalar:
    """Return the photons that the canopy absorbs, umol/(m2 s) (8.27, 8.28)."""
    covered = 1 - jnp.exp(-EXTINCTION * tomato_crop.leaf_area_index(crop))
    return LIGHT * house.transmission * radiation * covered


def crop_flows(
    air: Air, crop: Crop, outside: Outside, house: Glasshouse, variety: Variety
) -> Flows:
    """Return the crop's flows in this climate."""
    ppm = co2_ppm(air.co2, air.temperature)
    return tomato_crop.flows(
        crop, air.temperature, ppm, light(crop, outside.radiation, house), variety
    )


def derivative(
    state: House, control: Control, outside: Outside, house: Glasshouse, variety: Variety
) -> House:
    """Return the state's time derivative, per second."""
    air, crop, _ = state
    flow = crop_flows(air, crop, outside, house, variety)
    flux = fluxes(air, crop, control, outside, house)
    warmed = flux.pipe + flux.sun - flux.cover - flux.vented - LATENT_HEAT * flux.transpired
    humid = flux.transpired - flux.condensed - flux.vented_vapour
    return House(
        Air(
            warmed / heat_capacity(crop),
            (control.co2 - tomato_crop.uptake(flow) - flux.vented_co2) * (1 / AIR_HEIGHT),
            humid * (air.temperature + 273.15) * (WATER_GAS_CONSTANT / AIR_HEIGHT),
            (control.heating - flux.pipe) * (1 / PIPE_CAPACITY),
        ),
        tomato_crop.derivative(crop, flow, air.temperature),
        flow.picked,
    )


def heat_capacity(crop: Crop) -> Scalar:
    """Return the heat capacity of air, floor and leaves, J/(m2 K)."""
    return (
        AIR_HEIGHT * AIR_CAPACITY
        + FLOOR_CAPACITY
        + LEAF_CAPACITY * tomato_crop.leaf_area_index(crop)
    )


def decay_rates(state: House, control: Control, outside: Outside, house: Glasshouse) -> House:
    """Return about each state's decay rate, 1/s, zero where it is slow.

    The integration has order four with any.
    """
    air, crop, _ = state
    exchange = fluxes(air, crop, control, outside, house).exchange
    # Leaves with half of their largest conductance, and a cover ten kelvin colder.
    leaves = (
        2 * AIR_CAPACITY / (LATENT_HEAT * PSYCHROMETRIC * 600.0)
    ) * tomato_crop.leaf_area_index(crop)
    to_cover = (leaves + 2e-8) * (air.temperature + 273.15) * WATER_GAS_CONSTANT
    warmth = (5.0 + AIR_CAPACITY * exchange) / heat_capacity(crop)
    by_air = exchange * (1 / AIR_HEIGHT)
    slow = Crop(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    return House(Air(warmth, by_air, by_air + to_cover * (1 / AIR_HEIGHT), 0.0), slow, 0.0)


def step(
    state: House,
    control: Control,
    outside: Outside,
    house: Glasshouse,
    variety: Variety,
    duration: float,
    substeps: int | None = None,
) -> House:
    """Return the state ``duration`` seconds later, under constant control and weather."""
    substeps = round(duration / SUBSTEP) if substeps is None else substeps

    slopes = computed_once(derivative)  # one kernel for all stages, so that it is compiled once

    def substep(_: Any, state: House) -> House:
        rates = decay_rates(state, control, outside, house)

        def remainder(y: House) -> House:
            slope = slopes(y, control, outside, house, variety)
            return jax.tree.map(lambda d, rate, value: d + rate * value, slope, rates, y)

        return exponential_rk4(remainder, rates, state, duration / substeps, 1, doublings=4)

    return jax.lax.fori_loop(0, substeps, substep, state)


def stomata(radiation: Scalar, ppm: Scalar, lack: Scalar, house: Glasshouse) -> Scalar:
    """Return the resistance of the stomata, s/m (8.49 to 8.52)."""
    day = 1 / (1 + jnp.exp(5.0 - radiation))
    by_co2 = jnp.minimum(
        1.5, 1 + (6.1e-7 * day + 1.1e-11 * (1 - day)) * (ppm - 200.0) * (ppm - 200.0)
    )
    by_lack = jnp.minimum(5.8, 1 + (4.3e-6 * day + 5.2e-6 * (1 - day)) * lack * lack)
    return house.stomatal_resistance * (radiation + 4.3) / (radiation + 0.54) * by_co2 * by_lack


def _power(x: Scalar, exponent: float) -> Scalar:
    """Return ``|x|`` to a power, with a finite slope at 0."""
    return jnp.exp((0.5 * exponent) * jnp.log(x * x + 1e-12))


def fourth(x: Scalar) -> Scalar:
    """Return the fourth power."""
    square = x * x
    return square * square
