"""StarBattle-v0 against exhaustive enumeration of all placements and the rules written out."""

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

from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.grids.star_battle import (
    NOTHING,
    NUM_GIVENS,
    STAR,
    Instance,
    StarBattlePuzzle,
    _Search,
)
from rlbench_suite.envs.puzzles.shared.symmetry import square_symmetries
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
TIERS = ["easy", "medium", "hard"]


def keeps_the_rules(cells: np.ndarray, regions: np.ndarray) -> bool:
    """Check the definition."""
    side = round(len(cells) ** 0.5)
    stars = np.argwhere(cells.reshape(side, side) == STAR)
    units = (stars[:, 0], stars[:, 1], regions.reshape(side, side)[tuple(stars.T)])
    apart = all(abs(a - b).max() > 1 for a, b in itertools.combinations(stars, 2))
    return (
        0 not in cells
        and apart
        and all(sorted(unit.tolist()) == list(range(side)) for unit in units)
    )


@cache
def placements(side: int) -> np.ndarray:
    """Cells of all placements that keep rows, columns and distances, ``(count, side)``."""
    rows = np.array(list(itertools.permutations(range(side))))
    rows = rows[(abs(np.diff(rows)) > 1).all(1)]
    return rows + np.arange(side) * side


def solutions_by_force(instance: Instance, side: int) -> list[list[int]]:
    stars = placements(side)
    right = np.sort(instance.regions[stars], 1) == np.arange(side)
    right &= instance.givens[stars] != NOTHING
    num_stars = (instance.givens == STAR).sum()
    fits = right.all(1) & ((instance.givens[stars] == STAR).sum(1) == num_stars)
    return stars[fits].tolist()


def test_there_are_as_many_placements_as_known() -> None:
    """OEIS A002464: permutations without neighbours that differ by one."""
    assert [len(placements(n)) for n in (4, 5, 6, 7)] == [2, 14, 90, 646]


@pytest.mark.engine("all placements: one solution")
@pytest.mark.parametrize(("tier", "count"), [("easy", 1000), ("medium", 500), ("hard", 60)])
def test_there_is_one_solution_and_regions_hang_together(
    tier: str, count: int, compared: Compared
) -> None:
    puzzle: Any = puzzle_of("StarBattle-v0", tier)
    side = puzzle.rows
    for seed in range(count):
        instance = puzzle.generate(seed)
        (only,) = solutions_by_force(instance, side)
        cells = np.array(puzzle.solution(instance)).ravel()
        assert np.flatnonzero(cells == STAR).tolist() == only
        assert keeps_the_rules(cells, instance.regions)
        assert (instance.givens > 0).sum() == NUM_GIVENS[side]
        for region in range(side):
            left = {divmod(int(i), side) for i in np.flatnonzero(instance.regions == region)}
            reached = [left.pop()]
            for r, c in reached:
                near = left & {(r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)}
                left -= near
                reached += near
            assert not left
        compared(puzzle, instance)


def test_the_search_finds_all_solutions() -> None:
    """Search random regions, which mostly have several solutions or none."""
    puzzle = StarBattlePuzzle(6)
    dice = Dice(1, 1)
    solution_counts = set()
    for _ in range(300):
        stars = dice.shuffled(range(36))[:6]
        instance = Instance(
            np.zeros(36, np.int8), np.array(puzzle._grow_regions(stars, dice), np.int8)
        )
        expected = solutions_by_force(instance, 6)
        assert sorted(
            _Search(puzzle, [0] * 36, instance.regions.tolist()).solutions(1000)
        ) == sorted(expected)
        solution_counts.add(min(len(expected), 2))
    assert solution_counts == {0, 1, 2}


def test_no_solution_is_an_error() -> None:
    with pytest.raises(ValueError, match="no solution"):
        StarBattlePuzzle(5).solution(Instance(np.zeros(25, np.int8), np.zeros(25, np.int8)))


@pytest.mark.parametrize("side", [4, 8, 5.5])
def test_other_sides_are_refused(side: float) -> None:
    with pytest.raises(ValueError, match="one of 5, 6, 7, got"):
        StarBattlePuzzle(side)


