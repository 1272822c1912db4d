"""Hypervolume against pymoo."""

import numpy as np
import pytest

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
