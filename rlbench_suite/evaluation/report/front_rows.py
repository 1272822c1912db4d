"""Compute the table of fronts: an agent's set of policies on a task with several objectives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from markupsafe import Markup

from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.report import chart
from rlbench_suite.evaluation.report.page import interval
from rlbench_suite.evaluation.runs.run import FrontPoints, Run
from rlbench_suite.evaluation.statistics.aggregates import means
from rlbench_suite.evaluation.statistics.fronts import Quality, quality
from rlbench_suite.evaluation.statistics.intervals import Estimate, Method

COLUMNS = {
    "hypervolume": "HV",
    "hypervolume_ratio": "HV of exact",
    "expected_utility": "EUM",
    "maximum_utility_loss": "MUL",
    "inverted_distance": "IGD+",
    "cardinality": "points",
}
"""Measures of a front, with their titles."""

MAX_VOLUMES = 100_000
"""Volumes of one dimension that a hypervolume may take, which is some seconds."""


@dataclass(frozen=True)
class FrontRow:
    """Quality of the fronts of an agent on a task."""

    agent: str
    card: TaskCard
    estimates: Mapping[str, Estimate]
    """Means over seeds with 95 % intervals, by name in :data:`COLUMNS`, of what is known."""
    exact: Quality | None
    """Quality of the task's exact front; None if it is not known."""
    fronts: Mapping[int, FrontPoints]
    """Fronts by seed."""

    def texts(self) -> dict[str, str]:
        """Return each measure by its title, with its interval and then the exact value."""
        return {title: self._text(name) for name, title in COLUMNS.items()}

    def _text(self, name: str) -> str:
        if (estimate := self.estimates.get(name)) is None:
            return "-"
        text = f"{estimate.point:z.3f} {interval(estimate) or '-'}"
        exact = getattr(self.exact, name, None)
        if exact is None or name in (
            "hypervolume_ratio",
            "maximum_utility_loss",
            "inverted_distance",
        ):
            return text
        return f"{text} of {exact:.5g}"


def front_rows(run: Run, method: Method) -> list[FrontRow]:
    """Return a row for each agent and task whose cells have fronts, task by task.

    Raises:
        ValueError: a table of a front is damaged.
    """
    fronts: dict[tuple[str, str], dict[int, FrontPoints]] = {}
    for result in run.results():
        if (front := run.read_front(result)) is not None:
            fronts.setdefault((result.task, result.agent), {})[result.seed] = front
    order = [*run.manifest.references]
    keys = sorted(fronts, key=lambda key: order.index(key[0]))
    return [_row(find_card(task), agent, fronts[task, agent], method) for task, agent in keys]


def _row(card: TaskCard, agent: str, fronts: Mapping[int, FrontPoints], method: Method) -> FrontRow:
    exact_front = next(iter(fronts.values())).exact
    qualities = [_quality(front.returns, exact_front, card) for front in fronts.values()]
    values = {name: [getattr(seed_quality, name) for seed_quality in qualities] for name in COLUMNS}
    complete = {name: numbers for name, numbers in values.items() if None not in numbers}
    # A front has no bounds as a score has.
    estimates = means(
        [{card.id: numbers} for numbers in complete.values()], method=method, bounds=None
    )
    exact = _quality(exact_front, exact_front, card) if len(exact_front) else None
    return FrontRow(agent, card, dict(zip(complete, estimates, strict=True)), exact, fronts)


def _quality(points: np.ndarray, exact: np.ndarray, card: TaskCard) -> Quality:
    """Return the quality of points, without hypervolume where that takes too long."""
    max_count, objectives = max(len(points), len(exact)), points.shape[1]
    measurable = comb(max_count + objectives - 3, objectives - 2) <= MAX_VOLUMES
    reference = card.hypervolume_reference if measurable else ()
    return quality(
        points, np.array(reference) if reference else None, exact if len(exact) else None
    )


def charts(rows: Iterable[FrontRow], colour: Mapping[str, int]) -> Iterable[Markup]:
    """Yield a chart of the fronts of all agents for each task with two objectives."""
    by_task: dict[str, list[FrontRow]] = {}
    for row in rows:
        if len(row.card.objectives) == 2:
            by_task.setdefault(row.card.id, []).append(row)
    for rows_of_task in by_task.values():
        first = rows_of_task[0]
        clouds: list[Any] = [
            chart.Cloud(
                f"{row.agent}, seed {seed}", front.returns[:, 0], front.returns[:, 1],
                colour[row.agent],
            )
            for row in rows_of_task
            for seed, front in row.fronts.items()
        ]  # fmt: skip
        exact = next(iter(first.fronts.values())).exact
        outline = chart.Cloud("exact front", exact[:, 0], exact[:, 1], None)
        x_label, y_label = first.card.objectives
        yield chart.clouds(
            first.card.name, [outline, *clouds], x_label=f"return of {x_label}",
            y_label=f"return of {y_label}",
        )  # fmt: skip
