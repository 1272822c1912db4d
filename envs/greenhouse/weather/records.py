"""Records of weather and prices that a user's context gives a greenhouse.

They take the place of sampled ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.contexts.time_series import Column, Series
from rlbench_suite.core.task_card import TaskCard

from ...shared.own_constants import OwnConstants, begin_in_record
from .energyplus import read_energyplus
from .maritime import YEAR

STEP = 1800.0
"""s"""
DAY = 48
"""steps"""
Scalar = Any
Prices = TypeVar("Prices", bound=NamedTuple)


def record_series(season: int, crop: Column, *more: Column) -> tuple[Series, Series]:
    """Return the series of weather and prices that a task takes.

    Args:
        season: steps of an episode.
        crop: the price of the crop.
        more: columns of the weather besides radiation, temperature, humidity and carbon dioxide.
    """
    min_rows = 2 * (season + DAY)  # whole days, and the weather at harvest
    return (
        Series(
            "weather",
            "weather outside from a midnight on, in place of the synthetic one",
            (
                Column("radiation", "W/m2", 0, 1400, "global radiation"),
                Column("temperature", "degC", -40, 55, "of the air"),
                Column("humidity", "%", 0, 100, "relative"),
                *more,
                Column("co2", "ppm", 0, 2000, "carbon dioxide", optional=True),
            ),
            "s", STEP, min_rows, readers={".epw": read_energyplus}, longest_gap=7200.0,
            begins_at=STEP * DAY,
        ),
        Series(
            "prices",
            "prices from a midnight on, in place of those of a season",
            (
                crop,
                Column("heat", "EUR/kWh", -10, 10, "", optional=True),
                Column("co2", "EUR/kg", 0, 100, "", optional=True),
            ),
            "s", STEP, min_rows, begins_at=STEP * DAY,
        ),
    )  # fmt: skip


class Records:
    """Columns of the records of a task's context, each by its name; empty without records.

    Attributes:
        weather: columns of the weather, ``(rows,)`` each.
        prices: columns of the prices, ``(rows,)`` each.
        rows: number of rows of the shorter record; 0 without records.
    """

    def __init__(self, card: TaskCard, own_constants: OwnConstants, dtype: Any) -> None:
        """Read the records.

        Raises:
            ValueError: the context gives a price as a constant, too.
        """
        self.own_constants = own_constants
        self.weather, self.prices = (
            dict(zip(record.columns, record.values().T.astype(dtype), strict=True))
            if record
            else {}
            for record in (
                card.context and card.context.record(name) for name in ("weather", "prices")
            )
        )
        for name in self.prices:
            if f"{name}_price" in own_constants:
                raise ValueError(
                    f"{card.id}: {name}_price follows from the record of prices; leave it out."
                )
        self.rows = min(
            (len(column) for column in (*self.weather.values(), *self.prices.values())), default=0
        )

    def highest_price(self, good: str) -> float:
        """Return the largest size of a price, recorded or drawn."""
        if good in self.prices:
            return float(np.abs(self.prices[good]).max())
        return self.own_constants.range(f"{good}_price")[1]

    def pays_back(self, good: str) -> bool:
        """Return whether a price is recorded below 0."""
        return good in self.prices and bool(self.prices[good].min() < 0)

    def price_scales(self, goods: Sequence[str], usual: Sequence[float]) -> list[float]:
        """Return scales of the prices in observations.

        They are the usual scales, raised so that no price shows above 2.
        """
        return [
            max(scale, 0.51 * self.highest_price(good))
            for good, scale in zip(goods, usual, strict=True)
        ]

    def begin(
        self, unit: Scalar, split: jax.Array, season: int, dtype: Any
    ) -> tuple[Scalar, Scalar]:
        """Sample where a season of so many steps begins.

        Return the record's row, at a midnight, and its day of the year.
        """
        row = begin_in_record(unit, split, self.rows, season + 1, every=DAY)
        return row, jnp.mod(
            self.own_constants.value("first_day") + (row // DAY).astype(dtype), YEAR
        )

    def prices_at(self, sampled: Prices, first_row: Scalar | None, steps: Scalar) -> Prices:
        """Return the prices some steps into a season that begins at a row.

        They are the sampled ones where none are recorded.
        """
        recorded = {name: self.prices[name] for name in sampled._fields if name in self.prices}
        return sampled._replace(**self.at(recorded, first_row + steps)) if recorded else sampled

    @staticmethod
    def at(columns: dict[str, np.ndarray], row: Scalar) -> dict[str, Scalar]:
        """Return a row of the weather or of the prices."""
        return {name: jnp.asarray(column)[row] for name, column in columns.items()}
