"""Weather files of EnergyPlus: hours where the format's dictionary puts them, energy kept, bad rows refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlbench_suite.envs.greenhouse.energyplus_weather import read_energyplus
from rlbench_suite.registry import card

pytestmark = pytest.mark.of_variants
DAYS = 90
HOURS = np.arange(1, 24 * DAYS + 1.0)
"""h from the first midnight to the end of each row's hour"""


def rows(radiation: np.ndarray = 100 + HOURS % 24) -> list[str]:
    """Return a file's rows: a temperature, humidity and wind that are straight lines in time."""
    header = ["LOCATION,Nowhere,-,-,TEST,000000,52.0,5.0,1.0,0.0", *["-"] * 7]
    return header + [
        f"2001,1,1,{(n - 1) % 24 + 1:.0f},60,?9?9,{n / 100},0.0,{50 + n / 100},101325,0,0,300,{fell},0,0,0,0,0,0,180,"
        f"{n / 500},5,5,20,2000,9,999999999,10,0.1,0,88,0.2,0,1"
        for n, fell in zip(HOURS, radiation, strict=True)
    ]


def written(folder: Path, lines: list[str]) -> Path:
    (folder / "city.epw").write_text("\r\n".join(lines) + "\r\n")
    return folder / "city.epw"


def test_hours_are_where_the_dictionary_puts_them(tmp_path: Path) -> None:
    """Hour 1 ends at 01:00: values of that instant, and radiation received before it."""
    fell = np.random.default_rng(0).uniform(0, 1000, len(HOURS)).round(3)
    fell[-1] = fell[0]  # the last instant of the file has half an hour's weight like the first
    weather = read_energyplus(written(tmp_path, rows(fell)))
    time = weather["time"]
    np.testing.assert_array_equal(time, 1800.0 * np.arange(2 * len(HOURS) + 1))
    later = time >= 3600
    np.testing.assert_allclose(weather["temperature"][later], time[later] / 3600 / 100, rtol=1e-12)
    np.testing.assert_allclose(weather["humidity"][later], 50 + time[later] / 3600 / 100, rtol=1e-12)
    np.testing.assert_allclose(weather["wind"][later], time[later] / 3600 / 500, rtol=1e-12)
    np.testing.assert_array_equal(weather["radiation"][1::2], fell)
    assert np.trapezoid(weather["radiation"], time) == pytest.approx(3600 * fell.sum(), rel=1e-3)
    assert weather["radiation"][:-1].sum() * 1800 == pytest.approx(3600 * fell.sum(), rel=1e-12)


def test_a_file_and_its_columns_are_one_record(tmp_path: Path) -> None:
    path = written(tmp_path, rows())
    weather: Any = read_energyplus(path)
    (tmp_path / "mine.yaml").write_text("weather: city.epw\n")
    found, same = (card("Lettuce-v0", context=given) for given in (tmp_path / "mine.yaml", {"weather": weather}))
    assert found.context is not None
    assert same.context is not None
    assert found.context.record("weather") == same.context.record("weather")
    series = next(one for one in card("Lettuce-v0").build().series() if one.name == "weather")
    assert series.suffixes == (".csv", ".parquet", ".epw")


@pytest.mark.parametrize(
    ("row", "field", "value", "said"),
    [
        (0, 0, "PLACE", "its first row does not begin with LOCATION"),
        (10, 13, "9999", r"the global horizontal radiation of row 11 is missing \(9999\)"),
        (10, 6, "99.9", r"the dry bulb temperature of row 11 is missing \(99.9\)"),
        (10, 8, "nan", "the relative humidity of row 11 is missing"),
        (10, 8, "1e999", "the relative humidity of row 11 is missing"),
        (10, 6, "warm", "the dry bulb temperature of row 11 is no number: 'warm'"),
        (10, 6, "-90", "temperature must be from -40 to 55 degC"),
        (10, 3, "4", "row 11 should be of hour 3, got '4'"),
    ],
)
def test_bad_files_cost_one_sentence(tmp_path: Path, row: int, field: int, value: str, said: str) -> None:
    lines = rows()
    fields = lines[row].split(",")
    fields[field] = value
    lines[row] = ",".join(fields)
    with pytest.raises(ValueError, match=said):
        card("Lettuce-v0", context={"weather": written(tmp_path, lines)})


def test_short_and_empty_files_are_refused(tmp_path: Path) -> None:
    for lines, said in (
        (rows()[:8], "it has no rows after the 8 of the header"),
        ([*rows()[:8], "2001,1,1,1"], "row 9 has 4 fields, of at least 22"),
        (rows()[: 8 + 24 * 30], "it has 1441 steps of 1800 s, and at least"),
        ([], "its first row does not begin"),
    ):
        with pytest.raises(ValueError, match=said):
            card("Lettuce-v0", context={"weather": written(tmp_path, lines)})
    with pytest.raises(ValueError, match=r"it is not a .csv or .parquet file"):
        card("Lettuce-v0", context={"prices": tmp_path / "city.epw"})
