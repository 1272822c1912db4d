"""Kuhn and Leduc poker against OpenSpiel's records and values, and rules written out."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pettingzoo
import pytest
from pettingzoo.test import api_test, parallel_api_test

from rlbench_suite.adapters.parallel import TaskParallelEnv
from rlbench_suite.adapters.rollout import play
from rlbench_suite.checking.checks import findings
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.envs.games.poker.betting import RULES, Betting
from rlbench_suite.envs.games.poker.exploitability import (
    best_response,
    best_responses,
    equilibrium,
    nash_conv,
    normalised,
    table_of,
    uniform_table,
    value,
)
from rlbench_suite.envs.games.poker.players import (
    Equilibrium,
    action_by_kind,
    equilibrium_table,
)
from rlbench_suite.envs.games.poker.poker import Poker, State
from rlbench_suite.envs.games.poker.tabulate import situations, tabulate, tabulate_samples

ID = "rlsuite/Poker-v0"
GAMES = [*RULES]
BETTING = {name: Betting(rules) for name, rules in RULES.items()}

RECORDS: list[tuple[str, list[int], list[int], list[list[int]], int]] = [
    ("kuhn", [2, 1, 0], [0, 1, 1], [[0, 1], [0, 1], [0, 1]], 2),
    ("kuhn", [0, 1, 2], [0, 1, 0], [[0, 1], [0, 1], [0, 1]], -1),
    ("kuhn", [2, 1, 0], [1, 0], [[0, 1], [0, 1]], 1),
    ("leduc", [3, 1, 0], [1, 2, 0], [[1, 2], [1, 2], [0, 1, 2]], -1),
    ("leduc", [4, 0, 2], [1, 1, 2, 2, 0], [[1, 2], [1, 2], [1, 2], [0, 1, 2], [0, 1]], -5),
    ("leduc", [4, 1, 5], [1, 1, 1, 2, 1], [[1, 2], [1, 2], [1, 2], [1, 2], [0, 1, 2]], 5),
]
"""Hands of OpenSpiel 2.0.2, ``kuhn_poker`` and ``leduc_poker``.

