"""Draw curves of sample efficiency: the IQM of training scores over steps and over seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from markupsafe import Markup

from rlbench_suite.core.scale import Scale
from rlbench_suite.evaluation.report import chart
from rlbench_suite.evaluation.runs.run import TrainingCurve
from rlbench_suite.evaluation.statistics.aggregates import Curve, sample_efficiency

POINTS = 11
"""Points of a curve. Each has a bootstrap of its own."""

REPLICATES = 200
"""Bootstrap replicates of a band. Its width on a chart needs no more."""

MAX_BANDS = 4
"""Agents up to which curves have bands.

More bands would hide each other, and take seconds in large runs.
"""

Seeds = Mapping[int, tuple[np.ndarray, np.ndarray]]
"""Time (steps or seconds) and training scores, NaN where no episode ended, by seed."""


def curve(
    tasks: Mapping[str, Seeds], *, relative: bool, band: bool = True
) -> tuple[np.ndarray, Curve] | None:
    """Return the times and the interquartile mean of the last known training scores.

    The mean is taken over tasks and seeds.

    A curve begins once an episode has ended in every run. A run that has ended keeps its last
    score.

    Args:
        tasks: training curves by task.
        relative: divide time by that of the end of each run.
        band: compute an interval at each point; NaN otherwise.

    Returns:
        None if a run has no score.
    """
    runs = {
        task: [_known_scores(*seed, relative) for seed in seeds.values()]
        for task, seeds in tasks.items()
    }
    if not runs or any(not len(times) for seeds in runs.values() for times, _ in seeds):
        return None
    begin = max(times[0] for seeds in runs.values() for times, _ in seeds)
    end = max(times[-1] for seeds in runs.values() for times, _ in seeds)
    grid = np.linspace(begin, end, POINTS)
    scores = {
        task: np.array(
            [values[np.searchsorted(times, grid, side="right") - 1] for times, values in seeds]
        )
        for task, seeds in runs.items()
    }
    if band:
        return grid, sample_efficiency(scores, replicates=REPLICATES)
    nothing = np.full(POINTS, np.nan)
    return grid, Curve(_interquartile_mean(list(scores.values())), nothing, nothing)


def charts(
    curves: Mapping[tuple[str, str], Mapping[int, TrainingCurve]],
    scales: Mapping[str, Scale],
    tasks: Sequence[str],
    colour: Mapping[str, int],
) -> Iterable[Markup]:
    """Yield a chart over the share of training steps, and one over training seconds.

    There is none if no agent has a curve.

    Args:
        curves: training curves of a run by (agent, task) and seed.
        scales: scales of the scores by task.
        tasks: tasks to aggregate; an agent without a curve on one of them is left out.
        colour: number of each agent's colour.
    """
    agents = [
        agent for agent in colour if tasks and all(curves.get((agent, task)) for task in tasks)
    ]
    band = len(agents) <= MAX_BANDS
    for title, column, label in (
        ("Sample efficiency", "steps", "share of the training steps"),
        ("Time efficiency", "seconds", "seconds of training a task, without compilation"),
    ):
        lines = []
        for agent in agents:
            scored: dict[str, Seeds] = {}
            for task in tasks:
                scored[task] = {
                    seed: (
                        getattr(curve_of_seed, column),
                        scales[task].score(curve_of_seed.returns),
                    )
                    for seed, curve_of_seed in curves[agent, task].items()
                }
            if (agent_curve := curve(scored, relative=column == "steps", band=band)) is not None:
                times, values = agent_curve
                lines.append(
                    chart.Line(agent, times, values.iqm, colour[agent], values.low, values.high)
                )
        if picture := chart.lines(title, lines, x_label=label, y_label="IQM of training scores"):
            yield picture


def _interquartile_mean(scores: Sequence[np.ndarray]) -> np.ndarray:
    """Return the point values of ``statistics.iqm`` at each point.

    Each task has scores ``(n_seeds, n_points)``.

    It makes no resamples, so that a report of many agents takes seconds.
    """
    pooled = np.concatenate(scores)
    total = len(pooled)
    weights = np.concatenate(
        [
            np.full(len(task_scores), total / (len(scores) * len(task_scores)))
            for task_scores in scores
        ]
    )
    order = np.argsort(pooled, axis=0, kind="stable")
    cut = total // 4
    reached = np.clip(np.cumsum(weights[order], axis=0), cut, total - cut)
    counted_weights = np.diff(reached, axis=0, prepend=cut)
    return (counted_weights * np.take_along_axis(pooled, order, axis=0)).sum(axis=0) / (
        total - 2 * cut
    )


def _known_scores(
    times: np.ndarray, scores: np.ndarray, relative: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the times at which a score is known, and these scores.

    The last score is also known at the end of the run.
    """
    is_finite = np.isfinite(scores)
    if not is_finite.any():
        return times[:0], scores[:0]
    known_times = np.concatenate((times[is_finite], times[-1:])).astype(float)
    scores = scores[is_finite]
    return known_times / times[-1] if relative else known_times, np.concatenate(
        (scores, scores[-1:])
    )
