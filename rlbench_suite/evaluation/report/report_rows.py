"""Compute the rows of a report's tables.

A row is an agent on a task, its transfer to another task, or its loss on held-out contexts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.scale import Scale
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.report import chart
from rlbench_suite.evaluation.runs.manifest import CellResult
from rlbench_suite.evaluation.runs.run import Run
from rlbench_suite.evaluation.statistics.aggregates import means
from rlbench_suite.evaluation.statistics.intervals import Estimate, Method
from rlbench_suite.evaluation.statistics.unseen_runs import proportion_interval


@dataclass(frozen=True)
class Row:
    """Result of an agent on a task."""

    agent: str
    card: TaskCard
    scale: Scale
    mean_return: float
    score: Estimate
    """Mean normalised score with its 95 % interval over seeds."""
    worst_tenth: Estimate | None
    """Mean score of each seed's worst tenth of episodes, with its 95 % interval over seeds.

    None in runs of versions that did not compute it.
    """
    success_rate: float
    mean_cost: float
    """Mean constraint cost of an episode, over seeds."""
    constrained: Estimate
    """Mean constrained score with its 95 % interval over seeds; see :meth:`TaskCard.constrained`.
    """
    violating: int
    """Number of seeds whose mean cost exceeds the limit."""
    training_steps: float
    """Mean over seeds."""
    step_unit: str
    """Kind of training steps: ``environment`` or ``gradient``.

    Empty for a player that was not trained here.
    """
    train_seconds: float
    """Mean over seeds, without compilation."""
    steps_per_second: float | None
    wall_seconds: float
    """Total of all seeds, with compilation and evaluation."""
    seeds: int
    failed: int = 0
    """Cells of the agent on the task that failed.

    Its numbers are of the others, and no table shows them.
    """
    floored: int = 0
    """Evaluation episodes whose return is not finite.

    They count as the worse of random play and doing nothing.
    """
    success: Estimate | None = None
    """Success rate with its 95 % interval.

    The interval is over seeds of agents that were trained, and over episodes of others.
    """
    solved: float = 0.0
    """Evaluation episodes of all seeds that ended in success."""
    privileged: bool = False
    """True if the policy of a seed reads the state or params of the task, which agents do not see.
    """

    @property
    def solved_text(self) -> str:
        """Seconds of training, evaluation and compilation for each solved episode.

        Solved episodes are those of the evaluation.
        """
        return chart.number(self.wall_seconds / self.solved) if self.solved else "-"

    @property
    def violates(self) -> bool:
        """True if the mean cost over seeds exceeds the task's limit."""
        return self.card.violates(self.mean_cost)

    @property
    def cost_text(self) -> str:
        """Mean cost and its limit as a table shows them."""
        limit = self.card.constraint
        return f"{self.mean_cost:.3g} of {limit.limit:g}" if limit else "-"

    @property
    def speed_text(self) -> str:
        """Training speed as a table shows it."""
        return chart.number(self.steps_per_second) if self.steps_per_second else "-"

    @property
    def beats_zero(self) -> str:
        """``yes`` if the agent's interval lies above the scale's zero, else ``unclear``.

        ``no`` if it lies below, or if the agent violates the constraint of the task. The interval
        carries the error of the zero. ``failed`` if cells of the agent failed, because a failure is
        not a gap.
        """
        if self.failed:
            return "failed"
        if self.violates:
            return "no"
        if self.score.low > 0:
            return "yes"
        return "no" if self.score.high < 0 else "unclear"

    @property
    def success_text(self) -> str:
        """Success rate with its interval as a table shows it."""
        return f"{self.success_rate:.0%} {self.success_interval_text}".rstrip()

    @property
    def success_interval_text(self) -> str:
        """Interval of the success rate; empty if it has none."""
        rate = self.success
        return f"[{rate.low:.0%}, {rate.high:.0%}]" if rate and rate.low < rate.high else ""

    @property
    def failed_text(self) -> str:
        """Number of failed cells, shown in place of an agent's numbers; empty if it has none."""
        return f"{self.failed} of {self.failed + self.seeds} failed" if self.failed else ""


