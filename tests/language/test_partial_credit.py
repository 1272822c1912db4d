"""Test partial credit.

Wrong answers earn less than right ones, and answers that took no thought earn nothing.
"""

from __future__ import annotations

from statistics import fmean

import pytest

from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.language import PuzzleDataset, puzzle_of, rows, score
from rlbench_suite.language.rows import instance_of
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import MAX_PARTIAL, Puzzle

pytestmark = pytest.mark.every_puzzle

LUCK = 0.2
"""Mean credit that random answers of the right format never exceed."""
JUNK = ("", " ", "none", "1", "\n".join("_" * 9), "9" * 10_000, "(" * 5000, "null", "\u0430")


def credit(row: rows.Row, answer: str) -> float:
    return score(row, f"<answer>{answer}</answer>", partial=True)


def test_partial_credit_is_for_thought_alone(card: TaskCard) -> None:
    puzzle = puzzle_of(card.id)
    rows = PuzzleDataset(card.id, split="test", size=20)[:]
    lucky = []
    for seed, row in enumerate(rows):
        _, instance = instance_of(row)
        assert credit(row, row["answer"]) == 1
        assert score(row, None, partial=True) == 0
        for answer in (*JUNK, row["question"], *puzzle.constants()):
            assert credit(row, answer) == puzzle.verify(instance, answer).score, (
                "nothing, unless it happens to be right"
            )
        twice = f"{row['answer']} {row['answer']}"
        for answer in (
            twice,
            rows[seed - 1]["answer"],
            puzzle.heuristic(instance),
            puzzle.guess(instance, Dice(0, seed)),
        ):
            truth = puzzle.verify(instance, answer).score
            earned = credit(row, answer)
            assert earned == 1 if truth == 1 else truth <= earned <= max(truth, MAX_PARTIAL)
            assert earned == credit(row | {"answer": ""}, answer), "the stored answer is not needed"
            fenced = f"<answer>```\n{answer}\n```</answer>"
            assert earned == score(row, fenced, partial=True, lenient=True) or answer == twice
        lucky.append(credit(row, answer) - truth)
    assert fmean(lucky) <= LUCK


def test_nearly_right_answers_earn_more(card: TaskCard) -> None:
    """Change one word of a right answer."""
    puzzle = puzzle_of(card.id)
    if type(puzzle).likeness is Puzzle.likeness:
        pytest.skip("no partial credit")
    near_credits = []
    guess_credits = []
    for seed, row in enumerate(PuzzleDataset(card.id, split="test", size=10)):
        _, instance = instance_of(row)
        best = row["answer"]
        guess = puzzle.guess(instance, Dice(1, seed))
        separate = "" if " " not in best else " "
        right = best.replace("\n", " \n").split(separate) if separate else list(best)
        wrong = guess.replace("\n", " \n").split(separate) if separate else list(guess)
        differing = [
            index for index in range(min(len(right), len(wrong))) if right[index] != wrong[index]
        ]
        if len(right) == len(wrong) and differing:
            changed = list(right)
            changed[differing[0]] = wrong[differing[0]]
            near_credits.append(credit(row, separate.join(changed).replace(" \n", "\n")))
            guess_credits.append(credit(row, guess))
    assert not near_credits or fmean(near_credits) > fmean(guess_credits)