Each has the cards of the first side, of the second side and face down, the moves, the legal moves
before each, and what the first side wins.
"""


def game_of(name: str, hands: str = "100") -> Poker:
    return card(ID, game=name, hands=hands).joint().build()


class Hand:
    """The rules written out: a hand as a list of moves."""

    def __init__(self, game: str, cards: list[int]) -> None:
        self.is_leduc = game == "leduc"
        self.cards = [c // 2 for c in cards] if self.is_leduc else cards
        self.paid = [1, 1]
        self.mover, self.round, self.raises, self.checked, self.result = 0, 0, 0, False, None

    def legal_moves(self) -> list[int]:
        if not self.is_leduc:
            return [0, 1]
        fold = [0] if self.paid[self.mover] < self.paid[1 - self.mover] else []
        return [*fold, 1, *([2] if self.raises < 2 else [])]

    def move(self, action: int) -> None:
        opponent = 1 - self.mover
        debt = self.paid[opponent] - self.paid[self.mover]
        if self.is_leduc:
            word = ("fold", "call", "raise")[action]
        else:
            word = ("fold" if debt else "call") if action == 0 else ("call" if debt else "raise")
        if word == "fold":
            self.result = self.paid[self.mover] * (1 if self.mover == 1 else -1)
        elif word == "raise":
            self.paid[self.mover] += debt + ((2, 4)[self.round] if self.is_leduc else 1)
            self.raises, self.mover = self.raises + 1, opponent
        else:
            self.paid[self.mover] += debt
            if not debt and not self.checked:
                self.checked, self.mover = True, opponent
            elif self.is_leduc and self.round == 0:
                self.round, self.mover, self.raises, self.checked = 1, 0, 0, False
            else:
                self.result = self.paid[0] * self.showdown()

    def showdown(self) -> int:
        first, second, public = self.cards
        if first == second:
            return 0
        if self.is_leduc and public in (first, second):
            return 1 if public == first else -1
        return 1 if first > second else -1


@pytest.mark.parametrize(("name", "cards", "moves", "legal", "won"), RECORDS)
def test_a_hand_of_open_spiel(
    name: str, cards: list[int], moves: list[int], legal: list[list[int]], won: int
) -> None:
    game = game_of(name, "1")
    state = State(jnp.array(cards), jnp.int32(0), jnp.int32(0), jnp.int32(0))
    step = jax.jit(game.transition)
    for move, allowed in zip(moves, legal, strict=True):
        assert not game.terminal(state, jax.random.key(0), ())
        assert np.flatnonzero(game.betting.legal[int(state.node)]).tolist() == allowed
        state = step(state, jnp.array([move, move]), jax.random.key(0), ())
    assert game.terminal(state, jax.random.key(0), ())
    assert int(state.chips) == won


@pytest.mark.parametrize("name", GAMES)
def test_random_hands_go_as_the_rules_written_out(name: str) -> None:
    """Three hundred matches side by side: legal moves, winnings, and who moves first."""
    game = game_of(name)
    count, steps = 300, 25
    rng = np.random.default_rng(0)
    keys = jax.random.split(jax.random.key(0), (steps + 1, count))
    states = jax.jit(jax.vmap(lambda key: game.initial(key, ())))(keys[0])
    step = jax.jit(jax.vmap(lambda s, a, k: game.transition(s, a, k, ())))
    mask = jax.jit(jax.vmap(lambda s: game.action_mask(s, ())))
    hands = [Hand(name, row.tolist()) for row in np.asarray(states.cards)]
    chips, number, finished = np.zeros(count, int), np.zeros(count, int), 0
    for t in range(steps):
        masks = np.asarray(mask(states)).reshape(count, 2, -1)
        actions = np.zeros((count, 2), np.int32)
        for i, hand in enumerate(hands):
            agent = (hand.mover + number[i]) % 2
            legal = hand.legal_moves()
            assert np.flatnonzero(masks[i, agent]).tolist() == legal
            assert masks[i, 1 - agent].all()
            actions[i] = rng.choice(legal)
            hand.move(int(actions[i, agent]))
        states = step(states, actions, keys[t + 1])
        for i, hand in enumerate(hands):
            if hand.result is not None:
                chips[i] += hand.result * (1 - 2 * (number[i] % 2))
                number[i] += 1
                finished += 1
                hands[i] = Hand(name, np.asarray(states.cards)[i].tolist())
        np.testing.assert_array_equal(states.chips, chips)
        np.testing.assert_array_equal(states.hand, number)
    assert finished > 1_000


@pytest.mark.parametrize("name", GAMES)
def test_every_deal_is_as_likely(name: str) -> None:
    game = game_of(name)
    cards = np.asarray(jax.vmap(game.deal)(jax.random.split(jax.random.key(0), 12_000)))
    _, counts = np.unique(cards, axis=0, return_counts=True)
    expected = len(cards) / len(game.betting.deals)
    assert len(counts) == len(game.betting.deals)
    assert ((counts - expected) ** 2 / expected).sum() < 1.5 * len(counts)  # chi squared


# -- what one side sees ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", GAMES)
def test_nothing_shows_the_other_card_nor_one_that_lies_face_down(name: str) -> None:
    task = card(ID, game=name).build()
    game = task.game
    for node in np.flatnonzero(~game.betting.is_over).tolist():
        seats = []
        for hidden_ranks in ([2, 1], [1, 2]):
            first, public = hidden_ranks if game.betting.stage[node] == 0 else (hidden_ranks[0], 0)
            scale = 2 if name == "leduc" else 1
            cards = jnp.array([first * scale, 0, public * scale + scale - 1])
            state = State(cards, jnp.int32(node), jnp.int32(0), jnp.int32(0))
            seats.append(
                (
                    np.asarray(game.observation(state, jax.random.key(0), ()))[1].tobytes(),
                    game.describe_seat(state, (), 1),
                    game.draw_seat(state, 1).tobytes(),
                )
            )
        assert seats[0] == seats[1]


@pytest.mark.parametrize("name", GAMES)
def test_an_observation_is_the_information_of_a_side(name: str) -> None:
    game = game_of(name)
    observations, _ = situations(game)
    assert len({row.tobytes() for row in observations}) == len(observations)
    information = jax.jit(jax.vmap(game.information_of))(observations)
    np.testing.assert_array_equal(information, np.arange(len(observations)))


# -- exact values ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "mean", "gain"), [("kuhn", 0.125, 11 / 12), ("leduc", -0.078125, 4.747222)]
)
def test_uniform_play_has_open_spiels_value_and_nash_conv(
    name: str, mean: float, gain: float
) -> None:
    """``expected_game_score`` and ``exploitability.nash_conv`` of OpenSpiel 2.0.2."""
    betting = BETTING[name]
    table = uniform_table(betting)
    assert value(betting, table, table) == pytest.approx(mean, abs=1e-9)
    assert nash_conv(betting, table) == pytest.approx(gain, abs=1e-6)


@pytest.mark.parametrize(("name", "mean"), [("kuhn", -1 / 18), ("leduc", -0.0856)])
def test_the_stored_tables_are_equilibria(name: str, mean: float) -> None:
    """Kuhn 1950 proves the first value; the second is the one commonly reported for Leduc."""
    betting = BETTING[name]
    table = normalised(betting, equilibrium_table(name))
    assert value(betting, table, table) == pytest.approx(mean, abs=1e-3)
    assert 0 <= nash_conv(betting, table) < 2e-3


@pytest.mark.parametrize("bluff", [0, 1 / 6, 1 / 3])
def test_kuhns_equilibria_cannot_be_exploited(bluff: float) -> None:
    """His solution has one free number, how often the first side bets a jack."""
    betting = BETTING["kuhn"]
    bets = {
        (): [bluff, 0, 3 * bluff],
        ("call",): [1 / 3, 0, 1],
        ("raise",): [0, 1 / 3, 1],
        ("call", "raise"): [0, bluff + 1 / 3, 1],
    }
    weights = [
        [
            1 - bets[betting.nodes[node].moves[0]][own_rank],
            bets[betting.nodes[node].moves[0]][own_rank],
        ]
        for node, own_rank, _ in betting.information_sets
    ]
    table = np.array(weights)
    assert nash_conv(betting, table) == pytest.approx(0, abs=1e-12)
    assert value(betting, table, table) == pytest.approx(-1 / 18, abs=1e-12)


def test_cfr_plus_comes_closer_with_every_ten_iterations() -> None:
    gains = [nash_conv(BETTING["kuhn"], equilibrium(BETTING["kuhn"], n)) for n in (1, 10, 100)]
    assert gains[0] > 3 * gains[1] > 9 * gains[2]
    leduc = BETTING["leduc"]
    assert nash_conv(leduc, equilibrium(leduc, 30)) < 0.3  # uniform play has 4.7


def test_a_best_response_is_the_best_of_all_pure_strategies() -> None:
    """Kuhn's first side has six information sets, so 64 pure strategies."""
    betting = BETTING["kuhn"]
    weights = np.random.default_rng(0).uniform(size=(12, 2))
    table = normalised(betting, weights)
    rows = [i for i, (node, _, _) in enumerate(betting.information_sets) if not betting.side[node]]
    values = []
    for actions in itertools.product(range(2), repeat=len(rows)):
        pure = table.copy()
        pure[rows] = np.eye(2)[[*actions]]
        values.append(value(betting, pure, table))
    best, response = best_response(betting, table, 0)
    assert best == pytest.approx(max(values), abs=1e-12)
    assert value(betting, response, table) == pytest.approx(best, abs=1e-12)


