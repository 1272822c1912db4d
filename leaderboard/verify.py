"""Judge an archive: replay its actions in fresh environments and compare every claim."""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import AwareDatetime

import rlbench_suite
from rlbench_suite.adapters.rollout import Record, replay
from rlbench_suite.core.episode import scalar_return
from rlbench_suite.core.registry import cards
from rlbench_suite.core.scale import Scale
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.evaluation.protocol import EPISODES, evaluation_seeds
from rlbench_suite.evaluation.runs.computer import Computer
from rlbench_suite.evaluation.runs.manifest import VERSION
from rlbench_suite.evaluation.statistics import aggregates

from .archive import Archive
from .copies import Actions, Fingerprints, by_episode
from .pack import fingerprint
from .schema import (
    MANIFEST,
    MAX_SEEDS,
    CellClaim,
    Line,
    Origin,
    Rejected,
    Strict,
    Submission,
    TaskClaim,
    action_bounds,
    actions_member,
    actions_schema,
    episodes_member,
    episodes_schema,
    plain_sentence,
)

MAX_PROBLEMS = 100
"""Largest number of faults in a verdict, so that millions of faults do not fill the disk."""
_ALIKE = 3
"""Number of faults of one kind in one cell that are described. The others are counted."""
_CLOCK_ERROR = timedelta(days=1)
"""Largest lead of the clock of a machine over the judge's."""
_ROUNDING = 1e-9
"""Relative tolerance for two means of the same numbers, which may be summed in another order."""


class VerifiedCell(Strict):
    """Result of replaying a cell."""

    task: str
    seed: int
    episodes: int
    mean_return: float
    score: float
    success_rate: float
    mean_length: float
    mean_cost: float
    actions: str
    """Fingerprint of all actions (:func:`.pack.fingerprint`)."""
    by_episode: Fingerprints
    """Fingerprints of the actions of each episode."""


class Verdict(Strict):
    """Verdict on an archive."""

    sha256: str
    size: int
    submission: Submission | None
    """Its claims; None if they could not be read."""
    problems: tuple[str, ...]
    """Reasons for rejecting it, a sentence each. Empty if it is accepted."""
    cells: tuple[VerifiedCell, ...]
    """Results for every task that could be replayed, even if claims differ."""
    exact: bool
    """True if returns were compared bit for bit, on a machine of the same class.

    Otherwise they were compared within the cards' tolerances.
    """
    judge: Origin
    judged: AwareDatetime
    seconds: float
    version: Line
    """Version of the package that judged."""
    finished: bool = True
    """False if the judge's process died. The verdict may then differ on another machine."""

    @property
    def accepted(self) -> bool:
        """True if everything that can be checked is right."""
        return not self.problems

    @property
    def scores(self) -> dict[str, list[float]]:
        """Replayed scores by task, one for each seed."""
        scores: dict[str, list[float]] = {}
        for cell in self.cells:
            scores.setdefault(cell.task, []).append(cell.score)
        return scores

    @property
    def actions_played(self) -> Actions:
        """Fingerprints of the actions of every episode."""
        return {(cell.task, cell.seed): cell.by_episode for cell in self.cells}


def verify(path: Path, *, progress: Callable[[str], None] = lambda _: None) -> Verdict:
    """Check an archive in this process. For archives of strangers use :func:`.judge.judge`.

    Args:
        path: the archive.
        progress: is called with a description of each step.

    Raises:
        OSError: the file cannot be read. Faults inside it are in the verdict.
    """
    started = time.perf_counter()
    judge = Origin.of(Computer.this())
    submission = None
    problems = []
    cells = []
    exact = False
    try:
        with Archive.open(path) as archive:
            progress(f"reading {MANIFEST}")
            submission = archive.submission()
            exact = _is_exact(submission, judge)
            same_simulators = all(
                machine.simulators == judge.simulators for machine in submission.machines
            )
            problems = [
                *_wrong_declarations(submission),
                *_wrong_members(submission, archive.names),
            ]
            if not problems:
                for claim in submission.tasks:
                    task_cells, wrong = _judge_task(
                        archive, claim, submission.budget, exact, same_simulators, progress
                    )
                    cells += task_cells
                    problems += wrong
                    if len(problems) >= MAX_PROBLEMS:
                        break
                problems += _wrong_aggregates(submission, cells, exact)
    except Rejected as rejection:
        problems = [*problems, str(rejection)]
    if len(problems) > MAX_PROBLEMS:
        problems[MAX_PROBLEMS:] = [
            f"There are {len(problems) - MAX_PROBLEMS:,} more faults, at least."
        ]
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Verdict(
        sha256=sha256,
        size=size,
        submission=submission,
        problems=tuple(map(plain_sentence, problems)),
        cells=tuple(cells),
        exact=exact,
        judge=judge,
        judged=datetime.now(UTC),
        seconds=time.perf_counter() - started,
        version=rlbench_suite.__version__,
    )


