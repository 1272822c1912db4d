"""Tell whether a symbol is the one of n steps ago.

The n-back task of psychology (Kirchner 1958, doi:10.1037/h0043688). At each step one of four
symbols is shown. With probability 1/2 it is the symbol of n steps before, otherwise one of the
three others; the answer says which.

=============  =====================================================================================
action         0 other, 1 same
observation    ``Box(0, 1, (4,))``: the symbol shown, one-hot
reward         1 for a right answer. The first n answers count nothing, because nothing was shown n
               steps before.
termination    never: the time limit truncates. The return is the number of right answers in 100
               steps.
success        every answer that counts is right
difficulty     n, from 1 to 32
context        none
=============  =====================================================================================

**Optimum** 100 - n. **Ceiling without memory** (100 - n) / 2: the first n symbols are uniform,
hence every later one is, whether it repeats one or not. A symbol therefore does not tell whether it
is a repetition.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

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

ANSWERS = ("other", "same")
MAX_DISTANCE = 32
"""Largest n, in steps."""


class State(NamedTuple):
    """Symbols of the last n + 1 steps, and the answers so far."""

    register: UInt32Array  # (1,)
    """Symbols, the newest first; uint32, see :mod:`.symbols`."""
    num_shown: Int
    """Number of symbols shown, int32."""
    tally: Tally


class NBack(SymbolStream[State]):
    """The task; see the module's head for its rules.

    Attributes:
        distance: n.
    """

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype, answers=ANSWERS)
        self.distance = self.whole_number(difficulty, 2, MAX_DISTANCE, "n, the distance in steps")
        self.optimum = float(card.horizon - self.distance)
        self.memoryless_ceiling = self.optimum / 2
        self.observation_space = self.box(0.0, 1.0, (len(SYMBOLS),))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Show the first symbol."""
        return State(
            push(empty(self.distance + 1), sample_symbol(key)), jnp.int32(1), empty_tally()
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Count the answer, and show the next symbol."""
        repeats = symbol_at(state.register, 0) == symbol_at(state.register, self.distance)
        tally = count_answer(state.tally, state.num_shown > self.distance, (action == 1) == repeats)
        bits = self.bits(key, 1)[0]
        # What is n steps before the next symbol is n - 1 steps before the present one.
        different = (
            symbol_at(state.register, self.distance - 1)
            + 1
            + ((bits >> 1) % np.uint32(3)).astype(jnp.int32)
        ) % 4
        repeated = jnp.where(bits & 1 == 1, symbol_at(state.register, self.distance - 1), different)
        symbol = jnp.where(
            state.num_shown < self.distance, (bits >> 30).astype(jnp.int32), repeated
        )
        return State(push(state.register, symbol), state.num_shown + 1, tally)

    def rules(self) -> str:
        """Return the rules."""
        return (
            f"At each turn one of {', '.join(SYMBOLS)} is shown. Answer 'same' if it is the one "
            "that was shown "
            f"{self.distance} turn(s) before, and 'other' if not. A right answer earns 1. The "
            f"first {self.distance} "
            "answer(s) count nothing."
        )


class Comparer(eqx.Module):
    """The optimal player: it remembers the last symbols."""

    distance: int = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: NBack) -> Comparer:
        """Make the player of a distance."""
        return cls(task.distance)

    def initial(self, params: Params) -> jax.Array:
        """Return an empty memory."""
        return empty(self.distance + 1)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Remember the symbol shown, and compare it with the one of n steps ago."""
        memory = push(memory, jnp.argmax(view.observation).astype(jnp.int32))
        return (symbol_at(memory, 0) == symbol_at(memory, self.distance)).astype(jnp.int32), memory
