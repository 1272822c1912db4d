"""Runs in object stores: ``--out s3://bucket/run``, or any other URL that fsspec knows.

The run is kept in a temporary folder of this machine. Its files are copied to the store: those of a
cell as soon as it is finished, everything else at the end. A store writes an object whole or not at
all, and ``result.json`` comes last, so a cell without it is not finished. The next program that
opens the run copies the finished cells back.

A lease keeps a second program out; see :class:`_Lease`.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

from rlbench_suite.evaluation.cell import Cell, Event
from rlbench_suite.evaluation.runs.manifest import FAILED_SUFFIX
from rlbench_suite.foundation.atomic_files import CannotWrite
from rlbench_suite.foundation.unknown_names import unknown

EXPIRY = 120.0
"""Seconds without a renewal after which a lease counts as abandoned."""

_RENEWAL = 20.0
_LEASES = ".lease"
_RESULT = "result.json"
_READ_ALWAYS = (_RESULT, "episodes.parquet", "train_episodes.parquet")
"""Files of a cell that every reader needs: its numbers, and the episodes that prove them."""


class RunFolder:
    """Run directory on this machine."""

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.path = name, path

    def keeping(
        self, events: Generator[Event, None, None], cell_path: Callable[[Cell], Path]
    ) -> Generator[Event, None, None]:
        """Pass on the events of an executor.

        Each finished cell is in its place before its event is passed on.
        """
        return events

    def __str__(self) -> str:
        """Return the path or URL as the user knows it."""
        return self.name


def local_folder(run: str) -> Path | None:
    """Return the folder of a run, given as path or ``file:`` URL; None for other URLs."""
    url = urlsplit(run)
    if url.scheme == "file":
        return Path(url2pathname(url.path))
    return None if "://" in run else Path(run)


@contextmanager
def open_store(out: str) -> Iterator[RunFolder]:
    """Open the place of a run.

    Args:
        out: a path, or a URL such as ``s3://bucket/run``, ``gs://bucket/run`` or
            ``file:///folder/run``.

    Raises:
        ImportError: the URL needs a package that is not installed.
        ValueError: the kind of URL is unknown, or what is opened with the place refuses its
            contents.
        OSError: the store cannot be used, or another program is at work in the run.
        CannotWrite: the store refused a file.
    """
    if path := local_folder(out):
        yield RunFolder(str(path), path)
        return
    objects = _Objects(out)
    with tempfile.TemporaryDirectory(prefix="rlsuite-run-") as folder, _Lease(objects) as lease:
        copy = _Copy(objects, lease, Path(folder))
        copy.fetch()
        try:
            yield copy
        except (ValueError, OSError) as error:  # the user knows the URL, not the folder
            renamed_error = type(error)(str(error).replace(folder, objects.url))
            if isinstance(error, OSError) and isinstance(renamed_error, OSError):
                renamed_error.errno = error.errno
            raise renamed_error from None
        finally:
            copy.save()


class Source(NamedTuple):
    """Run to be read.

    Attributes:
        path: folder that has its files.
        name: path or URL as the user knows it.
        url: URL in the store's own spelling; empty for a folder.
    """

    path: Path
    name: str
    url: str = ""

    @property
    def identity(self) -> str:
        """Text that is equal for two sources of the same run."""
        return self.url or str(self.path.resolve())


@contextmanager
def fetch_runs(runs: Sequence[str], tables: Sequence[str] = ()) -> Iterator[list[Source]]:
    """Yield finished runs, to be read.

    The manifests, results and episodes of those at URLs are copied to a temporary folder.

    Args:
        runs: paths, or URLs as :func:`open_store` takes them.
        tables: further files of cells to copy.

    Raises:
        ImportError: a URL needs a package that is not installed.
        ValueError: what is done with the folders refuses their contents.
        OSError: a store cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="rlsuite-runs-") as folder:
        sources = []
        for number, run in enumerate(runs):
            if path := local_folder(run):
                sources.append(Source(path, str(path)))
                continue
            objects = _Objects(run)
            source = Source(Path(folder, str(number), "run"), objects.url, objects.address)
            with objects.using():
                objects.download(
                    source.path, [name for name in objects.names() if _is_needed(name, tables)]
                )
            sources.append(source)
        try:
            yield sources
        except (ValueError, OSError) as error:  # the user knows the URL, not the folder
            message = str(error)
            for source in sources:
                message = message.replace(str(source.path), source.name)
            if message == str(error):
                raise
            raise type(error)(message) from None


def _is_needed(name: str, tables: Sequence[str]) -> bool:
    """Return whether an object is a manifest, or a result or one of the tables of a cell."""
    folder, _, file = name.rpartition("/")
    return name == "manifest.json" or (
        folder.startswith("cells/")
        and (file in _READ_ALWAYS or file in tables or file.endswith(FAILED_SUFFIX))
    )


