"""Campsite-v0 against a SAT solver, exhaustive enumeration and the rules written out."""

from __future__ import annotations

import itertools
from statistics import fmean
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared
from pysat.card import CardEnc
from pysat.formula import IDPool
from pysat.solvers import Cadical153
from scipy.optimize import linear_sum_assignment

from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.grids.campsite import (
    GRASS,
    TENT,
    TENTS,
    TREE,
    CampsitePuzzle,
    Instance,
)
from rlbench_suite.envs.puzzles.shared.symmetry import square_symmetries
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
TIERS = ["easy", "medium", "hard"]


def where(cells: list[int], value: int) -> np.ndarray:
    """Rows and columns of a value, ``(count, 2)``."""
    side = round(len(cells) ** 0.5)
    return np.argwhere(np.array(cells).reshape(side, side) == value)


def counts_of(cells: list[int]) -> list[int]:
    side = round(len(cells) ** 0.5)
    grid = np.array(cells).reshape(side, side) == TENT
    return [*grid.sum(1).tolist(), *grid.sum(0).tolist()]


def keeps_the_rules(cells: list[int], counts: list[int]) -> bool:
    """Check the definition: counts, distances, and a matching found by the assignment problem."""
    tents, trees = where(cells, TENT), where(cells, TREE)
    if 0 in cells or counts_of(cells) != counts or len(tents) != len(trees):
        return False
    apart = all(abs(a - b).max() > 1 for a, b in itertools.combinations(tents, 2))
    distance = abs(tents[:, None] - trees[None, :]).sum(-1)
    pairs = linear_sum_assignment(distance != 1)
    return apart and bool((distance[pairs] == 1).all())


