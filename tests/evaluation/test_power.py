"""Power against SciPy's noncentral t distribution and against simulated experiments."""

import numpy as np
import pytest
from scipy import stats

from rlbench_suite.evaluation import power
from rlbench_suite.evaluation.power import needs, power_of, seeds_needed


@pytest.mark.parametrize("freedom", [1.0, 2.0, 8.0, 30.5, 3_000.0, 40_000.0])
def test_tails_of_t_are_those_of_scipy(freedom: float):
    assert power._critical(freedom, 0.05) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-9)
    for shift in (-3.0, 0.0, 0.5, 3.0, 6.0):
        assert power._above(2.0, freedom, shift) == pytest.approx(stats.nct.sf(2.0, freedom, shift), abs=1e-9)


@pytest.mark.parametrize("agents", [1, 2])
def test_power_on_one_task_is_that_of_the_t_test(agents: int):
    rng = np.random.default_rng(0)
    seeds, difference, spread = 6, 0.15, 0.1
    first, second = rng.normal(difference, spread, (20_000, seeds)), rng.normal(0, spread, (20_000, seeds))
    if agents == 2:
        p, variance = stats.ttest_ind(first, second, axis=1).pvalue, 2 * spread**2
    else:
        p, variance = stats.ttest_1samp(first, 0, axis=1).pvalue, spread**2
    assert power_of(difference, [variance], seeds, agents=agents) == pytest.approx(np.mean(p < 0.05), abs=0.01)


def test_power_over_tasks_is_that_of_simulated_experiments():
    """Test the mean over four tasks of unequal spread with the t-test whose degrees of freedom are estimated."""
    rng = np.random.default_rng(1)
    spreads, difference, runs = np.array([0.02, 0.1, 0.1, 0.3]), 0.1, 20_000
    seeds = seeds_needed(difference, (2 * spreads**2).tolist())
    assert seeds is not None

    def seen(seeds: int) -> float:
        scores = rng.normal(0, spreads[:, None], (runs, 2, 4, seeds))
        scores[:, 0] += difference
        variances = scores.var(-1, ddof=1) / seeds / 16
        mean = scores.mean(-1).mean(-1)
        t = (mean[:, 0] - mean[:, 1]) / np.sqrt(variances.sum((1, 2)))
        freedom = variances.sum((1, 2)) ** 2 / (variances**2 / (seeds - 1)).sum((1, 2))
        return float(np.mean(2 * stats.t.sf(np.abs(t), freedom) < 0.05))

    assert seen(seeds) == pytest.approx(power_of(difference, (2 * spreads**2).tolist(), seeds), abs=0.015)
    assert seen(seeds) > 0.8 - 0.015
    assert seen(seeds - 2) < 0.8


def test_seeds_needed_are_the_fewest():
    for difference in (0.05, 0.1):
        seeds = seeds_needed(difference, [0.02])
        assert seeds is not None
        assert power_of(difference, [0.02], seeds) >= 0.8 > power_of(difference, [0.02], seeds - 1)
    assert seeds_needed(10.0, [0.02]) == 5
    assert seeds_needed(0.1, [0.0]) == 5
    assert seeds_needed(1e-4, [0.02]) is None
    for wrong in (0.0, -0.1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="finite number above 0"):
            seeds_needed(wrong, [0.02])


def test_needs_of_a_run():
    rng = np.random.default_rng(2)
    scores = {task: rng.normal(0, spread, 8).tolist() for task, spread in (("a", 0.1), ("b", 0.3))}
    together, single = needs(scores, [0.1])
    assert single["a"].spread == pytest.approx(np.std(scores["a"], ddof=1))
    variances = [np.var(values, ddof=1) for values in scores.values()]
    assert together.spread == pytest.approx(np.sqrt(sum(variances)) / 2)
    assert single["b"].seeds[0.1] == seeds_needed(0.1, [2 * variances[1]])
    assert together.seeds[0.1] == seeds_needed(0.1, [2 * v for v in variances])
    assert (together.measured, single["a"].measured) == (8, 8)
    with pytest.raises(ValueError, match="a has one seed"):
        needs({"a": [0.1]}, [0.1])
