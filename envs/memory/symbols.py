"""Tasks in which symbols are shown one by one, and an answer is one of a few words.

Their tasks differ in what the answer is. They share how symbols are drawn at random, shown, packed,
and how answers are read. Symbols are independent and uniform, so that chance and the best answer
without a memory have closed forms.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import Int
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.policy import View, no_memory
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.foundation.unknown_names import unknown
from rlbench_suite.numerics import keys

COLOURS = ("red", "green", "blue", "yellow", "purple", "orange", "cyan", "grey")
"""Names of the symbols."""
RGB = np.array(
    [
        (213, 50, 40),
        (60, 150, 70),
        (0, 114, 178),
        (240, 200, 40),
        (150, 80, 170),
        (230, 130, 30),
        (80, 190, 210),
        (130, 130, 135),
    ],
    np.uint8,
)
PAPER, INK = (245, 245, 240), (40, 40, 46)
SIDE = 60
"""Height and width of a tile in pixels."""

State = TypeVar("State", bound=tuple)


class Params(NamedTuple):
    """Empty: contexts do not differ."""


class Tally(NamedTuple):
    """Answers so far; int32."""

    correct: Int
    wrong: Int


def empty_tally() -> Tally:
    """Return the tally before the first answer."""
    return Tally(jnp.int32(0), jnp.int32(0))


def count_answer(tally: Tally, is_question: jax.Array, is_correct: jax.Array) -> Tally:
    """Return the tally after a step; it stays as it is where nothing was asked."""
    return Tally(
        tally.correct + (is_question & is_correct), tally.wrong + (is_question & ~is_correct)
    )


class SymbolTask(Task[Params, State], Generic[State]):
    """A task whose answers are words.

    Attributes:
        answers: the words, in the order of the discrete action.
        optimum: best expected return; None where it is not known.
    """

    measures: ClassVar[dict[str, str]] = {"right": "right answers", "wrong": "wrong answers"}
    picture_shape = (2 * SIDE, 6 * SIDE, 3)
    answers: tuple[str, ...]
    optimum: float | None

    def __init__(
        self, card: TaskCard, *, difficulty: float | None, dtype: str, answers: tuple[str, ...]
    ) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.answers = answers
        self.action_space = spaces.Discrete(len(answers))
        self.reward_space = self.box(0.0, 1.0, ())

    def whole_number(
        self, difficulty: float | None, default: int, maximum: int, meaning: str, minimum: int = 1
    ) -> int:
        """Return a difficulty that is a whole number.

        Raises:
            ValueError: it is none, or out of range.
        """
        number = float(default) if difficulty is None else difficulty
        if not (minimum <= number <= maximum and number == int(number)):
            raise ValueError(
                f"A difficulty of {self.card.id} is {meaning}, a whole number from {minimum} to "
                f"{maximum}; got {difficulty!r}."
            )
        return int(number)

    @abc.abstractmethod
    def tally(self, state: State) -> Tally:
        """Return the answers so far."""

    @abc.abstractmethod
    def tiles(self, state: State) -> list[tuple[int | None, str]]:
        """Return what is shown now: pairs of a symbol (None for a blank tile) and a caption."""

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Return the only context."""
        return Params()

    def one_hot(self, symbol: jax.Array, count: int, visible: jax.Array | bool = True) -> jax.Array:
        """Return ``(count,)`` zeros with a one at the symbol; all zeros where nothing is shown."""
        return ((jnp.arange(count) == symbol) & visible).astype(self.dtype)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return 1 for a right answer."""
        return (self.tally(next_state).correct - self.tally(state).correct).astype(self.dtype)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return false: only the time limit ends an episode."""
        return jnp.bool_(False)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, at least one answer and all of them right, and the tally."""
        correct, wrong = self.tally(state)
        return {"success": (correct > 0) & (wrong == 0), "right": correct, "wrong": wrong}

    # -- host side: no more than the observation shows ---------------------------------------------

    def action_components(self) -> tuple[Component, ...]:
        """List the answers."""
        return singles({answer: f"answer {answer!r}" for answer in self.answers})

    def how_to_act(self) -> str:
        """Tell a text player the words."""
        return "Answer with one of: " + ", ".join(self.answers) + "."

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the action of this word.

        Raises:
            ValueError: the text is none of the answers.
        """
        word = text.strip().lower()
        if word not in self.answers:
            raise ValueError(unknown("answer", text, self.answers))
        return np.array(self.answers.index(word), self.action_space.dtype)

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the word of the action."""
        return self.answers[int(action)]

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the tiles that are shown, each with its caption above."""
        from PIL import Image, ImageDraw

        height, width, _ = self.picture_shape
        picture = Image.new("RGB", (width, height), PAPER)
        pen = ImageDraw.Draw(picture)
        for number, (symbol, caption) in enumerate(self.tiles(state)):
            left = 20 + number * 2 * SIDE
            pen.text((left, 10), caption, fill=INK, font_size=14)
            fill = PAPER if symbol is None else tuple(RGB[symbol].tolist())
            pen.rectangle((left, 40, left + SIDE, 40 + SIDE), fill=fill, outline=INK, width=2)
        return np.asarray(picture)


class LastWord(eqx.Module):
    """A player without a memory that always gives the last of the answers.

    It earns the ceiling without memory wherever that answer is right at least as often as any
    other, whatever is seen.
    """

    answer: int = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: SymbolTask[Any]) -> LastWord:
        """Make the player of a task's answers."""
        return cls(len(task.answers) - 1)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the answer."""
        return jnp.int32(self.answer), memory


# -- symbols of two bits, sixteen to a 32-bit number -----------------------------------------------

PER_NUMBER = 16


def sample_symbol(key: jax.Array) -> jax.Array:
    """Draw one of four symbols, int32."""
    return (keys.bits(jax.random.key_data(key), 1)[0] & 3).astype(jnp.int32)


def empty(count: int) -> jax.Array:
    """Return a shift register for ``count`` symbols of two bits.

    It is uint32 of shape ``(ceil(count / 16),)``.
    """
    return jnp.zeros(-(-count // PER_NUMBER), jnp.uint32)


def push(register: jax.Array, symbol: jax.Array) -> jax.Array:
    """Return the register with a symbol put before all others."""
    carry = jnp.concatenate([symbol[None].astype(jnp.uint32), register[:-1] >> 30])
    return (register << 2) | carry


def pop(register: jax.Array) -> jax.Array:
    """Return the register without its newest symbol."""
    carry = jnp.concatenate([register[1:] & 3, jnp.zeros(1, jnp.uint32)])
    return (register >> 2) | (carry << 30)


def symbol_at(register: jax.Array, age: int) -> jax.Array:
    """Return the symbol that was pushed ``age`` pushes before the newest, int32."""
    return ((register[age // PER_NUMBER] >> np.uint32(2 * (age % PER_NUMBER))) & 3).astype(
        jnp.int32
    )
