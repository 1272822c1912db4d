"""Tests of the one-shot form of SAT-v0, and of what formulas' puzzles share.

They are compared with python-sat and the definitions.
"""

from __future__ import annotations

import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared
from pysat.solvers import Cadical153
from scipy import stats

from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.puzzles.formulas.cnf import (
    CNF,
    cnf,
    invariant,
    quiet_clause,
    uniform_clause,
)
from rlbench_suite.envs.puzzles.formulas.cnf_search import Search
from rlbench_suite.envs.puzzles.formulas.dimacs import clauses_in
from rlbench_suite.envs.puzzles.formulas.dimacs import clauses_of as clauses_of_formula
from rlbench_suite.envs.puzzles.formulas.formula import agreement_law, clause_count
from rlbench_suite.envs.puzzles.formulas.sat import SATPuzzle
from rlbench_suite.envs.puzzles.formulas.truth_tables import least_unsatisfied, models_of
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.dice import Dice

Clauses = list[tuple[int, ...]]


def clause_tuples(instance: CNF) -> Clauses:
    return [tuple(x for x in row if x) for row in instance.clauses.tolist()]


def misses(clauses: Clauses, literals: list[int]) -> int:
    """Clauses that none of these literals is in."""
    return sum(not set(clause) & set(literals) for clause in clauses)


def mixed_formula(rng: random.Random, variables: int, clauses: int) -> Clauses:
    """Clauses of one to four literals."""
    scopes = (
        rng.sample(range(1, variables + 1), rng.choice([1, 2, 3, 3, 3, 4, 4]))
        for _ in range(clauses)
    )
    return [tuple(rng.choice([v, -v]) for v in scope) for scope in scopes]


def disguise(clauses: Clauses, variables: int, rng: random.Random) -> Clauses:
    """Variables renamed and negated, clauses and literals in another order."""
    names = rng.sample(range(1, variables + 1), variables)
    signs = [rng.choice([1, -1]) for _ in range(variables)]
    renamed = [
        tuple((1 if x > 0 else -1) * signs[abs(x) - 1] * names[abs(x) - 1] for x in c)
        for c in clauses
    ]
    return rng.sample([tuple(rng.sample(c, len(c))) for c in renamed], len(renamed))


# -- exact search ----------------------------------------------------------------------------------


def test_search_counts_as_enumeration_does() -> None:
    """Formulas of mixed lengths, satisfiable or not: three independent counts agree."""
    rng, kinds = random.Random(0), set()
    for _ in range(1000):
        n = rng.randint(4, 8)
        clauses = mixed_formula(rng, n, rng.randint(3, 20))
        every = [[v + 1 if a >> v & 1 else -v - 1 for v in range(n)] for a in range(2**n)]
        count = sum(not misses(clauses, literals) for literals in every)
        search = Search(clauses, n, max_models=2**n + 1)
        assert search.models == count == models_of(clauses, n).bit_count()
        assert (search.model is None) == (count == 0)
        kinds.add(count > 0)
        with Cadical153(bootstrap_with=clauses) as solver:
            assert solver.solve() == (count > 0)
        min_cost, best = least_unsatisfied(clauses, n)
        costs = [misses(clauses, literals) for literals in every]
        assert min_cost == min(costs)
        assert [a for a in range(2**n) if best >> a & 1] == [
            a for a in range(2**n) if costs[a] == min(costs)
        ]
    assert kinds == {True, False}


@pytest.mark.engine("every clause by its definition: a model")
@pytest.mark.parametrize(
    ("name", "sizes"), [("SAT-v0", (1000, 60, 40)), ("SAT50-v0", (900, 80, 40))]
)
def test_every_formula_has_a_model_and_the_solver_finds_one(
    name: str, sizes: tuple[int, ...], compared: Compared
) -> None:
    for tier, count in zip(("easy", "medium", "hard"), sizes, strict=True):
        puzzle: Any = puzzle_of(name, tier)
        for seed in range(count):
            instance = puzzle.generate(seed, "test")
            clauses = clause_tuples(instance)
            assert len(clauses) == clause_count(puzzle.tier)
            assert all(len({abs(x) for x in clause}) == 3 for clause in clauses)
            literals = [int(word) for word in puzzle.solve(instance).split()]
            assert [abs(x) for x in literals] == list(range(1, puzzle.tier + 1))
            assert not misses(clauses, literals)
            compared(puzzle, instance)


def test_planting_is_quiet() -> None:
    """Literals agree with the hidden model by the law of the compiled generator: half of them."""
    dice, n, model = Dice(1, 2), 20, 0b1011_0010_1110_0101_0001
    patterns = dict.fromkeys(range(1, 8), 0)
    for _ in range(30_000):
        agrees = [(model >> abs(x) - 1 & 1) == (x > 0) for x in quiet_clause(dice, n, model)]
        patterns[sum(agree << i for i, agree in enumerate(agrees))] += 1
    assert stats.chisquare(list(patterns.values()), agreement_law() * 30_000).pvalue > 1e-3


# -- the verifier ----------------------------------------------------------------------------------


def test_the_verifier_is_the_rule() -> None:
    puzzle = SATPuzzle(8)
    rng = random.Random(1)
    counts = {True: 0, False: 0}
    for seed in range(300):
        instance = puzzle.generate(seed)
        right = [int(word) for word in puzzle.solve(instance).split()]
        flipped = [-x if rng.random() < 0.15 else x for x in right]
        anything = [rng.choice([x, -x]) for x in right]
        for literals in (right, flipped, anything):
            expected = not misses(clause_tuples(instance), literals)
            verdict = puzzle.verify(instance, " ".join(map(str, literals)))
            assert verdict.valid
            assert (
                verdict.solved
                == verdict.optimal
                == (verdict.score == 1)
                == (verdict.reason == "")
                == expected
            )
            counts[expected] += 1
    assert min(counts.values()) > 100


