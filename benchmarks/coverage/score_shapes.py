"""Measure how often a report's intervals hold for the shapes that scores of agents have.

    python benchmarks/coverage/score_shapes.py
    python benchmarks/coverage/score_shapes.py --part means --draws 2000

It prints the tables of docs/audits/coverage.md:

* means: intervals of the mean over tasks, at 3 to 20 seeds on 1, 6 and 32 tasks.
* iqm: intervals of the interquartile mean.
* shares: intervals of probabilities of improvement, of performance profiles and of success.

A cell has three numbers: how often the interval covers the truth; how often it does, or the truth
lies within what the words beside the interval allow; and how often the interval has no width. The
words allow a share of runs that were not seen, as large as so many runs cannot exclude. They then
score as low, or as high, as a run can. Draws of a cell have a seed of their own.
"""

import argparse
import math
from collections.abc import Callable

import numpy as np

from rlbench_suite.evaluation.statistics.aggregates import iqm, means
from rlbench_suite.evaluation.statistics.profiles import (
    performance_profile,
    probability_of_improvement,
)
from rlbench_suite.evaluation.statistics.unseen_runs import SCALE, proportion_interval, unseen_share

SEEDS = 3, 5, 10, 20
TASKS = 1, 6, 32
FAIL_SPREAD = 0.02
Draw = Callable[[np.random.Generator, int, int, int], np.ndarray]
"""Random generator, numbers of draws, tasks and seeds to scores of that shape."""


def failing(rate: float) -> Draw:
    """Return runs that score about 1, or about 0 at this rate."""

    def draw(rng: np.random.Generator, *shape: int) -> np.ndarray:
        return (rng.random(shape) >= rate) + rng.normal(0, FAIL_SPREAD, shape)

    return draw


def successes(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.binomial(50, rng.beta(20, 1, shape)) / 50


def high_successes(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.binomial(50, 0.99, shape) / 50


def bad_seeds(rng: np.random.Generator, *shape: int) -> np.ndarray:
    draws, _, seeds = shape
    return (rng.random((draws, 1, seeds)) >= 0.2) + rng.normal(0, FAIL_SPREAD, shape)


def sample_correlated(rng: np.random.Generator, *shape: int) -> np.ndarray:
    draws, _, seeds = shape
    return 0.5 + 0.1 * (
        math.sqrt(0.8) * rng.normal(size=(draws, 1, seeds))
        + math.sqrt(0.2) * rng.normal(size=shape)
    )


SHAPES: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, *shape: rng.normal(0.5, 0.1, shape), 0.5),
    "exponential": (lambda rng, *shape: rng.exponential(0.5, shape), 0.5),
    "lognormal": (lambda rng, *shape: rng.lognormal(-1, 1, shape), math.exp(-0.5)),
    "t with 2 degrees of freedom": (lambda rng, *shape: 0.5 + 0.1 * rng.standard_t(2, shape), 0.5),
    "10 % of runs fail": (failing(0.1), 0.9),
    "30 % of runs fail": (failing(0.3), 0.7),
    "50 % of runs fail": (failing(0.5), 0.5),
    "bounded above: min(1, normal)": (
        lambda rng, *shape: np.minimum(1, rng.normal(1, 0.2, shape)),
        1 - 0.2 / math.sqrt(2 * math.pi),
    ),
    "success in 50 episodes, rates differ": (successes, 20 / 21),
    "success in 50 episodes, rate .99": (high_successes, 0.99),
    "all or nothing: 10 % of runs find 1, others 0": (
        lambda rng, *s: (rng.random(s) < 0.1).astype(float),
        0.1,
    ),
}
"""Shapes of independent scores, with their mean."""

ACROSS: dict[str, tuple[Draw, float]] = {
    "seeds correlate over tasks, .8": (sample_correlated, 0.5),
    "20 % of seeds fail on all tasks": (bad_seeds, 0.8),
}
"""Shapes that only several tasks have."""

UNEQUAL = "normal, unequal seeds: three tasks have 1, 3, 3"


def scores_of(values: np.ndarray, unequal: bool) -> dict[str, np.ndarray]:
    """Return scores by task; of unequal seeds the first tasks lack some."""
    sizes = {0: 1, 1: 3, 2: 3} if unequal else {}
    return {
        f"task{j:02}": task_scores[: sizes.get(j, len(task_scores))]
        for j, task_scores in enumerate(values)
    }


def widen_for_unseen(low: float, high: float, values: np.ndarray, runs: int) -> tuple[float, float]:
    """Return the ends of an interval that also holds the unseen share of runs."""
    share = unseen_share(runs)
    floor, ceiling = min(SCALE[0], values.min()), max(SCALE[1], values.max())
    return low - share * max(low - floor, 0), high + share * max(ceiling - high, 0)


def hold(rows: list[tuple[float, float]], values: list[np.ndarray], runs: int, truth: float) -> str:
    """Return the three numbers of a cell."""
    ends = np.array(rows)
    wide = np.array(
        [widen_for_unseen(*row, sample, runs) for row, sample in zip(rows, values, strict=True)]
    )
    covered = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()
    with_words = ((wide[:, 0] <= truth) & (truth <= wide[:, 1])).mean()
    return f"{short(covered)}, {short(with_words)}, {short((ends[:, 1] <= ends[:, 0]).mean())}"


def short(rate: float) -> str:
    return f"{rate:.2f}".removeprefix("0")


