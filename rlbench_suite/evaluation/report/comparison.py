"""Compare agents of one or several runs in pairs of equal seeds, and give a verdict in plain words.

Two cells are a pair if they have the same task, seed and evaluation episodes. The difference of a
pair is the first agent's normalised score minus the second's.

* **Test**: two-sided paired permutation test of the mean difference. It flips the signs of the
  differences, in every way if there are few pairs, otherwise in random ways. In the aggregate a
  pair counts with the weight of its task.
* **Correction**: Holm's, once over all tasks of all pairs of agents, and once over the aggregates
  of these pairs.
* **Effect**: mean difference over the standard deviation of differences within a task.
* **Verdict**: an agent is better if the corrected p-value of the aggregate is below 0.05, the 95 %
  interval of the mean difference excludes 0, and the difference survives the failures that so many
  pairs cannot exclude: the share ``1 - 0.05^(1/n)`` of unseen runs, in which the better agent
  scores as low, or the worse one as high, as a run can. A run of an agent whose scores spread wider
  than those of its rival may lie beyond all that was seen. Below five pairs on a task there is no
  verdict.
* **Constraints**: an agent whose mean cost on a task exceeds the limit of the task's card violates
  it. It ranks below an agent that violates nothing, and is never called better than that one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from operator import attrgetter
from typing import Any

import numpy as np

from rlbench_suite.core.registry import constraint
from rlbench_suite.evaluation.report.paired_cells import (
    Gap,
    Pairs,
    count,
    find_separate_pairs,
    gaps,
    on_apart,
    on_shared,
    pairs_of,
)
from rlbench_suite.evaluation.runs.manifest import CellResult
from rlbench_suite.evaluation.runs.run import (
    Cells,
    Run,
    anchor_errors,
    cells_by_agent,
    failure_counts,
    violates,
)
from rlbench_suite.evaluation.statistics import aggregates, profiles
from rlbench_suite.evaluation.statistics.intervals import Estimate
from rlbench_suite.evaluation.statistics.permutation import holm, sign_flip_test
from rlbench_suite.evaluation.statistics.power import (
    LEVEL,
    MAX_SEEDS,
    MIN_PAIRED_SEEDS,
    POWER,
    seeds_needed,
)
from rlbench_suite.evaluation.statistics.unseen_runs import (
    SCALE,
    Bounds,
    ends_of_runs,
    unseen_share,
)


@dataclass(frozen=True)
class TaskDifference:
    """Difference of two agents on one task.

    Attributes:
        task: id of the task.
        seeds: number of pairs.
        first: mean score of the first agent.
        second: mean score of the second agent.
        difference: mean difference, with its 95 % interval over seeds.
        unseen: difference of a pair that was not seen, at worst for the agent with the higher mean.
        effect: mean difference over the standard deviation of differences; None if they are all
            equal.
        p: p-value of the permutation test.
        corrected: p-value after Holm's correction over all tasks of all pairs of agents.
        better: the better agent; None if the corrected p-value does not tell, or only the one with
            the higher score violates the task's constraint.
        violating: agents that violate the task's constraint.
        privileged: agents that read the state or params of the task, which others do not see.
        failed: agents with failed cells on the task. It is decided for nobody until they are done.
    """

    task: str
    seeds: int
    first: float
    second: float
    difference: Estimate
    unseen: float
    effect: float | None
    p: float
    corrected: float
    better: str | None
    violating: tuple[str, ...]
    privileged: tuple[str, ...]
    failed: tuple[str, ...] = ()

    @property
    def survives(self) -> bool:
        """True if unseen failures that the pairs allow cannot turn the difference's sign."""
        return survives(self.difference.point, self.unseen, self.seeds)


