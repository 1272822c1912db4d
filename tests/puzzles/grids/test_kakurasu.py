"""Kakurasu-v0 against its definition: every filling with the clues, counted line by line."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from comparison import Compared
from fill_tasks import accept_grids, grids_of, masks_by_task, partial_grids, play_plans, task_of

from rlbench_suite.envs.puzzles.grids.kakurasu import Instance, KakurasuPuzzle

pytestmark = pytest.mark.of_variants


def number_of_fillings(rows: list[int], columns: list[int]) -> int:
    """Count fillings by running through the upper and through the lower rows.

    Each half yields the number of ways to each tuple of column sums.
    """
    side = len(rows)

    def ways_of(numbers: range) -> Counter[tuple[int, ...]]:
        ways = Counter({(0,) * side: 1})
        for number in numbers:
            after: Counter[tuple[int, ...]] = Counter()
            for row in itertools.product((0, 1), repeat=side):
                if sum(place * bit for place, bit in enumerate(row, 1)) == rows[number - 1]:
                    for sums, count in ways.items():
                        after[
                            tuple(s + number * bit for s, bit in zip(sums, row, strict=True))
                        ] += count
            ways = after
        return ways

    upper, lower = ways_of(range(1, side // 2 + 1)), ways_of(range(side // 2 + 1, side + 1))
    return sum(
        count
        * lower[tuple(clue - upper_sum for clue, upper_sum in zip(columns, sums, strict=True))]
        for sums, count in upper.items()
    )


def keeps_the_rules(instance: Instance, grid: np.ndarray) -> bool:
    filled = grid.reshape(len(instance.row_sums), -1) == 1
    numbers = np.arange(1, len(instance.row_sums) + 1)
    return bool(
        (filled @ numbers == instance.row_sums).all()
        and (numbers @ filled == instance.column_sums).all()
    )


@pytest.mark.engine("all rows, by sums of columns: one filling")
@pytest.mark.parametrize(("side", "count"), [(4, 800), (5, 250), (6, 50), (8, 20)])
def test_there_is_one_filling(side: int, count: int, compared: Compared) -> None:
    puzzle = KakurasuPuzzle(side)
    for seed in range(count):
        instance = puzzle.generate(seed)
        assert number_of_fillings(instance.row_sums.tolist(), instance.column_sums.tolist()) == 1
        solution = np.array([int(x == "#") for x in puzzle.solve(instance).split()])
        assert keeps_the_rules(instance, solution)
        compared(puzzle, instance)


def test_a_second_filling_is_noticed() -> None:
    puzzle = KakurasuPuzzle(3)
    clues = Counter(
        (
            tuple(sum((c + 1) * f[3 * r + c] for c in range(3)) for r in range(3)),
            tuple(sum((r + 1) * f[3 * r + c] for r in range(3)) for c in range(3)),
        )
        for f in itertools.product((0, 1), repeat=9)
    )
    for (rows, columns), count in clues.items():
        instance = Instance(
            np.zeros(9, np.int8), np.array(rows, np.int8), np.array(columns, np.int8)
        )
        assert len(puzzle._solutions(*puzzle._sums(instance))[0]) == count
    assert max(clues.values()) == 2


@pytest.mark.parametrize("side", [4, 6, 8])
def test_verifier_and_task_know_the_rules(side: int) -> None:
    task = task_of("Kakurasu-v0", side)
    puzzle = task.puzzle
    instances = [puzzle.generate(seed, ("train", "test")[seed & 1]) for seed in range(400)]
    grids = grids_of(puzzle, instances)
    expected = [keeps_the_rules(i, g) for i, g in zip(instances, grids, strict=True)]
    written = [puzzle.write_answer(puzzle.as_rows(g.tolist())) for g in grids]
    assert [puzzle.verify(i, w).solved for i, w in zip(instances, written, strict=True)] == expected
    broken = [
        puzzle.broken_rule(i, puzzle.as_rows(g.tolist()))
        for i, g in zip(instances, grids, strict=True)
    ]
    assert [not reason for reason in broken] == expected
    assert accept_grids(task, instances, grids) == expected
    assert 100 <= sum(expected) <= 300


@pytest.mark.parametrize("side", [4, 6])
def test_the_mask_forbids_what_a_line_shows_to_be_wrong(side: int) -> None:
    task = task_of("Kakurasu-v0", side)
    instances = [task.puzzle.generate(seed) for seed in range(200)]
    grids = partial_grids(task.puzzle, instances)

    def fits(instance: Instance, grid: np.ndarray, cell: int, value: int) -> bool:
        trial = grid.copy()
        trial[cell] = value
        trial = trial.reshape(side, side)
        row, column = divmod(cell, side)
        numbers = np.arange(1, side + 1)
        lines = (
            (trial[row], instance.row_sums[row]),
            (trial[:, column], instance.column_sums[column]),
        )
        return all(
            numbers[line == 1].sum() <= clue <= numbers[line != 2].sum() for line, clue in lines
        )

    for instance, grid, mask in zip(
        instances, grids, masks_by_task(task, instances, grids), strict=True
    ):
        reachable = within_clues(instance, grid)
        for cell in range(side * side):
            for value in (1, 2):
                if grid[cell] or reachable[cell]:
                    assert mask[cell, value - 1] == (
                        grid[cell] == 0 and fits(instance, grid, cell, value)
                    )


def within_clues(instance: Instance, grid: np.ndarray) -> np.ndarray:
    """Return the cells both of whose lines are still within their clues.

    The mask speaks only of those that play can reach.
    """
    side = len(instance.row_sums)
    numbers = np.arange(1, side + 1)
    board = grid.reshape(side, side)
    rows = [numbers[line == 1].sum() <= clue <= numbers[line != 2].sum()
            for line, clue in zip(board, instance.row_sums, strict=True)]  # fmt: skip
    columns = [numbers[line == 1].sum() <= clue <= numbers[line != 2].sum()
               for line, clue in zip(board.T, instance.column_sums, strict=True)]  # fmt: skip
    return np.logical_and.outer(rows, columns).ravel()


@pytest.mark.parametrize("side", [4, 6, 8])
def test_plans_solve(side: int) -> None:
    task = task_of("Kakurasu-v0", side)
    returns, legal, success = play_plans(task, [task.puzzle.generate(seed) for seed in range(200)])
    assert all(legal)
    assert all(success)
    np.testing.assert_allclose(returns, 2.0, atol=1e-4)


def test_swapping_rows_with_columns_is_the_same_puzzle() -> None:
    puzzle = KakurasuPuzzle(5)
    a, b = puzzle.generate(0), puzzle.generate(1)
    swapped = Instance(a.givens, a.column_sums, a.row_sums)
    assert puzzle.canonical(a) == puzzle.canonical(swapped) != puzzle.canonical(b)


def test_tiers_are_ordered() -> None:
    means = []
    for tier in (4, 6, 8):
        puzzle = KakurasuPuzzle(tier)
        means.append(np.mean([puzzle.difficulty(puzzle.generate(seed)) for seed in range(200)]))
    assert means[0] < means[1] < means[2]


def test_sides_have_limits() -> None:
    with pytest.raises(ValueError, match="2 to 8"):
        KakurasuPuzzle(9)
