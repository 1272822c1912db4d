"""Weather from EnergyPlus files (``.epw``).

Typical years of most cities of the world are available in this form.

Source: EnergyPlus Auxiliary Programs, "EnergyPlus Weather File (EPW) Data Dictionary". Eight rows
of header, then a row for each hour. Hour 1 ends at 01:00. Temperature, humidity and wind are those
at the end of the hour; radiation is what fell in the hour. Days follow each other; years may
differ, as in typical years, and 29 February may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rlbench_suite.contexts.numerals import read_integer, read_real
from rlbench_suite.contexts.time_series import MAX_ROWS, Column

from .maritime import HOUR

HEADER_ROWS = 8
MONTH_FIELD = 1
DAY_FIELD = 2
HOUR_FIELD = 3
"""Positions of month, day and hour in a row"""
HOURS_PER_DAY = 24
COMMON_YEAR = 2001
"""A year without 29 February"""
LEAP_YEAR = 2000
"""A year with 29 February"""
SATURATION_HUMIDITY = 100.0
"""%"""


class Field(NamedTuple):
    """A quantity in the rows of a file."""

    name: str
    column: int
    """Position in a row, from 0"""
    missing: float
    """Value, or the least of the values, that stands for a missing one"""


FIELDS = {
    "radiation": Field("global horizontal radiation", 13, 9999.0),
    "temperature": Field("dry bulb temperature", 6, 99.9),
    "humidity": Field("relative humidity", 8, 999.0),
    "wind": Field("wind speed", 21, 999.0),
}
LAST_FIELD = max(field.column for field in FIELDS.values())
MAX_FILE_HUMIDITY = 110.0
"""%: largest humidity of a file, of air with fog, which counts as saturated"""


def read_energyplus(path: Path, columns: Mapping[str, Column]) -> dict[str, np.ndarray]:
    """Return weather each half hour from midnight on: columns of float64 by name.

    Radiation is the mean of an hour at its middle, and the mean of both hours between them, so that
    the sum of all is kept. The first hour of a file has the temperature, humidity and wind of its
    end.

    Args:
        path: the file.
        columns: what is taken of it, with the range of each.

    Raises:
        ValueError: it is no such file, not hourly, lacks a day or a value, or has one out of range.
            The message is a part of a sentence.
        OSError: it cannot be read.
    """
    text = path.read_text("utf-8-sig", "replace").rstrip("\n")
    if not text.startswith("LOCATION"):
        raise ValueError(
            "its first row does not begin with LOCATION, as in an EnergyPlus weather file"
        )
    if text.count("\n") > MAX_ROWS:  # counted before a small file becomes many small lists
        raise ValueError(f"it has more than {MAX_ROWS:,} rows")
    rows = [line.split(",", LAST_FIELD + 1) for line in text.split("\n")[HEADER_ROWS:]]
    if not rows:
        raise ValueError(f"it has no rows after the {HEADER_ROWS} of the header")
    for number, row in enumerate(rows):
        if len(row) <= LAST_FIELD:
            raise ValueError(
                f"row {HEADER_ROWS + number + 1} has {len(row)} fields, "
                f"of at least {LAST_FIELD + 1}"
            )
        hour = number % HOURS_PER_DAY + 1
        if row[HOUR_FIELD].strip() != str(hour):
            text_of_hour = row[HOUR_FIELD][:20]
            raise ValueError(
                f"row {HEADER_ROWS + number + 1} of an hourly file is of hour {hour}, got "
                f"{text_of_hour!r}"
            )
    _refuse_gaps([(row[MONTH_FIELD].strip(), row[DAY_FIELD].strip()) for row in rows])
    hours = 2 * np.arange(1, len(rows) + 1)
    times = np.arange(2 * len(rows) + 1)
    weather = {"time": 0.5 * HOUR * times}
    for name, field in FIELDS.items():
        if name in columns:
            values = _numbers(rows, field, columns[name])
            weather[name] = np.interp(times, hours - 1 if name == "radiation" else hours, values)
    return weather


def _refuse_gaps(dates: list[tuple[str, str]]) -> None:
    """Raise a ValueError unless each day follows the one before."""
    days, following = [], []
    for number, texts in enumerate(dates[::HOURS_PER_DAY]):
        try:
            month, day = (read_integer(text) for text in texts)
            following.append([_day_after(year, month, day) for year in _years(month, day)])
        except (ValueError, OverflowError):
            date = "-".join(text[:20] for text in texts)
            raise ValueError(
                f"month and day of row {HEADER_ROWS + HOURS_PER_DAY * number + 1} "
                f"are no date: {date!r}"
            ) from None
        days.append((month, day))
    for number, (next_dates, after) in enumerate(zip(following, days[1:], strict=False)):
        if after not in next_dates:
            row = HEADER_ROWS + HOURS_PER_DAY * (number + 1) + 1
            expected = " or ".join(sorted({f"{m}-{d}" for m, d in next_dates}))
            raise ValueError(
                f"row {row} should begin the day (month-day) {expected}, got {after[0]}-{after[1]}"
            )


def _years(month: int, day: int) -> tuple[int, ...]:
    return (LEAP_YEAR,) if (month, day) == (2, 29) else (COMMON_YEAR, LEAP_YEAR)


def _day_after(year: int, month: int, day: int) -> tuple[int, int]:
    next_day = date(year, month, day) + timedelta(days=1)
    return next_day.month, next_day.day


def _numbers(rows: list[list[str]], field: Field, column: Column) -> np.ndarray:
    """Return a quantity of all rows.

    Raises:
        ValueError: one is missing, no number, or out of range.
    """
    values = np.empty(len(rows))
    maximum = MAX_FILE_HUMIDITY if column.name == "humidity" else column.maximum
    for number, row in enumerate(rows):
        where, text = (
            f"the {field.name} of row {HEADER_ROWS + number + 1}",
            row[field.column].strip(),
        )
        try:
            values[number] = read_real(text)
        except ValueError:
            raise ValueError(f"{where} is no number: {text[:20]!r}") from None
        if not values[number] < field.missing:
            raise ValueError(f"{where} is missing ({text[:20]})")
        if not column.minimum <= values[number] <= maximum:
            raise ValueError(
                f"{where} must be from {column.minimum:g} to {maximum:g} {column.unit}, got "
                f"{text[:20]}"
            )
    return np.minimum(values, SATURATION_HUMIDITY) if column.name == "humidity" else values
