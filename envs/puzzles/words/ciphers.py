"""Classical ciphers over any alphabet.

Texts and keys are sequences of indices into the alphabet, from 0.

Each is a bijection: for every key, :meth:`Cipher.decrypt` undoes :meth:`Cipher.encrypt` and the
other way round, on all texts that the cipher takes. Conventions are those of Menezes, van Oorschot
& Vanstone 1996, Handbook of Applied Cryptography, section 7.3, and of the published examples that
the tests cite.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from itertools import cycle
from math import factorial, gcd, isqrt
from typing import ClassVar

from rlbench_suite.puzzle.dice import Dice

Numbers = Sequence[int]


class Cipher(abc.ABC):
    """A method of encryption.

    Args:
        alphabet: letters of the texts.
        width: length of a key word, number of columns, or largest number of rails, where a cipher
            has them.
    """

    name: ClassVar[str]
    #: Number of operations by hand for each letter of a text: numbers added or multiplied, letters
    #: looked up or moved.
    steps: ClassVar[int]

    def __init__(self, alphabet: str, width: int) -> None:
        self.alphabet, self.width = alphabet, width
        self.count = len(alphabet)

    @property
    @abc.abstractmethod
    def keys(self) -> float:
        """Number of keys."""

    @abc.abstractmethod
    def key(self, dice: Dice) -> list[int]:
        """Return a random key that changes texts."""

    @abc.abstractmethod
    def encrypt(self, text: Numbers, key: Numbers) -> list[int]:
        """Return the ciphertext of a plaintext that the cipher takes."""

    @abc.abstractmethod
    def decrypt(self, text: Numbers, key: Numbers) -> list[int]:
        """Return the plaintext of a ciphertext."""

    @abc.abstractmethod
    def method(self) -> str:
        """Explain what a key is and how it encrypts texts."""

    @abc.abstractmethod
    def key_text(self, key: Numbers) -> str:
        """Return the key in words."""

    def takes(self, text: Numbers) -> bool:
        """Return whether the method says how to encrypt this text."""
        return True

    def letters(self, text: Numbers) -> str:
        """Return a text in letters."""
        return "".join(self.alphabet[number] for number in text)


class LetterCipher(Cipher):
    """A cipher that replaces each letter by another that does not depend on the letter's place."""

    @abc.abstractmethod
    def table(self, key: Numbers) -> Numbers:
        """Return the letter that replaces each letter of the alphabet."""

    def encrypt(self, text: Numbers, key: Numbers) -> list[int]:
        """Replace letter by letter."""
        table = self.table(key)
        return [table[number] for number in text]

    def decrypt(self, text: Numbers, key: Numbers) -> list[int]:
        """Look up in the inverse table."""
        table = _inverse(self.table(key))
        return [table[number] for number in text]


class Caesar(LetterCipher):
    """The Caesar cipher. A key is one number."""

    name = "Caesar cipher"
    steps = 1

    @property
    def keys(self) -> float:
        """Number of keys: the number of places by which a letter can be shifted."""
        return float(self.count)

    def key(self, dice: Dice) -> list[int]:
        """Draw any number but 0."""
        return [dice.between(1, self.count - 1)]

    def table(self, key: Numbers) -> Numbers:
        """Return the alphabet, shifted."""
        return [(x + key[0]) % self.count for x in range(self.count)]

    def method(self) -> str:
        """Explain the method in words."""
        return (
            f"{self.name}. The key is a number k from 0 to {self.count - 1}. To encrypt, replace "
            f"each letter by the one whose number is greater by k, modulo {self.count}."
        )

    def key_text(self, key: Numbers) -> str:
        """Return the number."""
        return f"k = {key[0]}"


class Atbash(LetterCipher):
    """The Atbash cipher, which has no key."""

    name = "Atbash cipher"
    steps = 1

    @property
    def keys(self) -> float:
        """Number of keys: 1, because there is no key."""
        return 1.0

    def key(self, dice: Dice) -> list[int]:
        """Return the empty key."""
        return []

    def table(self, key: Numbers) -> Numbers:
        """Return the alphabet backwards."""
        return range(self.count - 1, -1, -1)

    def method(self) -> str:
        """Explain the method in words."""
        return (
            f"{self.name}. To encrypt, replace the letter of number x by that of number "
            f"{self.count - 1} - x."
        )

    def key_text(self, key: Numbers) -> str:
        """Say that there is none."""
        return "none"


