"""Turn cards over two by two, and find the pairs.

The game Memory, or Concentration; POPGym (Morad et al. 2023, arXiv:2303.01859) has it with a deck
of cards. 2 n cards lie face down, n pairs. A turn shows one card, then a second. If they are a
pair, they stay; if not, they are turned back before the next turn.

=============  =====================================================================================
action         0 to 2 n - 1: the card to turn over; cards that lie face up for good, and the turn's
               first, are masked
observation    ``Box(0, 1, (2 n (n + 1),))``: for each card its picture or face down, one-hot. After
               a turn in vain both cards are still shown; they are face down as soon as the next
               card is turned over.
reward         1 for a pair, -1/n for a turn in vain
termination    when all pairs are found
success        all pairs are found, with less than n turns in vain
difficulty     n, from 2 to 12
context        none
=============  =====================================================================================

**Optimum** (:func:`min_misses`): n - m / n, where m is the least expected number of turns in vain
of a player who forgets nothing, by dynamic programming. Velleman and Warrington 2013 (American
Mathematical Monthly 120:9, "What to expect in a game of memory") derive that this player needs
about (3 - 2 ln 2) n + 7/8 - 2 ln 2 turns.

**Two random cards a turn** earn 1 on average: with k pairs left they are a pair with probability 1
/ (2 k - 1), so that it takes n^2 turns, n^2 - n of them in vain. That is no ceiling for players
without a memory, because both cards of a turn in vain are still in sight when the next one begins:
comparing one card with all others in turn earns (n + 1) / 2 (:class:`Sweeper`). The best return
without a memory is not known; which card is turned over can tell more.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.contexts.numerals import read_integer
from rlbench_suite.core.arrays import FlagArray, Int, IntArray
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.policy import View, no_memory
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard

from .symbols import INK, PAPER, Params

MAX_PAIRS = 12
"""Largest number of pairs."""
NONE = -1
PICTURES = (
    "cat",
    "dog",
    "sun",
    "moon",
    "tree",
    "boat",
    "fish",
    "star",
    "key",
    "bell",
    "rose",
    "drum",
)


class State(NamedTuple):
    """The table; cards are numbers from 0."""

    layout: IntArray
    """Picture of each card, int32 ``(2 n,)``."""
    paired: FlagArray
    """Whether a card lies face up for good, bool ``(2 n,)``."""
    first: Int
    """The turn's first card, int32; -1 between turns."""
    vain: IntArray
    """The two cards of the turn in vain that has just ended, int32 ``(2,)``; else -1."""
    misses: Int
    """Turns in vain, int32."""


@cache
def min_misses(unseen: int, unpaired: int) -> float:
    """Return the least expected number of turns in vain of a player who forgets nothing.

    Args:
        unseen: cards that were never shown.
        unpaired: cards that were shown and whose partner is unseen, at most ``unseen``.
    """
    if unseen == 0:
        return 0.0
    new = (unseen - unpaired) / unseen  # the partner of the first card is unseen, too
    value = unpaired / unseen * min_misses(unseen - 1, unpaired - 1) if unpaired else 0.0
    if not new:
        return value
    second_cards = unseen - 1
    misses = min_misses(unseen - 2, unpaired) / second_cards
    if unpaired:  # the second card's partner is known: a turn in vain, then that pair is taken
        misses += unpaired / second_cards * (1 + min_misses(unseen - 2, unpaired))
    if second_cards - 1 - unpaired:
        misses += (
            (second_cards - 1 - unpaired)
            / second_cards
            * (1 + min_misses(unseen - 2, unpaired + 2))
        )
    if unpaired:  # turning over a known card instead shows nothing new
        misses = min(misses, 1 + min_misses(unseen - 1, unpaired + 1))
    return value + new * misses


