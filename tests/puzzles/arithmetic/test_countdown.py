"""Countdown-v0 against brute force over orders of play, written differently here."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from comparison import Compared

from rlbench_suite.envs.puzzles.arithmetic.countdown import BOX, TARGETS, CountdownPuzzle
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
TIERS = {"easy": 3, "medium": 5, "hard": 6}


@cache
def fewest_operations(numbers: tuple[int, ...]) -> dict[int, int]:
    """Everything that play with these numbers can make, and after how many operations at least."""
    best = dict.fromkeys(numbers, 0)
    for i, j in itertools.combinations(range(len(numbers)), 2):
        a, b = numbers[i], numbers[j]
        remaining = [number for k, number in enumerate(numbers) if k not in (i, j)]
        results = {a + b, a * b, abs(a - b)} | (
            {max(a, b) // min(a, b)} if max(a, b) % min(a, b) == 0 else set()
        )
        for result in results - {0}:
            for value, count in fewest_operations(tuple(sorted([*remaining, result]))).items():
                if value not in numbers:
                    best[value] = min(best.get(value, 99), count + 1)
    return best


@pytest.mark.engine("brute force over plays: as few operations")
@pytest.mark.parametrize(("count", "instances"), [(3, 500), (4, 600), (5, 40), (6, 20)])
def test_the_solver_uses_as_few_operations_as_brute_force(
    count: int, instances: int, compared: Compared
) -> None:
    puzzle = CountdownPuzzle(count)
    for seed in range(instances):
        instance = puzzle.generate(seed, ("train", "test")[seed % 2])
        numbers, target = tuple(sorted(instance.numbers.tolist())), int(instance.target)
        answer = puzzle.solve(instance)
        assert puzzle.verify(instance, answer).solved
        assert (
            fewest_operations(numbers)[target]
            == puzzle.difficulty(instance)
            == sum(answer.count(sign) for sign in "+-*/")
        )
        assert puzzle.difficulty(instance) >= count - 2
        assert len(puzzle.plan(instance)) == puzzle.difficulty(instance)
        assert target in TARGETS
        assert all(numbers.count(number) <= BOX.count(number) for number in numbers)
        compared(puzzle, instance)


@cache
def values(numbers: tuple[int, ...]) -> set[int]:
    """Return the results of exactly these numbers, from the results of two parts of them."""
    if len(numbers) == 1:
        return set(numbers)
    results = set()
    for subset in range(1, 2 ** (len(numbers) - 1)):
        halves = [
            tuple(n for k, n in enumerate(numbers) if subset >> k & 1 == side) for side in (0, 1)
        ]
        for a, b in itertools.product(*map(values, halves)):
            results |= {
                a + b,
                a * b,
                abs(a - b),
                max(a, b) // min(a, b) if max(a, b) % min(a, b) == 0 else 0,
            }
    return results - {0}


@pytest.mark.parametrize("count", [3, 4])
def test_how_many_instances_there_are(count: int) -> None:
    """For every choice of numbers, the targets that need ``count`` - 2 operations or more."""
    num_instances = 0
    for numbers in set(itertools.combinations(sorted(BOX), count)):
        of_size = [
            set().union(*map(values, itertools.combinations(numbers, size)))
            for size in range(1, count + 1)
        ]
        num_instances += len(
            set(TARGETS).intersection(set().union(*of_size)) - set().union(*of_size[: count - 2])
        )
    assert num_instances == CountdownPuzzle(count).space


def test_what_is_out_of_reach_is_found_to_be() -> None:
    """Compare all targets of some numbers, reachable or not, one by one with brute force."""
    puzzle, dice = CountdownPuzzle(4), Dice(1, 2)
    instance = puzzle.generate(0)
    unreachable = 0
    for _ in range(8):
        numbers = dice.sample(BOX, 4)
        possible = fewest_operations(tuple(sorted(numbers)))
        for target in TARGETS:
            variant = instance._replace(
                numbers=np.array(numbers, np.int16), target=np.array(target, np.int16)
            )
            if target in possible:
                assert puzzle.difficulty(variant) == possible[target]
            else:
                unreachable += 1
                with pytest.raises(ValueError, match="do not make"):
                    puzzle.solve(variant)
    assert unreachable > 1000


@pytest.mark.parametrize("count", TIERS.values())
def test_every_target_is_reached(count: int) -> None:
    puzzle = CountdownPuzzle(count)
    for seed in range(100):
        instance = puzzle.generate(seed)
        assert puzzle.verify(instance, puzzle.solve(instance)).solved


def test_tiers_are_ordered_by_difficulty() -> None:
    puzzles = map(CountdownPuzzle, TIERS.values())
    means = [
        np.mean([puzzle.difficulty(puzzle.generate(seed)) for seed in range(100)])
        for puzzle in puzzles
    ]
    assert means[0] + 0.5 < means[1] < means[2] - 0.5


@pytest.mark.parametrize(
    ("numbers", "target", "answer", "right"),
    [
        ((100, 1, 2, 3, 4), 101, "100 + 1", True),
        ((100, 1, 2, 3, 4), 101, "(100 + 1)", True),
        ((100, 1, 2, 3, 4), 101, "100 + 3 - 2", True),
        ((100, 1, 2, 3, 4), 102, "100 + 1", False),
        ((100, 1, 2, 3, 4), 102, "100 + 1 + 1", False),
        ((100, 1, 2, 3, 4), 102, "100 + 4 / 2", True),
        ((100, 2, 2, 3, 6), 101, "100 + 2 / 2", True),
        ((100, 2, 2, 3, 6), 300, "100 * (2 - 2 + 3)", False),  # 0 on the way
        ((100, 2, 2, 3, 6), 300, "100 / (2 / 6)", False),  # a fraction on the way
        ((100, 2, 2, 3, 6), 104, "100 - (2 - 6)", False),  # a negative number on the way
        ((100, 2, 2, 3, 6), 104, "100 + (6 - 2)", True),
        ((100, 2, 2, 3, 6), 104, "100 / (2 - 2)", False),
        ((100, 2, 2, 3, 6), 101, "101", False),
    ],
)
def test_verdicts(numbers: tuple[int, ...], target: int, answer: str, right: bool) -> None:
    puzzle = CountdownPuzzle(5)
    instance = puzzle.generate(0)._replace(
        numbers=np.array(numbers, np.int16), target=np.array(target, np.int16)
    )
    verdict = puzzle.verify(instance, answer)
    assert verdict.valid
    assert verdict.solved == right
    assert bool(verdict.reason) != right


def test_a_wrong_size_is_refused() -> None:
    with pytest.raises(ValueError, match="3 to 6, got 7"):
        CountdownPuzzle(7)


def test_canonical_forgets_the_order_only() -> None:
    puzzle = CountdownPuzzle(5)
    instance = puzzle.generate(0)
    form = puzzle.canonical(instance)
    assert form == puzzle.canonical(instance._replace(numbers=instance.numbers[::-1]))
    assert form != puzzle.canonical(instance._replace(target=instance.target + 1))
    assert form != puzzle.canonical(instance._replace(numbers=instance.numbers + 1))
