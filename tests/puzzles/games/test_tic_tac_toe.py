"""TicTacToe-v0 against plain minimax on lists."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from comparison import Compared
from fill_tasks import task_of

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Uniform
from rlbench_suite.envs.puzzles.games.tic_tac_toe import (
    LINES,
    PerfectPlayer,
    Position,
    Solver,
    State,
    TicTacToePuzzle,
    games,
    values_of_moves,
)
from rlbench_suite.envs.puzzles.shared.puzzle_task import Params
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants

Board = tuple[int, ...]


def winner(board: Board) -> int:
    table = np.array(board).reshape(4, 4)
    lines = [*table, *table.T, table.diagonal(), table[::-1].diagonal()]
    return next((int(line[0]) for line in lines if line[0] and (line == line[0]).all()), 0)


@cache
def value(board: Board, player: int) -> int:
    """Return the value of the board for X when ``player`` is to move."""
    if won := winner(board):
        return 1 if won == 1 else -1
    after = [
        value(place_stone(board, cell, player), 3 - player) for cell in range(16) if not board[cell]
    ]
    return (max if player == 1 else min)(after, default=0)


def place_stone(board: Board, cell: int, player: int) -> Board:
    return (*board[:cell], player, *board[cell + 1 :])


def best_cells(board: Board, player: int) -> set[int]:
    worth = {
        cell: value(place_stone(board, cell, player), 3 - player)
        for cell in range(16)
        if not board[cell]
    }
    best = (max if player == 1 else min)(worth.values())
    return {cell for cell, v in worth.items() if v == best}


def board_of(instance: Position) -> Board:
    return tuple(instance.cells.tolist())


@pytest.mark.engine("plain minimax on lists: all best moves")
@pytest.mark.parametrize(("empty", "count"), [(4, 800), (5, 250), (6, 50), (8, 6)])
def test_right_moves_are_those_of_minimax(empty: int, count: int, compared: Compared) -> None:
    puzzle = TicTacToePuzzle(empty)
    for seed in range(count):
        instance = puzzle.generate(seed)
        board = board_of(instance)
        assert board.count(0) == empty
        assert board.count(2) - board.count(1) in (0, 1)
        right = {
            c for c in range(16) if puzzle.verify(instance, f"{c // 4 + 1} {c % 4 + 1}").solved
        }
        assert right == best_cells(board, 1)
        assert 0 < len(right) < empty, "some moves are best and some are not"
        assert not any(
            winner(place_stone(board, c, player))
            for c in range(16)
            if not board[c]
            for player in (1, 2)
        )
        compared(puzzle, instance)


def test_fewer_positions_give_the_same_values() -> None:
    """Compare random boards on which nobody has won.

    Positions that follow them include threats and won games.
    """
    dice = Dice(2, 2)
    outcomes = set()
    for _ in range(600):
        cells, empty = dice.shuffled(range(16)), dice.between(1, 7)
        stones = cells[empty:]
        own_stones = sum(1 << cell for cell in stones[1::2])
        opponent_stones = sum(1 << cell for cell in stones[0::2])
        if all(own_stones & line != line != opponent_stones & line for line in LINES):
            values = Solver().values_of_moves(own_stones, opponent_stones)
            assert values_of_moves(own_stones, opponent_stones) == values
            outcomes |= {(empty, value) for value in values.values()}
    assert len(outcomes) > 15


def test_a_win_comes_before_a_draw_and_a_draw_before_a_loss() -> None:
    puzzle = TicTacToePuzzle(3)
    wins = Position(np.array([1, 1, 1, 0, 2, 2, 2, 0, 1, 2, 1, 2, 2, 1, 2, 0], np.int8))
    assert puzzle.verify(wins, "1 4").solved
    stopped = puzzle.verify(wins, "2 4")
    assert (stopped.valid, stopped.solved, stopped.score) == (True, False, 0.0)
    assert "to a win" in stopped.reason
    assert "not empty" in puzzle.verify(wins, "1 1").reason
    draws = Position(np.array([2, 1, 2, 0, 1, 1, 2, 2, 1, 2, 1, 1, 0, 2, 1, 0], np.int8))
    assert {
        c for c in (3, 12, 15) if puzzle.verify(draws, f"{c // 4 + 1} {c % 4 + 1}").solved
    } == best_cells(board_of(draws), 1)
    for text in ("1", "1 5", "0 1", "1 4 1", "1  4", "a b", "1,4"):
        assert not puzzle.verify(wins, text).valid


def random_boards(instances: list[Position], seed: int = 0) -> list[Board]:
    """Boards that legal play, good or bad, leads to with X to move."""
    rng = np.random.default_rng(seed)
    boards = []
    for instance in instances:
        board = board_of(instance)
        for player in (1, 2) * int(rng.integers(0, 2)):
            if not winner(board):
                board = place_stone(
                    board, int(rng.choice(np.flatnonzero(np.array(board) == 0))), player
                )
        boards.append(board)
    return boards


@pytest.mark.parametrize("empty", [4, 6])
def test_tables_hold_the_values_of_minimax(empty: int) -> None:
    puzzle = TicTacToePuzzle(empty)
    instances = [puzzle.generate(seed) for seed in range(60)]
    table = games(np.stack([instance.cells for instance in instances]))
    for row, board in enumerate(random_boards(instances)):
        number = int((np.array(board) * table.weights[row]).sum())
        entry = int(table.values[row, number])
        over = bool(winner(board)) or 0 not in board
        assert entry == value(board, 1) + 4 * over


@pytest.mark.parametrize("empty", [4, 6])
def test_the_opponent_plays_all_its_best_moves_and_no_others(empty: int) -> None:
    task = task_of("TicTacToe-v0", empty)
    instances = [task.puzzle.generate(seed) for seed in range(30)]
    table = games(np.stack([instance.cells for instance in instances]))
    rng = np.random.default_rng(1)
    actions = np.array([rng.choice(np.flatnonzero(instance.cells == 0)) for instance in instances])
    keys = jax.random.split(jax.random.key(0), 200)

    def step_game(game: Any, action: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        params = Params(game, np.zeros(1, np.int16))
        after = task.transition(State(game.cells), action, key, params)
        return after.cells, task.terminal(after, key, params)

    many = jax.jit(jax.vmap(jax.vmap(step_game, (None, None, 0)), (0, 0, None)))
    boards, over = (np.asarray(output) for output in many(table, actions, keys))
    for instance, action, after, ended in zip(
        instances, actions.tolist(), boards, over, strict=True
    ):
        board = place_stone(board_of(instance), action, 1)
        assert not winner(board)  # no first move wins at once
        replies = {place_stone(board, cell, 2) for cell in best_cells(board, 2)}
        assert {tuple(cells) for cells in after.tolist()} == replies
        for cells, end in zip(after.tolist(), ended.tolist(), strict=True):
            assert end == (bool(winner(tuple(cells))) or 0 not in cells)


def test_perfect_play_always_succeeds_and_random_play_does_not() -> None:
    task = task_of("TicTacToe-v0", 4)
    perfect = play(task, PerfectPlayer.for_task(task), range(400))
    assert perfect.info["success"].all()
    np.testing.assert_array_equal(perfect.total, 1.0)
    assert perfect.terminated.all()
    random = play(task, Uniform(task.action_space), range(400))
    assert 0.2 < random.info["success"].mean() < 0.8
    np.testing.assert_array_equal(random.total, random.info["success"])


def test_a_turned_board_is_the_same_puzzle() -> None:
    puzzle = TicTacToePuzzle(6)
    a, b = puzzle.generate(0), puzzle.generate(1)
    for turn in range(4):
        for board in (
            np.rot90(a.cells.reshape(4, 4), turn),
            np.rot90(a.cells.reshape(4, 4).T, turn),
        ):
            assert (
                puzzle.canonical(Position(board.ravel()))
                == puzzle.canonical(a)
                != puzzle.canonical(b)
            )


def test_tiers_are_ordered() -> None:
    means = []
    for tier in (4, 6, 8):
        puzzle = TicTacToePuzzle(tier)
        means.append(np.mean([puzzle.difficulty(puzzle.generate(seed)) for seed in range(20)]))
    assert means[0] < means[1] < means[2]


def test_the_number_of_empty_cells_has_limits() -> None:
    with pytest.raises(ValueError, match="2 to 9"):
        TicTacToePuzzle(10)
