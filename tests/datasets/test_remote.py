"""Download from real servers on this machine: whole and checked, or one sentence and no files."""

from __future__ import annotations

import errno
import hashlib
import http.server
import json
import re
import shutil
import ssl
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import minari
import pytest
from folders import visible
from minari import namespace

from rlbench_suite.datasets import access, remote, storage
from rlbench_suite.datasets.catalogue import Entry

ARCHIVE = "rlsuite/hover/random-v0.zip"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Server of the files of a folder.

    It can break off half-way and serve Hugging Face's addresses, redirects included.
    """

    def __init__(self, *arguments: Any, break_off: bool, **more: Any) -> None:
        self.break_off = break_off
        super().__init__(*arguments, **more)

    def do_GET(self) -> None:
        prefix = "/datasets/lab/rlsuite/resolve/main/"
        if self.path.startswith(prefix):
            where = "/cdn/" + self.path.removeprefix(prefix)
            self.send_response(302)
            self.send_header("Location", where)
            self.end_headers()
            return
        self.path = self.path.removeprefix("/cdn")
        super().do_GET()

    def copyfile(self, source: Any, out: Any) -> None:
        content = source.read()
        if self.break_off and not self.path.endswith(".json"):
            out.write(content[: len(content) // 2])
            self.close_connection = True
        else:
            out.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(
    folder: Path, *, break_off: bool = False, certificate: Path | None = None
) -> Iterator[str]:
    def handler(*arguments: Any) -> Handler:
        return Handler(*arguments, directory=str(folder), break_off=break_off)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, certificate.with_suffix(".key"))
            server.socket = context.wrap_socket(server.socket, server_side=True)
            scheme = "https"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"{scheme}://localhost:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="session")
def published(shelf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shelf's dataset laid out as a folder remote."""
    to = tmp_path_factory.mktemp("published")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINARI_DATASETS_PATH", str(shelf))
        access.publish([access.find("hover/random")], to, "folder")
    return to


@pytest.fixture
def changed_remote(published: Path, tmp_path: Path) -> Path:
    """A copy of the remote, to be changed."""
    return Path(shutil.copytree(published, tmp_path / "remote"))


def reindex(folder: Path, **changes: Any) -> None:
    """Make the index fit the archive as it is now, as who controls the remote could."""
    content = (folder / ARCHIVE).read_bytes()
    index = json.loads((folder / "index.json").read_text())
    fields = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()} | changes
    index["datasets"]["rlsuite/hover/random-v0"][""].update(fields)
    (folder / "index.json").write_text(json.dumps(index))


def is_installed(root: Path, entry: Entry) -> bool:
    is_there = (root / entry.id / "data" / "main_data.hdf5").exists()
    assert not list(root.glob(".rlsuite-*"))
    return is_there and minari.load_dataset(entry.id).total_episodes == entry.episodes


def test_a_folder_over_file(
    call: Callable[..., tuple], published: Path, root: Path, entry: Entry
) -> None:
    code, out, err = call("download", "hover/random", "--remote", published.as_uri())
    assert (code, err) == (0, "")
    assert f"{entry.id} is installed" in out
    assert is_installed(root, entry)
    code, out, _ = call("download", "hover/random", "--remote", published.as_uri())
    assert code == 0
    assert "is already installed" in out


