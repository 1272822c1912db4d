"""The climate of a high-tech glasshouse with a thermal screen and LED lamps.

Leaves, floor, soil and cover have temperatures of their own.

Seventeen states of the climate beside the six of the crop (``tomato_crop.py``) and the water of the
root zone (``root_zone.py``). The equations are those of chapter 8 of Vanthoor 2011, A model-based
greenhouse design method, thesis Wageningen, https://edepot.wur.nl/170301, with the lamps of Katzin
et al. 2020, doi:10.1016/j.biosystemseng.2020.03.010, and Katzin 2021, thesis Wageningen,
doi:10.18174/544434, sections 7.4.2 to 7.4.6. Dimensions are Vanthoor's for the Netherlands (table
8.2), lamps are Katzin's LEDs (table 4.3). What differs:

* The cover is one layer in place of an inner and an outer one: their sides differ by less than 0.5
  K.
* What the cover does not let through it reflects and absorbs in the published ratio, 13 to 2,
  whatever it lets through.
* Water stress, which they do not have: ``root_zone.py``.
* The rate at which air mixes through the open screen has a finite slope where the temperatures are
  equal (``MIN_DENSITY_DIFFERENCE``), and so has convection.

Integration: ``exponential_runge_kutta.py``. Air below and above the screen mix within seconds while
it is open, so the two are integrated in their modes, in which mixing is a decay of one component.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rlbench_suite.numerics.bit_exact import computed_once

from . import root_zone, tomato_crop
from .exponential_runge_kutta import exponential_rk4
from .glasshouse import (
    AIR_CAPACITY,
    AIR_HEIGHT,
    BOUNDARY_RESISTANCE,
    COVER_AREA,
    EXTINCTION,
    FLOOR_CAPACITY,
    LATENT_HEAT,
    LEAF_CAPACITY,
    OUTER_CONVECTION,
    PIPE_CAPACITY,
    PSYCHROMETRIC,
    WATER_GAS_CONSTANT,
    WIND_CONVECTION,
    Air,
    Glasshouse,
    Outside,
    Scalar,
    co2_ppm,
    fourth,
    saturation_pressure,
    stomata,
)
from .tomato_crop import Crop, Flows, Variety

TOP_HEIGHT = 0.4
"""m of air above the screen"""
LEAF_CONVECTION = 5.0
"""W/(m2 K) of each side of a leaf"""
COVER_CAPACITY = 0.2 * math.cos(math.radians(25)) * 4e-3 * 2600 * 840
"""J/(m2 K): a tenth each for the inner and the outer side of 4 mm of glass"""
SCREEN_CAPACITY = 0.35e-3 * 200 * 1800
"""J/(m2 K)"""
SCREEN_LEAK = 0.05e-3
"""m3 of air a m2 and second through the closed screen at 1 K"""
SOIL_THICKNESSES = (0.04, 0.08, 0.16, 0.32, 0.64, 1.28)
"""m: thickness of the five layers of soil, and of the one below, whose temperature is constant"""
SOIL_CAPACITY = 1.73e6
"""J/(m3 K)"""
SOIL_CONDUCTION = 0.85
"""W/(m K)"""
FLOOR_CONDUCTION = 1.7
"""W/(m K)"""
FLOOR_DEPTH = 0.02
"""m"""
LAMP_AREA = 0.02
"""m2 a m2 of floor"""
LAMP_CAPACITY = 10.0
"""J/(m2 K)"""
LAMP_CONVECTION = 2.3
"""W/(m2 K)"""
LAMP_PAR = 0.55
"""Part of the electric power that leaves as photosynthetically active radiation"""
LAMP_NIR = 0.02
"""Part of the electric power that leaves as near infrared radiation"""
SUN_PHOTONS = 4.6
"""umol a J of photosynthetically active radiation of the sun"""
LAMP_PHOTONS = 5.4
"""umol a J of photosynthetically active radiation of the lamps"""
FRAME_ABSORPTION = 0.1
"""Part of the radiation that the frame takes and gives to the air"""
STEFAN_BOLTZMANN = 5.67e-8
"""W/(m2 K4)"""
COVER_EMISSIVITY = 0.85
SCREEN_EMISSIVITY = 0.67
METAL_EMISSIVITY = 0.88
"""Emissivity of pipes and lamps; leaves, floor and sky have 1"""
FAR_EXTINCTION = 0.94
"""Extinction of thermal radiation by leaves"""
NEAR_EXTINCTION = 0.27
"""Extinction of near infrared radiation by leaves"""
PIPE_SURFACE = math.pi * 1.875 * 51e-3
"""m2 a m2 of floor"""
MIN_DENSITY_DIFFERENCE = 1e-4
"""Difference of densities below which air mixes through the open screen at a constant rate, kg/m3.

