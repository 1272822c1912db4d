"""The reference player of Hanabi: its hints mean more than they say, by conventions of the team.

The conventions are the first ones of the H-Group (hanabi.github.io), which people play by:

* The *chop*, the oldest card that no hint has touched, is discarded first.
* Cards that a hint touches are useful, and no copies of each other.
* A hint is about its *focus*: the chop if the hint touches it, else the newest card that it touches
  for the first time, else the newest card that it touches.
* The focus is playable. On the chop it may be a card to save instead: the last copy of a useful
  card, or a 2 if the hint is of a rank. A 5 is saved by its rank.

An agent plays a card that can only be playable, by hints, conventions and the cards in its sight.
It rates a hint by what the teammate will then play, as the teammate reads it, and gives none after
which the teammate would play a wrong card.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import Flag, FlagArray, Float, Int, IntArray
from rlbench_suite.core.component import named
from rlbench_suite.core.policy import View

from .hanabi import Hanabi
from .observation import components
from .rules import COPIES, RANKS, Variant

Sight = dict[str, jax.Array]
"""An observation as flags, by the names of its components."""

NEVER = -1e3
"""Score of what is not to be done."""
UNWISE = -40.0
"""Score of a hint that breaks a convention, less 10 for each card that is then played wrongly."""


class Weights(NamedTuple):
    """Score of a hint: what each card that it touches counts."""

    play: Float = 10.0
    """A card that the teammate will now play."""
    news: Float = 0.5
    """A card touched for the first time."""
    information: Float = 0.04
    """An identity that the teammate excludes."""
    useless: Float = -6.0
    """A card touched for the first time that is of no use."""
    copy: Float = -2.0
    """A card touched for the first time whose copy in that hand is touched."""
    copy_of_mine: Float = -9.0
    """A card touched for the first time whose copy one holds oneself."""
    news_in_vain: Float = -5.0
    """A hint that only passes the time, and touches a card for the first time."""


class Memory(NamedTuple):
    """Hands of all agents as the team reads them, one's own first."""

    meant: FlagArray
    """Identities that conventions leave for each card, bool ``(agents, cards, identities)``."""
    hinted: FlagArray
    """Cards that a hint had touched before the next move, bool ``(agents, cards)``."""


class Table(NamedTuple):
    """Identities by what lies on the table, each bool ``(identities,)``."""

    playable: FlagArray
    useful: FlagArray
    """Identities that can still be played, now or later."""
    critical: FlagArray
    """Useful identities with one copy that is not discarded."""
    twos: FlagArray
    """Useful cards of rank 2."""
    gone: IntArray
    """Copies that were played or discarded, int32."""
    exhausted: FlagArray
    """Identities of which all copies were played or discarded."""


class Belief(NamedTuple):
    """A hand as the team reads it."""

    possible: FlagArray
    """Identities that hints leave for each card, bool ``(cards, identities)``."""
    meant: FlagArray
    """Identities that conventions leave."""
    hinted: FlagArray
    """Cards that a hint has touched, bool ``(cards,)``."""

    @property
    def present(self) -> FlagArray:
        """Places that hold a card."""
        return self.possible.any(-1)

    @property
    def unhinted(self) -> FlagArray:
        """Cards that no hint has touched."""
        return self.present & ~self.hinted

    def candidates(self, table: Table, exhausted: FlagArray) -> FlagArray:
        """Return the identities that each card may have; a card with a hint is useful."""
        may_be = table.useful | ~self.hinted[:, None]
        return self.possible & ~exhausted & self.meant & may_be

    def plays(self, table: Table) -> FlagArray:
        """Return the cards that the team takes for playable."""
        candidates = self.candidates(table, table.exhausted)
        return candidates.any(-1) & ~(candidates & ~table.playable).any(-1)

    def trash(self, table: Table, exhausted: FlagArray) -> FlagArray:
        """Return the cards that cannot be of use."""
        return self.present & ~(self.possible & ~exhausted & self.meant & table.useful).any(-1)


class Hint(NamedTuple):
    """Hints that an agent may give, each entry with a row for each of them."""

    teammate: Int
    """Receiver, counted from 0 for the next agent."""
    is_rank: Flag
    value: Int


