"""Rows of every puzzle, and the one call that scores a reply to any of them."""

from __future__ import annotations

import hashlib
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa
import pytest

from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.language import PuzzleDataset, puzzle_of, rows, score, verdict
from rlbench_suite.language.rows import METADATA, text_of
from rlbench_suite.puzzle.puzzle import CLOSING, OPENING


def tag_answer(answer: str) -> str:
    return f"{OPENING}{answer}{CLOSING}"


def through_arrow(table_rows: list[rows.Row]) -> list[rows.Row]:
    """Return rows as a table of Arrow gives them back."""
    return pa.Table.from_pylist(table_rows).to_pylist()


@pytest.mark.every_puzzle
def test_a_row_is_plain_and_scores_alike_after_json_and_arrow(card: TaskCard) -> None:
    puzzle = puzzle_of(card.id)
    row = PuzzleDataset(card.id, split="test", size=1, seed=2)[0]
    metadata = row["metadata"]
    assert tuple(metadata) == METADATA
    assert {name: type(value) for name, value in metadata.items()} == dict.fromkeys(
        METADATA, str
    ) | {
        "tier": float,
        "seed": int,
        "difficulty": float,
    }
    assert metadata["row"] == f"{card.id}/{puzzle.tier:g}/test/2"
    instance = puzzle.generate(2, "test")
    assert json.loads(metadata["instance"]) == puzzle.to_plain(instance)
    assert (
        metadata["canonical"]
        == hashlib.blake2b(puzzle.canonical(instance), digest_size=16).hexdigest()
    )
    replies = [row["answer"], puzzle.heuristic(instance), *puzzle.constants()[:1], "junk", ""]
    for copy in (
        json.loads(json.dumps(row)),
        *through_arrow([row]),
        row | {"metadata": json.dumps(metadata)},
    ):
        for answer in replies:
            truth = puzzle.verify(instance, answer)
            assert verdict(copy, tag_answer(answer)) == truth
            assert score(copy, tag_answer(answer)) == truth.score
            assert score(copy | {"answer": ""}, tag_answer(answer)) == truth.score
        assert score(copy, row["answer"]) == score(copy, None) == 0


def test_rows_of_different_puzzles_and_tiers_share_a_table() -> None:
    """Struct columns of Arrow once filled absent fields with None.

    Rows of another tier had other shapes.
    """
    first = PuzzleDataset("Sudoku4-v0", size=3)
    second = PuzzleDataset("SAT-v0", size=3)
    mixed = [*first, *second, *PuzzleDataset("SAT-v0", size=3, difficulty="hard")]
    for row in through_arrow(mixed):
        for data in (first, second):
            assert data.verdict(tag_answer(row["answer"]), row).score == 1
            assert data.score_answer(tag_answer("1 2"), row) == 0


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        ("yes", "yes"),
        (None, None),
        ([], None),
        ([{"role": "assistant", "content": "yes"}], "yes"),
        ([{"role": "assistant", "content": "no"}, {"role": "assistant", "content": "yes"}], "yes"),
        ([{"role": "assistant", "content": "yes"}, {"role": "user", "content": "no"}], "yes"),
        ([{"role": "user", "content": "no"}], None),
        ([{"role": "assistant", "content": None}], None),
        ([{"role": "assistant"}], None),
        ([{"role": "assistant", "content": []}], ""),
        (
            [
                {
                    "role": "assistant",
                    "content": [{"type": "text", "text": "ye"}, {"type": "text", "text": "s"}],
                }
            ],
            "yes",
        ),
        (
            [{"role": "assistant", "content": [{"type": "image_url", "image_url": "no"}, "yes"]}],
            "yes",
        ),
    ],
)
def test_the_last_message_of_the_assistant_counts(completion: Any, text: str | None) -> None:
    assert text_of(completion) == text


@pytest.mark.parametrize(
    "completion",
    [5, 1.5, b"yes", {"role": "assistant"}, ["yes"], [{"role": "assistant", "content": 5}]],
)
def test_another_type_is_refused_by_name(completion: Any) -> None:
    data = PuzzleDataset("Sudoku4-v0", size=1)
    for call in (score, verdict):
        with pytest.raises(
            TypeError, match=r"A completion is a str, .* got (int|float|bytes|dict|list): "
        ):
            call(data[0], completion)
    with pytest.raises(TypeError, match="A completion is a str"):
        data.score_answer(completion, data[0])


def test_chat_messages_score_like_their_text() -> None:
    data = PuzzleDataset("Sudoku4-v0", size=1)
    chat = [
        {"role": "user", "content": data[0]["question"]},
        {"role": "assistant", "content": tag_answer(data[0]["answer"])},
    ]
    assert data.score_answer(chat, data[0]) == data.verdict(chat, data[0]).score == 1
    assert data.score_answer(chat[:1], data[0]) == 0, "the question is no reply"


