"""Quality of a set of policies by their mean vector returns, all objectives maximised.

``pareto.py`` has the hypervolume. The other measures are those of Hayes et al. 2022
(doi:10.1007/s10458-022-09552-y, section 7) and Ishibuchi et al. 2015
(doi:10.1007/978-3-319-15892-1_8). Utilities are weighted sums, with weights on the simplex.
"""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np

from rlbench_suite.evaluation.statistics.pareto import hypervolume, non_dominated

UTILITIES = 1_000
"""Approximate number of weights over which utilities are compared."""


def weight_lattice(objectives: int, count: int) -> np.ndarray:
    """Return weights that cover the simplex evenly, float64 ``(n, objectives)``, in lexical order.

    They are all vectors of whole multiples of ``1 / m`` whose sum is 1 (the simplex lattice of Das
    & Dennis 1998, doi:10.1137/S1052623496307510), with the ``m`` for which their number is nearest
    to ``count``.

    Args:
        objectives: number of weights of a vector, at least 2.
        count: desired number of vectors, at least 2.

    Raises:
        ValueError: a number is too small.
    """
    if objectives < 2 or count < 2:
        raise ValueError(
            f"A lattice has at least 2 objectives and 2 points, got {objectives} and {count}."
        )

    def points(steps: int) -> int:
        return comb(steps + objectives - 1, objectives - 1)

    steps = 1
    while abs(points(steps + 1) - count) <= abs(points(steps) - count):
        steps += 1
    return _compositions(steps, objectives) / steps


def _compositions(total: int, length: int) -> np.ndarray:
    """Return all vectors of whole numbers with a sum, ``(n, length)``, in lexical order."""
    if length == 1:
        return np.array([[total]])
    return np.concatenate(
        [
            np.insert(_compositions(total - first, length - 1), 0, first, axis=1)
            for first in range(total + 1)
        ]
    )


def expected_utility(points: np.ndarray, weights: np.ndarray) -> float:
    """Return the mean over weights of the best weighted return (Zintgraf et al. 2015).

    Args:
        points: ``(n, k)``.
        weights: ``(m, k)``.
    """
    return float((weights @ points.T).max(1).mean())


def maximum_utility_loss(points: np.ndarray, front: np.ndarray, weights: np.ndarray) -> float:
    """Return the largest loss of weighted return against a front, over weights.

    Args:
        points: ``(n, k)``.
        front: the best possible points, ``(p, k)``.
        weights: ``(m, k)``.
    """
    return float(((weights @ front.T).max(1) - (weights @ points.T).max(1)).max())


def inverted_distance(points: np.ndarray, front: np.ndarray) -> float:
    """Return IGD+: the mean over a front of the least shortfall of a point (Ishibuchi et al. 2015).

    The shortfall is the Euclidean length of what the point lacks in each objective.

    Args:
        points: ``(n, k)``.
        front: the best possible points, ``(p, k)``.
    """
    lacks = np.maximum(front[:, None] - points[None], 0)
    return float(np.sqrt((lacks**2).sum(-1)).min(1).mean())


class Quality(NamedTuple):
    """Measures of a set of policies. Those that compare it with the exact front may be None."""

    cardinality: float
    """Number of points that no other dominates."""
    expected_utility: float
    hypervolume: float | None
    """None without a reference point."""
    hypervolume_ratio: float | None
    """Hypervolume in parts of that of the exact front."""
    maximum_utility_loss: float | None
    inverted_distance: float | None


def quality(points: np.ndarray, reference: np.ndarray | None, exact: np.ndarray | None) -> Quality:
    """Return all measures of a set of policies.

    Args:
        points: mean vector returns of the policies, ``(n, k)``; those that are not finite count as
            no policy, and one of them is finite.
        reference: point from which hypervolume is measured, ``(k,)``; None if there is none.
        exact: the best possible points, ``(p, k)``; None if they are not known.
    """
    points = points[np.isfinite(points).all(1)]
    weights = weight_lattice(points.shape[1], UTILITIES)
    volume = None if reference is None else hypervolume(points, reference)
    measures = float(len(non_dominated(points))), expected_utility(points, weights), volume
    if exact is None:
        return Quality(*measures, None, None, None)
    ratio = None
    if volume is not None and reference is not None:
        exact_volume = hypervolume(exact, reference)
        ratio = volume / exact_volume if exact_volume else None
    losses = maximum_utility_loss(points, exact, weights), inverted_distance(points, exact)
    return Quality(*measures, ratio, *losses)
