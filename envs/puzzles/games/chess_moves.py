"""The moves of chess without castling, enough for positions in which nobody may castle.

A board is a list of 64 pieces, from a1 along the ranks to h8; white pieces are positive, black ones
negative, 0 is an empty square. A side is 1 (white) or -1 (black).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(1, 7)
LETTERS = ".PNBRQK"
WHITE, BLACK = 1, -1
NOWHERE = -1
"""Mark of a position without en-passant capture."""


class Move(NamedTuple):
    """A move from a square to a square.

    ``promotion`` is the piece that a pawn becomes on the last rank, else 0.
    """

    start: int
    end: int
    promotion: int = 0


def _steps(square: int, *steps: tuple[int, int]) -> tuple[int, ...]:
    rank, file = divmod(square, 8)
    to = ((rank + y, file + x) for y, x in steps)
    return tuple(8 * r + f for r, f in to if 0 <= r < 8 and 0 <= f < 8)


def _rays(square: int, ways: Iterable[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Return the squares in each direction, the nearest first."""
    return [_steps(square, *((k * y, k * x) for k in range(1, 8))) for y, x in ways]


_STRAIGHT = ((1, 0), (-1, 0), (0, 1), (0, -1))
_DIAGONAL = ((1, 1), (1, -1), (-1, 1), (-1, -1))
_JUMPS = tuple((y, x) for y in (-2, -1, 1, 2) for x in (-2, -1, 1, 2) if abs(y) != abs(x))
_KNIGHT = [_steps(square, *_JUMPS) for square in range(64)]
_KING = [_steps(square, *_STRAIGHT, *_DIAGONAL) for square in range(64)]
_RAYS = {
    piece: [_rays(square, ways) for square in range(64)]
    for piece, ways in ((ROOK, _STRAIGHT), (BISHOP, _DIAGONAL), (QUEEN, _STRAIGHT + _DIAGONAL))
}
_CAPTURES = {
    side: [_steps(square, (side, 1), (side, -1)) for square in range(64)] for side in (WHITE, BLACK)
}
"""Squares on which a pawn captures."""


def _bits(squares: Iterable[int]) -> int:
    return sum(1 << square for square in squares)


def _ends_of_rays(piece: int) -> list[int]:
    return [_bits(chain(*rays)) for rays in _RAYS[piece]]


_REACH = [
    [0] * 64,
    [0] * 64,
    [_bits(ends) for ends in _KNIGHT],
    *(_ends_of_rays(piece) for piece in (BISHOP, ROOK, QUEEN)),
    [_bits(ends) for ends in _KING],
]
"""Squares that each piece except pawns could reach from each square on an empty board."""


def is_attacked(board: Sequence[int], square: int, side: int) -> bool:
    """Return whether a piece of the side could capture on a square."""
    for piece, squares in (
        (KNIGHT, _KNIGHT[square]),
        (KING, _KING[square]),
        (PAWN, _CAPTURES[-side][square]),
    ):
        attacker = side * piece
        for origin in squares:
            if board[origin] == attacker:
                return True
    queen = side * QUEEN
    for piece in (ROOK, BISHOP):
        attacker = side * piece
        for ray in _RAYS[piece][square]:
            for origin in ray:
                if piece_there := board[origin]:
                    if piece_there in (attacker, queen):
                        return True
                    break
    return False


def moves(board: Sequence[int], side: int, passing: int) -> Iterator[Move]:
    """Return the moves of a side, including moves that leave its king in check.

    ``passing`` is the square that a pawn has just passed over, or :data:`NOWHERE`.
    """
    for start, owned in enumerate(board):
        if owned * side > 0:
            yield from _moves_of(board, side, start, passing)


def _moves_of(board: Sequence[int], side: int, start: int, passing: int) -> Iterator[Move]:
    """Yield the moves of the piece on a square."""
    piece = board[start] * side
    if piece == PAWN:
        yield from _pawn_moves(board, side, start, passing)
    elif piece in (KNIGHT, KING):
        for end in (_KNIGHT if piece == KNIGHT else _KING)[start]:
            if board[end] * side <= 0:
                yield Move(start, end)
    else:
        for ray in _RAYS[piece][start]:
            for end in ray:
                if board[end] * side <= 0:
                    yield Move(start, end)
                if board[end]:
                    break