def test_a_broken_row_is_refused_by_name() -> None:
    row = PuzzleDataset("Sudoku4-v0", size=1)[0]
    with pytest.raises(
        ValueError, match=r"The metadata of a row have the keys row, id, .* got metadata None"
    ):
        verdict({"question": "", "answer": ""}, "")
    with pytest.raises(ValueError, match="got id, tier"):
        verdict(row | {"metadata": {"id": "rlsuite/Sudoku4-v0", "tier": 6.0}}, "")
    with pytest.raises(ValueError, match="Sudoku4 has the fields givens"):
        verdict(row | {"metadata": row["metadata"] | {"instance": '{"clauses":[]}'}}, "")
    with pytest.raises(ValueError, match="Sudoku4 has no version v9"):
        verdict(row | {"metadata": row["metadata"] | {"id": "rlsuite/Sudoku4-v9"}}, "")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("instance", "[]"), ("instance", "null"), ("instance", None), ("instance", "[" * 100_000),
        ("id", None), ("instance", '{"givens": 3}'), ("tier", [4]), ("tier", None),
    ],
)  # fmt: skip
def test_damaged_metadata_are_refused_by_name(name: str, value: Any) -> None:
    row = PuzzleDataset("Sudoku4-v0", size=3)[0]
    for judged in (verdict, score):
        with pytest.raises(ValueError, match=r"metadata of a row|is no instance of"):
            judged(row | {"metadata": row["metadata"] | {name: value}}, tag_answer("1"))
    big = json.dumps(json.loads(row["metadata"]["instance"]) | {"givens": [10**30] * 16})
    with pytest.raises(ValueError, match="is no instance of"):
        verdict(row | {"metadata": row["metadata"] | {"instance": big}}, tag_answer("1"))


@pytest.mark.parametrize("answer", [5, None, ["1"], float("nan"), ""])
def test_an_answer_of_another_kind_does_not_harm(answer: Any) -> None:
    row = PuzzleDataset("Sudoku4-v0", size=3)[0]
    best = tag_answer(row["answer"])
    wrong = row["answer"].replace("1", "2", 1)
    assert score(row | {"answer": answer}, best) == 1
    assert verdict(row | {"answer": answer}, tag_answer(wrong), partial=True) == verdict(
        row, tag_answer(wrong), partial=True
    )


def test_an_answer_that_is_wrong_is_refused_where_it_would_give_credit() -> None:
    """The solver does not look for another solution.

    An instance that no generator has made may have none.
    """
    row = PuzzleDataset("Sudoku4-v0", size=3)[0]
    wrong = row["answer"].replace("1", "2", 1)
    row |= {"answer": "hello"}
    assert verdict(row, tag_answer(wrong)).score == 0
    with pytest.raises(
        ValueError, match="the answer of the row, 'hello', does not solve its instance"
    ):
        verdict(row, tag_answer(wrong), partial=True)


def test_the_instance_that_replies_share_cannot_be_changed() -> None:
    _, instance = rows.instance_of(PuzzleDataset("Sudoku4-v0", size=3)[0])
    with pytest.raises(ValueError, match="read-only"):
        instance.givens[...] = 0


# -- forged rows -----------------------------------------------------------------------------------

FORGED_NUMBERS = (-1, 0, 1, 2, 99, 2**31 - 1)
MAX_SECONDS = 10
"""A verdict on a forged row takes far less; the limit is for busy machines."""


@contextmanager
def limit_seconds(seconds: int) -> Iterator[None]:
    """Raise a TimeoutError if the body takes longer."""

    def overdue(*_: Any) -> None:
        raise TimeoutError(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, overdue)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def replace_numbers(value: Any, number: int) -> Any:
    """Return numbers or nested lists of them with another number everywhere."""
    return [replace_numbers(each, number) for each in value] if isinstance(value, list) else number


@pytest.mark.every_puzzle
def test_a_forged_instance_is_judged_or_refused_soon(card: TaskCard) -> None:
    """Each field in turn has the same number everywhere.

    A forged row never ends a trainer or a judge.
    """
    row = PuzzleDataset(card.id, split="test", size=1, seed=2)[0]
    instance = json.loads(row["metadata"]["instance"])
    for field in instance:
        for number in FORGED_NUMBERS:
            forged = json.dumps(instance | {field: replace_numbers(instance[field], number)})
            stranger = row | {"metadata": row["metadata"] | {"instance": forged}}
            reply = tag_answer(f" {row['answer']} ")
            with limit_seconds(MAX_SECONDS), suppress(ValueError):
                assert 0 <= verdict(stranger, reply, partial=True).score <= 1
