"""Chess against published counts of legal moves and python-chess.

Tests also cover ends of games and choices of the opponents.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import Any

import chess
import gymnasium
import jax
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.core.episode import Role, draw_key
from rlbench_suite.core.registry import card
from rlbench_suite.envs.text.chess.notation import fen, members, move_name, read_move
from rlbench_suite.envs.text.chess.opening import first_moves
from rlbench_suite.envs.text.chess.players import promise
from rlbench_suite.envs.text.chess.rules import (
    LIMIT,
    WORDS,
    Legal,
    Position,
    advance,
    cannot_mate,
    count_occurrences,
    record_position,
)
from rlbench_suite.envs.text.chess.task import Params, State

pytestmark = pytest.mark.of_variants

CARD = card("Chess-v0")
BATCH = 256
VALUES = {
    chess.PAWN: 100,
    chess.KNIGHT: 320,
    chess.BISHOP: 330,
    chess.ROOK: 500,
    chess.QUEEN: 900,
    chess.KING: 0,
}


def position_of(board: chess.Board) -> Position:
    """Return python-chess's position as ours."""
    mirrored = board if board.turn else board.mirror()
    sets = [
        mirrored.pawns,
        mirrored.knights,
        mirrored.bishops,
        mirrored.rooks,
        mirrored.queens,
        mirrored.kings,
        mirrored.occupied_co[chess.WHITE],
    ]
    low, high = (
        np.array([squares >> shift & 0xFFFFFFFF for squares in sets], np.uint32)
        for shift in (0, 32)
    )
    corners = (chess.BB_H1, chess.BB_A1, chess.BB_H8, chess.BB_A8)
    rights = sum(1 << i for i, corner in enumerate(corners) if mirrored.castling_rights & corner)
    passing = (
        chess.square_file(mirrored.ep_square)
        if mirrored.ep_square and mirrored.has_legal_en_passant()
        else -1
    )
    return Position(
        low, high, np.int32(rights), np.int32(passing), np.int32(mirrored.halfmove_clock)
    )


def words_of(board: chess.Board) -> np.ndarray:
    """Return python-chess's legal moves as bits of ours."""
    bits = np.zeros(32 * WORDS, np.uint8)
    bits[
        [read_move(move.uci(), position_of(board), not board.turn) for move in board.legal_moves]
    ] = 1
    return np.packbits(bits, bitorder="little").view(np.uint32)


@cache
def compile_moves() -> Callable[..., Any]:
    """Compile the rules and the worth of a position once for all tests."""

    def after(position: Position, move: Any, history: Any) -> Any:
        position, legal = advance(position, move)
        facts = (
            legal.check,
            cannot_mate(position),
            count_occurrences(history, position),
            promise(position),
        )
        return position, legal.words, facts, record_position(history, position)

    compiled = jax.jit(jax.vmap(after))

    def run(*arguments: Any) -> Any:
        count = len(jax.tree.leaves(arguments)[0])
        batches = []
        for begin in range(0, count, BATCH):
            rows = np.minimum(np.arange(begin, begin + BATCH), count - 1)
            result = compiled(*jax.tree.map(lambda leaf, rows=rows: leaf[rows], arguments))
            batches.append(
                jax.tree.map(lambda leaf, end=count - begin: np.asarray(leaf)[:end], result)
            )
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *batches)

    return run


@cache
def record() -> Callable[..., Any]:
    """Compile what adds positions to histories."""
    compiled = jax.jit(jax.vmap(record_position))
    return lambda *arguments: np.asarray(compiled(*arguments))


def stack(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


# -- the rules -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "counts"),
    # https://www.chessprogramming.org/Perft_Results: the first position, Kiwipete, positions 3 to 6
    [
        (chess.STARTING_FEN, (20, 400, 8902, 197281)),
        ("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", (48, 2039, 97862)),
        ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", (14, 191, 2812, 43238)),
        ("r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", (6, 264, 9467)),
        ("rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", (44, 1486, 62379)),
        (
            "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
            (46, 2079, 89890),
        ),
    ],
)
def test_there_are_as_many_games_as_published(text: str, counts: tuple[int, ...]) -> None:
    board = chess.Board(text)
    positions = stack([position_of(board)])
    words = words_of(board)[None]
    game_counts = []
    for _ in counts:
        bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
        game_counts.append(int(bits.sum()))
        if len(game_counts) < len(counts):
            rows, moves = np.nonzero(bits)
            blank = np.zeros((len(rows), LIMIT, 2), np.uint32)
            before = jax.tree.map(lambda leaf, rows=rows: leaf[rows], positions)
            positions, words, _, _ = compile_moves()(before, moves.astype(np.int32), blank)
    assert tuple(game_counts) == counts


