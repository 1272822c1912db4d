"""Datasets on disk, in Minari's format and folder: written aside, moved in whole, read back, hashed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import rlbench_suite
from rlbench_suite.evaluation.staging import staging as staged
from rlbench_suite.evaluation.writing import CannotWrite

from .catalogue import NAMESPACE, Entry
from .recipe import SPLIT, Episode

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec
    from minari.dataset.minari_storage import MinariStorage

FILES = ("data/metadata.json", "data/main_data.hdf5")
"""All files of a dataset."""

_METADATA_LIMIT = 2**20
"""Bytes."""
_CONTENT_LIMIT = 2**31
"""Bytes. No dataset of the catalogue comes near it."""
_OWN = "rlbench_suite"
"""Where the metadata hold what is ours and not Minari's."""
_FREE = {"minari_version", "dataset_size", "code_permalink", "requirements", "description", "author", _OWN}
"""Metadata that may differ between datasets of one recipe: where and with what they were made."""


# -- Minari's folder -----------------------------------------------------------------------------------------------


def need_minari() -> None:
    """Raise if Minari's format cannot be read or written here.

    Raises:
        ImportError: the extra is not installed.
    """
    try:
        import_module("h5py")
        import_module("minari")
    except ImportError as error:
        raise ImportError(
            f"Offline datasets need minari and h5py ({error}); install them with: pip install 'rlbench-suite[data]'"
        ) from None


def root() -> Path:
    """Where Minari looks for datasets: ``MINARI_DATASETS_PATH``, or its default.

    Raises:
        OSError: it cannot be made.
        ImportError: the extra ``data`` is not installed.
    """
    need_minari()
    from minari.storage import get_dataset_path

    try:
        return get_dataset_path()
    except OSError as error:
        raise _unwritable(error) from None


def folder(entry: Entry) -> Path:
    """The folder of a dataset, whether it is there or not."""
    return root() / entry.id


def is_installed(entry: Entry) -> bool:
    """Whether Minari would find it."""
    return (folder(entry) / FILES[0]).is_file()


def refuse_installed(entry: Entry, force: bool) -> None:
    """Raise if the dataset is there and is not to be replaced.

    Raises:
        FileExistsError: it is there.
    """
    if is_installed(entry) and not force:
        raise FileExistsError(f"{entry.id} is there already, in {folder(entry)}; --force replaces it.")


@contextmanager
def staging() -> Iterator[Path]:
    """A folder beside the datasets that neither Minari nor anyone else looks into; gone afterwards, whatever happens.

    Raises:
        OSError: the datasets' folder cannot be written.
    """
    here = root()
    try:
        with staged(here) as aside:
            yield aside
    except PermissionError as error:
        raise _unwritable(error) from None


def install(entry: Entry, made: Path, force: bool) -> Path:
    """Move a finished dataset to where Minari finds it, in one step.

    Raises:
        FileExistsError: it is there already (perhaps just now, by another program) and not to be replaced.
        OSError: the datasets' folder cannot be written.
    """
    from minari.namespace import create_namespace

    place = folder(entry)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if force and place.exists():
            place.rename(made.with_name("replaced"))  # goes with the staging folder
        made.rename(place)
    except OSError as error:
        if is_installed(entry):
            raise FileExistsError(f"{entry.id} is there already, in {place}; --force replaces it.") from None
        raise _unwritable(error) from None
    with suppress(ValueError, OSError):  # it is known already; and Minari loads the dataset without it
        create_namespace(f"{NAMESPACE}/{entry.folder}", description=f"Offline datasets of {entry.task}")
    return place


def _unwritable(error: OSError) -> OSError:
    where = os.environ.get("MINARI_DATASETS_PATH") or "~/.minari/datasets"
    return OSError(
        f"Cannot write Minari's folder of datasets, {where} ({error.strerror or error}); "
        "MINARI_DATASETS_PATH names another one."
    )


# -- writing -------------------------------------------------------------------------------------------------------


