"""Datasets of one puzzle and of several."""

from __future__ import annotations

import pickle
import warnings
from collections import Counter
from itertools import islice

import pytest

from rlbench_suite.language import CompositeDataset, PuzzleDataset
from rlbench_suite.language.dataset import expected_distinct


def canonical(data: PuzzleDataset) -> list[str]:
    return [row["metadata"]["canonical"] for row in data]


def test_rows_take_several_difficulties_in_turn() -> None:
    data = PuzzleDataset("Sudoku-v0", size=5, seed=7, difficulty=(30, "medium"))
    assert [row["metadata"]["tier"] for row in data] == [30, 45, 30, 45, 30]
    assert [row["metadata"]["seed"] for row in data] == [7, 8, 9, 10, 11]
    assert data[3] == PuzzleDataset("Sudoku-v0", size=1, seed=10, difficulty=45)[0]
    ranged = PuzzleDataset("Sudoku-v0", size=11, difficulty=range(30, 41))
    assert [row["metadata"]["tier"] for row in ranged] == list(range(30, 41))
    with pytest.raises(ValueError, match="at least one of them; got none"):
        PuzzleDataset("Sudoku-v0", difficulty=())
    with pytest.raises(ValueError, match="Did you mean 'easy'"):
        PuzzleDataset("Sudoku-v0", difficulty=["medium", "eazy"])


def test_unique_rows_differ_and_warnings_tell_how_many_do() -> None:
    with pytest.warns(
        UserWarning, match=r"NinePuzzle-v0 has few .* of 1000 rows of one split, about (\d+) differ"
    ):
        PuzzleDataset("NinePuzzle-v0", difficulty="easy", split="test")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PuzzleDataset("Sudoku-v0")
        data = PuzzleDataset("Game24-v0", difficulty="medium", split="test", size=200, unique=True)
    assert len(set(canonical(data))) == 200
    again = PuzzleDataset("Game24-v0", difficulty="medium", split="test", size=200, unique=True)
    assert [again[number] for number in (150, 3)] == [data[150], data[3]], (
        "a function of the number alone"
    )
    with pytest.warns(UserWarning, match="about 135 differ"):
        repeated = PuzzleDataset("Game24-v0", difficulty="medium", split="test", size=200)
    assert (
        list(dict.fromkeys(canonical(repeated))) == canonical(data)[: len(set(canonical(repeated)))]
    )


def test_too_few_instances_are_named() -> None:
    with pytest.raises(
        ValueError, match=r"too few different test instances .* 5 rows were found.*puzzle.space"
    ):
        PuzzleDataset("NinePuzzle-v0", difficulty="easy", split="test", unique=True)
    five = PuzzleDataset("NinePuzzle-v0", difficulty="easy", split="test", unique=True, size=5)
    assert len(set(canonical(five))) == 5
    with pytest.raises(ValueError, match="too few"):
        next(five.stream(5))


def test_the_expected_number_of_different_instances_is_what_a_dataset_has() -> None:
    with pytest.warns(UserWarning, match="few different instances"):
        data = PuzzleDataset("Game24-v0", difficulty="medium", size=300)
    assert len(set(canonical(data))) == pytest.approx(
        expected_distinct(data.puzzle.space / 2, 300), rel=0.1
    )


def test_a_composite_draws_by_weights() -> None:
    data = CompositeDataset(
        {"SAT-v0": 1, "Sudoku4-v0": 3}, size=400, difficulty="easy", split="test"
    )
    counts = Counter(row["metadata"]["id"] for row in data)
    assert counts["rlsuite/Sudoku4-v0"] == pytest.approx(300, abs=4 * (400 * 0.25 * 0.75) ** 0.5)
    assert len({row["metadata"]["row"] for row in data}) == 400, "no seed is skipped or repeated"
    assert {row["metadata"]["split"] for row in data} == {"test"}
    for name, count in counts.items():
        seeds = [row["metadata"]["seed"] for row in data if row["metadata"]["id"] == name]
        assert seeds == list(range(count))


def test_a_composite_is_the_same_by_index_in_a_stream_and_after_pickling() -> None:
    weights = {"SAT-v0": 1.0, "Sudoku4-v0": 2.0, "ListFunctions-v0": 0.5}
    data = CompositeDataset(weights, size=6, seed=3)
    stream = list(islice(CompositeDataset(weights, size=6, seed=3).stream(), 20))
    assert [*data] == stream[:6]
    assert [data.row(number) for number in (19, 7)] == [stream[19], stream[7]]
    assert pickle.loads(pickle.dumps(data))[2:4] == stream[2:4]
    assert list(islice(data.stream(10), 3)) == stream[10:13]
    assert [row["metadata"]["id"] for row in CompositeDataset(weights, size=20, seed=4)] != [
        row["metadata"]["id"] for row in stream
    ]
    for row in stream:
        assert data.score_answer(f"<answer>{row['answer']}</answer>", row) == 1


def test_a_composite_takes_datasets_of_any_tier() -> None:
    easy, hard = (
        PuzzleDataset("SAT-v0", difficulty=tier, split="test") for tier in ("easy", "hard")
    )
    data = CompositeDataset([(easy, 1), (hard, 1)], size=30)
    assert {row["metadata"]["tier"] for row in data} == {10, 32}
    nested = CompositeDataset([(data, 1), (PuzzleDataset("Sudoku4-v0", size=9), 1)], size=10)
    assert len([*nested]) == 10


def test_wrong_parts_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one source"):
        CompositeDataset({})
    with pytest.raises(ValueError, match="weight of SAT-v0 is 0"):
        CompositeDataset({"SAT-v0": 0})
    with pytest.raises(
        TypeError, match=r"\{id: weight\} or a list of \(dataset, weight\); got 'SAT-v0'"
    ):
        CompositeDataset([("SAT-v0", 1)])
    with pytest.raises(TypeError, match="Datasets have their own split"):
        CompositeDataset([(PuzzleDataset("SAT-v0"), 1)], split="test")
    with pytest.raises(ValueError, match="Did you mean"):
        CompositeDataset({"SATT-v0": 1})
