"""Functions that programs shall compute: in words, as functions of the input, and as programs.

K stands for a number from 4 to 9 that differs between instances. It is in every function of the
test split, so that one program for all instances is right in few of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import machine
from .machine import FIRST_CONSTANT, MAX_READ, MAX_WRITTEN, assemble

PLACEHOLDER = 16
"""Constant that stands for K in the programs below."""
MAX_INPUT = 12
"""Largest number of an input; the smallest is 0."""
Output = tuple[jax.Array, jax.Array]
"""Numbers ``(10,)`` and how many of them count."""


def _pack(values: jax.Array, keep: jax.Array) -> Output:
    """Return the values that are kept, moved together."""
    keep = jnp.pad(keep, (0, MAX_WRITTEN - keep.size))
    values = jnp.pad(values, (0, MAX_WRITTEN - values.size))
    position = jnp.cumsum(keep) - 1
    at = jnp.arange(MAX_WRITTEN)
    packed = jnp.where(keep[None] & (position[None] == at[:, None]), values[None], 0).sum(1)
    return packed.astype(jnp.int32), keep.sum().astype(jnp.int32)


def _write_one(value: jax.Array) -> Output:
    return _pack(value[None], jnp.ones(1, bool))


def _total(x: jax.Array, keep: jax.Array) -> jax.Array:
    return jnp.where(keep, x, 0).sum()


def _write_backwards(x: jax.Array, there: jax.Array, keep: jax.Array) -> Output:
    """Return the kept values from the last to the first."""
    return _pack(x[::-1], (there & keep)[::-1])


class Specification(NamedTuple):
    """A function of a list: tier, split (0 train, 1 test), words, function and program.

    The function takes (numbers, there, K).
    """

    tier: int
    split: int
    words: str
    output: Callable[[jax.Array, jax.Array, jax.Array], Output]
    program: str


_EACH = "if left == 0 goto 6; a = read; {}; write a; goto 1"
_SOME = "if left == 0 goto 8; a = read; {}; if {} goto 6; goto 1; write a; goto 1"
_COUNT = "if left == 0 goto 7; a = read; if 16 < a goto 5; goto 1; {}; goto 1; write b"
_STORE = "if left == 0 goto 6; a = read; m[b] = a; b = b + 1; goto 1; "
SPECIFICATIONS = (
    Specification(
        1, 0, "each number times K", lambda x, there, k: _pack(x * k, there),
        _EACH.format("a = a * 16"),
    ),
    Specification(
        1, 0, "each number plus K", lambda x, there, k: _pack(x + k, there),
        _EACH.format("a = a + 16"),
    ),
    Specification(
        1, 0, "the numbers less than K, in their order",
        lambda x, there, k: _pack(x, there & (x < k)), _SOME.format("b = 16", "a < b"),
    ),
    Specification(
        1, 0, "each number twice, one after the other",
        lambda x, there, k: _pack(jnp.repeat(x, 2), jnp.repeat(there, 2)), _EACH.format("write a"),
    ),
    Specification(
        1, 1, "the numbers that K divides, in their order",
        lambda x, there, k: _pack(x, there & (x % k == 0)), _SOME.format("b = a % 16", "b == 0"),
    ),
    Specification(
        1, 1, "K minus each number", lambda x, there, k: _pack(k - x, there),
        _EACH.format("a = 16 - a"),
    ),
    Specification(
        1, 1, "the remainder of each number by K", lambda x, there, k: _pack(x % k, there),
        _EACH.format("a = a % 16"),
    ),
    Specification(
        2, 0, "the sum of all numbers", lambda x, there, k: _write_one(_total(x, there)),
        "if left == 0 goto 5; a = read; b = b + a; goto 1; write b",
    ),
    Specification(
        2, 0, "how many numbers are greater than K",
        lambda x, there, k: _write_one((there & (x > k)).sum()), _COUNT.format("b = b + 1"),
    ),
    Specification(
        2, 0, "the largest number", lambda x, there, k: _write_one(jnp.where(there, x, 0).max()),
        "if left == 0 goto 7; a = read; if b < a goto 5; goto 1; b = a; goto 1; write b",
    ),
    Specification(
        2, 0, "after each number, the sum of the numbers so far",
        lambda x, there, k: _pack(jnp.cumsum(x), there),
        _EACH.format("b = b + a").replace("write a", "write b"),
    ),
    Specification(
        2, 1, "the sum of the numbers greater than K",
        lambda x, there, k: _write_one(_total(x, there & (x > k))), _COUNT.format("b = b + a"),
    ),
    Specification(
        2, 1, "the smallest number plus K",
        lambda x, there, k: _write_one(jnp.where(there, x, MAX_INPUT).min() + k),
        (
            "b = read; if left == 0 goto 8; a = read; if a < b goto 6; goto 2; b = a; goto 2; b = "
            "b + 16; write b"
        ),
    ),
    Specification(
        2, 1, "each number minus the one before it, plus K, from the second on",
        lambda x, there, k: _pack(x[1:] - x[:-1] + k, there[1:]),
        "a = read; if left == 0 goto 9; b = read; c = b - a; c = c + 16; write c; a = b; goto 2",
    ),
    Specification(
        3, 0, "the numbers from the last to the first",
        lambda x, there, k: _write_backwards(x, there, there),
        _STORE + "if b == 0 goto 11; b = b - 1; a = m[b]; write a; goto 6",
    ),
    Specification(
        3, 0, "the largest number minus each number",
        lambda x, there, k: _pack(jnp.where(there, x, 0).max() - x, there),
        "if left == 0 goto 8; a = read; m[b] = a; b = b + 1; if a < c goto 1; c = a; goto 1; "
        "if d == b goto 14; a = m[d]; a = c - a; write a; d = d + 1; goto 8",
    ),
    Specification(
        3, 0, "the numbers greater than the average, in their order",
        lambda x, there, k: _pack(x, there & (x * there.sum() > _total(x, there))),
        "if left == 0 goto 7; a = read; m[b] = a; b = b + 1; c = c + a; goto 1; if d == b goto "
        "15; a = m[d]; d = d + 1; e = a * b; if c < e goto 13; goto 7; write a; goto 7",
    ),
    Specification(
        3, 1, "the numbers less than K, from the last to the first",
        lambda x, there, k: _write_backwards(x, there, x < k),
        _STORE
        + "if b == 0 goto 13; b = b - 1; a = m[b]; if a < 16 goto 11; goto 6; write a; goto 6",
    ),
    Specification(
        3, 1, "each number minus the smallest number, plus K",
        lambda x, there, k: _pack(x - jnp.where(there, x, MAX_INPUT).min() + k, there),
        "c = 12; if left == 0 goto 9; a = read; m[b] = a; b = b + 1; if c < a goto 2; c = a; goto "
        "2; if d == b goto 16; a = m[d]; a = a - c; a = a + 16; write a; d = d + 1; goto 9",
    ),
    Specification(
        3, 1, "the numbers sorted, the smallest first, each plus K",
        lambda x, there, k: _pack(
            jnp.sort(jnp.where(there, x, MAX_INPUT + 1)) + k, jnp.arange(MAX_READ) < there.sum()
        ),
        "if left == 0 goto 7; a = read; b = m[a]; b = b + 1; m[a] = b; goto 1; if c == 13 goto "
        "16; b = m[c]; if b == 0 goto 14; e = c + 16; write e; b = b - 1; goto 9; c = c + 1; goto "
        "7",
    ),
)  # fmt: skip


def programs(specifications: tuple[Specification, ...]) -> np.ndarray:
    """Return the programs of specifications, with the placeholder in them, int32 ``(n, 20, 4)``."""
    return np.stack([assemble(specification.program) for specification in specifications])


def with_constant(program: Any, constant: Any) -> jax.Array:
    """Return a program with K in place of the placeholder in its operands."""
    marks = (np.arange(len(machine.SIZES)) >= 2) & (program == FIRST_CONSTANT + PLACEHOLDER)
    return jnp.where(marks, FIRST_CONSTANT + constant, program).astype(jnp.int32)
