"""The SAT family's reference player: solve first, then walk straight to the model."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rlbench_suite.policy import View

from .formula import WORD, Formula, judge, size, true_literals, used_clauses, values

MOST_FLIPS = 200_000
"""Flips after which the search gives up; see the tests for how few it takes."""


class WalkSAT(NamedTuple):
    """WalkSAT (Selman, Kautz & Cohen 1994), run to a model before the first move; solves every instance.

    In play it flips, of the legal variables in which the assignment differs from its model, the first: at most n
    flips (see :mod:`.sat`). It reads the formula, which is public, and draws no luck from the episode: the same
    formula gives the same model.
    """

    def initial(self, params: Formula) -> jax.Array:
        """The model found, a uint32 assignment (the last one tried if none was found)."""
        words, variables = params.positive.shape
        clauses = used_clauses(params)
        lanes = np.arange(words * WORD, dtype=np.uint32)

        def searching(search: tuple[jax.Array, jax.Array]) -> jax.Array:
            assignment, flips = search
            return (judge(params, assignment, clauses).unsatisfied != 0).any() & (flips < MOST_FLIPS)

        def flip(search: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            assignment, flips = search
            turn, order, coin = jax.random.bits(jax.random.fold_in(jax.random.key(0), flips), (3,))
            verdict = judge(params, assignment, clauses)

            # A random unsatisfied clause: the first one from a random place on.
            unsatisfied = (verdict.unsatisfied[:, None] >> np.arange(WORD, dtype=np.uint32) & 1).ravel() != 0
            clause = jnp.argmin(jnp.where(unsatisfied, (lanes + turn) % len(lanes), len(lanes)))
            occurs = (params.positive | params.negative)[clause // WORD]
            member = occurs >> (clause % WORD).astype(jnp.uint32) & 1 != 0

            # Its variable that breaks fewest clauses, ties in a random order; or, where each breaks some, the
            # first in that order with probability 1/2.
            order = (np.arange(variables, dtype=np.uint32) + order % variables) % variables
            breaks = size(verdict.critical[:, None] & true_literals(params, assignment))
            free = (member & (breaks == 0)).any()
            rank = jnp.where((coin & 1 != 0) & ~free, order, breaks.astype(jnp.uint32) * variables + order)
            variable = jnp.argmin(jnp.where(member, rank, np.uint32(2**WORD - 1)))
            return assignment ^ (np.uint32(1) << variable.astype(jnp.uint32)), flips + 1

        return lax.while_loop(searching, flip, (jnp.uint32(0), jnp.int32(0)))[0]

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The first legal variable that brings the assignment nearer to the model."""
        differs = values(view.state.assignment ^ memory, len(view.action_mask))
        return jnp.argmax(view.action_mask & differs).astype(jnp.int32), memory
