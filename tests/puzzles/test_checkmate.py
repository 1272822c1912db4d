"""CheckmateInOne-v0: the move generator against published perft counts, mates against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from fill_tasks import task_of

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Uniform
from rlbench_suite.envs.puzzles.checkmate import CheckmatePuzzle, Instance, chances, fen
from rlbench_suite.envs.puzzles.chess_moves import (
    BLACK,
    KING,
    LETTERS,
    NOWHERE,
    WHITE,
    attacked,
    legal_moves,
    move_name,
    moved,
    moves,
)
from rlbench_suite.envs.puzzles.puzzle_task import Planned

pytestmark = pytest.mark.of_variants


def board_of(text: str) -> list[int]:
    """The pieces of a position in Forsyth-Edwards notation."""
    board = [0] * 64
    for row, rank in enumerate(text.split(maxsplit=1)[0].split("/")):
        column = 0
        for sign in rank:
            if sign.isdigit():
                column += int(sign)
            else:
                board[8 * (7 - row) + column] = LETTERS.index(sign.upper()) * (1 if sign.isupper() else -1)
                column += 1
    return board


def instance_of(text: str) -> Instance:
    return Instance(np.array(board_of(text), np.int8))


def perft(board: list[int], side: int, passing: int, depth: int) -> int:
    if depth == 0:
        return 1
    after = (moved(board, move) for move in legal_moves(board, side, passing))
    return sum(perft(board, -side, passing, depth - 1) for board, passing in after)


@pytest.mark.parametrize(
    ("position", "counts"),
    [  # https://www.chessprogramming.org/Perft_Results; nobody can castle within these depths
        ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w", (20, 400, 8902)),
        ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w", (14, 191, 2812, 43238)),
        ("n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b", (24, 496, 9483)),
    ],
)
def test_there_are_as_many_games_as_published(position: str, counts: tuple[int, ...]) -> None:
    side = WHITE if position.endswith("w") else BLACK
    found = tuple(perft(board_of(position), side, NOWHERE, depth) for depth in range(1, len(counts) + 1))
    assert found == counts


def is_mate(board: list[int], name: str) -> bool:
    """By the definition: black's king could be captured now, and after every move of black."""
    move = next(m for m in legal_moves(board, WHITE) if move_name(m) == name)
    after, passing = moved(board, move)

    def king_falls(board: list[int]) -> bool:
        king = board.index(BLACK * KING)
        return any(m.end == king for m in moves(board, WHITE, NOWHERE))

    return king_falls(after) and all(king_falls(moved(after, m)[0]) for m in moves(after, BLACK, passing))


@pytest.mark.parametrize("pieces", [4, 8, 14])
def test_right_answers_are_the_mates(pieces: int) -> None:
    puzzle = CheckmatePuzzle(pieces)
    for seed in range(60):
        instance = puzzle.generate(seed, ("train", "test")[seed & 1])
        board = instance.board.tolist()
        assert sum(piece != 0 for piece in board) == pieces
        assert board.count(KING) == board.count(-KING) == 1
        assert not attacked(board, board.index(BLACK * KING), WHITE)
        names = list(map(move_name, legal_moves(board, WHITE)))
        right = {name for name in names if puzzle.verify(instance, name).solved}
        assert right == {name for name in names if is_mate(board, name)}
        assert len(right) >= 1


@pytest.mark.parametrize(
    ("position", "mating", "not_mating"),
    [
        ("6k1/5ppp/8/8/8/8/8/R6K w", "a1a8", "a1a7"),
        ("7k/5Q2/6K1/8/8/8/8/8 w", "f7g7", "f7f6"),
        ("7k/P5pp/8/8/8/8/8/7K w", "a7a8q", "a7a8b"),
        ("7k/P5pp/8/8/8/8/8/7K w", "a7a8r", "a7a8n"),
    ],
)
def test_known_positions(position: str, mating: str, not_mating: str) -> None:
    puzzle, instance = CheckmatePuzzle(4), instance_of(position)
    assert puzzle.verify(instance, mating).solved
    refused = puzzle.verify(instance, not_mating)
    assert (refused.valid, refused.solved) == (True, False)
    assert "not checkmate" in refused.reason


