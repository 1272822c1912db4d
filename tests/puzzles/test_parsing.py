"""The reader of grids against its grammar: lines of symbols with single spaces between them, spaces at their ends."""

from __future__ import annotations

import re

import pytest

from rlbench_suite.dice import Dice
from rlbench_suite.envs.puzzles.shared.parsing import cells, grid
from rlbench_suite.puzzle import Malformed

SYMBOLS = "#.a7"


def plain(text: str, rows: int, columns: int) -> list[int] | None:
    """Read by a regular expression; None if it is no grid."""
    line = " ".join(["[#.a7]"] * columns) + " *"
    if re.fullmatch("\n".join([line] * rows), text) is None:
        return None
    return [SYMBOLS.index(symbol) for symbol in text if symbol not in " \n"]


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 4), (3, 1), (2, 3), (4, 4)])
def test_grids_are_read_as_the_grammar_says(rows: int, columns: int) -> None:
    dice, right, wrong = Dice(rows, columns), 0, 0
    for _ in range(4000):
        lines = [" ".join(dice.choice(SYMBOLS) for _ in range(columns)) + " " * dice.below(2) for _ in range(rows)]
        text = list("\n".join(lines))
        for _ in range(dice.below(3)):
            at = dice.below(len(text) + 1)
            text[at : at + dice.below(2)] = dice.choice(["", " ", "\n", "#", "7", "b", "\t", "_"])
        written = "".join(text)
        expected = plain(written, rows, columns)
        if expected is None:
            wrong += 1
            with pytest.raises(Malformed):
                cells(written, rows, columns, SYMBOLS)
        else:
            right += 1
            assert list(cells(written, rows, columns, SYMBOLS)) == [value + 1 for value in expected]
            assert [value for row in grid(written, rows, columns, SYMBOLS) for value in row] == expected
    assert min(right, wrong) > 100