@pytest.mark.parametrize(
    "spoil",
    [
        lambda right: right + " 0",
        lambda right: right.replace(" ", "  ", 1),
        lambda right: right.replace(" ", "\n", 1),
        lambda right: right.replace(" ", ", "),
        lambda right: " ".join(right.split()[:-1]),
        lambda right: " ".join(reversed(right.split())),
        lambda right: " ".join("01"[int(word) > 0] for word in right.split()),
        lambda right: "v " + right,
        lambda right: "+" + right.lstrip("-"),
        lambda right: "",
    ],
)
def test_another_format_is_invalid(spoil: Any) -> None:
    puzzle = SATPuzzle(10)
    instance = puzzle.generate(3)
    verdict = puzzle.verify(instance, spoil(puzzle.solve(instance)))
    assert not verdict.valid
    assert verdict.score == 0
    assert verdict.reason


# -- splits and canonical forms --------------------------------------------------------------------


@pytest.mark.parametrize("split", Split)
def test_both_forms_split_alike(split: Split) -> None:
    """Check that a formula of the game belongs to the same split in the one-shot form.

    This holds for disguised formulas too.
    """
    game, puzzle, rng = card("SAT-v0").build(difficulty=14), SATPuzzle(14), random.Random(0)
    batch = jax.jit(jax.vmap(game.sample_params, in_axes=(0, None)))(
        jax.random.split(jax.random.key(0), 100), jnp.int32(split)
    )
    for sides in zip(*map(np.asarray, batch), strict=True):
        clauses = clauses_of_formula(type(batch)(*sides))
        for form in (clauses, disguise(clauses, 14, rng)):
            assert puzzle.split_of(cnf(form, 14)) == split.name.lower()


def test_the_invariant_is_one() -> None:
    rng, dice = random.Random(0), Dice(0, 0)
    for n, m in ((5, 6), (8, 30), (20, 86)):
        forms = set()
        for _ in range(100):
            clauses = [uniform_clause(dice, n) for _ in range(m)]
            form = invariant(cnf(clauses, n))
            assert invariant(cnf(disguise(clauses, n, rng), n)) == form
            forms.add(form)
            changed = [*clauses[:-1], (-clauses[-1][0], *clauses[-1][1:])]
            unchanged = {tuple(sorted(c)) for c in changed} == {tuple(sorted(c)) for c in clauses}
            assert unchanged or n == 5 or invariant(cnf(changed, n)) != form
        assert len(forms) > 95 or n == 5


# -- text ------------------------------------------------------------------------------------------


def test_the_prompt_holds_the_formula() -> None:
    puzzle = SATPuzzle(20)
    instance = puzzle.generate(0)
    text = puzzle.prompt(instance)
    variables, clauses = clauses_in(text[text.index("\n\np cnf") : text.index("\nAnswer with")])
    assert (variables, clauses) == (20, clause_tuples(instance))


def test_any_dimacs_file_can_be_asked() -> None:
    puzzle = SATPuzzle(8)
    instance = puzzle.from_dimacs("c mine\np cnf 40 4\n1 -2 0 40 3 -4 39 -4 0\n-1 0 5 -5\n 0\n")
    assert clause_tuples(instance) == [(1, -2), (40, 3, -4, 39), (-1,), (5, -5)]
    answer = puzzle.solve(instance)
    assert puzzle.verify(instance, answer).score == 1
    assert puzzle.verify(instance, answer.replace("-1 ", "1 ", 1)).reason.endswith(
        "the first is clause 3: -1"
    )
    with pytest.raises(ValueError, match="has no model"):
        puzzle.solve(puzzle.from_dimacs("p cnf 2 3\n1 2 0 -1 0 -2 0"))


def test_the_longest_formula_has_an_answer_that_fits() -> None:
    puzzle, n = SATPuzzle(8), SATPuzzle.longest_formula
    instance = puzzle.from_dimacs(
        f"p cnf {n} {n}\n" + "".join(f"{-v} 0\n" for v in range(1, n + 1))
    )
    assert puzzle.verify(instance, " ".join(str(-v) for v in range(1, n + 1))).score == 1
    with pytest.raises(
        ValueError, match=f"1 to {n} variables and at least one clause, got {n + 1} variables"
    ):
        puzzle.from_dimacs(f"p cnf {n + 1} 1\n1 0\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p cnf 2 0\n", "got 2 variables and 0 clauses"),
        ("p cnf 2 1\n3 0\n", r"literal 3 is not in 1\.\.2"),
        ("p cnf 2 1\n0\n", "clause 1 is empty"),
        ("p cnf 2 2\n1 0\n", "announces 2 clauses, 1 follow"),
    ],
)
def test_bad_files_are_refused_with_a_reason(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SATPuzzle.from_dimacs(text)


@pytest.mark.parametrize("tier", [6, 9, 20.5, 202])
def test_other_sizes_are_refused(tier: float) -> None:
    with pytest.raises(ValueError, match="the number of variables, 8 to 200 in steps of 2, got"):
        SATPuzzle(tier)


def test_decisions_are_counted() -> None:
    """Nothing is decided where units say it all; one decision settles an equivalence."""
    puzzle = SATPuzzle(8)
    chain = cnf([(1,), (-1, 2), (-2, 3)], 3)
    equivalence = cnf([(1, -2), (-1, 2)], 2)
    assert [puzzle.difficulty(each) for each in (chain, equivalence)] == [0, 1]
