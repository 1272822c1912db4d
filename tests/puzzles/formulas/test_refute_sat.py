"""Tests of RefuteSAT against independent references.

Both kinds of answers are compared with python-sat and with a proof checker written here, the game
with plain Python.
"""

from __future__ import annotations

import random
import re
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared
from pysat.solvers import Cadical153

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.formulas.cnf import cnf
from rlbench_suite.envs.puzzles.formulas.refute_sat import (
    MODEL,
    OPEN,
    REFUTED,
    RefuteSAT,
    RefuteSATPuzzle,
)
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params

pytestmark = pytest.mark.of_variants
Clauses = list[tuple[int, ...]]


def clause_tuples(instance: Any) -> Clauses:
    return [tuple(row) for row in instance.clauses.tolist()]


def satisfiable(clauses: Clauses) -> bool:
    with Cadical153(bootstrap_with=clauses) as solver:
        is_satisfiable: bool = solver.solve()
    return is_satisfiable


def closes(clauses: Clauses, tokens: list[str], literals: frozenset[int]) -> list[str] | None:
    """Return the tokens behind the proof that the first ones are, or None if they are none.

    The definition is recursive, like the words of the prompt.
    """
    if not tokens:
        return None
    first, *remaining = tokens
    if first[0] == "#":
        return remaining if all(-x in literals for x in clauses[int(first[1:]) - 1]) else None
    v = int(first)
    if v in literals or -v in literals:
        return None
    behind = closes(clauses, remaining, literals | {v})
    return None if behind is None else closes(clauses, behind, literals | {-v})


# -- one-shot --------------------------------------------------------------------------------------


@pytest.mark.engine("CaDiCaL: whether there is a model")
@pytest.mark.parametrize(("tier", "count"), [(6, 1000), (10, 60), (14, 40)])
def test_half_of_the_formulas_have_a_model_and_each_answer_is_right(
    tier: int, count: int, compared: Compared
) -> None:
    puzzle, models = RefuteSATPuzzle(tier), 0
    for seed in range(count):
        instance = puzzle.generate(seed, "test")
        clauses, answer = clause_tuples(instance), puzzle.solve(instance)
        kind = satisfiable(clauses)
        models += kind
        if kind:
            literals = [int(word) for word in answer.split()]
            assert all(set(clause) & set(literals) for clause in clauses)
        else:
            word, *tokens = answer.split()
            assert word == "UNSAT"
            assert closes(clauses, tokens, frozenset()) == []
        assert puzzle.verify(instance, answer).score == 1
        compared(puzzle, instance)
    assert models == count / 2


def test_the_checker_takes_exactly_what_closes_every_case() -> None:
    """Compare the verifier with the proof checker on wrong and right proofs.

    Tokens are exchanged, dropped, doubled and moved, and proofs are tried on other formulas too.
    """
    puzzle, rng = RefuteSATPuzzle(8), random.Random(0)
    instances = [puzzle.generate(seed) for seed in range(120)]
    proofs = [a.split()[1:] for a in map(puzzle.solve, instances) if a.startswith("UNSAT")]
    counts = {True: 0, False: 0}
    for instance in instances:
        clauses = clause_tuples(instance)
        for _ in range(20):
            own_proof = puzzle.solve(instance).split()[1:]
            keeps_formula = (
                rng.random() < 0.8 and own_proof[0][0] != "-" and "#" in " ".join(own_proof)
            )
            proof = list(own_proof if keeps_formula else rng.choice(proofs))
            for _ in range(rng.choice([0, 1, 1, 2])):
                at = rng.randrange(len(proof))
                change = rng.randrange(4)
                if change == 0:
                    proof[at] = f"#{rng.randint(1, len(clauses))}"
                elif change == 1:
                    proof[at] = str(rng.randint(1, 8))
                elif change == 2:
                    proof.insert(at, proof[at])
                elif len(proof) > 1:
                    del proof[at]
            expected = closes(clauses, proof, frozenset()) == []
            verdict = puzzle.verify(instance, " ".join(["UNSAT", *proof]))
            assert verdict.solved == (verdict.score == 1) == expected, verdict
            assert not (expected and satisfiable(clauses)), "the checker is sound"
            counts[expected] += 1
    assert min(counts.values()) > 200


