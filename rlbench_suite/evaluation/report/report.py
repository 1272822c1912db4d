"""Statistics of a run, which ``terminal_report.py`` and ``html_report.py`` show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.cell import FailedCell
from rlbench_suite.evaluation.report.front_rows import FrontRow, front_rows
from rlbench_suite.evaluation.report.match_rows import MatchTable, match_tables
from rlbench_suite.evaluation.report.pass_at_k import Passing, passing
from rlbench_suite.evaluation.report.report_rows import Gap, Row, Transfer, gap_of, pairs_of, row_of
from rlbench_suite.evaluation.runs.manifest import CellResult
from rlbench_suite.evaluation.runs.run import Run
from rlbench_suite.evaluation.statistics.aggregates import (
    Comparison,
    compare,
    error_of_mean,
    iqm,
    means,
    with_error,
)
from rlbench_suite.evaluation.statistics.intervals import Estimate, Method
from rlbench_suite.evaluation.statistics.profiles import probability_above

AGGREGATES = {"iqm": "IQM", "mean": "Mean", "median": "Median", "optimality_gap": "Optimality gap"}


_Key = tuple[str, str]
"""Agent and task."""


class ScoreTable:
    """Finished cells of a run by agent and task, and the estimates that a report makes of them.

    Args:
        run: the run.
        method: of the intervals.

    Raises:
        ValueError: no cell is finished.
    """

    def __init__(self, run: Run, method: Method) -> None:
        self.run = run
        self.method = method
        self.cells: dict[_Key, list[CellResult]] = {}
        for result in run.results():
            self.cells.setdefault((result.agent, result.task), []).append(result)
        if not self.cells:
            raise ValueError(f"The run in {run.path} has no finished cell to report on.")
        self.failures = Counter((cell.agent, cell.task) for cell in run.failures())
        self.anchors = {
            task: run.manifest.scale(task).standard_error for task in run.manifest.references
        }
        self.scores = {
            key: [result.score for result in results] for key, results in self.cells.items()
        }
        self.constrained_scores = {
            (agent, task): [
                find_card(task).constrained_score(result.score, result.mean_cost)
                for result in results
            ]
            for (agent, task), results in self.cells.items()
        }

    def rows(self) -> list[Row]:
        """Return a row for each agent and task, task by task in the manifest's order."""
        agents = list(dict.fromkeys(agent for agent, _ in self.cells))
        keys = [
            (agent, task)
            for task in self.run.manifest.references
            for agent in agents
            if (agent, task) in self.cells
        ]
        scores = self._average({key: self.scores[key] for key in keys})
        changed_keys = [key for key in keys if self.constrained_scores[key] != self.scores[key]]
        constrained = scores | self._average(
            {key: self.constrained_scores[key] for key in changed_keys}
        )
        worst_tenths = self._average(self._worst_tenths())
        success_rates = self._success_rates()
        return [
            row_of(
                self.run,
                *key,
                self.cells[key],
                scores[key],
                constrained[key],
                worst_tenths.get(key),
                success_rates[key],
                self.failures[key],
            )
            for key in keys
        ]

    def _average(self, values: Mapping[_Key, list[float]]) -> dict[_Key, Estimate]:
        """Return means over seeds, whose intervals carry the errors of the scales."""
        estimates = means(
            [{task: seeds} for (_, task), seeds in values.items()], method=self.method
        )
        return {
            (agent, task): with_error(estimate, self.anchors[task](estimate.point))
            for (agent, task), estimate in zip(values, estimates, strict=True)
        }

    def _worst_tenths(self) -> dict[_Key, list[float]]:
        """Return the scores of the worst tenths of episodes by seed, where the run has any."""
        tails: dict[_Key, list[float]] = {}
        for key, results in self.cells.items():
            values = [result.worst_tenth for result in results if result.worst_tenth is not None]
            if values:
                tails[key] = values
        return tails

    def _success_rates(self) -> dict[_Key, Estimate]:
        rates = [
            {task: [result.success_rate for result in results]}
            for (_, task), results in self.cells.items()
        ]
        return dict(zip(self.cells, means(rates), strict=True))

    def transfers(self) -> list[Transfer]:
        """Return the transfers of agents that were evaluated at home and elsewhere."""
        differences: dict[_Key, list[float]] = {}
        for key in self.cells:
            if key not in self.failures and (pairs := pairs_of(*key, self.cells)):
                differences[key] = pairs
        estimates = means(
            [{task: pairs} for (_, task), pairs in differences.items()], method=self.method
        )
        return [
            Transfer(agent, find_card(task), estimate)
            for (agent, task), estimate in zip(differences, estimates, strict=True)
        ]

    def gaps(self) -> list[Gap]:
        """Return the gaps of agents that were evaluated on training contexts, too."""
        gaps = []
        for (agent, task), results in self.cells.items():
            if (agent, task) not in self.failures and (
                gap := gap_of(agent, find_card(task), results, self.method)
            ):
                gaps.append(gap)
        return gaps

    def compare(self) -> Comparison | None:
        """Compare the agents on the tasks that all of them have; None if there is no such task."""
        scores = self._complete(self.scores)
        if not scores or not set.intersection(*map(set, scores.values())):
            return None
        return compare(scores, anchors=self.anchors, method=self.method)

    def constrained_iqms(self, comparison: Comparison) -> dict[str, Estimate]:
        """Return the IQM of constrained scores by agent; empty if no task has a constraint.

        Only tasks of the comparison count.
        """
        if not any(find_card(task).constraint for task in comparison.tasks):
            return {}
        scores = self._complete(self.scores)
        iqms = {}
        for agent, by_task in self._complete(self.constrained_scores).items():
            constrained = {task: by_task[task] for task in comparison.tasks}
            if all(constrained[task] == scores[agent][task] for task in comparison.tasks):
                iqms[agent] = comparison.agents[agent].iqm
            else:
                iqms[agent] = with_error(
                    iqm(constrained, method=self.method), error_of_mean(constrained, self.anchors)
                )
        return iqms

    def probabilities_above_zero(self, shared_tasks: Sequence[str]) -> dict[str, Estimate]:
        """Return the probability that a run of each agent scores above 0.

        It counts the shared tasks, or else the agent's own.
        """
        return {
            agent: probability_above(
                {task: by_task[task] for task in shared_tasks or sorted(by_task)}, 0.0
            )
            for agent, by_task in self._complete(self.scores).items()
        }

    def _complete(self, scores: Mapping[_Key, list[float]]) -> dict[str, dict[str, list[float]]]:
        """Return scores by agent and task, without agents that have failed cells.

        A mean over the other cells would reward failing where an agent does badly.
        """
        unfinished_agents = {agent for agent, _ in self.failures}
        by_agent: dict[str, dict[str, list[float]]] = {}
        for (agent, task), seeds in scores.items():
            if agent not in unfinished_agents:
                by_agent.setdefault(agent, {})[task] = seeds
        return by_agent


