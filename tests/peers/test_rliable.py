"""Point values and percentile intervals against rliable, which imports only beside pandas < 3."""

from collections.abc import Callable

import numpy as np
import pytest

from rlbench_suite.evaluation.statistics import aggregates
from rlbench_suite.evaluation.statistics.intervals import Estimate
from rlbench_suite.evaluation.statistics.profiles import (
    performance_profile,
    probability_of_improvement,
)

try:
    from rliable import library as rly
    from rliable import metrics
except (
    ImportError,
    TypeError,
) as error:  # with pandas 3 the import of its dependency arch raises TypeError
    pytest.skip(f"rliable cannot be imported: {error}", allow_module_level=True)

TASKS, SEEDS, REPLICATES = 12, 6, 1_000
REPEATS = 10
"""Bootstraps of each side, from which the noise of an interval's ends is measured."""


@pytest.fixture(scope="module")
def matrices() -> tuple[np.ndarray, np.ndarray]:
    """Scores of two agents, shape (runs, tasks), with ties and one equal column."""
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(0.7, 0.3, (SEEDS, TASKS)) + np.linspace(0, 0.5, TASKS), 2)
    y = np.round(rng.normal(0.6, 0.4, (SEEDS + 2, TASKS)) + np.linspace(0, 0.5, TASKS), 2)
    y[:SEEDS, 3] = x[:, 3]
    return x, y


def scores(matrix: np.ndarray) -> dict[str, np.ndarray]:
    return {f"task{j:02}": column for j, column in enumerate(matrix.T)}


AGGREGATES = [
    (aggregates.iqm, metrics.aggregate_iqm),
    (aggregates.mean, metrics.aggregate_mean),
    (aggregates.median, metrics.aggregate_median),
    (aggregates.optimality_gap, metrics.aggregate_optimality_gap),
]
TAUS = np.array([0.3, 0.6, 0.9, 1.2])


def assert_same_ends(ours: np.ndarray, peer_ends: np.ndarray) -> None:
    """Check that mean ends, (REPEATS, n_ends), differ by less than their noise explains.

    Each side is bootstrapped REPEATS times.

    The standard error of the difference of two means is estimated from the repeats themselves, a t
    statistic with about 18 degrees of freedom: 5 standard errors are exceeded by chance once in
    10,000 ends. An end that never moves, as discrete statistics have them, must agree to rounding.
    """
    difference = ours.mean(axis=0) - peer_ends.mean(axis=0)
    error = np.sqrt((ours.var(axis=0, ddof=1) + peer_ends.var(axis=0, ddof=1)) / REPEATS)
    assert (np.abs(difference) <= 5 * error + 1e-12).all(), (difference, error)


@pytest.mark.parametrize(
    ("ours", "peer_statistic"), AGGREGATES, ids=["iqm", "mean", "median", "optimality_gap"]
)
def test_aggregates(
    ours: Callable[..., Estimate],
    peer_statistic: Callable[..., float],
    matrices: tuple[np.ndarray, np.ndarray],
) -> None:
    x = matrices[0]
    assert ours(scores(x), replicates=1).point == pytest.approx(peer_statistic(x), abs=1e-12)
    our_ends, peer_ends = [], []
    for repeat in range(REPEATS):
        np.random.seed(repeat)  # noqa: NPY002 - rliable ignores its random_state and draws from the global generator
        interval = rly.get_interval_estimates(
            {"x": x}, lambda a: np.array([peer_statistic(a)]), reps=REPLICATES
        )[1]["x"]
        peer_ends.append(interval[:, 0])
        estimate = ours(scores(x), replicates=REPLICATES, seed=repeat, method="percentile")
        our_ends.append([estimate.low, estimate.high])
    assert_same_ends(np.array(our_ends), np.array(peer_ends))


def test_performance_profile(matrices: tuple[np.ndarray, np.ndarray]) -> None:
    """Points are theirs.

    Their percentile intervals cover .26 of few seeds, so ours are score intervals.
    """
    x = matrices[0]
    points, _ = rly.create_performance_profile({"x": x}, TAUS, reps=2)
    np.testing.assert_allclose(
        performance_profile(scores(x), TAUS).fraction, points["x"], rtol=0, atol=1e-12
    )


def test_probability_of_improvement(matrices: tuple[np.ndarray, np.ndarray]) -> None:
    """As for profiles."""
    x, y = (matrix[:, :6] for matrix in matrices)
    points, _ = rly.get_interval_estimates(
        {"x,y": (x, y)}, metrics.probability_of_improvement, reps=2
    )
    estimate = probability_of_improvement(scores(x), scores(y))
    assert estimate.point == pytest.approx(float(np.ravel(points["x,y"])[0]), abs=1e-12)


def test_sample_efficiency() -> None:
    rng = np.random.default_rng(1)
    curves = rng.normal(size=(5, 4, 3)).cumsum(axis=2)  # runs, tasks, checkpoints

    def iqm_at_each(a: np.ndarray) -> np.ndarray:
        return np.array([metrics.aggregate_iqm(a[..., k]) for k in range(a.shape[2])])

    our_ends, peer_ends = [], []
    for repeat in range(REPEATS):
        np.random.seed(repeat)  # noqa: NPY002
        points, intervals = rly.get_interval_estimates({"x": curves}, iqm_at_each, reps=REPLICATES)
        peer_ends.append(np.ravel(intervals["x"]))
        curve = aggregates.sample_efficiency(
            {f"task{j}": curves[:, j] for j in range(4)},
            replicates=REPLICATES,
            seed=repeat,
            method="percentile",
        )
        np.testing.assert_allclose(curve.iqm, points["x"], rtol=0, atol=1e-12)
        our_ends.append(np.concatenate([curve.low, curve.high]))
    assert_same_ends(np.array(our_ends), np.array(peer_ends))
