"""Time the statistics and the rendering of a large report: 20 agents x 100 tasks x 10 seeds.

    python benchmarks/report_speed.py

Scores and learning curves of ten points are made up; one agent of ten breaks every constraint. The rest is what
``rlsuite-eval`` does with the results that it has read: it computes the statistics, writes the page and prints the
tables.
"""

import io
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from rlbench_suite import registry
from rlbench_suite.evaluation.report.html_report import write_html
from rlbench_suite.evaluation.report.report import Report
from rlbench_suite.evaluation.report.terminal_report import print_report
from rlbench_suite.evaluation.runs.machine import Machine
from rlbench_suite.evaluation.runs.manifest import CellResult, Manifest, Sitting
from rlbench_suite.evaluation.runs.run import Run, TrainingCurve

AGENTS, TASKS, SEEDS, POINTS = 20, 100, 10, 10


class MadeUpRun(Run):
    """Run whose results are held in memory."""

    def __init__(self, path: Path) -> None:
        cards = list(registry.cards().values())[:TASKS]
        agents = [f"agent{k:02}" for k in range(AGENTS)]
        settings: dict[str, Any] = {agent: {card.id: {} for card in cards} for agent in agents}
        references = {card.id: card.scores() for card in cards}
        manifest = Manifest.now(
            budget="smoke", seeds=SEEDS, references={}, hyperparameters=settings, not_applicable={}
        ).model_copy(
            update={
                "references": references,
                "sittings": [Sitting(arguments=[], machine=Machine.this(), started=datetime.now(UTC))],
            }
        )
        super().__init__(path, manifest)
        rng = np.random.default_rng(0)
        self._made_results = [self._result(cell, float(rng.normal(0.5, 0.3))) for cell in manifest.cells()]
        self._curves: dict[tuple[str, str], dict[int, TrainingCurve]] = {}
        for cell in manifest.cells():
            steps = np.arange(1, POINTS + 1) * 1000
            curve = TrainingCurve(steps, steps / 1e5, rng.normal(size=POINTS).cumsum())
            self._curves.setdefault((cell.agent, cell.task), {})[cell.seed] = curve

    @staticmethod
    def _result(cell: Any, score: float) -> CellResult:
        cost = 1e9 if cell.agent.endswith("0") else 0.0
        return CellResult(
            agent=cell.agent, task=cell.task, seed=cell.seed, episodes=50, mean_return=score, score=score,
            worst_tenth=score - 0.2,
            success_rate=0.5, mean_length=100.0, mean_cost=cost, mean_returns=[score], training_steps=10_000,
            train_seconds=1.0, compile_seconds=1.0, evaluate_seconds=1.0, wall_seconds=3.0, device="cpu",
        )  # fmt: skip

    def results(self) -> list[CellResult]:
        """Return the made-up results."""
        return self._made_results

    def read_curves(self) -> dict[tuple[str, str], dict[int, TrainingCurve]]:
        """Return the made-up curves."""
        return self._curves


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = MadeUpRun(Path(folder))
        print(f"{AGENTS} agents x {TASKS} tasks x {SEEDS} seeds: seconds, and of them processor time")
        total = -time.perf_counter(), -time.process_time()
        report = timed("statistics", lambda: Report.of(run))
        timed("page", lambda: write_html(report))
        timed("tables", lambda: print_report(report, Console(file=io.StringIO(), width=140)))
        print(f"{'total':12}{total[0] + time.perf_counter():8.1f}{total[1] + time.process_time():8.1f}")
        print(f"The page has {(Path(folder) / 'report.html').stat().st_size / 1e6:.1f} MB.")


def timed(name: str, call: Any) -> Any:
    """Print the time of a call, and return its result."""
    wall, processor = time.perf_counter(), time.process_time()
    result = call()
    print(f"{name:12}{time.perf_counter() - wall:8.1f}{time.process_time() - processor:8.1f}")
    return result


if __name__ == "__main__":
    main()
