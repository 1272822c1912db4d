"""The judge: an archive's actions are played again in fresh environments, and every claim is held against them."""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import AwareDatetime

import rlbench_suite
from rlbench_suite.adapters.rollout import Record, replay
from rlbench_suite.card import TaskCard
from rlbench_suite.episode import scalar_return
from rlbench_suite.evaluation import statistics
from rlbench_suite.evaluation.machine import Machine
from rlbench_suite.evaluation.protocol import EPISODES, VERSION, evaluation_seeds
from rlbench_suite.registry import cards
from rlbench_suite.task import Task

from .archive import Archive
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
)

_ROUNDING = 1e-9
"""Relative difference allowed between two means of the same numbers: they may be summed in another order."""


class VerifiedCell(Strict):
    """What replaying a cell gave."""

    task: str
    seed: int
    episodes: int
    mean_return: float
    score: float
    success_rate: float
    mean_length: float
    mean_cost: float
    actions: str
    """:func:`fingerprint`."""


class Verdict(Strict):
    """What became of an archive."""

    sha256: str
    size: int
    submission: Submission | None
    """What it claims; None if that could not be read."""
    problems: tuple[str, ...]
    """Why it is rejected, a sentence each; none if it is accepted."""
    cells: tuple[VerifiedCell, ...]
    """Of every task that could be replayed, also where claims differ."""
    exact: bool
    """Whether returns were compared to the bit (the same class of machine), not within the cards' tolerances."""
    judge: Origin
    judged: AwareDatetime
    seconds: float
    version: Line
    """Of the package that judged."""

    @property
    def accepted(self) -> bool:
        """Whether everything that can be checked is right."""
        return not self.problems

    @property
    def scores(self) -> dict[str, list[float]]:
        """Replayed scores by task, one a seed."""
        scores: dict[str, list[float]] = {}
        for cell in self.cells:
            scores.setdefault(cell.task, []).append(cell.score)
        return scores


def verify(path: Path, *, progress: Callable[[str], None] = lambda _: None) -> Verdict:
    """Check an archive.

    Args:
        path: the archive.
        progress: told what is being replayed.

    Raises:
        OSError: the file cannot be read. What is wrong inside it is in the verdict.
    """
    started = time.perf_counter()
    judge = Origin.of(Machine.this())
    submission, problems, cells, exact = None, [], [], False
    try:
        with Archive.open(path) as archive:
            submission = archive.submission()
            exact = _is_exact(submission, judge)
            problems = [*_wrong_declarations(submission), *_wrong_members(submission, archive.names)]
            if not problems:
                for i, claim in enumerate(submission.tasks):
                    progress(f"{submission.entry.title}: {claim.task} ({i + 1} of {len(submission.tasks)})")
                    found, wrong = _judge_task(archive, claim, submission.budget, exact)
                    cells += found
                    problems += wrong
                problems += _wrong_aggregates(submission, cells, exact)
    except Rejected as rejection:
        problems = [*problems, str(rejection)]
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Verdict(
        sha256=sha256,
        size=size,
        submission=submission,
        problems=tuple(problems),
        cells=tuple(cells),
        exact=exact,
        judge=judge,
        judged=datetime.now(UTC),
        seconds=time.perf_counter() - started,
        version=rlbench_suite.__version__,
    )


def _is_exact(submission: Submission, judge: Origin) -> bool:
    """Whether the run's machines and this one owe each other equal bits."""
    devices = {cell.device for claim in submission.tasks for cell in claim.cells}
    return devices == {"cpu"} and all(machine.bits == judge.bits for machine in submission.machines)


# -- what is declared --------------------------------------------------------------------------------------------------


def _wrong_declarations(submission: Submission) -> Iterator[str]:
    """Claims that are wrong whatever was played."""
    if _numbers(submission.version) > _numbers(rlbench_suite.__version__):
        yield (
            f"The run was made with rlbench-suite {submission.version}, which is newer than this judge "
            f"({rlbench_suite.__version__}); verify it with that version."
        )
    if submission.protocol != VERSION:
        yield f"The run follows evaluation protocol {submission.protocol}; results of protocol {VERSION} compare."
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
            yield f"{_name(claim.task)} is no task of this version of the suite."


def _wrong_cells(claim: TaskClaim, submission: Submission) -> Iterator[str]:
    task, first, episodes = claim.task, submission.tasks[0], EPISODES[submission.budget]
    seeds = [cell.seed for cell in claim.cells]
    count = len(set(seeds))
    for seed, times in Counter(seeds).items():
        if times > 1:
            yield f"{task}, seed {seed}: the cell is claimed {times} times."
    if count != (theirs := len({cell.seed for cell in first.cells})):
        yield f"{task} has {count} seeds and {_name(first.task)} has {theirs}; all tasks need the same number."
    if sorted(set(seeds)) != list(range(count)):
        yield f"{task} has the seeds {_list(seeds)}; they are 0, 1, 2 and so on, none left out, so that none is picked."
    elif seeds != sorted(seeds):
        yield f"{task} has its seeds in the order {_list(seeds)}; they stand in increasing order."
    for cell in claim.cells:
        if cell.episodes != episodes:
            yield (
                f"{task}, seed {cell.seed}: {cell.episodes} episodes are claimed; "
                f"the {submission.budget} budget has {episodes}."
            )


