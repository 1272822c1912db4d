"""Minesweeper-v0 against its definition, and against a SAT solver that counts its solutions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from comparison import Compared
from fill_tasks import accept_grids, grids_of, masks_by_task, partial_grids, play_plans, task_of
from pysat.card import CardEnc
from pysat.solvers import Glucose4

from rlbench_suite.envs.puzzles.grids.minesweeper import Instance, MinesweeperPuzzle

pytestmark = pytest.mark.of_variants

MINES = {3: 2, 4: 4, 6: 8, 8: 14}


def cells_around(board: np.ndarray, row: int, column: int) -> list[tuple[int, int]]:
    steps = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)]
    cells = [(row + y, column + x) for y, x in steps]
    return [(r, c) for r, c in cells if 0 <= r < len(board) and 0 <= c < len(board)]


def keeps_the_rules(board: np.ndarray) -> bool:
    if (board == 1).sum() != MINES[len(board)]:
        return False
    numbers = [(cell, value - 3) for cell, value in np.ndenumerate(board) if value >= 3]
    return all(
        sum(board[neighbour] == 1 for neighbour in cells_around(board, *cell)) == number
        for cell, number in numbers
    )


def number_of_solutions(board: np.ndarray) -> int:
    """Two stands for more than one."""
    hidden = {
        tuple(cell): number for number, cell in enumerate(np.argwhere(board == 0).tolist(), 1)
    }
    top = len(hidden)
    with Glucose4() as solver:
        for cell, value in np.ndenumerate(board):
            if value >= 3:
                places = [
                    hidden[neighbour]
                    for neighbour in cells_around(board, *cell)
                    if neighbour in hidden
                ]
                for signs in itertools.product((1, -1), repeat=len(places)):
                    if signs.count(1) != value - 3:
                        solver.add_clause(
                            [-sign * place for sign, place in zip(signs, places, strict=True)]
                        )
        total = CardEnc.equals(list(range(1, top + 1)), MINES[len(board)], top_id=top)
        solver.append_formula(total.clauses)
        count = 0
        while count < 2 and solver.solve():
            count += 1
            solver.add_clause([-literal for literal in solver.get_model()[:top]])
    return count


def board_of(instance: Instance) -> np.ndarray:
    side = round(instance.givens.size**0.5)
    return instance.givens.reshape(side, side)


@pytest.mark.engine("Glucose: one solution")
@pytest.mark.parametrize(("side", "count"), [(4, 800), (6, 280), (8, 20)])
def test_there_is_one_solution_and_every_number_is_needed(
    side: int, count: int, compared: Compared
) -> None:
    puzzle = MinesweeperPuzzle(side)
    for seed in range(count):
        instance = puzzle.generate(seed)
        board = board_of(instance).copy()
        assert number_of_solutions(board) == 1
        if seed % 40 == 0:
            for cell in zip(*np.nonzero(board), strict=True):
                number, board[cell] = board[cell], 0
                assert number_of_solutions(board) == 2
                board[cell] = number
        assert puzzle.verify(instance, puzzle.solve(instance)).solved
        compared(puzzle, instance)


def test_solutions_are_counted_right() -> None:
    puzzle = MinesweeperPuzzle(3)
    rng = np.random.default_rng(0)
    solution_counts = set()
    for _ in range(300):
        givens = np.where(rng.random(9) < 0.7, 0, rng.integers(3, 6, 9)).astype(np.int8)
        hidden = np.flatnonzero(givens == 0)
        by_force = 0
        for values in itertools.product((1, 2), repeat=len(hidden)):
            full = givens.copy()
            full[hidden] = values
            by_force += keeps_the_rules(full.reshape(3, 3))
        solutions = list(puzzle._solutions(givens.tolist()))
        assert len(solutions) == len(set(solutions)) == by_force
        solution_counts.add(min(2, by_force))
    assert solution_counts == {0, 1, 2}


@pytest.mark.parametrize("side", [4, 6, 8])
def test_verifier_and_task_know_the_rules(side: int) -> None:
    task = task_of("Minesweeper-v0", side)
    puzzle = task.puzzle
    count = 60 if side == 8 else 300
    instances = [puzzle.generate(seed, ("train", "test")[seed & 1]) for seed in range(count)]
    grids = grids_of(puzzle, instances)
    expected = [keeps_the_rules(grid.reshape(side, side)) for grid in grids]
    written = [puzzle.write_answer(puzzle.as_rows(g.tolist())) for g in grids]
    assert [puzzle.verify(i, w).solved for i, w in zip(instances, written, strict=True)] == expected
    assert accept_grids(task, instances, grids) == expected
    assert count // 4 <= sum(expected) <= 3 * count // 4


@pytest.mark.parametrize("side", [4, 6])
def test_the_mask_forbids_what_the_grid_shows_to_be_wrong(side: int) -> None:
    task = task_of("Minesweeper-v0", side)
    instances = [task.puzzle.generate(seed) for seed in range(150)]
    grids = partial_grids(task.puzzle, instances)
    for grid, mask in zip(grids, masks_by_task(task, instances, grids), strict=True):
        board = grid.reshape(side, side)
        for (r, c), value in np.ndenumerate(board):
            numbers = [cell for cell in cells_around(board, r, c) if board[cell] >= 3]
            counts = [
                (board[n] - 3, [board[cell] for cell in cells_around(board, *n)]) for n in numbers
            ]
            counts.append((MINES[side], board.ravel().tolist()))
            may_be_mine = value == 0 and all(
                cells.count(1) + 1 <= num_mines for num_mines, cells in counts
            )
            may_be_safe = value == 0 and all(
                cells.count(1) + cells.count(0) - 1 >= num_mines for num_mines, cells in counts
            )
            assert mask[r * side + c].tolist() == [may_be_mine, may_be_safe]


@pytest.mark.parametrize("side", [4, 6, 8])
def test_plans_solve(side: int) -> None:
    task = task_of("Minesweeper-v0", side)
    returns, legal, success = play_plans(task, [task.puzzle.generate(seed) for seed in range(40)])
    assert all(legal)
    assert all(success)
    np.testing.assert_allclose(returns, 2.0, atol=1e-4)


def test_a_turned_board_is_the_same_puzzle() -> None:
    puzzle = MinesweeperPuzzle(6)
    a, b = puzzle.generate(0), puzzle.generate(1)
    for turn in range(4):
        for board in (np.rot90(board_of(a), turn), np.rot90(board_of(a).T, turn)):
            assert (
                puzzle.canonical(Instance(board.ravel()))
                == puzzle.canonical(a)
                != puzzle.canonical(b)
            )


def test_tiers_are_ordered() -> None:
    means = []
    for tier in (4, 6, 8):
        puzzle = MinesweeperPuzzle(tier)
        means.append(np.mean([puzzle.difficulty(puzzle.generate(seed)) for seed in range(60)]))
    assert means[0] < means[1] < means[2]


def test_sides_have_limits() -> None:
    with pytest.raises(ValueError, match="3 to 9"):
        MinesweeperPuzzle(10)
