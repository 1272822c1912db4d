"""Write static pages of verified entries.

Each page is one file without scripts and without requests to the network.

The pages are Jinja2 templates in ``templates/``. Jinja2 escapes all text of an archive. The schema
has checked that every link is an http or https address.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import rlbench_suite
from rlbench_suite.core.registry import cards
from rlbench_suite.core.scale import Scale
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.report import chart
from rlbench_suite.evaluation.report.page import render
from rlbench_suite.evaluation.report.report_remarks import several
from rlbench_suite.evaluation.statistics.aggregates import mean, with_error
from rlbench_suite.evaluation.statistics.intervals import Estimate
from rlbench_suite.evaluation.statistics.unseen_runs import on_unseen

from .boards import MIN_RANKED_SEEDS, Board, Standing, carrying
from .schema import Submission

MAX_COLUMNS = 12
_COLOURED_ENTRIES = chart.COLOURS - 1
"""Number of entries with a colour of their own. The last colour, grey, is for the rest."""


def index_page(
    boards: Sequence[Board], entries: Sequence[Standing], refused: Mapping[str, Sequence[str]]
) -> str:
    """Return the first page: the widest ranking, all rankings and entries, and refusals."""
    main = max(boards, key=lambda board: (len(board.ranking) > 1, len(board.tasks)), default=None)
    cells = [cell for entry in entries for cell in entry.verdict.cells]
    return _page(
        "index.html",
        title="Leaderboard",
        figures={
            "entries": len(entries),
            "tasks": len({cell.task for cell in cells}),
            "runs": len(cells),
            "episodes replayed": sum(cell.episodes for cell in cells),
        },
        main=main,
        scale=Axis.of(main) if main else None,
        main_remarks=list(_unequal(main)) if main else [],
        boards=boards,
        entries=sorted(entries, key=lambda entry: entry.title.lower()),
        refused=refused,
        least_seeds=MIN_RANKED_SEEDS,
    )


def board_page(board: Board) -> str:
    """Return the page of a suite at a budget."""
    profiles = [
        (ranked.standing.title, ranked.summary.profile)
        for ranked in board.ranking[:_COLOURED_ENTRIES]
    ]
    lines = [
        chart.Line(title, p.taus, p.fraction, i, p.low, p.high)
        for i, (title, p) in enumerate(profiles)
    ]
    columns = [ranked.standing for ranked in board.ranking[:MAX_COLUMNS]]
    return _page(
        "board.html",
        title=board.title,
        board=board,
        scale=Axis.of(board),
        said=[*_unequal(board), *_board_remarks(board)],
        profile=chart.lines(
            "Performance profile",
            lines,
            x_label="score τ",
            y_label="fraction of runs above τ",
            width=1064,
        ),
        columns=columns,
        best={
            card.id: max(
                (not card.violates(*entry.seed_costs[card.id]), entry.by_task[card.id].point)
                for entry in columns
            )
            for card in board.tasks
        },
    )


def entry_page(entry: Standing, boards: Sequence[Board]) -> str:
    """Return the page of one entry: its scores, the check, and its claims."""
    return _page(
        "entry.html",
        title=entry.title,
        entry=entry,
        overall=carrying(entry.verdict.scores),
        rows=[TaskRow.of(entry, task) for task in entry.verdict.scores],
        ranks=[
            (board, ranked)
            for board in boards
            for ranked in board.ranking
            if ranked.standing.title == entry.title
        ],
        said=list(_entry_remarks(entry)),
        claims=_claims(entry.submission),
        hyperparameters=_hyperparameters(entry.submission),
    )


def _page(template: str, **values: object) -> str:
    version = rlbench_suite.__version__
    return render(
        "rlbench_suite.leaderboard", template, version=version, coloured=_COLOURED_ENTRIES, **values
    )


@dataclass(frozen=True)
class Axis:
    """The horizontal scale of a ranking's bars."""

    WIDTH: ClassVar[int] = 240
    MARGIN: ClassVar[int] = 12
    MIN_SCORE: ClassVar[float] = -0.5
    MAX_SCORE: ClassVar[float] = 3.0
    """Ends of the widest scale.

    Values beyond are drawn at the edge, so one odd entry does not squeeze the rest.
    """

    low: float
    high: float

    @classmethod
    def of(cls, board: Board) -> Axis:
        """Return a scale that holds 0, 1 and every interval of the board, within its limits."""
        values = [
            v
            for p in board.ranking
            for v in (p.summary.iqm.point, p.summary.iqm.low, p.summary.iqm.high)
        ]
        finite = [value for value in values if math.isfinite(value)]
        return cls(max(min(0.0, *finite), cls.MIN_SCORE), min(max(1.0, *finite), cls.MAX_SCORE))

    def x(self, value: float) -> float:
        """Return the position of a value in the picture."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.MARGIN + share * (self.WIDTH - 2 * self.MARGIN)


def _beats_zero(score: Estimate) -> str:
    """Return whether an interval lies above the scale's zero, in a word."""
    if score.low > 0:
        return "yes"
    return "no" if score.high < 0 else "unclear"


