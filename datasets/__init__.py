"""Offline datasets: a catalogue of recipes, and the ways from a recipe or a remote to a dataset that Minari loads.

A dataset is a recipe: task, player, seeds, noise (``catalogue.yaml``). It holds no weights, so anyone can build it,
and the content is known by its hash (``fingerprints.json``). Light to import: Minari, h5py and JAX load when a function
below needs them. Agents and the command line come here through :func:`rlbench_suite.registry.datasets`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .catalogue import Entry, Fingerprint, catalogue, find, of_task, resolve

if TYPE_CHECKING:
    from .storage import Transitions
    from .verification import Verdict

__all__ = [
    "Entry",
    "build",
    "catalogue",
    "configured",
    "download",
    "find",
    "fingerprint",
    "load",
    "of_task",
    "publish",
    "resolve",
    "verify",
]

Show = Callable[[str, int, int], None]
"""Told how far long work is: what is done, how much of it, out of how much."""


def _silent(what: str, done: int, total: int) -> None:
    """Show nothing."""


def build(entry: Entry, *, force: bool = False, show: Show = _silent) -> Path:
    """Make a dataset from its recipe, in Minari's folder; appears whole or not at all. Gives its folder.

    Raises:
        FileExistsError: it is there already, and ``force`` is not given.
        OSError: Minari's folder cannot be written.
        ImportError: the extra ``data`` is not installed.
    """
    from .building import build

    return build(entry, force=force, show=show)


def download(entry: Entry, remote: str, *, force: bool = False, show: Show = _silent) -> Path:
    """Get a dataset from a remote; appears whole and checked or not at all. Gives its folder.

    Raises:
        ValueError: what came is not what the remote's index or the catalogue says, or the remote's name is no address.
        OSError: it is there already and not to be replaced, the remote fails, or Minari's folder cannot be written.
        ImportError: the extra ``data`` is not installed.
    """
    from .remote import download

    return download(entry, remote, force=force, show=show)


def configured() -> str | None:
    """The remote to download from if none is named; None where there is none.

    Raises:
        ValueError: the user's settings cannot be read.
    """
    from .remote import configured

    return configured()


def publish(entries: Sequence[Entry], to: Path, layout: str) -> None:
    """Lay installed datasets out in a folder that can be served as a remote.

    Raises:
        ValueError: no such layout, or a dataset is damaged.
        OSError: a dataset is not installed, or the folder cannot be written.
    """
    from .remote import publish

    publish(entries, to, layout)


def verify(entry: Entry, *, show: Show = _silent) -> Verdict:
    """Check an installed dataset: what it says of itself, its content, and every step replayed in fresh environments.

    Raises:
        ValueError: something is not as the catalogue says; the message says what.
        FileNotFoundError: it is not installed.
    """
    from .verification import verify

    return verify(entry, show=show)


def fingerprint(entry: Entry) -> Fingerprint:
    """Measure a dataset built here, and write down in the catalogue what it is.

    Raises:
        OSError: the package cannot be written.
    """
    from .building import fingerprint

    return fingerprint(entry)


def load(entry: Entry) -> Transitions:
    """The steps of a dataset as flat arrays, for training; builds it from its recipe where it is not installed.

    Raises:
        ValueError: the installed dataset is damaged.
        OSError: Minari's folder cannot be written.
        ImportError: the extra ``data`` is not installed.
    """
    from .storage import is_installed, transitions

    if not is_installed(entry):
        with suppress(FileExistsError):  # another process was faster
            build(entry)
    return transitions(entry)
