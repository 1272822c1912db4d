"""rlsuite/Game24-v0: make 24 from four cards, each used once.

The cards are 1 to 13. Results may be fractions or negative. Of 1820 hands, 1362 can be solved, and
only these occur. So there are few instances: each tier has a third of them, and each split half of
that. ``difficulty`` measures how unlikely random play is to solve a hand. See :mod:`.combine` for
actions, observations and rewards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.puzzle.dice import Dice

from .combine import OPERATIONS, CombinePuzzle, CombineTask, Instance
from .expression import Tree

TARGET = 24
CARDS = 4
"""Number of cards of a hand."""
MAX_CARD = 13
"""Number of the highest card, the king."""
THIRDS = (7.603, 8.925)
"""Difficulties at which the solvable hands fall into thirds."""
Quotient = tuple[int, int]
"""Numerator and denominator, the latter positive; not reduced."""


class Game24Puzzle(CombinePuzzle):
    """Cards whose numbers make 24; ``tier`` chooses a third of the hands by ``difficulty``.

    Tier 1 is the easiest third, 2 the next, 3 the last.
    """

    name = "Game24"
    difficulty_is = (
        "bits of luck that a player needs who combines numbers at random: -log2 of its chance"
    )
    uses_all = True
    count = CARDS
    few: ClassVar[dict[float, float]] = {1: 462, 2: 474, 3: 426}
    tier_is = "the third of the hands"
    tiers: ClassVar[Sequence[float]] = (1, 2, 3)

    def compose(self, dice: Dice) -> Instance | None:
        """Draw any four cards, sorted."""
        cards = sorted(dice.between(1, MAX_CARD) for _ in range(CARDS))
        return Instance(np.array(cards, np.int16), np.array(TARGET, np.int16))

    def admits(self, instance: Instance) -> bool:
        """Return whether the cards can be solved, and are of this tier."""
        chance = chance_of(tuple(instance.numbers.tolist()))
        return chance > 0 and 1 + sum(-math.log2(chance) > limit for limit in THIRDS) == self.tier

    def canonical(self, instance: Instance) -> bytes:
        """Return the cards, sorted."""
        return bytes(sorted(instance.numbers.tolist()))

    def rules(self, target: int) -> str:
        """State the rules."""
        return (
            f"Make {target} from the numbers below, using each exactly once. Intermediate results "
            "may be fractions."
        )

    def allows(self, operator: str, first: Fraction, second: Fraction) -> bool:
        """Allow everything but division by zero."""
        return operator != "/" or second != 0

    def tree(self, instance: Instance) -> Tree:
        """Find an expression by trying everything."""
        numbers = tuple((number, 1) for number in instance.numbers.tolist())
        tree = _solve(numbers, list(range(len(numbers))), int(instance.target))
        if tree is None:
            raise ValueError(f"these cards do not make {int(instance.target)}")
        return tree

    def difficulty(self, instance: Instance) -> float:
        """Return -log2 of the chance that a player of random legal actions makes the target."""
        return -math.log2(chance_of(tuple(sorted(instance.numbers.tolist())), int(instance.target)))

    def constants(self) -> Sequence[str]:
        """Return expressions that make 24 of some hands."""
        return ["6 + 6 + 6 + 6", "1 * 2 * 3 * 4", "(1 + 1) * 12 * 1", "8 * 3 * 1 * 1"]


@lru_cache(maxsize=2048)
def chance_of(cards: tuple[int, ...], target: int = TARGET) -> float:
    """Return the probability that uniformly random legal play ends at the target.

    The cards must be sorted.
    """
    return _chance(tuple((card, 1) for card in cards), target)


def _results(a: Quotient, b: Quotient) -> list[Quotient | None]:
    """Return the result of each of ``OPERATIONS`` on two numbers; None for a division by zero."""
    (p, q), (r, s) = a, b
    ps, qr, qs = p * s, q * r, q * s
    forth, back = _quotient(ps, qr), _quotient(qr, ps)
    return [(ps + qr, qs), (p * r, qs), (ps - qr, qs), (qr - ps, qs), forth, back]


def _quotient(top: int, bottom: int) -> Quotient | None:
    """Return a quotient with a positive denominator; None for a division by zero."""
    if bottom == 0:
        return None
    return (top, bottom) if bottom > 0 else (-top, -bottom)


def _chance(numbers: tuple[Quotient, ...], target: int) -> float:
    """Return the probability for random play with two numbers or more."""
    if len(numbers) == 2:
        return _chance_of_two(*numbers, target)
    total = ways = 0.0
    for i, j in combinations(range(len(numbers)), 2):
        other_numbers = numbers[:i] + numbers[i + 1 : j] + numbers[j + 1 :]
        for result in _results(numbers[i], numbers[j]):
            if result is not None:
                ways += 1
                if len(other_numbers) == 1:
                    total += _chance_of_two(other_numbers[0], result, target)
                else:
                    total += _chance_of_three((*other_numbers, _reduce(result)), target)
    return total / ways


@lru_cache(maxsize=2**15)
def _chance_of_three(numbers: tuple[Quotient, ...], target: int) -> float:
    """Return the probability for three reduced quotients.

    Results are cached, because hands share such triples.
    """
    return _chance(numbers, target)


def _reduce(number: Quotient) -> Quotient:
    common = math.gcd(*number)
    return number[0] // common, number[1] // common


def _chance_of_two(a: Quotient, b: Quotient, target: int) -> float:
    """Return the fraction of the operations on two numbers that give the target."""
    (p, q), (r, s) = a, b
    ps, qr = p * s, q * r
    scaled_target = target * q * s
    hits = (
        (ps + qr == scaled_target)
        + (p * r == scaled_target)
        + (ps - qr == scaled_target)
        + (qr - ps == scaled_target)
    )
    hits += (r != 0 and ps == target * qr) + (p != 0 and qr == target * ps)
    return hits / (4 + (r != 0) + (p != 0))


def _solve(numbers: tuple[Quotient, ...], trees: list[Tree], target: int) -> Tree | None:
    """Find an expression for the target from all numbers whose expressions are given.

    The result is None if there is none.
    """
    if len(numbers) == 1:
        return trees[0] if numbers[0][0] == target * numbers[0][1] else None
    for i, j in combinations(range(len(numbers)), 2):
        other_numbers = numbers[:i] + numbers[i + 1 : j] + numbers[j + 1 :]
        for (operator, turned), result in zip(
            OPERATIONS, _results(numbers[i], numbers[j]), strict=True
        ):
            if result is None or (
                len(other_numbers) == 2
                and not _chance_of_three((*other_numbers, _reduce(result)), target)
            ):
                continue
            tree = (operator, trees[j], trees[i]) if turned else (operator, trees[i], trees[j])
            other_trees = trees[:i] + trees[i + 1 : j] + trees[j + 1 :]
            solution = _solve((*other_numbers, result), [*other_trees, tree], target)
            if solution is not None:
                return solution
    return None


class Game24(CombineTask):
    """The game of 24, an operation a step."""

    puzzle_class = Game24Puzzle

    def normalise(
        self, tops: jax.Array, bottoms: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Allow any fraction; four cards make none that int32 could not hold."""
        sign = jnp.sign(bottoms)
        return tops * sign, bottoms * sign, bottoms != 0
