"""SelfReference-v0: prompts are read back as English, and solved by trying all assignments."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared
from fill_tasks import play_plans
from scipy import stats

from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.logic.self_reference import Instance, SelfReferencePuzzle
from rlbench_suite.envs.puzzles.shared.grid_filling import GridState
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
NAME = "SelfReference-v0"
TIERS = {"easy": 3, "medium": 6, "hard": 9}
Values = Sequence[bool]

GROUP = (
    r"(statements \d+ to \d+|the \d+ statements|the odd-numbered statements|the even-numbered "
    r"statements)"
)
COUNT = rf"(\d+) of {GROUP} (?:is|are) true"
MEANINGS: dict[str, Callable[..., bool]] = {
    r"statement (\d+) is true": lambda v, a: v[a],
    r"statement (\d+) is false": lambda v, a: not v[a],
    r"statements (\d+) and (\d+) are both true or both false": lambda v, a, b: v[a] == v[b],
    r"one of statements (\d+) and (\d+) is true and the other false": lambda v, a, b: v[a] != v[b],
    r"statements (\d+) and (\d+) are both true": lambda v, a, b: v[a] and v[b],
    r"statements (\d+) and (\d+) are both false": lambda v, a, b: not v[a] and not v[b],
    r"at least one of statements (\d+) and (\d+) is true": lambda v, a, b: v[a] or v[b],
    r"at least one of statements (\d+) and (\d+) is false": lambda v, a, b: not v[a] or not v[b],
    rf"none of {GROUP} is true": lambda v, those: not any(v[i] for i in those),
    rf"exactly {COUNT}": lambda v, k, those: sum(v[i] for i in those) == k,
    rf"at least {COUNT}": lambda v, k, those: sum(v[i] for i in those) >= k,
    rf"at most {COUNT}": lambda v, k, those: sum(v[i] for i in those) <= k,
    rf"the number of true ones among {GROUP} is even": lambda v, those: (
        sum(v[i] for i in those) % 2 == 0
    ),
    rf"the number of true ones among {GROUP} is odd": lambda v, those: (
        sum(v[i] for i in those) % 2 == 1
    ),
}
"""Meanings of English statements, written here once more; statements are counted from 1."""


def meaning_of(word: str, count: int) -> int | list[int]:
    """Return a number, or the statements that a group's name means."""
    if word.isdigit():
        return int(word)
    every = range(1, count + 1)
    if word.startswith("statements"):
        first, last = map(int, re.findall(r"\d+", word))
        return [k for k in every if first <= k <= last]
    if "numbered" in word:
        return [k for k in every if k % 2 == ("odd" in word)]
    assert word == f"the {count} statements"
    return list(every)


def meanings_of(prompt: str) -> list[Callable[[Values], bool]]:
    """Return the statements of a prompt as tests of the truth values.

    The first truth value is not used.
    """
    lines = re.findall(r"^(\d+)\. (.*)\.$", prompt, re.MULTILINE)
    assert [int(number) for number, _ in lines] == list(range(1, len(lines) + 1))
    tests = []
    for _, words in lines:
        ((match, means),) = [
            (m, f)
            for form, f in MEANINGS.items()
            if (m := re.fullmatch(form, words, re.IGNORECASE))
        ]
        about = [meaning_of(word, len(lines)) for word in match.groups()]
        tests.append(lambda v, means=means, about=about: bool(means(v, *about)))
    return tests


def fits(tests: list[Callable[[Values], bool]], values: Values) -> bool:
    return all(value == test((False, *values)) for value, test in zip(values, tests, strict=True))


def models(prompt: str) -> list[str]:
    """Return every assignment that fits, as answers are written."""
    tests = meanings_of(prompt)
    every = itertools.product((True, False), repeat=len(tests))
    return [" ".join("FT"[value] for value in values) for values in every if fits(tests, values)]


@pytest.mark.engine("all assignments, from the prompt: one fits")
@pytest.mark.parametrize(("statements", "count"), [(3, 500), (4, 600), (6, 150), (9, 8)])
def test_exactly_one_assignment_fits_what_the_prompt_says(
    statements: int, count: int, compared: Compared
) -> None:
    puzzle = SelfReferencePuzzle(statements)
    for seed in range(count):
        instance = puzzle.generate(seed, ("train", "test")[seed % 2])
        assert models(puzzle.prompt(instance)) == [puzzle.solve(instance)]
        compared(puzzle, instance)


