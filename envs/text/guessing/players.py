"""The reference players of Twenty Questions, which are exactly optimal.

They use dynamic programming over sets of possible things.

All things are equally likely, every turn costs one, a wrong guess rules one thing out. Let F(S) be
the fewest turns to find the things of a set S of m things, summed over all of them. It satisfies

    F(S) = min( m (m + 1) / 2,  min over questions a of  m + F(S and a) + F(S without a) ):

either guess them one after another, for 1 + 2 + ... + m turns, or ask and go on in each half.

**Why no guess comes before a question.** Suppose it does, for thing o of S, m = |S|, followed by
the best play T on the m - 1 others: (1 for o) + (m - 1) + cost(T). By induction T asks before it
guesses. Let o take part in T instead: along the answers that are true of it, as the last guess at
their end, after d questions and r other guesses. That costs cost(T) + d + r + 1. Each of the d
questions separated at least one of the m - 1 others from the rest (in a best play no question is
idle), so d + r <= m - 1, and d + r + 1 <= m: it never costs more.

The limit of 20 turns is never near: the longest play on these tables takes 9
(``tests/text/guessing/test_twenty_questions.py``).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.policy import View, no_memory, privileged_player
from rlbench_suite.core.task import Split

from .knowledge import real_knowledge
from .twenty_questions import Params, State, TwentyQuestions, count, members


def first_possible(task: TwentyQuestions, state: State) -> jax.Array:
    """Return the guess of the first thing still possible."""
    return (task.properties + jnp.argmax(members(state.possible, task.things))).astype(jnp.int32)


@privileged_player
class AnyTable(eqx.Module):
    """Player that solves the table at the start of an episode, then looks its questions up.

    A set that questions can lead to is a row of answers, each open, no or yes: 3**A sets (A = 10:
    59,049). The player reads the table, the answers and the guesses, never the hidden thing.
    """

    task: TwentyQuestions = eqx.field(static=True)

    def initial(self, params: Params) -> jax.Array:
        """Compute F of every row of answers, int16 ``(3**A,)``.

        The answer for property 0 is the most significant digit of a row's number.
        """
        a = self.task.properties
        # (things, properties)
        has = params.table[:, 0] >> np.arange(self.task.things, dtype=np.uint32)[:, None] & 1
        patterns = (has << np.arange(a - 1, -1, -1, dtype=np.uint32)).sum(1, dtype=jnp.uint32)
        sizes = jnp.zeros(2**a, jnp.int16).at[patterns].add(1)
        for axis in range(a):  # an open answer fits no and yes
            sides = sizes.reshape(3**axis, 2, 2 ** (a - 1 - axis))
            sizes = jnp.concatenate([sides.sum(1, keepdims=True, dtype=jnp.int16), sides], 1)
        sizes = sizes.ravel()

        def ask_once_more(better: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            before, _ = better
            turns = before
            for axis in range(a):
                shape = 3**axis, 3, 3 ** (a - 1 - axis)
                answers = turns.reshape(shape)
                size = sizes.reshape(shape)[:, 0]
                asking = size + answers[:, 1] + answers[:, 2]
                turns = answers.at[:, 0].set(jnp.minimum(answers[:, 0], asking)).ravel()
            return turns, (turns != before).any()

        guessing = sizes * (sizes + 1) // 2
        return jax.lax.while_loop(
            lambda better: better[1], ask_once_more, (guessing, jnp.bool_(True))
        )[0]

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the question that leaves the fewest turns.

        If guessing is as good, return the first possible thing.
        """
        a = self.task.properties
        state = view.state
        shifts = np.arange(a, dtype=np.uint32)
        is_asked = state.asked_properties >> shifts & 1 == 1
        yes = state.yes >> shifts & 1 == 1
        weights = 3 ** np.arange(a - 1, -1, -1)
        here = jnp.where(is_asked, jnp.where(yes, 2, 1) * weights, 0).sum(dtype=jnp.int32)
        ahead = jnp.where(is_asked, 0, weights)  # an asked property cannot be asked again
        turns = memory[here + ahead].astype(jnp.int32) + memory[here + 2 * ahead]
        best = jnp.argmin(jnp.where(is_asked, np.iinfo(np.int32).max, turns)).astype(jnp.int32)
        fits = jnp.where(
            is_asked[:, None],
            jnp.where(yes[:, None], view.params.table, ~view.params.table),
            ~np.uint32(0),
        )
        size = count(jnp.bitwise_and.reduce(fits, axis=0) & (state.possible | state.guessed))
        out = memory[here] == size * (size + 1) // 2
        return jnp.where(out, first_possible(self.task, state), best), memory


