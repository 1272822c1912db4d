"""Puzzles whose answer is a text of known length, written letter by letter from left to right.

=============  =====================================================================================
action         the letter to write next, ``Discrete(letters of the alphabet)``
observation    all one-hot: what the puzzle tells (:meth:`SpellingTask.facts`); the place to write
               at; the letter of the text that stands there; the letters written so far
reward         1 / length for a right letter
termination    the text is written
=============  =====================================================================================

Written letters stay: the reward shows that a letter was wrong, but it cannot be taken back. To
write always the same letter, or a random one, earns about 1 / letters of the alphabet. The best
return is 1. There is no bonus for a whole text, because a sum paid with the last letter would drown
the reward of each letter.
"""

from __future__ import annotations

import abc
import textwrap
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import ImageFont

from rlbench_suite.core.component import Component
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import Example, Instance, Malformed, Puzzle, agreement, items_of

from ..shared import parsing
from ..shared.board import Board
from ..shared.puzzle_task import Params, PuzzleTask

NOTHING = -1
"""Number at a place without a letter yet, and after the end of a key."""

_LINES = 10
"""Number of rows of cells in a picture; all but two are for words."""


class TextPuzzle(Puzzle[Instance]):
    """The one-shot form.

    Subclasses set the attributes in ``__init__``. Texts are sequences of indices of letters.
    """

    alphabet: str
    length: int
    """Number of letters of the answer."""

    @abc.abstractmethod
    def statement(self, instance: Instance) -> str:
        """State the rules and the instance in words."""

    @abc.abstractmethod
    def text(self, instance: Instance) -> Sequence[int]:
        """Return the text that is to be encrypted or decrypted."""

    @abc.abstractmethod
    def solution(self, instance: Instance) -> Sequence[int]:
        """Return the text to write."""

    def numbering(self) -> str:
        """Return the alphabet in words."""
        last = len(self.alphabet) - 1
        return (
            f"The alphabet is {self.alphabet}. Its {last + 1} letters are numbered from 0 "
            f"({self.alphabet[0]}) to {last} ({self.alphabet[-1]})."
        )

    def question(self, instance: Instance) -> str:
        """State the rules, the instance and the format."""
        return (
            f"{self.statement(instance)}\n\nAnswer with the {self.length} letters, in capitals, "
            "without spaces."
        )

    def example_answers(self, instance: Instance) -> Sequence[Example]:
        """Show a short text."""
        return [
            Example(
                "For example, the answer for a text of 3 letters could be:",
                self.write_answer([1, 0, 2]),
            )
        ]

    @property
    def caseless(self) -> Sequence[str]:
        """Letters."""
        return self.alphabet

    def mend(self, answer: str) -> str:
        """Leave nothing between the letters."""
        return "".join(self.restore_case("".join(items_of(answer.removesuffix(".")))))

    def read(self, answer: str) -> list[int]:
        """Return the text that an answer writes.

        Raises:
            Malformed: another length, or something that is no letter of the alphabet.
        """
        if len(answer) != self.length:
            raise Malformed(f"expected {self.length} letters, got {len(answer)} characters")
        for position, letter in enumerate(answer, 1):
            if letter not in self.alphabet:
                raise Malformed(
                    f"character {position}: expected a letter of {self.alphabet}, got {letter!r}"
                )
        return [self.alphabet.index(letter) for letter in answer]

    def write_answer(self, text: Sequence[int]) -> str:
        """Return a text in the format of an answer, with ``_`` for missing letters."""
        return "".join("_" if number == NOTHING else self.alphabet[number] for number in text)

    def solve(self, instance: Instance) -> str:
        """Return the text of :meth:`solution`."""
        return self.write_answer(self.solution(instance))

    def likeness(self, instance: Instance, answer: str, best: str) -> float:
        """Return the share of the letters that are right."""
        return agreement(answer, best)

    def plan(self, instance: Instance) -> list[int]:
        """Return the letters of the solution."""
        return list(self.solution(instance))

    def guess(self, instance: Instance, dice: Dice) -> str:
        """Draw letters at random."""
        return self.write_answer([dice.below(len(self.alphabet)) for _ in range(self.length)])

    def constants(self) -> Sequence[str]:
        """Return texts of one repeated letter, for each letter."""
        return [letter * self.length for letter in self.alphabet]


class SpellingState(NamedTuple):
    """The text so far."""

    letters: jax.Array
    """int8 ``(length,)``: ``NOTHING`` where none is written yet."""
    position: jax.Array
    """int32: number of letters written."""
    num_correct: jax.Array
    """int32: number of right letters."""


