"""Write, install, read and hash datasets in Minari's format and folder."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import rlbench_suite
from rlbench_suite.evaluation.runs.computer import simulator_versions
from rlbench_suite.foundation import atomic_files

from .catalogue import NAMESPACE, Entry
from .recipe import SPLIT, Episode

if TYPE_CHECKING:
    import h5py
    from gymnasium.envs.registration import EnvSpec
    from minari.dataset.minari_storage import MinariStorage

FILES = ("data/metadata.json", "data/main_data.hdf5")
"""All files of a dataset."""

_METADATA_LIMIT = 2**20
"""Size limit of the metadata in bytes."""
_CONTENT_LIMIT = 2**31
"""Size limit of all arrays in bytes, far above every dataset of the catalogue."""
_OBJECTS_LIMIT = 200_000
"""Number of groups and arrays, far above every dataset of the catalogue."""
_ATTRIBUTES_LIMIT = 100
_ROOM_TO_CLOSE = 2**23
"""Free bytes of the disk at which a dataset is given up: HDF5 needs some to close its file."""
_DEFLATE = 1
_FILTERS = {_DEFLATE, 2, 3}
"""HDF5's numbers of deflate, shuffle and Fletcher's checksum, which h5py has built in."""
_CHECKSUM_BYTES = 4
"""Bytes that Fletcher's checksum adds to a chunk before it is deflated."""
_PIECE = 2**20
"""Number of bytes that are inflated at a time."""
_SUITE_KEY = "rlbench_suite"
"""Key of this package's own metadata."""
_FREE = {
    "minari_version",
    "dataset_size",
    "code_permalink",
    "requirements",
    "description",
    "author",
    _SUITE_KEY,
}
"""Metadata that may differ between datasets of one recipe."""


# -- Minari's folder -------------------------------------------------------------------------------


def need_minari() -> None:
    """Check that Minari and h5py are installed.

    Raises:
        ImportError: the extra is not installed.
    """
    try:
        import_module("h5py")
        import_module("minari")
    except ImportError as error:
        raise ImportError(
            f"Offline datasets need minari and h5py ({error}); install them with: pip install "
            "'rlbench-suite[data]'"
        ) from None


def root() -> Path:
    """Return Minari's folder of datasets: ``MINARI_DATASETS_PATH``, or Minari's default.

    Raises:
        OSError: it cannot be created.
        ImportError: the extra ``data`` is not installed.
    """
    need_minari()
    from minari.storage import get_dataset_path

    try:
        return get_dataset_path()
    except OSError as error:
        raise _unwritable(error) from None


def folder(entry: Entry) -> Path:
    """Return the folder of a dataset, which need not exist."""
    return root() / entry.id


def is_installed(entry: Entry) -> bool:
    """Return True if Minari would find the dataset."""
    return (folder(entry) / FILES[0]).is_file()


def refuse_installed(entry: Entry, force: bool) -> None:
    """Refuse to replace an installed dataset unless ``force`` is true.

    Raises:
        FileExistsError: it is installed.
    """
    if is_installed(entry) and not force:
        raise FileExistsError(
            f"{entry.id} is there already, in {folder(entry)}; --force replaces it."
        )


@contextmanager
def staging() -> Iterator[Path]:
    """Make a hidden folder beside the datasets, and remove it afterwards.

    Raises:
        OSError: the datasets' folder cannot be written.
    """
    here = root()
    try:
        with atomic_files.staging(here) as aside:
            yield aside
    except PermissionError as error:
        raise _unwritable(error) from None


def install(entry: Entry, dataset: Path, force: bool) -> Path:
    """Move a finished dataset to its place in Minari's folder, in one step.

    Raises:
        FileExistsError: it is installed already (perhaps just now by another program), and
            ``force`` is false.
        OSError: the datasets' folder cannot be written.
    """
    from minari.namespace import create_namespace

    target = folder(entry)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replaced = dataset.with_name("replaced")  # removed with the staging folder
        if force and target.exists():
            target.rename(replaced)
        try:
            dataset.rename(target)
        except OSError:
            if replaced.exists():
                replaced.rename(target)
            raise
    except OSError as error:
        if is_installed(entry):
            raise FileExistsError(
                f"{entry.id} is there already, in {target}; --force replaces it."
            ) from None
        raise _unwritable(error) from None
    with suppress(ValueError, OSError):  # it exists already; Minari needs it only for lists
        create_namespace(f"{NAMESPACE}/{entry.folder}", description=entry.namespace_description)
    return target