The value is chosen, not measured.
"""
SUBSTEPS = 20
"""Steps of the integration in half an hour.

They grow evenly from 4.5 s to 175 s, because jumps of the setting fade at first. tests/greenhouse
measures their error against a stiff solver.
"""
DOUBLINGS = 6
MAX_DECAY_RATE = 3 * 2**DOUBLINGS / (1800 * (2 * SUBSTEPS - 1) / SUBSTEPS**2)
"""1/s: largest decay rate that the integration takes in the last step"""


class Nodes(NamedTuple):
    """Parts of the glasshouse that have a state beside the air below the screen and the pipes."""

    canopy: Scalar
    floor: Scalar
    soil_1: Scalar
    soil_2: Scalar
    soil_3: Scalar
    soil_4: Scalar
    soil_5: Scalar
    screen: Scalar
    cover: Scalar
    lamps: Scalar
    top: Scalar
    """degC, all; the last is the air above the screen"""
    top_co2: Scalar
    """mg/m3"""
    top_vapour: Scalar
    """Pa"""


class Climate(NamedTuple):
    """All that is integrated."""

    air: Air
    """below the screen; its temperature is the air's alone here"""
    nodes: Nodes
    crop: Crop
    harvest: Scalar
    """mg/m2 of CH2O: fruit picked so far"""
    water: Scalar
    """kg/m2 in the root zone that plants can use; above its capacity until it has drained"""


class Setting(NamedTuple):
    """Setting of the devices."""

    heating: Scalar
    """W/m2 into the pipes"""
    vents: Scalar
    """Opening of the roof vents, in [0, 1]"""
    co2: Scalar
    """mg/(m2 s)"""
    screen: Scalar
    """Closed part of the screen, in [0, 1]"""
    lamps: Scalar
    """W/m2 of electricity"""
    irrigation: Scalar
    """kg/(m2 s)"""


class Rates(NamedTuple):
    """Approximate decay rate of each state that is not slow.

    The rates of the two airs leave out their mixing.
    """

    temperature: Scalar
    co2: Scalar
    vapour: Scalar
    top: Scalar
    top_co2: Scalar
    top_vapour: Scalar
    canopy: Scalar
    screen: Scalar
    cover: Scalar
    lamps: Scalar
    """1/s"""
    mixed: Scalar
    """m/s: air that the two airs exchange, or soon will"""


class Driving(NamedTuple):
    """Fluxes that drive the state."""

    air: Air
    """Slopes a second; that of carbon dioxide lacks what is dosed and what the crop takes up"""
    nodes: Nodes
    """Slopes a second"""
    light: Scalar
    """umol/(m2 s) of photons that the canopy absorbs"""
    transpired: Scalar
    """kg/(m2 s) from leaves"""


class Fluxes(NamedTuple):
    """Fluxes that drive the state, its rates of decay, and what enters and leaves it."""

    driving: Driving
    rates: Rates
    sun: Scalar
    """W/m2 of sun that the glasshouse absorbs"""
    outward: Scalar
    """W/m2 of heat without vapour to the air outside, the sky and the deep soil"""
    condensed: Scalar
    vented_vapour: Scalar
    """kg/(m2 s): to screen and cover; out with the air"""
    vented_co2: Scalar
    """mg/(m2 s): out with the air"""