@pytest.mark.parametrize("statements", [3, 4, 6])
def test_the_verifier_takes_what_fits_and_nothing_else(statements: int) -> None:
    puzzle = SelfReferencePuzzle(statements)
    for seed in range(30):
        instance = puzzle.generate(seed)
        right = models(puzzle.prompt(instance))
        for letters in itertools.product("TF", repeat=statements):
            verdict = puzzle.verify(instance, " ".join(letters))
            assert verdict.valid
            assert verdict.solved == (" ".join(letters) in right)
            assert bool(verdict.reason) != verdict.solved


def test_a_verdict_follows_the_rules_where_several_assignments_fit() -> None:
    """Judge two statements that call each other true and a third that calls them alike.

    This is no generated puzzle.
    """
    puzzle = SelfReferencePuzzle(3)
    instance = instance_saying([(0b010, 0b10), (0b001, 0b10), (0b011, 0b101)])
    assert puzzle.verify(instance, "T T T").solved
    assert puzzle.verify(instance, "F F T").solved
    reason = puzzle.verify(instance, "T F T").reason
    assert reason == "statement 1 is called true, and what it says is not the case"
    assert puzzle.verify(instance, "T T F").reason.startswith(
        "statement 3 is called false, and what it says is"
    )
    for malformed in ("T T", "T T X", "TTT", "t t t", "T T T\nT T T", "T, T, T", "1 1 1"):
        assert not puzzle.verify(instance, malformed).valid


def instance_saying(statements: list[tuple[int, int]]) -> Instance:
    about, counts = zip(*statements, strict=True)
    return Instance(
        np.zeros(len(about), np.int8), np.array(about, np.int16), np.array(counts, np.int16)
    )


def test_every_kind_of_statement_comes_up_and_is_as_often_false_as_true() -> None:
    """The wording gives nothing away."""
    puzzle = SelfReferencePuzzle(7)
    counts: Counter[tuple[str, str]] = Counter()
    for seed in range(600):
        instance = puzzle.generate(seed)
        prompt, values = puzzle.prompt(instance), puzzle.solve(instance).split()
        sentences = re.findall(r"^\d+\. (.*)\.$", prompt, re.MULTILINE)
        for value, words in zip(values, sentences, strict=True):
            counts[
                next(form for form in MEANINGS if re.fullmatch(form, words, re.IGNORECASE)), value
            ] += 1
    for value in "TF":  # "none of" says "exactly 0 of" in other words
        counts[rf"exactly {COUNT}", value] += counts[rf"none of {GROUP} is true", value]
    for form in MEANINGS.keys() - {rf"none of {GROUP} is true"}:
        true, false = counts[form, "T"], counts[form, "F"]
        assert true + false > 40, form
        assert 0.3 < true / (true + false) < 0.7, (form, true, false)


@pytest.mark.parametrize("statements", [4, 6])
def test_all_assignments_are_equally_likely(statements: int) -> None:
    puzzle = SelfReferencePuzzle(statements)
    answers = [puzzle.solve(puzzle.generate(seed)).replace(" ", "") for seed in range(1500)]
    true = Counter(answer.count("T") for answer in answers)
    expected = [stats.binom.pmf(k, statements, 0.5) * len(answers) for k in range(statements + 1)]
    assert stats.chisquare([true[k] for k in range(statements + 1)], expected).pvalue > 1e-3
    for place in range(statements):
        assert (
            stats.binomtest(sum(answer[place] == "T" for answer in answers), len(answers)).pvalue
            > 1e-4
        )


def test_a_contradiction_has_no_solution() -> None:
    with pytest.raises(ValueError, match="contradict"):
        # The liar.
        SelfReferencePuzzle(3).solve(instance_saying([(0b001, 0b01), (0b001, 0b10), (0b001, 0b10)]))
    with pytest.raises(ValueError, match="3 to 12, got 2"):
        SelfReferencePuzzle(2)


def test_tiers_are_ordered_by_difficulty() -> None:
    puzzles = map(SelfReferencePuzzle, TIERS.values())
    means = [
        np.mean([puzzle.difficulty(puzzle.generate(seed)) for seed in range(100)])
        for puzzle in puzzles
    ]
    assert 2 * means[0] < means[1] < means[2] / 2


