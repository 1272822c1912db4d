"""Build a dataset from its recipe, and measure its fingerprint for the catalogue."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rlbench_suite.atomic_files import replacing, writing
from rlbench_suite.episode import scalar_return

from . import storage
from .catalogue import FINGERPRINTS, Entry, Fingerprint
from .recipe import Episode, arithmetic, episodes

Show = Callable[[str, int, int], None]


def build(entry: Entry, *, force: bool, show: Show) -> Path:
    """See :func:`rlbench_suite.datasets.build`."""
    storage.refuse_installed(entry, force)
    with writing(f"{entry.id} to {storage.root()}"), storage.staging() as aside:
        made = aside / "made"
        made.mkdir()
        storage.write(entry, counted(entry, episodes(entry), show), made / "data")
        storage.note(entry, made / "data", arithmetic())
        place = storage.install(entry, made, force)
    comparison = compared(entry)
    if comparison.differs:
        warnings.warn(comparison.words, stacklevel=3)
    return place


class Comparison(NamedTuple):
    """Comparison of a dataset that was built here with the catalogue."""

    differs: bool
    """True if the catalogue has another hash for the same arithmetic and compiler."""
    words: str


def compared(entry: Entry) -> Comparison:
    """Compare the hash that an installed dataset had when it was built with that of the catalogue."""
    made, known = storage.made_by(storage.folder(entry) / "data"), entry.fingerprint
    here, sha256 = made["arithmetic"], made["sha256"]
    if known is None or known.jaxlib != made["jaxlib"] or here not in known.sha256:
        return Comparison(False, f"The catalogue knows no content for {here} with jaxlib {made['jaxlib']}.")
    if known.sha256[here] == sha256:
        return Comparison(False, f"Its content is that of the catalogue ({here}).")
    return Comparison(
        True,
        f"{entry.id} was built from its recipe, but its content is not that of the catalogue for {here} and jaxlib "
        f"{made['jaxlib']}: its SHA-256 is {sha256}, and the catalogue says {known.sha256[here]}. The task or its "
        "player has changed since the catalogue was written. In a source checkout, write it anew: rlsuite-data "
        f"fingerprint {entry.id}",
    )


def counted(entry: Entry, made: Iterable[Episode], show: Show) -> Iterator[Episode]:
    """Yield the episodes and show the progress."""
    show("building", 0, entry.episodes)
    for done, episode in enumerate(made, 1):
        yield episode
        show("building", done, entry.episodes)


def fingerprint(entry: Entry) -> Fingerprint:
    """Measure a dataset that was built here, and write its fingerprint to the catalogue.

    Hashes of other arithmetics stay, unless the recipe, the compiler or the content in this arithmetic has changed.
    Then they are out of date, and the dataset must be measured again in every other arithmetic.

    Raises:
        OSError: it is not installed, or the package cannot be written.
    """
    data, known = storage.folder(entry) / "data", entry.fingerprint
    made = storage.made_by(data)
    here = made["arithmetic"]
    same_recipe = known is not None and (known.recipe, known.jaxlib) == (entry.recipe_sha256, made["jaxlib"])
    if known is not None and same_recipe and known.sha256.get(here, made["sha256"]) == made["sha256"]:
        found = replace(known, sha256=known.sha256 | {here: made["sha256"]})
    else:
        found = measured(entry, data, made)
    table = json.loads(FINGERPRINTS.read_text()) if FINGERPRINTS.exists() else {}
    table[entry.id] = asdict(found)
    with writing(FINGERPRINTS), replacing(FINGERPRINTS) as unfinished:
        unfinished.write_text(json.dumps(table, indent=2) + "\n")
    return found


def measured(entry: Entry, data: Path, made: dict[str, str]) -> Fingerprint:
    """Return the fingerprint of a dataset; ``made`` has the notes of :func:`.storage.note`."""
    opened, task = storage.opened(data), entry.card.build(difficulty=entry.difficulty)
    totals = [scalar_return(task, episode["rewards"].astype(np.float64).sum(0)) for _, episode in storage.read(opened)]
    return Fingerprint(
        recipe=entry.recipe_sha256,
        steps=opened.total_steps,
        mean_return=float(f"{np.mean(totals):.6g}"),
        megabytes=float(f"{sum(file.stat().st_size for file in data.iterdir()) / 1e6:.3g}"),
        jaxlib=made["jaxlib"],
        sha256={made["arithmetic"]: made["sha256"]},
    )
