"""Who is ranked where: verified entries on suites, by statistics of their replayed scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from rlbench_suite.card import TaskCard
from rlbench_suite.evaluation.protocol import EPISODES
from rlbench_suite.evaluation.statistics import (
    Comparison,
    Estimate,
    Summary,
    compare,
    mean,
)
from rlbench_suite.registry import cards, suites

from .schema import Submission
from .submit import played
from .verify import Verdict


@dataclass(frozen=True)
class Standing:
    """An accepted archive among the others."""

    verdict: Verdict
    submission: Submission
    copy_of: str | None = None
    """Title of an earlier entry that has all of its actions, step for step."""
    superseded_by: str | None = None
    """Title of the newest version of the same entry."""
    shared: Mapping[str, int] = field(default_factory=dict)
    """Cells whose actions are those of another entry: its title to their number."""

    @cached_property
    def by_task(self) -> dict[str, Estimate]:
        """Task id to mean score over seeds."""
        return {task: mean({task: scores}) for task, scores in self.verdict.scores.items()}

    @property
    def title(self) -> str:
        """Name and version."""
        return self.submission.entry.title

    @property
    def ranked(self) -> bool:
        """Whether it takes part in rankings."""
        return not (self.copy_of or self.superseded_by)


@dataclass(frozen=True)
class Place:
    """A line of a ranking."""

    rank: int
    standing: Standing
    summary: Summary
    over_next: Estimate | None
    """Probability that a run of this entry scores above a run of the next one; None for the last."""


@dataclass(frozen=True)
class Board:
    """A suite at a budget: entries that cover all of it are ranked, others are named."""

    suite: str
    budget: str
    tasks: tuple[TaskCard, ...]
    places: tuple[Place, ...]
    comparison: Comparison
    unranked: Mapping[str, str]
    """Entry title to the reason."""

    @property
    def name(self) -> str:
        """Safe as a file name: ``smoke-quick``."""
        return f"{self.suite}-{self.budget}"


def standings(verdicts: Iterable[Verdict]) -> list[Standing]:
    """Accepted entries in the order in which they were made, with copies and newer versions noted."""
    accepted = [(v, v.submission) for v in verdicts if v.accepted and v.submission]
    accepted.sort(key=lambda pair: (pair[1].created, -len(pair[0].cells), pair[1].entry.title))
    newest: dict[str, Submission] = {}
    for _, submission in accepted:
        name = submission.entry.name.lower()
        if name not in newest or submission.entry.version > newest[name].entry.version:
            newest[name] = submission
    result: list[Standing] = []
    actions = {submission.entry.title: played(submission) for _, submission in accepted}
    for verdict, submission in accepted:
        entry, mine = submission.entry, actions[submission.entry.title]
        earlier = next((s.title for s in result if mine.items() <= actions[s.title].items()), None)
        latest = newest[entry.name.lower()].entry
        same = {title: len(mine.items() & theirs.items()) for title, theirs in actions.items() if title != entry.title}
        result.append(
            Standing(
                verdict=verdict,
                submission=submission,
                copy_of=earlier,
                superseded_by=latest.title if latest != entry else None,
                shared={title: count for title, count in same.items() if count},
            )
        )
    return result


def boards(entries: Sequence[Standing]) -> list[Board]:
    """Every suite and budget on which at least one entry is ranked; the widest suites and longest budgets first."""
    found = []
    for suite, ids in suites().items():
        tasks = tuple(cards()[task] for task in ids)
        for budget in reversed(EPISODES):
            board = _board(suite, budget, tasks, [e for e in entries if e.submission.budget == budget])
            if board:
                found.append(board)
    budgets = list(EPISODES)
    found.sort(key=lambda board: (-len(board.tasks), board.suite, -budgets.index(board.budget)))
    seen: set[tuple[frozenset[str], str]] = set()
    distinct = []
    for board in found:  # a suite of the very tasks of another one, while a package is small
        key = frozenset(card.id for card in board.tasks), board.budget
        if key not in seen:
            seen.add(key)
            distinct.append(board)
    return distinct


def _board(suite: str, budget: str, tasks: tuple[TaskCard, ...], entries: Sequence[Standing]) -> Board | None:
    ids = [card.id for card in tasks]
    scores, reasons = {}, {}
    for entry in entries:
        theirs = entry.verdict.scores
        absent = [card.name for card in tasks if card.id not in theirs]
        if len(absent) == len(ids):
            continue
        if entry.superseded_by:
            reasons[entry.title] = f"superseded by {entry.superseded_by}"
        elif entry.copy_of:
            reasons[entry.title] = f"takes the same actions, step for step, as {entry.copy_of}"
        elif absent:
            more = f" and {len(absent) - 4} more" if len(absent) > 4 else ""
            reasons[entry.title] = (
                f"covers {len(ids) - len(absent)} of {len(ids)} tasks; {', '.join(absent[:4])}{more} missing"
            )
        else:
            scores[entry.title] = {task: theirs[task] for task in ids}
    if not scores:
        return None
    comparison = compare(scores)
    order = sorted(scores, key=lambda title: (-comparison.agents[title].iqm.point, title))
    by_title = {entry.title: entry for entry in entries}
    places: list[Place] = []
    for i, title in enumerate(order):
        summary = comparison.agents[title]
        tied = bool(places) and places[-1].summary.iqm.point == summary.iqm.point
        following = order[i + 1] if i + 1 < len(order) else None
        places.append(
            Place(
                rank=places[-1].rank if tied else i + 1,
                standing=by_title[title],
                summary=summary,
                over_next=comparison.improvement[title, following] if following else None,
            )
        )
    return Board(
        suite=suite,
        budget=budget,
        tasks=tasks,
        places=tuple(places),
        comparison=comparison,
        unranked=reasons,
    )