class Affine(LetterCipher):
    """The affine cipher. A key is a factor and a summand."""

    name = "Affine cipher"
    steps = 2

    @property
    def keys(self) -> float:
        """Number of factors times number of summands."""
        return float(len(self.factors()) * self.count)

    def key(self, dice: Dice) -> list[int]:
        """Draw a factor other than 1, which would make a Caesar cipher, and a displacement."""
        return [dice.choice(self.factors()[1:]), dice.below(self.count)]

    def factors(self) -> list[int]:
        """Return the factors that can be undone, 1 first."""
        return [a for a in range(1, self.count) if gcd(a, self.count) == 1]

    def table(self, key: Numbers) -> Numbers:
        """Return the alphabet, multiplied and shifted."""
        return [(key[0] * x + key[1]) % self.count for x in range(self.count)]

    def method(self) -> str:
        """Explain the method in words."""
        return (
            f"{self.name}. The key is two numbers a and b from 0 to {self.count - 1}, where a has "
            f"no factor in common with {self.count}. To encrypt, replace the letter of number x by "
            f"that of number a * x + b, modulo {self.count}."
        )

    def key_text(self, key: Numbers) -> str:
        """Name both numbers."""
        return f"a = {key[0]}, b = {key[1]}"


class Substitution(LetterCipher):
    """The substitution cipher. A key is the alphabet in another order."""

    name = "Substitution cipher"
    steps = 1

    @property
    def keys(self) -> float:
        """Number of orders of the alphabet."""
        return float(factorial(self.count))

    def key(self, dice: Dice) -> list[int]:
        """Draw any order."""
        return dice.shuffled(range(self.count))

    def table(self, key: Numbers) -> Numbers:
        """Return the key."""
        return key

    def method(self) -> str:
        """Explain the method in words."""
        return (
            f"{self.name}. The key is the alphabet in another order. To encrypt, replace each "
            "letter of the alphabet "
            "by the letter at the same place of the key."
        )

    def key_text(self, key: Numbers) -> str:
        """Return the letters."""
        return self.letters(key)


class Vigenere(Cipher):
    """The Vigenere cipher. A key is a word of ``width`` letters."""

    name = "Vigenere cipher"
    steps = 2

    @property
    def keys(self) -> float:
        """Number of key words."""
        return float(self.count**self.width)

    def key(self, dice: Dice) -> list[int]:
        """Draw any word but the one that changes nothing."""
        word = [dice.below(self.count) for _ in range(self.width)]
        return word if any(word) else self.key(dice)

    def encrypt(self, text: Numbers, key: Numbers) -> list[int]:
        """Add the key."""
        return [(x + k) % self.count for x, k in zip(text, cycle(key))]

    def decrypt(self, text: Numbers, key: Numbers) -> list[int]:
        """Take the key away."""
        return [(x - k) % self.count for x, k in zip(text, cycle(key))]

    def method(self) -> str:
        """Explain the method in words."""
        return (
            f"{self.name}. The key is a word of {self.width} letters. To encrypt, write the key "
            "below the plaintext "
            "again and again, and add to the number of each letter that of the letter below it, "
            "modulo "
            f"{self.count}."
        )

    def key_text(self, key: Numbers) -> str:
        """Return the word."""
        return self.letters(key)


class Autokey(Vigenere):
    """The autokey cipher, which continues with the plaintext after the key word."""

    name = "Autokey cipher"
    steps = 2

    def encrypt(self, text: Numbers, key: Numbers) -> list[int]:
        """Add the key word, then the text."""
        return [(x + k) % self.count for x, k in zip(text, [*key, *text], strict=False)]

    def decrypt(self, text: Numbers, key: Numbers) -> list[int]:
        """Find letter by letter; each letter found extends the key."""
        stream = list(key)
        for position, x in enumerate(text):
            stream.append((x - stream[position]) % self.count)
        return stream[len(key) :]

    def method(self) -> str:
        """Explain the method in words."""
        return (
            f"{self.name}. The key is a word of {self.width} letters. To encrypt, write below the "
            "plaintext the key "
            "once and then the plaintext itself from its beginning, and add to the number of each "
            "letter that of the "
            f"letter below it, modulo {self.count}."
        )


