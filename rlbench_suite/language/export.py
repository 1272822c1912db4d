"""Write datasets of puzzles as files.

They are JSON lines, Parquet, or a folder as the Hugging Face hub takes it.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rlbench_suite.foundation.atomic_files import replacing
from rlbench_suite.foundation.unknown_names import unknown
from rlbench_suite.language.rows import METADATA, Row

Progress = Callable[[Iterable[int]], Iterable[int]]
"""Function that wraps the numbers of the rows, to show progress."""

CANARY = (
    "rlbench-suite canary 6f0d2d0c-8a55-4c0e-9d1b-5f2f9f6e3c1a: benchmark data must not appear in "
    "training corpora"
)
"""Text that every card carries.

A corpus that holds test data can be found by searching for it.
"""
SUFFIXES = (".jsonl", ".parquet")
SHARD = "data/{split}-00000-of-00001.parquet"
_MAX_REPEATED = 80
"""Number of bytes of a bad line that an error repeats."""
_GROUP = 1000
"""Rows written at a time."""

_MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string())])
_TYPES = {"tier": pa.float64(), "difficulty": pa.float64(), "seed": pa.int64()}
SCHEMA = pa.schema(
    {
        "prompt": pa.list_(_MESSAGE),
        "question": pa.string(),
        "answer": pa.string(),
        "metadata": pa.struct([(name, _TYPES.get(name, pa.string())) for name in METADATA]),
    }
)
"""Columns of Parquet files.

