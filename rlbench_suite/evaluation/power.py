"""Number of seeds that shows a difference between two agents, from the spreads that a run measured.

Two agents are compared by the difference of their mean scores, on one task or on the mean over tasks. With ``n`` seeds
for each agent and the variance ``v_j`` of a difference on task ``j``, the mean over ``m`` tasks has the variance
``sum(v_j) / (m^2 n)``. Its degrees of freedom are Satterthwaite's. The power is that of the two-sided t-test, whose
statistic then has a noncentral t distribution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

DIFFERENCES = (0.02, 0.05, 0.1, 0.2)
"""Differences of normalised scores that a table shows by default."""

POWER, LEVEL = 0.8, 0.05

LEAST_SEEDS = 5
"""Seeds below which nothing is concluded, because too few of them estimate a spread."""

MOST_SEEDS = 10_000

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(128)


@dataclass(frozen=True)
class Need:
    """Seeds needed on one task, or on the mean over tasks.

    Attributes:
        spread: standard deviation of one seed's score; that of the mean over tasks in the aggregate.
        measured: number of seeds that the spread was measured with, the least over tasks.
        seeds: seeds of each agent by difference; None if more than :data:`MOST_SEEDS` are needed.
    """

    spread: float
    measured: int
    seeds: Mapping[float, int | None]


def needs(scores: Mapping[str, Sequence[float]], differences: Sequence[float]) -> tuple[Need, dict[str, Need]]:
    """Return the seeds needed to tell an agent from one of equal spread: in the aggregate, and by task.

    The seeds of the two agents count as independent. Pairs of seeds need fewer where the agents' scores rise and fall
    together.

    Args:
        scores: normalised scores of the seeds by task.
        differences: differences of the mean score to see, each positive.

    Raises:
        ValueError: no task, a task with fewer than two seeds, or a difference that is not positive.
    """
    if not scores:
        raise ValueError("There are no tasks to compute the power on.")
    for task, values in scores.items():
        if len(values) < 2:
            raise ValueError(f"{task} has one seed, and a spread needs at least two; run more with --seeds.")
    variances = {task: float(np.var(values, ddof=1)) for task, values in scores.items()}

    def need(tasks: Sequence[str]) -> Need:
        own = [variances[task] for task in tasks]
        return Need(
            spread=math.sqrt(sum(own)) / len(own),
            measured=min(len(scores[task]) for task in tasks),
            seeds={d: seeds_needed(d, [2 * v for v in own], agents=2) for d in differences},
        )

    return need(list(scores)), {task: need([task]) for task in scores}


def seeds_needed(
    difference: float, variances: Sequence[float], *, agents: int = 2, power: float = POWER, level: float = LEVEL
) -> int | None:
    """Return the fewest seeds, at least :data:`LEAST_SEEDS`, that show a difference with the given power.

    Args:
        difference: true difference of the mean over tasks, positive.
        variances: variance of the difference of one seed, by task.
        agents: 2 if the seeds of two agents are independent, 1 if they are pairs.
        power: probability to see the difference.
        level: probability to see a difference where there is none.

    Returns:
        None if more than :data:`MOST_SEEDS` are needed.

    Raises:
        ValueError: the difference is not positive.
    """
    if not (math.isfinite(difference) and difference > 0):
        raise ValueError(f"A difference to see must be a finite number above 0, got {difference}.")

    def enough(seeds: int) -> bool:
        return power_of(difference, variances, seeds, agents=agents, level=level) >= power

    low, high = LEAST_SEEDS - 1, LEAST_SEEDS
    while not enough(high):
        if high == MOST_SEEDS:
            return None
        low, high = high, min(2 * high, MOST_SEEDS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def power_of(
    difference: float, variances: Sequence[float], seeds: int, *, agents: int = 2, level: float = LEVEL
) -> float:
    """Return the probability that the two-sided t-test sees a difference. Arguments as :func:`seeds_needed`."""
    total = sum(variances)
    if total == 0:
        return 1.0
    error = math.sqrt(total / seeds) / len(variances)
    freedom = agents * (seeds - 1) * total**2 / sum(v**2 for v in variances)
    critical = _critical(freedom, level)
    shift = difference / error
    return _above(critical, freedom, shift) + _above(critical, freedom, -shift)


@lru_cache(maxsize=4096)
def _critical(freedom: float, level: float) -> float:
    """Return the value that Student's t exceeds with probability ``level / 2``."""
    low, high = 0.0, 1.0
    while _above(high, freedom, 0.0) > level / 2:
        high *= 2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _above(middle, freedom, 0.0) > level / 2 else (low, middle)
    return high


def _above(t: float, freedom: float, shift: float) -> float:
    """Return the probability that a noncentral t variable exceeds ``t``.

    It is the mean of ``Phi(shift - t u)`` over ``u = sqrt(chi^2 / freedom)``, integrated by Gauss-Legendre quadrature
    over the range that holds all but about 1e-15 of u.
    """
    reach = 8 / math.sqrt(2 * freedom)
    start, end = max(0.0, 1 - reach), 1 + reach
    u = start + (end - start) * (_NODES + 1) / 2
    log_density = (
        math.log(2) + freedom / 2 * math.log(freedom / 2) - math.lgamma(freedom / 2)
        + (freedom - 1) * np.log(u) - freedom * u**2 / 2
    )  # fmt: skip
    normal = np.array([math.erfc((t * x - shift) / math.sqrt(2)) / 2 for x in u.tolist()])
    return float((np.exp(log_density) * normal * _WEIGHTS).sum() * (end - start) / 2)
