"""Rank verified entries on suites by statistics of their replayed scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from rlbench_suite.core.registry import GENERALISATION, cards, suites
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.protocol import EPISODES
from rlbench_suite.evaluation.report.chart import number
from rlbench_suite.evaluation.statistics.aggregates import (
    Comparison,
    Summary,
    compare,
    error_of_mean,
    iqm,
    mean,
    with_error,
)
from rlbench_suite.evaluation.statistics.intervals import Estimate

from .copies import copied_tasks, count_shared_episodes, episodes, is_copy
from .schema import Submission
from .verify import Verdict

MIN_RANKED_SEEDS = 5
"""Number of training seeds that a rank needs. An entry with fewer is shown but not ranked."""
_EQUAL = 1.01
"""Ratio up to which training steps count as equal, because agents stop at the end of a rollout."""


def anchor(task: str) -> Callable[[float], float]:
    """Return the function from a task's score to the standard error of its measured scale."""
    return cards()[task].scale().standard_error


class Training(NamedTuple):
    """Cost of training one seed as the entry claims it; mean over seeds."""

    steps: float
    """Zero for players that do not train."""
    seconds: float
    """Wall time, including compilation."""

    @property
    def steps_text(self) -> str:
        """Steps as a table shows them."""
        return number(self.steps) if self.steps else "–"

    @property
    def seconds_text(self) -> str:
        """Seconds as a table shows them."""
        return f"{self.seconds:,.1f} s" if self.seconds else "–"


