"""rlsuite/CipherKnownKey-v0: encrypt or decrypt a text with a classical cipher and its key.

``difficulty`` is the number of letters, which also determines the ciphers (``TIERS``). Texts are
pseudo-words. Every cipher is a bijection on the texts that it takes, so there is one answer. Half
of the instances ask for the plaintext, half for the ciphertext. Plaintexts for the Playfair cipher
have no pair with one letter twice, so that no rule about padding is needed. See :mod:`.spelling`
for actions, observations and rewards. The observed facts are the cipher, the direction, the numbers
of the key (in one place to encrypt, in another to decrypt) and the text.

With 8 letters there are some 280,000 instances.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import RIGHT, Verdict, wrong

from .ciphers import (
    Affine,
    Atbash,
    Autokey,
    Caesar,
    Cipher,
    Columnar,
    Hill,
    Numbers,
    Playfair,
    RailFence,
    Substitution,
    Vigenere,
)
from .pseudo_words import pseudo_word, pseudo_words
from .spelling import NOTHING, SpellingTask, TextPuzzle


class Tier(NamedTuple):
    """Make-up of the instances of one length."""

    alphabet: str
    width: int
    """See :class:`~.ciphers.Cipher`."""
    longest_key: int
    """Most numbers of a key."""
    ciphers: tuple[type[Cipher], ...]


TIERS = {
    8: Tier("ABCDE", 2, 1, (Caesar, Atbash)),
    12: Tier(
        "ABCDEFGHIJKLMNOP", 3, 16, (Caesar, Affine, Substitution, Vigenere, RailFence, Columnar)
    ),
    24: Tier(
        "ABCDEFGHIKLMNOPQRSTUVWXYZ", 5, 25, (Vigenere, Autokey, Hill, Playfair, RailFence, Columnar)
    ),
}
"""Tier by the number of letters of the text."""


class Instance(NamedTuple):
    """A cipher, its key, a text and its ciphertext; letters are numbers from 0."""

    cipher: np.ndarray
    """int8: index of the cipher in the tier."""
    decrypt: np.ndarray
    """int8: 1 if the ciphertext is shown and the plaintext is the answer, 0 the other way round."""
    key: np.ndarray
    """int8 ``(longest key,)``: the key; -1 after its end."""
    plaintext: np.ndarray
    """int8 ``(length,)``."""
    ciphertext: np.ndarray
    """int8 ``(length,)``. No solver reads the text in question."""


class CipherKnownKeyPuzzle(TextPuzzle[Instance]):
    """``tier`` is the number of letters of the text."""

    name = "CipherKnownKey"
    difficulty_is = "numbers to add or multiply and letters to look up or to move, by hand"
    tier_is = "the number of letters"
    tiers = tuple(TIERS)

    def __init__(self, tier: float) -> None:
        super().__init__(tier)
        self.length = int(tier)
        self.alphabet, width, self.longest_key, ciphers = TIERS[self.length]
        self.ciphers = [kind(self.alphabet, width) for kind in ciphers]

    def compose(self, dice: Dice) -> Instance | None:
        """Draw everything at random."""
        number = dice.below(len(self.ciphers))
        cipher = self.ciphers[number]
        plaintext = pseudo_word(dice, self.length, self.alphabet)
        while not cipher.takes(plaintext):
            plaintext = pseudo_word(dice, self.length, self.alphabet)
        key = cipher.key(dice)
        ciphertext = cipher.encrypt(plaintext, key)
        ended = [NOTHING] * (self.longest_key - len(key))
        fields = number, dice.below(2), key + ended, plaintext, ciphertext
        return Instance(*(np.array(field, np.int8) for field in fields))

    def canonical(self, instance: Instance) -> bytes:
        """Return the least form of the cipher and both texts.

        It leaves out which text is shown, and unused parts of the key.
        """
        texts = sorted((instance.plaintext.tobytes(), instance.ciphertext.tobytes()))
        return instance.cipher.tobytes() + b"".join(texts)

    @property
    def space(self) -> float:
        """Number of texts times number of keys; both directions of an instance count once."""
        return (
            pseudo_words(self.length, self.alphabet)
            * sum(cipher.keys for cipher in self.ciphers)
            / 2
        )

    def statement(self, instance: Instance) -> str:
        """State the alphabet, the cipher, the key and the text."""
        cipher, key = self._cipher(instance)
        ask = "Decrypt this ciphertext" if instance.decrypt else "Encrypt this plaintext"
        return (
            f"{self.numbering()}\n\n{cipher.method()}\nKey: {cipher.key_text(key)}\n\n"
            f"{ask}:\n{self.write_answer(self.text(instance))}"
        )

    def judge(self, instance: Instance, answer: str) -> Verdict:
        """Return whether the plaintext becomes the ciphertext."""
        cipher, key = self._cipher(instance)
        plaintext, ciphertext = self.read(answer), self.text(instance)
        if not instance.decrypt:
            plaintext, ciphertext = ciphertext, plaintext
        return (
            RIGHT
            if cipher.encrypt(plaintext, key) == ciphertext
            else wrong("the plaintext becomes another text")
        )

    def text(self, instance: Instance) -> list[int]:
        """Return the text that is shown, plaintext or ciphertext."""
        text: list[int] = (instance.ciphertext if instance.decrypt else instance.plaintext).tolist()
        return text

    def solution(self, instance: Instance) -> list[int]:
        """Apply the method."""
        cipher, key = self._cipher(instance)
        return (cipher.decrypt if instance.decrypt else cipher.encrypt)(self.text(instance), key)

    def difficulty(self, instance: Instance) -> float:
        """Multiply the work for a letter by the number of letters."""
        return float(self._cipher(instance)[0].steps * self.length)

    def heuristic(self, instance: Instance) -> str:
        """Treat every cipher as Caesar's, with the first number of the key."""
        key = self._cipher(instance)[1][:1] or [0]
        caesar = Caesar(self.alphabet, 0)
        return self.write_answer(
            (caesar.decrypt if instance.decrypt else caesar.encrypt)(self.text(instance), key)
        )

    def _cipher(self, instance: Instance) -> tuple[Cipher, Numbers]:
        """Return the cipher and its key."""
        return self.ciphers[int(instance.cipher)], [
            number for number in instance.key.tolist() if number != NOTHING
        ]


