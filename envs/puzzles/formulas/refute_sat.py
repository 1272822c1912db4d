"""rlsuite/RefuteSAT-v0: find a model of a 3-SAT formula, or prove that there is none.

Of every two seeds, one gets a formula with a model and the other a formula without. Formulas are
uniform and are drawn until one is of the seed's kind. They have the number of clauses at which half
of all formulas of the size have a model: 4.258 n + 58.26 n**(-2/3) (Crawford & Auton 1996).
``difficulty`` is the number of variables n.

A proof is a tree of case distinctions, written in preorder: a variable, the tree for the case that
it is true, then the tree for the case that it is false; a leaf is ``#j``, where every literal of
clause j is false. A check takes time linear in the proof's length. The claim that there is no model
scores nothing without a proof.

Interactively, the player chooses the variables to branch on:

=============  =====================================================================================
action         ``2 v + s``, ``Discrete(2 n)``: branch on variable v, first with the value true (s =
               0) or false (s = 1); legal are the variables without a value
observation    ``Box(8 n + 2)``: each variable's value (-1 false, 0 none, +1 true); whether it is on
               its second value; in how many open clauses with 1, 2 and 3 literals left its
               positive, then its negative literal is, each as c / (1 + c); the fraction of
               assignments settled; the fraction of the branchings left
reward         the fraction of all assignments settled by the step, and +1 on deciding the formula
termination    the formula is decided, or no branching is left
=============  =====================================================================================

The environment runs the depth-first search; the player only chooses. When a clause has no literal
left, the case is closed, and the last variable with an untried value takes it, until no clause is
falsified. A case closed under d variables settles 2**-d of the assignments. A model settles all of
them, and so does an empty stack, which proves that there is none. Rewards telescope, and the best
return is 2. The limit is one and a half times the branchings of the exact search, so branching at
random mostly fails.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jax import lax

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.puzzle.bank import STOP, Bank, bank_of_both_splits
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Example, Malformed, Verdict, wrong

from ..shared import parsing
from ..shared.puzzle_task import Params, PuzzleTask
from .clause_picture import picture_of
from .cnf import (
    CNF,
    CNFPuzzle,
    as_answer,
    clause_list,
    cnf,
    half_satisfiable,
    judge_model,
    uniform_clause,
)
from .cnf_search import Search
from .dimacs import clauses_of, occurrences, to_dimacs
from .flips import squash
from .formula import Formula, all_bits, size, values

UNSAT = "UNSAT"
OPEN, MODEL, REFUTED = 0, 1, 2


class RefuteSATPuzzle(CNFPuzzle[CNF]):
    """``tier`` is the number of variables."""

    name = "RefuteSAT"
    difficulty_is = (
        "branchings of a DPLL search, forced ones included, until it has a model or a refutation"
    )
    tier_is = "the number of variables"
    tiers = range(6, 25)

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.variables = int(tier)
        self.clauses = half_satisfiable(self.variables)

    def compose(self, dice: Dice) -> CNF:
        """Draw uniform formulas until one has a model or none, whichever is due for this seed."""
        n, satisfiable = self.variables, dice.share(2) == 1
        while True:
            clauses = [uniform_clause(dice, n) for _ in range(self.clauses)]
            if (Search(clauses, n).models > 0) == satisfiable:
                return cnf(clauses, n)

    def question(self, instance: CNF) -> str:
        """State the formula in DIMACS CNF, and both kinds of answer."""
        n = instance.variables
        return (
            f"Either find an assignment of true or false to the {n} variables of a formula such "
            "that every clause is "
            f"satisfied, or prove that there is none. {self.dimacs(instance)}\n"
            f"If there is one, answer with {self.assignment_format(instance)}.\n"
            f"If there is none, answer with one line: the word {UNSAT}, then a proof, all "
            "separated by single spaces. "
            "A proof is either #J, where J is the number of a clause (counted from 1 in the order "
            "above) all of whose "
            "literals are false given the values set so far, or V P Q, where V is a variable "
            "without a value, P is a "
            "proof for the case that V is true, and Q is a proof for the case that V is false."
        )

    def example_answers(self, instance: CNF) -> Sequence[Example]:
        """Show an assignment, and a proof."""
        lead = "Or, if the only clauses were '1 2 0', '-1 2 0' and '-2 0', in this order:"
        return [*super().example_answers(instance), Example(lead, f"{UNSAT} 2 #3 1 #2 #1")]

    @property
    def caseless(self) -> Sequence[str]:
        """The word before a proof."""
        return (UNSAT,)

    def judge(self, instance: CNF, answer: str) -> Verdict:
        """Accept any model, and any tree that closes all cases."""
        word, *proof = answer.split(" ")
        if word != UNSAT:
            return judge_model(instance, self.assignment(instance, answer))
        reason = self._gap(instance, proof)
        return wrong(reason) if reason else RIGHT

    @staticmethod
    def _gap(instance: CNF, proof: list[str]) -> str:
        """Describe the fault of a well-formed proof; empty if there is none.

        Raises:
            Malformed: it is not one whole tree.
        """
        clauses = clause_list(instance)
        numbers = [
            parsing.integer(token[1:], 1, len(clauses), "clause")
            if token.startswith("#")
            else parsing.integer(token, 1, int(instance.variables), "variable")
            for token in proof
        ]
        case: dict[int, bool] = {}
        """Values of the current case, in the order in which they were given."""
        for position, (token, name) in enumerate(zip(proof, numbers, strict=True), 1):
            if token.startswith("#"):
                clause = clauses[name - 1]
                if any(case.get(abs(x), x > 0) == (x > 0) for x in clause):
                    literals = (
                        " ".join(str(v if true else -v) for v, true in case.items())
                        or "of no values"
                    )
                    return (
                        f"token {position}, {token}: not every literal is false in the case "
                        f"{literals}"
                    )
                while case and not case[last := next(reversed(case))]:
                    del case[last]
                if not case:
                    if position < len(proof):
                        raise Malformed(
                            f"the proof ends at token {position}, but there are {len(proof)}"
                        )
                    return ""
                case[last] = False
            else:
                if name in case:
                    return f"token {position}: variable {name} has a value already"
                case[name] = True
        raise Malformed("the proof is not whole: some case has no proof")

    def solve(self, instance: CNF) -> str:
        """Return the model or the tree of :class:`.cnf_search.Search`."""
        n = int(instance.variables)
        search = Search(clause_list(instance), n)
        if search.model is None:
            return " ".join([UNSAT, *search.refutation])
        return as_answer([search.model >> v & 1 == 1 for v in range(n)])

    def difficulty(self, instance: CNF) -> float:
        """Count the inner nodes of the search's tree."""
        return float(len(Search(clause_list(instance), int(instance.variables)).branches))

    def plan(self, instance: CNF) -> list[int]:
        """Return the search's branchings, as actions of :class:`RefuteSAT`."""
        branches = Search(clause_list(instance), int(instance.variables)).branches
        return [2 * abs(literal) - 2 + (literal < 0) for literal in branches]


