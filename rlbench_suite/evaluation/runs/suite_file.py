"""Suites of one's own: a YAML file with tasks, budget and seeds.

::

    name: drives-and-logic
    description: Two drives and a hard puzzle.
    budget: quick
    seeds: 10
    tasks:
      - PMSMCurrent-v0
      - id: SAT-v0
        difficulty: hard

A task with keywords is the same as its id with a query, ``SAT-v0?difficulty=hard``, so both name
the same cells. The file is read as plain data: tags, anchors, repeated keys and large files are
refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rlbench_suite.contexts.plain_yaml import fault, read_plain_yaml, read_small_file
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.core.registry import cards, suites
from rlbench_suite.foundation.unknown_names import MAX_QUOTE, unknown

SUFFIXES = (".yaml", ".yml")
_BUDGETS = ("smoke", "quick", "full")


class _Contents(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    description: str = ""
    budget: str
    seeds: int = Field(ge=1, le=2**16)
    tasks: list[str | dict[str, str | int | float | bool]] = Field(min_length=1)


@dataclass(frozen=True)
class SuiteFile:
    """Suite that a file defines."""

    name: str
    description: str
    budget: str
    seeds: int
    tasks: tuple[str, ...]
    """Ids of the tasks. Keywords are part of the id."""
    sha256: str
    """SHA-256 of the file. A run keeps it, so that a changed file does not continue an old run."""

    @property
    def ids(self) -> str:
        """The tasks as the comma-separated list that ``--suite`` also takes."""
        return ",".join(self.tasks)


def names_a_file(suite: str) -> bool:
    """Return True if ``--suite`` names a suite file, not suites and ids."""
    return suite.endswith(SUFFIXES) and "?" not in suite  # an id may name the file of a context


def read_suite_file(path: Path) -> SuiteFile:
    """Read and check a suite file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no suite file, or a key, task or keyword is unknown; the message is one
            sentence.
    """
    data = read_small_file(path, "a suite file")
    try:
        plain = read_plain_yaml(data)
        if not isinstance(plain, dict):
            raise ValueError("it is not a mapping of keys to values")
        for key in plain:
            if key not in _Contents.model_fields:
                raise ValueError(unknown("key", key, _Contents.model_fields))
        if plain.get("tasks") == []:
            raise ValueError("its list of tasks is empty")
        contents = _Contents.model_validate(plain)
        if contents.budget not in _BUDGETS:
            raise ValueError(unknown("budget", contents.budget, _BUDGETS))
        tasks = [_task_id(entry) for entry in contents.tasks]
        if twice := [task for task in dict.fromkeys(tasks) if tasks.count(task) > 1]:
            raise ValueError(f"it names {twice[0]} twice")
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"{path} is not a suite file: {_reason(error)}.") from None
    return SuiteFile(
        name=contents.name,
        description=contents.description,
        budget=contents.budget,
        seeds=contents.seeds,
        tasks=tuple(tasks),
        sha256=hashlib.sha256(data).hexdigest(),
    )


def _task_id(entry: str | Mapping[str, Any]) -> str:
    """Return the full id of an entry of ``tasks``, with its keywords as a query.

    Raises:
        ValueError: there is no such task or keyword, or the keyword has no such value.
    """
    if isinstance(entry, str):
        entry = {"id": entry}
    if not isinstance(name := entry.get("id"), str):
        raise ValueError("a task with keywords also needs its id")
    if name in suites():
        raise ValueError(
            f"{name!r} is a suite, not a task; name its tasks, such as {suites()[name][0]}"
        )
    card = find_card(name)
    if card.registered_id not in cards():
        raise ValueError(unknown("task", name, cards()))
    keywords = {key: value for key, value in entry.items() if key != "id"}
    keywords_of_card = ["context", *["difficulty"] * bool(card.difficulties), *card.settings]
    for key in keywords:
        if key not in keywords_of_card:
            raise ValueError(unknown(f"keyword of {card.id}", key, keywords_of_card))
    return find_card(name, **keywords).id


def _reason(error: Exception) -> str:
    """Return the first fault as a part of a sentence, on one line."""
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"][:2]))
        received = "" if first["type"] == "missing" else f", got {_short(first['input'])}"
        return f"{where}: {first['msg'][0].lower()}{first['msg'][1:]}{received}"
    return fault(error)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MAX_QUOTE else f"{text[:MAX_QUOTE]}..."
