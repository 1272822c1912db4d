"""Download and publish datasets.

A download is checked against index, size, hash and catalogue before it is installed.

A remote is an address. It has one of two layouts, both plain files beside an ``index.json``:

=====================  =============================================================================
``https://host/path``  also ``http://`` and ``file://``: a folder with
                       ``rlsuite/hover/medium-v0.zip`` and so on
``hf://ORG``           Hugging Face, as Minari lays datasets out: repository ``ORG/rlsuite`` of kind
                       dataset, the files themselves in ``hover/medium-v0/data/``. ``hf://ORG/NAME``
                       names another repository, ``@REVISION`` at the end another revision than
                       ``main``; the variable ``HF_ENDPOINT`` another host, as for Hugging Face's
                       own tools
=====================  =============================================================================

The index says which files to expect. The catalogue of this package says what must be in them. A
hostile remote can make a download fail and nothing else: none of its names or code is used.

The standard library does the transfer. fsspec or huggingface_hub could replace some forty lines,
the request and its error messages, and would bring about ten packages each. Index, sizes, hashes
and unpacking would stay our own: ``hf_hub_download`` has no size limit and refuses mirrors that
serve plain files. Resuming would save little, because a dataset has 9 to 22 MB.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import shutil
import ssl
import stat
import struct
import tomllib
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rlbench_suite.foundation.atomic_files import replacing, writing
from rlbench_suite.foundation.unknown_names import unknown

from . import storage
from .building import Show
from .catalogue import NAMESPACE, Entry, catalogue
from .verification import known_arithmetic

FORMAT = "rlbench-suite datasets 1"
VARIABLE = "RLSUITE_DATA_REMOTE"
LAYOUTS = ("folder", "hf")
INDEX = "index.json"
_NAMESPACE_FILE = "namespace_metadata.json"
"""Name of Minari's file about a namespace."""

_TIMEOUT = 30.0
"""Seconds without a byte after which a download fails."""
_INDEX_LIMIT = 2**20
_SIZE_LIMIT = 2**31
"""Size limit of a file in bytes, far above every dataset of the catalogue."""
_PIECE = 2**16


# -- which remote ----------------------------------------------------------------------------------


def settings_file() -> Path:
    """Return the path of the user's settings, which may name a remote."""
    return Path(
        os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "rlbench_suite", "config.toml"
    )


def configured_remote() -> str | None:
    """Return the remote of ``RLSUITE_DATA_REMOTE``, or else that of the settings, or None.

    The settings name it as ``[data] remote = "..."``.

    Raises:
        ValueError: the settings are not TOML.
    """
    if remote := os.environ.get(VARIABLE):
        return remote
    path = settings_file()
    if not path.exists():
        return None
    try:
        remote = tomllib.loads(path.read_text()).get("data", {}).get("remote")
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{path} cannot be read as TOML with a table [data]: {error}") from None
    if remote is not None and not isinstance(remote, str):
        raise ValueError(f"{path}: remote in [data] must be an address in quotes, got {remote!r}.")
    return remote


class Location(NamedTuple):
    """Parsed address of a remote."""

    base: str
    """URL to which paths are appended. It ends in a slash."""
    layout: str

    @classmethod
    def of(cls, remote: str) -> Location:
        """Parse an address.

        Raises:
            ValueError: it is not the address of a remote.
        """
        scheme, _, address = remote.partition("://")
        if scheme in ("http", "https", "file") and address:
            return cls(remote.rstrip("/") + "/", "folder")
        if scheme == "hf" and (
            match := re.fullmatch(r"([\w.-]+)(?:/([\w.-]+))?(?:@([\w.-]+))?/?", address)
        ):
            owner, name, revision = match.groups()
            host = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
            return cls(
                f"{host}/datasets/{owner}/{name or NAMESPACE}/resolve/{revision or 'main'}/", "hf"
            )
        raise ValueError(
            f"{remote!r} is not a remote: give https://HOST/PATH, file:///PATH or "
            "hf://ORGANISATION[/NAME][@REVISION]."
        )


class File(NamedTuple):
    """File as the index describes it."""

    path: str
    """Path below the base."""
    size: int
    sha256: str


# -- download --------------------------------------------------------------------------------------


def download(entry: Entry, remote: str, *, force: bool, show: Show) -> Path:
    """See :func:`rlbench_suite.datasets.access.download`."""
    location = Location.of(remote)
    storage.refuse_installed(entry, force)
    files = wanted_files(entry, location)
    with writing(f"{entry.id} to {storage.root()}"), storage.staging() as aside:
        dataset = aside / "made"
        (dataset / "data").mkdir(parents=True)
        total, finished = sum(file.size for file in files.values()), 0
        for name, file in files.items():
            to = aside / "archive.zip" if location.layout == "folder" else dataset / name
            fetch(
                file,
                location,
                to,
                lambda got, finished=finished: show("downloading", finished + got, total),
            )
            finished += file.size
        if location.layout == "folder":
            unpack(entry, aside / "archive.zip", dataset)
        check(entry, dataset / "data")
        return storage.install(entry, dataset, force)


