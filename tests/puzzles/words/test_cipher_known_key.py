"""Tests of CipherKnownKey-v0 against encryption by hand.

The task in which texts are written is compared with plain Python.
"""

from __future__ import annotations

import re
from itertools import pairwise, product
from statistics import fmean
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from by_hand import decrypt_by_search, encryption, read_cipher
from comparison import Compared
from fill_tasks import stack_instances

from rlbench_suite.core.registry import card
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params
from rlbench_suite.envs.puzzles.words.cipher_known_key import TIERS, CipherKnownKeyPuzzle, Instance
from rlbench_suite.envs.puzzles.words.pseudo_words import pseudo_word, pseudo_words
from rlbench_suite.envs.puzzles.words.spelling import SpellingState
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
TIERS_BY_NAME = ["easy", "medium", "hard"]
both_ids = pytest.mark.parametrize("name", ["CipherKnownKey-v0", "CipherKnownPlaintext-v0"])


def answer_by_hand(prompt: str) -> str:
    """Answer by the words of the prompt."""
    alphabet, name = read_cipher(prompt)
    key = re.search(r"^Key: ?\n?(.*?)\n\n", prompt, re.MULTILINE | re.DOTALL)
    ask = re.search(
        r"^(Decrypt this ciphertext|Encrypt this plaintext):\n([A-Z]+)\n", prompt, re.MULTILINE
    )
    assert key and ask  # noqa: PT018
    encrypt = encryption(alphabet, name, key[1])
    return (
        decrypt_by_search(alphabet, name, encrypt, ask[2])
        if ask[1].startswith("Decrypt")
        else encrypt(ask[2])
    )


@pytest.mark.engine("the cipher by hand, from the prompt: the answer")
@pytest.mark.parametrize(("tier", "count"), [("easy", 500), ("medium", 400), ("hard", 200)])
def test_the_answer_is_the_one_by_hand(tier: str, count: int, compared: Compared) -> None:
    """Check that the answer is the only one.

    By hand, each pair or letter is the only one that becomes what the prompt gives.
    """
    puzzle: Any = puzzle_of("CipherKnownKey-v0", tier)
    dice = Dice(1, 1)
    cases = set()
    for seed in range(count):
        instance = puzzle.generate(seed)
        answer = answer_by_hand(puzzle.prompt(instance))
        assert puzzle.solve(instance) == answer
        assert puzzle.verify(instance, answer).score == 1
        place, letter = dice.below(len(answer)), dice.choice(puzzle.alphabet)
        changed = answer[:place] + letter + answer[place + 1 :]
        verdict = puzzle.verify(instance, changed)
        assert (verdict.valid, verdict.solved) == (True, changed == answer)
        cases.add((int(instance.cipher), int(instance.decrypt)))
        compared(puzzle, instance)
    assert len(cases) == 2 * len(puzzle.ciphers)


def test_every_text_of_four_letters_is_judged_by_the_rules() -> None:
    """Try all texts: one is right. They are shorter than a tier's, which changes nothing else."""
    puzzle: Any = CipherKnownKeyPuzzle(24)
    puzzle.length = 4
    puzzle.alphabet = "ABCDEFGHI"
    puzzle.ciphers = [type(cipher)(puzzle.alphabet, 3) for cipher in puzzle.ciphers]
    dice = Dice(2, 2)
    for number, cipher in enumerate(puzzle.ciphers):
        plain, key = [0, 4, 7, 2], cipher.key(dice)
        fields = number, number % 2, key, plain, cipher.encrypt(plain, key)
        instance = Instance(*(np.array(field, np.int8) for field in fields))
        answers = (
            a + b + c + d
            for a in "ABCDEFGHI"
            for b in "ABCDEFGHI"
            for c in "ABCDEFGHI"
            for d in "ABCDEFGHI"
        )
        assert [answer for answer in answers if puzzle.verify(instance, answer).solved] == [
            puzzle.solve(instance)
        ]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "expected 8 letters, got 0"),
        ("ABCDABC", "expected 8 letters, got 7"),
        ("ABCDABCDA", "expected 8 letters, got 9"),
        ("ABCDABCF", "character 8: expected a letter of ABCDE, got 'F'"),
        ("abcdabcd", "character 1: expected a letter of ABCDE, got 'a'"),
        ("ABCD BCD", "character 5: expected a letter of ABCDE, got ' '"),
    ],
)
def test_other_formats_are_invalid(answer: str, reason: str) -> None:
    puzzle = puzzle_of("CipherKnownKey-v0", "easy")
    verdict = puzzle.verify(puzzle.generate(0), answer)
    assert not verdict.valid
    assert verdict.reason.startswith(reason)


