"""Count how often each symbol was dealt.

After Morad et al. 2023 (POPGym, arXiv:2303.01859, ``CountRecall``). At each step one card is dealt
from a shuffled deck of m symbols, 13 cards each, and a symbol is asked for. The answer is how many
cards of that symbol have been dealt, the one shown among them.

=============  =====================================================================================
action         0 to 13: the count
observation    ``Box(0, 1, (2 m,))``: the symbol dealt, one-hot; the symbol asked for, one-hot
reward         1 for a right answer
termination    when the deck is used up and the last question is answered, 13 m steps
success        every answer is right
difficulty     m, from 2 to 8
context        none
=============  =====================================================================================

**Differences from POPGym.** The answer 13 is allowed (there an action for the full count is
missing); questions are independent and not dealt; answers earn 1 or 0 instead of shares of 1 and
-1.

**Optimum** 13 m. **Ceiling without memory** (:func:`memoryless_ceiling`, exact): a policy sees only
whether the symbol dealt is the one asked for, and answers the count that is most frequent over all
steps. At step t the t cards before are a random part of the rest of the deck, so counts are
hypergeometric.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Int, IntArray
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.policy import View, no_memory
from rlbench_suite.core.task_card import TaskCard

from .symbols import COLOURS, Params, SymbolTask, Tally, count_answer, empty_tally

COPIES = 13
"""Cards of each symbol in the deck."""


class State(NamedTuple):
    """Cards dealt so far, and the question."""

    counts: IntArray
    """Cards dealt of each symbol, int32 ``(m,)``."""
    card: Int
    """Symbol dealt last, int32."""
    question: Int
    """Symbol asked for, int32."""
    tally: Tally


def memoryless_ceiling(symbols: int, of_each: int = COPIES) -> Fraction:
    """Return the best expected return of a policy without a memory, exactly.

    The policy sees only the present card and question.

    Let N be the number of cards. At step t = 0, 1, ... the t cards before are drawn from the N - 1
    others. If the card shown is the one asked for (probability 1/m), the count is 1 plus the number
    of its 12 other copies among the t; otherwise it is the number of the 13 copies of the symbol
    asked for among the t.

    Args:
        symbols: number of symbols m.
        of_each: cards of each.
    """
    if_same, if_different = (
        max(expected_correct(symbols, of_each, if_same)) for if_same in (True, False)
    )
    return (if_same + (symbols - 1) * if_different) / symbols


def expected_correct(symbols: int, of_each: int, asks_card: bool) -> list[Fraction]:
    """Return how often each count is right in an episode.

    If ``asks_card``, all questions are for the card shown; otherwise none is.
    """
    cards, copies = symbols * of_each, of_each - asks_card
    totals = [Fraction(0)] * (of_each + 1)
    for before in range(cards):
        ways = comb(cards - 1, before)
        for count in range(min(copies, before) + 1):
            combinations = comb(cards - 1 - copies, before - count)
            totals[count + asks_card] += Fraction(comb(copies, count) * combinations, ways)
    return totals


class CountRecall(SymbolTask[State]):
    """The task; see the module's head for its rules.

    Attributes:
        symbols: number of symbols.
    """

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        answers = tuple(map(str, range(COPIES + 1)))
        super().__init__(card, difficulty=difficulty, dtype=dtype, answers=answers)
        self.symbols = self.whole_number(
            difficulty, 2, len(COLOURS), "the number of symbols", minimum=2
        )
        self.optimum = float(self.symbols * COPIES)
        self.memoryless_ceiling = float(memoryless_ceiling(self.symbols))
        self.observation_space = self.box(0.0, 1.0, (2 * self.symbols,))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Deal the first card, and ask."""
        counts = jnp.zeros(self.symbols, jnp.int32)
        return self._deal(counts, empty_tally(), key)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Count the answer, deal the next card, and ask again; a used-up deck stays as it is."""
        tally = count_answer(state.tally, jnp.bool_(True), action == state.counts[state.question])
        return self._deal(state.counts, tally, key)

    def _deal(self, counts: jax.Array, tally: Tally, key: jax.Array) -> State:
        bits = self.bits(key, 2)
        remaining = COPIES - counts
        # The remainder of 2**32 favours some cards by less than one part in thirty million.
        rank = (bits[0] % jnp.maximum(remaining.sum(), 1).astype(jnp.uint32)).astype(jnp.int32)
        card = (rank >= jnp.cumsum(remaining)).sum().astype(jnp.int32).clip(0, self.symbols - 1)
        question = (bits[1] % np.uint32(self.symbols)).astype(jnp.int32)
        return State(
            counts + ((jnp.arange(self.symbols) == card) & (remaining > 0)), card, question, tally
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the symbol dealt and the symbol asked for, one-hot each: ``(2 m,)``."""
        one_hots = (self.one_hot(symbol, self.symbols) for symbol in (state.card, state.question))
        return jnp.concatenate([*one_hots])

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the last question is answered."""
        return state.tally.correct + state.tally.wrong == self.symbols * COPIES

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        names = COLOURS[: self.symbols]
        return singles(
            {f"{name}_dealt": f"whether {name} was dealt" for name in names}
            | {f"{name}_asked": f"whether {name} is asked for" for name in names}
        )

    def tally(self, state: State) -> Tally:
        """Return the answers so far."""
        return state.tally

    def tiles(self, state: State) -> list[tuple[int | None, str]]:
        """Return the card dealt and the symbol asked for."""
        return [(int(state.card), "dealt"), (int(state.question), "how many?")]

    def describe(self, state: State, params: Params) -> str:
        """Name the card dealt and the symbol asked for."""
        return (
            f"Dealt: {COLOURS[int(state.card)]}. How many {COLOURS[int(state.question)]} cards so "
            "far?"
        )

    def rules(self) -> str:
        """Return the rules."""
        return (
            f"A shuffled deck has {COPIES} cards of each of {', '.join(COLOURS[: self.symbols])}. "
            "At each turn one "
            "card is dealt, and you are asked how many cards of a symbol have been dealt so far, "
            "this card among them. "
            "A right answer earns 1."
        )

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say how much was right."""
        return f"the deck is used up, {info['right']} of {self.symbols * COPIES} answers right"


class Counter(eqx.Module):
    """The optimal player: it counts."""

    symbols: int = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: CountRecall) -> Counter:
        """Make the player of a number of symbols."""
        return cls(task.symbols)

    def initial(self, params: Params) -> jax.Array:
        """Return counts of zero."""
        return jnp.zeros(self.symbols, jnp.int32)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Count the card dealt, and answer the count of the symbol asked for."""
        memory = memory + view.observation[: self.symbols].astype(jnp.int32)
        return memory[jnp.argmax(view.observation[self.symbols :])].astype(jnp.int32), memory


class Guesser(eqx.Module):
    """The best player without a memory.

    It sees only whether the symbol asked for is the one just dealt.
    """

    if_same: int = eqx.field(static=True)
    if_different: int = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: CountRecall) -> Guesser:
        """Make the player that gives the counts that are right most often."""
        totals = (expected_correct(task.symbols, COPIES, asks_card) for asks_card in (True, False))
        return cls(*(each.index(max(each)) for each in totals))

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the count that is most often right."""
        dealt, question = jnp.split(jnp.asarray(view.observation), 2)
        return jnp.where((dealt == question).all(), self.if_same, self.if_different).astype(
            jnp.int32
        ), memory
