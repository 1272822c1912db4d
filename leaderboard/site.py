"""Every archive of a directory to a site of static pages."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

import rlbench_suite
from rlbench_suite.evaluation.machine import Machine
from rlbench_suite.evaluation.protocol import VERSION
from rlbench_suite.evaluation.store import replacing
from rlbench_suite.registry import cards

from .boards import Board, Standing, boards, standings
from .pages import board_page, entry_page, index_page
from .schema import Origin
from .verify import Verdict, verify

FORMAT = "rlbench-suite leaderboard 1"
RESULTS = "results.json"


class Site(NamedTuple):
    """What was built."""

    entries: list[Standing]
    boards: list[Board]
    refused: dict[str, tuple[str, ...]]
    """File name to the reasons, a sentence each."""


def build(
    submissions: Path, site: Path, *, fresh: bool = False, progress: Callable[[str], None] = lambda _: None
) -> Site:
    """Verify all archives and write ``index.html``, ``boards/``, ``entries/``, ``archives/`` and ``results.json``.

    Verdicts are kept in the user's cache, by archive, version of the suite and class of machine, so that building again
    replays what is new. Files of an earlier build that are no longer part of the site are removed; ``index.html`` is
    written last.

    Args:
        submissions: the directory of archives.
        site: the directory to write; new, empty, or an earlier site.
        fresh: replay everything, whatever the cache has.
        progress: told what is being replayed.

    Raises:
        ValueError: ``site`` holds something else.
        OSError: something cannot be read or written.
    """
    if not submissions.is_dir():
        raise OSError(f"There is no directory {submissions}.")
    earlier = _earlier_files(site)
    verdicts: dict[str, Verdict] = {}
    refused: dict[str, tuple[str, ...]] = {}
    for path in sorted(submissions.glob("*.zip"), key=lambda path: (path.name.lower(), path.name)):
        verdict = _judge(path, fresh, progress)
        title = verdict.submission.entry.title if verdict.submission else ""
        problems = verdict.problems
        if not problems and path.name != f"{title}.zip":
            problems = (f"It is the archive of {title}, so its name has to be {title}.zip.",)
        if not problems and title.lower() in verdicts:
            problems = (f"There is another archive of {title}; names differ in more than capital letters.",)
        if problems:
            refused[path.name] = problems
        else:
            verdicts[title.lower()] = verdict
    entries = standings(verdicts.values())
    ranked = boards(entries)
    pages = {f"boards/{board.name}.html": board_page(board) for board in ranked}
    pages |= {f"entries/{entry.title}.html": entry_page(entry, ranked) for entry in entries}
    archives = [f"archives/{entry.title}.zip" for entry in entries]
    pages[RESULTS] = json.dumps(
        _results(entries, ranked, refused, [*pages, *archives, RESULTS, "index.html"]), indent=1
    )
    pages["index.html"] = index_page(ranked, entries, refused)
    for entry, name in zip(entries, archives, strict=True):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        with replacing(site / name) as unfinished:
            shutil.copyfile(submissions / f"{entry.title}.zip", unfinished)
    for name, text in pages.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        with replacing(site / name) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
    for name in earlier - {*pages, *archives}:
        (site / name).unlink(missing_ok=True)
    return Site(entries, ranked, refused)


def _earlier_files(site: Path) -> set[str]:
    """Files that an earlier build wrote, as far as their names are of the kind it writes."""
    if not site.exists() or (site.is_dir() and all(path.name.startswith(".") for path in site.iterdir())):
        return set()
    try:
        earlier = json.loads((site / RESULTS).read_bytes())
        if earlier["format"] != FORMAT:
            raise ValueError
        return {
            name
            for name in map(str, earlier["files"])
            if name.split("/")[0] in ("boards", "entries", "archives") and name.count("/") == 1
        }
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(f"{site} exists and is no leaderboard site (no {RESULTS} of one); choose another.") from None


def _results(entries: list[Standing], ranked: list[Board], refused: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """All numbers of the pages, for programs."""
    return {
        "format": FORMAT,
        "version": rlbench_suite.__version__,
        "files": names,
        "entries": [
            {
                **entry.verdict.model_dump(mode="json"),
                "title": entry.title,
                "copy_of": entry.copy_of,
                "superseded_by": entry.superseded_by,
            }
            for entry in entries
        ],
        "boards": [
            {
                "suite": board.suite,
                "budget": board.budget,
                "tasks": [card.id for card in board.tasks],
                "ranking": [
                    {
                        "rank": place.rank,
                        "entry": place.standing.title,
                        **{
                            name: _numbers(getattr(place.summary, name))
                            for name in ("iqm", "mean", "median", "optimality_gap")
                        },
                    }
                    for place in board.places
                ],
                "unranked": dict(board.unranked),
            }
            for board in ranked
        ],
        "refused": refused,
    }


def _numbers(estimate: Any) -> list[float | None]:
    """Point and interval; null where there is no interval."""
    return [value if math.isfinite(value) else None for value in (estimate.point, estimate.low, estimate.high)]


# -- verdicts are kept -------------------------------------------------------------------------------------------------


def _judge(path: Path, fresh: bool, progress: Callable[[str], None]) -> Verdict:
    kept = _kept_at(path)
    if kept and not fresh:
        try:
            return Verdict.model_validate_json(kept.read_bytes())
        except (OSError, ValidationError):
            pass
    verdict = verify(path, progress=progress)
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with replacing(kept) as unfinished:
            unfinished.write_text(verdict.model_dump_json())
    return verdict


def _kept_at(path: Path) -> Path | None:
    """Where the verdict of an archive lies: a name made of all that it depends on. None in a checkout being edited."""
    machine = Machine.this()
    if (machine.git_revision or "").endswith("-dirty"):
        return None
    with path.open("rb") as file:
        archive = hashlib.file_digest(file, "sha256").hexdigest()
    scores = {card.id: {player: score.mean for player, score in card.scores().items()} for card in cards().values()}
    state = [archive, rlbench_suite.__version__, machine.git_revision, VERSION, Origin.of(machine).bits, scores]
    name = hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "rlbench_suite", "verdicts", f"{name}.json")