def expected_promise(board: chess.Board) -> int:
    """Return the worth of a position to the side to move, from python-chess's attacks."""
    own_colour, foe_colour = board.turn, not board.turn
    worth = attacked = wins = 0
    for square, piece in board.piece_map().items():
        sign = 1 if piece.color == own_colour else -1
        rank = chess.square_rank(square) if piece.color else 7 - chess.square_rank(square)
        worth += sign * (
            VALUES[piece.piece_type] + 8 * (rank - 1) * (piece.piece_type == chess.PAWN)
        )
    for square in chess.SQUARES:
        attackers = board.attackers(own_colour, square)
        defended = bool(board.attackers(foe_colour, square))
        attacked += bool(attackers) - defended
        kind = board.piece_type_at(square)
        if attackers and board.color_at(square) == foe_colour and kind:
            classes = {board.piece_type_at(attacker) for attacker in attackers}
            prices = {chess.PAWN: 100, chess.KNIGHT: 330, chess.BISHOP: 330, chess.ROOK: 500}
            cheapest = min((prices[name] for name in classes & prices.keys()), default=10**6)  # type: ignore[operator]
            wins = max(wins, VALUES[kind] - (cheapest if defended else 0))
    return worth + wins + 2 * attacked


SPARSE = (  # where games end for want of material, repeat, or promote
    "8/5k2/8/8/3K4/8/8/8 w - - 0 1", "8/5k2/8/3b4/3K4/8/5B2/8 w - - 0 1",
    "8/5k2/8/3n4/3K4/8/8/8 w - - 0 1", "8/5k2/3p4/8/3K4/8/8/6N1 w - - 0 1",
    "8/P4k2/8/8/3K4/8/p7/8 b - - 0 1", "8/2b2k2/8/3b4/3K4/2B5/8/8 w - - 0 1",
    "4k3/8/8/2pPp3/8/8/8/4K2R w K c6 0 1", "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1",
    "8/8/8/3k4/8/8/8/QRRQK3 w - - 0 1",
)  # fmt: skip


def any_move(board: chess.Board, rng: random.Random) -> chess.Move:
    """Return a legal move.

    At times it gives check, so that there are mates, or goes back, so that games repeat.
    """
    if rng.random() < 0.25 and (
        checks := [move for move in board.legal_moves if board.gives_check(move)]
    ):
        return rng.choice(checks)
    if len(board.move_stack) > 1 and rng.random() < 0.25:
        last = board.move_stack[-2]
        if (back := chess.Move(last.to_square, last.from_square)) in board.legal_moves:
            return back
    return rng.choice([*board.legal_moves])


def test_random_games_are_those_of_python_chess() -> None:
    rng = random.Random(0)
    boards = [chess.Board() for _ in range(24)] + [chess.Board(text) for text in SPARSE * 2]
    positions = stack([position_of(board) for board in boards])
    history = record()(np.zeros((len(boards), LIMIT, 2), np.uint32), positions)
    occurrences: dict[str, int] = dict.fromkeys(
        ("check", "mated", "dead", "once", "twice", "passing", "positions"), 0
    )
    for ply in range(90):
        moves = [any_move(board, rng) for board in boards]
        numbers = [
            read_move(
                move.uci(), jax.tree.map(lambda leaf, i=i: leaf[i], positions), not board.turn
            )
            for i, (board, move) in enumerate(zip(boards, moves, strict=True))
        ]
        positions, words, facts, history = compile_moves()(
            positions, np.array(numbers, np.int32), history
        )
        for i, (board, move) in enumerate(zip(boards, moves, strict=True)):
            board.push(move)
            position = jax.tree.map(lambda leaf, i=i: leaf[i], positions)
            names = {move_name(number, position, not board.turn) for number in members(words[i])}
            assert names == {move.uci() for move in board.legal_moves}, board.fen()
            assert fen(position, not board.turn, board.fullmove_number) == board.fen()
            check, dead, times, worth = (fact[i] for fact in facts)
            assert check == board.is_check()
            assert dead == board.is_insufficient_material(), board.fen()
            assert (times >= 1, times >= 2) == (board.is_repetition(2), board.is_repetition(3))
            assert ply % 4 or worth == expected_promise(board), board.fen()
            for name, holds in (("check", check), ("mated", check and not names), ("dead", dead)):
                occurrences[name] += bool(holds)
            occurrences["once"] += times >= 1
            occurrences["twice"] += times >= 2
            occurrences["passing"] += position.passing >= 0
        going = [
            i
            for i, board in enumerate(boards)
            if any(board.legal_moves) and board.halfmove_clock < LIMIT
        ]
        boards = [boards[i] for i in going]
        positions, history = jax.tree.map(
            lambda leaf, going=going: leaf[going], (positions, history)
        )
        occurrences["positions"] += len(boards)
    assert occurrences["positions"] > 2500
    assert min(occurrences.values()) >= 3, occurrences


