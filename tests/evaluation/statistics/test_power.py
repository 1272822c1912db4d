"""Power against simulated experiments that the decisions of ``compare`` judge."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from made_runs import make_run

from rlbench_suite.evaluation.report.comparison import verdicts
from rlbench_suite.evaluation.runs.run import read_run
from rlbench_suite.evaluation.statistics import aggregates, permutation
from rlbench_suite.evaluation.statistics.power import LEVEL, needs, power_of, seeds_needed

EXPERIMENTS = 200
UNEQUAL = [0.01, 0.1, 0.1, 1.0, 2.0, 5.0]
"""Variances of six tasks."""


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flip signs in fewer random ways."""
    monkeypatch.setattr(permutation, "FLIPS", 2_000)


def measure_power(
    differences: Sequence[float],
    variances: Sequence[float],
    seeds: int,
    comparisons: int,
    interval: bool,
) -> float:
    """Return the fraction of made-up experiments in which the better agent is called better."""
    rng, count = np.random.default_rng(1), 0
    for _ in range(EXPERIMENTS):
        sample = {
            f"task {j}": rng.normal(d, math.sqrt(v), seeds)
            for j, (d, v) in enumerate(zip(differences, variances, strict=True))
        }
        if (
            comparisons * permutation.sign_flip_test(sample) < LEVEL
            and sum(map(np.mean, sample.values())) > 0
        ):
            count += not interval or aggregates.mean(sample, replicates=1_000).low > 0
    return count / EXPERIMENTS


@pytest.mark.parametrize(
    ("differences", "variances", "seeds", "comparisons", "interval"),
    [
        ([1.5], [1], 6, 1, False),
        ([1.0], [1], 10, 1, False),
        ([0.65], [1], 20, 1, False),
        ([1.4], [1], 10, 6, False),
        ([0.85], [1], 20, 6, False),
        ([1.0], [1], 10, 1, True),
        ([0.6] * 6, UNEQUAL, 5, 1, True),
        ([0.5] * 6, UNEQUAL, 6, 1, True),
        ([0.4] * 6, UNEQUAL, 10, 1, True),
        ([0.5] * 6, UNEQUAL, 10, 6, True),
        ([0.3] * 6, UNEQUAL, 20, 1, True),
        ([3, 0, 0, 0, 0, 0], [1] * 6, 8, 1, True),
    ],
)
def test_power_is_that_of_the_decision(
    differences: list[float], variances: list[float], seeds: int, comparisons: int, interval: bool
):
    """Both agree to within three standard errors.

    The cases are one task, one of six tasks, six tasks, and one of six pairs of agents.
    """
    power = power_of(differences, variances, seeds, comparisons=comparisons, interval=interval)
    error = math.sqrt(power * (1 - power) / EXPERIMENTS)
    assert 0.4 < power < 0.9
    assert measure_power(differences, variances, seeds, comparisons, interval) == pytest.approx(
        power, abs=3 * error
    )
    assert (
        power_of(
            [-d for d in differences], variances, seeds, comparisons=comparisons, interval=interval
        )
        == power
    )


def test_power_of_two_unequal_tasks_with_five_seeds_is_a_little_too_high():
    """The studentised bootstrap of few seeds has wider tails than its approximation.

    The approximation is of its noise; see the docs.
    """
    differences, variances, seeds = [1.2, 1.2], [0.2, 1.8], 5
    excess = power_of(differences, variances, seeds, interval=True) - measure_power(
        differences, variances, seeds, 1, True
    )
    assert 0 < excess < 0.1


