"""Hanabi against records of OpenSpiel, and against its rules written out with lists."""

import json
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlbench_suite.adapters.rollout import play
from rlbench_suite.core.component import named
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.marl.hanabi import rules
from rlbench_suite.envs.marl.hanabi.hanabi import Hanabi

RECORDS = json.loads((Path(__file__).parent / "hanabi_records.json").read_text())
"""Games of OpenSpiel 2.0.2, ``hanabi``, which is built on the Hanabi Learning Environment.

Chance is player -1, and deals the cards. Legal actions and the observation of who moves are numbers
in base 16 whose bits are the flags.
"""
COPIES = (3, 2, 2, 2, 1)
DISCARD, PLAY, COLOUR, RANK = 0, 5, 10, 15
"""First action of each kind with two agents."""


@cache
def task_of(agents: int) -> Hanabi:
    task: Hanabi = card("Hanabi-v0", agents=agents).build()
    return task


@cache
def programs(agents: int) -> tuple[Any, Any]:
    task = task_of(agents)

    def look(state: Any) -> Any:
        return (
            task.observation(state, None, ()),
            task.action_mask(state, ()).reshape(agents, -1),
            task.terminal(state, None, ()),
            task.info(state, ()),
        )

    return jax.jit(lambda s, a: task.transition(s, a, None, ())), jax.jit(look)


def bits(flags: Any) -> str:
    return f"{sum(1 << int(i) for i in np.flatnonzero(flags)):x}"


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["game"])
def test_a_game_of_open_spiel(record: dict[str, Any]) -> None:
    """Legal actions, the observation of who moves, and rewards of every move."""
    agents = int(record["game"].removeprefix("hanabi(players=").removesuffix(")"))
    task = task_of(agents)
    step, look = programs(agents)
    turns = list(zip(record["actions"], record["player"], strict=True))
    deals = [action for action, player in turns if player == -1]
    undealt = task.variant.deck.tolist()
    for identity in deals:
        undealt.remove(identity)
    state = rules.deal(task.variant, jnp.array(deals + undealt, jnp.uint8))
    moves = [(action, player) for action, player in turns if player != -1]
    points = 0
    for i, (action, player) in enumerate(moves):
        observation, mask, over, _ = look(state)
        assert not over
        assert int(state.turn) == player
        assert bits(mask[player]) == record["legal"][i]
        assert mask[np.arange(agents) != player].all()
        assert bits(observation[player]) == record["obs"][i]
        state = step(state, jnp.full(agents, action))
        *_, over, info = look(state)
        assert int(info["points"]) - points == record["reward"][i]
        points = int(info["points"])
    assert over


