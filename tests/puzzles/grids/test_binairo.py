"""Binairo-v0 against a SAT solver, exhaustive enumeration and the rules written out."""

from __future__ import annotations

import itertools
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
from rlbench_suite.envs.puzzles.grids.binairo import TO_FILL, BinairoPuzzle, Instance
from rlbench_suite.envs.puzzles.grids.line_solver import LineSolver
from rlbench_suite.envs.puzzles.shared.symmetry import square_symmetries
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
TIERS = ["easy", "medium", "hard"]


def lines_of(cells: list[int], side: int) -> list[list[int]]:
    """Rows, then columns."""
    return [cells[r * side : (r + 1) * side] for r in range(side)] + [
        cells[c::side] for c in range(side)
    ]


def fits(line: list[int]) -> bool:
    """Return whether a line that may have gaps (0) keeps the rules.

    It is neither too full of a symbol nor has three in a row.
    """
    threes = [1, 1, 1], [2, 2, 2]
    return max(line.count(1), line.count(2)) <= len(line) // 2 and not any(
        line[i : i + 3] in threes for i in range(len(line))
    )


def keeps_the_rules(cells: list[int], side: int) -> bool:
    """Check the definition."""
    lines = [tuple(line) for line in lines_of(cells, side)]
    different = len(set(lines[:side])) == len(set(lines[side:])) == side
    return 0 not in cells and different and all(fits(list(line)) for line in lines)


@cache
def sat_engine(side: int) -> Cadical153:
    """Balance and no three in a row; variable i + 1 says that cell i holds the symbol 1."""
    clauses = []
    for line in lines_of(list(range(1, side * side + 1)), side):
        too_many = itertools.chain(
            itertools.combinations(line, side // 2 + 1), (line[i : i + 3] for i in range(side - 2))
        )
        for cells in too_many:
            clauses += [list(cells), [-cell for cell in cells]]
    return Cadical153(bootstrap_with=clauses)


def solutions_by_sat(givens: list[int], side: int, switch: int) -> int:
    """Count the solutions, up to 2; ``switch`` is a variable of this count alone."""
    solver, count = sat_engine(side), 0
    fixed = [i + 1 if v == 2 else -i - 1 for i, v in enumerate(givens) if v] + [switch]
    while count < 2 and solver.solve(assumptions=fixed):
        model = solver.get_model()[: side * side]
        count += keeps_the_rules([2 if x > 0 else 1 for x in model], side)
        solver.add_clause([-switch] + [-x for x in model])
    return count


@pytest.mark.engine("CaDiCaL: one solution")
@pytest.mark.parametrize(("tier", "count"), [("easy", 1000), ("medium", 1000), ("hard", 150)])
def test_there_is_one_solution(tier: str, count: int, compared: Compared) -> None:
    puzzle: Any = puzzle_of("Binairo-v0", tier)
    side = puzzle.rows
    for seed in range(count):
        instance = puzzle.generate(seed)
        givens = instance.givens.tolist()
        assert givens.count(0) == TO_FILL[side]
        assert solutions_by_sat(givens, side, side * side + 1 + seed) == 1
        cells = [v for row in puzzle.solution(instance) for v in row]
        assert keeps_the_rules(cells, side)
        assert all(clue in (0, value) for clue, value in zip(givens, cells, strict=True))
        compared(puzzle, instance)


def test_counts_of_solutions_are_exact() -> None:
    """Count solutions where there are several or none, too.

    The generator asks the solver about such grids on its way.
    """
    puzzle: Any = puzzle_of("Binairo-v0", "easy")
    every = [list(c) for c in itertools.product((1, 2), repeat=16) if keeps_the_rules(list(c), 4)]
    assert len(every) == 72
    dice = Dice(1, 1)
    solution_counts = set()
    for _ in range(400):
        givens = [v if dice.below(3) == 0 else 0 for v in dice.choice(every)]
        if dice.below(2):
            givens[dice.below(16)] = 1
        expected = [c for c in every if all(g in (0, v) for g, v in zip(givens, c, strict=True))]
        solver = LineSolver(4, 2)
        solutions = [solver.cells(rows) for rows in solver.solutions(*puzzle._options(givens), 100)]
        assert sorted(solutions) == expected
        solution_counts.add(min(len(expected), 2))
    assert solution_counts == {0, 1, 2}


def test_all_full_grids_come_up() -> None:
    puzzle: Any = puzzle_of("Binairo-v0", "easy")
    assert len({puzzle.solve(puzzle.generate(seed)) for seed in range(1500)}) == 72


def test_no_solution_is_an_error() -> None:
    with pytest.raises(ValueError, match="no solution"):
        BinairoPuzzle(4).solution(Instance(np.ones(16, np.int8)))


@pytest.mark.parametrize("side", [2, 5, 10, 6.5])
def test_other_sides_are_refused(side: float) -> None:
    with pytest.raises(ValueError, match="one of 4, 6, 8, got"):
        BinairoPuzzle(side)


@pytest.mark.parametrize("tier", TIERS)
def test_the_verifier_knows_the_rules(tier: str) -> None:
    puzzle: Any = puzzle_of("Binairo-v0", tier)
    side, dice = puzzle.rows, Dice(1, 2)
    verdicts = set()
    for seed in range(60):
        instance = puzzle.generate(seed)
        for kind in ("right", "one changed", "random"):
            cells = [v for row in puzzle.solution(instance) for v in row]
            free = [i for i, v in enumerate(instance.givens.tolist()) if v == 0]
            for cell in {"right": [], "one changed": dice.sample(free, 1), "random": free}[kind]:
                cells[cell] = 3 - cells[cell] if kind == "one changed" else 1 + dice.below(2)
            verdict = puzzle.verify(instance, puzzle.write_answer(puzzle.as_rows(cells)))
            assert verdict.valid
            assert verdict.solved == keeps_the_rules(cells, side)
            verdicts.add((kind, verdict.solved))
    assert {("right", True), ("one changed", False), ("random", False)} <= verdicts


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ("1100 0011 1010 0101", ""),
        ("1110 0011 1010 0100", "row 1 has three equal"),
        ("1101 0011 1010 0100", "row 1 does not hold as many"),
        ("1100 0011 1100 0011", "rows 1 and 3 are equal"),
        ("1010 0101 1001 0110", ""),
        ("1100 1010 0011 1001", "column 1 does not hold as many"),
        ("1001 0110 1010 0110", "rows 2 and 4 are equal"),
        ("1001 0110 0101 1010", ""),
    ],
)
def test_reasons(rows: str, reason: str) -> None:
    puzzle = BinairoPuzzle(4)
    grid = "\n".join(" ".join(row) for row in rows.split())
    verdict = puzzle.verify(Instance(np.zeros(16, np.int8)), grid)
    assert verdict.solved == (not reason)
    assert verdict.reason.startswith(reason)


