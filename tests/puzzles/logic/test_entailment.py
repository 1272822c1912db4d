"""Tests of Entailment-v0, whose prompts are read back as English.

Questions are decided by enumerating worlds, one thing after the other.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared
from pysat.solvers import Cadical153

from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.logic.entailment import (
    ANSWERS,
    PROPERTIES,
    SINGULAR,
    SOME,
    EntailmentPuzzle,
    Instance,
    Sentence,
    sentences_of,
    words,
)
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
TIERS = {"easy": 3, "medium": 6, "hard": 9}
Traits = frozenset[str]
"""The properties that it has."""
World = tuple[Traits, frozenset[Traits]]
"""The thing with the name, and everything there is."""


def test_of(adjectives: str) -> Callable[[Traits], bool]:
    """``blue and not old`` as a test of things."""
    if match := re.fullmatch(r"neither (\w+) nor (\w+)", adjectives):
        return lambda traits: match[1] not in traits and match[2] not in traits
    conditions = [
        (word.removeprefix("not "), not word.startswith("not "))
        for word in adjectives.split(" and ")
    ]
    assert all(name in PROPERTIES for name, _ in conditions), adjectives
    return lambda traits: all((name in traits) == has for name, has in conditions)


test_of.__test__ = False  # type: ignore[attr-defined]


def meaning(sentence: str) -> Callable[[World], bool]:
    """Read an English sentence as a test of worlds."""
    if match := re.fullmatch(r"Odo is (.*)", sentence):
        is_so = test_of(match[1])
        return lambda world: is_so(world[0])
    match = re.fullmatch(r"(Every|No|Some) (not \w+|\w+) thing is (.*)", sentence) or re.fullmatch(
        r"(Everything|Something) that is (.*) is (.*)", sentence
    )
    assert match, sentence
    quantifier, subject, states = match[1], test_of(match[2]), test_of(match[3])
    if quantifier.startswith("Some"):
        return lambda world: any(subject(traits) and states(traits) for traits in world[1])
    expected = quantifier != "No"
    return lambda world: all(states(traits) == expected for traits in world[1] if subject(traits))


def read(prompt: str) -> tuple[list[str], str]:
    """Premises and conclusion."""
    premises = re.findall(r"^\d\. (.*)\.$", prompt, re.MULTILINE)
    (conclusion,) = re.findall(r"^Conclusion: (.*)\.$", prompt, re.MULTILINE)
    return premises, conclusion


def answer_by_worlds(prompt: str, properties: int, largest: int) -> str:
    """Return the answer from every world of up to ``largest`` different things."""
    premises, conclusion = read(prompt)
    true, concluded = [meaning(premise) for premise in premises], meaning(conclusion)
    kinds = [
        frozenset(some)
        for size in range(properties + 1)
        for some in itertools.combinations(PROPERTIES[:properties], size)
    ]
    conclusions = set()
    for size in range(1, largest + 1):
        for things in itertools.combinations(kinds, size):
            everything = frozenset(things)
            for odo in things:
                world = (odo, everything)
                if all(test(world) for test in true):
                    conclusions.add(concluded(world))
            if len(conclusions) == 2:
                return "neither"
    assert conclusions, "the premises contradict each other"
    return "entailed" if conclusions == {True} else "contradicted"


def answer_by_sat(prompt: str) -> str:
    """Return the answer for worlds of any size.

    One variable says that there is a thing of a kind, another that Odo is of it.

    A sentence about all excludes the kinds of which a thing alone in its world makes it false; one
    about some, or about Odo, asks for one of those of which such a thing makes it true.
    """
    kinds = [
        frozenset(some) for size in range(7) for some in itertools.combinations(PROPERTIES, size)
    ]
    there, odo = range(1, 65), range(65, 129)
    clauses = [
        list(odo),
        *([-is_odo, is_there] for is_odo, is_there in zip(odo, there, strict=True)),
    ]
    clauses += [[-first, -second] for first, second in itertools.combinations(odo, 2)]

    def sentence_clauses(sentence: str, denied: bool = False) -> list[list[int]]:
        test = meaning(sentence)
        true = [test((kind, frozenset([kind]))) for kind in kinds]
        if sentence.startswith("Odo"):
            return [[o for o, is_true in zip(odo, true, strict=True) if is_true != denied]]
        if sentence.startswith("Some") == denied:
            return [[-t] for t, is_true in zip(there, true, strict=True) if is_true == denied]
        return [[t for t, is_true in zip(there, true, strict=True) if is_true != denied]]

    premises, conclusion = read(prompt)
    clauses += [clause for premise in premises for clause in sentence_clauses(premise)]
    possible = []
    for denied in (False, True):
        with Cadical153(bootstrap_with=clauses + sentence_clauses(conclusion, denied)) as solver:
            possible.append(solver.solve())
    assert any(possible), "the premises contradict each other"
    return {(True, False): "entailed", (False, True): "contradicted", (True, True): "neither"}[
        tuple(possible)
    ]


@pytest.mark.engine("CaDiCaL, from the prompt: the answer")
@pytest.mark.parametrize(("premises", "count"), [(3, 900), (6, 300), (9, 200)])
def test_a_sat_solver_gives_the_same_answers(premises: int, count: int, compared: Compared) -> None:
    puzzle = EntailmentPuzzle(premises)
    for seed in range(count):
        instance = puzzle.generate(seed, ("train", "test")[seed % 2])
        assert answer_by_sat(puzzle.prompt(instance)) == puzzle.solve(instance)
        compared(puzzle, instance)


@pytest.mark.engine("all worlds, from the prompt: the answer")
def test_three_premises_against_all_worlds(compared: Compared) -> None:
    """Compare three premises with all worlds that there are, up to copies.

    Three properties make eight kinds of things.
    """
    puzzle = EntailmentPuzzle(3)
    for seed in range(850):
        instance = puzzle.generate(seed, ("train", "test")[seed % 2])
        assert answer_by_worlds(puzzle.prompt(instance), 3, 8) == puzzle.solve(instance)
        compared(puzzle, instance)


def test_six_premises_against_small_worlds() -> None:
    """Compare six premises with small worlds.

    No question needs a world of more things than it has sentences about some and named, here at
    most three.
    """
    puzzle, compared = EntailmentPuzzle(6), 0
    for seed in range(150):
        instance = puzzle.generate(seed)
        sentences = sentences_of(instance)
        forms = [form for form, *_ in sentences]
        witnesses = forms[:-1].count(SOME) + 1 + (SINGULAR in forms)
        if witnesses <= 3:
            compared += 1
            assert answer_by_worlds(puzzle.prompt(instance), 4, 3) == puzzle.solve(instance), (
                puzzle.prompt(instance)
            )
    assert compared > 50


def random_sentence(properties: int, dice: Dice) -> Sentence:
    subject, second_subject, states = (
        x if dice.below(2) else -x for x in dice.sample(range(1, properties + 1), 3)
    )
    form = dice.below(3)
    return (
        (form, 0, 0, states)
        if form == SINGULAR
        else (form, subject, second_subject * dice.below(2), states)
    )


def test_random_sentences_against_all_worlds() -> None:
    """Not only what the generator makes: any three premises, also such as contradict each other."""
    puzzle, dice = EntailmentPuzzle(3), Dice(1, 2)
    contradictory = 0
    for _ in range(300):
        *premises, conclusion = sentences = [random_sentence(3, dice) for _ in range(4)]
        instance = Instance(
            np.array([s[0] for s in sentences], np.int8),
            np.array([s[1:] for s in sentences], np.int8),
        )
        if puzzle.are_consistent(premises):
            assert answer_by_worlds(puzzle.prompt(instance), 3, 8) == puzzle.solve(instance)
        else:
            contradictory += 1
            with pytest.raises(AssertionError, match="contradict each other"):
                answer_by_worlds(puzzle.prompt(instance), 3, 8)
        assert puzzle.decide([conclusion], conclusion) == 0 or not puzzle.are_consistent(
            [conclusion]
        )
    assert contradictory > 3


@pytest.mark.parametrize("premises", TIERS.values())
def test_answers_are_balanced(premises: int) -> None:
    puzzle = EntailmentPuzzle(premises)
    for split in ("train", "test"):
        counts = Counter(puzzle.solve(puzzle.generate(seed, split)) for seed in range(300))
        assert counts == dict.fromkeys(ANSWERS, 100)


@pytest.mark.parametrize("premises", TIERS.values())
def test_one_word_is_right(premises: int) -> None:
    puzzle = EntailmentPuzzle(premises)
    for seed in range(50):
        instance = puzzle.generate(seed)
        right = [answer for answer in ANSWERS if puzzle.verify(instance, answer).solved]
        assert right == [puzzle.solve(instance)]
        assert all(puzzle.verify(instance, answer).valid for answer in ANSWERS)
        for malformed in ("Entailed", "entails", "entailed neither", "yes", "0"):
            assert not puzzle.verify(instance, malformed).valid


def test_difficulty_is_the_smallest_set_that_settles_it() -> None:
    puzzle = EntailmentPuzzle(3)
    checked = Counter()
    for seed in range(120):
        instance = puzzle.generate(seed)
        premises, conclusion = read(puzzle.prompt(instance))
        answer, needed = puzzle.solve(instance), int(puzzle.difficulty(instance))
        if answer == "neither":
            assert needed == 3
            continue
        for size in range(1, needed + 1):
            answers = [
                answer_by_worlds(
                    "\n".join(
                        [*(f"{k}. {p}." for k, p in enumerate(some)), f"Conclusion: {conclusion}."]
                    ),
                    3,
                    3,
                )
                for some in itertools.combinations(premises, size)
            ]
            assert (answer in answers) == (size == needed)
        checked[needed] += 1
    assert len(checked) >= 2


def test_tiers_are_ordered_by_difficulty() -> None:
    puzzles = map(EntailmentPuzzle, TIERS.values())
    means = [
        np.mean([puzzle.difficulty(puzzle.generate(seed)) for seed in range(200)])
        for puzzle in puzzles
    ]
    assert means[0] + 0.5 < means[1] < means[2] - 0.5
    with pytest.raises(ValueError, match="2 to 9, got 10"):
        EntailmentPuzzle(10)


@pytest.mark.parametrize("premises", TIERS.values())
def test_canonical_forgets_names_and_order(premises: int) -> None:
    puzzle, dice = EntailmentPuzzle(premises), Dice(3, 4)
    for seed in range(60):
        instance = puzzle.generate(seed)
        form = puzzle.canonical(instance)
        *premise_sentences, conclusion = sentences_of(instance)
        for _ in range(4):
            names = [0, *dice.shuffled(range(1, puzzle.properties + 1))]
            new = [
                (s[0], *((names[abs(x)] if x > 0 else -names[abs(x)]) for x in s[1:]))
                for s in (*dice.shuffled(premise_sentences), conclusion)
            ]
            forms, literals = [s[0] for s in new], [s[1:] for s in new]
            assert (
                puzzle.canonical(Instance(np.array(forms, np.int8), np.array(literals, np.int8)))
                == form
            )
        literals = instance.literals.copy()
        literals[-1, 2] *= -1
        assert puzzle.canonical(instance._replace(literals=literals)) != form


def test_no_two_sentences_read_alike() -> None:
    signed = [x for p in (1, 2, 3) for x in (p, -p)]
    sentences: dict[str, Sentence] = {}
    for form, subject, second_subject, states in itertools.product(
        range(3), [0, *signed], [0, *signed], signed
    ):
        properties = [abs(x) for x in (subject, second_subject, states) if x]
        distinct = len(set(properties)) == len(properties)
        if (
            not distinct
            or (form == SINGULAR) != (subject == 0)
            or (form == SINGULAR and second_subject)
            or (second_subject and second_subject > subject)
        ):
            continue
        text = words((form, subject, second_subject, states))
        assert text not in sentences, (text, sentences[text])
        sentences[text] = (form, subject, second_subject, states)
    assert len(sentences) > 100


# -- the task --------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", TIERS)
def test_the_compiled_decision_is_the_same(tier: str) -> None:
    task = card("Entailment-v0").build(difficulty=tier)
    puzzle, dice = task.puzzle, Dice(5, 6)
    instances = [puzzle.generate(seed, ("train", "test")[seed % 2]) for seed in range(300)]
    while len(instances) < 1000:
        sentences = [random_sentence(puzzle.properties, dice) for _ in range(puzzle.premises + 1)]
        if puzzle.are_consistent(sentences[:-1]):
            forms, literals = [s[0] for s in sentences], [s[1:] for s in sentences]
            instances.append(Instance(np.array(forms, np.int8), np.array(literals, np.int8)))
    batch = jax.tree.map(jnp.asarray, Instance(*map(np.stack, zip(*instances, strict=True))))
    decided = np.asarray(jax.jit(jax.vmap(task.decision))(batch))
    assert decided.tolist() == [puzzle.plan(instance)[0] for instance in instances]