@dataclass(frozen=True)
class Standing:
    """Accepted archive and its relation to the others."""

    verdict: Verdict
    submission: Submission
    arrived: int | None = None
    """Its number in the log of submissions. None if it is not in the log; it then counts as last.
    """
    copy_of: str | None = None
    """Title of an earlier entry that plays most of its episodes with the same actions."""
    superseded_by: str | None = None
    """Title of the newest version of the same entry."""
    name_of: str | None = None
    """Title of an earlier entry of the same name, of which this is no confirmed version."""
    shared_episodes: Mapping[str, int] = field(default_factory=dict)
    """Number of episodes with the same actions as another entry, by the entry's title.

    It holds only entries that share a tenth or more.
    """

    copied: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Title of an earlier entry by others, and the number of episodes shared, by task.

    It holds only tasks on which most episodes are equal.
    """

    @cached_property
    def by_task(self) -> dict[str, Estimate]:
        """Mean score over seeds by task id."""
        estimates = {task: mean({task: scores}) for task, scores in self.verdict.scores.items()}
        return {
            task: with_error(estimate, anchor(task)(estimate.point))
            for task, estimate in estimates.items()
        }

    @cached_property
    def success(self) -> dict[str, Estimate]:
        """Replayed success rate by task id: the mean over seeds, with its 95 % interval over seeds.

        The episodes of a seed are those of one policy, so seeds count, not episodes. That holds for
        players that claim no training, too, because nobody can check the claim.
        """
        rates: dict[str, list[float]] = {}
        for cell in self.verdict.cells:
            rates.setdefault(cell.task, []).append(cell.success_rate)
        return {task: within(mean({task: each}), 0.0, 1.0) for task, each in rates.items()}

    @cached_property
    def constrained(self) -> dict[str, list[float]]:
        """Constrained scores by task id, one for each seed; see :meth:`TaskCard.constrained`."""
        scores: dict[str, list[float]] = {}
        for cell in self.verdict.cells:
            scores.setdefault(cell.task, []).append(
                cards()[cell.task].constrained_score(cell.score, cell.mean_cost)
            )
        return scores

    @cached_property
    def seed_costs(self) -> dict[str, list[float]]:
        """Replayed mean constraint cost of an episode by task id, one for each seed."""
        costs: dict[str, list[float]] = {}
        for cell in self.verdict.cells:
            costs.setdefault(cell.task, []).append(cell.mean_cost)
        return costs

    @cached_property
    def costs(self) -> dict[str, float]:
        """Replayed mean constraint cost of an episode by task id."""
        return {task: sum(each) / len(each) for task, each in self.seed_costs.items()}

    def violated_cards(self, tasks: Iterable[TaskCard]) -> tuple[TaskCard, ...]:
        """Return the tasks whose constraints the entry violates."""
        return tuple(card for card in tasks if card.violates(*self.seed_costs[card.id]))

    @cached_property
    def training(self) -> dict[str, Training]:
        """Cost of training by task id."""
        return {
            claim.task: Training(
                sum(cell.training_steps for cell in claim.cells) / len(claim.cells),
                sum(cell.train_seconds + cell.compile_seconds for cell in claim.cells)
                / len(claim.cells),
            )
            for claim in self.submission.tasks
        }

    @cached_property
    def privileged(self) -> tuple[TaskCard, ...]:
        """Tasks whose state or params its policy reads, as the entry says.

        Agents do not see them.
        """
        return tuple(cards()[claim.task] for claim in self.submission.tasks if claim.privileged)

    def mean_training(self, tasks: Iterable[str] | None = None) -> Training:
        """Return the mean training of a seed over ``tasks``, or over all tasks of the entry."""
        each = [self.training[task] for task in (self.training if tasks is None else tasks)]
        return Training(
            sum(t.steps for t in each) / len(each), sum(t.seconds for t in each) / len(each)
        )

    @property
    def byline(self) -> str:
        """Authors, or the agent where none are named."""
        return ", ".join(self.submission.entry.authors) or self.submission.entry.agent

    @property
    def seeds(self) -> int:
        """Number of training seeds of every task."""
        return len(self.submission.tasks[0].cells)

    @property
    def title(self) -> str:
        """Name and version."""
        return self.submission.entry.title

    @property
    def original(self) -> bool:
        """True if its episodes and its name are its own."""
        return not self.copy_of and not self.name_of

    @property
    def unranked(self) -> str | None:
        """Reason why it is in no ranking, whatever it covers; None if there is none."""
        if self.superseded_by:
            return f"superseded by {self.superseded_by}"
        if self.name_of:
            return (
                f"has the name of {self.name_of}, and the board's maintainer has not confirmed "
                "that its authors sent it"
            )
        if self.copy_of:
            shared = self.shared_episodes[self.copy_of]
            return (
                f"takes the same actions as {self.copy_of}, which arrived earlier, at every step "
                f"of {shared:,} of {episodes(self.verdict.actions_played):,} "
                "episodes"
            )
        if self.seeds < MIN_RANKED_SEEDS:
            return (
                f"has {self.seeds} seed{'s' * (self.seeds != 1)} a task; a rank needs "
                f"{MIN_RANKED_SEEDS}"
            )
        return None


@dataclass(frozen=True)
class RankedEntry:
    """One line of a ranking."""

    rank: int
    standing: Standing
    summary: Summary
    over_next: Estimate | None
    """Probability that a run of this entry scores above a run of the next one; None for the last.
    """
    violated: tuple[TaskCard, ...]
    """Tasks of the board whose constraints it violates.

    It ranks below every entry that violates none.
    """
    constrained: Estimate | None
    """IQM of constrained scores; None on a board without constraints."""


@dataclass(frozen=True)
class Board:
    """Ranking of a suite at a budget.

    Entries that cover the whole suite are ranked; the others are named.

    Entries that keep all constraints come first; within each group entries are ordered by IQM.
    """

    suite: str
    budget: str
    tasks: tuple[TaskCard, ...]
    ranking: tuple[RankedEntry, ...]
    comparison: Comparison
    unranked: Mapping[str, str]
    """Reasons by the title of the entry."""
    unranked_entries: tuple[Standing, ...]
    """Entries that are not ranked."""
    unequal: Mapping[str, tuple[float, float]]
    """Fewest and most training steps that ranked entries claim, by task, where they differ.

    No entry is marked for its ratio to another one, because nobody can check what the other one
    claims.
    """

    def training(self, standing: Standing) -> Training:
        """Return an entry's mean training of a seed over the tasks of the board that it has."""
        return standing.mean_training(
            card.id for card in self.tasks if card.id in standing.training
        )

    @property
    def limited(self) -> bool:
        """True if a task of the board has a constraint."""
        return any(card.constraint for card in self.tasks)

    @property
    def name(self) -> str:
        """Name of the page's file, such as ``smoke-quick``."""
        return f"{self.suite}-{self.budget}"

    @property
    def title(self) -> str:
        """Heading of the page."""
        return f"Suite {self.suite}, {self.budget} budget"

    @property
    def tasks_text(self) -> str:
        """Number of tasks and the first of their names, as a sentence."""
        names = ", ".join(card.name for card in self.tasks[:12]) + (
            ", …" if len(self.tasks) > 12 else ""
        )
        return f"{len(self.tasks)} task{'s' * (len(self.tasks) != 1)}: {names}."