class Layer(NamedTuple):
    """A layer that lets radiation through and reflects it upwards and downwards."""

    through: Scalar
    upwards: Scalar
    downwards: Scalar


def stack_layers(upper: Layer, lower: Layer) -> Layer:
    """Return the layer that two make together (8.14 to 8.16)."""
    between = 1 / (1 - upper.downwards * lower.upwards)
    return Layer(
        upper.through * lower.through * between,
        upper.upwards + upper.through * upper.through * lower.upwards * between,
        lower.downwards + lower.through * lower.through * upper.downwards * between,
    )


def sky_temperature(outside: Outside) -> Scalar:
    """Return the temperature of a sky half under clouds, degC.

    Clear air radiates after Brutsaert 1975, doi:10.1029/WR011i005p00742, clouds after Monteith and
    Unsworth 2013, Principles of environmental physics, section 5.3. The cloud cover of one half is
    chosen: records have none.
    """
    kelvin = outside.temperature + 273.15
    clear = 1.24 * jnp.exp((1 / 7) * jnp.log(0.01 * outside.vapour / kelvin))
    return kelvin * jnp.sqrt(jnp.sqrt((1 - 0.84 * 0.5) * clear + 0.84 * 0.5)) - 273.15


class Shortwave(NamedTuple):
    """Radiation of sun and lamps that parts absorb, W/m2, and light."""

    canopy: Scalar
    floor: Scalar
    air: Scalar
    cover: Scalar
    sun: Scalar
    """Sum of what comes from the sun"""
    bright: Scalar
    """W/m2 above the canopy"""
    light: Scalar
    """umol/(m2 s) of photons that the canopy absorbs"""


def shortwave(area: Scalar, setting: Setting, outside: Outside, house: Glasshouse) -> Shortwave:
    """Return what leaves of an area index and the other parts absorb.

    Source: Vanthoor 2011, 8.3; Katzin 2021, 7.4.3 and 7.4.4.
    """
    closed = setting.screen
    reflected = (13 / 15) * (1 - house.transmission)
    roof = Layer(house.transmission, reflected, reflected)
    cloth = Layer(1 - 0.4 * closed, 0.35 * closed, 0.35 * closed)
    cover = stack_layers(stack_layers(roof, cloth), Layer(1 - LAMP_AREA, 0.0, 0.0))
    dark, clear = jnp.exp(-EXTINCTION * area), jnp.exp(-NEAR_EXTINCTION * area)
    caught = 0.93 * (1 - dark) * (1 + 0.65 * dark)  # from above, and once more from the floor
    leaves = Layer(clear, 0.35 * (1 - clear), 0.35 * (1 - clear))
    house_layer = stack_layers(
        stack_layers(Layer(1 - cover.upwards, cover.upwards, cover.upwards), leaves),
        Layer(0.5, 0.5, 0.5),
    )
    near_canopy, near_floor = 1 - house_layer.through - house_layer.upwards, house_layer.through

    half = 0.5 * outside.radiation  # photosynthetically active, and near infrared
    par = (1 - FRAME_ABSORPTION) * half * cover.through
    lamp_par, lamp_near = LAMP_PAR * setting.lamps, LAMP_NIR * setting.lamps
    lamp_canopy = lamp_par * caught + lamp_near * 0.65 * (1 - clear)
    lamp_floor = lamp_par * 0.35 * dark + lamp_near * 0.5 * clear
    canopy = par * caught + (1 - FRAME_ABSORPTION) * near_canopy * half
    floor = par * 0.35 * dark + (1 - FRAME_ABSORPTION) * near_floor * half
    frame = FRAME_ABSORPTION * (cover.through + near_canopy + near_floor) * half
    glass = 2 * (1 - cover.through - cover.upwards) * half
    return Shortwave(
        canopy + lamp_canopy,
        floor + lamp_floor,
        frame + lamp_par + lamp_near - lamp_canopy - lamp_floor,
        glass,
        canopy + floor + frame + glass,
        (1 - FRAME_ABSORPTION) * cover.through * outside.radiation + lamp_par + lamp_near,
        caught * (SUN_PHOTONS * par + LAMP_PHOTONS * lamp_par),
    )


