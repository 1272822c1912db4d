"""SymbolicGrid-v0 against exhaustive enumeration and the rules written out."""

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
from rlbench_suite.envs.puzzles.arithmetic.symbolic_grid import (
    SHAPES,
    Instance,
    SymbolicGridPuzzle,
    _Search,
)
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
TIERS = ["easy", "medium", "hard"]


def sums_of(instance: Instance, digits: Any) -> list[int]:
    """Digits put in the place of letters, and added up."""
    side = round(len(instance.letters) ** 0.5)
    grid = np.asarray(digits)[instance.letters].reshape(side, side)
    return [*grid.sum(1).tolist(), *grid.sum(0).tolist()]


def keeps_the_rules(instance: Instance, digits: list[int]) -> bool:
    """Check the definition."""
    sum_pairs = zip(instance.sums.tolist(), sums_of(instance, digits), strict=True)
    proper = len(set(digits)) == len(digits) and all(1 <= digit <= 9 for digit in digits)
    return proper and all(total in (0, value) for total, value in sum_pairs)


def solutions_by_force(instance: Instance, letters: int) -> list[list[int]]:
    """Try all assignments, with each row and column added up cell by cell."""
    digits = np.array(list(itertools.permutations(range(1, 10), letters)), np.int8)
    side = round(len(instance.letters) ** 0.5)
    filled = digits[:, instance.letters].reshape(-1, side, side)
    sums = np.concatenate([filled.sum(2), filled.sum(1)], 1)
    return digits[((instance.sums == 0) | (sums == instance.sums)).all(1)].tolist()


@pytest.mark.engine("all assignments: one solution")
@pytest.mark.parametrize(("tier", "count"), [("easy", 1000), ("medium", 200), ("hard", 40)])
def test_there_is_one_solution(tier: str, count: int, compared: Compared) -> None:
    puzzle: Any = puzzle_of("SymbolicGrid-v0", tier)
    letters, hidden = SHAPES[puzzle.side]
    for seed in range(count):
        instance = puzzle.generate(seed)
        assert solutions_by_force(instance, letters) == puzzle.solution(instance)
        assert (instance.sums == 0).sum() == hidden
        assert set(instance.letters.tolist()) == set(range(letters))
        compared(puzzle, instance)


def test_the_search_finds_all_solutions() -> None:
    """With more sums hidden there are several, with a wrong one none."""
    puzzle: Any = puzzle_of("SymbolicGrid-v0", "easy")
    dice = Dice(1, 1)
    solution_counts = set()
    for seed in range(200):
        instance = puzzle.generate(seed)
        sums = instance.sums * np.array([dice.below(3) > 0 for _ in range(6)])
        sums[dice.below(6)] += dice.below(2)
        changed = instance._replace(sums=sums.astype(np.int8))
        expected = solutions_by_force(changed, 3)
        assert _Search(puzzle, changed).solutions(1000) == expected
        solution_counts.add(min(len(expected), 2))
    assert solution_counts == {0, 1, 2}


def test_no_solution_is_an_error() -> None:
    puzzle: Any = puzzle_of("SymbolicGrid-v0", "easy")
    with pytest.raises(ValueError, match="no solution"):
        puzzle.solution(puzzle.generate(0)._replace(sums=np.ones(6, np.int8)))


@pytest.mark.parametrize("side", [2, 6, 3.5])
def test_other_sides_are_refused(side: float) -> None:
    with pytest.raises(ValueError, match="one of 3, 4, 5, got"):
        SymbolicGridPuzzle(side)


@pytest.mark.parametrize("tier", TIERS)
def test_the_verifier_knows_the_rules(tier: str) -> None:
    puzzle: Any = puzzle_of("SymbolicGrid-v0", tier)
    dice, kinds = Dice(1, 2), set()
    for seed in range(60):
        instance = puzzle.generate(seed)
        for kind in ("right", "one changed", "two exchanged", "random"):
            (digits,) = puzzle.solution(instance)
            first_letter, second_letter = dice.sample(range(len(digits)), 2)
            if kind == "one changed":
                digits[first_letter] = digits[first_letter] % 9 + 1
            elif kind == "two exchanged":
                digits[first_letter], digits[second_letter] = (
                    digits[second_letter],
                    digits[first_letter],
                )
            elif kind == "random":
                digits = [1 + dice.below(9) for _ in digits]
            verdict = puzzle.verify(instance, " ".join(map(str, digits)))
            assert verdict.valid
            assert verdict.solved == keeps_the_rules(instance, digits)
            kinds.add((kind, verdict.solved))
    assert {
        ("right", True),
        ("one changed", False),
        ("two exchanged", False),
        ("random", False),
    } <= kinds


