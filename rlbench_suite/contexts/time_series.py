"""Read a user's records: conditions over time, such as weather or prices.

They are columns of a CSV or Parquet file.

A task names the series that it takes (:meth:`~rlbench_suite.core.task.Described.series`). A context
gives a record by the name of the series, as the path of a file or, in Python, as a mapping of
columns::

    weather: my_weather.csv

The first row of a CSV file names the columns: ``time``, and those of the series. Other columns are
ignored. Time increases from row to row. Where a series allows it, values between two rows are
interpolated linearly. Values such as the price of an hour hold until the next row, and a step has
the mean of its duration.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rlbench_suite.foundation.unknown_names import MAX_QUOTE

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".csv", ".parquet")
MAX_BYTES = 2**25
"""Largest size of a file in bytes."""
MAX_HEADER_BYTES = 2**16
"""Largest number of bytes of a CSV file's first row."""
MAX_REASON_CHARACTERS = 200
"""Largest number of characters of a reader's message that an error repeats."""
MAX_ROWS = 200_000
"""Largest number of rows of a file, and of steps of a record."""
MAX_FRACTION = 1.5
"""Largest value of a column in % that is taken for a column of fractions.

Some of these exceed 1, by errors of an instrument.
"""


_NUMBER = re.compile(
    r"\s*[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*|[-+]?(?:nan|inf|infinity)",
    re.IGNORECASE,
)


class Column(NamedTuple):
    """A quantity of a series."""

    name: str
    unit: str
    minimum: float
    """Lowest value that makes sense"""
    maximum: float
    """Highest value that makes sense"""
    meaning: str
    optional: bool = False
    """True if a record may leave it out; the task then samples it as shipped"""
    holds: bool = False
    """True if a value holds until the next row, as the price of an hour does.

    A step has the mean of its duration
    """
    longest_gap: float = math.inf
    """Longest time between two rows of a record with this column"""


class Series(NamedTuple):
    """A series of which a context may give a record."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    time_unit: str
    step: float
    """Step of the task in the unit of time. Records are brought to this step"""
    min_steps: int
    """Smallest number of steps of a record"""
    is_integer: bool = False
    """True for whole numbers, one row a step: nothing is interpolated"""
    longest_gap: float = math.inf
    """Longest time between two rows"""
    begins_at: float = 0.0
    """The first time is a multiple of this, such as of a day; 0 for any"""
    follows_constants: bool = False
    """True if its step and the ranges of its columns follow from the constants of a context"""
    readers: Mapping[str, Callable[[Path, Mapping[str, Column]], Mapping[str, np.ndarray]]] = (
        MappingProxyType({})
    )
    """Readers of other kinds of files, by suffix.

    Each returns columns of the series, or raises a ValueError with part of a sentence.
    """

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Suffixes of the files that hold a record."""
        return (*SUFFIXES, *self.readers)


class Record(NamedTuple):
    """A record of a series, at the steps of the task; or a document, without columns."""

    name: str
    columns: tuple[str, ...]
    sha256: str
    """Hash of the data"""
    data: bytes
    """float64, little-endian, row by row; of a document JSON"""
    step: float | None = None
    """Time between two rows, in the unit of the series.

    It is None for a document, and for records that older versions kept.
    """

    def values(self) -> np.ndarray:
        """Return the record, float64 ``(steps, columns)``."""
        return np.frombuffer(self.data, "<f8").reshape(-1, len(self.columns))


def sha256_of(data: bytes) -> str:
    """Return the hash of a record's data."""
    return hashlib.sha256(data).hexdigest()


def read_record(source: Any, series: Series, folder: Path) -> Record:
    """Return the record that a file or a mapping of columns describes.

    Args:
        source: path of a CSV or Parquet file, or of another that the series has a reader for; or
            columns by name, each a sequence of numbers.
        series: the series.
        folder: folder from which a relative path starts.

    Raises:
        ValueError: it is no record of the series. The message is a part of a sentence.
    """
    if not isinstance(source, Mapping | str | Path):
        raise ValueError(
            f"{series.name} is a file ({', '.join(series.suffixes)}), got "
            f"{str(source)[:MAX_QUOTE]!r}"
        )
    where = (
        series.name if isinstance(source, Mapping) else f"{series.name} {str(source)[:MAX_QUOTE]!r}"
    )
    try:
        if isinstance(source, Mapping):
            names, columns = _read_mapping(source, series)
        else:
            names, columns = _read(folder / source, series)
        table = _record_table(columns, names, series)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    data = np.ascontiguousarray(table, "<f8").tobytes()
    return Record(series.name, tuple(names[1:]), sha256_of(data), data, series.step)


