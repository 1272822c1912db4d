"""A small language of our own and the machine that runs it.

The machine has eight numbers, a memory, an input and an output.

Nothing of the host is ever executed: instructions are numbers, and the machine is a loop of
arithmetic on arrays.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Flag, Int, IntArray

LINES = 20
"""Lines of a program."""
STEPS = 160
"""Instructions that a run may take."""
VARIABLES = 8
MEMORY = 16
"""Numbers in the memory."""
MAX_NUMBER = 9999
"""Largest absolute value of a number."""
MAX_READ = 5
"""Numbers of an input."""
MAX_WRITTEN = 10
"""Numbers of an output."""
NAMES = "abcdefgh"
LEFT = VARIABLES
"""Operand that is the number of inputs left to read."""
FIRST_CONSTANT = VARIABLES + 1
"""Operand that is the constant 0."""
CONSTANTS = 17
OPERANDS = FIRST_CONSTANT + CONSTANTS


LANGUAGE = f"""\
A program has up to {LINES} lines, one instruction each. \
Numbers are whole, from -{MAX_NUMBER} to {MAX_NUMBER}; all begin at
0.
  a = y              also a = y + z, -, *, / (rounded down), % (of the divisor's sign)
  a = read           take the next number of the input
  a = m[y]           read the memory, {MEMORY} numbers from m[0] on
  m[y] = z           write it
  write y            append to the output, {MAX_WRITTEN} numbers at most
  goto 5             go on at line 5; the line after the last one ends the program
  if y < z goto 5    also with ==
  end                end the program; so does the last line
Here a is one of the variables a to h; \
y and z are variables, whole numbers from 0 to {CONSTANTS - 1}, or left: how many
numbers of the input are left. \
A run of more than {STEPS} steps fails, and so does one that breaks another limit."""


class Op(IntEnum):
    """Kinds of instructions."""

    END = 0
    SET = 1
    ADD = 2
    SUBTRACT = 3
    MULTIPLY = 4
    DIVIDE = 5
    REMAINDER = 6
    READ = 7
    LOAD = 8
    STORE = 9
    WRITE = 10
    GOTO = 11
    IF_LESS = 12
    IF_EQUAL = 13


class Fault(IntEnum):
    """Reasons for which a run fails."""

    NONE = 0
    TOO_MANY_STEPS = 1
    DIVISION_BY_ZERO = 2
    NOTHING_LEFT_TO_READ = 3
    NO_SUCH_MEMORY = 4
    NUMBER_TOO_LARGE = 5
    OUTPUT_FULL = 6


SIZES = (len(Op), LINES + 1, OPERANDS, OPERANDS)
"""Sizes of the parts of an instruction: operation; variable or line to go to; two operands."""


class Run(NamedTuple):
    """A machine; int32 unless said."""

    line: Int
    steps: Int
    variables: IntArray
    """``(8,)``"""
    memory: IntArray
    """``(16,)``"""
    read: Int
    """Numbers read."""
    output: IntArray
    """``(10,)``"""
    written: Int
    fault: Int
    running: Flag
    """bool"""


def run(program: jax.Array, numbers: jax.Array, count: jax.Array) -> Run:
    """Return the machine after a program has ended or failed.

    Args:
        program: int32 ``(20, 4)``.
        numbers: the input, int32 ``(5,)``.
        count: how many of them there are.
    """
    zero = jnp.int32(0)
    start = Run(
        line=zero,
        steps=zero,
        variables=jnp.zeros(VARIABLES, jnp.int32),
        memory=jnp.zeros(MEMORY, jnp.int32),
        read=zero,
        output=jnp.zeros(MAX_WRITTEN, jnp.int32),
        written=zero,
        fault=zero,
        running=jnp.bool_(True),
    )
    op, target, first, second = program.T
    packed = op | target << 4 | first << 9 | second << 14  # one look-up a step is faster than four
    return jax.lax.while_loop(
        lambda now: now.running, lambda now: _step(packed, numbers, count, now), start
    )


def _step(program: jax.Array, numbers: jax.Array, count: jax.Array, now: Run) -> Run:
    over = now.line >= LINES
    packed = program[jnp.minimum(now.line, LINES - 1)]
    op = jnp.where(over, Op.END, packed & 15)
    target = packed >> 4 & 31
    first = packed >> 9 & 31
    second = packed >> 14
    register = target % VARIABLES

    def value(operand: jax.Array) -> jax.Array:
        variable = now.variables[jnp.minimum(operand, VARIABLES - 1)]
        constant = jnp.where(operand == LEFT, count - now.read, operand - FIRST_CONSTANT)
        return jnp.where(operand < VARIABLES, variable, constant)

    y = value(first)
    z = value(second)
    divisor = jnp.where(z == 0, 1, z)
    inside = (y >= 0) & (y < MEMORY)
    cell = jnp.clip(y, 0, MEMORY - 1)
    next_number = numbers[jnp.minimum(now.read, MAX_READ - 1)]
    quotient = y // divisor
    result = y
    for kind, candidate in (
        (Op.ADD, y + z),
        (Op.SUBTRACT, y - z),
        (Op.MULTIPLY, y * z),
        (Op.DIVIDE, quotient),
        (Op.REMAINDER, y - quotient * divisor),
        (Op.READ, next_number),
        (Op.LOAD, now.memory[cell]),
    ):
        result = jnp.where(op == kind, candidate, result)
    assigns = (op >= Op.SET) & (op <= Op.LOAD)
    fault = jnp.int32(Fault.NONE)
    for failed, code in (
        (now.steps + 1 >= STEPS, Fault.TOO_MANY_STEPS),
        ((op == Op.WRITE) & (now.written >= MAX_WRITTEN), Fault.OUTPUT_FULL),
        (assigns & (jnp.abs(result) > MAX_NUMBER), Fault.NUMBER_TOO_LARGE),
        (((op == Op.LOAD) | (op == Op.STORE)) & ~inside, Fault.NO_SUCH_MEMORY),
        ((op == Op.READ) & (now.read >= count), Fault.NOTHING_LEFT_TO_READ),
        (((op == Op.DIVIDE) | (op == Op.REMAINDER)) & (z == 0), Fault.DIVISION_BY_ZERO),
    ):
        fault = jnp.where(failed, code, fault).astype(jnp.int32)
    ended = op == Op.END
    fault = jnp.where(ended, Fault.NONE, fault).astype(jnp.int32)
    fine = (fault == Fault.NONE) & ~ended
    jumps = (op == Op.GOTO) | ((op == Op.IF_LESS) & (y < z)) | ((op == Op.IF_EQUAL) & (y == z))
    put = fine & assigns & (jnp.arange(VARIABLES) == register)
    store = fine & (op == Op.STORE) & (jnp.arange(MEMORY) == cell)
    write = fine & (op == Op.WRITE)
    return Run(
        line=jnp.where(jumps, target, now.line + 1).astype(jnp.int32),
        steps=now.steps + 1,
        variables=jnp.where(put, result, now.variables),
        memory=jnp.where(store, z, now.memory),
        read=now.read + (fine & (op == Op.READ)),
        output=jnp.where(write & (jnp.arange(MAX_WRITTEN) == now.written), y, now.output),
        written=now.written + write,
        fault=fault,
        running=fine,
    )


# -- programs as text ------------------------------------------------------------------------------

_ARITHMETIC = {"+": Op.ADD, "-": Op.SUBTRACT, "*": Op.MULTIPLY, "/": Op.DIVIDE, "%": Op.REMAINDER}
_SIGNS = {op: sign for sign, op in _ARITHMETIC.items()}
_OPERAND = r"([a-h]|left|\d{1,2})"
_TARGET = r"goto (\d{1,2})"
_FORMS = {
    "end": r"end",
    "read": r"([a-h]) = read",
    "load": rf"([a-h]) = m ?\[ ?{_OPERAND} ?\]",
    "arithmetic": rf"([a-h]) = {_OPERAND} ([-+*/%]) {_OPERAND}",
    "set": rf"([a-h]) = {_OPERAND}",
    "store": rf"m ?\[ ?{_OPERAND} ?\] = {_OPERAND}",
    "write": rf"write {_OPERAND}",
    "goto": _TARGET,
    "if": rf"if {_OPERAND} (<|==) {_OPERAND} {_TARGET}",
}
_PATTERNS = {name: re.compile(form) for name, form in _FORMS.items()}
_NUMBERED = re.compile(r"\d{1,2} ?[:.)] ?")
_SPACED = re.compile(r"==|[-+*/%<=]")


def assemble(text: str) -> np.ndarray:
    """Return a program, int32 ``(20, 4)``, from lines of text.

    Lines may be numbered, and ``;`` separates lines too.

    Raises:
        ValueError: a line is no instruction, or there are too many; the message names the line.
    """
    lines = [line.strip() for line in text.replace(";", "\n").splitlines()]
    lines = [line for line in lines if line]
    if len(lines) > LINES:
        raise ValueError(f"a program has at most {LINES} lines, got {len(lines)}")
    program = np.zeros((LINES, len(SIZES)), np.int32)
    for number, line in enumerate(lines):
        if len(line) > 60:
            raise ValueError(f"line {number + 1} is longer than 60 characters")
        program[number] = _instruction(line, number + 1)
    return program


@lru_cache(maxsize=4096)
def _instruction(line: str, number: int) -> tuple[int, int, int, int]:
    plain = _SPACED.sub(lambda sign: f" {sign[0]} ", _NUMBERED.sub("", line.lower(), count=1))
    plain = " ".join(plain.split())
    for name, pattern in _PATTERNS.items():
        if match := pattern.fullmatch(plain):
            return _encode_instruction(name, match.groups(), number)
    raise ValueError(f"line {number} is no instruction: {line!r}")


def _encode_instruction(
    name: str, groups: tuple[str, ...], number: int
) -> tuple[int, int, int, int]:
    def operand(text: str) -> int:
        if text == "left":
            return LEFT
        if text in NAMES:
            return NAMES.index(text)
        if int(text) >= CONSTANTS:
            raise ValueError(f"line {number}: constants are from 0 to {CONSTANTS - 1}, got {text}")
        return FIRST_CONSTANT + int(text)

    def target(text: str) -> int:
        if not 1 <= int(text) <= LINES + 1:
            raise ValueError(f"line {number}: goto takes a line from 1 to {LINES + 1}, got {text}")
        return int(text) - 1

    variable = NAMES.index(groups[0]) if name in ("read", "load", "arithmetic", "set") else 0
    match name, groups:
        case "arithmetic", (_, y, sign, z):
            code = _ARITHMETIC[sign], variable, operand(y), operand(z)
        case "store", (y, z):
            code = Op.STORE, 0, operand(y), operand(z)
        case "goto", (line,):
            code = Op.GOTO, target(line), 0, 0
        case "if", (y, sign, z, line):
            code = Op.IF_LESS if sign == "<" else Op.IF_EQUAL, target(line), operand(y), operand(z)
        case "write", (y,):
            code = Op.WRITE, 0, operand(y), 0
        case (("load" | "set"), (_, y)):
            code = Op.LOAD if name == "load" else Op.SET, variable, operand(y), 0
        case _:
            code = Op.READ if name == "read" else Op.END, variable, 0, 0
    return code


def disassemble(program: np.ndarray) -> str:
    """Return the lines of a program up to its last instruction that is not ``end``."""
    used = np.flatnonzero(program[:, 0] != Op.END)
    return "\n".join(
        _line(*map(int, instruction)) for instruction in program[: used[-1] + 1 if used.size else 0]
    )


def _line(op: int, target: int, first: int, second: int) -> str:
    def operand(number: int) -> str:
        if number < VARIABLES:
            return NAMES[number]
        return "left" if number == LEFT else str(number - FIRST_CONSTANT)

    variable = NAMES[target % VARIABLES]
    y = operand(first)
    z = operand(second)
    if op in _SIGNS:
        return f"{variable} = {y} {_SIGNS[Op(op)]} {z}"
    return {
        Op.END: "end",
        Op.SET: f"{variable} = {y}",
        Op.READ: f"{variable} = read",
        Op.LOAD: f"{variable} = m[{y}]",
        Op.STORE: f"m[{y}] = {z}",
        Op.WRITE: f"write {y}",
        Op.GOTO: f"goto {target + 1}",
        Op.IF_LESS: f"if {y} < {z} goto {target + 1}",
        Op.IF_EQUAL: f"if {y} == {z} goto {target + 1}",
    }[Op(op)]