def test_the_direction_and_what_the_key_does_elsewhere_do_not_matter() -> None:
    puzzle: Any = puzzle_of("CipherKnownKey-v0")
    forms = set()
    substitutions = 0
    for seed in range(300):
        instance = puzzle.generate(seed)
        forms.add(form := puzzle.canonical(instance))
        assert puzzle.canonical(instance._replace(decrypt=1 - instance.decrypt)) == form
        assert puzzle.canonical(instance._replace(cipher=(instance.cipher + 1) % 6)) != form
        shifted = instance._replace(plaintext=np.roll(instance.plaintext, 1))
        assert puzzle.canonical(shifted) != form
        if puzzle.ciphers[int(instance.cipher)].name.startswith("Substitution"):
            unused = [x for x in range(16) if x not in instance.plaintext]
            key = instance.key.copy()
            key[unused] = np.roll(key[unused], 1)
            assert puzzle.canonical(instance._replace(key=key)) == form
            assert puzzle.solve(instance._replace(key=key)) == puzzle.solve(instance)
            substitutions += 1
    assert len(forms) == 300
    assert substitutions > 20


def test_playfair_texts_have_no_pair_of_equal_letters() -> None:
    puzzle: Any = puzzle_of("CipherKnownKey-v0", "hard")
    pairs = 0
    for seed in range(200):
        instance = puzzle.generate(seed)
        if puzzle.ciphers[int(instance.cipher)].name.startswith("Playfair"):
            for text in (instance.plaintext, instance.ciphertext):
                assert (text[::2] != text[1::2]).all()
                pairs += len(text) // 2
    assert pairs > 200


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_pseudo_words_have_no_three_vowels_or_consonants_in_a_row(length: int) -> None:
    dice = Dice(4, length)
    every = {"".join(word) for word in product("ABCDE", repeat=length)}
    proper = {word for word in every if not re.search("[AE]{3}|[BCD]{3}", word)}
    generated = {
        "".join("ABCDE"[x] for x in pseudo_word(dice, length, "ABCDE")) for _ in range(40_000)
    }
    assert generated == proper
    assert pseudo_words(length, "ABCDE") == len(proper)


def test_tiers_are_in_order() -> None:
    means = []
    for tier in TIERS_BY_NAME:
        puzzle = puzzle_of("CipherKnownKey-v0", tier)
        means.append(fmean(puzzle.difficulty(puzzle.generate(seed)) for seed in range(200)))
    assert means[0] < 0.7 * means[1] < 0.49 * means[2]


@pytest.mark.parametrize("name", ["CipherKnownKey-v0", "CipherKnownPlaintext-v0"])
def test_other_lengths_are_refused(name: str) -> None:
    with pytest.raises(
        ValueError, match=r"difficulty is the number of letters, one of \d+, \d+, \d+, got 9"
    ):
        puzzle_of(name, 9)


def test_all_ciphers_come_up() -> None:
    assert {cipher.__name__ for tier in TIERS.values() for cipher in tier.ciphers} == {
        "Caesar", "Atbash", "Affine", "Substitution", "Vigenere", "Autokey", "Hill", "Playfair",
        "RailFence", "Columnar",
    }  # fmt: skip


# -- the task, of both puzzles ---------------------------------------------------------------------