class _Objects:
    """Objects below a URL. Errors are single sentences that name the URL."""

    def __init__(self, url: str) -> None:
        """Open the store.

        Raises:
            ImportError: the URL needs a package that is not installed.
            ValueError: no store has such a URL.
        """
        url = url.rstrip("/")
        try:
            import fsspec

            # Listings of other programs' objects must be new.
            self.system, self.root = fsspec.url_to_fs(
                url, use_listings_cache=False, skip_instance_cache=True
            )
        except ImportError as error:
            # The extra is for S3. For other stores fsspec itself names the package.
            needed = (
                " Install it with: pip install 'rlbench-suite[cloud]'"
                if urlsplit(url).scheme == "s3"
                else ""
            )
            raise ImportError(f"Cannot use {url}: {error}.{needed}") from None
        except Exception as error:  # stores raise errors of many kinds
            scheme = f"{urlsplit(url).scheme}://"
            schemes = [f"{name}://" for name in fsspec.available_protocols()]
            reason = (
                f"{_reason(error)}."
                if scheme in schemes
                else unknown("kind of URL", scheme, schemes)
            )
            raise ValueError(f"Cannot use {url}: {reason}") from None
        if not urlsplit(url).netloc:
            raise ValueError(f"{url} is no URL of a run; an example is s3://bucket/run.")
        self.url = url
        self.address: str = self.system.unstrip_protocol(self.root)
        """URL in the store's own spelling, equal however the user wrote it."""

    @contextmanager
    def using(self, refusal: type[OSError] = OSError) -> Iterator[None]:
        """Turn the errors of the store into one sentence. Stores raise errors of many kinds.

        Raises:
            OSError: of the given kind.
        """
        try:
            yield
        except Exception as error:
            raise refusal(f"Cannot use {self.url}: {_reason(error)}.") from None

    def names(self, folder: str = "") -> list[str]:
        """Return the names of all objects in a folder and below it, relative to the URL.

        Raises:
            OSError: a name would lead out of the folder to which it is copied.
        """
        root = f"{self.root}/{folder}" if folder else self.root
        try:
            paths = self.system.find(root)
        except FileNotFoundError:
            return []
        names = sorted(name[len(self.root) + 1 :] for name in paths)
        if wrong := [
            name for name in names if Path(name).is_absolute() or ".." in Path(name).parts
        ]:
            raise OSError(f"{self.url} has an object that no run has: {wrong[0][:80]!r}.")
        return names

    def create(self, name: str, content: bytes) -> bool:
        """Write an object unless there is one, and tell whether it was written."""
        try:
            self.system.pipe_file(f"{self.root}/{name}", content, mode="create")
        except OSError:
            if not self.system.exists(f"{self.root}/{name}"):
                raise
            return False
        return True

    def write(self, name: str, content: bytes) -> None:
        self.system.pipe_file(f"{self.root}/{name}", content)

    def read(self, name: str) -> bytes:
        content: bytes = self.system.cat_file(f"{self.root}/{name}")
        return content

    def remove(self, name: str) -> None:
        self.system.rm_file(f"{self.root}/{name}")

    def upload(self, folder: Path, names: list[str]) -> None:
        if names:
            self.system.put(
                [str(folder / name) for name in names], [f"{self.root}/{name}" for name in names]
            )

    def download(self, folder: Path, names: list[str]) -> None:
        for parent in {(folder / name).parent for name in names}:
            parent.mkdir(parents=True, exist_ok=True)
        if names:
            self.system.get(
                [f"{self.root}/{name}" for name in names], [str(folder / name) for name in names]
            )


def _reason(error: Exception) -> str:
    """Return the message of an error in one line, without its full stop."""
    return (" ".join(str(error).split()) or type(error).__name__).rstrip(".")


class _Copy(RunFolder):
    """Copy of a run on this machine, and the objects that it is a copy of."""

    def __init__(self, objects: _Objects, lease: _Lease, path: Path) -> None:
        super().__init__(objects.url, path)
        self.objects, self.lease = objects, lease
        self.saved: dict[str, tuple[int, int]] = {}
        """Sizes and times of the files that are in the store, by name."""

    def fetch(self) -> None:
        """Copy all files but those of unfinished cells.

        Raises:
            OSError: the store cannot be used.
        """
        with self.objects.using():
            names = [name for name in self.objects.names() if not name.startswith(f"{_LEASES}/")]
            finished = {name.rpartition("/")[0] for name in names if name.endswith(f"/{_RESULT}")}
            stored_names = [
                name
                for name in names
                if not name.startswith("cells/") or name.rpartition("/")[0] in finished
            ]
            self.objects.download(self.path, stored_names)
        self.saved = {name: self._state(name) for name in stored_names}

    def keeping(
        self, events: Generator[Event, None, None], cell_path: Callable[[Cell], Path]
    ) -> Generator[Event, None, None]:
        # No cell may lie in the store without the settings it was made with.
        self.save(self.path / "manifest.json")
        try:
            for event in events:
                if event.kind == "finished":
                    self.save(cell_path(event.cell))
                yield event
        finally:
            events.close()

    def save(self, subpath: Path | None = None) -> None:
        """Copy new and changed files to the store.

        Args:
            subpath: a file or folder; None means everything.

        Raises:
            CannotWrite: the store refused, or another program has taken over the run.
        """
        subpath = subpath or self.path
        files = (
            [subpath]
            if subpath.is_file()
            else [file for file in subpath.rglob("*") if file.is_file()]
        )
        names = [file.relative_to(self.path).as_posix() for file in files]
        new = {
            name: self._state(name)
            for name in names
            if not any(p.startswith(".") for p in Path(name).parts)
        }
        new = {name: state for name, state in new.items() if self.saved.get(name) != state}
        if not new:
            return
        self.lease.check()
        with self.objects.using(CannotWrite):
            for last in (False, True):
                self.objects.upload(
                    self.path, [name for name in new if (Path(name).name == _RESULT) == last]
                )
        self.saved |= new

    def _state(self, name: str) -> tuple[int, int]:
        status = (self.path / name).stat()
        return status.st_size, status.st_mtime_ns


