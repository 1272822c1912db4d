"""Catalogue of recipes for offline datasets, with functions that build or download them for Minari.

The recipe of a dataset names task, player, seeds and noise (``catalogue.yaml``). It needs no
weights, so anyone can build the dataset, and the hash of its content is known
(``fingerprints.json``). This module is light to import: Minari, h5py and JAX load when a function
needs them. Agents and the command line use it through :func:`rlbench_suite.core.registry.datasets`.

The folder has no ``__init__.py``. With one, every ``python -m`` that starts in a clone would import
this folder where it asks for Hugging Face's ``datasets``; without, Python prefers the installed
package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .catalogue import Entry, Fingerprint, catalogue, find, of_task, resolve

if TYPE_CHECKING:
    from .building import Comparison
    from .storage import Transitions
    from .verification import Verdict

__all__ = [
    "Entry",
    "build",
    "catalogue",
    "compare_with_catalogue",
    "configured_remote",
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
"""Callback for progress: name of the work, amount done, total amount."""


def _silent(what: str, finished: int, total: int) -> None:
    """Show nothing."""


def build(entry: Entry, *, force: bool = False, show: Show = _silent) -> Path:
    """Build a dataset from its recipe in Minari's folder, whole or not at all. Return its folder.

    Warn if its content is not that of the catalogue for this class of processors and this compiler.

    Raises:
        FileExistsError: it is installed already, and ``force`` is false.
        OSError: Minari's folder cannot be written.
        ImportError: the extra ``data`` is not installed.
    """
    from .building import build

    return build(entry, force=force, show=show)


def compare_with_catalogue(entry: Entry) -> Comparison:
    """Compare the content of a dataset that was built here with the catalogue.

    Raises:
        OSError: it is not installed.
    """
    from .building import compare_with_catalogue

    return compare_with_catalogue(entry)


def download(entry: Entry, remote: str, *, force: bool = False, show: Show = _silent) -> Path:
    """Download a dataset, which is installed whole and checked or not at all. Return its folder.

    Raises:
        ValueError: the download differs from the remote's index or the catalogue, or ``remote`` is
            not an address.
        OSError: it is installed already and ``force`` is false, the remote fails, or Minari's
            folder cannot be written.
        ImportError: the extra ``data`` is not installed.
    """
    from .remote import download

    return download(entry, remote, force=force, show=show)


def configured_remote() -> str | None:
    """Return the remote in the user's settings, or None.

    Raises:
        ValueError: the settings cannot be read.
    """
    from .remote import configured_remote

    return configured_remote()


def publish(entries: Sequence[Entry], to: Path, layout: str) -> None:
    """Copy installed datasets to a folder that can be served as a remote.

    Raises:
        ValueError: the layout is unknown, or a dataset is damaged.
        OSError: a dataset is not installed, or the folder cannot be written.
    """
    from .remote import publish

    publish(entries, to, layout)


def verify(entry: Entry, *, show: Show = _silent) -> Verdict:
    """Check an installed dataset's metadata and content, and replay every step in fresh envs.

    Raises:
        ValueError: something differs from the catalogue. The message says what.
        FileNotFoundError: it is not installed.
    """
    from .verification import verify

    return verify(entry, show=show)


def fingerprint(entry: Entry) -> Fingerprint:
    """Measure a dataset that was built here, and write its fingerprint to the catalogue.

    Raises:
        OSError: the package cannot be written.
    """
    from .building import fingerprint

    return fingerprint(entry)


def load(entry: Entry) -> Transitions:
    """Return the steps of a dataset as flat arrays for training.

    Build it first if it is not installed.

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
