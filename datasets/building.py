"""Build a dataset from its recipe, and measure its fingerprint for the catalogue."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rlbench_suite.core.episode import scalar_return
from rlbench_suite.foundation.atomic_files import replacing, writing

from . import storage
from .catalogue import FINGERPRINTS, Entry, Fingerprint
from .recipe import Episode, arithmetic, episodes

Show = Callable[[str, int, int], None]


def build(entry: Entry, *, force: bool, show: Show) -> Path:
    """See :func:`rlbench_suite.datasets.access.build`."""
    storage.refuse_installed(entry, force)
    with writing(f"{entry.id} to {storage.root()}"), storage.staging() as aside:
        dataset = aside / "made"
        dataset.mkdir()
        storage.write(entry, count_episodes(entry, episodes(entry), show), dataset / "data")
        storage.note(entry, dataset / "data", arithmetic())
        installed = storage.install(entry, dataset, force)
    comparison = compare_with_catalogue(entry)
    if comparison.differs:
        warnings.warn(comparison.words, stacklevel=3)
    return installed


class Comparison(NamedTuple):
    """Comparison of a dataset that was built here with the catalogue."""

    differs: bool
    """True if the catalogue has another hash for the same arithmetic and compiler."""
    words: str


def compare_with_catalogue(entry: Entry) -> Comparison:
    """Compare an installed dataset's hash when it was built with that of the catalogue."""
    notes, fingerprint = storage.made_by(storage.folder(entry) / "data"), entry.fingerprint
    here, sha256 = notes["arithmetic"], notes["sha256"]
    if (
        fingerprint is None
        or fingerprint.jaxlib != notes["jaxlib"]
        or here not in fingerprint.sha256
    ):
        return Comparison(
            False, f"The catalogue knows no content for {here} with jaxlib {notes['jaxlib']}."
        )
    if fingerprint.sha256[here] == sha256:
        return Comparison(False, f"Its content is that of the catalogue ({here}).")
    return Comparison(
        True,
        f"{entry.id} was built from its recipe, but its content is not that of the catalogue for "
        f"{here} and jaxlib "
        f"{notes['jaxlib']}: its SHA-256 is {sha256}, and the catalogue says "
        f"{fingerprint.sha256[here]}. The task or "
        "its player has changed since the catalogue was written. In a source checkout, write it "
        "anew: rlsuite-data "
        f"fingerprint {entry.id}",
    )


def count_episodes(
    entry: Entry, recorded_episodes: Iterable[Episode], show: Show
) -> Iterator[Episode]:
    """Yield the episodes and show the progress."""
    show("building", 0, entry.episodes)
    for count, episode in enumerate(recorded_episodes, 1):
        yield episode
        show("building", count, entry.episodes)


def fingerprint(entry: Entry) -> Fingerprint:
    """Measure a dataset that was built here, and write its fingerprint to the catalogue.

    Hashes of other arithmetics stay, unless the recipe, the compiler or the content in this
    arithmetic has changed. Then they are out of date, and the dataset must be measured again in
    every other arithmetic.

    Raises:
        OSError: it is not installed, or the package cannot be written.
    """
    data, listed = storage.folder(entry) / "data", entry.fingerprint
    notes = storage.made_by(data)
    here = notes["arithmetic"]
    same_recipe = listed is not None and (listed.recipe, listed.jaxlib) == (
        entry.recipe_sha256,
        notes["jaxlib"],
    )
    if (
        listed is not None
        and same_recipe
        and listed.sha256.get(here, notes["sha256"]) == notes["sha256"]
    ):
        fingerprint = replace(listed, sha256=listed.sha256 | {here: notes["sha256"]})
    else:
        fingerprint = measure_fingerprint(entry, data, notes)
    table = json.loads(FINGERPRINTS.read_text()) if FINGERPRINTS.exists() else {}
    table[entry.id] = asdict(fingerprint)
    with writing(FINGERPRINTS), replacing(FINGERPRINTS) as unfinished:
        unfinished.write_text(json.dumps(table, indent=2) + "\n")
    return fingerprint


def measure_fingerprint(entry: Entry, data: Path, notes: dict[str, str]) -> Fingerprint:
    """Return the fingerprint of a dataset; ``notes`` has the notes of :func:`.storage.note`."""
    opened, task = storage.open_storage(data), entry.card.build(difficulty=entry.difficulty)
    totals = [
        scalar_return(task, episode["rewards"].astype(np.float64).sum(0))
        for _, episode in storage.read_episodes(opened)
    ]
    return Fingerprint(
        recipe=entry.recipe_sha256,
        steps=opened.total_steps,
        mean_return=float(f"{np.mean(totals):.6g}"),
        megabytes=float(f"{sum(file.stat().st_size for file in data.iterdir()) / 1e6:.3g}"),
        jaxlib=notes["jaxlib"],
        sha256={notes["arithmetic"]: notes["sha256"]},
    )
