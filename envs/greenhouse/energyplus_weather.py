"""Weather of EnergyPlus files (``.epw``), the form in which typical years of most cities of the world can be had.

Source: EnergyPlus Auxiliary Programs, "EnergyPlus Weather File (EPW) Data Dictionary". Eight rows of header, then a row
for each hour. Hour 1 ends at 01:00. Temperature, humidity and wind are those at the end of the hour; radiation is what
fell in the hour. Latitude, dates and other columns are not used.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

HEADER = 8
"""rows"""
HOUR_FIELD, HOURS = 3, 24
HALF_HOUR = 1800.0
"""s"""
SATURATED = 100.0
"""%; files may have up to 110, for air with fog"""


class Field(NamedTuple):
    """A quantity in the rows of a file."""

    name: str
    place: int
    """Position in a row, from 0"""
    missing: float
    """Value, or the least of the values, that stands for a missing one"""


RADIATION = Field("global horizontal radiation", 13, 9999.0)
TEMPERATURE = Field("dry bulb temperature", 6, 99.9)
HUMIDITY = Field("relative humidity", 8, 999.0)
WIND = Field("wind speed", 21, 999.0)


def read_energyplus(path: Path) -> dict[str, np.ndarray]:
    """Return weather each half hour from midnight on: columns of float64 by name.

    Radiation is the mean of an hour at its middle, and the mean of both hours between them, so that the sum of all is
    kept. The first hour of a file has the temperature, humidity and wind of its end.

    Raises:
        ValueError: it is no such file, not hourly, or lacks a value. The message is a part of a sentence.
        OSError: it cannot be read.
    """
    lines = path.read_text("utf-8", "replace").splitlines()
    if not lines or not lines[0].startswith("LOCATION"):
        raise ValueError("its first row does not begin with LOCATION, as in an EnergyPlus weather file")
    rows = [line.split(",") for line in lines[HEADER:] if line.strip()]
    if not rows:
        raise ValueError(f"it has no rows after the {HEADER} of the header")
    for number, row in enumerate(rows):
        if len(row) <= WIND.place:
            raise ValueError(f"row {HEADER + number + 1} has {len(row)} fields, of at least {WIND.place + 1}")
        due = number % HOURS + 1
        if row[HOUR_FIELD].strip() != str(due):
            raise ValueError(f"row {HEADER + number + 1} should be of hour {due}, got {row[HOUR_FIELD][:20]!r}")
    hours = 2 * np.arange(1, len(rows) + 1)
    times = np.arange(2 * len(rows) + 1)
    temperature, humidity, wind = (
        np.interp(times, hours, _numbers(rows, field)) for field in (TEMPERATURE, HUMIDITY, WIND)
    )
    return {
        "time": HALF_HOUR * times,
        "radiation": np.interp(times, hours - 1, _numbers(rows, RADIATION)),
        "temperature": temperature,
        "humidity": np.minimum(humidity, SATURATED),
        "wind": wind,
    }


def _numbers(rows: list[list[str]], field: Field) -> np.ndarray:
    """Return a quantity of all rows.

    Raises:
        ValueError: one is missing or no number.
    """
    values = np.empty(len(rows))
    for number, row in enumerate(rows):
        text = row[field.place].strip()
        try:
            values[number] = float(text)
        except ValueError:
            raise ValueError(f"the {field.name} of row {HEADER + number + 1} is no number: {text[:20]!r}") from None
        if not values[number] < field.missing:
            raise ValueError(f"the {field.name} of row {HEADER + number + 1} is missing ({text[:20]})")
    return values
