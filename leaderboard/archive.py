"""Read and write archives: a plain zip of fixed members, written in one way and read within limits.

The reader trusts nothing. It checks the layout of the zip before it inflates anything, inflates a
member up to a limit known beforehand, and never writes to a path that the archive names. Tables are
flat, required, uncompressed columns of Parquet without metadata. The zip compresses them, so its
limits are the only ones that matter. A flat column has no more values than the table has rows, and
the number of rows is checked first.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .schema import MANIFEST, MAX_JSON, MAX_TASKS, Rejected, Submission

MAX_ARCHIVE = 2 * 2**30
MAX_INFLATED = 4 * 2**30
"""Limit in bytes on all members together, once inflated."""
_MAX_DIRECTORY = 2**20
_OVERHEAD = 2**20
"""Bytes that a Parquet file may have besides its values: footer and page headers."""

_END = struct.Struct("<4s4H2LH")
_LOCAL_HEADER = struct.Struct("<4s5H3L2H")
_EPOCH = (1980, 1, 1, 0, 0, 0)
_REGULAR_FILE = 0o100644 << 16
_PHYSICAL = {
    "float": "FLOAT",
    "double": "DOUBLE",
    "int32": "INT32",
    "int64": "INT64",
    "bool": "BOOLEAN",
}


# -- writing ---------------------------------------------------------------------------------------


def write_archive(file: IO[bytes], members: Iterator[tuple[str, bytes]]) -> None:
    """Write the members in the given order. Equal members give equal bytes."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in members:
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = _REGULAR_FILE
            archive.writestr(info, data, compresslevel=9)


