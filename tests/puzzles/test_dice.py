"""Draws are those of Philox's words, taken one by one, whatever is drawn at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from rlbench_suite.puzzle.dice import Dice

KEYS = [(0, 0, 0), (2**64 - 1, 2**64 - 1, 2**64 - 1), (12345, 678, 1)]


def words_of(stream: int, seed: int, branch: int) -> Iterator[int]:
    """Blocks of 64 words, each from its end."""
    block = 0
    while True:
        key = np.array([stream, seed], np.uint64)
        bits = np.random.Philox(key=key, counter=np.array([0, block, branch, 0], np.uint64))
        yield from reversed(bits.random_raw(64).tolist())
        block += 1


@pytest.mark.parametrize("keys", KEYS)
def test_draws_are_made_of_words_in_order(keys: tuple[int, int, int]) -> None:
    """Several streams at a time, so that one leaves nothing behind for another."""
    dice = Dice(*keys)
    plain = words_of(*keys)
    unrelated = Dice(1, 2, 3)
    for count in (0, 1, 5, 58, 1, 63, 64, 65, 0, 200, 3):
        assert dice.words(count) == [next(plain) for _ in range(count)]
        assert dice.word() == next(plain)
        assert dice.below(1000) == next(plain) * 1000 >> 64
        assert dice.choice("abc") == "abc"[next(plain) * 3 >> 64]
        assert dice.between(-3, 3) == (next(plain) * 7 >> 64) - 3
        unrelated.word()


@pytest.mark.parametrize("size", [0, 1, 2, 10, 64, 150])
def test_shuffles_and_samples_take_a_word_for_each_place(size: int) -> None:
    dice, plain = Dice(7, 8), words_of(7, 8, 0)
    order = list(range(size))
    for last in range(size - 1, 0, -1):
        k = next(plain) * (last + 1) >> 64
        order[last], order[k] = order[k], order[last]
    assert dice.shuffled(range(size)) == order
    count, left = size // 2, list(range(size))
    for first in range(count):
        k = first + (next(plain) * (size - first) >> 64)
        left[first], left[k] = left[k], left[first]
    assert dice.sample(range(size), count) == left[:count]
    assert dice.word() == next(plain), "nothing more was drawn"
