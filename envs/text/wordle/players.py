"""The reference player of Wordle: every guess has the greatest expected information (Shannon 1948).

A guess splits the n words still possible by the marks they would give. The player takes the guess
whose split has the greatest entropy; among equals it prefers a word that may be the hidden one,
then the first of the list. The sixth guess is always a word that may be the hidden one. The player
takes all words of the list as equally likely: it knows neither the hidden word nor its split.

Over the 2,131 words, each hidden once, it solves all, in 3.468 guesses on average: 1, 58, 1071, 945
and 56 words with 1, 2, 3, 4 and 5 guesses
(``tests/text/wordle/test_wordle.py::test_the_reference_solves_every_word``).

All its games together are one decision tree. A process computes it once (in NumPy, about a second);
playing is a look-up.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.policy import View, privileged_player

from .task import CODES, SOLVED, TRIES, Wordle, encode, feedback

LEAF = -1


@privileged_player
class MaximumEntropy(eqx.Module):
    """The player of greatest entropy.

    Off its tree (after guesses of another player) it takes the first word still possible.
    """

    task: Wordle = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Wordle) -> MaximumEntropy:
        """Make the player of the task's word list; the first call computes its tree."""
        decision_tree(task)
        return cls(task)

    def initial(self, params: Any) -> tuple[()]:
        """Return no memory: the board says it all."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the guess for a board; it sees the board only."""
        board = view.state
        guess, child = (jnp.asarray(table) for table in decision_tree(self.task))
        node = jnp.int32(0)
        for row in range(TRIES - 1):
            on_tree = (node != LEAF) & (guess[node] == board.guesses[row])
            step = jnp.where(on_tree, child[node, board.codes[row]], LEAF)
            node = jnp.where(row < board.tries, step, node)
        possible = self.task.consistent_words(board.knowledge)
        return jnp.where(node == LEAF, jnp.argmax(possible).astype(jnp.int32), guess[node]), memory


def feedback_matrix(letters: np.ndarray) -> np.ndarray:
    """Return the code of each guess (row) for each hidden word (column).

    The codes are uint8 ``(words, words)``.
    """
    return np.stack([encode(feedback(guess, letters)) for guess in letters]).astype(np.uint8)


@cache
def decision_tree(task: Wordle) -> tuple[np.ndarray, np.ndarray]:
    """Return the player's tree.

    No field of the player holds it, because ``jax.jit(player.act)`` needs a hash and arrays have
    none.

    Returns:
        The word guessed at each node, int32 ``(nodes,)``; node 0 is the empty board. The next node
        by marks, int32 ``(nodes, 243)``; -1 where there is none.
    """
    matrix = feedback_matrix(task.letters)
    nodes = [(np.arange(len(task.words)), 1)]
    guesses = []
    children = []
    for candidates, turn in nodes:  # grows while it is read
        guess = candidates[0] if turn == TRIES else best_guess(matrix, candidates)
        codes = matrix[guess, candidates]
        child = np.full(CODES, LEAF, np.int32)
        if turn < TRIES:
            for code in np.setdiff1d(codes, SOLVED):
                child[code] = len(nodes)
                nodes.append((candidates[codes == code], turn + 1))
        guesses.append(guess)
        children.append(child)
    return np.array(guesses, np.int32), np.stack(children)


def best_guess(matrix: np.ndarray, candidates: np.ndarray) -> int:
    """Return the guess whose split has the greatest entropy.

    Among equals it is a candidate, then the first.
    """
    among = information(matrix[np.ix_(candidates, candidates)])
    if (
        among.max() == information(np.arange(len(candidates))[None])[0]
    ):  # tells all candidates apart: unbeatable
        return int(candidates[among.argmax()])
    gain = information(matrix[:, candidates])
    return int(candidates[among.argmax()] if among.max() == gain.max() else gain.argmax())


def information(codes: np.ndarray) -> np.ndarray:
    """Measure how well each row of codes splits its n columns, int64 ``(rows,)``.

    The measure is -sum of c log2 c over the classes' sizes c.

    This is n times the entropy, minus n log2 n. It is in whole units of 2**-40, so that equal
    splits are exactly equal.
    """
    sizes = np.arange(1, codes.shape[1] + 1)
    cost = np.concatenate([[0], np.rint(sizes * np.log2(sizes) * 2.0**40)]).astype(np.int64)
    rows = np.arange(len(codes))[:, None]
    width = int(codes.max()) + 1
    counts = np.bincount((rows * width + codes).ravel(), minlength=len(codes) * width).reshape(
        len(codes), width
    )
    return -cost[counts].sum(1)


@privileged_player
class ConsistentGuess(eqx.Module):
    """A heuristic player: it guesses any word that can still be the hidden one."""

    task: Wordle = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Wordle) -> ConsistentGuess:
        """Make the player of the task's word list."""
        return cls(task)

    def initial(self, params: Any) -> tuple[()]:
        """Return no memory: the board says it all."""
        return ()

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return one of the possible words, each as likely as the others."""
        possible = self.task.consistent_words(view.state.knowledge)
        draws = jax.random.bits(key, possible.shape, jnp.uint32) | 1
        return jnp.argmax(jnp.where(possible, draws, 0)).astype(jnp.int32), memory
