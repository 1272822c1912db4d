"""The reference player of Diagnosis.

It is Bayes-optimal by dynamic programming, or looks two questions ahead.

Let J(s) be the probability of a set of answers s, J_d(s) its joint probability with disease d, c_f
the cost of finding f, and U(s) the value of the best play after s times J(s). It satisfies

    U(s) = max( max_d J_d(s),  max over open f of  U(s, f absent) + U(s, f present) - c_f J(s) ).

A set of answers is a number of F digits to base 3: open, absent, present. Up to six diseases (eight
findings, 6,561 sets) the player solves these equations exactly for the table it sees at the start
of an episode. Beyond, it replaces U after two more questions by the value of the best conclusion.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.policy import View, no_memory, privileged_player

from .task import COST, PERCENT, Diagnosis, Params, State

MAX_EXACT_FINDINGS = 8
"""Most findings for which the player is exact."""


def chances(task: Diagnosis, params: Params) -> jax.Array:
    """Return the probability of each finding given each disease, ``(D, F)``."""
    return jnp.asarray(PERCENT / 100, task.dtype)[task.kinds, params.levels]


def prior(task: Diagnosis, params: Params) -> jax.Array:
    """Return the prior of each disease, ``(D,)``."""
    return params.weights.astype(task.dtype) / params.weights.sum().astype(task.dtype)


def joint(task: Diagnosis, state: State, params: Params) -> jax.Array:
    """Return the joint probability of the answers with each disease, ``(D,)``."""
    shifts = np.arange(task.findings, dtype=np.uint32)
    is_known = (state.asked_findings >> shifts & 1) == 1
    present = (state.present >> shifts & 1) == 1
    table = chances(task, params)
    likelihoods = jnp.where(is_known, jnp.where(present, table, 1 - table), 1)
    return prior(task, params) * likelihoods.prod(1)


def values(task: Diagnosis, params: Params) -> jax.Array:
    """Return U of every set of answers, ``(3**F,)``; finding 0 is the most significant digit."""
    table = chances(task, params)
    count = task.findings
    factors = jnp.stack([jnp.ones_like(table), 1 - table, table], -1)  # (D, F, 3)
    joints = jax.vmap(lambda row: reduce(lambda a, b: (a[:, None] * b).reshape(-1), list(row)))(
        factors
    )
    joints = joints * prior(task, params)[:, None]
    total = joints.sum(0)
    cost = (COST[task.kinds] / 100).astype(task.dtype)

    def ask_once_more(_: int, value: jax.Array) -> jax.Array:
        for axis in range(count):
            shape = 3**axis, 3, 3 ** (count - 1 - axis)
            sides = value.reshape(shape)
            asking = sides[:, 1] + sides[:, 2] - cost[axis] * total.reshape(shape)[:, 0]
            value = sides.at[:, 0].set(jnp.maximum(sides[:, 0], asking)).reshape(-1)
        return value

    return jax.lax.fori_loop(0, count, ask_once_more, joints.max(0))


@privileged_player
class BayesOptimal(eqx.Module):
    """The player. It reads the table, the prior and the answers, never the patient."""

    task: Diagnosis = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Diagnosis) -> BayesOptimal:
        """Make the player of a task."""
        return cls(task)

    def initial(self, params: Params) -> Any:
        """Solve the table; nothing where it is too large."""
        return values(self.task, params) if self.task.findings <= MAX_EXACT_FINDINGS else ()

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Ask for the finding of the greatest value, or conclude if none is worth its cost."""
        task = self.task
        state = view.state
        params = view.params
        open_ = state.asked_findings >> np.arange(task.findings, dtype=np.uint32) & 1 == 0
        now = joint(task, state, params)
        cost = (COST[task.kinds] / 100).astype(task.dtype)
        gain = (
            self._exact_values(memory, state)
            if task.findings <= MAX_EXACT_FINDINGS
            else self._lookahead_values(now, open_, params, cost)
        )
        gain = jnp.where(open_, gain - cost * now.sum(), -1.0)
        conclude = task.findings + jnp.argmax(now)
        return jnp.where(gain.max() > now.max(), jnp.argmax(gain), conclude).astype(
            jnp.int32
        ), memory

    def _exact_values(self, memory: jax.Array, state: State) -> jax.Array:
        """Return U summed over both answers to each finding, ``(F,)``.

        The value means nothing for known findings.
        """
        count = self.task.findings
        shifts = np.arange(count, dtype=np.uint32)
        weights = (3 ** np.arange(count - 1, -1, -1)).astype(np.int32)
        is_known = (state.asked_findings >> shifts & 1) == 1
        present = (state.present >> shifts & 1) == 1
        here = jnp.where(is_known, jnp.where(present, 2, 1) * weights, 0).sum(dtype=jnp.int32)
        ahead = jnp.where(is_known, 0, weights)
        return memory[here + ahead] + memory[here + 2 * ahead]

    def _lookahead_values(
        self, now: jax.Array, open_: jax.Array, params: Params, cost: np.ndarray
    ) -> jax.Array:
        """Return the sums with another value in place of U, ``(F,)``.

        That value is the one of the best conclusion after at most one more question.
        """
        table = chances(self.task, params).T
        answers = jnp.stack([1 - table, table])  # (2, F, D)
        once = now * answers
        # (2, F, F): first answer, first, second finding.
        twice = (once[:, :, None, None, :] * answers).max(-1).sum(2)
        second = twice - cost * once.sum(-1)[..., None]
        again = open_ & ~np.eye(self.task.findings, dtype=bool)
        best = jnp.where(again, second, -1.0).max(-1)
        return jnp.maximum(once.max(-1), best).sum(0)


@privileged_player
class SymptomsFirst(eqx.Module):
    """A heuristic player, which asks for every symptom and names the likeliest disease.

    It orders no test.
    """

    task: Diagnosis = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Diagnosis) -> SymptomsFirst:
        """Make the player of a task."""
        return cls(task)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the first symptom that is not known, or the conclusion."""
        task = self.task
        state = view.state
        unknown = (state.asked_findings >> np.arange(task.findings, dtype=np.uint32) & 1 == 0) & (
            task.kinds == 0
        )
        conclusion = task.findings + jnp.argmax(task.evidence(state, view.params))
        return jnp.where(unknown.any(), jnp.argmax(unknown), conclusion).astype(jnp.int32), memory
