"""MagicSquare-v0 against exhaustive enumeration and the rules written out."""

from __future__ import annotations

import itertools
from statistics import fmean
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared

from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.arithmetic.magic_square import (
    TO_FILL,
    Instance,
    MagicSquarePuzzle,
    _Search,
    magic_symmetries,
)
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
TIERS = ["easy", "medium", "hard"]


def lines_of(grid: np.ndarray) -> list[list[int]]:
    """Rows, columns, diagonals."""
    diagonals = [grid.diagonal(), np.fliplr(grid).diagonal()]
    return [line.tolist() for line in (*grid, *grid.T, *diagonals)]


def is_magic(cells: list[int]) -> bool:
    """Check the definition."""
    side = round(len(cells) ** 0.5)
    lines = lines_of(np.array(cells).reshape(side, side))
    return sorted(cells) == list(range(1, side**2 + 1)) and len({sum(line) for line in lines}) == 1


def every_completion(puzzle: MagicSquarePuzzle, cells: list[int]) -> list[list[int]]:
    return sorted(_Search(puzzle, cells).completions())


def test_the_search_finds_all_squares() -> None:
    """8 of side 3, as plain enumeration does; of side 4 those that begin with a given row."""
    by_force = sorted(list(c) for c in itertools.permutations(range(1, 10)) if is_magic(list(c)))
    assert every_completion(MagicSquarePuzzle(3), [0] * 9) == by_force
    assert len(by_force) == 8
    medium = MagicSquarePuzzle(4)
    first = [16, 3, 2, 13]
    unused = sorted(set(range(1, 17)).difference(first))
    expected = []
    for second in itertools.permutations(unused, 4):
        for third in (
            itertools.permutations(set(unused).difference(second), 4) if sum(second) == 34 else ()
        ):
            last = [34 - sum(column) for column in zip(first, second, third, strict=True)]
            if sum(third) == 34 and is_magic(cells := [*first, *second, *third, *last]):
                expected.append(cells)
    assert every_completion(medium, first + [0] * 12) == sorted(expected)
    assert len(expected) > 1


@pytest.mark.engine("every line by its definition: a completion")
@pytest.mark.parametrize(("tier", "count"), [("easy", 1000), ("medium", 300), ("hard", 100)])
def test_instances_can_be_completed(tier: str, count: int, compared: Compared) -> None:
    puzzle: Any = puzzle_of("MagicSquare-v0", tier)
    min_empty, max_empty = TO_FILL[puzzle.rows]
    for seed in range(count):
        instance = puzzle.generate(seed)
        givens = instance.givens.tolist()
        assert min_empty <= givens.count(0) <= max_empty
        cells = [v for row in puzzle.solution(instance) for v in row]
        assert is_magic(cells)
        assert all(clue in (0, value) for clue, value in zip(givens, cells, strict=True))
        compared(puzzle, instance)


def test_easy_instances_have_exactly_the_completions_there_are() -> None:
    puzzle: Any = puzzle_of("MagicSquare-v0", "easy")
    squares = every_completion(puzzle, [0] * 9)
    several = 0
    for seed in range(300):
        givens = puzzle.generate(seed).givens.tolist()
        expected = [s for s in squares if all(g in (0, v) for g, v in zip(givens, s, strict=True))]
        assert every_completion(puzzle, givens) == expected
        several += len(expected) > 1
        for square in expected:  # any of them is right
            assert puzzle.verify(
                puzzle.generate(seed), puzzle.write_answer(puzzle.as_rows(square))
            ).solved
    assert several > 0


def test_no_completion_is_an_error() -> None:
    with pytest.raises(ValueError, match="cannot be completed"):
        MagicSquarePuzzle(3).solution(Instance(np.array([9, 8, 0, 0, 0, 0, 0, 0, 0], np.int8)))


@pytest.mark.parametrize("side", [2, 6, 3.5])
def test_other_sides_are_refused(side: float) -> None:
    with pytest.raises(ValueError, match="one of 3, 4, 5, got"):
        MagicSquarePuzzle(side)


