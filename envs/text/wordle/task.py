"""Wordle: find a hidden five-letter word in six guesses.

The game of Wardle (2021). The hidden word is drawn once, at reset, and stays (a host that re-draws
it among the words still consistent, as in LMRL-Gym, is another game). After each guess every letter
gets a mark:

=====  ========  =================================================================================
mark   in words  when
=====  ========  =================================================================================
2      green     the hidden word has this letter here
1      yellow    the hidden word has this letter elsewhere: a copy that neither a green nor a yellow
                 further left in the guess has used up
0      grey      it has no (further) copy of this letter
=====  ========  =================================================================================

Words: a frozen list of 2,131 common English words (``word_list.txt``, made by
``make_word_list.py``). All may be guessed; the hidden word comes from the fifth of them whose
SHA-256 is divisible by five on the test split, and from the others on the train split. The
original's lists of 2,315 and 10,657 words are not shipped, since no licence allows it;
``tests/text/wordle/test_wordle_original.py`` checks the best play on them, 3.421 guesses, for who
has them.

===========  =======================================================================================
action       index of a word in the sorted list, ``Discrete(2131)``; all are legal at all times
observation  ``(235,)``, everything that follows from the board, in four blocks:

             * 130, position by letter (``26 * position + letter``): 1 proven here, 0 possible, -1
               impossible
             * 78, copies by letter (``26 * (copies - 1) + letter``): 1 if the word is known to have
               at least 1, 2, 3
             * 26, by letter: 1 if it is known to have no more copies than that
             * 1: the fraction of guesses left
reward       growth of the score of the board; so an episode's return *is* its last board's score:
             1, 0.9, ..., 0.5 if solved with guess 1, 2, ..., 6; otherwise 0.05 for each green of
             the best guess
terminated   the word is found, or six guesses are used
success      the word is found
===========  =======================================================================================

Why this reward: every solved board scores at least 0.5 and every other at most 0.2, so no partial
credit outweighs solving, and a guess saved is always worth 0.1. By chance a learner finds the word
in one game of 355; the small reward for greens guides it. That reward cannot be farmed: the sum
telescopes, and repeating a guess adds nothing. Mean returns over all words: best constant word
0.035, random words 0.066, best six fixed words found 0.083, reference 0.753
(``tests/text/wordle/test_wordle.py``).

The observation is a sufficient summary: a word is consistent with it
(:meth:`Wordle.consistent_words`) if and only if that word would have marked every guess so far just
as the hidden word did.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Int, IntArray, UInt32, UInt32Array
from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Split, Task
from rlbench_suite.core.task_card import TaskCard

LENGTH = 5
TRIES = 6
LETTERS = 26
MAX_COPIES = 3
"""Most copies of one letter in a word of the list."""
CODES = 3**LENGTH
SOLVED = CODES - 1
"""Code of five greens.

