"""Endgames against published tables and against the rules of python-chess."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import chess
import gymnasium
import jax
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Uniform
from rlbench_suite.core.policy import reference_player
from rlbench_suite.core.registry import card
from rlbench_suite.core.task import Split
from rlbench_suite.envs.text.chess.endgame.tables import (
    MATE,
    PAWN,
    QUEEN,
    ROOK,
    STALEMATE,
    STEPS,
    solve,
)
from rlbench_suite.envs.text.chess.endgame.task import SQUARES, Endgame, State, turn_square
from rlbench_suite.envs.text.chess.endgame.two_bishops import (
    DARK_SQUARES,
    LIGHT_SQUARES,
    solve_bishops,
)

pytestmark = pytest.mark.of_variants

CARD = card("Endgame-v0")
PIECE = {QUEEN: chess.QUEEN, ROOK: chess.ROOK, PAWN: chess.PAWN}
KINDS = {"medium": ROOK, "easy": QUEEN, "hard": PAWN}
Position = tuple[int, int, int]


def build(tier: str) -> Endgame:
    task: Any = CARD.build(difficulty=tier)
    return task


def squares(words: str) -> Position:
    king, piece, foe = (SQUARES.index(word[-2:]) for word in words.split())
    return king, piece, foe


def images(position: Any, piece: str) -> set[tuple[int, ...]]:
    """Return the position on boards turned and mirrored.

    A position is the square of the white king, those of alike pieces, and that of the black king.
    """
    boards = set()
    for by in range(2 if piece == PAWN else 8):
        king, *pieces, foe = (int(turn_square(square, by)) for square in position)
        boards.add((king, *sorted(pieces), foe))
    return boards


# -- published values ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("piece", "longest", "positions", "to_move", "black_to_move"),
    [
        (QUEEN, 10, ["Ka1 Qb2 kf5"], 1, 8),
        (ROOK, 16, ["Ka1 Rb2 kc3"], 121, 390),
        (PAWN, 28, ["Ka2 Pg2 kb5", "Kb2 Pg2 kb5", "Ka3 Pg2 kb5"], 3, 2),
    ],
)
def test_the_longest_mates_are_the_published_ones(
    piece: str, longest: int, positions: list[str], to_move: int, black_to_move: int
) -> None:
    """The numbers are from Nalimov's tables, by G. Duranti.

    They stand in kirill-kryukov.com/chess/discussion-board/viewtopic.php?t=920.

    Positions that a turn or mirror image of the board makes equal count once.
    """
    tables = solve(piece)
    for table, count in ((tables.distance, to_move), (tables.lost, black_to_move)):
        assert table.max() == longest
        longest_positions = {
            min(images(tuple(position), piece))
            for position in np.argwhere(table == longest).tolist()
        }
        assert len(longest_positions) == count
    for position in positions:
        assert tables.distance[squares(position)] == longest


# -- the rules of chess ----------------------------------------------------------------------------


def board(
    turn: chess.Color, king: int, foe: int, *pieces: tuple[int, chess.PieceType]
) -> chess.Board:
    """Set up both kings and White's other pieces, by square and type."""
    placed = chess.Board(None)
    placed.turn = turn
    placed.set_piece_at(king, chess.Piece(chess.KING, chess.WHITE))
    placed.set_piece_at(foe, chess.Piece(chess.KING, chess.BLACK))
    for square, piece in pieces:
        placed.set_piece_at(square, chess.Piece(piece, chess.WHITE))
    return placed


def white_moves(position: Position, piece: str) -> Iterator[tuple[str, Position, str]]:
    """Yield name, position and piece after each legal move of White; a pawn becomes a queen."""
    king, at, foe = position
    for move in board(chess.WHITE, king, foe, (at, PIECE[piece])).legal_moves:
        if move.promotion in (None, chess.QUEEN):
            after = (
                (move.to_square, at, foe)
                if move.from_square == king
                else (king, move.to_square, foe)
            )
            yield move.uci()[:4], after, QUEEN if move.promotion else piece


def in_check(board: chess.Board) -> bool:
    """Tell whether White attacks the black king."""
    return board.is_attacked_by(chess.WHITE, board.king(chess.BLACK) or 0)


