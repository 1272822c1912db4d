"""From a recipe to an installed dataset, and to what the catalogue knows of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import numpy as np

from rlbench_suite.episode import scalar_return
from rlbench_suite.evaluation.store import replacing

from . import storage
from .catalogue import FINGERPRINTS, Entry, Fingerprint
from .recipe import Episode, arithmetic, episodes

Show = Callable[[str, int, int], None]


def build(entry: Entry, *, force: bool, show: Show) -> Path:
    """See :func:`rlbench_suite.datasets.build`."""
    storage.refuse_installed(entry, force)
    with storage.staging() as aside:
        made = aside / "made"
        made.mkdir()
        storage.write(entry, counted(entry, episodes(entry), show), made / "data")
        storage.note(made / "data", arithmetic())
        return storage.install(entry, made, force)


def counted(entry: Entry, made: Iterable[Episode], show: Show) -> Iterator[Episode]:
    """Episodes as they pass by, shown."""
    show("building", 0, entry.episodes)
    for done, episode in enumerate(made, 1):
        yield episode
        show("building", done, entry.episodes)


def fingerprint(entry: Entry) -> Fingerprint:
    """What an installed dataset, built here, is: measured, and kept in the catalogue beside other arithmetics' hashes.

    Raises:
        OSError: it is not installed, or the package cannot be written.
    """
    data = storage.folder(entry) / "data"
    made, task = storage.made_by(data), entry.card.build(difficulty=entry.difficulty)
    totals = np.array(
        [scalar_return(task, e["rewards"].astype(np.float64).sum(0)) for _, e in storage.read(storage.opened(data))]
    )
    steps = storage.opened(data).total_steps
    known = entry.fingerprint
    same = known is not None and known.jaxlib == version("jaxlib") and known.steps == steps
    hashes = known.sha256 if known is not None and same else {}
    found = Fingerprint(
        steps=steps,
        mean_return=float(f"{totals.mean():.6g}"),
        score=float(f"{np.mean([entry.card.normalise(t, entry.difficulty) for t in totals]):.4g}"),
        megabytes=float(f"{sum(file.stat().st_size for file in data.iterdir()) / 1e6:.3g}"),
        jaxlib=made["jaxlib"],
        sha256=dict(sorted((hashes | {made["arithmetic"]: made["sha256"]}).items())),
    )
    table = json.loads(FINGERPRINTS.read_text()) if FINGERPRINTS.exists() else {}
    table[entry.id] = asdict(found)
    with replacing(FINGERPRINTS) as unfinished:
        unfinished.write_text(json.dumps(table, indent=2) + "\n")
    return found
