"""Positions and moves of chess in words and pictures, on the host.

Positions and moves are seen by the side to move (``rules.py``). ``black`` says that this side is
Black; here squares are numbered as White sees them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from .rules import OFFSETS, PAWN, Position

LETTERS = "PNBRQK"
SQUARES = tuple(f"{file}{rank}" for rank in "12345678" for file in "abcdefgh")
_OFFSETS = [tuple(offset) for offset in OFFSETS.tolist()]
"""The same in Python's numbers, which are faster one by one."""
PLANE_OF = {offset: plane for plane, offset in enumerate(_OFFSETS[:64])}
"""Plane of a move by ranks and files."""
PROMOTED = "nbr"
"""Pieces that a pawn becomes by a plane of its own."""
PUSHED = {0: 0, 1: 1, 7: 2}
"""Index of a pawn's step among the planes that promote, by direction."""
SQUARE = 40
"""Pixels of a square."""
LIGHT = (238, 226, 200)
DARK = (170, 130, 95)
MARK = (205, 200, 90)
WHITE = (250, 250, 245)
BLACK = (30, 30, 34)
SHAPES = {
    "P": [(13, 33), (27, 33), (23, 22), (25, 16), (20, 10), (15, 16), (17, 22)],
    "N": [(12, 33), (29, 33), (28, 18), (22, 8), (18, 11), (9, 20), (12, 23), (19, 20), (13, 28)],
    "B": [(11, 33), (29, 33), (25, 27), (27, 18), (20, 7), (13, 18), (15, 27)],
    "R": [(10, 33), (30, 33), (27, 28), (26, 17), (29, 15), (29, 8), (24, 8), (24, 11), (22, 11),
          (22, 8), (18, 8), (18, 11), (16, 11), (16, 8), (11, 8), (11, 15), (14, 17), (13, 28)],
    "Q": [(11, 33), (29, 33), (34, 12), (26, 20), (20, 7), (14, 20), (6, 12)],
    "K": [(11, 33), (29, 33), (32, 19), (25, 16), (22, 17), (22, 11), (25, 11), (25, 8), (22, 8),
          (22, 5), (18, 5), (18, 8), (15, 8), (15, 11), (18, 11), (18, 17), (15, 16), (8, 19)],
}  # fmt: skip
"""Outlines of the pieces, in pixels."""


def members(words: Iterable[Any]) -> list[int]:
    """Return the numbers of the bits that are set in words of 32."""
    bits = []
    for number, word in enumerate(words):
        remaining = int(word)
        while remaining:
            bits.append(32 * number + (remaining & -remaining).bit_length() - 1)
            remaining &= remaining - 1
    return bits


def pieces(position: Position, black: bool) -> dict[int, str]:
    """Return the pieces by square: upper-case letters are White's."""
    *squares_by_kind, own_squares = (
        members(words) for words in zip(position.low, position.high, strict=True)
    )
    flip = 56 * black
    board = {}
    for letter, squares in zip(LETTERS, squares_by_kind, strict=True):
        for square in squares:
            white = (square in own_squares) != black
            board[square ^ flip] = letter if white else letter.lower()
    return board


def fen(position: Position, black: bool, move: int) -> str:
    """Return a position in Forsyth-Edwards notation."""
    board = pieces(position, black)
    rights = int(position.castling)
    passing = int(position.passing)
    squares = "".join([board.get(square, "1") for square in range(64)])
    placed = "/".join([squares[start : start + 8] for start in range(56, -1, -8)])
    placed = re.sub("1+", lambda empty_squares: str(len(empty_squares[0])), placed)
    if black:
        rights = rights >> 2 | (rights & 3) << 2
    castling = "".join(letter for bit, letter in enumerate("KQkq") if rights >> bit & 1) or "-"
    passed = f"{'abcdefgh'[passing]}{3 if black else 6}" if passing >= 0 else "-"
    return f"{placed} {'b' if black else 'w'} {castling} {passed} {int(position.clock)} {move}"


def endpoints(move: int, black: bool) -> tuple[int, int]:
    """Return the square from which a move goes, and that to which it goes; -1 off the board."""
    plane, start = divmod(move, 64)
    up, right = _OFFSETS[plane]
    rank, file = start // 8 + up, start % 8 + right
    end = 8 * rank + file if (rank | file) & ~7 == 0 else -1
    return start ^ 56 * black, end ^ 56 * black if end >= 0 else -1


def move_name(move: int, position: Position, black: bool) -> str:
    """Name a move in UCI notation.

    A move off the board is named by its ranks and files, as the side to move sees it.
    """
    plane = move // 64
    start, end = endpoints(move, black)
    if end < 0:
        up, right = _OFFSETS[plane]
        return f"{SQUARES[start]} by {up} ranks and {right} files"
    letter = (
        PROMOTED[(plane - 64) // 3]
        if plane >= 64
        else "q" * _is_promotion(position, move % 64, end ^ 56 * black)
    )
    return SQUARES[start] + SQUARES[end] + letter


def read_move(text: str, position: Position, black: bool) -> int:
    """Return the move of a text in UCI notation, legal or not.

    Raises:
        ValueError: the text is no such move.
    """
    match = re.fullmatch(r"([a-h][1-8])([a-h][1-8])([nbrq]?)", text)
    if not match:
        raise ValueError(f"expected a move such as e2e4 or e7e8q, got {text[:100]!r}")
    start, end = (SQUARES.index(name) ^ 56 * black for name in match.groups()[:2])
    plane = PLANE_OF.get((end // 8 - start // 8, end % 8 - start % 8), -1)
    letter = match[3]
    if plane < 0:
        raise ValueError(f"no piece moves from {match[1]} to {match[2]}")
    promotes = _is_promotion(position, start, end) and plane in PUSHED
    if letter and not promotes:
        raise ValueError(f"{text}: no pawn of yours becomes another piece there")
    if promotes and not letter:
        raise ValueError(f"{text}: say what the pawn becomes, such as {text}q")
    if letter and letter in PROMOTED:
        plane = 64 + 3 * PROMOTED.index(letter) + PUSHED[plane]
    return 64 * plane + start


def _is_promotion(position: Position, start: int, end: int) -> bool:
    """Return whether an own pawn leaves for the last rank.

    Squares are those that the side to move sees.
    """
    words = position.low if start < 32 else position.high
    return end >= 56 and bool(int(words[PAWN]) & int(words[6]) & 1 << start % 32)


def format_board(board: dict[int, str]) -> str:
    """Write a board, rank 8 first."""
    rows = []
    for rank in range(7, -1, -1):
        letters = [board.get(8 * rank + file, ".") for file in range(8)]
        rows.append(f"{rank + 1} {' '.join(letters)}")
    return "\n".join([*rows, "  a b c d e f g h"])


def draw_board(board: dict[int, str], marked: tuple[int, ...] = ()) -> np.ndarray:
    """Draw a board as White sees it, some squares marked."""
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", (8 * SQUARE, 8 * SQUARE))
    pen = ImageDraw.Draw(picture)
    for square in range(64):
        left, top = SQUARE * (square % 8), SQUARE * (7 - square // 8)
        fill = LIGHT if (square // 8 + square) % 2 else DARK
        if square in marked:
            fill = MARK
        pen.rectangle((left, top, left + SQUARE - 1, top + SQUARE - 1), fill=fill)
        if letter := board.get(square):
            colours = (WHITE, BLACK) if letter.isupper() else (BLACK, WHITE)
            outline = [(left + x, top + y) for x, y in SHAPES[letter.upper()]]
            pen.polygon(outline, fill=colours[0], outline=colours[1])
    return np.asarray(picture)
