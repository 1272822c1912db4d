"""Pronounceable words without meaning, for texts that nobody knows by heart."""

from __future__ import annotations

from rlbench_suite.puzzle.dice import Dice

VOWELS = "AEIOU"


def pseudo_word(dice: Dice, length: int, alphabet: str) -> list[int]:
    """Return a word of ``length`` letters, as indices into the alphabet.

    Vowels and consonants alternate after each letter with probability 3/4, and always after two of
    a kind.
    """
    kinds = [
        [i for i, letter in enumerate(alphabet) if (letter in VOWELS) == vowel]
        for vowel in (False, True)
    ]
    word: list[int] = []
    vowel, run = dice.below(2), 0
    while len(word) < length:
        if run == 2 or (run and dice.below(4)):
            vowel, run = 1 - vowel, 0
        word.append(dice.choice(kinds[vowel]))
        run += 1
    return word


def pseudo_words(length: int, alphabet: str) -> int:
    """Return the number of words of that length that :func:`pseudo_word` can make."""
    vowels = sum(letter in VOWELS for letter in alphabet)
    counts = vowels, len(alphabet) - vowels
    endings = [[count, 0] for count in counts]  # words that end in just one, or in two, of a kind
    for _ in range(length - 1):
        endings = [[counts[k] * sum(endings[1 - k]), counts[k] * endings[k][0]] for k in range(2)]
    return sum(map(sum, endings))
