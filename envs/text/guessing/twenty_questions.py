"""Twenty Questions: find a hidden thing by questions that are answered yes or no.

The parlour game, as LMRL-Gym poses it to language models (Abdulhai et al. 2023, arXiv:2311.18232).
There a language model answers, and contradicts itself. Here an answer is one bit of a table, for a
thing that is drawn once, at reset. So the same question always has the same answer, and no two
answers contradict each other.

====================  ==============================================================================
difficulty            table
====================  ==============================================================================
``medium`` 32 (8-32)  fictional: that many things with invented names, two properties for each
                      doubling of things (32: 10 properties). Every episode draws which things have
                      which. Nothing can be known beforehand; the observation and the text view show
                      the whole table
``easy`` 16           the same with 16 things and 8 properties
``real`` 64           64 animals, foods, vehicles, ... and 24 properties (``knowledge.txt``). The
                      hidden thing is one of those of the split, which are listed. The text view
                      does not show the table: a text player has to know the things
====================  ==============================================================================

=============  =====================================================================================
action         ``Discrete(A + N)``: ask for property 0..A-1, or guess thing 0..N-1. Masked: a
               question asked before, a thing guessed before, and a thing of the other split. A
               guess that the answers rule out is wrong, and costs a turn as any other: the mask
               does not draw conclusions for the player
observation    ``(2 A + N + 1 [+ A N],)``: the answer to each question (1 yes, -1 no, 0 not asked);
               the fraction of the things still possible that has each property; whether each thing
               is still possible; the fraction of turns left; the table, property by property
               (fictional only)
reward         1 - (k - 1) / 20 for the right guess in turn k; 0 for everything else
termination    the thing is guessed, or 20 turns (questions and wrong guesses) are used
success        the thing is guessed within log2 N (rounded up) + 2 turns, 7 of 32 things: the
               questions that separate N things, the guess, and one turn to spare. Real: N is the
               larger number of things of a split. In 20 turns random play too finds every second
               thing
context        the table and the thing. Fictional: the number of ones in the table is even for
               train, odd for test, however things and properties are renamed. Real: the thing is
               one of those whose SHA-256 is even on the test split, one of the others on the train
               split. Only those of the split are possible from the start, so that nobody gains by
               knowing the split
=============  =====================================================================================

**Fictional tables.** Things differ in log2 N + 1 properties: their patterns there are 0, 1, 2, ...
under a random bijection, so no two are alike and each of these holds for about half of the things.
The other log2 N - 1 properties are rare (one thing in eight), worth little as questions. Which is
which is shuffled, and can be seen.

**Optimum.** Every turn costs the same, so the best play takes the fewest turns on average. It asks
all its questions before all its guesses (``players.py`` proves this), so it can be computed
exactly. No table can be played in fewer than (k + 1/2) turns, on average, with N = 2**k things:
0.775 for 32.
"""

from __future__ import annotations

import hashlib
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Flag, Int, IntArray, UInt32, UInt32Array
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Split, Task
from rlbench_suite.core.task_card import TaskCard

from .knowledge import (
    THINGS,
    Fiction,
    Knowledge,
    fictional_knowledge,
    real_knowledge,
    spell_actions,
    understand,
)

TURNS = 20
WORD = 32
ROUNDS = 6
MIN_THINGS = 8
"""Least things of a fictional table."""
MAX_THINGS = 32
"""Most things of a fictional table."""
YES = (86, 160, 90)
NO = (200, 90, 80)
OPEN = (90, 110, 150)
PAPER = (250, 250, 247)


class Params(NamedTuple):
    """The table and the hidden thing."""

    table: UInt32Array
    """Set of things that have each property, uint32 ``(properties, words)``.

    Thing i is bit i % 32 of word i // 32.
    """
    hidden: Int
    """Number of the hidden thing, int32."""
    names: UInt32
    """Seed of a fictional table's names, uint32."""
    candidates: UInt32Array
    """Set of things that may be hidden, uint32 ``(words,)``."""


