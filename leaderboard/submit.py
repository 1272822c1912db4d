"""An archive to where the others are: a directory, or the checkout of a git repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from .archive import Archive
from .schema import Rejected, Submission
from .verify import Verdict, verify

FOLDER = "submissions"
"""Where archives lie in a checkout whose top level is named as the destination."""


def submit(archive: Path, to: Path, *, progress: Callable[[str], None] = lambda _: None) -> tuple[Path, Verdict]:
    """Verify an archive and put it with the others: all of it or nothing.

    Where ``to`` lies in the checkout of a git repository, the archive is committed there, by the user's own git and
    without anything else that may be staged; pushing it is left to the user.

    Args:
        archive: the file.
        to: the directory of submissions, or the top level of a checkout, whose folder ``submissions`` is then meant.
        progress: told what is being replayed.

    Returns:
        Where it lies now, and the verdict. If that is no acceptance, nothing was written.

    Raises:
        ValueError: an entry of that name and version is there already, or one that took the same actions.
        OSError: something cannot be read or written, or git refuses.
    """
    checkout = _checkout(to)
    if checkout == to.resolve():
        to = to / FOLDER
    with tempfile.TemporaryDirectory(prefix="rlsuite-") as private:
        copy = Path(private, "archive.zip")
        shutil.copyfile(archive, copy)  # what is judged is what is kept, whatever becomes of the file given
        verdict = verify(copy, progress=progress)
        if not verdict.accepted or verdict.submission is None:
            return archive, verdict
        target = to / f"{verdict.submission.entry.title}.zip"
        _refuse_twice(verdict.submission, to)
        to.mkdir(parents=True, exist_ok=True)
        _place(copy, target)
    if checkout:
        _commit(checkout, target, verdict.submission)
    return target, verdict


def _refuse_twice(submission: Submission, folder: Path) -> None:
    title = submission.entry.title
    for path in sorted(folder.glob("*.zip")):
        try:
            with Archive.open(path) as archive:
                other = archive.submission()
        except Rejected:
            if path.stem.lower() == title.lower():
                raise ValueError(f"There is already a file {path}, and it is no archive.") from None
            continue
        if other.entry.title.lower() == title.lower():
            raise ValueError(f"{title} is already in {folder}; a new result needs a new name or --entry-version.")
        if played(submission).items() <= played(other).items():
            raise ValueError(f"The same actions, step for step, are already in {folder} as {other.entry.title}.")


def played(submission: Submission) -> dict[tuple[str, int], str]:
    """Fingerprints of the actions by task and seed."""
    return {(claim.task, cell.seed): cell.actions for claim in submission.tasks for cell in claim.cells}


def _place(source: Path, target: Path) -> None:
    """Copy a file whole or not at all, and never over another."""
    handle, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=target.parent)
    unfinished = Path(name)
    try:
        with os.fdopen(handle, "wb") as file, source.open("rb") as given:
            shutil.copyfileobj(given, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.chmod(0o644)
        try:
            os.link(unfinished, target)
        except FileExistsError:
            raise ValueError(f"There is already a file {target}.") from None
        except OSError:  # a file system without hard links
            if target.exists():
                raise ValueError(f"There is already a file {target}.") from None
            unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


# -- git ---------------------------------------------------------------------------------------------------------------


def _checkout(path: Path) -> Path | None:
    """The top level of the checkout in which a directory lies, if any."""
    there = path.resolve()
    while not there.is_dir():
        there = there.parent
    if not any((folder / ".git").exists() for folder in (there, *there.parents)):
        return None
    return Path(_git(there, "rev-parse", "--show-toplevel").strip()).resolve()


def _commit(checkout: Path, path: Path, submission: Submission) -> None:
    name = path.resolve().relative_to(checkout).as_posix()
    try:
        _git(checkout, "add", "--force", "--", name)
        _git(checkout, "commit", "--quiet", "--message", f"Submission {submission.entry.title}", "--only", "--", name)
    except OSError:
        subprocess.run(["git", "-C", str(checkout), "reset", "--quiet", "--", name], check=False, capture_output=True)
        path.unlink(missing_ok=True)
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
