"""Tests of Skyscraper-v0 and SumSkyscraper-v0 against independent references.

They are compared with exhaustive enumeration, another search, and the rules written out.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from statistics import fmean
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared
from pysat.solvers import Cadical153

from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.grids.line_solver import LineSolver
from rlbench_suite.envs.puzzles.grids.skyscraper import SHAPES, Instance, SkyscraperPuzzle
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
PUZZLE_IDS = ["Skyscraper-v0", "SumSkyscraper-v0"]


def clue_of_line(name: str, line: Sequence[int]) -> int:
    """Check the definition: a tower is seen if no earlier one is as high."""
    visible = [
        height for i, height in enumerate(line) if all(earlier < height for earlier in line[:i])
    ]
    return sum(visible) if name.startswith("Sum") else len(visible)


def clues_of(name: str, grid: np.ndarray) -> list[int]:
    views = (grid.T, grid[::-1].T, grid, grid[:, ::-1])
    return [clue_of_line(name, line.tolist()) for view in views for line in view]


def keeps_the_rules(name: str, grid: np.ndarray, clues: Sequence[int]) -> bool:
    every_height = list(range(1, len(grid) + 1))
    latin = all(sorted(line.tolist()) == every_height for line in (*grid, *grid.T))
    return latin and all(
        clue in (0, visible) for clue, visible in zip(clues, clues_of(name, grid), strict=True)
    )


@cache
def latin_squares(side: int) -> np.ndarray:
    """Return all Latin squares, ``(count, side, side)``."""
    lines = list(itertools.permutations(range(1, side + 1)))

    def extend(rows: tuple[tuple[int, ...], ...]) -> list[tuple[tuple[int, ...], ...]]:
        if len(rows) == side:
            return [rows]
        fit = (
            line
            for line in lines
            if all(a != b for row in rows for a, b in zip(row, line, strict=True))
        )
        return [square for line in fit for square in extend((*rows, line))]

    return np.array(extend(()), np.int8)


@cache
def all_clues(name: str, side: int) -> np.ndarray:
    """Return the clues of :func:`latin_squares`, vectorised: ``(count, 4 * side)``."""
    squares = latin_squares(side)
    views = (squares.swapaxes(1, 2), squares[:, ::-1].swapaxes(1, 2), squares, squares[:, :, ::-1])
    lines = np.concatenate(views, 1)
    visible = lines == np.maximum.accumulate(lines, -1)
    return (lines * visible if name.startswith("Sum") else visible).sum(-1)


def matching_squares(name: str, instance: Instance, side: int) -> np.ndarray:
    """Return the Latin squares that keep givens and clues."""
    givens = instance.givens.reshape(side, side)
    matches = ((latin_squares(side) == givens) | (givens == 0)).all((1, 2))
    matches &= ((all_clues(name, side) == instance.clues) | (instance.clues == 0)).all(1)
    return latin_squares(side)[matches]


def test_there_are_as_many_latin_squares_as_known() -> None:
    assert [len(latin_squares(n)) for n in (2, 3, 4)] == [2, 12, 576]


@pytest.mark.engine("all Latin squares: one solution")
@pytest.mark.parametrize("name", PUZZLE_IDS)
def test_there_is_one_solution(name: str, compared: Compared) -> None:
    puzzle: Any = puzzle_of(name, "easy")
    for seed in range(940):
        instance = puzzle.generate(seed)
        (only,) = matching_squares(name, instance, 4)
        assert puzzle.solution(instance) == only.tolist()
        assert (instance.clues == 0).sum() == SHAPES[4][1]
        assert (instance.givens > 0).sum() >= SHAPES[4][0]
        compared(puzzle, instance)


def solutions_by_sat(name: str, instance: Instance, side: int) -> int:
    """Return the number of solutions: 0, 1, or 2 for more.

    Each arrangement of a line that is no permutation or is against its clues is a clause.
    """

    def literal(r: int, c: int, height: int) -> int:
        return (r * side + c) * side + height

    span, heights = range(side), range(1, side + 1)
    clauses = [[literal(r, c, v) for v in heights] for r in span for c in span]
    for i, v in itertools.product(span, heights):
        for j, k in itertools.combinations(span, 2):
            clauses += [
                [-literal(i, j, v), -literal(i, k, v)],
                [-literal(j, i, v), -literal(k, i, v)],
            ]
    clauses += [[literal(*divmod(i, side), v)] for i, v in enumerate(instance.givens.tolist()) if v]
    above, below, left, right = instance.clues.reshape(4, side).tolist()
    for line in itertools.permutations(heights):
        first, last = clue_of_line(name, line), clue_of_line(name, line[::-1])
        for i in span:
            if above[i] not in (0, first) or below[i] not in (0, last):
                clauses.append([-literal(j, i, v) for j, v in enumerate(line)])
            if left[i] not in (0, first) or right[i] not in (0, last):
                clauses.append([-literal(i, j, v) for j, v in enumerate(line)])
    with Cadical153(bootstrap_with=clauses) as solver:
        if not solver.solve():
            return 0
        solver.add_clause([-x for x in solver.get_model() if x > 0])
        return 2 if solver.solve() else 1


@pytest.mark.engine("CaDiCaL: one solution")
@pytest.mark.parametrize("name", PUZZLE_IDS)
@pytest.mark.parametrize(("side", "count"), [(5, 60), (6, 10)])
def test_there_is_one_solution_on_larger_boards(
    name: str, side: int, count: int, compared: Compared
) -> None:
    puzzle: Any = puzzle_of(name, side)
    for seed in range(count):
        instance = puzzle.generate(seed)
        assert solutions_by_sat(name, instance, side) == 1
        assert keeps_the_rules(name, np.array(puzzle.solution(instance)), instance.clues.tolist())
        compared(puzzle, instance)


@pytest.mark.parametrize("name", PUZZLE_IDS)
def test_the_solver_finds_all_solutions(name: str) -> None:
    """Also where there are several or none."""
    puzzle: Any = puzzle_of(name, "easy")
    dice, seen_counts = Dice(1, 1), set()
    for seed in range(200):
        instance = puzzle.generate(seed)
        givens = [v if dice.below(2) else 0 for v in instance.givens.tolist()]
        clues = [v if dice.below(2) else 0 for v in instance.clues.tolist()]
        if seed % 4 == 0:
            givens[dice.below(16)] = 1 + dice.below(4)
        changed = Instance(np.array(givens, np.int8), np.array(clues, np.int8))
        expected = sorted(square.ravel().tolist() for square in matching_squares(name, changed, 4))
        solver = LineSolver(4, 4)
        assert (
            sorted(
                solver.cells(rows)
                for rows in solver.solutions(*puzzle._options(givens, clues), 600)
            )
            == expected
        )
        seen_counts.add(min(len(expected), 2))
    assert seen_counts == {0, 1, 2}


def test_no_solution_is_an_error() -> None:
    with pytest.raises(ValueError, match="no solution"):
        SkyscraperPuzzle(4).solution(Instance(np.ones(16, np.int8), np.zeros(16, np.int8)))


@pytest.mark.parametrize("side", [3, 7, 4.5])
def test_other_sides_are_refused(side: float) -> None:
    with pytest.raises(ValueError, match="one of 4, 5, 6, got"):
        SkyscraperPuzzle(side)


@pytest.mark.parametrize("name", PUZZLE_IDS)
@pytest.mark.parametrize("tier", ["easy", "medium", "hard"])
def test_the_verifier_knows_the_rules(name: str, tier: str) -> None:
    puzzle: Any = puzzle_of(name, tier)
    side, dice, kinds = puzzle.rows, Dice(1, 2), set()
    for seed in range(12):
        instance = puzzle.generate(seed)
        free = [i for i, v in enumerate(instance.givens.tolist()) if v == 0]
        for kind in ("right", "one changed", "rows exchanged", "random"):
            cells = [v for row in puzzle.solution(instance) for v in row]
            if kind == "one changed":
                cells[dice.choice(free)] = 1 + dice.below(side)
            elif kind == "rows exchanged":
                cells = cells[side : 2 * side] + cells[:side] + cells[2 * side :]
            elif kind == "random":
                for cell in free:
                    cells[cell] = 1 + dice.below(side)
            verdict = puzzle.verify(instance, puzzle.write_answer(puzzle.as_rows(cells)))
            givens = all(v in (0, c) for v, c in zip(instance.givens.tolist(), cells, strict=True))
            right = givens and keeps_the_rules(
                name, np.array(cells).reshape(side, side), instance.clues.tolist()
            )
            assert verdict.valid
            assert verdict.solved == right
            kinds.add((kind, verdict.solved))
    assert {
        ("right", True),
        ("one changed", False),
        ("rows exchanged", False),
        ("random", False),
    } <= kinds


def test_reasons() -> None:
    puzzle = SkyscraperPuzzle(4)
    clues = np.zeros(16, np.int8)
    clues[9] = 3
    instance = Instance(np.zeros(16, np.int8), clues)
    assert puzzle.verify(instance, "1 2 3 4\n2 1 4 3\n3 4 1 2\n4 3 2 1").reason == (
        "from the left, row 2: the clue is 3, and 2 is seen"
    )
    assert (
        puzzle.verify(instance, "1 2 3 4\n1 3 4 2\n2 1 3 4\n4 3 2 1").reason
        == "column 1 does not hold every height"
    )
    assert puzzle.verify(instance, "1 2 3 4\n2 3 4 1\n3 4 1 2\n4 1 2 3").solved


@pytest.mark.parametrize("name", PUZZLE_IDS)
@pytest.mark.parametrize("tier", ["easy", "hard"])
def test_the_mask_is_what_the_rules_say_and_the_full_grid_is_judged_alike(
    name: str, tier: str
) -> None:
    task: Any = card(name).build(difficulty=tier)
    puzzle, side, dice = task.puzzle, task.puzzle.rows, Dice(3, 4)
    boards, instances = [], []
    for number in range(40):
        instance = puzzle.generate(number)
        cells = np.array(puzzle.solution(instance), np.int8).ravel()
        if number % 3 == 1:  # every second time the clues are not this grid's
            cells = np.array(
                puzzle.solution(puzzle.generate(number % 2 * 100 + number)), np.int8
            ).ravel()
            cells[dice.sample(range(side * side), 1 + dice.below(2 * side))] = 0
        elif number % 3 == 2:  # a Latin square with other clues, or no Latin square
            cells = 1 + cells % side if number % 2 else cells[dice.shuffled(range(side * side))]
        boards.append(cells)
        instances.append(instance)
    stacked = Instance(*(np.stack(column) for column in zip(*instances, strict=True)))
    allowed = np.asarray(
        jax.jit(jax.vmap(task.allowed_symbols))(jnp.asarray(np.stack(boards)), stacked)
    )
    solved = np.asarray(jax.jit(jax.vmap(task.is_solved))(jnp.asarray(np.stack(boards)), stacked))
    against = 0
    for cells, instance, may, right in zip(boards, instances, allowed, solved, strict=True):
        clues = instance.clues.tolist()
        for cell, height in itertools.product(range(side * side), range(1, side + 1)):
            if cells[cell] == 0:
                grid = cells.reshape(side, side).copy()
                r, c = divmod(cell, side)
                latin = height not in grid[r] and height not in grid[:, c]
                grid[r, c] = height
                agrees = True
                for line, ends in (
                    (grid[:, c], (clues[c], clues[side + c])),
                    (grid[r], clues[2 * side + r :: side]),
                ):
                    if 0 not in line:
                        first = clue_of_line(name, line.tolist())
                        last = clue_of_line(name, line[::-1].tolist())
                        agrees &= ends[0] in (0, first) and ends[1] in (0, last)
                assert may[cell, height - 1] == (latin and agrees)
                against += latin and not agrees
        if 0 not in cells:
            assert right == keeps_the_rules(name, cells.reshape(side, side), clues)
    assert against > 0
    assert 0 < solved.sum() < len(boards)


@pytest.mark.parametrize("name", PUZZLE_IDS)
def test_canonical_form(name: str) -> None:
    puzzle: Any = puzzle_of(name, "easy")
    forms = set()
    for seed in range(40):
        instance = puzzle.generate(seed)
        forms.add(form := puzzle.canonical(instance))
        grid = instance.givens.reshape(4, 4)
        above, below, left, right = instance.clues.reshape(4, 4)
        turned = Instance(grid.T.ravel(), np.concatenate([left, right, above, below]))
        mirrored = Instance(
            grid[:, ::-1].ravel(), np.concatenate([above[::-1], below[::-1], right, left])
        )
        assert puzzle.canonical(turned) == puzzle.canonical(mirrored) == form
    assert len(forms) == 40


@pytest.mark.parametrize("name", PUZZLE_IDS)
def test_tiers_are_in_order(name: str) -> None:
    easy, medium, hard = (
        fmean(puzzle.difficulty(puzzle.generate(seed)) for seed in range(20))
        for puzzle in (puzzle_of(name, tier) for tier in ("easy", "medium", "hard"))
    )
    assert easy < 0.8 * medium < 0.64 * hard