class State(NamedTuple):
    """Actions so far, and what follows from them."""

    asked_properties: UInt32
    """Properties that were asked about, one bit each, uint32."""
    yes: UInt32
    """Those of them that the hidden thing has, uint32."""
    guessed: UInt32Array
    """Things guessed, a bit each, uint32 ``(words,)``."""
    possible: UInt32Array
    """Things that fit every answer and were not guessed wrongly, uint32 ``(words,)``; never empty.
    """
    turns: Int
    """Questions and guesses so far, int32."""
    guessed_right: Flag
    """True if the last guess was right, bool."""
    actions: IntArray
    """The actions in order, int32 ``(20,)``; -1 where none yet."""


def count(words: jax.Array) -> jax.Array:
    """Count the things in a set, int32, from its words on the last axis."""
    return jax.lax.population_count(words).sum(-1, dtype=jnp.int32)


def members(words: Any, size: int) -> Any:
    """Unpack a set into bools: ``(..., words)`` to ``(..., size)``, NumPy or JAX."""
    flags = words[..., None] >> np.arange(WORD, dtype=np.uint32) & 1 == 1
    return flags.reshape(*words.shape[:-1], -1)[..., :size]


def set_of(index: jax.Array, words: int) -> jax.Array:
    """Return the set of one thing, uint32 ``(words,)``."""
    here = np.arange(words) == index // WORD
    return jnp.where(here, np.uint32(1) << (index % WORD).astype(jnp.uint32), 0)


def ranks(draws: jax.Array) -> jax.Array:
    """Return a random permutation, int32 ``(n,)``: the rank of each of n random words.

    Ranks come from comparing all pairs: on so few words this is far faster than sorting. Their last
    bits make all words different.
    """
    number = np.arange(len(draws), dtype=np.uint32)
    distinct = draws & ~np.uint32(2 ** (len(draws) - 1).bit_length() - 1) | number
    return (distinct[:, None] > distinct).sum(1, dtype=jnp.int32)


