"""Tests of Saturn, UniqueSAT, MaxSAT and SAT50.

Claims are compared with python-sat and enumeration, games with the verifier.
"""

from __future__ import annotations

import math
import random
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared
from pysat.examples.rc2 import RC2
from pysat.formula import WCNF
from pysat.solvers import Cadical153
from scipy import stats

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.puzzles.formulas.cnf import as_answer
from rlbench_suite.envs.puzzles.formulas.flips import GoalPlayer, State
from rlbench_suite.envs.puzzles.formulas.formula import values
from rlbench_suite.envs.puzzles.formulas.saturn import SaturnPuzzle
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.bank import STOP
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants

GAMES = ["Saturn-v0", "UniqueSAT-v0", "MaxSAT-v0", "SAT50-v0"]
Clauses = list[tuple[int, ...]]


@pytest.fixture(autouse=True)
def _small_banks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlbench_suite.envs.puzzles.formulas.flips.PuzzleFlips.bank_size", 64)


@cache
def game(name: str, tier: str) -> Any:
    """Return a task of its own, with a bank of 64 formulas a split."""
    task_card = card(name)
    task = type(task_card.build(difficulty=tier))(
        task_card, difficulty=task_card.difficulties[tier], dtype="float32"
    )
    assert len(task.bank.plans) == 128
    return task


def clause_tuples(instance: Any) -> Clauses:
    return [tuple(x for x in row if x) for row in instance.clauses.tolist()]


def misses(clauses: Clauses, true: np.ndarray) -> int:
    """Clauses without a true literal, by the definition."""
    return sum(not any(true[abs(x) - 1] == (x > 0) for x in clause) for clause in clauses)


def costs_of_all(clauses: Clauses, variables: int) -> np.ndarray:
    """Unsatisfied clauses under each of 2**variables assignments."""
    bits = np.arange(2**variables)[:, None] >> np.arange(variables) & 1 == 1
    total = np.zeros(2**variables, int)
    for clause in clauses:
        total += ~np.any([bits[:, abs(x) - 1] == (x > 0) for x in clause], axis=0)
    return total


def params_of(task: Any, number: int) -> Params:
    return Params(
        *jax.tree.map(
            lambda column: jnp.asarray(column[number]), (task.bank.instances, task.bank.plans)
        )
    )


