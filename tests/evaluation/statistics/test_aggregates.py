"""Test statistics against hand-worked numbers, SciPy, a plain bootstrap and known truths."""

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.stats

from rlbench_suite.evaluation.statistics import aggregates, intervals, unseen_runs
from rlbench_suite.evaluation.statistics.aggregates import (
    compare,
    frequency_averaged_score,
    iqm,
    iqm_difference,
    mean,
    means,
    median,
    optimality_gap,
    sample_efficiency,
    worst_tenth,
)
from rlbench_suite.evaluation.statistics.intervals import Estimate, Method
from rlbench_suite.evaluation.statistics.profiles import (
    performance_profile,
    probability_above,
    probability_of_improvement,
)

Scores = dict[str, np.ndarray]
AGGREGATES = [iqm, mean, median, optimality_gap]
FEW = 200
"""Replicates where only the point value is looked at."""


def normal_scores(sizes: list[int], seed: int) -> Scores:
    rng = np.random.default_rng(seed)
    return {f"task{j}": rng.normal(0.3 + 0.1 * j, 0.3 + 0.05 * j, n) for j, n in enumerate(sizes)}


# Point values


def test_aggregates_worked_by_hand() -> None:
    scores = {"a": [0.0, 1.0, 2.0, 5.0], "b": [0.5, 0.25, 0.75, -1.0], "c": [3.0, 3.0, 0.5, 1.5]}
    # sorted: -1 0 .25 | .5 .5 .75 1 1.5 2 | 3 3 5
    assert iqm(scores, replicates=FEW).point == pytest.approx(6.25 / 6, abs=1e-15)
    # task means 2, 0.125, 2
    assert mean(scores, replicates=FEW).point == pytest.approx(4.125 / 3, abs=1e-15)
    assert median(scores, replicates=FEW).point == 2
    # clipped task means 3/4, 1/8, 7/8
    assert optimality_gap(scores, replicates=FEW).point == pytest.approx(1 - 1.75 / 3, abs=1e-15)


@pytest.mark.parametrize(("tasks", "seeds"), [(1, 1), (1, 3), (1, 7), (3, 5), (7, 9), (50, 10)])
def test_iqm_is_scipys_trimmed_mean(tasks: int, seeds: int) -> None:
    scores = normal_scores([seeds] * tasks, seed=tasks)
    expected = scipy.stats.trim_mean(np.concatenate(list(scores.values())), 0.25)
    assert iqm(scores, replicates=FEW).point == pytest.approx(expected, rel=1e-13)


def test_iqm_of_ragged_seeds_is_that_of_equally_repeated_scores() -> None:
    """Repeating 3 and 5 seeds 5 and 3 times gives each task 15.

    The cut, 2 of 8 scores, is a quarter of 30.
    """
    scores = normal_scores([3, 5], seed=0)
    repeated = np.sort(
        np.concatenate([np.repeat(scores["task0"], 5), np.repeat(scores["task1"], 3)])
    )
    # 7.5 of 30 at each end: half of the eighth copy from either side stays
    expected = (repeated[8:22].sum() + 0.5 * (repeated[7] + repeated[22])) / 15
    assert iqm(scores, replicates=FEW).point == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("statistic", AGGREGATES)
def test_a_task_counts_the_same_however_many_seeds_it_has(
    statistic: Callable[..., Estimate],
) -> None:
    """8 and 68 scores, so that the interquartile mean cuts exactly a quarter of either."""
    few = {"a": [0.2, 0.4], "b": [0.9, 1.3], "c": [0.0, 0.1], "d": [0.5, 0.6]}
    many = few | {"a": [0.2, 0.4] * 31}
    assert statistic(many, replicates=FEW).point == pytest.approx(
        statistic(few, replicates=FEW).point, abs=1e-14
    )


def test_profile_worked_by_hand_is_strict_and_weighs_tasks_equally() -> None:
    profile = performance_profile({"a": [0.0, 0.5, 1.0, 1.0], "b": [0.5]}, [-1, 0, 0.5, 0.75, 1])
    np.testing.assert_array_equal(profile.fraction, [1, 0.875, 0.25, 0.25, 0])