def _unwritable(error: OSError) -> OSError:
    where = os.environ.get("MINARI_DATASETS_PATH") or "~/.minari/datasets"
    return OSError(
        f"Cannot write Minari's folder of datasets, {where} ({error.strerror or error}); "
        "MINARI_DATASETS_PATH names another one."
    )


# -- writing ---------------------------------------------------------------------------------------


def write(entry: Entry, episodes: Iterable[Episode], data: Path) -> dict[str, Any]:
    """Write episodes and metadata into the new folder ``data`` by Minari's own storage.

    Return the metadata.

    Raises:
        OSError: the folder cannot be written, or the disk has no room for the dataset.
    """
    _refuse_full(entry, data.parent)
    from minari.data_collector.episode_buffer import EpisodeBuffer
    from minari.dataset.minari_storage import MinariStorage

    task = entry.card.build(difficulty=entry.difficulty)
    storage = MinariStorage.new(
        data,
        task.observation_space,
        task.action_space,
        env_spec(entry, SPLIT),
        data_format="hdf5",
        jpeg_encoding=False,
    )
    recipe_metadata = metadata(entry)
    written = json.loads((data / "metadata.json").read_text())
    storage.update_metadata(
        {name: value for name, value in recipe_metadata.items() if name not in written}
    )
    storage.update_episodes(
        EpisodeBuffer(
            seed=episode.seed,
            observations=episode.observations,
            actions=episode.actions,  # Minari stores arrays and lists alike
            rewards=episode.rewards,
            terminations=episode.terminations,
            truncations=episode.truncations,
            infos=episode.infos,
        )
        for episode in _while_there_is_room(entry, episodes, data)
    )
    return recipe_metadata


def _while_there_is_room(
    entry: Entry, episodes: Iterable[Episode], where: Path
) -> Iterator[Episode]:
    """Yield episodes while the disk has room, which another program may fill.

    Raises:
        CannotWrite: it has hardly any left.
    """
    for episode in episodes:
        if shutil.disk_usage(where).free < _ROOM_TO_CLOSE:
            raise atomic_files.CannotWrite(
                f"Cannot write {entry.id}: the disk of {root()} is nearly full. Nothing of it was "
                "kept."
            )
        yield episode


def _refuse_full(entry: Entry, where: Path) -> None:
    """Check the free space before writing, because HDF5 ends the process on a full disk."""
    needed = 1.2e6 * entry.fingerprint.megabytes if entry.fingerprint else 0.0
    free = shutil.disk_usage(where).free
    needed += _ROOM_TO_CLOSE
    if free < needed:
        raise atomic_files.CannotWrite(
            f"Cannot write {entry.id}: it takes about {needed / 1e6:.1f} MB, and {root()} has room "
            f"for {free / 1e6:.1f} MB."
        )


def note(entry: Entry, data: Path, arithmetic: str) -> str:
    """Add the hash of the content and the versions used to the metadata of a finished dataset.

    Return the hash.
    """
    storage = open_storage(data)
    notes = {
        "version": rlbench_suite.__version__,
        "arithmetic": arithmetic,
        "jaxlib": version("jaxlib"),
        "sha256": content_sha256(storage),
    }
    if entry.card.host:  # the simulator decides the bits, too
        notes |= simulator_versions()
    storage.update_metadata({_SUITE_KEY: notes})
    return notes["sha256"]


def env_spec(entry: Entry, split: str) -> EnvSpec:
    """Return the Gymnasium spec of a dataset's environment."""
    import gymnasium

    card = entry.card
    spec = deepcopy(gymnasium.spec(card.registered_id))
    settings = {
        name: card.settings[name]
        for name, values in card.choices.items()
        if card.settings[name] != values[0]
    }
    spec.kwargs |= {"split": split, **settings}
    if card.context:  # without records the spec needs no file and no cache
        spec.kwargs |= {
            "context": card.context.label if card.context.records else card.context.mapping()
        }
    if entry.difficulty is not None:
        spec.kwargs |= {"difficulty": entry.difficulty}
    return spec


