"""rlsuite/CipherKnownPlaintext-v0: decrypt a text whose key is unknown.

Plaintexts and ciphertexts of the same key are given.

The method is known, and so are plaintexts with their ciphertexts under one key. An instance is kept
only if all keys that fit decrypt the text to the same plaintext, which trying them all proves
(:func:`fitting_keys`). So there is one answer, even if several keys fit.

``difficulty`` is the number of letters of each text, which also determines the ciphers (``TIERS``);
it grows with the size of the key. Texts are pseudo-words. See :mod:`.spelling` for actions,
observations and rewards. The observed facts are the cipher, the plaintexts, their ciphertexts, the
text, and the letters that stood in the plaintexts for the ciphertext's letter at the place to
write.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain, permutations, product
from typing import Any, NamedTuple

import jax
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Verdict, wrong

from ..shared.symmetry import relabel_values, smallest_form
from .ciphers import (
    Affine,
    Autokey,
    Caesar,
    Cipher,
    Columnar,
    Hill,
    Numbers,
    RailFence,
    Substitution,
    Transposition,
    Vigenere,
)
from .pseudo_words import pseudo_word
from .spelling import SpellingTask, TextPuzzle

_TRIES = 1000
Pairs = Sequence[tuple[Numbers, Numbers]]
"""Plaintexts and their ciphertexts."""


class Tier(NamedTuple):
    """Make-up of the instances of one length."""

    alphabet: str
    width: int
    """See :class:`~.ciphers.Cipher`."""
    pairs: int
    ciphers: tuple[type[Cipher], ...]


TIERS = {
    4: Tier("ABCDE", 2, 2, (Caesar, Affine)),
    10: Tier("ABCDEFGHIJKLMNOP", 4, 2, (Affine, Vigenere, Hill, RailFence, Columnar, Substitution)),
    12: Tier("ABCDEFGHIKLMNOPQRSTUVWXYZ", 5, 3, (Vigenere, Autokey, Hill)),
}
"""Tier by the number of letters of a text."""


class Instance(NamedTuple):
    """A cipher, some texts with their ciphertexts, and a text to decrypt.

    Letters are numbers from 0.
    """

    cipher: np.ndarray
    """int8: index of the cipher in the tier."""
    plaintexts: np.ndarray
    """int8 ``(pairs, length)``."""
    ciphertexts: np.ndarray
    """int8 ``(pairs, length)``."""
    text: np.ndarray
    """int8 ``(length,)``: the ciphertext to decrypt."""
    answer: np.ndarray
    """int8 ``(length,)``: plaintext of the text, for the interactive task.

    Neither solver nor verifier reads it.
    """


def fitting_keys(cipher: Cipher, pairs: Pairs) -> list[Numbers]:
    """Return the keys that fit all pairs.

    For a substitution, return two of them (or the only one). These two differ in every letter in
    which any two fitting keys differ.
    """
    return [
        key
        for key in _candidates(cipher, pairs)
        if all(cipher.encrypt(plain, key) == list(text) for plain, text in pairs)
    ]


def _candidates(cipher: Cipher, pairs: Pairs) -> Iterable[Numbers]:
    """Return keys that include all fitting ones (for a substitution, two of them)."""
    every = range(cipher.count)
    keys: Iterable[Numbers]
    match cipher:
        case Caesar():
            keys = ((k,) for k in every)
        case Affine():
            keys = product(cipher.factors(), every)
        case RailFence():
            keys = ((r,) for r in range(2, cipher.width + 1))
        case Columnar():
            keys = permutations(range(cipher.width))
        case Vigenere():  # the autokey cipher too begins with the key word
            (plain, text), *_ = pairs
            keys = [
                [(y - x) % cipher.count for x, y in zip(plain, text, strict=True)][: cipher.width]
            ]
        case Hill():
            first, second = (_rows(cipher.count, pairs, position) for position in range(2))
            keys = (key for a, b in product(first, second) if cipher.is_invertible(key := (*a, *b)))
        case Substitution():
            keys = _substitutions(cipher.count, pairs)
        case _:
            raise TypeError(f"{cipher.name}: its keys are not found from pairs of texts")
    return keys


def _rows(count: int, pairs: Pairs, position: int) -> list[tuple[int, ...]]:
    """Return rows of a matrix that give the letters at one place of the pairs of letters."""
    rows = list(product(range(count), repeat=2))
    for plain, text in pairs:
        for x, y, z in zip(plain[::2], plain[1::2], text[position::2], strict=True):
            rows = [row for row in rows if (row[0] * x + row[1] * y) % count == z]
    return rows


def _substitutions(count: int, pairs: Pairs) -> list[list[int]]:
    """Return two tables for the letters that the pairs leave open.

    They send letters not seen in the plaintexts to letters not seen in the ciphertexts, in order
    and in the order shifted by one.
    """
    table = {x: y for plain, text in pairs for x, y in zip(plain, text, strict=True)}
    open_letters = [x for x in range(count) if x not in table]
    unused_letters = [y for y in range(count) if y not in table.values()]
    orders = (
        [unused_letters, unused_letters[1:] + unused_letters[:1]]
        if len(unused_letters) > 1
        else [unused_letters]
    )
    tables = (table | dict(zip(open_letters, order, strict=True)) for order in orders)
    return [[table_of_key[x] for x in range(count)] for table_of_key in tables]


class CipherKnownPlaintextPuzzle(TextPuzzle[Instance]):
    """``tier`` is the number of letters of each text."""

    name = "CipherKnownPlaintext"
    difficulty_is = "bits of the key: the binary logarithm of how many keys the cipher has"
    tier_is = "the number of letters"
    tiers = tuple(TIERS)

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.length = int(tier)
        self.alphabet, width, self.pairs, ciphers = TIERS[self.length]
        self.ciphers = [kind(self.alphabet, width) for kind in ciphers]

    def compose(self, dice: Dice) -> Instance | None:
        """Draw everything at random until the pairs tell enough.

        The cipher stays, so that all are equally frequent.
        """
        number = dice.below(len(self.ciphers))
        cipher = self.ciphers[number]
        for _ in range(_TRIES):
            key = cipher.key(dice)
            *plaintexts, answer = (
                pseudo_word(dice, self.length, self.alphabet) for _ in range(self.pairs + 1)
            )
            if answer in plaintexts:
                continue
            ciphertexts = [cipher.encrypt(plain, key) for plain in plaintexts]
            text = cipher.encrypt(answer, key)
            if (
                len(self._answers(cipher, list(zip(plaintexts, ciphertexts, strict=True)), text))
                == 1
            ):
                fields = number, plaintexts, ciphertexts, text, answer
                return Instance(*(np.array(field, np.int8) for field in fields))
        return None

    @staticmethod
    def _answers(cipher: Cipher, pairs: Pairs, text: Numbers) -> list[Numbers]:
        """Return the plaintexts under the keys that fit."""
        return list({tuple(cipher.decrypt(text, key)) for key in fitting_keys(cipher, pairs)})

    def canonical(self, instance: Instance) -> bytes:
        """Return the least form of the instance.

        The order of the pairs does not matter. Nor do the names of letters: for a transposition
        those of all texts at once, for a substitution those of plaintexts and those of ciphertexts.
        """
        cipher, pairs, text = self._cipher_and_texts(instance)
        forms = []
        for order in permutations(pairs):
            plain = [x + 1 for plaintext, _ in order for x in plaintext]
            secret = [y + 1 for _, ciphertext in order for y in ciphertext] + [y + 1 for y in text]
            if isinstance(cipher, Substitution):
                forms.append(relabel_values(plain) + relabel_values(secret))
            else:
                forms.append(
                    relabel_values(plain + secret)
                    if isinstance(cipher, Transposition)
                    else plain + secret
                )
        return instance.cipher.tobytes() + smallest_form(forms)

    def statement(self, instance: Instance) -> str:
        """State the alphabet, the cipher, the pairs and the text."""
        cipher, pairs, text = self._cipher_and_texts(instance)
        lines = "\n".join(
            f"{self.write_answer(plain)} becomes {self.write_answer(secret)}"
            for plain, secret in pairs
        )
        return (
            f"{self.numbering()}\n\n{cipher.method()}\n\nThe key is unknown. With it,\n{lines}\n\n"
            "Decrypt this ciphertext, which was encrypted with the same key:\n"
            f"{self.write_answer(text)}"
        )

    def judge(self, instance: Instance, answer: str) -> Verdict:
        """Return whether a key that fits the pairs decrypts the text to this answer."""
        fits = tuple(self.read(answer)) in self._answers(*self._cipher_and_texts(instance))
        return RIGHT if fits else wrong("no key that fits the pairs decrypts the text to this")

    def text(self, instance: Instance) -> list[int]:
        """Return the one to decrypt."""
        text: list[int] = instance.text.tolist()
        return text

    def solution(self, instance: Instance) -> list[int]:
        """Decrypt with the first key that fits."""
        cipher, pairs, text = self._cipher_and_texts(instance)
        return cipher.decrypt(text, fitting_keys(cipher, pairs)[0])

    def difficulty(self, instance: Instance) -> float:
        """Return the difficulty of the cipher."""
        return math.log2(self._cipher_and_texts(instance)[0].keys)

    def heuristic(self, instance: Instance) -> str:
        """Replace each letter by the plaintext letter that last stood against it.

        A letter without one is kept.
        """
        _, pairs, text = self._cipher_and_texts(instance)
        faced = dict(
            chain.from_iterable(zip(secret, plain, strict=True) for plain, secret in pairs)
        )
        return self.write_answer([faced.get(y, y) for y in text])

    def _cipher_and_texts(self, instance: Instance) -> tuple[Cipher, Pairs, list[int]]:
        """Return cipher, pairs and text."""
        pairs = list(zip(instance.plaintexts.tolist(), instance.ciphertexts.tolist(), strict=True))
        return self.ciphers[int(instance.cipher)], pairs, self.text(instance)


class CipherKnownPlaintext(SpellingTask):
    """The interactive form: decrypt without the key, a letter a step."""

    puzzle: CipherKnownPlaintextPuzzle
    puzzle_class = CipherKnownPlaintextPuzzle

    @property
    def fact_count(self) -> int:
        """Ciphers, both texts of each pair, the text, and letters faced."""
        return (
            len(self.puzzle.ciphers) + ((2 * self.puzzle.pairs + 1) * self.length + 1) * self.count
        )

    def facts(self, instance: Any, letter: jax.Array) -> list[jax.Array]:
        """Return the facts one-hot, in the order of :meth:`fact_count`.

        The last ones are the plaintext letters that stood against the current letter.
        """
        plain, secret, text = map(
            self.one_hot, (instance.plaintexts, instance.ciphertexts, instance.text)
        )
        faced = (plain & (secret & letter).any(axis=2, keepdims=True)).any(axis=(0, 1))
        return [instance.cipher == np.arange(len(self.puzzle.ciphers)), plain, secret, text, faced]

    @property
    def fact_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`facts`."""
        ciphers, text = self.puzzle.ciphers, (self.length, self.count)
        pairs = (self.puzzle.pairs, *text)
        return (
            Component(
                "cipher",
                f"one-hot: {', '.join(kind.name for kind in ciphers)}",
                shape=(len(ciphers),),
            ),
            Component(
                "plaintexts",
                "[pair, place, letter]: the plaintexts that are told, one-hot",
                shape=pairs,
            ),
            Component(
                "ciphertexts",
                "[pair, place, letter]: what became of them under the key, one-hot",
                shape=pairs,
            ),
            Component("text", "[place, letter]: the text to decrypt, one-hot", shape=text),
            Component(
                "faced",
                "which letters of plaintexts the letter to decrypt next stands for somewhere",
                shape=(self.count,),
            ),
        )

    def shown_text(self, instance: Any) -> jax.Array:
        """Return the text to decrypt."""
        return instance.text

    def answer(self, instance: Any) -> jax.Array:
        """Return the plaintext."""
        return instance.answer