def write_table(schema: pa.Schema, groups: Sequence[Sequence[np.ndarray]]) -> bytes:
    """Return a Parquet file with one row group for each training seed.

    Args:
        schema: the columns.
        groups: for each training seed, the values of each column.
    """
    # Bytes of floats of one significance lie together, where they are alike: an eighth smaller
    # after the zip.
    split = {
        f.name: "BYTE_STREAM_SPLIT" if pa.types.is_floating(f.type) else "PLAIN" for f in schema
    }
    file = io.BytesIO()
    with pq.ParquetWriter(
        file,
        schema,
        compression="none",
        use_dictionary=False,
        column_encoding=split,
        write_statistics=False,
        store_schema=False,
    ) as writer:
        for columns in groups:
            table = pa.table(
                [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema
            )
            writer.write_table(table, row_group_size=max(1, len(table)))
    return file.getvalue()


# -- reading ---------------------------------------------------------------------------------------


class Archive:
    """An archive open for reading. Use :meth:`open`."""

    def __init__(self, file: IO[bytes], zipped: zipfile.ZipFile) -> None:
        self._file, self._zipped = file, zipped

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[Archive]:
        """Open an archive and check its layout. Nothing is inflated yet.

        Raises:
            OSError: the file cannot be read.
            Rejected: it is not a zip of the kind that ``pack`` writes.
        """
        with path.open("rb") as file:
            size = file.seek(0, io.SEEK_END)
            if size > MAX_ARCHIVE:
                raise Rejected(
                    f"The archive has {size:,} bytes; at most {MAX_ARCHIVE:,} are allowed."
                )
            directory = _check_end(file, size)
            try:
                with zipfile.ZipFile(file) as zipped:
                    _check_members(file, zipped, directory)
                    yield cls(file, zipped)
            except (
                zipfile.BadZipFile,
                zlib.error,
                NotImplementedError,
                EOFError,
                UnicodeDecodeError,
            ) as error:
                raise Rejected(f"The zip is damaged ({error}).") from None

    @property
    def names(self) -> list[str]:
        """Names of the members in the order of the file."""
        return self._zipped.namelist()

    def read(self, name: str, limit: int) -> bytes:
        """Return the bytes of a member.

        Raises:
            Rejected: there is no such member, it is larger than ``limit`` once inflated, or
                damaged.
        """
        try:
            info = self._zipped.getinfo(name)
        except KeyError:
            raise Rejected(f"The member {name} is missing.") from None
        declared = info.file_size
        if declared > limit:
            raise Rejected(f"{name} inflates to {declared:,} bytes; at most {limit:,} are allowed.")
        if (
            info.compress_size > declared + declared // 1000 + 1000
        ):  # deflate's overhead on incompressible bytes
            raise Rejected(
                f"{name} takes {info.compress_size:,} bytes for {declared:,} bytes of data; it "
                "holds more than these."
            )
        self._file.seek(info.header_offset + _LOCAL_HEADER.size + len(name))
        data = self._file.read(info.compress_size)
        if (
            info.compress_type == zipfile.ZIP_DEFLATED
        ):  # zipfile would ignore bytes after the end of the stream
            stream = zlib.decompressobj(-zlib.MAX_WBITS)
            try:
                data = stream.decompress(data, declared + 1)
            except zlib.error as error:
                raise Rejected(f"{name} is damaged ({error}).") from None
            if len(data) <= declared and (stream.unused_data or not stream.eof):
                raise Rejected(
                    f"{name} is damaged (the compressed data end at another place than declared)."
                )
        if len(data) != declared:
            raise Rejected(
                f"{name} is damaged (it declares {declared:,} bytes and holds {len(data):,} or "
                "more)."
            )
        if zlib.crc32(data) != info.CRC:
            raise Rejected(f"{name} is damaged (the checksum differs).")
        return data

    def submission(self) -> Submission:
        """Return the claims, checked against the schema and nothing else."""
        return Submission.parse(self.read(MANIFEST, MAX_JSON))

    def table(
        self, name: str, schema: pa.Schema, seeds: int, min_rows: int, max_rows: int
    ) -> Iterator[dict[str, np.ndarray]]:
        """Yield a table's row groups, one for each training seed, as values by column.

        Args:
            name: name of the member.
            schema: columns that it must have.
            seeds: number of row groups that it must have.
            min_rows: smallest number of rows in a row group.
            max_rows: largest number of rows in a row group.

        Raises:
            Rejected: the table differs from this.
        """
        width = sum(field.type.bit_width for field in schema) // 8 + 1
        data = self.read(name, seeds * max_rows * width + seeds * len(schema) * 1024 + _OVERHEAD)
        try:
            source = pa.BufferReader(data)
            limits = {"thrift_string_size_limit": 2**20, "thrift_container_size_limit": 2**20}
            file = pq.ParquetFile(source, **limits)
            _check_table(name, file, schema, seeds, min_rows, max_rows, len(data))
            for i in range(seeds):
                group = file.read_row_group(i, use_threads=False)
                group.validate(full=True)
                if len(group) != file.metadata.row_group(i).num_rows:
                    raise Rejected(f"{name} holds another number of rows than it declares.")
                yield {column: group[column].to_numpy() for column in schema.names}
        except (pa.ArrowException, OSError, MemoryError) as error:
            first = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            raise Rejected(f"{name} cannot be read as Parquet ({first}).") from None


def _check_end(file: IO[bytes], size: int) -> int:
    """Return the position of the zip's directory.

    The end record must be the last thing in the file, without a comment and without zip64.
    """
    file.seek(max(0, size - _END.size))
    record = file.read(_END.size)
    if len(record) < _END.size or not record.startswith(b"PK\5\6"):
        raise Rejected("The file is not a zip, is cut short, or has something after its end.")
    _, disk, first_disk, here, members, length, start, comment = _END.unpack(record)
    if disk or first_disk or comment or here != members or start + length != size - _END.size:
        raise Rejected("The zip has a comment, parts, or a directory that is not at its end.")
    if members > 2 * MAX_TASKS + 1 or length > _MAX_DIRECTORY:
        raise Rejected(f"The zip has {members} members; at most {2 * MAX_TASKS + 1} are allowed.")
    return start


def _check_members(file: IO[bytes], zipped: zipfile.ZipFile, directory: int) -> None:
    """Check that members are plain files with safe, distinct names, and leave no gaps.

    They follow one another from the first byte on.
    """
    if (inflated := sum(info.file_size for info in zipped.infolist())) > MAX_INFLATED:
        raise Rejected(
            f"The members inflate to {inflated:,} bytes in all; at most {MAX_INFLATED:,} are "
            "allowed."
        )
    position = 0
    names: set[str] = set()
    for info in zipped.infolist():
        name = info.orig_filename
        segments = name.split("/")
        if (
            name.startswith("/")
            or "\\" in name
            or ":" in name
            or not name.isprintable()
            or {"", ".", ".."} & {*segments}
        ):
            raise Rejected(f"The zip has the member {name[:80]!r}, which is not a path inside it.")
        if name in names:
            raise Rejected(f"The zip has the member {name[:80]} twice.")
        names.add(name)
        kind = info.external_attr >> 16 & 0o170000
        if kind not in (0, 0o100000) or info.external_attr & 0x10:
            raise Rejected(
                f"The member {name[:80]} is not a plain file (a link, a folder or a device)."
            )
        if info.flag_bits & ~0x800 or info.compress_type not in (
            zipfile.ZIP_STORED,
            zipfile.ZIP_DEFLATED,
        ):
            raise Rejected(
                f"The member {name[:80]} is encrypted, streamed or compressed in another way than "
                "deflate."
            )
        if info.header_offset != position or info.extra or info.comment:
            raise Rejected(f"Bytes before or in the member {name[:80]} belong to no member.")
        header = _local_header(info)
        file.seek(position)
        if file.read(len(header)) != header:
            raise Rejected(
                f"The header of the member {name[:80]} differs from the zip's directory."
            )
        position += len(header) + info.compress_size
    if position != directory:
        raise Rejected("Bytes after the last member belong to no member.")


def _local_header(info: zipfile.ZipInfo) -> bytes:
    """Return the header that a member must have according to the directory.

    It has the same numbers and name, and no extra field.
    """
    year, month, day, hour, minute, second = info.date_time
    name = info.orig_filename.encode()
    numbers = (
        info.extract_version, info.flag_bits, info.compress_type,
        hour << 11 | minute << 5 | second // 2, (year - 1980) << 9 | month << 5 | day,
        info.CRC, info.compress_size, info.file_size, len(name), 0,
    )  # fmt: skip
    return _LOCAL_HEADER.pack(b"PK\3\4", *numbers) + name


def _check_table(
    name: str,
    file: pq.ParquetFile,
    schema: pa.Schema,
    seeds: int,
    min_rows: int,
    max_rows: int,
    size: int,
) -> None:
    metadata = file.metadata
    if metadata.metadata:
        raise Rejected(f"{name} has metadata; none is allowed.")
    expected = [(field.name, _PHYSICAL[str(field.type)]) for field in schema]
    columns = [metadata.schema.column(i) for i in range(metadata.num_columns)]
    columns_in_file = [(column.path, column.physical_type) for column in columns]
    if columns_in_file != expected:
        wrong = next(
            (f"{a} {b}" for (a, b) in columns_in_file if (a, b) not in expected),
            "fewer, or in another order",
        )
        expected_columns = ", ".join(f"{a} {b}" for a, b in expected[:8]) + (
            ", ..." if len(expected) > 8 else ""
        )
        raise Rejected(f"{name} has other columns than {expected_columns} (found: {wrong[:80]}).")
    plain = all(
        c.max_definition_level == c.max_repetition_level == 0 and c.logical_type.type == "NONE"
        for c in columns
    )
    if not plain:
        raise Rejected(
            f"{name} has nested, optional or converted columns; plain required ones are allowed."
        )
    if metadata.num_row_groups != seeds:
        raise Rejected(
            f"{name} has {metadata.num_row_groups} row groups; by its claims it has one for each "
            f"of {seeds} seeds."
        )
    for i in range(seeds):
        group = metadata.row_group(i)
        if not min_rows <= group.num_rows <= max_rows:
            allowed = f"{min_rows}" if min_rows == max_rows else f"{min_rows} to {max_rows}"
            raise Rejected(
                f"{name} has {group.num_rows} rows in row group {i}; {allowed} are allowed."
            )
        chunks = [group.column(j) for j in range(metadata.num_columns)]
        if any(
            chunk.compression != "UNCOMPRESSED" or chunk.num_values != group.num_rows
            for chunk in chunks
        ):
            raise Rejected(
                f"{name} has columns that are compressed or of unequal length in row group {i}."
            )
        if sum(chunk.total_uncompressed_size for chunk in chunks) > size:
            raise Rejected(f"{name} declares row group {i} larger than the file.")