def metadata(entry: Entry) -> dict[str, Any]:
    """Return the metadata that Minari does not compute itself."""
    from minari import __version__ as minari_version
    from minari.serialization import serialize_space

    task, scale = entry.card.build(difficulty=entry.difficulty), entry.card.scale(entry.difficulty)
    package = f"rlbench-suite@{rlbench_suite.__version__}"
    return {
        "dataset_id": entry.id,
        "data_format": "hdf5",
        "jpeg_encoding": False,
        "observation_space": serialize_space(task.observation_space),
        "action_space": serialize_space(task.action_space),
        "env_spec": env_spec(entry, SPLIT).to_json(),
        "eval_env_spec": env_spec(entry, "test").to_json(),
        "ref_min_score": scale.zero.mean,
        "ref_max_score": scale.reference.mean,
        "num_episodes_average_score": scale.reference.episodes,
        "algorithm_name": entry.described(),
        "author": {"rlbench-suite"},
        "code_permalink": f"pkg:pypi/{package}#datasets/catalogue.yaml",
        "description": (
            f"{entry.card.summary} Played by {entry.described()}; the recipe of rlsuite-data."
        ),
        "requirements": [f"rlbench-suite>={rlbench_suite.__version__}"],
        "minari_version": minari_version,
    }


# -- reading ---------------------------------------------------------------------------------------


def made_by(data: Path) -> dict[str, str]:
    """Return the notes of :func:`note`; empty if there are none."""
    notes = json.loads((data / "metadata.json").read_text()).get(_SUITE_KEY)
    return notes if isinstance(notes, dict) else {}


def check_metadata(entry: Entry, data: Path) -> None:
    """Compare the metadata of a dataset with the catalogue.

    Call this before anything opens the dataset, because its metadata name the code that makes its
    environment.

    Raises:
        ValueError: something differs, or the metadata are malformed.
    """
    try:
        size = (data / "metadata.json").stat().st_size
        if size > _METADATA_LIMIT:
            raise ValueError(f"{size:,} bytes; at most {_METADATA_LIMIT:,} are allowed")
        written = json.loads((data / "metadata.json").read_text())
        names = written.keys()
    except (ValueError, AttributeError, OSError, RecursionError) as error:
        raise ValueError(f"{entry.id}: its metadata cannot be read: {error}") from None
    expected = metadata(entry) | {"total_episodes": entry.episodes}
    odd = sorted(names - expected.keys() - _FREE - {"total_steps"})
    if odd:
        raise ValueError(f"{entry.id}: its metadata have {odd[0]!r}, which no recipe writes.")
    for name in expected.keys() - _FREE:
        if written.get(name) != expected[name]:
            raise ValueError(
                f"{entry.id}: its metadata are not those of the catalogue: {name} is "
                f"{_short(written.get(name))}, not {_short(expected[name])}."
            )


class _Refused(ValueError):
    """A file of data that has something no recipe writes; the message says what."""


def array_paths(path: Path) -> list[str]:
    """Return the paths of all arrays of an HDF5 file, after checks before any of them is read.

    Only groups and plain arrays that lie in the file itself are allowed. A soft or external link,
    external or virtual storage, a reference or an unknown filter could make HDF5 open another file
    or load code.

    Raises:
        ValueError: the file has something else, its arrays or attributes declare too many bytes (an
            array counts once for each link to it), or it cannot be read.
    """
    import h5py

    try:
        with h5py.File(path) as file:
            return _array_paths(file)
    except _Refused as refusal:
        raise ValueError(f"{path}: {refusal}") from None
    except (OSError, KeyError, RuntimeError, TypeError, ValueError, zlib.error) as error:
        raise ValueError(f"{path}: the data cannot be read: {str(error)[:200]}") from None


