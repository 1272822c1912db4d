"""The table of king and two bishops of opposite colours against king, solved backwards.

Retrograde analysis as in :mod:`.tables`. A position is four squares: white king, bishop on light
squares, bishop on dark squares, black king; a bishop's square is counted among the 32 of its
colour. Bishops of opposite colours never stand in each other's way.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from .tables import (
    BISHOP,
    DIRECTIONS,
    KING_MOVES,
    MATE,
    MAX_SLIDE,
    MOVES,
    NEAR,
    NO_MATE,
    RAYS,
    REACH,
    SLIDES,
    STALEMATE,
    Tables,
    attacked_squares,
)

SHAPE = (64, 32, 32, 64)
"""White king, light bishop, dark bishop, black king."""
_squares = np.arange(64)
LIGHT_SQUARES, DARK_SQUARES = (
    _squares[(_squares // 8 + _squares) % 2 == colour] for colour in (1, 0)
)
"""Squares by colour; a square is number ``square // 2`` of its colour."""
_SHIFTS = 11, 6
"""Bits of a position's number below those of each bishop."""


@cache
def solve_bishops() -> Tables:
    """Return the tables, each ``(64, 32, 32, 64)``.

    In ``best``, the dark bishop's moves are counted from ``MOVES`` on.
    """
    attacks = attacked_squares(BISHOP)
    attacked = attacks[:, LIGHT_SQUARES][:, :, None] | attacks[:, DARK_SQUARES][:, None]
    king, light, dark, foe = np.ogrid[:64, :64:2, :64:2, :64]
    light, dark = LIGHT_SQUARES[light // 2], DARK_SQUARES[dark // 2]
    placed = ~NEAR[king, foe] & (king != light) & (king != dark) & (light != foe) & (dark != foe)
    to_move = (placed & ~attacked).ravel()
    steps = RAYS[:, :, 0].astype(np.int32)
    legal = [
        placed
        & (steps[:, d] >= 0)
        & ~NEAR[:, steps[:, d]][:, None, None]
        & ~attacked[..., steps[:, d]]
        for d in range(DIRECTIONS)
    ]
    escapes = np.sum(legal, 0, dtype=np.int8)
    mated = placed & (escapes == 0) & attacked
    may_move = (escapes > 0).ravel()

    distance, best, lost = (np.full(placed.size, NO_MATE, np.int8) for _ in range(3))
    lost[mated.ravel()] = 0
    escapes = escapes.ravel()
    frontier = np.flatnonzero(mated).astype(np.int32)
    moves = 0
    while frontier.size:
        moves += 1
        won = np.zeros(placed.size, bool)
        for before, move in _positions_before_white(frontier):
            new = before[to_move[before] & (distance[before] == NO_MATE)]
            won[new] = True
            best[new] = move
        distance[won] = moves
        newly_won = np.flatnonzero(won).astype(np.int32)
        fewer = np.zeros(placed.size, bool)
        for direction in range(DIRECTIONS):
            back = steps[newly_won & 63, direction]
            there = back >= 0
            before = newly_won[there] & ~63 | back[there]
            escapes[before] -= 1
            fewer[before] = True
        before = np.flatnonzero(fewer).astype(np.int32)
        frontier = before[
            placed.ravel()[before]
            & (escapes[before] == 0)
            & (lost[before] == NO_MATE)
            & may_move[before]
        ]
        lost[frontier] = moves

    value = np.full(SHAPE, -1, np.int8)
    reply = np.where(attacked, MATE, STALEMATE).astype(np.int8)
    ahead = distance.reshape(SHAPE)
    for direction in range(DIRECTIONS):
        target = steps[:, direction]
        after = ahead[..., target]
        worth = np.where(
            (target == light) | (target == dark), 127, np.where(after == NO_MATE, 126, after)
        )
        better = legal[direction] & (worth > value)
        value[better] = worth[better]
        reply[better] = direction
    return Tables(ahead, best.reshape(SHAPE), lost.reshape(SHAPE), reply)


def _positions_before_white(after: np.ndarray) -> list[tuple[np.ndarray, int]]:
    """Return numbers of positions before a move of White, legal or not, and the move."""
    king = after >> 16
    predecessors = []
    for direction in range(DIRECTIONS):
        back = RAYS[king, (direction + 4) % 8, 0].astype(np.int32)
        there = back >= 0
        predecessors.append((back[there] << 16 | after[there] & 0xFFFF, direction))
    for which, (squares, shift) in enumerate(
        zip((LIGHT_SQUARES, DARK_SQUARES), _SHIFTS, strict=True)
    ):
        at = squares[after >> shift & 31]
        for direction in SLIDES[BISHOP]:
            reach = REACH[at, king, (direction + 4) % 8]
            for step in range(MAX_SLIDE):
                free = np.flatnonzero(reach > step)
                back = RAYS[at[free], (direction + 4) % 8, step].astype(np.int32) >> 1
                move = (MOVES if which else KING_MOVES) + MAX_SLIDE * direction + step
                predecessors.append((after[free] & ~(31 << shift) | back << shift, move))
    return predecessors