def refuse_other_steps(record: Record, series: Series) -> None:
    """Refuse a record that was read for another series, or at other steps.

    Raises:
        ValueError: it was. The message is a part of a sentence.
    """
    try:
        _columns_to_read(("time", *record.columns), series)
    except ValueError as error:
        raise ValueError(f"{series.name}: {error}") from None
    if record.step and not math.isclose(record.step, series.step, rel_tol=1e-9):
        raise ValueError(
            f"{series.name} was read at steps of {record.step:g} {series.time_unit}, and a step is "
            f"now {series.step:g} {series.time_unit}: give its file again"
        )


def _record_table(
    columns: Sequence[np.ndarray], names: Sequence[str], series: Series
) -> np.ndarray:
    """Return the table of a record at the steps of the task, float64 ``(steps, columns)``.

    Raises:
        ValueError: the columns make no record.
    """
    time, *values = columns
    if len(time) > MAX_ROWS:
        raise ValueError(f"it has more than {MAX_ROWS:,} rows")
    for name, column in zip(names, columns, strict=True):
        if not np.isfinite(column).all():
            row = int(np.argmin(np.isfinite(column)))
            raise ValueError(f"{name} is not finite in row {row + 1}: {column[row]:g}")
    rises = np.diff(time) > 0
    if len(time) < 2 or not rises.all():
        row = int(np.argmin(rises)) + 2 if len(time) > 1 else 1
        raise ValueError(f"time must increase from row to row, and does not in row {row}")
    gaps = np.diff(time)
    quantities = {column.name: column for column in series.columns}
    longest = min(series.longest_gap, *(quantities[name].longest_gap for name in names[1:]))
    if gaps.max() > longest:
        raise ValueError(
            f"time must go up by at most {longest:g} {series.time_unit} from row to row, and goes "
            f"up by {gaps.max():g} in row {int(np.argmax(gaps)) + 2}"
        )
    if series.begins_at and time[0] % series.begins_at:
        raise ValueError(
            f"time must begin at a midnight, a multiple of {series.begins_at:g} "
            f"{series.time_unit}, got {time[0]:g}"
        )
    for name, column in zip(names[1:], values, strict=True):
        _refuse_implausible(quantities[name], column)
    if series.is_integer:
        if not (np.diff(time) == series.step).all():
            raise ValueError(
                f"time must go up by {series.step:g} {series.time_unit} from row to row"
            )
        table = np.stack(values, 1)
        if (table != np.round(table)).any():
            raise ValueError("its values must be whole numbers")
    else:
        table = _resample(time, values, [quantities[name].holds for name in names[1:]], series)
    if len(table) < series.min_steps:
        raise ValueError(
            f"it has {len(table)} steps of {series.step:g} {series.time_unit}, and at least "
            f"{series.min_steps} are needed, so that episodes of train and test lie apart in it"
        )
    return table


def _refuse_implausible(quantity: Column, values: np.ndarray) -> None:
    """Raise a ValueError if a value is out of range.

    Raise one too if all values are fractions where per cent is meant.
    """
    outside = (values < quantity.minimum) | (values > quantity.maximum)
    if outside.any():
        row = int(np.argmax(outside))
        unit = f" {quantity.unit}" if quantity.unit else ""
        raise ValueError(
            f"{quantity.name} must be from {quantity.minimum:g} to {quantity.maximum:g}{unit}, got "
            f"{values[row]:g} in row {row + 1}"
        )
    if quantity.unit == "%" and values.max() <= MAX_FRACTION:
        raise ValueError(
            f"{quantity.name} must be in %, and its largest value is {values.max():g}: multiply "
            "fractions by 100"
        )


def _resample(
    time: np.ndarray, values: Sequence[np.ndarray], hold: Sequence[bool], series: Series
) -> np.ndarray:
    """Return columns at the steps of the task.

    Values are interpolated, or are the mean of each step where they hold until the next row.
    """
    steps = (time[-1] - time[0]) / series.step
    if not steps < MAX_ROWS:
        raise ValueError(
            f"it has more than {MAX_ROWS:,} steps of {series.step:g} {series.time_unit}"
        )
    step_times = time[0] + series.step * np.arange(int(steps + 1e-9) + 1)
    return np.stack(
        [
            _means(step_times, time, column, series.step)
            if holds
            else np.interp(step_times, time, column)
            for column, holds in zip(values, hold, strict=True)
        ],
        1,
    )


def _means(step_times: np.ndarray, time: np.ndarray, values: np.ndarray, step: float) -> np.ndarray:
    """Return the mean of each step, by its first time, of values that hold until the next row."""
    row_times = np.append(time, time[-1] + step)
    area = np.append(0.0, np.cumsum(values * np.diff(row_times)))
    return np.diff(np.interp(np.append(step_times, step_times[-1] + step), row_times, area)) / step


