"""The moves of chess, but for castling: enough for positions in which nobody may castle.

A board is a list of 64 pieces, from a1 along the ranks to h8; white pieces are positive, black ones negative, 0 is an
empty square. A side is 1 (white) or -1 (black).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(1, 7)
LETTERS = ".PNBRQK"
WHITE, BLACK = 1, -1
NOWHERE = -1
"""No square to capture on in passing."""


class Move(NamedTuple):
    """From a square to a square; ``promotion`` is the piece that a pawn becomes on the last rank, else 0."""

    start: int
    end: int
    promotion: int = 0


def _steps(square: int, *steps: tuple[int, int]) -> tuple[int, ...]:
    rank, file = divmod(square, 8)
    to = ((rank + y, file + x) for y, x in steps)
    return tuple(8 * r + f for r, f in to if 0 <= r < 8 and 0 <= f < 8)


_STRAIGHT = ((1, 0), (-1, 0), (0, 1), (0, -1))
_DIAGONAL = ((1, 1), (1, -1), (-1, 1), (-1, -1))
_JUMPS = tuple((y, x) for y in (-2, -1, 1, 2) for x in (-2, -1, 1, 2) if abs(y) != abs(x))
_KNIGHT = [_steps(square, *_JUMPS) for square in range(64)]
_KING = [_steps(square, *_STRAIGHT, *_DIAGONAL) for square in range(64)]
_RAYS = {
    piece: [[_steps(square, *((k * y, k * x) for k in range(1, 8))) for y, x in ways] for square in range(64)]
    for piece, ways in ((ROOK, _STRAIGHT), (BISHOP, _DIAGONAL), (QUEEN, _STRAIGHT + _DIAGONAL))
}
_CAPTURES = {side: [_steps(square, (side, 1), (side, -1)) for square in range(64)] for side in (WHITE, BLACK)}
"""Where a pawn captures."""


def attacked(board: Sequence[int], square: int, side: int) -> bool:
    """Whether a piece of the side could capture on a square."""
    if any(board[other] == side * KNIGHT for other in _KNIGHT[square]):
        return True
    if any(board[other] == side * KING for other in _KING[square]):
        return True
    if any(board[other] == side * PAWN for other in _CAPTURES[-side][square]):
        return True
    for piece in (ROOK, BISHOP):
        for ray in _RAYS[piece][square]:
            for other in ray:
                if found := board[other]:
                    if found in (side * piece, side * QUEEN):
                        return True
                    break
    return False


def moves(board: Sequence[int], side: int, passing: int) -> Iterator[Move]:
    """The moves of a side, those that leave its king to be captured included. ``passing`` is the square that a pawn has
    just passed over, or :data:`NOWHERE`.
    """
    for start, owned in enumerate(board):
        piece = owned * side
        if piece == PAWN:
            yield from _pawn_moves(board, side, start, passing)
        elif piece in (KNIGHT, KING):
            for end in (_KNIGHT if piece == KNIGHT else _KING)[start]:
                if board[end] * side <= 0:
                    yield Move(start, end)
        elif piece > 0:
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


def moved(board: Sequence[int], move: Move) -> tuple[list[int], int]:
    """The board after a move, and the square that a pawn passed over."""
    after = list(board)
    piece = after[move.start]
    side = 1 if piece > 0 else -1
    after[move.start] = 0
    if abs(piece) == PAWN and (move.end - move.start) % 8 and not after[move.end]:
        after[move.end - 8 * side] = 0  # captured in passing
    after[move.end] = side * move.promotion or piece
    double = abs(piece) == PAWN and abs(move.end - move.start) == 16
    return after, (move.start + move.end) // 2 if double else NOWHERE


def legal_moves(board: Sequence[int], side: int, passing: int = NOWHERE) -> Iterator[Move]:
    """The moves of a side that do not leave its king to be captured."""
    for move in moves(board, side, passing):
        after, _ = moved(board, move)
        if not attacked(after, after.index(side * KING), -side):
            yield move


def mates(board: Sequence[int], side: int) -> list[Move]:
    """The moves of a side that checkmate the other."""
    found = []
    for move in moves(board, side, NOWHERE):
        after, passing = moved(board, move)
        if not attacked(after, after.index(-side * KING), side) or attacked(after, after.index(side * KING), -side):
            continue
        if next(legal_moves(after, -side, passing), None) is None:
            found.append(move)
    return found


def square_name(square: int) -> str:
    """``e4``."""
    return "abcdefgh"[square % 8] + str(square // 8 + 1)


def move_name(move: Move) -> str:
    """``e2e4``, ``e7e8q``."""
    promotion = LETTERS[move.promotion].lower() if move.promotion else ""
    return square_name(move.start) + square_name(move.end) + promotion
