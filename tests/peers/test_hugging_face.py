"""Rows through Hugging Face's datasets: mixed puzzles score the same to the last digit."""

from pathlib import Path
from typing import Any

import pytest

from rlbench_suite.core.registry import cards
from rlbench_suite.language import CompositeDataset, PuzzleDataset, score
from rlbench_suite.language.export import read, write_folder
from rlbench_suite.language.rows import instance_of

datasets = pytest.importorskip("datasets", reason="needs the extra huggingface")
if not hasattr(datasets, "load_dataset"):
    # The suite's folder of the same name.
    pytest.skip("needs the extra huggingface", allow_module_level=True)


def scores(rows: Any) -> list[float]:
    results = []
    for row in rows:
        puzzle, instance = instance_of(row)
        for answer in (row["answer"], puzzle.heuristic(instance), "junk"):
            results.append(
                score(row, [{"role": "assistant", "content": f"<answer>{answer}</answer>"}])
            )
            results.append(score(row, f"<answer>{answer}</answer>", partial=True))
    return results


def test_a_mixed_dataset_of_all_puzzles_survives(tmp_path: Path) -> None:
    ids = [card.id for card in cards().values() if card.puzzle]
    weighted = [
        (PuzzleDataset(task_id, difficulty="easy", split="test", size=2), 1) for task_id in ids
    ]
    data = CompositeDataset(weighted, size=2 * len(ids))
    rows = data[:]
    table = data.to_hugging_face()
    assert table.column_names == ["prompt", "question", "answer", "metadata"]
    assert scores(table) == scores(rows)
    table.to_parquet(str(tmp_path / "theirs.parquet"))
    for again in (
        datasets.Dataset.from_parquet(
            str(tmp_path / "theirs.parquet"), cache_dir=str(tmp_path / "cache")
        ),
        datasets.concatenate_datasets(
            [table, PuzzleDataset("SAT-v0", size=1).to_hugging_face()]
        ).select(range(len(rows))),
        datasets.Dataset.from_list(rows),  # a user's way: rows of many puzzles in one list
        read(tmp_path / "theirs.parquet"),
    ):
        assert [row["metadata"] for row in again] == [row["metadata"] for row in rows]
        assert scores(again) == scores(rows)


def test_a_folder_loads_as_the_hub_would(tmp_path: Path) -> None:
    splits = {
        split: PuzzleDataset("Sudoku4-v0", split=split, size=5) for split in ("train", "test")
    }
    write_folder(splits, tmp_path / "made")
    loaded = datasets.load_dataset(str(tmp_path / "made"), cache_dir=str(tmp_path / "cache"))
    assert set(loaded) == {"train", "test"}
    for split, data in splits.items():
        assert [row["question"] for row in loaded[split]] == [row["question"] for row in data]
        assert loaded[split].features == data.to_hugging_face().features


def test_the_hub_accepts_the_card(tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    write_folder({"train": PuzzleDataset("Sudoku4-v0", size=2)}, tmp_path)
    card = hub.DatasetCard.load(tmp_path / "README.md")
    assert card.data.license == "mit"
    assert card.data.configs[0]["data_files"][0]["split"] == "train"
