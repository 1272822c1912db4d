"""Sets of squares of a chess board as bits.

Two words of 32 bits hold the 64 squares, from a1 along the ranks to h8.

Many sets are shifted at once, one in each direction: the last axis of an array is then the
direction. Constant indices are int32, because int64 ones fail in JAX's float64 context.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rlbench_suite.core.arrays import UInt32
from rlbench_suite.numerics.bit_exact import computed_once

Sets = TypeVar("Sets")
FULL = np.uint32(0xFFFFFFFF)
NORTH, NORTH_EAST, EAST, SOUTH_EAST, SOUTH, SOUTH_WEST, WEST, NORTH_WEST = range(8)
STEPS = ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))
"""Ranks and files of a step in each direction; the opposite of direction d is d + 4 modulo 8."""
JUMPS = ((2, 1), (1, 2), (-1, 2), (-2, 1), (-2, -1), (-1, -2), (1, -2), (2, -1))
"""Ranks and files of a knight's jumps, clockwise."""
MAX_SLIDE = 7


class Bits(NamedTuple):
    """Sets of squares: uint32 arrays of one shape."""

    low: UInt32
    """Squares a1 to h4; bit b stands for square b."""
    high: UInt32
    """Squares a5 to h8."""

    def __and__(self, bits: Bits) -> Bits:
        return Bits(self.low & bits.low, self.high & bits.high)

    def __or__(self, bits: Bits) -> Bits:
        return Bits(self.low | bits.low, self.high | bits.high)

    def __xor__(self, bits: Bits) -> Bits:
        return Bits(self.low ^ bits.low, self.high ^ bits.high)

    def __invert__(self) -> Bits:
        return Bits(~self.low, ~self.high)

    def at(self, index: Any) -> Bits:
        """Return some of the sets."""
        return Bits(self.low[index], self.high[index])

    def reshape(self, *shape: int) -> Bits:
        """Return the sets in another shape."""
        return Bits(self.low.reshape(shape), self.high.reshape(shape))

    def widen(self) -> Bits:
        """Repeat one set for each direction."""
        return Bits(*(jnp.broadcast_to(half, (8,)) for half in self))

    def where(self, condition: Any) -> Bits:
        """Return the sets where a condition holds, and empty ones elsewhere."""
        return Bits(*(jnp.where(condition, half, np.uint32(0)) for half in self))

    def any(self) -> jax.Array:
        """Return whether the sets have members."""
        return (self.low | self.high) != 0

    def size(self) -> jax.Array:
        """Return the numbers of members, int32."""
        return (lax.population_count(self.low) + lax.population_count(self.high)).astype(jnp.int32)

    def union(self) -> Bits:
        """Return the union along the last axis."""
        return Bits(*(lax.reduce_or(half, (half.ndim - 1,)) for half in self))

    def flip(self) -> Bits:
        """Return the sets with the first rank as the last."""
        return Bits(_reverse_bytes(self.high), _reverse_bytes(self.low))


def square_bit(square: Any) -> Bits:
    """Return the set of one square, 0 to 63; an empty one if it lies beyond."""
    bit = np.uint32(1) << (square & 31).astype(jnp.uint32)
    half = square >> 5
    return Bits(jnp.where(half == 0, bit, np.uint32(0)), jnp.where(half == 1, bit, np.uint32(0)))


def squares(*numbers: int) -> Bits:
    """Return a constant set."""
    bits = sum(1 << number for number in numbers)
    return Bits(np.uint32(bits & 0xFFFFFFFF), np.uint32(bits >> 32))


def full_where(flags: np.ndarray) -> Bits:
    """Return constant sets: all squares where a flag is set, and none elsewhere."""
    words = np.where(flags, FULL, np.uint32(0))
    return Bits(words, words)


def stack_sets(*sets: Bits) -> Bits:
    """Stack sets along a new first axis."""
    return Bits(*(jnp.stack(halves) for halves in zip(*sets, strict=True)))


def store_sets(sets: Sets) -> Sets:
    """Return the same sets from memory.

    Otherwise the compiler repeats the code that makes them for each user.
    """
    return computed_once(lambda value: value)(sets)


def _reverse_bytes(word: jax.Array) -> jax.Array:
    swapped = (word & np.uint32(0x00FF00FF)) << 8 | (word >> 8) & np.uint32(0x00FF00FF)
    return swapped << 16 | swapped >> 16


def _word_of(flags: np.ndarray) -> int:
    """Return the word whose bits are 32 flags."""
    return sum(1 << int(bit) for bit in np.flatnonzero(flags))


class Shift(NamedTuple):
    """Shifts of whole sets by ranks and files, one for each entry along the last axis.

    Constants of the host.
    """

    swap: np.ndarray
    """Whether the two words change places before they rotate."""
    by: np.ndarray
    """Bits by which the pair of words rotates to the left."""
    low: np.ndarray
    high: np.ndarray
    """Squares that are reached without leaving the board."""

    @classmethod
    def along(cls, *steps: tuple[int, int]) -> Shift:
        """Make the shifts by the given ranks and files."""
        rank, file = np.divmod(np.arange(64), 8)
        inside = [((rank - up) | (file - right)) & ~7 == 0 for up, right in steps]
        words = [[_word_of(half) for half in np.split(on, 2)] for on in inside]
        turns = np.array([(8 * up + right) % 64 for up, right in steps])
        low, high = np.array(words, np.uint32).T
        return cls(turns >= 32, (turns % 32).astype(np.uint32), low, high)

    def __call__(self, sets: Bits) -> Bits:
        """Shift each set by its own step.

        A set without an axis of directions is shifted by all of them.
        """
        first = jnp.where(self.swap, sets.high, sets.low)
        second = jnp.where(self.swap, sets.low, sets.high)
        back = 32 - self.by  # 32 where it does not rotate: XLA then shifts all bits out
        return Bits(
            (first << self.by | second >> back) & self.low,
            (second << self.by | first >> back) & self.high,
        )

    def at(self, index: int) -> Shift:
        """Return one of the shifts, for sets without such an axis."""
        return Shift(*(field[index] for field in self))


RAYS = Shift.along(*STEPS)
LEAPS = Shift.along(*JUMPS)


def sliding_reach(sources: Bits, through: Bits) -> Bits:
    """Return the squares that sliders see in each direction (last axis).

    They look from their sources through free squares.
    """

    def flood(sources: Bits, through: Bits) -> Bits:
        reached = RAYS(sources)
        for _ in range(MAX_SLIDE - 1):
            reached |= RAYS(reached & through)
        return reached

    return computed_once(flood)(sources, through)
