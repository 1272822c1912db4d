"""What a compiled program for the CPU consists of: object code of its kernels, buffers, and the order of the work.

Read from its serialized form, which belongs to XLA and to its version: ``CompilationResultProto`` (xla/service/cpu/
executable.proto), ``ThunkSequenceProto`` (xla/backends/cpu/runtime/thunk.proto), ``BufferAssignmentProto`` and
``HloModuleProto`` (xla/service/hlo.proto), ``LiteralProto`` (xla/xla_data.proto). Read strictly, therefore: of another
version, or with a field or a kind of work that is not known here, nothing is read at all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

import jaxlib
import numpy as np

VERSIONS = ("0.10.2",)
"""Of jaxlib that are known to write programs like this."""


ALIGNMENT = 64
"""Bytes: what XLA asks of every buffer."""
_Message = dict[int, list[Any]]
_VARINTS = {4: np.int32, 5: np.int64, 6: np.uint32, 7: np.uint64}
"""Fields of a literal whose numbers are written in as few bytes as they need."""
_RAW = {2, 3, 8, 9, 11, 13, 15, 16, 17}
"""Those that are written as they lie in memory; of truth values both are the same."""


class UnknownExecutable(Exception):
    """A program that is written, or works, in a way not known here."""


class Use(Enum):
    """What a buffer is for."""

    ARGUMENT = "argument"
    RESULT = "result"
    CONSTANT = "constant"
    SCRATCH = "scratch"


class Buffer(NamedTuple):
    """Memory of a program."""

    use: Use
    size: int
    """Bytes."""
    value: np.ndarray | None
    """Bytes of a constant."""


class Slice(NamedTuple):
    """Some bytes of a buffer."""

    buffer: int
    offset: int
    size: int


class Kernel(NamedTuple):
    """A call of a function of the object code, once for each group of its work."""

    name: str
    groups: int
    slices: list[Slice]


class Copy(NamedTuple):
    """Bytes copied."""

    source: Slice
    target: Slice


class Loop(NamedTuple):
    """Work done as long as a condition, worked out before, has written a true byte."""

    condition: list[Any]
    holds: Slice
    body: list[Any]


class Executable(NamedTuple):
    """A program."""

    objects: list[bytes]
    buffers: dict[int, Buffer]
    work: list[Kernel | Copy | Loop]


def read(serialized: bytes) -> Executable:
    """What ``jax.stages.Compiled.runtime_executable().serialize()`` gives for a CPU.

    Raises:
        UnknownExecutable: it is not known here.
    """
    if jaxlib.__version__ not in VERSIONS:
        raise UnknownExecutable(f"programs of jaxlib {jaxlib.__version__} are not known, but of {VERSIONS}")
    try:
        length, start = _varint(serialized, 0)  # of a header about shardings
        outer = _fields(serialized[start + length :], {1, 2})
        program = _fields(outer[1][0], {1, 2, 3, 5, 6, 7, 8, 9, 10})
        buffers = dict(_buffers(program))
        executable = Executable(
            [_fields(part, {1, 2})[1][0] for part in program[8]], buffers, list(_work(_one(program, 6)))
        )
    except (LookupError, TypeError, ValueError) as error:
        raise UnknownExecutable(f"a program is written in a way that is not known: {error}") from error
    for part in _slices(executable.work):
        if part.buffer not in buffers or part.offset + part.size > buffers[part.buffer].size:
            raise UnknownExecutable(f"{part} is of no buffer")
    return executable


# -- work ------------------------------------------------------------------------------------------------------------


def _work(sequence: bytes) -> Iterator[Kernel | Copy | Loop]:
    """A ``ThunkSequenceProto``, calls in their callers."""
    for data in _fields(sequence, {1, 2})[1]:
        thunk = _fields(data, {1, 2, 3, 10, 11, 12})
        match thunk[1][0]:
            case b"kernel":
                kernel = _fields(_one(thunk, 11), {1, 2, 3, 4, 5, 6})
                groups, alignment = (_fields(_one(kernel, field), {1, 2, 3}) for field in (2, 4))
                if _int(groups, 1) < 1 or (_int(groups, 2), _int(groups, 3)) != (1, 1):
                    raise UnknownExecutable("work in no groups, or in groups of more than one dimension")
                if _int(alignment, 1) > ALIGNMENT:
                    raise UnknownExecutable(f"a kernel wants buffers to lie at {_int(alignment, 1)} bytes")
                slices = [_slice(_one(_fields(part, {1, 2}), 1)) for part in kernel[5] + kernel[6]]
                yield Kernel(_one(kernel, 1).decode(), _int(groups, 1), slices)
            case b"call":
                yield from _work(_one(_fields(_one(thunk, 3), {1}), 1))
            case b"copy":
                copy = _fields(_one(thunk, 12), {1, 2})
                source, target = (_fields(_one(copy, side), {1, 2}) for side in (1, 2))
                if _one(source, 1) != _one(target, 1):
                    raise UnknownExecutable("a copy into another shape or layout")
                yield Copy(_slice(_one(source, 2)), _slice(_one(target, 2)))
            case b"while":
                loop = _fields(_one(thunk, 10), {1, 2, 3, 4})
                yield Loop(list(_work(_one(loop, 1))), _slice(_one(loop, 4)), list(_work(_one(loop, 2))))
            case kind:
                raise UnknownExecutable(f"work of a kind that is not known: {kind!r}")


def _slices(work: list[Any]) -> Iterator[Slice]:
    for item in work:
        match item:
            case Kernel(slices=slices):
                yield from slices
            case Copy():
                yield from item
            case Loop():
                yield item.holds
                yield from _slices(item.condition)
                yield from _slices(item.body)


def _slice(data: bytes) -> Slice:
    """A ``BufferAllocationSliceProto``."""
    part = _fields(data, {1, 2, 3, 4})
    return Slice(_int(part, 3), _int(part, 1), _int(part, 2))


# -- buffers ---------------------------------------------------------------------------------------------------------


def _buffers(program: _Message) -> Iterator[tuple[int, Buffer]]:
    """A ``BufferAssignmentProto``; what the functions inside of kernels keep is left out."""
    assignment = _fields(_one(program, 2), {1, 2, 3, 4, 5})
    literals = _literals(program, assignment)
    for data in assignment[3]:
        buffer = _fields(data, {1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12})
        inside, argument, shown, constant = (_int(buffer, flag) for flag in (3, 5, 7, 12))
        size = _int(buffer, 2)
        if constant:
            value = literals[_int(_fields(_one(buffer, 9), {1, 2, 3, 4}), 1)]
            if value.nbytes != size:
                raise UnknownExecutable(f"a constant of {value.nbytes} bytes in a buffer of {size}")
            yield _int(buffer, 1), Buffer(Use.CONSTANT, size, value)
        elif not inside:
            use = Use.ARGUMENT if argument else Use.RESULT if shown else Use.SCRATCH
            yield _int(buffer, 1), Buffer(use, size, None)


def _literals(program: _Message, assignment: _Message) -> dict[int, np.ndarray]:
    """The bytes of constants of the ``HloModuleProto``, by the number of their logical buffer."""
    values = {}
    for computation in _fields(_one(_fields(_one(program, 1)), 1))[3]:
        for data in _fields(computation)[2]:
            if b"constant" in data and _one(instruction := _fields(data), 2) == b"constant":
                values[_int(instruction, 35)] = _one(instruction, 8)
    found = {}
    for data in assignment[1]:
        logical = _fields(data, {1, 2, 3, 4})
        if (instruction_id := _int(_fields(_one(logical, 3)), 4)) in values:
            found[_int(logical, 1)] = _bytes_of_literal(values[instruction_id])
    return found


def _bytes_of_literal(data: bytes) -> np.ndarray:
    """A ``LiteralProto`` of an array, as it lies in memory."""
    literal = _fields(data, {1, *_VARINTS, *_RAW})
    (field, (content,)) = next((field, content) for field, content in literal.items() if field != 1)
    raw = np.frombuffer(content, np.uint8)
    if field in _RAW:
        return raw
    last = np.flatnonzero(raw < 128)
    first = np.concatenate([[0], last[:-1] + 1])
    values = np.zeros(len(last), np.uint64)
    for k in range(int((last - first).max()) + 1):
        there = first + k <= last
        values[there] |= (raw[first[there] + k] & np.uint8(127)).astype(np.uint64) << np.uint64(7 * k)
    return values.astype(_VARINTS[field]).view(np.uint8)


# -- the wire format of protocol buffers -----------------------------------------------------------------------------


def _fields(data: bytes, known: set[int] | None = None) -> _Message:
    """Numbers, and bytes of all else, by the number of their field; where it is said which there may be, no others."""
    found: dict[int, list[Any]] = defaultdict(list)
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        field, kind = key >> 3, key & 7
        value: Any
        if known and field not in known:
            raise UnknownExecutable(f"a field that is not known: {field}, beside {sorted(known)}")
        if kind == 0:
            value, at = _varint(data, at)
        else:
            size, at = {1: (8, at), 5: (4, at)}[kind] if kind != 2 else _varint(data, at)
            value, at = data[at : at + size], at + size
            if len(value) < size:
                raise ValueError("cut short")
        found[field].append(value)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, seven bits a byte from the lowest, and where it ends."""
    value = shift = 0
    while (byte := data[at]) > 127:
        value |= (byte & 127) << shift
        shift += 7
        at += 1
    return value | byte << shift, at + 1


def _one(message: _Message, field: int) -> Any:
    if len(message[field]) != 1:
        raise UnknownExecutable(f"field {field} is there {len(message[field])} times")
    return message[field][0]


def _int(message: _Message, field: int) -> int:
    """A number, zero where it is left out."""
    return int(message[field][-1]) if message[field] else 0
