"""Files that a run directory consists of (``run.py`` describes them). No JAX is imported."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path

_OF_CELL = (
    "result.json",
    "policy.safetensors",
    "episodes.parquet",
    "train_episodes.parquet",
    "curve.parquet",
    "trace.parquet",
    "front.parquet",
)
_OF_RUN = (
    "manifest.json",
    "episodes.parquet",
    "train_episodes.parquet",
    "curves.parquet",
    "fronts.parquet",
    "matches.parquet",
    "report.html",
    "workers.log",
    "traces/*.parquet",
    "checkpoints/*",
    "transcripts/*/*/*.jsonl",
    "cells/*/*/*.failed",
    *(f"cells/*/*/*/{name}" for name in _OF_CELL),
)
"""Patterns of the paths in a run directory."""

_MARK = b'"rlbench-suite run '
"""Beginning of the format in every manifest."""


def check_output(path: Path | None) -> None:
    """Refuse to write where a run directory has a file of its own; None stands for no file.

    A command that wrote its output there would destroy a run, even the one that it reads.

    Raises:
        ValueError: the path is that of such a file.
    """
    if path is None:
        return
    # A run's folders may be links, and links may lead into a run.
    for place in (Path(os.path.abspath(path)), path.parent.resolve() / path.name):
        for folder in place.parents:
            inside = place.relative_to(folder).parts
            if any(_fits(inside, pattern) for pattern in _OF_RUN) and _is_run(folder):
                raise ValueError(
                    f"{path} is a file of the run in {folder}, which would be lost; name another "
                    "file to write."
                )


def _fits(names: tuple[str, ...], pattern: str) -> bool:
    patterns = pattern.split("/")
    return len(names) == len(patterns) and all(map(fnmatchcase, names, patterns))


def _is_run(folder: Path) -> bool:
    try:
        manifest = folder / "manifest.json"
        return manifest.is_file() and _MARK in manifest.read_bytes()
    except OSError:
        return False
