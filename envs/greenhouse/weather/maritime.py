"""Synthetic weather of a temperate maritime climate.

The sun follows from geometry; clouds, warmth and dryness are random.

Radiation: the sun's elevation follows from latitude, declination (Cooper 1969,
doi:10.1016/0038-092X(69)90047-4) and true solar time. Radiation is 910 sin(elevation) - 30 W/m2
under a clear sky, and 1 - 0.75 N^3.4 of that under a cloud cover N in [0, 1] (Kasten & Czeplak
1980, doi:10.1016/0038-092X(80)90391-6, measured at Hamburg).

Temperature: a cosine through the year and one through the day (the wider, the clearer the sky), and
spells of some days. The yearly mean of 10.1 degC and half-range of 7.4 K are near the 1981-2010
normals of De Bilt, the Netherlands (January 3.1, July 17.9 degC).

Humidity: the dew point stays some kelvin under the mean temperature of the day, so that relative
humidity falls in the afternoon and nights come near saturation.

Clouds, spells and dryness are first-order autoregressive: three standard normal numbers that start
from their stationary distribution. So only their present values have to be stored.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp

from ..physics.van_henten import Weather, co2_density, saturation_density

Scalar = Any

HOUR = 3600.0
YEAR = 365.0
"""days"""
OUTSIDE_CO2 = 420.0
"""ppm"""
CLOUD_MEMORY = 12 * HOUR
SPELL_MEMORY = 96 * HOUR
DRYNESS_MEMORY = 24 * HOUR
"""s: times in which the correlation falls to 1 / e."""
CLOUD_SPREAD = 2.0
"""Standard deviation of the logit of cloud cover.

It makes clear and overcast skies more frequent than broken ones.
"""
YEARLY_MEAN = 10.1
"""degC"""
YEARLY_SWING = 7.4
"""K: half the range of the year's course"""
COLDEST_DAY = 20.0
"""Day of the year"""
SPELL = 3.0
"""K: standard deviation of the daily mean from its season's."""
CLEAR_DAY_SWING = 5.5
"""K: half the range of a clear day"""
CLOUDED_PART = 0.65
"""Fraction of that range that full cover takes away"""
WARMEST_HOUR = 15.0
"""h"""
DEW_POINT_DEPRESSION = 4.0
"""K: median difference of the daily mean and the dew point"""
DRYNESS_SPREAD = 0.5
"""Standard deviation of the logarithm of that difference"""


class Site(NamedTuple):
    """Place and season in which a crop grows."""

    latitude: Scalar
    """rad"""
    start: Scalar
    """Day of the year at the beginning, at midnight; 0 is 1 January."""
    warmth: Scalar
    """K over the climate's mean"""
    cloudiness: Scalar
    """Logit of the median cloud cover"""


class Sky(NamedTuple):
    """Random part of the present weather; each number standard normal."""

    cloud: Scalar
    spell: Scalar
    dryness: Scalar


def next_sky(sky: Sky, noise: Any, duration: float) -> Sky:
    """Return the sky ``duration`` seconds later, from three standard normal numbers."""
    following = []
    for now, fresh, memory in zip(
        sky, noise, (CLOUD_MEMORY, SPELL_MEMORY, DRYNESS_MEMORY), strict=True
    ):
        persistence = math.exp(-duration / memory)
        following.append(persistence * now + math.sqrt(1 - persistence * persistence) * fresh)
    return Sky(*following)


def sun_height(site: Site, time: Scalar) -> Scalar:
    """Return the sine of the sun's elevation, ``time`` seconds after the start."""
    day = site.start + time * (1 / (24 * HOUR))
    # Cooper counts from 1.
    declination = math.radians(23.45) * jnp.sin((2 * math.pi / YEAR) * (day + 285.0))
    return jnp.sin(site.latitude) * jnp.sin(declination) - jnp.cos(site.latitude) * jnp.cos(
        declination
    ) * jnp.cos(day_angle(time))


def day_angle(time: Scalar) -> Scalar:
    """Return rad since midnight, true solar time."""
    return (2 * math.pi / (24 * HOUR)) * jnp.mod(time, 24 * HOUR)


def weather(site: Site, sky: Sky, time: Scalar) -> Weather:
    """Return the weather outside, ``time`` seconds after the start."""
    logit = site.cloudiness + CLOUD_SPREAD * sky.cloud
    log_cover = -jnp.logaddexp(0.0, -logit)
    clear = jnp.maximum(0.0, 910.0 * sun_height(site, time) - 30.0)
    radiation = clear * (1 - 0.75 * jnp.exp(3.4 * log_cover))

    day = site.start + time * (1 / (24 * HOUR))
    season = (
        YEARLY_MEAN
        + site.warmth
        - YEARLY_SWING * jnp.cos((2 * math.pi / YEAR) * (day - COLDEST_DAY))
    )
    mean = season + SPELL * sky.spell
    swing = CLEAR_DAY_SWING * (1 - CLOUDED_PART * jnp.exp(log_cover))
    temperature = mean + swing * jnp.cos(day_angle(time) - 2 * math.pi * WARMEST_HOUR / 24)
    dew_point = jnp.minimum(
        temperature, mean - DEW_POINT_DEPRESSION * jnp.exp(DRYNESS_SPREAD * sky.dryness)
    )
    return Weather(
        radiation, co2_density(OUTSIDE_CO2, temperature), temperature, saturation_density(dew_point)
    )
