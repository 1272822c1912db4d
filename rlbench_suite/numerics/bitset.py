"""Handle sets of small numbers as bits.

Find the member with a given rank, and unpack bits into flags or observations.

``argmax(cumsum(mask) > rank)`` gives the same result as :meth:`BitSet.select`. It takes longer in
batches on CPUs, where XLA computes prefix sums and maxima one entry after another.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial, reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rlbench_suite.numerics.bit_exact import computed_once
from rlbench_suite.numerics.reductions import sum_in_order

_WORD = 32
"""Bits of a machine word."""
_BYTE = 8
_GROUP = 16
"""Words that are counted together, at most."""


class BitSet(NamedTuple):
    """A set of numbers from 0 on."""

    words: jax.Array
    """Bits of the set, uint32 ``(groups, 16)``.

    Bit b of word w of group g stands for the number ``32 * (16 * g + w) + b``.
    """

    @classmethod
    def from_mask(cls, mask: jax.Array) -> BitSet:
        """Return the set of the indices at which a mask, bool ``(n,)``, is true."""
        # Pack bytes first: compilers vectorise runs of eight entries, but neither runs of
        # thirty-two nor padded ones.
        full = mask.shape[0] // _BYTE * _BYTE
        slices = [
            entries
            for entries in (slice(full), slice(full, None))
            if len(range(mask.shape[0])[entries])
        ]
        packed = jnp.concatenate(
            [computed_once(partial(_pack_bytes, entries=entries))(mask) for entries in slices]
        )

        def pack_words(packed: jax.Array) -> jax.Array:
            fours = jnp.pad(packed, (0, -packed.shape[0] % 4)).reshape(-1, 4).astype(jnp.uint32)
            words = reduce(operator.or_, (fours[:, i] << _BYTE * i for i in range(4)))
            width = min(words.shape[0], _GROUP)
            return jnp.pad(words, (0, -words.shape[0] % width)).reshape(-1, width)

        return cls(computed_once(pack_words)(packed))

    @property
    def size(self) -> jax.Array:
        """Number of members, int32."""
        return sum_in_order(self._counts.reshape(-1))

    @property
    def _counts(self) -> jax.Array:
        return lax.population_count(self.words).astype(jnp.int32)

    def select(self, rank: jax.Array) -> jax.Array:
        """Return the member with ``rank`` smaller members, int32.

        If there is none, return a number that is not a member.
        """
        group, rank = _find_group(list(sum_in_order(self._counts, 1)), rank)
        words = lax.dynamic_index_in_dim(self.words, group, keepdims=False)
        index, rank = _find_group(list(lax.population_count(words).astype(jnp.int32)), rank)
        word = _pick(list(words), index)
        member = (group * self.words.shape[1] + index) * _WORD
        for half in (16, 8, 4, 2, 1):
            lower = lax.population_count(word & np.uint32(2**half - 1)).astype(jnp.int32)
            above = rank >= lower
            rank = jnp.where(above, rank - lower, rank)
            word = jnp.where(above, word >> half, word)
            member = jnp.where(above, member + half, member)
        return member


def unpack_bits(numbers: Sequence[jax.Array], width: int) -> jax.Array:
    """Return the lowest ``width`` bits of each number, one after another.

    They are bool ``(len(numbers) * width,)``.

    ``jnp.stack`` of the same flags takes longer in batches on CPUs, where XLA computes for every
    entry of the result which flag it is.

    Args:
        numbers: scalars of an unsigned integer type, or booleans; zero above their ``width`` lowest
            bits.
        width: bits to take of each, at most 32.
    """

    words = join_bits([(number, width) for number in numbers])
    bits = words[:, None] >> np.arange(_WORD, dtype=np.uint32) & 1
    return (bits == 1).reshape(-1)[: len(numbers) * width]


def join_bits(fields: Sequence[tuple[jax.Array, int]]) -> jax.Array:
    """Return words that hold numbers one after another, uint32 ``(n,)``.

    Args:
        fields: each number, as for :func:`unpack_bits`, with the number of its bits.
    """
    words = [jnp.uint32(0)] * -(-sum(width for _, width in fields) // _WORD)
    begin = 0
    for number, width in fields:
        index, shift = divmod(begin, _WORD)
        words[index] |= number.astype(jnp.uint32) << shift
        if shift + width > _WORD:
            words[index + 1] |= number.astype(jnp.uint32) >> _WORD - shift
        begin += width
    # Store these few words before flags are taken from them. Otherwise each flag would compute its
    # word again.
    return computed_once(jnp.stack)(words)


def flags_and_numbers(words: jax.Array, count: int, numbers: jax.Array) -> jax.Array:
    """Return the first ``count`` bits of some words as flags, then numbers.

    All have the dtype of the numbers.

    ``jnp.concatenate`` takes more than twice as long in batches on CPUs, because it copies all
    flags once more.

    Args:
        words: uint32 ``(n,)``; bit b of word w is flag ``32 * w + b``. Bits from ``count`` on do
            not matter.
        count: number of flags.
        numbers: vector of floats.
    """
    size = count + numbers.shape[0]
    words = jnp.pad(words, (0, max(0, -(-size // _WORD) - words.shape[0])))

    def flags(words: jax.Array) -> jax.Array:
        bits = words[..., None] >> np.arange(_WORD, dtype=np.uint32) & 1
        return bits.reshape(*words.shape[:-1], -1)[..., :size].astype(numbers.dtype)

    @jax.custom_batching.custom_vmap
    def joined(words: jax.Array, numbers: jax.Array) -> jax.Array:
        return lax.dynamic_update_slice(flags(words), numbers, (count,))

    @joined.def_vmap
    def _(
        size: int, batched: list[bool], words: jax.Array, numbers: jax.Array
    ) -> tuple[jax.Array, bool]:
        words, numbers = (
            array if is_batched else jnp.broadcast_to(array, (size, *array.shape))
            for array, is_batched in zip((words, numbers), batched, strict=True)
        )
        # The numbers are written into the flags in place. JAX's own rule would scatter them.
        return lax.dynamic_update_slice(computed_once(flags)(words), numbers, (0, count)), True

    return joined(words, numbers)


def _pack_bytes(mask: jax.Array, entries: slice) -> jax.Array:
    """Return a part of a mask with eight entries packed into each uint8.

    A part of fewer than eight gives one uint8.
    """
    eights = mask[entries].astype(jnp.uint8)
    eights = eights.reshape(-1, min(eights.shape[0], _BYTE))
    return reduce(operator.or_, (eights[:, i] << i for i in range(eights.shape[1])))


def _find_group(sizes: Sequence[jax.Array], rank: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Find which part holds the member with the given overall rank.

    Return the part, and the member's rank within it.
    """
    index = members_before = members_until = jnp.zeros_like(rank)
    for size in sizes[:-1]:
        members_until += size
        is_past = members_until <= rank
        index += is_past
        members_before = jnp.where(is_past, members_until, members_before)
    return index, rank - members_before


def _pick(values: Sequence[jax.Array], index: jax.Array) -> jax.Array:
    """Return ``parts[index]`` without a gather."""
    picked = values[0]
    for i, value in enumerate(values[1:], 1):
        picked = jnp.where(index == i, value, picked)
    return picked