def _columns_to_read(columns: Collection[str], series: Series) -> list[str]:
    """Return the columns to read, time first.

    Raises:
        ValueError: one that is needed is missing, or all are.
    """
    for name in ("time", *(column.name for column in series.columns if not column.optional)):
        if name not in columns:
            raise ValueError(f"it has no column {name!r}")
    names = list(columns)
    for name in ("time", *(column.name for column in series.columns)):
        if names.count(name) > 1:
            raise ValueError(f"it has the column {name!r} more than once")
    present = [column.name for column in series.columns if column.name in columns]
    if not present:
        raise ValueError(
            f"it has none of the columns {', '.join(column.name for column in series.columns)}"
        )
    return ["time", *present]


def _read_mapping(
    columns_by_name: Mapping[Any, Any], series: Series
) -> tuple[list[str], list[np.ndarray]]:
    """Return names and columns of a mapping."""
    names = _columns_to_read(columns_by_name, series)
    try:
        columns = [np.asarray(columns_by_name[name], np.float64) for name in names]
    except (TypeError, ValueError):
        raise ValueError("its columns must be sequences of numbers") from None
    if any(
        column.ndim != 1 or len(column) != len(columns[0]) or len(column) > MAX_ROWS
        for column in columns
    ):
        raise ValueError(f"its columns must be of equal length, at most {MAX_ROWS:,}")
    return names, columns


def _read(path: Path, series: Series) -> tuple[list[str], list[np.ndarray]]:
    """Return names and columns of a file."""
    kind = path.suffix.lower()
    if kind not in series.suffixes:
        raise ValueError(f"it is not a {' or '.join(series.suffixes)} file")
    import pyarrow as pa

    try:
        if not path.is_file():
            raise ValueError("there is no such file")
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES:,} bytes")
        if kind in series.readers:
            return _read_mapping(
                series.readers[kind](path, {column.name: column for column in series.columns}),
                series,
            )
        table = (_read_csv if kind == ".csv" else _read_parquet)(path, series)
        return table.column_names, [np.asarray(column, np.float64) for column in table.columns]
    except (pa.ArrowException, OSError) as error:
        reason = getattr(error, "strerror", None) or (error.args[0] if error.args else error)
        words = " ".join(str(reason).split())
        raise ValueError(words[:MAX_REASON_CHARACTERS].removesuffix(".")) from None


def _read_csv(path: Path, series: Series) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    with path.open("rb") as file:
        header = file.readline(MAX_HEADER_BYTES).decode("utf-8-sig", "replace").partition("\r")[0]
        names = _columns_to_read([name.strip().strip('"') for name in header.split(",")], series)
        if sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(2**20), b"")) > MAX_ROWS:
            raise ValueError(f"it has more than {MAX_ROWS:,} rows")
    kinds = dict.fromkeys(names, pa.float64())
    convert = csv.ConvertOptions(column_types=kinds, include_columns=names, null_values=[])
    try:
        return csv.read_csv(path, convert_options=convert)
    except pa.ArrowInvalid:
        _refuse_rows(path, names)
        raise


def _refuse_rows(path: Path, names: Sequence[str]) -> None:
    """Raise a ValueError that names the first row that is wrong.

    A row is wrong if it is too short or too long or has a value that is no number.
    """
    import pyarrow as pa
    from pyarrow import csv

    def refuse(row: csv.InvalidRow) -> str:
        odd_rows.append(row)
        return "error"

    odd_rows: list[csv.InvalidRow] = []
    kinds = dict.fromkeys(names, pa.string())
    try:
        table = csv.read_csv(
            path,
            read_options=csv.ReadOptions(use_threads=False),  # otherwise rows have no number
            parse_options=csv.ParseOptions(invalid_row_handler=refuse),
            convert_options=csv.ConvertOptions(
                column_types=kinds, include_columns=names, null_values=[]
            ),
        )
    except pa.ArrowInvalid:
        if not odd_rows or odd_rows[0].number is None:
            raise
        row = odd_rows[0]
        raise ValueError(
            f"row {row.number - 1} has {row.actual_columns} columns, and the header "
            f"{row.expected_columns}"
        ) from None
    for name in table.column_names:
        for row, text in enumerate(table[name].to_pylist(), start=1):
            if not _NUMBER.fullmatch(text):
                raise ValueError(f"{name} is no number in row {row}: {text[:20]!r}")


def _read_parquet(path: Path, series: Series) -> pa.Table:
    import pyarrow as pa
    from pyarrow import parquet, types

    with parquet.ParquetFile(path) as file:
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        if max(file.metadata.num_rows, sum(group.num_rows for group in groups)) > MAX_ROWS:
            raise ValueError(f"it has more than {MAX_ROWS:,} rows")
        schema = file.schema_arrow
        names = _columns_to_read(schema.names, series)
        for name in names:
            if not (
                types.is_floating(schema.field(name).type)
                or types.is_integer(schema.field(name).type)
            ):
                raise ValueError(f"the column {name!r} is not of numbers")
        table = file.read(columns=names)
    return table.select(names).cast(pa.schema([(name, pa.float64()) for name in names]))