class _Lease:
    """Right of one program to write to a run in an object store.

    Object stores have no locks that end with a program. The holder writes a numbered object and
    renews it. A program that finds the highest one abandoned creates the next number, which the
    store lets only one program do. An object counts as abandoned two minutes after its last
    renewal, or at once if its process was on this machine and has ended. The clocks of the machines
    must agree to within a minute.
    """

    def __init__(self, objects: _Objects) -> None:
        self.objects = objects
        self.number = 0
        self.renewed = _uptime()
        """Time of the last renewal."""
        self.lost = False
        self.ended = threading.Event()
        self.renewing = threading.Thread(target=self._renew, daemon=True)

    def __enter__(self) -> _Lease:
        """Take the lease.

        Raises:
            OSError: another program holds it, or the store cannot be used.
        """
        with self.objects.using():
            numbers = self._numbers()
            if numbers and (holder := self._holder(numbers[-1])):
                refusal = f"another program is at work in it ({holder})"
            else:
                self.number = (numbers or [0])[-1] + 1
                if (
                    self.objects.create(self._name(self.number), self._content())
                    and self._numbers()[-1] == self.number
                ):
                    for number in numbers:
                        with suppress(FileNotFoundError):
                            self.objects.remove(self._name(number))
                    self.renewing.start()
                    return self
                refusal = "another program has begun to work in it"
            raise OSError(refusal)

    def __exit__(self, *_: object) -> None:
        """Give the lease back."""
        self.ended.set()
        self.renewing.join()
        if not self.lost:
            with suppress(Exception):  # it expires
                self.objects.remove(self._name(self.number))

    def check(self) -> None:
        """Refuse to write without the lease.

        Raises:
            CannotWrite: another program has taken over, or the lease could not be renewed in time.
        """
        if self.lost or _uptime() - self.renewed > EXPIRY:
            raise CannotWrite(
                f"Cannot write to {self.objects.url}: this program was out of touch with it for "
                "too long, and another "
                "may be at work in it. Run the same command again."
            )

    def _renew(self) -> None:
        while not self.ended.wait(_RENEWAL):
            with suppress(Exception):  # an unreachable store may come back before the lease expires
                numbers, now = self._numbers(), _uptime()
                if not numbers or numbers[-1] != self.number:
                    self.lost = True
                    return
                self.objects.write(self._name(self.number), self._content())
                self.renewed = now

    def _numbers(self) -> list[int]:
        return [int(name.rpartition("/")[2]) for name in self.objects.names(_LEASES)]

    def _name(self, number: int) -> str:
        return f"{_LEASES}/{number:09}"

    def _content(self) -> bytes:
        return json.dumps(
            {"host": socket.gethostname(), "process": os.getpid(), "time": time.time()}
        ).encode()

    def _holder(self, number: int) -> str | None:
        """Describe the holder of a lease; return None if it is abandoned."""
        try:
            holder: dict[str, Any] = json.loads(self.objects.read(self._name(number)))
        except FileNotFoundError:  # given back just now
            return None
        silent = time.time() - holder["time"]
        if silent > EXPIRY or (
            holder["host"] == socket.gethostname() and not _lives(holder["process"])
        ):
            return None
        last_sign = f"{silent:.0f} s ago"
        if silent < 0:
            last_sign = f"whose clock is {-silent:.0f} s ahead of the clock here"
        return (
            f"process {holder['process']} on {holder['host']}, {last_sign}; if it was killed, "
            f"wait until {EXPIRY:.0f} s have passed"
        )


def _uptime() -> float:
    """Return a time in seconds by a clock that nobody sets.

    Where it can, it goes on while the machine sleeps.
    """
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


def _lives(process: int) -> bool:
    """Tell whether a process of this machine exists.

    On Windows asking would end it, so it counts as alive.
    """
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to another user
        return True
    return True