They are those of rows, and ``prompt``, the question as chat messages, which trainers read.
"""


def with_prompt(row: Row) -> Row:
    """Return a row with ``prompt``, the question as chat messages."""
    return {"prompt": [{"role": "user", "content": row["question"]}], **row}


def write(dataset: Sequence[Row], path: Path, progress: Progress = lambda numbers: numbers) -> None:
    """Write all rows to a ``.jsonl`` or ``.parquet`` file, which appears when it is complete.

    Raises:
        ValueError: another suffix.
    """
    if path.suffix not in SUFFIXES:
        raise ValueError(unknown("suffix of a file of rows", path.suffix, SUFFIXES))
    rows = (dataset[number] for number in progress(range(len(dataset))))
    with replacing(path) as unfinished:
        if path.suffix == ".parquet":
            with pq.ParquetWriter(unfinished, SCHEMA, compression="zstd") as writer:
                while group := [with_prompt(row) for row in islice(rows, _GROUP)]:
                    writer.write_table(pa.Table.from_pylist(group, SCHEMA))
        else:
            with unfinished.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)


def read(path: Path) -> list[Row]:
    """Return the rows of a file of :func:`write`, or of one that Hugging Face's ``datasets`` wrote.

    Raises:
        ValueError: another suffix, or a line that is no row; the message names the file and the
            line.
        OSError: the file cannot be read.
    """
    if path.suffix == ".parquet":
        try:
            rows: list[Row] = pq.read_table(path).to_pylist()
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"{path} is no Parquet file of rows: {str(error).splitlines()[0]}"
            ) from None
        return rows
    if path.suffix != ".jsonl":
        raise ValueError(unknown("suffix of a file of rows", path.suffix, SUFFIXES))
    # Only line feeds end a row: texts may hold other characters at which str.splitlines splits.
    text = path.read_bytes().removesuffix(b"\n")
    lines = text.split(b"\n") if text else []
    return [_row(line, path, number) for number, line in enumerate(lines, start=1)]


def _row(line: bytes, path: Path, number: int) -> Row:
    """Return the row that a line holds.

    Raises:
        ValueError: it holds none.
    """
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path}, line {number}, is no JSON ({error}): {line[:_MAX_REPEATED]!r}"
        ) from None
    if not isinstance(row, dict):
        raise ValueError(
            f"{path}, line {number}, is no row but {type(row).__name__}: {line[:_MAX_REPEATED]!r}"
        )
    return row


def write_folder(
    splits: Mapping[str, Sequence[Row]], folder: Path, progress: Progress = lambda numbers: numbers
) -> None:
    """Write datasets as a folder that the Hugging Face hub takes: Parquet files and a card.

    Args:
        splits: names of splits, such as ``train`` and ``test``, with their rows.
        folder: the folder, which is made.
        progress: function that wraps the numbers of the rows of each split, to show progress.

    Raises:
        ValueError: no split.
    """
    if not splits:
        raise ValueError("A folder needs at least one split.")
    for split, dataset in splits.items():
        write(dataset, folder / SHARD.format(split=split), progress)
    with replacing(folder / "README.md") as unfinished:
        unfinished.write_text(card(folder, list(splits)), encoding="utf-8")


def push_to_hub(
    splits: Mapping[str, Sequence[Row]], repository: str, *, private: bool = True
) -> str:
    """Upload datasets to the Hugging Face hub, and return the address.

    ``hf auth login`` stores your token.

    Args:
        splits: names of splits, such as ``train`` and ``test``, with their rows.
        repository: ``user/name``.
        private: False to let everybody read it.

    Raises:
        ImportError: the package ``huggingface_hub`` is not installed.
        ValueError: no split, or a repository that is no ``user/name``.
    """
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        raise ImportError(
            "huggingface_hub is missing: pip install 'rlbench-suite[huggingface]'"
        ) from error
    user, _, name = repository.partition("/")
    if not user or not name or "/" in name:
        raise ValueError(f"A repository is written user/name, got {repository!r}.")
    with tempfile.TemporaryDirectory() as folder:
        write_folder(splits, Path(folder))
        hub = HfApi()
        address = hub.create_repo(repository, repo_type="dataset", private=private, exist_ok=True)
        hub.upload_folder(folder_path=folder, repo_id=repository, repo_type="dataset")
    return str(address)


def card(folder: Path, splits: list[str]) -> str:
    """Return the card of a folder of :func:`write_folder`, as Markdown that begins with YAML."""
    paths = {split: SHARD.format(split=split) for split in splits}
    tables = {split: read(folder / path) for split, path in paths.items()}
    files = "".join(
        f"      - split: {split}\n        path: {path}\n" for split, path in paths.items()
    )
    digests = "".join(
        f"| {split} | {len(tables[split]):,} | "
        f"{len({row['metadata']['canonical'] for row in tables[split]}):,} | "
        f"`{hashlib.sha256((folder / path).read_bytes()).hexdigest()}` |\n"
        for split, path in paths.items()
    )
    counts = Counter(
        (row["metadata"]["id"], row["metadata"]["tier"], split)
        for split in splits
        for row in tables[split]
    )
    contents = "".join(
        f"| {task_id} | {tier:g} | {split} | {n:,} |\n"
        for (task_id, tier, split), n in counts.items()
    )
    return CARD.format(
        files=files,
        digests=digests,
        contents=contents,
        canary=CANARY,
        version=version("rlbench-suite"),
    )


CARD = """\
---
license: mit
task_categories:
  - text-generation
language:
  - en
tags:
  - reasoning
  - puzzles
  - verifiable-rewards
configs:
  - config_name: default
    data_files:
{files}---

# Puzzles with verifiable answers

Made by rlbench-suite {version}. Each row has a `question`, one right `answer`, `metadata`, \
and `prompt`, which is the
question as chat messages. Any answer that keeps the rules is right: \
score replies with the package, not by comparing
text.

```python
from datasets import load_dataset
from rlbench_suite.language import score

row = load_dataset("USER/NAME", split="train")[0]
score(row, f"<answer>{{row['answer']}}</answer>")  # 1.0
```

| split | rows | different instances | SHA-256 of the file |
| --- | --- | --- | --- |
{digests}
| puzzle | difficulty | split | rows |
| --- | --- | --- | --- |
{contents}
## Contamination

The instance itself decides its split, so no choice of seeds makes `train` and `test` overlap: \
renamed, rotated and
reflected instances count as one. To check that training data of your own hold no test instance,
compare `metadata["canonical"]`: two rows with the same hash ask equivalent questions. \
Rows can be made again from their
`id`, `tier`, `split` and `seed`, so a fresh test set takes only seeds that nobody published.

Please keep this text in every copy, so that corpora that hold these data can be found:

{canary}
"""
