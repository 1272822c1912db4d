"""rlsuite/UniqueSAT-v0: find the only model of a 3-SAT formula.

Formulas are quietly planted (:func:`.formula.planted_formula`) with six clauses a variable, and
kept if an exhaustive search finds no second model. ``difficulty`` is the number of variables.
"""

from __future__ import annotations

from rlbench_suite.puzzle.dice import Dice

from .cnf import CNF, ModelPuzzle, clause_list, cnf, quiet_clause
from .cnf_search import Search
from .flips import PuzzleFlips


class UniqueSATPuzzle(ModelPuzzle):
    """``tier`` is the number of variables."""

    name = "UniqueSAT"
    difficulty_is = "decisions of a DPLL search until it has proven that there is one model"
    tier_is = "the number of variables"
    tiers = range(6, 33)
    clauses_a_variable = 6

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.variables = int(tier)

    def compose(self, dice: Dice) -> CNF | None:
        """Draw a planted formula. Return None if it has a second model."""
        n = self.variables
        model = dice.below(2**n)
        clauses = [quiet_clause(dice, n, model) for _ in range(self.clauses_a_variable * n)]
        return cnf(clauses, n) if Search(clauses, n, max_models=2).models == 1 else None

    def difficulty(self, instance: CNF) -> float:
        """Count the decisions of :class:`.cnf_search.Search`."""
        return float(Search(clause_list(instance), int(instance.variables), max_models=2).decisions)


class UniqueSAT(PuzzleFlips):
    """The game of flipping variables until every clause is satisfied."""

    puzzle_class = UniqueSATPuzzle
