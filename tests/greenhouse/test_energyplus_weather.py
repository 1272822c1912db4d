"""Weather files of EnergyPlus.

Hours lie where the format's dictionary puts them, energy is kept, and bad rows are refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlbench_suite.core.registry import card
from rlbench_suite.envs.greenhouse.weather.energyplus import read_energyplus

pytestmark = pytest.mark.of_variants
DAYS = 90
HOURS = np.arange(1, 24 * DAYS + 1.0)
"""h from the first midnight to the end of each row's hour"""


def date(hour: float) -> str:
    """Return month and day of an hour of 2001."""
    day = np.datetime64("2001-01-01") + int((hour - 1) // 24)
    return f"{str(day)[5:7]},{str(day)[8:10]}"


def rows(radiation: np.ndarray = 100 + HOURS % 24) -> list[str]:
    """Return a file's rows: a temperature, humidity and wind that are straight lines in time."""
    header = ["LOCATION,Nowhere,-,-,TEST,000000,52.0,5.0,1.0,0.0", *["-"] * 7]
    return header + [
        f"2001,{date(n)},{(n - 1) % 24 + 1:.0f},60,?9?9,{n / 100},0.0,{50 + n / 100},101325,0,0,"
        f"300,{fell},0,0,0,0,0,0,180,{n / 500},5,5,20,2000,9,999999999,10,0.1,0,88,0.2,0,1"
        for n, fell in zip(HOURS, radiation, strict=True)
    ]


def write_weather(folder: Path, lines: list[str]) -> Path:
    (folder / "city.epw").write_text("\r\n".join(lines) + "\r\n")
    return folder / "city.epw"


def weather_of(name: str) -> Any:
    """Return the series of a task's weather."""
    return next(series for series in card(name).build().series() if series.name == "weather")


def columns_of(name: str) -> dict[str, Any]:
    return {column.name: column for column in weather_of(name).columns}


def test_hours_are_where_the_dictionary_puts_them(tmp_path: Path) -> None:
    """Hour 1 ends at 01:00: values of that instant, and radiation received before it."""
    fell = np.random.default_rng(0).uniform(0, 1000, len(HOURS)).round(3)
    fell[-1] = fell[0]  # the last instant of the file has half an hour's weight like the first
    weather = read_energyplus(write_weather(tmp_path, rows(fell)), columns_of("Tomato-v0"))
    time = weather["time"]
    np.testing.assert_array_equal(time, 1800.0 * np.arange(2 * len(HOURS) + 1))
    later = time >= 3600
    np.testing.assert_allclose(weather["temperature"][later], time[later] / 3600 / 100, rtol=1e-12)
    np.testing.assert_allclose(
        weather["humidity"][later], 50 + time[later] / 3600 / 100, rtol=1e-12
    )
    np.testing.assert_allclose(weather["wind"][later], time[later] / 3600 / 500, rtol=1e-12)
    np.testing.assert_array_equal(weather["radiation"][1::2], fell)
    assert np.trapezoid(weather["radiation"], time) == pytest.approx(3600 * fell.sum(), rel=1e-3)
    assert weather["radiation"][:-1].sum() * 1800 == pytest.approx(3600 * fell.sum(), rel=1e-12)


def test_a_file_and_its_columns_are_one_record(tmp_path: Path) -> None:
    path = write_weather(tmp_path, rows())
    weather: Any = read_energyplus(path, columns_of("Lettuce-v0"))
    (tmp_path / "mine.yaml").write_text("weather: city.epw\n")
    by_file, by_columns = (
        card("Lettuce-v0", context=context)
        for context in (tmp_path / "mine.yaml", {"weather": weather})
    )
    assert by_file.context is not None
    assert by_columns.context is not None
    assert by_file.context.record("weather") == by_columns.context.record("weather")
    assert weather_of("Lettuce-v0").suffixes == (".csv", ".parquet", ".epw")


@pytest.mark.parametrize(
    ("row", "field", "value", "message"),
    [
        (0, 0, "PLACE", "its first row does not begin with LOCATION"),
        (10, 13, "9999", r"the global horizontal radiation of row 11 is missing \(9999\)"),
        (10, 6, "99.9", r"the dry bulb temperature of row 11 is missing \(99.9\)"),
        (10, 8, "nan", "the relative humidity of row 11 is no number: 'nan'"),
        (10, 8, "1e999", "the relative humidity of row 11 is no number: '1e999'"),
        (10, 6, "1_0", "the dry bulb temperature of row 11 is no number: '1_0'"),
        (10, 6, "\u0661\u0662", "the dry bulb temperature of row 11 is no number: '\u0661\u0662'"),
        (10, 6, "warm", "the dry bulb temperature of row 11 is no number: 'warm'"),
        (10, 6, "-90", "the dry bulb temperature of row 11 must be from -40 to 55 degC, got -90"),
        (10, 8, "111", "the relative humidity of row 11 must be from 0 to 110 %, got 111"),
        (10, 3, "4", "row 11 of an hourly file is of hour 3, got '4'"),
        (32, 2, "03", r"row 33 should begin the day \(month-day\) 1-2, got 1-3"),
        (32, 1, "x", "month and day of row 33 are no date: 'x-02'"),
        (8, 2, "35", "month and day of row 9 are no date: '01-35'"),
        (8, 1, "9" * 30, "month and day of row 9 are no date: '99999999999999999999-01'"),
        (8, 1, "999999999", "month and day of row 9 are no date: '999999999-01'"),
        (8, 2, "-1", "month and day of row 9 are no date: '01--1'"),
    ],
)
def test_bad_files_cost_one_sentence(
    tmp_path: Path, row: int, field: int, value: str, message: str
) -> None:
    lines = rows()
    fields = lines[row].split(",")
    fields[field] = value
    lines[row] = ",".join(fields)
    with pytest.raises(ValueError, match=message):
        card("Lettuce-v0", context={"weather": write_weather(tmp_path, lines)})


def test_days_follow_each_other(tmp_path: Path) -> None:
    """February may have 28 or 29 days, and years begin anew; a missing day or month is refused."""
    lines = rows()
    for first, count, message in (
        (8 + 24 * 20, 24, "row 489 should begin the day .* 1-21, got 1-22"),
        (8 + 24 * 31, 672, "row 753 should begin the day .* 2-1, got 3-1"),
    ):
        with pytest.raises(ValueError, match=message):
            read_energyplus(
                write_weather(tmp_path, lines[:first] + lines[first + count :]),
                columns_of("Lettuce-v0"),
            )
    leap = [line.replace("2001,03,01,", "2000,02,29,", 1) for line in lines[: 8 + 24 * 60]]
    around = [line.replace("2001,01,01,", "2001,12,31,", 1) for line in lines[8:32]]
    for file_lines in (leap, lines[:8] + around + lines[8:]):
        (tmp_path / "city.epw").write_text("\ufeff" + "\n".join(file_lines))
        assert (
            len(read_energyplus(tmp_path / "city.epw", columns_of("Lettuce-v0"))["time"])
            == 2 * len(file_lines) - 15
        )


def test_short_and_empty_files_are_refused(tmp_path: Path) -> None:
    for lines, message in (
        (rows()[:8], "it has no rows after the 8 of the header"),
        ([*rows()[:8], "2001,1,1,1"], "row 9 has 4 fields, of at least 22"),
        (rows()[: 8 + 24 * 30], "it has 1441 steps of 1800 s, and at least"),
        ([], "its first row does not begin"),
        ([*rows()[:40], "", *rows()[40:]], "row 41 has 1 fields, of at least 22"),
        ([*rows()[:8], *["1"] * 200_001], "it has more than 200,000 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            card("Lettuce-v0", context={"weather": write_weather(tmp_path, lines)})
    with pytest.raises(ValueError, match=r"it is not a .csv or .parquet file"):
        card("Lettuce-v0", context={"prices": tmp_path / "city.epw"})
