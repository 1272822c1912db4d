"""The base of puzzles that ask for an assignment of a formula in conjunctive normal form.

The formula is shown in DIMACS CNF, and the answer is the assignment as literals, ``1 -2 -3 4``: one
for each variable, in order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Example, Malformed, Puzzle, Verdict, wrong

from ..shared import parsing
from .cnf_search import Search
from .dimacs import Clause, write_dimacs
from .formula import agreement_law


class CNF(NamedTuple):
    """A formula in conjunctive normal form."""

    variables: np.int32
    """Number of variables."""
    clauses: np.ndarray
    """int16 ``(clauses, longest)``: literals as DIMACS writes them.

    Zeros stand behind the last literal of a shorter clause.
    """


class MaxCNF(NamedTuple):
    """A formula whose clauses cannot all be satisfied."""

    variables: np.int32
    """Number of variables."""
    clauses: np.ndarray
    """Clauses, as in :class:`CNF`."""
    min_unsatisfied: np.int32
    """Least number of clauses that an assignment leaves unsatisfied."""


class DecidedCNF(NamedTuple):
    """A formula that is known to have a model or to have none."""

    variables: np.int32
    """Number of variables."""
    clauses: np.ndarray
    """Clauses, as in :class:`CNF`."""
    satisfiable: np.int8
    """1 if it has a model, 0 if not."""


AnyCNF = TypeVar("AnyCNF", CNF, MaxCNF, DecidedCNF)
SomeCNF: TypeAlias = CNF | MaxCNF | DecidedCNF


def cnf(clauses: Sequence[Clause], variables: int) -> CNF:
    """Return the instance of clauses that hold no literal twice."""
    padded = np.zeros((len(clauses), max(map(len, clauses))), np.int16)
    for row, clause in zip(padded, clauses, strict=True):
        row[: len(clause)] = clause
    return CNF(np.int32(variables), padded)


def clause_list(instance: SomeCNF) -> list[Clause]:
    """Return the clauses, in order."""
    return [tuple(x for x in row if x) for row in instance.clauses.tolist()]


def find_unsatisfied(instance: SomeCNF, true: np.ndarray) -> np.ndarray:
    """Return the numbers 0, 1, ... of the clauses that an assignment leaves unsatisfied.

    Args:
        instance: the formula.
        true: bool ``(variables,)``.
    """
    values = np.concatenate([[False], true])[np.abs(instance.clauses)]
    return np.flatnonzero(
        ~((instance.clauses > 0) & values | (instance.clauses < 0) & ~values).any(1)
    )


class CNFPuzzle(Puzzle[AnyCNF]):
    """A puzzle whose instance is a formula; subclasses say what to find."""

    def canonical(self, instance: AnyCNF) -> bytes:
        """Return an invariant (:func:`invariant`).

        It is equal for formulas that differ by names and signs of variables and by order, and
        different for nearly all others.
        """
        return invariant(instance)

    def question(self, instance: AnyCNF) -> str:
        """Ask for an assignment that satisfies every clause."""
        return (
            f"Find an assignment of true or false to the {instance.variables} variables of a "
            f"formula such that every clause is satisfied. {self.dimacs(instance)}\nAnswer with "
            f"{self.assignment_format(instance)}."
        )

    def dimacs(self, instance: AnyCNF) -> str:
        """Return the formula, and how to read it."""
        return (
            "The formula is written in DIMACS CNF: after the line 'p cnf VARIABLES CLAUSES', each "
            "line is a clause, ended by 0. A number V stands for variable V, and -V for its "
            "negation. A clause is satisfied if at least one of its numbers is true: V where "
            "variable V is true, -V where it is false.\n\n"
            + write_dimacs(clause_list(instance), int(instance.variables))
        )

    def assignment_format(self, instance: AnyCNF) -> str:
        """Describe how to write an assignment."""
        n = int(instance.variables)
        return (
            f"one line of {n} numbers separated by single spaces: the k-th is k if variable k is "
            f"true and -k if it is false, for k from 1 to {n}"
        )

    def example_answers(self, instance: AnyCNF) -> Sequence[Example]:
        """Show an assignment of three variables."""
        return [
            Example(
                "For example, if there were 3 variables and only variable 2 were true:", "-1 2 -3"
            )
        ]

    def assignment(self, instance: AnyCNF, text: str) -> np.ndarray:
        """Return an assignment from text, bool ``(variables,)``.

        Raises:
            Malformed: not in the format of :meth:`assignment_format`.
        """
        n = int(instance.variables)
        literals = parsing.integers(text, -n, n, min_count=n, max_count=n)
        for variable, literal in enumerate(literals, 1):
            if abs(literal) != variable:
                raise Malformed(
                    f"number {variable} of the line is {variable} or -{variable}, got {literal}"
                )
        return np.array(literals) > 0

    def mend(self, answer: str) -> str:
        """Turn the output of a solver into an answer.

        Such output has a line that says SATISFIABLE, lines that begin with v, and 0 at the end.
        """
        lines = [line.strip() for line in answer.split("\n")]
        values = [line[2:] for line in lines if line.startswith("v ")]
        if values and all(line.startswith("v ") or line in ("", "s SATISFIABLE") for line in lines):
            answer = " ".join(values).removesuffix(" 0")
        return super().mend(answer)

    def guess(self, instance: AnyCNF, dice: Dice) -> str:
        """Return a uniform assignment."""
        return as_answer([dice.below(2) == 1 for _ in range(instance.variables)])

    def heuristic(self, instance: AnyCNF) -> str:
        """Give every variable the value that satisfies more of its clauses, and false in a tie.

        This is a vote of the variable's signs.
        """
        votes = np.zeros(int(instance.variables) + 1, int)
        np.add.at(votes, np.abs(instance.clauses), np.sign(instance.clauses))
        return as_answer(votes[1:] > 0)

    def constants(self) -> Sequence[str]:
        """Return all true, all false."""
        n, _ = self.shape
        return [as_answer([True] * n), as_answer([False] * n)]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of variables and clauses of this tier's formulas."""
        return int(self._example.variables), len(self._example.clauses)

    def plan(self, instance: AnyCNF) -> list[int]:
        """Return flips from the all-false assignment to the solver's.

        Each flip is in a clause that is unsatisfied at that step. The plan ends early if an equally
        good assignment lies on the way.
        """
        min_unsatisfied = int(instance.min_unsatisfied) if isinstance(instance, MaxCNF) else 0
        flips = set(np.flatnonzero(self.assignment(instance, self.solve(instance))).tolist())
        true = np.zeros(int(instance.variables), bool)
        plan: list[int] = []
        while len(unsatisfied_clauses := find_unsatisfied(instance, true)) > min_unsatisfied:
            variable = min(
                flips & set((np.abs(instance.clauses[unsatisfied_clauses]) - 1).ravel().tolist())
            )
            flips.remove(variable)
            true[variable] = True
            plan.append(variable)
        return plan