@both_ids
@pytest.mark.parametrize("tier", TIERS_BY_NAME)
def test_letters_are_rewarded_where_they_are_right(name: str, tier: str) -> None:
    """Texts with some letters wrong, or none, in one batch."""
    task: Any = card(name).build(difficulty=tier)
    puzzle, length, count = task.puzzle, task.length, 200
    instances = [puzzle.generate(seed, ("train", "test")[seed % 2]) for seed in range(count)]
    rng, key = np.random.default_rng(0), jax.random.key(0)
    right = np.array(
        [[puzzle.alphabet.index(x) for x in puzzle.solve(instance)] for instance in instances]
    )
    wrong = rng.random((count, length)) < np.arange(count)[:, None] % 4 / 8
    letters = np.where(wrong, rng.integers(len(puzzle.alphabet), size=(count, length)), right)
    context = Params(stack_instances(instances), jnp.zeros((count, 1), jnp.int16))

    def play(context: Params, letters: jax.Array) -> Any:
        def step(state: SpellingState, letter: jax.Array) -> Any:
            new = task.transition(state, letter, key, context)
            reward = task.reward(state, letter, new, key, context)
            return new, (
                reward,
                task.terminal(new, key, context),
                task.observation(new, key, context),
            )

        first = task.initial(key, context)
        last, steps = jax.lax.scan(step, first, letters)
        return task.observation(first, key, context), last, steps, task.info(last, context)

    first, last, (rewards, ends, observations), info = jax.jit(jax.vmap(play))(context, letters)
    fits = letters == right
    assert info["success"].tolist() == fits.all(axis=1).tolist()
    assert 0.1 < fits.all(axis=1).mean() < 0.9
    np.testing.assert_allclose(info["right"], fits.mean(axis=1), rtol=1e-5)
    np.testing.assert_allclose(rewards, fits / length, rtol=1e-5)
    assert np.asarray(ends).tolist() == [[False] * (length - 1) + [True]] * count
    np.testing.assert_array_equal(last.letters, letters)
    written = np.asarray(observations)[..., -length * len(puzzle.alphabet) :].reshape(
        count, length, length, -1
    )
    for k in range(length):
        np.testing.assert_array_equal(written[:, k, : k + 1].argmax(axis=2), letters[:, : k + 1])
        assert (written[:, k].sum(axis=2) == [1] * (k + 1) + [0] * (length - k - 1)).all()
    assert (np.asarray(first)[:, -length * len(puzzle.alphabet) :] == 0).all()
    assert task.observation_space.contains(np.asarray(first)[0])


@both_ids
def test_what_is_told_is_observed(name: str) -> None:
    """At the place to write at, the letter of the text; and different instances look different."""
    task: Any = card(name).build()
    puzzle, length, letters = task.puzzle, task.length, task.count
    instances = [puzzle.generate(seed) for seed in range(50)]
    context = Params(stack_instances(instances), jnp.zeros((50, 1), jnp.int16))
    key = jax.random.key(0)
    place = length // 2

    def look(context: Params) -> jax.Array:
        state = task.initial(key, context)._replace(position=jnp.int32(place))
        return task.observation(state, key, context)

    observations = np.asarray(jax.jit(jax.vmap(look))(context))
    assert len(np.unique(observations, axis=0)) == 50
    here = observations[:, task.fact_count : task.fact_count + length]
    letter = observations[:, task.fact_count + length : task.fact_count + length + letters]
    assert (here.argmax(axis=1) == place).all()
    assert (here.sum(axis=1) == 1).all()
    assert (letter.sum(axis=1) == 1).all()
    assert letter.argmax(axis=1).tolist() == [
        puzzle.text(instance)[place] for instance in instances
    ]


@both_ids
@pytest.mark.parametrize("tier", TIERS_BY_NAME)
def test_people_can_play(name: str, tier: str) -> None:
    task: Any = card(name).build(difficulty=tier)
    instance = task.puzzle.generate(0)
    params = Params(instance, np.zeros(1, np.int16))
    key = jax.random.key(0)
    state = task.initial(key, params)
    answer = task.puzzle.solve(instance)
    pictures = [task.draw(state, params)]
    for k, letter in enumerate(answer):
        text = task.describe(state, params)
        assert text.startswith(task.puzzle.statement(instance))
        assert text.endswith(f"Written so far: {answer[:k]}{'_' * (len(answer) - k)}")
        state = task.transition(
            state, jnp.asarray(task.parse(f" {letter}\n", state, params)), key, params
        )
        pictures.append(task.draw(state, params))
    assert task.why_over(state, params, {}) == "the text is right"
    assert (
        task.why_over(state._replace(num_correct=state.num_correct - 2), params, {})
        == "2 letters of the text are wrong"
    )
    assert pictures[0].shape == task.picture_shape
    assert all((picture != next_picture).any() for picture, next_picture in pairwise(pictures))
    for text in ("", "AB", "a", "1", "?"):
        with pytest.raises(ValueError, match="expected one of A, B, C"):
            task.parse(text, state, params)
