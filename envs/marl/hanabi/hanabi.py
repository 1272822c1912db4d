"""Hanabi: play cards in the right order, though nobody sees the cards in one's own hand.

Source: Bard et al. 2020, The Hanabi challenge (arXiv:1902.00506), by the rules of the Hanabi
Learning Environment. Cards have one of five colours and a rank from 1 to 5; each colour has three
1, two 2, 3 and 4, and one 5. Every agent sees the hands of its teammates, and not its own. In turn
an agent plays a card, discards one, or hints: it names a colour or a rank to a teammate, and shows
which of the teammate's cards have it. The team plays each colour from 1 to 5. A card that is not
the next one of its colour costs one of three lives, and is discarded. Who plays or discards draws a
card. A hint costs one of eight hint tokens; a discard, or a 5 that is played, gives one back. Once
the deck is empty, every agent has one more turn. The points are the cards played, and 0 if all
lives are lost.

=============  ====================================================================================
observation    one row an agent, ``Box(0, 1, (2, 658))``: the bits of the Hanabi Learning
               Environment in its order: hands of the teammates, deck, fireworks, hints and lives
               left, discards, the last move, and what hints say of all cards, one's own first
action         ``MultiDiscrete([20, 20])``: discard card 0 to 4, the oldest first, play card 0 to
               4, hint a colour (red, yellow, green, white, blue), hint a rank (1 to 5); with more
               agents the colours for each teammate, then the ranks. Only the agent whose turn it is
               moves. Masked: to discard with all hints left, to hint without one or what names no
               card, to use a card that is not there
reward         all agents: change of the points
termination    all lives are lost, the points are complete, or the last turn is over
success        at least 4/5 of all points
context        none: each episode shuffles the same deck
=============  ====================================================================================

``deck="small"`` has two colours, hands of two cards, three hints and one life (Hanabi-Small there).
Three to five agents play with ``agents=3`` to ``5``; from four on a hand has four cards.
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from PIL import Image, ImageDraw

from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.foundation.unknown_names import unknown
from rlbench_suite.numerics.bitset import join_bits

from . import rules
from .observation import bits_of_agents, components
from .rules import (
    COPY_GROUPS,
    DISCARD,
    FIELD,
    FULL_FIELD,
    HINT_COLOUR,
    NO_MOVE,
    PLAY,
    RANKS,
    Hand,
    State,
    Variant,
)

COLOURS = ("red", "yellow", "green", "white", "blue")
INKS = ("firebrick", "goldenrod", "seagreen", "darkgray", "royalblue")
SHARE_OF_SUCCESS = 0.8
"""Share of all points that is a success."""
SMALL_TABLE = 3
"""Largest number of agents that hold five cards each."""


def variant_of(deck: str, agents: int) -> Variant:
    """Return the numbers of a game."""
    if deck == "small":
        return Variant(agents, colours=2, hand_size=2, max_hints=3, max_lives=1)
    hand_size = 5 if agents <= SMALL_TABLE else 4
    return Variant(agents, colours=5, hand_size=hand_size, max_hints=8, max_lives=3)


class Hanabi(Task[tuple[()], State]):
    """The task of this file's docstring."""

    measures: ClassVar[dict[str, str]] = {
        "points": "points so far",
        "lives": "lives that are left",
        "hints": "hints that may be given",
    }
    picture_shape = (300, 400, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.variant = variant_of(card.settings["deck"], card.agents)
        self.size = sum(component.size for component in components(self.variant))
        self.observation_space = self.box(0.0, 1.0, (card.agents, self.size))
        self.action_space = spaces.MultiDiscrete([self.variant.actions] * card.agents)
        self.reward_space = self.box(-self.variant.max_points, 1, (card.agents,))

    # -- the functions of an episode ---------------------------------------------------------------

    def sample_params(self, key: jax.Array, split: jax.Array) -> tuple[()]:
        """Return nothing: there is one context."""
        return ()

    def initial(self, key: jax.Array, params: tuple[()]) -> State:
        """Shuffle the deck and deal the hands."""
        deck = rules.shuffle(self.variant, self.bits(key, len(self.variant.deck)))
        return rules.deal(self.variant, deck)

    def transition(
        self, state: State, action: jax.Array, key: jax.Array, params: tuple[()]
    ) -> State:
        """Make the move of the agent whose turn it is."""
        choice = action[0]
        for agent in range(1, self.variant.agents):
            choice = jnp.where(state.turn == agent, action[agent], choice)
        return rules.next_state(self.variant, state, choice.astype(jnp.int32))

    def acting(self, state: State, params: tuple[()]) -> jax.Array:
        """Return whose turn it is."""
        return np.arange(self.variant.agents) == state.turn

    def action_mask(self, state: State, params: tuple[()]) -> jax.Array:
        """Return the legal actions of who moves, and all for those who wait."""
        fields = []
        for agent in range(self.variant.agents):
            waits = state.turn != agent
            for bits, width in rules.legal_actions(self.variant, state, agent):
                fields.append((jnp.where(waits, np.uint32(2**width - 1), bits), width))
        return flags(join_bits(fields), self.variant.agents * self.variant.actions) == 1

    def observation(self, state: State, key: jax.Array, params: tuple[()]) -> jax.Array:
        """Return what each agent sees, ``(agents, size)``; see :mod:`observation`."""
        rows = [join_bits(bits) for bits in bits_of_agents(self.variant, state)]
        return flags(jnp.stack(rows), self.size).astype(self.dtype)

    def reward(
        self,
        state: State,
        action: jax.Array,
        next_state: State,
        key: jax.Array,
        params: tuple[()],
    ) -> jax.Array:
        """Return the change of the points for each agent, ``(agents,)``."""
        gain = rules.points(next_state) - rules.points(state)
        return jnp.broadcast_to(gain.astype(self.dtype), (self.variant.agents,))

    def terminal(self, state: State, key: jax.Array, params: tuple[()]) -> jax.Array:
        """Return whether the game is over."""
        return rules.is_over(self.variant, state)

    def info(self, state: State, params: tuple[()]) -> dict[str, jax.Array]:
        """Return ``success`` and the measures."""
        total = rules.points(state)
        return {
            "success": total >= int(SHARE_OF_SUCCESS * self.variant.max_points),
            "points": total,
            "lives": state.lives,
            "hints": state.hints,
        }

    # -- names, text and pixels --------------------------------------------------------------------

    def observation_components(self) -> tuple[Component, ...]:
        """Name the bits of an agent's row."""
        return components(self.variant)

    def action_components(self) -> tuple[Component, ...]:
        """List the actions; a joint action has one entry an agent."""
        colours = COLOURS[: self.variant.colours]
        cards = range(self.variant.hand_size)
        names = [f"{verb} {i}" for verb in ("discard", "play") for i in cards]
        for values in (colours, range(1, RANKS + 1)):
            for teammate in range(1, self.variant.agents):
                names += [f"hint {value} to teammate {teammate}" for value in values]
        meaning = ", ".join(f"{number} {name}" for number, name in enumerate(names))
        return (Component("action", f"[agent]: {meaning}", shape=(self.card.agents,)),)

    def describe(self, state: State, params: tuple[()]) -> str:
        """Describe what the agent sees whose turn it is."""
        turn = int(state.turn)
        agents = self.variant.agents
        lines = [
            f"It is the turn of agent {turn}. Left are {int(state.hints)} hints, "
            f"{int(state.lives)} lives, and {len(self.variant.deck) - int(state.dealt)} cards in "
            "the deck.",
            f"Played: {self._fireworks_in_words(state)}.",
            f"Discarded: {self._discards_in_words(state)}.",
            f"Last move: {self._last_move_in_words(state)}.",
        ]
        for i in range(agents):
            agent = (turn + i) % agents
            hand = state.hands[agent]
            cards = [] if agent == turn else cards_of(hand)
            holds = f"holds {', '.join(card_in_words(*card) for card in cards)}, and " if i else ""
            knowledge = "; ".join(self._knowledge_in_words(hand))
            lines.append(f"Agent {agent} {holds}can tell of its cards: {knowledge}.")
        return "\n".join(lines)

    def _fireworks_in_words(self, state: State) -> str:
        heights = [
            f"{name} {(int(state.fireworks) >> RANKS * i & int(FULL_FIELD)).bit_count()}"
            for i, name in enumerate(COLOURS[: self.variant.colours])
        ]
        return ", ".join(heights)

    def _discards_in_words(self, state: State) -> str:
        cards = [
            card_in_words(colour, rank)
            for colour, word in enumerate(state.discards)
            for rank, group in enumerate(COPY_GROUPS)
            for _ in range((int(word) & group).bit_count())
        ]
        return ", ".join(cards) or "nothing"

    def _last_move_in_words(self, state: State) -> str:
        move = state.last_move
        kind = int(move.kind)
        if kind == NO_MOVE:
            return "none"
        actor = f"agent {int(move.actor)}"
        if kind in (DISCARD, PLAY):
            card = card_in_words(*divmod(int(move.card).bit_length() - 1, RANKS))
            result = "" if kind == DISCARD else ", right" if move.scored else ", wrong"
            return f"{actor} {('discarded', 'played')[kind]} {card}{result}"
        value = COLOURS[int(move.value)] if kind == HINT_COLOUR else int(move.value) + 1
        slots = [str(i) for i in range(self.variant.hand_size) if int(move.touched) >> i & 1]
        return f"{actor} hinted {value} to agent {int(move.target)}, cards {' '.join(slots)}"

    def _knowledge_in_words(self, hand: Hand) -> list[str]:
        """Return what hints say of each card of a hand."""
        phrases = []
        for slot in range(int(hand.ranks).bit_count()):
            shift = FIELD * slot
            colours = [
                name
                for i, name in enumerate(COLOURS)
                if int(hand.possible_colours) >> shift + i & 1
            ]
            ranks = [str(i + 1) for i in range(RANKS) if int(hand.possible_ranks) >> shift + i & 1]
            hinted = int(hand.hinted_colours) | int(hand.hinted_ranks)
            mark = " (hinted)" if hinted >> shift & int(FULL_FIELD) else ""
            phrases.append(f"{slot}: {'/'.join(colours)} {'/'.join(ranks)}{mark}")
        return phrases

    def rules(self) -> str:
        """Return the rules of the game."""
        variant = self.variant
        return (
            f"Hanabi for {variant.agents} agents, all of whom you play in turn. The deck has "
            f"{variant.colours} colours, each with three 1, two 2, two 3, two 4 and one 5. Build "
            "each colour from 1 to 5. A card that is not the next one of its colour costs one of "
            f"{variant.max_lives} lives; with the last one all points are lost. A hint names a "
            "colour or a rank, and shows which cards of a teammate have it; it costs one of "
            f"{variant.max_hints} hints. A discard, or a 5 that is played, gives one back. Cards "
            "are counted from 0, the oldest first. When the deck is empty, each agent has one more "
            "turn."
        )

    def how_to_act(self) -> str:
        """Tell a text player how to answer."""
        return (
            "Answer with one move: `play CARD`, `discard CARD`, or `hint AGENT VALUE`, such as "
            "`play 0`, `hint 1 red` or `hint 1 3`."
        )

    def parse(self, text: str, state: State, params: tuple[()]) -> np.ndarray:
        """Return the move of the agent whose turn it is, and anything for the others.

        Raises:
            ValueError: the text is no move.
        """
        moves = self._moves(int(state.turn))
        words = " ".join(text.lower().split())
        if words not in moves:
            raise ValueError(unknown("move", text, moves))
        action = np.array(self.noop_action())
        action[int(state.turn)] = moves.index(words)
        return action

    def spell(self, action: np.ndarray, state: State, params: tuple[()]) -> str:
        """Return the move of the agent whose turn it is."""
        return self._moves(int(state.turn))[int(action[int(state.turn)])]

    def _moves(self, agent: int) -> list[str]:
        """Return the words for each action of an agent."""
        cards = range(self.variant.hand_size)
        agents = self.variant.agents
        moves = [f"{verb} {card}" for verb in ("discard", "play") for card in cards]
        for values in (COLOURS[: self.variant.colours], range(1, RANKS + 1)):
            for i in range(1, agents):
                moves += [f"hint {(agent + i) % agents} {value}" for value in values]
        return moves

    def why_illegal(self, action: np.ndarray, state: State, params: tuple[()]) -> str:
        """Say which rule forbids the move."""
        choice = int(action[int(state.turn)])
        cards = self.variant.hand_size
        if choice >= 2 * cards:
            return "no card has it" if state.hints else "no hints are left"
        if choice % cards >= int(state.hands[int(state.turn)].ranks).bit_count():
            return "there is no such card"
        return "no card may be discarded while all hints are left"

    def why_over(self, state: State, params: tuple[()], info: dict[str, Any]) -> str:
        """Say how the game ended."""
        if not state.lives:
            return "all lives are lost"
        return "all cards are played" if state.final_turns else "the deck is empty"

    def draw(self, state: State, params: tuple[()]) -> np.ndarray:
        """Draw the fireworks in the first row, and the hand of each agent in a row."""
        height, width, _ = self.picture_shape
        image = Image.new("RGB", (width, height), "white")
        canvas = ImageDraw.Draw(image)
        heights = [
            (int(state.fireworks) >> RANKS * i & int(FULL_FIELD)).bit_count()
            for i in range(self.variant.colours)
        ]
        rows = [list(enumerate(number - 1 for number in heights))]
        rows += [cards_of(hand) for hand in state.hands]
        for row, cards in enumerate(rows):
            top = 10 + 44 * row
            mark = ">" if row == int(state.turn) + 1 else ""
            canvas.text((8, top + 14), mark, fill="black")
            for column, (colour, rank) in enumerate(cards):
                start = 24 + 50 * column
                canvas.rectangle((start, top, start + 40, top + 36), fill=INKS[colour])
                canvas.text((start + 16, top + 12), str(rank + 1), fill="black")
        canvas.text((290, 14), f"hints {int(state.hints)}\nlives {int(state.lives)}", fill="black")
        return np.asarray(image)


def flags(words: jax.Array, count: int) -> jax.Array:
    """Return the first bits of rows of words ``(..., n)``, the lowest first, ``(..., count)``."""
    bits = words[..., None] >> np.arange(32, dtype=np.uint32) & 1
    return bits.reshape(*words.shape[:-1], -1)[..., :count]


def cards_of(hand: Hand) -> list[tuple[int, int]]:
    """Return colour and rank of each card of a hand, on the host."""
    shifts = [FIELD * slot for slot in range(int(hand.ranks).bit_count())]
    return [
        (
            (int(hand.colours) >> shift & int(FULL_FIELD)).bit_length() - 1,
            (int(hand.ranks) >> shift & int(FULL_FIELD)).bit_length() - 1,
        )
        for shift in shifts
    ]


def card_in_words(colour: int, rank: int) -> str:
    """Return a card in words."""
    return f"{COLOURS[colour]} {rank + 1}"
