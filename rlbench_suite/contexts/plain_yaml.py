"""Read small YAML files as plain data.

Tags, anchors, aliases, merges, repeated keys and large files are refused.

JSON is YAML, so JSON files are read as well.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import yaml

MAX_BYTES = 2**16
"""Largest size of a file in bytes."""
_MAX_DEPTH = 8
"""Largest number of levels of nested mappings and lists."""


def read_small_file(path: Path, what: str) -> bytes:
    """Return the contents of a file.

    Args:
        path: the file.
        what: the kind of file, as in "a suite file".

    Raises:
        OSError: the file cannot be read.
        ValueError: it is larger than :data:`MAX_BYTES`.
    """
    try:
        if not path.is_file():
            raise FileNotFoundError(2, "there is no such file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise OSError(
            f"Cannot read the {what.partition(' ')[2]} {path}: {error.strerror}."
        ) from None
    if len(data) > MAX_BYTES:
        raise ValueError(f"{path} is not {what}: it is larger than {MAX_BYTES:,} bytes.")
    return data


def read_plain_yaml(data: bytes) -> Any:
    """Return the data of a YAML document that has no tags, anchors, aliases or repeated keys.

    Raises:
        ValueError: it has one of them, is nested too deeply, or is not UTF-8 text.
        YAMLError: it is not YAML.
    """
    text = data.decode()
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise ValueError(f"it has an anchor or alias in line {line}")
        if getattr(event, "tag", None):
            raise ValueError(f"it has a tag in line {line}")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(
            event, yaml.CollectionEndEvent
        )
        if depth > _MAX_DEPTH:
            raise ValueError(f"it is nested more than {_MAX_DEPTH} levels deep in line {line}")
    try:
        return _UniqueKeys(text).get_single_data()
    except OverflowError:  # numbers to the base 60 have no end
        raise ValueError("it has a number that is too large") from None


def fault(error: Exception) -> str:
    """Return what is wrong with a file as a part of a sentence, on one line."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        return f"line {error.problem_mark.line + 1}: {' '.join(str(error.problem).split())}"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    return " ".join(str(error).split()).removesuffix(".")


class _UniqueKeys(yaml.SafeLoader):
    """Loader of plain data that refuses repeated keys and does not merge mappings."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(keys) < len(node.value):
            raise ValueError("a key is not plain text")
        counts = Counter(keys)
        for key in keys:
            if key == "<<" or counts[key] > 1:
                raise ValueError(
                    f"it has the key {key!r} twice" if key != "<<" else "it merges mappings"
                )
        return {
            key: self.construct_object(value, deep=True)
            for key, (_, value) in zip(keys, node.value, strict=True)
        }
