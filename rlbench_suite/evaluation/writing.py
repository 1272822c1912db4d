"""Files appear whole or not at all, and what cannot be written is said in one sentence that names it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class CannotWrite(OSError):
    """The system refused to write a file: the disk is full, a quota is reached, the folder is gone."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Name ``path`` in what goes wrong while it is written.

    Raises:
        CannotWrite: the system refused.
    """
    try:
        yield
    except CannotWrite:
        raise
    except OSError as error:
        raise CannotWrite(
            f"Cannot write {path}: {error.strerror or error}. What is stored is whole; make room and run the same "
            "command again."
        ) from None


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
