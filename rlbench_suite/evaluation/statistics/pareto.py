"""Pareto fronts of vector returns with all objectives maximised, and their hypervolume."""

from __future__ import annotations

import numpy as np


def non_dominated(points: np.ndarray) -> np.ndarray:
    """Return the points that no other point dominates, each once, sorted by their first objective.

    A point dominates another if it is at least as good in every objective and better in one.

    Args:
        points: ``(n, k)``.

    Raises:
        ValueError: not two-dimensional, or not finite.
    """
    points = np.unique(_check_points(points), axis=0)
    at_least_as_good = (points[:, None] >= points[None]).all(-1)
    # Every point is at least as good as itself; after `unique`, as no other point of the front.
    return points[at_least_as_good.sum(0) == 1]


def hypervolume(points: np.ndarray, reference: np.ndarray) -> float:
    """Return the exact volume between the reference point and the points that dominate it.

    Slices along the last objective, one slab between neighbouring values (Knowles 2002; While et
    al. 2006, doi:10.1109/TEVC.2005.851275, "hypervolume by slicing objectives"). Points that are
    not above the reference in every objective add nothing. Meant for the small sets of a Pareto
    front: the cost grows as ``n**(k - 1)``.

    Args:
        points: ``(n, k)``; ``n`` may be zero.
        reference: ``(k,)``.

    Raises:
        ValueError: the shapes do not fit, or a number is not finite.
    """
    reference = np.asarray(reference, np.float64)
    points = np.asarray(points, np.float64)
    points = _check_points(points.reshape(0, reference.size) if points.size == 0 else points)
    if reference.shape != points.shape[1:] or not np.isfinite(reference).all():
        raise ValueError(
            f"The reference point needs {points.shape[1]} finite numbers, got {reference!r}."
        )
    above = points[(points > reference).all(1)] - reference
    return _volume(non_dominated(above)) if len(above) else 0.0


def _volume(points: np.ndarray) -> float:
    """Return the volume between the origin and the points, which are all positive."""
    if points.shape[1] == 1:
        return float(points.max())
    points = points[np.argsort(-points[:, -1], kind="stable")]
    heights = points[:, -1] - np.append(points[1:, -1], 0.0)
    return sum(float(h) * _volume(points[: i + 1, :-1]) for i, h in enumerate(heights) if h > 0)


def _check_points(points: np.ndarray) -> np.ndarray:
    points = np.asarray(points, np.float64)
    if points.ndim != 2 or not np.isfinite(points).all():
        raise ValueError(
            f"Points are finite numbers of shape (n, k), got shape {points.shape}: {points!r}."
        )
    return points