def solutions_by_sat(instance: Instance, side: int, limit: int) -> int:
    """Assignments of tents to trees as variables; arrangements are told apart by their tents."""
    pool = IDPool()
    cells, counts = instance.givens.tolist(), instance.counts.tolist()
    tent = [pool.id(("tent", cell)) for cell in range(side * side)]
    near = {
        cell: [
            neighbour
            for neighbour in range(side * side)
            if abs(cell // side - neighbour // side) + abs(cell % side - neighbour % side) == 1
        ]
        for cell in range(side * side)
    }
    clauses = [[-tent[cell]] for cell, value in enumerate(cells) if value == TREE]
    for cell, neighbour in itertools.combinations(range(side * side), 2):
        if max(abs(cell // side - neighbour // side), abs(cell % side - neighbour % side)) == 1:
            clauses.append([-tent[cell], -tent[neighbour]])
    for i, count in enumerate(counts):
        line = tent[i * side : (i + 1) * side] if i < side else tent[i - side :: side]
        clauses += CardEnc.equals(line, count, vpool=pool).clauses
    trees = [cell for cell, value in enumerate(cells) if value == TREE]
    for tree in trees:
        clauses += CardEnc.equals(
            [pool.id((tree, cell)) for cell in near[tree]], 1, encoding=0
        ).clauses
        clauses += [[-pool.id((tree, cell)), tent[cell]] for cell in near[tree]]
    for cell in range(side * side):
        owners = [pool.id((tree, cell)) for tree in near[cell] if tree in trees]
        clauses.append([-tent[cell], *owners])
        clauses += [[-first, -second] for first, second in itertools.combinations(owners, 2)]
    num_solutions = 0
    with Cadical153(bootstrap_with=clauses) as solver:
        while num_solutions < limit and solver.solve():
            num_solutions += 1
            solver.add_clause([-x for x in set(solver.get_model()).intersection(tent)])
    return num_solutions


@pytest.mark.engine("CaDiCaL: one solution")
@pytest.mark.parametrize(("tier", "count"), [("easy", 650), ("medium", 400), ("hard", 100)])
def test_there_is_one_solution(tier: str, count: int, compared: Compared) -> None:
    puzzle: Any = puzzle_of("Campsite-v0", tier)
    side = puzzle.rows
    for seed in range(count):
        instance = puzzle.generate(seed)
        givens = instance.givens.tolist()
        assert givens.count(TREE) == TENTS[side]
        assert solutions_by_sat(instance, side, 2) == 1
        cells = [v for row in puzzle.solution(instance) for v in row]
        assert keeps_the_rules(cells, instance.counts.tolist())
        assert all(clue in (0, value) for clue, value in zip(givens, cells, strict=True))
        compared(puzzle, instance)


def test_nothing_else_passes_for_a_solution() -> None:
    """Try all fillings that have the counts of rows.

    The task must take the solution for solved, and nothing else.
    """
    task: Any = card("Campsite-v0").build(difficulty="easy")
    puzzle, side = task.puzzle, 5
    solved = jax.jit(jax.vmap(task.is_solved, in_axes=(0, None)))
    for seed in range(6):
        instance = puzzle.generate(seed)
        trees = instance.givens.reshape(side, side) == TREE
        options = []
        for row, count in zip(trees, instance.counts[:side], strict=True):
            bits = (np.arange(32)[:, None] >> np.arange(side)) & 1
            options.append(bits[(bits.sum(1) == count) & ~(bits & row).any(1)])
        boards = np.array([np.stack(rows) for rows in itertools.product(*options)], np.int8) + 1
        boards[:, trees] = TREE
        right = np.asarray(solved(jnp.asarray(boards.reshape(-1, 25)), instance))
        assert right.sum() == 1
        assert boards[right][0].tolist() == puzzle.solution(instance)
        judged = [
            keeps_the_rules(b.ravel().tolist(), instance.counts.tolist())
            for b in boards[:: max(len(boards) // 200, 1)]
        ]
        assert judged == right[:: max(len(boards) // 200, 1)].tolist()


def test_trees_cannot_share_a_tent() -> None:
    """Refuse tents without a pairing with the trees.

    All other rules are kept: counts are right, nothing touches, and every tree is beside a tent and
    every tent beside a tree.
    """
    puzzle = CampsitePuzzle(5)
    # Two trees at one tent, and the reverse.
    picture = ("T A T . .", ". . . . .", ". . . . .", ". . . . .", ". A T A .")
    cells = np.array(
        [{".": GRASS, "A": TENT, "T": TREE}[c] for c in " ".join(picture).split()], np.int8
    )
    instance = Instance(
        np.where(cells == TREE, TREE, 0).astype(np.int8),
        np.array(counts_of(cells.tolist()), np.int8),
    )
    assert (
        puzzle.verify(instance, "\n".join(picture)).reason == "trees and tents cannot be paired off"
    )


def test_no_solution_is_an_error() -> None:
    with pytest.raises(ValueError, match="no solution"):
        CampsitePuzzle(5).solution(Instance(np.zeros(25, np.int8), np.ones(10, np.int8)))


@pytest.mark.parametrize("side", [4, 7, 5.5])
def test_other_sides_are_refused(side: float) -> None:
    with pytest.raises(ValueError, match="one of 5, 6, 8, got"):
        CampsitePuzzle(side)


@pytest.mark.parametrize("tier", TIERS)
def test_the_verifier_knows_the_rules(tier: str) -> None:
    puzzle: Any = puzzle_of("Campsite-v0", tier)
    dice, kinds = Dice(1, 2), set()
    for seed in range(60):
        instance = puzzle.generate(seed)
        free = [i for i, v in enumerate(instance.givens.tolist()) if v == 0]
        for kind in ("right", "one changed", "one moved", "random"):
            cells = [v for row in puzzle.solution(instance) for v in row]
            tent = dice.choice([i for i in free if cells[i] == TENT])
            grass = dice.choice([i for i in free if cells[i] == GRASS])
            if kind == "one changed":
                cells[tent] = GRASS
            elif kind == "one moved":
                cells[tent], cells[grass] = GRASS, TENT
            elif kind == "random":
                for cell in free:
                    cells[cell] = 1 + dice.below(2)
            verdict = puzzle.verify(instance, puzzle.write_answer(puzzle.as_rows(cells)))
            assert verdict.valid
            assert verdict.solved == keeps_the_rules(cells, instance.counts.tolist())
            kinds.add((kind, verdict.solved))
    assert {
        ("right", True),
        ("one changed", False),
        ("one moved", False),
        ("random", False),
    } <= kinds
    assert (
        "not to be filled in"
        in puzzle.verify(instance, puzzle.solve(instance).replace("A", "T", 1)).reason
    )


@pytest.mark.parametrize("tier", TIERS)
def test_the_mask_is_what_the_rules_say_and_the_full_grid_is_judged_alike(tier: str) -> None:
    task: Any = card("Campsite-v0").build(difficulty=tier)
    puzzle, side, dice = task.puzzle, task.puzzle.rows, Dice(3, 4)
    boards, instances = [], []
    for seed in range(90):
        instance = puzzle.generate(seed)
        cells = [v for row in puzzle.solution(instance) for v in row]
        free = [i for i, v in enumerate(instance.givens.tolist()) if v == 0]
        for cell in dice.sample(free, [dice.between(1, len(free)), 0, 2][seed % 3]):
            cells[cell] = 0 if seed % 3 == 0 else 3 - cells[cell]
        boards.append(cells)
        instances.append(instance)
    stacked = Instance(*(np.stack(column) for column in zip(*instances, strict=True)))
    batch = jnp.asarray(boards, jnp.int8)
    allowed = np.asarray(jax.jit(jax.vmap(task.mask))(batch, stacked)).reshape(len(boards), -1, 2)
    solved = np.asarray(jax.jit(jax.vmap(task.is_solved))(batch, stacked))
    for cells, instance, may, right in zip(boards, instances, allowed, solved, strict=True):
        counts = instance.counts.tolist()
        tents_in = counts_of(cells)
        free_in = counts_of([TENT if v == 0 else GRASS for v in cells])
        for cell in (i for i, v in enumerate(cells) if v == 0):
            here, lines = np.array(divmod(cell, side)), (cell // side, side + cell % side)
            apart = all(abs(here - tent).max() > 1 for tent in where(cells, TENT))
            beside = any(abs(here - tree).sum() == 1 for tree in where(cells, TREE))
            assert may[cell, TENT - 1] == (
                apart and beside and all(tents_in[k] < counts[k] for k in lines)
            )
            assert may[cell, GRASS - 1] == all(
                free_in[k] - 1 >= counts[k] - tents_in[k] for k in lines
            )
        if 0 not in cells:
            assert right == keeps_the_rules(cells, counts)
    assert solved[1::3].all()
    assert not solved[2::3].any()


def test_canonical_form() -> None:
    puzzle: Any = puzzle_of("Campsite-v0")
    forms = set()
    for seed in range(40):
        instance = puzzle.generate(seed)
        forms.add(form := puzzle.canonical(instance))
        solution = np.array(puzzle.solution(instance)).ravel()
        for order in square_symmetries(puzzle.rows):
            counts = counts_of(solution[list(order)].tolist())
            assert (
                puzzle.canonical(Instance(instance.givens[list(order)], np.array(counts, np.int8)))
                == form
            )
    assert len(forms) == 40


def test_tiers_are_in_order() -> None:
    means = []
    for tier in TIERS:
        puzzle = puzzle_of("Campsite-v0", tier)
        means.append(fmean(puzzle.difficulty(puzzle.generate(seed)) for seed in range(150)))
    assert means[0] < 0.8 * means[1] < 0.64 * means[2]