class Thermal(NamedTuple):
    """Thermal radiation that parts gain, W/m2, and what the cover gives to the sky."""

    canopy: Scalar
    floor: Scalar
    screen: Scalar
    cover: Scalar
    lamps: Scalar
    pipe: Scalar
    sky: Scalar


def thermal(state: Climate, closed: Scalar, outside: Outside, house: Glasshouse) -> Thermal:
    """Return the exchange by thermal radiation (tables 8.3 and 7.4).

    The cover lets none through.
    """
    nodes = state.nodes
    can, flr, scr, cov, pipe, lamp, sky = (
        STEFAN_BOLTZMANN * fourth(x + 273.15)
        for x in (
            nodes.canopy, nodes.floor, nodes.screen, nodes.cover, state.air.pipe, nodes.lamps,
            sky_temperature(outside)
        )
    )  # fmt: skip
    dim = jnp.exp(-FAR_EXTINCTION * tomato_crop.leaf_area_index(state.crop))
    beside, past = 1 - 0.49 * PIPE_SURFACE, 1 - 0.85 * closed  # beside the pipes, past the screen
    shade, from_pipe, from_lamp = (
        1 - LAMP_AREA,
        0.49 * PIPE_SURFACE * METAL_EMISSIVITY,
        LAMP_AREA * METAL_EMISSIVITY,
    )
    can_cov = (1 - dim) * COVER_EMISSIVITY * shade * past * (can - cov)
    can_scr = (1 - dim) * SCREEN_EMISSIVITY * shade * closed * (can - scr)
    can_flr = (1 - dim) * beside * (can - flr)
    pipe_cov = from_pipe * COVER_EMISSIVITY * shade * past * dim * (pipe - cov)
    pipe_scr = from_pipe * SCREEN_EMISSIVITY * shade * closed * dim * (pipe - scr)
    pipe_flr, pipe_can = from_pipe * (pipe - flr), from_pipe * (1 - dim) * (pipe - can)
    flr_cov = COVER_EMISSIVITY * shade * past * beside * dim * (flr - cov)
    flr_scr = SCREEN_EMISSIVITY * shade * closed * beside * dim * (flr - scr)
    scr_cov = SCREEN_EMISSIVITY * COVER_EMISSIVITY * closed * (scr - cov)
    lamp_cov = from_lamp * COVER_EMISSIVITY * past * (lamp - cov)
    lamp_scr = from_lamp * SCREEN_EMISSIVITY * closed * (lamp - scr)
    lamp_can = from_lamp * (1 - dim) * (lamp - can)
    lamp_flr = from_lamp * beside * dim * (lamp - flr)
    lamp_pipe = from_lamp * METAL_EMISSIVITY * 0.49 * PIPE_SURFACE * dim * (lamp - pipe)
    to_sky = house.heat_loss * COVER_EMISSIVITY * (cov - sky)
    return Thermal(
        lamp_can + pipe_can - can_cov - can_scr - can_flr,
        lamp_flr + can_flr + pipe_flr - flr_cov - flr_scr,
        can_scr + flr_scr + pipe_scr + lamp_scr - scr_cov,
        can_cov + flr_cov + pipe_cov + scr_cov + lamp_cov - to_sky,
        -(lamp_cov + lamp_scr + lamp_can + lamp_flr + lamp_pipe),
        lamp_pipe - pipe_cov - pipe_scr - pipe_flr - pipe_can,
        to_sky,
    )


