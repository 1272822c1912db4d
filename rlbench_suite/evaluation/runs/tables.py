"""Columns of the tables of a cell, and how their files are written, checked and read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

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


def schemas(*, on_train: bool) -> dict[str, pa.Schema]:
    """Return the columns of a cell's tables by file.

    A cell that was evaluated on the train split has one table more.
    """
    tables = {"episodes.parquet": EPISODES, "curve.parquet": CURVE, "trace.parquet": TRACE}
    return tables | {"train_episodes.parquet": EPISODES} if on_train else tables


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


def check_head(path: Path, schema: pa.Schema, episodes: int) -> None:
    """Check the columns of a table, and that it has a row for each episode.

    A curve may have any number of rows.

    Raises:
        OSError, ValueError: it is missing, damaged or another table.
    """
    try:
        head = pq.read_metadata(path)
        columns = head.schema.to_arrow_schema()
    except pa.ArrowException as error:
        raise ValueError(error) from None
    if not columns.equals(schema):
        raise ValueError("it has other columns")
    if schema is not CURVE and head.num_rows != episodes:
        raise ValueError(f"it has {head.num_rows} rows for {episodes} episodes")