# -- the task --------------------------------------------------------------------------------------


def start_game(env: Any, text: str, history: list[str] | None = None) -> None:
    """Set a position up in which the agent, who has the side to move, plays on."""
    env.reset(seed=0)
    board = chess.Board(text)
    state = env.unwrapped.episode.state
    position = position_of(board)
    marks = np.zeros((1, LIMIT, 2), np.uint32)
    for before in [*(history or []), text]:
        marks = record()(marks, stack([position_of(chess.Board(before))]))
    legal = Legal(words_of(board), np.bool_(board.is_check()))
    state = State(position, legal, marks[0], np.int32(0), np.int32(-1), np.int32(0), np.int32(0))
    params = Params(position, legal, np.bool_(not board.turn))
    env.unwrapped.episode = env.unwrapped.episode._replace(state=state, params=params)


@cache
def game(tier: str) -> Any:
    return gymnasium.make(CARD.id, view="text", difficulty=tier)


@pytest.mark.parametrize(
    ("text", "move", "points", "words"),
    [
        ("6k1/5ppp/8/8/8/8/8/R3K3 w Q - 0 1", "a1a8", 1, "mate: you have won"),
        ("r3k3/8/8/8/8/8/5PPP/6K1 b q - 0 1", "a8a1", 1, "mate: you have won"),
        ("r6k/8/8/8/8/8/5PPP/7K w - - 0 1", "f2f3", 0, "mate: you have lost"),
        ("k7/8/1K6/8/8/8/8/2Q5 w - - 0 1", "c1c7", 0.5, "stalemate"),
        ("7k/8/8/8/8/8/5K2/7q b - - 0 1", "h1h2", None, ""),
        ("4k3/8/8/8/8/8/4p3/4K3 w - - 0 1", "e1e2", 0.5, "neither side can ever mate"),
        ("4k3/8/8/8/8/8/8/Q3K3 w - - 99 80", "a1a2", 0.5, "50 moves"),
        ("4k3/8/8/8/8/8/8/R3K3 w - - 98 80", "a1a2", 0.5, "50 moves"),
        ("4k3/P7/8/8/8/8/8/4K3 w - - 99 80", "a7a8q", None, ""),
    ],
)
def test_games_end_as_the_laws_say(text: str, move: str, points: float | None, words: str) -> None:
    env = game("medium")
    start_game(env, text)
    _, reward, terminated, _, info = env.step(move)
    assert terminated == (points is not None)
    assert reward == (points or 0)
    assert words in info.get("end_reason", "")
    assert info["success"] == (points == 1)


def test_mate_by_a_capture_in_passing_is_described() -> None:
    env = game("medium")
    start_game(env, "7k/7p/8/3pP3/8/8/1B6/K5R1 w - d6 0 1")
    # d7d5, by two squares north for Black.
    state = env.unwrapped.episode.state._replace(last=np.int32(64 * 8 + 11))
    env.unwrapped.episode = env.unwrapped.episode._replace(state=state)
    assert "The opponent moved p from d7 to d5" in env.unwrapped.task.describe(
        state, env.unwrapped.params
    )
    text, _, _, _, info = env.step("e5d6")
    assert info["success"]
    assert "The opponent moved" not in text


def test_a_position_for_the_third_time_is_a_draw() -> None:
    env = game("medium")
    first = "8/8/8/4k3/8/8/8/K6R w - - {} 9"
    second = "8/8/8/4k3/8/8/8/K5R1 b - - {} 9"
    start_game(
        env, first.format(4), [first.format(0), second.format(1), first.format(2), second.format(3)]
    )
    assert env.step("h1g1")[2]  # after it Black is to move for the third time
    assert int(env.unwrapped.episode.state.end) == 4
    start_game(env, first.format(2), [first.format(0), second.format(1)])
    assert not env.step("h1g1")[2]


@pytest.mark.parametrize(
    ("move", "words"),
    [
        ("e2e5", "does not move like this"),
        ("e7e5", "the piece on e7 is not yours"),
        ("d4d5", "d4 is empty"),
        ("a1a2", "your own piece stands on a2"),
        ("e1g1", "does not move like this"),
        ("e2e4q", "no pawn of yours becomes"),
        ("a7a8", "say what the pawn becomes"),
        ("a7a8k", "expected a move"),
        ("e4", "expected a move"),
        ("resign", "expected a move"),
        ("e2e4 e7e5", "expected a move"),
        ("a1b4", "no piece moves from a1 to b4"),
    ],
)
def test_illegal_moves_and_junk_change_nothing(move: str, words: str) -> None:
    env = game("medium")
    start_game(env, "1nbqkbnr/P3p3/8/8/8/8/P3PPPP/R3KB1R w KQk - 0 1")
    before = env.unwrapped.episode.state
    _, reward, terminated, _, info = env.step(move)
    assert (reward, terminated) == (0, False)
    assert words in info["invalid_reason"]
    jax.tree.map(np.testing.assert_array_equal, before, env.unwrapped.episode.state)


