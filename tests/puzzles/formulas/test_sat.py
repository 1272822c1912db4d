"""SAT-v0 against python-sat, plain Python and exhaustive enumeration."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pysat.solvers import Cadical153
from scipy import stats

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Uniform
from rlbench_suite.core.episode import ContextSource, advance, begin, seed_key
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.core.task_card import load
from rlbench_suite.envs.puzzles.formulas.clause_picture import UNSATISFIED_PAPER_COLOUR
from rlbench_suite.envs.puzzles.formulas.dimacs import (
    Clause,
    clauses_of,
    formula_of,
    from_dimacs,
    to_dimacs,
)
from rlbench_suite.envs.puzzles.formulas.dpll import DPLL
from rlbench_suite.envs.puzzles.formulas.formula import (
    AGREEMENTS,
    Formula,
    agreement_law,
    all_bits,
    clause_count,
    judge,
    planted_formula,
)
from rlbench_suite.envs.puzzles.formulas.sat import SAT, State
from rlbench_suite.envs.puzzles.formulas.truth_tables import models_of

TIERS = ("easy", "medium", "hard")


@cache
def sampler(task: SAT) -> Callable[[jax.Array, jax.Array], Formula]:
    return jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))


def formulas(task: SAT, count: int, split: Split = Split.TRAIN, seed: int = 0) -> Formula:
    """Return a batch of formulas, as NumPy arrays."""
    keys = jax.random.split(jax.random.key(seed), 3000)
    return Formula(*(np.asarray(side)[:count] for side in sampler(task)(keys, jnp.int32(split))))


def split_batch(batch: Formula) -> list[Formula]:
    return [Formula(*pair) for pair in zip(*batch, strict=True)]


def model_count(formula: Formula) -> int:
    """Count the models by truth tables."""
    return models_of(clauses_of(formula), formula.positive.shape[-1]).bit_count()


def unsatisfied_clauses(clauses: list[Clause], assignment: int) -> list[Clause]:
    """Check the definition, in plain Python."""
    return [c for c in clauses if not any((assignment >> abs(x) - 1 & 1) == (x > 0) for x in c)]


def state_of(task: SAT, formula: Formula, assignment: int) -> State:
    return State(jnp.uint32(assignment), judge(formula, jnp.uint32(assignment), task.every_clause))


@pytest.fixture(params=TIERS)
def sat(request: pytest.FixtureRequest) -> SAT:
    return card("SAT-v0").build(difficulty=request.param)


@pytest.fixture
def medium() -> SAT:
    return card("SAT-v0").build()


# -- the formulas ----------------------------------------------------------------------------------


def test_a_formula_has_three_distinct_variables_a_clause(sat: SAT) -> None:
    for formula in split_batch(formulas(sat, 50)):
        clauses = clauses_of(formula)
        assert len(clauses) == sat.clauses == clause_count(sat.variables)
        assert all(len({abs(x) for x in clause}) == 3 for clause in clauses)


def test_sizes_are_at_the_threshold() -> None:
    assert [(n, clause_count(n)) for n in (10, 20, 32)] == [(10, 42), (20, 86), (32, 136)]


def test_every_formula_has_a_model(sat: SAT) -> None:
    for formula in split_batch(formulas(sat, 200)):
        with Cadical153(bootstrap_with=clauses_of(formula)) as solver:
            assert solver.solve()


def test_model_counts_are_exact() -> None:
    small = card("SAT-v0").build(difficulty="easy")
    for formula in split_batch(formulas(small, 30)):
        clauses = clauses_of(formula)
        by_force = sum(not unsatisfied_clauses(clauses, a) for a in range(2**small.variables))
        with Cadical153(bootstrap_with=clauses) as solver:
            by_solver = sum(1 for _ in solver.enum_models())
        assert model_count(formula) == by_force == by_solver > 0


def test_model_counts_at_twenty_variables(medium: SAT) -> None:
    for formula in split_batch(formulas(medium, 10)):
        with Cadical153(bootstrap_with=clauses_of(formula)) as solver:
            assert model_count(formula) == sum(1 for _ in solver.enum_models())


def test_an_unsatisfiable_formula_has_no_model() -> None:
    formula = formula_of([signs for signs in itertools.product((1, -1), (2, -2), (3, -3))], 3)
    assert model_count(formula) == 0
    assert int(jax.jit(DPLL().initial)(formula)) == 0


def with_hidden_models(split: Split, count: int) -> tuple[list[Formula], list[int]]:
    """Return formulas of 20 variables and the models they were planted with.

    The model is the first word of a formula's draw.
    """
    hidden = []
    bits = jax.random.bits

    def overheard(key: jax.Array, shape: tuple[int, ...], dtype: str) -> jax.Array:
        hidden.append(bits(key, shape, dtype))
        return hidden[-1]

    def draw(key: jax.Array) -> tuple[Formula, jax.Array]:
        return planted_formula(key, 20, clause_count(20), jnp.int32(split)), hidden.pop()[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax.random, "bits", overheard)
        batch, models = jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(3), count))
    return split_batch(Formula(*map(np.asarray, batch))), np.asarray(models).tolist()


@pytest.mark.parametrize("split", Split)
def test_planting_is_quiet(split: Split) -> None:
    """Check that agreement patterns with the hidden model follow q**t.

    Half of the literals agree with the model: E[t] = 3/2 exactly.

    So a vote by the signs of each variable finds the hidden value half of the time, as chance does.
    """
    law = agreement_law()
    assert law @ [int(p).bit_count() for p in AGREEMENTS] == pytest.approx(1.5, abs=1e-12)
    patterns = dict.fromkeys(AGREEMENTS.tolist(), 0)
    right = votes = 0
    for formula, model in zip(*with_hidden_models(split, 1500), strict=True):
        balance = [0] * 20
        for clause in clauses_of(formula):
            agrees = [(model >> abs(x) - 1 & 1) == (x > 0) for x in clause]
            patterns[sum(agree << i for i, agree in enumerate(agrees))] += 1
            for x, agree in zip(clause, agrees, strict=True):
                balance[abs(x) - 1] += 1 if agree else -1
        right += sum(b > 0 for b in balance)
        votes += sum(b != 0 for b in balance)
    assert stats.chisquare(list(patterns.values()), law * sum(patterns.values())).pvalue > 1e-3
    assert stats.binomtest(right, votes, 0.5).pvalue > 1e-3


@pytest.mark.parametrize("split", Split)
def test_signs_and_variables_are_uniform(medium: SAT, split: Split) -> None:
    batch = formulas(medium, 3000, split)
    occurrences = np.stack([np.bitwise_count(side).sum(axis=(0, 1), dtype=int) for side in batch])
    assert occurrences.sum() == 3000 * 3 * medium.clauses
    assert stats.chisquare(occurrences.ravel()).pvalue > 1e-3


# -- the split -------------------------------------------------------------------------------------


def odd_variables(formula: Formula) -> int:
    """Count the variables that occur an odd number of times."""
    occurrences = np.bitwise_count(formula.positive | formula.negative).sum(0)
    return int((occurrences % 2).sum())


@pytest.mark.parametrize("n", [8, 14, 20, 32])
def test_splits_never_overlap(n: int) -> None:
    task = card("SAT-v0").build(difficulty=n)
    for split in Split:
        for seed in range(3):
            batch = formulas(task, 2000, split, seed)
            occurrences = np.bitwise_count(batch.positive | batch.negative).sum(1)
            assert ((occurrences % 2).sum(1) % 4 == 2 * split).all()


def test_the_split_is_kept_by_every_disguise(medium: SAT) -> None:
    rng = np.random.default_rng(0)
    n = medium.variables
    for formula in split_batch(formulas(medium, 20)):
        names, signs = rng.permutation(n) + 1, rng.choice([-1, 1], n)
        clauses = [
            [int(np.sign(x) * signs[abs(x) - 1] * names[abs(x) - 1]) for x in c]
            for c in clauses_of(formula)
        ]
        rng.shuffle(clauses)
        assert odd_variables(formula_of(clauses, n)) == odd_variables(formula)


def test_the_splits_are_equally_hard(medium: SAT) -> None:
    """Check that the number of models does not tell the split.

    The last of 86 clauses moves a formula between the splits.
    """
    train, test = (
        [model_count(f) for f in split_batch(formulas(medium, 150, split, 7))] for split in Split
    )
    assert stats.ks_2samp(train, test).pvalue > 1e-3


# -- the game --------------------------------------------------------------------------------------


def test_every_reward_mask_and_observation_is_right(sat: SAT) -> None:
    """Random legal walks, recomputed clause by clause."""
    n, m = sat.variables, sat.clauses
    source, limit = ContextSource(jnp.int32(Split.TEST), jnp.int32(-1)), jnp.int32(60)
    start = jax.jit(lambda seed: begin(sat, seed, jnp.int32(0), source))
    move = jax.jit(lambda episode, action: advance(sat, episode, action, limit))
    rng = np.random.default_rng(1)
    for seed in range(8):
        episode, step = start(seed_key(seed))
        clauses = clauses_of(episode.params)
        assignment = int(episode.state.assignment)
        left = first = len(unsatisfied_clauses(clauses, assignment))
        assert left > 0
        total = 0.0
        for _ in range(40):
            makes, breaks = brute_force(clauses, assignment, n)
            expected = [2 * (assignment >> v & 1) - 1 for v in range(n)]
            expected += [c / (1 + c) for c in makes + breaks] + [left / m]
            np.testing.assert_allclose(step.observation, expected, atol=1e-6)
            assert sat.observation_space.contains(np.asarray(step.observation))
            np.testing.assert_array_equal(step.info["action_mask"], np.array(makes) > 0)
            assert int(step.info["unsatisfied"]) == left
            action = rng.choice(np.flatnonzero(step.info["action_mask"]))
            episode, step = move(episode, jnp.int32(action))
            assignment ^= 1 << int(action)
            assert int(episode.state.assignment) == assignment
            now = len(unsatisfied_clauses(clauses, assignment))
            reward = (left - now) / m + (now == 0)
            # A few roundings of float32.
            assert float(step.reward) == pytest.approx(reward, abs=1e-6)
            assert sat.reward_space.contains(np.asarray(step.reward))
            assert bool(step.terminated) == bool(step.info["success"]) == (now == 0)
            total, left = total + reward, now
            if now == 0:
                break
        assert total == pytest.approx((left == 0) + (first - left) / m)


def brute_force(clauses: list[Clause], assignment: int, n: int) -> tuple[list[int], list[int]]:
    """Make and break counts: compare the unsatisfied clauses before and after each flip."""
    before = {i for i, c in enumerate(clauses) if unsatisfied_clauses([c], assignment)}
    makes, breaks = [], []
    for v in range(n):
        after = {i for i, c in enumerate(clauses) if unsatisfied_clauses([c], assignment ^ 1 << v)}
        makes.append(len(before - after))
        breaks.append(len(after - before))
    return makes, breaks


def test_an_illegal_flip_is_refused(medium: SAT) -> None:
    source = ContextSource(jnp.int32(Split.TRAIN), jnp.int32(-1))
    start = jax.jit(lambda seed: begin(medium, seed, jnp.int32(0), source))
    move = jax.jit(lambda episode, action: advance(medium, episode, action, jnp.int32(60)))
    refused = 0
    for seed in range(20):
        episode, step = start(seed_key(seed))
        for action in np.flatnonzero(~np.asarray(step.info["action_mask"])):
            after, answer = move(episode, jnp.int32(action))
            jax.tree.map(np.testing.assert_array_equal, after.state, episode.state)
            assert bool(answer.info["invalid_action"])
            assert float(answer.reward) == 0
            assert not answer.terminated
            assert int(after.t) == 1
            refused += 1
    assert refused > 20


def test_from_every_assignment_some_legal_flip_is_a_step_nearer_to_each_model() -> None:
    """Focused search loses no shortest path: all assignments, all models, of small formulas."""
    small = card("SAT-v0").build(difficulty=8)
    n = small.variables
    everything = jnp.arange(2**n, dtype=jnp.uint32)
    masks = jax.jit(
        lambda formula: jax.vmap(
            lambda a: small.action_mask(State(a, judge(formula, a, small.every_clause)), formula)
        )(everything)
    )
    for formula in split_batch(formulas(small, 20)):
        legal = np.asarray(masks(formula)) @ (1 << np.arange(n))
        models = np.flatnonzero(legal == 0)
        assert len(models) == model_count(formula)
        for model in models:
            differs = np.arange(2**n) ^ model
            assert ((legal & differs != 0) | (legal == 0)).all()


def test_an_episode_never_starts_solved() -> None:
    """Check starts on formulas of which a uniform assignment often is a model.

    Such a formula has many models because its clauses are all the same.
    """
    easy = card("SAT-v0").build(difficulty=8)
    formula = formula_of([(-2, 5, 7)] * easy.clauses, 8)
    starts = jax.jit(jax.vmap(easy.initial, in_axes=(0, None)))(
        jax.random.split(jax.random.key(0), 500), formula
    )
    assert all(unsatisfied_clauses(clauses_of(formula), int(a)) for a in starts.assignment)
    assert not jax.vmap(easy.terminal, in_axes=(0, None, None))(
        starts, jax.random.key(0), formula
    ).any()


def test_the_optimum_is_nine_eighths(sat: SAT) -> None:
    """A solved episode earns 1 plus the fraction of clauses unsatisfied at first: 1/8 expected."""
    record = play(sat, DPLL(), range(1000))
    assert record.info["success"].all()
    assert record.terminated.all()
    assert record.length.max() <= sat.variables
    error = record.total.std() / np.sqrt(1000)
    assert abs(record.total.mean() - sat.card.optimum) < 4 * error


def test_the_reference_is_the_one_on_the_card(medium: SAT) -> None:
    assert isinstance(reference_player(medium), DPLL)
    assert load(medium.card.entry_point) is SAT


def test_random_play_is_far_below(medium: SAT) -> None:
    record = play(medium, Uniform(medium.action_space), range(300))
    assert record.info["success"].mean() < 0.2
    assert record.total.mean() < 0.5


# -- difficulty, text, pictures --------------------------------------------------------------------


@pytest.mark.parametrize("num_variables", [7, 9, 21, 34, 20.5, -2])
def test_other_sizes_are_refused(num_variables: float) -> None:
    with pytest.raises(ValueError, match="even number from 8 to 32"):
        card("SAT-v0").build(difficulty=num_variables)


def test_dimacs_round_trip(sat: SAT) -> None:
    for formula in split_batch(formulas(sat, 20)):
        again = sat.params_from_dimacs(to_dimacs(formula))
        jax.tree.map(np.testing.assert_array_equal, again, formula)
        assert to_dimacs(again) == to_dimacs(formula)


def test_dimacs_as_others_write_it() -> None:
    text = "c a comment\np  cnf 4 3\n1 -2\n 0 -4 3 2 0\nc another\n-1 0\n%\n0\n"
    assert clauses_of(from_dimacs(text)) == [(1, -2), (2, 3, -4), (-1,)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no problem line"),
        ("1 2 0", "line 1: expected 'p cnf VARIABLES CLAUSES' before"),
        ("p cnf 3", "line 1: expected 'p cnf VARIABLES CLAUSES', got 'p cnf 3'"),
        ("p dnf 3 1\n1 0", "expected 'p cnf"),
        ("p cnf 3 1\np cnf 3 1", "line 2: a second problem line"),
        ("p cnf 3 1\n1 x 0", "line 2: expected a literal .* got 'x'"),
        ("p cnf 3 1\n1 ² 0", "expected a literal"),
        ("p cnf 3 1\n1 2", "not ended by 0"),
        ("p cnf 3 2\n1 2 0", "announces 2 clauses, 1 follow"),
        ("p cnf 3 1\n1 4 0", "literal 4 is not in 1..3"),
        ("p cnf 3 1\n1 -1 0", "holds a variable twice"),
        ("p cnf 3 1\n0", "clause 1 is empty"),
        ("p cnf 40 1\n1 0", "1 to 32 variables, got 40"),
    ],
)
def test_bad_dimacs_is_refused_with_a_reason(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_dimacs(text)


def test_a_formula_of_another_size_is_not_playable(medium: SAT) -> None:
    with pytest.raises(ValueError, match="20 variables and 86 clauses, the text has 3 and 1"):
        medium.params_from_dimacs("p cnf 3 1\n1 2 3 0")


def test_the_text_view_says_everything(medium: SAT) -> None:
    formula = split_batch(formulas(medium, 1))[0]
    state = state_of(medium, formula, 12345)
    text = medium.describe(state, formula)
    instance = "\n".join(line for line in text.splitlines() if line[:1] != "v")
    jax.tree.map(np.testing.assert_array_equal, from_dimacs(instance), formula)
    literals = [
        int(word) for line in text.splitlines() if line[:1] == "v" for word in line.split()[1:-1]
    ]
    assert literals == [v if 12345 >> v - 1 & 1 else -v for v in range(1, 21)]
    for clause in unsatisfied_clauses(clauses_of(formula), 12345):
        assert f"c unsatisfied: {' '.join(map(str, clause))}\n" in text
    flips = text.splitlines()[-1].removeprefix("c You may flip: ").split()
    assert [int(v) - 1 for v in flips] == np.flatnonzero(
        medium.action_mask(state, formula)
    ).tolist()


@pytest.mark.parametrize(("text", "action"), [("7", 6), ("flip 7", 6), (" FLIP  20\n", 19)])
def test_answers(medium: SAT, text: str, action: int) -> None:
    formula = split_batch(formulas(medium, 1))[0]
    assert medium.parse(text, state_of(medium, formula, 0), formula) == action


@pytest.mark.parametrize(
    "text", ["", "0", "21", "flip", "flip -3", "7 8", "7.0", "flip ٣", "I flip 7", "9" * 5000]
)
def test_answers_that_are_none(medium: SAT, text: str) -> None:
    formula = split_batch(formulas(medium, 1))[0]
    with pytest.raises(ValueError, match=r"expected 'flip V' with a variable V from 1 to 20, got"):
        medium.parse(text, state_of(medium, formula, 0), formula)


def test_why(medium: SAT) -> None:
    formula = split_batch(formulas(medium, 1))[0]
    state = state_of(medium, formula, 12345)
    legal = np.flatnonzero(medium.action_mask(state, formula))
    illegal = next(v for v in range(20) if v not in legal)
    reason = medium.why_illegal(np.int64(illegal), state, formula)
    assert reason.startswith(
        f"variable {illegal + 1} is in no unsatisfied clause; those that are: {legal[0] + 1}"
    )
    assert medium.why_over(state, formula, {}) == "every clause is satisfied"


def test_the_picture_shows_progress(sat: SAT) -> None:
    formula = split_batch(formulas(sat, 1))[0]
    model = int(jax.jit(DPLL().initial)(formula))
    assert not unsatisfied_clauses(clauses_of(formula), model)
    alarm = np.array([int(UNSATISFIED_PAPER_COLOUR[k : k + 2], 16) for k in (1, 3, 5)])
    for assignment, expects_alarm in ((model, False), (model ^ 0b1011, None)):
        image = sat.draw(state_of(sat, formula, assignment), formula)
        assert image.shape == sat.picture_shape
        assert image.dtype == np.uint8
        has_alarm = bool((image == alarm).all(-1).any())
        assert has_alarm == bool(unsatisfied_clauses(clauses_of(formula), assignment))
        assert expects_alarm is None or has_alarm == expects_alarm


def test_words() -> None:
    assert [hex(w) for w in all_bits(86)] == ["0xffffffff", "0xffffffff", "0x3fffff"]
    assert [hex(w) for w in all_bits(64)] == ["0xffffffff", "0xffffffff"]
