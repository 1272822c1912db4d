"""Tests of the reader of grids against its grammar.

A grid has lines of symbols with single spaces between them, and spaces at their ends.
"""

from __future__ import annotations

import re

import pytest

from rlbench_suite.envs.puzzles.shared.parsing import cells, grid, rows_of
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import Malformed

SYMBOLS = "#.a7"


def read_plainly(text: str, rows: int, columns: int) -> list[int] | None:
    """Read by a regular expression; None if it is no grid."""
    line = " ".join(["[#.a7]"] * columns) + " *"
    if re.fullmatch("\n".join([line] * rows), text) is None:
        return None
    return [SYMBOLS.index(symbol) for symbol in text if symbol not in " \n"]


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 4), (3, 1), (2, 3), (4, 4)])
def test_grids_are_read_as_the_grammar_says(rows: int, columns: int) -> None:
    dice, right, wrong = Dice(rows, columns), 0, 0
    for _ in range(4000):
        lines = [
            " ".join(dice.choice(SYMBOLS) for _ in range(columns)) + " " * dice.below(2)
            for _ in range(rows)
        ]
        text = list("\n".join(lines))
        for _ in range(dice.below(3)):
            at = dice.below(len(text) + 1)
            text[at : at + dice.below(2)] = dice.choice(["", " ", "\n", "#", "7", "b", "\t", "_"])
        written = "".join(text)
        expected = read_plainly(written, rows, columns)
        if expected is None:
            wrong += 1
            with pytest.raises(Malformed):
                cells(written, rows, columns, SYMBOLS)
        else:
            right += 1
            assert list(cells(written, rows, columns, SYMBOLS)) == [value + 1 for value in expected]
            assert [
                value for row in grid(written, rows, columns, SYMBOLS) for value in row
            ] == expected
    assert min(right, wrong) > 100


SQUARE = [list("123"), list("231"), list("312")]
DOTS = [list("#.."), list(".#."), list("..#")]


@pytest.mark.parametrize(
    "text",
    [
        "1 2 3\n2 3 1\n3 1 2",
        "\n  1  2\t3 \n\n2 3 1\r\n\n3 1 2.",
        "1 2 3 2 3 1 3 1 2",
        "1, 2, 3, 2, 3, 1, 3, 1, 2",
        "1 2 3, 2 3 1, 3 1 2",
        "1 2 3; 2 3 1; 3 1 2",
        "[[1, 2, 3], [2, 3, 1], [3, 1, 2]]",
        "[['1', '2', '3'],\n ['2', '3', '1'],\n ['3', '1', '2']].",
        '["1 2 3", "2 3 1", "3 1 2"]',
        "123\n231\n312.",
        "123, 231, 312",
    ],
)
def test_a_grid_in_another_layout_is_read(text: str) -> None:
    assert rows_of(text, 3, 3, "123") == SQUARE


@pytest.mark.parametrize(
    "text",
    [
        "1 2\n3 2 3 1\n3 1 2",
        "1 2, 3 2 3 1, 3 1 2",
        "[[1, 2], [3, 2, 3, 1], [3, 1, 2]]",
        "1 2; 3 2 3 1; 3 1 2",
        "12 32 31 31 2",
        "1 23\n2 3 1\n3 1 2",
        "1 2 3\n2 3 1\n3 1",
        "1 2 3\n2 3 1\n3 1 2 2",
        "1 2 3\n2 3 1\n3 1 2\n1 2 3",
        "1 2 3 2 3 1 3 1",
        "123231312",
        "123 231 312",
        "",
        ".",
    ],
)
def test_rows_of_other_lengths_stay_malformed(text: str) -> None:
    assert rows_of(text, 3, 3, "123") != SQUARE


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("# . .\n. # .\n. . #.", True),
        ("#..\n.#.\n..#.", True),
        ("# . . . # . . . #.", True),
        ("#, ., ., ., #, ., ., ., #.", True),
        ("#.., .#., ..#.", True),
        ("[[#, ., .], [., #, .], [., ., #]].", True),
        ("# . .\n. # .\n. . '#'.", True),
        ("# . .\n. # .\n. . # .", False),
        ("# . . . # . . . # .", False),
        ("# . .\n. # .\n. . #..", False),
        ("#..\n.#.\n..#..", False),
        ("# . .\n. # .\n. #.", False),
    ],
)
def test_a_final_period_is_told_from_a_symbol(text: str, right: bool) -> None:
    assert (rows_of(text, 3, 3, "#.") == DOTS) == right
