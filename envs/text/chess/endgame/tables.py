"""Tables of chess endgames in which White has a king and one piece, and Black a king.

They hold every position and are solved backwards (Stroehlein 1970; Thompson 1986, "Retrograde
analysis of certain endgames", ICCA Journal 9:3). Positions in which Black is mated are known. Those
from which White can reach one are won in one move. Those in which every move of Black leads to a
won position are lost; and so on until nothing is added. A pawn that promotes becomes a queen, whose
table is solved before.

A position is three squares: white king, piece, black king, each 0 to 63 from a1 along the ranks to
h8.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

QUEEN, ROOK, PAWN, BISHOP = "Q", "R", "P", "B"
STEPS = np.array([(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)])
"""Rank and file of a step in each direction: north, north-east, ... clockwise."""
DIRECTIONS = 8
MAX_SLIDE = 7
KING_MOVES = DIRECTIONS
MOVES = KING_MOVES + DIRECTIONS * MAX_SLIDE
"""Moves of White: the king's by direction, then the piece's by direction and distance (1 to 7)."""
SLIDES = {QUEEN: range(8), ROOK: range(0, 8, 2), BISHOP: range(1, 8, 2), PAWN: range(0)}
"""Directions in which a piece slides."""
MATE = 8
STALEMATE = 9
"""Replies of Black that has none."""
NO_MATE = -1
NORTH = 0

_ranks, _files = np.divmod(np.arange(64), 8)
_rows = _ranks[:, None, None] + STEPS[:, :1] * np.arange(1, 8)
_columns = _files[:, None, None] + STEPS[:, 1:] * np.arange(1, 8)
RAYS = np.where((_rows | _columns) & ~7, -1, 8 * _rows + _columns).astype(np.int8)
"""The square that lies 1 to 7 steps from a square in a direction, ``(64, 8, 7)``; -1 off the board.
"""
NEAR = np.maximum(abs(_ranks[:, None] - _ranks), abs(_files[:, None] - _files)) <= 1
"""Whether two squares touch or are the same, ``(64, 64)``."""
_ahead = (RAYS[:, None] >= 0) & (RAYS[:, None] != np.arange(64, dtype=np.int8)[:, None, None])
REACH = np.cumprod(_ahead, -1).sum(-1).astype(np.int8)
"""Free squares from a square up to the edge or to a king.