class Rating(NamedTuple):
    """Worth of a hint."""

    is_wise: Flag
    """Whether the teammate reads it right, and plays no wrong card then."""
    score: Float
    plays: Int
    """Cards that the teammate will play because of it."""
    is_news: Flag
    """Whether it touches a card for the first time."""
    saves: Flag
    """Whether it touches a chop that is worth to be saved."""
    corrects: Flag
    """Whether the teammate would have played a wrong card without it."""
    harm: Int
    """Cards that the teammate would play wrongly after it."""


class Conventions(eqx.Module):
    """The player of this file's docstring; each agent reads what it sees itself."""

    weights: Weights
    variant: Variant = eqx.field(static=True)

    @classmethod
    def for_task(cls, task: Hanabi) -> Conventions:
        """Return the player with its own weights."""
        return cls(Weights(), task.variant)

    def initial(self, params: Any) -> Memory:
        """Return the memory of all agents: no hint was given."""
        shape = (self.variant.agents, self.variant.agents, self.variant.hand_size)
        return Memory(jnp.ones((*shape, self.variant.max_points), bool), jnp.zeros(shape, bool))

    def act(self, memory: Memory, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return an action of each agent, as if all had the turn, and what they remember."""
        assert view.action_mask is not None
        masks = view.action_mask.reshape(self.variant.agents, -1)
        return jax.vmap(self.act_alone)(memory, view.observation, masks)

    def act_alone(
        self, memory: Memory, observation: jax.Array, mask: jax.Array
    ) -> tuple[jax.Array, Memory]:
        """Return the action of an agent and its next memory."""
        sight = named(components(self.variant), observation > 0.5)
        table = table_of(sight)
        hands = self.read_last_move(memory, sight, table)
        ratings = jax.vmap(lambda hint: self.rate(hint, sight, table, hands))(self.all_hints())
        action = self.choose(sight, table, hands, ratings, mask)
        return action, Memory(hands.meant, hands.hinted)

    def all_hints(self) -> Hint:
        """Return all hints in the order of their actions."""
        teammates = range(self.variant.agents - 1)
        hints = [(i, False, value) for i in teammates for value in range(self.variant.colours)]
        hints += [(i, True, value) for i in teammates for value in range(RANKS)]
        return Hint(*(np.array(entries) for entries in zip(*hints, strict=True)))

    # -- what hints mean ---------------------------------------------------------------------------

    def read_last_move(self, memory: Memory, sight: Sight, table: Table) -> Belief:
        """Return the hands of all agents after the last move, entries ``(agents, ...)``."""
        possible = sight["knowledge"][..., : self.variant.max_points]
        hinted = sight["knowledge"][..., self.variant.max_points :].any(-1)
        is_play, is_discard, _, names_rank = sight["last_kind"]
        # Where a card was played or discarded, newer cards have moved down by a place.
        slot = jnp.argmax(sight["last_slot"])
        moves_down = np.arange(self.variant.hand_size) >= slot
        moves_down = moves_down & (sight["last_actor"] & (is_play | is_discard))[:, None]
        meant = jnp.where(moves_down[..., None], next_cards(memory.meant, True), memory.meant)
        hinted_before = jnp.where(moves_down, next_cards(memory.hinted, False), memory.hinted)
        before = Belief(possible, meant, hinted_before)
        by_hint = jax.vmap(read_hint, (0, None, None, None))(
            before, sight["last_touched"], names_rank, table
        )
        meant = jnp.where(sight["last_target"][:, None, None], by_hint, meant)
        return Belief(possible, meant, hinted)

    def rate(self, hint: Hint, sight: Sight, table: Table, hands: Belief) -> Rating:
        """Return the worth of a hint."""
        weights = self.weights
        cards = sight["hands"][hint.teammate].reshape(self.variant.hand_size, -1)
        before = Belief(*(entries[1:][hint.teammate] for entries in hands))
        colours, ranks = np.divmod(np.arange(self.variant.max_points), RANKS)
        has_value = jnp.where(hint.is_rank, ranks == hint.value, colours == hint.value)
        touched = (cards & has_value).any(-1)
        news = touched & ~before.hinted
        possible = before.possible & (has_value == touched[:, None])
        meant = read_hint(before._replace(possible=possible), touched, hint.is_rank, table)
        after = Belief(possible, meant, before.hinted | touched)
        candidates_before = before.candidates(table, table.exhausted)
        candidates = after.candidates(table, table.exhausted)
        plays_before = before.plays(table)
        plays = after.plays(table)
        is_playable = (cards & table.playable).any(-1)
        is_useful = (cards & table.useful).any(-1)
        is_copy = (cards[:, None] & cards).any(-1) & ~np.eye(self.variant.hand_size, dtype=bool)
        plays_copies = (plays[:, None] & plays & is_copy).any()
        is_right = ~(touched & is_useful & ~(cards & meant & possible).any(-1)).any()
        my_hand = Belief(*(entries[0] for entries in hands))
        my_candidates = my_hand.candidates(table, exhausted_for_me(sight, table))
        is_certain = my_hand.hinted & (my_candidates.sum(-1) == 1)
        my_cards = (my_candidates & is_certain[:, None]).any(0)
        excluded = jnp.where(after.hinted, candidates_before.sum(-1) - candidates.sum(-1), 0).sum()
        new_plays = (plays & ~plays_before & is_playable).sum()
        chop = jnp.argmax(before.unhinted)
        harm = (plays & ~is_playable).sum()
        return Rating(
            is_wise=touched.any() & (harm == 0) & ~plays_copies & is_right,
            score=weights.play * new_plays
            + weights.news * news.sum()
            + weights.information * excluded
            + weights.useless * (news & ~is_useful).sum()
            + weights.copy * (news & (after.hinted & is_copy).any(-1)).sum()
            + weights.copy_of_mine * (news & (cards & my_cards).any(-1)).sum(),
            plays=new_plays,
            is_news=news.any(),
            saves=news[chop] & (cards[chop] & (table.critical | table.twos)).any(),
            corrects=(plays_before & ~is_playable).any(),
            harm=harm,
        )

    # -- what to do --------------------------------------------------------------------------------

    def choose(
        self,
        sight: Sight,
        table: Table,
        hands: Belief,
        ratings: Rating,
        mask: jax.Array,
    ) -> jax.Array:
        """Return the action: correct, save, play, hint, discard, or pass the time by a hint."""
        cards = self.variant.hand_size
        hints = self.all_hints()
        is_legal = mask[2 * cards :]
        is_wise = ratings.is_wise & is_legal
        for_next = hints.teammate == 0
        my_hand = Belief(*(entries[0] for entries in hands))
        candidates = my_hand.candidates(table, exhausted_for_me(sight, table))
        passing = jnp.where(
            is_wise,
            ratings.score + self.weights.news_in_vain * (ratings.is_news & ~ratings.saves),
            jnp.where(is_legal, UNWISE - 10 * ratings.harm, NEVER),
        )
        discarded = self.card_to_discard(sight, table, my_hand, candidates)
        # A discard brings the end of the deck nearer, and with it the last turn.
        turns = sight["deck"].sum() + self.variant.agents
        hurries = (turns <= table.useful.sum()) & (passing.max() > UNWISE)
        action = jnp.where(mask[discarded] & ~hurries, discarded, 2 * cards + jnp.argmax(passing))
        helps = is_wise & (ratings.plays > 0) & (ratings.score > 0)
        action = self.best_hint(helps, ratings.score, action)
        plays = self.cards_to_play(sight, table, my_hand, candidates)
        ranks = np.arange(self.variant.max_points) % RANKS
        lowest = jnp.where(candidates, ranks, RANKS).min(-1)
        card = jnp.argmin(jnp.where(plays, lowest, RANKS + 1))
        action = jnp.where(plays.any(), cards + card, action)
        rescues = is_wise & for_next & (ratings.saves | (ratings.plays > 0))
        rescues = rescues & self.is_next_in_danger(sight, table, hands)
        action = self.best_hint(rescues, ratings.score + 0.5 * ratings.saves, action)
        corrects = is_wise & for_next & ratings.corrects
        return self.best_hint(corrects, ratings.score, action).astype(jnp.int32)

    def best_hint(self, may_give: jax.Array, score: jax.Array, action: jax.Array) -> jax.Array:
        """Return the hint of the best score among some, or an action if there is none."""
        best = jnp.argmax(jnp.where(may_give, score, NEVER))
        return jnp.where(may_give.any(), 2 * self.variant.hand_size + best, action)

    def cards_to_play(
        self, sight: Sight, table: Table, my_hand: Belief, candidates: FlagArray
    ) -> FlagArray:
        """Return the playable cards of one's own; the last of several lives trusts hints alone."""
        plays = candidates.any(-1) & ~(candidates & ~table.playable).any(-1)
        possible = my_hand.possible & ~exhausted_for_me(sight, table)
        is_sure = ~(possible & ~table.playable).any(-1)
        trusts = (sight["lives"].sum() > 1) | (self.variant.max_lives == 1)
        return plays & (is_sure | trusts)

    def card_to_discard(
        self, sight: Sight, table: Table, my_hand: Belief, candidates: FlagArray
    ) -> jax.Array:
        """Return a card without use, the chop, or one that is not critical."""
        trash = my_hand.trash(table, exhausted_for_me(sight, table))
        spare = my_hand.present & ~(candidates & table.critical).any(-1)
        choices = [trash, my_hand.unhinted, spare, my_hand.present]
        card = jnp.argmax(choices[-1])
        for choice in choices[-2::-1]:
            card = jnp.where(choice.any(), jnp.argmax(choice), card)
        return card

    def is_next_in_danger(self, sight: Sight, table: Table, hands: Belief) -> jax.Array:
        """Return whether the next agent is about to discard a card that the team needs."""
        teammate = Belief(*(entries[1] for entries in hands))
        cards = sight["hands"].reshape(-1, self.variant.hand_size, self.variant.max_points)
        chop = cards[0, jnp.argmax(teammate.unhinted)]
        is_single = cards.sum((0, 1)) == 1
        is_needed = (chop & (table.critical | table.twos & is_single)).any()
        is_busy = (teammate.plays(table) | teammate.trash(table, table.exhausted)).any()
        return ~is_busy & teammate.unhinted.any() & is_needed


def table_of(sight: Sight) -> Table:
    """Return the identities by what lies on the table."""
    # A firework shows its highest card only.
    completed = jnp.flip(jnp.cumsum(jnp.flip(sight["fireworks"], 1), 1), 1) > 0
    ends = np.cumsum(COPIES)
    discards = jnp.stack(
        [
            sight["discards"][:, end - copies : end].sum(1)
            for end, copies in zip(ends, COPIES, strict=True)
        ],
        1,
    )
    copies = np.array(COPIES)
    remain = copies - discards
    can_follow = jnp.cumprod(completed | (remain > 0), 1) > 0
    useful = ~completed & can_follow
    playable = useful & (np.arange(RANKS) == completed.sum(1)[:, None])
    gone = discards + completed
    return Table(
        playable=playable.reshape(-1),
        useful=useful.reshape(-1),
        critical=(useful & (remain == 1)).reshape(-1),
        twos=(useful & (np.arange(RANKS) == 1)).reshape(-1),
        gone=gone.reshape(-1),
        exhausted=(gone >= copies).reshape(-1),
    )


def exhausted_for_me(sight: Sight, table: Table) -> FlagArray:
    """Return the identities of which an agent sees all copies, with those of its teammates."""
    in_hands = sight["hands"].sum((0, 1)).reshape(-1)
    copies = np.tile(COPIES, in_hands.shape[0] // RANKS)
    return table.gone + in_hands >= copies


def read_hint(before: Belief, touched: FlagArray, is_rank: Flag, table: Table) -> FlagArray:
    """Return the identities that conventions leave to each card of a hand after a hint.

    Args:
        before: the hand, with what the hint says and without what it means.
        touched: cards that the hint touches, bool ``(cards,)``.
        is_rank: whether it is of a rank.
        table: what lies on the table.
    """
    news = touched & before.unhinted
    newest = touched.shape[0] - 1
    chop = jnp.argmax(before.unhinted)
    is_on_chop = news[chop]
    focus = jnp.where(
        is_on_chop,
        chop,
        newest - jnp.argmax(jnp.where(news.any(), news, touched)[::-1]),
    )
    fives = np.arange(table.useful.shape[0]) % RANKS == RANKS - 1
    saved = table.critical & (~fives | is_rank) | table.twos & is_rank
    about = before.meant & table.useful & (table.playable | saved & is_on_chop)
    is_focus = touched & (np.arange(touched.shape[0]) == focus)
    is_focus = is_focus & (about & before.possible).any(-1)
    meant = jnp.where(news[:, None], before.meant & table.useful, before.meant)
    return jnp.where(is_focus[:, None], about, meant)


def next_cards(entries: jax.Array, fill: bool) -> jax.Array:
    """Return entries ``(agents, cards, ...)`` moved down by a card, with a value for the newest."""
    newest = jnp.full_like(entries[:, :1], fill)
    return jnp.concatenate([entries[:, 1:], newest], 1)
