"""Build a dataset from its recipe, and measure its fingerprint for the catalogue."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from rlbench_suite.episode import scalar_return
from rlbench_suite.evaluation.writing import replacing, writing

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
        storage.note(made / "data", arithmetic())
        return storage.install(entry, made, force)


def counted(entry: Entry, made: Iterable[Episode], show: Show) -> Iterator[Episode]:
    """Yield the episodes and show the progress."""
    show("building", 0, entry.episodes)
    for done, episode in enumerate(made, 1):
        yield episode
        show("building", done, entry.episodes)


def fingerprint(entry: Entry) -> Fingerprint:
    """Measure a dataset that was built here, and keep its fingerprint beside the hashes of other arithmetics.

    Raises:
        OSError: it is not installed, or the package cannot be written.
    """
    data, known = storage.folder(entry) / "data", entry.fingerprint
    made = storage.made_by(data)
    if known is not None and (known.recipe, known.jaxlib) == (entry.recipe_sha256, made["jaxlib"]):
        found = replace(known, sha256=known.sha256 | {made["arithmetic"]: made["sha256"]})
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
        score=float(f"{entry.card.normalise(float(np.mean(totals)), entry.difficulty):.4f}"),
        megabytes=float(f"{sum(file.stat().st_size for file in data.iterdir()) / 1e6:.3g}"),
        jaxlib=made["jaxlib"],
        sha256={made["arithmetic"]: made["sha256"]},
    )