def write(entry: Entry, episodes: Iterable[Episode], data: Path) -> dict[str, Any]:
    """Write episodes and metadata into the new folder ``data`` by Minari's own storage. Gives the metadata.

    Raises:
        OSError: the folder cannot be written, or the disk has no room for the dataset.
    """
    _refuse_full(entry, data.parent)
    from minari.data_collector.episode_buffer import EpisodeBuffer
    from minari.dataset.minari_storage import MinariStorage

    task = entry.card.build(difficulty=entry.difficulty)
    storage = MinariStorage.new(
        data, task.observation_space, task.action_space, env_spec(entry, SPLIT), data_format="hdf5", jpeg_encoding=False
    )
    wanted = metadata(entry)
    said = json.loads((data / "metadata.json").read_text())
    storage.update_metadata({name: value for name, value in wanted.items() if name not in said})
    storage.update_episodes(
        EpisodeBuffer(
            seed=episode.seed,
            observations=episode.observations,
            actions=episode.actions,  # arrays are stored as lists are
            rewards=episode.rewards,
            terminations=episode.terminations,
            truncations=episode.truncations,
            infos=episode.infos,
        )
        for episode in episodes
    )
    return wanted


def _refuse_full(entry: Entry, where: Path) -> None:
    """Ask for room before anything is written: on a full disk HDF5 ends the process."""
    needed, free = 1.2e6 * entry.fingerprint.megabytes if entry.fingerprint else 0.0, shutil.disk_usage(where).free
    if free < needed:
        raise CannotWrite(
            f"Cannot write {entry.id}: it takes about {needed / 1e6:.1f} MB, and {root()} has room for "
            f"{free / 1e6:.1f} MB."
        )


def note(data: Path, arithmetic: str) -> str:
    """Add to the metadata of a finished dataset the hash of its content and what made it. Gives the hash."""
    storage = opened(data)
    made = {
        "version": rlbench_suite.__version__,
        "arithmetic": arithmetic,
        "jaxlib": version("jaxlib"),
        "sha256": content_sha256(storage),
    }
    storage.update_metadata({_OWN: made})
    return made["sha256"]


def env_spec(entry: Entry, split: str) -> EnvSpec:
    """The environment of a dataset, as Gymnasium makes it."""
    import gymnasium

    spec = deepcopy(gymnasium.spec(entry.task))
    spec.kwargs |= {"split": split}
    if entry.difficulty is not None:
        spec.kwargs |= {"difficulty": entry.difficulty}
    return spec


def metadata(entry: Entry) -> dict[str, Any]:
    """What Minari is told of a dataset beyond what it counts itself."""
    from minari import __version__ as minari_version
    from minari.serialization import serialize_space

    task, scores = entry.card.build(difficulty=entry.difficulty), entry.card.scores(entry.difficulty)
    package = f"rlbench-suite@{rlbench_suite.__version__}"
    return {
        "dataset_id": entry.id,
        "data_format": "hdf5",
        "jpeg_encoding": False,
        "observation_space": serialize_space(task.observation_space),
        "action_space": serialize_space(task.action_space),
        "env_spec": env_spec(entry, SPLIT).to_json(),
        "eval_env_spec": env_spec(entry, "test").to_json(),
        "ref_min_score": scores["random"].mean,
        "ref_max_score": scores["reference"].mean,
        "num_episodes_average_score": scores["reference"].episodes,
        "algorithm_name": entry.described(),
        "author": {"rlbench-suite"},
        "code_permalink": f"pkg:pypi/{package}#datasets/catalogue.yaml",
        "description": f"{entry.card.summary} Played by {entry.described()}; the recipe of rlsuite-data.",
        "requirements": [f"rlbench-suite>={rlbench_suite.__version__}"],
        "minari_version": minari_version,
    }


# -- reading -------------------------------------------------------------------------------------------------------


def made_by(data: Path) -> dict[str, str]:
    """What :func:`note` wrote; empty if it never did."""
    own = json.loads((data / "metadata.json").read_text()).get(_OWN)
    return own if isinstance(own, dict) else {}


def check_metadata(entry: Entry, data: Path) -> None:
    """Compare what a dataset says of itself with the catalogue.

    To be called before anything opens the dataset: its metadata name the code that makes its environment.

    Raises:
        ValueError: something differs, or the metadata are none.
    """
    try:
        size = (data / "metadata.json").stat().st_size
        if size > _METADATA_LIMIT:
            raise ValueError(f"{size:,} bytes; at most {_METADATA_LIMIT:,} can be right")
        said = json.loads((data / "metadata.json").read_text())
        names = said.keys()
    except (ValueError, AttributeError, OSError, RecursionError) as error:
        raise ValueError(f"{entry.id}: its metadata cannot be read: {error}") from None
    wanted = metadata(entry) | {"total_episodes": entry.episodes}
    odd = sorted(names - wanted.keys() - _FREE - {"total_steps"})
    if odd:
        raise ValueError(f"{entry.id}: its metadata hold {odd[0]!r}, which no recipe writes.")
    for name in wanted.keys() - _FREE:
        if said.get(name) != wanted[name]:
            raise ValueError(
                f"{entry.id}: its metadata are not those of the catalogue: {name} is {_short(said.get(name))}, "
                f"not {_short(wanted[name])}."
            )