class TaskRow(NamedTuple):
    """One task of an entry: means over its seeds, computed from the replay."""

    card: TaskCard
    scale: Scale
    mean_return: float
    score: Estimate
    beats_zero: str
    """``yes`` if the entry's interval lies above the scale's zero, ``no`` if below.

    It is ``unclear`` if the interval holds the zero.
    """
    constrained: Estimate
    mean_cost: float
    seed_costs: list[float]
    success: Estimate
    mean_length: float
    seeds: int

    @property
    def violates(self) -> bool:
        """True if the mean cost over seeds exceeds the task's limit."""
        return self.card.violates(*self.seed_costs)

    @classmethod
    def of(cls, entry: Standing, task: str) -> TaskRow:
        """Collect the replayed cells of a task."""
        card = cards()[task]
        cells = [cell for cell in entry.verdict.cells if cell.task == task]
        score = entry.by_task[task]
        scale, constrained = card.scale(), mean({task: entry.constrained[task]})
        return cls(
            card=card,
            scale=scale,
            mean_return=sum(cell.mean_return for cell in cells) / len(cells),
            score=score,
            beats_zero=_beats_zero(score),
            constrained=with_error(constrained, scale.standard_error(constrained.point)),
            mean_cost=entry.costs[task],
            seed_costs=entry.seed_costs[task],
            success=entry.success[task],
            mean_length=sum(cell.mean_length for cell in cells) / len(cells),
            seeds=len(cells),
        )


# -- remarks ---------------------------------------------------------------------------------------


def _unequal(board: Board) -> Iterable[str]:
    if board.unequal:
        names = [cards()[task].name for task in board.unequal]
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        yield (
            f"Ranked entries claim different numbers of training steps on {len(names)} of "
            f"{len(board.tasks)} tasks "
            f"({', '.join(names[:4])}{more}). A better score there may come from longer training, "
            "and nobody can check "
            "these claims."
        )


def _board_remarks(board: Board) -> Iterable[str]:
    counts = {count for ranked in board.ranking for count in ranked.summary.seeds.values()}
    if (fewest := min(counts)) > 1:
        yield on_unseen(fewest, len(board.tasks))
    if len(counts) > 1:
        yield (
            "Entries have different numbers of seeds. More seeds give narrower and more reliable "
            "intervals."
        )
    classes = sorted(
        {m.instruction_set for ranked in board.ranking for m in ranked.standing.submission.machines}
    )
    if len(classes) > 1:
        yield f"Runs come from machines of several instruction sets ({'; '.join(classes)})."
    if privileged_titles := [
        ranked.standing.title for ranked in board.ranking if ranked.standing.privileged
    ]:
        yield (
            "Privileged entries read the state or parameters of tasks, which agents do not see. "
            "Their scores do not "
            f"compare with those of the others: {', '.join(privileged_titles)}."
        )
    if within := [
        ranked.standing.title for ranked in board.ranking if not ranked.standing.verdict.exact
    ]:
        yield (
            "These entries were replayed on another class of machine than the run's, and compared "
            f"within each task's tolerance, not to the bit: {', '.join(within)}."
        )
    if len(board.ranking) > MAX_COLUMNS:
        yield f"The table of tasks shows the first {MAX_COLUMNS} entries; results.json has all."


def _entry_remarks(entry: Standing) -> Iterable[str]:
    if entry.seeds > 1:
        yield on_unseen(entry.seeds, len(entry.verdict.scores))
    if entry.unranked:
        yield (
            "Not ranked: it "
            f"{entry.unranked if not entry.superseded_by else f'is {entry.unranked}'}."
        )
    for card in entry.violated_cards(cards()[task] for task in entry.costs):
        assert card.constraint
        yield (
            f"It violates the constraint of {card.name}: an episode costs "
            f"{entry.costs[card.id]:.3g} on average, the limit is {card.constraint.limit:g} "
            f"({card.constraint.counts})."
        )
    if entry.privileged:
        names = several([card.name for card in entry.privileged])
        yield (
            f"Privileged: by its own account it reads the state or parameters of {names}, which "
            "agents do not see."
        )
    for task, (title, equal_count) in entry.copied.items():
        name = cards()[task].name
        yield (
            f"It plays the episodes of {title}, which arrived first, on {name} ({equal_count:,} "
            "are equal)."
        )
    for title, equal_count in entry.shared_episodes.items():
        if title != entry.copy_of:
            yield (
                f"{equal_count:,} of its episodes take the same actions at every step as those of "
                f"{title}."
            )
    if not entry.verdict.exact:
        yield (
            "It was replayed on another class of machine than the run's: returns were compared "
            "within each task's tolerance, not to the bit."
        )


# -- claims ----------------------------------------------------------------------------------------


def _claims(submission: Submission) -> dict[str, str]:
    claims = {
        "Agent": submission.entry.agent,
        "Run ended": f"{submission.created:%Y-%m-%d %H:%M} UTC",
    }
    for i, machine in enumerate(submission.machines, start=1):
        number = f" {i}" if len(submission.machines) > 1 else ""
        claims[f"Processor{number}"] = f"{machine.cpu}, {machine.cores} cores"
        claims[f"Instructions{number}"] = machine.instruction_set
        claims[f"Platform{number}"] = f"{machine.platform}, Python {machine.python}"
        claims[f"Packages{number}"] = ", ".join(
            f"{name} {version}" for name, version in machine.packages.items()
        )
        claims[f"Revision{number}"] = machine.revision or "not a checkout"
    claims["Trained on"] = ", ".join(
        sorted({cell.device for claim in submission.tasks for cell in claim.cells})
    )
    claims["Made with"] = (
        f"rlbench-suite {submission.version}, protocol {submission.protocol}, {submission.budget} "
        "budget"
    )
    return claims


def _hyperparameters(submission: Submission) -> dict[str, list[str]]:
    """Return the names of the tasks by their hyperparameters, written as JSON."""
    by_values: dict[str, list[str]] = {}
    for claim in submission.tasks:
        text = json.dumps(claim.hyperparameters, indent=1, ensure_ascii=False)
        by_values.setdefault(text, []).append(cards()[claim.task].name)
    return by_values