class Hill(Cipher):
    """The Hill cipher.

    A key is a matrix of two rows and columns; texts have an even number of letters.
    """

    name = "Hill cipher"
    steps = 3

    @property
    def keys(self) -> float:
        """Number of matrices that can be inverted.

        This must be possible modulo every prime factor of the number of letters.
        """
        keys = float(self.count**4)
        for p in range(2, self.count + 1):
            if self.count % p == 0 and all(p % q for q in range(2, p)):
                keys *= (1 - 1 / p) * (1 - 1 / p**2)
        return keys

    def key(self, dice: Dice) -> list[int]:
        """Draw any matrix that can be inverted."""
        while True:
            matrix = [dice.below(self.count) for _ in range(4)]
            if self.is_invertible(matrix):
                return matrix

    def is_invertible(self, key: Numbers) -> bool:
        """Return whether the determinant has an inverse modulo the number of letters."""
        a, b, c, d = key
        return gcd(a * d - b * c, self.count) == 1

    def encrypt(self, text: Numbers, key: Numbers) -> list[int]:
        """Return the matrix times each pair of letters."""
        a, b, c, d = key
        return [z % self.count for x, y in _pairs(text) for z in (a * x + b * y, c * x + d * y)]

    def decrypt(self, text: Numbers, key: Numbers) -> list[int]:
        """Multiply with the inverse matrix."""
        a, b, c, d = key
        factor = pow(a * d - b * c, -1, self.count)
        return self.encrypt(text, [factor * d, -factor * b, -factor * c, factor * a])

    def method(self) -> str:
        """Explain the method in words."""
        return (
            f"{self.name}. The key is four numbers a, b, c and d from 0 to {self.count - 1}, where "
            "a * d - b * c has "
            f"no factor in common with {self.count}. To encrypt, cut the plaintext into pairs of "
            "letters and replace "
            "the letters of numbers x and y of each pair by those of numbers a * x + b * y and c * "
            "x + d * y, modulo "
            f"{self.count}."
        )

    def key_text(self, key: Numbers) -> str:
        """Name all four numbers."""
        return ", ".join(f"{name} = {number}" for name, number in zip("abcd", key, strict=True))


class Playfair(Cipher):
    """The Playfair cipher.

    A key is a square of all letters; texts are pairs of different letters.
    """

    name = "Playfair cipher"
    steps = 2

    def __init__(self, alphabet: str, width: int) -> None:
        super().__init__(alphabet, width)
        self.side = isqrt(self.count)
        if self.side**2 != self.count:
            raise ValueError(
                f"{self.name}: the letters of the alphabet fill a square, got {self.count} of them."
            )

    @property
    def keys(self) -> float:
        """Number of orders of the alphabet.

        Orders that differ by a rotation of rows or columns encrypt alike.
        """
        return float(factorial(self.count))

    def key(self, dice: Dice) -> list[int]:
        """Draw any square."""
        return dice.shuffled(range(self.count))

    def takes(self, text: Numbers) -> bool:
        """Return whether the letters of every pair differ."""
        return all(x != y for x, y in _pairs(text))

    def encrypt(self, text: Numbers, key: Numbers) -> list[int]:
        """Move to the right, down, or across."""
        return self._move_letters(text, key, 1)

    def decrypt(self, text: Numbers, key: Numbers) -> list[int]:
        """Move to the left, up, or across."""
        return self._move_letters(text, key, -1)

    def _move_letters(self, text: Numbers, key: Numbers, step: int) -> list[int]:
        side, positions = self.side, _inverse(key)
        moved: list[int] = []
        for x, y in _pairs(text):
            (r, c), (q, d) = divmod(positions[x], side), divmod(positions[y], side)
            if r == q:
                c, d = (c + step) % side, (d + step) % side
            elif c == d:
                r, q = (r + step) % side, (q + step) % side
            else:
                c, d = d, c
            moved += key[r * side + c], key[q * side + d]
        return moved

    def method(self) -> str:
        """Explain the method in words."""
        return (
            f"{self.name}. The key is a square with all letters of the alphabet. To encrypt, cut "
            "the plaintext into "
            "pairs of letters; no pair holds one letter twice. If both letters of a pair stand in "
            "one row of the "
            "square, replace each by the letter to its right (at the end of the row by the first "
            "one of the row). "
            "If they stand in one column, replace each by the letter below it (at the bottom by "
            "the first one of the "
            "column). Otherwise replace each by the letter in its own row and in the column of the "
            "other."
        )

    def key_text(self, key: Numbers) -> str:
        """Return the rows of the square."""
        return "".join(
            f"\n{self.letters(key[r : r + self.side])}" for r in range(0, self.count, self.side)
        )