class InstanceBits(NamedTuple):
    """A formula of the bank, in the form of :class:`.formula.Formula`."""

    positive: np.ndarray
    """uint32 ``(words, variables)``."""
    negative: np.ndarray
    """uint32 ``(words, variables)``."""
    budget: np.ndarray
    """int32: branchings allowed."""


class State(NamedTuple):
    """The current case; sets of variables are bits of uint32."""

    assigned: jax.Array
    """Variables with a value."""
    true: jax.Array
    """Variables that are true."""
    second: jax.Array
    """Variables whose other value is settled."""
    level: jax.Array
    """int8 ``(n,)``: position of each variable in the order of the given values, from 0.

    It is undefined for variables without a value.
    """
    outcome: jax.Array
    """int8: ``OPEN``, ``MODEL`` or ``REFUTED``."""
    used: jax.Array
    """int32: branchings so far."""


class RefuteSAT(PuzzleTask[State]):
    """The interactive form: branch on variables."""

    puzzle: RefuteSATPuzzle
    puzzle_class = RefuteSATPuzzle
    measures: ClassVar[dict[str, str]] = {
        "settled": "fraction of the assignments settled",
        "branchings": "number of branchings",
    }
    picture_shape: ClassVar[tuple[int, int, int]] = (360, 760, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.variables, self.clauses = n, m = self.puzzle.variables, self.puzzle.clauses
        self.every_clause = all_bits(m)
        self.action_space = spaces.Discrete(2 * n)
        self.observation_space = self.box([-1.0] * n + [0.0] * (7 * n + 2), [1.0] * (8 * n + 2))
        self.reward_space = self.box(0.0, 2.0)

    @cached_property
    def bank(self) -> Bank:
        """Instances as :class:`InstanceBits`."""
        bank = bank_of_both_splits(self.puzzle, self.bank_size)
        formulas = (CNF(*fields) for fields in zip(*bank.instances, strict=True))
        sides = [occurrences(clause_list(formula), self.variables) for formula in formulas]
        positive, negative = np.stack(sides, axis=1)
        budget = (bank.plans != STOP).sum(1) * 3 // 2
        return Bank(InstanceBits(positive, negative, budget.astype(np.int32)), bank.plans)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Begin with no values."""
        none = jnp.uint32(0)
        return State(
            none, none, none, jnp.zeros(self.variables, jnp.int8), jnp.int8(OPEN), jnp.int32(0)
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Give the variable its first value. Then close cases as long as a clause is false."""
        variable, negated = action // 2, action % 2 == 1
        bit = np.uint32(1) << variable.astype(jnp.uint32)
        depth = lax.population_count(state.assigned).astype(jnp.int8)
        branched = state._replace(
            assigned=state.assigned | bit,
            true=jnp.where(negated, state.true, state.true | bit),
            level=jnp.where(np.arange(self.variables) == variable, depth, state.level),
            used=state.used + 1,
        )

        def is_falsified(case: State) -> jax.Array:
            possible, _, _ = self._open_by_length(case, params)
            return (~possible & self.every_clause != 0).any()

        def close(case: State) -> State:
            """Give the last variable with an untried value that value.

            All variables after it are unset.
            """
            untried = values(case.assigned & ~case.second, self.variables)
            last = jnp.where(untried, case.level, np.int8(-1)).max()
            bits = np.uint32(1) << np.arange(self.variables, dtype=np.uint32)
            still_assigned = (
                jnp.where(case.level <= last, bits, 0).sum(dtype=jnp.uint32) & case.assigned
            )
            turned = jnp.where(untried & (case.level == last), bits, 0).sum(dtype=jnp.uint32)
            return case._replace(
                assigned=still_assigned,
                true=(case.true ^ turned) & still_assigned,
                second=(case.second | turned) & still_assigned,
                outcome=jnp.where(last < 0, np.int8(REFUTED), case.outcome),
            )

        closed = lax.while_loop(
            lambda case: is_falsified(case) & (case.outcome == OPEN), close, branched
        )
        model = (self._unmet_clauses(closed, params) == 0).all()
        return closed._replace(outcome=jnp.where(model, np.int8(MODEL), closed.outcome))

    def _values(self, state: State) -> tuple[jax.Array, jax.Array]:
        """Return which variables have a value, and which are true: bool ``(n,)`` each."""
        return values(state.assigned, self.variables), values(state.true, self.variables)

    def _open_by_length(
        self, state: State, params: Params
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return the clauses with at least one, two and three literals that are not false.

        Each set is uint32 ``(words,)``.
        """
        assigned, true = self._values(state)
        positive, negative = params.instance.positive, params.instance.negative
        literals = jnp.where(assigned & ~true, 0, positive) | jnp.where(true, 0, negative)

        def add(
            a_counts: tuple[jax.Array, ...], b_counts: tuple[jax.Array, ...]
        ) -> tuple[jax.Array, ...]:
            (a, b, c), (x, y, z) = a_counts, b_counts
            return a | x, b | y | a & x, c | z | b & x | a & y

        none = np.uint32(0)
        nothing = jnp.zeros_like(literals)
        at_least_one, at_least_two, at_least_three = lax.reduce(
            (literals, nothing, nothing), (none, none, none), add, (1,)
        )
        return at_least_one, at_least_two, at_least_three

    def _unmet_clauses(self, state: State, params: Params) -> jax.Array:
        """Return the clauses without a true literal, uint32 ``(words,)``."""
        assigned, true = self._values(state)
        literals = jnp.where(
            true, params.instance.positive, jnp.where(assigned, params.instance.negative, 0)
        )
        return ~lax.reduce(literals, np.uint32(0), lax.bitwise_or, (1,)) & self.every_clause

    def _closed_fraction(self, state: State) -> jax.Array:
        """Return the fraction of assignments settled."""
        second = values(state.second, self.variables)
        shares = jnp.where(
            second, np.float32(0.5) ** (state.level.astype(jnp.float32) + 1), 0
        ).sum()
        return jnp.where(state.outcome == OPEN, shares, 1.0).astype(self.dtype)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the observation, ``(8 n + 2,)``.

        It holds the values, the second values, the occurrences by length, and the two fractions.
        """
        assigned, true = self._values(state)
        unmet = self._unmet_clauses(state, params)
        at_least_one, at_least_two, at_least_three = self._open_by_length(state, params)
        counts = [
            squash(size((unmet & clauses)[:, None] & jnp.where(assigned, 0, side)), self.dtype)
            for clauses in (
                at_least_one & ~at_least_two,
                at_least_two & ~at_least_three,
                at_least_three,
            )
            for side in (params.instance.positive, params.instance.negative)
        ]
        value = jnp.where(assigned, 2 * true.astype(self.dtype) - 1, 0)
        second = values(state.second, self.variables).astype(self.dtype)
        budget = params.instance.budget.astype(self.dtype)
        budget_left = (budget - state.used.astype(self.dtype)) / budget
        return jnp.concatenate(
            [value, second, *counts, self.stack(self._closed_fraction(state), budget_left)]
        )

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`observation`."""
        per_variable = (self.variables,)
        counts = (
            Component(
                f"{sign}_in_{length}",
                f"c / (1 + c) of the open clauses c with {length} literal{'s' * (length > 1)} "
                f"left that hold the {sign} literal of each variable",
                shape=per_variable,
            )
            for length in (1, 2, 3)
            for sign in ("positive", "negative")
        )
        return (
            Component("value", "of each variable: -1 false, 0 none, +1 true", shape=per_variable),
            Component("second", "whether each variable is on its second value", shape=per_variable),
            *counts,
            Component("settled", "fraction of the assignments that are settled"),
            Component("branchings_left", "fraction of the branchings that are left"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe each action: a variable and its first value."""
        meaning = "[variable, value]: branch on the variable, first with the value true, or false"
        return (Component("branch", meaning, shape=(self.variables, 2)),)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the fraction that the step settles, plus 1 for the decision."""
        decided = (state.outcome == OPEN) & (next_state.outcome != OPEN)
        return (
            self._closed_fraction(next_state)
            - self._closed_fraction(state)
            + decided.astype(self.dtype)
        )

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the formula is decided, or the branchings are used up."""
        return (state.outcome != OPEN) | (state.used >= params.instance.budget)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: the formula is decided."""
        return {
            "success": state.outcome != OPEN,
            "settled": self._closed_fraction(state),
            "branchings": state.used,
        }

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Return both values of the variables without one, bool ``(2 n,)``."""
        return jnp.repeat(~values(state.assigned, self.variables), 2)

    # -- host side ---------------------------------------------------------------------------------

    def _case(self, state: State) -> dict[int, bool | None]:
        """Return the value of each variable; None if it has none."""
        assigned, true = (np.asarray(flags).tolist() for flags in self._values(state))
        return {
            v: (t if g else None) for v, (g, t) in enumerate(zip(assigned, true, strict=True), 1)
        }

    def describe(self, state: State, params: Params) -> str:
        """Show the formula in DIMACS CNF, and the current case."""
        order = sorted(
            (v for v, value in self._case(state).items() if value is not None),
            key=lambda v: state.level[v - 1],
        )
        case, second = self._case(state), int(state.second)
        marked_literals = [
            f"{v if case[v] else -v}{'*' if second >> v - 1 & 1 else ''}" for v in order
        ]
        return "\n".join([
            to_dimacs(self._formula(params)),
            (
                "c The case at hand (* marks second values): "
                f"{' '.join(marked_literals) or 'no variable has a value'}"
            ),
            f"c Settled: {float(self._closed_fraction(state)):.6g} of all assignments. "
            f"Branchings used: {int(state.used)} of {int(params.instance.budget)}.",
        ])  # fmt: skip

    @staticmethod
    def _formula(params: Params) -> Formula:
        return Formula(params.instance.positive, params.instance.negative)

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        n = self.variables
        return (
            f"Answer 'V' (1 to {n}) to branch on variable V, first with the value true, or '-V', "
            "first with false."
        )

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Read ``7`` or ``-7``: variables count from 1.

        Raises:
            ValueError: anything else.
        """
        match = re.fullmatch(r"\s*(-?)([0-9]{1,3})\s*", text, re.ASCII)
        if match is None or not 1 <= int(match[2]) <= self.variables:
            raise ValueError(
                f"expected V or -V with a variable V from 1 to {self.variables}, got {text[:40]!r}"
            )
        return np.asarray(2 * int(match[2]) - 2 + len(match[1]), self.action_space.dtype)

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the literal."""
        return f"{'-' * (int(action) % 2)}{int(action) // 2 + 1}"

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the only reason there is."""
        return f"variable {int(action) // 2 + 1} has a value already"

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say whether a model, a refutation or the limit of branchings ended it."""
        ends = {MODEL: "a model is found", REFUTED: "every case is closed: there is no model"}
        return ends.get(
            int(state.outcome), f"the {int(params.instance.budget)} branchings are used up"
        )

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the formula in the current case: :func:`.clause_picture.picture_of`."""
        return picture_of(clauses_of(self._formula(params)), self._case(state), self.picture_shape)
