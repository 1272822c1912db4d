"""Statistics of scores in plain arrays, with intervals that say what few seeds can tell.

Scores are normalised: 0 is the best play without skill, 1 the reference player.
Every function of scores takes

* an array ``(n_seeds,)``, the scores of one task,
* an array ``(n_seeds, n_tasks)``, one column for each task,
* or a mapping from the names of tasks to arrays ``(n_seeds,)``, whose numbers of seeds may differ.

Every task counts the same. These are short names of
:mod:`rlbench_suite.evaluation.statistics.aggregates`, which says how numbers and intervals are
made. JAX is not imported.

Four functions rate players of games by their games against each other, from plain arrays:
``payoff_matrix``, ``elo``, ``nash_average`` and ``standings``
(:mod:`rlbench_suite.evaluation.statistics.games`).
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Literal, get_args

from numpy.typing import ArrayLike

from rlbench_suite.evaluation.statistics import aggregates, profiles
from rlbench_suite.evaluation.statistics.aggregates import Comparison
from rlbench_suite.evaluation.statistics.games import (
    elo,
    nash_average,
    payoff_matrix,
    standings,
)
from rlbench_suite.evaluation.statistics.intervals import Estimate, Scores, as_floats
from rlbench_suite.evaluation.statistics.profiles import TAUS, Profile
from rlbench_suite.evaluation.statistics.unseen_runs import SCALE
from rlbench_suite.foundation.unknown_names import unknown

__all__ = [
    "Comparison",
    "Estimate",
    "Profile",
    "compare",
    "elo",
    "interval",
    "iqm",
    "nash_average",
    "payoff_matrix",
    "probability_of_improvement",
    "profile",
    "standings",
]

PlainScores = ArrayLike | Mapping[str, ArrayLike]
Statistic = Literal["iqm", "mean", "median", "optimality_gap"]


def iqm(scores: PlainScores) -> float:
    """Return the interquartile mean: the mean of the middle half of all scores.

    Args:
        scores: ``(n_seeds,)``, ``(n_seeds, n_tasks)``, or task to ``(n_seeds,)``.

    Raises:
        ValueError: no scores, another shape, a masked array, or a score that is no finite real
            number.
    """
    return aggregates.iqm(_by_task(scores), replicates=1, bounds=None).point


def interval(
    scores: PlainScores,
    statistic: Statistic = "iqm",
    *,
    confidence: float = 0.95,
    seed: int = 0,
    bounds: tuple[float, float] | None = SCALE,
) -> Estimate:
    """Return a statistic with its interval over new seeds of the same tasks.

    The fields are ``point``, ``low`` and ``high``.

    Args:
        scores: ``(n_seeds,)``, ``(n_seeds, n_tasks)``, or task to ``(n_seeds,)``.
        statistic: ``iqm``, ``mean``, ``median`` (over tasks, of the mean of each) or
            ``optimality_gap`` (mean of ``1 - min(score, 1)``).
        confidence: nominal coverage, in (0, 1).
        seed: of the bootstrap, >= 0. The same seed gives the same ends to the bit.
        bounds: lowest and highest score that a run not seen may have, by which the interval is
            widened where seeds fall into two kinds; None widens nothing. Name your own for numbers
            that are not normalised scores.

    Returns:
        The estimate; ``low`` and ``high`` are NaN if no task has two seeds.

    Raises:
        ValueError: as :func:`iqm`, an unknown statistic, or a number out of range.
    """
    if statistic not in get_args(Statistic):
        raise ValueError(unknown("statistic", statistic, get_args(Statistic)))
    if bounds is not None:
        ends = as_floats(bounds, "Bounds")
        if ends.shape != (2,) or not ends[0] < ends[1]:  # NaN, too
            raise ValueError(f"Bounds are two numbers, the lower one first; given {bounds!r}.")
    compute = getattr(aggregates, statistic)
    estimate: Estimate = compute(_by_task(scores), confidence=confidence, seed=seed, bounds=bounds)
    return estimate


def compare(
    agents: Mapping[str, PlainScores], *, confidence: float = 0.95, seed: int = 0
) -> Comparison:
    """Compute all statistics of several agents on the tasks that all of them have.

    Args:
        agents: scores by agent, each as :func:`iqm` takes them. Columns of arrays are the same
            tasks for all agents.
        confidence: nominal coverage of every interval, in (0, 1).
        seed: of the bootstrap, >= 0.

    Returns:
        For each agent four aggregates and the performance profile (``agents["ppo"].iqm``), for each
        ordered pair the probability of improvement (``improvement["ppo", "sac"]``), and the tasks.

    Raises:
        ValueError: as :func:`iqm`, no mapping, no agent, no task that all have, or arrays with
            different numbers of columns.
    """
    if not isinstance(agents, Mapping):
        raise ValueError(
            "compare takes a mapping from names of agents to their scores, such as "
            f'{{"ppo": [0.4, 0.6]}}; given {reprlib.repr(agents)}.'
        )
    return aggregates.compare(_tables(agents), confidence=confidence, seed=seed)


def profile(
    scores: PlainScores, thresholds: ArrayLike = TAUS, *, confidence: float = 0.95
) -> Profile:
    """Return the performance profile.

    It is the fraction of runs that score above each threshold, averaged over tasks.

    Args:
        scores: ``(n_seeds,)``, ``(n_seeds, n_tasks)``, or task to ``(n_seeds,)``.
        thresholds: ``(n_thresholds,)``, finite.
        confidence: nominal pointwise coverage of the band, in (0, 1).

    Returns:
        ``taus``, ``fraction``, ``low`` and ``high``, each ``(n_thresholds,)``.

    Raises:
        ValueError: as :func:`iqm`, or a number out of range.
    """
    return profiles.performance_profile(_by_task(scores), thresholds, confidence=confidence)


def probability_of_improvement(
    x: PlainScores, y: PlainScores, *, confidence: float = 0.95
) -> Estimate:
    """Return the probability that a run of x scores above a run of y on a random task.

    Ties count one half.

    Args:
        x: scores of one agent, as :func:`iqm` takes them.
        y: scores of the other, with any number of seeds; columns of arrays are the same tasks as
            those of x.
        confidence: nominal coverage of the interval, in (0, 1).

    Raises:
        ValueError: as :func:`iqm`, no task in common, or arrays with different numbers of columns.
    """
    tables = _tables({"x": x, "y": y})
    return profiles.probability_of_improvement(tables["x"], tables["y"], confidence=confidence)


def _by_task(scores: PlainScores) -> Scores:
    """Return scores by task.

    Columns are named by their numbers, with zeros in front, so that sorting keeps the order.

    Raises:
        ValueError: an array has neither one nor two axes, or no real numbers.
    """
    if isinstance(scores, Mapping):
        return scores
    table = as_floats(scores, "Scores")
    if table.ndim not in (1, 2):
        raise ValueError(
            f"Scores have shape {table.shape}; (n_seeds,) or (n_seeds, n_tasks) is needed."
        )
    columns = table[:, None] if table.ndim == 1 else table
    digits = len(str(columns.shape[1] - 1))
    return {f"column {index:0{digits}}": column for index, column in enumerate(columns.T)}


def _tables(owners: Mapping[str, PlainScores]) -> dict[str, Scores]:
    """Return scores by owner and task.

    Raises:
        ValueError: arrays have different numbers of columns, which cannot be the same tasks.
    """
    tables = {owner: _by_task(scores) for owner, scores in owners.items()}
    widths = {
        owner: len(tables[owner])
        for owner, scores in owners.items()
        if not isinstance(scores, Mapping)
    }
    if len(set(widths.values())) > 1:
        raise ValueError(
            f"Columns are tasks, the same for all; the numbers of columns are {widths}."
        )
    return tables