@dataclass(frozen=True)
class Verdict:
    """Comparison of two agents on the tasks that both have.

    Attributes:
        first: name of the first agent.
        second: name of the second agent.
        seeds: number of pairs on the task that has fewest.
        tasks: differences by task.
        left_out: tasks without a pair. No number here includes them.
        missing: seeds of the runs that the agents lack on the tasks. No number here includes them.
        failed: failed cells of each agent on tasks of either. There is no verdict until they are
            done.
        unpaired: finished seeds on the tasks that the other agent lacks, of each agent. No number
            here includes them.
        difference: mean difference over tasks, with its 95 % interval over seeds.
        unseen: mean over tasks of the difference of a pair that was not seen, at worst for the
            better agent.
        constrained: the same of constrained scores; None if no task has a constraint.
        iqm: interquartile mean of the first agent minus that of the second, with its 95 % interval
            over pairs.
        improvement: probability that a run of the first agent scores above a run of the second on a
            random task.
        effect: mean difference over the root mean square of the tasks' standard deviations; None if
            these are 0.
        p: p-value of the permutation test of the mean difference.
        corrected: p-value after Holm's correction over all pairs of agents.
        better: the better agent; None if nobody can tell, or only the one with the higher scores
            violates a constraint.
        seeds_needed: seeds that give a verdict with 80 % power if the differences on all tasks are
            the measured ones; None if that is unknown or more than 10,000.
        ranks_below: the agent that ranks below the other because only it violates a constraint;
            None if there is none.
        words: the verdict as a sentence.
    """

    first: str
    second: str
    seeds: int
    tasks: tuple[TaskDifference, ...]
    left_out: tuple[str, ...]
    missing: int
    failed: tuple[int, ...]
    unpaired: tuple[int, int]
    difference: Estimate
    unseen: float
    constrained: Estimate | None
    iqm: Estimate
    improvement: Estimate
    effect: float | None
    p: float
    corrected: float
    better: str | None
    seeds_needed: int | None
    ranks_below: str | None
    words: str

    def violated_tasks(self, agent: str) -> list[str]:
        """Return the ids of the tasks whose constraints an agent violates."""
        return [task.task for task in self.tasks if agent in task.violating]

    @property
    def runs(self) -> int:
        """Number of pairs on which the share of unseen failures is judged.

        Every task counts as many pairs as the one with the fewest.
        """
        return self.seeds * len(self.tasks)

    @property
    def survives(self) -> bool:
        """True if unseen failures that the pairs allow cannot turn the difference's sign."""
        return survives(self.difference.point, self.unseen, self.runs)


def survives(difference: float, unseen: float, runs: int) -> bool:
    """Return whether a mean difference keeps its sign if as many runs as may be were not seen.

    Args:
        difference: measured mean difference.
        unseen: difference of a run that was not seen, of the other sign or 0.
        runs: number of runs that were seen.
    """
    share = unseen_share(runs)
    return ((1 - share) * difference + share * unseen) * difference > 0


def verdicts(runs: Sequence[Run]) -> list[Verdict]:
    """Compare every two agents that share a task, seed and evaluation episodes.

    See :func:`find_separate_pairs`.

    Raises:
        ValueError: there are fewer than two agents, no two of them have a pair of cells, or the
            runs have another protocol, budget or reference scores.
    """
    _check_comparable(runs)
    agents = cells_by_agent(runs)
    if len(agents) < 2:
        refusal = " ".join([f"{', '.join(agents)} is the only agent.", *on_shared(runs)])
        raise ValueError(f"There is nothing to compare: {refusal} Name a run with another agent.")
    separate_pairs = find_separate_pairs(runs)
    pairs = [pair for pair in combinations(agents, 2) if pair not in separate_pairs]
    if not pairs:
        raise ValueError(f"There is nothing to compare. {on_apart(separate_pairs, agents)}")
    missing, failed, errors = gaps(runs), failure_counts(runs), anchor_errors(runs)
    undecided = [
        _compare(x, y, agents[x], agents[y], missing, failed, errors, len(pairs)) for x, y in pairs
    ]
    single = iter(holm([task.p for verdict in undecided for task in verdict.tasks]))
    undecided = [
        replace(
            verdict,
            tasks=tuple(_decide_task(verdict, task, next(single)) for task in verdict.tasks),
        )
        for verdict in undecided
    ]
    return [
        _decide(verdict, corrected)
        for verdict, corrected in zip(
            undecided, holm([verdict.p for verdict in undecided]), strict=True
        )
    ]


