"""Connect four against OpenSpiel's records, rules written out, and exhaustive enumeration."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pettingzoo
import pytest
from connect_four_board import Board, value
from pettingzoo.test import api_test, parallel_api_test

from rlbench_suite.adapters.parallel import TaskParallelEnv
from rlbench_suite.adapters.rollout import play
from rlbench_suite.checking.checks import findings
from rlbench_suite.core.game import SeatPlayer, is_seat_of_two
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.games.connect_four import (
    ConnectFour,
    OneMoveAhead,
    RandomMoves,
    State,
    TwoMovesAhead,
)

ID = "rlsuite/ConnectFour-v0"
BOARDS = ["7x6", "4x4", "5x4", "4x5", "5x5", "6x4"]
RECORDS = [
    ([2, 6, 6, 0, 5, 5, 3, 2, 6, 6, 4], 0),
]
"""Moves of a game of OpenSpiel 2.0.2, ``connect_four``, from the empty board, and who won."""


def game_on(board: str) -> ConnectFour:
    return card(ID, board=board).joint().build()


@pytest.mark.parametrize(("moves", "winner"), RECORDS)
def test_a_game_of_open_spiel(moves: list[int], winner: int) -> None:
    game = game_on("7x6")
    state = game.empty_board()
    drop = jax.jit(game.drop)
    for move in moves:
        assert int(state.winner) == -1
        state = drop(state, move)
    assert int(state.winner) == winner


@pytest.mark.parametrize("board", BOARDS)
def test_random_games_go_as_the_rules_written_out(board: str) -> None:
    """Two hundred games a board, side by side: legal columns and the winner after each move."""
    game = game_on(board)
    count = 200
    rng = np.random.default_rng(0)
    boards = [Board(game.columns, game.rows) for _ in range(count)]
    winners = np.full(count, -1)
    states: State = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), game.empty_board()
    )
    drop = jax.jit(jax.vmap(game.drop))
    for ply in range(game.columns * game.rows):
        moves = []
        for i, plain in enumerate(boards):
            assert plain.legal_moves() == np.flatnonzero(states.heights[i] < game.rows).tolist()
            moves.append(int(rng.choice(plain.legal_moves())))
            if plain.drop(moves[-1]) and winners[i] < 0:
                winners[i] = ply % 2
        running = np.asarray(states.winner) < 0
        states = drop(states, jnp.array(moves))
        np.testing.assert_array_equal(np.asarray(states.winner)[running], winners[running])
        # A finished game goes on here only to fill the boards alike.
        winners = np.where(running, winners, np.asarray(states.winner))
    assert (winners >= 0).mean() > 0.2


def test_the_game_on_four_by_four_is_a_draw() -> None:
    """Enumerate all positions by the rules written out."""

    assert value(Board(4, 4)) == 0


# -- openings and seats ----------------------------------------------------------------------------


@pytest.mark.parametrize("board", BOARDS)
def test_openings_of_the_splits_are_apart_and_so_are_their_mirror_images(board: str) -> None:
    game = game_on(board)
    train, test = ({*map(tuple, game.openings[split].tolist())} for split in Split)
    mirrored = {(game.columns - 1 - a, game.columns - 1 - b) for a, b in test}
    assert test == mirrored
    assert not train & test
    assert len(train | test) == game.columns**2
    assert len(test) >= game.columns**2 / 8


def test_both_seats_and_all_openings_come_up() -> None:
    envs: Any = gymnasium.make_vec(ID, 400, split="test", difficulty="easy")
    envs.reset(seed=0)
    seats = envs.episodes.state.seat
    assert 0.4 < seats.mean() < 0.6
    openings = {*map(tuple, np.asarray(envs.episodes.params.opening).tolist())}
    assert openings == {*map(tuple, game_on("7x6").openings[Split.TEST].tolist())}
    # Three moves have been made where the opponent moves first.
    np.testing.assert_array_equal(envs.episodes.state.game.ply, 2 + seats)


# -- players ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seat", [0, 1])
def test_players_win_and_block(seat: int) -> None:
    """Three in a row on the floor, open at one end: the mover wins there, the other blocks."""
    game = game_on("7x6")
    state = game.empty_board()
    moves = [0, 6, 1, 6, 2] if seat == 1 else [6, 0, 5, 1, 6, 2]
    for move in moves:
        state = game.drop(state, jnp.int32(move))
    assert int(state.ply) % 2 == seat
    for player_class in (OneMoveAhead, TwoMovesAhead):
        for seed in range(5):
            view: Any = type("View", (), {"state": state})
            actions, _ = player_class(game).act((), view, jax.random.key(seed))
            assert int(actions[seat]) == 3


def score(player_class: Any, difficulty: str) -> float:
    task = card(ID).build(difficulty=difficulty)
    record = play(task, SeatPlayer(player_class(task.game)), range(100))
    return float(record.total.mean())


def test_who_looks_farther_wins_more() -> None:
    assert score(RandomMoves, "medium") < -0.6
    assert abs(score(OneMoveAhead, "medium")) < 0.25
    assert score(TwoMovesAhead, "medium") > 0.15


def test_the_reference_beats_each_opponent() -> None:
    for difficulty in ("easy", "medium", "hard"):
        task = card(ID).build(difficulty=difficulty)
        record = play(task, reference_player(task), range(60))
        assert record.total.mean() > 0.2, difficulty


def test_an_illegal_move_loses() -> None:
    """Else who is about to lose would stall until the time is over."""
    env = gymnasium.make(ID, difficulty="easy")
    for seed in range(5):
        env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            _, reward, over, truncated, info = env.step(0)
            total += float(reward)
            assert not truncated
            if info["invalid_action"]:
                assert "column 0 is full" in info["invalid_reason"]
                assert info["end_reason"] == "an illegal move, which loses"
                assert (total, over, info["success"]) == (-1, True, False)
                return
    pytest.fail("no column was full")


# -- all sides as agents ---------------------------------------------------------------------------


def test_the_game_of_both_sides_keeps_the_contract() -> None:
    game = game_on("5x4")
    faults = {finding.check: finding.faults for finding in findings(game) if finding.faults}
    faults.pop("train and test apart", None)  # there are fewer openings than it samples
    assert not faults


def test_only_seats_may_have_another_opponent() -> None:
    assert is_seat_of_two(card(ID))
    for name in ("Chess-v0", "MatrixGame-v0", "SAT-v0"):
        assert not is_seat_of_two(card(name))


def test_pettingzoos_own_tests_pass() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Observation")
        api_test(pettingzoo.make("aec", ID), num_cycles=100)
        parallel_api_test(TaskParallelEnv(game_on("7x6")), num_cycles=100)


def test_agents_act_in_turn_and_what_one_wins_the_other_loses() -> None:
    env = pettingzoo.make("aec", ID)
    env.reset(seed=3)
    rng = np.random.default_rng(0)
    movers = []
    rewards: dict[str, float] = {}
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, _ = env.last()
        if terminated or truncated:
            rewards[agent] = reward
            env.step(None)
            continue
        movers.append(agent)
        assert observation["action_mask"].any()
        env.step(int(rng.choice(np.flatnonzero(observation["action_mask"]))))
    assert movers == ["agent_0", "agent_1"] * (len(movers) // 2) + ["agent_0"] * (len(movers) % 2)
    assert sorted(rewards.values()) == [-1, 1]


def test_a_difficulty_is_no_setting_of_the_game_of_both_sides() -> None:
    with pytest.raises(ValueError, match="is an opponent"):
        pettingzoo.make("aec", ID, difficulty="hard")
