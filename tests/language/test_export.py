"""Rows through files: nothing is lost, and every reply scores the same to the last digit."""

from __future__ import annotations

import errno
import hashlib
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from rlbench_suite.cli import suite
from rlbench_suite.core.registry import cards
from rlbench_suite.foundation.atomic_files import CannotWrite
from rlbench_suite.language import CompositeDataset, PuzzleDataset, score
from rlbench_suite.language.export import CANARY, push_to_hub, read, with_prompt, write_folder
from rlbench_suite.language.rows import instance_of


def all_puzzles(each: int = 2) -> CompositeDataset:
    """Return rows of all puzzles at their easiest tiers, which are made in a second."""
    ids = [card.id for card in cards().values() if card.puzzle]
    sources = [
        (PuzzleDataset(task_id, difficulty="easy", split="test", size=each), 1.0) for task_id in ids
    ]
    return CompositeDataset(sources, size=each * len(ids))


def scores(rows: list[Any], **reading: Any) -> list[float]:
    """Return scores of the right answer, a rule of thumb and junk for each row."""
    values = []
    for row in rows:
        puzzle, instance = instance_of(row)
        for answer in (row["answer"], puzzle.heuristic(instance), "junk"):
            values.append(score(row, f"<answer>{answer}</answer>", **reading))
    return values


def test_a_mixed_dataset_of_all_puzzles_survives_parquet_and_json(tmp_path: Path) -> None:
    data = all_puzzles()
    rows = data[:]
    for name in ("rows.parquet", "rows.jsonl"):
        data.export(tmp_path / name)
        again = read(tmp_path / name)
        assert again == ([with_prompt(row) for row in rows] if name.endswith("parquet") else rows)
        for reading in ({}, {"partial": True}, {"lenient": True}):
            assert scores(again, **reading) == scores(rows, **reading)
    assert set(scores(rows)) > {0.0, 1.0}
    with pytest.raises(ValueError, match=r"Unknown suffix of a file of rows '.csv'"):
        data.export(tmp_path / "rows.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.jsonl", "rows.parquet"]


def test_a_folder_for_the_hub_tells_what_it_holds(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    splits = {
        split: PuzzleDataset("Sudoku4-v0", split=split, size=5) for split in ("train", "test")
    }
    write_folder(splits, folder)
    text = (folder / "README.md").read_text()
    _, front, body = text.split("---\n", 2)
    facts = yaml.safe_load(front)
    assert facts["license"] == "mit"
    for entry in facts["configs"][0]["data_files"]:
        path = folder / entry["path"]
        assert pq.read_table(path).num_rows == 5
        assert read(path)[0]["metadata"]["split"] == entry["split"]
        assert (
            f"| {entry['split']} | 5 | 5 | `{hashlib.sha256(path.read_bytes()).hexdigest()}` |"
            in body
        )
    assert CANARY in body
    assert "Contamination" in body
    assert "| rlsuite/Sudoku4-v0 | 9 | test | 5 |" in body
    hashes = [{row["metadata"]["canonical"] for row in splits[split]} for split in splits]
    assert not hashes[0] & hashes[1]


def test_the_hub_gets_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    class Hub:
        def create_repo(self, name: str, **keywords: Any) -> str:
            calls.append((name, keywords))
            return f"hub/{name}"

        def upload_folder(self, *, folder_path: str, **keywords: Any) -> None:
            files = sorted(
                str(path.relative_to(folder_path)) for path in Path(folder_path).rglob("*.*")
            )
            calls.append((files, keywords))

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(HfApi=Hub))
    splits = {"train": PuzzleDataset("Sudoku4-v0", size=2)}
    assert push_to_hub(splits, "me/puzzles") == "hub/me/puzzles"
    assert calls == [
        ("me/puzzles", {"repo_type": "dataset", "private": True, "exist_ok": True}),
        (
            ["README.md", "data/train-00000-of-00001.parquet"],
            {"repo_id": "me/puzzles", "repo_type": "dataset"},
        ),
    ]
    with pytest.raises(ValueError, match="written user/name, got 'puzzles'"):
        push_to_hub(splits, "puzzles")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match=r"rlbench-suite\[huggingface\]"):
        push_to_hub(splits, "me/puzzles")


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ImportError, match=r"rlbench-suite\[huggingface\]"):
        PuzzleDataset("Sudoku4-v0", size=1).to_hugging_face()


def test_the_command_mixes_ids_and_difficulties(tmp_path: Path) -> None:
    def run(*words: str) -> Any:
        return CliRunner().invoke(suite.app, ["puzzles", "export", *words])

    path = tmp_path / "rows.parquet"
    done = run("Sudoku-v0", "SAT-v0", "--n", "12", "--difficulty", "29-32,easy", "--out", str(path))
    assert done.exit_code == 0, done.output
    rows = read(path)
    tiers = {(row["metadata"]["id"][8:], row["metadata"]["tier"]) for row in rows}
    assert len(rows) == 12
    assert tiers <= {("Sudoku-v0", tier) for tier in (29, 30, 31, 32)} | {
        ("SAT-v0", tier) for tier in (30, 32, 10)
    }
    assert len(tiers) > 3
    path = tmp_path / "unique.jsonl"
    done = run("NinePuzzle-v0", "--n", "6", "--difficulty", "3", "--unique", "--out", str(path))
    assert done.exit_code == 0, done.output
    assert (
        len({json.loads(line)["metadata"]["canonical"] for line in path.read_text().splitlines()})
        == 6
    )
    refused = run("SAT-v0", "--difficulty", "201-300", "--out", str(path))
    assert refused.exit_code
    assert "no difficulty from 201 to 300" in str(refused.exception) + refused.output


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"{", "line 2, is no JSON"),
        (b"[" * 100_000, "line 2, is no JSON"),
        (b"\xff\xfe", "line 2, is no JSON"),
        (b"", "line 2, is no JSON"),
        (b"1" * 5000, "line 2, is no JSON"),
        (b"[1]", "line 2, is no row but list: b'[1]'"),
        (b"null", "line 2, is no row but NoneType"),
    ],
    ids=["half", "deep", "binary", "empty", "number", "list", "null"],
)
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: bytes, sentence: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"question": "?"}\n' + line + b'\n{"question": "?"}\n')
    with pytest.raises(ValueError, match=re.escape(f"{path}, {sentence}")) as refusal:
        read(path)
    assert len(str(refusal.value)) < 500
    (tmp_path / "rows.parquet").write_bytes(b"PAR1" + bytes(50))
    with pytest.raises(
        ValueError, match=re.escape(f"{tmp_path / 'rows.parquet'} is no Parquet file of rows")
    ):
        read(tmp_path / "rows.parquet")


def test_texts_may_hold_any_character(tmp_path: Path) -> None:
    rows = [{"question": "a\u2028b\x85c\x1cd"}, {"question": "e"}]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    assert read(path) == rows
    path.write_bytes(b"")
    assert read(path) == []


@pytest.mark.parametrize("name", ["rows.parquet", "rows.jsonl"])
def test_a_full_disk_is_named_and_nothing_is_left(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    path = tmp_path / name
    call = CliRunner().invoke(
        suite.app, ["puzzles", "export", "Sudoku4-v0", "--n", "3", "--out", str(path)]
    )
    assert isinstance(call.exception, CannotWrite)
    assert (
        str(call.exception)
        == f"Cannot write {path}: No space left on device. Nothing of it was kept."
    )
    assert list(tmp_path.iterdir()) == []
