"""Tests of CipherKnownPlaintext-v0: every key that fits decrypts the text alike.

All keys are tried where there are few.
"""

from __future__ import annotations

import re
from itertools import permutations, product
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from by_hand import decrypt_by_search, encryption, read_cipher
from comparison import Compared

from rlbench_suite.envs.puzzles.words.cipher_known_plaintext import (
    CipherKnownPlaintextPuzzle,
    fitting_keys,
)
from rlbench_suite.envs.puzzles.words.ciphers import (
    Affine,
    Autokey,
    Caesar,
    Cipher,
    Columnar,
    Hill,
    RailFence,
    Substitution,
    Vigenere,
)
from rlbench_suite.language.rows import puzzle_of
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants
TIERS = ["easy", "medium", "hard"]


def every_key(alphabet: str, name: str, prompt: str) -> list[str]:
    """Yield every key as prompts write it; for matrices, those that cannot be inverted too."""
    count = len(alphabet)
    width = [
        int(number)
        for number in re.findall(r"(?:word of|columns 1 to|rails, from 2 to) (\d+)", prompt)
    ]
    coprime = [a for a in range(count) if np.gcd(a, count) == 1]
    match name:
        case "Caesar cipher":
            return [f"k = {k}" for k in range(count)]
        case "Affine cipher":
            return [f"a = {a}, b = {b}" for a, b in product(coprime, range(count))]
        case "Rail fence cipher":
            return [f"r = {r}" for r in range(2, width[0] + 1)]
        case "Columnar transposition":
            return [" ".join(map(str, order)) for order in permutations(range(1, width[0] + 1))]
    return []


def read_prompt(prompt: str) -> tuple[str, str, list[tuple[str, str]], str]:
    """Alphabet, name, pairs and text, read from the prompt."""
    pairs = re.findall(r"^([A-Z]+) becomes ([A-Z]+)$", prompt, re.MULTILINE)
    text = re.search(r"the same key:\n([A-Z]+)\n", prompt)
    assert text
    return *read_cipher(prompt), pairs, text[1]


def answers_by_hand(prompt: str) -> set[str]:
    """Return the plaintexts under every key that fits.

    None stands for a letter that is not determined.
    """
    alphabet, name, pairs, text = read_prompt(prompt)
    count = len(alphabet)
    if name == "Substitution cipher":
        back = {y: x for plain, secret in pairs for x, y in zip(plain, secret, strict=True)}
        plain_left = [x for x in alphabet if x not in back.values()]
        secret_left = [y for y in alphabet if y not in back]
        if len(secret_left) == 1:  # the last one is what is left
            back |= dict(zip(secret_left, plain_left, strict=True))
        return {"".join(back.get(y, "?") for y in text)}
    if name in ("Vigenere cipher", "Autokey cipher"):
        (key_length,) = re.findall(r"The key is a word of (\d+) letters", prompt)
        shifts = [
            (alphabet.index(y) - alphabet.index(x)) % count for x, y in zip(*pairs[0], strict=True)
        ]
        keys = ["".join(alphabet[k] for k in shifts[: int(key_length)])]
    elif name == "Hill cipher":
        grid = np.array(list(product(range(count), repeat=2)))
        rows = []
        for place in range(2):
            right = np.ones(len(grid), bool)
            for plain, secret in pairs:
                numbers = np.array([alphabet.index(x) for x in plain]).reshape(-1, 2)
                secret_numbers = [alphabet.index(y) for y in secret[place::2]]
                right &= (grid @ numbers.T % count == secret_numbers).all(axis=1)
            rows.append(grid[right].tolist())
        keys = [
            f"a = {a}, b = {b}, c = {c}, d = {d}"
            for (a, b), (c, d) in product(*rows)
            if np.gcd(a * d - b * c, count) == 1
        ]
    else:
        keys = every_key(alphabet, name, prompt)
    answers = set()
    for key in keys:
        encrypt = encryption(alphabet, name, key)
        if all(encrypt(plain) == secret for plain, secret in pairs):
            answers.add(decrypt_by_search(alphabet, name, encrypt, text))
    return answers


@pytest.mark.engine("every key, by hand from the prompt: all that fit give the answer")
@pytest.mark.parametrize(("tier", "count"), [("easy", 600), ("medium", 300), ("hard", 150)])
def test_every_key_that_fits_gives_the_answer(tier: str, count: int, compared: Compared) -> None:
    puzzle: Any = puzzle_of("CipherKnownPlaintext-v0", tier)
    dice = Dice(1, 1)
    cipher_numbers = set()
    for seed in range(count):
        instance = puzzle.generate(seed, ("train", "test")[seed % 2])
        answer = puzzle.solve(instance)
        assert answers_by_hand(puzzle.prompt(instance)) == {answer}
        assert puzzle.write_answer(instance.answer.tolist()) == answer
        assert puzzle.verify(instance, answer).score == 1
        place, letter = dice.below(len(answer)), dice.choice(puzzle.alphabet)
        changed = answer[:place] + letter + answer[place + 1 :]
        assert puzzle.verify(instance, changed).solved == (changed == answer)
        cipher_numbers.add(int(instance.cipher))
        compared(puzzle, instance)
    assert len(cipher_numbers) == len(puzzle.ciphers)


