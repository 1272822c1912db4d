"""The scale of scores: 0 is the best player without skill, 1 is the reference player.

Players without skill are random play, doing nothing and, where a card names one, a constant
action.

Both ends are measured means, so they are estimates. Their errors are known, and a score carries
them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

NORMAL_QUANTILE = 1.959964
"""Standard errors on each side of a mean that make a 95 % interval, for a normal distribution."""

ZERO_PLAYERS = {
    "random": "random play",
    "noop": "doing nothing",
    "constant": "a constant action",
}
"""Players without skill, with their names in sentences.

The best of them is the zero of the scale. A constant action is measured where the card
names one.
"""


MAX_CHANCE_SUCCESS = 0.05
"""Largest success of a player without skill about which a card need not say why."""

MAX_FAILURE_SHARE = 0.2
"""Largest share of failed episodes of a reference about which a card need not say why."""


ANCHORS = (*ZERO_PLAYERS, "reference")
"""Players whose measured returns define the scale."""


@dataclass(frozen=True)
class Score:
    """A measured mean return with its 95 % interval.

    The mean is over ``episodes`` episodes of the test split.
    """

    mean: float
    low: float
    high: float
    episodes: int
    success: float | None = None
    """Fraction of the episodes that end in success; None if it was not measured."""
    cost: float | None = None
    """Mean constraint cost of the episodes; None if the task has none, or it was not measured."""

    @property
    def standard_error(self) -> float:
        """Standard error of the mean."""
        return (self.high - self.low) / (2 * NORMAL_QUANTILE)


class Zero(NamedTuple):
    """The player that scores 0 at a difficulty."""

    player: str
    """``random``, ``noop`` or ``constant``"""
    mean_return: float
    success: float | None
    """Fraction of its episodes that end in success; None if it was not measured."""


@dataclass(frozen=True)
class Scale:
    """The affine map from returns to scores.

    Attributes:
        zero_player: ``random``, ``noop`` or ``constant``, whichever has the highest mean return.
        zero: its measured return, which scores 0.
        reference: the reference player's measured return, which scores 1.
    """

    zero_player: str
    zero: Score
    reference: Score

    @classmethod
    def of(cls, scores: Mapping[str, Score]) -> Scale | None:
        """Return the scale of measured players.

        Return None if random play or the reference was not measured.
        """
        if not {"random", "reference"} <= scores.keys():
            return None
        measured = [player for player in ZERO_PLAYERS if player in scores]
        zero_player = max(measured, key=lambda player: scores[player].mean)
        return cls(zero_player, scores[zero_player], scores["reference"])

    @property
    def zero_name(self) -> str:
        """Name of the player that scores 0, in words."""
        return ZERO_PLAYERS[self.zero_player]

    @property
    def span(self) -> float:
        """Return of the reference minus that of the zero player."""
        return self.reference.mean - self.zero.mean

    @property
    def zero_error(self) -> float:
        """Standard error of the zero, in units of the score."""
        return self.zero.standard_error / abs(self.span)

    @property
    def reference_error(self) -> float:
        """Standard error of the one, in units of the score."""
        return self.reference.standard_error / abs(self.span)

    def score(self, returns: Any) -> Any:
        """Return the scores of returns, numbers or arrays: (return - zero) / (reference - zero)."""
        return (returns - self.zero.mean) / self.span

    def standard_error(self, score: float) -> float:
        """Return the standard error of a score that the errors of both ends cause (first order)."""
        return math.hypot((1 - score) * self.zero_error, score * self.reference_error)