def _wrong_references(card: TaskCard, claim: TaskClaim) -> Iterator[str]:
    measured = card.scores()
    if not {"random", "reference"} <= measured.keys():
        yield f"{card.id} was never calibrated in this version of the suite; it has no score."
        return
    for player, said in (("random", claim.random), ("reference", claim.reference)):
        if said != measured[player].mean:
            yield (
                f"{card.id} is normalised by a {player} score of {said:g}; it is {measured[player].mean:g} "
                "in this version of the suite."
            )


def _wrong_members(submission: Submission, names: list[str]) -> Iterator[str]:
    known = cards()
    short = [known[claim.task].name for claim in submission.tasks if claim.task in known]
    wanted = [MANIFEST] + [member(name) for name in short for member in (episodes_member, actions_member)]
    for name in names:
        if name not in wanted:
            yield f"The archive has a member {name[:80]!r} that belongs to no claim."
    for name in wanted:
        if name not in names:
            yield f"The member {name} is missing."


# -- what is played ----------------------------------------------------------------------------------------------------


def _judge_task(archive: Archive, claim: TaskClaim, budget: str, exact: bool) -> tuple[list[VerifiedCell], list[str]]:
    """Replayed cells of a task, and all that is wrong with it."""
    card = cards()[claim.task]
    task = card.build()
    cells: list[VerifiedCell] = []
    problems: list[str] = []
    count, seeds = EPISODES[budget], len(claim.cells)
    try:
        episodes = archive.table(episodes_member(card.name), episodes_schema(task), seeds, count, count)
        actions = archive.table(actions_member(card.name), actions_schema(task), seeds, count, count * card.horizon)
        for cell, claimed, rows in zip(claim.cells, episodes, actions, strict=True):
            faults = _Cell(task, cell, claimed, rows, budget, exact)
            problems += faults.wrong_trace()
            if not faults.playable:
                continue
            verified = faults.play()
            problems += faults.wrong_claims(verified)
            cells.append(verified)
    except Rejected as rejection:
        problems.append(str(rejection))
    if len(cells) == seeds:
        problems += _differs(
            f"{card.id}: the score", claim.score, np.mean([c.score for c in cells]), _slack(card, exact)
        )
    return cells, problems


