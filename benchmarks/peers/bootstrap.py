"""Time the full statistics of 5 agents x 50 tasks x 10 seeds, ours and rliable's, in one run.

    python benchmarks/peers/bootstrap.py

Both make percentile intervals. Our statistics are timed in full, the best of three. rliable is
timed with fewer replicates, shown in its column, and extrapolated, because its cost is a Python
loop over replicates. It needs pandas < 3; without rliable only our times are printed.
"""

import os
import time
from collections.abc import Callable
from itertools import combinations

import numpy as np

from rlbench_suite.evaluation.statistics import aggregates, profiles

AGENTS = 5
TASKS = 50
SEEDS = 10
TAUS = np.linspace(0, 1, 101)
AGGREGATE_REPLICATES = aggregates.REPLICATES
CURVE_REPLICATES = aggregates.CURVE_REPLICATES
PAIRS = list(combinations(range(AGENTS), 2))

Row = tuple[str, Callable[[], object], Callable[[int], object], int, int]
"""Name, our function, rliable's by replicates, full number of replicates, number timed."""


def seconds(call: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    rng = np.random.default_rng(0)
    matrices = {f"agent{k}": rng.normal(0.5 + 0.05 * k, 0.3, (SEEDS, TASKS)) for k in range(AGENTS)}
    agents = {
        name: {f"task{j}": matrix[:, j] for j in range(TASKS)} for name, matrix in matrices.items()
    }
    names = list(agents)
    pairs = {f"{names[i]},{names[j]}": (matrices[names[i]], matrices[names[j]]) for i, j in PAIRS}

    try:
        from rliable import library as rly
        from rliable import metrics
    except (ImportError, TypeError) as error:
        rly = None
        print(f"rliable cannot be imported ({error}); only our times follow.")

    def four(x: np.ndarray) -> np.ndarray:
        aggregates = metrics.aggregate_iqm, metrics.aggregate_mean, metrics.aggregate_median
        return np.array([*(f(x) for f in aggregates), metrics.aggregate_optimality_gap(x)])

    def everything() -> object:
        return aggregates.compare(agents, taus=TAUS, method="percentile")

    rows: list[Row] = [
        (
            "IQM",
            lambda: [aggregates.iqm(scores, method="percentile") for scores in agents.values()],
            lambda reps: rly.get_interval_estimates(
                matrices, lambda x: np.array([metrics.aggregate_iqm(x)]), reps=reps
            ),
            AGGREGATE_REPLICATES,
            1_000,
        ),
        (
            "performance profiles",
            lambda: [profiles.performance_profile(scores, TAUS) for scores in agents.values()],
            lambda reps: rly.create_performance_profile(matrices, TAUS, reps=reps),
            CURVE_REPLICATES,
            100,
        ),
        (
            "probability of improvement",
            lambda: [
                profiles.probability_of_improvement(agents[names[i]], agents[names[j]])
                for i, j in PAIRS
            ],
            lambda reps: rly.get_interval_estimates(
                pairs, metrics.probability_of_improvement, reps=reps
            ),
            CURVE_REPLICATES,
            10,
        ),
    ]

    print(
        f"{AGENTS} agents x {TASKS} tasks x {SEEDS} seeds, {len(PAIRS)} pairs, {os.cpu_count()} "
        "CPUs"
    )
    print(f"{'':28}{'replicates':>11}{'ours':>10}{'rliable':>10}{'(timed on)':>12}{'ratio':>8}")

    def show(
        name: str, replicates: str, ours: float, rliable_seconds: float | None, timed: str
    ) -> None:
        end = (
            f"{rliable_seconds:9.1f}s{timed:>12}{rliable_seconds / ours:7.0f}x"
            if rliable_seconds is not None
            else ""
        )
        print(f"{name:28}{replicates:>11}{ours:9.2f}s{end}")

    def extrapolate_seconds(
        call: Callable[[int], object], replicates: int, timed: int
    ) -> float | None:
        return None if rly is None else seconds(lambda: call(timed), 1) * replicates / timed

    separate: list[float | None] = []
    for name, ours, call_rliable, replicates, timed in rows:
        full_seconds = extrapolate_seconds(call_rliable, replicates, timed)
        separate.append(full_seconds)
        show(name, f"{replicates}", seconds(ours, 3), full_seconds, f"({timed})")
    aggregates = extrapolate_seconds(
        lambda reps: rly.get_interval_estimates(matrices, four, reps=reps),
        AGGREGATE_REPLICATES,
        1_000,
    )
    all_seconds = [aggregates, *separate[1:]]
    full = None if rly is None else sum(value for value in all_seconds if value is not None)
    show("everything (compare)", "all", seconds(everything, 3), full, "(sum)")


if __name__ == "__main__":
    main()
