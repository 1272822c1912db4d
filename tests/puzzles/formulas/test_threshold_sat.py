"""ThresholdSAT-v0: both kinds of formulas against python-sat, the game against plain Python."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared
from pysat.solvers import Cadical153
from scipy import stats

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.formulas.threshold_sat import ThresholdSAT, ThresholdSATPuzzle
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
Clauses = list[tuple[int, ...]]


def clause_tuples(instance: Any) -> Clauses:
    return [tuple(row) for row in instance.clauses.tolist()]


def satisfiable(clauses: Clauses) -> bool:
    with Cadical153(bootstrap_with=clauses) as solver:
        is_satisfiable: bool = solver.solve()
    return is_satisfiable


def misses(clauses: Clauses, true: list[bool]) -> list[tuple[int, ...]]:
    return [clause for clause in clauses if not any(true[abs(x) - 1] == (x > 0) for x in clause)]


# -- one-shot --------------------------------------------------------------------------------------


@pytest.mark.engine("CaDiCaL: whether there is a model")
@pytest.mark.parametrize(("tier", "count"), [(20, 1000), (50, 60), (75, 8)])
def test_of_every_two_seeds_one_has_a_model(tier: int, count: int, compared: Compared) -> None:
    """Check either split; each answer is right, as python-sat says."""
    puzzle = ThresholdSATPuzzle(tier)
    for split in ("train", "test"):
        kinds = []
        for seed in range(count // 2):
            instance = puzzle.generate(seed, split)
            clauses, answer = clause_tuples(instance), puzzle.solve(instance)
            kinds.append(satisfiable(clauses))
            assert kinds[-1] == bool(instance.satisfiable) == (answer != "UNSATISFIABLE")
            assert puzzle.verify(instance, answer).score == 1
            if kinds[-1]:
                assert not misses(clauses, [int(word) > 0 for word in answer.split()])
            compared(puzzle, instance)
        assert all(kinds[k] != kinds[k + 1] for k in range(0, len(kinds), 2))
        assert len({tuple(kinds[k : k + 2]) for k in range(0, len(kinds), 2)}) == 2 or count < 10, (
            "in either order"
        )


def test_shares_depend_on_the_keys_alone() -> None:
    """Check that each block of seeds has all shares once, in a uniform order.

    Earlier draws do not matter.
    """
    orders = []
    for block in range(600):
        shares = []
        for seed in range(3 * block, 3 * block + 3):
            dice = Dice(5, seed, 1)
            shares.append(dice.share(3))
            dice.word()
            assert dice.share(3) == shares[-1]
        orders.append(tuple(shares))
    assert all(sorted(order) == [0, 1, 2] for order in orders)
    counts = [orders.count(order) for order in set(orders)]
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > 1e-3
    assert [Dice(5, seed, 0).share(2) for seed in range(50)] != [
        Dice(5, seed, 1).share(2) for seed in range(50)
    ]
    assert [Dice(5, seed).share(2) for seed in range(50)] != [
        Dice(6, seed).share(2) for seed in range(50)
    ]


def test_nothing_is_planted() -> None:
    """Signs are balanced in both kinds, and the sizes are those of the crossover."""
    for tier, clauses in ((20, 93), (50, 217), (75, 323)):
        assert ThresholdSATPuzzle(tier).clauses == clauses
    puzzle, signs = ThresholdSATPuzzle(20), {0: 0, 1: 0}
    for seed in range(400):
        instance = puzzle.generate(seed)
        clauses = clause_tuples(instance)
        assert len(clauses) == 93
        assert all(len({abs(x) for x in clause}) == 3 for clause in clauses)
        signs[int(instance.satisfiable)] += sum(x > 0 for clause in clauses for x in clause)
    for kind in (0, 1):
        assert stats.binomtest(signs[kind], 200 * 93 * 3, 0.5).pvalue > 1e-3


def test_the_verifier_takes_any_model_and_the_word_only_where_there_is_none() -> None:
    puzzle = ThresholdSATPuzzle(8)
    rng = random.Random(0)
    counts = {True: 0, False: 0}
    for seed in range(150):
        instance = puzzle.generate(seed)
        clauses = clause_tuples(instance)
        kind = satisfiable(clauses)
        verdict = puzzle.verify(instance, "UNSATISFIABLE")
        assert verdict.valid
        assert verdict.solved == verdict.optimal == (verdict.score == 1) != kind
        for a in range(256) if seed < 80 else rng.sample(range(256), 10):
            true = [a >> v & 1 == 1 for v in range(8)]
            verdict = puzzle.verify(
                instance, " ".join(str(v if t else -v) for v, t in enumerate(true, 1))
            )
            assert verdict.valid
            assert (verdict.score == 1) == verdict.solved == (not misses(clauses, true))
            counts[verdict.solved] += 1
    assert min(counts.values()) > 20


@pytest.mark.parametrize(
    "answer", ["", "unsatisfiable", "UNSAT", "UNSATISFIABLE.", "UNSATISFIABLE 1", "NO", "1 2", "0"]
)
def test_what_is_no_answer(answer: str) -> None:
    puzzle = ThresholdSATPuzzle(8)
    for seed in range(4):
        assert not puzzle.verify(puzzle.generate(seed), answer).valid


# -- the game --------------------------------------------------------------------------------------


@cache
def game(tier: str) -> ThresholdSAT:
    """Return a task of its own, with a bank of 24 formulas a split."""
    task_card = card("ThresholdSAT-v0")
    task = ThresholdSAT(task_card, difficulty=task_card.difficulties[tier], dtype="float32")
    task.bank_size = task._flips.bank_size = 24
    assert len(task.bank.plans) == 48
    return task


def params_of(task: ThresholdSAT, number: int) -> Params:
    return Params(
        *jax.tree.map(
            lambda column: jnp.asarray(column[number]), (task.bank.instances, task.bank.plans)
        )
    )


@pytest.mark.parametrize("tier", ["easy", "medium"])
def test_the_game_in_plain_python(tier: str) -> None:
    """Random flips, and a claim at the end of some: observation, mask, reward, end and success."""
    task, rng, key = game(tier), random.Random(0), jax.random.key(0)
    n, m = task.puzzle.variables, task.puzzle.clauses
    ends = {"right": 0, "wrong": 0, "used up": 0}

    @jax.jit
    def move(state: Any, action: jax.Array, params: Params) -> Any:
        after = task.transition(state, action, key, params)
        views = (
            task.observation(after, key, params),
            task.terminal(after, key, params),
            task.action_mask(after, params),
        )
        return (
            after,
            task.reward(state, action, after, key, params),
            task.info(after, params),
            *views,
        )

    for number in range(24):
        clauses = clause_tuples(task.puzzle.generate(number))
        params = params_of(task, number)
        state = task.initial(jax.random.key(number), params)
        mask = task.action_mask(state, params)
        true = [bool(x) for x in np.asarray(task.observation(state, key, params))[:n] > 0]
        first = len(misses(clauses, true))
        assert first > 0
        total = 0.0
        claim_at = rng.choice([1, 5, 20, task.max_flips + 1]) if number else task.max_flips + 1
        for step in range(1, task.max_flips + 1):
            left = misses(clauses, true)
            legal = sorted({abs(x) - 1 for clause in left for x in clause})
            assert np.flatnonzero(mask).tolist() == [*legal, n]
            action = n if step == claim_at else rng.choice(legal)
            if action < n:
                true[action] ^= True
            state, reward, info, observation, over, mask = move(state, jnp.int32(action), params)
            now = len(misses(clauses, true))
            total += float(reward)
            rightly = action == n and not satisfiable(clauses)
            assert bool(info["success"]) == (now == 0 or rightly)
            assert int(info["unsatisfied"]) == now
            assert bool(over) == (now == 0 or action == n or step == task.max_flips)
            assert float(observation[-1]) == pytest.approx(1 - step / task.max_flips)
            assert task.observation_space.contains(np.asarray(observation))
            if over:
                bonus = 1 + now / m if rightly or now == 0 else 0
                assert total == pytest.approx((first - now) / m + bonus, abs=1e-5)
                if rightly or now == 0:
                    ends["right"] += 1
                else:
                    ends["wrong" if action == n else "used up"] += 1
                break
    assert min(ends.values()) >= 1, ends


@pytest.mark.parametrize("tier", ["easy", "medium", "hard"])
def test_the_reference_decides_every_formula(tier: str) -> None:
    """Play formulas of both kinds, and compare their returns with the formula.

    A model is at most n flips away, and a solved episode returns 1 plus the fraction unsatisfied.
    """
    task = game(tier)
    record = play(task, reference_player(task), range(200))
    assert record.info["success"].all()
    assert record.length.max() <= task.puzzle.variables
    at_once = record.length == 1
    assert 60 < at_once.sum() < 140
    clauses = (record.total - 1) * task.puzzle.clauses
    np.testing.assert_allclose(clauses, np.round(clauses), atol=2e-3)
    assert clauses.min() > 0.5
    assert record.total.mean() == pytest.approx(task.card.optimum, abs=0.02)


def test_claiming_at_once_is_right_for_half_of_them() -> None:
    task = game("easy")
    satisfiable_ones = np.asarray(task.bank.instances.satisfiable)
    assert satisfiable_ones[:24].sum() == satisfiable_ones[24:].sum() == 12


def test_the_words_of_the_game() -> None:
    task, key = game("easy"), jax.random.key(0)
    kinds = set()
    for number in range(2):
        params = params_of(task, number)
        start = task.initial(key, params)
        assert "c You may also say: unsatisfiable" in task.describe(start, params)
        assert f"c Flips left: {task.max_flips}" in task.describe(start, params)
        claim = task.parse(" Unsatisfiable\n", start, params)
        assert int(claim) == 20
        claimed = task.transition(start, claim, key, params)
        assert "c Said: unsatisfiable." in task.describe(claimed, params)
        kinds.add(task.why_over(claimed, params, task.info(claimed, params)))
        flip = task.parse("flip 7", start, params)
        assert int(flip) == 6
        assert "is in no unsatisfied clause" in task.why_illegal(flip, start, params)
        assert "80 flips are used up" in task.why_over(start, params, task.info(start, params))
        flipped = task.transition(start, jnp.asarray(flip), key, params)
        assert (task.draw(flipped, params) != task.draw(start, params)).any()
        for text in ("", "sat", "flip 21", "unsat"):
            with pytest.raises(ValueError, match="expected 'flip V'"):
                task.parse(text, start, params)
    assert kinds == {"the formula has a model", "there is no model indeed"}


@pytest.mark.parametrize("tier", [5, 81, 20.5])
def test_other_tiers_are_refused(tier: float) -> None:
    with pytest.raises(ValueError, match="number of variables, 6 to 80"):
        ThresholdSATPuzzle(tier)
