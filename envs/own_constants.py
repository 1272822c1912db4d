"""Constants of a task, shipped or of a context of one's own, and draws from their ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from rlbench_suite.card import TaskCard, unknown
from rlbench_suite.context import REWARD, Constant

from .alternating_bands import alternating_bands

BANDS = 20
"""Number of bands of a range that keeps train and test apart in place of the shipped one."""


class OwnConstants:
    """Values of constants: those of the card's context where they differ from the shipped ones.

    A range that the task marks (:attr:`~rlbench_suite.context.Constant.bands`) is cut into bands, which lie in turn in
    train and test. If a context fixes all marked ones, its first other range does, or else the first shipped one.
    """

    def __init__(self, card: TaskCard, constants: Sequence[Constant]) -> None:
        shipped = {constant.name: (constant.low, constant.high) for constant in constants}
        given = {name: (low, high) for name, low, high in card.context.values} if card.context else {}
        for name in given:
            if name not in shipped:
                raise ValueError(f"{card.id} at this difficulty: {unknown('constant', name, shipped)}")
        self.own = {name: ends for name, ends in given.items() if ends != shipped[name]}
        self._now = shipped | self.own
        drawn = [c for c in constants if c.drawn and self._now[c.name][0] < self._now[c.name][1]]
        marked = [c.name for c in drawn if c.bands]
        others = sorted((c.name for c in drawn), key=lambda name: name not in self.own)
        self._kept_apart = marked or others[:1]
        self._moved = not marked
        self._bands = {c.name: c.bands for c in constants}

    def __contains__(self, name: str) -> bool:
        """Return whether a constant has another value than the shipped one."""
        return name in self.own

    def value(self, name: str) -> float:
        """Return a fixed constant."""
        return self._now[name][0]

    def weight(self, term: str) -> float:
        """Return the weight of a term of the reward."""
        return self._now[f"{REWARD}{term}"][0]

    @property
    def reweighted(self) -> bool:
        """True if a term of the reward has another weight than the shipped one."""
        return any(name.startswith(REWARD) for name in self.own)

    def present(self, constants: Sequence[Constant]) -> tuple[Constant, ...]:
        """Return constants with their present values."""
        return tuple(
            constant._replace(low=low, high=high)
            for constant in constants
            for low, high in (self.range(constant.name),)
        )

    def range(self, name: str) -> tuple[float, float]:
        """Return the least and the largest value of a constant."""
        return self._now[name]

    def is_fixed(self, name: str) -> bool:
        """Return whether a constant has the same value in every episode."""
        low, high = self._now[name]
        return low == high

    def draw(self, name: str, unit: jax.Array, split: jax.Array, shipped: Any, scale: float = 1.0) -> Any:
        """Return the value of an episode.

        Args:
            name: the constant.
            unit: a uniform number in [0, 1).
            split: a :class:`~rlbench_suite.task.Split` value.
            shipped: the value drawn as shipped, from the same ``unit``. It counts while the constant has its shipped
                range, so that its bits stay.
            scale: value of the constant's unit in the unit of ``shipped``.
        """
        apart = name in self._kept_apart
        if name not in self.own and not (apart and self._moved):
            return shipped
        low, high = (scale * end for end in self._now[name])
        if apart:
            return alternating_bands(unit, split, low, high, self._bands[name] or BANDS)
        return low + (high - low) * unit


def begin_in_record(unit: jax.Array, split: jax.Array, rows: int, length: int, every: int = 1) -> Any:
    """Return the row of a record at which an episode begins: in its first half in training, in its second in test.

    Args:
        unit: a uniform number in [0, 1).
        split: a :class:`~rlbench_suite.task.Split` value.
        rows: rows of the record, at least ``2 * length`` and those that ``every`` leaves over.
        length: rows of an episode.
        every: episodes begin at a multiple of this number of rows.
    """
    half = rows // 2 // every
    starts = (half * every - length) // every + 1
    return every * (split * half + jnp.minimum(jnp.floor(unit * starts).astype(jnp.int32), starts - 1))
