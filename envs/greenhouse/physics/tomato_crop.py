"""Tomato: carbohydrates in buffer, fruit, leaves and stem, after Vanthoor.

Six states: four stores of carbohydrates in mg of CH2O a m2 of floor, the temperature sum, and a
running mean of the temperature. Equations 9.1 to 9.47 of Vanthoor 2011, A model-based greenhouse
design method, thesis Wageningen, https://edepot.wur.nl/170301; also Vanthoor et al. 2011,
doi:10.1016/j.biosystemseng.2011.08.005. Fruit is one store, as in Katzin 2021, thesis Wageningen,
doi:10.18174/544434, equations 7.43 to 7.45: it is picked when more than 300 g/m2 of it hang on the
plants.

The air's temperature stands for the canopy's. Two guards keep the equations where they make sense,
and change nothing elsewhere: the compensation point is not negative (its formula gets there in the
cold below a leaf area index of 1), and nothing is assimilated below it (the formula would gain
there).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp

Scalar = Any
"""A scalar array; on the host, where a state is described or drawn, a float."""

LEAF_AREA = 2.66e-5
"""m2 of leaf a mg of its carbohydrates"""
GENERATIVE = 1035.0
"""degC day: temperature sum at which the crop is fully generative"""
ELECTRON_TRANSPORT = 210.0
"""umol of electrons a m2 of leaf and second, at 25 degC"""
ELECTRONS = 0.385
"""Electrons a photon absorbed"""
CURVATURE = 0.7
"""Curvature of the electron transport rate"""
ACTIVATION = 37e3
"""J/mol"""
DEACTIVATION = 22e4
"""J/mol"""
ENTROPY = 710.0
"""J/(mol K)"""
GAS_CONSTANT = 8.314
"""J/(mol K)"""
STOMATA = 0.67
"""Carbon dioxide in the stomata as a part of that in the air"""
COMPENSATION = 1.7
"""ppm/K of the compensation point"""
CH2O = 0.03
"""mg of carbohydrates a umol"""
CO2_OF_CH2O = 44 / 30
"""mg of carbon dioxide a mg of carbohydrates"""
BUFFER_FULL = 20e3
"""mg/m2"""
BUFFER_EMPTY = 1e3
"""mg/m2"""
FRUIT_GROWTH = 0.328
LEAF_GROWTH = 0.095
STEM_GROWTH = 0.074
"""mg/(m2 s): potential flows out of the buffer at 20 degC"""
FRUIT_COST = 0.27
LEAF_COST = 0.28
STEM_COST = 0.30
"""Respiration for growth, a part of the growth"""
_MAINTENANCE_SHARE = 1 - math.exp(-2.85e6 * 3e-6)
"""Part of the maintenance that is respired at a relative growth rate of 3e-6 1/s"""
FRUIT_UPKEEP = 1.16e-7 * _MAINTENANCE_SHARE
LEAF_UPKEEP = 3.47e-7 * _MAINTENANCE_SHARE
STEM_UPKEEP = 1.47e-7 * _MAINTENANCE_SHARE
"""1/s: respiration for maintenance at 25 degC"""
MAX_FRUIT = 3e5
"""mg/m2"""
PICKING_RATE = 5e4
"""mg/(m2 s)"""
MAX_LEAVES = 3 / LEAF_AREA
"""mg/m2, a leaf area index of 3"""
PRUNING_RATE = 1e5
"""mg/(m2 s), as in Katzin's runs (Vanthoor: 5e4)"""
STEEPNESS = 2 * math.log(100) / 1e4
"""m2/mg: of picking and pruning"""
DAY = 86_400.0
"""s"""
DRY_MATTER = 0.06
"""kg of dry weight a kg of fresh tomatoes"""
FRESH = 1e-6 / DRY_MATTER
"""kg of fresh tomatoes a mg of carbohydrates"""
_TINY = 1e-30


class Crop(NamedTuple):
    """The state of the crop."""

    buffer: Scalar
    fruit: Scalar
    leaves: Scalar
    stem: Scalar
    """mg/m2 of CH2O, each"""
    temperature_sum: Scalar
    """degC day"""
    mean_temperature: Scalar
    """degC: over about a day"""


class Flows(NamedTuple):
    """Flows of carbohydrates, mg/(m2 s) of CH2O."""

    assimilated: Scalar
    """from the air to the buffer"""
    to_fruit: Scalar
    to_leaves: Scalar
    to_stem: Scalar
    """from the buffer"""
    growing: Scalar
    """respired from the buffer for growth"""
    fruit_upkeep: Scalar
    leaf_upkeep: Scalar
    stem_upkeep: Scalar
    """respired from the stores for maintenance"""
    picked: Scalar
    pruned: Scalar
    """fruit and leaves taken out of the greenhouse"""


class Variety(NamedTuple):
    """Constants in which crops differ; defaults are Vanthoor's."""

    electron_transport: Scalar = ELECTRON_TRANSPORT
    fruit_growth: Scalar = FRUIT_GROWTH
    maintenance: Scalar = 1.0
    """Factor of all respiration for maintenance"""