def test_the_example_of_the_prompt_is_a_proof() -> None:
    puzzle = RefuteSATPuzzle(6)
    instance = cnf([(1, 2), (-1, 2), (-2,)], 2)
    model, (lead, example) = puzzle.example_answers(instance)
    assert model.answer == "-1 2 -3"
    assert re.findall(r"'(.*?) 0'", lead) == ["1 2", "-1 2", "-2"]
    assert puzzle.verify(instance, example).score == 1
    assert puzzle.verify(instance, "UNSAT 1 2 #3 #2 2 #3 #1").score == 1
    assert puzzle.verify(instance, "UNSAT 2 #3 1 #1 #2").reason.startswith(
        "token 4, #1: not every literal is false"
    )
    assert (
        puzzle.verify(instance, "UNSAT 2 #3 2 #2 #1").reason
        == "token 3: variable 2 has a value already"
    )


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("UNSAT", "not whole"),
        ("unsat 2 #3 1 #2 #1", "expected 2 numbers"),
        ("UNSAT 2 #3 1 #2", "not whole"),
        ("UNSAT 2 #3 1 #2 #1 #1", "ends at token 5, but there are 6"),
        ("UNSAT 2 #4 1 #2 #1", "expected a clause from 1 to 3, got '4'"),
        ("UNSAT 3 #3 #3", "expected a variable from 1 to 2, got '3'"),
        ("UNSAT -2 #3 1 #2 #1", "expected a variable from 1 to 2, got '-2'"),
        ("UNSAT  2 #3 1 #2 #1", "expected a variable"),
        ("UNSAT\n2 #3 1 #2 #1", "expected 2 numbers"),
        ("UNSAT 1 2 1", "has a value already"),
        ("UNSAT #", "expected a clause"),
    ],
)
def test_what_is_no_proof(answer: str, message: str) -> None:
    verdict = RefuteSATPuzzle(6).verify(cnf([(1, 2), (-1, 2), (-2,)], 2), answer)
    assert verdict.score == 0
    assert message in verdict.reason


def test_an_assignment_is_no_answer_where_there_is_no_model() -> None:
    puzzle = RefuteSATPuzzle(6)
    for seed in range(20):
        instance = puzzle.generate(seed)
        answer = puzzle.solve(instance)
        if answer.startswith("UNSAT"):
            assert puzzle.verify(instance, puzzle.heuristic(instance)).valid
            assert puzzle.verify(instance, puzzle.heuristic(instance)).score == 0


# -- the game --------------------------------------------------------------------------------------


@cache
def game(tier: str) -> RefuteSAT:
    """Return a task of its own, with a bank of 64 formulas a split."""
    task = RefuteSAT(
        card("RefuteSAT-v0"), difficulty=card("RefuteSAT-v0").difficulties[tier], dtype="float32"
    )
    task.bank_size = 64
    assert len(task.bank.plans) == 128
    return task


def params_of(task: RefuteSAT, number: int) -> Params:
    return Params(
        *jax.tree.map(
            lambda column: jnp.asarray(column[number]), (task.bank.instances, task.bank.plans)
        )
    )


class Cases:
    """The search in plain Python: a stack of literals, each on its first or second value."""

    def __init__(self, clauses: Clauses) -> None:
        self.clauses = clauses
        self.stack: list[tuple[int, bool]] = []
        self.outcome = OPEN

    def branch(self, literal: int) -> None:
        self.stack.append((literal, False))
        while any(all(-x in self.literals for x in clause) for clause in self.clauses):
            while self.stack and self.stack[-1][1]:
                self.stack.pop()
            if not self.stack:
                self.outcome = REFUTED
                return
            self.stack[-1] = (-self.stack[-1][0], True)
        if all(set(clause) & self.literals for clause in self.clauses):
            self.outcome = MODEL

    @property
    def literals(self) -> set[int]:
        return {literal for literal, _ in self.stack}

    @property
    def settled_share(self) -> float:
        if self.outcome != OPEN:
            return 1
        return sum(0.5 ** (depth + 1) for depth, (_, second) in enumerate(self.stack) if second)


