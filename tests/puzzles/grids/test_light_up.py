"""LightUp-v0 against its definition, and against a SAT solver that counts its solutions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from comparison import Compared
from fill_tasks import accept_grids, grids_of, masks_by_task, partial_grids, play_plans, task_of
from pysat.solvers import Glucose4

from rlbench_suite.envs.puzzles.grids.light_up import Instance, LightUpPuzzle

pytestmark = pytest.mark.of_variants


def lines_of_sight(board: np.ndarray, row: int, column: int) -> list[tuple[int, int]]:
    """Cells that light from here reaches, this one not included."""
    lit_cells = []
    for y, x in ((0, 1), (0, -1), (1, 0), (-1, 0)):
        r, c = row + y, column + x
        while 0 <= r < len(board) and 0 <= c < len(board) and board[r, c] < 3:
            lit_cells.append((r, c))
            r, c = r + y, c + x
    return lit_cells


def neighbours(board: np.ndarray, row: int, column: int) -> list[tuple[int, int]]:
    around = ((row, column + 1), (row, column - 1), (row + 1, column), (row - 1, column))
    return [(r, c) for r, c in around if 0 <= r < len(board) and 0 <= c < len(board)]


def keeps_the_rules(board: np.ndarray) -> bool:
    for (r, c), value in np.ndenumerate(board):
        lit = any(board[cell] == 1 for cell in lines_of_sight(board, r, c))
        if (value == 1 and lit) or (value == 2 and not lit):
            return False
        if value >= 4 and sum(board[cell] == 1 for cell in neighbours(board, r, c)) != value - 4:
            return False
    return True


def number_of_solutions(board: np.ndarray) -> int:
    """Two stands for more than one.

    Numbers are spelled out as clauses over the few cells beside a wall.
    """
    name = {cell: number for number, cell in enumerate(np.ndindex(board.shape), 1)}
    clauses: list[list[int]] = []
    for cell, variable in name.items():
        value = board[cell]
        if value >= 3:
            clauses.append([-variable])
            if value >= 4:
                beside = [name[neighbour] for neighbour in neighbours(board, *cell)]
                for signs in itertools.product((1, -1), repeat=len(beside)):
                    if signs.count(1) != value - 4:
                        clauses.append([-sign * n for sign, n in zip(signs, beside, strict=True)])
        else:
            lit_cells = lines_of_sight(board, *cell)
            clauses.append([variable, *(name[lit] for lit in lit_cells)])
            clauses += [[-variable, -name[lit]] for lit in lit_cells]
    with Glucose4(bootstrap_with=clauses) as solver:
        return len(list(itertools.islice(solver.enum_models(), 2)))


def board_of(instance: Instance) -> np.ndarray:
    side = round(instance.givens.size**0.5)
    return instance.givens.reshape(side, side)


@pytest.mark.engine("Glucose: one solution")
@pytest.mark.parametrize(("side", "count"), [(4, 100), (5, 700), (7, 300), (10, 15)])
def test_there_is_one_solution_and_every_number_is_needed(
    side: int, count: int, compared: Compared
) -> None:
    puzzle = LightUpPuzzle(side)
    for seed in range(count):
        instance = puzzle.generate(seed)
        board = board_of(instance).copy()
        assert number_of_solutions(board) == 1
        if seed % 10 == 0:
            for cell in zip(*np.nonzero(board >= 4), strict=True):
                number, board[cell] = board[cell], 3
                assert number_of_solutions(board) == 2
                board[cell] = number
        assert puzzle.verify(instance, puzzle.solve(instance)).solved
        compared(puzzle, instance)


def test_solutions_are_counted_right() -> None:
    puzzle = LightUpPuzzle(4)
    rng = np.random.default_rng(0)
    several = 0
    for _ in range(200):
        givens = np.where(rng.random(16) < 0.7, 0, rng.integers(3, 7, 16)).astype(np.int8)
        open_cells = np.flatnonzero(givens == 0)
        by_force = 0
        for values in (
            itertools.product((1, 2), repeat=len(open_cells)) if len(open_cells) <= 9 else ()
        ):
            givens[open_cells] = values
            by_force += keeps_the_rules(givens.reshape(4, 4))
        givens[open_cells] = 0
        solutions = list(puzzle._solutions(givens.tolist(), puzzle._lit_from(givens.tolist())))
        assert len(solutions) == len(set(solutions))
        assert min(2, len(solutions)) == number_of_solutions(givens.reshape(4, 4))
        if len(open_cells) <= 9:
            assert len(solutions) == by_force
        several += len(solutions) > 1
    assert several > 20


@pytest.mark.parametrize("side", [4, 7, 10])
def test_verifier_and_task_know_the_rules(side: int) -> None:
    task = task_of("LightUp-v0", side)
    puzzle = task.puzzle
    count = 40 if side == 10 else 200
    instances = [puzzle.generate(seed, ("train", "test")[seed & 1]) for seed in range(count)]
    grids = grids_of(puzzle, instances)
    expected = [keeps_the_rules(grid.reshape(side, side)) for grid in grids]
    written = [puzzle.write_answer(puzzle.as_rows(g.tolist())) for g in grids]
    assert [puzzle.verify(i, w).solved for i, w in zip(instances, written, strict=True)] == expected
    assert accept_grids(task, instances, grids) == expected
    assert count // 4 <= sum(expected) <= 3 * count // 4


@pytest.mark.parametrize("side", [4, 7])
def test_the_mask_forbids_what_the_grid_shows_to_be_wrong(side: int) -> None:
    task = task_of("LightUp-v0", side)
    instances = [task.puzzle.generate(seed) for seed in range(150)]
    grids = partial_grids(task.puzzle, instances)
    for grid, mask in zip(grids, masks_by_task(task, instances, grids), strict=True):
        board = grid.reshape(side, side)

        def is_lit(cell: tuple[int, int], board: np.ndarray = board) -> bool:
            return board[cell] == 1 or any(
                board[source] == 1 for source in lines_of_sight(board, *cell)
            )

        def lacking_bulbs(wall: tuple[int, int], board: np.ndarray = board) -> int:
            return (
                board[wall]
                - 4
                - sum(board[neighbour] == 1 for neighbour in neighbours(board, *wall))
            )

        def can_be_lit(cell: tuple[int, int], board: np.ndarray = board) -> bool:
            return board[cell] == 0 and not is_lit(cell)

        for (r, c), value in np.ndenumerate(board):
            walls = [wall for wall in neighbours(board, r, c) if board[wall] >= 4]
            bulb = can_be_lit((r, c)) and all(lacking_bulbs(wall) > 0 for wall in walls)
            hope = any(board[cell] == 1 or can_be_lit(cell) for cell in lines_of_sight(board, r, c))
            spare = all(
                lacking_bulbs(w) < sum(can_be_lit(cell) for cell in neighbours(board, *w))
                for w in walls
            )
            dark = value == 0 and (is_lit((r, c)) or (hope and spare))
            assert mask[r * side + c].tolist() == [bulb, dark]


@pytest.mark.parametrize("side", [4, 7, 10])
def test_plans_solve(side: int) -> None:
    task = task_of("LightUp-v0", side)
    returns, legal, success = play_plans(task, [task.puzzle.generate(seed) for seed in range(40)])
    assert all(legal)
    assert all(success)
    np.testing.assert_allclose(returns, 2.0, atol=1e-4)


def test_a_turned_board_is_the_same_puzzle() -> None:
    puzzle = LightUpPuzzle(6)
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
    for tier in (4, 7, 10):
        puzzle = LightUpPuzzle(tier)
        means.append(np.mean([puzzle.difficulty(puzzle.generate(seed)) for seed in range(60)]))
    assert means[0] < means[1] < means[2]


def test_sides_have_limits() -> None:
    with pytest.raises(ValueError, match="3 to 10"):
        LightUpPuzzle(11)
