"""Log of arrivals: one line for each archive, kept beside the archives and never changed.

An entry can claim any date, but it cannot choose its place in this file. In a git repository the
file is committed with each archive, so the repository keeps its history.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import AwareDatetime, Field, StringConstraints, ValidationError

from .schema import Sha256, Strict

LOG = "log.jsonl"


class Arrival(Strict):
    """One line of the log."""

    sequence: Annotated[int, Field(ge=1)]
    """1, 2, 3 and so on."""
    archive: Annotated[str, StringConstraints(max_length=255)]
    """File name."""
    sha256: Sha256
    arrived: AwareDatetime
    confirmed: bool = False
    """True if the maintainer of the board has confirmed that the named authors sent it.

    Nothing in an archive can.
    """


def read_log(folder: Path) -> list[Arrival]:
    """Return the arrivals in a directory of archives, in order; none if nothing was submitted yet.

    Raises:
        ValueError: the log is damaged.
        OSError: it cannot be read.
    """
    path = folder / LOG
    arrivals: list[Arrival] = []
    for number, line in enumerate(path.read_bytes().splitlines() if path.exists() else [], start=1):
        try:
            arrivals.append(Arrival.model_validate_json(line))
        except ValidationError as error:
            raise ValueError(
                f"{path}, line {number}, is not a line of a log ({error.errors()[0]['msg']})."
            ) from None
        if arrivals[-1].sequence != number:
            raise ValueError(
                f"{path}, line {number}, has the number {arrivals[-1].sequence}; a line was "
                "removed."
            )
    return arrivals


def extend_log(
    arrivals: list[Arrival], archives: Iterable[tuple[str, str]], confirmed: str | None = None
) -> bytes:
    """Return the log with archives added in the given order.

    Archives that it has already are skipped.

    Args:
        arrivals: the log so far.
        archives: file names and SHA-256 of the archives.
        confirmed: SHA-256 of the archive whose authors the maintainer confirms.
    """
    arrivals = list(arrivals)
    logged = {(arrival.archive, arrival.sha256) for arrival in arrivals}
    for name, sha256 in archives:
        if (name, sha256) not in logged:
            number = len(arrivals) + 1
            arrivals.append(
                Arrival(
                    sequence=number,
                    archive=name,
                    sha256=sha256,
                    arrived=datetime.now(UTC),
                    confirmed=sha256 == confirmed,
                )
            )
    return "".join(
        f"{arrival.model_dump_json(exclude_defaults=True)}\n" for arrival in arrivals
    ).encode()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
