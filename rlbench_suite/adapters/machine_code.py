"""Compiled programs called at their machine code, without JAX's dispatch and XLA's scheduler.

A step of one env is dozens of kernels, which take half a microsecond together, and ten to twenty where they are
dispatched one by one. So LLVM links a program's kernels with one function that calls them in their order. The code is
the same, so the bits are.

How a kernel is called belongs to XLA as well (``XLA_CPU_KernelCallFrame``, xla/backends/cpu/runtime/kernel_c_api.h): it
gets the address of four words. The first two are addresses of three words each, how many groups of work there are and
which of them this is; then how many slices of buffers it gets, and the address of the address and size of each.
"""

from __future__ import annotations

import ctypes
import itertools
import platform
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np

from rlbench_suite.adapters.executable import ALIGNMENT, Copy, Executable, Kernel, Loop, Slice, UnknownExecutable, Use

PLATFORM = "Linux", "x86_64"
"""Where this is tested."""
_GROUPS = 64
"""A program that splits a kernel into more groups of work is large, and its dispatch is no matter."""
_FLUSHED = 0x9FC0
"""The state of x86's arithmetic in which XLA computes (``tsl::port::ScopedFlushDenormal``): what is too small for full
precision is zero, rounding is to the nearest, nothing traps."""
_LIBRARIES = itertools.count()
_START = """\
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @run(ptr %memory) {{
  %before = alloca i32
  %flushed = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %before)
  store i32 {state}, ptr %flushed
  call void @llvm.x86.sse.ldmxcsr(ptr %flushed)
"""
_END = """
  call void @llvm.x86.sse.ldmxcsr(ptr %before)
  ret void
}
"""


class At(NamedTuple):
    """A place in the memory of a call."""

    offset: int