class Concentration(Task[Params, State]):
    """The task; see the module's head for its rules.

    Attributes:
        pairs: number of pairs.
        optimum: best expected return.
    """

    measures: ClassVar[dict[str, str]] = {"pairs": "pairs found", "misses": "turns in vain"}
    picture_shape = (260, 340, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        number = 8.0 if difficulty is None else difficulty
        if not (2 <= number <= MAX_PAIRS and number == int(number)):
            raise ValueError(
                f"A difficulty of {card.id} is the number of pairs, a whole number from 2 to "
                f"{MAX_PAIRS}; got {difficulty!r}."
            )
        self.pairs = int(number)
        self.cards = 2 * self.pairs
        self.optimum = self.pairs - min_misses(self.cards, 0) / self.pairs
        self.observation_space = self.box(0.0, 1.0, (self.cards * (self.pairs + 1),))
        self.action_space = spaces.Discrete(self.cards)
        self.reward_space = self.box(-1 / self.pairs, 1.0, ())

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Return the only context."""
        return Params()

    def initial(self, key: jax.Array, params: Params) -> State:
        """Shuffle the cards."""
        layout = jnp.argsort(self.bits(key, self.cards)).astype(jnp.int32) // 2
        nowhere = jnp.full(2, NONE, jnp.int32)
        return State(layout, jnp.zeros(self.cards, bool), jnp.int32(NONE), nowhere, jnp.int32(0))

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Turn a card over; the second one of a turn ends it."""
        begins = state.first == NONE
        card, number = action.astype(jnp.int32), jnp.arange(self.cards)
        pair = ~begins & (state.layout[state.first] == state.layout[card])
        vain = ~begins & ~pair
        return State(
            layout=state.layout,
            paired=state.paired | (pair & ((number == state.first) | (number == card))),
            first=jnp.where(begins, card, NONE).astype(jnp.int32),
            vain=jnp.where(vain, jnp.stack([state.first, card]), NONE).astype(jnp.int32),
            misses=state.misses + vain,
        )

    def _face_up(self, state: State) -> jax.Array:
        """Return which cards show their picture, bool ``(2 n,)``."""
        number = np.arange(self.cards)
        return (
            state.paired
            | (number == state.first)
            | (number == state.vain[0])
            | (number == state.vain[1])
        )

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return the picture of each card, one-hot: ``(2 n (n + 1),)``.

        The last place of a card stands for face down.
        """
        picture = jnp.where(self._face_up(state), state.layout, self.pairs)
        return (picture[:, None] == jnp.arange(self.pairs + 1)).astype(self.dtype).reshape(-1)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        faces = (*PICTURES[: self.pairs], "face_down")
        return singles(
            {
                f"card_{card}_{face}": f"card {card}: {face}"
                for card in range(self.cards)
                for face in faces
            }
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the cards."""
        return singles({f"card_{card}": f"turn card {card} over" for card in range(self.cards)})

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Return which cards may be turned over."""
        return ~state.paired & (jnp.arange(self.cards) != state.first)

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Say that the card lies face up."""
        return f"card {int(action)} lies face up"

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return 1 for a pair, -1/n for a turn in vain."""
        pair = (next_state.paired.sum() > state.paired.sum()).astype(self.dtype)
        vain = (next_state.misses > state.misses).astype(self.dtype)
        return pair - vain * np.asarray(1 / self.pairs, self.dtype)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether all pairs are found."""
        return state.paired.all()

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, the pairs found and the turns in vain."""
        return {
            "success": state.paired.all() & (state.misses < self.pairs),
            "pairs": state.paired.sum().astype(jnp.int32) // 2,
            "misses": state.misses,
        }

    # -- host side: no more than the observation shows ---------------------------------------------

    def describe(self, state: State, params: Params) -> str:
        """List the cards that show their picture."""
        face_up, layout = np.flatnonzero(self._face_up(state)).tolist(), state.layout.tolist()
        cards = ", ".join(f"{card} {PICTURES[layout[card]]}" for card in face_up)
        turn = "Turn over a second card." if int(state.first) != NONE else "Turn over a card."
        return f"Face up: {cards or 'none'}. {turn}"

    def rules(self) -> str:
        """Return the rules."""
        return (
            f"{self.cards} cards, numbered 0 to {self.cards - 1}, lie face down: {self.pairs} "
            "pairs of pictures. "
            "Turn over two cards, one after the other. A pair stays face up and earns 1. Otherwise "
            "both are turned "
            f"back when you turn over the next card, and you lose 1/{self.pairs}."
        )

    def how_to_act(self) -> str:
        """Tell a text player the numbers."""
        return f"Answer with the number of a card, 0 to {self.cards - 1}."

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the card of this number.

        Raises:
            ValueError: the text is no card.
        """
        try:
            card = read_integer(text.strip())
        except ValueError:
            card = NONE
        if not 0 <= card < self.cards:
            raise ValueError(f"expected the number of a card, 0 to {self.cards - 1}, got {text!r}")
        return np.array(card, self.action_space.dtype)

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say how many turns were in vain."""
        return f"all pairs are found, with {int(info['misses'])} turns in vain"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the cards in rows of six, each with its number or its picture's name."""
        from PIL import Image, ImageDraw

        height, width, _ = self.picture_shape
        picture = Image.new("RGB", (width, height), PAPER)
        pen, face_up = ImageDraw.Draw(picture), np.asarray(self._face_up(state))
        for card in range(self.cards):
            left, top = 8 + card % 6 * 55, 8 + card // 6 * 62
            up, paired = bool(face_up[card]), bool(state.paired[card])
            face = (205, 235, 205) if paired else "white"
            fill = face if up else (0, 114, 178)
            pen.rectangle((left, top, left + 48, top + 54), fill=fill, outline=INK, width=2)
            label = PICTURES[int(state.layout[card])] if up else str(card)
            pen.text(
                (left + 24, top + 27), label, fill=INK if up else "white", font_size=14, anchor="mm"
            )
        return np.asarray(picture)


class Rememberer(eqx.Module):
    """The optimal player: it remembers every picture it has seen."""

    pairs: int = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Concentration) -> Rememberer:
        """Make the player of a number of pairs."""
        return cls(task.pairs)

    def initial(self, params: Params) -> tuple[jax.Array, jax.Array]:
        """Return no pictures, and no first card of a turn."""
        return jnp.full(2 * self.pairs, NONE, jnp.int32), jnp.int32(NONE)

    def act(
        self, memory: tuple[jax.Array, jax.Array], view: View, key: jax.Array
    ) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        """Take a pair that is known; else turn over a card that was never shown."""
        pictures, first = memory
        picture = jnp.argmax(view.observation.reshape(2 * self.pairs, self.pairs + 1), axis=1)
        pictures = jnp.where(picture < self.pairs, picture, pictures).astype(jnp.int32)
        free = jnp.asarray(view.action_mask)
        unseen = free & (pictures == NONE)
        pairs = (
            (pictures[:, None] == pictures)
            & (pictures != NONE)
            & free
            & free[:, None]
            & ~jnp.eye(2 * self.pairs, dtype=bool)
        )
        of_first = free & (pictures == pictures[first]) & (pictures != NONE)
        begins = first == NONE
        good = jnp.where(begins, pairs.any(1), of_first)
        choice = jnp.where(
            good.any(),
            jnp.argmax(good),
            jnp.where(unseen.any(), jnp.argmax(unseen), jnp.argmax(free)),
        )
        choice = choice.astype(jnp.int32)
        return choice, (pictures, jnp.where(begins, choice, NONE).astype(jnp.int32))


class Sweeper(eqx.Module):
    """A player without a memory that compares the first card with each other card in turn.

    The pair in vain that still lies face up tells which card was compared last. With k pairs left
    the partner of the first card is found after k turns on average, so that n (n - 1) / 2 turns are
    in vain and the return is (n + 1) / 2.
    """

    pairs: int = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Concentration) -> Sweeper:
        """Make the player of a number of pairs."""
        return cls(task.pairs)

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Turn over the card after the one that was compared last, then the first card."""
        picture = jnp.argmax(view.observation.reshape(2 * self.pairs, self.pairs + 1), axis=1)
        up, number = picture < self.pairs, jnp.arange(2 * self.pairs)
        alone = up & (((picture[:, None] == picture) & up).sum(1) == 1)
        candidates = ~up | alone
        first = jnp.argmax(candidates)
        last = jnp.where(alone, number, first).max()
        following = jnp.argmax(candidates & (number > last))
        return jnp.where(alone.sum() == 1, first, following).astype(jnp.int32), memory