A row of marks is a number in base 3, with the first letter's mark as its last digit.
"""
POWERS = 3 ** np.arange(LENGTH, dtype=np.int32)
EARLIER_POSITIONS = np.tri(LENGTH, k=-1, dtype=bool)
"""Row i: the positions before i."""
MARKS = "-YG"
COLOURS = ((120, 124, 126), (201, 180, 88), (106, 170, 100))
"""Grey, yellow, green."""
TILE = 48
GAP = 6


class Params(NamedTuple):
    """The hidden word."""

    hidden: Int
    """Index of the hidden word, int32."""


class Knowledge(NamedTuple):
    """Knowledge that follows from the marks so far, as sets of letters.

    A set is a uint32 mask with bit 0 for a.
    """

    possible: UInt32Array
    """Letters that can stand at each position, ``(5,)``."""
    at_least: UInt32Array
    """Letters of which the word has at least 1, 2, 3 copies, ``(3,)``."""
    capped: UInt32
    """Letters of which it has no more copies than ``at_least`` says, ``()``."""


class State(NamedTuple):
    """The board, and the knowledge that follows from it."""

    guesses: IntArray
    """Indices of the words guessed, int32 ``(6,)``; -1 where none yet."""
    codes: IntArray
    """Their marks as base-3 numbers, int32 ``(6,)``; -1 where none yet."""
    tries: Int
    """Guesses used, int32."""
    greens: Int
    """Greens of the best guess, int32."""
    knowledge: Knowledge


def feedback(guess: Any, hidden: Any) -> Any:
    """Return the marks (0, 1, 2) of a guess, int ``(..., 5)``.

    Args:
        guess: letters as numbers, ``(..., 5)``, NumPy or JAX.
        hidden: likewise; the two broadcast.
    """
    missed = guess != hidden
    # Copies of each guessed letter that the hidden word still has, and copies that earlier letters
    # took.
    copies = (missed[..., None, :] & (guess[..., :, None] == hidden[..., None, :])).sum(-1)
    earlier = (
        missed[..., None, :] & (guess[..., :, None] == guess[..., None, :]) & EARLIER_POSITIONS
    ).sum(-1)
    return 2 * (guess == hidden) + (missed & (copies > earlier))


def encode(marks: Any) -> Any:
    """Encode five marks ``(..., 5)`` as one number in [0, 243).

    The marks are digits in base 3, the first mark last.
    """
    return (marks * POWERS).sum(-1)


def decode(code: Any) -> Any:
    """Return the five marks of a code, ``(..., 5)``."""
    return np.asarray(code)[..., None] // POWERS % 3


def learn(knowledge: Knowledge, guess: jax.Array, marks: jax.Array) -> Knowledge:
    """Return the knowledge after one more row: letters and marks, both ``(5,)``."""
    bits = np.uint32(1) << guess.astype(jnp.uint32)
    grey, coloured = (jnp.where(here, bits, 0) for here in (marks == 0, marks > 0))
    capped = union(grey)
    # A letter with a grey and no yellow has all its copies on the greens of this row, and nowhere
    # else.
    placed = capped & ~union(jnp.where(marks == 1, bits, 0))
    # Coloured copies up to each position, itself included.
    copies = ((guess[:, None] == guess) & (marks > 0) & ~EARLIER_POSITIONS.T).sum(-1)
    at_least = union(jnp.where(copies >= np.arange(1, MAX_COPIES + 1)[:, None], coloured, 0))
    possible = jnp.where(marks == 2, bits, knowledge.possible & ~(bits | placed))
    return Knowledge(possible, knowledge.at_least | at_least, knowledge.capped | capped)


def union(masks: jax.Array) -> jax.Array:
    """Return the union of the sets along the last axis."""
    return jnp.bitwise_or.reduce(masks, axis=-1)


@cache
def word_list() -> tuple[str, ...]:
    """Return the words, sorted."""
    return tuple(Path(__file__).with_name("word_list.txt").read_text("ascii").split())


def split_of(word: str) -> Split:
    """Return the split that may hide the word."""
    return (
        Split.TEST if int(hashlib.sha256(word.encode()).hexdigest(), 16) % 5 == 0 else Split.TRAIN
    )


class Wordle(Task[Params, State]):
    """The task; see the module's docstring.

    Attributes:
        words: the list, sorted.
        letters: each word's letters as numbers 0 to 25, int32 ``(words, 5)``.
        action_features: float32 ``(words, 208)``: the first two blocks of the observation (0 for
            -1) if exactly this word were known. The words with the greatest product of features and
            observation are those that contradict neither block; drawing one of them at each guess
            solves 98 % of the games.
    """

    measures: ClassVar[dict[str, str]] = {
        "guesses": "guesses used",
        "greens": "greens of the best guess",
    }
    counts_turns = True
    picture_shape = (TRIES * (TILE + GAP) + GAP, LENGTH * (TILE + GAP) + GAP, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.words = word_list()
        self.letters = np.array(
            [[ord(letter) - ord("a") for letter in word] for word in self.words], np.int32
        )
        hot = np.arange(LETTERS) == self.letters[..., None]
        self._copies = hot.sum(1, dtype=np.int32)
        at_least = self._copies[:, None] >= np.arange(1, MAX_COPIES + 1)[:, None]
        self.action_features = (
            np.concatenate([hot, at_least], 1).reshape(len(self.words), -1).astype(np.float32)
        )
        # The letters of which a word has at least 1, 2, 3 copies, as masks: (copies, words).
        self._at_least = (at_least << np.arange(LETTERS)).sum(-1).astype(np.uint32).T
        splits = np.array([split_of(word) for word in self.words])
        self._by_split = np.argsort(splits, kind="stable").astype(np.int32)
        self._train_words = int((splits == Split.TRAIN).sum())

        n_positions = LETTERS * LENGTH
        n_counts = LETTERS * (MAX_COPIES + 1) + 1
        self.observation_space = self.box(
            [-1.0] * n_positions + [0.0] * n_counts, [1.0] * (n_positions + n_counts)
        )
        self.action_space = spaces.Discrete(len(self.words))
        self.reward_space = self.box(0.0, 1.0, ())

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw a hidden word, uniform among those of the split."""
        test = split == Split.TEST
        first = jnp.where(test, self._train_words, 0)
        size = jnp.where(test, len(self.words) - self._train_words, self._train_words).astype(
            jnp.uint32
        )
        # One draw; the remainder of 2**32 favours some words by less than one part in a million.
        index = first + (jax.random.bits(key, (), jnp.uint32) % size).astype(jnp.int32)
        return Params(jnp.asarray(self._by_split)[index])

    def initial(self, key: jax.Array, params: Params) -> State:
        """Return an empty board, on which anything is possible."""
        none = jnp.full(TRIES, -1, jnp.int32)
        anything = jnp.full(LENGTH, 2**LETTERS - 1, jnp.uint32)
        knowledge = Knowledge(anything, jnp.zeros(MAX_COPIES, jnp.uint32), jnp.uint32(0))
        return State(none, none, jnp.int32(0), jnp.int32(0), knowledge)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Add a row to the board, and learn from it."""
        letters = jnp.asarray(self.letters)
        guess = letters[action]
        marks = feedback(guess, letters[params.hidden])
        row = np.arange(TRIES) == state.tries
        return State(
            guesses=jnp.where(row, action, state.guesses).astype(jnp.int32),
            codes=jnp.where(row, encode(marks), state.codes).astype(jnp.int32),
            tries=state.tries + 1,
            greens=jnp.maximum(state.greens, (marks == 2).sum(dtype=jnp.int32)),
            knowledge=learn(state.knowledge, guess, marks),
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the knowledge that follows from the board, float ``(235,)``.

        The module's docstring lists it.
        """
        knowledge = state.knowledge
        bits = np.uint32(1) << np.arange(LETTERS, dtype=np.uint32)
        possible = knowledge.possible[:, None]
        blocks = (
            jnp.where(possible == bits, 1, jnp.where(possible & bits, 0, -1)),
            knowledge.at_least[:, None] & bits != 0,
            knowledge.capped & bits != 0,
            (TRIES - state.tries) / TRIES,
        )
        return jnp.concatenate([block.ravel().astype(self.dtype) for block in blocks])

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        letters = "letters a to z"
        return (
            Component(
                "places",
                f"[place, letter]: 1 proven there, 0 possible, -1 impossible; {letters}",
                shape=(LENGTH, LETTERS),
            ),
            Component(
                "at_least",
                (
                    "[copies - 1, letter]: whether it is known to have so many copies, 1 to "
                    f"{MAX_COPIES}; {letters}"
                ),
                shape=(MAX_COPIES, LETTERS),
            ),
            Component(
                "no_more",
                f"whether it is known to have no more copies than that; {letters}",
                shape=(LETTERS,),
            ),
            Component("guesses_left", "fraction of the guesses that are left"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the words."""
        meaning = (
            f"guess the word of this number in the sorted list: 0 is {self.words[0]}, the last one "
            f"{self.words[-1]}"
        )
        return (Component("guess", meaning, shape=(len(self.words),)),)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the growth of the board's score."""
        # In whole numbers: nothing rounds below zero.
        growth = self._twentieths(next_state) - self._twentieths(state)
        return growth.astype(self.dtype) / 20

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Say whether the word is found or six guesses are used."""
        return (state.greens == LENGTH) | (state.tries >= TRIES)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``: the word is found."""
        return {"success": state.greens == LENGTH, "guesses": state.tries, "greens": state.greens}

    def consistent_words(self, knowledge: Knowledge) -> jax.Array:
        """Mark the words of the list that can still be the hidden one, bool ``(words,)``."""
        at_least = knowledge.at_least[:, None]
        capped = knowledge.capped
        # Neither too few copies of a letter nor, if it is capped, too many.
        copies = ((self._at_least ^ at_least) & (at_least | capped) == 0).all(0)
        return copies & (
            knowledge.possible[:, None] >> self.letters.T.astype(np.uint32) & 1 == 1
        ).all(0)

    def _twentieths(self, state: State) -> jax.Array:
        """Return the board's score, times twenty."""
        return jnp.where(state.greens == LENGTH, 22 - 2 * state.tries, state.greens)

    # -- host side ---------------------------------------------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """Describe the board in letters; the hidden word is shown only once the game is over."""
        tries = min(int(state.tries), TRIES)
        head = (
            f"Wordle: guess {tries} of {TRIES} made. G: right letter, right place. Y: in the word, "
            "but elsewhere. "
            "-: no (further) such letter."
        )
        over = [f"The game is over: {self._ending(state, params)}."] if self._over(state) else []
        return "\n".join([head, *self._board(state), *over])

    def rules(self) -> str:
        """Return the rules of the game, the meaning of the marks, and the source of the words."""
        return (
            f"Wordle: find the hidden five-letter word. You have {TRIES} guesses.\n"
            "After each guess every letter gets a mark. G: right letter, right place. Y: the word "
            "has this letter, but "
            "elsewhere. -: the word has no (further) copy of this letter.\n"
            f"The hidden word and all guesses are from a list of {len(self.words)} common American "
            "English words "
            "(SCOWL, sizes 10 to 35), without names and without regular inflections such as "
            "plurals and past tenses.\n"
            f"A reply that is no word of the list wastes a guess: {self.words[0]!r} is guessed "
            "instead.\n"
            "A word found with guess 1, 2, ..., 6 earns 1, 0.9, ..., 0.5; else each G of the best "
            "guess earns 0.05."
        )

    def describe_turn(self, before: State | None, state: State, params: Params) -> str:
        """Describe the new rows of the board, and say how many guesses are left."""
        new = self._board(state)[0 if before is None else 2 * min(int(before.tries), TRIES) :]
        remaining_guesses = (
            [] if self._over(state) else [f"Guesses left: {TRIES - int(state.tries)}."]
        )
        return "\n".join([*new, *remaining_guesses])

    def _board(self, state: State) -> list[str]:
        """Return the rows of the board: for each one line of letters and one of marks."""
        lines = []
        for turn, (word, marks) in enumerate(self._rows(state), 1):
            lines.append(f"{turn}. {' '.join(word.upper())}")
            lines.append(f"   {' '.join(MARKS[mark] for mark in marks)}")
        return lines

    def _over(self, state: State) -> bool:
        return int(state.greens) == LENGTH or int(state.tries) >= TRIES

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            f"Answer with one five-letter word of the game's list of {len(self.words)} common "
            "English words."
        )

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the index of a word. Spaces around it and case do not count.

        Raises:
            ValueError: the text is not five letters a-z, or not in the list; the message says
                which, and names the nearest words.
        """
        word = text.strip().lower()
        if not (len(word) == LENGTH and word.isascii() and word.isalpha()):
            raise ValueError(f"expected one word of five letters a-z, got {text!r}")
        index = bisect_left(self.words, word)
        if self.words[index : index + 1] != (word,):
            near = ", ".join(self._nearest_words(word, 3))
            raise ValueError(
                f"{word!r} is not in the game's list of words; the nearest that are: {near}"
            )
        return np.asarray(index, self.action_space.dtype)

    def _nearest_words(self, word: str, count: int) -> list[str]:
        """Return the words of the list that share most letters with a word.

        Letters in place count three times.
        """
        letters = np.frombuffer(word.encode(), np.uint8) - ord("a")
        shared = np.minimum(self._copies, np.bincount(letters, minlength=LETTERS)).sum(1)
        alike = shared + 2 * (self.letters == letters).sum(1)
        return [str(self.words[index]) for index in np.argsort(-alike, kind="stable")[:count]]

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the word."""
        return str(self.words[int(action)])

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say how the game ended; a lost game shows the word."""
        return self._ending(state, params)

    def _ending(self, state: State, params: Params) -> str:
        if int(state.greens) == LENGTH:
            return f"the word was found with guess {int(state.tries)}"
        return f"six guesses are used; the word was {self.words[int(params.hidden)]!r}"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the board as people know it: a tile for each letter in the colour of its mark."""
        from PIL import Image, ImageDraw, ImageFont

        height, width, _ = self.picture_shape
        picture = Image.new("RGB", (width, height), "white")
        pen = ImageDraw.Draw(picture)
        font = ImageFont.load_default(TILE * 0.6)
        rows = list(self._rows(state))
        for row in range(TRIES):
            for i in range(LENGTH):
                x, y = GAP + i * (TILE + GAP), GAP + row * (TILE + GAP)
                corners = (x, y, x + TILE - 1, y + TILE - 1)
                if row < len(rows):
                    word, marks = rows[row]
                    pen.rectangle(corners, fill=COLOURS[marks[i]])
                    pen.text(
                        (x + TILE / 2, y + TILE / 2), word[i].upper(), "white", font, anchor="mm"
                    )
                else:
                    pen.rectangle(corners, outline=(211, 214, 218), width=2)
        return np.asarray(picture)

    def _rows(self, state: State) -> list[tuple[str, np.ndarray]]:
        """Return the rows of the board: word and marks."""
        used = range(min(int(state.tries), TRIES))  # a step after the end counts on
        return [(self.words[int(state.guesses[i])], decode(state.codes[i])) for i in used]
