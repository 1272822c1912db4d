"""Ciphers by hand for the tests: encryption on strings, from the words of the prompts alone."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

Encryption = Callable[[str], str]


def read_cipher(prompt: str) -> tuple[str, str]:
    """Return the alphabet and the name of the cipher."""
    match = re.search(
        (
            r"The alphabet is ([A-Z]+)\. Its (\d+) letters are numbered from 0 \((.)\) to (\d+) "
            r"\((.)\)"
        ),
        prompt,
    )
    assert match
    alphabet = match[1]
    assert (int(match[2]), match[3], int(match[4])) == (
        len(alphabet),
        alphabet[0],
        len(alphabet) - 1,
    )
    assert match[5] == alphabet[-1]
    (name,) = re.findall(
        r"^([A-Z][a-z]+(?: fence)? (?:cipher|transposition))\. ", prompt, re.MULTILINE
    )
    return alphabet, name


def encryption(alphabet: str, name: str, key: str) -> Encryption:
    """Return the function that encrypts texts with a key as a prompt writes it."""
    parameters = {letter: int(number) for letter, number in re.findall(r"([a-z]) = (\d+)", key)}
    return {
        "Caesar cipher": lambda: by_alphabet(alphabet, rotate(alphabet, parameters["k"])),
        "Atbash cipher": lambda: by_alphabet(alphabet, alphabet[::-1]),
        "Affine cipher": lambda: by_alphabet(alphabet, affine(alphabet, **parameters)),
        "Substitution cipher": lambda: by_alphabet(alphabet, key),
        "Vigenere cipher": lambda: lambda text: add_key(alphabet, text, key * len(text)),
        "Autokey cipher": lambda: lambda text: add_key(alphabet, text, key + text),
        "Hill cipher": lambda: lambda text: multiply(alphabet, text, **parameters),
        "Playfair cipher": lambda: lambda text: encrypt_in_square(key.split(), text),
        "Rail fence cipher": lambda: lambda text: encrypt_on_rails(text, parameters["r"]),
        "Columnar transposition": lambda: (
            lambda text: encrypt_in_columns(text, [int(word) for word in key.split()])
        ),
    }[name]()


def rotate(alphabet: str, by: int) -> str:
    return alphabet[by:] + alphabet[:by]


def affine(alphabet: str, a: int, b: int) -> str:
    return "".join((alphabet * a * len(alphabet))[a * x + b] for x in range(len(alphabet)))


def by_alphabet(alphabet: str, cipher_alphabet: str) -> Encryption:
    assert sorted(cipher_alphabet) == sorted(alphabet)
    return lambda text: text.translate(str.maketrans(alphabet, cipher_alphabet))


def add_key(alphabet: str, text: str, key: str) -> str:
    """Look up in the tabula recta."""
    return "".join(
        rotate(alphabet, alphabet.index(k))[alphabet.index(x)]
        for x, k in zip(text, key)  # noqa: B905
    )


def multiply(alphabet: str, text: str, a: int, b: int, c: int, d: int) -> str:
    pairs = np.array([alphabet.index(x) for x in text]).reshape(-1, 2)
    return "".join(
        alphabet[z] for z in (pairs @ np.array([[a, c], [b, d]]) % len(alphabet)).ravel()
    )


def encrypt_in_square(rows: list[str], text: str) -> str:
    columns = ["".join(column) for column in zip(*rows, strict=True)]
    secret = ""
    for x, y in re.findall("(.)(.)", text):
        row, other_row = (next(row for row in rows if letter in row) for letter in (x, y))
        column, other_column = (
            next(column for column in columns if letter in column) for letter in (x, y)
        )
        if row == other_row:
            secret += "".join((row * 2)[row.index(letter) + 1] for letter in (x, y))
        elif column == other_column:
            secret += "".join((column * 2)[column.index(letter) + 1] for letter in (x, y))
        else:
            secret += crossing(row, other_column) + crossing(other_row, column)
    return secret


def crossing(row: str, column: str) -> str:
    """Return the letter that stands in both."""
    (letter,) = set(row) & set(column)
    return letter


def encrypt_on_rails(text: str, count: int) -> str:
    rails, rail, step = [""] * count, 0, 1
    for letter in text:
        rails[rail] += letter
        if not 0 <= rail + step < count:
            step = -step
        rail += step
    return "".join(rails)


def encrypt_in_columns(text: str, order: list[int]) -> str:
    rows = [text[start : start + len(order)] for start in range(0, len(text), len(order))]
    return "".join(row[column - 1] for column in order for row in rows if column <= len(row))


def decrypt_by_search(alphabet: str, name: str, encrypt: Encryption, secret: str) -> str:
    """Return the only text that becomes this one."""
    if name in ("Rail fence cipher", "Columnar transposition"):
        marks = "".join(chr(1000 + place) for place in range(len(secret)))
        return "".join(letter for _, letter in sorted(zip(encrypt(marks), secret, strict=True)))
    if name in ("Hill cipher", "Playfair cipher"):
        pairs = [x + y for x in alphabet for y in alphabet if name == "Hill cipher" or x != y]
        back = {encrypt(pair): pair for pair in pairs}
        assert len(back) == len(pairs)
        return "".join(back[pair] for pair in re.findall("..", secret))
    plain = ""
    while len(plain) < len(secret):
        (letter,) = (x for x in alphabet if encrypt(plain + x) == secret[: len(plain) + 1])
        plain += letter
    return plain
