"""Say where things are after facts were revised in a dialogue.

K things lie in four rooms. First the room of each thing is told. Then at each step, with equal
probabilities of 1/6, a thing is put into a room, is brought to where another thing is, or swaps
rooms with another; with probability 1/2 the speaker asks where a thing is. The setting
``rewriting`` is the probability that the speaker does not ask. Rooms told earlier are worthless
once a thing was moved, and a sentence may move a thing without naming a room.

=============  =====================================================================================
action         0 to 3: a room
observation    ``Box(0, 1, (4 + 2 K + 4,))``: put, bring, swap, ask, one-hot; the thing, one-hot;
               the other thing, one-hot (zeros if there is none); the room, one-hot (zeros if none
               is named)
reward         1 for a right answer to a question. Answers at other steps count nothing.
termination    never: the time limit truncates. The return is the number of right answers in 128
               steps.
success        every question is answered right
difficulty     K, from 2 to 8
context        none
=============  =====================================================================================

**Optimum** 128 - K times the probability of a question: (128 - K) / 2. **Ceiling without memory** a
quarter of it: a question names its thing only. All sentences treat rooms alike, so every thing is
in each room with probability 1/4 at all times. A memory needs 2 K bits.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Int, IntArray
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.policy import View
from rlbench_suite.core.task_card import TaskCard

from .symbols import Params, SymbolTask, Tally, count_answer, empty_tally

THINGS = ("key", "book", "lamp", "cup", "coat", "map", "coin", "ring")
ROOMS = ("kitchen", "hall", "attic", "cellar")
PUT, BRING, SWAP, ASK = range(4)
SENTENCES = ("put", "bring", "swap", "ask")
REWRITING = {"0.5": (1, 1), "0.125": (1, 3), "0.875": (7, 3)}
"""By the rate of rewriting: numbers of so many bits that do not ask, and the bits."""


class State(NamedTuple):
    """Rooms of things, and the sentence said now; int32."""

    rooms: IntArray
    """Room of each thing ``(K,)``, before the sentence takes effect."""
    num_sentences: Int
    """Number of sentences said, this one among them."""
    sentence: Int
    """0 put, 1 bring, 2 swap, 3 ask."""
    subject: Int
    companion: Int
    """The other thing of bring and swap."""
    room: Int
    """The room of put."""
    tally: Tally


class RevisedFacts(SymbolTask[State]):
    """The task; see the module's head for its rules.

    Attributes:
        things: number of things.
    """

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype, answers=ROOMS)
        self.things = self.whole_number(
            difficulty, 4, len(THINGS), "the number of things", minimum=2
        )
        self._num_statements, self._bits = REWRITING[card.settings["rewriting"]]
        self.optimum = (card.horizon - self.things) * (1 - self._num_statements / 2**self._bits)
        self.memoryless_ceiling = self.optimum / len(ROOMS)
        self.observation_space = self.box(
            0.0, 1.0, (len(SENTENCES) + 2 * self.things + len(ROOMS),)
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Tell where the first thing is."""
        return self._sample_sentence(
            jnp.zeros(self.things, jnp.int32), jnp.int32(0), empty_tally(), key
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Count the answer, move the things, and say the next sentence."""
        tally = count_answer(
            state.tally, state.sentence == ASK, action == state.rooms[state.subject]
        )
        moved = after(state.rooms, state.sentence, state.subject, state.companion, state.room)
        return self._sample_sentence(moved, state.num_sentences, tally, key)

    def _sample_sentence(
        self, rooms: jax.Array, num_sentences: jax.Array, tally: Tally, key: jax.Array
    ) -> State:
        """Draw a sentence from one draw; the first ones introduce the things in order."""
        bits = self.bits(key, 2)
        new = num_sentences < self.things
        asks = bits[0] & np.uint32((1 << self._bits) - 1) >= self._num_statements
        high_bits = bits[0] >> self._bits
        # The remainders of 2**27 and 2**32 favour some by less than one part in ten million.
        kind = jnp.where(asks, ASK, ((high_bits >> 2) % np.uint32(3)).astype(jnp.int32))
        first = (bits[1] % np.uint32(self.things)).astype(jnp.int32)
        step = 1 + ((bits[1] // np.uint32(self.things)) % np.uint32(self.things - 1)).astype(
            jnp.int32
        )
        return State(
            rooms=rooms,
            num_sentences=num_sentences + 1,
            sentence=jnp.where(new, PUT, kind).astype(jnp.int32),
            subject=jnp.where(new, num_sentences, first).astype(jnp.int32),
            companion=((first + step) % self.things).astype(jnp.int32),
            room=(high_bits & 3).astype(jnp.int32),
            tally=tally,
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return sentence, thing, other thing and room, one-hot each: ``(4 + 2 K + 4,)``."""
        paired = (state.sentence == BRING) | (state.sentence == SWAP)
        return jnp.concatenate(
            [
                self.one_hot(state.sentence, len(SENTENCES)),
                self.one_hot(state.subject, self.things),
                self.one_hot(state.companion, self.things, paired),
                self.one_hot(state.room, len(ROOMS), state.sentence == PUT),
            ]
        )

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        things = THINGS[: self.things]
        meanings = (
            "a thing is put into a room",
            "a thing is brought to another",
            "two things swap rooms",
            "it is asked",
        )
        return singles(
            dict(zip(SENTENCES, (f"whether {meaning}" for meaning in meanings), strict=True))
            | {name: f"whether it is about the {name}" for name in things}
            | {f"other_{name}": f"whether the other thing is the {name}" for name in things}
            | {room: f"whether the room is the {room}" for room in ROOMS}
        )

    def tally(self, state: State) -> Tally:
        """Return the answers so far."""
        return state.tally

    def tiles(self, state: State) -> list[tuple[int | None, str]]:
        """Return the sentence in words, beside blank tiles."""
        return [(None, self.describe(state, Params()))]

    def describe(self, state: State, params: Params) -> str:
        """Say the sentence."""
        subject = THINGS[int(state.subject)]
        companion = THINGS[int(state.companion)]
        room = ROOMS[int(state.room)]
        return (
            f"The {subject} is in the {room} now.",
            f"The {subject} was brought to where the {companion} is.",
            f"The {subject} and the {companion} have swapped places.",
            f"Where is the {subject}?",
        )[int(state.sentence)]

    def rules(self) -> str:
        """Return the rules."""
        return (
            f"These things are in four rooms ({', '.join(ROOMS)}): "
            f"{', '.join(THINGS[: self.things])}. You are told "
            "one fact a turn; a later fact holds, not an earlier one. When you are asked where a "
            "thing is, answer its "
            "room. A right answer earns 1; answers at other turns count nothing."
        )


def after(
    rooms: jax.Array, sentence: jax.Array, subject: jax.Array, companion: jax.Array, room: jax.Array
) -> jax.Array:
    """Return the rooms of things once a sentence has taken effect, int32 ``(K,)``."""
    there, here = rooms[companion], rooms[subject]
    to = jnp.where(sentence == PUT, room, jnp.where(sentence == ASK, here, there))
    number = jnp.arange(rooms.size)
    moved = jnp.where(number == subject, to, rooms)
    return jnp.where((sentence == SWAP) & (number == companion), here, moved).astype(jnp.int32)


class Listener(eqx.Module):
    """The optimal player: it keeps track of the rooms."""

    things: int = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: RevisedFacts) -> Listener:
        """Make the player of a number of things."""
        return cls(task.things)

    def initial(self, params: Params) -> jax.Array:
        """Return rooms of things that nobody has told yet."""
        return jnp.zeros(self.things, jnp.int32)

    def act(self, memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Answer the room of the thing, and move the things as said."""
        ends = np.cumsum([len(SENTENCES), self.things, self.things])
        sentence, subject, companion, room = (
            jnp.argmax(one_hot) for one_hot in jnp.split(view.observation, ends)
        )
        return memory[subject], after(memory, sentence, subject, companion, room)
