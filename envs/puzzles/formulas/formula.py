"""Propositional formulas as sets of bits, and random 3-SAT formulas with a quietly planted model.

A clause is one word over variables, a literal one word (or a few) over clauses. Drawing a formula
is easiest clause by clause; playing with it is fastest literal by literal, because then one AND and
one population count answer "how many unsatisfied clauses hold this literal?" for all clauses at
once.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

WORD = 32
MAX_VARIABLES = WORD
THRESHOLD = 4.267
"""Clauses a variable at which random 3-SAT turns unsatisfiable (Mertens, Mezard & Zecchina 2006).
"""


class Formula(NamedTuple):
    """A formula in conjunctive normal form, public to every player.

    It is stored as the clauses in which each literal occurs.

    Bit ``j % 32`` of ``positive[j // 32, v]`` is set if clause ``j`` holds variable ``v``;
    ``negative`` holds the same for its negation. Both are uint32 of shape ``(words, variables)``.
    """

    positive: jax.Array
    negative: jax.Array


class Verdict(NamedTuple):
    """Effect of an assignment on the clauses: two sets of clauses, uint32 ``(words,)`` each."""

    unsatisfied: jax.Array
    """Clauses without a true literal."""
    critical: jax.Array
    """Clauses with exactly one true literal: flipping its variable breaks them."""


def clause_count(variables: int) -> int:
    """Return the even number of clauses nearest to the satisfiability threshold.

    :func:`planted_formula` tells why.
    """
    return 2 * round(THRESHOLD * variables / 2)


def all_bits(clauses: int) -> np.ndarray:
    """Return the set of clauses 0 to ``clauses`` - 1, uint32 ``(words,)``."""
    full, remainder = divmod(clauses, WORD)
    return np.array([2**WORD - 1] * full + [2**remainder - 1] * (remainder > 0), np.uint32)


def values(assignment: jax.Array, variables: int) -> jax.Array:
    """Return the value of each variable, bool ``(variables,)``.

    Variable ``v`` is bit ``v`` of the uint32 ``assignment``. Beyond 32 variables the assignment is
    uint32 ``(words,)``, and the variable is bit ``v % 32`` of word ``v // 32``.
    """
    if assignment.ndim == 0:
        return (assignment >> np.arange(variables, dtype=np.uint32)) & 1 != 0
    return ((assignment[:, None] >> np.arange(WORD, dtype=np.uint32)) & 1 != 0).reshape(-1)[
        :variables
    ]


def flip_variable(assignment: jax.Array, variable: jax.Array) -> jax.Array:
    """Return the assignment with one variable negated."""
    bit = np.uint32(1) << (variable % WORD).astype(jnp.uint32)
    if assignment.ndim == 0:
        return assignment ^ bit
    return jnp.where(
        np.arange(assignment.shape[0]) == variable // WORD, assignment ^ bit, assignment
    )


def as_bits(members: jax.Array) -> jax.Array:
    """Invert :func:`values`: turn bool ``(variables,)`` into a uint32."""
    bits = np.uint32(1) << np.arange(members.shape[-1], dtype=np.uint32)
    return jnp.where(members, bits, 0).sum(dtype=jnp.uint32)


def true_literals(formula: Formula, assignment: jax.Array) -> jax.Array:
    """Return the clauses in which variables' true literals occur, uint32 ``(words, variables)``."""
    return jnp.where(
        values(assignment, formula.positive.shape[-1]), formula.positive, formula.negative
    )


def false_literals(formula: Formula, assignment: jax.Array) -> jax.Array:
    """Return the clauses in which each variable's false literal occurs.

    They are uint32 ``(words, variables)``.
    """
    return true_literals(Formula(formula.negative, formula.positive), assignment)


def tally(literals: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the clauses with at least one, and those with at least two, of some literals.

    The literals are given as sets of clauses, ``(words, variables)``.
    """

    def add(
        first: tuple[jax.Array, jax.Array], second: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        (some, several), (more, many_more) = first, second
        return some | more, several | many_more | (some & more)

    none = np.uint32(0)
    return lax.reduce((literals, jnp.zeros_like(literals)), (none, none), add, (1,))


def judge(formula: Formula, assignment: jax.Array, clauses: np.ndarray) -> Verdict:
    """Judge an assignment on these clauses (see :func:`all_bits`)."""
    satisfied, satisfied_twice = tally(true_literals(formula, assignment))
    return Verdict(~satisfied & clauses, satisfied & ~satisfied_twice)


def size(clauses: jax.Array) -> jax.Array:
    """Count the members of sets of clauses, words on axis 0; int32."""
    return functools.reduce(operator.add, [lax.population_count(word) for word in clauses]).astype(
        jnp.int32
    )


def used_clauses(formula: Formula) -> jax.Array:
    """Return the set of clauses that hold any literal, uint32 ``(words,)``."""
    return lax.reduce(formula.positive | formula.negative, np.uint32(0), lax.bitwise_or, (1,))


# -- random formulas -------------------------------------------------------------------------------

QUIET = (math.sqrt(5) - 1) / 2
"""Weight of each literal that agrees with the planted model: the positive root of q (1 + q) = 1."""

AGREEMENTS = np.arange(1, 8)
"""Sets of literals of a clause that agree with the planted model, as three bits.

These are all sets except the empty one.
"""


def agreement_law() -> np.ndarray:
    """Return the probability of each of :data:`AGREEMENTS`.

    It is proportional to ``QUIET**(agreeing literals)``.
    """
    weights = QUIET ** np.array([int(pattern).bit_count() for pattern in AGREEMENTS])
    return weights / weights.sum()


def triples(variables: int) -> np.ndarray:
    """Return every set of three variables as a uint32 of three bits."""
    return np.array(
        [sum(1 << v for v in three) for three in itertools.combinations(range(variables), 3)],
        np.uint32,
    )


def planted_formula(key: jax.Array, variables: int, clauses: int, split: jax.Array) -> Formula:
    """Return a random 3-SAT formula around a hidden model, from one random draw.

    Clauses are drawn independently (fixed clause length: Mitchell, Selman & Levesque 1992): three
    distinct variables, uniformly, and signs such that t of the three literals agree with a hidden
    uniform assignment with probability proportional to ``QUIET**t``, t = 1, 2, 3. Planting with
    equal weights instead makes literals agree more often than not, so that a majority vote over
    signs finds the model; with this weight they agree exactly half of the time: E[t] = 3/2 (Jia,
    Moore & Strain 2007, section 3).

    **The split.** Let o be the number of variables that occur an odd number of times. It is even,
    because the number of literals, ``3 * clauses``, is. Formulas with o divisible by 4 are train
    formulas, the others test formulas. Renaming variables, negating one throughout, and reordering
    clauses or literals keep o: no formula of one split is a disguised formula of the other. Only
    the last clause is drawn with an eye to the split. Where it comes out wrong, one of its
    variables is exchanged for another such that o changes by 2: of the two, one occurs an odd
    number of times in the clauses before, the other an even number. There is always such a pair:
    the clauses before hold an odd number of literals, so some variable is odd there, and as
    ``variables`` is even, some is not.

    Args:
        key: randomness.
        variables: even, at most 32.
        clauses: even.
        split: 0 for train, 1 for test.
    """
    every_triple = triples(variables)
    bits = jax.random.bits(key, (clauses + 2,), "uint32")
    model, start, dice = bits[0], bits[1] % variables, bits[2:]

    # The product of a die with the number of triples: the upper word picks the triple, the lower
    # one its signs.
    count = np.uint32(len(every_triple))
    upper = ((dice >> 16) * count + ((dice & 0xFFFF) * count >> 16)) >> 16
    lower = dice * count
    scope = jnp.asarray(every_triple)[upper]
    scope = scope.at[-1].set(_adapt_to_split(scope, start, split, variables))

    limits = np.ceil(np.cumsum(agreement_law())[:-1] * 2.0**WORD).astype(np.uint32)
    pattern = 1 + sum((lower >= limit).astype(jnp.uint32) for limit in limits)
    first = _lowest_bit(scope)
    second = _lowest_bit(scope ^ first)
    third = scope ^ first ^ second
    agree = first * (pattern & 1) | second * (pattern >> 1 & 1) | third * (pattern >> 2)
    true = ~(agree ^ model)
    return Formula(*_transpose_bits(jnp.stack([scope & true, scope & ~true]))[..., :variables])


def _adapt_to_split(
    scope: jax.Array, start: jax.Array, split: jax.Array, variables: int
) -> jax.Array:
    """Return the last clause's variables, adapted to the split.

    One of them is exchanged if the formula would belong to the other split.
    """
    last = scope[-1]
    odd = lax.reduce(scope[:-1], np.uint32(0), lax.bitwise_xor, (0,))
    even = ~odd & np.uint32(2**variables - 1)

    def first_of(candidates: jax.Array) -> jax.Array:
        """Return the first candidate from ``start`` on, cyclically. This favours no variable."""
        behind = candidates & (np.uint32(2**WORD - 1) << start)
        return _lowest_bit(jnp.where(behind != 0, behind, candidates))

    odd_leaves = (last & odd != 0) & (~last & even != 0)
    leaves = jnp.where(odd_leaves, last & odd, last & even)
    enters = jnp.where(odd_leaves, ~last & even, ~last & odd)
    wrong = lax.population_count(odd ^ last) // 2 % 2 != split.astype(jnp.uint32)
    return jnp.where(wrong, last ^ first_of(leaves) ^ first_of(enters), last)


def _lowest_bit(members: jax.Array) -> jax.Array:
    """Return the lowest bit that is set."""
    return members & -members


def _transpose_bits(clauses: jax.Array) -> jax.Array:
    """Turn sets of variables into sets of clauses.

    These are uint32 ``(..., clauses)`` and ``(..., words, 32)``.

    Each block of 32 words is a 32 x 32 matrix of bits, transposed by exchanging the bits of the row
    number with those of the column number, one after another (Warren 2012, section 7-3). The loop
    is a real one: unrolled, XLA would compute each word anew for every bit that it goes into.
    """
    padding = [(0, 0)] * (clauses.ndim - 1) + [(0, -clauses.shape[-1] % WORD)]
    row = np.arange(WORD, dtype=np.uint32)

    def exchange(rows: jax.Array, level: tuple[Any, Any]) -> tuple[jax.Array, None]:
        bit, columns = level  # the columns whose number lacks this bit
        partner = rows[..., row ^ bit]
        without = rows & columns | (partner & columns) << bit
        having = rows & ~columns | partner >> bit & columns
        return jnp.where(row & bit == 0, without, having), None

    rows = jnp.pad(clauses, padding).reshape(*clauses.shape[:-1], -1, WORD)
    bits = np.array([16, 8, 4, 2, 1], np.uint32)
    columns = np.array([0x0000FFFF, 0x00FF00FF, 0x0F0F0F0F, 0x33333333, 0x55555555], np.uint32)
    return lax.scan(exchange, rows, (bits, columns))[0]
