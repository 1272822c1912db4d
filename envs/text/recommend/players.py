"""The reference player of Recommend.

It is Bayes-optimal by dynamic programming, or looks two questions ahead.

Let J(s) be the probability of a set of answers s, M_a(s) the mean worth of attribute a after them
times J(s), x the items' attributes, and U(s) the value of the best play after s times J(s). It
satisfies

    U(s) = max(max over items i of sum_a x_ia M_a(s) / A,
               max over open a of sum over answers v of U(s, v) - c J(s)).

A set of answers is a number of A digits to base 4: open, liked, not minded, disliked. Up to six
attributes (4,096 sets) the player solves these equations exactly for the shop it sees at the start
of an episode. Beyond, it replaces U after two more questions by the value of the best
recommendation.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.policy import View, no_memory, privileged_player

from .task import COST, NONE, PERCENT, VALUE, Params, Recommend, State, members

MAX_EXACT_ATTRIBUTES = 6
"""Most attributes for which the player is exact."""


def chances(task: Recommend, params: Params) -> jax.Array:
    """Return the chance of each answer to each attribute given each type, ``(4, A, 3)``."""
    # (4, attitude, A), one of them 1.
    attitudes = members(params.attitudes, task.attributes).astype(task.dtype)
    return (attitudes[..., None] * (PERCENT / 100).astype(task.dtype)[:, None]).sum(1)


def prior(task: Recommend, params: Params) -> jax.Array:
    """Return the prior of each type, ``(4,)``."""
    return params.weights.astype(task.dtype) / params.weights.sum().astype(task.dtype)


def answers_of(task: Recommend, state: State) -> jax.Array:
    """Return the answer to each attribute, int32 ``(A,)``; -1 where it was not asked about."""
    flags = members(state.answers, task.attributes).astype(jnp.int32)
    return flags[1] + 2 * flags[2] - (flags.sum(0, dtype=jnp.int32) == 0)


def belief(task: Recommend, state: State, params: Params) -> tuple[jax.Array, jax.Array]:
    """Return the joint probability of the answers with each type, and its mean worth of attributes.

    The shapes are ``(4,)`` and ``(4, A)``.
    """
    table = chances(task, params)
    answers = answers_of(task, state)
    is_known = answers != NONE
    likelihood = jnp.take_along_axis(table, jnp.maximum(answers, 0)[None, :, None], 2)[..., 0]
    mean = jnp.where(
        is_known, jnp.asarray(VALUE)[answers].astype(task.dtype), table @ VALUE.astype(task.dtype)
    )
    return prior(task, params) * jnp.where(is_known, likelihood, 1).prod(1), mean


def values(task: Recommend, params: Params) -> jax.Array:
    """Return U of every set of answers, ``(4**A,)``; attribute 0 is the most significant digit."""
    table = chances(task, params)
    count = task.attributes
    value = VALUE.astype(task.dtype)
    mass = jnp.concatenate([jnp.ones_like(table[..., :1]), table], -1)  # (4, A, 4)
    worth = jnp.concatenate([(table @ value)[..., None], table * value], -1)

    def product(factors: list[jax.Array]) -> jax.Array:
        """Multiply out one factor for each digit, weighted with the prior.

        A factor is ``(4, 4)``, of types and digits. The result is ``(4**A,)`` for A factors.
        """
        joint = reduce(
            lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(a.shape[0], -1), factors
        )
        return prior(task, params) @ joint

    digits = [mass[:, a] for a in range(count)]
    total = product(digits)
    means = jnp.stack([product([*digits[:a], worth[:, a], *digits[a + 1 :]]) for a in range(count)])
    best = (members(params.items, count).astype(task.dtype) @ means).max(0) / count

    def ask_once_more(_: int, value: jax.Array) -> jax.Array:
        for axis in range(count):
            shape = 4**axis, 4, 4 ** (count - 1 - axis)
            sides = value.reshape(shape)
            asking = (
                sides[:, 1] + sides[:, 2] + sides[:, 3] - COST / 100 * total.reshape(shape)[:, 0]
            )
            value = sides.at[:, 0].set(jnp.maximum(sides[:, 0], asking)).reshape(-1)
        return value

    return jax.lax.fori_loop(0, count, ask_once_more, best)


@privileged_player
class Elicitor(eqx.Module):
    """The player. It reads items, types and answers, never the customer's tastes."""

    task: Recommend = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Recommend) -> Elicitor:
        """Make the player of a task."""
        return cls(task)

    def initial(self, params: Params) -> Any:
        """Solve the shop; nothing where it is too large."""
        return values(self.task, params) if self.task.attributes <= MAX_EXACT_ATTRIBUTES else ()

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Ask about the attribute of the greatest value.

        If no question is worth its cost, recommend.
        """
        task = self.task
        state = view.state
        params = view.params
        open_ = answers_of(task, state) == NONE
        weight, mean = belief(task, state, params)
        items = members(params.items, task.attributes).astype(task.dtype) / task.attributes
        now = items @ (weight @ mean)
        exact = task.attributes <= MAX_EXACT_ATTRIBUTES
        gain = (
            self._exact_values(memory, state)
            if exact
            else self._lookahead_values(weight, mean, items, open_, params)
        )
        gain = jnp.where(open_, gain - COST / 100 * weight.sum(), -jnp.inf)
        recommend = task.attributes + jnp.argmax(now)
        return jnp.where(gain.max() > now.max(), jnp.argmax(gain), recommend).astype(
            jnp.int32
        ), memory

    def _exact_values(self, memory: jax.Array, state: State) -> jax.Array:
        """Return U summed over the answers to each question, ``(A,)``.

        The value means nothing for questions that were asked.
        """
        count = self.task.attributes
        weights = (4 ** np.arange(count - 1, -1, -1)).astype(np.int32)
        answers = answers_of(self.task, state)
        here = ((answers + 1) * weights).sum(dtype=jnp.int32)
        ahead = jnp.where(answers == NONE, weights, 0)
        return memory[here + ahead] + memory[here + 2 * ahead] + memory[here + 3 * ahead]

    def _lookahead_values(
        self, weight: jax.Array, mean: jax.Array, items: jax.Array, open_: jax.Array, params: Params
    ) -> jax.Array:
        """Return the sums with another value in place of U, ``(A,)``.

        That value is the one of the best recommendation after at most one more question.
        """
        task = self.task
        table = chances(task, params)
        a = task.attributes
        value = VALUE.astype(task.dtype)
        itself = np.eye(a, dtype=task.dtype)
        once = weight[:, None, None] * table  # (4, a, v): first attribute and answer
        twice = once[..., None, None] * table[:, None, None]  # (4, a, v, b, w): second ones
        unasked = mean[:, None, None]
        mass = once.sum(0)
        # The mean worth of attribute c is the answer's where it was asked for.
        first = jnp.where(
            itself[:, None] == 1, (mass * value)[..., None], (once[..., None] * unasked).sum(0)
        )
        second = (twice[..., None] * mean[:, None, None, None, None]).sum(0)  # (a, v, b, w, c)
        joint = twice.sum(0)[..., None]
        second = jnp.where(
            itself[:, None, None, None] == 1, joint * value[:, None, None, None], second
        )
        second = jnp.where(itself[:, None] == 1, joint * value[:, None], second)
        best_first = (first @ items.T).max(-1)  # (a, v)
        best_second = (second @ items.T).max(-1).sum(-1) - COST / 100 * mass[..., None]  # (a, v, b)
        again = open_ & ~np.eye(a, dtype=bool)
        best_second = jnp.where(again[:, None], best_second, -jnp.inf).max(-1)
        return jnp.maximum(best_first, best_second).sum(1)


@privileged_player
class EveryQuestion(eqx.Module):
    """A heuristic player, which asks about every attribute, then recommends.

    It takes the item of the greatest known worth.
    """

    task: Recommend = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Recommend) -> EveryQuestion:
        """Make the player of a task."""
        return cls(task)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the first attribute that was not asked about, or the recommendation."""
        task = self.task
        state = view.state
        unknown = answers_of(task, state) == NONE
        weight, mean = belief(task, state, view.params)
        worth = members(view.params.items, task.attributes).astype(task.dtype) @ (weight @ mean)
        recommend = task.attributes + jnp.argmax(worth)
        return jnp.where(unknown.any(), jnp.argmax(unknown), recommend).astype(jnp.int32), memory