class Game:
    """The rules for two agents written out; a card is (colour, rank), both from 0."""

    def __init__(self, deck: list[int]) -> None:
        cards = [divmod(int(number), 5) for number in deck]
        self.hands = [cards[:5], cards[5:10]]
        self.hints_of = [[self.unknown() for _ in range(5)] for _ in range(2)]
        self.deck = cards[10:]
        self.fireworks, self.discarded = [0] * 5, []
        self.hints, self.lives, self.turn, self.turns_left, self.over = 8, 3, 0, 2, False

    @staticmethod
    def unknown() -> tuple[set[int], set[int]]:
        return set(range(5)), set(range(5))

    def legal(self) -> list[int]:
        cards = range(len(self.hands[self.turn]))
        actions = [DISCARD + i for i in cards] if self.hints < 8 else []
        actions += [PLAY + i for i in cards]
        if self.hints:
            actions += sorted({COLOUR + c for c, _ in self.hands[1 - self.turn]})
            actions += sorted({RANK + r for _, r in self.hands[1 - self.turn]})
        return actions

    def points(self) -> int:
        return sum(self.fireworks) if self.lives else 0

    def move(self, action: int) -> None:
        if not self.deck:
            self.turns_left -= 1
        if action >= COLOUR:
            self.hints -= 1
            for attribute, first in enumerate((COLOUR, RANK)):
                if first <= action < first + 5:
                    self.hint(attribute, action - first)
        else:
            hand = self.hands[self.turn]
            colour, rank = hand.pop(action % 5)
            self.hints_of[self.turn].pop(action % 5)
            if action < PLAY:
                self.hints += 1
                self.discarded.append((colour, rank))
            elif self.fireworks[colour] == rank:
                self.fireworks[colour] += 1
                self.hints += rank == 4 and self.hints < 8
            else:
                self.lives -= 1
                self.discarded.append((colour, rank))
            if self.deck and self.lives and sum(self.fireworks) < 25:
                hand.append(self.deck.pop(0))
                self.hints_of[self.turn].append(self.unknown())
        self.turn = 1 - self.turn
        self.over = not (self.lives and self.turns_left) or sum(self.fireworks) == 25

    def hint(self, attribute: int, value: int) -> None:
        for hand_card, possible in zip(
            self.hands[1 - self.turn], self.hints_of[1 - self.turn], strict=True
        ):
            if hand_card[attribute] == value:
                possible[attribute].intersection_update({value})
            else:
                possible[attribute].discard(value)

    # -- players that see all cards ----------------------------------------------------------------

    def is_playable(self, hand_card: tuple[int, int]) -> bool:
        return self.fireworks[hand_card[0]] == hand_card[1]

    def best_move(self) -> int:
        """Play what is playable, hint while the other one can play, or discard what is spare."""
        hand = self.hands[self.turn]
        in_hands = [*hand, *self.hands[1 - self.turn]]
        playable = [(rank, i) for i, (c, rank) in enumerate(hand) if self.is_playable((c, rank))]
        if playable:
            return PLAY + min(playable)[1]
        legal = self.legal()
        hints = [action for action in legal if action >= COLOUR]
        if hints and (self.hints == 8 or any(map(self.is_playable, self.hands[1 - self.turn]))):
            return hints[0]
        spare = [
            i
            for i, (colour, rank) in enumerate(hand)
            if rank < self.fireworks[colour] or in_hands.count((colour, rank)) > 1
        ]
        if not spare and hints:
            return hints[0]
        counts = [COPIES[rank] - self.discarded.count((c, rank)) for c, rank in hand]
        return DISCARD + (spare[0] if spare else int(np.argmax(counts)))

    def longest_move(self) -> int:
        """Hint while one may, else discard: no game takes longer."""
        hints = [action for action in self.legal() if action >= COLOUR]
        return hints[0] if hints else DISCARD


def check_knowledge(game: Game, knowledge: np.ndarray) -> None:
    """Compare what hints exclude of each card with what each agent sees of it."""
    for agent, hand in enumerate(game.hints_of):
        for slot, (colours, ranks) in enumerate(hand):
            possible = np.zeros((5, 5), bool)
            possible[np.ix_([*colours], [*ranks])] = True
            for observer in range(2):
                flags = knowledge[observer, (agent - observer) % 2, slot, :25]
                np.testing.assert_array_equal(possible.reshape(-1), flags)


def freeze(over: np.ndarray, old: jax.Array, new: jax.Array) -> jax.Array:
    return jnp.where(over.reshape(-1, *(1,) * (old.ndim - 1)), old, new)