@pytest.mark.parametrize(
    ("answer", "valid", "reason"),
    [
        ("1 2 3", True, ""),
        ("1 2 2", True, "two letters stand for 2"),
        ("1 3 2", True, "row 2 has the sum 9, not 6"),
        ("4 2 3", True, "row 1 has the sum 12, not 3"),
        ("1 2", False, "line 1: expected 3 symbols"),
        ("1 2 0", False, "line 1: expected symbols among"),
        ("1\n2\n3", False, "expected 1 lines, got 3"),
    ],
)
def test_reasons(answer: str, valid: bool, reason: str) -> None:
    letters = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2], np.int8)
    instance = Instance(np.zeros(3, np.int8), letters, np.array([3, 6, 0, 6, 0, 6], np.int8))
    verdict = SymbolicGridPuzzle(3).verify(instance, answer)
    assert (verdict.valid, verdict.solved) == (valid, not reason)
    assert verdict.reason.startswith(reason)


@pytest.mark.parametrize("tier", TIERS)
def test_the_mask_is_what_the_rules_say_and_the_full_grid_is_judged_alike(tier: str) -> None:
    task: Any = card("SymbolicGrid-v0").build(difficulty=tier)
    puzzle, dice = task.puzzle, Dice(3, 4)
    boards, instances = [], []
    for seed in range(120):
        instance = puzzle.generate(seed)
        digits = (
            list(puzzle.solution(instance)[0])
            if seed % 4
            else dice.sample(range(1, 10), puzzle.columns)
        )
        if seed % 2:
            for letter in dice.sample(range(len(digits)), 1 + dice.below(len(digits))):
                digits[letter] = 0
        boards.append(digits)
        instances.append(instance)
    stacked = Instance(*(np.stack(column) for column in zip(*instances, strict=True)))
    batch = jnp.asarray(boards, jnp.int8)
    allowed = np.asarray(jax.jit(jax.vmap(task.mask))(batch, stacked)).reshape(len(boards), -1, 9)
    solved = np.asarray(jax.jit(jax.vmap(task.is_solved))(batch, stacked))
    for digits, instance, may, right in zip(boards, instances, allowed, solved, strict=True):
        side = puzzle.side
        lines = [*instance.letters.reshape(side, side), *instance.letters.reshape(side, side).T]
        for letter, digit in itertools.product(range(len(digits)), range(1, 10)):
            if digits[letter] == 0:
                tried = [*digits[:letter], digit, *digits[letter + 1 :]]
                fits = digit not in digits
                for line, total in zip(lines, instance.sums.tolist(), strict=True):
                    if total and letter in line:
                        known_sum = sum(tried[i] for i in line)
                        unknown = sum(tried[i] == 0 for i in line)
                        fits &= known_sum + unknown <= total if unknown else known_sum == total
                assert may[letter, digit - 1] == fits
        if 0 not in digits:
            assert right == keeps_the_rules(instance, digits)
    assert solved[2::4].all()
    assert not solved[::4].all()


def test_canonical_form() -> None:
    puzzle: Any = puzzle_of("SymbolicGrid-v0")
    dice, forms, side = Dice(5, 6), set(), puzzle.side
    for seed in range(30):
        instance = puzzle.generate(seed)
        forms.add(form := puzzle.canonical(instance))
        (digits,) = puzzle.solution(instance)
        names, rows, columns = (dice.shuffled(range(n)) for n in (puzzle.columns, side, side))
        letters = np.array(names, np.int8)[instance.letters].reshape(side, side)[
            np.ix_(rows, columns)
        ]
        sums = instance.sums.reshape(2, side)
        moved = [sums[0][rows], sums[1][columns]]
        assert form == puzzle.canonical(
            Instance(instance.givens, letters.ravel(), np.concatenate(moved))
        )
        assert form == puzzle.canonical(
            Instance(instance.givens, letters.T.ravel(), np.concatenate(moved[::-1]))
        )
        assert keeps_the_rules(instance, digits)
    assert len(forms) == 30


def test_tiers_are_in_order() -> None:
    means = []
    for tier in TIERS:
        puzzle = puzzle_of("SymbolicGrid-v0", tier)
        means.append(fmean(puzzle.difficulty(puzzle.generate(seed)) for seed in range(50)))
    assert means[0] < 0.5 * means[1] < 0.25 * means[2]
