"""The observation of an agent in Hanabi: the bits of the Hanabi Learning Environment, in its order.

Agents are counted from the one that observes, in the order of their turns, and cards of a hand from
the oldest.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component

from .rules import (
    COPIES,
    FIELD,
    FULL_FIELD,
    HINT_COLOUR,
    HINT_RANK,
    NO_MOVE,
    PLAY,
    RANKS,
    Hand,
    Move,
    State,
    Variant,
    identities,
)

Bits = list[tuple[jax.Array, int]]
"""Numbers one after another, each with how many of its bits count."""
MAX_WIDTH = 20
"""Bits of a thermometer in one number."""


def components(variant: Variant) -> tuple[Component, ...]:
    """List the entries of an observation."""
    agents, colours, cards = variant.agents, variant.colours, variant.hand_size
    card = (colours, RANKS)
    copies = len(variant.deck) // colours
    undealt = len(variant.deck) - agents * cards
    return (
        Component(
            "hands", "[teammate, card]: its colour and rank", shape=(agents - 1, cards, *card)
        ),
        Component("short", "[agent]: 1 if a card is missing from its hand", shape=(agents,)),
        Component("deck", "as many 1 as cards are in the deck", shape=(undealt,)),
        Component("fireworks", "[colour, rank]: 1 for the rank played last", shape=card),
        Component("hints", "as many 1 as hints may be given", shape=(variant.max_hints,)),
        Component("lives", "as many 1 as lives", shape=(variant.max_lives,)),
        Component(
            "discards",
            f"[colour]: for each rank as many 1 as cards were discarded, of {COPIES}",
            shape=(colours, copies),
        ),
        Component("last_actor", "agent that made the last move", shape=(agents,)),
        Component("last_kind", "play, discard, hint of a colour, hint of a rank", shape=(4,)),
        Component("last_target", "agent that got the hint", shape=(agents,)),
        Component("last_colour", "colour of the hint", shape=(colours,)),
        Component("last_rank", "rank of the hint", shape=(RANKS,)),
        Component("last_touched", "cards that the hint named", shape=(cards,)),
        Component("last_slot", "place of the card played or discarded", shape=(cards,)),
        Component("last_card", "colour and rank of that card", shape=card),
        Component("last_result", "the card scored; it earned a hint", shape=(2,)),
        Component(
            "knowledge",
            "[agent, card]: colours and ranks that hints leave, the colour and the rank hinted",
            shape=(agents, cards, variant.max_points + colours + RANKS),
        ),
    )


def bits_of_agents(variant: Variant, state: State) -> list[Bits]:
    """Return the bits of each agent's observation."""
    cards = [bits_of_cards(variant, hand) for hand in state.hands]
    knowledge = [bits_of_knowledge(variant, hand) for hand in state.hands]
    is_short = [hand.ranks >> FIELD * (variant.hand_size - 1) == 0 for hand in state.hands]
    board = bits_of_board(variant, state)
    observations = []
    for agent in range(variant.agents):
        order = [(agent + i) % variant.agents for i in range(variant.agents)]
        bits: Bits = []
        for teammate in order[1:]:
            bits += cards[teammate]
        bits += [(is_short[i], 1) for i in order]
        bits += board
        bits += bits_of_last_move(variant, state.last_move, agent)
        for teammate in order:
            bits += knowledge[teammate]
        observations.append(bits)
    return observations


def bits_of_cards(variant: Variant, hand: Hand) -> Bits:
    """Return the identity of each card of a hand."""
    return [
        (identities(field(hand.colours, slot), field(hand.ranks, slot)), variant.max_points)
        for slot in range(variant.hand_size)
    ]


def bits_of_knowledge(variant: Variant, hand: Hand) -> Bits:
    """Return what hints say of each card of a hand."""
    bits: Bits = []
    for slot in range(variant.hand_size):
        colours = field(hand.possible_colours, slot)
        ranks = field(hand.possible_ranks, slot)
        bits += [
            (identities(colours, ranks), variant.max_points),
            (field(hand.hinted_colours, slot), variant.colours),
            (field(hand.hinted_ranks, slot), RANKS),
        ]
    return bits


def bits_of_board(variant: Variant, state: State) -> Bits:
    """Return what lies on the table."""
    not_first = ~variant.first_cards & variant.all_identities
    tops = state.fireworks & ~((state.fireworks & not_first) >> 1)
    undealt = len(variant.deck) - variant.agents * variant.hand_size
    return [
        *thermometer(len(variant.deck) - state.dealt, undealt),
        (tops, variant.max_points),
        *thermometer(state.hints, variant.max_hints),
        *thermometer(state.lives, variant.max_lives),
        *((word, sum(COPIES)) for word in state.discards),
    ]


def bits_of_last_move(variant: Variant, move: Move, agent: int) -> Bits:
    """Return the last move as an agent sees it."""
    is_play = move.kind == PLAY
    # The Hanabi Learning Environment counts playing before discarding here.
    kind = jnp.where(move.kind < HINT_COLOUR, 1 - move.kind, move.kind)
    kind = jnp.where(move.kind == NO_MOVE, NO_MOVE, kind)
    colour = jnp.where(move.kind == HINT_COLOUR, move.value, NO_MOVE)
    rank = jnp.where(move.kind == HINT_RANK, move.value, NO_MOVE)
    return [
        (one_hot(relative(variant, move.actor, agent)), variant.agents),
        (one_hot(kind), 4),
        (one_hot(relative(variant, move.target, agent)), variant.agents),
        (one_hot(colour), variant.colours),
        (one_hot(rank), RANKS),
        (move.touched, variant.hand_size),
        (one_hot(move.slot), variant.hand_size),
        (move.card, variant.max_points),
        (is_play & move.scored, 1),
        (is_play & move.earned_hint, 1),
    ]


def relative(variant: Variant, agent: jax.Array, observer: int) -> jax.Array:
    """Return the number of an agent as an observer counts, -1 for no agent."""
    number = jnp.where(agent < observer, agent + variant.agents, agent) - observer
    return jnp.where(agent == NO_MOVE, NO_MOVE, number)


def one_hot(number: jax.Array) -> jax.Array:
    """Return the bit of a number, none for -1."""
    return (number >= 0).astype(jnp.uint32) << jnp.maximum(number, 0).astype(jnp.uint32)


def thermometer(count: jax.Array, width: int) -> Bits:
    """Return as many ones as counted, then zeros."""
    bits: Bits = []
    for start in range(0, width, MAX_WIDTH):
        size = min(MAX_WIDTH, width - start)
        filled = jnp.clip(count - start, 0, size).astype(jnp.uint32)
        bits.append(((np.uint32(1) << filled) - 1, size))
    return bits


def field(word: jax.Array, slot: int) -> jax.Array:
    """Return the five bits of a card in a word of a hand."""
    return word >> FIELD * slot & FULL_FIELD
