"""The betting of a hand of Kuhn or Leduc poker, as a tree whose nodes both sides see.

The rules are those of ``kuhn_poker`` and ``leduc_poker`` of OpenSpiel 2.0 (Lanctot et al. 2019,
arXiv:1908.09453), with their numbers of actions and cards. Each side pays one chip before a hand.

===========  =================================  ================================================
\\           Kuhn (Kuhn 1950)                   Leduc (Southey et al. 2005, arXiv:1207.1411)
===========  =================================  ================================================
deck         jack, queen, king                  two of each
rounds       one                                two; a public card is shown before the second
actions      pass (check or fold), bet or call  fold (only to a bet), call (or check), raise
bet          1                                  2 in the first round, 4 in the second
raises       1                                  2 in a round
showdown     the higher card                    who pairs the public card, else the higher card
===========  =================================  ================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

RANKS = ("jack", "queen", "king")
Kind = Literal["fold", "call", "raise"]
"""The meaning of an action: a check is a call of nothing."""


class Rules(NamedTuple):
    """Rules in which the two games differ."""

    actions: tuple[str, ...]
    deck: tuple[int, ...]
    """Rank of each card."""
    bets: tuple[int, ...]
    """Chips of a bet or raise in each round."""
    max_raises: int
    """Bets and raises in a round, at most."""

    def kinds(self, faces_bet: bool, raises: int) -> dict[int, Kind]:
        """Return what each legal action means."""
        if len(self.actions) == 2:
            return {0: "fold", 1: "call"} if faces_bet else {0: "call", 1: "raise"}
        kinds: dict[int, Kind] = {0: "fold", 1: "call", 2: "raise"}
        if not faces_bet:
            del kinds[0]
        if raises == self.max_raises:
            del kinds[2]
        return kinds


RULES = {
    "leduc": Rules(("fold", "call", "raise"), (0, 0, 1, 1, 2, 2), (2, 4), 2),
    "kuhn": Rules(("pass", "bet"), (0, 1, 2), (1,), 1),
}


class Node(NamedTuple):
    """A point of the betting."""

    moves: tuple[tuple[Kind, ...], ...]
    """Moves so far, a tuple for each round that has begun. The first side moves first in each."""
    paid: tuple[int, int]
    """Chips that each side has paid."""
    children: dict[int, int]
    """Number of the next node for each legal action; empty where the hand is over."""
    folded: int
    """Side that has folded; -1 if none has."""

    @property
    def side(self) -> int:
        """The side that moves next."""
        return len(self.moves[-1]) % 2

    @property
    def stage(self) -> int:
        """The round, from 0."""
        return len(self.moves) - 1


def betting_tree(rules: Rules) -> list[Node]:
    """Return all nodes of the betting; a node comes before its children, the root first."""
    nodes: list[Node] = []

    def add(moves: tuple[tuple[Kind, ...], ...], paid: tuple[int, int], folded: int) -> int:
        number = len(nodes)
        node = Node(moves, paid, {}, folded)
        nodes.append(node)
        is_over = folded >= 0 or len(moves) > len(rules.bets)
        if not is_over:
            faces_bet = paid[node.side] < paid[1 - node.side]
            for action, kind in rules.kinds(faces_bet, moves[-1].count("raise")).items():
                node.children[action] = add(*after(node, kind))
        return number

    def after(node: Node, kind: Kind) -> tuple[tuple[tuple[Kind, ...], ...], tuple[int, int], int]:
        """Return moves, chips and folded side after a move."""
        *earlier, current = node.moves
        moves = (*earlier, (*current, kind))
        if kind == "fold":
            return moves, node.paid, node.side
        stake = node.paid[1 - node.side] + (rules.bets[node.stage] if kind == "raise" else 0)
        paid = (stake, node.paid[1]) if node.side == 0 else (node.paid[0], stake)
        ends_round = kind == "call" and len(current) > 0
        return (*moves, ()) if ends_round else moves, paid, -1

    add(((),), (1, 1), -1)
    return nodes


class Betting:
    """The tree of a game as arrays, with its deals and information sets.

    A side knows its card, the public card once it is shown, and all moves. Information sets are
    numbered by node and these ranks; suits play no part.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.nodes = betting_tree(rules)
        count = len(self.nodes)
        self.side = np.array([node.side for node in self.nodes], np.int32)
        self.stage = np.array(
            [min(node.stage, len(rules.bets) - 1) for node in self.nodes], np.int32
        )
        self.paid = np.array([node.paid for node in self.nodes], np.int32)
        self.folded = np.array([node.folded for node in self.nodes], np.int32)
        self.is_over = np.array([not node.children for node in self.nodes])
        self.children = np.tile(np.arange(count, dtype=np.int32)[:, None], len(rules.actions))
        self.legal = np.ones((count, len(rules.actions)), bool)
        """Legal actions, bool ``(nodes, actions)``; all where the hand is over."""
        for number, node in enumerate(self.nodes):
            for action, child in node.children.items():
                self.children[number, action] = child
            if node.children:
                self.legal[number] = np.isin(np.arange(len(rules.actions)), [*node.children])
        self.max_paid = int(self.paid.max())
        self.slots = max(len(moves) for node in self.nodes for moves in node.moves)
        """Most moves of a round."""
        self.moves = self._moves()
        self.deals = np.array([*_deals(len(rules.deck))], np.int32)
        """Cards of the first side, of the second side, and face down, int32 ``(deals, 3)``."""
        self.ranks = np.array(rules.deck, np.int32)[self.deals]
        self.information_sets = [*self._information_sets()]
        """Node, own rank and public rank of each information set; rank -1 is not shown yet."""
        self.information = self._information()
        self.payoffs = np.array([self._payoff(n) for n in range(count)])
        """Chips that the first side wins, ``(nodes, deals)``; 0 while the hand goes on."""

    def _moves(self) -> np.ndarray:
        """Return 1 for each call and raise, ``(nodes, rounds, slots, 2)``."""
        moves = np.zeros((len(self.nodes), len(self.rules.bets), self.slots, 2), np.int32)
        for number, node in enumerate(self.nodes):
            for stage, kinds in enumerate(node.moves[: len(self.rules.bets)]):
                for slot, kind in enumerate(kinds):
                    if kind != "fold":
                        moves[number, stage, slot, int(kind == "raise")] = 1
        return moves

    def _information_sets(self) -> Iterator[tuple[int, int, int]]:
        for number in np.flatnonzero(~self.is_over).tolist():
            for own_rank in range(len(RANKS)):
                for public in range(len(RANKS)) if self.stage[number] else [-1]:
                    yield number, own_rank, public

    def _information(self) -> np.ndarray:
        """Return the information set by node, own and public rank, int32 ``(nodes, 3, 3)``."""
        information = np.zeros((len(self.nodes), len(RANKS), len(RANKS)), np.int32)
        for index, (number, own_rank, public) in enumerate(self.information_sets):
            if public < 0:
                information[number, own_rank] = index
            else:
                information[number, own_rank, public] = index
        return information

    def _payoff(self, number: int) -> np.ndarray:
        if not self.is_over[number]:
            return np.zeros(len(self.deals))
        if self.folded[number] >= 0:
            loser = self.folded[number]
            won = self.paid[number, loser] * (1 if loser == 1 else -1)
            return np.full(len(self.deals), float(won))
        strength = self.ranks[:, :2].astype(float)
        if len(self.rules.bets) > 1:  # a pair with the public card beats all else
            strength[self.ranks[:, :2] == self.ranks[:, 2:]] += len(RANKS)
        return self.paid[number, 0] * np.sign(strength[:, 0] - strength[:, 1])


def _deals(cards: int) -> Iterator[tuple[int, int, int]]:
    """Yield three different cards in all orders."""
    for first in range(cards):
        for second in range(cards):
            for third in range(cards):
                if len({first, second, third}) == 3:
                    yield first, second, third
