"""Pytrees of scalars and small arrays as one buffer of words: a single env crosses the host border once a step.

Seventeen state leaves in and out of a compiled call cost ten times the physics; one buffer costs a few
microseconds. Words are 32 bits wide, 64 for float64 tasks; values keep their exact bits.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Layout:
    """Where each leaf of a pytree lies in the buffer. Built from shapes alone (``jax.eval_shape``)."""

    def __init__(self, shapes: Any, word: type[np.unsignedinteger[Any]]) -> None:
        leaves, treedef = jax.tree.flatten(shapes)
        self.treedef: Any = treedef
        self.word = np.dtype(word)
        self.float = np.dtype(f"float{8 * self.word.itemsize}")
        ends = np.cumsum([math.prod(leaf.shape) for leaf in leaves]).tolist()
        self.places = [
            Place(slice(end - math.prod(leaf.shape), end), tuple(leaf.shape), np.dtype(leaf.dtype))
            for leaf, end in zip(leaves, ends, strict=True)
        ]

    def pack(self, tree: Any) -> jax.Array:
        """The buffer of a pytree; traced."""
        return jnp.concatenate([self._to_words(leaf) for leaf in jax.tree.leaves(tree)])

    def unpack(self, buffer: jax.Array) -> Any:
        """The pytree of a buffer; traced."""
        return self.treedef.unflatten(
            [self._from_words(buffer[place.words], place.dtype).reshape(place.shape) for place in self.places]
        )

    def unpack_numpy(self, words: np.ndarray) -> Any:
        """The pytree of a buffer on the host."""
        return self.treedef.unflatten([self.read(words, place) for place in self.places])

    def read(self, words: np.ndarray, place: Place) -> np.ndarray:
        """One leaf of a buffer on the host: a view where the width allows, else a copy."""
        part = words[place.words]
        if place.dtype.kind == "f":
            part = part.view(self.float)
        if part.dtype != place.dtype:
            part = part.astype(place.dtype)
        return part if len(place.shape) == 1 else part.reshape(place.shape)

    def _to_words(self, leaf: Any) -> jax.Array:
        leaf = jnp.ravel(leaf)
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
