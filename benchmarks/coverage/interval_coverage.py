"""Measure how often nominal 95 % intervals cover the truth, and how wide they are.

    python benchmarks/coverage/interval_coverage.py
    python benchmarks/coverage/interval_coverage.py --statistic "difference of IQM"

Scores are drawn from known distributions, for one task and for ten. Intervals are those of both
methods themselves, without what a report widens them by; ``score_shapes.py`` measures that, on the
shapes that scores have. It prints the tables of docs/audits/coverage.md. The truth is the statistic
of infinitely many seeds. The interquartile mean (IQM) of a few skewed scores is biased; the second
table shows by how much. The draws of a cell have a seed of their own, so the tables do not depend
on the number of processes.
"""

import argparse
import math
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats

from rlbench_suite.evaluation.statistics.aggregates import iqm, iqm_difference, mean
from rlbench_suite.evaluation.statistics.intervals import METHODS, Estimate, Method

SEEDS = 3, 5, 10, 20
DIFFERENCE = "difference of IQM"
"""Difference of two agents with equal scores, seed by seed."""
STATISTICS: dict[str, Callable[..., Estimate]] = {
    "mean": mean,
    "IQM": iqm,
    DIFFERENCE: iqm_difference,
}
DISTRIBUTIONS: dict[str, Any] = {
    "normal": scipy.stats.norm(),
    "exponential": scipy.stats.expon(),
    "lognormal": scipy.stats.lognorm(1),
}
SPREAD_MEANS = "normal, tasks 0 to 3 apart"
"""Normal scores of tasks with means spaced evenly from 0 to 3 standard deviations.

Tasks differ about as much in practice.
"""


@dataclass(frozen=True)
class Cell:
    """Simulated case."""

    scores: str
    statistic: str
    tasks: int
    seeds: int

    @property
    def truth(self) -> float:
        """Mean, or mean between the quartiles, of the distribution."""
        if self.statistic == DIFFERENCE:
            return 0.0
        if self.scores == SPREAD_MEANS:
            return 1.5  # the centre of symmetry
        distribution = DISTRIBUTIONS[self.scores]
        if self.statistic == "mean":
            return float(distribution.mean())
        low, high = distribution.ppf([0.25, 0.75])
        return 2 * float(distribution.expect(lb=low, ub=high))

    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return scores by task."""
        if self.scores == SPREAD_MEANS:
            return {
                f"task{j}": rng.normal(3 * j / (self.tasks - 1), 1, self.seeds)
                for j in range(self.tasks)
            }
        distribution = DISTRIBUTIONS[self.scores]
        return {
            f"task{j}": distribution.rvs(self.seeds, random_state=rng) for j in range(self.tasks)
        }


@dataclass(frozen=True)
class Outcome:
    """Measured properties of the intervals of a cell."""

    coverage: float
    width: float
    """Median."""
    bias: float
    """Mean point value minus the truth."""


def measure(cell: Cell, method: Method, draws: int, replicates: int) -> Outcome:
    """Sample scores again and again, and compare their intervals with the truth."""
    rng = np.random.default_rng([*f"{cell}".encode()])  # both methods see the same scores
    statistic = STATISTICS[cell.statistic]
    estimates = []
    for draw in range(draws):
        agents = [cell.draw(rng) for _ in range(1 + (cell.statistic == DIFFERENCE))]
        estimates.append(
            statistic(*agents, replicates=replicates, seed=draw, method=method, bounds=None)
        )
    points, low, high = np.array([(e.point, e.low, e.high) for e in estimates]).T
    covered = np.mean((low <= cell.truth) & (cell.truth <= high))
    return Outcome(
        float(covered), float(np.median(high - low)), float(np.mean(points)) - cell.truth
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=2_000, help="draws for each cell")
    parser.add_argument(
        "--replicates", type=int, default=1_000, help="bootstrap replicates for each interval"
    )
    parser.add_argument(
        "--statistic",
        choices=STATISTICS,
        action="append",
        help="may be repeated; mean and IQM if not given",
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    statistics = options.statistic or ["mean", "IQM"]
    cases = [
        (name, statistic, tasks)
        for name in DISTRIBUTIONS
        for statistic in statistics
        for tasks in (1, 10)
    ]
    cases += [(SPREAD_MEANS, statistic, 10) for statistic in statistics]
    outcomes = {}
    with ProcessPoolExecutor(options.processes) as pool:
        pending = {
            (cell, method): pool.submit(measure, cell, method, options.draws, options.replicates)
            for case in cases
            for seeds in SEEDS
            for cell in (Cell(*case, seeds),)
            for method in METHODS
        }
        outcomes = {key: future.result() for key, future in pending.items()}

    error = math.sqrt(0.95 * 0.05 / options.draws)
    print(
        f"Coverage at 3 / 5 / 10 / 20 seeds, {options.draws:,} draws, standard error {error:.3f} "
        "at .95:\n"
    )
    print(
        "| scores | statistic | tasks | percentile | studentised | median width, studentised over "
        "percentile |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for case in cases:
        by_method = {
            method: [outcomes[Cell(*case, seeds), method] for seeds in SEEDS] for method in METHODS
        }
        covered = {
            name: " / ".join(f"{o.coverage:.3f}".removeprefix("0") for o in them)
            for name, them in by_method.items()
        }
        pairs = zip(by_method["studentised"], by_method["percentile"], strict=True)
        ratios = " / ".join(
            f"{studentised.width / percentile.width:.1f}" for studentised, percentile in pairs
        )
        scores, statistic, tasks = case
        print(
            f"| {scores} | {statistic} | {tasks} | {covered['percentile']} | "
            f"{covered['studentised']} | {ratios} |"
        )
    if "IQM" in statistics:
        print_bias(cases, outcomes)


def print_bias(cases: list[tuple[str, str, int]], outcomes: dict[Any, Outcome]) -> None:
    """Print the table of the bias of the IQM."""
    print("\nBias of the IQM at 3 / 5 / 10 / 20 seeds, in units of the scores:\n")
    print("| scores | tasks | bias |\n| --- | --- | --- |")
    for case in cases:
        scores, statistic, tasks = case
        if statistic == "IQM":
            biases = [outcomes[Cell(*case, seeds), "studentised"].bias for seeds in SEEDS]
            print(f"| {scores} | {tasks} | {' / '.join(f'{bias:+.3f}' for bias in biases)} |")


if __name__ == "__main__":
    main()
