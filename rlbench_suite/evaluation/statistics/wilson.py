"""Wilson's interval of a mean of scores between 0 and 1."""

from __future__ import annotations

import math
from statistics import fmean

from rlbench_suite.core.scale import NORMAL_QUANTILE, Score


def wilson_interval(scores: list[float]) -> Score:
    """Return the mean of scores in [0, 1] and Wilson's 95 % interval.

    It has a width even if all scores are equal.

    Wilson's interval is for scores of 0 and 1. Scores between them vary less, so for them it is
    never too narrow.
    """
    n = len(scores)
    mean = fmean(scores)
    z = NORMAL_QUANTILE
    middle = (mean + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(mean * (1 - mean) / n + z * z / (4 * n * n))
    low = middle - half if mean > 0 else 0.0
    high = middle + half if mean < 1 else 1.0
    return rounded_score(mean, low, high, n)


def rounded_score(point: float, low: float, high: float, count: int) -> Score:
    """Return a score with numbers of six significant digits."""
    point, low, high = (float(f"{value:.6g}") for value in (point, low, high))
    return Score(point, low, high, count)
