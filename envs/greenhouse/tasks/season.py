"""Parts that the tasks of a season in a greenhouse share: readings, time and prices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard

from ..weather.maritime import HOUR, YEAR, day_angle
from ..weather.records import STEP

Scalar = Any

TIME_COMPONENTS = (
    Component("season", "part of the season that is gone"),
    Component("sin_day", "sine of the time of day"),
    Component("cos_day", "cosine of the time of day"),
    Component("sin_year", "sine of the day of the year"),
    Component("cos_year", "cosine of the day of the year"),
)
"""Entries of :func:`time_entries`."""


def check_tolerance(card: TaskCard, difficulty: float | None) -> None:
    """Check that the difficulty is a tolerance of the greenhouse's constants.

    Raises:
        ValueError: it is not.
    """
    if not 0 <= (difficulty or 0) <= 0.5:
        raise ValueError(
            f"The difficulty of {card.id} is a relative tolerance in [0, 0.5], got {difficulty!r}."
        )


def observation_range(
    sensors: Any, scales: Any, *, are_prices_recorded: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and the highest value of each entry.

    Args:
        sensors: lowest and highest value of each reading in its unit, ``(readings, 2)``.
        scales: scale of each reading, ``(readings,)``.
        are_prices_recorded: recorded prices may be negative.
    """
    ends = np.array(sensors) / np.array(scales)[:, None]
    low = [ends[:, 0], [0] * 4, [-1] * 4, [-2 * are_prices_recorded] * 3]
    high = [ends[:, 1], [1] * 4, [1] * 4, [2] * 3]
    return np.concatenate(low), np.concatenate(high)


def scaled_readings(
    measured: Sequence[Scalar], sensors: Iterable[Any], scales: Iterable[Any]
) -> list[Scalar]:
    """Return what sensors of a limited range show, in parts of the scales."""
    return [
        jnp.clip(value, low, high) * (1 / scale)
        for value, (low, high), scale in zip(measured, sensors, scales, strict=True)
    ]


def time_entries(steps: Scalar, start: Scalar, season: int, dtype: Any) -> tuple[Scalar, ...]:
    """Return the part of the season that is gone, and sine and cosine of day and year.

    Args:
        steps: steps since planting.
        start: planting date, day of the year.
        season: steps of a season.
        dtype: of the entries.
    """
    time = STEP * steps.astype(dtype)
    day = day_angle(time)
    year = (2 * math.pi / YEAR) * (start + time * (1 / (24 * HOUR)))
    gone = steps.astype(dtype) * (1 / season)
    return gone, jnp.sin(day), jnp.cos(day), jnp.sin(year), jnp.cos(year)


def last_setting_components(actions: Iterable[Component]) -> tuple[Component, ...]:
    """Describe the entries that show the last setting of the actuators."""
    return tuple(
        replace(action, name=f"last_{action.name}", meaning=f"{action.meaning}, of the last step")
        for action in actions
    )


def cost_components(heat_scale: float, co2_scale: float) -> tuple[Component, ...]:
    """Describe the entries that show the prices of heat and carbon dioxide."""
    return (
        Component("heat_price", "price of heat", f"{heat_scale:g} EUR/kWh"),
        Component("co2_price", "price of carbon dioxide", f"{co2_scale:g} EUR/kg"),
    )