def test_a_folder_over_http_named_by_the_environment(
    call: Callable[..., tuple],
    published: Path,
    root: Path,
    entry: Entry,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(published) as address:
        monkeypatch.setenv("RLSUITE_DATA_REMOTE", address)
        assert call("download", "hover/random")[0] == 0
    assert is_installed(root, entry)


def test_a_folder_over_https(
    call: Callable[..., tuple],
    published: Path,
    root: Path,
    entry: Entry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not shutil.which("openssl"):
        pytest.skip("a certificate needs openssl")
    certificate = tmp_path / "own.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2"]
    files = ["-keyout", certificate.with_suffix(".key"), "-out", certificate]
    subprocess.run([*command, *names, *files], check=True, capture_output=True)
    with serving(published, certificate=certificate) as address:
        code, _, err = call("download", "hover/random", "--remote", address)
        assert code == 2
        assert "certificate" in err  # nobody vouches for it
        assert visible(root) == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert call("download", "hover/random", "--remote", address)[0] == 0
    assert is_installed(root, entry)


def test_hugging_faces_layout(
    call: Callable[..., tuple],
    shelf: Path,
    root: Path,
    entry: Entry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repository = tmp_path / "repository"
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(shelf))
    assert call("publish", "hover/random", "--to", str(repository), "--layout", "hf")[0] == 0
    assert json.loads((repository / "namespace_metadata.json").read_text())["datasets"] == [
        entry.id
    ]
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(root))
    with serving(repository) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        code, _, err = call("download", "hover/random", "--remote", "hf://lab")
        assert (code, err) == (0, "")
    assert is_installed(root, entry)
    assert remote.Location.of("hf://lab/name@v2").base.endswith("/datasets/lab/name/resolve/v2/")


def test_what_is_published_lies_where_minaris_own_remote_looks(
    shelf: Path, entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Minari maps ``rlsuite/hover/random-v0`` to a repository and a path.

    They are ``ORG/rlsuite`` and ``hover/random-v0/data``.
    """
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(shelf))
    access.publish([entry], tmp_path / "r", "hf")
    metadata = json.loads(
        (tmp_path / "r" / "hover" / "random-v0" / "data" / "metadata.json").read_text()
    )
    assert metadata["dataset_id"] == entry.id


class Hub:
    """The part of ``huggingface_hub.HfApi`` that Minari uses.

    It stands over a folder with the files of one repository.
    """

    folder: Path

    def __init__(self, token: str | None = None) -> None:
        """Take a token, and need none."""

    def list_datasets(self, author: str, dataset_name: str | None = None) -> list[SimpleNamespace]:
        return [SimpleNamespace(id=f"{author}/rlsuite")]

    def hf_hub_download(self, *, filename: str, local_dir: Path | None = None, **_: Any) -> str:
        if not (self.folder / filename).is_file():
            raise EntryNotFoundError(f"404 Client Error: {filename}")
        if local_dir is None:
            return str(self.folder / filename)
        (local_dir / filename).parent.mkdir(parents=True, exist_ok=True)
        return str(shutil.copyfile(self.folder / filename, local_dir / filename))

    def snapshot_download(self, *, allow_patterns: str, local_dir: Path, **_: Any) -> None:
        for path in self.folder.rglob("*"):
            name = path.relative_to(self.folder).as_posix()
            if path.is_file() and fnmatch(name, allow_patterns):
                self.hf_hub_download(filename=name, local_dir=local_dir)


class EntryNotFoundError(Exception):
    """The exception of that name in ``huggingface_hub.errors``."""


def test_minaris_own_download_gets_what_is_published(
    shelf: Path, root: Path, entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Minari is not changed, and a folder plays the library of the hub.

    The extra ``data`` does not bring that library.
    """
    hub, errors = ModuleType("huggingface_hub"), ModuleType("huggingface_hub.errors")
    hub.HfApi = Hub  # type: ignore[attr-defined]
    errors.EntryNotFoundError = EntryNotFoundError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    monkeypatch.setitem(sys.modules, "huggingface_hub.errors", errors)
    monkeypatch.delitem(sys.modules, "minari.storage.remotes.huggingface", raising=False)
    monkeypatch.setattr(Hub, "folder", tmp_path / "r", raising=False)
    monkeypatch.setenv("MINARI_REMOTE", "hf://lab")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(shelf))
    access.publish([entry], tmp_path / "r", "hf")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(root))
    minari.download_dataset(entry.id)
    assert is_installed(root, entry)
    assert access.verify(entry).difference == 0
    assert sorted(namespace.list_local_namespaces()) == ["rlsuite", "rlsuite/hover"]
    about = namespace.get_namespace_metadata("rlsuite/hover")
    assert about == {"description": "Offline datasets of rlsuite/QuadcopterHover-v0"}