def small_keys(cipher: Cipher) -> list[tuple[int, ...]]:
    """Return all keys of a cipher with few letters."""
    every, width = range(cipher.count), cipher.width
    match cipher:
        case Caesar():
            return list(product(every))
        case Substitution():
            return list(permutations(every))
        case Vigenere():
            return list(product(every, repeat=width))
        case RailFence():
            return [(r,) for r in range(2, width + 1)]
        case Columnar():
            return list(permutations(range(width)))
    keys = list(product(every, repeat=4 if isinstance(cipher, Hill) else 2))
    return [
        key
        for key in keys
        if np.gcd(key[0] * key[3] - key[1] * key[2] if key[2:] else key[0], cipher.count) == 1
    ]


@pytest.mark.parametrize(
    "kind", [Caesar, Affine, Substitution, Vigenere, Autokey, Hill, RailFence, Columnar]
)
@pytest.mark.parametrize("count", [4, 5])
def test_what_fits_is_found_among_all_keys(kind: type[Cipher], count: int) -> None:
    """Compare the plaintexts with those of every key.

    The pairs have few letters, so texts are ambiguous too. For a substitution two plaintexts are
    enough if there are several.
    """
    cipher = kind("ABCDE"[:count], 3)
    dice = Dice(2, 2)
    plaintext_counts = set()
    keys = small_keys(cipher)
    for _ in range(100):
        key = dice.choice(keys)
        plains = [
            [dice.below(2 + dice.below(count - 1)) for _ in range(4)]
            for _ in range(1 + dice.below(2))
        ]
        pairs = [(plain, cipher.encrypt(plain, key)) for plain in plains]
        text = [dice.below(count) for _ in range(4)]
        by_force = [
            key
            for key in keys
            if all(cipher.encrypt(plain, key) == secret for plain, secret in pairs)
        ]
        expected = {tuple(cipher.decrypt(text, key)) for key in by_force}
        plaintexts = {tuple(cipher.decrypt(text, key)) for key in fitting_keys(cipher, pairs)}
        if kind is Substitution:
            assert plaintexts <= expected
            assert len(plaintexts) == min(len(expected), 2)
        else:
            assert plaintexts == expected
        plaintext_counts.add(min(len(plaintexts), 2))
    ambiguous = kind in (Affine, Substitution, Hill, RailFence, Columnar)
    assert plaintext_counts == ({1, 2} if ambiguous else {1})


def test_a_key_that_fits_no_pair_is_not_found() -> None:
    """Pairs of two different keys."""
    for kind in (Caesar, Affine, Vigenere, Autokey, RailFence, Columnar):
        cipher, plain = kind("ABCDE", 3), [0, 1, 2, 3, 4, 1]
        keys = small_keys(cipher)
        ciphertext = cipher.encrypt(plain, keys[-1])
        rival_ciphertext = cipher.encrypt(plain, keys[-2])
        assert ciphertext != rival_ciphertext
        assert fitting_keys(cipher, [(plain, ciphertext)])
        assert fitting_keys(cipher, [(plain, ciphertext), (plain, rival_ciphertext)]) == []


def test_disguises() -> None:
    puzzle: Any = CipherKnownPlaintextPuzzle(10)
    dice = Dice(3, 3)
    forms = set()
    renamed_kinds = set()
    for seed in range(300):
        instance = puzzle.generate(seed)
        forms.add(form := puzzle.canonical(instance))
        reordered = instance._replace(
            plaintexts=instance.plaintexts[::-1], ciphertexts=instance.ciphertexts[::-1]
        )
        assert puzzle.canonical(reordered) == form
        rolled = instance._replace(text=np.roll(instance.text, 1))
        is_one_letter = len(set(instance.text.tolist())) == 1
        assert is_one_letter or puzzle.canonical(rolled) != form
        names, secret_names = (np.array(dice.shuffled(range(16)), np.int8) for _ in range(2))
        kind = type(puzzle.ciphers[int(instance.cipher)])
        if kind in (RailFence, Columnar):
            secret_names = names
        renamed = instance._replace(
            plaintexts=names[instance.plaintexts], ciphertexts=secret_names[instance.ciphertexts],
            text=secret_names[instance.text], answer=names[instance.answer],
        )  # fmt: skip
        assert (puzzle.canonical(renamed) == form) == (kind in (Substitution, RailFence, Columnar))
        if kind in (Substitution, RailFence, Columnar):
            assert puzzle.solve(renamed) == puzzle.write_answer(renamed.answer.tolist())
            renamed_kinds.add(kind)
    assert len(forms) == 300
    assert len(renamed_kinds) == 3


def test_tiers_are_in_order() -> None:
    means = []
    for tier in TIERS:
        puzzle = puzzle_of("CipherKnownPlaintext-v0", tier)
        means.append(fmean(puzzle.difficulty(puzzle.generate(seed)) for seed in range(200)))
    assert means[0] < 0.5 * means[1]
    assert means[1] < 0.75 * means[2]