def check(entry: Entry, data: Path) -> None:
    """Refuse a dataset that differs from the catalogue.

    Raises:
        ValueError: its metadata or its content differ.
    """
    storage.check_metadata(entry, data)
    content_hash = storage.content_sha256(storage.open_storage(data))
    if known_arithmetic(entry, content_hash) is None:
        raise ValueError(
            f"{entry.id}: the remote's dataset is not the dataset of the catalogue (SHA-256 of its "
            f"content {content_hash}). Nothing was kept. Build it from its recipe: rlsuite-data "
            f"build {entry.id}"
        )


def wanted_files(entry: Entry, location: Location) -> dict[str, File]:
    """Return the files to download for a dataset, by name.

    They are an archive (``""``), or the dataset's own files.

    Raises:
        ValueError: the index is malformed, or lacks the dataset.
        OSError: the remote cannot be reached.
    """
    with closing(_open(location.base + INDEX)) as stream, _reporting(location.base + INDEX):
        text = stream.read(_INDEX_LIMIT + 1)
    try:
        if len(text) > _INDEX_LIMIT:
            raise ValueError(f"longer than {_INDEX_LIMIT} bytes")
        index = json.loads(text)
        if index["format"] != FORMAT or index["layout"] != location.layout:
            raise ValueError(f"format {index['format']!r}, layout {index['layout']!r}")
        datasets = dict(index["datasets"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{location.base}{INDEX} is not an index of format {FORMAT!r}, layout "
            f"{location.layout!r} ({plain(error)})."
        ) from None
    if entry.id not in datasets:
        raise ValueError(
            f"{location.base} has no {entry.id}; it has: "
            f"{plain(', '.join(map(str, datasets))) or 'nothing'}. Build it from its recipe: "
            f"rlsuite-data build {entry.id}"
        )
    names = ("",) if location.layout == "folder" else storage.FILES
    try:
        files = {name: File(**datasets[entry.id][name]) for name in names}
        for name, (path, size, sha256) in files.items():
            if path != path_of(entry, location.layout, name) or not re.fullmatch(
                "[0-9a-f]{64}", sha256
            ):
                raise ValueError(f"path {path!r}, SHA-256 {sha256!r}")
            if type(size) is not int or not 0 < size <= _SIZE_LIMIT:
                raise ValueError(f"size {size!r}")
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{location.base}{INDEX} describes {entry.id} wrongly: {plain(error)}."
        ) from None
    return files


def plain(text_of_remote: object) -> str:
    """Return text of a remote as one line of at most 200 printable characters."""
    text = str(text_of_remote)
    return "".join(c if c.isprintable() else "?" for c in text[:200]) + (
        "..." if len(text) > 200 else ""
    )


def path_of(entry: Entry, layout: str, name: str) -> str:
    """Return the path of a dataset's file in a remote."""
    return (
        f"{entry.id}.zip"
        if layout == "folder"
        else f"{entry.id.removeprefix(f'{NAMESPACE}/')}/{name}"
    )


def fetch(file: File, location: Location, to: Path, show: Any) -> None:
    """Download a file to ``to`` and check its size and hash against the index.

    Raises:
        ValueError: size or hash differ.
        OSError: the remote cannot be reached or breaks off, or the disk is full.
    """
    url = location.base + urllib.parse.quote(file.path)
    digest, got = hashlib.sha256(), 0
    with closing(_open(url)) as stream, to.open("wb") as out:
        while piece := _read(stream, url):
            got += len(piece)
            if got > file.size:
                raise ValueError(
                    f"{url} is longer than the {file.size} bytes its index says; nothing was kept."
                )
            digest.update(piece)
            out.write(piece)
            show(got)
    if got < file.size:
        raise OSError(
            f"{url} broke off after {got} of {file.size} bytes; nothing was kept. Try again."
        )
    if digest.hexdigest() != file.sha256:
        raise ValueError(
            f"{url} is damaged or was tampered with: its SHA-256 is {digest.hexdigest()}, and the "
            f"index says {file.sha256}; nothing was kept."
        )


def _open(url: str) -> Any:
    request = urllib.request.Request(url, headers={"User-Agent": "rlbench-suite"})
    with _reporting(url):
        return urllib.request.urlopen(request, timeout=_TIMEOUT)


def _read(stream: Any, url: str) -> bytes:
    with _reporting(url):
        return bytes(stream.read(_PIECE))