class MachineCode:
    """A program of one argument and one result, linked.

    Args:
        executable: the program.
        feedback: so many bytes of the result are written over the first ones of the argument after each call.

    Raises:
        UnknownExecutable: it cannot be linked, or not be called on this platform.
    """

    def __init__(self, executable: Executable, feedback: int = 0) -> None:
        if (here := (platform.system(), platform.machine())) != PLATFORM:
            raise UnknownExecutable(f"how kernels are called is known on {PLATFORM}, this is {here}")
        self._buffers = executable.buffers
        self._image = bytearray()
        """What a call finds in memory: buffers, and the words by which kernels find them."""
        self._addresses: list[int] = []
        """Where in the image the words are that hold an offset into it and become an address."""
        of_use = {use: [i for i, buffer in self._buffers.items() if buffer.use is use] for use in Use}
        if (len(of_use[Use.ARGUMENT]), len(of_use[Use.RESULT])) != (1, 1):
            raise UnknownExecutable("a program has other than one argument and one result")
        values = {i: self._buffers[i].value for i in of_use[Use.CONSTANT]}
        self._constants = {i: aligned(value) for i, value in values.items() if value is not None}
        self._starts = {i: self._place(bytes(self._buffers[i].size)) for i in self._buffers if i not in self._constants}
        self.argument, self.result = (self._span(of_use[use][0]) for use in (Use.ARGUMENT, Use.RESULT))
        """Where in its memory a call finds the one and leaves the other."""
        self._numbers = itertools.count()
        self._lines = [_START.format(state=_FLUSHED)]
        self._kernels: dict[str, None] = {}
        self._write(executable.work)
        if feedback:
            source, target = (Slice(of_use[use][0], 0, feedback) for use in (Use.RESULT, Use.ARGUMENT))
            self._write([Copy(source, target)])
        self._place(b"")  # whole words
        declared = "".join(f'declare ptr @"{name}"(ptr)\n' for name in self._kernels)
        self._library = _link(executable.objects, declared + "".join(self._lines) + _END)
        self._run = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(self._library["run"])
        self._words_with_addresses = np.array(self._addresses, np.int64) // 8

    def memory(self) -> np.ndarray:
        """Bytes for calls that come one after the other."""
        memory = aligned(np.frombuffer(self._image, np.uint8))
        memory.view(np.uint64)[self._words_with_addresses] += np.uint64(memory.ctypes.data)
        return memory

    def at(self, memory: np.ndarray) -> Callable[[], None]:
        """What calls it there."""
        run = partial(self._run, memory.ctypes.data)
        vars(run)["keeps"] = self, memory  # of which it knows the addresses only
        return run

    # -- memory -----------------------------------------------------------------------------------------------------

    def _place(self, data: bytes) -> int:
        """Where the data come to lie in the image."""
        start = -(-len(self._image) // ALIGNMENT) * ALIGNMENT
        self._image += bytes(start - len(self._image)) + data
        return start

    def _span(self, buffer: int) -> slice:
        return slice(self._starts[buffer], self._starts[buffer] + self._buffers[buffer].size)

    def _find(self, part: Slice) -> int | At:
        """Constants are where they are; all else is in the memory of a call."""
        if part.buffer in self._constants:
            return self._constants[part.buffer].ctypes.data + part.offset
        return At(self._starts[part.buffer] + part.offset)

    def _words(self, words: list[int | At]) -> At:
        """Where words come to lie in the image."""
        numbers = [word.offset if isinstance(word, At) else word for word in words]
        start = self._place(np.array(numbers, np.uint64).tobytes())
        self._addresses += [start + 8 * i for i, word in enumerate(words) if isinstance(word, At)]
        return At(start)

    # -- work -------------------------------------------------------------------------------------------------------

    def _write(self, work: list[Any]) -> None:
        """Lines of LLVM's language that do it."""
        for item in work:
            match item:
                case Kernel():
                    self._call(item)
                case Copy(source, target):
                    to, of = self._pointer(self._find(target)), self._pointer(self._find(source))
                    self._line(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {of}, i64 {source.size}, i1 0)")
                case Loop(condition, holds, body):
                    n = next(self._numbers)
                    self._line(f"br label %again{n}\nagain{n}:")
                    self._write(condition)
                    self._line(f"%byte{n} = load i8, ptr {self._pointer(self._find(holds))}")
                    self._line(f"%holds{n} = icmp ne i8 %byte{n}, 0")
                    self._line(f"br i1 %holds{n}, label %body{n}, label %over{n}\nbody{n}:")
                    self._write(body)
                    self._line(f"br label %again{n}\nover{n}:")

    def _call(self, kernel: Kernel) -> None:
        if kernel.groups > _GROUPS:
            raise UnknownExecutable(f"a kernel of {kernel.groups} groups of work")
        self._kernels[kernel.name] = None
        slices = self._words([word for part in kernel.slices for word in (self._find(part), part.size)])
        groups = self._words([kernel.groups, 1, 1])
        for group in range(kernel.groups):
            frame = self._words([groups, self._words([group, 0, 0]), len(kernel.slices), slices])
            self._line(f'call ptr @"{kernel.name}"(ptr {self._pointer(frame)})')

    def _pointer(self, word: int | At) -> str:
        """Of LLVM's language."""
        if isinstance(word, At):
            name = f"%at{next(self._numbers)}"
            self._line(f"{name} = getelementptr i8, ptr %memory, i64 {word.offset}")
            return name
        return f"inttoptr (i64 {word} to ptr)"

    def _line(self, line: str) -> None:
        self._lines.append(f"  {line}\n")


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins where XLA wants buffers to begin."""
    room = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def crowded() -> bool:
    """Whether this process has mapped half of the pieces of memory that Linux grants one: a kernel takes two."""
    try:
        mapped = Path("/proc/self/maps").read_bytes().count(b"\n")
        return 2 * mapped > int(Path("/proc/sys/vm/max_map_count").read_text())
    except OSError:
        return True  # nobody knows


@cache
def _linker() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.create_lljit_compiler()


def _link(objects: list[bytes], source: str) -> Any:
    """A library of all of it, which stays as long as it is kept; its functions see the C library's."""
    if crowded():  # without memory to map, LLVM ends the process
        raise UnknownExecutable("this process has mapped too many pieces of memory")
    library = llvm.JITLibraryBuilder().add_current_process().add_ir(source).export_symbol("run")
    for part in objects:
        library.add_object_img(part)
    try:
        return library.link(_linker(), f"program {next(_LIBRARIES)}")
    except RuntimeError as error:
        raise UnknownExecutable(f"it cannot be linked: {error}") from error
