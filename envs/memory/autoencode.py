"""Watch a sequence of symbols, then recite it backwards.

After Morad et al. 2023 (POPGym, arXiv:2303.01859, ``Autoencode``). First n of four symbols are
shown one by one. Then nothing is shown, and the answers are the symbols from the last to the first.

=============  =====================================================================================
action         one of the four symbols; it counts while reciting only
observation    ``Box(0, 1, (5,))``: the symbol shown, one-hot (zeros while reciting); 1 while
               reciting
reward         1 for a right answer
termination    after the last answer, 2 n steps
success        every answer is right
difficulty     n, from 1 to 52
context        none
=============  =====================================================================================

**Differences from POPGym.** Symbols are independent and not dealt from decks; n is free, where
POPGym has 52, 104 and 156; answers earn 1 or 0 instead of shares of 1 and -1.

**Optimum** n. **Ceiling without memory** n / 4, since every observation while reciting is the same.
A memory needs 2 n bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from rlbench_suite.core.arrays import Int, UInt32Array
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.policy import View
from rlbench_suite.core.task_card import TaskCard

from .symbols import (
    COLOURS,
    Params,
    SymbolTask,
    Tally,
    count_answer,
    empty,
    empty_tally,
    pop,
    push,
    sample_symbol,
    symbol_at,
)

SYMBOLS = COLOURS[:4]
MAX_LENGTH = 52
"""Largest number of symbols in a sequence."""


class State(NamedTuple):
    """Symbols that are still to be recited, and where the episode stands."""

    register: UInt32Array  # (1,) or (4,)
    """Symbols, the newest first; uint32, see :mod:`.symbols`."""
    step: Int
    """Steps so far, int32: symbols are shown at 0 to n - 1 and recited at n to 2 n - 1."""
    tally: Tally


class Autoencode(SymbolTask[State]):
    """The task; see the module's head for its rules.

    Attributes:
        length: number of symbols in a sequence.
    """

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype, answers=SYMBOLS)
        self.length = self.whole_number(
            difficulty, 8, MAX_LENGTH, "the number of symbols in a sequence"
        )
        self.optimum = float(self.length)
        self.memoryless_ceiling = self.length / len(SYMBOLS)
        self.observation_space = self.box(0.0, 1.0, (len(SYMBOLS) + 1,))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Show the first symbol."""
        return State(push(empty(self.length), sample_symbol(key)), jnp.int32(0), empty_tally())

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Show the next symbol, or count the answer and go on to the symbol before."""
        reciting, step = state.step >= self.length, state.step + 1
        memorized = jnp.where(
            step < self.length, push(state.register, sample_symbol(key)), state.register
        )
        return State(
            register=jnp.where(reciting, pop(state.register), memorized),
            step=step,
            tally=count_answer(state.tally, reciting, action == symbol_at(state.register, 0)),
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the symbol shown, one-hot, and whether the sequence is to be recited: ``(5,)``."""
        reciting = state.step >= self.length
        symbol = self.one_hot(symbol_at(state.register, 0), len(SYMBOLS), ~reciting)
        return jnp.concatenate([symbol, self.stack(reciting)])

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the whole sequence is recited."""
        return state.step == 2 * self.length

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return singles(
            {name: f"whether {name} is shown" for name in SYMBOLS}
            | {"reciting": "whether the answers count"}
        )

    def tally(self, state: State) -> Tally:
        """Return the answers so far."""
        return state.tally

    def tiles(self, state: State) -> list[tuple[int | None, str]]:
        """Return the symbol shown, or a blank tile while reciting."""
        return [
            (None, "recite")
            if int(state.step) >= self.length
            else (int(symbol_at(state.register, 0)), "watch")
        ]

    def describe(self, state: State, params: Params) -> str:
        """Name the symbol shown, or ask for an answer."""
        if int(state.step) >= self.length:
            return "Recite."
        return f"Watch: {SYMBOLS[int(symbol_at(state.register, 0))]}"

    def rules(self) -> str:
        """Return the rules."""
        return (
            f"First {self.length} symbol(s) are shown, one of {', '.join(SYMBOLS)}; an answer then "
            "counts nothing. "
            "Then recite them backwards, one a turn, the last one first. A right answer earns 1."
        )

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say how much was right."""
        return f"the sequence is recited, {info['right']} of {self.length} right"


class Reciter(eqx.Module):
    """The optimal player: it remembers the sequence."""

    length: int = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Autoencode) -> Reciter:
        """Make the player of a length."""
        return cls(task.length)

    def initial(self, params: Params) -> jax.Array:
        """Return an empty memory."""
        return empty(self.length)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Remember the symbol shown; while reciting, give the newest and forget it."""
        symbol = jnp.argmax(view.observation[: len(SYMBOLS)]).astype(jnp.int32)
        reciting = view.observation[len(SYMBOLS)] > 0
        answer = symbol_at(memory, 0)
        return answer, jnp.where(reciting, pop(memory), push(memory, symbol))
