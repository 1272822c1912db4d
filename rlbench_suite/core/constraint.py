"""The limit on the cost of an episode."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """Limit on the cost of an episode, apart from the reward.

    It is set on the mean over episodes, as in safe RL.
    """

    counts: str
    """Meaning of the cost of a step, with its unit."""
    limit: float
    """Largest mean cost of an episode that keeps the constraint."""
    reason: str
    """Why the limit lies there."""

    def __str__(self) -> str:
        return (
            f"an episode costs at most {self.limit:g} on average; cost: {self.counts}. Limit: "
            f"{self.reason}"
        )

    def broken_by(self, cost: Any) -> Any:
        """Return whether a cost does not keep the limit; also for arrays.

        A cost that is not a number does not.
        """
        return (cost <= self.limit) ^ True

    def broken_by_seeds(self, *mean_costs: float) -> bool:
        """Return whether seeds break the constraint, given the mean cost of each.

        The mean over these seeds is compared with the limit.
        """
        return bool(self.broken_by(math.fsum(mean_costs) / len(mean_costs)))

    def constrained_score(self, score: float, mean_cost: float) -> float:
        """Return a normalised score where the constraint holds, and at most 0 elsewhere."""
        return min(score, 0.0) if self.broken_by(mean_cost) else score