def moving_air(
    t: Scalar, top: Scalar, setting: Setting, outside: Outside, house: Glasshouse
) -> tuple[Scalar, Scalar, Scalar]:
    """Return the flows of air that leak below the screen, leave above it, and pass it, m/s.

    Equations 8.41, 8.65 and 8.71.
    """
    driven = jnp.sqrt(
        jnp.abs(9.81 * 0.68 * (t - outside.temperature)) / (t + outside.temperature + 546.3)
        + 0.09 * outside.wind * outside.wind
        + 1e-12
    )
    leak = 0.5 * house.leakage * jnp.maximum(outside.wind, 0.25)
    dense, dense_top = (28.96 * 101_325 / 8314 / (x + 273.15) for x in (t, top))
    difference = jnp.sqrt(
        (dense - dense_top) * (dense - dense_top) + MIN_DENSITY_DIFFERENCE * MIN_DENSITY_DIFFERENCE
    )
    opening = 1 - setting.screen
    through = opening * jnp.sqrt(opening) * jnp.sqrt(9.81 * difference / (dense + dense_top))
    leaked = setting.screen * SCREEN_LEAK * _power(t - top, 0.66)
    return leak, 0.375 * house.vents * setting.vents * driven + leak, through + leaked


def fluxes(
    state: Climate, setting: Setting, outside: Outside, house: Glasshouse, deep: Scalar
) -> Fluxes:
    """Return all fluxes but the crop's own.

    Args:
        state: of the climate.
        setting: of the devices.
        outside: the weather.
        house: constants of the glasshouse.
        deep: temperature of the soil below the five layers, degC.
    """
    air, nodes = state.air, state.nodes
    t, can, top = air.temperature, nodes.canopy, nodes.top
    area = tomato_crop.leaf_area_index(state.crop)
    shortwave_heat = shortwave(area, setting, outside, house)
    longwave = thermal(state, setting.screen, outside, house)
    leak, roof_air, mixed = moving_air(t, top, setting, outside, house)

    # Convection and conduction (table 8.4).
    k_can = 2 * LEAF_CONVECTION * area
    k_flr = jnp.where(
        nodes.floor > t, 1.7 * _power(nodes.floor - t, 0.33), 1.3 * _power(nodes.floor - t, 0.25)
    )
    k_scr, k_scr_top = (1.7 * setting.screen * _power(nodes.screen - x, 0.33) for x in (t, top))
    k_cov = 1.86 * COVER_AREA * _power(top - nodes.cover, 0.33)
    k_out = house.heat_loss * COVER_AREA * (OUTER_CONVECTION + WIND_CONVECTION * outside.wind)
    k_pipe = 1.99 * PIPE_SURFACE * _power(air.pipe - t, 0.32)
    can_air = k_can * (can - t)
    air_flr = k_flr * (t - nodes.floor)
    air_scr = k_scr * (t - nodes.screen)
    scr_top, top_cov = k_scr_top * (nodes.screen - top), k_cov * (top - nodes.cover)
    cov_out, pipe_air = k_out * (nodes.cover - outside.temperature), k_pipe * (air.pipe - t)
    lamp_air = LAMP_CONVECTION * (nodes.lamps - t)
    air_top, air_out, top_out = (
        AIR_CAPACITY * flow * difference
        for flow, difference in (
            (mixed, t - top),
            (leak, t - outside.temperature),
            (roof_air, top - outside.temperature),
        )
    )
    soil = (nodes.soil_1, nodes.soil_2, nodes.soil_3, nodes.soil_4, nodes.soil_5, deep)
    downward = [
        2
        / (FLOOR_DEPTH / FLOOR_CONDUCTION + SOIL_THICKNESSES[0] / SOIL_CONDUCTION)
        * (nodes.floor - soil[0])
    ]
    downward += [
        2
        * SOIL_CONDUCTION
        / (SOIL_THICKNESSES[i] + SOIL_THICKNESSES[i + 1])
        * (soil[i] - soil[i + 1])
        for i in range(5)
    ]

    # Vapour (8.42 to 8.52).
    lack = saturation_pressure(can) - air.vapour
    resistance = BOUNDARY_RESISTANCE + stomata(shortwave_heat.bright, 0.554 * air.co2, lack, house)
    k_vapour = 2 * AIR_CAPACITY * area / (LATENT_HEAT * PSYCHROMETRIC * resistance)
    transpired = k_vapour * jnp.where(lack > 0, root_zone.stress(state.water), 1.0) * lack
    wet_screen, wet_cover = 6.4e-9 * k_scr, 6.4e-9 * k_cov
    on_screen = _condense(wet_screen, air.vapour - saturation_pressure(nodes.screen))
    on_cover = _condense(wet_cover, nodes.top_vapour - saturation_pressure(nodes.cover))
    damp, damp_top, damp_out = (
        vapour / (x + 273.15) * (1 / WATER_GAS_CONSTANT)
        for vapour, x in (
            (air.vapour, t),
            (nodes.top_vapour, top),
            (outside.vapour, outside.temperature),
        )
    )
    up = mixed * (damp - damp_top)
    side_vapour = leak * (damp - damp_out)
    roof_vapour = roof_air * (damp_top - damp_out)
    co2_up, side_co2 = mixed * (air.co2 - nodes.top_co2), leak * (air.co2 - outside.co2)
    roof_co2 = roof_air * (nodes.top_co2 - outside.co2)

    leaf = LEAF_CAPACITY * area
    to_top = 1 / (AIR_CAPACITY * TOP_HEIGHT)
    to_air = 1 / (AIR_CAPACITY * AIR_HEIGHT)
    expand, expand_top = ((x + 273.15) * WATER_GAS_CONSTANT for x in (t, top))
    slopes = Nodes._make(
        (
            (shortwave_heat.canopy + longwave.canopy - can_air - LATENT_HEAT * transpired) / leaf,
            (shortwave_heat.floor + longwave.floor + air_flr - downward[0]) * (1 / FLOOR_CAPACITY),
            *(
                (downward[i] - downward[i + 1]) * (1 / (SOIL_CAPACITY * SOIL_THICKNESSES[i]))
                for i in range(5)
            ),
            (longwave.screen + air_scr + LATENT_HEAT * on_screen - scr_top) * (1 / SCREEN_CAPACITY),
            (shortwave_heat.cover + longwave.cover + top_cov + LATENT_HEAT * on_cover - cov_out)
            * (1 / COVER_CAPACITY),
            ((1 - LAMP_PAR - LAMP_NIR) * setting.lamps + longwave.lamps - lamp_air)
            * (1 / LAMP_CAPACITY),
            (air_top + scr_top - top_cov - top_out) * to_top,
            (co2_up - roof_co2) * (1 / TOP_HEIGHT),
            (up - on_cover - roof_vapour) * expand_top * (1 / TOP_HEIGHT),
        )
    )
    warmed = (
        can_air + shortwave_heat.air + lamp_air + pipe_air - air_flr - air_scr - air_top - air_out
    )
    # Airs of equal temperature hardly mix, until open vents cool the upper one within seconds: the
    # step needs the rate at which mixing replaces the heat that the upper air loses. A rate that is
    # too large costs accuracy only.
    lost_above = jnp.abs(scr_top - top_cov - top_out) * (1 / AIR_CAPACITY)
    opening = 1 - setting.screen
    mixed_soon = opening * jnp.exp((1 / 3) * jnp.log(9.81 * lost_above / (t + top + 546.3) + 1e-9))
    rates = Rates(
        (k_can + 1.3 * k_flr + 1.33 * k_scr + k_pipe + LAMP_CONVECTION + AIR_CAPACITY * leak)
        * to_air,
        leak * (1 / AIR_HEIGHT),
        (leak / expand + k_vapour + wet_screen) * expand * (1 / AIR_HEIGHT),
        (1.33 * (k_cov + k_scr_top) + AIR_CAPACITY * roof_air) * to_top,
        roof_air * (1 / TOP_HEIGHT),
        (roof_air / expand_top + wet_cover) * expand_top * (1 / TOP_HEIGHT),
        (
            k_can
            + 12 * (1 - jnp.exp(-FAR_EXTINCTION * area))
            + LATENT_HEAT * k_vapour * _steepness(can)
        )
        / leaf,
        (
            1.33 * (k_scr + k_scr_top)
            + 8 * setting.screen
            + LATENT_HEAT * wet_screen * _steepness(nodes.screen)
        )
        * (1 / SCREEN_CAPACITY),
        (1.33 * k_cov + k_out + 9 + LATENT_HEAT * wet_cover * _steepness(nodes.cover))
        * (1 / COVER_CAPACITY),
        (LAMP_CONVECTION + 0.2) * (1 / LAMP_CAPACITY),
        jnp.maximum(mixed, mixed_soon),
    )
    below = Air(
        warmed * to_air,
        -(co2_up + side_co2) * (1 / AIR_HEIGHT),
        (transpired - on_screen - up - side_vapour) * expand * (1 / AIR_HEIGHT),
        (setting.heating + longwave.pipe - pipe_air) * (1 / PIPE_CAPACITY),
    )
    return Fluxes(
        Driving(below, slopes, shortwave_heat.light, transpired),
        rates,
        shortwave_heat.sun,
        air_out + top_out + cov_out + longwave.sky + downward[5],
        on_screen + on_cover,
        side_vapour + roof_vapour,
        side_co2 + roof_co2,
    )