def truncate(folder: Path) -> None:
    path = folder / ARCHIVE
    path.write_bytes(path.read_bytes()[:-100])


def lengthen(folder: Path) -> None:
    with (folder / ARCHIVE).open("ab") as file:
        file.write(b"more")


def one_bit(folder: Path) -> None:
    content = bytearray((folder / ARCHIVE).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / ARCHIVE).write_bytes(content)


def missing_file(folder: Path) -> None:
    (folder / ARCHIVE).unlink()


def missing_index(folder: Path) -> None:
    (folder / "index.json").unlink()


def no_index(folder: Path) -> None:
    (folder / "index.json").write_text("<html>Not here</html>")


def huge_index(folder: Path) -> None:
    (folder / "index.json").write_text("[" * 2**21)


def nested_index(folder: Path) -> None:
    (folder / "index.json").write_text("[" * 500_000 + "]" * 500_000)


def index_without_it(folder: Path) -> None:
    (folder / "index.json").write_text(
        json.dumps({"format": remote.FORMAT, "layout": "folder", "datasets": {}})
    )


def other_layout(folder: Path) -> None:
    (folder / "index.json").write_text(
        json.dumps({"format": remote.FORMAT, "layout": "hf", "datasets": {}})
    )


def path_elsewhere(folder: Path) -> None:
    reindex(folder, path="../../etc/passwd")


def wrong_size(folder: Path) -> None:
    reindex(folder, size=-1)


def rewrite_archive(
    change: Callable[[zipfile.ZipFile, dict[str, bytes]], None],
) -> Callable[[Path], None]:
    """Make an archive anew by ``change`` from its members, with an index that fits."""

    def change_archive(folder: Path) -> None:
        path = folder / ARCHIVE
        with zipfile.ZipFile(path) as old:
            members = {name: old.read(name) for name in old.namelist()}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
            change(new, members)
        reindex(folder)

    return change_archive


def write_all(new: zipfile.ZipFile, members: dict[str, bytes]) -> None:
    for name, content in members.items():
        new.writestr(name, content)


def climbing(new: zipfile.ZipFile, members: dict[str, bytes]) -> None:
    write_all(new, members)
    new.writestr("../../outside", b"x")


def absolute(new: zipfile.ZipFile, members: dict[str, bytes]) -> None:
    new.writestr("/tmp/outside", b"x")


def link(new: zipfile.ZipFile, members: dict[str, bytes]) -> None:
    info = zipfile.ZipInfo("data/main_data.hdf5")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    new.writestr(info, "/etc/passwd")
    new.writestr("data/metadata.json", members["data/metadata.json"])


def twice(new: zipfile.ZipFile, members: dict[str, bytes]) -> None:
    write_all(new, members)
    with pytest.warns(UserWarning, match="Duplicate"):
        new.writestr("data/metadata.json", b"{}")


def other_data(new: zipfile.ZipFile, members: dict[str, bytes]) -> None:
    """Change one reward of a sound file: only the catalogue's hash can tell."""
    import io

    import h5py

    with h5py.File(file := io.BytesIO(members["data/main_data.hdf5"]), "a") as opened:
        opened["episode_0/rewards"][0] = 0.5
    write_all(new, members | {"data/main_data.hdf5": file.getvalue()})


def other_environment(new: zipfile.ZipFile, members: dict[str, bytes]) -> None:
    """Metadata that name other code to make the environment with."""
    metadata = json.loads(members["data/metadata.json"])
    spec = json.loads(metadata["env_spec"]) | {"entry_point": "os:system"}
    write_all(
        new,
        members
        | {"data/metadata.json": json.dumps(metadata | {"env_spec": json.dumps(spec)}).encode()},
    )