@pytest.mark.parametrize("tier", ["easy", "hard"])
def test_the_game_is_depth_first_search(tier: str) -> None:
    """Compare random branchings with a stack in plain Python.

    This covers values, rewards, observation, mask and end.
    """
    task, rng, outcomes, key = game(tier), random.Random(0), set(), jax.random.key(0)
    n = task.variables

    @jax.jit
    def move(state: Any, action: jax.Array, params: Params) -> Any:
        after = task.transition(state, action, key, params)
        views = (
            task.observation(after, key, params),
            task.terminal(after, key, params),
            task.action_mask(after, params),
        )
        return after, task.reward(state, action, after, key, params), *views

    for number in range(20):
        clauses = clause_tuples(task.puzzle.generate(number))
        params = params_of(task, number)
        state, plain, total = task.initial(key, params), Cases(clauses), 0.0
        budget = int(params.instance.budget)
        for step in range(budget):
            literal = rng.choice(
                [x for v in range(1, n + 1) for x in (v, -v) if not {v, -v} & plain.literals]
            )
            before = plain.settled_share
            plain.branch(literal)
            action = jnp.int32(2 * abs(literal) - 2 + (literal < 0))
            state, reward, observation, over, mask = move(state, action, params)
            assert int(state.outcome) == plain.outcome
            assert float(reward) == pytest.approx(
                plain.settled_share - before + (plain.outcome != OPEN), abs=1e-6
            )
            assert bool(over) == (plain.outcome != OPEN or step + 1 == budget)
            total += float(reward)
            if plain.outcome != OPEN:
                outcomes.add(plain.outcome)
                break
            case = {v: v in plain.literals for v in range(1, n + 1) if {v, -v} & plain.literals}
            expected = [0.0 if v not in case else 2.0 * case[v] - 1 for v in range(1, n + 1)]
            expected += [
                float((v, True) in plain.stack or (-v, True) in plain.stack)
                for v in range(1, n + 1)
            ]
            open_clauses = [
                [x for x in c if abs(x) not in case] for c in clauses if not set(c) & plain.literals
            ]
            for length in (1, 2, 3):
                for sign in (1, -1):
                    counts = [
                        sum(len(c) == length and sign * v in c for c in open_clauses)
                        for v in range(1, n + 1)
                    ]
                    expected += [count / (1 + count) for count in counts]
            expected += [plain.settled_share, 1 - (step + 1) / budget]
            np.testing.assert_allclose(observation, expected, atol=1e-6)
            assert task.observation_space.contains(np.asarray(observation))
            assert mask.tolist() == [v not in case for v in range(1, n + 1) for _ in (0, 1)]
        assert total == pytest.approx(plain.settled_share + (plain.outcome != OPEN), abs=1e-5)
    assert len(outcomes) == 2 or tier == "hard"


@pytest.mark.parametrize("tier", ["easy", "medium", "hard"])
def test_the_plan_decides_every_formula(tier: str) -> None:
    """With the outcome that python-sat finds, two thirds of the branchings, and the best return."""
    task = game(tier)
    record = play(task, reference_player(task), range(200))
    assert record.info["success"].all()
    np.testing.assert_allclose(record.total, task.card.optimum, atol=1e-5)
    assert record.length.max() <= task.card.horizon * 2 // 3
    move, key = jax.jit(task.transition), jax.random.key(0)
    for number in range(10):
        params = params_of(task, number)
        state = task.initial(key, params)
        for action in params.plan[params.plan >= 0]:
            state = move(state, action.astype(jnp.int32), key, params)
        expected = MODEL if satisfiable(clause_tuples(task.puzzle.generate(number))) else REFUTED
        assert int(state.outcome) == expected


def test_words_and_picture() -> None:
    task, key = game("easy"), jax.random.key(0)
    params = params_of(task, 0)
    state = task.initial(key, params)
    assert "no variable has a value" in task.describe(state, params)
    after = task.transition(state, jnp.int32(task.parse("-3", state, params)), key, params)
    assert "no value): -3\n" in task.describe(after, params).replace("second values", "no value")
    assert task.why_illegal(np.int64(4), after, params) == "variable 3 has a value already"
    assert (task.draw(state, params) != task.draw(after, params)).any()
    for text in ("0", "7", "--3", "3 4", "x", "٣"):
        with pytest.raises(ValueError, match="expected V or -V with a variable V from 1 to 6"):
            task.parse(text, state, params)
    ends = [
        task.why_over(state._replace(outcome=jnp.int8(outcome)), params, {})
        for outcome in (MODEL, REFUTED, OPEN)
    ]
    assert ends[:2] == ["a model is found", "every case is closed: there is no model"]
    assert ends[2] == f"the {int(params.instance.budget)} branchings are used up"


@pytest.mark.parametrize("tier", [5, 25, 8.5])
def test_other_sizes_are_refused(tier: float) -> None:
    with pytest.raises(ValueError, match="the number of variables, 6 to 24"):
        RefuteSATPuzzle(tier)


def test_tokens_after_a_gap_are_read_too() -> None:
    puzzle = RefuteSATPuzzle(10)
    for seed in range(12):
        assert not puzzle.verify(puzzle.generate(seed), "UNSAT #1 because I say so").valid