def test_improvement_is_the_mean_mann_whitney_statistic() -> None:
    rng = np.random.default_rng(0)
    x = {f"task{j}": rng.integers(0, 6, 4 + j).astype(float) for j in range(8)}  # many ties, ragged
    y = {f"task{j}": rng.integers(0, 6, 9 - j).astype(float) for j in range(8)}
    u = [
        scipy.stats.mannwhitneyu(x[task], y[task]).statistic / (len(x[task]) * len(y[task]))
        for task in x
    ]
    assert probability_of_improvement(x, y).point == pytest.approx(np.mean(u), rel=1e-14)
    assert probability_of_improvement(x, x).point == 0.5
    certain = probability_of_improvement({"a": [1, 2]}, {"a": [0, 0.5, -1]})
    assert (certain.point, certain.high) == (1, 1)
    assert certain.low == pytest.approx(scipy.stats.beta.ppf(0.025, 2, 1))  # two runs won twice


def test_improvement_counts_common_tasks_only() -> None:
    x, y = {"a": [0.0, 1.0, 2.0], "x": [9.0]}, {"a": [0.5, 0.5], "y": [9.0, 10.0]}
    assert probability_of_improvement(x, y).point == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="no task that all have scores on: x has x; y has y"):
        probability_of_improvement({"x": [1.0]}, {"y": [1.0]})


@pytest.mark.parametrize("count", [10, 25, 96])
def test_worst_tenth_is_the_mean_of_whole_tenths_of_repeated_scores(count: int) -> None:
    scores = np.random.default_rng(count).normal(size=count)
    # The same distribution, whose tenth is a whole number.
    repeated = np.sort(np.repeat(scores, 10))
    assert worst_tenth(scores) == pytest.approx(repeated[:count].mean(), rel=1e-12)


def test_worst_tenth_of_few_scores_is_the_lowest() -> None:
    assert worst_tenth(np.array([3.0, -1.0, 2.0])) == -1.0


