"""Columns of the tables of a cell, and how their files are written, checked and read."""

from __future__ import annotations

import reprlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rlbench_suite.evaluation.cell import Cell

_CELL = [("agent", pa.string()), ("task", pa.string()), ("seed", pa.int64())]
EPISODES = pa.schema([
    *_CELL, ("episode_seed", pa.uint64()),
    ("return", pa.float64()),  # scalar: objectives by the card's weights, agents by their mean
    ("score", pa.float64()),  # normalised by the card's scale
    ("length", pa.int32()), ("success", pa.bool_()), ("terminated", pa.bool_()),
    ("cost", pa.float64()),
    ("returns", pa.list_(pa.float64())),  # by objective or agent; one number otherwise
    # The task's own, at the last step; tokens of language models.
    ("measures", pa.map_(pa.string(), pa.float64())),
])  # fmt: skip
CURVE = pa.schema([
    *_CELL, ("steps", pa.int64()), ("total_steps", pa.int64()),
    ("seconds", pa.float64()), ("compile_seconds", pa.float64()), ("episode_return", pa.float64()),
])  # fmt: skip
TRACE = pa.schema([*_CELL, ("episode_seed", pa.uint64()), ("actions", pa.list_(pa.float64()))])
"""Actions of an episode, one after another. A float64 represents every int32 and float32 exactly.
"""
FRONT = pa.schema([
    *_CELL, ("exact", pa.bool_()),  # a point of the task's exact front, not of the agent's
    ("weights", pa.list_(pa.float64())),  # of the policy, if it was asked for by weights
    ("returns", pa.list_(pa.float64())),  # by objective, means over episodes
])  # fmt: skip

MATCHES = pa.schema([
    ("task", pa.string()), ("agent_0", pa.string()), ("seed_0", pa.int64()),  # who sat in seat 0
    ("agent_1", pa.string()), ("seed_1", pa.int64()),
    ("game", pa.int64()),  # from 0; -1 in the row of a policy that plays no matches
    ("returns", pa.list_(pa.float64())),  # of both seats
])  # fmt: skip

_OUTCOMES = pa.schema([
    EPISODES.field(name)
    for name in (*dict(_CELL), "return", "length", "success", "cost", "returns")
])  # fmt: skip
"""Columns from which a cell's numbers follow. The measures, which are many, are left out."""


def schemas(*, on_train: bool, of_set: bool) -> dict[str, pa.Schema]:
    """Return the columns of a cell's tables by file.

    A cell that was evaluated on the train split has one table more, and so has a set of policies.
    """
    tables = {"episodes.parquet": EPISODES, "curve.parquet": CURVE, "trace.parquet": TRACE}
    if on_train:
        tables["train_episodes.parquet"] = EPISODES
    if of_set:
        tables["front.parquet"] = FRONT
    return tables


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table with checksums."""
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)


def read_table(path: Path, schema: pa.Schema) -> pa.Table:
    """Read a table.

    Raises:
        OSError, ValueError: it is missing or damaged, or has other columns.
    """
    try:
        return pq.read_table(path, schema=schema, page_checksum_verification=True)
    except pa.ArrowException as error:
        raise ValueError(error) from None


def check_head(path: Path, schema: pa.Schema, cell: Cell, episodes: int) -> None:
    """Check the columns of a table, that its rows are of a cell, and that it has one an episode.

    A curve and a front may have any number of rows.

    Raises:
        OSError, ValueError: it is missing, damaged or another table.
    """
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            columns = file.schema_arrow
            names = file.read(list(cell._fields), use_threads=False)
    except pa.ArrowException as error:
        raise ValueError(error) from None
    if not columns.equals(schema):
        raise ValueError("it has other columns")
    check_cell(names, cell)
    if schema not in (CURVE, FRONT) and len(names) != episodes:
        raise ValueError(f"it has {len(names)} rows for {episodes} episodes")


def read_outcomes(path: Path, episodes: int) -> pa.Table:
    """Return the columns of a table of episodes from which a cell's numbers follow.

    Raises:
        OSError, ValueError: it is damaged, has other columns, or not a row for each episode.
    """
    if not path.is_file():  # to open a pipe could take for ever
        raise ValueError("it is no file")
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            if file.metadata.num_rows != episodes:  # a small file may hold a large table
                raise ValueError(f"it has {file.metadata.num_rows} rows for {episodes} episodes")
            table = file.read(_OUTCOMES.names, use_threads=False)
    except pa.ArrowException as error:
        raise ValueError(error) from None
    if not table.schema.equals(_OUTCOMES):
        raise ValueError("it has other columns")
    if not len(table):
        raise ValueError("it has no rows")
    return table


def check_cell(table: pa.Table, cell: Cell) -> None:
    """Check that all rows of a table are of a cell.

    Raises:
        ValueError: some are of another one.
    """
    for name, value in cell._asdict().items():
        for stored_value in table[name].unique().to_pylist():
            if stored_value != value:
                raise ValueError(
                    f"it belongs to another cell, whose {name} is {reprlib.repr(stored_value)}"
                )
