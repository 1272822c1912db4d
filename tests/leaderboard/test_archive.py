"""Zips that ``pack`` does not write: damaged, disguised, or made to hurt a reader."""

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forgery import Forgery

from rlbench_suite.leaderboard import archive as archives
from rlbench_suite.leaderboard.verify import verify


def rezip(path: Path, change: Callable[[zipfile.ZipInfo], None], **options: Any) -> bytes:
    """Write the archive again with every member's header changed."""
    members = Forgery(path).members
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **options) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = archive.compression
            change(info)
            archive.writestr(info, data)
    return file.getvalue()


def symlink(info: zipfile.ZipInfo) -> None:
    if info.filename != "submission.json":
        info.create_system, info.external_attr = 3, 0o120777 << 16


def extra(info: zipfile.ZipInfo) -> None:
    info.extra = struct.pack("<HH4s", 0xCAFE, 4, b"code")


def duplicate_member(path: Path) -> bytes:
    file = io.BytesIO(path.read_bytes())
    with zipfile.ZipFile(file, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("submission.json", "{}")
    return file.getvalue()


def overlap_members(path: Path) -> bytes:
    """Add a second entry of the directory that points to the first member's bytes."""
    data = bytearray(path.read_bytes())
    *_, length, start, _ = struct.unpack("<4s4H2LH", data[-22:])
    directory = data[start : start + length]
    name_length, *_ = struct.unpack("<H", directory[28:30])
    again = directory[: 46 + name_length].replace(b"submission.json", b"submission.jsoM")
    count = data[-22:][8] + 1
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, length + len(again), start, 0)
    return bytes(data[:start] + directory + again + end)


def flag_encrypted(path: Path) -> bytes:
    """Mark the first member as encrypted in both headers."""
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    return bytes(data)


def lying_size(path: Path) -> bytes:
    """Let the directory say that the first member is small."""
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\1\2") + 24
    data[at : at + 4] = struct.pack("<L", 100)
    return bytes(data)


def stream_archive(path: Path) -> bytes:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: Any) -> int:
            raise io.UnsupportedOperation

        def tell(self) -> int:
            raise io.UnsupportedOperation

    file = Pipe()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in Forgery(path).members.items():
            archive.writestr(name, data)
    return file.getvalue()


def bomb(path: Path) -> bytes:
    """300 MB of zeros as actions, in 300 kB."""
    forged = Forgery(path)
    forged.members[forged.member("actions")] = b"\0" * 300_000_000
    file = io.BytesIO()
    archives.write_archive(file, iter(forged.members.items()))
    assert len(file.getvalue()) < 400_000
    return file.getvalue()


def by_hand(
    path: Path, behind: bytes = b"", comment: bytes = b"", wrong: int = 0, name: bytes = b""
) -> bytes:
    """Write the archive byte by byte, its first member with something a reader may pass over.

    Args:
        path: the archive.
        behind: bytes after the end of the compressed data and within their stated size.
        comment: on the member, in the directory.
        wrong: added to the size in the local header.
        name: in the local header, in place of the true one.
    """
    members = directory = b""
    contents = Forgery(path).members
    for member, data in contents.items():
        odd = not members
        packed = zlib.compress(data, wbits=-15) + behind * odd
        numbers = (20, 0, 8, 0, 33, zlib.crc32(data), len(packed))
        true, local = member.encode(), name if odd and name else member.encode()
        note, size, place = comment * odd, len(data) + wrong * odd, len(members)
        members += (
            struct.pack("<4s5H3L2H", b"PK\3\4", *numbers, size, len(local), 0) + local + packed
        )
        lengths = (len(true), 0, len(note), 0, 0, 0o100644 << 16, place)
        directory += (
            struct.pack("<4s6H3L5H2L", b"PK\1\2", 0x314, *numbers, len(data), *lengths)
            + true
            + note
        )
    count = len(contents)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(directory), len(members), 0)
    return members + directory + end