@dataclass(frozen=True)
class Report:
    """Statistics of a run."""

    run: Run
    method: Method
    """Method of the intervals of scores and gaps."""
    rows: list[Row]
    transfers: list[Transfer]
    """Transfers of agents that were evaluated both where they were trained and elsewhere."""
    gaps: list[Gap]
    """Gaps of agents that were evaluated on training contexts, too."""
    fronts: list[FrontRow]
    """Fronts of agents that learn a set of policies."""
    matches: list[MatchTable]
    """Games of policies against each other, on tasks that are one seat of a game of two."""
    comparison: Comparison | None
    """Comparison on the tasks that all agents have; None if there is no such task."""
    constrained: dict[str, Estimate]
    """IQM of constrained scores by agent on the same tasks; empty if none has a constraint."""
    above_zero: dict[str, Estimate]
    """Probability that a run of the agent scores above 0 on a random task."""
    models: list[Passing]
    """Results of language models in several attempts."""
    missing: list[str]
    """Cells without a result, in words."""
    failures: Sequence[FailedCell]
    """Those of them that failed when they were last tried."""

    @classmethod
    def of(cls, run: Run, method: Method = "studentised") -> Report:
        """Compute all statistics of the finished cells.

        Args:
            run: the run.
            method: of the intervals, as in :mod:`rlbench_suite.evaluation.statistics.aggregates`.

        Raises:
            ValueError: there are none.
        """
        table = ScoreTable(run, method)
        comparison = table.compare()
        shared_tasks = comparison.tasks if comparison else ()
        finished_cells = {result.cell for result in run.results()}
        return cls(
            run=run,
            method=method,
            rows=table.rows(),
            transfers=table.transfers(),
            gaps=table.gaps(),
            fronts=front_rows(run, method),
            matches=match_tables(run),
            comparison=comparison,
            constrained=table.constrained_iqms(comparison) if comparison else {},
            above_zero=table.probabilities_above_zero(shared_tasks),
            models=passing(run),
            missing=[str(cell) for cell in run.manifest.cells() if cell not in finished_cells],
            failures=run.failures(),
        )

    def privileged_cards(self, agent: str) -> list[TaskCard]:
        """Return the cards of the tasks whose state or params an agent reads."""
        return [row.card for row in self.rows if row.agent == agent and row.privileged]

    def violated_cards(self, agent: str) -> list[TaskCard]:
        """Return the cards of the tasks of all agents whose constraints an agent violates."""
        tasks = self.comparison.tasks if self.comparison else ()
        return [
            row.card
            for row in self.rows
            if row.agent == agent and row.violates and row.card.id in tasks
        ]
