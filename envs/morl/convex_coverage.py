"""Convex coverage sets, exactly, for problems that dynamic programming solves for fixed weights.

Optimistic linear support (Roijers, Whiteson & Oliehoek 2015, doi:10.1613/jair.4550): the best
weighted return is a convex, piecewise linear function of the weights. If the returns known so far
are best at all corners of their own upper envelope, they are best everywhere. Else a corner shows a
better return, which is added.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

ROUNDING = 1e-7
"""Weighted returns whose difference is smaller are equal."""
NUDGE = 1e-5
"""Part of equal weights that is mixed into each corner.

So a best return is one that no other dominates, although a corner may ignore an objective.
"""


def convex_coverage_set(
    best_return: Callable[[np.ndarray], np.ndarray], objectives: int
) -> np.ndarray:
    """Return expected returns among which there is a best one for all positive weights.

    Args:
        best_return: returns the vector return ``(k,)`` of a policy that is best for weights
            ``(k,)``, which sum to one.
        objectives: their number k.

    Returns:
        ``(points, k)``, sorted by the first objective.
    """
    equal = np.full(objectives, 1 / objectives)
    points = best_return(equal)[None]
    while True:
        for corner in corner_weights(points):
            weights = (1 - NUDGE) * corner + NUDGE * equal
            candidate = best_return(weights)
            if candidate @ weights > (points @ weights).max() + ROUNDING:
                points = np.append(points, candidate[None], axis=0)
                break
        else:
            return points[np.argsort(points[:, 0])]


def corner_weights(points: np.ndarray) -> np.ndarray:
    """Return the weights at the corners of the upper envelope of points ``(n, k)``.

    They are ``(corners, k)``. At a corner k of the bounds are tight: that a point is best, or that
    a weight is zero.
    """
    count, k = points.shape
    bounds = np.concatenate(
        [np.append(points, -np.ones((count, 1)), 1), np.append(-np.eye(k), np.zeros((k, 1)), 1)]
    )  # bounds @ (weights, envelope) <= 0
    weights_sum_to_one = np.append(np.ones(k), 0.0)
    corners = []
    for tight in combinations(range(count + k), k):
        equations = np.concatenate([bounds[list(tight)], weights_sum_to_one[None]])
        if abs(np.linalg.det(equations)) < 1e-12:
            continue
        corner = np.linalg.solve(equations, np.append(np.zeros(k), 1.0))
        if (bounds @ corner <= 1e-9).all():
            corners.append(np.maximum(corner[:k], 0.0))
    return np.unique(np.round(corners, 12), axis=0)