def state_of(position: Position, piece: str) -> Any:
    king, at, foe = (np.int32(square) for square in position)
    return State(king, at, np.int32(-1), foe, np.bool_(piece == QUEEN), np.int32(0), np.int32(0))


def positions(piece: str, count: int) -> Iterator[Position]:
    """Yield random positions in which the kings do not touch."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        king, at, foe = map(int, rng.choice(64, 3, replace=False))
        if (piece != PAWN or 8 <= at < 56) and max(
            abs(king // 8 - foe // 8), abs(king % 8 - foe % 8)
        ) > 1:
            yield king, at, foe


@pytest.mark.parametrize(("tier", "piece"), KINDS.items())
def test_a_won_position_is_one_move_from_a_lost_one_and_moves_are_those_of_chess(
    tier: str, piece: str
) -> None:
    task: Any = build(tier)
    mask = jax.jit(task.action_mask)
    tables = solve(piece)
    won = 0
    for position in positions(piece, 250):
        king, at, foe = position
        if in_check(board(chess.WHITE, king, foe, (at, PIECE[piece]))):
            assert tables.distance[position] == -1  # not White's turn
            continue
        state = state_of(position, piece)
        legal = {
            task.spell(np.int64(action), state, None)
            for action in np.flatnonzero(mask(state, None))
        }
        losses = {
            name: int(solve(kind).lost[after]) for name, after, kind in white_moves(position, piece)
        }
        assert legal == set(losses)
        quickest = min((value for value in losses.values() if value >= 0), default=-2)
        assert tables.distance[position] == quickest + 1
        if quickest >= 0:
            assert losses[task.spell(np.int64(tables.best[position]), state, None)] == quickest
            won += 1
    assert won > 40


@pytest.mark.parametrize("piece", KINDS.values())
def test_every_reply_of_a_lost_position_is_to_a_won_one_and_the_best_is_played(piece: str) -> None:
    tables = solve(piece)
    draws = 0
    cornered = [squares("Kb6 Qc7 ka8"), squares("Kb6 Qb7 ka8")] if piece == QUEEN else []
    for king, at, foe in (*cornered, *positions(piece, 600)):
        before = board(chess.BLACK, king, foe, (at, PIECE[piece]))
        ends = [move.to_square for move in before.legal_moves]
        replies = {end: -1 if end == at else int(tables.distance[king, at, end]) for end in ends}
        reply = int(tables.reply[king, at, foe])
        assert before.is_checkmate() == (reply == MATE) == (tables.lost[king, at, foe] == 0)
        assert before.is_stalemate() == (reply == STALEMATE)
        if not replies:
            continue
        assert tables.lost[king, at, foe] == (
            -1 if min(replies.values()) < 0 else max(replies.values())
        )
        up, right = STEPS[reply].tolist()
        target = foe + 8 * up + right
        assert replies[target] == tables.lost[king, at, foe]  # a draw if there is one
        assert (target == at) == (at in replies)
        draws += replies[target] < 0
    assert draws > 20


def test_two_bishops_keep_the_rules_of_chess_and_mate_in_the_published_number_of_moves() -> None:
    """Longest mate 19: Nalimov's tables, by B. Moreland, stmintz.com/ccc/index.php?id=138918."""
    task: Any = build("bishops")
    tables = solve_bishops()
    mask = jax.jit(task.action_mask)
    rng = np.random.default_rng(1)
    assert tables.distance.max() == tables.lost.max() == 19
    distance, lost, best, replies = (
        table.ravel() for table in (tables.distance, tables.lost, tables.best, tables.reply)
    )
    won = draws = 0
    for _ in range(250):
        king, foe = map(int, rng.choice(64, 2, replace=False))
        light, dark = int(rng.choice(LIGHT_SQUARES)), int(rng.choice(DARK_SQUARES))
        if (
            len({king, foe, light, dark}) < 4
            or max(abs(king // 8 - foe // 8), abs(king % 8 - foe % 8)) <= 1
        ):
            continue
        state = State(
            *map(np.int32, (king, light, dark, foe)), np.bool_(False), np.int32(0), np.int32(0)
        )
        bishops = (light, chess.BISHOP), (dark, chess.BISHOP)
        before = board(chess.BLACK, king, foe, *bishops)
        number = task._number(king, light, dark, foe)
        assert tuple(map(int, task._squares_of(number))) == (king, light, dark, foe)
        ends = [move.to_square for move in before.legal_moves]
        assert before.is_checkmate() == (replies[number] == MATE) == (lost[number] == 0)
        assert before.is_stalemate() == (replies[number] == STALEMATE)
        ahead = {
            end: -1 if end in (light, dark) else int(distance[task._number(king, light, dark, end)])
            for end in ends
        }
        if ends:
            assert lost[number] == (-1 if min(ahead.values()) < 0 else max(ahead.values()))
            up, right = STEPS[int(replies[number])].tolist()
            target = foe + 8 * up + right
            assert ahead[target] == lost[number]
            assert (target in (light, dark)) == bool({light, dark} & {*ends})
            draws += ahead[target] < 0
        if in_check(before):
            assert distance[number] == -1
            continue
        legal = {
            task.spell(np.int64(action), state, None)
            for action in np.flatnonzero(mask(state, None))
        }
        losses = {}
        for move in board(chess.WHITE, king, foe, *bishops).legal_moves:
            after = (
                move.to_square if square == move.from_square else square
                for square in (king, light, dark, foe)
            )
            losses[move.uci()] = int(lost[task._number(*after)])
        assert legal == set(losses)
        quickest = min((value for value in losses.values() if value >= 0), default=-2)
        assert distance[number] == quickest + 1
        if quickest >= 0:
            assert losses[task.spell(np.int64(best[number]), state, None)] == quickest
            won += 1
    assert won > 60
    assert draws > 10


def test_each_bishop_is_moved_by_its_name() -> None:
    env: Any = gymnasium.make(CARD.id, view="text", difficulty="bishops")
    env.reset(seed=0)
    light, dark, king, foe = (
        np.int32(SQUARES.index(square)) for square in ("f1", "c1", "e1", "e8")
    )
    state = State(king, light, dark, foe, np.bool_(False), np.int32(0), np.int32(0))
    env.unwrapped.episode = env.unwrapped.episode._replace(state=state)
    env.step("Bc4")
    assert (
        SQUARES[env.unwrapped.episode.state.piece],
        SQUARES[env.unwrapped.episode.state.second],
    ) == ("c4", "c1")
    env.step("Bg5")
    assert (
        SQUARES[env.unwrapped.episode.state.piece],
        SQUARES[env.unwrapped.episode.state.second],
    ) == ("c4", "g5")
    env.step("c4b5")
    assert SQUARES[env.unwrapped.episode.state.piece] == "b5"
    position = env.unwrapped.state
    for words, reason in {
        "Bb4": "no king or bishop moves",
        "Bb5": "no king or bishop",
        "Ke9": "expected a move",
    }.items():
        env.unwrapped.state = position  # the no-op action ends a game
        assert reason in env.step(words)[4]["invalid_reason"]


# -- the task --------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", [*KINDS, "bishops"])
def test_the_reference_mates_in_the_fewest_moves(tier: str) -> None:
    task: Any = build(tier)
    record = play(task, reference_player(task), range(600), split="test")
    assert record.info["success"].all()
    np.testing.assert_array_equal(record.info["moves"], record.info["shortest"])
    np.testing.assert_allclose(record.total, 1 - (record.info["shortest"] - 1) / 50, atol=1e-6)
    assert abs(record.total.mean() - task.optimum) <= 4 * record.total.std() / 600**0.5
    if tier == "easy":
        assert CARD.optimum == pytest.approx(task.optimum, abs=1e-12)


@pytest.mark.parametrize("tier", [*KINDS, "bishops"])
def test_splits_share_no_position_however_it_is_turned(tier: str) -> None:
    task: Any = build(tier)
    draw = jax.jit(jax.vmap(task.sample_params, in_axes=(0, None)))
    tables = solve_bishops() if tier == "bishops" else solve(task.piece)
    positions_by_split = []
    for split in Split:
        params = jax.tree.map(
            np.asarray, draw(jax.random.split(jax.random.key(5), 2000), int(split))
        )
        bishops = [params.second] if tier == "bishops" else []
        assert bishops or (params.second == -1).all()
        positions_of_split = np.stack([params.king, params.piece, *bishops, params.foe], 1).tolist()
        assert (tables.distance.ravel()[task._number(*params[:4])] == params.shortest).all()
        assert params.shortest.min() > 0
        positions_by_split.append(
            {min(images(position, task.piece)) for position in positions_of_split}
        )
        assert np.bincount(params.king // 8, minlength=8).min() > 100
    assert not positions_by_split[0] & positions_by_split[1]
    starts, train = task._starts
    assert 0.2 < 1 - train / len(starts) < 0.3


def test_random_play_loses_its_piece_and_never_earns() -> None:
    task = build("hard")
    record = play(task, Uniform(task.action_space), range(200), split="test")
    assert record.total.sum() < 1
    assert {2, 3} <= set(record.info["end"].tolist())


def test_games_end_as_the_rules_say() -> None:
    env: Any = gymnasium.make(CARD.id, view="text", difficulty="hard")
    for position, queen, move, end, words in (
        ("Kb6 Qc6 ka8", True, "Qb7#", 1, "mate with move 1"),
        ("Kb6 Qc6 ka8", True, "c6c7", 2, "stalemate"),
        ("Kh1 Qb7 kb8", True, "Qb7c7", 0, ""),
        ("Kb8 Pa7 kd7", False, "Ka8", 2, "stalemate"),  # of White, behind its own pawn
        ("Kh1 Qd6 ke8", True, "Qd7+", 3, "captured a piece"),
        ("Kb6 Pc7 ka8", False, "c8=Q#", 1, "mate with move 1"),
    ):
        env.reset(seed=0)
        state = state_of(squares(position), QUEEN if queen else PAWN)
        env.unwrapped.episode = env.unwrapped.episode._replace(state=state)
        _, reward, terminated, _, info = env.step(move)
        if end == 0:
            assert "invalid_reason" in info
            continue
        assert (int(info["end"]), terminated, reward) == (end, True, end == 1)
        assert words in info["end_reason"]
        assert info["success"] == (end == 1)


@pytest.mark.parametrize(
    ("move", "words"),
    [
        ("e2e4", "yours are R on d4 and K on b1"),
        ("b1b3", "no king or rook moves from b1 to b3"),
        ("Kb2", "the kings would touch"),
        ("Re5", "a rook does not move like this"),
        ("Rd4d4", "expected a move such as e2e3"),
        ("Rb5", "no king or rook moves from d4 to b5"),
        ("b1a1a2", "expected a move such as"),
        ("checkmate", "expected a move such as"),
        ("1-0", "expected a move such as"),
        ("Qd8#", "no white piece for 'Qd8#'"),
        ("Rd1 Rd2 Rd3", "expected a move such as"),
        ("Rxb3", "expected a move such as"),
    ],
)
def test_junk_and_illegal_moves_pay_nothing_and_change_nothing(move: str, words: str) -> None:
    env: Any = gymnasium.make(CARD.id, view="text", difficulty="medium")
    env.reset(seed=0)
    state = state_of(squares("Kb1 Rd4 kb3"), ROOK)
    env.unwrapped.episode = env.unwrapped.episode._replace(state=state)
    board_text, reward, terminated, _, info = env.step(move)
    assert (reward, terminated, info["success"]) == (0, False, False)
    assert words in info["invalid_reason"]
    assert "3 . k . . . . . ." in board_text
    assert "Black king b3" in board_text or "black king b3" in board_text
    if "touch" in words or "like this" in words:  # understood, so that no no-op is played
        jax.tree.map(np.testing.assert_array_equal, state, env.unwrapped.episode.state)


def test_a_difficulty_is_one_of_four() -> None:
    for wrong in (0, 5, 1.5):
        with pytest.raises(ValueError, match="queen"):
            CARD.build(difficulty=wrong)