@pytest.mark.parametrize("tier", TIERS)
def test_the_verifier_knows_the_rules(tier: str) -> None:
    puzzle: Any = puzzle_of("MagicSquare-v0", tier)
    dice, kinds = Dice(1, 2), set()
    for seed in range(60):
        instance = puzzle.generate(seed)
        free = [i for i, v in enumerate(instance.givens.tolist()) if v == 0]
        for kind in ("right", "one changed", "two exchanged", "random"):
            cells = [v for row in puzzle.solution(instance) for v in row]
            first_cell, second_cell = dice.sample(free, 2)
            if kind == "one changed":
                cells[first_cell] = cells[first_cell] % puzzle.fillable + 1
            elif kind == "two exchanged":
                cells[first_cell], cells[second_cell] = cells[second_cell], cells[first_cell]
            elif kind == "random":
                for cell in free:
                    cells[cell] = 1 + dice.below(puzzle.fillable)
            verdict = puzzle.verify(instance, puzzle.write_answer(puzzle.as_rows(cells)))
            assert verdict.valid
            assert verdict.solved == is_magic(cells)
            kinds.add((kind, verdict.solved))
    assert {
        ("right", True),
        ("one changed", False),
        ("two exchanged", False),
        ("random", False),
    } <= kinds


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2 7 6\n9 5 1\n4 3 8", ""),
        ("8 1 6\n3 5 7\n4 9 2", "the symbol in row 1, column 1 was given"),
        ("2 7 6\n9 5 1\n4 3 3", "3 is there more than once"),
        ("2 7 6\n9 5 3\n4 1 8", "row 2 has the sum 17, not 15"),
        ("2 9 4\n7 5 3\n6 1 8", ""),
        ("2 7 6\n4 3 8\n9 5 1", "the diagonal from the upper left has the sum 6, not 15"),
        ("2 7 6\n9 5 1", "expected 3 lines, got 2"),
        ("2 7 6\n9 5 1\n4 3", "expected 3 numbers"),
        ("2 7 6\n9 5 1\n4 3 10", "expected a number from 1 to 9, got '10'"),
        ("2 7 6\n9 5 1\n4 3 8.0", "expected a number from 1 to 9"),
    ],
)
def test_reasons(text: str, reason: str) -> None:
    verdict = MagicSquarePuzzle(3).verify(Instance(np.array([2] + [0] * 8, np.int8)), text)
    assert verdict.solved == (not reason)
    assert verdict.reason.startswith(reason)


@pytest.mark.parametrize("tier", TIERS)
def test_the_mask_is_what_the_rules_say_and_the_full_grid_is_judged_alike(tier: str) -> None:
    task: Any = card("MagicSquare-v0").build(difficulty=tier)
    puzzle, side, dice = task.puzzle, task.puzzle.rows, Dice(3, 4)
    boards = []
    for seed in range(90):
        cells = [v for row in puzzle.solution(puzzle.generate(seed)) for v in row]
        if seed % 3 == 0:
            for cell in dice.sample(range(side * side), 1 + dice.below(side * side - 1)):
                cells[cell] = 0
        elif seed % 3 == 1:
            first_cell, second_cell = dice.sample(range(side * side), 2)
            cells[first_cell], cells[second_cell] = (
                cells[second_cell],
                cells[first_cell if seed % 2 else second_cell],
            )
        boards.append(cells)
    batch = jnp.asarray(boards, jnp.int8)
    allowed = np.asarray(jax.jit(jax.vmap(lambda cells: task.allowed_symbols(cells, None)))(batch))
    solved = np.asarray(jax.jit(jax.vmap(lambda cells: task.is_solved(cells, None)))(batch))
    total = side * (side**2 + 1) // 2
    for cells, may, right in zip(boards, allowed, solved, strict=True):
        for cell, number in itertools.product(range(side * side), range(1, side**2 + 1)):
            if cells[cell] == 0:
                grid = np.array(cells).reshape(side, side)
                grid[divmod(cell, side)] = number
                r, c = divmod(cell, side)
                lines = [grid[r], grid[:, c]]
                lines += [grid.diagonal()] * (r == c) + [np.fliplr(grid).diagonal()] * (
                    r + c == side - 1
                )
                fits = all(
                    line.sum() == total if 0 not in line else line.sum() < total for line in lines
                )
                assert may[cell, number - 1] == (fits and number not in cells)
        if 0 not in cells:
            assert right == is_magic(cells)
    assert 0 < solved.sum() < 60


def test_symmetries_keep_squares_magic_and_canonical_forms_alike() -> None:
    for side, count in ((3, 8), (4, 32), (5, 32)):
        puzzle = MagicSquarePuzzle(side)
        assert len(magic_symmetries(side)) == count
        instance = puzzle.generate(1)
        full = np.array(puzzle.solution(instance)).ravel()
        form = puzzle.canonical(instance)
        for order in magic_symmetries(side):
            assert is_magic(full[list(order)].tolist())
            moved = instance.givens[list(order)]
            above = np.where(moved > 0, side**2 + 1 - moved, 0).astype(np.int8)
            assert puzzle.canonical(Instance(moved)) == puzzle.canonical(Instance(above)) == form
    medium = MagicSquarePuzzle(4)
    assert len({medium.canonical(medium.generate(seed)) for seed in range(40)}) == 40


def test_tiers_are_in_order() -> None:
    means = []
    for tier in TIERS:
        puzzle = puzzle_of("MagicSquare-v0", tier)
        means.append(fmean(puzzle.difficulty(puzzle.generate(seed)) for seed in range(100)))
    assert means[0] < 0.6 * means[1] < 0.36 * means[2]
