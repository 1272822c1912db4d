"""Rules of Hanabi, on words of bits.

They are those of the Hanabi Learning Environment (Bard et al. 2020, arXiv:1902.00506;
github.com/google-deepmind/hanabi-learning-environment), with its numbers of actions. A hand is a
few words with five bits for each card, the oldest card lowest. A set of identities is one word: bit
``5 * colour + rank`` stands for the cards of a colour and a rank, both counted from 0.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rlbench_suite.core.arrays import Flag, Int, UInt8Array, UInt32

RANKS = 5
COPIES = (3, 2, 2, 2, 1)
"""Cards of each rank in each colour."""
FIELD = 5
"""Bits of a card in a word of a hand."""
FULL_FIELD = np.uint32(0b11111)
COPY_GROUPS = (0b111, 0b11 << 3, 0b11 << 5, 0b11 << 7, 0b1 << 9)
"""Bits of the copies of each rank in a word of discards."""
DISCARD, PLAY, HINT_COLOUR, HINT_RANK = range(4)
NO_MOVE = -1


class Variant(NamedTuple):
    """Numbers of a game."""

    agents: int
    colours: int
    hand_size: int
    max_hints: int
    max_lives: int

    @property
    def deck(self) -> np.ndarray:
        """Identities of all cards, uint32 ``(n,)``."""
        ranks = np.repeat(np.arange(RANKS), COPIES)
        return (RANKS * np.arange(self.colours)[:, None] + ranks).reshape(-1).astype(np.uint32)

    @property
    def actions(self) -> int:
        """Number of actions: discard or play a card, hint a colour or a rank to a teammate."""
        return 2 * self.hand_size + (self.agents - 1) * (self.colours + RANKS)

    @property
    def max_points(self) -> int:
        """Points of a game in which all fireworks are complete."""
        return RANKS * self.colours

    @property
    def all_identities(self) -> np.uint32:
        """The set of all identities."""
        return np.uint32(2**self.max_points - 1)

    @property
    def cards_of_a_hand(self) -> np.uint32:
        """The lowest bit of each card of a hand."""
        return np.uint32(sum(1 << FIELD * card for card in range(self.hand_size)))

    @property
    def first_cards(self) -> np.uint32:
        """The set of the lowest card of each colour."""
        return np.uint32(sum(1 << RANKS * colour for colour in range(self.colours)))


class Hand(NamedTuple):
    """Cards of an agent and what its hints say; each is a word with five bits a card."""

    colours: UInt32
    """The colour of each card, one-hot."""
    ranks: UInt32
    """The rank of each card, one-hot; no bit where there is no card."""
    possible_colours: UInt32
    """Colours that the hints leave."""
    possible_ranks: UInt32
    hinted_colours: UInt32
    """The colour that a hint has named, one-hot."""
    hinted_ranks: UInt32


class Move(NamedTuple):
    """A move, and what came of it."""

    actor: Int
    kind: Int
    """-1 before the first move."""
    slot: Int
    """Place of the card that was played or discarded, the oldest card first."""
    target: Int
    """Agent that got a hint."""
    value: Int
    """Colour or rank of the hint."""
    touched: UInt32
    """Cards that a hint has named, one bit each."""
    card: UInt32
    """The identity of the card that was played or discarded, as a set."""
    scored: Flag
    earned_hint: Flag
    """Whether completing a colour gave a hint back."""


class State(NamedTuple):
    """A game."""

    hands: tuple[Hand, ...]
    deck: UInt8Array
    """Identities of all cards in the order in which they are dealt, uint8 ``(n,)``."""
    dealt: Int
    """Number of cards dealt."""
    turn: Int
    """Agent that moves next."""
    fireworks: UInt32
    """The set of identities that were played."""
    discards: tuple[UInt32, ...]
    """Cards discarded of each colour, a bit for each copy (:data:`COPY_GROUPS`)."""
    hints: Int
    """Hints that may be given."""
    lives: Int
    final_turns: Int
    """Moves until the end, which count down once the deck is empty."""
    last_move: Move


def shuffle(variant: Variant, bits: jax.Array) -> jax.Array:
    """Return the deck in the order of random bits, uint32 ``(n,)``; uint8 ``(n,)``."""
    # The identity replaces the five lowest bits: one sort moves numbers and cards together.
    tickets = bits >> FIELD << FIELD | variant.deck
    return (jnp.sort(tickets) & FULL_FIELD).astype(jnp.uint8)


def deal(variant: Variant, deck: jax.Array) -> State:
    """Deal the hands from the top of a deck."""
    zero = jnp.uint32(0)
    hands = []
    for agent in range(variant.agents):
        hand = Hand(zero, zero, zero, zero, zero, zero)
        for slot in range(variant.hand_size):
            card = deck[agent * variant.hand_size + slot].astype(jnp.uint32)
            hand = with_card(variant, hand, card, slot)
        hands.append(hand)
    none = jnp.int32(NO_MOVE)
    no = jnp.bool_(False)
    return State(
        hands=tuple(hands),
        deck=deck,
        dealt=jnp.int32(variant.agents * variant.hand_size),
        turn=jnp.int32(0),
        fireworks=zero,
        discards=(zero,) * variant.colours,
        hints=jnp.int32(variant.max_hints),
        lives=jnp.int32(variant.max_lives),
        final_turns=jnp.int32(variant.agents),
        last_move=Move(none, none, none, none, none, zero, zero, no, no),
    )


def with_card(variant: Variant, hand: Hand, card: jax.Array, slot: int) -> Hand:
    """Return a hand with another card, an identity, in a place that is empty."""
    shift = FIELD * slot
    return Hand(
        hand.colours | np.uint32(1) << card // RANKS << shift,
        hand.ranks | np.uint32(1) << card % RANKS << shift,
        hand.possible_colours | np.uint32((1 << variant.colours) - 1 << shift),
        hand.possible_ranks | FULL_FIELD << shift,
        hand.hinted_colours,
        hand.hinted_ranks,
    )


def without_card(hand: Hand, slot: jax.Array) -> Hand:
    """Return a hand without one of its cards; newer cards move down by a place."""
    older = (np.uint32(1) << (FIELD * slot).astype(jnp.uint32)) - 1
    return Hand(*(word & older | word >> FIELD & ~older for word in hand))


def next_state(variant: Variant, state: State, action: jax.Array) -> State:
    """Make a legal move of the agent whose turn it is."""
    move = read_action(variant, state.turn, action)
    is_discard = move.kind == DISCARD
    moves_card = is_discard | (move.kind == PLAY)
    slot = jnp.where(moves_card, move.slot, 0)
    colour, rank = fields_of_card(state.hands, state.turn, slot)
    card = jnp.where(moves_card, identities(colour, rank), 0)
    scored = (move.kind == PLAY) & (card & playable(variant, state.fireworks) != 0)
    completes = scored & (rank >> RANKS - 1 != 0)
    earned_hint = completes & (state.hints < variant.max_hints)
    lives = state.lives - (moves_card & ~is_discard & ~scored)
    fireworks = state.fireworks | jnp.where(scored, card, 0)
    goes_on = (lives > 0) & (fireworks != variant.all_identities)
    draws = moves_card & goes_on & (state.dealt < len(variant.deck))
    new_card = state.deck[jnp.minimum(state.dealt, len(variant.deck) - 1)].astype(jnp.uint32)
    hands = []
    touched = jnp.uint32(0)
    for agent, hand in enumerate(state.hands):
        shortened = without_card(hand, slot)
        refilled = with_card(variant, shortened, new_card, variant.hand_size - 1)
        is_actor = moves_card & (state.turn == agent)
        informed, cards = after_hint(variant, hand, move, ~moves_card & (move.target == agent))
        touched = touched | cards
        hands.append(select(is_actor, select(draws, refilled, shortened), informed))
    return State(
        hands=tuple(hands),
        deck=state.deck,
        dealt=state.dealt + draws,
        turn=jnp.where(state.turn == variant.agents - 1, 0, state.turn + 1),
        fireworks=fireworks,
        discards=discard(state.discards, moves_card & ~scored, colour, rank),
        hints=state.hints + is_discard + earned_hint - ~moves_card,
        lives=lives,
        final_turns=state.final_turns - (state.dealt == len(variant.deck)),
        last_move=move._replace(touched=touched, card=card, scored=scored, earned_hint=earned_hint),
    )


def read_action(variant: Variant, actor: jax.Array, action: jax.Array) -> Move:
    """Return the move that an action stands for, without what comes of it."""
    cards = variant.hand_size
    colour_hint = action - 2 * cards
    rank_hint = colour_hint - (variant.agents - 1) * variant.colours
    kind = (
        (action >= cards).astype(jnp.int32)
        + (colour_hint >= 0).astype(jnp.int32)
        + (rank_hint >= 0).astype(jnp.int32)
    )
    hint = jnp.where(kind == HINT_RANK, rank_hint, colour_hint)
    values = jnp.where(kind == HINT_RANK, RANKS, variant.colours)
    is_hint = kind >= HINT_COLOUR
    # There are at most four teammates: a division would cost more.
    offset = jnp.int32(1)
    for teammate in range(1, variant.agents - 1):
        offset = offset + (hint >= teammate * values)
    target = actor + offset
    target = jnp.where(target >= variant.agents, target - variant.agents, target)
    return Move(
        actor=actor,
        kind=kind,
        slot=jnp.where(is_hint, NO_MOVE, jnp.where(kind == PLAY, action - cards, action)),
        target=jnp.where(is_hint, target, NO_MOVE),
        value=jnp.where(is_hint, hint - (offset - 1) * values, NO_MOVE),
        touched=jnp.uint32(0),
        card=jnp.uint32(0),
        scored=jnp.bool_(False),
        earned_hint=jnp.bool_(False),
    )


def fields_of_card(
    hands: tuple[Hand, ...], agent: jax.Array, slot: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the colour and the rank of a card in a hand, each one-hot in five bits."""
    colours = hands[0].colours
    ranks = hands[0].ranks
    for number, hand in enumerate(hands[1:], 1):
        colours = jnp.where(agent == number, hand.colours, colours)
        ranks = jnp.where(agent == number, hand.ranks, ranks)
    shift = (FIELD * slot).astype(jnp.uint32)
    return colours >> shift & FULL_FIELD, ranks >> shift & FULL_FIELD