@pytest.mark.parametrize("statements", TIERS.values())
def test_canonical_forgets_numbers_and_nothing_else(statements: int) -> None:
    puzzle, dice = SelfReferencePuzzle(statements), Dice(1, 2)
    forms = set()
    for seed in range(100):
        instance = puzzle.generate(seed)
        about, counts = instance.about.tolist(), instance.counts.tolist()
        form = puzzle.canonical(instance)
        forms.add(form)
        for _ in range(4):
            order = dice.shuffled(range(statements))
            place = {old: new for new, old in enumerate(order)}
            sets = [
                sum(1 << place[k] for k in range(statements) if about[old] >> k & 1)
                for old in order
            ]
            renumbered = instance_saying(
                [(members, counts[old]) for members, old in zip(sets, order, strict=True)]
            )
            assert puzzle.canonical(renumbered) == form
        every_count = (2 << about[0].bit_count()) - 1
        negated = instance_saying(
            [(about[0], every_count ^ counts[0]), *zip(about[1:], counts[1:], strict=True)]
        )
        assert puzzle.canonical(negated) != form
    assert len(forms) > (80 if statements == 3 else 95)


# -- the task --------------------------------------------------------------------------------------


def completions(values: Sequence[int]) -> Iterator[tuple[bool, ...]]:
    """Return all assignments that agree with some values: 0 unknown, 1 true, 2 false."""
    return itertools.product(*(((True, False), (True,), (False,))[value] for value in values))


@pytest.mark.parametrize("tier", ["easy", "medium"])
def test_mask_and_success_are_those_of_the_words(tier: str) -> None:
    """Check that a value is forbidden exactly where some statement refutes it.

    The statement has the other value in every completion, whether or not the rest of the completion
    fits. Partial assignments are tried in one batch.
    """
    task: Any = card(NAME).build(difficulty=tier)
    puzzle, dice, n = task.puzzle, Dice(3, 4), TIERS[tier]
    instances = [puzzle.generate(seed) for seed in range(120)]
    cells = np.array([[dice.below(3) for _ in range(n)] for _ in instances], np.int8)
    cells[::3] = [
        [1 + "TF".index(x) for x in puzzle.solve(instance).split()] for instance in instances[::3]
    ]
    cells[1::3] = np.where(cells[1::3] == 0, 1, cells[1::3])
    batch = jax.tree.map(jnp.asarray, Instance(*map(np.stack, zip(*instances, strict=True))))
    allowed = np.asarray(jax.jit(jax.vmap(task.mask))(cells, batch)).reshape(len(cells), -1, 2)
    solved = np.asarray(jax.jit(jax.vmap(task.is_solved))(cells, batch))
    forbidden = 0
    for row, instance in enumerate(instances):
        tests, now = meanings_of(puzzle.prompt(instance)), cells[row].tolist()
        if 0 not in now:
            assert solved[row] == fits(tests, [value == 1 for value in now])
        for number, value in itertools.product([k for k in range(n) if now[k] == 0], (1, 2)):
            then = [*now[:number], value, *now[number + 1 :]]
            possible_values = [
                [test((False, *completion)) for completion in completions(then)] for test in tests
            ]
            wrong = any(then[k] and (then[k] == 1) not in possible_values[k] for k in range(n))
            assert allowed[row, number, value - 1] == (not wrong)
            forbidden += wrong
    assert solved[::3].all()
    assert not solved[1::3].all()
    assert forbidden > 10


@pytest.mark.parametrize("tier", TIERS)
def test_the_plan_earns_the_optimum(tier: str) -> None:
    task: Any = card(NAME).build(difficulty=tier)
    total, legal, success = play_plans(task, [task.puzzle.generate(seed) for seed in range(200)])
    assert all(legal)
    assert all(success)
    np.testing.assert_allclose(total, 2, atol=1e-4)


@pytest.mark.parametrize("tier", TIERS)
def test_values_statements_and_mask_stand_in_the_observation(tier: str) -> None:
    task: Any = card(NAME).build(difficulty=tier)
    n = TIERS[tier]
    instance = puzzle_of(NAME, tier).generate(1)
    params = Params(instance, np.zeros(1, np.int16))
    state = GridState(jnp.arange(n, dtype=jnp.int8) % 3, jnp.int32(n // 3), jnp.int32(n))
    observation = np.asarray(task.observation(state, jax.random.key(0), params))
    assert task.observation_space.contains(observation)
    cells, facts, legal = np.split(observation.astype(int), [3 * n, 3 * n + n * (2 * n + 1)])
    assert np.argmax(cells.reshape(n, 3), axis=1).tolist() == [k % 3 for k in range(n)]
    assert legal.tolist() == np.asarray(task.action_mask(state, params)).astype(int).tolist()
    facts = facts.reshape(n, 2 * n + 1)
    for number in range(n):
        assert facts[number, :n].tolist() == [
            int(instance.about[number]) >> k & 1 for k in range(n)
        ]
        assert facts[number, n:].tolist() == [
            int(instance.counts[number]) >> k & 1 for k in range(n + 1)
        ]
