"""rlsuite/Saturn-v0: SATURN's construction of satisfiable formulas, exactly uniform.

A formula (n, k, l) has l different clauses of n literals over k variables. A hidden assignment is
drawn uniformly, and the clauses uniformly among the C(k, n) (2**n - 1) that it satisfies.
``difficulty`` is the number of a row of ``SaturnPuzzle.sizes``, which holds (n, k, l).
``SaturnPuzzle.comparable`` gives the number D(n, k, l) by which Liu et al. order them. The
construction has a known leak: a literal agrees with the hidden assignment with probability 2**(n-1)
/ (2**n - 1), 4/7 for n = 3. So a vote of each variable's signs (the ``heuristic``) finds models far
more often than chance, as the card's scores show. In SAT-v0 the signs reveal nothing.

Half of all assignments are models of a formula (3, 5, 5), so that random flips find one nearly
always, and there are few such formulas: no tier of the card has that size.
"""

from __future__ import annotations

import math

from rlbench_suite.puzzle.dice import Dice

from .cnf import CNF, ModelPuzzle, agreeing_clause, clause_list, cnf, scope
from .dimacs import Clause
from .flips import PuzzleFlips
from .truth_tables import models_of


class SaturnPuzzle(ModelPuzzle):
    """``tier`` is a row of :attr:`sizes`, from 1."""

    name = "Saturn"
    difficulty_is = (
        "bits of luck that a uniform assignment needs to be a model: -log2(models / assignments)"
    )
    tier_is = "the row of a table of sizes"
    sizes = ((3, 5, 5), (3, 5, 13), (3, 7, 40), (3, 8, 80))
    tiers = range(1, len(sizes) + 1)

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.size = self.sizes[int(tier) - 1]

    @property
    def comparable(self) -> float:
        """D(n, k, l) = log2 k + 2 log2 l - n + k / n (Liu et al. 2025)."""
        length, variables, clauses = self.size
        return math.log2(variables) + 2 * math.log2(clauses) - length + variables / length

    def compose(self, dice: Dice) -> CNF:
        """Draw different clauses that a hidden assignment satisfies."""
        length, variables, count = self.size
        model = dice.below(2**variables)
        clauses: dict[Clause, None] = {}
        while len(clauses) < count:
            pattern = 1 + dice.below(2**length - 1)
            clauses[agreeing_clause(scope(dice, variables, length), pattern, model)] = None
        return cnf(list(clauses), variables)

    def chance(self, instance: CNF) -> float:
        """Return the exact probability that a uniform assignment is a model."""
        variables = int(instance.variables)
        return models_of(clause_list(instance), variables).bit_count() / 2**variables

    def difficulty(self, instance: CNF) -> float:
        """Return :meth:`chance` in bits."""
        return -math.log2(self.chance(instance))


class Saturn(PuzzleFlips):
    """Flipping variables until every clause is satisfied."""

    puzzle_class = SaturnPuzzle