def identities(colours: jax.Array, ranks: jax.Array) -> jax.Array:
    """Return the identities with one of some colours and one of some ranks, as a set."""
    spread_colours = reduce(
        or_, [(colours & np.uint32(1 << i)) << (RANKS - 1) * i for i in range(FIELD)]
    )
    return spread_colours * ranks


def playable(variant: Variant, fireworks: jax.Array) -> jax.Array:
    """Return the identities that may be played next, as a set."""
    # The lowest card of a colour is set anyway, so that no carry from the colour below matters.
    return (fireworks << 1 | variant.first_cards) & ~fireworks & variant.all_identities


def discard(
    discards: tuple[UInt32, ...], is_lost: jax.Array, colour: jax.Array, rank: jax.Array
) -> tuple[UInt32, ...]:
    """Return the discards with a card, if one is lost; its colour and rank are one-hot."""
    group = reduce(or_, [(rank >> i & 1) * np.uint32(bits) for i, bits in enumerate(COPY_GROUPS)])
    lowest = group & ~(group << 1)
    return tuple(
        word | jnp.where(is_lost & (colour >> i & 1 != 0), (word << 1 | lowest) & group, 0)
        for i, word in enumerate(discards)
    )


def after_hint(
    variant: Variant, hand: Hand, move: Move, is_target: jax.Array
) -> tuple[Hand, jax.Array]:
    """Return a hand after a hint, if it is for this hand, and the cards that it names, as bits."""
    is_colour = move.kind == HINT_COLOUR
    value = jnp.where(is_target, move.value, 0).astype(jnp.uint32)
    words = jnp.where(is_colour, hand.colours, hand.ranks)
    marks = words >> value & variant.cards_of_a_hand
    touched = marks * FULL_FIELD
    bits = variant.cards_of_a_hand << value
    consistent = touched & bits | ~touched & ~bits
    names_colour = is_target & is_colour
    names_rank = is_target & ~is_colour
    after = Hand(
        hand.colours,
        hand.ranks,
        jnp.where(names_colour, hand.possible_colours & consistent, hand.possible_colours),
        jnp.where(names_rank, hand.possible_ranks & consistent, hand.possible_ranks),
        jnp.where(names_colour, hand.hinted_colours | touched & bits, hand.hinted_colours),
        jnp.where(names_rank, hand.hinted_ranks | touched & bits, hand.hinted_ranks),
    )
    return after, jnp.where(is_target, compact(marks), 0)


