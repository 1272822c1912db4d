"""Judge replies in worker processes.

The verdicts are the same, within a time limit, whatever a verifier does.
"""

from __future__ import annotations

import os
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rlbench_suite.language import CompositeDataset, Judge, judging, verdict
from rlbench_suite.puzzle.puzzle import Verdict


def misbehave(row: Any, completion: Any, **reading: Any) -> Verdict:
    """Judge as usual, but hang or die on demand."""
    if completion == "hang":
        time.sleep(60)
    if completion == "die":
        os._exit(3)
    return verdict(row, completion, **reading)


class Misbehaving(Judge):
    _judge = staticmethod(misbehave)


def rows_and_replies(count: int) -> tuple[list[Any], list[Any]]:
    data = CompositeDataset({"Sudoku4-v0": 1, "SAT-v0": 1}, size=count)
    rows = data[:]
    return rows, [
        [
            f"<answer>{row['answer']}</answer>",
            "junk",
            None,
            [{"role": "assistant", "content": "<answer>1</answer>"}],
        ][number % 4]
        for number, row in enumerate(rows)
    ]


def test_processes_give_the_same_verdicts_in_order() -> None:
    rows, replies = rows_and_replies(150)
    truth = [verdict(row, reply) for row, reply in zip(rows, replies, strict=True)]
    with Judge(processes=2) as judge:
        assert judge.verdicts(rows, replies) == truth
        assert judge.scores(rows[::-1], replies[::-1]) == [
            judged.score for judged in reversed(truth)
        ]
        assert judge.verdicts([], []) == []
        with pytest.raises(TypeError, match="A completion is a str"):
            judge.verdicts(rows[:3], ["", 5, ""])
        with pytest.raises(ValueError, match="shorter"):
            judge.verdicts(rows[:3], replies[:2])
        assert judge.verdicts(rows, replies) == truth, "errors leave no traces"


def test_a_reply_that_hangs_or_kills_costs_that_reply_alone() -> None:
    rows, replies = rows_and_replies(100)
    replies[10], replies[50] = "hang", "die"
    start = time.monotonic()
    with Misbehaving(processes=1, seconds=1.0) as judge:
        verdicts = judge.verdicts(rows, replies)
    assert time.monotonic() - start < 50
    assert verdicts[10] == (False, False, False, 0, "judging this answer took longer than 1 s")
    assert verdicts[50] == (False, False, False, 0, "judging this answer ended its process")
    for number in set(range(100)) - {10, 50}:
        assert verdicts[number] == verdict(rows[number], replies[number])


@pytest.mark.parametrize("fault", ["interrupt", "unpicklable", "idle worker killed"])
def test_a_call_that_failed_leaves_no_verdicts_to_the_next(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, _ = rows_and_replies(64)
    right = [f"<answer>{row['answer']}</answer>" for row in rows]
    with Judge(processes=2) as judge:
        assert judge.scores(rows[:4], right[:4]) == [1] * 4
        if fault == "interrupt":
            with monkeypatch.context() as patch:
                patch.setattr(judging, "wait", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
                with pytest.raises(KeyboardInterrupt):
                    judge.verdicts(rows, right)
        elif fault == "unpicklable":
            with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
                judge.verdicts(rows, [lambda: None, *right[1:]])  # type: ignore[list-item]
        else:
            judge._workers[0].process.kill()
            judge._workers[0].process.join()
        assert judge.scores(rows, ["wrong"] * 64) == [0] * 64
        assert judge.scores(rows, right) == [1] * 64
    with pytest.raises(ValueError, match="closed"):
        judge.scores(rows, right)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="at least 1 process and more than 0 seconds, got 0"):
        Judge(0)


def forge_row(row: Any, **changes: Any) -> Any:
    return {**row, "metadata": {**row["metadata"], **changes}}


def test_a_forged_row_refuses_no_other_reply_of_its_batch() -> None:
    rows, _ = rows_and_replies(70)
    replies: list[Any] = [f"<answer>{row['answer']}</answer>" for row in rows]
    truth = [verdict(row, reply) for row, reply in zip(rows, replies, strict=True)]
    hostile: dict[int, Any] = {
        0: {"question": ""},
        1: {**rows[1], "metadata": "[" * 100_000},
        2: forge_row(rows[2], id="rlsuite/Nothing-v0"),
        33: forge_row(rows[33], tier=float("nan")),
        34: forge_row(rows[34], tier=10**400),
        35: forge_row(rows[35], instance="{}"),
        36: forge_row(rows[36], instance="[" * 100_000),
        37: forge_row(rows[37], instance='{"givens": 1e999}'),
        38: forge_row(rows[38], id="rlsuite/Sudoku4-v0?context=../../secret"),
        69: {**rows[69], "metadata": None},
    }
    for number, row in hostile.items():
        rows[number] = row
    with Judge(processes=2) as judge:
        with pytest.warns(
            UserWarning,
            match="10 of 70 rows cannot be judged, and replies to them score 0. The first: ",
        ):
            verdicts = judge.verdicts(rows, replies)
        with pytest.warns(UserWarning, match="1 of 1 rows cannot be judged"):
            assert judge.scores([{"question": ""}], [""]) == [0]
        for number, judged in enumerate(verdicts):
            if number in hostile:
                assert judged[:4] == (False, False, False, 0), number
                assert judged.reason.startswith(judging.NO_VERDICT), number
            else:
                assert judged == truth[number]
    with pytest.raises(ValueError, match="Tags are two different texts"):
        Judge(tags=("<a>", "<a>"))
    with pytest.raises(TypeError, match="unexpected keyword argument 'strict'"):
        Judge(strict=True)


def test_threads_that_share_a_judge_get_their_own_verdicts() -> None:
    rows, _ = rows_and_replies(64)
    replies = {True: [f"<answer>{row['answer']}</answer>" for row in rows], False: ["junk"] * 64}
    with Judge(processes=2) as judge, ThreadPoolExecutor(4) as pool:
        right = [number % 2 == 0 for number in range(8)]
        scores = list(pool.map(lambda kind: judge.scores(rows, replies[kind]), right))
    assert scores == [[float(kind)] * 64 for kind in right]
