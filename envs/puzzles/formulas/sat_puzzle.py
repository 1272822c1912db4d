"""The one-shot form of rlsuite/SAT-v0, and rlsuite/SAT50-v0: find a model of a quietly planted random 3-SAT formula.

``difficulty`` is the number of variables, even, from 8 to 200; the number of clauses is the satisfiability threshold's.
Formulas follow the law of :func:`.formula.planted_formula`, and the same rule says which split one belongs to, so that
no formula of one form's test split is a disguised formula of the other form's train split.

Any formula of one's own can be asked too: :meth:`SATPuzzle.from_dimacs`.
"""

from __future__ import annotations

import numpy as np

from rlbench_suite.card import SPLITS
from rlbench_suite.dice import Dice

from .cnf import CNF, ModelPuzzle, clauses_of, cnf, quiet_clause
from .cnf_search import Search
from .dimacs import clauses_in
from .flips import PuzzleFlips
from .formula import clause_count


class SATPuzzle(ModelPuzzle):
    """``tier`` is the number of variables."""

    name = "SAT"
    difficulty_is = "decisions of a DPLL search until it has a model"
    most_variables = 200
    longest_formula = 1800
    """Variables of a formula of one's own, at most: an assignment must fit into an answer."""

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        if tier not in range(8, self.most_variables + 1, 2):
            most = self.most_variables
            raise ValueError(f"{self.name}: difficulty is the number of variables, even, 8 to {most}, got {tier!r}.")
        self.variables = int(tier)

    def compose(self, dice: Dice) -> CNF:
        """Clauses drawn independently around a hidden model."""
        n = self.variables
        model = sum(dice.below(2) << v for v in range(n))
        return cnf([quiet_clause(dice, n, model) for _ in range(clause_count(n))], n)

    def split_of(self, instance: CNF) -> str:
        """Whether the number of variables that occur an odd number of times is divisible by 4 (train), or not."""
        occurrences = np.bincount(np.abs(instance.clauses[instance.clauses != 0]))
        return SPLITS[int((occurrences % 2).sum() % 4 != 0)]

    def difficulty(self, instance: CNF) -> float:
        """Decisions of :class:`.cnf_search.Search`."""
        return float(Search(clauses_of(instance), int(instance.variables)).decisions)

    @classmethod
    def from_dimacs(cls, text: str) -> CNF:
        """The instance of a DIMACS CNF text: clauses of any length. Repeated literals are dropped.

        Raises:
            ValueError: not DIMACS CNF, no clause, or more variables than fit into an answer.
        """
        variables, clauses = clauses_in(text)
        if not 1 <= variables <= cls.longest_formula or not clauses:
            raise ValueError(
                f"expected 1 to {cls.longest_formula} variables and at least one clause, got {variables} variables "
                f"and {len(clauses)} clauses"
            )
        return cnf([tuple(dict.fromkeys(clause)) for clause in clauses], variables)


class SAT50Puzzle(SATPuzzle):
    """Up to 64 variables, drawn by the host and played interactively from a bank."""

    name = "SAT50"
    most_variables = 64


class SAT50(PuzzleFlips):
    """Flipping variables of formulas beyond one word."""

    puzzle_class = SAT50Puzzle
    picture_shape = (520, 1100, 3)