def standings(
    verdicts: Iterable[Verdict], arrivals: Mapping[str, int], confirmed: Collection[str] = ()
) -> list[Standing]:
    """Return the accepted entries in order of arrival, with copies and newer versions noted.

    Args:
        verdicts: the verdicts on all archives.
        arrivals: number in the log by the SHA-256 of the archive. Archives that are not in it come
            last.
        confirmed: SHA-256 of archives whose authors the maintainer of the board has confirmed.
            Anybody can type the names of authors, so other archives are never by the authors of an
            earlier one.
    """
    accepted = [(v, v.submission) for v in verdicts if v.accepted and v.submission]
    accepted.sort(
        key=lambda pair: (arrivals.get(pair[0].sha256, float("inf")), pair[1].entry.title)
    )
    result: list[Standing] = []
    for verdict, submission in accepted:
        entry = submission.entry
        actions = verdict.actions_played
        equal_episodes = {
            e.title: count_shared_episodes(actions, e.verdict.actions_played) for e in result
        }
        by_owners = {
            e.title
            for e in result
            if verdict.sha256 in confirmed and e.submission.entry.may_become(entry)
        }
        namesakes = [
            e.title
            for e in result
            if e.original and e.submission.entry.name.lower() == entry.name.lower()
        ]
        versions = by_owners.intersection(namesakes)
        copies = [
            e.title
            for e in result
            if is_copy(actions, e.verdict.actions_played, same_entry=e.title in versions)
        ]
        by_others = [e for e in result if e.title not in by_owners]
        copied = {
            task: (e.title, count)
            for e in reversed(by_others)  # the first to arrive overwrites the others
            for task, count in copied_tasks(actions, e.verdict.actions_played).items()
        }
        result.append(
            Standing(
                verdict=verdict,
                submission=submission,
                arrived=arrivals.get(verdict.sha256),
                copy_of=max(copies, key=lambda title: equal_episodes[title], default=None),
                name_of=next((title for title in namesakes if title not in by_owners), None),
                copied=copied,
                shared_episodes={
                    title: count
                    for title, count in equal_episodes.items()
                    if 10 * count >= episodes(actions)
                },
            )
        )
    newest: dict[str, Standing] = {}
    for standing in result:
        name = standing.submission.entry.name.lower()
        version = standing.submission.entry.version
        if standing.original and (
            name not in newest or version > newest[name].submission.entry.version
        ):
            newest[name] = standing
    return [replace(e, superseded_by=_successor(e, newest)) for e in result]


def _successor(standing: Standing, newest: Mapping[str, Standing]) -> str | None:
    latest = newest.get(standing.submission.entry.name.lower())
    if latest is None or latest.submission.entry.version <= standing.submission.entry.version:
        return None
    return latest.title


def boards(entries: Sequence[Standing]) -> list[Board]:
    """Return the boards that rank an entry, widest suites and longest budgets first."""
    boards_found = []
    for suite, ids in suites().items():
        if suite == GENERALISATION:  # the judge replays no episodes on training contexts
            continue
        tasks = tuple(cards()[task] for task in ids)
        for budget in reversed(EPISODES):
            board = _board(
                suite, budget, tasks, [e for e in entries if e.submission.budget == budget]
            )
            if board:
                boards_found.append(board)
    budgets = list(EPISODES)
    boards_found.sort(
        key=lambda board: (-len(board.tasks), board.suite, -budgets.index(board.budget))
    )
    known_boards: set[tuple[frozenset[str], str]] = set()
    distinct = []
    for board in boards_found:  # two suites of a small package may have the same tasks
        key = frozenset(card.id for card in board.tasks), board.budget
        if key not in known_boards:
            known_boards.add(key)
            distinct.append(board)
    return distinct


