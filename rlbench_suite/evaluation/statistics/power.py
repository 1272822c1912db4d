"""Number of seeds that shows a difference between two agents, from the spreads that a run measured.

The power is that of the decision in :mod:`rlbench_suite.evaluation.report.comparison`. The paired
permutation test must fall below the level that Holm's correction leaves to the smallest of several
p-values, as if nothing else differed. For a verdict over tasks the 95 % interval must also exclude
0. Differences of pairs count as normal. Besides, the pairs must exclude a share of unseen failures
that would undo the measured difference (:mod:`.unseen_runs`).

The probability comes from simulated experiments. Only two numbers a task are drawn, the sum of its
n differences x and their sum of squares about the mean. They have the normal and the chi-squared
distribution, so an experiment with 10,000 seeds takes as long as one with five, and all use the
same random numbers. Both decisions follow from them:

* **Permutation test.** With random signs, ``sum(x) / sqrt(sum(x^2))`` has the variance 1 and the
  excess kurtosis ``-2 sum(x^4) / sum(x^2)^2``. It is taken for the ratio that N normal x of mean 0
  have, with the same kurtosis. That ratio is a function of Student's t with N - 1 degrees of
  freedom (Box and Andersen 1955, doi:10.1111/j.2517-6161.1955.tb00176.x). P-values are multiples of
  the least one, so the largest multiple below the level takes its place.
* **Interval.** Student's t with Satterthwaite's degrees of freedom. The studentised bootstrap also
  corrects for the skewness that a sample happens to have (Hall 1988, doi:10.1214/aos/1176350933).
  Normal differences have none, so the correction is noise, which is added with its standard
  deviation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from rlbench_suite.evaluation.statistics.permutation import least_p
from rlbench_suite.evaluation.statistics.unseen_runs import (
    SCALE,
    critical_t,
    runs_to_exclude,
    unseen_share,
)

DIFFERENCES = (0.02, 0.05, 0.1, 0.2)
"""Differences of normalised scores that a table shows by default."""

POWER = 0.8
"""Probability of a verdict if there is a difference."""

LEVEL = 0.05
"""Probability of a verdict if there is none."""

MIN_PAIRED_SEEDS = 5
"""Seeds below which nothing is concluded, because too few of them estimate a spread."""

MAX_SEEDS = 10_000
"""Seeds of an agent beyond which no number is given."""

_EXPERIMENTS = 4_000
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Need:
    """Seeds needed on one task, or on the mean over tasks.

    Attributes:
        spread: standard deviation of one seed's score; that of the mean over tasks in the
            aggregate.
        measured: number of seeds that the spread was measured with, the least over tasks.
        seeds: seeds of each agent by difference; None if more than :data:`MAX_SEEDS` are needed,
            or if the spread is 0, which tells nothing.
    """

    spread: float
    measured: int
    seeds: Mapping[float, int | None]


def needs(
    scores: Mapping[str, Sequence[float]], differences: Sequence[float], *, agents: int = 2
) -> tuple[Need, dict[str, Need]]:
    """Return the seeds needed to tell an agent from one of equal spread.

    They are needed in the aggregate, and by task.

    The seeds of the two agents count as independent, so a difference has twice the variance of a
    score. Fewer seeds are needed where the agents' scores rise and fall together. In the aggregate
    the difference is the same on every task.

    Args:
        scores: normalised scores of the seeds by task.
        differences: differences of the mean score to see.
        agents: number of agents that are compared, each with each, at least two.

    Raises:
        ValueError: no task, a task with fewer than two seeds, or a difference that is 0 or not
            finite.
    """
    if not scores:
        raise ValueError("There are no tasks to compute the power on.")
    for task, values in scores.items():
        if len(values) < 2:
            raise ValueError(
                f"{task} has one seed, and a spread needs at least two; run more with --seeds."
            )
    variances = {task: float(np.var(values, ddof=1)) for task, values in scores.items()}

    def compute_need(tasks: Sequence[str], comparisons: int, interval: bool) -> Need:
        task_variances = [variances[task] for task in tasks]
        unseen = float(np.mean([spans[task] for task in tasks]))
        return Need(
            spread=math.sqrt(sum(task_variances)) / len(task_variances),
            measured=min(len(scores[task]) for task in tasks),
            seeds={
                d: seeds_needed(
                    [d] * len(task_variances),
                    [2 * v for v in task_variances],
                    comparisons=comparisons,
                    interval=interval,
                    unseen=unseen,
                )
                if any(task_variances)
                else None
                for d in differences
            },
        )

    means = {task: float(np.mean(values)) for task, values in scores.items()}
    spans = {
        task: max(means[task] - min(SCALE[0], *values), max(SCALE[1], *values) - means[task])
        for task, values in scores.items()
    }
    pairs = math.comb(agents, 2)
    return compute_need(list(scores), pairs, True), {
        task: compute_need([task], pairs * len(scores), False) for task in scores
    }


def seeds_needed(
    differences: Sequence[float],
    variances: Sequence[float],
    *,
    comparisons: int = 1,
    interval: bool = False,
    unseen: float = 0.0,
) -> int | None:
    """Return the fewest pairs that show a difference with the power :data:`POWER`.

    They are at least :data:`MIN_PAIRED_SEEDS`.

    Args:
        differences: true mean difference of a pair, by task. Their mean is the difference to see.
        variances: variance of the difference of a pair, by task.
        comparisons: number of p-values that Holm's method corrects together.
        interval: the interval must exclude 0, too.
        unseen: mean over tasks of the difference of a pair that was not seen, at worst for the
            better agent.

    Returns:
        None if more than :data:`MAX_SEEDS` are needed.

    Raises:
        ValueError: the mean difference is 0 or not finite.
    """
    mean = sum(differences) / len(differences)
    if not (math.isfinite(mean) and mean != 0):
        raise ValueError(f"A difference to see must be a finite number other than 0, got {mean}.")

    def enough(seeds: int) -> bool:
        power = power_of(
            differences, variances, seeds, comparisons=comparisons, interval=interval, unseen=unseen
        )
        return power >= POWER

    size = abs(mean)
    runs = runs_to_exclude(size / (size + abs(unseen))) if unseen else 0
    min_seeds = max(MIN_PAIRED_SEEDS, math.ceil(runs / len(differences)))
    if min_seeds > MAX_SEEDS:
        return None
    low, high = min_seeds - 1, min_seeds
    while not enough(high):
        if high == MAX_SEEDS:
            return None
        low, high = high, min(2 * high, MAX_SEEDS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def power_of(
    differences: Sequence[float],
    variances: Sequence[float],
    seeds: int,
    *,
    comparisons: int = 1,
    interval: bool = False,
    unseen: float = 0.0,
) -> float:
    """Return the probability that the better agent is called better.

    Arguments as :func:`seeds_needed`.
    """
    smallest_p = least_p(seeds * len(variances))
    level = (math.ceil(LEVEL / comparisons / smallest_p) - 1) * smallest_p
    if level <= 0:
        return 0.0
    d = np.array(differences)[:, None] * math.copysign(1, sum(differences))
    # Scores without any spread divide by no zero.
    v = np.array(variances)[:, None] + 1e-12 * (d * d).max()
    sums, chi_squared, skewness = _normal_numbers(len(v))
    freedom = seeds - 1
    sums = seeds * d + np.sqrt(seeds * v) * sums
    # Wilson and Hilferty (1931): the cube root of a chi-squared variable is almost normal.
    root = 1 - 2 / (9 * freedom) + math.sqrt(2 / (9 * freedom)) * chi_squared
    spreads = v * freedom * root * root * root
    total, squares = sums.sum(0), (sums**2 / seeds + spreads).sum(0)
    second, fourth = v + d**2, 3 * v**2 + 6 * v * d**2 + d**4  # moments of a difference
    normals = 3 * seeds * second.sum() ** 2 / fourth.sum()
    t = critical_t(level, normals - 1)
    is_detected = total > t * np.sqrt(squares * normals / (normals - 1 + t**2))
    share = unseen_share(seeds * len(v))
    is_detected &= (1 - share) * total / (seeds * len(v)) >= share * abs(unseen)
    if interval:
        spread = spreads.sum(0)
        t = critical_t(LEVEL, freedom * spread**2 / (spreads**2).sum(0))
        z = -_NORMAL.inv_cdf(LEVEL / 2)
        noise = math.sqrt(6 * (v**3).sum() / v.sum() ** 3) / seeds * (2 * z**2 + 1) / (6 * z)
        is_detected &= total > t * np.exp(noise * skewness) * np.sqrt(seeds * spread / freedom)
    return float(is_detected.mean())


@lru_cache(maxsize=8)
def _normal_numbers(tasks: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return standard normal numbers: two for each task and experiment, one for each experiment.

    Each row has the same evenly spaced quantiles in another order (a Latin hypercube), which leaves
    less to chance.
    """
    quantiles = [_NORMAL.inv_cdf((i + 0.5) / _EXPERIMENTS) for i in range(_EXPERIMENTS)]
    rows = np.random.default_rng(0).permuted(np.tile(quantiles, (2 * tasks + 1, 1)), axis=1)
    return rows[:tasks], rows[tasks:-1], rows[-1]