def compact(marks: jax.Array) -> jax.Array:
    """Move the lowest bits of the cards of a hand together, the oldest card lowest."""
    return reduce(or_, [marks >> (FIELD - 1) * i & np.uint32(1 << i) for i in range(FIELD)])


def select(flag: jax.Array, hand: Hand, alternative: Hand) -> Hand:
    """Return one of two hands."""
    return Hand(*(jnp.where(flag, word, w) for word, w in zip(hand, alternative, strict=True)))


def points(state: State) -> jax.Array:
    """Return the cards played; 0 once all lives are lost."""
    return jnp.where(state.lives > 0, lax.population_count(state.fireworks), 0).astype(jnp.int32)


def is_over(variant: Variant, state: State) -> jax.Array:
    """Return whether the game is over."""
    return (
        (state.lives == 0) | (state.fireworks == variant.all_identities) | (state.final_turns == 0)
    )


def legal_actions(variant: Variant, state: State, agent: int) -> list[tuple[jax.Array, int]]:
    """Return the legal actions of an agent whose turn it is, as bits with their number."""
    count = lax.population_count(state.hands[agent].ranks)
    cards = (np.uint32(1) << count) - 1
    may_discard = state.hints < variant.max_hints
    may_hint = state.hints > 0
    teammates = [state.hands[(agent + i) % variant.agents] for i in range(1, variant.agents)]
    colours = [values_in_hand(variant, hand.colours) for hand in teammates]
    ranks = [values_in_hand(variant, hand.ranks) for hand in teammates]
    return [
        (jnp.where(may_discard, cards, 0), variant.hand_size),
        (cards, variant.hand_size),
        *((jnp.where(may_hint, values, 0), variant.colours) for values in colours),
        *((jnp.where(may_hint, values, 0), RANKS) for values in ranks),
    ]


def values_in_hand(variant: Variant, words: jax.Array) -> jax.Array:
    """Return the values that any card of a hand has, five bits."""
    return reduce(or_, [words >> FIELD * i for i in range(variant.hand_size)]) & FULL_FIELD
