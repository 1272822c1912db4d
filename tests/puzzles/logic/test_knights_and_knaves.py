"""Tests of KnightsAndKnaves-v0, whose prompts are read back as English.

Puzzles are solved by enumerating all assignments.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import Compared

from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.logic.knights_and_knaves import (
    NAMES,
    Instance,
    KnightsAndKnavesPuzzle,
)
from rlbench_suite.envs.puzzles.shared.grid_filling import CellFillTask
from rlbench_suite.envs.puzzles.shared.naming import least_naming
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
TIERS = {"easy": 4, "medium": 6, "hard": 9}
Kinds = dict[str, bool]
"""Name to whether that is a knight."""

N = "([A-Z][a-z]+)"
MEANINGS: dict[str, Callable[..., bool]] = {
    f"{N} is a knight": lambda k, a: k[a],
    f"{N} is a knave": lambda k, a: not k[a],
    f"{N} and {N} are both knights": lambda k, a, b: k[a] and k[b],
    f"{N} and {N} are both knaves": lambda k, a, b: not (k[a] or k[b]),
    f"{N} is a knight and {N} is a knave": lambda k, a, b: k[a] and not k[b],
    f"{N} is a knave and {N} is a knight": lambda k, a, b: k[b] and not k[a],
    f"at least one of {N} and {N} is a knight": lambda k, a, b: k[a] or k[b],
    f"at least one of {N} and {N} is a knave": lambda k, a, b: not (k[a] and k[b]),
    f"if {N} is a knight, then {N} is a knight": lambda k, a, b: k[b] if k[a] else True,
    f"{N} and {N} are of different kinds": lambda k, a, b: k[a] != k[b],
    f"{N} and {N} are of the same kind": lambda k, a, b: k[a] == k[b],
    r"exactly (\d) of us (?:is a knight|are knights)": lambda k, n: sum(k.values()) == int(n),
    "none of us is a knight": lambda k: not any(k.values()),
    r"at least (\d) of us (?:is a knight|are knights)": lambda k, n: sum(k.values()) >= int(n),
    r"at most (\d) of us (?:is a knight|are knights)": lambda k, n: sum(k.values()) <= int(n),
}
"""Meanings of English sentences, written here once more."""


def sayings(prompt: str) -> list[tuple[str, set[str], Callable[[Kinds], bool]]]:
    """Return speakers, the people concerned, and the sentences as tests of kinds.

    Whether a sentence fits depends on everybody who is concerned.
    """
    statements = []
    spoken = re.findall(r"^(\w+) says: (.*)\.$", prompt, re.MULTILINE)
    for speaker, sentence in spoken:
        words = re.sub(r"\b(?:I|me)\b", speaker, sentence.replace("I am", "I is"))
        ((match, means),) = [
            (m, means) for form, means in MEANINGS.items() if (m := re.fullmatch(form, words))
        ]
        concerned = {name for name, _ in spoken} if "of us" in words else set(match.groups())
        statements.append(
            (speaker, {speaker} | concerned, partial(_means_truth, means, match.groups()))
        )
    return statements


def _means_truth(means: Callable[..., bool], about: tuple[str, ...], kinds: Kinds) -> bool:
    return bool(means(kinds, *about))


def models(prompt: str) -> list[str]:
    """Return every assignment that fits, as answers are written."""
    statements = sayings(prompt)
    names = [speaker for speaker, _, _ in statements]
    fitting = []
    for values in itertools.product((True, False), repeat=len(names)):
        kinds = dict(zip(names, values, strict=True))
        if all(kinds[speaker] == is_true(kinds) for speaker, _, is_true in statements):
            fitting.append(" ".join("NK"[value] for value in values))
    return fitting


@pytest.mark.engine("all assignments, from the prompt: one fits")
@pytest.mark.parametrize(("people", "count"), [(3, 200), (4, 700), (6, 300), (9, 20)])
def test_exactly_one_assignment_fits_what_the_prompt_says(
    people: int, count: int, compared: Compared
) -> None:
    puzzle = KnightsAndKnavesPuzzle(people)
    for seed in range(count):
        instance = puzzle.generate(seed, ("train", "test")[seed % 2])
        prompt = puzzle.prompt(instance)
        assert len(sayings(prompt)) == people
        assert models(prompt) == [puzzle.solve(instance)]
        compared(puzzle, instance)


@pytest.mark.parametrize("people", TIERS.values())
def test_the_verifier_takes_what_fits_and_nothing_else(people: int) -> None:
    puzzle = KnightsAndKnavesPuzzle(people)
    for seed in range(30):
        instance = puzzle.generate(seed)
        right = models(puzzle.prompt(instance))
        for letters in list(itertools.product("KN", repeat=people))[:: 1 + people // 9 * 7]:
            answer = " ".join(letters)
            verdict = puzzle.verify(instance, answer)
            assert verdict.valid
            assert verdict.solved == (answer in right)
            assert bool(verdict.reason) != verdict.solved


def test_the_reason_names_who_does_not_fit() -> None:
    puzzle = KnightsAndKnavesPuzzle(4)
    instance = instance_saying([(1, -1, 0b10), (0, -1, 0b01), (0, 1, 0b1001), (0, 1, 0b0110)])
    assert (
        puzzle.verify(instance, "K K K K").reason
        == "Boris would be a knight and says something false"
    )
    assert (
        puzzle.verify(instance, "N K N N").reason == "Alma would be a knave and says something true"
    )
    assert puzzle.verify(instance, "N N N K").solved is False
    for malformed in ("K K K", "K K K X", "KKKK", "K K K K\nK K K K", "K, K, K, K"):
        assert not puzzle.verify(instance, malformed).valid


def instance_saying(sentences: list[tuple[int, int, int]]) -> Instance:
    about, truth = [sentence[:2] for sentence in sentences], [sentence[2] for sentence in sentences]
    return Instance(
        np.zeros(len(sentences), np.int8), np.array(about, np.int8), np.array(truth, np.int16)
    )


def test_every_kind_of_sentence_comes_up() -> None:
    puzzle = KnightsAndKnavesPuzzle(6)
    words = "\n".join(puzzle.prompt(puzzle.generate(seed)) for seed in range(300))
    for form in MEANINGS:
        assert re.search(f"says: {form}", words), form
    for phrase in (
        "I am a knight",
        "I am a knave",
        "if I am a knight, then [A-Z]",
        "[a-z] and I are both",
        "[a-z] and me is",
    ):
        assert re.search(phrase, words), phrase
    for speaker in NAMES:
        assert not re.search(f"{speaker} says:.*{speaker}", words), "speakers call themselves I"


def test_a_contradiction_has_no_solution() -> None:
    puzzle = KnightsAndKnavesPuzzle(3)
    with pytest.raises(ValueError, match="contradict"):
        puzzle.solve(instance_saying([(0, -1, 0b01), (0, -1, 0b10), (0, -1, 0b10)]))  # the liar
    with pytest.raises(ValueError, match="3 to 10, got 2"):
        KnightsAndKnavesPuzzle(2)


def test_tiers_are_ordered_by_difficulty() -> None:
    puzzles = map(KnightsAndKnavesPuzzle, TIERS.values())
    means = [
        np.mean([puzzle.difficulty(puzzle.generate(seed)) for seed in range(100)])
        for puzzle in puzzles
    ]
    assert 2 * means[0] < means[1] < means[2] / 2


def rename_people(instance: Instance, order: list[int], dice: Dice) -> Instance:
    """Return the same puzzle with person ``order[i]`` in place i.

    Sentences about two people are turned around at random.
    """
    place = {person: i for i, person in enumerate(order)} | {-1: -1}
    sentences = []
    for person in order:
        (a, b), table = instance.about[person].tolist(), int(instance.truth[person])
        if b >= 0 and dice.below(2):
            a, b, table = b, a, int("{0}{2}{1}{3}".format(*f"{table:04b}"), 2)
        sentences.append((place[a], place[b], table))
    return instance_saying(sentences)


@pytest.mark.parametrize("people", TIERS.values())
def test_canonical_forgets_names_and_nothing_else(people: int) -> None:
    puzzle, dice = KnightsAndKnavesPuzzle(people), Dice(1, 2)
    instance_by_form: dict[bytes, Instance] = {}
    for seed in range(150):
        instance = puzzle.generate(seed)
        form = puzzle.canonical(instance)
        for _ in range(5):
            disguised = rename_people(instance, dice.shuffled(range(people)), dice)
            assert puzzle.canonical(disguised) == form
        changed = instance.truth.copy()
        changed[0] ^= 0b11 if instance.about[0, 1] < 0 <= instance.about[0, 0] else 0b1111
        if instance.about[0, 0] >= 0:
            assert puzzle.canonical(instance._replace(truth=changed)) != form
        instance_by_form[form] = instance
    assert len(instance_by_form) > 100


def test_naming_tells_cycles_apart() -> None:
    """Try a case in which refinement sees no difference.

    Two rings of three are not one of six, however they are numbered.
    """

    def canonical(edges: set[tuple[int, int]]) -> bytes:
        arcs = edges | {(b, a) for a, b in edges}

        def form(names: object) -> bytes:
            return bytes(x for pair in sorted((names[a], names[b]) for a, b in arcs) for x in pair)

        return least_naming(
            6, lambda c: [tuple(sorted(c[b] for a, b in arcs if a == i)) for i in range(6)], form
        )

    dice = Dice(7, 8)
    ring = {(i, (i + 1) % 6) for i in range(6)}
    rings = {(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)}
    for edges in (ring, rings):
        for _ in range(20):
            order = dice.shuffled(range(6))
            assert canonical({(order[a], order[b]) for a, b in edges}) == canonical(edges)
    assert canonical(ring) != canonical(rings)


# -- the task --------------------------------------------------------------------------------------


@pytest.mark.parametrize("people", TIERS.values())
def test_mask_and_success_are_those_of_the_words(people: int) -> None:
    """Check that the mask forbids a kind exactly where a sentence fails.

    Everybody whom the sentence is about is known. Partial assignments are tried in one batch.
    """
    tier = {number: name for name, number in TIERS.items()}[people]
    task: CellFillTask = card("KnightsAndKnaves-v0").build(difficulty=tier)
    puzzle, dice = task.puzzle, Dice(3, 4)
    instances = [puzzle.generate(seed) for seed in range(60)]
    cells = np.array([[dice.below(3) for _ in range(people)] for _ in instances], np.int8)
    cells[::3] = [
        [1 + "KN".index(x) for x in puzzle.solve(instance).split()] for instance in instances[::3]
    ]
    cells[1::3] = np.maximum(cells[1::3], 1)
    batch = Instance(*map(np.stack, zip(*instances, strict=True)))
    allowed = np.asarray(
        jax.jit(jax.vmap(task.allowed_symbols))(cells, jax.tree.map(jnp.asarray, batch))
    )
    solved = np.asarray(jax.jit(jax.vmap(task.is_solved))(cells, jax.tree.map(jnp.asarray, batch)))
    forbidden = 0
    for row, instance in enumerate(instances):
        statements = sayings(puzzle.prompt(instance))
        if (cells[row] > 0).all():
            kinds = dict(zip(NAMES, cells[row] == 1, strict=False))
            assert solved[row] == all(
                kinds[speaker] == is_true(kinds) for speaker, _, is_true in statements
            )
        for person in np.flatnonzero(cells[row] == 0):
            for kind in (1, 2):
                kinds_so_far = {NAMES[i]: v == 1 for i, v in enumerate(cells[row]) if v} | {
                    NAMES[person]: kind == 1
                }
                wrong = any(
                    concerned <= kinds_so_far.keys()
                    and kinds_so_far[speaker] != is_true(kinds_so_far)
                    for speaker, concerned, is_true in statements
                )
                assert allowed[row, person, kind - 1] == (not wrong)
                forbidden += wrong
    assert solved[::3].all()
    assert not solved[1::3].all()
    assert forbidden > 10
