"""Synthetic weather of several climates.

The sun follows from geometry; spells of fair and unsettled weather, clouds, warmth and wind are
random.

As in ``maritime.py``, whose formulas of radiation, temperature and dew point hold here too, with
three additions:

* **Climates** differ by latitude, warmth, swing through the year and the day, dryness, wind, and
  their spells. Their constants are round numbers of the kind of a place (``CLIMATES``), not fitted
  to its records.
* **Spells**: a Markov chain in continuous time of two states, fair and unsettled. Unsettled weather
  is cloudier and windier. After a time t the chain keeps ``exp(-t (1 / fair + 1 / unsettled))`` of
  its correlation.
* **Wind**: log-normal, with a first-order autoregressive logarithm.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, NamedTuple

import jax.numpy as jnp

from .maritime import (
    CLEAR_DAY_SWING,
    CLOUD_MEMORY,
    CLOUDED_PART,
    COLDEST_DAY,
    DRYNESS_MEMORY,
    DRYNESS_SPREAD,
    HOUR,
    SPELL,
    SPELL_MEMORY,
    WARMEST_HOUR,
    YEAR,
    YEARLY_MEAN,
    YEARLY_SWING,
    Site,
    day_angle,
    sun_height,
)

Scalar = Any

CLOUD_SPREAD = 1.2
"""Standard deviation of the logit of cloud cover within a spell"""
WIND_SPREAD = 0.45
"""Standard deviation of the logarithm of the wind within a spell"""
WIND_MEMORY = 8 * HOUR
"""s: time in which the correlation of the wind falls to 1 / e"""
MAX_WIND = 18.0
"""m/s"""


class Climate(NamedTuple):
    """Constants of a climate."""

    latitude: float = 52.0
    """deg north"""
    mean: float = YEARLY_MEAN
    swing: float = YEARLY_SWING
    daily: float = CLEAR_DAY_SWING
    """degC, K, K: of the year; half the range of the year's course and of a clear day's"""
    dryness: float = 4.0
    """K: median difference of the daily mean and the dew point"""
    fair: float = 60.0
    unsettled: float = 60.0
    """h: mean durations of spells"""
    fair_cloud: float = -0.6
    unsettled_cloud: float = 2.4
    """Logits of the median cloud cover"""
    fair_wind: float = 3.0
    unsettled_wind: float = 4.5
    """m/s: medians"""

    @property
    def unsettled_part(self) -> float:
        """Part of the time that is unsettled."""
        return self.unsettled / (self.fair + self.unsettled)

    def memory(self, duration: float) -> float:
        """Return the correlation of spells ``duration`` seconds apart."""
        return math.exp(-duration / HOUR * (1 / self.fair + 1 / self.unsettled))


CLIMATES = {
    "maritime": Climate(),
    "mediterranean": Climate(37.0, 19.0, 7.0, 4.5, 7.0, 150.0, 30.0, -2.4, 1.0, 3.0, 4.5),
    "continental": Climate(40.0, 13.0, 15.0, 5.5, 9.0, 100.0, 30.0, -1.6, 1.6, 2.2, 3.0),
    "boreal": Climate(60.0, 6.5, 11.5, 4.0, 3.5, 50.0, 70.0, -0.6, 2.6, 3.0, 4.5),
}
"""Climates like those of the Netherlands, Almeria, Beijing and Helsinki."""


class Sky(NamedTuple):
    """Random part of the present weather."""

    cloud: Scalar
    spell: Scalar
    dryness: Scalar
    wind: Scalar
    """standard normal, each"""
    unsettled: Scalar
    """bool"""


class Conditions(NamedTuple):
    """Weather outside."""

    radiation: Scalar
    """W/m2, global"""
    temperature: Scalar
    dew_point: Scalar
    """degC"""
    wind: Scalar
    """m/s"""


def first_sky(climate: Climate, noise: Any) -> Sky:
    """Return a sky of the stationary distribution, from five standard normal numbers."""
    return Sky(noise[0], noise[1], noise[2], noise[3], noise[4] < _quantile(climate.unsettled_part))


def next_sky(climate: Climate, sky: Sky, noise: Any, duration: float) -> Sky:
    """Return the sky ``duration`` seconds later, from five standard normal numbers."""
    following = []
    memories = (CLOUD_MEMORY, SPELL_MEMORY, DRYNESS_MEMORY, WIND_MEMORY)
    for now, fresh, memory in zip(sky[:4], noise[:4], memories, strict=True):
        persistence = math.exp(-duration / memory)
        following.append(persistence * now + math.sqrt(1 - persistence * persistence) * fresh)
    forgotten = 1 - climate.memory(duration)
    begins = _quantile(forgotten * climate.unsettled_part)
    goes_on = _quantile(1 - forgotten * (1 - climate.unsettled_part))
    cloud, spell, dryness, wind = following
    return Sky(cloud, spell, dryness, wind, noise[4] < jnp.where(sky.unsettled, goes_on, begins))


def conditions(climate: Climate, site: Site, sky: Sky, time: Scalar) -> Conditions:
    """Return the weather outside, ``time`` seconds after the start.

    The site's cloudiness is added to the logits of the climate's median cloud covers.
    """
    usual = jnp.where(sky.unsettled, climate.unsettled_cloud, climate.fair_cloud)
    log_cover = -jnp.logaddexp(0.0, -(usual + site.cloudiness + CLOUD_SPREAD * sky.cloud))
    clear = jnp.maximum(0.0, 910.0 * sun_height(site, time) - 30.0)
    radiation = clear * (1 - 0.75 * jnp.exp(3.4 * log_cover))

    day = site.start + time * (1 / (24 * HOUR))
    season = (
        climate.mean
        + site.warmth
        - climate.swing * jnp.cos((2 * math.pi / YEAR) * (day - COLDEST_DAY))
    )
    mean = season + SPELL * sky.spell
    swing = climate.daily * (1 - CLOUDED_PART * jnp.exp(log_cover))
    temperature = mean + swing * jnp.cos(day_angle(time) - 2 * math.pi * WARMEST_HOUR / 24)
    dew_point = jnp.minimum(
        temperature, mean - climate.dryness * jnp.exp(DRYNESS_SPREAD * sky.dryness)
    )
    median = jnp.where(sky.unsettled, climate.unsettled_wind, climate.fair_wind)
    wind = jnp.minimum(MAX_WIND, median * jnp.exp(WIND_SPREAD * sky.wind))
    return Conditions(radiation, temperature, dew_point, wind)


def _quantile(fraction: float) -> float:
    """Return the standard normal number below which a part of all lie."""
    return NormalDist().inv_cdf(fraction)
