"""List the archives in a directory in the order in which they arrived."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path

from .archive import MAX_ARCHIVE
from .log import Arrival

_NAME = re.compile(r"[A-Za-z0-9._-]+\.zip")


def list_archives(folder: Path, arrivals: Sequence[Arrival]) -> tuple[list[Path], dict[str, str]]:
    """Return the archives of a folder, and why other files called ``.zip`` are none.

    Archives of the log come first, in its order; then the others, by name.

    Nothing is opened, so no pipe can block and no link can lead elsewhere.

    Returns:
        Paths of the archives; and by escaped name the reason, a sentence, why a file is no archive.
    """
    sequence_of = {arrival.archive: arrival.sequence for arrival in arrivals[::-1]}
    archives = []
    refused = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name.endswith(".zip"):
            if fault := _fault(path):
                refused[escape_name(path.name)] = fault
            else:
                archives.append(path)
    archives.sort(
        key=lambda path: (sequence_of.get(path.name, float("inf")), path.name.lower(), path.name)
    )
    return archives, dict(sorted(refused.items()))


def _fault(path: Path) -> str | None:
    """Return why a path cannot be an archive, or None."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        return "It is not a plain file (a link, a folder, a pipe or a device)."
    if not _NAME.fullmatch(path.name):
        return "Its name is not NAME-vVERSION.zip, of letters, digits, '.', '_' and '-'."
    if status.st_size > MAX_ARCHIVE:
        return f"It has {status.st_size:,} bytes; at most {MAX_ARCHIVE:,} are allowed."
    if not os.access(path, os.R_OK):
        return "It cannot be read."
    return None


def escape_name(name: str) -> str:
    """Return a file name in printable characters.

    Different names stay different, even if they are not UTF-8.
    """
    return "".join(
        c if c.isprintable() and c != "\\" else c.encode("unicode_escape").decode() for c in name
    )
