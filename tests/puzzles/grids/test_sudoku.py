"""Sudoku against a SAT solver, exhaustive search and the rules written out."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared
from pysat.card import CardEnc
from pysat.solvers import Cadical153

from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.grids.sudoku import Instance, Sudoku4Puzzle, SudokuPuzzle
from rlbench_suite.envs.puzzles.shared.symmetry import (
    rename_values,
    square_forms,
    square_symmetries,
)
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.dice import Dice

PUZZLE_IDS = ["Sudoku-v0", "Sudoku4-v0"]


def units(side: int) -> list[list[int]]:
    """Return the cells of every row, column and box."""
    box = round(side**0.5)
    cells = [(r, c) for r in range(side) for c in range(side)]
    groups: list[list[int]] = []
    for k in range(side):
        groups.append([r * side + c for r, c in cells if r == k])
        groups.append([r * side + c for r, c in cells if c == k])
        groups.append([r * side + c for r, c in cells if r // box * box + c // box == k])
    return groups


def keeps_the_rules(cells: list[int], side: int) -> bool:
    """Check the definition."""
    return all(sorted(cells[i] for i in unit) == list(range(1, side + 1)) for unit in units(side))


@pytest.mark.parametrize("name", PUZZLE_IDS)
def test_all_units_are_checked_at_once(name: str) -> None:
    """Compare the check of all units with the definition on wrong and right grids.

    A few cells of full grids are changed or exchanged, and in some grids all units but a few are
    right.
    """
    puzzle: Any = puzzle_of(name)
    side, dice, counts = puzzle.rows, Dice(5, 6), {True: 0, False: 0}
    for seed in range(300):
        cells = [value for row in puzzle.solution(puzzle.generate(seed)) for value in row]
        for _ in range(dice.below(3)):
            if dice.below(2):
                first_row, second_row = dice.sample(range(side), 2)
                rows = [cells[k * side : k * side + side] for k in range(side)]
                # Rows and columns stay right.
                rows[first_row], rows[second_row] = (rows[second_row], rows[first_row])
                cells = [value for row in rows for value in row]
            else:
                cells[dice.below(side**2)] = 1 + dice.below(side)
        for arranged in (cells, [cells[k % side * side + k // side] for k in range(side**2)]):
            expected = keeps_the_rules(arranged, side)
            assert (
                puzzle.is_sound(None, bytes(arranged))
                == expected
                == (not puzzle.broken_rule(None, puzzle.as_rows(arranged)))
            )
            counts[expected] += 1
    latin = [(r + c) % side + 1 for r in range(side) for c in range(side)]
    assert not puzzle.is_sound(None, bytes(latin))
    assert min(counts.values()) > 100


def test_as_many_small_puzzles_as_it_says() -> None:
    """Try all ways to empty 11 cells of all 288 grids."""
    puzzle = Sudoku4Puzzle(11)
    orders = list(itertools.permutations(range(1, 5)))
    squares = (bytes(itertools.chain(*rows)) for rows in itertools.product(orders, repeat=4))
    grids = [grid for grid in squares if keeps_the_rules(list(grid), 4)]
    assert len(grids) == 288
    forms: set[bytes] = set()
    for givens in itertools.combinations(range(16), 5):
        grid_counts = Counter(bytes(grid[cell] for cell in givens) for grid in grids)
        for digits in (digits for digits, count in grid_counts.items() if count == 1):
            cells = np.zeros(16, np.int8)
            cells[list(givens)] = list(digits)
            if sorted(set(digits), key=digits.index) == list(
                range(1, len(set(digits)) + 1)
            ):  # up to names
                forms.add(puzzle.canonical(Instance(cells)))
    assert len(forms) == 1494


@pytest.mark.parametrize("side", [1, 3, 4])
def test_forms_of_a_square(side: int) -> None:
    cells = bytes(range(side**2))
    expected = [bytes(order) for order in square_symmetries(side)]
    assert sorted(square_forms(cells, side)) == sorted(expected)
    assert rename_values(bytes([5, 0, 7, 5, 2, 255, 0])) == bytes([1, 0, 2, 1, 3, 4, 0])


@cache
def rules_as_clauses(side: int) -> list[list[int]]:
    """Variable ``cell * side + digit``."""

    def literal(cell: int, digit: int) -> int:
        return cell * side + digit

    clauses = []
    exactly_one = [[literal(i, v) for v in range(1, side + 1)] for i in range(side * side)]
    exactly_one += [
        [literal(i, v) for i in unit] for unit in units(side) for v in range(1, side + 1)
    ]
    for literals in exactly_one:
        clauses += CardEnc.equals(literals, 1, encoding=0).clauses
    return clauses


def solutions_by_sat(instance: Instance, side: int) -> list[list[int]]:
    """Up to two."""
    givens = [[i * side + v] for i, v in enumerate(instance.givens.tolist()) if v]
    solutions = []
    with Cadical153(bootstrap_with=rules_as_clauses(side) + givens) as solver:
        while len(solutions) < 2 and solver.solve():
            model = [x for x in solver.get_model() if x > 0]
            solutions.append([(x - 1) % side + 1 for x in model])
            solver.add_clause([-x for x in model])
    return solutions


@pytest.mark.engine("CaDiCaL: one solution")
@pytest.mark.parametrize(
    ("name", "sizes"), [("Sudoku-v0", (750, 200, 100)), ("Sudoku4-v0", (100, 100, 1000))]
)
def test_there_is_one_solution(name: str, sizes: tuple[int, ...], compared: Compared) -> None:
    for tier, count in zip(("easy", "medium", "hard"), sizes, strict=True):
        puzzle: Any = puzzle_of(name, tier)
        for seed in range(count):
            instance = puzzle.generate(seed, ("train", "test")[seed % 2])
            assert (instance.givens == 0).sum() == puzzle.tier
            assert solutions_by_sat(instance, puzzle.rows) == [
                [v for row in puzzle.solution(instance) for v in row]
            ]
            compared(puzzle, instance)


def test_the_solver_finds_no_solution_where_there_is_none() -> None:
    puzzle = SudokuPuzzle(45)
    cells = np.zeros(81, np.int8)
    cells[:9] = [1, 2, 3, 4, 5, 6, 7, 8, 0]
    cells[17] = 9  # in the row's last column and box
    with pytest.raises(ValueError, match="no solution"):
        puzzle.solution(Instance(cells))


@pytest.mark.parametrize("name", PUZZLE_IDS)
def test_the_verifier_knows_the_rules(name: str) -> None:
    puzzle: Any = puzzle_of(name, "easy")
    side, dice = puzzle.rows, Dice(1, 2)
    verdicts = set()
    for seed in range(50):
        instance = puzzle.generate(seed)
        grid = puzzle.solution(instance)
        free = [i for i, v in enumerate(instance.givens.tolist()) if v == 0]
        for kind in ("right", "one changed", "two exchanged"):
            cells = [v for row in grid for v in row]
            first_cell, second_cell = dice.sample(free, 2)
            if kind == "one changed":
                cells[first_cell] = 1 + dice.below(side)
            elif kind == "two exchanged":
                cells[first_cell], cells[second_cell] = cells[second_cell], cells[first_cell]
            verdict = puzzle.verify(instance, puzzle.write_answer(puzzle.as_rows(cells)))
            assert verdict.solved == keeps_the_rules(cells, side)
            verdicts.add((kind, verdict.solved))
    assert {("right", True), ("one changed", False), ("two exchanged", False)} <= verdicts
    assert ("right", False) not in verdicts


def test_givens_are_not_to_be_changed() -> None:
    puzzle = Sudoku4Puzzle(6)
    instance = puzzle.generate(0)
    # Keeps the rules, not the givens.
    renamed = [[v % 4 + 1 for v in row] for row in puzzle.solution(instance)]
    assert "was given" in puzzle.verify(instance, puzzle.write_answer(renamed)).reason


@pytest.mark.parametrize("name", PUZZLE_IDS)
def test_the_mask_forbids_what_stands_in_a_unit_and_the_full_grid_is_judged_alike(
    name: str,
) -> None:
    task: Any = card(name).build()
    puzzle, side, dice = task.puzzle, task.puzzle.rows, Dice(3, 4)
    boards = []
    for seed in range(40):
        cells = [v for row in puzzle.solution(puzzle.generate(seed)) for v in row]
        for cell in dice.sample(range(side * side), dice.below(side * side)):
            cells[cell] = 0 if seed % 2 else 1 + dice.below(side)
        boards.append(cells)
    batch = jnp.asarray(boards, jnp.int8)
    allowed = np.asarray(jax.jit(jax.vmap(lambda cells: task.allowed_symbols(cells, None)))(batch))
    solved = np.asarray(jax.jit(jax.vmap(lambda cells: task.is_solved(cells, None)))(batch))
    for cells, may, right in zip(boards, allowed, solved, strict=True):
        for cell, digit in itertools.product(range(side * side), range(1, side + 1)):
            if cells[cell] == 0:
                used_digits = {cells[i] for unit in units(side) if cell in unit for i in unit}
                assert may[cell, digit - 1] == (digit not in used_digits)
        if 0 not in cells:
            assert right == keeps_the_rules(cells, side)


@pytest.mark.parametrize("name", PUZZLE_IDS)
def test_canonical_form(name: str) -> None:
    puzzle: Any = puzzle_of(name)
    dice = Dice(5, 6)
    forms = set()
    for seed in range(30):
        cells = puzzle.generate(seed).givens
        forms.add(form := puzzle.canonical(Instance(cells)))
        for order in square_symmetries(puzzle.rows):
            names = np.array([0, *dice.shuffled(range(1, puzzle.rows + 1))], np.int8)
            assert puzzle.canonical(Instance(names[cells[list(order)]])) == form
    assert len(forms) == 30


def grids_of_four() -> list[list[int]]:
    """Return all grids that keep the rules."""
    rows = list(itertools.permutations(range(1, 5)))
    flat = ([v for row in grid for v in row] for grid in itertools.product(rows, repeat=4))
    return [grid for grid in flat if keeps_the_rules(grid, 4)]


def test_all_grids_of_four_come_up() -> None:
    puzzle = Sudoku4Puzzle(1)
    generated = {puzzle.solve(puzzle.generate(seed)) for seed in range(6_000)}
    every = grids_of_four()
    assert len(every) == 288
    assert generated == {puzzle.write_answer(np.reshape(grid, (4, 4)).tolist()) for grid in every}


def test_how_many_of_four_there_are() -> None:
    """Count the instances on 4 x 4 cells up to their symmetries.

    An instance is a set of cells to fill in a grid such that every other grid differs in a given
    cell. One of each orbit under rotation and reflection counts, with digits named in the order of
    the first row.
    """
    every = grids_of_four()
    ordered_grids = [grid for grid in every if grid[:4] == [1, 2, 3, 4]]
    empty = np.arange(2**16)
    count = sum(empty >> k & 1 for k in range(16))
    forms = []
    for grid in ordered_grids:
        alone = empty
        for rival in every:
            if differs := sum(1 << k for k in range(16) if rival[k] != grid[k]):
                alone = alone[differs & ~alone != 0]
        images = []
        for order in square_symmetries(4):
            turned = [grid[k] for k in order]
            number = ordered_grids.index([turned.index(v) + 1 for v in turned])
            images.append(
                number << 16 | sum((alone >> old & 1) << new for new, old in enumerate(order))
            )
        forms.append(np.min(images, axis=0))
    sizes = np.bincount(count[np.unique(np.concatenate(forms)) & 0xFFFF])
    assert {tier: sizes[tier] for tier in range(1, 12)} == Sudoku4Puzzle.few


@pytest.mark.parametrize(
    ("kind", "tier"), [(SudokuPuzzle, 57), (SudokuPuzzle, 0), (Sudoku4Puzzle, 12)]
)
def test_a_wrong_tier_is_named(kind: type, tier: int) -> None:
    with pytest.raises(ValueError, match=f"got {tier}"):
        kind(tier)
