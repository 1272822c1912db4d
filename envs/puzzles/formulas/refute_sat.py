"""rlsuite/RefuteSAT-v0, one-shot: find a model of a 3-SAT formula, or prove that there is none.

Of every two seeds, one gets a formula with a model and the other one without. Formulas are uniform, at the number of
clauses where half of all formulas of the size have one: 4.258 n + 58.26 n**(-2/3) (Crawford & Auton 1996), and are
drawn until one is of the kind. ``difficulty`` is the number of variables n.

A proof is a tree of case distinctions, written in preorder: a variable, the tree for the case that it is true, the tree
for the case that it is false; ``#j`` where every literal of clause j is false. Checking it takes time linear in its
length, and claiming that there is no model without a proof is worth nothing.
"""

from __future__ import annotations

from rlbench_suite.dice import Dice
from rlbench_suite.puzzle import RIGHT, Malformed, Verdict, wrong

from ..shared import answer as reading
from .cnf import CNF, CNFPuzzle, as_answer, clauses_of, cnf, half_satisfiable, judge_model, uniform_clause
from .cnf_search import Search

UNSAT = "UNSAT"


class RefuteSATPuzzle(CNFPuzzle[CNF]):
    """``tier`` is the number of variables."""

    name = "RefuteSAT"
    difficulty_is = "branchings of a DPLL search, forced ones included, until it has a model or a refutation"

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        if tier not in range(6, 25):
            raise ValueError(f"RefuteSAT: difficulty is the number of variables, 6 to 24, got {tier!r}.")
        self.variables = int(tier)
        self.clauses = half_satisfiable(self.variables)

    def compose(self, dice: Dice) -> CNF:
        """Uniform formulas, until one has a model, or none, as it is this seed's turn."""
        n, satisfiable = self.variables, dice.share(2) == 1
        while True:
            clauses = [uniform_clause(dice, n) for _ in range(self.clauses)]
            if (Search(clauses, n).models > 0) == satisfiable:
                return cnf(clauses, n)

    def question(self, instance: CNF) -> str:
        """The formula, in DIMACS CNF; both kinds of answer."""
        n = instance.variables
        return (
            f"Either find an assignment of true or false to the {n} variables of a formula such that every clause is "
            f"satisfied, or prove that there is none. {self.dimacs(instance)}\n"
            f"If there is one, answer with {self.assignment_format(instance)}.\n"
            f"If there is none, answer with one line: the word {UNSAT}, then a proof, all separated by single spaces. "
            "A proof is either #J, where J is the number of a clause (counted from 1 in the order above) of which "
            "every literal is false in the case at hand, or a variable V that has no value yet, followed by a proof "
            "for the case that V is true, followed by a proof for the case that V is false. For example, the three "
            f"clauses '1 2 0', '-1 2 0' and '-2 0' are refuted by: {UNSAT} 2 #3 1 #2 #1"
        )

    def judge(self, instance: CNF, answer: str) -> Verdict:
        """Any model, or any tree that closes all cases."""
        word, *proof = answer.split(" ")
        if word != UNSAT:
            return judge_model(instance, self.assignment(instance, answer))
        reason = self._gap(instance, proof)
        return wrong(reason) if reason else RIGHT

    @staticmethod
    def _gap(instance: CNF, proof: list[str]) -> str:
        """What is wrong with a well-formed proof; empty if nothing.

        Raises:
            Malformed: it is not one whole tree.
        """
        clauses = clauses_of(instance)
        case: dict[int, bool] = {}
        """The values at hand, in the order in which they were given."""
        for number, token in enumerate(proof, 1):
            if token.startswith("#"):
                clause = clauses[reading.integer(token[1:], 1, len(clauses), "clause") - 1]
                if any(case.get(abs(x), x > 0) == (x > 0) for x in clause):
                    shown = " ".join(str(v if true else -v) for v, true in case.items())
                    return f"token {number}, {token}: not every literal is false in the case {shown or 'of no values'}"
                while case and not case[last := next(reversed(case))]:
                    del case[last]
                if not case:
                    if number < len(proof):
                        raise Malformed(f"the proof ends at token {number}, but there are {len(proof)}")
                    return ""
                case[last] = False
            else:
                variable = reading.integer(token, 1, int(instance.variables), "variable")
                if variable in case:
                    return f"token {number}: variable {variable} has a value already"
                case[variable] = True
        raise Malformed("the proof is not whole: some case has no proof")

    def solve(self, instance: CNF) -> str:
        """The model or the tree of :class:`.cnf_search.Search`."""
        n = int(instance.variables)
        search = Search(clauses_of(instance), n)
        if search.model is None:
            return " ".join([UNSAT, *search.refutation])
        return as_answer([search.model >> v & 1 == 1 for v in range(n)])

    def difficulty(self, instance: CNF) -> float:
        """Inner nodes of the search's tree."""
        return float(len(Search(clauses_of(instance), int(instance.variables)).branches))

    def plan(self, instance: CNF) -> list[int]:
        """The search's branchings, as actions of :class:`.branching.RefuteSAT`."""
        branches = Search(clauses_of(instance), int(instance.variables)).branches
        return [2 * abs(literal) - 2 + (literal < 0) for literal in branches]
