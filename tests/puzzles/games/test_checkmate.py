"""Tests of CheckmateInOne-v0 against published counts and the rules of chess.

The move generator is compared with perft counts, legal and mating moves with the rules written out
once more.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import numpy as np
import pytest
from comparison import Compared
from fill_tasks import task_of

from rlbench_suite.adapters.rollout import play
from rlbench_suite.baselines.scripted import Uniform
from rlbench_suite.envs.puzzles.games.checkmate import CheckmatePuzzle, Instance, chances, fen
from rlbench_suite.envs.puzzles.games.chess_moves import (
    BLACK,
    KING,
    LETTERS,
    NOWHERE,
    WHITE,
    legal_moves,
    make_move,
    mates,
    move_name,
)
from rlbench_suite.envs.puzzles.shared.puzzle_task import SolverPlayer
from rlbench_suite.puzzle.dice import Dice

pytestmark = pytest.mark.of_variants


def board_of(text: str) -> list[int]:
    """Return the pieces of a position in Forsyth-Edwards notation."""
    board = [0] * 64
    for row, rank in enumerate(text.split(maxsplit=1)[0].split("/")):
        column = 0
        for sign in rank:
            if sign.isdigit():
                column += int(sign)
            else:
                board[8 * (7 - row) + column] = LETTERS.index(sign.upper()) * (
                    1 if sign.isupper() else -1
                )
                column += 1
    return board


def instance_of(text: str) -> Instance:
    return Instance(np.array(board_of(text), np.int8))


def perft(board: list[int], side: int, passing: int, depth: int) -> int:
    if depth == 0:
        return 1
    after = (make_move(board, move) for move in legal_moves(board, side, passing))
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
    game_counts = tuple(
        perft(board_of(position), side, NOWHERE, depth) for depth in range(1, len(counts) + 1)
    )
    assert game_counts == counts


Square = tuple[int, int]
"""File and rank, from 0."""
Pieces = dict[Square, str]
"""Letters as in Forsyth-Edwards notation."""
NAMES = [a + b for b in "12345678" for a in "abcdefgh"]


def pieces_of(position: str) -> Pieces:
    """Read from Forsyth-Edwards notation."""
    rows = [
        re.sub(r"\d", lambda digit: "." * int(digit[0]), row)
        for row in position.split(" ", maxsplit=1)[0].split("/")
    ]
    return {
        (x, 7 - y): sign for y, row in enumerate(rows) for x, sign in enumerate(row) if sign != "."
    }


def strikes(pieces: Pieces, start: Square, end: Square) -> bool:
    """Return whether the piece on a square could capture on another."""
    kind, (x, y), (right, up) = pieces[start], start, (end[0] - start[0], end[1] - start[1])
    distance = max(abs(right), abs(up))
    match kind.upper():
        case "N":
            return {abs(right), abs(up)} == {1, 2}
        case "K":
            return distance == 1
        case "P":
            return abs(right) == 1 and up == (1 if kind.isupper() else -1)
    straight, diagonal = (right == 0) != (up == 0), abs(right) == abs(up) > 0
    if not ((straight and kind in "RrQq") or (diagonal and kind in "BbQq")):
        return False
    return not any(
        (x + k * right // distance, y + k * up // distance) in pieces for k in range(1, distance)
    )


def in_check(pieces: Pieces, white: bool) -> bool:
    king = next(square for square, kind in pieces.items() if kind == ("K" if white else "k"))
    return any(
        kind.isupper() != white and strikes(pieces, square, king) for square, kind in pieces.items()
    )


def goes(pieces: Pieces, start: Square, end: Square, passed: Square | None) -> bool:
    """Return whether a piece could move to a square without a piece of its own side.

    Its king is left aside.
    """
    kind = pieces[start]
    if kind not in "Pp":
        return strikes(pieces, start, end)
    if end[0] != start[0]:
        return strikes(pieces, start, end) and (end in pieces or end == passed)
    up, home = (1, 1) if kind == "P" else (-1, 6)
    if end in pieces or (start[0], start[1] + up) in pieces:
        return False
    return end[1] - start[1] == up or (end[1] - start[1] == 2 * up and start[1] == home)


def plays(
    pieces: Pieces, white: bool, passed: Square | None = None
) -> Iterator[tuple[str, Pieces, Square | None]]:
    """Yield every legal move, the position after it, and the square that a pawn passed over.

    Nobody may castle.
    """
    own_squares = [square for square, kind in pieces.items() if kind.isupper() == white]
    for start, end in itertools.product(own_squares, itertools.product(range(8), repeat=2)):
        if end in own_squares or not goes(pieces, start, end, passed):
            continue
        kind, passing = pieces[start], None
        after = {square: piece for square, piece in pieces.items() if square != start} | {end: kind}
        if kind in "Pp" and abs(end[1] - start[1]) == 2:
            passing = (end[0], (start[1] + end[1]) // 2)
        elif kind in "Pp" and end == passed and end[0] != start[0]:
            del after[end[0], start[1]]
        if not in_check(after, white):
            name = NAMES[start[0] + 8 * start[1]] + NAMES[end[0] + 8 * end[1]]
            for letter in "qrbn" if kind in "Pp" and end[1] in (0, 7) else "":
                yield name + letter, after | {end: letter.upper() if white else letter}, None
            if kind not in "Pp" or end[1] not in (0, 7):
                yield name, after, passing


def legal_and_mating(position: str) -> tuple[set[str], set[str]]:
    """White's moves by the rules: all, and those after which black is in check and has no move."""
    legal = {
        name: (after, passed) for name, after, passed in plays(pieces_of(position), white=True)
    }
    mating = {
        name
        for name, (after, passed) in legal.items()
        if in_check(after, white=False) and next(plays(after, False, passed), None) is None
    }
    return set(legal), mating


