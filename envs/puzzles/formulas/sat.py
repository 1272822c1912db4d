"""rlsuite/SAT-v0 and rlsuite/SAT50-v0: find a model of a random 3-SAT formula by flips.

Each flip negates one variable.

``difficulty`` is the number of variables, even: 8 to 32 in SAT, 8 to 64 in SAT50, 8 to 200
one-shot. The number of clauses is the satisfiability threshold's. See :mod:`.flips` for actions,
observations and rewards. A uniform assignment leaves each clause unsatisfied with probability 1/8,
so the best expected return is 1 + 1/8 at every size (short of the rare assignments that are models
at once, see ``SAT.initial``).

SAT draws its formulas on the device and SAT50 plays those of a bank. Both follow the law of
:func:`.formula.planted_formula`, and one rule assigns formulas to splits, so that no test formula
of one is a disguised train formula of the other.

:meth:`SATPuzzle.from_dimacs` asks for a model of a formula of your own, and
:meth:`SAT.params_from_dimacs` makes such a formula a game.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.task_card import SPLITS, TaskCard
from rlbench_suite.puzzle.dice import Dice

from .cnf import CNF, ModelPuzzle, clause_list, cnf, quiet_clause
from .cnf_search import Search
from .dimacs import clauses_in, clauses_of, from_dimacs
from .flips import FlipTask, PuzzleFlips, State
from .formula import MAX_VARIABLES, Formula, as_bits, clause_count, judge, planted_formula


class SATPuzzle(ModelPuzzle):
    """``tier`` is the number of variables."""

    name = "SAT"
    difficulty_is = "decisions of a DPLL search until it has a model"
    tier_is = "the number of variables"
    tiers = range(8, 201, 2)
    longest_formula = 1800
    """Largest number of variables of a formula of your own: an assignment must fit into an answer.
    """

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.variables = int(tier)

    def compose(self, dice: Dice) -> CNF:
        """Draw clauses independently around a hidden model."""
        n = self.variables
        model = sum(dice.below(2) << v for v in range(n))
        return cnf([quiet_clause(dice, n, model) for _ in range(clause_count(n))], n)

    def split_of(self, instance: CNF) -> str:
        """Return the split by the number of variables that occur an odd number of times.

        The instance belongs to the train split if 4 divides that number, else to the test split.
        """
        occurrences = np.bincount(np.abs(instance.clauses[instance.clauses != 0]))
        return SPLITS[int((occurrences % 2).sum() % 4 != 0)]

    def difficulty(self, instance: CNF) -> float:
        """Count the decisions of :class:`.cnf_search.Search`."""
        return float(Search(clause_list(instance), int(instance.variables)).decisions)

    @classmethod
    def from_dimacs(cls, text: str) -> CNF:
        """Return the instance of a DIMACS CNF text: clauses of any length.

        Repeated literals are dropped.

        Raises:
            ValueError: not DIMACS CNF, no clause, or more variables than fit into an answer.
        """
        variables, clauses = clauses_in(text)
        if not 1 <= variables <= cls.longest_formula or not clauses:
            raise ValueError(
                f"expected 1 to {cls.longest_formula} variables and at least one clause, got "
                f"{variables} variables and {len(clauses)} clauses"
            )
        return cnf([tuple(dict.fromkeys(clause)) for clause in clauses], variables)


class SAT(FlipTask[Formula]):
    """Random 3-SAT at the satisfiability threshold.

    ``difficulty`` is the number of variables: even, 8 to 32.
    """

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty is None or difficulty not in range(8, MAX_VARIABLES + 1, 2):
            raise ValueError(
                f"{card.id}: difficulty is the number of variables, an even number from 8 to "
                f"{MAX_VARIABLES}, or one of {', '.join(card.difficulties)}; got {difficulty!r}."
            )
        self.play_on(n := round(difficulty), clause_count(n))

    def formula(self, params: Formula) -> Formula:
        """Return the context itself."""
        return params

    def sample_params(self, key: jax.Array, split: jax.Array) -> Formula:
        """Return a formula of the split: :func:`.formula.planted_formula`.

        The planted model is not kept.
        """
        return planted_formula(key, self.variables, self.clauses, split)

    def initial(self, key: jax.Array, params: Formula) -> State:
        """Begin with a uniform assignment.

        If it is a model (one in 2**n / models is), make its first clause false.
        """
        # A key is random bits enough.
        assignment = jax.random.key_data(key)[0] & np.uint32(2**self.variables - 1)
        solved = (judge(params, assignment, self.every_clause).unsatisfied == 0).all()
        holds, denies = (as_bits(side[0] & 1 != 0) for side in params)
        return self.judge_assignment(
            jnp.where(solved, assignment & ~holds | denies, assignment), params
        )

    def params_from_dimacs(self, text: str) -> Formula:
        """Read a formula of your own to play, with as many variables and clauses as this task has.

        Raises:
            ValueError: not DIMACS CNF, or of another size.
        """
        formula = from_dimacs(text)
        variables, clauses = formula.positive.shape[-1], len(clauses_of(formula))
        if (variables, clauses) != (self.variables, self.clauses):
            raise ValueError(
                f"{self.card.id} at this difficulty has {self.variables} variables and "
                f"{self.clauses} clauses, the text has {variables} and {clauses}"
            )
        return formula


class SAT50Puzzle(SATPuzzle):
    """Formulas of up to 64 variables, drawn on the host and played interactively from a bank."""

    name = "SAT50"
    tiers = range(8, 65, 2)


class SAT50(PuzzleFlips):
    """The game on formulas of up to 64 variables, which need two words."""

    puzzle_class = SAT50Puzzle
    picture_shape = (520, 1100, 3)
