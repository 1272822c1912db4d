"""An archive to where the others are: a directory, or the checkout of a git repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from rlbench_suite.evaluation.staging import locked, staging
from rlbench_suite.evaluation.writing import writing

from .copies import Actions, episodes, is_copy, shared
from .folder import list_archives
from .judge import judge, open_up
from .log import LOG, extended, file_sha256, read_log
from .schema import Entry, Submission
from .verify import Verdict

FOLDER = "submissions"
"""Where archives lie in a checkout whose top level is named as the destination."""


def submit(archive: Path, to: Path, *, progress: Callable[[str], None] = lambda _: None) -> tuple[Path, Verdict]:
    """Verify an archive, put it with the others and note its arrival in their log: all of it or nothing.

    Where ``to`` lies in the checkout of a git repository, archive and log are committed there, by the user's own git
    and without anything else that may be staged; pushing them is left to the user.

    Args:
        archive: the file.
        to: the directory of submissions, or the top level of a checkout, whose folder ``submissions`` is then meant.
        progress: told what is being done.

    Returns:
        Where it lies now, and the verdict. If that is no acceptance, nothing was written.

    Raises:
        ValueError: an entry of that name and version is there already, the name is another's, or it is a copy.
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
            shutil.copyfile(archive, copy)  # what is judged is what is kept, whatever becomes of the file given
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
    """The user's cache of this package."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "rlbench_suite")


def _refuse_twice(submission: Submission, played: Actions, folder: Path, progress: Callable[[str], None]) -> None:
    entry, arrivals = submission.entry, read_log(folder)
    logged = {arrival.sha256 for arrival in arrivals}
    holders: list[Entry] = []
    """Versions of the name by those who have it: the first in the log, and who names the authors before."""
    for path in list_archives(folder, arrivals)[0]:
        progress(f"comparing with {path.name}")
        contents = open_up(path)
        if contents is None:
            if path.stem.lower() == entry.title.lower():
                raise ValueError(f"There is already a file {path}, and it is no archive.")
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
                f"{entry.title} takes the same actions, step for step, as {other.entry.title}, which is already in "
                f"{folder}, in {shared(played, contents.played):,} of {episodes(played):,} episodes."
            )


def _kept(entry: Entry, folder: Path) -> str:
    if not entry.authors:
        return f"{entry.title} in {folder} names no authors, so it has no later version. Choose another --name."
    return (
        f"{entry.title} in {folder} is by {', '.join(entry.authors)}; a version of it names its authors too. "
        "Choose another --name."
    )


def _place(source: Path, verdict: Verdict, target: Path, checkout: Path | None) -> None:
    """Put an archive where it belongs, never over another, and log it; nothing stays if one of the two fails."""
    folder, log = target.parent, target.with_name(LOG)
    with staging(folder) as aside, locked(folder):
        if os.path.lexists(target):
            raise ValueError(f"There is already a file {target}.")
        before, arrivals = log.read_bytes() if log.exists() else None, read_log(folder)
        archives, _ = list_archives(folder, arrivals)
        known = {arrival.archive for arrival in arrivals}  # a file that was changed since stays refused
        there = [(path.name, file_sha256(path)) for path in archives if path.name not in known]  # came without submit
        shutil.copyfile(source, aside / target.name)
        (aside / LOG).write_bytes(extended(arrivals, [*there, (target.name, verdict.sha256)]))
        (aside / "before").write_bytes(before or b"")
        for name in (target.name, LOG):
            with (aside / name).open("rb") as file:
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
    """The top level of the checkout in which a directory lies, if any."""
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