class ModelPuzzle(CNFPuzzle[CNF]):
    """Asks for a model."""

    def judge(self, instance: CNF, answer: str) -> Verdict:
        """Accept any model."""
        return judge_model(instance, self.assignment(instance, answer))

    def likeness(self, instance: CNF, answer: str, best: str) -> float:
        """Return the share of the clauses that are satisfied."""
        return satisfied_share(instance, self.assignment(instance, answer))

    def solve(self, instance: CNF) -> str:
        """Return the first model of :class:`.cnf_search.Search`.

        Raises:
            ValueError: the formula has none.
        """
        model = Search(clause_list(instance), int(instance.variables)).model
        if model is None:
            raise ValueError("this formula has no model")
        return as_answer([model >> v & 1 == 1 for v in range(instance.variables)])


def satisfied_share(instance: SomeCNF, true: np.ndarray) -> float:
    """Return the share of the clauses that an assignment satisfies."""
    return 1 - len(find_unsatisfied(instance, true)) / len(instance.clauses)


def judge_model(instance: CNF | DecidedCNF, true: np.ndarray) -> Verdict:
    """Accept an assignment, bool ``(variables,)``, that satisfies every clause."""
    unsatisfied_clauses = find_unsatisfied(instance, true)
    if not len(unsatisfied_clauses):
        return RIGHT
    first = int(unsatisfied_clauses[0])
    clause = " ".join(map(str, clause_list(instance)[first]))
    return wrong(
        f"{len(unsatisfied_clauses)} clause(s) are not satisfied, the first is clause {first + 1}: "
        f"{clause}"
    )


