"""Chess of two agents against python-chess, and as a world of PettingZoo."""

from __future__ import annotations

import random
import warnings

import chess
import numpy as np
import pettingzoo
import pytest
from pettingzoo.test import api_test

from rlbench_suite.adapters.parallel import TaskParallelEnv
from rlbench_suite.core.registry import card
from rlbench_suite.envs.text.chess.notation import fen, move_name, read_move

pytestmark = pytest.mark.of_variants

ID = "rlsuite/Chess-v0"
GAMES = 6


def game_env() -> TaskParallelEnv:
    """Return the game of both sides."""
    return TaskParallelEnv(card(ID).joint().build())


def board_of(env: TaskParallelEnv) -> chess.Board:
    """Return the position as python-chess has it."""
    state = env.episode.state
    is_black = bool(env.episode.params.black) ^ bool(state.plies % 2)
    return chess.Board(fen(state.position, is_black, int(state.plies) // 2 + 1))


def test_random_games_are_those_of_python_chess() -> None:
    """Legal moves, ends and points of whole games of seeded random moves."""
    env = game_env()
    rng = random.Random(0)
    ends = set()
    for seed in range(GAMES):
        observations, _ = env.reset(seed=seed)
        board = board_of(env)
        rewards: dict[str, float] = {}
        mover = 0
        while env.agents:
            state = env.episode.state
            black = board.turn == chess.BLACK
            moves = {
                read_move(move.uci(), state.position, black): move for move in board.legal_moves
            }
            mask = observations[f"agent_{mover}"]["action_mask"]
            assert set(np.flatnonzero(mask)) == set(moves)
            number = rng.choice(sorted(moves))
            assert move_name(number, state.position, black) == moves[number].uci()
            board.push(moves[number])
            observations, rewards, _, truncations, _ = env.step(
                {f"agent_{mover}": number, f"agent_{1 - mover}": 0}
            )
            mover = 1 - mover
            if env.agents:
                assert not any(rewards.values())
        if all(truncations.values()):  # its 400 moves are over
            continue
        ends.add("mate" if board.is_checkmate() else "draw")
        if board.is_checkmate():
            assert rewards == {f"agent_{mover}": 0.0, f"agent_{1 - mover}": 1.0}
        else:
            assert set(rewards.values()) == {0.5}
    assert ends == {"mate", "draw"}


def test_pettingzoos_own_test_passes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Observation")
        api_test(pettingzoo.make("aec", ID), num_cycles=30)


def test_each_agent_sees_its_own_pieces() -> None:
    env = game_env()
    observations, _ = env.reset(seed=1)
    first, second = (observations[f"agent_{i}"]["observation"] for i in range(2))
    pieces = 6 * 64
    mirrored = first[pieces : 2 * pieces].reshape(6, 8, 8)[:, ::-1].ravel()
    assert np.array_equal(second[:pieces], mirrored)
