"""Tests of RuleInduction-v0 against a plain evaluator of clauses and an enumeration.

Both are written here, and the evaluator reads the prompt.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache, partial
from itertools import combinations, permutations
from statistics import fmean
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.induction.rule_building import RuleInduction
from rlbench_suite.envs.puzzles.induction.rule_induction import (
    FAMILY,
    GRAPH,
    Instance,
    RuleInductionPuzzle,
    family,
)
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants

NAMES = {FAMILY: ("parent", "female", "male"), GRAPH: ("edge", "red", "blue")}
Atom = tuple[str, ...]
Facts = set[Atom]


def atoms(text: str) -> list[Atom]:
    """``p(a,b)`` to ``("p", "a", "b")``, wherever they stand."""
    return [(name, *inside.split(",")) for name, inside in re.findall(r"(\w+)\(([\w,]+)\)", text)]


def holds(body: list[Atom], facts: Facts, things: list[str], bound: dict[str, str]) -> bool:
    """Return whether variables can be bound so that every atom is a fact.

    One variable is bound after another, and everything is tried.
    """
    if not all(
        (name, *(bound[v] for v in about)) in facts
        for name, *about in body
        if all(v in bound for v in about)
    ):
        return False
    free = next((v for _, *about in body for v in about if v not in bound), None)
    return free is None or any(holds(body, facts, things, {**bound, free: item}) for item in things)


def covers(rule: str | list[Atom], facts: Facts, things: list[str], x: str, y: str) -> bool:
    body = atoms(rule.split(":-")[1]) if isinstance(rule, str) else rule
    return holds(body, facts, things, {"X": x, "Y": y})


def facts_of(kind: int, relation: np.ndarray, marked: np.ndarray) -> tuple[Facts, list[str]]:
    things = [f"t{k}" for k in range(len(marked))]
    link, mark, other_mark = NAMES[kind]
    facts: Facts = {(link, things[i], things[j]) for i, j in np.argwhere(relation)}
    return facts | {(mark if m else other_mark, things[k]) for k, m in enumerate(marked)}, things


def unseen_worlds(instance: Instance) -> Iterator[tuple[Facts, list[str], np.ndarray]]:
    kind = int(instance.kind)
    for relations, marks, targets in (instance[4:7], instance[7:10]):
        for relation, marked, target in zip(relations, marks, targets, strict=True):
            yield *facts_of(kind, relation, marked), target


def read_prompt(
    puzzle: RuleInductionPuzzle, instance: Instance
) -> tuple[Facts, list[str], list[Atom], list[Atom]]:
    """Facts, things, positive and negative examples, read from the prompt."""
    text = puzzle.prompt(instance)
    facts_text = text.split("else is false:\n")[1].split("\n\n")[0]
    positive, negative = re.search(r"target holds: (.*)\n.*does not hold: (.*)", text).groups()  # type: ignore[union-attr]
    facts = set(atoms(facts_text))
    things = sorted({item for _, *about in facts for item in about})
    return facts, things, atoms(positive), atoms(negative)


def fits(body: list[Atom], prompt: tuple[Facts, list[str], list[Atom], list[Atom]]) -> bool:
    facts, things, positive, negative = prompt
    return all(covers(body, facts, things, x, y) for _, x, y in positive) and not any(
        covers(body, facts, things, x, y) for _, x, y in negative
    )


def is_right_everywhere(body: list[Atom], instance: Instance) -> bool:
    return all(
        covers(body, facts, things, x, y) == bool(target[i, j])
        for facts, things, target in unseen_worlds(instance)
        for i, x in enumerate(things)
        for j, y in enumerate(things)
    )


@cache
def language(kind: int, fresh: int) -> list[Atom]:
    """Return all atoms, those that relate a variable to itself among them."""
    link, mark, other_mark = NAMES[kind]
    variables = "XYZW"[: 2 + fresh]
    links: list[Atom] = [(link, a, b) for a in variables for b in variables]
    return links + [(name, v) for name in (mark, other_mark) for v in variables]


# -- the generator ---------------------------------------------------------------------------------


@pytest.mark.engine("every rule as short: all that fit are right")
@pytest.mark.parametrize(("tier", "count"), [(2, 120), (3, 24), (4, 8)])
def test_every_short_rule_that_fits_is_right_everywhere(
    tier: int, count: int, compared: Compared
) -> None:
    puzzle = RuleInductionPuzzle(tier)
    for seed in range(count):
        instance = puzzle.generate(seed, ("train", "test")[seed % 2])
        prompt = read_prompt(puzzle, instance)
        every = language(int(instance.kind), 1 if tier < 4 else 2)
        fitting = [
            body
            for n in range(1, tier + 1)
            for body in combinations(every, n)
            if fits(list(body), prompt)
        ]
        assert fitting
        assert {len(body) for body in fitting} == {tier}, "no shorter rule fits"
        assert all(is_right_everywhere(list(body), instance) for body in fitting)
        assert atoms(puzzle.solve(instance).split(":-")[1]) in [list(body) for body in fitting]
        compared(puzzle, instance)


@pytest.mark.engine("a plain evaluator of clauses: the rule fits, no shorter one does")
def test_a_thousand_instances_hold_what_they_claim(compared: Compared) -> None:
    """Check the easy tier: no single literal fits, and the solver's rule does.

    The rule is right in the first unseen worlds.
    """
    puzzle = RuleInductionPuzzle(2)
    for seed in range(1000):
        instance = puzzle.generate(seed)
        prompt = read_prompt(puzzle, instance)
        assert min(len(prompt[2]), len(prompt[3])) >= 2
        assert not any(fits([atom], prompt) for atom in language(int(instance.kind), 1))
        body = atoms(puzzle.solve(instance).split(":-")[1])
        assert fits(body, prompt)
        facts, things, target = next(unseen_worlds(instance))
        assert target.any()
        assert not target.all()
        assert [[covers(body, facts, things, x, y) for y in things] for x in things] == (
            target == 1
        ).tolist()
        compared(puzzle, instance)


def test_the_hardest_rules_too() -> None:
    """Check rules with two more variables.

    Random rules of the language that fit are right, and no shorter one of many fits.
    """
    puzzle, rng, other_rules = RuleInductionPuzzle(4), random.Random(0), 0
    for seed in range(12):
        instance = puzzle.generate(seed)
        prompt = read_prompt(puzzle, instance)
        every = language(int(instance.kind), 2)
        assert not any(fits(list(body), prompt) for n in (1, 2) for body in combinations(every, n))
        solution = atoms(puzzle.solve(instance).split(":-")[1])
        for _ in range(150):
            body = solution.copy()
            for position in rng.sample(range(4), rng.choice([1, 2])):
                body[position] = rng.choice(every)
            if fits(body, prompt):
                other_rules += body != solution
                assert is_right_everywhere(body, instance)
    assert other_rules


def test_difficulty_is_the_place_of_the_first_rule_that_fits() -> None:
    """Counted by plain enumeration in the order of the literals: relations, then marks."""
    puzzle = RuleInductionPuzzle(2)
    for seed in range(30):
        instance = puzzle.generate(seed)
        prompt = read_prompt(puzzle, instance)
        link, mark, other_mark = NAMES[int(instance.kind)]
        every = [(link, *pair) for pair in permutations("XYZ", 2)] + [
            (m, v) for m in (mark, other_mark) for v in "XYZ"
        ]
        tried = [
            body
            for n in (1, 2)
            for body in combinations(every, n)
            if not any({(mark, v), (other_mark, v)} <= set(body) for v in "XYZ")
        ]
        first = next(number for number, body in enumerate(tried, 1) if fits(list(body), prompt))
        assert 2 ** puzzle.difficulty(instance) == pytest.approx(first)


def test_a_family_is_one() -> None:
    """Check that a child has at most a mother and a father, and that there is no cycle.

    The parents are not related to their children's children as such.
    """
    for seed in range(300):
        world = family(Dice(1, seed), 12)
        assert world.relation.any()
        for child in range(12):
            parents = np.flatnonzero(world.relation[:, child])
            assert len(parents) <= 2
            assert len(set(world.marked[parents].tolist())) == len(parents)
        reach = world.relation.astype(int)
        for _ in range(12):
            assert not np.diag(reach).any()
            reach = (reach @ world.relation > 0).astype(int)


# -- the verifier ----------------------------------------------------------------------------------


def random_rule(rng: random.Random, kind: int, max_literals: int, fresh: int) -> list[Atom]:
    link, mark, other_mark = NAMES[kind]
    variables = "XYZWV"[: 2 + fresh]
    body: list[Atom] = []
    for _ in range(rng.randint(1, max_literals)):
        if rng.random() < 0.6:
            body.append((link, rng.choice(variables), rng.choice(variables)))
        else:
            body.append((rng.choice([mark, other_mark]), rng.choice(variables)))
    return body


def text_of(body: list[Atom]) -> str:
    return (
        "target(X,Y) :- " + ", ".join(f"{name}({','.join(about)})" for name, *about in body) + "."
    )


def test_the_verifier_evaluates_rules() -> None:
    """Solutions, changed ones, longer ones and random ones: all three ends are reached."""
    puzzle = RuleInductionPuzzle(3)
    rng = random.Random(0)
    ends = {"": 0, "example": 0, "size": 0, "larger": 0}
    for seed in range(60):
        instance = puzzle.generate(seed)
        kind, prompt = int(instance.kind), read_prompt(puzzle, instance)
        solution = atoms(puzzle.solve(instance).split(":-")[1])
        rules = [solution, [*solution, rng.choice(solution)], solution[::-1]]
        for _ in range(8):
            changed = solution.copy()
            changed[rng.randrange(3)] = random_rule(rng, kind, 1, 1)[0]
            rules += [
                changed,
                [*solution, *random_rule(rng, kind, 1, 2)],
                random_rule(rng, kind, 4, 3),
            ]
        for body in rules:
            verdict = puzzle.verify(instance, text_of(body))
            assert verdict.valid
            fitting = fits(body, prompt)
            correct = fitting and is_right_everywhere(body, instance)
            assert verdict.solved == verdict.optimal == (verdict.score == 1) == correct, (
                text_of(body),
                verdict,
            )
            if not correct:
                assert (
                    "example" in verdict.reason.split(",")[0]
                ) != fitting or "it fits" in verdict.reason
            if correct:
                end = ""
            elif not fitting:
                end = "example"
            else:
                end = "larger" if "larger" in verdict.reason else "size"
            ends[end] += 1
    assert min(ends.values()) >= 3, ends


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("", "begins with"),
        ("parent(X,Y)", "begins with"),
        ("target(Y,X) :- parent(X,Y).", "begins with"),
        ("target(X,Y) :- .", "literal 1"),
        ("target(X,Y) :- parent(X,Y)", "'.'"),
        ("target(X,Y) :- parent(X,Y). #", "'#'"),
        ("target(X,Y) :- parent(X,Y)..", "'.'"),
        ("target(X,Y) :- parent(X,Y),.", "literal 2"),
        ("target(X,Y) :- parent(X).", "2 variable"),
        ("target(X,Y) :- female(X,Y).", "1 variable"),
        ("target(X,Y) :- female(x).", "1 variable"),
        ("target(X,Y) :- female(.", "1 variable"),
        ("target(X,Y) :- sister(X,Y).", "expected one of parent, female, male"),
        ("target(X,Y) :- target(Y,X).", "expected one of"),
        ("target(X,Y) :- parent(X,Y); male(X).", "';'"),
        ("target(X,Y) :- not male(X).", "expected one of"),
        ("target(X,Y) :- " + ", ".join(["male(X)"] * 5) + ".", "at most 4 literals"),
        ("target(X,Y) :- parent(A,B), parent(C,D).", "3 variables beside X and Y"),
        ("target(X,Y) :- parent(X,Y). target(X,Y) :- male(X).", "'.'"),
    ],
)
def test_what_is_no_rule(answer: str, message: str) -> None:
    puzzle = RuleInductionPuzzle(2)
    instance = next(i for i in map(puzzle.generate, range(50)) if i.kind == FAMILY)
    verdict = puzzle.verify(instance, answer)
    assert not verdict.valid
    assert message in verdict.reason


def test_spaces_and_names_of_variables_are_free() -> None:
    puzzle = RuleInductionPuzzle(3)
    renamed = 0
    for seed in range(40):
        instance = puzzle.generate(seed)
        answer = puzzle.solve(instance)
        renamed += "Z" in answer
        assert puzzle.verify(instance, answer.replace("Z", "Q")).score == 1
        assert puzzle.verify(instance, answer.replace(",", " ,\n  ")).score == 1
    assert renamed > 10


# -- disguises -------------------------------------------------------------------------------------


def test_names_do_not_matter() -> None:
    puzzle, rng = RuleInductionPuzzle(3), np.random.default_rng(0)
    forms = set()
    for seed in range(150):
        instance = puzzle.generate(seed)
        order = rng.permutation(8)
        new_number = np.argsort(order)
        is_shown = instance.examples[:, 2] >= 0
        examples = instance.examples.copy()
        examples[is_shown, :2] = new_number[instance.examples[is_shown, :2]]
        examples[: is_shown.sum()] = rng.permutation(examples[: is_shown.sum()])
        disguise = instance._replace(
            relation=instance.relation[np.ix_(order, order)],
            marked=instance.marked[order],
            examples=examples,
        )
        turned = examples.copy()
        turned[is_shown] = examples[is_shown][:, [1, 0, 2]]
        disguises = [
            disguise,
            disguise._replace(marked=1 - disguise.marked),
            disguise._replace(examples=turned),
        ]
        if instance.kind == GRAPH:
            disguises.append(disguise._replace(relation=disguise.relation.T))
        form = puzzle.canonical(instance)
        assert {puzzle.canonical(disguised) for disguised in disguises} == {form}
        flipped = examples.copy()
        flipped[0, 2] ^= 1
        assert puzzle.canonical(disguise._replace(examples=flipped)) != form
        forms.add(form)
    assert len(forms) == 150


# -- the task --------------------------------------------------------------------------------------


@cache
def game(tier: str) -> RuleInduction:
    """Return a task of its own, with a bank of 48 instances a split."""
    task_card = card("RuleInduction-v0")
    task = RuleInduction(task_card, difficulty=task_card.difficulties[tier], dtype="float32")
    task.bank_size = 48
    assert len(task.bank.plans) == 96
    return task


def params_of(task: RuleInduction, numbers: np.ndarray) -> Params:
    return Params(
        *jax.tree.map(
            lambda column: jnp.asarray(column[numbers]), (task.bank.instances, task.bank.plans)
        )
    )


def shares(
    body: list[Atom], prompt: tuple[Facts, list[str], list[Atom], list[Atom]]
) -> tuple[float, float]:
    """Return the shares of the positive and of the negative examples that a body covers."""
    facts, things, positive, negative = prompt
    covered, covered_negatives = (
        fmean(covers(body, facts, things, x, y) for _, x, y in pairs)
        for pairs in (positive, negative)
    )
    return covered, covered_negatives


def entry(number: int, batch: jax.Array) -> np.ndarray:
    return np.asarray(batch[number])


@pytest.mark.parametrize("tier", ["easy", "medium", "hard"])
def test_the_task_keeps_the_rules(tier: str) -> None:
    """Compare random and right bodies with the plain evaluator and the verifier.

    Bodies are built a literal at a time.
    """
    task, key, rng = game(tier), jax.random.key(0), np.random.default_rng(0)
    puzzle, num_literals = task.puzzle, task.puzzle.num_literals
    count = len(task.literals)
    bodies = np.array([rng.permutation(count)[:num_literals] for _ in range(48)])
    bodies[::2] = [
        rng.permutation(puzzle.plan(puzzle.generate(number))) for number in range(0, 48, 2)
    ]

    def episode(params: Params, actions: jax.Array) -> list[Any]:
        states = [task.initial(key, params)]
        for k in range(num_literals):
            states.append(task.transition(states[-1], actions[k], key, params))
        rewards = [
            task.reward(states[k], actions[k], states[k + 1], key, params)
            for k in range(num_literals)
        ]
        looks = [
            (
                task.terminal(s, key, params),
                task.info(s, params),
                task.action_mask(s, params),
                task.observation(s, key, params),
            )
            for s in states
        ]
        return [rewards, looks]

    rewards, looks = jax.jit(jax.vmap(episode))(params_of(task, np.arange(48)), bodies)
    solved = 0
    for number in range(48):
        instance = puzzle.generate(number)
        prompt = read_prompt(puzzle, instance)
        _, things, positive, negative = prompt
        every = [
            (NAMES[int(instance.kind)][p], *("XYZW"[v] for v in ((a, b) if p == 0 else (a,))))
            for p, a, b in task.literals
        ]
        world = instance.relation.ravel(), instance.marked, [instance.kind == GRAPH]
        signs = np.zeros((8, 8))
        for label, sign in ((positive, 1), (negative, -1)):
            for _, x, y in label:
                signs[things.index(x), things.index(y)] = sign
        total = 0.0
        for k in range(num_literals + 1):
            body = [every[a] for a in bodies[number, :k]]

            over, info, mask, observation = jax.tree.map(partial(entry, number), looks[k])
            covered, covered_negatives = shares(body, prompt)
            fit = bool(covered == 1 and covered_negatives == 0)
            in_body = np.isin(np.arange(count), bodies[number, :k])
            assert bool(info["success"]) == fit
            assert bool(over) == (fit or k == num_literals)
            assert (float(info["covered"]), float(info["excluded"])) == pytest.approx(
                (covered, 1 - covered_negatives), abs=1e-6
            )
            np.testing.assert_array_equal(mask, ~in_body)
            assert total == pytest.approx(covered - covered_negatives + fit, abs=1e-5)
            ahead = np.array([shares([*body, atom], prompt) for atom in every])
            expected = np.concatenate(
                [
                    *world,
                    signs.ravel(),
                    in_body,
                    *ahead.T,
                    [covered, covered_negatives, 1 - k / num_literals],
                ]
            )
            np.testing.assert_allclose(observation, expected, atol=1e-6)
            assert task.observation_space.contains(observation)
            if body:
                assert (puzzle.verify(instance, text_of(body)).score == 1) == fit, (
                    "who fits is right everywhere"
                )
            if fit or k == num_literals:
                solved += fit
                break
            total += float(rewards[k][number])
    assert 24 <= solved < 48


@pytest.mark.parametrize("tier", ["easy", "medium", "hard"])
def test_the_plan_earns_the_best_return(tier: str) -> None:
    task = game(tier)
    record = play(task, reference_player(task), range(200))
    assert record.info["success"].all()
    np.testing.assert_allclose(record.total, task.card.optimum, atol=1e-5)
    assert (record.length == task.puzzle.num_literals).all()


def test_the_words_of_the_task() -> None:
    task, key = game("medium"), jax.random.key(0)
    instance = task.puzzle.generate(0)
    params = params_of(task, np.array(0))
    start = state = task.initial(key, params)
    assert "target(X,Y) always holds" in task.describe(state, params)
    answer = task.puzzle.solve(instance)
    for name, *about in atoms(answer.split(":-")[1]):
        action = task.parse(f" {name}({','.join(about)})\n", state, params)
        state = task.transition(state, action, key, params)
    assert f"The rule so far: {answer}" in task.describe(state, params)
    assert task.describe(state, params).startswith(
        task.puzzle.prompt(instance).split("\n\nFind")[0]
    )
    assert "right in other worlds" in task.why_over(state, params, task.info(state, params))
    assert "is in the rule already" in task.why_illegal(action, state, params)
    assert "3 literals" in task.why_over(start, params, task.info(start, params))
    assert (task.draw(start, params) != task.draw(state, params)).any()
    for text in ("", "0", "parent(X,Q)", "target(X,Y)"):
        with pytest.raises(ValueError, match="expected one of"):
            task.parse(text, state, params)


@pytest.mark.parametrize("tier", [1, 5, 2.5])
def test_other_tiers_are_refused(tier: float) -> None:
    with pytest.raises(ValueError, match="literals of the rule, 2 to 4, got"):
        RuleInductionPuzzle(tier)