def print_means(draws: int) -> None:
    print(f"\nMean, {draws:,} draws:\n")
    print("| scores | tasks | " + " | ".join(f"{n} seeds" for n in SEEDS) + " |")
    print("| --- " * (len(SEEDS) + 2) + "|")
    cases = [(name, *shape, tasks) for name, shape in SHAPES.items() for tasks in TASKS]
    cases += [(name, *shape, 6) for name, shape in ACROSS.items()]
    cases += [(UNEQUAL, *SHAPES["normal"], 6)]
    for name, draw, truth, tasks in cases:
        cells = []
        for seeds in SEEDS:
            rng = np.random.default_rng([tasks, seeds, *name.encode()])
            values = draw(rng, draws, tasks, seeds)
            estimates = means(
                [scores_of(sample, name == UNEQUAL) for sample in values], replicates=1_000
            )
            together = name in ACROSS
            runs = seeds if together else min(seeds, 1 if name == UNEQUAL else seeds) * tasks
            cells.append(hold([(e.low, e.high) for e in estimates], list(values), runs, truth))
        print(f"| {name} | {tasks} | {' | '.join(cells)} |", flush=True)


def print_iqm(draws: int) -> None:
    print(f"\nInterquartile mean, {draws:,} draws:\n")
    print("| scores | tasks | " + " | ".join(f"{n} seeds" for n in SEEDS) + " |")
    print("| --- " * (len(SEEDS) + 2) + "|")
    for name, (draw, _) in SHAPES.items():
        many = np.sort(draw(np.random.default_rng(0), 1, 1, 400_000).ravel())
        truth = float(many[100_000:300_000].mean())
        for tasks in (1, 6):
            cells = []
            for seeds in SEEDS:
                rng = np.random.default_rng([tasks, seeds, *name.encode()])
                values = draw(rng, draws, tasks, seeds)
                estimates = [iqm(scores_of(sample, False), replicates=1_000) for sample in values]
                cells.append(
                    hold([(e.low, e.high) for e in estimates], list(values), seeds * tasks, truth)
                )
            print(f"| {name} | {tasks} | {' | '.join(cells)} |", flush=True)


def print_shares(draws: int) -> None:
    """Print how often intervals of shares cover, and how often they have no width."""
    print(f"\nShares, {draws:,} draws (covered, no width):\n")
    print("| share | truth | tasks | " + " | ".join(f"{n} seeds" for n in SEEDS) + " |")
    print("| --- " * (len(SEEDS) + 3) + "|")
    phi = [0.5 * (1 + math.erf(apart / 2)) for apart in (1, 2, 3)]
    pairs: dict[str, tuple[Draw, Draw, float]] = {
        f"improvement, normals {apart} sd apart": (
            lambda rng, *s, apart=apart: rng.normal(apart, 1, s),  # type: ignore[misc]
            lambda rng, *s: rng.normal(0, 1, s),
            truth,
        )
        for apart, truth in zip((1, 2, 3), phi, strict=True)
    }
    pairs["improvement, 10 % of runs fail, others always .9"] = (
        failing(0.1),
        lambda rng, *s: np.full(s, 0.9),
        0.9,
    )
    for name, (first, second, truth) in pairs.items():
        for tasks in (1, 6):
            cells = []
            for seeds in SEEDS:
                rng = np.random.default_rng([tasks, seeds, *name.encode()])
                samples = first(rng, draws, tasks, seeds), second(rng, draws, tasks, seeds)
                estimates = [
                    probability_of_improvement(*(scores_of(sample, False) for sample in pair))
                    for pair in zip(*samples, strict=True)
                ]
                cells.append(two_numbers([(e.low, e.high) for e in estimates], truth))
            print(f"| {name} | {truth:.3f} | {tasks} | {' | '.join(cells)} |", flush=True)
    for truth in (0.5, 0.8, 0.9):
        for tasks in (1, 6):
            cells = []
            for seeds in SEEDS:
                rng = np.random.default_rng([tasks, seeds, int(100 * truth)])
                profiles = [
                    performance_profile(scores_of(sample, False), [1 - truth])
                    for sample in rng.random((draws, tasks, seeds))
                ]
                cells.append(two_numbers([(p.low[0], p.high[0]) for p in profiles], truth))
            print(f"| profile | {truth} | {tasks} | {' | '.join(cells)} |", flush=True)
    cells = []
    for seeds in SEEDS:
        wins = np.random.default_rng(seeds).binomial(50 * seeds, 0.99, draws).tolist()
        cells.append(two_numbers([proportion_interval(won, 50 * seeds) for won in wins], 0.99))
    print(
        "| success of a player that was not trained, 50 episodes a seed | 0.99 | 1 | "
        f"{' | '.join(cells)} |"
    )


def two_numbers(rows: list[tuple[float, float]], truth: float) -> str:
    ends = np.array(rows)
    covered = (ends[:, 0] - 1e-9 <= truth) & (truth <= ends[:, 1] + 1e-9)
    return f"{short(covered.mean())}, {short((ends[:, 1] <= ends[:, 0]).mean())}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--part", choices=("means", "iqm", "shares"), action="append", help="[default: all]"
    )
    parser.add_argument(
        "--draws",
        type=int,
        default=200,
        help="draws of each cell of means; half of it for iqm, twice for shares",
    )
    options = parser.parse_args()
    tables = options.part or ["means", "iqm", "shares"]
    if "means" in tables:
        print_means(options.draws)
    if "iqm" in tables:
        print_iqm(options.draws // 2)
    if "shares" in tables:
        print_shares(2 * options.draws)


if __name__ == "__main__":
    main()
