"""rlsuite/Countdown-v0: make the target from some of the numbers, as in the television game.

Numbers are drawn without replacement from 1 to 10, twice each, and 25, 50, 75 and 100; targets are
101 to 999. Every intermediate result is a positive whole number, and every target can be reached
exactly. ``difficulty`` is the least number of operations, which is never below the count of numbers
minus 2. See :mod:`.combine` for actions, observations and rewards.

Numbers and targets are drawn uniformly until a target is within reach. With three numbers there are
2,979 instances, with four 106,319.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations
from typing import ClassVar

import jax
import numpy as np

from rlbench_suite.puzzle.dice import Dice

from .combine import CombinePuzzle, CombineTask, Instance
from .expression import Tree

BOX = (*range(1, 11), *range(1, 11), 25, 50, 75, 100)
TARGETS = range(101, 1000)
MAX_NUMBERS = 6
MAX_LISTED_NUMBERS = 3
"""Number of numbers up to which every result is listed.

For more numbers, a search begins at the target.
"""
Results = dict[int, Tree]
"""Values and an expression for each."""


class CountdownPuzzle(CombinePuzzle):
    """``tier`` is the number of numbers."""

    name = "Countdown"
    difficulty_is = "operations that are needed at least"
    tier_is = "how many numbers are given"
    tiers = range(3, MAX_NUMBERS + 1)
    few: ClassVar[dict[float, float]] = {3: 2_979, 4: 106_319}
    uses_all = False

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.count = int(tier)

    def compose(self, dice: Dice) -> Instance:
        """Draw numbers from the box, sorted, and any target."""
        numbers = sorted(dice.sample(BOX, self.count))
        return Instance(np.array(numbers, np.int16), np.array(dice.choice(TARGETS), np.int16))

    def admits(self, instance: Instance) -> bool:
        """Return whether the target is within reach, and not too easily reached."""
        tree = shortest(tuple(instance.numbers.tolist()), int(instance.target))
        return tree is not None and _operations(tree) >= self.count - 2

    def canonical(self, instance: Instance) -> bytes:
        """Return the target and the sorted numbers."""
        return bytes([*sorted(instance.numbers.tolist()), *divmod(int(instance.target), 256)])

    def rules(self, target: int) -> str:
        """State the rules."""
        return (
            f"Make {target} from the numbers below. Use each number at most once; you need not use "
            "them all. Every "
            "intermediate result must be a positive whole number: a subtraction must not give zero "
            "or less, and a "
            "division must not leave a remainder."
        )

    def allows(self, operator: str, first: Fraction, second: Fraction) -> bool:
        """Allow positive whole results only."""
        return operator in "+*" or (first > second if operator == "-" else first % second == 0)

    def tree(self, instance: Instance) -> Tree:
        """Find an expression with as few operations as possible."""
        tree = shortest(tuple(instance.numbers.tolist()), int(instance.target))
        if tree is None:
            raise ValueError(f"{instance.numbers.tolist()} do not make {int(instance.target)}")
        return tree

    def difficulty(self, instance: Instance) -> float:
        """Count the operations of a shortest solution."""
        return float(_operations(self.tree(instance)))

    def constants(self) -> Sequence[str]:
        """Return the solutions of a few fixed instances."""
        return ["100 + 1", "75 * 2", "50 * 10", "100 * 3", "(25 + 1) * 10"]


@lru_cache(maxsize=2048)
def shortest(numbers: tuple[int, ...], target: int) -> Tree | None:
    """Return a solution with as few operations as possible; None if there is none."""
    everything = range(len(numbers))
    results: dict[int, Results] = {
        1 << index: {number: index} for index, number in enumerate(numbers)
    }
    for size in range(2, len(numbers) + 1):
        for indices in combinations(everything, size):
            subset = sum([1 << index for index in indices])
            if size <= MAX_LISTED_NUMBERS:
                results[subset] = _list_results(subset, results)
            if (tree := _reach(subset, target, results)) is not None:
                return tree
    return None


def _operations(tree: Tree) -> int:
    return 0 if isinstance(tree, int) else 1 + _operations(tree[1]) + _operations(tree[2])


@cache
def _halves(subset: int) -> tuple[tuple[int, int], ...]:
    """Return the ways to split a set in two, each once."""
    low = subset & -subset
    return tuple(
        (half, subset ^ half) for half in range(1, subset) if half & subset == half and half & low
    )


@cache
def _halves_by_size(subset: int) -> tuple[tuple[int, int], ...]:
    """Return the same ways, the smaller part first."""
    return tuple((a, b) if a.bit_count() <= b.bit_count() else (b, a) for a, b in _halves(subset))


def _list_results(subset: int, results_of: dict[int, Results]) -> Results:
    """Return all results that use exactly the numbers of a subset."""
    results: Results = {}
    for half, other_half in _halves(subset):
        other_results = results_of[other_half].items()
        for a, tree_a in results_of[half].items():
            for b, tree_b in other_results:
                if (value := a + b) not in results:
                    results[value] = ("+", tree_a, tree_b)
                if (value := a * b) not in results:
                    results[value] = ("*", tree_a, tree_b)
                low, high, tree_low, tree_high = (
                    (a, b, tree_a, tree_b) if a < b else (b, a, tree_b, tree_a)
                )
                if high > low and (value := high - low) not in results:
                    results[value] = ("-", tree_high, tree_low)
                if high % low == 0 and (value := high // low) not in results:
                    results[value] = ("/", tree_high, tree_low)
    return results


def _reach(subset: int, target: int, results: dict[int, Results]) -> Tree | None:
    """Find an expression for the target that uses exactly the numbers of a subset.

    The result is None if there is none.
    """
    if subset in results:
        return results[subset].get(target)
    if subset.bit_count() == MAX_LISTED_NUMBERS + 1:
        return (
            _first_way(subset, target, results) if _is_reachable(subset, target, results) else None
        )
    for few, many in _halves_by_size(subset):
        for a, tree in results[few].items():
            for b, operator, turned in _partners(a, target):
                if (partner_tree := _reach(many, b, results)) is not None:
                    return (
                        (operator, partner_tree, tree) if turned else (operator, tree, partner_tree)
                    )
    return None


def _is_reachable(subset: int, target: int, results: dict[int, Results]) -> bool:
    """Return whether one operation on two listed parts of a subset makes the target."""
    for few, many in _halves_by_size(subset):
        other_results = results[many]
        for a in results[few]:
            if (
                target + a in other_results
                or target * a in other_results
                or abs(target - a) in other_results
            ):
                return True
            if (target % a == 0 and target // a in other_results) or (
                a % target == 0 and a // target in other_results
            ):
                return True
    return False


def _first_way(subset: int, target: int, results: dict[int, Results]) -> Tree | None:
    """Return the first of those ways in the order of :func:`_list_results`."""
    for half, other_half in _halves(subset):
        other_results = results[other_half]
        for a, tree_a in results[half].items():
            if partners := {b for b, _, _ in _partners(a, target) if b in other_results}:
                b = next(b for b in other_results if b in partners)
                return _list_results(3, {1: {a: tree_a}, 2: {b: other_results[b]}})[target]
    return None


def _partners(a: int, target: int) -> list[tuple[int, str, bool]]:
    """Return the numbers that make the target with ``a``.

    Each is a number, the operator, and whether ``a`` comes second.
    """
    partners = [(target + a, "-", True), (target * a, "/", True)]
    if target > a:
        partners.append((target - a, "+", False))
    elif a > target:
        partners.append((a - target, "-", False))
    if target % a == 0:
        partners.append((target // a, "*", False))
    if a % target == 0:
        partners.append((a // target, "/", False))
    return partners


class Countdown(CombineTask):
    """Countdown, an operation a step."""

    puzzle_class = CountdownPuzzle

    def normalise(
        self, tops: jax.Array, bottoms: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Allow positive whole numbers; the product of six, 937,500,000, fits int32."""
        quotient = tops // bottoms
        return quotient, bottoms * 0 + 1, (tops > 0) & (quotient * bottoms == tops)
