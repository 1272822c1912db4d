"""Synthetic weather of several climates against closed forms.

Tested are means, daily amplitude, spells, correlation and wind.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from rlbench_suite.envs.greenhouse.weather.climates import (
    CLIMATES,
    CLOUD_SPREAD,
    MAX_WIND,
    WIND_SPREAD,
    Climate,
    Conditions,
    Sky,
    conditions,
    first_sky,
    next_sky,
)
from rlbench_suite.envs.greenhouse.weather.maritime import CLOUD_MEMORY, CLOUDED_PART, SPELL, Site

STEP = 1800.0
SITES = {
    name: Site(np.radians(climate.latitude), 0.0, 0.0, 0.0) for name, climate in CLIMATES.items()
}


COMPILED = jax.jit(conditions)


def at(climate: Climate, site: Site, sky: Sky, time: Any) -> Conditions:
    return jax.device_get(COMPILED(climate, site, sky, time))


def skies(climate: Climate, count: int, steps: int = 0) -> tuple[Sky, Sky]:
    """Return stationary skies, and those some steps later."""
    rng = np.random.default_rng(0)
    later = first = first_sky(climate, rng.standard_normal((5, count)))
    step_sky = jax.jit(lambda sky, noise: next_sky(climate, sky, noise, STEP))
    for _ in range(steps):
        later = step_sky(later, rng.standard_normal((5, count)))
    return jax.device_get((first, later))


@pytest.mark.parametrize("name", CLIMATES)
def test_mean_and_amplitude_of_a_year_and_a_day(name: str) -> None:
    """The season's cosine averages out over a year, and the day's over a day.

    Half the range of a clear day is given.
    """
    climate, clear = CLIMATES[name], Sky(-30.0, 0.0, 0.0, 0.0, np.bool_(False))
    half_hours = STEP * np.arange(365 * 48)
    year = at(climate, SITES[name], clear, half_hours).temperature.reshape(365, 48)
    assert year.mean() == pytest.approx(climate.mean, abs=0.01)
    assert np.ptp(year.mean(1)) / 2 == pytest.approx(climate.swing, rel=2e-3)
    assert np.ptp(year - year.mean(1, keepdims=True), axis=1).mean() / 2 == pytest.approx(
        climate.daily, rel=0.02
    )
    overcast = at(climate, SITES[name], clear._replace(cloud=30.0), half_hours[:48]).temperature
    assert np.ptp(overcast) / 2 == pytest.approx(climate.daily * (1 - CLOUDED_PART), rel=0.05)


@pytest.mark.parametrize("name", CLIMATES)
def test_spells_are_a_stationary_markov_chain(name: str) -> None:
    """Check the part of the time that is unsettled, and the chain's correlation after a day.

    The correlation is exp(-t (1/fair + 1/unsettled)).
    """
    climate, count = CLIMATES[name], 20_000
    first, later = skies(climate, count, 48)
    often = climate.unsettled / (climate.fair + climate.unsettled)
    correlation = np.exp(-24 * (1 / climate.fair + 1 / climate.unsettled))
    for sky in (first, later):
        assert sky.unsettled.mean() == pytest.approx(often, abs=0.012)
    together = np.mean(first.unsettled & later.unsettled)
    assert together == pytest.approx(often * (often + (1 - often) * correlation), abs=0.012)


def test_correlation_of_cloud_cover_s_logit() -> None:
    """A mixture of a chain and an autoregression, each with its own variance and memory."""
    climate = CLIMATES["maritime"]
    first, later = skies(climate, 20_000, 24)
    often, step = climate.unsettled_part, climate.unsettled_cloud - climate.fair_cloud
    chain, noise = step**2 * often * (1 - often), CLOUD_SPREAD**2

    def logit(sky: Sky) -> Any:
        return (
            np.where(sky.unsettled, climate.unsettled_cloud, climate.fair_cloud)
            + CLOUD_SPREAD * sky.cloud
        )

    correlations = (
        np.exp(-12 * (1 / climate.fair + 1 / climate.unsettled)),
        np.exp(-12 * 3600 / CLOUD_MEMORY),
    )
    expected = (chain * correlations[0] + noise * correlations[1]) / (chain + noise)
    assert np.corrcoef(logit(first), logit(later))[0, 1] == pytest.approx(expected, abs=0.02)
    assert np.std(logit(later)) == pytest.approx(np.sqrt(chain + noise), rel=0.02)


def test_mean_wind_of_a_mixture_of_log_normals() -> None:
    for name, climate in CLIMATES.items():
        _, sky = skies(climate, 20_000)
        wind = at(climate, SITES[name], sky, 0.0).wind
        medians = (
            climate.fair_wind * (1 - climate.unsettled_part)
            + climate.unsettled_wind * climate.unsettled_part
        )
        assert wind.mean() == pytest.approx(medians * np.exp(WIND_SPREAD**2 / 2), rel=0.03)
        assert 0 < wind.min() < wind.max() <= MAX_WIND


def test_daily_means_spread_as_said() -> None:
    climate = CLIMATES["boreal"]
    _, sky = skies(climate, 20_000)
    six, eighteen = (
        at(climate, SITES["boreal"], sky, hour * 3600.0).temperature for hour in (3, 15)
    )
    # The day's cosine cancels.
    assert np.std((six + eighteen) / 2) == pytest.approx(SPELL, rel=0.02)


def test_climates_differ_as_places_do() -> None:
    """Global radiation of a year, kWh/m2, is roughly that of solar atlases.

    The places are De Bilt, Almeria, Beijing and Helsinki.
    """
    yearly_radiation = {}
    for name, climate in CLIMATES.items():
        sky = skies(climate, 20_000)[0]
        time = np.random.default_rng(1).uniform(0, 365 * 86400, 20_000)
        outside = at(climate, SITES[name], sky, time)
        yearly_radiation[name] = outside.radiation.mean() * 8.76
        assert (outside.dew_point <= outside.temperature).all()
    for name, expected in {
        "maritime": 1000,
        "mediterranean": 1850,
        "continental": 1500,
        "boreal": 950,
    }.items():
        assert yearly_radiation[name] == pytest.approx(expected, rel=0.15), yearly_radiation