def as_answer(true: Sequence[bool] | np.ndarray) -> str:
    """Return an assignment as literals."""
    return " ".join(str(v if value else -v) for v, value in enumerate(true, 1))


# -- random clauses --------------------------------------------------------------------------------

_LIMITS = [round(limit * 2**32) for limit in np.cumsum(agreement_law())[:-1].tolist()]
"""Upper limits: a number below 2**32 that lies below limit i gives agreement pattern i + 1 or less.
"""


def scope(dice: Dice, variables: int, length: int) -> list[int]:
    """Draw different variables 1, 2, ..., uniformly, in increasing order."""
    variables_in_scope: set[int] = set()
    while len(variables_in_scope) < length:
        variables_in_scope.add(dice.below(variables) + 1)
    return sorted(variables_in_scope)


def agreeing_clause(variables: Sequence[int], pattern: int, model: int) -> Clause:
    """Return the clause whose literals agree with a model where the pattern says so.

    Args:
        variables: different variables 1, 2, ..., in the order of the literals.
        pattern: bit i is set where literal i is true in the model.
        model: a bit for each variable.
    """
    literals = []
    for i, variable in enumerate(variables):
        is_positive = pattern >> i & 1 == model >> variable - 1 & 1
        literals.append(variable if is_positive else -variable)
    return tuple(literals)


def quiet_clause(dice: Dice, variables: int, model: int) -> Clause:
    """Draw three literals of which a hidden model satisfies at least one.

    They follow the law of :func:`.formula.planted_formula`.

    By this law the signs do not reveal the model.
    """
    word = dice.below(2**32)
    pattern = 1 + sum(word >= limit for limit in _LIMITS)
    return agreeing_clause(scope(dice, variables, 3), pattern, model)


def half_satisfiable(variables: int) -> int:
    """Return the number of clauses at which about half of all formulas have a model.

    The clauses have three literals each and are uniform.

    It is 4.258 n + 58.26 n**(-2/3) (Crawford & Auton 1996, doi:10.1016/0004-3702(95)00046-1).
    """
    return round(4.258 * variables + 58.26 * variables ** (-2 / 3))


def uniform_clause(dice: Dice, variables: int) -> Clause:
    """Draw three literals uniformly."""
    return agreeing_clause(scope(dice, variables, 3), dice.below(8), 0)


# -- a canonical form ------------------------------------------------------------------------------

_ROUNDS = 6


def invariant(instance: SomeCNF) -> bytes:
    """Return a hash of the formula that does not depend on how it is written.

    Names and signs of variables and the order of clauses and literals do not change it.

    Colours of literals are refined from their clauses' and their negations' colours, and clauses'
    from their literals', some rounds long (Weisfeiler & Leman 1968): no true normal form, since
    formulas that look alike everywhere share it.
    """
    variables, clauses = int(instance.variables), instance.clauses.astype(np.int64)
    literal_at = np.where(
        clauses > 0, 2 * clauses - 2, np.where(clauses < 0, -2 * clauses - 1, 2 * variables)
    )
    negation = np.arange(2 * variables) ^ 1
    colours = np.zeros(2 * variables, np.uint64)
    of_clauses = np.zeros(len(clauses), np.uint64)
    for _ in range(_ROUNDS):
        of_clauses = _mix(
            np.append(_mix(colours), np.uint64(0))[literal_at].sum(1, dtype=np.uint64)
        )
        around = np.zeros(2 * variables + 1, np.uint64)
        np.add.at(around, literal_at, of_clauses[:, None])
        colours = _mix(
            colours + np.uint64(3) * _mix(colours[negation]) + np.uint64(5) * around[:-1]
        )
    blocks = np.array([variables, *literal_at.shape]), np.sort(colours), np.sort(of_clauses)
    return hashlib.blake2b(
        b"".join(block.astype("<u8").tobytes() for block in blocks), digest_size=16
    ).digest()


def _mix(words: np.ndarray) -> np.ndarray:
    """Scramble words one by one (the finaliser of SplitMix64: Steele, Lea & Flood 2014)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)
