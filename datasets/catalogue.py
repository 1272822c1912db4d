"""Catalogue of all datasets as plain data. Reading it needs neither JAX nor Minari."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rlbench_suite.core import registry
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.foundation.unknown_names import unknown

NAMESPACE = "rlsuite"
RECIPES = Path(__file__).with_name("catalogue.yaml")
FINGERPRINTS = Path(__file__).with_name("fingerprints.json")


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """Measurements of a built dataset, written by ``rlsuite-data fingerprint``.

    The numbers belong to the arithmetic in which it was first built. In others they differ by
    rounding.
    """

    recipe: str
    """Hash of the recipe."""
    steps: int
    mean_return: float
    """Mean undiscounted return of an episode."""
    megabytes: float
    """Size on disk."""
    jaxlib: str
    """Version of the compiler for which the hashes hold."""
    sha256: dict[str, str]
    """Hash of the content, by arithmetic (see :func:`.recipe.arithmetic`)."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Dataset and its recipe: everything needed to build it to the bit."""

    folder: str
    """Name of the task in ids of datasets, such as ``hover``."""
    quality: str
    task: str
    """Id of the task's card."""
    player: str
    """Name of an agent that learns nothing."""
    episodes: int
    first_seed: int
    """Episode ``i`` is the first one of environment seed ``first_seed + i``, on the train split."""
    replay_tolerance: float
    """Largest difference of an observation or reward in a replay with another arithmetic."""
    difficulty: str | None = None
    """Difficulty of the task; the card's default if None."""
    strength: float = 1.0
    """Fraction of the way from the task's noop to the player's action."""
    random: float = 0.0
    """Probability of a uniformly random action instead."""
    astray: float = 0.0
    """Probability that the random player plays a whole episode instead."""
    version: int = 0
    """Version, which changes whenever the content does."""

    @property
    def id(self) -> str:
        """Id in Minari."""
        return f"{NAMESPACE}/{self.folder}/{self.quality}-v{self.version}"

    @property
    def namespace_description(self) -> str:
        """Description of the namespace in Minari that holds the datasets of its task."""
        return f"Offline datasets of {self.task}"

    @property
    def card(self) -> TaskCard:
        """Card of its task."""
        return registry.card(self.task)

    @property
    def seeds(self) -> range:
        """Environment seeds of its episodes."""
        return range(self.first_seed, self.first_seed + self.episodes)

    @property
    def fingerprint(self) -> Fingerprint | None:
        """Measurements; None if it was never built."""
        measurements = _fingerprints().get(self.id)
        return None if measurements is None else Fingerprint(**measurements)

    @property
    def score(self) -> float | None:
        """Mean normalised score of its episodes; None if it was never built.

        The anchors of the card set the scale.
        """
        fingerprint = self.fingerprint
        return (
            None
            if fingerprint is None
            else self.card.normalise(fingerprint.mean_return, self.difficulty)
        )

    @property
    def recipe_sha256(self) -> str:
        """Hash of every setting that affects the content and is not at its default."""
        free = ("folder", "quality", "version", "replay_tolerance")
        used = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in free
        }
        recipe = {
            name: value for name, value in used.items() if value != getattr(type(self), name, None)
        }
        return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()

    def described(self) -> str:
        """Return a description of the player.

        It is part of the metadata that downloads are checked against.
        """
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
    fingerprints: dict[str, dict[str, Any]] = (
        json.loads(FINGERPRINTS.read_text()) if FINGERPRINTS.exists() else {}
    )
    return fingerprints


@cache
def catalogue() -> dict[str, Entry]:
    """Return all datasets by id, in the order of the file."""
    entries = {}
    for folder, recipes in yaml.safe_load(RECIPES.read_text()).items():
        for quality, recipe in recipes["qualities"].items():
            entry = Entry(
                folder=folder,
                quality=quality,
                **recipe,
                **{name: value for name, value in recipes.items() if name != "qualities"},
            )
            entries[entry.id] = entry
    return entries


def find(dataset_id: str) -> Entry:
    """Return the dataset with an id, which may lack ``rlsuite/`` and the version.

    Raises:
        ValueError: there is no such dataset.
    """
    entries = catalogue()
    full = dataset_id if dataset_id.startswith(f"{NAMESPACE}/") else f"{NAMESPACE}/{dataset_id}"
    versions = [version_id for version_id in entries if version_id.rpartition("-v")[0] == full]
    if full not in entries and not versions:
        raise ValueError(unknown("dataset", dataset_id, entries))
    return entries[full] if full in entries else entries[versions[-1]]


def of_task(task_id: str) -> dict[str, Entry]:
    """Return the datasets of a task by quality; empty if it has none."""
    return {entry.quality: entry for entry in catalogue().values() if entry.task == task_id}


def resolve(names: str) -> tuple[Entry, ...]:
    """Return the datasets named in a comma-separated list, each once.

    The list may hold ids, tasks (``hover``) and ``all``.

    Raises:
        ValueError: a name is none of these, or nothing is named.
    """
    selected: dict[str, Entry] = {}
    folders = {entry.folder for entry in catalogue().values()}
    for name in filter(None, (listed_name.strip() for listed_name in names.split(","))):
        if name == "all":
            entries = list(catalogue().values())
        elif (folder := name.removeprefix(f"{NAMESPACE}/")) in folders:
            entries = [entry for entry in catalogue().values() if entry.folder == folder]
        else:
            try:
                entries = [find(name)]
            except ValueError:
                raise ValueError(
                    unknown("dataset", name, ["all", *folders, *catalogue()])
                ) from None
        selected |= {selected_entry.id: selected_entry for selected_entry in entries}
    if not selected:
        raise ValueError(
            f"No dataset named in {names!r}. Known: all, {', '.join([*folders, *catalogue()])}."
        )
    return tuple(selected.values())