def test_a_zip_written_by_hand_is_accepted(honest: Path, tmp_path: Path):
    (tmp_path / "hand.zip").write_bytes(by_hand(honest))
    assert verify(tmp_path / "hand.zip").problems == ()


def with_hidden_field(path: Path) -> bytes:
    """Add a field to the local header; the stated size covers it, so that all places still fit."""
    field = struct.pack("<HH4s", 0xCAFE, 4, b"code")
    data = bytearray(by_hand(path, behind=field))
    start = 30 + len("submission.json")
    end = start + struct.unpack("<L", data[18:22])[0]
    data[28:30] = struct.pack("<H", len(field))
    data[start:end] = field + data[start : end - len(field)]
    return bytes(data)


ZIPS: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "empty": (lambda _: b"", "is not a zip"),
    "no zip": (lambda _: b"\x80\x04\x95" * 1000, "is not a zip"),
    "truncated": (lambda p: p.read_bytes()[:-30], "cut short"),
    "half": (lambda p: p.read_bytes()[:5000], "cut short"),
    "something after the end": (lambda p: p.read_bytes() + b"#!/bin/sh", "something after its end"),
    "something before the beginning": (
        lambda p: b"#!/bin/sh\n" + p.read_bytes(),
        "directory that is not at its end",
    ),
    "comment": (lambda p: p.read_bytes()[:-2] + b"\x03\x00abc", "is not a zip"),
    "symbolic link": (lambda p: rezip(p, symlink), "is not a plain file"),
    "extra fields": (lambda p: rezip(p, extra), "belong to no member"),
    "another compression": (
        lambda p: rezip(p, lambda _: None, compression=zipfile.ZIP_LZMA),
        "than deflate",
    ),
    "streamed": (stream_archive, "streamed"),
    "encrypted": (flag_encrypted, "encrypted"),
    "name twice": (duplicate_member, "submission.json twice"),
    "overlapping members": (overlap_members, "belong to no member"),
    "size that lies": (lying_size, "differs from the zip"),
    "bytes behind the compressed data": (
        lambda p: by_hand(p, behind=b"code" * 10),
        "end at another place",
    ),
    "many bytes behind the data": (
        lambda p: by_hand(p, behind=b"code" * 10**6),
        "it holds more than these",
    ),
    "field of the local header": (with_hidden_field, "differs from the zip"),
    "local size that lies": (lambda p: by_hand(p, wrong=1), "differs from the zip"),
    "local name that lies": (lambda p: by_hand(p, name=b"Submission.json"), "differs from the zip"),
    "comment on a member": (lambda p: by_hand(p, comment=b"code"), "belong to no member"),
    "bomb": (bomb, "inflates to 300,000,000 bytes; at most"),
    "flipped bit": (
        lambda p: bytes([*(d := p.read_bytes())[:2000], d[2000] ^ 1, *d[2001:]]),
        "damaged",
    ),
}


@pytest.mark.parametrize("name", ZIPS)
def test_zips_that_pack_does_not_write_are_rejected(name: str, honest: Path, tmp_path: Path):
    make, words = ZIPS[name]
    (tmp_path / "forged.zip").write_bytes(make(honest))
    verdict = verify(tmp_path / "forged.zip")
    assert len(verdict.problems) == 1, verdict.problems
    assert words in verdict.problems[0]
    assert "\n" not in verdict.problems[0]


def test_members_that_inflate_to_too_much_together_are_not_inflated(
    honest: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """4 MB of zeros held 8.7 GB, each member within its own limit."""
    monkeypatch.setattr(archives, "MAX_INFLATED", 5000)
    monkeypatch.setattr(archives.Archive, "read", None)  # nothing is inflated
    (problem,) = verify(honest).problems
    assert re.fullmatch(
        r"The members inflate to [\d,]+ bytes in all; at most 5,000 are allowed\.", problem
    )


def test_too_large_a_file_is_not_opened(honest: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archives, "MAX_ARCHIVE", 1000)
    assert "at most 1,000 are allowed" in verify(honest).problems[0]