Squares, kings and directions index it: ``(64, 64, 8)``.
"""


class Tables(NamedTuple):
    """An endgame, every position ``[white king, piece, black king]``, int8 ``(64, 64, 64)``."""

    distance: np.ndarray
    """White to move: the number of moves to the quickest mate.

    -1 stands where there is none, and where the position is illegal.
    """
    best: np.ndarray
    """White to move: a move that leads to the quickest mate; -1 where ``distance`` is."""
    lost: np.ndarray
    """Black to move: the number of moves that White still needs for mate, 0 if it is mate.

    -1 stands where White cannot force it.
    """
    reply: np.ndarray
    """Black to move: the direction of the best reply, or :data:`MATE` or :data:`STALEMATE`.

    It draws if it can, by capture at best, else it lasts longest. Of equals it is the first
    clockwise from north.
    """


def attacked_squares(piece: str) -> np.ndarray:
    """Return the squares that a piece attacks, bool ``(64 white king, 64 piece, 64)``.

    Black's king blocks nothing.
    """
    attacked = np.zeros((64, 64, 64), bool)
    kings, squares = np.indices((64, 64)).reshape(2, -1)
    if piece == PAWN:
        reach = [(direction, 0, squares < 64) for direction in (1, 7)]
    else:
        reach = [
            (d, k, k < REACH[squares, kings, d]) for d in SLIDES[piece] for k in range(MAX_SLIDE)
        ]
    for direction, steps, free in reach:
        target = RAYS[squares, direction, steps]
        hit = free & (target >= 0)
        attacked[kings[hit], squares[hit], target[hit]] = True
    return attacked


@cache
def solve(piece: str) -> Tables:
    """Return the tables of a piece; of all pieces together they take about a second."""
    king, at, foe = np.indices((64, 64, 64), np.int8)
    attacked = attacked_squares(piece)
    placed = ~NEAR[king, foe] & (king != at) & (at != foe)
    if piece == PAWN:
        placed &= (at >= 8) & (at < 56)
    to_move = placed & ~attacked  # White to move, and Black not in check
    distance, best, lost = (np.full((64, 64, 64), NO_MATE, np.int8) for _ in range(3))

    targets = RAYS[foe, :, 0]  # (64, 64, 64, 8)
    legal = (targets >= 0) & placed[..., None] & ~NEAR[king[..., None], targets]
    legal &= ~attacked[king[..., None], at[..., None], targets]
    escapes = legal.sum(-1, dtype=np.int8)  # replies that do not lose, as far as is known
    mated = placed & (escapes == 0) & attacked
    lost[mated] = 0

    promotions = np.full((64, 64, 64), NO_MATE, np.int8)
    if piece == PAWN:
        ready = to_move & (at >= 48) & (king != at + 8) & (foe != at + 8)
        after = solve(QUEEN).lost[king[ready], at[ready] + 8, foe[ready]]
        promotions[ready] = np.where(after >= 0, after + 1, NO_MATE)

    frontier = np.argwhere(mated).T.astype(np.int8)
    moves = 0
    while frontier.size or moves < promotions.max():
        moves += 1
        whites, squares, blacks = np.nonzero(promotions == moves)
        predecessors = [
            *_positions_before_white(piece, *frontier),
            (whites, squares, blacks, KING_MOVES + MAX_SLIDE * NORTH),
        ]
        won = np.zeros((64, 64, 64), bool)
        for whites, squares, blacks, move in predecessors:
            new = to_move[whites, squares, blacks] & (distance[whites, squares, blacks] == NO_MATE)
            position = whites[new], squares[new], blacks[new]
            won[position] = True
            best[position] = move
        distance[won] = moves
        whites, squares, blacks = np.nonzero(won)
        for direction in range(DIRECTIONS):
            back = RAYS[blacks, direction, 0]
            there = back >= 0
            np.subtract.at(escapes, (whites[there], squares[there], back[there]), 1)
        newly = placed & (escapes == 0) & (lost == NO_MATE) & legal.any(-1)
        lost[newly] = moves
        frontier = np.argwhere(newly).T.astype(np.int8)

    captures = targets == at[..., None]
    value = np.where(captures, 127, distance[king[..., None], at[..., None], targets])
    value = np.where(legal, np.where(value == NO_MATE, 126, value), -1)
    none = np.where(attacked, MATE, STALEMATE)
    reply = np.where(legal.any(-1), value.argmax(-1), none).astype(np.int8)
    return Tables(distance, best, lost, reply)


def _positions_before_white(
    piece: str, king: np.ndarray, at: np.ndarray, foe: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, int]]:
    """Return the positions before a move of White, legal or not, and the move.

    The arguments are the positions after it.
    """
    predecessors = []
    for direction in range(DIRECTIONS):
        back = RAYS[king, (direction + 4) % 8, 0]
        there = back >= 0
        predecessors.append((back[there], at[there], foe[there], direction))
    if piece == PAWN:
        for steps in (1, 2):
            free = at >= 16 if steps == 1 else (at // 8 == 3) & (king != at - 8) & (foe != at - 8)
            predecessors.append(
                (
                    king[free],
                    at[free] - 8 * steps,
                    foe[free],
                    KING_MOVES + MAX_SLIDE * NORTH + steps - 1,
                )
            )
        return predecessors
    for direction in SLIDES[piece]:
        for steps in range(MAX_SLIDE):
            back = RAYS[at, (direction + 4) % 8, steps]
            free = steps < REACH[at, king, (direction + 4) % 8]
            predecessors.append(
                (king[free], back[free], foe[free], KING_MOVES + MAX_SLIDE * direction + steps)
            )
    return predecessors