@pytest.mark.engine("the rules of chess, from the prompt: all legal and all mating moves")
@pytest.mark.parametrize(("pieces", "count"), [(4, 450), (8, 360), (14, 200)])
def test_right_answers_are_the_mates(pieces: int, count: int, compared: Compared) -> None:
    puzzle = CheckmatePuzzle(pieces)
    for seed in range(count):
        instance = puzzle.generate(seed, ("train", "test")[seed & 1])
        board = instance.board.tolist()
        assert sum(piece != 0 for piece in board) == pieces
        assert board.count(KING) == board.count(-KING) == 1
        match = re.search(r"Forsyth-Edwards notation: (.*)", puzzle.prompt(instance))
        assert match
        legal, mating = legal_and_mating(match[1])
        assert not in_check(pieces_of(match[1]), white=False)
        assert legal == set(map(move_name, legal_moves(board, WHITE)))
        assert mating == set(map(move_name, mates(board, WHITE)))
        assert puzzle.solve(instance) in mating
        if seed % 10 == 0:
            assert mating == {name for name in legal if puzzle.verify(instance, name).solved}
        compared(puzzle, instance)


@pytest.mark.parametrize(
    "position",
    [
        # a8q and a8r; the new queen strikes through where the pawn stood before
        "4k3/P7/4K3/8/8/8/8/8 w",
        "8/4P3/8/4k3/8/4K3/8/3R1R2 w",
        "7k/8/6KB/8/8/8/8/R7 w",
        "6rk/6pp/8/6N1/8/8/8/K6R w",
        "8/8/8/5k2/3p4/8/4P3/K7 w",
    ],
)
def test_mates_are_found_wherever_pieces_stand(position: str) -> None:
    """Also where the generator leads to none: promotions that uncover lines, double checks."""
    board = board_of(position)
    legal, mating = legal_and_mating(position)
    assert legal == set(map(move_name, legal_moves(board, WHITE)))
    assert mating == set(map(move_name, mates(board, WHITE)))


def test_mates_on_random_boards() -> None:
    """Many heavy pieces and pawns about to promote; the same, turned round, with black to move."""
    dice = Dice(4, 4)
    num_mates = 0
    boards = 0
    while boards < 1000:
        board = [0] * 64
        squares = dice.sample(range(64), 10)
        for piece, square in zip(  # noqa: B905
            [KING, -KING, *(dice.choice((2, 3, 4, 5, -4, -5)) for _ in range(5))], squares
        ):
            board[square] = piece
        board[48 + squares[7] // 8] = board[48 + squares[7] // 8] or 1
        pieces = pieces_of(fen(board))
        if in_check(pieces, white=False):
            continue
        boards += 1
        mating = legal_and_mating(fen(board))[1]
        assert mating == set(map(move_name, mates(board, WHITE)))
        turned = [-piece for rank in range(7, -1, -1) for piece in board[8 * rank : 8 * rank + 8]]
        back = {
            move._replace(start=move.start ^ 56, end=move.end ^ 56) for move in mates(turned, BLACK)
        }
        assert mating == set(map(move_name, back))
        num_mates += len(mating)
    assert num_mates > 100


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
    after, passing = make_move(board, move)
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
        mating = legal_and_mating(fen(board))[1]
        for words, includes_quiet_moves in ((table.legal, True), (table.mating, False)):
            bits = np.unpackbits(words[number].view(np.uint8), bitorder="little")
            expected = {
                64 * move.start + move.end
                for move in legal_moves(board, WHITE)
                if move.promotion in (0, 5) and (includes_quiet_moves or move_name(move) in mating)
            }
            assert set(np.flatnonzero(bits).tolist()) == expected
        assert bits[list(puzzle.plan(instance))].all()


def test_planned_play_always_succeeds_and_random_play_seldom() -> None:
    task = task_of("CheckmateInOne-v0", 4)
    planned = play(task, SolverPlayer.for_task(task), range(300))
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
    assert (
        puzzle.canonical(Instance(table[:, ::-1].ravel()))
        == puzzle.canonical(a)
        != puzzle.canonical(b)
    )
    assert puzzle.canonical(Instance(table[::-1].ravel())) != puzzle.canonical(a), (
        "pawns have a direction"
    )
    bare = instance_of("8/8/8/8/8/1k6/8/K1QR4 w")
    assert puzzle.canonical(
        Instance(np.rot90(bare.board.reshape(8, 8)).ravel())
    ) == puzzle.canonical(bare)


def test_prompts_show_the_position_twice() -> None:
    puzzle = CheckmatePuzzle(12)
    for seed in range(20):
        instance = puzzle.generate(seed)
        assert board_of(fen(instance.board.tolist())) == instance.board.tolist()
        assert fen(instance.board.tolist()) in puzzle.prompt(instance)


def test_the_number_of_pieces_has_limits() -> None:
    with pytest.raises(ValueError, match="4 to 16"):
        CheckmatePuzzle(3)