class SpellingTask(PuzzleTask[SpellingState]):
    """The interactive form."""

    puzzle: TextPuzzle[Any]
    measures: ClassVar[dict[str, str]] = {
        "right": "fraction of the letters that are written and right"
    }
    picture_shape: ClassVar[tuple[int, int, int]] = (420, 640, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.count, self.length = len(self.puzzle.alphabet), self.puzzle.length
        self.action_space = spaces.Discrete(self.count)
        num_entries = self.fact_count + self.length + self.count + self.length * self.count
        self.observation_space = self.box(0.0, 1.0, (num_entries,))
        self.reward_space = self.box(0.0, 1.0 / self.length)

    # -- what a puzzle defines ---------------------------------------------------------------------

    @abc.abstractmethod
    def answer(self, instance: Any) -> jax.Array:
        """Return the text to write, int8 ``(length,)``."""

    @abc.abstractmethod
    def shown_text(self, instance: Any) -> jax.Array:
        """Return the text that is to be encrypted or decrypted, int8 ``(length,)``."""

    @property
    @abc.abstractmethod
    def fact_count(self) -> int:
        """Number of flags that :meth:`facts` gives."""

    @abc.abstractmethod
    def facts(self, instance: Any, letter: jax.Array) -> list[jax.Array]:
        """Return all given facts as arrays of flags, and the facts about the letter to write next.

        The latter can be read off for the letter of the text (one-hot) that stands at the next
        place.
        """

    @property
    @abc.abstractmethod
    def fact_components(self) -> tuple[Component, ...]:
        """Components of the flags of :meth:`facts`."""

    # -- the task ----------------------------------------------------------------------------------

    def initial(self, key: jax.Array, params: Params) -> SpellingState:
        """Begin with nothing written."""
        return SpellingState(jnp.full(self.length, NOTHING, jnp.int8), jnp.int32(0), jnp.int32(0))

    def transition(
        self, state: SpellingState, action: jax.Array, key: jax.Array, params: Params
    ) -> SpellingState:
        """Write a letter."""
        is_due, letter = self._at_position(state), action.astype(jnp.int8)
        correct = (is_due & (self.answer(params.instance) == letter)).any()
        return SpellingState(
            jnp.where(is_due, letter, state.letters),
            state.position + 1,
            state.num_correct + correct,
        )

    def observation(self, state: SpellingState, key: jax.Array, params: Params) -> jax.Array:
        """Return the facts, the place, the letter at that place and the text so far."""
        is_due = self._at_position(state)
        letter = (is_due[:, None] & self.one_hot(self.shown_text(params.instance))).any(axis=0)
        flags = (*self.facts(params.instance, letter), is_due, letter, self.one_hot(state.letters))
        return jnp.concatenate([flag.astype(self.dtype).reshape(-1) for flag in flags])

    def observation_components(self) -> tuple[Component, ...]:
        """Describe the entries in the order of :meth:`observation`."""
        return (
            *self.fact_components,
            Component("place", "the place to write at, one-hot", shape=(self.length,)),
            Component(
                "letter", "the letter of the text at that place, one-hot", shape=(self.count,)
            ),
            Component(
                "written",
                "[place, letter]: the letters written so far, one-hot",
                shape=(self.length, self.count),
            ),
        )

    def action_components(self) -> tuple[Component, ...]:
        """Describe the letters."""
        meaning = f"write a letter of the alphabet {self.puzzle.alphabet}"
        return (Component("letter", meaning, shape=(self.count,)),)

    def one_hot(self, text: jax.Array) -> jax.Array:
        """Return the number at each place one-hot; no flag for ``NOTHING``."""
        return text[..., None] == np.arange(self.count, dtype=np.int8)

    def reward(
        self,
        state: SpellingState,
        action: jax.Array,
        next_state: SpellingState,
        key: jax.Array,
        params: Params,
    ) -> jax.Array:
        """Return a share for each right letter."""
        return (next_state.num_correct - state.num_correct).astype(self.dtype) / self.length

    def terminal(self, state: SpellingState, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the text is written."""
        return state.position == self.length

    def info(self, state: SpellingState, params: Params) -> dict[str, jax.Array]:
        """Report ``success``: the text is written and right."""
        return {
            "success": state.num_correct == self.length,
            "right": state.num_correct.astype(self.dtype) / self.length,
        }

    def _at_position(self, state: SpellingState) -> jax.Array:
        return np.arange(self.length) == state.position

    # -- host side ---------------------------------------------------------------------------------

    def describe(self, state: SpellingState, params: Params) -> str:
        """Show the rules, the instance and the text so far."""
        written = self.puzzle.write_answer(np.asarray(state.letters).tolist())
        return f"{self.puzzle.statement(params.instance)}\n\nWritten so far: {written}"

    def how_to_act(self) -> str:
        """Tell a text player how to answer, in one line."""
        return f"Answer with the letter to write next, one of {self.puzzle.alphabet}."

    def parse(self, text: str, state: SpellingState, params: Params) -> np.ndarray:
        """Read a letter, such as ``C``.

        Raises:
            ValueError: anything else.
        """
        return np.asarray(
            parsing.word(text.strip(), list(self.puzzle.alphabet)), self.action_space.dtype
        )

    def spell(self, action: np.ndarray, state: SpellingState, params: Params) -> str:
        """Return the letter."""
        return self.puzzle.alphabet[int(action)]

    def why_over(self, state: SpellingState, params: Params, info: dict[str, Any]) -> str:
        """Say whether the text is right."""
        num_correct = int(state.num_correct)
        return (
            "the text is right"
            if num_correct == self.length
            else f"{self.length - num_correct} letters of the text are wrong"
        )

    def draw(self, state: SpellingState, params: Params) -> np.ndarray:
        """Draw the facts, and at the foot the given text and the written one."""
        board = Board(_LINES, self.length, self.picture_shape)
        lines = [
            wrapped_line
            for line in self.puzzle.statement(params.instance).split("\n")
            for wrapped_line in textwrap.wrap(line, 100)
        ]
        board.pen.multiline_text((12, 8), "\n".join(lines), "#1d2733", ImageFont.load_default(12))
        texts = self.puzzle.text(params.instance), np.asarray(state.letters).tolist()
        for row, text in enumerate(texts, _LINES - 2):
            for column, number in enumerate(text):
                board.cell(
                    row, column, self.puzzle.write_answer([number]), is_clue=row == _LINES - 2
                )
        return board.picture()