def _check_comparable(runs: Sequence[Run]) -> None:
    first, *later_runs = runs
    for run in later_runs:
        for name in ("protocol", "budget"):
            setting, first_setting = (
                getattr(compared_run.manifest, name) for compared_run in (run, first)
            )
            if setting != first_setting:
                raise ValueError(
                    f"{first.path} has the {name} {first_setting!r} and {run.path} has "
                    f"{setting!r}; "
                    "their scores do not compare."
                )
    anchors: dict[str, tuple[Any, Run]] = {}
    for run in runs:
        for task, scores in run.manifest.references.items():
            means = {player: score.mean for player, score in scores.items()}
            earlier, owner = anchors.setdefault(task, (means, run))
            if earlier != means:
                raise ValueError(
                    f"{owner.path} and {run.path} normalise {task} by other reference scores; "
                    "their scores do not "
                    "compare."
                )


def _compare(
    first: str,
    second: str,
    x: Cells,
    y: Cells,
    missing: Sequence[Gap],
    failed: Mapping[tuple[str, str], int],
    errors: Mapping[str, Callable[[float], float]],
    comparisons: int,
) -> Verdict:
    """Compare two agents, one of several pairs of agents.

    Correction, verdict and words are left open.
    """
    cells = {
        task: paired_cells
        for task in x
        if task in y and (paired_cells := pairs_of(x[task], y[task]))
    }
    pairs = {
        task: _scores(paired_cells, attrgetter("score")) for task, paired_cells in cells.items()
    }
    differences = {task: scores[:, 0] - scores[:, 1] for task, scores in pairs.items()}
    tasks = []
    scale_errors: dict[str, float] = {}
    seen_ends = {task: _seen_ends(scores) for task, scores in pairs.items()}
    spans = {
        task: _span(scores, seen_ends[task], seen_ends[task]) for task, scores in pairs.items()
    }
    tails = {task: _span(scores, *ends_of_runs(scores)) for task, scores in pairs.items()}
    for task, values in differences.items():
        scale_errors[task] = _scale_error(float(values.mean()), errors.get(task))
        estimate = aggregates.with_error(
            aggregates.mean({task: values}, bounds=spans[task]), scale_errors[task]
        )
        violating = tuple(
            agent
            for agent, results in zip((first, second), zip(*cells[task], strict=True), strict=True)
            if violates(results)
        )
        privileged = tuple(
            agent
            for agent, results in zip((first, second), zip(*cells[task], strict=True), strict=True)
            if any(result.privileged for result in results)
        )
        first_mean, second_mean = pairs[task].mean(0).tolist()
        unseen = tails[task][0] if estimate.point > 0 else tails[task][1]
        effect, p = _effect(estimate.point, [values]), sign_flip_test({task: values})
        tasks.append(
            TaskDifference(
                task, len(values), first_mean, second_mean, estimate, unseen, effect, p, p, None,
                violating, privileged,
                tuple(agent for agent in (first, second) if failed.get((agent, task))),
            )
        )  # fmt: skip
    first_scores, second_scores = (
        {task: scores[:, i] for task, scores in pairs.items()} for i in (0, 1)
    )
    lowest, highest = (float(np.mean([span[i] for span in spans.values()])) for i in (0, 1))
    difference = aggregates.with_error(
        aggregates.mean(differences, bounds=(lowest, highest)),
        math.sqrt(sum(error**2 for error in scale_errors.values())) / len(scale_errors),
    )
    unseen = float(
        np.mean([span[0] if difference.point > 0 else span[1] for span in tails.values()])
    )
    p = sign_flip_test(differences)
    constrained_pairs = {
        task: _scores(paired_cells, attrgetter("constrained_score"))
        for task, paired_cells in cells.items()
    }
    limited = any(constraint(task) for task in cells)
    return Verdict(
        first=first,
        second=second,
        seeds=min(map(len, differences.values())),
        tasks=tuple(tasks),
        left_out=tuple(task for task in dict.fromkeys([*x, *y]) if task not in pairs),
        missing=sum(
            g.planned - g.finished
            for g in missing
            if g.agent in (first, second) and g.task in pairs
        ),
        failed=tuple(
            sum(failed.get((agent, task), 0) for task in {*x, *y}) for agent in (first, second)
        ),
        unpaired=(_count_unpaired(x, pairs), _count_unpaired(y, pairs)),
        difference=difference,
        unseen=unseen,
        constrained=aggregates.mean(
            {task: s[:, 0] - s[:, 1] for task, s in constrained_pairs.items()}
        )
        if limited
        else None,
        iqm=aggregates.iqm_difference(first_scores, second_scores),
        improvement=profiles.probability_of_improvement(first_scores, second_scores),
        effect=_effect(difference.point, list(differences.values())),
        p=p,
        corrected=p,
        better=None,
        seeds_needed=_count_needed_seeds(list(differences.values()), comparisons, unseen),
        ranks_below=None,
        words="",
    )


