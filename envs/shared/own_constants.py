"""Constants of a task, shipped or of a context of one's own, and samples from their ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from rlbench_suite.contexts.context import REWARD, Constant
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.foundation.unknown_names import unknown

from .alternating_bands import alternating_bands

BANDS = 20  # Number of bands of a range that keeps train and test apart in place of the shipped one


class OwnConstants:
    """Ranges of constants: those of the card's context where they differ from the shipped ones.

    A range that the task marks (:attr:`~rlbench_suite.contexts.context.Constant.bands`) is cut into
    bands, which lie in turn in train and test. If a context fixes all marked ones, its first other
    range does, or else the first shipped one.
    """

    def __init__(self, card: TaskCard, constants: Sequence[Constant]) -> None:
        shipped = {constant.name: (constant.low, constant.high) for constant in constants}
        context = (
            {name: (low, high) for name, low, high in card.context.values} if card.context else {}
        )
        for name in context:
            if name not in shipped:
                raise ValueError(
                    f"{card.id} at this difficulty: {unknown('constant', name, shipped)}"
                )
        #: Ranges of the context that differ from the shipped ones, by name.
        self.changed = {name: ends for name, ends in context.items() if ends != shipped[name]}
        self._ranges = shipped | self.changed
        sampled = [
            constant
            for constant in constants
            if constant.may_vary and not self.is_fixed(constant.name)
        ]
        marked = [constant.name for constant in sampled if constant.bands]
        unmarked = sorted(
            (constant.name for constant in sampled), key=lambda name: name not in self.changed
        )
        self._banded = marked or unmarked[:1]
        self._substituted = not marked
        self._bands = {constant.name: constant.bands for constant in constants}

    def __contains__(self, name: str) -> bool:
        """Return whether a constant has another value than the shipped one."""
        return name in self.changed

    def value(self, name: str) -> float:
        """Return a fixed constant."""
        return self._ranges[name][0]

    def weight(self, term: str) -> float:
        """Return the weight of a term of the reward."""
        return self._ranges[f"{REWARD}{term}"][0]

    @property
    def reweighted(self) -> bool:
        """True if a term of the reward has another weight than the shipped one."""
        return any(name.startswith(REWARD) for name in self.changed)

    def present(self, constants: Sequence[Constant]) -> tuple[Constant, ...]:
        """Return constants with their present values."""
        ranges = [self.range(constant.name) for constant in constants]
        return tuple(
            constant._replace(low=low, high=high)
            for constant, (low, high) in zip(constants, ranges, strict=True)
        )

    def range(self, name: str) -> tuple[float, float]:
        """Return the smallest and the largest value of a constant."""
        return self._ranges[name]

    def is_fixed(self, name: str) -> bool:
        """Return whether a constant has the same value in every episode."""
        low, high = self._ranges[name]
        return low == high

    def separates_splits(self, name: str) -> bool:
        """Return whether train and test take a constant from different bands of its range."""
        return name in self._banded

    def sample(self, name: str, unit: jax.Array, split: jax.Array, scale: float = 1.0) -> Any:
        """Sample a constant from its range.

        Args:
            name: the constant.
            unit: uniform numbers in [0, 1).
            split: a :class:`~rlbench_suite.core.task.Split` value.
            scale: factor from the constant's unit to that of the result.
        """
        low, high = (scale * end for end in self._ranges[name])
        if self.separates_splits(name):
            return alternating_bands(unit, split, low, high, self._bands[name] or BANDS)
        return low + (high - low) * unit

    def sample_or_shipped(
        self, name: str, unit: jax.Array, split: jax.Array, shipped: Any, scale: float = 1.0
    ) -> Any:
        """Return ``shipped`` while a constant has its shipped range, else sample it.

        For shipped values that come from another formula than :meth:`sample`'s, whose bits have to
        stay.

        Args:
            name: the constant.
            unit: a uniform number in [0, 1).
            split: a :class:`~rlbench_suite.core.task.Split` value.
            shipped: the value sampled as shipped, from the same ``unit``.
            scale: value of the constant's unit in the unit of ``shipped``.
        """
        stands_in = self._substituted and self.separates_splits(name)
        return (
            self.sample(name, unit, split, scale) if name in self.changed or stands_in else shipped
        )


def begin_in_record(
    unit: jax.Array, split: jax.Array, rows: int, length: int, every: int = 1
) -> Any:
    """Return the row of a record at which an episode begins.

    In training it lies in the record's first half, in test in its second.

    Args:
        unit: a uniform number in [0, 1).
        split: a :class:`~rlbench_suite.core.task.Split` value.
        rows: rows of the record, at least ``2 * length`` and those that ``every`` leaves over.
        length: rows of an episode.
        every: episodes begin at a multiple of this number of rows.
    """
    half = rows // 2 // every
    starts = (half * every - length) // every + 1
    return every * (
        split * half + jnp.minimum(jnp.floor(unit * starts).astype(jnp.int32), starts - 1)
    )
