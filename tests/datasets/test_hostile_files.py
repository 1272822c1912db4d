"""HDF5 files that would make a reader open other files, hang, or read too much.

Each is refused before it is read.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from rlbench_suite.datasets.storage import array_paths


def external_link(file: h5py.File, target: Path) -> None:
    with h5py.File(target, "w") as secret:
        secret["rewards"] = np.zeros(2**20)
    file["episode_0/more"] = h5py.ExternalLink(str(target), "/rewards")


def soft_link(file: h5py.File, target: Path) -> None:
    file["episode_1"] = h5py.SoftLink("/")


def loop(file: h5py.File, target: Path) -> None:
    file["episode_0/again"] = file["/"]


def raw_storage(file: h5py.File, target: Path) -> None:
    target.write_bytes(b"secret!!")
    file.create_dataset(
        "episode_0/raw", (1,), "f8", external=[(str(target), 0, h5py.h5f.UNLIMITED)]
    )


def pipe(file: h5py.File, target: Path) -> None:
    os.mkfifo(target)
    file.create_dataset(
        "episode_0/raw", (1,), "f8", external=[(str(target), 0, h5py.h5f.UNLIMITED)]
    )


def virtual(file: h5py.File, target: Path) -> None:
    layout = h5py.VirtualLayout((2,), "f8")
    layout[:] = h5py.VirtualSource(str(target), "x", (2,))
    file.create_virtual_dataset("episode_0/virtual", layout)


def hundred_links(file: h5py.File, target: Path) -> None:
    file.create_dataset("episode_0/large", (2**25,), "f8", chunks=(2**16,))
    for number in range(100):
        file[f"episode_0/large{number}"] = file["episode_0/large"]


def large_chunk(file: h5py.File, target: Path) -> None:
    file.create_dataset("episode_0/chunk", (1,), "f8", maxshape=(None,), chunks=(2**28 + 1,))


def bomb(file: h5py.File, target: Path, inflated: int = 2**25) -> None:
    """Write a chunk of 32 bytes with a stream that inflates to 32 MiB.

    HDF5 would inflate all of it and drop the rest.
    """
    array = file.create_dataset(
        "episode_0/bomb", (4,), "f8", chunks=(4,), compression="gzip", shuffle=True
    )
    array.id.write_direct_chunk((0,), zlib.compress(bytes(inflated)))


def nested_bomb(file: h5py.File, target: Path) -> None:
    settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    settings.set_chunk((4,))
    settings.set_deflate(9)
    settings.set_deflate(9)
    h5py.h5d.create(
        file["episode_0"].id,
        b"nested",
        h5py.h5t.NATIVE_DOUBLE,
        h5py.h5s.create_simple((4,)),
        settings,
    )


def no_stream(file: h5py.File, target: Path) -> None:
    array = file.create_dataset("episode_0/broken", (4,), "f8", chunks=(4,), compression="gzip")
    array.id.write_direct_chunk((0,), b"no stream")


def named_type(file: h5py.File, target: Path) -> None:
    file["episode_0/type"] = np.dtype("f8")


def texts(file: h5py.File, target: Path) -> None:
    file["episode_0/texts"] = ["a", "b"]


def empty_group(file: h5py.File, target: Path) -> None:
    file.create_group("beside")


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (external_link, "is a soft or external link"),
        (soft_link, "is a soft or external link"),
        (loop, "is a second link to a group"),
        (raw_storage, "lies in another file"),
        (pipe, "lies in another file"),
        (virtual, "lies in another file"),
        (hundred_links, "at most 2,147,483,648 are allowed"),
        (large_chunk, "at most 2,147,483,648 are allowed|cannot be read"),
        (bomb, "'episode_0/bomb' has a chunk that inflates to more than its 32 bytes"),
        (nested_bomb, "has an unknown filter, or one twice"),
        (no_stream, "the data cannot be read: Error -3"),
        (named_type, "neither a group nor an array"),
        (texts, "has the type"),
        (empty_group, "is an empty group"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_no_plain_array_is_refused(
    attack: Callable[[h5py.File, Path], None], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "main_data.hdf5"
    with h5py.File(path, "w") as file:
        file["episode_0/rewards"] = np.zeros(3)
        if attack is large_chunk:
            try:
                attack(file, tmp_path / "other")
            except ValueError:
                pytest.skip("h5py does not write such a chunk")
        else:
            attack(file, tmp_path / "other")
    with pytest.raises(ValueError, match=words):
        array_paths(path)


def test_plain_arrays_are_read_whatever_their_filters(tmp_path: Path) -> None:
    """Chunks that are not deflated are no bombs.

    Nor are those that a checksum or a filter of bytes goes before.
    """
    path = tmp_path / "main_data.hdf5"
    values = np.random.default_rng(0).normal(size=1000)
    with h5py.File(path, "w") as file:
        for number, filters in enumerate(
            [
                {},
                {"compression": "gzip"},
                {"compression": "gzip", "shuffle": True, "fletcher32": True},
                {"fletcher32": True},
                {"compression": "gzip", "compression_opts": 0},
            ]
        ):
            file.create_dataset(
                f"episode_0/{number}", data=values, chunks=(64,) if filters else None, **filters
            )
        array = file.create_dataset("episode_0/mixed", (8,), "f8", chunks=(4,), compression="gzip")
        array.id.write_direct_chunk((0,), values[:4].tobytes(), filter_mask=1)  # not deflated
        file.create_dataset("episode_0/unwritten", (8,), "f8", chunks=(4,), compression="gzip")
    assert len(array_paths(path)) == 7
