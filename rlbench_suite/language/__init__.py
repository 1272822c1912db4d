"""Show tasks to language models.

There are rows that score replies, conversations, and bridges to trainers.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "ChatClient": "chat",
    "CompositeDataset": "dataset",
    "Endpoint": "chat",
    "Game": "playing",
    "Judge": "judging",
    "Levels": "levels",
    "PuzzleDataset": "dataset",
    "begin": "session",
    "environment_factory": "trl",
    "play_all": "playing",
    "puzzle_of": "rows",
    "rejudge": "playing",
    "score": "rows",
    "verdict": "rows",
}
"""Public names and the files that define them, which are imported on first use."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
