"""Store, overwrite, delete and look up values by keys.

A stream of instructions to a store of K keys and four values. At each step one is shown: with
probability 3/8 store a value under a key, 1/8 delete a key, 1/2 look a key up; key and value are
uniform. A look-up asks for the value that was stored last under its key, or "nothing" if the key
was deleted since, or never stored. The setting ``rewriting`` is the probability that an instruction
stores or deletes, 0.5 by default; three in four of these store.

=============  =====================================================================================
action         0 to 3: a value; 4: nothing
observation    ``Box(0, 1, (3 + K + 4,))``: store, delete, look up, one-hot; the key, one-hot; the
               value to store, one-hot (zeros otherwise)
reward         1 for a right answer to a look-up. Actions at other steps count nothing.
termination    never: the time limit truncates. The return is the number of right answers in 128
               steps.
success        every look-up is answered right
difficulty     K, from 1 to 8
context        none
=============  =====================================================================================

Values must be overwritten and forgotten, which memories that only hold on find hard (Shchendrigin
et al. 2026, arXiv:2601.15086).

**Optimum** 128 times the probability of a look-up: 64. **Ceiling without memory**
(:func:`memoryless_ceiling`, exact): a look-up shows its key only, so a policy answers always the
same. Whether a key holds nothing is a Markov chain of two states; if it holds something, all values
are equally likely.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Int, IntArray
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.policy import View
from rlbench_suite.core.task_card import TaskCard

from .symbols import COLOURS, Params, SymbolTask, Tally, count_answer, empty_tally

KEYS = ("A", "B", "C", "D", "E", "F", "G", "H")
VALUES = COLOURS[:4]
NOTHING = len(VALUES)
STORE, DELETE, LOOK_UP = range(3)
INSTRUCTIONS = ("store", "delete", "look up")
REWRITING = {"0.5": (3, 1, 3), "0.125": (3, 1, 5), "0.875": (21, 7, 5)}
"""By the rate of rewriting: numbers of so many bits that mean store and delete, and the bits."""


class State(NamedTuple):
    """The store, and the instruction shown."""

    values: IntArray
    """Value of each key, int32 ``(K,)``; 4 is nothing.

    The instruction shown is not carried out yet.
    """
    instruction: Int
    """0 store, 1 delete, 2 look up; int32."""
    key: Int
    """Key of the instruction, int32."""
    value: Int
    """Value to store, int32."""
    tally: Tally


def memoryless_ceiling(keys: int, steps: int, store: Fraction, delete: Fraction) -> Fraction:
    """Return the best expected return of a policy that sees only the present instruction, exactly.

    Args:
        keys: number of keys.
        steps: number of instructions.
        store: probability of an instruction to store.
        delete: probability of one to delete.
    """
    look_up = 1 - store - delete
    empty, nothing, something = Fraction(1), Fraction(0), Fraction(0)
    for _ in range(steps):
        nothing += empty * look_up
        something += (1 - empty) * look_up / len(VALUES)
        empty += (1 - empty) * delete / keys - empty * store / keys
    return max(nothing, something)


class KeyValue(SymbolTask[State]):
    """The task; see the module's head for its rules.

    Attributes:
        keys: number of keys.
    """

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype, answers=(*VALUES, "nothing"))
        self.keys = self.whole_number(difficulty, 4, len(KEYS), "the number of keys")
        self._store, self._delete, self._bits = REWRITING[card.settings["rewriting"]]
        store = Fraction(self._store, 1 << self._bits)
        delete = Fraction(self._delete, 1 << self._bits)
        self.optimum = float(card.horizon * (1 - store - delete))
        self.memoryless_ceiling = float(memoryless_ceiling(self.keys, card.horizon, store, delete))
        self.observation_space = self.box(0.0, 1.0, (len(INSTRUCTIONS) + self.keys + len(VALUES),))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Show the first instruction to an empty store."""
        return State(
            jnp.full(self.keys, NOTHING, jnp.int32), *self._instruction(key), empty_tally()
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Count the answer, carry out the instruction, and show the next one."""
        meant = jnp.arange(self.keys) == state.key
        new = jnp.where(state.instruction == STORE, state.value, NOTHING)
        values = jnp.where(meant & (state.instruction != LOOK_UP), new, state.values)
        correct = action == state.values[state.key]
        return State(
            values,
            *self._instruction(key),
            count_answer(state.tally, state.instruction == LOOK_UP, correct),
        )

    def _instruction(self, key: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Draw instruction, value and key from one random number.

        Its lowest three or five bits give the instruction, the next two the value, the rest the
        key.
        """
        bits = self.bits(key, 1)[0]
        number, high_bits = bits & np.uint32((1 << self._bits) - 1), bits >> self._bits
        rewrites = jnp.where(number < self._store, STORE, DELETE)
        instruction = jnp.where(number < self._store + self._delete, rewrites, LOOK_UP).astype(
            jnp.int32
        )
        # The remainder of 2**25 favours some keys by less than one part in four million.
        return (
            instruction,
            ((high_bits >> 2) % np.uint32(self.keys)).astype(jnp.int32),
            (high_bits & 3).astype(jnp.int32),
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return instruction, key, and the value to store, one-hot each: ``(3 + K + 4,)``."""
        return jnp.concatenate(
            [
                self.one_hot(state.instruction, len(INSTRUCTIONS)),
                self.one_hot(state.key, self.keys),
                self.one_hot(state.value, len(VALUES), state.instruction == STORE),
            ]
        )

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return singles(
            {
                name.replace(" ", "_"): f"whether the instruction is to {name}"
                for name in INSTRUCTIONS
            }
            | {f"key_{name}": f"whether the key is {name}" for name in KEYS[: self.keys]}
            | {name: f"whether the value to store is {name}" for name in VALUES}
        )

    def tally(self, state: State) -> Tally:
        """Return the answers so far."""
        return state.tally

    def tiles(self, state: State) -> list[tuple[int | None, str]]:
        """Return the instruction, with the value to store."""
        caption = f"{INSTRUCTIONS[int(state.instruction)]} {KEYS[int(state.key)]}"
        return [(int(state.value) if int(state.instruction) == STORE else None, caption)]

    def describe(self, state: State, params: Params) -> str:
        """Say the instruction."""
        instruction, key = int(state.instruction), KEYS[int(state.key)]
        if instruction == STORE:
            return f"Store {VALUES[int(state.value)]} under {key}."
        return (
            f"Delete {key}." if instruction == DELETE else f"Look up {key}: what is stored there?"
        )

    def rules(self) -> str:
        """Return the rules."""
        return (
            f"Instructions to a store with the keys {', '.join(KEYS[: self.keys])} come one a "
            "turn; it is empty at "
            "first. When a key is looked up, answer the value that was stored there last, or "
            "'nothing' if it was "
            "deleted since or never stored. A right answer to a look-up earns 1; answers at other "
            "turns count nothing."
        )


class Store(eqx.Module):
    """The optimal player: it keeps the store."""

    keys: int = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: KeyValue) -> Store:
        """Make the player of a number of keys."""
        return cls(task.keys)

    def initial(self, params: Params) -> jax.Array:
        """Return an empty store."""
        return jnp.full(self.keys, NOTHING, jnp.int32)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Carry out the instruction, and answer what the key holds."""
        instruction, keys, value = jnp.split(
            view.observation, (len(INSTRUCTIONS), len(INSTRUCTIONS) + self.keys)
        )
        new = jnp.where(instruction[STORE] > 0, jnp.argmax(value), NOTHING).astype(jnp.int32)
        answer = memory[jnp.argmax(keys)]
        return answer, jnp.where((keys > 0) & (instruction[LOOK_UP] == 0), new, memory)