def _is_exact(submission: Submission, judge: Origin) -> bool:
    """Return True if the run's machines and this one must give equal bits."""
    return all(machine.bits == judge.bits for machine in submission.machines)


# -- declarations ----------------------------------------------------------------------------------


def _wrong_declarations(submission: Submission) -> Iterator[str]:
    """Yield the faults of claims that need no replay."""
    if _numbers(submission.version) > _numbers(rlbench_suite.__version__):
        yield (
            f"The run was made with rlbench-suite {submission.version}, which is newer than this "
            f"judge ({rlbench_suite.__version__}); verify it with that version."
        )
    if submission.protocol != VERSION:
        yield (
            f"The run follows evaluation protocol {submission.protocol}; results of protocol "
            f"{VERSION} compare."
        )
    if submission.created > datetime.now(UTC) + _CLOCK_ERROR:
        yield f"The run is claimed to have ended on {submission.day}, which lies in the future."
    if submission.budget not in EPISODES:
        yield f"The budget is {submission.budget!r}; known: {', '.join(EPISODES)}."
        return
    for task, times in Counter(claim.task for claim in submission.tasks).items():
        if times > 1:
            yield f"{_name(task)} is claimed {times} times."
    for claim in submission.tasks:
        if card := cards().get(claim.task):
            yield from _wrong_references(card, claim)
            yield from _wrong_cells(claim, submission)
        else:
            yield f"{_name(claim.task)} is not a task of this version of the suite."


def _wrong_cells(claim: TaskClaim, submission: Submission) -> Iterator[str]:
    task = claim.task
    first = submission.tasks[0]
    episodes = EPISODES[submission.budget]
    seeds = [cell.seed for cell in claim.cells]
    count = len(set(seeds))
    for seed, times in Counter(seeds).items():
        if times > 1:
            yield f"{task}, seed {seed}: the cell is claimed {times} times."
    if count != (first_count := len({cell.seed for cell in first.cells})):
        yield (
            f"{task} has {count} seeds and {_name(first.task)} has {first_count}; all tasks need "
            "the same number."
        )
    if sorted(set(seeds)) != list(range(count)):
        yield (
            f"{task} has the seeds {_list(seeds)}; they must be 0, 1, 2 and so on, so that none is "
            "picked."
        )
    elif seeds != sorted(seeds):
        yield f"{task} has its seeds in the order {_list(seeds)}; the order must be increasing."
    for cell in claim.cells:
        if cell.episodes != episodes:
            yield (
                f"{task}, seed {cell.seed}: {cell.episodes} episodes are claimed; "
                f"the {submission.budget} budget has {episodes}."
            )


def _wrong_references(card: TaskCard, claim: TaskClaim) -> Iterator[str]:
    scale = Scale.of(card.scores())
    if scale is None:
        yield f"{card.id} was never calibrated in this version of the suite; it has no score."
        return
    for end, claimed, measured in (
        ("zero", claim.zero, scale.zero.mean),
        ("reference", claim.reference, scale.reference.mean),
    ):
        if claimed != measured:
            yield (
                f"{card.id} is normalised by a {end} score of {claimed:g}; it is {measured:g} "
                "in this version of the suite."
            )


def _wrong_members(submission: Submission, names: list[str]) -> Iterator[str]:
    cards_by_id = cards()
    short = [
        cards_by_id[claim.task].name for claim in submission.tasks if claim.task in cards_by_id
    ]
    members = [MANIFEST] + [
        member(name) for name in short for member in (episodes_member, actions_member)
    ]
    for name in sorted(set(names).difference(members)):
        yield f"The archive has a member {name[:80]!r} that belongs to no claim."
    there = set(names)
    for name in members:
        if name not in there:
            yield f"The member {name} is missing."


