"""Rows of small numbers, three bits each, in one word.

A grid is a tuple of such words. One number is read or written by shifts, without a gather.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import jax.numpy as jnp

from rlbench_suite.core.arrays import Flag, Int

BITS = 3
HIGHEST = (1 << BITS) - 1
LONGEST_ROW = 10
EVERY_LOWEST_BIT = sum(1 << BITS * column for column in range(LONGEST_ROW))


def pack(numbers: Iterable[int]) -> int:
    """Return the word of a row of at most 10 numbers from 0 to 7."""
    return sum(number << BITS * column for column, number in enumerate(numbers))


def read(words: Sequence[Int | int], row: Int | int, column: Int | int) -> Int:
    """Return the number in a row and a column."""
    word = jnp.asarray(words[0], jnp.int32)
    for number in range(1, len(words)):
        word = jnp.where(row == number, words[number], word)
    return (word >> (BITS * column)) & HIGHEST


def exchange(
    words: Sequence[Int], row: Int, column: Int, before: Int, after: Int, happens: Flag
) -> tuple[Int, ...]:
    """Return the words with another number in a row and a column, if it happens.

    Args:
        words: of the grid.
        row: of the number.
        column: of the number.
        before: the number that is there.
        after: the number that replaces it.
        happens: whether anything is replaced.
    """
    change = jnp.where(happens, before ^ after, 0) << (BITS * column)
    return tuple(word ^ jnp.where(row == number, change, 0) for number, word in enumerate(words))


def holds(words: Sequence[Int], number: int) -> Flag:
    """Return whether a number is anywhere in a grid."""
    any_equal = jnp.int32(0)
    for word in words:
        equal = jnp.int32(EVERY_LOWEST_BIT)
        for bit in range(BITS):
            shifted = word >> bit
            equal = equal & (shifted if number >> bit & 1 else ~shifted)
        any_equal = any_equal | equal
    return any_equal != 0
