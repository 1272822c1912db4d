"""Check hypervolume and non-domination against inclusion-exclusion and closed forms.

``peers/`` compares them with pymoo.
"""

from itertools import combinations

import numpy as np
import pytest

from rlbench_suite.evaluation.statistics.pareto import hypervolume, non_dominated


def inclusion_exclusion(points: np.ndarray, reference: np.ndarray) -> float:
    """Volume of the union of the boxes [reference, point], term by term."""
    boxes = points[(points > reference).all(1)] - reference
    return sum(
        (-1) ** (size + 1) * np.prod(np.min(subset, axis=0))
        for size in range(1, len(boxes) + 1)
        for subset in combinations(boxes, size)
    )


@pytest.mark.parametrize("objectives", [1, 2, 3, 4, 5])
def test_equals_inclusion_exclusion(objectives: int) -> None:
    random = np.random.default_rng(objectives)
    for _ in range(20):
        points = random.normal(size=(random.integers(1, 9), objectives))
        points = np.concatenate([points, points[:1]])  # a double
        points[:, -1] = points[:, -1].round(0)  # ties
        reference = random.normal(-1, 0.5, objectives)
        assert hypervolume(points, reference) == pytest.approx(
            inclusion_exclusion(points, reference), abs=1e-12
        )


def test_closed_forms() -> None:
    assert hypervolume(np.array([[2.0, 3.0, 4.0]]), np.array([1.0, 1.0, 1.0])) == 6
    assert hypervolume(np.array([[3.0, 1.0], [1.0, 3.0]]), np.zeros(2)) == 5
    # Nothing above the reference.
    assert hypervolume(np.array([[-1.0, 5.0], [5.0, 0.0]]), np.zeros(2)) == 0
    assert hypervolume(np.empty((0, 2)), np.zeros(2)) == 0
    assert hypervolume([], [0.0, 0.0]) == 0


def dominates(q: tuple[float, ...], p: tuple[float, ...]) -> bool:
    return q != p and all(a >= b for a, b in zip(q, p, strict=True))


def test_non_dominated_by_definition() -> None:
    random = np.random.default_rng(3)
    for objectives in (1, 2, 3):
        points = random.integers(0, 5, (40, objectives)).astype(float)  # many ties and doubles
        distinct = {tuple(p) for p in points}
        front = [p for p in distinct if not any(dominates(q, p) for q in distinct)]
        result = non_dominated(points)
        assert [tuple(p) for p in result] == sorted(front)


@pytest.mark.parametrize(
    ("points", "reference"),
    [
        ([[1.0, np.nan]], [0.0, 0.0]),
        ([[1.0, np.inf]], [0.0, 0.0]),
        ([1.0, 2.0], [0.0, 0.0]),
        ([[1.0, 2.0]], [0.0]),
        ([[1.0, 2.0]], [0.0, np.nan]),
    ],
)
def test_refuses_what_is_no_set_of_points(points: list, reference: list) -> None:
    with pytest.raises(ValueError, match="finite"):
        hypervolume(np.array(points), np.array(reference))