# -- replay ----------------------------------------------------------------------------------------


def _judge_task(
    archive: Archive,
    claim: TaskClaim,
    budget: str,
    exact: bool,
    same_simulators: bool,
    progress: Callable[[str], None],
) -> tuple[list[VerifiedCell], list[str]]:
    """Return the replayed cells of a task and the faults found."""
    card = cards()[claim.task]
    task = card.build()
    exact = exact and (not card.host or same_simulators)
    cells: list[VerifiedCell] = []
    problems: list[str] = []
    seeds = len(claim.cells)
    try:
        for cell, (claimed, actions) in zip(
            claim.cells, _tables(archive, task, seeds, budget, progress), strict=True
        ):
            faults = _Cell(task, cell, claimed, actions, budget, exact)
            problems += faults.wrong_trace()
            if not faults.playable:
                continue
            progress(f"replaying {card.id}, seed {cell.seed}")
            verified = faults.play()
            problems += faults.wrong_claims(verified)
            cells.append(verified)
    except Rejected as rejection:
        problems.append(str(rejection))
    if len(cells) == seeds:
        problems += _differs(
            f"{card.id}: the score",
            claim.score,
            np.mean([c.score for c in cells]),
            _slack(card, exact),
        )
    return cells, problems


def _tables(
    archive: Archive, task: Task[Any, Any], seeds: int, budget: str, progress: Callable[[str], None]
) -> Iterator[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
    """Yield the claimed episodes and the actions of a task, cell by cell."""
    card = task.card
    count = EPISODES[budget]
    members = (
        (episodes_member(card.name), episodes_schema(task), count),
        (actions_member(card.name), actions_schema(task), count * card.horizon),
    )
    groups = [
        archive.table(name, schema, seeds, count, max_rows) for name, schema, max_rows in members
    ]
    for _ in range(seeds):
        pair = []
        for (name, _, _), group in zip(members, groups, strict=True):
            progress(f"reading {name}")
            pair.append(next(group))
        yield pair[0], pair[1]


class Contents(Strict):
    """Contents of an archive that was not replayed."""

    submission: Submission
    actions: tuple[tuple[str, int, Fingerprints], ...]
    """Task, training seed, and the fingerprints of the actions of each episode."""

    @property
    def actions_played(self) -> Actions:
        """Fingerprints of the actions of every episode."""
        return {(task, seed): text for task, seed, text in self.actions}


def read_contents(path: Path, *, progress: Callable[[str], None] = lambda _: None) -> Contents:
    """Read an archive that was accepted before, perhaps by another version of the suite.

    Raises:
        Rejected: it cannot be read.
        OSError: the file cannot be read.
    """
    cells_of_actions = []
    with Archive.open(path) as archive:
        submission = archive.submission()
        if submission.budget not in EPISODES:
            raise Rejected(f"The budget is {submission.budget!r}.")
        for claim in submission.tasks:
            if card := cards().get(claim.task):
                tables = _tables(
                    archive, card.build(), len(claim.cells), submission.budget, progress
                )
                for cell, (claimed, rows) in zip(claim.cells, tables, strict=True):
                    cells_of_actions.append(
                        (claim.task, cell.seed, by_episode(list(rows.values()), claimed["length"]))
                    )
    return Contents(submission=submission, actions=tuple(cells_of_actions))


def _few(subject: str, wrong: np.ndarray, say: Callable[[int], str]) -> Iterator[str]:
    """Describe the first faults of a kind in a sentence each, and count the others."""
    yield from map(say, wrong[:_ALIKE].tolist())
    if len(wrong) > _ALIKE:
        yield f"{subject}: there are {len(wrong) - _ALIKE:,} more faults of the same kind."


class _Cell:
    """Check of one cell.

    ``claimed`` has one row for each episode, ``actions`` one for each step.
    """

    def __init__(
        self,
        task: Task[Any, Any],
        cell: CellClaim,
        claimed: dict[str, np.ndarray],
        actions: dict[str, np.ndarray],
        budget: str,
        exact: bool,
    ) -> None:
        self.task, self.cell, self.claimed, self.exact = task, cell, claimed, exact
        self.seeds = evaluation_seeds(task.card, cell.seed, budget)
        self.columns = list(actions.values())
        self.playable = True

        self.name = f"{task.card.id}, seed {cell.seed}"

    def _episode(self, i: int | np.integer[Any]) -> str:
        return f"{self.name}, episode {i}"

    def wrong_trace(self) -> Iterator[str]:
        """Yield the faults of the trace itself. After some of them nothing can be replayed."""
        episode_seeds = self.claimed["episode_seed"]
        seeds = np.array(self.seeds)
        lengths = self.claimed["length"]
        rows = len(self.columns[0])
        horizon = self.task.card.horizon
        foreign = np.flatnonzero(episode_seeds != seeds)
        yield from _few(self.name, foreign, lambda i: (
            f"{self._episode(i)}: it was played on environment seed {episode_seeds[i]}; the "
            f"protocol's is {seeds[i]}."
        ))  # fmt: skip
        impossible = np.flatnonzero((lengths < 1) | (lengths > horizon))
        yield from _few(self.name, impossible, lambda i: (
            f"{self._episode(i)}: {lengths[i]} steps are claimed; 1 to {horizon} are possible."
        ))  # fmt: skip
        steps = lengths.sum(dtype=np.int64)
        if steps != rows:
            yield f"{self.name}: {steps} steps are claimed in all, and there are {rows} actions."
        self.playable = not len(foreign) and not len(impossible) and steps == rows
        if self.playable:
            yield from self._wrong_actions(lengths)

    def _wrong_actions(self, lengths: np.ndarray) -> Iterator[str]:
        ends = np.cumsum(lengths)
        low, high = action_bounds(self.task)
        wrong = [
            np.flatnonzero(~((column >= lower) & (column <= upper)))  # also true for NaN
            for column, lower, upper in zip(self.columns, low, high, strict=True)
        ]
        self.playable = not any(map(len, wrong))
        entries = np.array(
            [(row, number) for number, rows in enumerate(wrong) for row in rows[:_ALIKE]], int
        )
        for row, number in entries[:_ALIKE].tolist():
            episode = int(np.searchsorted(ends, row, side="right"))
            step = row - (ends[episode] - lengths[episode])
            yield (
                f"{self._episode(episode)}: number {number} of the action at step {step} is "
                f"{self.columns[number][row]:g}; the action space is {low[number]:g} to "
                f"{high[number]:g}."
            )
        if (count := sum(map(len, wrong))) > _ALIKE:
            yield (
                f"{self.name}: {count - _ALIKE:,} more numbers of actions are outside the action "
                "space."
            )

    def play(self) -> VerifiedCell:
        """Replay the cell."""
        lengths = self.claimed["length"]
        space = self.task.action_space
        ends = np.cumsum(lengths)
        rows = np.stack(self.columns, axis=-1).astype(space.dtype)
        actions = np.zeros((len(lengths), self.task.card.horizon, rows.shape[1]), space.dtype)
        for i, (length, end) in enumerate(zip(lengths, ends, strict=True)):
            actions[i, :length] = rows[end - length : end]
        shape = (len(lengths), self.task.card.horizon, *(space.shape or ()))
        self.record: Record = replay(self.task, actions.reshape(shape), self.seeds)
        totals = self.record.total.astype(np.float64)
        returns = np.asarray(scalar_return(self.task, totals))
        scores = self.task.card.scale(self.task.difficulty).score(returns)
        return VerifiedCell(
            task=self.task.card.id,
            seed=self.cell.seed,
            episodes=len(lengths),
            mean_return=float(returns.mean()),
            score=float(np.mean(scores)),
            success_rate=float(self.record.info["success"].mean()),
            mean_length=float(self.record.length.mean()),
            mean_cost=float(self.record.cost.mean(dtype=np.float64)),
            actions=fingerprint(self.columns),
            by_episode=by_episode(self.columns, lengths),
        )

    def wrong_claims(self, verified: VerifiedCell) -> Iterator[str]:
        """Yield the claims that differ from the replay: episode by episode, then the means."""
        record = self.record
        claimed = self.claimed
        card = self.task.card

        def of_length(i: int) -> str:
            claimed_length = claimed["length"][i]
            length = int(record.length[i])
            ending = f"is over after {length}"
            if length > claimed_length:
                ending = "is not over after them"
            return f"{self._episode(i)}: {claimed_length} steps are claimed, and it {ending}."

        yield from _few(self.name, np.flatnonzero(record.length != claimed["length"]), of_length)
        for name, flags in (
            ("success", record.info["success"].astype(bool)),
            ("terminated", record.terminated),
        ):
            yield from self._flags_that_differ(name, flags)
        totals = record.total.astype(np.float64).reshape(len(self.seeds), -1)
        numbers = {f"return_{j}": column for j, column in enumerate(totals.T)}
        numbers["cost"] = record.cost.astype(np.float64)
        for name, values in numbers.items():
            yield from self._numbers_that_differ(
                name, values, name.replace("_", " ") if len(totals.T) > 1 else name.split("_")[0]
            )
        slack = self._tolerance("return")
        for field in ("mean_return", "score", "success_rate", "mean_length", "mean_cost"):
            allowed = {"score": _slack(card, self.exact), "mean_cost": self._tolerance("cost")}.get(
                field, slack
            )
            label = f"{card.id}, seed {self.cell.seed}: the {field.replace('_', ' ')}"
            yield from _differs(label, getattr(self.cell, field), getattr(verified, field), allowed)
        if self.cell.actions != verified.actions:
            yield (
                f"{card.id}, seed {self.cell.seed}: the SHA-256 of the actions is not the claimed "
                "one."
            )

    def _flags_that_differ(self, name: str, replayed: np.ndarray) -> Iterator[str]:
        claimed = self.claimed[name]
        differ = np.flatnonzero(replayed != claimed)
        yield from _few(self.name, differ, lambda i: (
            f"{self._episode(i)}: {name} is claimed to be {claimed[i]} and is {replayed[i]}."
        ))  # fmt: skip

    def _numbers_that_differ(self, name: str, replayed: np.ndarray, what: str) -> Iterator[str]:
        claimed = self.claimed[name]
        allowed = self._tolerance(name)
        if self.exact:
            equal = claimed.view(np.int64) == np.ascontiguousarray(replayed).view(np.int64)
            manner = ""
        else:
            equal = np.abs(claimed - replayed) <= allowed
            manner = f" (another class of machine; the card allows a difference of {allowed:g})"
        yield from _few(self.name, np.flatnonzero(~equal), lambda i: (
            f"{self._episode(i)}: the {what} is claimed to be {float(claimed[i])!r} and is "
            f"{float(replayed[i])!r}{manner}."
        ))  # fmt: skip

    def _tolerance(self, name: str) -> float:
        """Return the tolerance of a return or a cost."""
        card = self.task.card
        if self.exact:
            return 0.0
        return card.cost_tolerance if name == "cost" else card.replay_tolerance


def _wrong_aggregates(
    submission: Submission, cells: list[VerifiedCell], exact: bool
) -> Iterator[str]:
    if len(cells) < sum(len(claim.cells) for claim in submission.tasks):
        return
    scores: dict[str, list[float]] = {}
    for cell in cells:
        scores.setdefault(cell.task, []).append(cell.score)
    slack = max(_slack(cards()[task], exact) for task in scores)
    yield from _differs(
        "The IQM", submission.iqm, aggregates.iqm(scores, replicates=1).point, slack
    )
    yield from _differs(
        "The mean", submission.mean, aggregates.mean(scores, replicates=1).point, slack
    )


def _differs(label: str, claimed: float, replayed: Any, slack: float) -> Iterator[str]:
    replayed = float(replayed)
    if not abs(claimed - replayed) <= slack + _ROUNDING * max(1.0, abs(replayed)):
        yield f"{label} is claimed to be {claimed!r} and is {replayed!r}."


def _slack(card: TaskCard, exact: bool) -> float:
    """Return the tolerance of a score, from the tolerance of a return."""
    return 0.0 if exact else card.replay_tolerance / card.scale().span


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version without trailing zeros."""
    numbers = [int(digits) for digits in re.split(r"[^0-9.]", version)[0].split(".") if digits]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def _name(task: str) -> str:
    return task if task in cards() else repr(task)


def _list(seeds: list[int]) -> str:
    return ", ".join(map(str, seeds[:MAX_SEEDS]))