def test_a_policy_becomes_its_table() -> None:
    game = game_of("kuhn")
    player = Equilibrium.for_task(game)
    sampled = tabulate_samples(game, player, 2_000)
    np.testing.assert_allclose(sampled, player.table, atol=0.05)
    uniform = tabulate(game, lambda observations, mask: mask / mask.sum(1, keepdims=True))
    assert nash_conv(game.betting, uniform) == pytest.approx(11 / 12)


# -- players and scores ----------------------------------------------------------------------------


def test_the_optima_of_the_card_are_those_of_the_tree() -> None:
    for difficulty, optimum in card(ID).optima.items():
        task = card(ID).build(difficulty=difficulty)
        best, _ = best_responses(task.game.betting, np.asarray(task.opponent.table))
        assert optimum == pytest.approx(100 * best, abs=1e-2)


def test_the_reference_earns_what_the_tree_says() -> None:
    """Four standard errors of 200 matches."""
    task = card(ID).build()
    totals = play(task, reference_player(task), range(200)).total
    error = totals.std() / np.sqrt(len(totals))
    assert abs(totals.mean() - card(ID).optima["medium"]) < 4 * error


@pytest.mark.parametrize("name", GAMES)
def test_constants_earn_nothing_against_medium(name: str) -> None:
    """To call all bets is the noop action of Leduc, and so the zero of its scale."""
    betting = BETTING[name]
    opponent = np.asarray(card(ID, game=name).build().opponent.table, float)
    for kind in ("call", "raise", "fold"):

        def rule(number: int, own_rank: int, public: int, kind: str = kind) -> int:
            actions = action_by_kind(betting, number)
            return actions.get(kind, actions["call"])

        table = table_of(betting, rule)
        mean = (value(betting, table, opponent) - value(betting, opponent, table)) / 2
        assert mean < 1e-9, kind
        assert mean < -0.6 or kind == "call" or name == "kuhn", kind


def test_an_illegal_action_costs_as_much_as_the_dearest_hand() -> None:
    env: Any = gymnasium.make(ID)
    env.reset(seed=0)
    node = env.unwrapped.state.episode.state.game.node
    while env.unwrapped.action_masks()[0]:
        env.step(1)
        node = env.unwrapped.state.episode.state.game.node
    _, reward, terminated, _, info = env.step(0)
    assert (reward, terminated) == (-13, False)
    assert "no bet to fold to" in info["invalid_reason"]
    assert env.unwrapped.state.episode.state.game.node == node


def test_the_game_of_both_sides_keeps_the_contract() -> None:
    for name in GAMES:
        assert not [f.faults for f in findings(game_of(name)) if f.faults]


def test_pettingzoos_own_tests_pass() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Observation")
        api_test(pettingzoo.make("aec", ID, hands="1"), num_cycles=100)
        parallel_api_test(TaskParallelEnv(game_of("kuhn")), num_cycles=100)