def check_size(entry: Entry, data: Path) -> None:
    """Compare what the arrays of a file say they hold with what memory is for, before any of them is inflated.

    Raises:
        ValueError: it is too much, or the file cannot be read.
    """
    import h5py

    sizes: list[int] = []

    def add(_: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            sizes.append(item.size * item.dtype.itemsize)

    try:
        with h5py.File(data / "main_data.hdf5") as file:
            file.visititems(add)
    except (OSError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"{entry.id}: its data cannot be read: {str(error)[:200]}") from None
    if sum(sizes) > _CONTENT_LIMIT:
        raise ValueError(
            f"{entry.id}: its arrays say that they hold {sum(sizes):,} bytes; at most {_CONTENT_LIMIT:,} can be right."
        )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def opened(data: Path) -> MinariStorage:
    """Minari's storage of a dataset whose metadata were checked or written here."""
    from minari.dataset.minari_storage import MinariStorage

    return MinariStorage.read(data)


def content_sha256(storage: MinariStorage) -> str:
    """SHA-256 of what a dataset holds, however it is stored: of every array its name, type, shape and bytes, in order.

    Raises:
        ValueError: the file cannot be read.
    """
    digest = hashlib.sha256()
    for index, (seed, episode) in enumerate(read(storage)):
        digest.update(f"episode {index} seed {seed}\n".encode())
        for name, array in sorted(_flat(episode)):
            stored = np.ascontiguousarray(array)
            stored = stored.astype(stored.dtype.newbyteorder("<"))
            digest.update(f"{name} {stored.dtype.str} {stored.shape}\n".encode())
            digest.update(stored.tobytes())
    return digest.hexdigest()


def read(storage: MinariStorage) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """Seed and arrays of every episode.

    Raises:
        ValueError: the file cannot be read, or has another number of steps than its metadata say.
    """
    every, steps = range(storage.total_episodes), 0
    try:
        for about, episode in zip(storage.get_episode_metadata(every), storage.get_episodes(every), strict=True):
            yield about.get("seed"), {name: value for name, value in episode.items() if name != "id"}
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
    if steps != (said := storage.total_steps):
        raise ValueError(f"{storage.data_path}: there are {steps} steps, its metadata say {said}.")


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _flat(part, f"{name}/{key}" if name else key)
    elif value is not None:
        yield name, value


class Transitions(NamedTuple):
    """The steps of a dataset, episode after episode (NumPy float32 unless said)."""

    observation: np.ndarray
    """``(N, features)``"""
    action: np.ndarray
    """``(N, components)``"""
    reward: np.ndarray
    """``(N,)``"""
    next_observation: np.ndarray
    """``(N, features)``"""
    terminated: np.ndarray
    """bool ``(N,)``: the task was over; where time ran out it was not."""


def transitions(entry: Entry) -> Transitions:
    """The steps of an installed dataset.

    Raises:
        ValueError: it is not what the catalogue says, or not what it was when it was made.
    """
    data = folder(entry) / "data"
    check_metadata(entry, data)
    storage = opened(data)
    found, noted = content_sha256(storage), made_by(data).get("sha256")
    if found != noted:
        raise ValueError(
            f"{entry.id} was changed since it was made: SHA-256 {found}, noted {noted}; "
            f"make it anew: rlsuite-data build --force {entry.id}"
        )
    columns: list[list[np.ndarray]] = [[] for _ in Transitions._fields]
    for _, episode in read(storage):
        rows = _rows(episode["observations"])
        parts = rows[:-1], _rows(episode["actions"]), episode["rewards"], rows[1:], episode["terminations"]
        for column, part in zip(columns, parts, strict=True):
            column.append(part)
    return Transitions(*(np.concatenate(column) for column in columns))


def _rows(value: Any) -> np.ndarray:
    """One row a step: the parts of a dict one after another, by name, as JAX orders them."""
    parts = [part for _, part in sorted(_flat(value, "part"))]
    return np.concatenate([np.reshape(part, (len(part), -1)) for part in parts], 1).astype(np.float32)