@pytest.mark.parametrize("tier", TIERS)
def test_the_verifier_knows_the_rules(tier: str) -> None:
    puzzle: Any = puzzle_of("StarBattle-v0", tier)
    dice, kinds = Dice(1, 2), set()
    for seed in range(40):
        instance = puzzle.generate(seed)
        free = np.flatnonzero(instance.givens == 0).tolist()
        for kind in ("right", "one changed", "other placement", "random"):
            cells = np.array(puzzle.solution(instance)).ravel()
            if kind == "one changed":
                cell = dice.choice(free)
                cells[cell] = 3 - cells[cell]
            elif kind == "other placement":
                cells[:] = NOTHING
                cells[placements(puzzle.rows)[dice.below(len(placements(puzzle.rows)))]] = STAR
            elif kind == "random":
                cells[free] = [1 + dice.below(2) for _ in free]
            verdict = puzzle.verify(instance, puzzle.write_answer(puzzle.as_rows(cells.tolist())))
            keeps_givens = bool(((instance.givens == 0) | (instance.givens == cells)).all())
            assert verdict.valid
            assert verdict.solved == (keeps_givens and keeps_the_rules(cells, instance.regions))
            kinds.add((kind, verdict.solved))
    assert {
        ("right", True),
        ("one changed", False),
        ("other placement", False),
        ("random", False),
    } <= kinds


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ([0, 2, 4, 1, 3], ""),
        ([0, 0, 4, 1, 3], "column 1 holds 2 stars, not one"),
        ([0, 2, 3, 1, 4], "the stars in rows 2 and 3 touch"),
        ([0, 2, 4, 1], "row 5 holds 0 stars, not one"),
    ],
)
def test_reasons(columns: list[int], reason: str) -> None:
    instance = Instance(np.zeros(25, np.int8), np.repeat(np.arange(5, dtype=np.int8), 5))
    text = "\n".join(
        " ".join("*" if c == column else "." for c in range(5)) for column in [*columns, 9][:5]
    )
    assert StarBattlePuzzle(5).verify(instance, text).reason == reason


@pytest.mark.parametrize("tier", TIERS)
def test_the_mask_is_what_the_rules_say_and_the_full_grid_is_judged_alike(tier: str) -> None:
    task: Any = card("StarBattle-v0").build(difficulty=tier)
    puzzle, side, dice = task.puzzle, task.puzzle.rows, Dice(3, 4)
    boards, instances = [], []
    for seed in range(90):
        instance = puzzle.generate(seed)
        cells = np.array(puzzle.solution(instance), np.int8).ravel()
        if seed % 3 == 0:
            cells[dice.sample(range(side * side), 1 + dice.below(side * side))] = 0
        elif seed % 3 == 1:
            cells[:] = NOTHING
            placed = placements(side)[dice.below(len(placements(side)))]
            cells[placed if seed % 2 else dice.sample(range(side**2), side)] = STAR
        boards.append(cells)
        instances.append(instance)
    stacked = Instance(*(np.stack(column) for column in zip(*instances, strict=True)))
    allowed = np.asarray(
        jax.jit(jax.vmap(task.allowed_symbols))(jnp.asarray(np.stack(boards)), stacked)
    )
    solved = np.asarray(jax.jit(jax.vmap(task.is_solved))(jnp.asarray(np.stack(boards)), stacked))
    for cells, instance, may, right in zip(boards, instances, allowed, solved, strict=True):
        row, column = np.divmod(np.arange(side * side), side)
        for cell in np.flatnonzero(cells == 0):
            units = [unit == unit[cell] for unit in (row, column, instance.regions)]
            near = np.maximum(abs(row - row[cell]), abs(column - column[cell])) == 1
            starred = [bool((cells[unit] == STAR).any()) for unit in units]
            assert may[cell, STAR - 1] == (not any(starred) and not (cells[near] == STAR).any())
            places = [(cells[unit] == 0).sum() for unit in units]
            assert may[cell, NOTHING - 1] == all(
                s or p > 1 for s, p in zip(starred, places, strict=True)
            )
        if 0 not in cells:
            assert right == keeps_the_rules(cells, instance.regions)
    assert solved[2::3].all()
    assert not solved[1::3].all()


def test_canonical_form() -> None:
    puzzle: Any = puzzle_of("StarBattle-v0", "easy")
    dice, forms = Dice(5, 6), set()
    for seed in range(40):
        instance = puzzle.generate(seed)
        forms.add(form := puzzle.canonical(instance))
        for order in map(list, square_symmetries(5)):
            names = np.array(dice.shuffled(range(5)), np.int8)
            assert (
                puzzle.canonical(Instance(instance.givens[order], names[instance.regions[order]]))
                == form
            )
    assert len(forms) == 40


def test_tiers_are_in_order() -> None:
    means = []
    for tier in TIERS:
        puzzle = puzzle_of("StarBattle-v0", tier)
        means.append(fmean(puzzle.difficulty(puzzle.generate(seed)) for seed in range(50)))
    assert means[0] < 0.5 * means[1] < 0.3 * means[2]
