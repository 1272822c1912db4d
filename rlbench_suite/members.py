"""Sets as bits of words: which member comes at a given rank, and flags from words.

``argmax(cumsum(mask) > rank)`` says the same, and takes longer in batches on CPUs, where XLA computes
prefixes and maxima one entry after another.
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

from rlbench_suite.entries import summed
from rlbench_suite.lanes import computed_once

WORD = 32
_OCTET = 8
_GROUP = 16


class Members(NamedTuple):
    """A set of numbers from 0 on."""

    words: jax.Array
    """uint32 ``(groups, 16)``: bit b of word w of group g is the number ``32 * (16 * g + w) + b``."""

    @classmethod
    def of(cls, mask: jax.Array) -> Members:
        """The set of a mask, bool ``(n,)``."""
        # Octets first: compilers read eight entries side by side in vectors, but neither thirty-two nor padded ones.
        full = mask.shape[0] // _OCTET * _OCTET
        parts = [part for part in (slice(full), slice(full, None)) if len(range(mask.shape[0])[part])]
        octets = jnp.concatenate([computed_once(partial(_octets, part=part))(mask) for part in parts])

        def packed(octets: jax.Array) -> jax.Array:
            rows = jnp.pad(octets, (0, -octets.shape[0] % 4)).reshape(-1, 4).astype(jnp.uint32)
            words = reduce(operator.or_, (rows[:, i] << _OCTET * i for i in range(4)))
            width = min(words.shape[0], _GROUP)
            return jnp.pad(words, (0, -words.shape[0] % width)).reshape(-1, width)

        return cls(computed_once(packed)(octets))

    @property
    def size(self) -> jax.Array:
        """How many there are, int32."""
        return summed(self._counts.reshape(-1))

    @property
    def _counts(self) -> jax.Array:
        return lax.population_count(self.words).astype(jnp.int32)

    def ranked(self, rank: jax.Array) -> jax.Array:
        """The member with ``rank`` others before it, int32; one that is none where there are not so many."""
        group, rank = _part(list(summed(self._counts, 1)), rank)
        words = lax.dynamic_index_in_dim(self.words, group, keepdims=False)
        number, rank = _part(list(lax.population_count(words).astype(jnp.int32)), rank)
        word = _chosen(list(words), number)
        place = (group * self.words.shape[1] + number) * WORD
        for half in (16, 8, 4, 2, 1):
            lower = lax.population_count(word & np.uint32(2**half - 1)).astype(jnp.int32)
            above = rank >= lower
            rank = jnp.where(above, rank - lower, rank)
            word = jnp.where(above, word >> half, word)
            place = jnp.where(above, place + half, place)
        return place


def flags(words: Sequence[jax.Array], width: int) -> jax.Array:
    """The lowest bits of words side by side, bool ``(len(words) * width,)``: the inverse of :meth:`Members.of`.

    A stack of as many flags says the same, and takes longer in batches on CPUs, where XLA looks at every entry to see
    which of them it is.

    Args:
        words: scalars of unsigned integers, or of flags; zero above their ``width`` bits.
        width: how many bits of each, at most 32.
    """

    full = [jnp.uint32(0)] * -(-len(words) * width // WORD)
    for i, word in enumerate(words):
        place, above = divmod(i * width, WORD)
        full[place] |= word.astype(jnp.uint32) << above
        if above + width > WORD:
            full[place + 1] |= word.astype(jnp.uint32) >> WORD - above
    # A call of these few, which are computed first, and nothing of them for every flag.
    bits = computed_once(jnp.stack)(full)[:, None] >> np.arange(WORD, dtype=np.uint32) & 1
    return (bits == 1).reshape(-1)[: len(words) * width]


def _octets(mask: jax.Array, part: slice) -> jax.Array:
    """A part of a mask, eight entries to a uint8; fewer than eight to one."""
    rows = mask[part].astype(jnp.uint8)
    rows = rows.reshape(-1, min(rows.shape[0], _OCTET))
    return reduce(operator.or_, (rows[:, i] << i for i in range(rows.shape[1])))


def _part(sizes: Sequence[jax.Array], rank: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Of parts with so many members, the number of the one that holds the member of a rank, and its rank there."""
    number = before = until = jnp.zeros_like(rank)
    for size in sizes[:-1]:
        until += size
        past = until <= rank
        number += past
        before = jnp.where(past, until, before)
    return number, rank - before


def _chosen(parts: Sequence[jax.Array], number: jax.Array) -> jax.Array:
    """``parts[number]`` without a gather."""
    chosen = parts[0]
    for i, part in enumerate(parts[1:], 1):
        chosen = jnp.where(number == i, part, chosen)
    return chosen
