"""Add an archive to a directory of archives, which may lie in the checkout of a git repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from rlbench_suite.evaluation.writing import locked, staging, writing

from .copies import Actions, episodes, is_copy, shared
from .folder import list_archives
from .judge import judge, open_up
from .log import LOG, extended, file_sha256, read_log
from .schema import Entry, Submission
from .verify import Verdict

FOLDER = "submissions"
"""Folder of the archives if the destination is the top level of a checkout."""


def submit(archive: Path, to: Path, *, progress: Callable[[str], None] = lambda _: None) -> tuple[Path, Verdict]:
    """Verify an archive, add it to the others and log its arrival: all of it or nothing.

    If ``to`` lies in the checkout of a git repository, the user's git commits the archive and the log, and nothing else
    that is staged. Pushing is left to the user.

    Args:
        archive: the file.
        to: the directory of submissions, or the top level of a checkout, which means its folder ``submissions``.
        progress: is called with a description of each step.

    Returns:
        Its new path and the verdict. If the verdict is a rejection, nothing was written.

    Raises:
        ValueError: there is already an entry of that name and version, the name belongs to others, or it is a copy.
        OSError: something cannot be read or written, or git refuses.
    """
    checkout = _checkout(to)
    if checkout == to.resolve():
        to = to / FOLDER
    private = cache_folder()
    private.mkdir(parents=True, exist_ok=True)
    with staging(private) as aside:
        copy = aside / "archive.zip"
        with writing(f"a copy of {archive} in {private}"):
            shutil.copyfile(archive, copy)  # so that the file that is judged is the one that is kept
        verdict = judge(copy, progress=progress)
        if not verdict.accepted or verdict.submission is None:
            return archive, verdict
        _refuse_twice(verdict.submission, verdict.played, to, progress)
        target = to / f"{verdict.submission.entry.title}.zip"
        with writing(target):
            to.mkdir(parents=True, exist_ok=True)
            _place(copy, verdict, target, checkout)
    return target, verdict


def cache_folder() -> Path:
    """Return the user's cache folder of this package."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "rlbench_suite")


def _refuse_twice(submission: Submission, played: Actions, folder: Path, progress: Callable[[str], None]) -> None:
    entry, arrivals = submission.entry, read_log(folder)
    logged = {arrival.sha256 for arrival in arrivals}
    holders: list[Entry] = []
    """Versions of the name by its owners: the first in the log, and later ones that name the same authors."""
    for path in list_archives(folder, arrivals)[0]:
        progress(f"comparing with {path.name}")
        contents = open_up(path)
        if contents is None:
            if path.stem.lower() == entry.title.lower():
                raise ValueError(f"There is already a file {path}, and it is not an archive.")
            continue
        other = contents.submission
        if other.entry.title.lower() == entry.title.lower():
            raise ValueError(f"{entry.title} is already in {folder}; a new result needs a new name or --entry-version.")
        same_entry = (
            other.entry.name.lower() == entry.name.lower()
            and file_sha256(path) in logged
            and all(holder.may_become(other.entry) for holder in holders)
        )
        if same_entry:
            holders.append(other.entry)
            if not other.entry.may_become(entry):
                raise ValueError(_kept(other.entry, folder))
        if is_copy(played, contents.played, same_entry=same_entry):
            raise ValueError(
                f"{entry.title} takes the same actions as {other.entry.title}, which is already in {folder}, at every "
                f"step of {shared(played, contents.played):,} of {episodes(played):,} episodes."
            )


def _kept(entry: Entry, folder: Path) -> str:
    if not entry.authors:
        return f"{entry.title} in {folder} names no authors, so it has no later version. Choose another --name."
    return (
        f"{entry.title} in {folder} is by {', '.join(entry.authors)}; a later version must name them too. "
        "Choose another --name."
    )


def _place(source: Path, verdict: Verdict, target: Path, checkout: Path | None) -> None:
    """Place an archive, never over another, and log it. If one of the two fails, neither stays."""
    folder, log = target.parent, target.with_name(LOG)
    with staging(folder) as aside, locked(folder):
        if os.path.lexists(target):
            raise ValueError(f"There is already a file {target}.")
        before, arrivals = log.read_bytes() if log.exists() else None, read_log(folder)
        archives, _ = list_archives(folder, arrivals)
        known = {arrival.archive for arrival in arrivals}  # a file that was changed since then stays refused
        there = [(path.name, file_sha256(path)) for path in archives if path.name not in known]  # added without submit
        shutil.copyfile(source, aside / target.name)
        (aside / LOG).write_bytes(extended(arrivals, [*there, (target.name, verdict.sha256)]))
        (aside / "before").write_bytes(before or b"")
        for name in (target.name, LOG):
            with (aside / name).open("r+b") as file:  # Windows flushes only what may be written
                os.fsync(file.fileno())
        try:
            (aside / LOG).replace(log)  # first, so that an arrival is never forgotten
            (aside / target.name).replace(target)
            if checkout and verdict.submission:
                _commit(checkout, [target, log], verdict.submission)
        except BaseException:
            target.unlink(missing_ok=True)
            if before is None:
                log.unlink(missing_ok=True)
            else:
                (aside / "before").replace(log)
            raise


# -- git ---------------------------------------------------------------------------------------------------------------


def _checkout(path: Path) -> Path | None:
    """Return the top level of the checkout that contains a directory, if there is one."""
    there = path.resolve()
    while not there.is_dir():
        there = there.parent
    if not any((folder / ".git").exists() for folder in (there, *there.parents)):
        return None
    return Path(_git(there, "rev-parse", "--show-toplevel").strip()).resolve()


def _commit(checkout: Path, paths: list[Path], submission: Submission) -> None:
    names = [path.resolve().relative_to(checkout).as_posix() for path in paths]
    try:
        _git(checkout, "add", "--force", "--", *names)
        _git(checkout, "commit", "--quiet", "--message", f"Submission {submission.entry.title}", "--only", "--", *names)
    except OSError:
        subprocess.run(["git", "-C", str(checkout), "reset", "--quiet", "--", *names], check=False, capture_output=True)
        raise


def _git(where: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(where), *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise OSError(f"{where} is the checkout of a git repository, and git is not installed.") from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[:500]
        raise OSError(f"git {arguments[0]} failed in {where}: {said}")
    return done.stdout