def crop_flows(state: Climate, light: Scalar, variety: Variety) -> Flows:
    """Return the crop's flows.

    A dry root zone closes the stomata to carbon dioxide as it does to vapour.
    """
    ppm = co2_ppm(state.air.co2, state.air.temperature)
    flow = tomato_crop.flows(state.crop, state.nodes.canopy, ppm, light, variety)
    return flow._replace(assimilated=root_zone.stress(state.water) * flow.assimilated)


def derivative(
    state: Climate,
    setting: Setting,
    outside: Outside,
    house: Glasshouse,
    variety: Variety,
    deep: Scalar,
) -> Climate:
    """Return the state's time derivative, per second."""
    return _slopes(state, setting, fluxes(state, setting, outside, house, deep).driving, variety)


def _slopes(state: Climate, setting: Setting, driving: Driving, variety: Variety) -> Climate:
    flow = crop_flows(state, driving.light, variety)
    dosed = (setting.co2 - tomato_crop.uptake(flow)) * (1 / AIR_HEIGHT)
    return Climate(
        driving.air._replace(co2=driving.air.co2 + dosed),
        driving.nodes,
        tomato_crop.derivative(state.crop, flow, state.nodes.canopy),
        flow.picked,
        setting.irrigation - jnp.maximum(0.0, driving.transpired),
    )