class Transposition(Cipher):
    """A cipher that keeps the letters and changes their order."""

    @abc.abstractmethod
    def order(self, length: int, key: Numbers) -> list[int]:
        """Return for each place of the ciphertext the place that its letter comes from.

        The latter is a place of the plaintext.
        """

    def encrypt(self, text: Numbers, key: Numbers) -> list[int]:
        """Return each letter to its new place."""
        return [text[position] for position in self.order(len(text), key)]

    def decrypt(self, text: Numbers, key: Numbers) -> list[int]:
        """Put each letter back to its place."""
        return [text[position] for position in _inverse(self.order(len(text), key))]


class RailFence(Transposition):
    """The rail fence cipher. A key is a number of rails, at most ``width``."""

    name = "Rail fence cipher"
    steps = 2

    @property
    def keys(self) -> float:
        """Number of possible numbers of rails."""
        return float(self.width - 1)

    def key(self, dice: Dice) -> list[int]:
        """Draw a number of rails, from 2 on."""
        return [dice.between(2, self.width)]

    def order(self, length: int, key: Numbers) -> list[int]:
        """Go rail after rail."""
        last = key[0] - 1
        return sorted(range(length), key=lambda position: last - abs(last - position % (2 * last)))

    def method(self) -> str:
        """Explain the method in words."""
        return (
            f"{self.name}. The key is a number r of rails, from 2 to {self.width}. To encrypt, "
            "write the plaintext in "
            "a zigzag, each letter one rail further: from rail 1 down to rail r, up again to rail "
            "1, and so on. Then "
            "read rail 1 from left to right, then rail 2, and so on."
        )

    def key_text(self, key: Numbers) -> str:
        """Return the number."""
        return f"r = {key[0]}"


class Columnar(Transposition):
    """The columnar cipher. A key is an order of ``width`` columns."""

    name = "Columnar transposition"
    steps = 2

    @property
    def keys(self) -> float:
        """Number of orders of the columns."""
        return float(factorial(self.width))

    def key(self, dice: Dice) -> list[int]:
        """Draw any order."""
        return dice.shuffled(range(self.width))

    def order(self, length: int, key: Numbers) -> list[int]:
        """Go column after column."""
        return [position for column in key for position in range(column, length, self.width)]

    def method(self) -> str:
        """Explain the method in words."""
        return (
            f"{self.name}. The key is an order of the columns 1 to {self.width}. To encrypt, write "
            "the plaintext in "
            f"rows of {self.width} letters; the last row may be shorter. Then read the columns "
            "from top to bottom, one "
            "after the other in the order of the key."
        )

    def key_text(self, key: Numbers) -> str:
        """Name the columns, the first to be read first."""
        return " ".join(str(column + 1) for column in key)


def _inverse(order: Numbers) -> list[int]:
    """Return the permutation that undoes another."""
    inverse = [0] * len(order)
    for position, number in enumerate(order):
        inverse[number] = position
    return inverse


def _pairs(text: Numbers) -> Iterator[tuple[int, int]]:
    """Return a text of even length cut into pairs."""
    return zip(text[::2], text[1::2], strict=True)
