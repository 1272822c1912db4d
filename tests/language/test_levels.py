"""Difficulty follows a learner up and down."""

from __future__ import annotations

import json
import math
import pickle
import random
from itertools import islice, pairwise

import pytest

from rlbench_suite.language import Levels

LADDER = {"Sudoku-v0": range(20, 50, 5)}


class Learner:
    """A player that solves a puzzle with some probability.

    It falls with the puzzle's difficulty and rises with the player's skill.
    """

    def __init__(self, skill: float) -> None:
        self.skill = skill
        self.luck = random.Random(0)

    def solves(self, difficulty: float) -> bool:
        return self.luck.random() < 1 / (1 + math.exp((difficulty - self.skill) / 2))


def play(levels: Levels, learner: Learner, rows: int) -> list[float]:
    """Return the difficulties of the rows that a learner gets."""
    tiers = []
    for row in islice(levels, rows):
        tiers.append(row["metadata"]["tier"])
        levels.report(row["metadata"]["row"], learner.solves(tiers[-1]))
    return tiers


def test_difficulty_follows_skill_up_and_down() -> None:
    levels = Levels(LADDER, window=16)
    learner = Learner(skill=35)
    tiers = play(levels, learner, 400)
    assert tiers[0] == 20
    assert {30, 35} <= set(tiers[200:]) <= {30, 35, 40}, (
        "it settles where about half of the replies are right"
    )
    assert all(abs(a - b) in (0, 5) for a, b in pairwise(tiers))
    changes = [at for at in range(1, 400) if tiers[at] != tiers[at - 1]]
    assert all(b - a >= 16 for a, b in pairwise(changes)), "a window at each level"
    learner.skill = 60
    assert play(levels, learner, 200)[-1] == 45, "the top is the end"
    learner.skill = 0
    assert play(levels, learner, 200)[-1] == 20, "back to the beginning"


def test_rows_and_state_depend_on_reports_alone() -> None:
    first = Levels(["Sudoku4-v0", "SAT-v0"], window=4, seed=5)
    learner = Learner(skill=9)
    play(first, learner, 50)
    second = Levels(["rlsuite/Sudoku4-v0", "SAT-v0"], window=4)
    second.restore(json.loads(json.dumps(first.state())))
    third = pickle.loads(pickle.dumps(first))
    rows = [list(islice(levels, 6)) for levels in (first, second, third)]
    assert rows[0] == rows[1] == rows[2]
    assert [row["metadata"]["seed"] for row in rows[0]] == [30, 30, 31, 31, 32, 32]
    assert first.state() == second.state()
    assert Levels(["SAT-v0"]).ladders == {"rlsuite/SAT-v0": list(range(8, 33, 2))}


def test_late_reports_do_not_count() -> None:
    levels = Levels(LADDER, window=2)
    late = [levels.next_row()["metadata"]["row"] for _ in range(6)]
    for row_id in late:
        levels.report(row_id, 1.0)
    assert levels.difficulty("Sudoku-v0") == 25, (
        "replies to rows of the level before do not raise it again"
    )
    assert levels.recent == {"rlsuite/Sudoku-v0": []}


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match=r"0 <= down < up <= 1.*got down 0.8"):
        Levels(LADDER, down=0.8)
    with pytest.raises(ValueError, match="Did you mean 'test'"):
        Levels(LADDER, split="tests")
    with pytest.raises(ValueError, match="1 to 56, got 57"):
        Levels({"Sudoku-v0": [30, 57]})
    with pytest.raises(ValueError, match="is empty"):
        Levels({"Sudoku-v0": []})
    with pytest.raises(ValueError, match="no one-shot form"):
        Levels(["TwentyQuestions-v0"])
    levels = Levels(LADDER)
    with pytest.raises(ValueError, match="Did you mean 'rlsuite/Sudoku-v0'"):
        levels.report("rlsuite/Sudoku4-v0/6/train/0", 1)
    with pytest.raises(ValueError, match="from 0 to 1, got 2"):
        levels.report("rlsuite/Sudoku-v0/20/train/0", 2)
    with pytest.raises(ValueError, match="the state is of rlsuite/SAT-v0"):
        levels.restore(Levels(["SAT-v0"]).state())
