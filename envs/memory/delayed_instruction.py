"""Carry out an instruction long after it was given, among others that are meant for somebody else.

A delayed-response task (Hunter 1913) with distractors. An instruction names one of four colours.
For a number of steps then follow nothing, or instructions for somebody else, each with probability
1/2 (the setting ``distractors`` is that of the latter). At the word "go" the colour of the last own
instruction is to be answered, and the next instruction follows.

=============  =====================================================================================
action         0 wait; 1 to 4: a colour. It counts at the word "go" only.
observation    ``Box(0, 1, (7,))``: an instruction for you; one for somebody else; go; the colour,
               one-hot
reward         1 for the right colour at "go"
termination    never: the time limit truncates. The return is the number of right answers in 200
               steps.
success        every instruction was carried out right
difficulty     L: the steps between an instruction and its "go" are uniform on 1..L, from 1 to 100
context        none
=============  =====================================================================================

**Optimum** (:func:`expected_calls`, exact): the expected number of times that "go" is said.
**Ceiling without memory**: a quarter of that, since "go" looks always the same. A memory needs two
bits, and must not take in what is meant for others.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Int
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.policy import View
from rlbench_suite.core.task_card import TaskCard

from .symbols import COLOURS, Params, SymbolTask, Tally, count_answer, empty_tally

COLOUR_NAMES = COLOURS[:4]
MAX_DELAY = 100
"""Longest delay that a difficulty may have, in steps."""
NOBODY, YOU, SOMEBODY, GO = range(4)


class State(NamedTuple):
    """The own instruction, and what is said now; int32."""

    instruction: Int
    """Colour of the last own instruction."""
    message: Int
    """0 nothing, 1 an instruction for you, 2 one for somebody else, 3 go."""
    colour: Int
    """Colour that is said."""
    remaining: Int
    """Steps until "go"."""
    tally: Tally


def expected_calls(longest: int, steps: int) -> Fraction:
    """Return the mean number of times that "go" is said in ``steps`` steps, exactly.

    The renewal equation gives it.

    A cycle of a delay d has d + 2 steps: the instruction, d steps, and "go" at the last.
    """
    calls = [Fraction(0)]
    for step in range(1, steps + 1):
        cycles = [
            1 + calls[step - delay - 2] for delay in range(1, longest + 1) if delay + 2 <= step
        ]
        calls.append(sum(cycles, Fraction(0)) / longest)
    return calls[steps]


class DelayedInstruction(SymbolTask[State]):
    """The task; see the module's head for its rules.

    Attributes:
        longest: the longest delay in steps.
        distractors: probability of an instruction for somebody else: 0, 0.5 or 1.
    """

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype, answers=("wait", *COLOUR_NAMES))
        self.longest = self.whole_number(difficulty, 10, MAX_DELAY, "the longest delay in steps")
        self.distractors = float(card.settings["distractors"])
        calls = expected_calls(self.longest, card.horizon)
        self.optimum, self.memoryless_ceiling = float(calls), float(calls / len(COLOUR_NAMES))
        self.observation_space = self.box(0.0, 1.0, (3 + len(COLOUR_NAMES),))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Give the first instruction."""
        colour, delay, _ = self._draws(key)
        return State(colour, jnp.int32(YOU), colour, delay + 1, empty_tally())

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Count the answer to "go"; say the next word."""
        colour, delay, heard = self._draws(key)
        goes = state.message == GO
        remaining = jnp.where(goes, delay + 1, state.remaining - 1)
        message = jnp.where(
            goes, YOU, jnp.where(remaining == 0, GO, jnp.where(heard, SOMEBODY, NOBODY))
        ).astype(jnp.int32)
        instruction = jnp.where(goes, colour, state.instruction)
        return State(
            instruction,
            message,
            colour,
            remaining,
            count_answer(state.tally, goes, action == state.instruction + 1),
        )

    def _draws(self, key: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Draw a colour, a delay, and whether somebody else is spoken to, from one draw."""
        bits = self.bits(key, 1)[0]
        # The remainder of 2**29 favours some delays by less than one part in five million.
        delay = 1 + ((bits >> 3) % np.uint32(self.longest)).astype(jnp.int32)
        heard = (
            (bits >> 2) & 1 == 1 if self.distractors == 0.5 else jnp.bool_(self.distractors == 1)
        )
        return (bits & 3).astype(jnp.int32), delay, heard

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return who is spoken to, "go", and the colour, one-hot: ``(7,)``."""
        spoken = (state.message == YOU) | (state.message == SOMEBODY)
        heads = self.stack(state.message == YOU, state.message == SOMEBODY, state.message == GO)
        return jnp.concatenate([heads, self.one_hot(state.colour, len(COLOUR_NAMES), spoken)])

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return singles(
            {
                "for_you": "whether an instruction is given to you",
                "for_other": "whether one is given to somebody else",
                "go": "whether the last own instruction is to be carried out now",
            }
            | {name: f"whether the instruction says {name}" for name in COLOUR_NAMES}
        )

    def tally(self, state: State) -> Tally:
        """Return the answers so far."""
        return state.tally

    def tiles(self, state: State) -> list[tuple[int | None, str]]:
        """Return what is said."""
        message = int(state.message)
        caption = ("-", "for you", "for somebody else", "go")[message]
        return [(int(state.colour) if message in (YOU, SOMEBODY) else None, caption)]

    def describe(self, state: State, params: Params) -> str:
        """Say what is said."""
        colour = COLOUR_NAMES[int(state.colour)]
        return ("Nothing is said.", f"To you: {colour}.", f"To somebody else: {colour}.", "Go!")[
            int(state.message)
        ]

    def rules(self) -> str:
        """Return the rules."""
        return (
            f"You are given a colour, one of {', '.join(COLOUR_NAMES)}. 1 to {self.longest} turns "
            "later 'Go!' is said: "
            "answer the colour that was last given to you, not one given to somebody else. It "
            "earns 1 if it is right. "
            "Then you are given the next colour. Answers at other turns count nothing."
        )


class Obedient(eqx.Module):
    """The optimal player: it remembers the last own instruction."""

    @classmethod
    def for_task(cls, task: DelayedInstruction) -> Obedient:
        """Make the player; it is the same for every delay."""
        return cls()

    def initial(self, params: Params) -> jax.Array:
        """Return no instruction: the action 0."""
        return jnp.int32(0)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Remember an own instruction; answer it at "go", else wait."""
        for_you, _, go = view.observation[:3]
        memory = jnp.where(for_you > 0, 1 + jnp.argmax(view.observation[3:]), memory).astype(
            jnp.int32
        )
        return jnp.where(go > 0, memory, 0), memory