@privileged_player
class OneTable(eqx.Module):
    """Player of precomputed decision trees, one a split.

    After questions off a tree it joins the tree again if it can.
    """

    task: TwentyQuestions = eqx.field(static=True)

    def initial(self, params: Params) -> tuple[()]:
        """Return no memory: the answers say it all."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Go down the tree along the known answers, and return its question.

        Return the first possible thing where the tree ends or only one thing is left.
        """
        ask, child = (jnp.asarray(table) for table in decision_trees(self.task))
        state = view.state

        def descend(_: int, node: jax.Array) -> jax.Array:
            bit = np.uint32(1) << jnp.maximum(ask[node], 0).astype(jnp.uint32)
            answered = (ask[node] >= 0) & (state.asked_properties & bit != 0)
            return jnp.where(answered, child[node, (state.yes & bit != 0).astype(jnp.int32)], node)

        root = (view.params.candidates == self.task.candidates(Split.TEST)).all().astype(jnp.int32)
        node = jax.lax.fori_loop(0, self.task.properties, descend, root)
        # If only one thing is left, no question of the tree adds information.
        guess = (ask[node] < 0) | (count(state.possible) == 1)
        return jnp.where(guess, first_possible(self.task, state), ask[node]), memory


@privileged_player
class OptimalQuestions(eqx.Module):
    """Player of the card.

    It is :class:`AnyTable` for fictional tables, and :class:`OneTable` for the real one.
    """

    player: AnyTable | OneTable

    @classmethod
    def for_task(cls, task: TwentyQuestions) -> OptimalQuestions:
        """Make the optimal player of the task's tables."""
        if not task.real:
            return cls(AnyTable(task))
        decision_trees(task)
        return cls(OneTable(task))

    def initial(self, params: Params) -> Any:
        """Return the memory of the tables' player."""
        return self.player.initial(params)

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Act as the tables' player does."""
        return self.player.act(memory, view, key)


@privileged_player
class QuestionsInOrder(eqx.Module):
    """A heuristic player, which asks the first question whose answer is open.

    It guesses once one thing is left.
    """

    task: TwentyQuestions = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: TwentyQuestions) -> QuestionsInOrder:
        """Make the player of a task."""
        return cls(task)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the first question that separates the things that are still possible.

        Some of them would answer it with yes, and some with no.
        """
        possible = view.state.possible
        having = count(view.params.table & possible)
        opened = (having > 0) & (having < count(possible))
        question = jnp.argmax(opened).astype(jnp.int32)
        return jnp.where(opened.any(), question, first_possible(self.task, view.state)), memory


# -- one table, on the host ------------------------------------------------------------------------


@cache
def min_turns(size: int) -> int:
    """Return F of ``size`` things if every conceivable question may be asked.

    No table needs fewer turns.
    """
    halves = (size + min_turns(half) + min_turns(size - half) for half in range(1, size // 2 + 1))
    return min(size * (size + 1) // 2, *halves) if size > 1 else 1


class Solver:
    """Solver of F for any set of one table, by branch and bound.

    Args:
        properties: the set of things that each property holds for, as bits of a Python integer.
    """

    def __init__(self, properties: tuple[int, ...]) -> None:
        self.properties = properties
        self._solutions: dict[int, tuple[int, int]] = {}

    def solve(self, things: int) -> tuple[int, int]:
        """Return F, and the first question of a best play; -1 to guess."""
        if things in self._solutions:
            return self._solutions[things]
        size = things.bit_count()
        best = size * (size + 1) // 2
        first = -1
        counts = [
            ((things & having).bit_count(), number) for number, having in enumerate(self.properties)
        ]
        bounds = sorted(
            (size + min_turns(k) + min_turns(size - k), number)
            for k, number in counts
            if 0 < k < size
        )
        for bound, number in bounds:
            if bound >= best:
                break
            having = things & self.properties[number]
            turns = size + self.solve(having)[0] + self.solve(things & ~having)[0]
            if turns < best:
                best = turns
                first = number
        self._solutions[things] = best, first
        return best, first


@cache
def decision_trees(task: TwentyQuestions) -> tuple[np.ndarray, np.ndarray]:
    """Return optimal play of a real table, for the things of each split.

    No field of the player holds it, because arrays have no hash: ``jax.jit(player.act)`` needs one.

    Returns:
        The property asked for at each node, int32 ``(nodes,)``; -1 where guessing begins. The next
        node by answer (no, yes), int32 ``(nodes, 2)``; nodes 0 and 1 are the roots for train and
        test.
    """
    _, holds = real_knowledge(task.file)
    solver = Solver(tuple(sum(1 << int(i) for i in np.flatnonzero(row)) for row in holds))
    nodes = [sum(1 << i for i in task.by_split[split]) for split in (Split.TRAIN, Split.TEST)]
    ask = []
    child = []
    for things in nodes:  # grows while it is read
        question = solver.solve(things)[1]
        ask.append(question)
        if question < 0:
            child.append((0, 0))
            continue
        child.append((len(nodes), len(nodes) + 1))
        having = things & solver.properties[question]
        nodes += [things & ~having, having]
    return np.array(ask, np.int32), np.array(child, np.int32)
