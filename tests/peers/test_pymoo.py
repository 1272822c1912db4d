"""Measures of fronts against pymoo."""

import numpy as np
import pytest

from rlbench_suite.evaluation.statistics.fronts import inverted_distance
from rlbench_suite.evaluation.statistics.pareto import hypervolume

indicator = pytest.importorskip("pymoo.indicators.hv", reason="needs the extra peers")


@pytest.mark.parametrize("objectives", [2, 3, 4])
def test_equals_pymoo(objectives: int) -> None:
    random = np.random.default_rng(objectives)
    for _ in range(10):
        points = random.uniform(size=(30, objectives))
        reference = random.uniform(0, 0.3, objectives)
        expected = indicator.HV(ref_point=-reference)(-points)  # pymoo minimises
        assert hypervolume(points, reference) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("objectives", [2, 3])
def test_inverted_distances_are_those_of_pymoo(objectives: int) -> None:
    igd = pytest.importorskip("pymoo.indicators.igd_plus", reason="needs the extra peers")
    generator = np.random.default_rng(1)
    for _ in range(5):
        points, front = generator.normal(size=(2, 8, objectives))
        expected = igd.IGDPlus(-front)(-points)
        assert inverted_distance(points, front) == pytest.approx(expected)
