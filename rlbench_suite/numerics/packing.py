"""Pack a pytree of scalars and small arrays into one buffer.

A single env so passes one array to the host a step.

Passing seventeen state leaves into a compiled call and out of it costs ten times the physics.
Passing one buffer costs a few microseconds, because the program reads it where it lies. The buffer
is an array of unsigned integers, 32 bits wide, or 64 for float64 tasks. Values keep their exact
bits.
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
    """The position of each leaf of a pytree in its buffer, from shapes alone (``jax.eval_shape``).

    Scalars of one dtype lie side by side and are packed by one kernel. Otherwise a third of a small
    program's kernels would only pack scalars, and compile time grows with the number of kernels.
    """

    def __init__(self, shapes: Any, dtype: type[np.unsignedinteger[Any]]) -> None:
        leaves, treedef = jax.tree.flatten(shapes)
        self.treedef: Any = treedef
        self.dtype = np.dtype(dtype)
        """Dtype of the buffer."""
        self.float = np.dtype(f"float{8 * self.dtype.itemsize}")
        self.signed = np.dtype(f"int{8 * self.dtype.itemsize}")
        kinds: dict[Any, list[int]] = {}
        for i, leaf in enumerate(leaves):
            kinds.setdefault(i if leaf.shape else np.dtype(leaf.dtype), []).append(i)
        self.groups = list(kinds.values())
        """Indices of the leaves in their order in the buffer, grouped.

        A group is all scalars of a dtype, or one array.
        """
        order = [i for group in self.groups for i in group]
        ends = np.cumsum([math.prod(leaves[i].shape) for i in order]).tolist()
        fields = {
            i: Field(
                slice(end - math.prod(leaves[i].shape), end),
                tuple(leaves[i].shape),
                np.dtype(leaves[i].dtype),
            )
            for i, end in zip(order, ends, strict=True)
        }
        self.fields = [fields[i] for i in range(len(leaves))]
        """Field of each leaf, in the order of the leaves."""
        self.size = int(ends[-1])
        """Length of the buffer."""
        self._in_order = [order.index(i) for i in range(len(order))]
        runs = [self._run(*(fields[i] for i in group)) for group in self.groups]
        wide = self.float, self.signed, self.dtype
        self._reads = [
            (run.dtype.kind, run.span, None if run.dtype in wide else run.dtype, run.shape)
            for run in runs
        ]
        """Description of all that is read from a buffer on the host.

        Each has a kind, a position, a dtype to convert to, and a shape.
        """

    @staticmethod
    def _run(first: Field, *more: Field) -> Field:
        """Return one field that covers a group, so that the group is read at once."""
        last = more[-1] if more else first
        return (
            first
            if first.shape
            else Field(slice(first.span.start, last.span.stop), _SIDE_BY_SIDE, first.dtype)
        )

    def pack_first(self, batch: Any) -> jax.Array:
        """Return the buffer of the first pytree of a batch; traced."""
        return self.pack(jax.tree.map(lambda leaf: leaf[:1], batch))[0]

    def pack(self, batch: Any) -> jax.Array:
        """Return the buffers of a batch of pytrees, ``(n, size)``; traced."""
        leaves = jax.tree.leaves(batch)
        count = leaves[0].shape[0]
        encoded_groups = []
        for group in self.groups:
            entries = jnp.concatenate([leaves[i].reshape(-1) for i in group]).reshape(
                len(group), count, -1
            )
            encoded_groups.append(self._encode(entries.swapaxes(0, 1).reshape(count, -1)))
        return jnp.concatenate(encoded_groups, axis=1)

    def pack_numpy(self, tree: Any) -> np.ndarray:
        """Return the buffer of a pytree on the host."""
        buffer = np.empty(self.size, self.dtype)
        for field, leaf in zip(self.fields, jax.tree.leaves(tree), strict=True):
            value = np.asarray(leaf, field.dtype).ravel()
            buffer[field.span] = (
                value.astype(self.float).view(self.dtype) if field.dtype.kind == "f" else value
            )
        return buffer

    def unpack(self, buffer: jax.Array) -> Any:
        """Return the pytree of a buffer; traced."""
        return self.treedef.unflatten([self.value(buffer, field) for field in self.fields])

    def value(self, buffer: jax.Array, field: Field) -> jax.Array:
        """Return the value of one field of a buffer; traced."""
        return self._decode(buffer[field.span], field.dtype).reshape(field.shape)

    def unpack_numpy(self, buffer: np.ndarray) -> Any:
        """Return the pytree of a buffer on the host.

        Arrays are views of the buffer where the width allows it.
        """
        # As :meth:`read` for each run, with the views made once: the text view does this at every
        # turn.
        views = {"f": buffer.view(self.float), "i": buffer.view(self.signed)}
        values: list[Any] = []
        for kind, span, dtype, shape in self._reads:
            view = views.get(kind, buffer)[span]
            if dtype:
                view = view.astype(dtype)
            if shape == _SIDE_BY_SIDE:
                values.extend(view)
            else:
                values.append(view if len(shape) == 1 else view.reshape(shape))
        return self.treedef.unflatten([values[i] for i in self._in_order])

    def read(self, buffer: np.ndarray, field: Field) -> np.ndarray:
        """Return one field of a buffer on the host.

        It is a view where the width allows it, else a copy.
        """
        view = buffer[field.span]
        if field.dtype.kind == "f":
            view = view.view(self.float)
        if view.dtype != field.dtype:
            view = view.astype(field.dtype)
        return view if len(field.shape) == 1 else view.reshape(field.shape)

    def reader(self, buffer: np.ndarray, field: Field, dtype: Any) -> Callable[[], np.ndarray]:
        """Return a function that copies one field out of this buffer.

        It takes half the time of :meth:`read`.
        """
        view = buffer[field.span]
        if field.dtype.kind == "f":
            view = view.view(self.float)
        view = view.reshape(field.shape)
        return view.copy if view.dtype == dtype else partial(view.astype, dtype)

    def scalar_reader(self, fields: list[Field]) -> Callable[[Any], tuple[Any, ...]]:
        """Return a function that reads these scalar fields of a buffer in one call.

        It returns Python's own numbers.

        The fields are in the order of the buffer.
        """
        size = self.dtype.itemsize
        codes = {"f": "fd", "i": "iq", "u": "IQ", "b": "??"}
        struct_format = "<"
        end = 0
        for field in fields:
            code = codes[field.dtype.kind][size == 8]
            struct_format += (
                f"{(field.span.start - end) * size}x{code}{size - struct.calcsize('<' + code)}x"
            )
            end = field.span.stop
        return struct.Struct(struct_format).unpack_from

    def _encode(self, values: Any) -> jax.Array:
        if jnp.issubdtype(values.dtype, jnp.floating):
            return jax.lax.bitcast_convert_type(values.astype(self.float), self.dtype)
        return values.astype(self.dtype)

    def _decode(self, encoded: jax.Array, dtype: np.dtype[Any]) -> jax.Array:
        if dtype.kind == "f":
            return jax.lax.bitcast_convert_type(encoded, self.float).astype(dtype)
        return encoded.astype(dtype)


class Field(NamedTuple):
    """The position of one leaf in a buffer, its shape and its dtype."""

    span: slice
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


_SIDE_BY_SIDE = (-1,)
"""The shape of a run of scalars."""
