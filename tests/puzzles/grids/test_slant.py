"""Tests of Slant-v0 against its definition.

They try all fillings of small boards, and count those of larger ones by a SAT solver.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from comparison import Compared
from fill_tasks import accept_grids, grids_of, masks_by_task, partial_grids, play_plans, task_of
from pysat.solvers import Glucose4

from rlbench_suite.envs.puzzles.grids.slant import Instance, SlantPuzzle

pytestmark = pytest.mark.of_variants

Corner = tuple[int, int]


def ends(row: int, column: int, symbol: int) -> tuple[Corner, Corner]:
    if symbol == 1:
        return (row, column + 1), (row + 1, column)
    return (row, column), (row + 1, column + 1)


def loop_of(board: np.ndarray) -> set[Corner]:
    """Return the cells of loops, and of paths between them.

    They are left when dead ends are cut off one by one.
    """
    paths = {cell: ends(*cell, board[cell]) for cell in np.ndindex(board.shape)}
    while True:
        corners = [corner for pair in paths.values() for corner in pair]
        dead = [
            cell
            for cell, pair in paths.items()
            if 1 in (corners.count(pair[0]), corners.count(pair[1]))
        ]
        if not dead:
            return set(paths)
        for cell in dead:
            del paths[cell]


def keeps_the_rules(corners: np.ndarray, board: np.ndarray) -> bool:
    touched = [corner for cell in np.ndindex(board.shape) for corner in ends(*cell, board[cell])]
    numbers_fit = all(
        number in (-1, touched.count(corner)) for corner, number in np.ndenumerate(corners)
    )
    return numbers_fit and not loop_of(board)


def number_of_solutions(corners: np.ndarray) -> int:
    """Two stands for more than one. Loops are ruled out as they come up."""
    side = len(corners) - 1
    # True for a slash.
    name = {cell: number for number, cell in enumerate(np.ndindex(side, side), 1)}
    touching: dict[Corner, list[int]] = {corner: [] for corner in np.ndindex(corners.shape)}
    for cell, number in name.items():
        for symbol, sign in ((1, 1), (2, -1)):
            for corner in ends(*cell, symbol):
                touching[corner].append(sign * number)
    count = 0
    with Glucose4() as solver:
        for corner, literals in touching.items():
            for signs in itertools.product((1, -1), repeat=len(literals)):
                if corners[corner] not in (-1, signs.count(1)):
                    solver.add_clause(
                        [-sign * literal for sign, literal in zip(signs, literals, strict=True)]
                    )
        while count < 2 and solver.solve():
            true = set(solver.get_model())
            board = np.array([1 if number in true else 2 for number in name.values()]).reshape(
                side, side
            )
            loop = loop_of(board)
            count += not loop
            solver.add_clause(
                [name[cell] if board[cell] == 2 else -name[cell] for cell in loop or name]
            )
    return count


def corners_of(instance: Instance) -> np.ndarray:
    side = round(instance.corners.size**0.5)
    return instance.corners.reshape(side, side)


@pytest.mark.engine("Glucose: one solution")
@pytest.mark.parametrize(("side", "count"), [(3, 800), (5, 270), (6, 10)])
def test_there_is_one_solution_and_every_number_is_needed(
    side: int, count: int, compared: Compared
) -> None:
    puzzle = SlantPuzzle(side)
    for seed in range(count):
        instance = puzzle.generate(seed)
        corners = corners_of(instance).copy()
        assert number_of_solutions(corners) == 1
        if seed % 40 == 0:
            for corner in zip(*np.nonzero(corners >= 0), strict=True):
                number, corners[corner] = corners[corner], -1
                assert number_of_solutions(corners) == 2
                corners[corner] = number
        assert puzzle.verify(instance, puzzle.solve(instance)).solved
        compared(puzzle, instance)


def test_solutions_are_counted_right() -> None:
    puzzle = SlantPuzzle(2)
    boards = [np.array(values).reshape(2, 2) for values in itertools.product((1, 2), repeat=4)]
    solution_counts = set()
    for corners in itertools.islice(itertools.product((-1, 0, 1, 2), repeat=9), 0, None, 401):
        table = np.array(corners).reshape(3, 3)
        by_force = sum(keeps_the_rules(table, board) for board in boards)
        solutions = list(puzzle._solutions(list(corners)))
        assert len(solutions) == len(set(solutions)) == by_force
        assert min(2, by_force) == number_of_solutions(table)
        solution_counts.add(min(2, by_force))
    assert solution_counts == {0, 1, 2}
    assert len(list(puzzle._solutions([-1] * 9))) == 15  # all but the loop


@pytest.mark.parametrize("side", [3, 5, 6])
def test_verifier_and_task_know_the_rules(side: int) -> None:
    task = task_of("Slant-v0", side)
    puzzle = task.puzzle
    count = 40 if side == 6 else 120
    instances = [puzzle.generate(seed, ("train", "test")[seed & 1]) for seed in range(count)]
    grids = grids_of(puzzle, instances)
    expected = [
        keeps_the_rules(corners_of(i), grid.reshape(side, side))
        for i, grid in zip(instances, grids, strict=True)
    ]
    written = [puzzle.write_answer(puzzle.as_rows(g.tolist())) for g in grids]
    assert [puzzle.verify(i, w).solved for i, w in zip(instances, written, strict=True)] == expected
    assert accept_grids(task, instances, grids) == expected
    assert count // 4 <= sum(expected) <= 3 * count // 4


@pytest.mark.parametrize("side", [3, 5])
def test_loops_are_noticed(side: int) -> None:
    """Break the rule about loops alone, on a board without numbers."""
    task = task_of("Slant-v0", side)
    puzzle = task.puzzle
    blank = Instance(np.zeros(side**2, np.int8), np.full((side + 1) ** 2, -1, np.int8))
    rng = np.random.default_rng(0)
    grids = [rng.integers(1, 3, side**2).astype(np.int8) for _ in range(300)]
    if side == 5:
        ring = "//\\// //\\\\/ \\\\\\// /\\/// /////".replace(" ", "")  # eight cells around four
        grids.append(np.array([1 if symbol == "/" else 2 for symbol in ring], np.int8))
        assert loop_of(grids[-1].reshape(5, 5)) == {
            (0, 1),
            (0, 2),
            (1, 0),
            (1, 3),
            (2, 0),
            (2, 3),
            (3, 1),
            (3, 2),
        }
    expected = [not loop_of(grid.reshape(side, side)) for grid in grids]
    assert accept_grids(task, [blank] * len(grids), grids) == expected
    reasons = [puzzle.broken_rule(blank, puzzle.as_rows(grid.tolist())) for grid in grids]
    assert [reason == "" for reason in reasons] == expected
    assert set(reasons) == {"", "the diagonals form a loop"}


@pytest.mark.parametrize("side", [3, 5])
def test_the_mask_forbids_what_a_corner_shows_to_be_wrong(side: int) -> None:
    task = task_of("Slant-v0", side)
    instances = [task.puzzle.generate(seed) for seed in range(100)]
    grids = partial_grids(task.puzzle, instances)
    for instance, grid, mask in zip(
        instances, grids, masks_by_task(task, instances, grids), strict=True
    ):
        board, corners = grid.reshape(side, side), corners_of(instance)

        def fits(
            cell: Corner, symbol: int, board: np.ndarray = board, corners: np.ndarray = corners
        ) -> bool:
            trial = board.copy()
            trial[cell] = symbol
            for corner in {*ends(*cell, 1), *ends(*cell, 2)}:
                sure = possible = 0
                for position in np.ndindex(board.shape):
                    sure += trial[position] > 0 and corner in ends(*position, trial[position])
                    possible += trial[position] == 0 and corner in (
                        *ends(*position, 1),
                        *ends(*position, 2),
                    )
                if corners[corner] >= 0 and not sure <= corners[corner] <= sure + possible:
                    # The mask blames a cell for what it adds only.
                    gained = corner in ends(*cell, symbol)
                    if gained == (sure > corners[corner]):
                        return False
            return True

        for cell, value in np.ndenumerate(board):
            expected = [value == 0 and fits(cell, symbol) for symbol in (1, 2)]
            assert mask[cell[0] * side + cell[1]].tolist() == expected


@pytest.mark.parametrize("side", [3, 5, 6])
def test_plans_solve(side: int) -> None:
    task = task_of("Slant-v0", side)
    returns, legal, success = play_plans(task, [task.puzzle.generate(seed) for seed in range(40)])
    assert all(legal)
    assert all(success)
    np.testing.assert_allclose(returns, 2.0, atol=1e-4)


def test_a_turned_board_is_the_same_puzzle() -> None:
    puzzle = SlantPuzzle(5)
    a, b = puzzle.generate(0), puzzle.generate(1)
    for turn in range(4):
        for board in (np.rot90(corners_of(a), turn), np.rot90(corners_of(a).T, turn)):
            assert (
                puzzle.canonical(Instance(a.givens, board.ravel()))
                == puzzle.canonical(a)
                != puzzle.canonical(b)
            )


def test_tiers_are_ordered() -> None:
    means = []
    for tier in (3, 5, 6):
        puzzle = SlantPuzzle(tier)
        means.append(np.mean([puzzle.difficulty(puzzle.generate(seed)) for seed in range(40)]))
    assert means[0] < means[1] < means[2]


def test_sides_have_limits() -> None:
    with pytest.raises(ValueError, match="2 to 8"):
        SlantPuzzle(9)