def no_spaces(new: zipfile.ZipFile, members: dict[str, bytes]) -> None:
    """Without spaces Minari would make the environment on opening."""
    metadata = json.loads(members["data/metadata.json"])
    del metadata["observation_space"]
    write_all(new, members | {"data/metadata.json": json.dumps(metadata).encode()})


def nested_metadata(new: zipfile.ZipFile, members: dict[str, bytes]) -> None:
    write_all(new, members | {"data/metadata.json": b"[" * 500_000 + b"]" * 500_000})


def huge_metadata(new: zipfile.ZipFile, members: dict[str, bytes]) -> None:
    write_all(new, members | {"data/metadata.json": b" " * 2**21})


def terabytes_of_nothing(new: zipfile.ZipFile, members: dict[str, bytes]) -> None:
    """Declare an array without a single chunk: a kilobyte on disk, four terabytes once read."""
    import io

    import h5py

    with h5py.File(file := io.BytesIO(members["data/main_data.hdf5"]), "a") as opened:
        del opened["episode_0/rewards"]
        opened.create_dataset("episode_0/rewards", shape=(10**12,), dtype="f4", chunks=(2**20,))
    write_all(new, members | {"data/main_data.hdf5": file.getvalue()})


def broken_deflate(folder: Path) -> None:
    """Overwrite the first member's compressed bytes; index and directory still fit."""
    content = bytearray((folder / ARCHIVE).read_bytes())
    begin = 30 + len("data/metadata.json")
    content[begin : begin + 40] = b"\xff" * 40
    (folder / ARCHIVE).write_bytes(content)
    reindex(folder)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (nested_index, "is not an index of format"),
        (broken_deflate, "is not one of a dataset (Error -3 while decompressing data"),
        (rewrite_archive(nested_metadata), "its metadata cannot be read"),
        (rewrite_archive(huge_metadata), "its metadata cannot be read: 2,097,152 bytes"),
        (rewrite_archive(terabytes_of_nothing), "its arrays declare 4,0"),
        (truncate, "broke off after"),
        (lengthen, "is longer than"),
        (one_bit, "is damaged or was tampered with"),
        (missing_file, "it is not there"),
        (missing_index, "it is not there"),
        (no_index, "is not an index of format"),
        (huge_index, "is not an index of format"),
        (index_without_it, "has no rlsuite/hover/random-v0"),
        (other_layout, "is not an index of format"),
        (path_elsewhere, "describes rlsuite/hover/random-v0 wrongly"),
        (wrong_size, "describes rlsuite/hover/random-v0 wrongly"),
        (rewrite_archive(climbing), "is not one of a dataset"),
        (rewrite_archive(absolute), "is not one of a dataset"),
        (rewrite_archive(link), "is not a plain file"),
        (rewrite_archive(twice), "is not one of a dataset"),
        (rewrite_archive(lambda new, members: None), "it holds nothing"),
        (rewrite_archive(other_data), "is not the dataset of the catalogue"),
        (rewrite_archive(other_environment), "metadata are not those of the catalogue: env_spec"),
        (rewrite_archive(no_spaces), "metadata are not those of the catalogue: observation_space"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_left(
    call: Callable[..., tuple],
    changed_remote: Path,
    root: Path,
    damage: Callable[[Path], None],
    words: str,
) -> None:
    damage(changed_remote)
    with serving(changed_remote) as address:
        code, _, err = call("download", "hover/random", "--remote", address)
    assert code == 2
    assert words in err
    assert err.count("\n") == 1
    assert visible(root) == []
    assert not (root.parent / "outside").exists()


def test_a_server_that_dies_half_way(
    call: Callable[..., tuple], published: Path, root: Path, entry: Entry
) -> None:
    with serving(published, break_off=True) as address:
        code, _, err = call("download", "hover/random", "--remote", address)
    assert code == 2
    assert "broke off after" in err
    assert visible(root) == []
    with serving(published) as address:  # and it can be tried again at once
        assert call("download", "hover/random", "--remote", address)[0] == 0
    assert is_installed(root, entry)


def test_a_failed_replacement_leaves_what_was_there(
    call: Callable[..., tuple], changed_remote: Path, root: Path, entry: Entry
) -> None:
    assert call("download", "hover/random", "--remote", changed_remote.as_uri())[0] == 0
    before = visible(root)
    one_bit(changed_remote)
    assert call("download", "hover/random", "--force", "--remote", changed_remote.as_uri())[0] == 2
    assert visible(root) == before
    assert is_installed(root, entry)


def test_a_server_that_is_not_there(call: Callable[..., tuple], root: Path) -> None:
    with serving(root.parent) as address:
        pass
    code, _, err = call("download", "hover/random", "--remote", address)
    assert code == 2
    assert "Connection refused" in err
    assert visible(root) == []


def test_an_unwritable_folder(
    call: Callable[..., tuple], published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "file" / "datasets"))
    code, _, err = call("download", "hover/random", "--remote", published.as_uri())
    assert code == 2
    assert "Cannot write Minari's folder of datasets" in err


