"""Add an archive to a directory of archives, which may lie in the checkout of a git repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from rlbench_suite.foundation.atomic_files import locked, staging, writing

from .archive import MAX_ARCHIVE
from .copies import Actions, count_shared_episodes, episodes, is_copy
from .folder import list_archives
from .judge import judge, open_up
from .log import LOG, extend_log, file_sha256, read_log
from .schema import Entry, Submission
from .verify import Verdict

FOLDER = "submissions"
"""Folder of the archives if the destination is the top level of a checkout."""


def submit(
    archive: Path,
    to: Path,
    *,
    confirm_authors: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[Path, Verdict]:
    """Verify an archive, add it to the others and log its arrival: all of it or nothing.

    If ``to`` lies in the checkout of a git repository, the user's git commits the archive and the
    log, and nothing else that is staged. Pushing is left to the user.

    Args:
        archive: the file.
        to: the directory of submissions, or the top level of a checkout, which means its folder
            ``submissions``.
        confirm_authors: the maintainer of the board confirms that the authors whom the archive
            names have sent it. Only then can it be a new version of an entry that is there.
        progress: is called with a description of each step.

    Returns:
        Its new path and the verdict. If the verdict is a rejection, nothing was written.

    Raises:
        ValueError: there is already an entry of that name and version, the name belongs to others,
            or it is a copy.
        OSError: something cannot be read or written, or git refuses.
    """
    checkout = _checkout(to)
    if checkout == to.resolve():
        to = to / FOLDER
    if archive.stat().st_size > MAX_ARCHIVE:
        return archive, judge(archive, progress=progress)  # which says so, and opens nothing
    private = cache_folder()
    private.mkdir(parents=True, exist_ok=True)
    with staging(private) as aside:
        copy = aside / "archive.zip"
        with writing(f"a copy of {archive} in {private}"):
            # So that the file that is judged is the one that is kept.
            shutil.copyfile(archive, copy)
        verdict = judge(copy, progress=progress)
        if not verdict.accepted or verdict.submission is None:
            return archive, verdict
        target = to / f"{verdict.submission.entry.title}.zip"
        with writing(target):
            to.mkdir(parents=True, exist_ok=True)
            # Under the lock nothing arrives between the comparison with the others and the place in
            # the log.
            with staging(to) as unfinished, locked(to):
                if checkout and _is_uncommitted(
                    checkout, target, verdict.sha256
                ):  # an earlier call was killed
                    _commit(checkout, [target, target.with_name(LOG)], verdict.submission)
                    return target, verdict
                _refuse_twice(
                    verdict.submission, verdict.actions_played, to, confirm_authors, progress
                )
                confirmed = verdict.sha256 if confirm_authors else None
                _store(copy, verdict, target, unfinished, checkout, confirmed)
    return target, verdict


def cache_folder() -> Path:
    """Return the user's cache folder of this package."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "rlbench_suite")


def _refuse_twice(
    submission: Submission,
    actions: Actions,
    folder: Path,
    confirmed: bool,
    progress: Callable[[str], None],
) -> None:
    entry = submission.entry
    arrivals = read_log(folder)
    confirmed_before = {arrival.sha256 for arrival in arrivals if arrival.confirmed}
    holders: list[Entry] = []
    """Versions of the name by its owners.

    They are the first to arrive, and later ones that the maintainer has confirmed.
    """
    for path in list_archives(folder, arrivals)[0]:
        progress(f"comparing with {path.name}")
        contents = open_up(path)
        if contents is None:
            if path.stem.lower() == entry.title.lower():
                raise ValueError(f"There is already a file {path}, and it is not an archive.")
            continue
        earlier_entry = contents.submission.entry
        if earlier_entry.title.lower() == entry.title.lower():
            raise ValueError(
                f"{entry.title} is already in {folder}; a new result needs a new name or "
                "--entry-version."
            )
        sha256 = file_sha256(path)
        same_entry = earlier_entry.name.lower() == entry.name.lower() and all(
            sha256 in confirmed_before and holder.may_become(earlier_entry) for holder in holders
        )
        if same_entry:
            holders.append(earlier_entry)
            if not confirmed or not earlier_entry.may_become(entry):
                raise ValueError(_version_refusal(earlier_entry, folder))
        if is_copy(actions, contents.actions_played, same_entry=same_entry):
            shared_episodes = count_shared_episodes(actions, contents.actions_played)
            raise ValueError(
                f"{entry.title} takes the same actions as {earlier_entry.title}, which is already "
                f"in {folder}, at every step of {shared_episodes:,} of "
                f"{episodes(actions):,} episodes."
            )


