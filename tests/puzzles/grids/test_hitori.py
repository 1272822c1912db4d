"""Tests of Hitori-v0 against its definition and a SAT solver.

The SAT solver counts the solutions of larger boards.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from comparison import Compared
from fill_tasks import accept_grids, grids_of, masks_by_task, partial_grids, play_plans, task_of
from pysat.solvers import Glucose4

from rlbench_suite.envs.puzzles.grids.hitori import HitoriPuzzle, Instance

pytestmark = pytest.mark.of_variants


def neighbours(side: int, row: int, column: int) -> list[tuple[int, int]]:
    around = ((row, column + 1), (row, column - 1), (row + 1, column), (row - 1, column))
    return [(r, c) for r, c in around if 0 <= r < side and 0 <= c < side]


def piece(white: np.ndarray, start: tuple[int, int]) -> set[tuple[int, int]]:
    """Return the white cells that are connected with this one."""
    reached = {start}
    border = [start]
    while border:
        new = [
            cell
            for cell in neighbours(len(white), *border.pop())
            if white[cell] and cell not in reached
        ]
        reached.update(new)
        border += new
    return reached


def keeps_the_rules(numbers: np.ndarray, black: np.ndarray) -> bool:
    lines = [*zip(numbers, black, strict=True), *zip(numbers.T, black.T, strict=True)]
    for line, colours in lines:
        white = line[~colours]
        if len(set(white.tolist())) < len(white) or (colours[1:] & colours[:-1]).any():
            return False
    white_cells = list(zip(*np.nonzero(~black), strict=True))
    return len(white_cells) > 0 and len(piece(~black, white_cells[0])) == len(white_cells)


def number_of_solutions(numbers: np.ndarray) -> int:
    """Two stands for more than one.

    Colourings whose white cells fall apart are ruled out as they come up: around a piece that
    leaves white outside, some cell must be white.
    """
    side = len(numbers)
    name = {cell: number for number, cell in enumerate(np.ndindex(side, side), 1)}
    clauses = []
    for cell, second_cell in itertools.combinations(name, 2):
        if (cell[0] == second_cell[0] or cell[1] == second_cell[1]) and numbers[cell] == numbers[
            second_cell
        ]:
            clauses.append([name[cell], name[second_cell]])
        if abs(cell[0] - second_cell[0]) + abs(cell[1] - second_cell[1]) == 1:
            clauses.append([-name[cell], -name[second_cell]])
    count = 0
    with Glucose4(bootstrap_with=clauses) as solver:
        while count < 2 and solver.solve():
            model = solver.get_model()
            black = np.array(model).reshape(side, side) > 0
            pieces: list[set[tuple[int, int]]] = []
            for cell in zip(*np.nonzero(~black), strict=True):
                if not any(cell in component for component in pieces):
                    pieces.append(piece(~black, cell))
            if len(pieces) == 1:
                count += 1
                solver.add_clause([-literal for literal in model])
            else:
                smallest = min(pieces, key=len)
                border = {
                    neighbour for cell in smallest for neighbour in neighbours(side, *cell)
                } - smallest
                outside = next(iter(max(pieces, key=len)))
                solver.add_clause(
                    [-name[cell] for cell in border] + [name[next(iter(smallest))], name[outside]]
                )
    return count


def board_of(instance: Instance) -> np.ndarray:
    side = round(instance.numbers.size**0.5)
    return instance.numbers.reshape(side, side)


@pytest.mark.engine("CaDiCaL: one solution")
@pytest.mark.parametrize(("side", "count"), [(4, 100), (5, 640), (6, 300), (8, 60)])
def test_there_is_one_solution(side: int, count: int, compared: Compared) -> None:
    puzzle = HitoriPuzzle(side)
    for seed in range(count):
        instance = puzzle.generate(seed)
        assert number_of_solutions(board_of(instance)) == 1
        assert puzzle.verify(instance, puzzle.solve(instance)).solved
        compared(puzzle, instance)


def test_solutions_are_counted_right() -> None:
    puzzle = HitoriPuzzle(3)
    rng = np.random.default_rng(0)
    solution_counts = set()
    for _ in range(200):
        numbers = rng.integers(1, 4, 9)
        board = numbers.reshape(3, 3)
        colourings = (
            np.array(black).reshape(3, 3) for black in itertools.product((False, True), repeat=9)
        )
        by_force = {
            sum(1 << cell for cell in np.flatnonzero(black))
            for black in colourings
            if keeps_the_rules(board, black)
        }
        solutions = list(puzzle._solutions(numbers.tolist()))
        assert len(solutions) == len(set(solutions))
        assert set(solutions) == by_force
        assert min(2, len(solutions)) == number_of_solutions(board)
        solution_counts.add(min(2, len(solutions)))
    assert solution_counts == {0, 1, 2}


@pytest.mark.parametrize("side", [4, 6, 8])
def test_verifier_and_task_know_the_rules(side: int) -> None:
    task = task_of("Hitori-v0", side)
    puzzle = task.puzzle
    instances = [puzzle.generate(seed, ("train", "test")[seed & 1]) for seed in range(240)]
    grids = grids_of(puzzle, instances)
    expected = [
        keeps_the_rules(board_of(instance), grid.reshape(side, side) == 1)
        for instance, grid in zip(instances, grids, strict=True)
    ]
    written = [puzzle.write_answer(puzzle.as_rows(g.tolist())) for g in grids]
    assert [puzzle.verify(i, w).solved for i, w in zip(instances, written, strict=True)] == expected
    assert accept_grids(task, instances, grids) == expected
    assert 60 <= sum(expected) <= 180


def test_white_in_pieces_is_noticed() -> None:
    """Break only the rule that random grids seldom break alone.

    All numbers are different, and black cells lie in random places apart.
    """
    side = 6
    task = task_of("Hitori-v0", side)
    instance = Instance(
        np.zeros(36, np.int8),
        np.array([(r + c) % 6 + 1 for r in range(6) for c in range(6)], np.int8),
    )
    rng = np.random.default_rng(0)
    grids, expected = [], []
    for _ in range(300):
        black = np.zeros((side, side), bool)
        for cell in rng.permutation(36)[: rng.integers(4, 30)]:
            where = divmod(int(cell), side)
            black[where] = not any(black[neighbour] for neighbour in neighbours(side, *where))
        grids.append(np.where(black, 1, 2).astype(np.int8).ravel())
        expected.append(keeps_the_rules(board_of(instance), black))
    assert accept_grids(task, [instance] * 300, grids) == expected
    puzzle = task.puzzle
    reasons = [puzzle.broken_rule(instance, puzzle.as_rows(grid.tolist())) for grid in grids]
    assert [reason == "" for reason in reasons] == expected
    assert set(reasons) == {"", "the white cells do not hang together"}


@pytest.mark.parametrize("side", [5, 6])
def test_the_mask_forbids_what_the_grid_shows_to_be_wrong(side: int) -> None:
    task = task_of("Hitori-v0", side)
    instances = [task.puzzle.generate(seed) for seed in range(150)]
    grids = partial_grids(task.puzzle, instances)
    for instance, grid, mask in zip(
        instances, grids, masks_by_task(task, instances, grids), strict=True
    ):
        board, numbers = grid.reshape(side, side), board_of(instance)
        for (r, c), value in np.ndenumerate(board):
            black = value == 0 and all(board[cell] != 1 for cell in neighbours(side, r, c))
            line = [(r, k) for k in range(side) if k != c] + [(k, c) for k in range(side) if k != r]
            white = value == 0 and not any(
                board[o] == 2 and numbers[o] == numbers[r, c] for o in line
            )
            assert mask[r * side + c].tolist() == [black, white]


def test_facts_are_the_equal_pairs() -> None:
    task = task_of("Hitori-v0", 5)
    for seed in range(20):
        numbers = board_of(instance := task.puzzle.generate(seed))
        pairs = list(itertools.combinations(range(5), 2))
        expected = [[line[a] == line[b] for a, b in pairs] for line in (*numbers, *numbers.T)]
        assert np.asarray(task.facts(instance)).tolist() == np.ravel(expected).tolist()


@pytest.mark.parametrize("side", [4, 6, 8])
def test_plans_solve(side: int) -> None:
    task = task_of("Hitori-v0", side)
    returns, legal, success = play_plans(task, [task.puzzle.generate(seed) for seed in range(40)])
    assert all(legal)
    assert all(success)
    np.testing.assert_allclose(returns, 2.0, atol=1e-4)


def test_a_turned_board_with_other_numbers_is_the_same_puzzle() -> None:
    puzzle = HitoriPuzzle(6)
    a, b = puzzle.generate(0), puzzle.generate(1)
    renamed = np.random.default_rng(0).permutation(6)[board_of(a) - 1] + 1
    for turn in range(4):
        for board in (np.rot90(renamed, turn), np.rot90(renamed.T, turn)):
            disguised = Instance(a.givens, board.ravel().astype(np.int8))
            assert puzzle.canonical(disguised) == puzzle.canonical(a) != puzzle.canonical(b)


def test_tiers_are_ordered() -> None:
    means = []
    for tier in (4, 6, 8):
        puzzle = HitoriPuzzle(tier)
        means.append(np.mean([puzzle.difficulty(puzzle.generate(seed)) for seed in range(200)]))
    assert means[0] < means[1] < means[2]


def test_sides_have_limits() -> None:
    with pytest.raises(ValueError, match="3 to 9"):
        HitoriPuzzle(10)