@pytest.mark.parametrize(("comparisons", "min_seeds"), [(1, 6), (6, 8), (32, 11)])
def test_few_seeds_decide_nothing_however_large_the_difference(comparisons: int, min_seeds: int):
    assert comparisons * permutation.sign_flip_test({"task": [9.0] * (min_seeds - 1)}) >= LEVEL
    assert comparisons * permutation.sign_flip_test({"task": [9.0] * min_seeds}) < LEVEL
    assert power_of([9.0], [1e-4], min_seeds - 1, comparisons=comparisons) == 0
    assert power_of([9.0], [1e-4], min_seeds, comparisons=comparisons) == 1
    for variance in (1e-4, 0.0):
        assert seeds_needed([9.0], [variance], comparisons=comparisons) == min_seeds


def test_random_flips_decide_nothing_among_too_many():
    assert power_of([9.0], [1e-4], 50, comparisons=100) == 1
    assert power_of([9.0], [1e-4], 50, comparisons=101) == 0
    assert seeds_needed([9.0], [1e-4], comparisons=101) is None


def test_power_grows_with_seeds_and_differences():
    for variances in ([1.0], UNEQUAL):
        by_seeds = [
            power_of([0.4] * len(variances), variances, n, interval=True) for n in range(5, 60)
        ]
        assert min(np.diff(by_seeds)) > -0.002
        by_size = [
            power_of([d] * len(variances), variances, 9, interval=True)
            for d in np.linspace(0.01, 3, 60)
        ]
        assert min(np.diff(by_size)) > -0.002


def test_seeds_needed_are_the_fewest():
    for difference in (0.05, 0.1):
        seeds = seeds_needed([difference], [0.02])
        assert seeds is not None
        assert (
            power_of([difference], [0.02], seeds) >= 0.8 > power_of([difference], [0.02], seeds - 1)
        )
    assert seeds_needed([1e-4], [0.02]) is None
    tiny, none = seeds_needed([0.5], [0.02], unseen=1e-30), seeds_needed([0.5], [0.02], unseen=0.0)
    assert tiny == none  # a difference that rounds to nothing
    for wrong in (0.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="finite number other than 0"):
            seeds_needed([wrong], [0.02])


def test_needs_of_a_run():
    rng = np.random.default_rng(2)
    scores = {task: rng.normal(0, spread, 8).tolist() for task, spread in (("a", 0.1), ("b", 0.3))}
    together, single = needs(scores, [0.1], agents=3)
    assert single["a"].spread == pytest.approx(np.std(scores["a"], ddof=1))
    variances = [np.var(values, ddof=1) for values in scores.values()]
    assert together.spread == pytest.approx(np.sqrt(sum(variances)) / 2)
    assert single["b"].seeds[0.1] == seeds_needed([0.1], [2 * variances[1]], comparisons=2 * 3)
    doubled = [2 * v for v in variances]
    assert together.seeds[0.1] == seeds_needed([0.1, 0.1], doubled, comparisons=3, interval=True)
    assert (together.measured, single["a"].measured) == (8, 8)
    with pytest.raises(ValueError, match="a has one seed"):
        needs({"a": [0.1]}, [0.1])


@pytest.mark.parametrize("spread", [0.02, 0.3])
def test_power_counts_the_failures_that_seeds_cannot_exclude(tmp_path: Path, spread: float):
    """Two agents on one task are 0.2 apart.

    As many seeds as promised give a verdict in four of five runs or more.
    """
    task = "rlsuite/Made0-v0"
    promised = seeds_needed([0.2], [2 * spread**2], interval=True, unseen=-0.6)
    assert promised is not None
    assert promised > seeds_needed([0.2], [2 * spread**2], interval=True) or spread > 0.1
    rng, decided = np.random.default_rng(int(100 * spread)), 0
    for draw in range(60):
        scores = {
            name: {task: rng.normal(level, spread, promised).tolist()}
            for name, level in (("x", 0.8), ("y", 0.6))
        }
        run = {"references": {task: {}}}
        (verdict,) = verdicts([read_run(make_run(tmp_path / f"{draw}", scores, **run))])
        decided += verdict.better == "x"
    assert decided / 60 > 0.7  # two standard errors below 0.8