def words(true: np.ndarray) -> np.ndarray:
    """Assignments, bool ``(count, variables)``, as uint32 ``(count, words)``."""
    padded = np.pad(true, ((0, 0), (0, -true.shape[1] % 32))).reshape(len(true), -1, 32)
    return (padded.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(-1).astype(np.uint32)


# -- Saturn ----------------------------------------------------------------------------------------


@pytest.mark.engine("all assignments: a model, and how many there are")
@pytest.mark.parametrize(("tier", "count"), [(1, 1000), (2, 900), (3, 200), (4, 100)])
def test_saturn_has_different_clauses_and_its_chance_is_exact(
    tier: int, count: int, compared: Compared
) -> None:
    puzzle = SaturnPuzzle(tier)
    length, variables, clauses = puzzle.size
    for seed in range(count):
        instance = puzzle.generate(seed)
        formula = clause_tuples(instance)
        assert len({tuple(sorted(c)) for c in formula}) == len(formula) == clauses
        assert all(len({abs(x) for x in c}) == len(c) == length for c in formula)
        models = (costs_of_all(formula, variables) == 0).sum()
        assert puzzle.chance(instance) == models / 2**variables > 0
        assert puzzle.difficulty(instance) == pytest.approx(variables - math.log2(models))
        literals = {int(word) for word in puzzle.solve(instance).split()}
        assert {abs(x) for x in literals} == {*range(1, variables + 1)}
        assert all(literals & set(c) for c in formula)
        compared(puzzle, instance)


def test_saturn_plants_by_its_law() -> None:
    """Check that all seven patterns of agreement with the hidden assignment are equally frequent.

    So 4/7 of the literals agree.
    """
    puzzle, patterns = SaturnPuzzle(1), dict.fromkeys(range(1, 8), 0)
    for seed in range(3000):
        hidden = Dice(5, seed).below(32)  # the first draw
        for clause in clause_tuples(puzzle.compose(Dice(5, seed))):
            agrees = [(hidden >> abs(x) - 1 & 1) == (x > 0) for x in clause]
            patterns[sum(agree << i for i, agree in enumerate(agrees))] += 1
    assert stats.chisquare(list(patterns.values())).pvalue > 1e-3


def test_saturn_leaks_and_sat_does_not() -> None:
    """Check that a vote of signs beats chance by far on every tier of Saturn.

    It is near chance where planting is quiet.
    """
    for tier in ("easy", "medium", "hard"):
        scores = card("Saturn-v0").one_shot_scores(tier)
        assert scores["heuristic"].low > scores["guess"].high + 0.1
    assert card("SAT-v0").one_shot_scores("medium")["heuristic"].mean < 0.02


def test_saturn_tells_the_published_difficulty() -> None:
    difficulties = [SaturnPuzzle(tier).comparable for tier in (1, 2, 3, 4)]
    assert difficulties == pytest.approx([5.63245, 8.38955, 12.78454, 15.31052], abs=1e-4)


# -- UniqueSAT -------------------------------------------------------------------------------------


@pytest.mark.engine("CaDiCaL: one model")
@pytest.mark.parametrize(("tier", "count"), [("easy", 900), ("medium", 100), ("hard", 40)])
def test_unique_sat_has_one_model(tier: str, count: int, compared: Compared) -> None:
    puzzle = puzzle_of("UniqueSAT-v0", tier)
    for seed in range(count):
        instance = puzzle.generate(seed, "test")
        with Cadical153(bootstrap_with=clause_tuples(instance)) as solver:
            assert solver.solve()
            model = solver.get_model()
            assert " ".join(map(str, model)) == puzzle.solve(instance)
            solver.add_clause([-x for x in model])
            assert not solver.solve()
        compared(puzzle, instance)


# -- MaxSAT ----------------------------------------------------------------------------------------


@pytest.mark.engine("RC2 of python-sat: no fewer clauses unsatisfied")
@pytest.mark.parametrize(("tier", "count"), [("easy", 940), ("medium", 60), ("hard", 15)])
def test_max_sat_knows_the_optimum(tier: str, count: int, compared: Compared) -> None:
    puzzle = puzzle_of("MaxSAT-v0", tier)
    for seed in range(count):
        instance = puzzle.generate(seed)
        soft = WCNF()
        for clause in clause_tuples(instance):
            soft.append(list(clause), weight=1)
        with RC2(soft) as solver:
            solver.compute()
            assert solver.cost == instance.min_unsatisfied > 0
        literals = {int(word) for word in puzzle.solve(instance).split()}
        assert (
            sum(not literals & set(clause) for clause in clause_tuples(instance))
            == instance.min_unsatisfied
        )
        compared(puzzle, instance)


def test_max_sat_takes_every_best_assignment_and_no_other() -> None:
    puzzle, several = puzzle_of("MaxSAT-v0", "easy"), 0
    for seed in range(5):
        instance = puzzle.generate(seed)
        costs = costs_of_all(clause_tuples(instance), 8)
        several += (costs == costs.min()).sum() > 1
        for a, cost in enumerate(costs.tolist()):
            verdict = puzzle.verify(instance, as_answer([a >> v & 1 == 1 for v in range(8)]))
            assert verdict.valid
            assert verdict.solved
            assert verdict.optimal == (verdict.score == 1) == (cost == costs.min())
            assert (
                verdict.score == 1
                or verdict.reason == f"{cost} clauses are not satisfied; it can be fewer"
            )
    assert several


# -- the games -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GAMES)
def test_the_game_ends_where_the_verifier_is_satisfied(name: str) -> None:
    """Compare goal, count, mask and observation with the definitions.

    Random and right assignments are judged in one batched call.
    """
    task = game(name, "easy")
    puzzle, rng, n = task.puzzle, np.random.default_rng(0), task.variables
    numbers = np.repeat(np.arange(64), 4)
    instances = [puzzle.generate(int(i), "train") for i in numbers]
    right = np.array([puzzle.assignment(x, puzzle.solve(x)) for x in instances])
    noise = rng.random(right.shape) < np.tile([0.0, 0.05, 0.3, 0.5], 64)[:, None]
    true = right ^ noise
    params = jax.vmap(lambda i: params_of_traced(task, i))(jnp.asarray(numbers))

    def look(assignment: jax.Array, params: Params) -> Any:
        state, key = task.judge_assignment(assignment, params), jax.random.key(0)
        outcome = (
            task.terminal(state, key, params),
            task.info(state, params),
            task.action_mask(state, params),
        )
        return *outcome, task.observation(state, key, params)

    over, info, mask, observation = jax.jit(jax.vmap(look))(jnp.asarray(words(true)), params)
    for i, instance in enumerate(instances):
        clauses = clause_tuples(instance)
        cost = misses(clauses, true[i])
        assert (
            bool(over[i])
            == bool(info["success"][i])
            == (puzzle.verify(instance, as_answer(true[i])).score == 1)
        )
        assert int(info["unsatisfied"][i]) == cost
        makes, breaks = np.zeros(n), np.zeros(n)
        for clause in clauses:
            true_literals = [x for x in clause if true[i][abs(x) - 1] == (x > 0)]
            for x in clause:
                makes[abs(x) - 1] += not true_literals
                breaks[abs(x) - 1] += true_literals == [x]
        expected = [
            *(2 * true[i] - 1),
            *(makes / (1 + makes)),
            *(breaks / (1 + breaks)),
            cost / len(clauses),
        ]
        np.testing.assert_allclose(observation[i], expected, atol=1e-6)
        np.testing.assert_array_equal(mask[i], makes > 0)
    assert set(np.asarray(over).tolist()) == {True, False}


def params_of_traced(task: Any, number: jax.Array) -> Params:
    return Params(
        *jax.tree.map(
            lambda column: jnp.asarray(column)[number], (task.bank.instances, task.bank.plans)
        )
    )


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("tier", ["easy", "hard"])
def test_a_plan_flips_legally_from_all_false_to_a_right_answer(name: str, tier: str) -> None:
    task = game(name, tier)
    for split in Split:
        for number in range(15):
            instance = task.puzzle.generate(number, split.name.lower())
            clauses, true = clause_tuples(instance), np.zeros(task.variables, bool)
            for action in task.bank.plans[64 * split + number]:
                if action == STOP:
                    break
                left = [c for c in clauses if not any(true[abs(x) - 1] == (x > 0) for x in c)]
                assert action + 1 in {abs(x) for c in left for x in c}
                true[action] ^= True
            assert task.puzzle.verify(instance, as_answer(true)).score == 1


@pytest.mark.parametrize("name", GAMES)
def test_the_reference_reaches_the_goal_and_returns_telescope(name: str) -> None:
    task = game(name, "medium")
    player = reference_player(task)
    assert isinstance(player, GoalPlayer)
    record = play(task, player, range(200))
    assert record.info["success"].all()
    assert record.terminated.all()
    assert record.length.max() <= task.variables
    assert (record.length >= 1).all()
    min_unsatisfied = 0 if name != "MaxSAT-v0" else task.bank.instances.min_unsatisfied.max()
    won = (record.total - 1) * task.clauses  # clauses, at the start and no more at the end
    np.testing.assert_allclose(won, np.round(won), atol=2e-3)
    assert (won + min_unsatisfied >= 1 - 2e-3).all()


def test_every_action_flips_its_variable_and_no_other() -> None:
    """Beyond one word too: SAT50-v0."""
    task = game("SAT50-v0", "medium")
    true = np.random.default_rng(0).random((1, 50)) < 0.5
    state: State = jax.jit(task.judge_assignment)(words(true)[0], params_of(task, 3))
    after = jax.vmap(lambda a: task.transition(state, a, jax.random.key(0), params_of(task, 3)))(
        jnp.arange(50)
    )
    flipped = np.asarray(jax.vmap(lambda a: values(a, 50))(after.assignment))
    np.testing.assert_array_equal(flipped ^ true, np.eye(50, dtype=bool))


@pytest.mark.parametrize("name", ["Saturn-v0", "MaxSAT-v0", "UniqueSAT-v0"])
def test_an_episode_never_starts_at_the_goal(name: str) -> None:
    """One in six assignments is a model of Saturn's easy formulas."""
    task = game(name, "easy")
    for number in range(30):
        params = params_of(task, number)
        starts = jax.vmap(task.initial, in_axes=(0, None))(
            jax.random.split(jax.random.key(number), 200), params
        )
        assert not jax.vmap(task.terminal, in_axes=(0, None, None))(
            starts, jax.random.key(0), params
        ).any()


@pytest.mark.parametrize("name", ["UniqueSAT-v0", "MaxSAT-v0"])
def test_focused_flips_lose_no_shortest_path(name: str) -> None:
    """From every assignment that is not best, some legal flip is a step nearer to each best one."""
    task = game(name, "easy")
    n = task.variables
    every = jnp.arange(2**n, dtype=jnp.uint32)[:, None]
    masks = jax.jit(
        jax.vmap(lambda a, p: task.action_mask(task.judge_assignment(a, p), p), in_axes=(0, None))
    )
    rng = random.Random(0)
    for number in rng.sample(range(64), 10):
        costs = costs_of_all(clause_tuples(task.puzzle.generate(number)), n)
        legal = np.asarray(masks(every, params_of(task, number))) @ (1 << np.arange(n))
        for best in np.flatnonzero(costs == costs.min()):
            assert ((legal & (np.arange(2**n) ^ best) != 0) | (costs == costs.min())).all()


@pytest.mark.parametrize("name", GAMES)
def test_words_and_picture(name: str) -> None:
    task = game(name, "medium")
    params, instance = params_of(task, 0), task.puzzle.generate(0)
    right = task.puzzle.assignment(instance, task.puzzle.solve(instance))
    opposite = ~right
    goal, start = (
        task.judge_assignment(jnp.asarray(words(true[None])[0]), params)
        for true in (right, opposite)
    )
    cost = misses(clause_tuples(instance), opposite)
    assert f"c The assignment now: {cost} of {task.clauses}" in task.describe(start, params)
    over = task.why_over(goal, params, {})
    assert over == "every clause is satisfied" or over.endswith(
        "clauses are unsatisfied, and no assignment leaves fewer"
    )
    pictures = [task.draw(state, params) for state in (goal, start)]
    assert all(picture.shape == task.picture_shape for picture in pictures)
    assert (pictures[0] != pictures[1]).any()


@pytest.mark.parametrize(
    ("name", "tier", "message"),
    [
        ("Saturn-v0", 5, "row of a table of sizes, 1 to 4, got 5"),
        ("UniqueSAT-v0", 33, "6 to 32, got 33"),
        ("MaxSAT-v0", 21, "6 to 20, got 21"),
        ("SAT50-v0", 66, "8 to 64 in steps of 2, got 66"),
    ],
)
def test_other_sizes_are_refused(name: str, tier: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        puzzle_of(name, tier)