@pytest.mark.parametrize("tier", TIERS)
def test_the_mask_is_what_the_rules_say_and_the_full_grid_is_judged_alike(tier: str) -> None:
    task: Any = card("Binairo-v0").build(difficulty=tier)
    puzzle, side, dice = task.puzzle, task.puzzle.rows, Dice(3, 4)
    boards = []
    for seed in range(120):
        cells = [v for row in puzzle.solution(puzzle.generate(seed)) for v in row]
        for cell in dice.sample(
            range(side * side), dice.below(side * side) if seed % 3 == 1 else seed % 3 and 2
        ):
            cells[cell] = 0 if seed % 3 == 1 else 3 - cells[cell]
        boards.append(cells)
    # balanced and without three in a row, with equal rows or columns
    pair = [[1, 2] * (side // 2), [2, 1] * (side // 2)]
    boards += [
        (pair[0] + pair[1]) * (side // 2),
        [v for row in zip(*pair * (side // 2), strict=True) for v in row],
    ]
    batch = jnp.asarray(boards, jnp.int8)
    allowed = np.asarray(jax.jit(jax.vmap(lambda cells: task.mask(cells, None)))(batch)).reshape(
        len(boards), -1, 2
    )
    solved = np.asarray(jax.jit(jax.vmap(lambda cells: task.is_solved(cells, None)))(batch))
    results = set()
    for cells, may, right in zip(boards, allowed, solved, strict=True):
        for cell, symbol in itertools.product(range(side * side), (1, 2)):
            if cells[cell] == 0:
                tried = [*cells[:cell], symbol, *cells[cell + 1 :]]
                row, column = tried[cell // side * side :][:side], tried[cell % side :: side]
                assert may[cell, symbol - 1] == (fits(row) and fits(column))
        if 0 not in cells:
            assert right == keeps_the_rules(cells, side)
            results.add(bool(right))
    assert results == {False, True}


def test_canonical_form() -> None:
    puzzle: Any = puzzle_of("Binairo-v0")
    forms = set()
    for seed in range(50):
        cells = puzzle.generate(seed).givens
        forms.add(form := puzzle.canonical(Instance(cells)))
        for order in square_symmetries(puzzle.rows):
            for names in ([0, 1, 2], [0, 2, 1]):
                assert (
                    puzzle.canonical(Instance(np.array(names, np.int8)[cells[list(order)]])) == form
                )
    assert len(forms) == 50


def test_tiers_are_in_order() -> None:
    means = []
    for tier in TIERS:
        puzzle = puzzle_of("Binairo-v0", tier)
        means.append(fmean(puzzle.difficulty(puzzle.generate(seed)) for seed in range(100)))
    assert means[0] < 0.7 * means[1] < 0.49 * means[2]
