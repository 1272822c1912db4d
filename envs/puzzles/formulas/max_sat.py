"""rlsuite/MaxSAT-v0: leave as few clauses of an over-constrained 3-SAT formula false as possible.

Formulas are uniform, with eight clauses a variable, almost twice as many as can be satisfied; the
few that have a model are dropped. The least number of unsatisfied clauses is found by truth tables
of all assignments, so it is exact. Every assignment is an answer, but only a best one scores.
``difficulty`` is the number of variables.
"""

from __future__ import annotations

import math

import numpy as np

from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Verdict

from .cnf import CNFPuzzle, MaxCNF, as_answer, clause_list, cnf, find_unsatisfied, uniform_clause
from .flips import PuzzleFlips
from .truth_tables import least_unsatisfied


class MaxSATPuzzle(CNFPuzzle[MaxCNF]):
    """``tier`` is the number of variables."""

    name = "MaxSAT"
    difficulty_is = (
        "bits of luck that a uniform assignment needs to be a best one: -log2(best / assignments)"
    )
    tier_is = "the number of variables"
    tiers = range(6, 21)
    clauses_a_variable = 8

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.variables = int(tier)

    def compose(self, dice: Dice) -> MaxCNF | None:
        """Draw uniform clauses. Return None if all of them can be satisfied."""
        n = self.variables
        clauses = [uniform_clause(dice, n) for _ in range(self.clauses_a_variable * n)]
        min_unsatisfied, _ = least_unsatisfied(clauses, n)
        return MaxCNF(*cnf(clauses, n), np.int32(min_unsatisfied)) if min_unsatisfied else None

    def question(self, instance: MaxCNF) -> str:
        """State the formula, in DIMACS CNF."""
        return (
            f"No assignment of true or false to the {instance.variables} variables of this formula "
            "satisfies every "
            "clause. Find one that leaves as few clauses unsatisfied as possible; only the minimum "
            "scores. "
            f"{self.dimacs(instance)}\nAnswer with {self.assignment_format(instance)}."
        )

    def judge(self, instance: MaxCNF, answer: str) -> Verdict:
        """Accept any best assignment."""
        num_unsatisfied = len(find_unsatisfied(instance, self.assignment(instance, answer)))
        if num_unsatisfied == instance.min_unsatisfied:
            return RIGHT
        reason = f"{num_unsatisfied} clauses are not satisfied; it can be fewer"
        return Verdict(valid=True, solved=True, optimal=False, score=0.0, reason=reason)

    def likeness(self, instance: MaxCNF, answer: str, best: str) -> float:
        """Return the number of satisfied clauses, as a share of the greatest possible number."""
        count = len(instance.clauses)
        num_unsatisfied = len(find_unsatisfied(instance, self.assignment(instance, answer)))
        return (count - num_unsatisfied) / (count - int(instance.min_unsatisfied))

    def solve(self, instance: MaxCNF) -> str:
        """Return the first of the best assignments."""
        n = int(instance.variables)
        _, best = least_unsatisfied(clause_list(instance), n)
        first = (best & -best).bit_length() - 1
        return as_answer([first >> v & 1 == 1 for v in range(n)])

    def difficulty(self, instance: MaxCNF) -> float:
        """Return -log2 of the chance that a uniform assignment is a best one."""
        n = int(instance.variables)
        return n - math.log2(least_unsatisfied(clause_list(instance), n)[1].bit_count())


class MaxSAT(PuzzleFlips):
    """The game of flipping variables until no assignment is better."""

    puzzle_class = MaxSATPuzzle