def worth(tier: str, board: chess.Board) -> int:
    """Return what a position after the opponent's move is worth to the opponent."""
    if board.is_checkmate():
        return 100_000
    if tier == "hard":
        if not any(board.legal_moves) or board.is_insufficient_material():
            return 0
        return -expected_promise(board) - 3 * board.legal_moves.count()
    return -sum(
        VALUES[p.piece_type] * (1 if p.color == board.turn else -1)
        for p in board.piece_map().values()
    )


def opponent_choices(tier: str) -> Iterator[tuple[int, list[int]]]:
    """Play against an opponent; yield what each of its replies is worth to it.

    The worth of all its legal replies comes with it.

    Games begin alike in all tiers, so only the opponent's moves are compiled for each.
    """
    env = game("medium")
    rng = random.Random(3)
    task: Any = CARD.build(difficulty=("easy", "medium", "hard").index(tier))
    turn = jax.jit(
        lambda state, move, seed, t, params: task.transition(
            state, move, draw_key(seed, np.int32(0), t, Role.TRANSITION), params
        )
    )
    for seed in range(3):
        env.reset(seed=seed)
        episode = env.unwrapped.episode
        state, params = episode.state, episode.params
        for t in range(1, CARD.horizon + 1):
            board = chess.Board(fen(state.position, bool(params.black), 1))
            move = rng.choice([*board.legal_moves])
            number = np.int32(read_move(move.uci(), state.position, bool(params.black)))
            state = jax.tree.map(np.asarray, turn(state, number, episode.seed, np.int32(t), params))
            board.push(move)
            if state.end in (0, 2):
                values = {}
                for reply in board.legal_moves:
                    board.push(reply)
                    values[board.fen().split(maxsplit=1)[0]] = worth(tier, board)
                    board.pop()
                yield (
                    values[fen(state.position, bool(params.black), 1).split(maxsplit=1)[0]],
                    [*values.values()],
                )
            if state.end:
                break


@pytest.mark.parametrize("tier", ["medium", "hard"])
def test_the_opponent_plays_a_best_move_by_its_measure(tier: str) -> None:
    worths = [*islice(opponent_choices(tier), 25)]
    assert len(worths) == 25
    assert all(worth == max(all_worths) for worth, all_worths in worths)


def test_the_easy_opponent_plays_the_better_of_two_random_moves() -> None:
    """Compare the number of moves that are worth less with its expectation.

    Half of the moves that are worth as much count too.
    """
    difference = variance = 0.0
    for worth, worths in islice(opponent_choices("easy"), 200):
        values, counts = np.unique(worths, return_counts=True)
        until = counts.cumsum() / len(worths)
        chance = np.diff(until**2, prepend=0)
        rank_below = until - counts / len(worths) / 2
        mean = (chance * rank_below).sum()
        difference += float(rank_below[values == worth][0] - mean)
        variance += float((chance * (rank_below - mean) ** 2).sum())
    assert abs(difference) < 2 * variance**0.5  # one random move is 4.6 times below


def test_splits_share_no_opening_and_both_colours_occur() -> None:
    openings_by_split = []
    for split in ("train", "test"):
        env: Any = gymnasium.make(CARD.id, difficulty="medium", view="text", split=split)
        openings = set()
        blacks = 0
        for seed in range(80):
            env.reset(seed=seed)
            position = env.unwrapped.episode.state.position
            black = bool(env.unwrapped.params.black)
            board = chess.Board(fen(position, black, 1))
            assert board.is_valid()
            names = {
                move_name(number, position, black)
                for number in members(env.unwrapped.episode.state.legal.words)
            }
            assert names == {move.uci() for move in board.legal_moves}
            assert (
                sum(VALUES[p.piece_type] * (-1) ** p.color for p in board.piece_map().values()) == 0
            )
            openings.add(fen(position, False, 1))
            blacks += black
        assert 25 < blacks < 55
        assert len(openings) > 70
        openings_by_split.append(openings)
    assert not openings_by_split[0] & openings_by_split[1]


def test_the_first_moves_are_those_of_the_first_position() -> None:
    np.testing.assert_array_equal(first_moves(), words_of(chess.Board()))


def test_a_difficulty_is_one_of_three() -> None:
    for wrong in (-1, 3, 0.5):
        with pytest.raises(ValueError, match="greedy"):
            CARD.build(difficulty=wrong)