PLANTED = Crop(2e4, 312.0, 4368.0, 1560.0, 0.0, 20.5)
"""A young crop, 3.12 plants a m2 (Katzin 2021)."""


def leaf_area_index(crop: Crop) -> Scalar:
    """Return m2 of leaf a m2 of floor."""
    return LEAF_AREA * crop.leaves


def flows(crop: Crop, temperature: Scalar, ppm: Scalar, light: Scalar, variety: Variety) -> Flows:
    """Return the flows of carbohydrates.

    Args:
        crop: the state.
        temperature: of the canopy, degC.
        ppm: carbon dioxide of the air.
        light: photosynthetically active radiation that the canopy absorbs, umol/(m2 s).
        variety: constants of the crop.
    """
    mean = crop.mean_temperature
    ready = _logistic(5e-3 * (crop.buffer - BUFFER_EMPTY)) * (0.047 * mean + 0.06)
    ready = ready * _logistic(1.1587 * (mean - 15.0)) * _logistic(1.3904 * (24.5 - mean))
    bearing = _logistic(0.869 * (temperature - 10.0)) * _logistic(0.5793 * (34.0 - temperature))
    to_fruit = (
        variety.fruit_growth
        * ready
        * bearing
        * _fruiting_degree(crop.temperature_sum * (1 / GENERATIVE))
    )
    to_leaves, to_stem = LEAF_GROWTH * ready, STEM_GROWTH * ready
    upkeep = variety.maintenance * jnp.exp(0.1 * math.log(2.0) * (mean - 25.0))
    return Flows(
        assimilation(crop, temperature, ppm, light, variety),
        to_fruit,
        to_leaves,
        to_stem,
        FRUIT_COST * to_fruit + LEAF_COST * to_leaves + STEM_COST * to_stem,
        FRUIT_UPKEEP * upkeep * crop.fruit,
        LEAF_UPKEEP * upkeep * crop.leaves,
        STEM_UPKEEP * upkeep * crop.stem,
        PICKING_RATE * _logistic(STEEPNESS * (crop.fruit - MAX_FRUIT)),
        PRUNING_RATE * _logistic(STEEPNESS * (crop.leaves - MAX_LEAVES)),
    )


def derivative(crop: Crop, flow: Flows, temperature: Scalar) -> Crop:
    """Return the state's time derivative, per second."""
    return Crop(
        flow.assimilated - flow.to_fruit - flow.to_leaves - flow.to_stem - flow.growing,
        flow.to_fruit - flow.fruit_upkeep - flow.picked,
        flow.to_leaves - flow.leaf_upkeep - flow.pruned,
        flow.to_stem - flow.stem_upkeep,
        (1 / DAY) * temperature,
        (1 / DAY) * (temperature - crop.mean_temperature),
    )


def uptake(flow: Flows) -> Scalar:
    """Return the carbon dioxide that the crop takes up from the air, mg/(m2 s)."""
    upkeep = flow.fruit_upkeep + flow.leaf_upkeep + flow.stem_upkeep
    return CO2_OF_CH2O * (flow.assimilated - flow.growing - upkeep)


def assimilation(
    crop: Crop, temperature: Scalar, ppm: Scalar, light: Scalar, variety: Variety
) -> Scalar:
    """Return photosynthesis minus photorespiration, mg/(m2 s) of CH2O (equations 9.10 to 9.23)."""
    area = leaf_area_index(crop)
    kelvin = temperature + 273.15
    warmed = ACTIVATION / (GAS_CONSTANT * 298.15) - (ACTIVATION / GAS_CONSTANT) / kelvin
    hot = ENTROPY / GAS_CONSTANT - (DEACTIVATION / GAS_CONSTANT) / kelvin
    usual = 1 + math.exp(ENTROPY / GAS_CONSTANT - DEACTIVATION / (GAS_CONSTANT * 298.15))
    potential = variety.electron_transport * area * jnp.exp(warmed) * usual / (1 + jnp.exp(hot))
    absorbed = ELECTRONS * light
    transport = potential + absorbed
    rate = (transport - jnp.sqrt(transport * transport - 4 * CURVATURE * potential * absorbed)) * (
        0.5 / CURVATURE
    )
    inside = STOMATA * ppm
    lost = jnp.maximum(0.0, 20 * COMPENSATION + COMPENSATION * (temperature - 20.0) / area)
    above = jnp.maximum(0.0, inside - lost)
    net = rate * above * above / (4 * (inside + 2 * lost) * inside + _TINY)
    return CH2O * net * _logistic(5e-4 * (BUFFER_FULL - crop.buffer))


def _fruiting_degree(progress: Scalar) -> Scalar:
    """Return the degree to which the crop bears fruit, in [0, 1] (equation B.6).

    ``progress`` is the part of the temperature sum that is reached.
    """
    excess = progress - 1.0
    return 0.5 * (progress + jnp.sqrt(progress * progress + 1e-4)) - 0.5 * (
        excess + jnp.sqrt(excess * excess + 1e-4)
    )


def _logistic(x: Scalar) -> Scalar:
    return 1 / (1 + jnp.exp(-x))
