"""rlsuite/SAT-v0: find a model of a random 3-SAT formula by flipping one variable at a time.

See :mod:`.flips` for actions, observations and rewards, and :mod:`.sat_puzzle` for the one-shot form. A uniform
assignment leaves each clause unsatisfied with probability 1/8, so the best expected return is 1 + 1/8 at every size
(short of the rare assignments that are models at once, see ``SAT.initial``).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.card import TaskCard

from .dimacs import clauses_of, from_dimacs
from .flips import FlipTask, State
from .formula import MOST_VARIABLES, Formula, as_word, clause_count, judge, planted_formula


class SAT(FlipTask[Formula]):
    """Random 3-SAT at the satisfiability threshold; ``difficulty`` is the number of variables, even, 8 to 32."""

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty is None or difficulty not in range(8, MOST_VARIABLES + 1, 2):
            raise ValueError(
                f"{card.id}: difficulty is the number of variables, an even number from 8 to {MOST_VARIABLES}, "
                f"or one of {', '.join(card.difficulties)}; got {difficulty!r}."
            )
        self.play_on(n := round(difficulty), clause_count(n))

    def formula(self, params: Formula) -> Formula:
        """The context itself."""
        return params

    def sample_params(self, key: jax.Array, split: jax.Array) -> Formula:
        """A formula of the split: :func:`.formula.planted_formula`. The planted model is not kept."""
        return planted_formula(key, self.variables, self.clauses, split)

    def initial(self, key: jax.Array, params: Formula) -> State:
        """A uniform assignment. One that is a model (one in 2**n / models) has its first clause made false instead."""
        assignment = jax.random.key_data(key)[0] & np.uint32(2**self.variables - 1)  # a key is random bits enough
        solved = (judge(params, assignment, self.every_clause).unsatisfied == 0).all()
        holds, denies = (as_word(side[0] & 1 != 0) for side in params)
        return self.judged(jnp.where(solved, assignment & ~holds | denies, assignment), params)

    def params_from_dimacs(self, text: str) -> Formula:
        """A formula of one's own to play, of as many variables and clauses as this task's.

        Raises:
            ValueError: not DIMACS CNF, or of another size.
        """
        formula = from_dimacs(text)
        variables, clauses = formula.positive.shape[-1], len(clauses_of(formula))
        if (variables, clauses) != (self.variables, self.clauses):
            raise ValueError(
                f"{self.card.id} at this difficulty has {self.variables} variables and {self.clauses} clauses, "
                f"the text has {variables} and {clauses}"
            )
        return formula
