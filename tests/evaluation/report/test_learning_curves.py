"""Sample-efficiency curves against values worked out by hand."""

import numpy as np
import pytest

from rlbench_suite.core.scale import Scale, Score
from rlbench_suite.evaluation.report.learning_curves import MAX_BANDS, POINTS, charts, curve
from rlbench_suite.evaluation.runs.run import TrainingCurve
from rlbench_suite.evaluation.statistics.aggregates import iqm

NAN = float("nan")


def test_a_curve_holds_the_last_known_score():
    fast = np.array([10.0, 20.0, 40.0]), np.array([NAN, 0.2, 0.4])
    slow = np.array([10.0, 50.0, 100.0]), np.array([0.1, NAN, 1.0])
    result = curve({"a": {0: fast, 1: slow}}, relative=False)
    assert result is not None
    times, values = result
    # From the first time at which both are known.
    assert times.tolist() == [20 + 8 * i for i in range(POINTS)]
    expected = [[0.2 if t < 40 else 0.4, 0.1 if t < 100 else 1.0] for t in times]
    assert values.iqm == pytest.approx(
        [iqm({"a": scores}, replicates=1).point for scores in expected]
    )
    assert (values.low <= values.iqm).all()
    assert (values.iqm <= values.high).all()


def test_shares_of_training_make_tasks_of_unequal_length_comparable():
    short = np.array([1.0, 2.0]), np.array([0.0, 1.0])
    long = np.array([1000.0, 2000.0]), np.array([0.0, 1.0])
    result = curve({"a": {0: short}, "b": {0: long}}, relative=True)
    assert result is not None
    times, values = result
    assert times == pytest.approx(np.linspace(0.5, 1, POINTS))
    assert values.iqm.tolist() == [0.0] * (POINTS - 1) + [1.0]


def test_curves_without_bands_have_the_same_points():
    rng = np.random.default_rng(0)
    tasks = {
        task: {seed: (np.arange(1, 12.0), rng.normal(size=11)) for seed in range(seeds)}
        for task, seeds in (("a", 3), ("b", 5), ("c", 2))
    }
    with_band, without = (curve(tasks, relative=True, band=band) for band in (True, False))
    assert with_band is not None
    assert without is not None
    assert without[1].iqm == pytest.approx(with_band[1].iqm, abs=1e-12)
    assert np.isnan(without[1].low).all()


def test_no_curve_without_scores():
    assert curve({}, relative=True) is None
    empty = np.array([]), np.array([])
    unknown = np.array([1.0, 2.0]), np.array([NAN, NAN])
    scored = np.array([1.0]), np.array([0.5])
    for unscored in (empty, unknown):
        assert curve({"a": {0: scored, 1: unscored}}, relative=True) is None


def test_charts_normalise_and_leave_out_agents_without_curves():
    def curves_to(last: float) -> dict[int, TrainingCurve]:
        steps = np.array([100, 200])
        return {
            seed: TrainingCurve(steps, steps / 100, np.array([10.0, last])) for seed in range(2)
        }

    scales = {"t": Scale("random", Score(10, 9, 11, 100), Score(20, 19, 21, 100))}
    nothing = {0: TrainingCurve(np.array([]), np.array([]), np.array([]))}
    curves = {("x", "t"): curves_to(15.0), ("y", "t"): curves_to(20.0), ("z", "t"): nothing}
    over_steps, over_seconds = charts(curves, scales, ["t"], {"x": 0, "y": 1, "z": 2})
    assert "share of the training steps" in over_steps
    assert "seconds of training" in over_seconds
    for chart in (over_steps, over_seconds):
        assert all(f"<title>{agent}</title>" in chart for agent in "xy")
        assert "<title>z</title>" not in chart
        assert chart.count("<polygon") == 2
    assert list(charts({("z", "t"): nothing}, scales, ["t"], {"z": 0})) == []
    assert list(charts(curves, scales, ["other"], {"x": 0})) == []
    many = {(str(i), "t"): curves_to(15.0) for i in range(MAX_BANDS + 1)}
    (first, _) = charts(many, scales, ["t"], {str(i): 0 for i in range(MAX_BANDS + 1)})
    assert "<polygon" not in first
    assert first.count("<polyline") == MAX_BANDS + 1