@dataclass(frozen=True)
class Transfer:
    """Change of an agent's score on a task on which it was not trained."""

    agent: str
    card: TaskCard
    gap: Estimate
    """Mean normalised score here minus that on ``card.trained_on``, with its 95 % interval.

    The interval is over the seeds of both. Each seed is a pair: the same training, and episodes of
    the same environment seeds.
    """

    @property
    def trained_on(self) -> TaskCard:
        """Card of the task on which the agent was trained."""
        return find_card(self.card.trained_on)

    @property
    def gap_text(self) -> str:
        """Gap with two significant digits, because it may be far smaller than the scores."""
        return _small(self.gap)


@dataclass(frozen=True)
class Gap:
    """Loss of an agent's score from training contexts to held-out ones."""

    agent: str
    card: TaskCard
    train: Estimate
    """Mean normalised score on training contexts, with its 95 % interval over seeds."""
    test: Estimate
    """The same on held-out contexts."""
    gap: Estimate
    """Mean of the score on training contexts minus that on held-out ones.

    Each seed is a pair: the same policy.
    """

    @property
    def gap_text(self) -> str:
        """Gap with two significant digits, because it may be far smaller than the scores."""
        return _small(self.gap)


def _small(difference: Estimate) -> str:
    ends = (
        f"[{difference.low:+.2g}, {difference.high:+.2g}]"
        if difference.low < difference.high
        else "-"
    )
    return f"{difference.point:+.2g} {ends}"


def row_of(
    run: Run,
    agent: str,
    task: str,
    results: list[CellResult],
    score: Estimate,
    constrained: Estimate,
    worst_tenth: Estimate | None,
    success: Estimate | None = None,
    failed: int = 0,
) -> Row:
    """Return the row of an agent on a task, from its cells' results and their estimates."""
    card = find_card(task)
    trained = any(result.training_steps for result in results)
    if success and not trained:
        episodes = sum(result.episodes for result in results)
        low, high = proportion_interval(success.point * episodes, episodes)
        success = Estimate(success.point, low, high)
    elif success and math.isfinite(success.low):
        success = Estimate(success.point, max(success.low, 0.0), min(success.high, 1.0))
    speeds = [result.steps_per_second for result in results if result.steps_per_second]
    return Row(
        agent=agent,
        card=card,
        scale=run.manifest.scale(task),
        mean_return=float(np.mean([result.mean_return for result in results])),
        score=score,
        worst_tenth=worst_tenth,
        success_rate=float(np.mean([result.success_rate for result in results])),
        mean_cost=float(np.mean([result.mean_cost for result in results])),
        constrained=constrained,
        violating=sum(card.violates(result.mean_cost) for result in results),
        training_steps=float(np.mean([result.training_steps for result in results])),
        step_unit=results[0].step_unit if trained else "",
        train_seconds=float(np.mean([result.train_seconds for result in results])),
        steps_per_second=float(np.median(speeds)) if speeds else None,
        wall_seconds=sum(result.wall_seconds for result in results),
        seeds=len(results),
        failed=failed,
        floored=sum(getattr(result, "floored", 0) for result in results),
        success=success,
        solved=sum(result.success_rate * result.episodes for result in results),
        privileged=any(result.privileged for result in results),
    )


def pairs_of(
    agent: str, task: str, groups: Mapping[tuple[str, str], list[CellResult]]
) -> list[float]:
    """Return each seed's score on a task minus its score where it was trained.

    It is empty if there is no other such task.
    """
    trained = {
        result.seed: result.score for result in groups.get((agent, find_card(task).trained_on), [])
    }
    return [
        result.score - trained[result.seed]
        for result in groups[agent, task]
        if result.seed in trained
    ]


def gap_of(agent: str, card: TaskCard, results: list[CellResult], method: Method) -> Gap | None:
    """Return the loss on held-out contexts; None if no cell was played on training ones."""
    pairs = [
        (result.train_score, result.score) for result in results if result.train_score is not None
    ]
    if not pairs:
        return None
    train, test = ([pair[i] for pair in pairs] for i in (0, 1))
    values = train, test, [train_score - test_score for train_score, test_score in pairs]
    return Gap(
        agent, card, *means([{card.id: seed_values} for seed_values in values], method=method)
    )
