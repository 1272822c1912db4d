"""The catalogue: every dataset as plain data. Reading it needs neither JAX nor Minari."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rlbench_suite import registry
from rlbench_suite.card import TaskCard, unknown

NAMESPACE = "rlsuite"
RECIPES = Path(__file__).with_name("catalogue.yaml")
FINGERPRINTS = Path(__file__).with_name("fingerprints.json")


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """What a dataset was found to be when it was built, by ``rlsuite-data fingerprint``.

    Numbers are those of the arithmetic it was first built in; others differ by their rounding.
    """

    recipe: str
    """Hash of the recipe that was followed."""
    steps: int
    mean_return: float
    """Undiscounted, of an episode."""
    score: float
    """Mean normalised score of its episodes."""
    megabytes: float
    """On disk."""
    jaxlib: str
    """Version of the compiler whose arithmetic the hashes hold."""
    sha256: dict[str, str]
    """Hash of the content by arithmetic (see :func:`.recipe.arithmetic`)."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A dataset and its recipe. All that is needed to make it, to the bit."""

    folder: str
    """Name of the task in ids of datasets, ``hover``."""
    quality: str
    task: str
    """Id of the card."""
    player: str
    """Name of an agent that learns nothing."""
    episodes: int
    first_seed: int
    """Episode ``i`` is the first one of environment seed ``first_seed + i``, on the train split."""
    replay_tolerance: float
    """Largest difference of an observation or reward when it is replayed in another arithmetic."""
    difficulty: str | None = None
    """A tier of the task; the card's default if None."""
    strength: float = 1.0
    """Share of the way from the task's noop to the player's action that is gone."""
    random: float = 0.0
    """How often a uniformly random action is taken instead."""
    astray: float = 0.0
    """How often a whole episode is played at random instead."""
    version: int = 0
    """Changes whenever the content does."""

    @property
    def id(self) -> str:
        """The id by which Minari knows it."""
        return f"{NAMESPACE}/{self.folder}/{self.quality}-v{self.version}"

    @property
    def card(self) -> TaskCard:
        """The card of its task."""
        return registry.card(self.task)

    @property
    def seeds(self) -> range:
        """Environment seeds of its episodes."""
        return range(self.first_seed, self.first_seed + self.episodes)

    @property
    def fingerprint(self) -> Fingerprint | None:
        """What it was found to be; None before it was ever built."""
        known = _fingerprints().get(self.id)
        return None if known is None else Fingerprint(**known)

    @property
    def recipe_sha256(self) -> str:
        """Hash of all that decides about the content; what is not used does not count."""
        free = ("folder", "quality", "version", "replay_tolerance")
        used = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in free}
        recipe = {name: value for name, value in used.items() if value != getattr(type(self), name, None)}
        return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()

    def described(self) -> str:
        """How it was made, in words."""
        words = f"the {self.player} player"
        if self.strength != 1:
            words += f", its actions {self.strength:g} of the way from doing nothing"
        if self.random:
            words += f", one action in {1 / self.random:g} uniformly random"
        if self.astray:
            words += f", one episode in {1 / self.astray:g} by the random player"
        return words


@cache
def _fingerprints() -> dict[str, dict[str, Any]]:
    known: dict[str, dict[str, Any]] = json.loads(FINGERPRINTS.read_text()) if FINGERPRINTS.exists() else {}
    return known


@cache
def catalogue() -> dict[str, Entry]:
    """Every dataset by id, in the order of the file."""
    entries = {}
    for folder, known in yaml.safe_load(RECIPES.read_text()).items():
        for quality, recipe in known["qualities"].items():
            entry = Entry(
                folder=folder,
                quality=quality,
                **recipe,
                **{name: value for name, value in known.items() if name != "qualities"},
            )
            entries[entry.id] = entry
    return entries


def find(dataset_id: str) -> Entry:
    """The dataset of an id; ``rlsuite/`` and the version may be left out.

    Raises:
        ValueError: no such dataset.
    """
    known = catalogue()
    full = dataset_id if dataset_id.startswith(f"{NAMESPACE}/") else f"{NAMESPACE}/{dataset_id}"
    versions = [found for found in known if found.rpartition("-v")[0] == full]
    if full not in known and not versions:
        raise ValueError(unknown("dataset", dataset_id, known))
    return known[full] if full in known else known[versions[-1]]


def of_task(task_id: str) -> dict[str, Entry]:
    """The datasets of a task by quality; empty where it has none."""
    return {found.quality: found for found in catalogue().values() if found.task == task_id}


def resolve(names: str) -> tuple[Entry, ...]:
    """Datasets of a comma-separated list of ids, folders of a task's datasets, and ``all``; each once.

    Raises:
        ValueError: a name is none of these, or nothing is named.
    """
    chosen: dict[str, Entry] = {}
    folders = {found.folder for found in catalogue().values()}
    for name in filter(None, (part.strip() for part in names.split(","))):
        if name == "all":
            found = list(catalogue().values())
        elif (folder := name.removeprefix(f"{NAMESPACE}/")) in folders:
            found = [one for one in catalogue().values() if one.folder == folder]
        else:
            try:
                found = [find(name)]
            except ValueError:
                raise ValueError(unknown("dataset", name, ["all", *folders, *catalogue()])) from None
        chosen |= {one.id: one for one in found}
    if not chosen:
        raise ValueError(f"No dataset named in {names!r}. Known: all, {', '.join([*folders, *catalogue()])}.")
    return tuple(chosen.values())
