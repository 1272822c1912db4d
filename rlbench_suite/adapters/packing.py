"""Pytrees of scalars and small arrays as one buffer of words: a single env crosses the host border once a step.

Seventeen state leaves in and out of a compiled call cost ten times the physics; one buffer costs a few
microseconds, and nothing more to hand over where it lies in memory that the program reads in place. Words are 32 bits
wide, 64 for float64 tasks; values keep their exact bits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Layout:
    """Where each leaf of a pytree lies in the buffer. Built from shapes alone (``jax.eval_shape``).

    Scalars of a dtype lie side by side: they are packed by one kernel, where one for each made a third of the
    kernels of a small program; compiling takes its time by the kernel.
    """

    def __init__(self, shapes: Any, word: type[np.unsignedinteger[Any]]) -> None:
        leaves, treedef = jax.tree.flatten(shapes)
        self.treedef: Any = treedef
        self.word = np.dtype(word)
        self.float = np.dtype(f"float{8 * self.word.itemsize}")
        self.signed = np.dtype(f"int{8 * self.word.itemsize}")
        kinds: dict[Any, list[int]] = {}
        for i, leaf in enumerate(leaves):
            kinds.setdefault(i if leaf.shape else np.dtype(leaf.dtype), []).append(i)
        self.groups = list(kinds.values())
        """Numbers of leaves in their order in the buffer: all scalars of a dtype, or one array."""
        order = [i for group in self.groups for i in group]
        ends = np.cumsum([math.prod(leaves[i].shape) for i in order]).tolist()
        places = {
            i: Place(slice(end - math.prod(leaves[i].shape), end), tuple(leaves[i].shape), np.dtype(leaves[i].dtype))
            for i, end in zip(order, ends, strict=True)
        }
        self.places = [places[i] for i in range(len(leaves))]
        self.size = int(ends[-1])
        """Words."""
        self._in_order = [order.index(i) for i in range(len(order))]
        self._runs = [self._run(*(places[i] for i in group)) for group in self.groups]

    @staticmethod
    def _run(first: Place, *others: Place) -> Place:
        """Of a group, to be read at once."""
        last = others[-1] if others else first
        return first if first.shape else Place(slice(first.words.start, last.words.stop), _SIDE_BY_SIDE, first.dtype)

    def pack_first(self, lanes: Any) -> jax.Array:
        """The buffer of the first of a batch of pytrees; traced."""
        return self.pack(jax.tree.map(lambda leaf: leaf[:1], lanes))[0]

    def pack(self, lanes: Any) -> jax.Array:
        """The buffers of a batch of pytrees, a row each; traced."""
        leaves = jax.tree.leaves(lanes)
        count = leaves[0].shape[0]
        parts = []
        for group in self.groups:
            entries = jnp.concatenate([leaves[i].reshape(-1) for i in group]).reshape(len(group), count, -1)
            parts.append(self._to_words(entries.swapaxes(0, 1).reshape(count, -1)))
        return jnp.concatenate(parts, axis=1)

    def pack_numpy(self, tree: Any) -> np.ndarray:
        """The buffer of a pytree, on the host."""
        words = np.empty(self.size, self.word)
        for place, leaf in zip(self.places, jax.tree.leaves(tree), strict=True):
            value = np.asarray(leaf, place.dtype).ravel()
            words[place.words] = value.astype(self.float).view(self.word) if place.dtype.kind == "f" else value
        return words

    def unpack(self, buffer: jax.Array) -> Any:
        """The pytree of a buffer; traced."""
        return self.treedef.unflatten([self.part(buffer, place) for place in self.places])

    def part(self, buffer: jax.Array, place: Place) -> jax.Array:
        """What lies at a place of a buffer; traced."""
        return self._from_words(buffer[place.words], place.dtype).reshape(place.shape)

    def unpack_numpy(self, words: np.ndarray) -> Any:
        """The pytree of a buffer on the host."""
        values: list[Any] = []
        for place in self._runs:
            part = self.read(words, place)
            values.extend(part) if place.shape == _SIDE_BY_SIDE else values.append(part)
        return self.treedef.unflatten([values[i] for i in self._in_order])

    def read(self, words: np.ndarray, place: Place) -> np.ndarray:
        """One leaf of a buffer on the host: a view where the width allows, else a copy."""
        part = words[place.words]
        if place.dtype.kind == "f":
            part = part.view(self.float)
        if part.dtype != place.dtype:
            part = part.astype(place.dtype)
        return part if len(place.shape) == 1 else part.reshape(place.shape)

    def reader(self, words: np.ndarray, place: Place, dtype: Any) -> Callable[[], np.ndarray]:
        """What copies one leaf, time and again, from words that stay where they are: half the time of :meth:`read`."""
        part = words[place.words]
        if place.dtype.kind == "f":
            part = part.view(self.float)
        part = part.reshape(place.shape)
        return part.copy if part.dtype == dtype else partial(part.astype, dtype)

    def scalars(self, places: list[Place]) -> Callable[[Any], tuple[Any, ...]]:
        """Make a function that reads all scalars at these places, which are in order, as Python's own in one call."""
        size = self.word.itemsize
        codes = {"f": "fd", "i": "iq", "u": "IQ", "b": "??"}
        spelt, end = "<", 0
        for place in places:
            code = codes[place.dtype.kind][size == 8]
            spelt += f"{(place.words.start - end) * size}x{code}{size - struct.calcsize('<' + code)}x"
            end = place.words.stop
        return struct.Struct(spelt).unpack_from

    def _to_words(self, leaf: Any) -> jax.Array:
        if jnp.issubdtype(leaf.dtype, jnp.floating):
            return jax.lax.bitcast_convert_type(leaf.astype(self.float), self.word)
        return leaf.astype(self.word)

    def _from_words(self, words: jax.Array, dtype: np.dtype[Any]) -> jax.Array:
        if dtype.kind == "f":
            return jax.lax.bitcast_convert_type(words, self.float).astype(dtype)
        return words.astype(dtype)


class Place(NamedTuple):
    """Where one leaf lies, and what it is."""

    words: slice
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


_SIDE_BY_SIDE = (-1,)
"""The shape of a run of scalars."""