def _pawn_moves(board: Sequence[int], side: int, start: int, passing: int) -> Iterator[Move]:
    ends = [end for end in _CAPTURES[side][start] if board[end] * side < 0 or end == passing]
    ahead = start + 8 * side
    if not board[ahead]:
        ends.append(ahead)
        if start // 8 == (1 if side == WHITE else 6) and not board[ahead + 8 * side]:
            ends.append(ahead + 8 * side)
    for end in ends:
        if end // 8 in (0, 7):
            for promotion in (QUEEN, ROOK, BISHOP, KNIGHT):
                yield Move(start, end, promotion)
        else:
            yield Move(start, end)


def make_move(board: Sequence[int], move: Move) -> tuple[list[int], int]:
    """Return the board after a move, and the square that a pawn passed over."""
    new_board = list(board)
    piece = new_board[move.start]
    side = 1 if piece > 0 else -1
    new_board[move.start] = 0
    if abs(piece) == PAWN and (move.end - move.start) % 8 and not new_board[move.end]:
        new_board[move.end - 8 * side] = 0  # captured in passing
    new_board[move.end] = side * move.promotion or piece
    double = abs(piece) == PAWN and abs(move.end - move.start) == 16
    return new_board, (move.start + move.end) // 2 if double else NOWHERE


def legal_moves(board: Sequence[int], side: int, passing: int = NOWHERE) -> Iterator[Move]:
    """Return the moves of a side that do not leave its king in check."""
    for move in moves(board, side, passing):
        new_board, _ = make_move(board, move)
        if not is_attacked(new_board, new_board.index(side * KING), -side):
            yield move


def mates(board: Sequence[int], side: int) -> list[Move]:
    """Return the moves of a side that checkmate the other, which is not in check."""
    king, own_king = board.index(-side * KING), board.index(side * KING)
    near, opening = _checks(board, king, side)
    mating_moves = []
    for start, owned in enumerate(board):
        piece, opens = owned * side, start in opening
        if piece <= 0 or not (opens or piece == PAWN or _REACH[piece][start] & near[piece]):
            continue
        for move in _moves_of(board, side, start, NOWHERE):
            checks = near[piece] >> move.end & 1 and not move.promotion
            if not (checks or move.promotion or opens):
                continue
            new_board, passing = make_move(board, move)
            if not (checks or is_attacked(new_board, king, side)):
                continue
            safe = not is_attacked(new_board, move.end if start == own_king else own_king, -side)
            if safe and not _may_move(new_board, king, -side, passing):
                mating_moves.append(move)
    return mating_moves


def _checks(board: Sequence[int], king: int, side: int) -> tuple[list[int], set[int]]:
    """Find the moves that can give check to a king.

    Return for each piece of the side the squares, as bits, from which it gives check if it is not
    promoted there. Also return the squares from which a piece may move away so that another one
    gives check.
    """
    near = [0, _bits(_CAPTURES[-side][king]), _bits(_KNIGHT[king]), 0, 0, 0, 0]
    opening: set[int] = set()
    for piece in (BISHOP, ROOK):
        sliders = side * piece, side * QUEEN
        for ray in _RAYS[piece][king]:
            blocked = NOWHERE
            for square in ray:
                if blocked == NOWHERE:
                    near[piece] |= 1 << square
                if not (piece_there := board[square]):
                    continue
                if blocked != NOWHERE:
                    if piece_there in sliders:
                        opening.add(blocked)
                    break
                if piece_there * side < 0:
                    break
                blocked = square
    near[QUEEN] = near[BISHOP] | near[ROOK]
    return near, opening


def _may_move(board: list[int], king: int, side: int, passing: int) -> bool:
    """Return whether a side with its king on that square has a legal move.

    Usually the king itself has one.
    """
    board[king] = 0
    flight = any(
        board[end] * side <= 0 and not is_attacked(board, end, -side) for end in _KING[king]
    )
    board[king] = side * KING
    if flight:
        return True
    for move in moves(board, side, passing):
        if move.start != king and not is_attacked(make_move(board, move)[0], king, -side):
            return True
    return False


def square_name(square: int) -> str:
    """Name a square, as ``e4``."""
    return "abcdefgh"[square % 8] + str(square // 8 + 1)


def move_name(move: Move) -> str:
    """Name a move, as ``e2e4`` or ``e7e8q``."""
    promotion = LETTERS[move.promotion].lower() if move.promotion else ""
    return square_name(move.start) + square_name(move.end) + promotion
