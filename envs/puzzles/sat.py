"""rlsuite/SAT-v0: find a model of a random 3-SAT formula by flipping one variable at a time.

=============  =====================================================================================================
action         the variable to flip, ``Discrete(n)``; legal are the variables of unsatisfied clauses
observation    ``Box(3 n + 1)``: each variable's value (-1 false, +1 true); its make count, then its break count
               (unsatisfied clauses that a flip would satisfy, satisfied ones it would not leave so), each as
               c / (1 + c); the fraction of clauses unsatisfied
reward         decrease of the number of unsatisfied clauses, divided by the number of clauses; +1 on reaching a model
termination    no clause is unsatisfied
=============  =====================================================================================================

Rewards telescope: a return is 1 if solved, plus (unsatisfied at the start - unsatisfied at the end) / clauses. Cycling
earns nothing. A uniform assignment leaves each clause unsatisfied with probability 1/8, so the best expected return is
1 + 1/8 at every size (short of the rare assignments that are models at once, see ``SAT.initial``).

Only flips in unsatisfied clauses are legal (focused search, Papadimitriou 1991), and no shortest path is lost by it:
let a and a' be an assignment and a model at distance d; an unsatisfied clause holds a variable in which they differ,
since a' satisfies it; flipping that one is legal and leaves distance d - 1. So a model is at most n legal flips away.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.card import TaskCard
from rlbench_suite.task import Task

from .dimacs import clauses_of, from_dimacs, to_dimacs
from .formula import (
    MOST_VARIABLES,
    Formula,
    Verdict,
    as_word,
    clause_count,
    false_literals,
    judge,
    planted_formula,
    size,
    true_literals,
    values,
    words_of,
)


class State(NamedTuple):
    """An assignment and what it does; the verdict is kept because mask, reward and observation all need it."""

    assignment: jax.Array
    """uint32: bit v is the value of variable v."""
    verdict: Verdict


class SAT(Task[Formula, State]):
    """Random 3-SAT at the satisfiability threshold; ``difficulty`` is the number of variables, even, 8 to 32."""

    measures: ClassVar[dict[str, str]] = {"unsatisfied": "number of unsatisfied clauses"}
    picture_shape: ClassVar[tuple[int, int, int]] = (360, 760, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        if difficulty is None or difficulty not in range(8, MOST_VARIABLES + 1, 2):
            raise ValueError(
                f"{card.id}: difficulty is the number of variables, an even number from 8 to {MOST_VARIABLES}, "
                f"or one of {', '.join(card.difficulties)}; got {difficulty!r}."
            )
        self.variables = n = round(difficulty)
        self.clauses = clause_count(n)
        self.every_clause = words_of(self.clauses)
        self.action_space = spaces.Discrete(n)
        self.observation_space = self.box([-1.0] * n + [0.0] * (2 * n + 1), [1.0] * (3 * n + 1))
        self.reward_space = self.box(-1.0, 2.0)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Formula:
        """A formula of the split: :func:`.formula.planted_formula`. The planted model is not kept."""
        return planted_formula(key, self.variables, self.clauses, split)

    def initial(self, key: jax.Array, params: Formula) -> State:
        """A uniform assignment. One that is a model (one in 2**n / models) has its first clause made false instead."""
        assignment = jax.random.key_data(key)[0] & np.uint32(2**self.variables - 1)  # a key is random bits enough
        solved = (judge(params, assignment, self.every_clause).unsatisfied == 0).all()
        holds, denies = (as_word(side[0] & 1 != 0) for side in params)
        return self._judged(jnp.where(solved, assignment & ~holds | denies, assignment), params)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Formula) -> State:
        """Flip variable ``action``."""
        return self._judged(state.assignment ^ (np.uint32(1) << action.astype(jnp.uint32)), params)

    def _judged(self, assignment: jax.Array, params: Formula) -> State:
        return State(assignment, judge(params, assignment, self.every_clause))

    def observation(self, state: State, key: jax.Array, params: Formula) -> jax.Array:
        """Value, make and break count of every variable, and how much is left to do: ``(3 n + 1,)``."""
        value = 2 * values(state.assignment, self.variables).astype(self.dtype) - 1
        breaks = size(state.verdict.critical[:, None] & true_literals(params, state.assignment))
        unsatisfied = self._fraction(size(state.verdict.unsatisfied))
        parts = value, _squash(self._makes(state, params), self.dtype), _squash(breaks, self.dtype), unsatisfied[None]
        return jnp.concatenate(parts)

    def reward(self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Formula) -> jax.Array:
        """The fraction of clauses won, and 1 for a model."""
        before, after = size(state.verdict.unsatisfied), size(next_state.verdict.unsatisfied)
        return self._fraction(before - after) + ((after == 0) & (before > 0))

    def terminal(self, state: State, key: jax.Array, params: Formula) -> jax.Array:
        """Whether the assignment is a model."""
        return size(state.verdict.unsatisfied) == 0

    def info(self, state: State, params: Formula) -> dict[str, jax.Array]:
        """``success``: the assignment is a model."""
        unsatisfied = size(state.verdict.unsatisfied)
        return {"success": unsatisfied == 0, "unsatisfied": unsatisfied}

    def action_mask(self, state: State, params: Formula) -> jax.Array:
        """The variables of unsatisfied clauses, bool ``(n,)``."""
        return self._makes(state, params) > 0

    def _makes(self, state: State, params: Formula) -> jax.Array:
        """Unsatisfied clauses that a flip of each variable satisfies, int32 ``(n,)``."""
        return size(state.verdict.unsatisfied[:, None] & false_literals(params, state.assignment))

    def _fraction(self, clauses: jax.Array) -> jax.Array:
        return clauses.astype(self.dtype) * self.dtype.type(1 / self.clauses)

    # -- host side -----------------------------------------------------------------------------------------------

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

    def describe(self, state: State, params: Formula) -> str:
        """The formula in DIMACS CNF, the assignment as a DIMACS ``v`` line, and the clauses still unsatisfied."""
        assignment = self._signed(state)
        unsatisfied = [c for c in clauses_of(params) if not set(c) & set(assignment)]
        flips = sorted({abs(literal) for clause in unsatisfied for literal in clause})
        return "\n".join([
            to_dimacs(params).rstrip(),
            f"c The assignment now: {len(unsatisfied)} of {self.clauses} clauses unsatisfied.",
            f"v {' '.join(map(str, assignment))} 0",
            *(f"c unsatisfied: {' '.join(map(str, clause))}" for clause in unsatisfied),
            f"c You may flip: {' '.join(map(str, flips)) or 'nothing, every clause is satisfied'}",
        ])  # fmt: skip

    def how_to_act(self) -> str:
        """One line for a text player."""
        return f"Answer 'flip V' to negate variable V (1 to {self.variables}) of an unsatisfied clause."

    def parse(self, text: str, state: State, params: Formula) -> np.ndarray:
        """``flip 7`` or ``7``: variables count from 1.

        Raises:
            ValueError: anything else.
        """
        match = re.fullmatch(r"\s*(?:flip\s+)?([0-9]{1,3})\s*", text, re.IGNORECASE)
        if match is None or not 1 <= int(match[1]) <= self.variables:
            raise ValueError(f"expected 'flip V' with a variable V from 1 to {self.variables}, got {text!r}")
        return np.asarray(int(match[1]) - 1, self.action_space.dtype)

    def why_illegal(self, action: np.ndarray, state: State, params: Formula) -> str:
        """Which flips are legal instead."""
        legal = np.flatnonzero(self.action_mask(state, params)) + 1
        return f"variable {int(action) + 1} is in no unsatisfied clause; those that are: {', '.join(map(str, legal))}"

    def why_over(self, state: State, params: Formula) -> str:
        """The only end there is."""
        return "every clause is satisfied"

    def _signed(self, state: State) -> list[int]:
        """The true literals, as DIMACS writes them."""
        return [v if int(state.assignment) >> (v - 1) & 1 else -v for v in range(1, self.variables + 1)]

    def draw(self, state: State, params: Formula) -> np.ndarray:
        """Variables as rows, clauses as columns, literals as boxes.

        Blue literals are true, pale ones false; a clause without a true literal is a vermilion column. The bar
        on the left is blue for variables that are true.
        """
        height, width, _ = self.picture_shape
        margin = 20
        across, down = (width - 3 * margin) // self.clauses, (height - 2 * margin) // self.variables
        left = (width - margin - across * self.clauses) // 2 + margin
        top = (height - down * self.variables) // 2
        image = Image.new("RGB", (width, height), PAPER)
        pen = ImageDraw.Draw(image)
        true = set(self._signed(state))

        def box(column: float, row: int, columns: float, colour: str) -> None:
            x, y = left + column * across, top + row * down
            pen.rectangle((x, y, x + columns * across - 2, y + down - 2), fill=colour)

        for v in range(self.variables):
            pen.line((left, top + (v + 0.5) * down - 1, left + self.clauses * across, top + (v + 0.5) * down - 1), RULE)
            pen.rectangle((left - margin, top + v * down, left - margin // 2, top + (v + 1) * down - 2),
                          fill=TRUE if v + 1 in true else FALSE)  # fmt: skip
        for j, clause in enumerate(clauses_of(params)):
            satisfied = bool(true & set(clause))
            if not satisfied:
                pen.rectangle((left + j * across, top, left + (j + 1) * across - 2, top + self.variables * down - 2),
                              fill=ALARM)  # fmt: skip
            for literal in clause:
                box(j, abs(literal) - 1, 1, TRUE if literal in true else FALSE if satisfied else UNSATISFIED)
        return np.asarray(image)


PAPER, RULE, TRUE, FALSE, ALARM, UNSATISFIED = "#ffffff", "#eeeeee", "#0072b2", "#c9ced6", "#f7d9c4", "#d55e00"


def _squash(count: jax.Array, dtype: np.dtype[Any]) -> jax.Array:
    """0, 1, 2, 3, ... to 0, 1/2, 2/3, 3/4, ...: bounded, and finest where a difference of one matters most."""
    count = count.astype(dtype)
    return count / (1 + count)
