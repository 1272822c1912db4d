"""Measures of fronts against values by hand, closed forms and plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlbench_suite.evaluation.statistics.fronts import (
    expected_utility,
    inverted_distance,
    maximum_utility_loss,
    quality,
    weight_lattice,
)

CORNERS = np.array([[1.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize(("objectives", "count"), [(2, 32), (3, 36), (4, 35), (5, 35), (6, 21)])
def test_a_lattice_has_about_as_many_weights_as_asked_for(objectives: int, count: int) -> None:
    weights = weight_lattice(objectives, 32)
    assert weights.shape == (count, objectives)
    assert weights.sum(1) == pytest.approx(1)
    assert (weights >= 0).all()
    assert len(np.unique(weights, axis=0)) == count
    for corner in np.eye(objectives):
        assert (weights == corner).all(1).any()


def test_a_lattice_of_two_objectives_is_evenly_spaced() -> None:
    assert weight_lattice(2, 5).tolist() == [[0, 1], [0.25, 0.75], [0.5, 0.5], [0.75, 0.25], [1, 0]]
    for objectives, count in ((1, 32), (2, 1)):
        with pytest.raises(ValueError, match="at least 2 objectives and 2 points"):
            weight_lattice(objectives, count)


def test_the_expected_utility_of_corners_is_the_mean_largest_weight() -> None:
    """The largest of k uniform weights has the mean (1 + 1/2 + ... + 1/k) / k."""
    for objectives in (2, 3):
        mean = sum(1 / i for i in range(1, objectives + 1)) / objectives
        weights = weight_lattice(objectives, 50_000)
        assert expected_utility(np.eye(objectives), weights) == pytest.approx(mean, abs=5e-3)


def test_the_utility_loss_without_a_corner_is_largest_there() -> None:
    weights = weight_lattice(2, 101)
    assert maximum_utility_loss(CORNERS, CORNERS, weights) == 0
    assert maximum_utility_loss(CORNERS[:1], CORNERS, weights) == 1
    # A point between the corners, below the line, loses at them.
    assert maximum_utility_loss(np.array([[0.4, 0.4]]), CORNERS, weights) == pytest.approx(0.6)


def test_the_inverted_distance_counts_only_what_is_missing() -> None:
    front = np.array([[3.0, 0.0], [0.0, 4.0]])
    assert inverted_distance(front, front) == 0
    assert inverted_distance(front + 1, front) == 0
    # (0, 0) lacks 3 of the first and 4 of the second; (3, 0) lacks 0 and 4.
    assert inverted_distance(np.zeros((1, 2)), front) == pytest.approx(3.5)
    assert inverted_distance(np.array([[3.0, 0.0]]), front) == pytest.approx(2.0)
    # (0, 1) lacks (3, 0) and (0, 3).
    assert inverted_distance(np.array([[0.0, 1.0]]), front) == pytest.approx(3.0)


def test_measures_are_those_of_plain_loops() -> None:
    generator = np.random.default_rng(0)
    for objectives in (2, 3, 4):
        points, front = generator.normal(size=(2, 6, objectives))
        weights = weight_lattice(objectives, 40)
        best = [max(sum(map(math.prod, zip(w, p, strict=True))) for p in points) for w in weights]
        possible = [
            max(sum(map(math.prod, zip(w, p, strict=True))) for p in front) for w in weights
        ]
        assert expected_utility(points, weights) == pytest.approx(sum(best) / len(best))
        losses = [a - b for a, b in zip(possible, best, strict=True)]
        assert maximum_utility_loss(points, front, weights) == pytest.approx(max(losses))
        distances = [
            min(
                math.sqrt(sum(max(b - a, 0) ** 2 for a, b in zip(p, z, strict=True)))
                for p in points
            )
            for z in front
        ]
        assert inverted_distance(points, front) == pytest.approx(sum(distances) / len(distances))


def test_a_quality_has_what_is_known() -> None:
    reference = np.zeros(2)
    front = np.array([[2.0, 1.0], [1.0, 2.0]])  # two squares of 2, of which 1 is shared
    full = quality(front, reference, front)
    assert (full.hypervolume, full.hypervolume_ratio, full.cardinality) == (3, 1, 2)
    assert (full.maximum_utility_loss, full.inverted_distance) == (0, 0)
    half = quality(np.array([[2.0, 1.0], [1.0, 1.0], [np.nan, 9.0]]), reference, front)
    assert (half.hypervolume, half.hypervolume_ratio, half.cardinality) == (2, 2 / 3, 1)
    assert half.maximum_utility_loss == 1
    unknown = quality(front, None, None)
    assert unknown.expected_utility == full.expected_utility
    assert {*unknown[2:]} == {None}
