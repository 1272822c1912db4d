"""Build a site of static pages from the archives in a directory."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

import rlbench_suite
from rlbench_suite.core.registry import cards
from rlbench_suite.evaluation.runs.computer import Computer
from rlbench_suite.evaluation.runs.manifest import VERSION
from rlbench_suite.foundation.atomic_files import replacing, staging, writing

from .boards import Board, RankedEntry, Standing, boards, standings
from .folder import list_archives
from .judge import judge
from .log import Arrival, file_sha256, read_log
from .pages import board_page, entry_page, index_page
from .schema import Origin
from .submit import cache_folder
from .verify import Verdict

FORMAT = "rlbench-suite leaderboard 1"
RESULTS = "results.json"
_FOLDERS = ("archives", "boards", "entries")


class Site(NamedTuple):
    """Contents of a site."""

    entries: list[Standing]
    boards: list[Board]
    refused: dict[str, tuple[str, ...]]
    """Reasons for refusing an archive, a sentence each, by its escaped file name."""


def build(
    submissions: Path,
    site: Path,
    *,
    fresh: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Site:
    """Verify all archives and write the site.

    It consists of ``index.html``, ``boards/``, ``entries/``, ``archives/`` and ``results.json``.

    Verdicts are cached by archive, version of the suite and class of machine, so that the next
    build replays only what is new. All files are written to a hidden folder and moved in at the
    end, ``results.json`` first and ``index.html`` last. Files of an earlier build that no longer
    belong to the site are removed.

    Args:
        submissions: the directory of archives.
        site: the directory to write; new, empty, or an earlier site.
        fresh: replay everything, and ignore the cache.
        progress: is called with a description of each step.

    Raises:
        ValueError: ``site`` holds something else, or the log of submissions is damaged.
        OSError: something cannot be read or written.
    """
    if not submissions.is_dir():
        raise OSError(f"There is no directory {submissions}.")
    earlier = _earlier_files(site)
    arrivals = read_log(submissions)
    verdicts, refused = _verdicts(submissions, arrivals, fresh, progress)
    sequences = {arrival.sha256: arrival.sequence for arrival in arrivals[::-1]}
    entries = standings(
        verdicts, sequences, {arrival.sha256 for arrival in arrivals if arrival.confirmed}
    )
    ranked = boards(entries)
    with writing(f"the site {site}"):
        site.mkdir(parents=True, exist_ok=True)
        _write(submissions, site, earlier, Site(entries, ranked, refused))
    return Site(entries, ranked, refused)


def _verdicts(
    submissions: Path, arrivals: Sequence[Arrival], fresh: bool, progress: Callable[[str], None]
) -> tuple[list[Verdict], dict[str, tuple[str, ...]]]:
    """Return the verdicts on accepted archives, and why others are refused, by file name."""
    verdicts: dict[str, Verdict] = {}
    archives, not_archives = list_archives(submissions, arrivals)
    refused: dict[str, tuple[str, ...]] = {name: (reason,) for name, reason in not_archives.items()}
    for path in archives:
        verdict = _judge(path, fresh, progress)
        title = verdict.submission.entry.title if verdict.submission else ""
        logged = [arrival.sha256 for arrival in arrivals if arrival.archive == path.name]
        problems = verdict.problems
        if not problems and path.name != f"{title}.zip":
            problems = (f"It is the archive of {title}, so its name must be {title}.zip.",)
        if not problems and title.lower() in verdicts:
            problems = (
                (
                    f"Another archive of {title} arrived first; names must differ in more than "
                    "capital letters."
                ),
            )
        if not problems and logged and verdict.sha256 not in logged:
            problems = (
                (
                    f"It is not the file that arrived: the log has the SHA-256 {logged[-1]} for "
                    f"{path.name}."
                ),
            )
        if problems:
            refused[path.name] = problems
        else:
            verdicts[title.lower()] = verdict
    return list(verdicts.values()), refused


def _write(submissions: Path, site: Path, earlier: set[str], built: Site) -> None:
    entries, ranked, refused = built
    pages = {f"boards/{board.name}.html": board_page(board) for board in ranked}
    pages |= {f"entries/{entry.title}.html": entry_page(entry, ranked) for entry in entries}
    pages["index.html"] = index_page(ranked, entries, refused)
    archives = {f"archives/{entry.title}.zip": entry for entry in entries}
    names = [RESULTS, *archives, *pages]
    with staging(site) as aside:
        for folder in _FOLDERS:
            (aside / folder).mkdir()
        for name, entry in archives.items():
            shutil.copyfile(submissions / f"{entry.title}.zip", aside / name)
            if file_sha256(aside / name) != entry.verdict.sha256:
                raise OSError(
                    f"{submissions / entry.title}.zip was changed while the site was built."
                )
        for name, text in pages.items():
            (aside / name).write_text(text, encoding="utf-8")
        for name, files in (("before", sorted({*names, *earlier})), (RESULTS, names)):
            text = json.dumps(_results(entries, ranked, refused, files), indent=1, allow_nan=False)
            (aside / name).write_text(text, encoding="utf-8")
        # From here on a killed build leaves a valid site.
        (aside / "before").replace(site / RESULTS)
        for folder in _FOLDERS:
            (site / folder).mkdir(exist_ok=True)
        for name in [*archives, *pages]:
            (aside / name).replace(site / name)
        for name in earlier.difference(names):
            (site / name).unlink(missing_ok=True)
        (aside / RESULTS).replace(site / RESULTS)


def _earlier_files(site: Path) -> set[str]:
    """Return the files of an earlier build that have names of the kind that a build writes."""
    if not site.exists() or (
        site.is_dir() and all(path.name.startswith(".") for path in site.iterdir())
    ):
        return set()
    try:
        earlier = json.loads((site / RESULTS).read_bytes())
        if earlier["format"] != FORMAT:
            raise ValueError
        return {
            name
            for name in map(str, earlier["files"])
            if name.split("/")[0] in _FOLDERS and name.count("/") == 1 and ".." not in name
        }
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(
            f"{site} exists and is not a leaderboard site (no {RESULTS} of one); choose another."
        ) from None


def _results(
    entries: list[Standing], ranked: list[Board], refused: dict[str, Any], names: list[str]
) -> dict[str, Any]:
    """Return all numbers of the pages for ``results.json``."""
    return {
        "format": FORMAT,
        "version": rlbench_suite.__version__,
        "files": names,
        "entries": [_entry_as_json(entry) for entry in entries],
        "boards": [_board_as_json(board) for board in ranked],
        "refused": refused,
    }


def _entry_as_json(entry: Standing) -> dict[str, Any]:
    """Return the numbers of an entry, without those of single episodes."""
    verdict = entry.verdict.model_dump(mode="json", exclude={"cells": {"__all__": {"by_episode"}}})
    return {
        **verdict,
        "title": entry.title,
        "arrived": entry.arrived,
        "violated": [
            card.id for card in entry.violated_cards(cards()[task] for task in entry.costs)
        ],
        "privileged": [card.id for card in entry.privileged],
        "success": {task: _numbers(rate) for task, rate in entry.success.items()},
        "training": {task: training._asdict() for task, training in entry.training.items()},
        "copy_of": entry.copy_of,
        "copied": {task: list(whose) for task, whose in entry.copied.items()},
        "superseded_by": entry.superseded_by,
    }


def _board_as_json(board: Board) -> dict[str, Any]:
    """Return the ranking of a board, and why other entries are not ranked."""
    return {
        "suite": board.suite,
        "budget": board.budget,
        "tasks": [card.id for card in board.tasks],
        "ranking": [_rank_as_json(ranked) for ranked in board.ranking],
        "unranked": dict(board.unranked),
        "unequal_training": board.unequal,
    }


def _rank_as_json(ranked: RankedEntry) -> dict[str, Any]:
    """Return the aggregates of an entry on a board."""
    aggregates = {
        name: _numbers(getattr(ranked.summary, name))
        for name in ("iqm", "mean", "median", "optimality_gap")
    }
    return {
        "rank": ranked.rank,
        "entry": ranked.standing.title,
        **aggregates,
        "constrained_iqm": _numbers(ranked.constrained) if ranked.constrained else None,
        "violated": [card.id for card in ranked.violated],
    }


def _numbers(estimate: Any) -> list[float | None]:
    """Return the point and the ends of the interval; None where there is no interval."""
    return [
        value if math.isfinite(value) else None
        for value in (estimate.point, estimate.low, estimate.high)
    ]


# -- the cache of verdicts -------------------------------------------------------------------------


def _judge(path: Path, fresh: bool, progress: Callable[[str], None]) -> Verdict:
    stored_verdict = _kept_at(path)
    if stored_verdict and not fresh:
        try:
            return Verdict.model_validate_json(stored_verdict.read_bytes())
        except (OSError, ValidationError):
            pass
    verdict = judge(path, progress=lambda doing: progress(f"{path.name}: {doing}"))
    if stored_verdict and verdict.finished:
        with (
            writing(f"a verdict to {stored_verdict.parent}"),
            replacing(stored_verdict) as unfinished,
        ):
            unfinished.write_text(verdict.model_dump_json())
    return verdict


def _kept_at(path: Path) -> Path | None:
    """Return the path of an archive's cached verdict; None in an edited checkout.

    The path names everything on which the verdict depends.
    """
    machine = Computer.this()
    if (machine.git_revision or "").endswith("-dirty"):
        return None
    scores = {
        card.id: {player: score.mean for player, score in card.scores().items()}
        for card in cards().values()
    }
    state = [
        file_sha256(path),
        rlbench_suite.__version__,
        machine.git_revision,
        VERSION,
        Origin.of(machine).bits,
        Origin.of(machine).simulators,
        scores,
    ]
    name = hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()
    return cache_folder() / "verdicts" / f"{name}.json"
