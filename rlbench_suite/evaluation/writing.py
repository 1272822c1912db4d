"""What a disk refuses is said in one sentence that names it, and a file appears whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}
"""What the system says of a disk that is full, broken or read-only. Other refusals are of wrong arguments."""


class CannotWrite(OSError):
    """The disk refused a file. The message says which file and why."""


@contextmanager
def writing(what: str | Path) -> Iterator[None]:
    """Say what was being written when the disk is full, broken or read-only.

    Raises:
        CannotWrite: it is.
    """
    try:
        yield
    except CannotWrite:
        raise
    except OSError as error:
        if error.errno not in DISK:
            raise
        raise CannotWrite(f"Cannot write {what}: {os.strerror(error.errno)}. Nothing of it was kept.") from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a file to write that takes the place of ``path`` when all went well; readers see the old or the new one."""
    unfinished = path.with_name(f".{path.name}.tmp")
    try:
        yield unfinished
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