class Modes(NamedTuple):
    """Change of variables between the two airs and the modes of their exchange.

    It is a rotation of scaled values.
    """

    cosine: Scalar
    sine: Scalar
    slow: Scalar
    fast: Scalar
    """1/s: decay of the modes"""

    def to_modes(self, low: Scalar, top: Scalar) -> tuple[Scalar, Scalar]:
        """Return the modes of a pair of values."""
        low, top = math.sqrt(AIR_HEIGHT) * low, math.sqrt(TOP_HEIGHT) * top
        return self.cosine * low + self.sine * top, self.cosine * top - self.sine * low

    def from_modes(self, slow: Scalar, fast: Scalar) -> tuple[Scalar, Scalar]:
        """Return the pair of values of modes."""
        low, top = self.cosine * slow - self.sine * fast, self.sine * slow + self.cosine * fast
        return low * (1 / math.sqrt(AIR_HEIGHT)), top * (1 / math.sqrt(TOP_HEIGHT))


def modes(low: Scalar, top: Scalar, mixed: Scalar) -> Modes:
    """Return the modes of two airs with decay rates of their own (1/s) that mix (m/s)."""
    coupling = mixed * (1 / math.sqrt(AIR_HEIGHT * TOP_HEIGHT))
    low_rate, top_rate = low + mixed * (1 / AIR_HEIGHT), top + mixed * (1 / TOP_HEIGHT)
    half = 0.5 * (top_rate - low_rate)
    radius = jnp.sqrt(half * half + coupling * coupling + 1e-20)
    along = jnp.abs(half) + radius
    tangent = coupling / along
    large = jnp.sqrt(1 / (1 + tangent * tangent))
    small = tangent * large
    # The faster mode is mostly that of the air whose own rate is the larger one.
    top_is_faster = half >= 0
    cosine, sine = jnp.where(top_is_faster, large, small), jnp.where(top_is_faster, small, large)
    middle = 0.5 * (low_rate + top_rate)
    return Modes(cosine, sine, jnp.maximum(0.0, middle - radius), middle + radius)


