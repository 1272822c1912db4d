"""AlphaZero searches as the rules go, and learns moves that keep the value of a position."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from connect_four_board import Board, value, value_of_move

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.flat_task import flatten_task
from rlbench_suite.baselines.games import alphazero
from rlbench_suite.baselines.games.alphazero import AlphaZero
from rlbench_suite.core.agent import CannotPlay
from rlbench_suite.core.registry import card

ID = "rlsuite/ConnectFour-v0"


def random_positions(count: int, plies: int) -> list[list[int]]:
    """Return moves that lead to running games on the board of 4 x 4."""
    generator = np.random.default_rng(0)
    positions: list[list[int]] = []
    while len(positions) < count:
        board = Board(4, 4)
        moves: list[int] = []
        won = False
        while len(moves) < plies and not won:
            moves.append(int(generator.choice(board.legal_moves())))
            won = board.drop(moves[-1])
        if not won:
            positions.append(moves)
    return positions


def after(moves: list[int]) -> Board:
    """Return the board after some moves."""
    board = Board(4, 4)
    for move in moves:
        board.drop(move)
    return board


def searched_moves(policy: alphazero.Policy, positions: list[list[int]]) -> list[int]:
    """Return the policy's moves in positions that are equally many moves from the empty board."""
    seat: Any = policy.flat.task
    game = flatten_task(seat.game, "alphazero")

    def position(moves: jax.Array) -> alphazero.Position:
        state = seat.game.empty_board()
        for move in moves:
            state = seat.game.drop(state, move)
        return alphazero.Position(state, params=())

    batch = jax.jit(jax.vmap(position))(jnp.array(positions))
    output = alphazero.search(
        game, policy.config, policy.actor, policy.moments, batch, jax.random.key(0), noise=0.0
    )
    return np.asarray(output.action).tolist()


def share_that_keeps_the_value(policy: alphazero.Policy, positions: list[list[int]]) -> float:
    """Return the share of positions in which the move is a perfect one."""
    boards = [after(moves) for moves in positions]
    moves = searched_moves(policy, positions)
    perfect = [value_of_move(b, move) == value(b) for b, move in zip(boards, moves, strict=True)]
    return float(np.mean(perfect))


def test_a_search_takes_every_win_that_it_can_see() -> None:
    """An untrained network values all positions alike, so that the search alone sees the win."""
    agent = AlphaZero(total_steps=1, simulations=16)
    task = card(ID, board="4x4").build()
    policy = agent.untrained_policy(task, agent.config(task, "smoke"))
    positions = random_positions(600, plies=8)
    moves = searched_moves(policy, positions)
    wins = [[c for c in after(p).legal_moves() if after(p).drop(c)] for p in positions]
    assert sum(map(bool, wins)) > 60
    assert all(move in columns for move, columns in zip(moves, wins, strict=True) if columns)


def test_training_teaches_moves_that_keep_the_value(tmp_path: Path) -> None:
    """Judged by all games on 4 x 4, and in games with an opponent that looks two moves ahead."""
    task = card(ID, board="4x4").build(difficulty="hard")
    agent = AlphaZero(total_steps=60_000, num_envs=64, num_steps=16, simulations=16)
    positions = random_positions(200, plies=5)
    untrained = agent.untrained_policy(task, agent.config(task, "smoke"))
    before = share_that_keeps_the_value(untrained, positions)
    *_, policy = agent.train(task, seed=0, budget="smoke")
    assert share_that_keeps_the_value(policy, positions) > before + 0.1  # .74 and .93
    assert play(task, policy, range(100)).total.mean() > 0.1  # .33; untrained it earns -.06

    file = str(tmp_path / "policy.safetensors")
    agent.save(policy, file)
    loaded = agent.load(file, task)
    assert searched_moves(loaded, positions) == searched_moves(policy, positions)


def test_outcomes_change_sign_with_the_side_to_move() -> None:
    """The third move wins, the fourth begins a game that runs on, with a value of .25."""
    reward = jnp.array([[0.0], [0.0], [1.0], [0.0]])
    factor = jnp.array([[-1.0], [-1.0], [0.0], [-1.0]])
    expected = [[1.0], [-1.0], [1.0], [-0.25]]
    np.testing.assert_array_equal(alphazero.outcomes(reward, factor, jnp.array([0.25])), expected)


@pytest.mark.parametrize("task_id", ["rlsuite/Poker-v0", "rlsuite/SAT-v0", "rlsuite/MatrixGame-v0"])
def test_games_with_secrets_and_tasks_that_are_no_games_are_refused(task_id: str) -> None:
    with pytest.raises(CannotPlay, match="nothing is hidden or random"):
        AlphaZero().check(card(task_id).build())


def test_minibatches_must_divide_the_batch() -> None:
    task = card(ID).build()
    with pytest.raises(ValueError, match="minibatches=7 must divide the batch of 128 games x 32"):
        AlphaZero(minibatches=7).config(task, "smoke")