def _seen_ends(scores: np.ndarray) -> Bounds:
    """Return the ends of the scale, or the lowest and highest score seen if those are wider."""
    return min(SCALE[0], float(scores.min())), max(SCALE[1], float(scores.max()))


def _span(scores: np.ndarray, first_ends: Bounds, second_ends: Bounds) -> tuple[float, float]:
    """Return the lowest and highest difference of a pair in which one run is of an unseen kind.

    The other agent's run scores its mean. The unseen one scores as low or as high as a run can.

    Args:
        scores: of both agents, shape ``(n_pairs, 2)``.
        first_ends: lowest and highest score of an unseen run of the first agent.
        second_ends: the same of the second agent.
    """
    first, second = scores.mean(0).tolist()
    lowest = -max(second - first_ends[0], second_ends[1] - first)
    return lowest, max(first - second_ends[0], first_ends[1] - second)


def _scale_error(difference: float, error: Callable[[float], float] | None) -> float:
    """Return the standard error of a difference on one scale.

    Both ends of the scale stretch the difference, and neither shifts it.
    """
    if error is None:
        return 0.0
    return abs(difference) * math.hypot(error(0.0), error(1.0))


def _count_unpaired(cells: Cells, pairs: Mapping[str, np.ndarray]) -> int:
    return sum(len(cells[task]) - len(scores) for task, scores in pairs.items())


def _scores(pairs: Pairs, score: Callable[[CellResult], float]) -> np.ndarray:
    """Return the scores of pairs, shape ``(n_pairs, 2)``."""
    return np.array([(score(first), score(second)) for first, second in pairs])


def _effect(difference: float, differences: Sequence[np.ndarray]) -> float | None:
    spreads = [values.var(ddof=1) for values in differences if len(values) > 1]
    spread = math.sqrt(np.mean(spreads)) if spreads else 0.0
    # Below that it is rounding.
    return difference / spread if spread > 1e-9 * abs(difference) else None


def _count_needed_seeds(
    differences: Sequence[np.ndarray], comparisons: int, unseen: float
) -> int | None:
    seeds, means = min(map(len, differences)), [float(values.mean()) for values in differences]
    if seeds < 2 or sum(means) == 0:
        return None
    variances = [float(values.var(ddof=1)) for values in differences]
    needed = seeds_needed(means, variances, comparisons=comparisons, interval=True, unseen=unseen)
    return None if needed is None else max(needed, seeds + 1)


def _decide_task(verdict: Verdict, task: TaskDifference, corrected: float) -> TaskDifference:
    """Return the difference on a task with its corrected p-value and the better agent."""
    better = None
    if corrected < LEVEL and task.survives and not task.failed:
        better = verdict.first if task.difference.point > 0 else verdict.second
    return replace(
        task, corrected=corrected, better=None if task.violating == (better,) else better
    )


def _decide(verdict: Verdict, corrected: float) -> Verdict:
    """Return the verdict with its corrected p-value, the better agent and the words."""
    difference = verdict.difference
    better = None
    excludes_zero = difference.low > 0 or difference.high < 0
    allowed = verdict.seeds >= MIN_PAIRED_SEEDS and not any(verdict.failed)
    if allowed and corrected < LEVEL and verdict.survives and excludes_zero:
        better = verdict.first if difference.point > 0 else verdict.second
    verdict = replace(
        verdict,
        corrected=corrected,
        better=better,
        seeds_needed=None if better else verdict.seeds_needed,
    )
    words = _words(verdict)
    violators = [
        agent for agent in (verdict.first, verdict.second) if verdict.violated_tasks(agent)
    ]
    if len(violators) == 1:
        (violator,) = violators
        keeper = verdict.second if violator == verdict.first else verdict.first
        if verdict.failed[
            keeper == verdict.second
        ]:  # its failed cells may violate the constraint, too
            return replace(verdict, words=words)
        broken = ", ".join(task.split("/", 1)[1] for task in verdict.violated_tasks(violator))
        words = (
            f"{violator} violates the constraint of {broken} and ranks below {keeper}. By scores "
            f"alone: {words}"
        )
        verdict = replace(
            verdict, better=None if better == violator else better, ranks_below=violator
        )
    return replace(verdict, words=words)


