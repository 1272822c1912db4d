"""Compute shares of runs with score intervals.

They are performance profiles, and probabilities of improvement and of a level.

They are fractions that are often 0 or 1, where every resample is the same, so a bootstrap knows
nothing of their error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rlbench_suite.evaluation.statistics.intervals import (
    Estimate,
    Floats,
    Sample,
    Scores,
    as_floats,
)
from rlbench_suite.evaluation.statistics.unseen_runs import stratified_share

TAUS: tuple[float, ...] = tuple(round(0.02 * i, 2) for i in range(76))
"""Default thresholds of performance profiles: 0, 0.02, ..., 1.5."""


@dataclass(frozen=True)
class Profile:
    """Fraction of scores above each threshold, with the ends of its pointwise interval.

    The shapes are ``(n_taus,)``.
    """

    taus: Floats
    fraction: Floats
    low: Floats
    high: Floats


def performance_profile(
    scores: Scores, taus: ArrayLike = TAUS, *, confidence: float = 0.95
) -> Profile:
    """Return, for each tau, the mean over tasks of the fraction of the task's scores above tau.

    The band is a score interval at each tau. A seed counts as one run, as a binomial count has
    them.

    Args:
        scores: task to scores, shape ``(n_seeds,)``.
        taus: thresholds, shape ``(n_taus,)``, finite.
        confidence: nominal pointwise coverage of the band, in (0, 1).

    Raises:
        ValueError: as :func:`iqm`, or thresholds that are not a finite vector.
    """
    return profile_of(Sample.of(scores), thresholds(taus), _check_confidence(confidence))


def probability_of_improvement(x: Scores, y: Scores, *, confidence: float = 0.95) -> Estimate:
    """Return the probability that a run of x scores above a run of y on a random task.

    Ties count one half.

    The mean over the tasks both have of the Mann-Whitney statistic ``U_j / (n_xj n_yj)``. Its
    variance is at most that of a binomial share of ``min(n_xj, n_yj)`` runs, whatever the scores
    are, and the score interval is made for that.

    Args:
        x: task to scores of one agent, shape ``(n_seeds,)``.
        y: task to scores of the other; tasks that only one of them has are not counted.
        confidence: nominal coverage of the interval, in (0, 1).

    Raises:
        ValueError: as :func:`iqm`, or no task in common.
    """
    samples = {"x": Sample.of(x, "x"), "y": Sample.of(y, "y")}
    tasks = shared_tasks(samples)
    return improvement_of(
        samples["x"].on(tasks), samples["y"].on(tasks), _check_confidence(confidence)
    )


def probability_above(scores: Scores, level: float, *, confidence: float = 0.95) -> Estimate:
    """Return the probability that a run scores above a level on a random task.

    A score at the level counts one half.

    Args:
        scores: task to scores, shape ``(n_seeds,)``.
        level: the score to beat, the same on all tasks.
        confidence: nominal coverage of the interval, in (0, 1).

    Raises:
        ValueError: as :func:`iqm`.
    """
    sample = Sample.of(scores)
    shares = [
        float(np.mean((values > level) + 0.5 * (values == level))) for values in sample.strata
    ]
    return _share(shares, sample.sizes, _check_confidence(confidence))


def thresholds(taus: ArrayLike) -> Floats:
    """Check thresholds and return them as a vector."""
    grid = as_floats(taus, "Thresholds")
    if grid.ndim != 1 or not len(grid) or not np.isfinite(grid).all():
        raise ValueError(f"Thresholds must be a vector of finite numbers; given {grid.tolist()}.")
    return grid


def profile_of(sample: Sample, taus: Floats, confidence: float) -> Profile:
    """Return :func:`performance_profile` of checked scores and thresholds."""
    above = np.stack([
        (len(values) - np.searchsorted(np.sort(values), taus, side="right")) / len(values)
        for values in sample.strata
    ])  # fmt: skip
    low, high = stratified_share(above, sample.sizes, confidence)
    if max(sample.sizes) < 2:
        low, high = np.full((2, len(taus)), np.nan)
    return Profile(taus, above.mean(axis=0), low, high)


def improvement_of(x: Sample, y: Sample, confidence: float) -> Estimate:
    """Return the probability of improvement.

    A task counts as the runs of the agent that has fewer.
    """
    wins = []
    for a, b in zip(x.strata, y.strata, strict=True):
        ordered = np.sort(b)
        below = np.searchsorted(ordered, a, side="left") + np.searchsorted(ordered, a, side="right")
        wins.append(float(below.sum()) / (2 * len(a) * len(b)))
    runs = [min(sizes) for sizes in zip(x.sizes, y.sizes, strict=True)]
    return _share(wins, runs, confidence)


def _share(shares: Sequence[float], runs: Sequence[int], confidence: float) -> Estimate:
    """Return the mean over tasks of a share of runs.

    It has no interval if no task has two runs.
    """
    point = math.fsum(shares) / len(shares)
    if max(runs) < 2:
        return Estimate(point, math.nan, math.nan)
    low, high = stratified_share(np.array(shares)[:, None], runs, confidence)
    return Estimate(point, min(float(low[0]), point), max(float(high[0]), point))


def _check_confidence(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"The confidence must lie in (0, 1); given {confidence}.")
    return confidence


def shared_tasks(samples: Mapping[str, Sample]) -> tuple[str, ...]:
    """Return the tasks that all have scores on, sorted."""
    shared = set.intersection(*(set(sample.tasks) for sample in samples.values()))
    if not shared:
        lists = "; ".join(
            f"{owner} has {', '.join(sample.tasks)}" for owner, sample in samples.items()
        )
        raise ValueError(f"There is no task that all have scores on: {lists}.")
    return tuple(sorted(shared))