def _board(
    suite: str, budget: str, tasks: tuple[TaskCard, ...], entries: Sequence[Standing]
) -> Board | None:
    ids = [card.id for card in tasks]
    scores = {}
    reasons = {}
    for entry in entries:
        replayed_scores = entry.verdict.scores
        absent = [card.name for card in tasks if card.id not in replayed_scores]
        if len(absent) == len(ids):
            continue
        if entry.unranked:
            reasons[entry.title] = entry.unranked
        elif absent:
            more = f" and {len(absent) - 4} more" if len(absent) > 4 else ""
            reasons[entry.title] = (
                f"covers {len(ids) - len(absent)} of {len(ids)} tasks; "
                f"{', '.join(absent[:4])}{more} missing"
            )
        elif copied := [card for card in tasks if card.id in entry.copied]:
            reasons[entry.title] = "; ".join(
                (
                    f"plays the episodes of {title}, which arrived first, on {card.name} "
                    f"({count:,} episodes are equal)"
                )
                for card in copied[:4]
                for title, count in (entry.copied[card.id],)
            ) + (f"; and on {len(copied) - 4} more tasks" if len(copied) > 4 else "")
        else:
            scores[entry.title] = {task: replayed_scores[task] for task in ids}
    if not scores:
        return None
    comparison = compare(scores, anchors={task: anchor(task) for task in ids})
    by_title = {entry.title: entry for entry in entries}
    violated = {title: by_title[title].violated_cards(tasks) for title in scores}
    order = sorted(
        scores,
        key=lambda title: (bool(violated[title]), -comparison.agents[title].iqm.point, title),
    )
    ranking: list[RankedEntry] = []
    for i, title in enumerate(order):
        summary = comparison.agents[title]
        before = ranking[-1] if ranking else None
        tied = before and (bool(before.violated), before.summary.iqm.point) == (
            bool(violated[title]),
            summary.iqm.point,
        )
        following = order[i + 1] if i + 1 < len(order) else None
        ranking.append(
            RankedEntry(
                rank=before.rank if before and tied else i + 1,
                standing=by_title[title],
                summary=summary,
                over_next=comparison.improvement[title, following] if following else None,
                violated=violated[title],
                constrained=carrying({task: by_title[title].constrained[task] for task in ids})
                if any(card.constraint for card in tasks)
                else None,
            )
        )
    return Board(
        suite=suite,
        budget=budget,
        tasks=tasks,
        ranking=tuple(ranking),
        comparison=comparison,
        unranked=reasons,
        unranked_entries=tuple(entry for entry in entries if entry.title in reasons),
        unequal=_unequal([by_title[title] for title in order], ids),
    )


def within(estimate: Estimate, low: float, high: float) -> Estimate:
    """Return the estimate with the ends of its interval in a range.

    An interval that does not exist stays NaN.
    """
    if math.isnan(estimate.low):
        return estimate
    return Estimate(estimate.point, max(estimate.low, low), min(estimate.high, high))


def carrying(scores: Mapping[str, Sequence[float]]) -> Estimate:
    """Return the interquartile mean with the errors of the scales."""
    return with_error(iqm(scores), error_of_mean(scores, {task: anchor(task) for task in scores}))


def _unequal(entries: Sequence[Standing], tasks: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Return the fewest and the most training steps by task, where they differ.

    Only entries that train count.
    """
    unequal_steps = {}
    for task in tasks:
        steps = [e.training[task].steps for e in entries if e.training[task].steps]
        if steps and max(steps) > _EQUAL * min(steps):
            unequal_steps[task] = min(steps), max(steps)
    return unequal_steps