def _words(verdict: Verdict) -> str:
    names = [verdict.first, verdict.second]
    sign = 1.0
    chance = verdict.improvement.point
    if verdict.difference.point < 0:
        names, sign, chance = names[::-1], -1.0, 1 - chance
    low, high = sorted((sign * verdict.difference.low, sign * verdict.difference.high))
    ends = f" [{low:.3f}, {high:.3f}]" if math.isfinite(low) else ""
    measured = f"{sign * verdict.difference.point:.3f}{ends}, p = {verdict.corrected:.2g}"
    max_seeds = max(task.seeds for task in verdict.tasks)
    pairs = f"{verdict.seeds} to {max_seeds}" if max_seeds > verdict.seeds else str(max_seeds)
    tasks = f"{count(len(verdict.tasks), 'task')}, {pairs} paired seed{'s' * (max_seeds > 1)}"
    if verdict.missing:
        tasks += (
            f"; {count(verdict.missing, 'seed')} of the runs "
            f"{'is' if verdict.missing == 1 else 'are'} missing"
        )
    if verdict.better:
        return (
            f"{names[0]} is better than {names[1]}: its mean score is higher by {measured}, and a "
            f"run of it beats a run of {names[1]} with probability {chance:.2f} ({tasks})."
        )
    if any(verdict.failed):
        owners = [
            f"{count(number, 'cell')} of {agent}"
            for agent, number in zip((verdict.first, verdict.second), verdict.failed, strict=True)
            if number
        ]
        reason = (
            f"{' and '.join(owners)} failed, and a failure is not a gap: finish them, or they "
            "decide nothing"
        )
    elif verdict.seeds < MIN_PAIRED_SEEDS:
        reason = (
            f"a verdict needs at least {MIN_PAIRED_SEEDS} paired seeds on every task, and the "
            f"fewest are {verdict.seeds}"
        )
    elif verdict.difference.point == 0:
        reason = "the mean scores are equal"
    elif verdict.corrected < LEVEL and not verdict.survives:
        reason = (
            f"in the seeds seen, {names[0]} scores higher than {names[1]} by {measured}, but "
            f"{verdict.runs} pairs "
            f"cannot exclude that {unseen_share(verdict.runs):.0%} of runs fail (or succeed) "
            "unlike all of them, which "
            "would undo the difference"
        )
    elif verdict.corrected < LEVEL:
        reason = (
            f"{names[0]} scores higher than {names[1]} by {measured}; the test finds a difference "
            f"at the level of {LEVEL:.0%}, but the interval contains 0, and both must agree"
        )
    else:
        reason = (
            f"{names[0]} scores higher than {names[1]} by {measured}, which is not significant at "
            f"the level of {LEVEL:.0%}"
        )
    return (
        f"Cannot tell {verdict.first} from {verdict.second}: {reason} ({tasks}). "
        f"{_more_seeds(verdict)}"
    ).strip()


def _more_seeds(verdict: Verdict) -> str:
    """Return a sentence on the seeds that a verdict needs; empty if nothing is known."""
    if verdict.seeds < 2 or verdict.difference.point == 0:
        return ""
    if verdict.seeds_needed is None:
        return (
            f"If the true difference is as small as the measured one, {MAX_SEEDS:,} seeds are not "
            "enough."
        )
    more = verdict.seeds_needed - verdict.seeds
    return (
        f"If the true difference is the measured one, {count(more, 'more seed')} "
        f"({verdict.seeds_needed} in all) {'shows' if more == 1 else 'show'} it with {POWER:.0%} "
        "power."
    )
