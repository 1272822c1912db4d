"""Write files whole or not at all.

Neither a full disk nor a killed program leaves half of one.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}
"""Error numbers of a disk that is full, broken or read-only. All others point to a wrong argument.
"""

PREFIX = ".rlsuite-"
"""Prefix of the hidden folders that hold unfinished files."""

_ABANDONED = 24 * 3600.0
"""Age in seconds at which unfinished files count as abandoned where folders cannot be locked."""


class CannotWrite(OSError):
    """The disk refused a file. The message names the file and the reason."""


@contextmanager
def writing(what: str | Path) -> Iterator[None]:
    """Name what was being written if the disk is full, broken or read-only.

    Raises:
        CannotWrite: the disk refused.
    """
    try:
        yield
    except CannotWrite:
        raise
    except OSError as error:
        if error.errno not in DISK:
            raise
        raise CannotWrite(
            f"Cannot write {what}: {os.strerror(error.errno)}. Nothing of it was kept."
        ) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file to write, then let it replace ``path``.

    Readers see the old file or the new one.

    The folder of ``path`` is made if it does not exist. After a failure no folder stays that was
    made here.

    Raises:
        OSError: no file can be written at ``path``.
    """
    check_file(path)
    new = [folder for folder in path.parents if not folder.exists()]
    try:
        make_folder(path.parent)
        with staging(path.parent) as aside:
            unfinished = aside / path.name
            yield unfinished
            publish(unfinished, path)
    except BaseException:
        for folder in new:  # the deepest first
            with suppress(OSError):
                folder.rmdir()
        raise


def check_file(path: Path | None) -> None:
    """Refuse a path at which no file can be written, before the work on its contents.

    None stands for no file.

    Raises:
        OSError: it is a folder, or lies below a file.
    """
    if path is None:
        return
    if path.is_dir():
        raise IsADirectoryError(
            f"{path} is a folder; name a file to write, such as {path / 'results'}."
        )
    if not (above := next(folder for folder in path.parents if folder.exists())).is_dir():
        raise NotADirectoryError(f"{path} cannot be written, because {above} is a file.")


def publish(unfinished: Path, path: Path) -> None:
    """Rename a finished file or folder to ``path``.

    A power cut at any time leaves all of it or none.

    The system may write a new name to the disk before the contents that it names. So the contents
    are flushed first, then the names in the folder, and the new name last.

    Raises:
        OSError: the system refused; among others, ``path`` is a folder with files.
    """
    for file in unfinished.iterdir() if unfinished.is_dir() else [unfinished]:
        with file.open("r+b") as opened:  # Windows flushes only what may be written
            os.fsync(opened.fileno())
    if unfinished.is_dir():
        flush_names(unfinished)
    unfinished.replace(path)
    flush_names(path.parent)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, so that they survive a power cut.

    Raises:
        OSError: the system refused.
    """
    new = [new_folder for new_folder in (folder, *folder.parents) if not new_folder.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for new_folder in new:
        flush_names(new_folder.parent)


def flush_names(folder: Path) -> None:
    """Flush the names of the files in a folder, so that new ones survive a power cut.

    Windows cannot and need not.
    """
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


@contextmanager
def staging(folder: Path) -> Iterator[Path]:
    """Make a hidden folder inside ``folder`` for unfinished files, and remove it afterwards.

    Folders that killed programs left behind are removed first. Those of running programs stay.

    Raises:
        OSError: ``folder`` cannot be written.
    """
    with locked(
        folder
    ):  # otherwise another program could remove the new folder before it is locked
        clear_abandoned(folder)
        aside = Path(tempfile.mkdtemp(prefix=PREFIX, dir=folder))
        lock = _lock(aside, wait=False)
    try:
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        if lock is not None:
            os.close(lock)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Wait until no other program has locked ``folder``, then lock it.

    The system unlocks it when a program ends.

    Where folders cannot be locked (outside POSIX, on some network drives) this does nothing.
    """
    lock = _lock(folder, wait=True)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def clear_abandoned(folder: Path) -> None:
    """Remove the unfinished files that killed programs left in ``folder``."""
    for unfinished in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):  # another program removes it too, or owns it
            lock = _lock(unfinished, wait=False)
            if lock is not None:
                os.close(lock)
            elif time.time() - unfinished.stat().st_mtime < _ABANDONED:
                continue
            if not unfinished.is_symlink():
                shutil.rmtree(unfinished)


def _lock(folder: Path, *, wait: bool) -> int | None:
    """Lock a folder and return the open file that holds the lock.

    Return None where folders cannot be locked.

    Raises:
        BlockingIOError: another program has locked it, and ``wait`` is false.
    """
    try:
        import fcntl

        file = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        os.close(file)
        raise
    except OSError:
        os.close(file)
        return None
    return file