def _array_paths(file: h5py.File) -> list[str]:
    import h5py

    arrays: list[str] = []
    opened_arrays: list[tuple[h5py.Dataset, str]] = []
    groups: list[tuple[str, h5py.Group]] = [("", file)]
    addresses = {h5py.h5o.get_info(file.id).addr}
    objects = 0
    declared = 0
    while groups:
        prefix, group = groups.pop()
        declared += _attribute_bytes(group, prefix)
        objects += len(group)
        if objects > _OBJECTS_LIMIT:
            raise _Refused(f"it has more than {_OBJECTS_LIMIT:,} objects")
        if not len(group) and not prefix.endswith("/infos/"):
            raise _Refused(f"{prefix!r} is an empty group")
        for name in group:
            path = f"{prefix}{name}"
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise _Refused(f"{path!r} is a soft or external link")
            item = group[name]
            if isinstance(item, h5py.Group):
                address = h5py.h5o.get_info(item.id).addr
                if address in addresses:
                    raise _Refused(f"{path!r} is a second link to a group")
                addresses.add(address)
                groups.append((f"{path}/", item))
            elif isinstance(item, h5py.Dataset):
                declared += _declared_bytes(item, path) + _attribute_bytes(item, path)
                arrays.append(path)
                opened_arrays.append((item, path))
            else:
                raise _Refused(f"{path!r} is neither a group nor an array")
            if declared > _CONTENT_LIMIT:
                raise _Refused(
                    f"its arrays declare {declared:,} bytes; at most {_CONTENT_LIMIT:,} are allowed"
                )
    for array, path in opened_arrays:
        _refuse_bomb(array, path)
    return arrays


def _declared_bytes(array: h5py.Dataset, path: str) -> int:
    """Return the number of bytes that reading a plain array takes.

    Raises:
        _Refused: it is not plain.
    """
    settings = array.id.get_create_plist()
    if array.is_virtual or settings.get_external_count():
        raise _Refused(f"{path!r} lies in another file")
    if array.dtype.kind not in "biufS":
        raise _Refused(f"{path!r} has the type {array.dtype}")
    filters = [settings.get_filter(number)[0] for number in range(settings.get_nfilters())]
    if not _FILTERS.issuperset(filters) or len(filters) > len(set(filters)):
        raise _Refused(f"{path!r} has an unknown filter, or one twice")
    return max(int(array.size), math.prod(array.chunks or (0,))) * array.dtype.itemsize


def _refuse_bomb(array: h5py.Dataset, path: str) -> None:
    """Refuse an array with a chunk that inflates to more than the chunk's size.

    HDF5 itself inflates all of it.

    Raises:
        _Refused: it has one.
    """
    settings = array.id.get_create_plist()
    filters = [settings.get_filter(number)[0] for number in range(settings.get_nfilters())]
    if _DEFLATE not in filters or not array.chunks:
        return
    size_limit = math.prod(array.chunks) * array.dtype.itemsize + _CHECKSUM_BYTES
    chunks: list[h5py.h5d.StoreInfo] = []
    array.id.chunk_iter(chunks.append)
    for chunk in chunks:
        if chunk.filter_mask >> filters.index(_DEFLATE) & 1:
            continue  # this chunk is not deflated
        _, deflated = array.id.read_direct_chunk(chunk.chunk_offset)
        stream, inflated = zlib.decompressobj(), 0
        while deflated and not stream.eof:
            inflated += len(stream.decompress(deflated, _PIECE))
            deflated = stream.unconsumed_tail
            if inflated > size_limit:
                raise _Refused(
                    f"{path!r} has a chunk that inflates to more than its "
                    f"{size_limit - _CHECKSUM_BYTES:,} bytes"
                )


def _attribute_bytes(item: h5py.HLObject, path: str) -> int:
    """Return the number of bytes of an object's attributes.

    Raises:
        _Refused: there are too many of them.
    """
    if len(item.attrs) > _ATTRIBUTES_LIMIT:
        raise _Refused(f"{path!r} has more than {_ATTRIBUTES_LIMIT} attributes")
    return sum(int(item.attrs.get_id(name).get_storage_size()) for name in item.attrs)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def open_storage(data: Path) -> MinariStorage:
    """Open the storage of a dataset whose metadata were checked or written here."""
    from minari.dataset.minari_storage import MinariStorage

    return MinariStorage.read(data)