class _Cell:
    """A cell on trial: ``claimed`` one row an episode, ``rows`` one row a step."""

    def __init__(
        self,
        task: Task[Any, Any],
        cell: CellClaim,
        claimed: dict[str, np.ndarray],
        rows: dict[str, np.ndarray],
        budget: str,
        exact: bool,
    ) -> None:
        self.task, self.cell, self.claimed, self.exact = task, cell, claimed, exact
        self.seeds = evaluation_seeds(cell.seed, budget)
        self.columns = list(rows.values())
        self.playable = True

    def _episode(self, i: int | np.integer[Any]) -> str:
        return f"{self.task.card.id}, seed {self.cell.seed}, episode {i}"

    def wrong_trace(self) -> Iterator[str]:
        """Faults of the trace itself; some leave nothing to play."""
        played, seeds = self.claimed["episode_seed"], np.array(self.seeds)
        for i in np.flatnonzero(played != seeds):
            yield f"{self._episode(i)}: it was played on environment seed {played[i]}; the protocol's is {seeds[i]}."
            self.playable = False
        lengths, rows, horizon = self.claimed["length"], len(self.columns[0]), self.task.card.horizon
        for i in np.flatnonzero((lengths < 1) | (lengths > horizon)):
            yield f"{self._episode(i)}: it is said to have {lengths[i]} steps; 1 to {horizon} are possible."
            self.playable = False
        if lengths.sum(dtype=np.int64) != rows:
            yield (
                f"{self.task.card.id}, seed {self.cell.seed}: the episodes are said to have "
                f"{lengths.sum(dtype=np.int64)} steps in all, and there are {rows} actions."
            )
            self.playable = False
        if not self.playable:
            return
        ends = np.cumsum(lengths)
        low, high = action_bounds(self.task)
        for name, column, least, most in zip(range(len(low)), self.columns, low, high, strict=True):
            for row in np.flatnonzero(~((column >= least) & (column <= most))):  # NaN is neither
                episode = int(np.searchsorted(ends, row, side="right"))
                step = row - (ends[episode] - lengths[episode])
                yield (
                    f"{self._episode(episode)}: number {name} of the action at step {step} is {column[row]:g}; "
                    f"the space of actions is {least:g} to {most:g}."
                )
                self.playable = False

    def play(self) -> VerifiedCell:
        """Replay the cell."""
        lengths, space = self.claimed["length"], self.task.action_space
        ends = np.cumsum(lengths)
        rows = np.stack(self.columns, axis=-1).astype(space.dtype)
        actions = np.zeros((len(lengths), self.task.card.horizon, rows.shape[1]), space.dtype)
        for i, (length, end) in enumerate(zip(lengths, ends, strict=True)):
            actions[i, :length] = rows[end - length : end]
        shape = (len(lengths), self.task.card.horizon, *(space.shape or ()))
        self.record: Record = replay(self.task, actions.reshape(shape), self.seeds)
        totals = self.record.total.astype(np.float64)
        returns = np.asarray(scalar_return(self.task, totals))
        scores = [self.task.card.normalise(value, self.task.difficulty) for value in returns.tolist()]
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
        )

    def wrong_claims(self, verified: VerifiedCell) -> Iterator[str]:
        """What the replay does not bear out: episode by episode, then the means."""
        record, claimed, card = self.record, self.claimed, self.task.card
        for i in np.flatnonzero(record.length != claimed["length"]):
            said, is_ = claimed["length"][i], record.length[i]
            what = "is not over after them" if is_ > said else f"is over after {is_}; the rest was never played"
            yield f"{self._episode(i)}: {said} steps are claimed, and it {what}."
        for name, found in (("success", record.info["success"].astype(bool)), ("terminated", record.terminated)):
            for i in np.flatnonzero(found != claimed[name]):
                yield f"{self._episode(i)}: {name} is claimed to be {claimed[name][i]} and is {found[i]}."
        totals = record.total.astype(np.float64).reshape(len(self.seeds), -1)
        numbers = {f"return_{j}": column for j, column in enumerate(totals.T)}
        numbers["cost"] = record.cost.astype(np.float64)
        for name, found in numbers.items():
            for i in np.flatnonzero(~self._equal(claimed[name], found)):
                what = name.replace("_", " ") if len(totals.T) > 1 else name.split("_")[0]
                yield (
                    f"{self._episode(i)}: the {what} is claimed to be {float(claimed[name][i])!r} "
                    f"and is {float(found[i])!r}{self._manner()}."
                )
        slack = 0.0 if self.exact else card.replay_tolerance
        for field in ("mean_return", "score", "success_rate", "mean_length", "mean_cost"):
            allowed = _slack(card, self.exact) if field == "score" else slack
            label = f"{card.id}, seed {self.cell.seed}: the {field.replace('_', ' ')}"
            yield from _differs(label, getattr(self.cell, field), getattr(verified, field), allowed)
        if self.cell.actions != verified.actions:
            yield f"{card.id}, seed {self.cell.seed}: the actions are not those whose SHA-256 is claimed."

    def _equal(self, claimed: np.ndarray, found: np.ndarray) -> np.ndarray:
        if self.exact:
            return claimed.view(np.int64) == np.ascontiguousarray(found).view(np.int64)
        return np.abs(claimed - found) <= self.task.card.replay_tolerance

    def _manner(self) -> str:
        if self.exact:
            return ""
        return f" (another class of machine; the card allows a difference of {self.task.card.replay_tolerance:g})"


def _wrong_aggregates(submission: Submission, cells: list[VerifiedCell], exact: bool) -> Iterator[str]:
    if len(cells) < sum(len(claim.cells) for claim in submission.tasks):
        return
    scores: dict[str, list[float]] = {}
    for cell in cells:
        scores.setdefault(cell.task, []).append(cell.score)
    slack = max(_slack(cards()[task], exact) for task in scores)
    yield from _differs("The IQM", submission.iqm, statistics.iqm(scores, replicates=1).point, slack)
    yield from _differs("The mean", submission.mean, statistics.mean(scores, replicates=1).point, slack)


def _differs(label: str, claimed: float, found: Any, slack: float) -> Iterator[str]:
    found = float(found)
    if not abs(claimed - found) <= slack + _ROUNDING * max(1.0, abs(found)):
        yield f"{label} is claimed to be {claimed!r} and is {found!r}."


def _slack(card: TaskCard, exact: bool) -> float:
    """How far a score may be off, from what a return may be."""
    measured = card.scores()
    return 0.0 if exact else abs(card.replay_tolerance / (measured["reference"].mean - measured["random"].mean))


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, trailing zeros left out."""
    numbers = [int(part) for part in re.split(r"[^0-9.]", version)[0].split(".") if part]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def _name(task: str) -> str:
    return task if task in cards() else repr(task)


def _list(seeds: list[int]) -> str:
    return ", ".join(map(str, seeds[:MAX_SEEDS]))
