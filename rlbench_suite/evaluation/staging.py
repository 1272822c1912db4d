"""Files written aside and moved in whole, so that neither a full disk nor a killed program leaves half of one."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = ".rlsuite-"
"""Begins the names of unfinished files."""

_ABANDONED = 24 * 3600.0
"""Seconds after which unfinished files count as left behind where folders cannot be locked."""


@contextmanager
def staging(folder: Path) -> Iterator[Path]:
    """Make a hidden folder inside ``folder`` for unfinished files, and remove it afterwards.

    Such folders of programs that were killed are removed first; those of running programs stay.

    Raises:
        OSError: ``folder`` cannot be written.
    """
    with locked(folder):  # nobody clears a folder away between its making and its locking
        _clear(folder)
        aside = Path(tempfile.mkdtemp(prefix=PREFIX, dir=folder))
        held = _hold(aside, wait=False)
    try:
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        if held is not None:
            os.close(held)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Wait until no other program holds ``folder``, and hold it. The system lets go when a program ends.

    Where folders cannot be locked (outside POSIX, on some network drives) nothing is held.
    """
    held = _hold(folder, wait=True)
    try:
        yield
    finally:
        if held is not None:
            os.close(held)


def replace(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; readers see the old or the new one."""
    with staging(path.parent) as aside:
        unfinished = aside / path.name
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)


def _hold(folder: Path, *, wait: bool) -> int | None:
    """Lock a folder; None where that is not possible.

    Raises:
        BlockingIOError: another program holds it, and ``wait`` is not given.
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


def _clear(folder: Path) -> None:
    for left in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):  # another program clears it as well, or it is somebody else's
            held = _hold(left, wait=False)
            if held is not None:
                os.close(held)
            elif time.time() - left.stat().st_mtime < _ABANDONED:
                continue
            if not left.is_symlink():
                shutil.rmtree(left)
