"""The reference player of SAT: it solves the formula first, then walks straight to the model."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rlbench_suite.core.policy import View, privileged_player
from rlbench_suite.core.task import Task

from .formula import Formula, as_bits, size, tally, used_clauses, values


class Search(NamedTuple):
    """A partial assignment, and the alternatives to its decisions."""

    assigned: jax.Array
    """uint32: the variables that have a value."""
    assignment: jax.Array
    """uint32: their values; 0 for the others."""
    depth: jax.Array
    """int32: decisions taken and not yet taken back; -1 once the formula is refuted."""
    alternatives: jax.Array
    """uint32 ``(n, 2)``: ``assigned`` and ``assignment`` after the other value of each decision."""
    solved: jax.Array
    """bool: every clause has a true literal."""


@privileged_player
class DPLL(NamedTuple):
    """Player that searches for a model before its first move.

    The search is the one of Davis, Logemann & Loveland (1962).

    The search is complete, so it finds a model of every formula that has one. In play it flips the
    first legal variable in which the assignment differs from the model, so it needs at most n flips
    (see :mod:`.sat`). It reads the formula, which is public, and nothing else.
    """

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> DPLL:
        """Return the player of any task of this kind."""
        return cls()

    def initial(self, params: Formula) -> jax.Array:
        """Begin with the model found, a uint32 assignment; all false if there is none."""
        variables = params.positive.shape[-1]
        clauses = used_clauses(params)
        start = Search(
            assigned=jnp.uint32(0),
            assignment=jnp.uint32(0),
            depth=jnp.int32(0),
            alternatives=jnp.zeros((variables, 2), jnp.uint32),
            solved=jnp.bool_(False),
        )

        def step(search: Search) -> Search:
            """Take back a failed decision, or else assign forced values, or else decide."""
            assigned, assignment, depth, alternatives, _ = search
            free = ~values(assigned, variables)
            true = jnp.where(values(assignment, variables), params.positive, params.negative)
            satisfied, _ = tally(jnp.where(free, 0, true))
            some_free, several_free = tally(jnp.where(free, params.positive | params.negative, 0))
            unsettled = clauses & ~satisfied
            failed = (unsettled & ~some_free != 0).any()
            solved = (unsettled == 0).all()

            unit = (unsettled & some_free & ~several_free)[:, None]
            to_true = as_bits(free & (size(unit & params.positive) > 0))
            to_false = as_bits(free & (size(unit & params.negative) > 0)) & ~to_true
            forced = to_true | to_false != 0

            # Decide on the free variable in most unsettled clauses, for the value that settles more
            # of them. Once solved, neither does: the assignment stays.
            ups, downs = (size(unsettled[:, None] & side) for side in params)
            variable = jnp.argmax(jnp.where(free, ups + downs, -1)).astype(jnp.uint32)
            bit = np.uint32(1) << variable
            up = ups[variable] > downs[variable]
            alternative = jnp.stack([assigned | bit, jnp.where(up, assignment, assignment | bit)])

            def choose(taken_back: jax.Array, implied: jax.Array, decided: jax.Array) -> jax.Array:
                return jnp.where(failed, taken_back, jnp.where(forced, implied, decided))

            return Search(
                assigned=choose(
                    alternatives[depth - 1, 0], assigned | to_true | to_false, assigned | bit
                ),
                assignment=choose(
                    alternatives[depth - 1, 1],
                    assignment | to_true,
                    jnp.where(up, assignment | bit, assignment),
                ),
                depth=choose(depth - 1, depth, depth + 1),
                alternatives=jnp.where(
                    failed | forced, alternatives, alternatives.at[depth].set(alternative)
                ),
                solved=solved,
            )

        end = lax.while_loop(lambda search: ~search.solved & (search.depth >= 0), step, start)
        return jnp.where(end.solved, end.assignment, 0)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the first legal variable that brings the assignment nearer to the model."""
        mask = jnp.asarray(view.action_mask)
        differs = values(view.state.assignment ^ memory, mask.shape[-1])
        return jnp.argmax(mask & differs).astype(jnp.int32), memory
