"""The ciphers against published examples, against their definitions, and as bijections."""

from __future__ import annotations

from itertools import permutations, product
from string import ascii_uppercase

import pytest

from rlbench_suite.envs.puzzles.words.ciphers import (
    Affine,
    Atbash,
    Autokey,
    Caesar,
    Cipher,
    Columnar,
    Hill,
    Playfair,
    RailFence,
    Substitution,
    Vigenere,
)
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants

LATIN = ascii_uppercase
WITHOUT_J = LATIN.replace("J", "")
CIPHERS = (
    Caesar,
    Atbash,
    Affine,
    Substitution,
    Vigenere,
    Autokey,
    Hill,
    Playfair,
    RailFence,
    Columnar,
)


def numbers(text: str, alphabet: str = LATIN) -> list[int]:
    return [alphabet.index(letter) for letter in text]


def square(phrase: str, alphabet: str) -> str:
    """Return a Playfair square: the letters of a phrase, then those that it lacks."""
    return "".join(dict.fromkeys(phrase.upper().replace(" ", "") + alphabet))


PUBLISHED = [
    # Wikipedia, "Caesar cipher": left shift of 3
    (
        Caesar(LATIN, 0),
        [23],
        "THEQUICKBROWNFOXJUMPSOVERTHELAZYDOG",
        "QEBNRFZHYOLTKCLUGRJMPLSBOQEBIXWVALD",
    ),
    # Wikipedia, "Atbash"
    (Atbash(LATIN, 0), [], "WIZARD", "DRAZIW"),
    # Wikipedia, "Affine cipher": a = 5, b = 8
    (Affine(LATIN, 0), [5, 8], "AFFINECIPHER", "IHHWVCSWFRCP"),
    # Wikipedia, "Substitution cipher": the keyword "zebras"
    (
        Substitution(LATIN, 0),
        numbers("ZEBRASCDFGHIJKLMNOPQTUVWXY"),
        "FLEEATONCEWEAREDISCOVERED",
        "SIAAZQLKBAVAZOARFPBLUAOAR",
    ),
    # Wikipedia, "Vigenere cipher"
    (Vigenere(LATIN, 5), numbers("LEMON"), "ATTACKATDAWN", "LXFOPVEFRNHR"),
    # Wikipedia, "Autokey cipher"
    (Autokey(LATIN, 7), numbers("QUEENLY"), "ATTACKATDAWN", "QNXEPVYTWTWP"),
    # Wikipedia, "Hill cipher"
    (Hill(LATIN, 0), [3, 3, 2, 5], "HELP", "HIAT"),
    # Wikipedia, "Playfair cipher": hide the gold in the tree stump, with an X between the two Es
    (
        Playfair(WITHOUT_J, 0),
        numbers(square("playfair example", WITHOUT_J), WITHOUT_J),
        "HIDETHEGOLDINTHETREXESTUMP",
        "BMODZBXDNABEKUDMUIXMMOUVIF",
    ),
    # Wikipedia, "Rail fence cipher": three rails
    (RailFence(LATIN, 3), [3], "WEAREDISCOVEREDFLEEATONCE", "WECRLTEERDSOEEFEAOCAIVDEN"),
    # Wikipedia, "Transposition cipher": the keyword "zebras", an irregular case
    (
        Columnar(LATIN, 6),
        [4, 2, 1, 3, 5, 0],
        "WEAREDISCOVEREDFLEEATONCE",
        "EVLNACDTESEAROFODEECWIREE",
    ),
]


@pytest.mark.parametrize(
    ("cipher", "key", "plain", "secret"), PUBLISHED, ids=lambda value: getattr(value, "name", "")
)
def test_published_examples(cipher: Cipher, key: list[int], plain: str, secret: str) -> None:
    alphabet = cipher.alphabet
    assert cipher.letters(cipher.encrypt(numbers(plain, alphabet), key)) == secret
    assert cipher.letters(cipher.decrypt(numbers(secret, alphabet), key)) == plain


def test_every_cipher_has_a_published_example() -> None:
    assert {type(cipher) for cipher, *_ in PUBLISHED} == set(CIPHERS)


@pytest.mark.parametrize("kind", CIPHERS)
def test_decryption_undoes_encryption_and_the_other_way_round(kind: type[Cipher]) -> None:
    dice, changed = Dice(1, 2), 0
    for round_trip in range(1000):
        cipher = kind(WITHOUT_J[: (25, 16, 9)[round_trip % 3]], 2 + round_trip % 4)
        text = [dice.below(cipher.count) for _ in range(2 * dice.between(1, 12))]
        if not cipher.takes(text):
            text = [
                x
                for pair in zip(text[::2], text[1::2], strict=True)
                if pair[0] != pair[1]
                for x in pair
            ]
        key = cipher.key(dice)
        secret = cipher.encrypt(text, key)
        assert cipher.decrypt(secret, key) == text
        assert cipher.encrypt(cipher.decrypt(text, key), key) == text
        assert cipher.takes(secret)
        changed += secret != text
    assert changed > 800


@pytest.mark.parametrize("kind", CIPHERS)
def test_encryption_is_a_bijection(kind: type[Cipher]) -> None:
    """Try all texts of four letters out of four that the cipher takes."""
    dice = Dice(3, 4)
    for width in (2, 3, 4):
        cipher = kind("ABCD", width)
        texts = [text for text in product(range(4), repeat=4) if cipher.takes(text)]
        for _ in range(10):
            key = cipher.key(dice)
            assert {tuple(cipher.encrypt(text, key)) for text in texts} == set(texts)


@pytest.mark.parametrize("count", [4, 5, 6, 9])
def test_how_many_keys_there_are(count: int) -> None:
    """Count the keys that lose nothing, among all there could be."""
    every, alphabet = range(count), LATIN[:count]
    affine = sum(len({(a * x + b) % count for x in every}) == count for a in every for b in every)
    assert Affine(alphabet, 0).keys == affine
    assert len(Affine(alphabet, 0).factors()) * count == affine
    if count < 9:
        pairs = list(product(every, repeat=2))
        hill = [
            (a, b, c, d)
            for a, b, c, d in product(every, repeat=4)
            if len({((a * x + b * y) % count, (c * x + d * y) % count) for x, y in pairs})
            == len(pairs)
        ]
        assert Hill(alphabet, 0).keys == pytest.approx(len(hill))
        assert [
            key for key in product(every, repeat=4) if Hill(alphabet, 0).is_invertible(key)
        ] == hill
        assert Substitution(alphabet, 0).keys == len(list(permutations(every)))
    assert Caesar(alphabet, 0).keys == count
    assert Atbash(alphabet, 0).keys == 1
    assert (
        Vigenere(alphabet, 3).keys
        == Autokey(alphabet, 3).keys
        == len(list(product(every, repeat=3)))
    )
    assert RailFence(alphabet, count).keys == len(range(2, count + 1))
    assert Columnar(alphabet, 4).keys == len(list(permutations(range(4))))


def test_playfair_needs_a_square() -> None:
    assert Playfair("ABCD", 0).keys == len(list(permutations("ABCD")))
    with pytest.raises(ValueError, match="fill a square, got 26"):
        Playfair(LATIN, 0)