def test_a_check_that_is_answered_by_capturing_in_passing_is_no_mate() -> None:
    # The double step e2e4 checks the king on f5; only the pawn on d4 can take it, on e3.
    board = board_of("8/8/8/5k2/3p4/8/4P3/K7 w")
    move = next(m for m in legal_moves(board, WHITE) if move_name(m) == "e2e4")
    after, passing = moved(board, move)
    assert "d4e3" in map(move_name, legal_moves(after, BLACK, passing))
    assert "d4e3" not in map(move_name, legal_moves(after, BLACK, NOWHERE))


def test_what_is_no_move_is_invalid() -> None:
    puzzle, instance = CheckmatePuzzle(4), instance_of("6k1/5ppp/8/8/8/8/8/R6K w")
    for text in ("", "Ra8#", "a1-a8", "a1a9", "A1A8", "a1a8 ", "a1a8k", "a1 a8", "a1a8\nb1b8"):
        assert not puzzle.verify(instance, text).valid
    assert puzzle.verify(instance, "h1h8").reason == "h1h8 is not a legal move"
    assert puzzle.verify(instance, "a1a8q").reason == "a1a8q is not a legal move"


def test_the_task_knows_legal_and_mating_moves() -> None:
    puzzle = CheckmatePuzzle(8)
    instances = [puzzle.generate(seed) for seed in range(60)]
    table = chances(np.stack([instance.board for instance in instances]))
    for number, instance in enumerate(instances):
        board = instance.board.tolist()
        for words, wanted in ((table.legal, True), (table.mating, False)):
            bits = np.unpackbits(words[number].view(np.uint8), bitorder="little")
            expected = {
                64 * move.start + move.end
                for move in legal_moves(board, WHITE)
                if move.promotion in (0, 5) and (wanted or is_mate(board, move_name(move)))
            }
            assert set(np.flatnonzero(bits).tolist()) == expected
        assert bits[list(puzzle.plan(instance))].all()


def test_planned_play_always_succeeds_and_random_play_seldom() -> None:
    task = task_of("CheckmateInOne-v0", 4)
    planned = play(task, Planned.for_task(task), range(300))
    assert planned.info["success"].all()
    assert planned.terminated.all()
    np.testing.assert_array_equal(planned.total, 1.0)
    random = play(task, Uniform(task.action_space), range(300))
    assert random.info["success"].mean() < 0.2
    np.testing.assert_array_equal(random.total, random.info["success"])


def test_mirror_images_are_the_same_puzzle() -> None:
    puzzle = CheckmatePuzzle(8)
    with_pawns = [i for i in map(puzzle.generate, range(40)) if (abs(i.board) == 1).any()]
    a, b = with_pawns[:2]
    table = a.board.reshape(8, 8)
    assert puzzle.canonical(Instance(table[:, ::-1].ravel())) == puzzle.canonical(a) != puzzle.canonical(b)
    assert puzzle.canonical(Instance(table[::-1].ravel())) != puzzle.canonical(a), "pawns have a direction"
    bare = instance_of("8/8/8/8/8/1k6/8/K1QR4 w")
    assert puzzle.canonical(Instance(np.rot90(bare.board.reshape(8, 8)).ravel())) == puzzle.canonical(bare)


def test_prompts_show_the_position_twice() -> None:
    puzzle = CheckmatePuzzle(12)
    for seed in range(20):
        instance = puzzle.generate(seed)
        assert board_of(fen(instance.board.tolist())) == instance.board.tolist()
        assert fen(instance.board.tolist()) in puzzle.prompt(instance)


def test_the_number_of_pieces_has_limits() -> None:
    with pytest.raises(ValueError, match="4 to 16"):
        CheckmatePuzzle(3)