def scramble(draws: jax.Array, width: int, size: int) -> jax.Array:
    """Return ``size`` different numbers of ``width`` bits, uint32.

    They are 0, 1, 2, ... under a random bijection with a round for each draw.

    Every operation of a round (multiplying by an odd number, adding, folding the upper half onto
    the lower) can be undone.
    """
    number = jnp.arange(size, dtype=jnp.uint32)
    for draw in draws:
        number = (number * (draw | 1) + (draw >> 16)) & np.uint32(2**width - 1)
        number ^= number >> np.uint32((width + 1) // 2)
    return number


def as_words(holds: np.ndarray) -> np.ndarray:
    """Pack a table of bools ``(properties, things)`` into sets, uint32 ``(properties, words)``."""
    padded = np.zeros((holds.shape[0], -(-holds.shape[1] // WORD) * WORD), np.uint64)
    padded[:, : holds.shape[1]] = holds
    shifted = padded.reshape(holds.shape[0], -1, WORD) << np.arange(WORD, dtype=np.uint64)
    return shifted.sum(-1).astype(np.uint32)


def split_of(name: str) -> Split:
    """Return the split that may hide a real thing."""
    return (
        Split.TEST if int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2 == 0 else Split.TRAIN
    )


@lru_cache(maxsize=64)
def write_table(knowledge: Knowledge, table: bytes) -> str:
    """Return a line for each thing, with all that is true of it.

    ``table`` has the bytes of bools ``(properties, things)``.
    """
    holds = np.frombuffer(table, bool).reshape(-1, len(knowledge.things))
    lines = []
    for name, column in zip(knowledge.things, holds.T.tolist(), strict=True):
        true = [
            statement
            for statement, holds in zip(knowledge.properties, column, strict=True)
            if holds
        ]
        lines.append(f"- {name}: {'; '.join(true) or 'nothing of all this'}")
    return "\n".join(lines)


class TwentyQuestions(Task[Params, State]):
    """The task; see the module's docstring.

    Attributes:
        game: the game's name.
        noun: a thing, in one word, and many of them.
        file: the real table, see :func:`.knowledge.real_knowledge`.
        real_things: number of its things.
        fiction: the words of fictional tables.
        examples: questions and guesses, to show a text player how to ask.
        real: whether the table is the real one; else it is fictional.
        things: number of things, N.
        properties: number of properties, A.
        few: turns within which the thing is to be guessed for ``success``.
    """

    measures: ClassVar[dict[str, str]] = {
        "turns": "questions and guesses",
        "possible": "things still possible",
    }
    counts_turns = True
    picture_shape = (460, 400, 3)
    game: ClassVar[str] = "Twenty questions"
    noun: ClassVar[tuple[str, str]] = ("thing", "things")
    file: ClassVar[str] = "knowledge.txt"
    real_things: ClassVar[int] = 64
    fiction: ClassVar[Fiction] = THINGS
    examples: ClassVar[tuple[str, str]] = (
        "'Can it fly?', 'Does it have ...?', 'Is it ...?'",
        "'Is it a ...?', 'I guess ...'",
    )

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        number = MAX_THINGS if difficulty is None else difficulty
        if number != self.real_things and not (
            MIN_THINGS <= number <= MAX_THINGS and number % 1 == 0
        ):
            raise ValueError(
                f"A difficulty of {card.id} is {MIN_THINGS} to {MAX_THINGS}, the number of "
                f"fictional {self.noun[1]}, or {self.real_things} for the real ones; got "
                f"{difficulty!r}."
            )
        self.real = number == self.real_things
        self.things = int(number)
        self._telling = (self.things - 1).bit_length() + 1
        self._rare = self._telling - 2
        self.properties = (
            len(real_knowledge(self.file)[0].properties)
            if self.real
            else self._telling + self._rare
        )
        self.few = (max(map(len, self.by_split.values())) - 1).bit_length() + 2
        self.words = -(-self.things // WORD)
        a, n = self.properties, self.things
        low = np.concatenate([np.full(a, -1.0), np.zeros(a + n + 1 + (0 if self.real else a * n))])
        self.observation_space = self.box(low, 1.0)
        self.action_space = spaces.Discrete(a + n)
        self.reward_space = self.box(0.0, 1.0, ())

    @cached_property
    def _real_table(self) -> np.ndarray:
        return as_words(real_knowledge(self.file)[1])

    @cached_property
    def by_split(self) -> dict[Split, list[int]]:
        """Numbers of the things that each split may hide."""
        if not self.real:
            return {split: list(range(self.things)) for split in Split}
        splits = [split_of(name) for name in real_knowledge(self.file)[0].things]
        return {
            split: [i for i, thing_split in enumerate(splits) if thing_split == split]
            for split in Split
        }

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw a table of the split and a thing, each thing equally likely.

        With the real table, the thing is one of the split.
        """
        if self.real:
            train = self.by_split[Split.TRAIN]
            test = self.by_split[Split.TEST]
            is_test = split == Split.TEST
            size = jnp.where(is_test, len(test), len(train)).astype(jnp.uint32)
            index = (self.bits(key, 1)[0] % size).astype(jnp.int32) + jnp.where(
                is_test, len(train), 0
            )
            hidden = jnp.asarray(np.array(train + test, np.int32))[index]
            candidates = jnp.where(
                is_test, self.candidates(Split.TEST), self.candidates(Split.TRAIN)
            )
            return Params(jnp.asarray(self._real_table), hidden, jnp.uint32(0), candidates)
        words = self.bits(key, ROUNDS + self.properties + 3 * self._rare + 3)
        draws, order_draws, rare, singles = jnp.split(
            words, np.cumsum([ROUNDS, self.properties, 3 * self._rare])
        )
        table = self._table(draws, rare.reshape(3, self._rare), singles[0], split)[
            ranks(order_draws)
        ]
        hidden = (singles[1] % self.things).astype(jnp.int32)
        return Params(table[:, None], hidden, singles[2], jnp.asarray(self.candidates(Split.TRAIN)))

    def candidates(self, split: Split) -> np.ndarray:
        """Return the set of things that a split may hide, uint32 ``(words,)``."""
        return as_words(np.isin(np.arange(self.things), self.by_split[split])[None])[0]

    def _table(
        self, draws: jax.Array, rare: jax.Array, offset: jax.Array, split: jax.Array
    ) -> jax.Array:
        """Draw sets of things by property, informative ones first, uint32 ``(A,)``.

        Their number of ones fits the split.

        Args:
            draws: random words that scramble the patterns of the informative properties.
            rare: three sets of random bits for each rare property; things in all three have it.
            offset: random bits that choose a thing that surely has the first rare property.
            split: 0 for train, 1 for test.
        """
        pattern = scramble(draws, self._telling, self.things)
        telling = (pattern >> np.arange(self._telling, dtype=np.uint32)[:, None] & 1) << np.arange(
            self.things, dtype=np.uint32
        )
        # One bit a thing, so the sum is the union. Every rare property holds for some thing.
        at = (offset + np.arange(self._rare, dtype=np.uint32)) % self.things
        everyone = np.uint32(2**self.things - 1)
        table = jnp.concatenate([
            telling.sum(1, dtype=jnp.uint32),
            rare[0] & rare[1] & rare[2] & everyone | np.uint32(1) << at,
        ])  # fmt: skip
        odd = jax.lax.population_count(table).sum(dtype=jnp.int32) % 2
        # The thing beside the one that surely has the first rare property gains or loses it.
        beside = np.uint32(1) << (at[0] + 1) % self.things
        return table.at[self._telling].set(
            table[self._telling] ^ jnp.where(odd != split, beside, 0)
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start with nothing said and every candidate possible."""
        none = jnp.zeros(self.words, jnp.uint32)
        no_actions = jnp.full(TURNS, -1, jnp.int32)
        return State(
            jnp.uint32(0),
            jnp.uint32(0),
            none,
            params.candidates,
            jnp.int32(0),
            jnp.bool_(False),
            no_actions,
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Answer a question or a guess, and rule things out by it."""
        asks = action < self.properties
        bit = np.uint32(1) << jnp.minimum(action, self.properties - 1).astype(jnp.uint32)
        having = params.table[jnp.minimum(action, self.properties - 1)]
        hidden = set_of(params.hidden, self.words)
        answer = (having & hidden != 0).any()
        guess = set_of(jnp.maximum(action - self.properties, 0), self.words)
        correct = ~asks & (guess == hidden).all()
        fits = jnp.where(
            asks, jnp.where(answer, having, ~having), jnp.where(correct, guess, ~guess)
        )
        return State(
            asked_properties=state.asked_properties | jnp.where(asks, bit, 0),
            yes=state.yes | jnp.where(asks & answer, bit, 0),
            guessed=state.guessed | jnp.where(asks, 0, guess),
            possible=state.possible & fits,
            turns=state.turns + 1,
            guessed_right=correct,
            actions=jnp.where(np.arange(TURNS) == state.turns, action, state.actions).astype(
                jnp.int32
            ),
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return answers, fractions, possible things, time, and a fictional table.

        The module's docstring lists them.
        """
        properties = np.arange(self.properties, dtype=np.uint32)
        questions, yes = (field >> properties & 1 for field in (state.asked_properties, state.yes))
        blocks = [
            questions.astype(self.dtype) * (2 * yes.astype(self.dtype) - 1),
            count(params.table & state.possible).astype(self.dtype)
            / count(state.possible).astype(self.dtype),
            members(state.possible, self.things).astype(self.dtype),
            ((TURNS - state.turns).astype(self.dtype) / TURNS)[None],
        ]
        if not self.real:
            blocks.append(members(params.table, self.things).ravel().astype(self.dtype))
        return jnp.concatenate(blocks)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        a, n = self.properties, self.things
        components = (
            Component(
                "answers",
                "answer to the question for each property: 1 yes, -1 no, 0 not asked",
                shape=(a,),
            ),
            Component(
                "shares",
                f"part of the {self.noun[1]} still possible that has each property",
                shape=(a,),
            ),
            Component("possible", f"whether each {self.noun[0]} is still possible", shape=(n,)),
            Component("turns_left", "fraction of the turns that are left"),
        )
        table = Component(
            "table",
            f"[property, {self.noun[0]}]: whether the {self.noun[0]} has the property",
            shape=(a, n),
        )
        return components if self.real else (*components, table)

    def action_components(self) -> tuple[Component, ...]:
        """List questions, then guesses."""
        return (
            Component("ask", "ask for the property of this number", shape=(self.properties,)),
            Component(
                "guess",
                f"guess the {self.noun[0]} of this number, counted from the first guess on",
                shape=(self.things,),
            ),
        )

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Mark questions not asked before, and candidates not guessed before: bool ``(A + N,)``."""
        questions = state.asked_properties >> np.arange(self.properties, dtype=np.uint32) & 1 == 1
        return jnp.concatenate(
            [~questions, members(params.candidates & ~state.guessed, self.things)]
        )

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return 1, minus a twentieth for every turn before this one, for the right guess."""
        won = jnp.where(
            next_state.guessed_right & ~state.guessed_right, TURNS + 1 - next_state.turns, 0
        )
        return won.astype(self.dtype) / TURNS

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the thing is guessed or the turns are used."""
        return state.guessed_right | (state.turns >= TURNS)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``: the thing is guessed in few turns."""
        return {
            "success": state.guessed_right & (state.turns <= self.few),
            "turns": state.turns,
            "possible": count(state.possible),
        }

    # -- host side ---------------------------------------------------------------------------------

    def knowledge(self, params: Params) -> Knowledge:
        """Return the names of things and properties."""
        if self.real:
            return real_knowledge(self.file)[0]
        return fictional_knowledge(int(params.names), self.things, self.properties, self.fiction)

    def holds(self, params: Params) -> np.ndarray:
        """Return the table, bool ``(properties, things)``."""
        return np.asarray(members(np.asarray(params.table), self.things))

    def describe(self, state: State, params: Params) -> str:
        """Describe the things, and the questions and answers so far.

        Fictional things are described with all their properties.
        """
        turns = int(state.turns)
        candidates = f"{len(self._candidates(params))} {self.noun[1]}"
        lines = [f"{self.game}: {turns} of {TURNS} turns used. One of {candidates} was thought of."]
        lines += [*self._table_lines(params), *self._exchanges(state, params, 0)]
        if self._over(state):
            lines.append(f"The game is over: {self._ending(state, params)}.")
        return "\n".join(lines)

    def rules(self) -> str:
        """Return the rules of the game."""
        where = (
            "one of those that are listed" if self.real else f"one of {self.things} {self.noun[1]}"
        )
        return (
            f"{self.game}: {where} was thought of. Find it. In each turn, ask about one "
            f"property or guess one {self.noun[0]}. Answers are yes or no, and always true.\n"
            f"You have {TURNS} turns. Guessing the {self.noun[0]} in turn 1, 2, 3, ... earns 1, "
            f"{1 - 1 / TURNS:g}, "
            f"{1 - 2 / TURNS:g}, ...\n"
            "A question or a guess that was made before is refused. It uses up no turn, "
            f"but after {self.card.horizon} replies the game is over."
        )

    def describe_turn(self, before: State | None, state: State, params: Params) -> str:
        """Describe the table at first, then new questions with their answers.

        Each description ends with the number of turns left.
        """
        lines = [*self._table_lines(params), *self._exchanges(state, params, 0)]
        if before is not None:
            lines = self._exchanges(state, params, int(before.turns))
        if not self._over(state):
            lines.append(f"Turns left: {TURNS - int(state.turns)}.")
        return "\n".join(lines)

    def _table_lines(self, params: Params) -> list[str]:
        """Return the lines that list the things.

        Fictional things are listed with all their properties.
        """
        knowledge = self.knowledge(params)
        if self.real:
            questions = " ".join(spell_actions(knowledge)[: self.properties])
            listed = ", ".join(knowledge.things[i] for i in self._candidates(params))
            return [f"{self.noun[1].capitalize()}: {listed}.", f"Questions: {questions}"]
        singular, plural = self.noun
        title = (
            f"The {plural}, and all that is true of each; what is not said of a {singular} is not "
            "true of it:"
        )
        return [title, write_table(knowledge, self.holds(params).tobytes())]

    def _candidates(self, params: Params) -> list[int]:
        """Return the numbers of the things that may be hidden."""
        candidates: list[int] = np.flatnonzero(
            members(np.asarray(params.candidates), self.things)
        ).tolist()
        return candidates

    def _exchanges(self, state: State, params: Params, first: int) -> list[str]:
        """Return the questions and answers from turn ``first`` on, counted from 0."""
        words = spell_actions(self.knowledge(params))
        actions = enumerate(state.actions[: int(state.turns)])
        return [
            f"{t + 1}. {words[a]} {self._answer(int(a), t, state)}"
            for t, a in actions
            if t >= first
        ]

    def _over(self, state: State) -> bool:
        return bool(state.guessed_right) or int(state.turns) >= TURNS

    def _answer(self, action: int, turn: int, state: State) -> str:
        """Return the answer that the player got; the hidden thing is not read."""
        if action < self.properties:
            return "Yes." if int(state.yes) >> action & 1 else "No."
        return "Yes." if bool(state.guessed_right) and turn + 1 == int(state.turns) else "No."

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            "Ask for one property in a question that can be answered yes or no "
            f"({self.examples[0]}), or guess one {self.noun[0]} ({self.examples[1]}). One question "
            "or guess in each reply."
        )

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the action of a question or a guess; see :func:`.knowledge.understand`.

        Raises:
            ValueError: the text is neither; the message names the nearest question or guess.
        """
        return np.asarray(
            understand(text, self.knowledge(params), self._candidates(params)),
            self.action_space.dtype,
        )

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the question or the guess."""
        return spell_actions(self.knowledge(params))[int(action)]

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Say in which turn the question or guess was answered, or that the thing is not listed."""
        knowledge = self.knowledge(params)
        index = int(action) - self.properties
        candidates = self._candidates(params)
        if index >= 0 and index not in candidates:
            return (
                f"{knowledge.things[index]!r} is none of the {len(candidates)} {self.noun[1]} that "
                "are listed"
            )
        actions = [int(before) for before in state.actions[: int(state.turns)]]
        turn = actions.index(int(action))
        words = spell_actions(knowledge)[int(action)]
        return (
            f"{words!r} was answered in turn {turn + 1}: {self._answer(actions[turn], turn, state)}"
        )

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say how the game ended; a lost game shows the thing."""
        return self._ending(state, params)

    def _ending(self, state: State, params: Params) -> str:
        name = self.knowledge(params).things[int(params.hidden)]
        if bool(state.guessed_right):
            return f"the {self.noun[0]} is {name!r}, found in turn {int(state.turns)}"
        return f"all {TURNS} turns are used; the {self.noun[0]} was {name!r}"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the table, with a row for each thing and a column for each property.

        Things that are ruled out are pale, and the columns show their answers.
        """
        height, width, _ = self.picture_shape
        picture = np.full(self.picture_shape, PAPER, np.uint8)
        down = (height - 24) // self.things
        across = (width - 40) // self.properties
        top, left = 18, 34
        holds = self.holds(params)
        possible = np.asarray(members(np.asarray(state.possible), self.things))
        for a in range(self.properties):
            is_asked = int(state.asked_properties) >> a & 1
            yes = int(state.yes) >> a & 1
            answer_colour = YES if yes else NO
            colour = answer_colour if is_asked else OPEN
            x = slice(left + a * across, left + (a + 1) * across - 2)
            picture[4 : top - 4, x] = colour if is_asked else (225, 225, 225)
            for i in np.flatnonzero(holds[a]):
                shade = 1.0 if possible[i] else 0.15
                tone = np.array(PAPER) * (1 - shade) + np.array(colour) * shade
                picture[top + i * down : top + (i + 1) * down - 1, x] = tone.astype(np.uint8)
        for i in np.flatnonzero(possible):
            picture[top + i * down : top + (i + 1) * down - 1, 6 : left - 8] = (40, 40, 40)
        return picture