@pytest.mark.parametrize("address", ["ftp://host/data", "host/data", "hf://", "https://"])
def test_no_address(call: Callable[..., tuple], root: Path, address: str) -> None:
    code, _, err = call("download", "hover/random", "--remote", address)
    assert code == 2
    assert "is not a remote" in err


def test_the_settings_name_a_remote(root: Path, tmp_path: Path) -> None:
    assert access.configured_remote() is None
    settings = remote.settings_file()
    assert settings == tmp_path / "config" / "rlbench_suite" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[data]\nremote = "https://example.org/data"\n')
    assert access.configured_remote() == "https://example.org/data"
    settings.write_text("data = 3")
    with pytest.raises(ValueError, match="cannot be read as TOML"):
        access.configured_remote()


def test_without_a_remote_the_recipe_is_followed(
    call: Callable[..., tuple], root: Path, entry: Entry
) -> None:
    code, out, err = call("download", "hover/random")
    assert (code, err) == (0, "")
    assert "No remote is configured" in out
    assert is_installed(root, entry)


def test_two_layouts_do_not_share_a_folder(
    changed_remote: Path, shelf: Path, entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(shelf))
    with pytest.raises(ValueError, match="another layout"):
        access.publish([entry], changed_remote, "hf")
    with pytest.raises(ValueError, match="Did you mean 'folder'"):
        access.publish([entry], changed_remote, "foldr")


def test_publishing_twice_gives_the_same_archive(
    published: Path, shelf: Path, entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(shelf))
    access.publish([entry], tmp_path / "again", "folder")
    assert (tmp_path / "again" / ARCHIVE).read_bytes() == (published / ARCHIVE).read_bytes()


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_named_and_leaves_nothing(
    call: Callable[..., tuple],
    published: Path,
    root: Path,
    shelf: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote.shutil, "copyfileobj", full)
    code, _, err = call("download", "hover/random", "--remote", published.as_uri())
    assert (code, visible(root)) == (1, [])
    assert err.startswith("error: Cannot write rlsuite/hover/random-v0 to ")
    assert err.endswith("No space left on device. Nothing of it was kept.\n")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(shelf))
    code, _, err = call("publish", "hover/random", "--to", str(tmp_path / "public"))
    assert (code, visible(tmp_path / "public")) == (1, [])
    assert "Cannot write the remote " in err


def test_a_dataset_is_not_begun_where_there_is_no_room(
    call: Callable[..., tuple], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10_000}))
    code, _, err = call("build", "hover/random")
    assert (code, visible(root)) == (1, [])
    assert re.search(
        r"error: Cannot write rlsuite/hover/random-v0: it takes about [\d.]+ MB, and .* 0\.0 MB",
        err,
    )
