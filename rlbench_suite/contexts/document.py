"""Documents of one's own: data with a structure, such as the roads of a town, as JSON.

A task names the documents that it takes beside its series
(:meth:`~rlbench_suite.core.task.Described.series`). A context gives one by its name, as the path of
a JSON file or as a mapping::

    scenario: my_town.json

The task's own reader checks it. It becomes part of the id by the hash of what it says, whatever its
layout.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rlbench_suite.contexts.plain_yaml import fault
from rlbench_suite.contexts.time_series import Record, sha256_of
from rlbench_suite.foundation.unknown_names import MAX_QUOTE

MAX_BYTES = 2**24
"""Largest size of a file in bytes."""


class Document(NamedTuple):
    """A document that a context may give."""

    name: str
    meaning: str
    check: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    """Function that returns the document with its defaults.

    It raises a ValueError whose text is a part of a sentence.
    """


def read_document(source: Any, document: Document, folder: Path) -> Record:
    """Return the record of a document: its data is JSON with sorted names.

    Args:
        source: path of a JSON file, or the document as a mapping.
        document: the document.
        folder: folder from which a relative path starts.

    Raises:
        ValueError: it is no such document. The message is a part of a sentence.
    """
    if not isinstance(source, Mapping | str | Path):
        raise ValueError(
            f"{document.name} is a JSON file or a mapping, got {str(source)[:MAX_QUOTE]!r}"
        )
    where = (
        document.name
        if isinstance(source, Mapping)
        else f"{document.name} {str(source)[:MAX_QUOTE]!r}"
    )
    try:
        checked = document.check(source if isinstance(source, Mapping) else _read(folder / source))
        data = json.dumps(checked, sort_keys=True, allow_nan=False, separators=(",", ":")).encode()
        if len(data) > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES:,} bytes")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where}: {fault(error)}") from None
    return Record(document.name, (), sha256_of(data), data)


def _read(path: Path) -> Mapping[str, Any]:
    if path.suffix.lower() != ".json":
        raise ValueError("it is not a .json file")
    try:
        if not path.is_file():
            raise ValueError("there is no such file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from None
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES:,} bytes")
    read = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_unique, parse_constant=_refuse)
    if not isinstance(read, dict):
        raise ValueError("it is not a JSON object")
    return read


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(
            f"it has {next(name for name in names if names.count(name) > 1)[:MAX_QUOTE]!r} twice"
        )
    return read


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON")