class CipherKnownKey(SpellingTask):
    """The interactive form: encrypt or decrypt, a letter a step."""

    puzzle: CipherKnownKeyPuzzle
    puzzle_class = CipherKnownKeyPuzzle

    @property
    def fact_count(self) -> int:
        """Ciphers, key for either direction, and text."""
        return (
            len(self.puzzle.ciphers) + (2 * self.puzzle.longest_key + self.length) * self.count + 2
        )

    def facts(self, instance: Any, letter: jax.Array) -> list[jax.Array]:
        """Return the facts one-hot, in that order.

        The direction decides where the key stands, so that a letter's fate depends on two things
        and not on three.
        """
        direction = instance.decrypt == np.arange(2)
        return [
            instance.cipher == np.arange(len(self.puzzle.ciphers)),
            direction,
            direction[:, None, None] & self.one_hot(instance.key),
            self.one_hot(self.shown_text(instance)),
        ]

    @property
    def fact_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`facts`."""
        ciphers, count = self.puzzle.ciphers, self.count
        key = (
            "[direction, place, number]: the key where the direction has its place, one-hot; a "
            "number, or a letter's"
        )
        return (
            Component(
                "cipher",
                f"one-hot: {', '.join(kind.name for kind in ciphers)}",
                shape=(len(ciphers),),
            ),
            Component("direction", "one-hot: to encrypt, to decrypt", shape=(2,)),
            Component("key", key, shape=(2, self.puzzle.longest_key, count)),
            Component(
                "text",
                "[place, letter]: the text to encrypt or decrypt, one-hot",
                shape=(self.length, count),
            ),
        )

    def shown_text(self, instance: Any) -> jax.Array:
        """Return the text that is shown, plaintext or ciphertext."""
        return jnp.where(instance.decrypt == 1, instance.ciphertext, instance.plaintext)

    def answer(self, instance: Any) -> jax.Array:
        """Return the text that is not shown."""
        return jnp.where(instance.decrypt == 1, instance.plaintext, instance.ciphertext)