def content_sha256(storage: MinariStorage) -> str:
    """Return the SHA-256 of the content, whatever its compression.

    It covers the name, type, shape and bytes of every array.

    Raises:
        ValueError: the file cannot be read, or holds something that no recipe writes.
    """
    unread = set(array_paths(storage.data_path / "main_data.hdf5"))
    digest = hashlib.sha256()
    for index, (seed, episode) in enumerate(read_episodes(storage)):
        digest.update(f"episode {index} seed {seed}\n".encode())
        for name, array in sorted(_flat(episode)):
            unread.discard(f"episode_{index}/{name}")
            stored = np.ascontiguousarray(array)
            stored = stored.astype(stored.dtype.newbyteorder("<"))
            digest.update(f"{name} {stored.dtype.str} {stored.shape}\n".encode())
            digest.update(stored.tobytes())
    if unread:
        raise ValueError(f"{storage.data_path}: it has {min(unread)!r}, which no recipe writes.")
    return digest.hexdigest()


def read_episodes(storage: MinariStorage) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """Yield the seed and arrays of every episode.

    Raises:
        ValueError: the file cannot be read, or its number of steps differs from the metadata.
    """
    every, steps = range(storage.total_episodes), 0
    try:
        for about, episode in zip(
            storage.get_episode_metadata(every), storage.get_episodes(every), strict=True
        ):
            yield (
                about.get("seed"),
                {name: value for name, value in episode.items() if name != "id"},
            )
            steps += len(episode["rewards"])
    except (
        OSError,
        KeyError,
        RuntimeError,
        AssertionError,
        TypeError,
        MemoryError,
    ) as error:  # what h5py raises on broken files
        raise ValueError(
            f"{storage.data_path}: the data cannot be read: {str(error) or type(error).__name__}"
        ) from None
    if steps != (total_steps := storage.total_steps):
        raise ValueError(
            f"{storage.data_path}: it has {steps} steps, and its metadata say {total_steps}."
        )


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{name}/{key}" if name else key)
    elif value is not None:
        yield name, value


class Transitions(NamedTuple):
    """Steps of a dataset, episode after episode (NumPy float32 unless stated)."""

    observation: np.ndarray
    """``(N, features)``"""
    action: np.ndarray
    """``(N, components)``"""
    reward: np.ndarray
    """``(N,)``"""
    next_observation: np.ndarray
    """``(N, features)``"""
    terminated: np.ndarray
    """bool ``(N,)``: the task was over. False where time ran out."""


def transitions(entry: Entry) -> Transitions:
    """Return the steps of an installed dataset.

    Raises:
        ValueError: it differs from the catalogue, or was changed since it was built.
    """
    data = folder(entry) / "data"
    check_metadata(entry, data)
    storage = open_storage(data)
    content_hash, noted = content_sha256(storage), made_by(data).get("sha256")
    if content_hash != noted:
        raise ValueError(
            f"{entry.id} was changed since it was built: its SHA-256 is {content_hash}, and was "
            f"{noted}; build it again: rlsuite-data build --force {entry.id}"
        )
    columns: list[list[np.ndarray]] = [[] for _ in Transitions._fields]
    for _, episode in read_episodes(storage):
        observations = _vectors(episode["observations"])
        values = (
            observations[:-1],
            _vectors(episode["actions"]),
            episode["rewards"],
            observations[1:],
            episode["terminations"],
        )
        for column, column_values in zip(columns, values, strict=True):
            column.append(column_values)
    return Transitions(*(np.concatenate(column) for column in columns))


def _vectors(value: Any) -> np.ndarray:
    """Return one vector for each step.

    The parts of a dict are joined in the order of their names, as in JAX.
    """
    leaves = [item for _, item in sorted(_flat(value, "part"))]
    return np.concatenate([np.reshape(vector, (len(vector), -1)) for vector in leaves], 1).astype(
        np.float32
    )
