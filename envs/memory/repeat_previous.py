"""Repeat the symbol of k steps ago.

After Morad et al. 2023 (POPGym, arXiv:2303.01859, ``RepeatPrevious``). At each step one of four
symbols is shown; the answer is the symbol that was shown k steps before it.

=============  =====================================================================================
action         one of the four symbols
observation    ``Box(0, 1, (4,))``: the symbol shown, one-hot
reward         1 for a right answer. The first k answers count nothing, because nothing was shown k
               steps before.
termination    never: the time limit truncates. The return is the number of right answers in 104
               steps.
success        every answer that counts is right
difficulty     k, from 1 to 64
context        none
=============  =====================================================================================

**Differences from POPGym.** Symbols are independent; POPGym deals them from decks of cards, so that
what was dealt tells something of what is left. Answers earn 1 or 0 instead of shares of 1 and -1,
and all tiers take 104 steps (two decks).

**Optimum** 104 - k. **Ceiling without memory** (104 - k) / 4: the symbol shown is independent of
the answer. A memory needs 2 k bits.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from rlbench_suite.core.arrays import Int, UInt32Array
from rlbench_suite.core.policy import View
from rlbench_suite.core.task_card import TaskCard

from .symbol_stream import SYMBOLS, SymbolStream
from .symbols import (
    Params,
    Tally,
    count_answer,
    empty,
    empty_tally,
    push,
    sample_symbol,
    symbol_at,
)

MAX_DISTANCE = 64
"""Largest distance that an answer may have, in steps."""


class State(NamedTuple):
    """Symbols of the last k + 1 steps, and the answers so far."""

    register: UInt32Array  # (1,) or (3,)
    """Symbols, the newest first; uint32, see :mod:`.symbols`."""
    num_shown: Int
    """Number of symbols shown, int32."""
    tally: Tally


class RepeatPrevious(SymbolStream[State]):
    """The task; see the module's head for its rules.

    Attributes:
        distance: steps between a symbol and the answer that repeats it.
    """

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype, answers=SYMBOLS)
        self.distance = self.whole_number(difficulty, 4, MAX_DISTANCE, "the distance in steps")
        self.optimum = float(card.horizon - self.distance)
        self.memoryless_ceiling = self.optimum / len(SYMBOLS)
        self.observation_space = self.box(0.0, 1.0, (len(SYMBOLS),))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Show the first symbol."""
        return State(
            push(empty(self.distance + 1), sample_symbol(key)), jnp.int32(1), empty_tally()
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Count the answer, and show the next symbol."""
        correct = action == symbol_at(state.register, self.distance)
        return State(
            register=push(state.register, sample_symbol(key)),
            num_shown=state.num_shown + 1,
            tally=count_answer(state.tally, state.num_shown > self.distance, correct),
        )

    def rules(self) -> str:
        """Return the rules."""
        return (
            f"At each turn one of {', '.join(SYMBOLS)} is shown. Answer with the one that was "
            f"shown {self.distance} turn(s) before it. A right answer earns 1. The first "
            f"{self.distance} answer(s) count nothing."
        )


class Repeater(eqx.Module):
    """The optimal player: it remembers the last symbols."""

    distance: int = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: RepeatPrevious) -> Repeater:
        """Make the player of a distance."""
        return cls(task.distance)

    def initial(self, params: Params) -> jax.Array:
        """Return an empty memory."""
        return empty(self.distance + 1)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Remember the symbol shown, and repeat the one of ``distance`` steps ago."""
        memory = push(memory, jnp.argmax(view.observation).astype(jnp.int32))
        return symbol_at(memory, self.distance), memory