def _version_refusal(entry: Entry, folder: Path) -> str:
    if not entry.authors:
        return (
            f"{entry.title} in {folder} names no authors, so it has no later version. Choose "
            "another --name."
        )
    return (
        f"{entry.title} in {folder} is by {', '.join(entry.authors)}; a later version must name "
        "them too, and "
        "anybody can type their names. So the maintainer of the board adds it, with submit "
        "--confirm-authors. "
        "Or choose another --name."
    )


def _store(
    source: Path,
    verdict: Verdict,
    target: Path,
    aside: Path,
    checkout: Path | None,
    confirmed: str | None,
) -> None:
    """Place an archive, never over another, and log it. If one of the two fails, neither stays.

    The caller has locked the folder of ``target``; ``aside`` is a folder in it for unfinished
    files.
    """
    folder = target.parent
    log = target.with_name(LOG)
    if os.path.lexists(target):
        raise ValueError(f"There is already a file {target}.")
    before, arrivals = log.read_bytes() if log.exists() else None, read_log(folder)
    archives, _ = list_archives(folder, arrivals)
    # A file that was changed since then stays refused.
    logged = {arrival.archive for arrival in arrivals}
    # Added without submit.
    there = [(path.name, file_sha256(path)) for path in archives if path.name not in logged]
    shutil.copyfile(source, aside / target.name)
    (aside / LOG).write_bytes(
        extend_log(arrivals, [*there, (target.name, verdict.sha256)], confirmed)
    )
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


# -- git -------------------------------------------------------------------------------------------


def _checkout(path: Path) -> Path | None:
    """Return the top level of the checkout that contains a directory, if there is one."""
    there = path.resolve()
    while not there.is_dir():
        there = there.parent
    if not any((folder / ".git").exists() for folder in (there, *there.parents)):
        return None
    return Path(_git(there, "rev-parse", "--show-toplevel").strip()).resolve()


def _is_uncommitted(checkout: Path, target: Path, sha256: str) -> bool:
    """Return whether an archive is in its place and in the log, and no commit has it."""
    if not target.is_file() or file_sha256(target) != sha256:
        return False
    if (target.name, sha256) not in {
        (arrival.archive, arrival.sha256) for arrival in read_log(target.parent)
    }:
        return False
    return not _git(
        checkout, "rev-list", "--all", "-1", "--", target.resolve().relative_to(checkout).as_posix()
    )


def _commit(checkout: Path, paths: list[Path], submission: Submission) -> None:
    names = [path.resolve().relative_to(checkout).as_posix() for path in paths]
    try:
        _git(checkout, "add", "--force", "--", *names)
        _git(
            checkout,
            "commit",
            "--quiet",
            "--message",
            f"Submission {submission.entry.title}",
            "--only",
            "--",
            *names,
        )
    except OSError:
        subprocess.run(
            ["git", "-C", str(checkout), "reset", "--quiet", "--", *names],
            check=False,
            capture_output=True,
        )
        raise


def _git(where: Path, *arguments: str) -> str:
    try:
        process = subprocess.run(
            ["git", "-C", str(where), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise OSError(
            f"{where} is the checkout of a git repository, and git is not installed."
        ) from None
    if process.returncode:
        output = " ".join((process.stderr or process.stdout).split())[:500]
        raise OSError(f"git {arguments[0]} failed in {where}: {output}")
    return process.stdout