def test_frequency_averaged_score() -> None:
    grid = [1, 2, 4, 8]
    assert frequency_averaged_score(grid, [0.7] * 4) == pytest.approx(0.7, abs=1e-15)
    # a line is integrated exactly: mean of (8 - a) / 7 over [1, 8] is 1/2
    assert frequency_averaged_score(grid, [1, 6 / 7, 4 / 7, 0]) == pytest.approx(0.5, abs=1e-15)
    # trapezia .75 + .75 + 1 over a width of 7
    runs = np.array([[1.0, 0.5, 0.25, 0.25], [0.0, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(frequency_averaged_score(grid, runs), [2.5 / 7, 0], rtol=1e-15)


# Intervals


def resample(scores: Scores, replicates: int, rng: np.random.Generator) -> list[Scores]:
    return [{task: rng.choice(v, len(v)) for task, v in scores.items()} for _ in range(replicates)]


def plain_iqm(scores: Scores) -> float:
    """By definition, on the weights and scores themselves."""
    total = sum(map(len, scores.values()))
    weighed = sorted((s, total / (len(scores) * len(v))) for v in scores.values() for s in v)
    below, result, cut = 0.0, 0.0, total // 4
    for score, weight in weighed:
        result += score * max(0.0, min(below + weight, total - cut) - max(below, cut))
        below += weight
    return result / (total - 2 * cut)


PLAIN: dict[Callable[..., Estimate], Callable[[Scores], float]] = {
    iqm: plain_iqm,
    mean: lambda scores: float(np.mean([v.mean() for v in scores.values()])),
    median: lambda scores: float(np.median([v.mean() for v in scores.values()])),
    optimality_gap: lambda scores: float(
        np.mean([1 - np.minimum(v, 1).mean() for v in scores.values()])
    ),
}


def replicates_of(monkeypatch: pytest.MonkeyPatch, call: Callable[[], object]) -> np.ndarray:
    """Return the bootstrap distribution itself, caught where its quantiles are taken."""
    caught: list[np.ndarray] = []
    quantile = np.quantile

    def catch(values: np.ndarray, q: tuple[float, float], axis: int) -> np.ndarray:
        caught.append(values)
        return quantile(values, q, axis=axis)

    with monkeypatch.context() as patch:
        patch.setattr(np, "quantile", catch)
        call()
    assert len(caught) == 1
    return caught[0]


@pytest.mark.parametrize("sizes", [[5] * 6, [2, 3, 5, 8, 1, 4]], ids=["rectangular", "ragged"])
@pytest.mark.parametrize("statistic", AGGREGATES)
def test_bootstrap_distribution_is_that_of_a_plain_bootstrap(
    statistic: Callable[..., Estimate], sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compare 4,000 replicates each by Kolmogorov-Smirnov with p > 0.001.

    One of a thousand right programs would fail here.
    """
    scores = normal_scores(sizes, seed=7)
    replicates = replicates_of(
        monkeypatch, lambda: statistic(scores, replicates=4_000, seed=1, method="percentile")
    )[0]
    plain = [
        PLAIN[statistic](sample) for sample in resample(scores, 4_000, np.random.default_rng(2))
    ]
    assert statistic(scores, replicates=FEW).point == pytest.approx(
        PLAIN[statistic](scores), rel=1e-13
    )
    assert scipy.stats.ks_2samp(replicates, plain).pvalue > 0.001


def test_shares_of_one_task_are_scipys_exact_intervals() -> None:
    """Clopper and Pearson's, for whole numbers of runs."""
    for won, runs in ((0, 5), (1, 5), (3, 7), (5, 5), (190, 200)):
        exact = scipy.stats.binomtest(won, runs).proportion_ci(0.95, "exact")
        assert unseen_runs.proportion_interval(won, runs) == pytest.approx(
            (exact.low, exact.high), abs=1e-9
        )
        above = probability_above({"a": [1.0] * won + [-1.0] * (runs - won)}, 0.0)
        assert (above.low, above.high) == pytest.approx((exact.low, exact.high), abs=1e-9)
    profile = performance_profile({"a": [0.1, 0.2, 0.3, 0.9, 0.95]}, [0.5])
    assert (profile.low[0], profile.high[0]) == pytest.approx(
        scipy.stats.binomtest(2, 5).proportion_ci(), abs=1e-9
    )


def test_shares_of_equal_tasks_have_wilsons_interval() -> None:
    """Strata do not matter if every run of every task wins: 30 wins of 30."""
    low, high = unseen_runs.stratified_share(np.ones((6, 1)), [5] * 6, 0.95)
    expected = scipy.stats.binomtest(30, 30).proportion_ci(0.95, "wilson")
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-6)


@pytest.mark.parametrize("apart", [1, 2, 3])
def test_improvement_covers_at_five_seeds(apart: int) -> None:
    """Percentile intervals cover .87, .59 and .18 of it, often without width."""
    rng, truth, covered = np.random.default_rng(apart), scipy.stats.norm.cdf(apart / np.sqrt(2)), 0
    for _ in range(300):
        estimate = probability_of_improvement(
            {"a": rng.normal(apart, 1, 5)}, {"a": rng.normal(0, 1, 5)}
        )
        covered += estimate.low <= truth <= estimate.high
        assert estimate.low < estimate.high
    assert covered / 300 > 0.93


def test_unseen_share_is_the_exact_bound() -> None:
    for runs in (1, 5, 59):
        exact = scipy.stats.binomtest(0, runs).proportion_ci(0.90, "exact")  # one-sided 95 %
        assert unseen_runs.unseen_share(runs) == pytest.approx(exact.high)
        assert unseen_runs.runs_to_exclude(unseen_runs.unseen_share(runs)) == runs


def test_scores_of_two_kinds_have_the_exact_interval() -> None:
    """One failure in five runs has Clopper and Pearson's interval of the share.

    It is never narrower than the bootstrap's.
    """
    estimate = mean({"a": [1.0, 1.0, 0.0, 1.0, 1.0]})
    exact = scipy.stats.binomtest(4, 5).proportion_ci(0.95, "exact")
    assert estimate.low <= exact.low + 0.02
    assert estimate.high >= exact.high - 0.01
    assert unseen_runs.of_two_kinds(np.array([0.99, 1.01, 1.0, 0.02]))
    assert not unseen_runs.of_two_kinds(np.array([0.1, 0.3, 0.45, 0.6]))


def test_seeds_that_fail_on_all_tasks_together_widen_the_interval() -> None:
    """Compare independent runs of six tasks with whole seeds.

    The scores are the same, shuffled within tasks or not.
    """
    rng = np.random.default_rng(40)
    by_seed = rng.normal(0.5, 0.1, 8)
    together = {f"t{j}": by_seed + rng.normal(0, 0.02, 8) for j in range(6)}
    apart = {task: rng.permutation(values) for task, values in together.items()}
    widths = [estimate.high - estimate.low for estimate in (mean(together), mean(apart))]
    assert widths[0] > 1.8 * widths[1]
    assert widths[0] > scipy.stats.t(7).ppf(0.975) * by_seed.std(ddof=1) / np.sqrt(8) * 1.5


def test_a_task_with_one_seed_adds_to_the_width() -> None:
    scores = normal_scores([6, 6, 6], seed=41)
    widths = [
        mean(each).high - mean(each).low
        for each in (scores, scores | {"task1": scores["task1"][:1]})
    ]
    assert widths[1] > 1.4 * widths[0]


def test_bootstrap_of_the_mean_has_the_exact_variance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Var = (1/m^2) sum_j s_j^2 / n_j, s_j the population variance.

    Of 100,000 normal draws a standard deviation has relative error 1/sqrt(200,000) = 0.22 %, four
    of which are allowed.
    """
    scores = normal_scores([10, 4, 7, 20], seed=8)
    replicates = replicates_of(
        monkeypatch, lambda: mean(scores, replicates=100_000, method="percentile")
    )[0]
    exact = np.sqrt(sum(v.var() / len(v) for v in scores.values())) / len(scores)
    assert replicates.std() == pytest.approx(exact, rel=0.009)


def test_exhaustive_enumeration_of_a_small_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """All 2^2 x 3^3 resamples are equally likely.

    Each of the metric's values has its frequency, within 4.5 sigma.
    """
    scores = {"a": np.array([0.0, 1.0]), "b": np.array([0.3, 0.45, 2.0])}
    replicates = np.round(
        replicates_of(monkeypatch, lambda: iqm(scores, replicates=50_000, method="percentile"))[0],
        9,
    )
    truth: dict[float, float] = {}
    for a, b in product(product(scores["a"], repeat=2), product(scores["b"], repeat=3)):
        value = round(plain_iqm({"a": np.array(a), "b": np.array(b)}), 9)
        truth[value] = truth.get(value, 0) + 1 / 108
    assert set(replicates) == set(truth)
    for value, p in truth.items():
        assert np.mean(replicates == value) == pytest.approx(
            p, abs=4.5 * np.sqrt(p * (1 - p) / 50_000)
        )


@pytest.mark.parametrize("statistic", [iqm, mean, median])
def test_intervals_cover_the_truth_as_often_as_they_say(statistic: Callable[..., Estimate]) -> None:
    """Three normal tasks of mean 0.5 with 60 seeds are covered by 95 % of 500 intervals.

    The tolerance is three binomial standard deviations (1.0 %), and one percent for what bootstrap
    intervals lack at this size.
    """
    rng = np.random.default_rng(9)
    covered = 0
    for repetition in range(500):
        scores = {task: rng.normal(0.5, 0.3, 60) for task in "abc"}
        estimate = statistic(scores, replicates=400, seed=repetition)
        covered += estimate.low <= 0.5 <= estimate.high
    assert covered / 500 == pytest.approx(0.95, abs=0.04)


def exponential_coverage(method: Method) -> float:
    """Coverage of the mean of five exponential scores in 400 draws.

    Its standard error is 0.012 at 0.93.
    """
    rng = np.random.default_rng(20)
    draws = [{"a": rng.exponential(size=5)} for _ in range(400)]
    estimates = [
        mean(draw, replicates=500, seed=seed, method=method) for seed, draw in enumerate(draws)
    ]
    return float(np.mean([estimate.low <= 1 <= estimate.high for estimate in estimates]))


def test_studentised_intervals_of_five_seeds_cover_where_percentile_intervals_do_not() -> None:
    """``benchmarks/coverage/interval_coverage.py`` measures .935 and .786.

    0.9 is three standard errors from either.
    """
    assert exponential_coverage("studentised") > 0.9
    assert exponential_coverage("percentile") < 0.86


def test_difference_of_iqm_is_one_of_pairs() -> None:
    """Equal differences have no width by their spread, whatever the scores.

    Pairs without a difference are covered.
    """
    y = normal_scores([6, 5], seed=31)
    added = {task: values + 0.25 for task, values in y.items()}
    honest = iqm_difference(added, y, replicates=300)
    assert honest.low < 0.2
    assert honest.high > 0.3
    shifted = iqm_difference(added, y, replicates=300, bounds=None)
    assert (shifted.point, shifted.low, shifted.high) == pytest.approx(
        (0.25, 0.25, 0.25), abs=1e-12
    )
    x = normal_scores([6, 5], seed=32)
    assert iqm_difference(x, y).point == pytest.approx(iqm(x).point - iqm(y).point)
    rng, covered = np.random.default_rng(33), 0
    for repetition in range(300):
        common, x_noise, y_noise = rng.exponential(size=(3, 2, 5))
        pair = (
            {task: common[j] + scores[j] for j, task in enumerate("ab")}
            for scores in (x_noise, y_noise)
        )
        estimate = iqm_difference(*pair, replicates=300, seed=repetition)
        covered += estimate.low <= 0 <= estimate.high
    assert 0.91 < covered / 300 < 0.99  # three standard errors around 0.95
    with pytest.raises(ValueError, match="x and y must be pairs"):
        iqm_difference({"a": [1.0, 2.0]}, {"a": [1.0]})


def plain_error(statistic: Callable[..., Estimate], sample: Scores) -> float:
    """Return the standard error of the scores by definition.

    They are clipped where the statistic is blind to their size.
    """
    total = sum(map(len, sample.values()))
    weighed = sorted((s, total / (len(sample) * len(v))) for v in sample.values() for s in v)
    low, high = {mean: (-np.inf, np.inf), optimality_gap: (-np.inf, 1)}.get(statistic, (0, 0))
    if statistic is iqm:
        cut = max(total // 4 - 1, 0)
        sums = np.cumsum([weight for _, weight in weighed])
        low = weighed[int(np.argmax(sums > cut + 1e-6))][0]
        high = weighed[int(np.argmax(sums >= total - cut - 1e-6))][0]
    clipped = [np.clip(v, low, high) for v in sample.values()]
    return float(np.sqrt(sum(v.var() / (len(v) - 1) for v in clipped if len(v) > 1)) / len(sample))


@pytest.mark.parametrize("sizes", [[20] * 15, [70, 100, 130]], ids=["rectangular", "ragged"])
def test_many_scores_have_the_values_of_each_resample(sizes: list[int]) -> None:
    """With so many scores most lie in blocks that no cut touches, which are computed as a whole."""
    scores = normal_scores(sizes, seed=24)
    rng = np.random.default_rng(25)
    tallies = [
        {
            task: np.bincount(rng.integers(len(v), size=len(v)), minlength=len(v))
            for task, v in scores.items()
        }
        for _ in range(60)
    ]
    resamples = [
        {task: np.repeat(v, counts[task]) for task, v in scores.items()} for counts in tallies
    ]
    sample = intervals.Sample.of(scores)
    counts = np.array(
        [np.concatenate([tally[task] for task in sample.tasks]) for tally in tallies], dtype=float
    ).T
    metric = aggregates._IQM
    np.testing.assert_allclose(
        metric.value(sample, counts)[0], [plain_iqm(xs) for xs in resamples], rtol=1e-12
    )
    errors = metric.scale(sample, counts)
    assert errors is not None
    np.testing.assert_allclose(errors[0], [plain_error(iqm, xs) for xs in resamples], rtol=1e-9)


@pytest.mark.parametrize("statistic", [iqm, mean, optimality_gap])
@pytest.mark.parametrize("sizes", [[6] * 4, [5, 2, 7, 1]], ids=["rectangular", "ragged"])
def test_studentised_intervals_are_those_of_a_plain_bootstrap(
    statistic: Callable[..., Estimate], sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The distribution of t, and the ends from it, with standard errors written by definition."""
    scores = normal_scores(sizes, seed=21)

    def error(sample: Scores) -> float:
        return plain_error(statistic, sample)

    replicates = replicates_of(
        monkeypatch, lambda: statistic(scores, replicates=4_000, seed=1, bounds=None)
    )[0]
    point, full_error = PLAIN[statistic](scores), error(scores)
    plain = [
        (PLAIN[statistic](sample) - point) / max(error(sample), intervals.FLOOR * full_error)
        for sample in resample(scores, 4_000, np.random.default_rng(22))
    ]
    assert scipy.stats.ks_2samp(replicates, plain).pvalue > 0.001
    estimate = statistic(scores, replicates=4_000, seed=1, bounds=None)
    low, high = np.quantile(replicates, [0.025, 0.975])
    assert estimate.low == pytest.approx(
        max(point - high * full_error, 0 if statistic is optimality_gap else -np.inf)
    )
    assert estimate.high == pytest.approx(point - low * full_error)


@pytest.mark.parametrize("statistic", AGGREGATES)
@pytest.mark.parametrize("seeds", [2, 3])
def test_ends_are_finite_although_resamples_have_no_spread(
    statistic: Callable[..., Estimate], seeds: int
) -> None:
    estimate = statistic({"a": np.linspace(0.1, 0.4, seeds)})
    assert np.isfinite([estimate.low, estimate.high]).all()
    assert estimate.low < estimate.point < estimate.high


@pytest.mark.parametrize("statistic", AGGREGATES)
def test_equal_scores_are_no_knowledge(statistic: Callable[..., Estimate]) -> None:
    """Five and three equal seeds exclude no failure; rliable's intervals say that they do."""
    scores = {"a": [0.1] * 5, "b": [0.7] * 3}
    estimate = statistic(scores)
    assert estimate.low < estimate.point - 0.02
    assert estimate.high > estimate.point + 0.02
    for settings in ({"method": "percentile"}, {"bounds": None}):
        narrow = statistic(scores, **settings)
        assert narrow.low == narrow.point == narrow.high


def test_optimality_gaps_are_not_negative() -> None:
    assert optimality_gap({"a": [0.9, 0.99, 1.2, 1.3, 0.95]}).low == 0


def test_median_of_many_tasks_has_a_percentile_interval() -> None:
    two, three = normal_scores([5] * 2, seed=23), normal_scores([5] * 3, seed=23)
    assert median(two) == mean(two)
    assert median(three, bounds=None) == median(three, method="percentile")


def test_means_are_those_of_single_calls() -> None:
    several = [normal_scores([n, 5], seed=n) for n in (5, 3, 5)] * 20
    assert means(several, replicates=300) == [mean(scores, replicates=300) for scores in several]
    assert means([]) == []


def test_confidence_is_the_nominal_coverage(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = normal_scores([8, 8], seed=10)
    replicates = replicates_of(
        monkeypatch, lambda: mean(scores, confidence=0.8, method="percentile")
    )[0]
    estimate = mean(scores, confidence=0.8, method="percentile")
    assert np.mean(replicates < estimate.low) == pytest.approx(0.1, abs=1e-3)
    assert np.mean(replicates > estimate.high) == pytest.approx(0.1, abs=1e-3)


@pytest.mark.parametrize("statistic", [iqm, mean, median])
@pytest.mark.parametrize("sizes", [[5] * 5, [2, 7, 4]], ids=["rectangular", "ragged"])
def test_affine_scores_give_affine_intervals(
    statistic: Callable[..., Estimate], sizes: list[int]
) -> None:
    scores = normal_scores(sizes, seed=11)
    e = statistic(scores, replicates=500, bounds=None)
    up = statistic({task: 3 * v - 7 for task, v in scores.items()}, replicates=500, bounds=None)
    down = statistic({task: -2 * v + 1 for task, v in scores.items()}, replicates=500, bounds=None)
    assert (up.point, up.low, up.high) == pytest.approx(
        (3 * e.point - 7, 3 * e.low - 7, 3 * e.high - 7), abs=1e-12
    )
    assert (down.point, down.low, down.high) == pytest.approx(
        (1 - 2 * e.point, 1 - 2 * e.high, 1 - 2 * e.low), abs=1e-12
    )


def test_iqm_is_deaf_to_an_outlier() -> None:
    scores = normal_scores([6] * 4, seed=12)
    loud = {task: v.copy() for task, v in scores.items()}
    best = max(scores, key=lambda task: scores[task].max())
    loud[best][np.argmax(loud[best])] = 1e15
    assert iqm(loud, replicates=2_000, bounds=None) == iqm(scores, replicates=2_000, bounds=None)
    assert mean(loud, replicates=2_000).point > 1e12


def test_one_seed_a_task_has_no_interval() -> None:
    estimate = iqm({"a": [0.3], "b": [0.5], "c": [1.0]})
    assert estimate.point == pytest.approx(0.6)
    assert np.isnan([estimate.low, estimate.high]).all()
    assert np.isnan(performance_profile({"a": [0.3]}).low).all()
    assert np.isnan(probability_above({"a": [0.3]}, 0).low)


# Seeds, orders, company


@pytest.mark.parametrize("statistic", AGGREGATES)
def test_numbers_follow_from_the_seed_and_not_from_the_order_of_tasks(
    statistic: Callable[..., Estimate],
) -> None:
    scores = normal_scores([5, 3, 4], seed=13)
    once = statistic(scores, replicates=3_000, seed=1)
    assert statistic(dict(reversed(scores.items())), replicates=3_000, seed=1) == once
    assert statistic(scores, replicates=3_000, seed=2) != once


def test_numbers_do_not_depend_on_the_number_of_threads() -> None:
    program = """
import numpy as np
from rlbench_suite.evaluation.statistics.aggregates import compare
rng = np.random.default_rng(0)
agents = {a: {f"task{n:02}": rng.normal(size=n) for n in range(1, 41)} for a in "xy"}
comparison = compare(agents, replicates=2_000)
print(repr(comparison), [a.profile.low.tobytes() + a.profile.fraction.tobytes() \
for a in comparison.agents.values()])
"""
    printed = []
    for threads in ("1", "2"):
        variables = dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads
        )
        printed.append(
            subprocess.check_output([sys.executable, "-c", program], env=os.environ | variables)
        )
    assert printed[0] == printed[1]


def test_chunks_have_streams_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, chunk = normal_scores([9, 9], seed=14), intervals.CHUNK
    long = replicates_of(monkeypatch, lambda: mean(scores, replicates=2 * chunk + 3, bounds=None))[
        0
    ]
    assert long.shape == (2 * chunk + 3,)
    short = replicates_of(monkeypatch, lambda: mean(scores, replicates=chunk, bounds=None))[0]
    np.testing.assert_array_equal(long[:chunk], short)
    assert not np.isin(long[chunk : 2 * chunk], long[:chunk]).all()
    assert (long[:chunk] != long[chunk : 2 * chunk]).mean() > 0.9


def test_comparison_equals_the_single_functions_in_any_order() -> None:
    agents = {
        "ppo": normal_scores([5, 5, 5], seed=15),
        "random": normal_scores([5, 5, 5], seed=16),
        "noop": normal_scores([2, 6, 1], seed=17),
    }
    settings: dict[str, Any] = {"replicates": 2_500, "confidence": 0.9, "seed": 3}
    comparison = compare(agents, taus=[0, 0.5, 1], **settings)
    for agent, scores in agents.items():
        summary = comparison.agents[agent]
        assert summary.iqm == iqm(scores, **settings)
        assert summary.mean == mean(scores, **settings)
        assert summary.median == median(scores, **settings)
        assert summary.optimality_gap == optimality_gap(scores, **settings)
        profile = performance_profile(scores, [0, 0.5, 1], confidence=0.9)
        for name in ("taus", "fraction", "low", "high"):
            np.testing.assert_array_equal(getattr(summary.profile, name), getattr(profile, name))
        assert summary.seeds == {task: len(values) for task, values in scores.items()}
    assert set(comparison.improvement) == {(x, y) for x in agents for y in agents if x != y}
    forward, back = comparison.improvement["ppo", "random"], comparison.improvement["random", "ppo"]
    assert forward == probability_of_improvement(agents["ppo"], agents["random"], confidence=0.9)
    assert (back.point, back.low, back.high) == (
        1 - forward.point,
        1 - forward.high,
        1 - forward.low,
    )

    shuffled = {agent: dict(reversed(agents[agent].items())) for agent in reversed(agents)}
    again = compare(shuffled, taus=[0, 0.5, 1], **settings)
    assert again.improvement == comparison.improvement
    assert all(again.agents[agent].iqm == comparison.agents[agent].iqm for agent in agents)


def test_comparison_leaves_out_what_an_agent_lacks() -> None:
    agents = {"x": {"a": [1.0, 2.0], "b": [3.0, 4.0]}, "y": {"c": [9.0], "a": [0.0, 1.0]}}
    comparison = compare(agents, replicates=FEW)
    assert (comparison.tasks, comparison.left_out) == (("a",), ("b", "c"))
    assert comparison.agents["x"].mean.point == 1.5
    assert compare({"x": agents["x"]}, replicates=FEW).improvement == {}


def test_sample_efficiency_is_the_iqm_at_each_checkpoint() -> None:
    rng = np.random.default_rng(18)
    curves = {"a": rng.normal(size=(6, 4)), "b": rng.normal(size=(3, 4))}
    curve = sample_efficiency(curves, replicates=700)
    for k in range(4):
        at_k = iqm({task: values[:, k] for task, values in curves.items()}, replicates=700)
        assert (curve.iqm[k], curve.low[k], curve.high[k]) == (at_k.point, at_k.low, at_k.high)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("statistic", [*AGGREGATES, performance_profile])
def test_scores_that_are_not_finite_are_refused(
    statistic: Callable[..., object], bad: float
) -> None:
    with pytest.raises(ValueError, match=rf"task 'b' at index 2 is {bad}"):
        statistic({"a": [0.0, 1.0], "b": [0.0, 1.0, bad]})


def test_refusals_name_the_agent() -> None:
    with pytest.raises(ValueError, match=r"Agent 'ppo': the score of task 'b' at index 0 is nan"):
        compare({"random": {"b": [1.0]}, "ppo": {"b": [np.nan, 1.0]}})
    with pytest.raises(ValueError, match="no agents"):
        compare({})
    with pytest.raises(ValueError, match=r"no task that all have scores on: x has a; y has b"):
        compare({"x": {"a": [1.0]}, "y": {"b": [1.0]}})


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({}, "no scores"),
        ({"a": []}, r"task 'a' have shape \(0,\)"),
        ({"a": [[1.0, 2.0]]}, r"task 'a' have shape \(1, 2\)"),
        ({"a": 1.0}, r"task 'a' have shape \(\)"),
    ],
)
def test_empty_and_misshapen_scores_are_refused(scores: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        iqm(scores)


@pytest.mark.parametrize(
    "settings",
    [
        {"replicates": 0},
        {"confidence": 0.0},
        {"confidence": 1.0},
        {"confidence": np.nan},
        {"seed": -1},
        {"method": "bca"},
    ],
)
def test_settings_out_of_range_are_refused(settings: dict) -> None:
    with pytest.raises(ValueError, match=f"given {next(iter(settings.values()))}"):
        iqm({"a": [0.0, 1.0]}, **settings)


def test_bad_grids_are_refused() -> None:
    with pytest.raises(ValueError, match="Thresholds"):
        performance_profile({"a": [1.0]}, [0.0, np.nan])
    with pytest.raises(ValueError, match="same checkpoints"):
        sample_efficiency({"a": np.ones((2, 3)), "b": np.ones((2, 4))})
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        sample_efficiency({"a": [1.0, 2.0]})
    with pytest.raises(ValueError, match="no scores"):
        sample_efficiency({})
    for steps in ([1.0], [1, 1], [2, 1], [0, 1], [1, np.inf]):
        with pytest.raises(ValueError, match="Decision intervals"):
            frequency_averaged_score(steps, np.ones(len(steps)))
    with pytest.raises(ValueError, match="last axis"):
        frequency_averaged_score([1, 2], [1.0])
    with pytest.raises(ValueError, match=r"index \(1, 0\) is nan"):
        frequency_averaged_score([1, 2], [[1.0, 1.0], [np.nan, 1.0]])


def test_memory_stays_under_its_bound() -> None:
    import tracemalloc

    scores = {f"task{j}": np.zeros(10) + j for j in range(700)}
    tracemalloc.start()
    compare({"x": scores, "y": scores}, replicates=intervals.CHUNK)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 256e6
