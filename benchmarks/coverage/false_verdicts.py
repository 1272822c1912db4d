"""Measure how often ``rlsuite-eval compare`` calls one of two equal agents better.

Their true means are equal.

    python benchmarks/coverage/false_verdicts.py

Scores are drawn from known distributions, and each pair of made-up runs gets a verdict as finished
runs do. A rate above .05 is an error of the method. Its standard error is .007 at .05 with 1,000
draws. The last tables show how often a better agent is called better, with a fifth of the draws.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from rlbench_suite.evaluation.report import comparison
from rlbench_suite.evaluation.report.comparison import verdicts
from rlbench_suite.evaluation.runs.manifest import CellResult, Manifest
from rlbench_suite.evaluation.runs.run import Run
from rlbench_suite.evaluation.statistics import aggregates, profiles
from rlbench_suite.evaluation.statistics.intervals import Estimate
from rlbench_suite.evaluation.statistics.permutation import sign_flip_test
from rlbench_suite.evaluation.statistics.power import LEVEL

SEEDS = {1: (5, 6, 7, 8, 10, 12, 20, 40), 3: (5, 6, 8), 6: (5, 10)}
"""Numbers of seeds by number of tasks."""
Draw = Callable[[np.random.Generator, int], np.ndarray]

EQUAL: dict[str, tuple[Draw, Draw]] = {
    "normal": (lambda rng, n: rng.normal(size=n), lambda rng, n: rng.normal(size=n)),
    "normal, one ten times as wide": (
        lambda rng, n: rng.normal(size=n),
        lambda rng, n: rng.normal(0, 10, n),
    ),
    "exponential": (lambda rng, n: rng.exponential(size=n), lambda rng, n: rng.exponential(size=n)),
    "exponential, and always its mean": (
        lambda rng, n: rng.exponential(size=n),
        lambda rng, n: np.ones(n),
    ),
    "lognormal, and always its mean": (
        lambda rng, n: rng.lognormal(size=n),
        lambda rng, n: np.full(n, np.exp(0.5)),
    ),
    "lognormal, and normal of spread 0.3 about its mean": (
        lambda rng, n: rng.lognormal(size=n),
        lambda rng, n: rng.normal(np.exp(0.5), 0.3, n),
    ),
    "lognormal, and normal of spread 0.6 about its mean": (
        lambda rng, n: rng.lognormal(size=n),
        lambda rng, n: rng.normal(np.exp(0.5), 0.6, n),
    ),
    "lognormal, 7 % above 1, and always its mean": (
        lambda rng, n: rng.lognormal(-1.5, 1, n),
        lambda rng, n: np.full(n, np.exp(-1)),
    ),
    "lognormal of sigma 1.5, and always its mean": (
        lambda rng, n: rng.lognormal(0, 1.5, n),
        lambda rng, n: np.full(n, np.exp(1.125)),
    ),
    "1, but 0 in every tenth run, and always 0.9": (
        lambda rng, n: (rng.random(n) > 0.1) + rng.normal(0, 0.01, n),
        lambda rng, n: np.full(n, 0.9),
    ),
    "0, but 1 in every tenth run, and always 0.1": (
        lambda rng, n: (rng.random(n) < 0.1).astype(float),
        lambda rng, n: rng.normal(0.1, 0.01, n),
    ),
    "1, but 0 in every fifth run, and always 0.8": (
        lambda rng, n: (rng.random(n) > 0.2).astype(float),
        lambda rng, n: rng.normal(0.8, 0.01, n),
    ),
    "both fail in every fifth run": (
        lambda rng, n: (rng.random(n) > 0.2) + rng.normal(0, 0.01, n),
        lambda rng, n: (rng.random(n) > 0.2) + rng.normal(0, 0.01, n),
    ),
}
"""Scores of two agents with equal means."""

BETTER: dict[str, tuple[Draw, Draw]] = {
    "normal of spread 0.05, means 0.7 and 0.5": (
        lambda rng, n: rng.normal(0.7, 0.05, n),
        lambda rng, n: rng.normal(0.5, 0.05, n),
    ),
    "normal of spread 0.1, means 0.9 and 0.4": (
        lambda rng, n: rng.normal(0.9, 0.1, n),
        lambda rng, n: rng.normal(0.4, 0.1, n),
    ),
    "normal of spread 0.1, means 0.7 and 0.5": (
        lambda rng, n: rng.normal(0.7, 0.1, n),
        lambda rng, n: rng.normal(0.5, 0.1, n),
    ),
    "normal of spread 1, means 1 and 0": (
        lambda rng, n: rng.normal(1, 1, n),
        lambda rng, n: rng.normal(0, 1, n),
    ),
    "at most 1, spread 0.2, and normal of spread 0.2 about 0.6": (
        lambda rng, n: np.minimum(rng.normal(1, 0.2, n), 1),
        lambda rng, n: rng.normal(0.6, 0.2, n),
    ),
    "exponential, and always 0.3": (
        lambda rng, n: rng.exponential(size=n),
        lambda rng, n: np.full(n, 0.3),
    ),
    "1, but 0 in every tenth run, and always 0.5": (
        lambda rng, n: (rng.random(n) > 0.1) + rng.normal(0, 0.01, n),
        lambda rng, n: np.full(n, 0.5),
    ),
}
"""Scores of two agents of which the first is better: these verdicts are right."""


class MadeRun(Run):
    """Run whose results are held in memory, and in which no cell failed."""

    def __init__(self, path: Path, manifest: Manifest, results: Sequence[CellResult]) -> None:
        super().__init__(path, manifest, "made")
        self._made_results = results

    def results(self) -> Sequence[CellResult]:
        """Return the made-up results."""
        return self._made_results


def simulated_run(x: dict[str, np.ndarray], y: dict[str, np.ndarray]) -> Run:
    """Return a finished run with these scores of two agents by task and seed."""
    agents = {"x": x, "y": y}
    manifest = Manifest(
        version="made", protocol=1, budget="smoke", seeds=1, references={}, not_applicable={},
        hyperparameters={agent: {task: {} for task in scores} for agent, scores in agents.items()},
    )  # fmt: skip
    results = tuple(
        CellResult(
            agent=agent, task=task, seed=seed, score=score, mean_return=score, mean_returns=[score],
            episodes=50, success_rate=0.0, mean_length=1.0, mean_cost=0.0, training_steps=0,
            train_seconds=0.0, compile_seconds=0.0, evaluate_seconds=0.0, wall_seconds=0.0,
            device="cpu",
        )
        for agent, scores in agents.items()
        for task, values in scores.items()
        for seed, score in enumerate(values.tolist())
    )  # fmt: skip
    return MadeRun(Path("made"), manifest, results)


def verdict_rate(first: Draw, second: Draw, tasks: int, seeds: int, draws: int) -> float:
    """Return the fraction of draws with a verdict."""
    rng, decided = np.random.default_rng([tasks, seeds]), 0
    for _ in range(draws):
        x, y = (
            {f"rlsuite/T{j}-v0": draw(rng, seeds) for j in range(tasks)} for draw in (first, second)
        )
        if sign_flip_test({task: scores - y[task] for task, scores in x.items()}) >= LEVEL:
            continue  # the rest of the rule only takes verdicts away
        (verdict,) = verdicts([simulated_run(x, y)])
        decided += verdict.better is not None
    return decided / draws


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=1_000, help="pairs of runs for each number")
    parser.add_argument("--part", choices=("false", "right"), help="false or right verdicts only")
    options = parser.parse_args()
    draws = options.draws
    nothing = Estimate(0, 0, 0)  # what decides no verdict takes most of the time
    aggregates.iqm_difference = lambda *_: nothing  # type: ignore[assignment]
    profiles.probability_of_improvement = lambda *_, **__: nothing  # type: ignore[assignment]
    comparison._count_needed_seeds = lambda *_: None
    for cases, what, share in (
        (EQUAL, "false verdicts", draws),
        (BETTER, "right verdicts", draws // 5),
    ):
        if options.part and not what.startswith(options.part):
            continue
        for tasks, numbers in SEEDS.items():
            heads = " | ".join(f"{seeds} seeds" for seeds in numbers)
            print(
                f"\n| {what}, {tasks} task{'s' * (tasks > 1)} | {heads} |\n| --- "
                f"{'| --- ' * len(numbers)}|"
            )
            for name, (first, second) in cases.items():
                rates = [verdict_rate(first, second, tasks, seeds, share) for seeds in numbers]
                cells = " | ".join(f"{rate:.3f}".removeprefix("0") for rate in rates)
                print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