def step(
    state: Climate,
    setting: Setting,
    outside: Outside,
    house: Glasshouse,
    variety: Variety,
    deep: Scalar,
    duration: float,
    substeps: int = SUBSTEPS,
) -> Climate:
    """Return the state ``duration`` seconds later, under constant setting and weather.

    The root zone does not drain meanwhile.
    """
    # Every part of these results is used below; see computed_once.
    rates_of = computed_once(lambda *arguments: fluxes(*arguments).rates)
    driving = computed_once(lambda *arguments: fluxes(*arguments).driving)
    slopes = computed_once(_slopes)

    def substep(i: Any, state: Climate) -> Climate:
        length = duration * (2 * i + 1) / (substeps * substeps)
        rate = rates_of(state, setting, outside, house, deep)
        # The more it mixes the further the two are apart.
        warm = modes(rate.temperature, rate.top, 1.5 * rate.mixed)
        co2, vapour = (
            modes(low, top, rate.mixed)
            for low, top in ((rate.co2, rate.top_co2), (rate.vapour, rate.top_vapour))
        )
        pairs = warm, co2, vapour

        def to_modes(y: Climate) -> Climate:
            lows, tops = y.air[:3], y.nodes[-3:]
            turned = [
                mode.to_modes(low, top) for mode, low, top in zip(pairs, lows, tops, strict=True)
            ]
            slow, fast = zip(*turned, strict=True)
            return y._replace(
                air=Air._make((*slow, y.air.pipe)), nodes=Nodes._make((*y.nodes[:-3], *fast))
            )

        def from_modes(y: Climate) -> Climate:
            turned = [
                mode.from_modes(*pair)
                for mode, *pair in zip(pairs, y.air[:3], y.nodes[-3:], strict=True)
            ]
            low, top = zip(*turned, strict=True)
            return y._replace(
                air=Air._make((*low, y.air.pipe)), nodes=Nodes._make((*y.nodes[:-3], *top))
            )

        rates = Climate(
            Air(warm.slow, co2.slow, vapour.slow, 0.0),
            Nodes(
                rate.canopy, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, rate.screen, rate.cover, rate.lamps,
                warm.fast, co2.fast, vapour.fast,
            ),
            Crop(0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
            0.0,
            0.0,
        )  # fmt: skip

        def remainder(y: Climate) -> Climate:
            real = from_modes(y)
            slope = to_modes(
                slopes(real, setting, driving(real, setting, outside, house, deep), variety)
            )
            return jax.tree.map(lambda d, rate, value: d + rate * value, slope, rates, y)

        return from_modes(
            exponential_rk4(remainder, rates, to_modes(state), length, 1, doublings=DOUBLINGS)
        )

    return jax.lax.fori_loop(0, substeps, substep, state)


def _condense(conductance: Scalar, excess: Scalar) -> Scalar:
    """Return what condenses at an excess of vapour pressure, kg/(m2 s) (8.43)."""
    return conductance * excess / (1 + jnp.exp(jnp.minimum(60.0, -0.1 * excess)))


def _steepness(temperature: Scalar) -> Scalar:
    """Return the slope of the saturated vapour pressure, Pa/K."""
    over = temperature + 238.3
    return saturation_pressure(temperature) * (17.2694 * 238.3) / (over * over)


def _power(x: Scalar, exponent: float) -> Scalar:
    """Return ``|x|`` to a power, with a finite slope at 0."""
    return jnp.exp((0.5 * exponent) * jnp.log(x * x + 1e-6))