def test_rules_over_a_thousand_games() -> None:
    """Every step of games of three kinds, beside the rules written out; cards are conserved."""
    task = task_of(2)
    count = 1200
    generator = np.random.default_rng(0)
    step, look = (jax.jit(jax.vmap(program)) for program in programs(2))
    keys = jax.random.split(jax.random.key(0), count)
    state = jax.jit(jax.vmap(lambda key: task.initial(key, ())))(keys)
    games = [Game(deck) for deck in np.asarray(state.deck)]
    composition = np.bincount(task.variant.deck)
    lengths = np.zeros(count, int)
    for _ in range(card("Hanabi-v0").horizon):
        observation, mask, over, info = jax.tree.map(np.asarray, look(state))
        np.testing.assert_array_equal(over, [game.over for game in games])
        for name in ("points", "hints", "lives"):
            values = [getattr(game, name) for game in games]
            values = [value() if callable(value) else value for value in values]
            np.testing.assert_array_equal(info[name], values)
        view = named(task.observation_components(), observation > 0.5)
        fireworks = np.cumsum(view["fireworks"][:, 0, :, ::-1], 2)[:, :, ::-1].reshape(count, -1)
        groups = np.split(view["discards"][:, 0], np.cumsum(COPIES)[:-1], axis=2)
        discarded = np.stack([group.sum(2) for group in groups], 2).reshape(count, -1)
        in_hands = view["hands"].sum((1, 2, 3)).reshape(count, -1)
        undealt = np.array(
            [np.bincount(d[n:], minlength=25) for d, n in zip(state.deck, state.dealt, strict=True)]
        )
        assert (fireworks + discarded + in_hands + undealt == composition).all()
        actions = np.zeros((count, 2), int)
        for i, game in enumerate(games):
            if game.over:
                continue
            legal = game.legal()
            assert np.flatnonzero(mask[i, game.turn]).tolist() == legal
            if i % 8 == 0:
                check_knowledge(game, view["knowledge"][i])
            if i == 0:
                action = game.longest_move()
            elif i < 200 or generator.random() < 0.7:
                action = game.best_move()
            else:
                action = int(generator.choice(legal))
            actions[i, game.turn] = action
            lengths[i] += 1
            game.move(action)
        next_state = step(state, jnp.asarray(actions))
        state = jax.tree.map(partial(freeze, over), state, next_state)
    assert all(game.over for game in games)
    points = np.array([game.points() for game in games])
    assert points[1:200].mean() > 23  # who sees its own cards comes near to 25
    assert {0, 25} < set(points)
    assert lengths[0] == lengths.max() < card("Hanabi-v0").horizon


def test_nobody_sees_its_own_cards() -> None:
    """A change of one's own cards changes what the teammate sees, and nothing that one sees."""
    task = task_of(2)
    _, look = programs(2)
    state = task.initial(jax.random.key(1), ())
    first, second = state.hands
    changed = state._replace(hands=(first._replace(colours=second.colours), second))
    before, after = (np.asarray(look(each_state)[0]) for each_state in (state, changed))
    assert (before[0] == after[0]).all()
    assert (before[1] != after[1]).any()


def test_decks_are_uniform() -> None:
    """Each identity lies at each place of the deck as often as it has copies."""
    task = task_of(2)
    count = 4000
    keys = jax.random.split(jax.random.key(0), count)
    decks = np.asarray(jax.jit(jax.vmap(lambda key: task.initial(key, ()).deck))(keys))
    shares = np.stack([(decks == identity).mean(0) for identity in range(25)])
    expected = np.bincount(task.variant.deck)[:, None] / 50
    deviation = np.sqrt(expected * (1 - expected) / count)
    assert (abs(shares - expected) < 5 * deviation).all()


def test_the_reference_reads_hints_and_conventions() -> None:
    """It beats HolmesBot, which returns 20.75 by the list of github.com/Quuxplusone/Hanabi."""
    task = task_of(2)
    record = play(task, reference_player(task), range(256))
    assert record.terminated.all()
    assert record.total[:, 0].mean() > 22
    assert (record.info["lives"] > 0).mean() > 0.99


def test_moves_in_words() -> None:
    task = task_of(3)
    state = task.initial(jax.random.key(0), ())._replace(turn=jnp.int32(1))
    for words, action in {"play 4": 9, "discard 0": 0, "hint 2 red": 10, "hint 0 5": 29}.items():
        joint = task.parse(words, state, ())
        assert joint.tolist() == [0, action, 0]
        assert task.spell(joint, state, ()) == words
    assert "2 holds" in task.describe(state, ())
    assert "Agent 1 can tell" in task.describe(state, ())
    with pytest.raises(ValueError, match="hint 1"):
        task.parse("hint 1 red", state, ())
    with pytest.raises(ValueError, match="move"):
        task.parse("play red", state, ())