@contextmanager
def _reporting(url: str) -> Iterator[None]:
    """Turn the errors of a transfer from ``url`` into one sentence.

    Raises:
        OSError: the transfer failed.
    """
    try:
        yield
    except urllib.error.HTTPError as error:
        why = "it is not there" if error.code == 404 else f"{error.code} {plain(error.reason)}"
        raise OSError(f"Cannot get {url}: {why}.") from None
    except urllib.error.URLError as error:
        reason: Any = error.reason
        if isinstance(reason, ssl.SSLError):
            why = f"its certificate or encryption is not accepted ({reason.reason or reason})"
        else:
            why = (
                reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason)
            )
        raise OSError(f"Cannot get {url}: {plain(why)}.") from None
    except (OSError, http.client.HTTPException) as error:
        raise OSError(
            f"Cannot get {url}: the connection broke off ({plain(error) or type(error).__name__})."
        ) from None


def unpack(entry: Entry, archive: Path, dataset: Path) -> None:
    """Unpack the two files of a dataset, and refuse an archive that holds anything else.

    Raises:
        ValueError: the archive is not one of a dataset.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            members = opened.infolist()
            if sorted(member.filename for member in members) != sorted(storage.FILES):
                raise ValueError(
                    "it holds "
                    f"{plain(', '.join(repr(m.filename) for m in members[:5])) or 'nothing'}"
                )
            for member in members:
                if (
                    stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG)
                    or member.flag_bits & 1
                ):
                    raise ValueError(f"{member.filename!r} is not a plain file")
                if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ValueError(f"{member.filename!r} is not compressed by deflate")
                if member.file_size > _SIZE_LIMIT:
                    raise ValueError(f"{member.filename!r} would take {member.file_size} bytes")
            for member in members:
                with opened.open(member) as source, (dataset / member.filename).open("wb") as out:
                    shutil.copyfileobj(source, out)  # ZipFile stops at the size checked above
    except (
        ValueError,
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
        EOFError,
        struct.error,
    ) as error:
        raise ValueError(
            f"The archive of {entry.id} is not one of a dataset ({plain(error)}); nothing was kept."
        ) from None


# -- publish ---------------------------------------------------------------------------------------


def publish(entries: Sequence[Entry], to: Path, layout: str) -> None:
    """See :func:`rlbench_suite.datasets.access.publish`."""
    if layout not in LAYOUTS:
        raise ValueError(unknown("layout", layout, LAYOUTS))
    for entry in entries:
        if not storage.is_installed(entry):
            raise FileNotFoundError(
                f"{entry.id} is not installed; build it with: rlsuite-data build {entry.id}"
            )
        check(entry, storage.folder(entry) / "data")
    with writing(f"the remote {to}"):
        to.mkdir(parents=True, exist_ok=True)
        _lay_out(entries, to, layout)


def _lay_out(entries: Sequence[Entry], to: Path, layout: str) -> None:
    path = to / INDEX
    index: dict[str, Any] = {"format": FORMAT, "layout": layout, "datasets": {}}
    if path.exists():
        index = json.loads(path.read_text())
    if index.get("format") != FORMAT or index.get("layout") != layout:
        raise ValueError(
            f"{path} is the index of another layout than {layout!r}; publish to another folder."
        )
    for entry in entries:
        source = storage.folder(entry)
        files = {}
        for name in ("",) if layout == "folder" else storage.FILES:
            published = to / path_of(entry, layout, name)
            with replacing(published) as unfinished:
                if name:
                    shutil.copyfile(source / name, unfinished)
                else:
                    _pack(source, unfinished)
            with published.open("rb") as packed:
                sha256 = hashlib.file_digest(packed, "sha256").hexdigest()
            files[name] = File(
                path_of(entry, layout, name), published.stat().st_size, sha256
            )._asdict()
        index["datasets"][entry.id] = files
    if layout == "hf":
        _describe_namespaces(sorted(index["datasets"]), to)
    _write_json(path, index)


def _describe_namespaces(names: Sequence[str], to: Path) -> None:
    """Write the files that Minari looks for in the repository and in the folder of each task.

    Before Minari downloads ``rlsuite/hover/medium-v0``, it gets the file of each namespace above
    it.
    """
    folders = dict.fromkeys(name.split("/")[1] for name in names)
    namespaces = [f"{NAMESPACE}/{folder}" for folder in folders]
    _write_json(to / _NAMESPACE_FILE, {"datasets": list(names), "namespaces": namespaces})
    for entry in catalogue().values():
        if entry.folder in folders:
            _write_json(
                to / entry.folder / _NAMESPACE_FILE, {"description": entry.namespace_description}
            )


def _write_json(path: Path, value: Any) -> None:
    with replacing(path) as unfinished:
        unfinished.write_text(json.dumps(value, indent=2) + "\n")


def _pack(source: Path, archive: Path) -> None:
    with zipfile.ZipFile(archive, "w") as packed:
        for name in storage.FILES:
            member = zipfile.ZipInfo(name)  # dated 1980, so that equal files give an equal archive
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = (stat.S_IFREG | 0o644) << 16
            with (source / name).open("rb") as file, packed.open(member, "w") as out:
                shutil.copyfileobj(file, out)
