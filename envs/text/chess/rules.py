"""The rules of chess as pure functions on bits.

They give legal moves, the positions after them, and material that cannot mate.

Everything is seen by the side to move: its pieces are "own", the others "foe", and its pawns go
north. After a move the board is flipped top to bottom, and the other side becomes own. So the rules
are written once for both colours.

A move is a number ``64 * plane + square``: the square from which a piece moves, and one of 73
planes, as in AlphaZero (Silver et al. 2018, doi:10.1126/science.aar6404) in another order. Plane 8
(k - 1) + d moves k squares in direction d (north, north-east, ... clockwise), 56 + j makes jump j
of a knight, 64 + 3 p + i promotes to a knight, a bishop or a rook (p = 0, 1, 2) by a step north,
north-east or north-west (i). Any other move of a pawn to the last rank promotes to a queen.
Castling moves the king by two squares.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rlbench_suite.core.arrays import Flag, Int, UInt32Array
from rlbench_suite.numerics.reductions import sum_in_order

from .bitboards import (
    EAST,
    JUMPS,
    LEAPS,
    MAX_SLIDE,
    NORTH,
    NORTH_EAST,
    NORTH_WEST,
    RAYS,
    SOUTH,
    SOUTH_EAST,
    SOUTH_WEST,
    STEPS,
    WEST,
    Bits,
    Shift,
    full_where,
    sliding_reach,
    square_bit,
    squares,
    stack_sets,
    store_sets,
)

PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(6)
PLANES = 8 * MAX_SLIDE + len(JUMPS) + 9
MOVES = 64 * PLANES
WORDS = 2 * PLANES
PUSHES = (NORTH, NORTH_EAST, NORTH_WEST)
OFFSETS = np.array(
    [
        *((k * up, k * right) for k in range(1, MAX_SLIDE + 1) for up, right in STEPS),
        *JUMPS,
        *(STEPS[direction] for direction in PUSHES * 3),
    ]
)
"""Ranks and files of the move of each plane, ``(73, 2)``."""
PROMOTIONS = np.repeat([QUEEN, KNIGHT, BISHOP, ROOK], [64, 3, 3, 3])
"""The piece that a pawn becomes on the last rank, by plane."""
LIMIT = 100
"""Moves of both sides without a capture or a move of a pawn after which the game is drawn."""
NO_PASSING = -1
OWN_SHORT, OWN_LONG, FOE_SHORT, FOE_LONG = 1, 2, 4, 8
"""Rights to castle, as bits."""
SLIDES_STRAIGHT = np.arange(8) % 2 == 0
"""Directions of rooks; the others are those of bishops."""
_OPPOSITE = np.arange(4, 12, dtype=np.int32) % 8
_BACK = Shift.along(*(-OFFSETS[:64]).tolist())
"""From the end of each move that is no promotion to its start."""
_ALL = squares(*range(64))
_LIGHT = squares(*(square for square in range(64) if (square // 8 + square) % 2))
_SECOND_RANK = squares(*range(8, 16))
_SEVENTH_RANK = squares(*range(48, 56))
_SHORT_FREE = squares(5, 6)
_LONG_FREE = squares(1, 2, 3)
_SHORT_SAFE = squares(4, 5, 6)
_LONG_SAFE = squares(2, 3, 4)
_ONE_STEP = full_where(np.arange(MAX_SLIDE)[:, None] == 0)
_NEARER = full_where(np.arange(MAX_SLIDE)[:, None, None] < np.arange(MAX_SLIDE)[:, None])


def _mark_steps(steps: int, *directions: int) -> Bits:
    """Mark moves by some squares in some directions, ``(7, 8)``."""
    return full_where(
        (np.arange(1, MAX_SLIDE + 1)[:, None] == steps) & np.isin(np.arange(8), directions)
    )


def _toward(*directions: int) -> Bits:
    """Mark some directions, ``(8,)``."""
    return full_where(np.isin(np.arange(8), directions))


_PUSH = _mark_steps(1, NORTH)
_CAPTURE = _mark_steps(1, NORTH_EAST, NORTH_WEST)
_DOUBLE = _mark_steps(2, NORTH)
_FROM_PAWNS = _toward(NORTH_EAST, NORTH_WEST)
_BY_FOE_PAWNS = _toward(SOUTH_EAST, SOUTH_WEST)


class Position(NamedTuple):
    """A position, seen by the side to move."""

    low: UInt32Array  # (7,)
    """Squares a1 to h4 of each set of pieces, uint32 ``(7,)``.

    The sets are pawns, knights, bishops, rooks, queens, kings, and own pieces.
    """
    high: UInt32Array  # (7,)
    """Squares a5 to h8, likewise."""
    castling: Int
    """Rights to castle, int32: 1 own short, 2 own long, 4 and 8 those of the foe."""
    passing: Int
    """File of the pawn that may be captured in passing, int32; -1 where none may."""
    clock: Int
    """Moves of both sides since a capture or a move of a pawn, int32."""

    @property
    def kinds(self) -> Bits:
        """Sets of the six kinds of pieces, of both sides."""
        return Bits(self.low[:6], self.high[:6])

    @property
    def own_pieces(self) -> Bits:
        """Squares of own pieces."""
        return Bits(self.low[6], self.high[6])

    def swap_sides(self) -> Position:
        """Return the position as the other side sees it."""
        foe = self.kinds.union() & ~self.own_pieces
        low, high = Bits(
            jnp.append(self.low[:6], foe.low), jnp.append(self.high[:6], foe.high)
        ).flip()
        return self._replace(
            low=low, high=high, castling=self.castling >> 2 | (self.castling & 3) << 2
        )


class Legal(NamedTuple):
    """Legal moves of a position."""

    words: UInt32Array  # (146,)
    """Bit b of word w stands for move ``32 * w + b``; uint32 (146,)."""
    check: Flag
    """Whether the side to move is in check, bool."""

    def size(self) -> jax.Array:
        """Return the number of legal moves, int32."""
        return lax.population_count(self.words).sum(dtype=jnp.int32)

    def nth(self, rank: jax.Array) -> jax.Array:
        """Return the legal move with ``rank`` smaller ones, int32.

        If there is none, the number means nothing.
        """
        words = jnp.pad(self.words, (0, -WORDS % 16)).reshape(-1, 16)
        counts = lax.population_count(words).astype(jnp.int32)
        group, rank = _find_group(counts.sum(1, dtype=jnp.int32), rank)
        index, rank = _find_group(counts[group], rank)
        word = words[group, index]
        bit = jnp.int32(0)
        for half in (16, 8, 4, 2, 1):
            lower = lax.population_count(word & np.uint32(2**half - 1)).astype(jnp.int32)
            above = rank >= lower
            rank = rank - jnp.where(above, lower, 0)
            step = jnp.where(above, half, 0)
            word = word >> step.astype(jnp.uint32)
            bit = bit + step
        return (group * 16 + index) * 32 + bit

    def mask(self) -> jax.Array:
        """Return whether each move is legal, bool ``(4672,)``."""
        return (self.words[:, None] >> np.arange(32, dtype=np.uint32) & 1 == 1).reshape(-1)


def _find_group(counts: jax.Array, rank: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Find the group that holds the member with an overall rank, and its rank within the group."""
    number = np.arange(counts.shape[0])
    until = jnp.where(number[:, None] >= number, counts, 0).sum(1, dtype=jnp.int32)
    past = until <= rank
    group = jnp.minimum(past.sum(dtype=jnp.int32), counts.shape[0] - 1)
    return group, rank - jnp.where(past, counts, 0).sum(dtype=jnp.int32)


def by_direction(straight: Bits, diagonal: Bits) -> Bits:
    """Return the pieces that slide in each direction, ``(8,)``."""
    return Bits(
        *(
            jnp.where(SLIDES_STRAIGHT, along_straight, along_diagonal)
            for along_straight, along_diagonal in zip(straight, diagonal, strict=True)
        )
    )


def legal_moves(position: Position) -> tuple[Legal, jax.Array]:
    """Return the legal moves, and whether one of them captures in passing."""
    own_pieces = position.own_pieces
    kinds = position.kinds
    everyone = kinds.union()
    foe = everyone & ~own_pieces
    empty = ~everyone
    pawns, knights, bishops, rooks, queens, kings = (kinds.at(kind) for kind in range(6))
    king = own_pieces & kings
    sliders = by_direction(rooks | queens, bishops | queens)
    own_sliders = sliders & own_pieces
    foe_sliders = sliders & foe

    # Captures in passing: the board without both pawns, for a capture to the north-east and one to
    # the north-west.
    target = square_bit(jnp.where(position.passing < 0, 64, 40 + position.passing))
    victim = RAYS.at(SOUTH)(target)
    takers = [
        RAYS.at(direction)(target) & own_pieces & pawns for direction in (SOUTH_WEST, SOUTH_EAST)
    ]
    without = [(empty | taker | victim) & ~target for taker in takers]

    # Squares that foes see through the king, and that the king sees: attacks, checks and pins.
    sources = stack_sets(foe_sliders, *[king.widen()] * 3)
    views = sliding_reach(
        sources, stack_sets(*(free.widen() for free in (empty | king, empty, *without)))
    )
    attacked = views.at(0)
    rays = views.at(1)
    near = RAYS(king)
    hits = (rays & foe_sliders).any()
    contact = ((LEAPS(king) & foe & knights) | (near & _FROM_PAWNS & foe & pawns)).union()
    danger = (
        attacked | LEAPS(foe & knights) | RAYS(foe & kings) | (RAYS(foe & pawns) & _BY_FOE_PAWNS)
    )
    danger = danger.union()
    checks = sum_in_order(hits.astype(jnp.int32)) + contact.size()
    answers = (rays.where(hits).union() | contact).where(checks == 1) | _ALL.where(checks == 0)
    pinned = rays & attacked.at(_OPPOSITE) & own_pieces
    pinned_pieces = pinned.union()
    # From where a piece may move in each direction.
    free = store_sets(~pinned_pieces | pinned | pinned.at(_OPPOSITE))

    # Moves by distance and direction, (7, 8): the sets of squares from which they start.
    # From where the move of a plane ends on a square that answers all checks.
    ends = store_sets(_BACK(answers & ~own_pieces))
    occupied = store_sets(_BACK(everyone)).at(slice(56)).reshape(7, 8)
    clear_path = store_sets(
        ~Bits(*(lax.reduce_or(half, (0,)) for half in occupied.reshape(7, 1, 8) & _NEARER))
    )
    clear_moves = ends.at(slice(56)).reshape(7, 8) & free & clear_path
    pushes = ~occupied & (_PUSH | (_DOUBLE & _SECOND_RANK))
    captures_in_passing = [
        _takes(views.at(2 + i), foe_sliders, taker, contact & ~victim)
        for i, taker in enumerate(takers)
    ]
    passing = (captures_in_passing[0] & _mark_steps(1, NORTH_EAST)) | (
        captures_in_passing[1] & _mark_steps(1, NORTH_WEST)
    )
    by_pawns = store_sets(
        (own_pieces & pawns & clear_moves & (pushes | (occupied & _CAPTURE))) | passing
    )
    steps = king.where((near & ~own_pieces & ~danger).any()) & _ONE_STEP
    short = (position.castling & OWN_SHORT != 0) & ~(
        (everyone & _SHORT_FREE) | (danger & _SHORT_SAFE)
    ).any()
    long = (position.castling & OWN_LONG != 0) & ~(
        (everyone & _LONG_FREE) | (danger & _LONG_SAFE)
    ).any()
    castles = (king.where(short) & _mark_steps(2, EAST)) | (king.where(long) & _mark_steps(2, WEST))
    moves = store_sets((own_sliders & clear_moves) | by_pawns | steps | castles)
    jumps = own_pieces & knights & ~pinned_pieces & ends.at(slice(56, 64))
    promotions = by_pawns.at((0, np.array(PUSHES * 3, np.int32))) & _SEVENTH_RANK
    low, high = map(jnp.concatenate, zip(moves.reshape(56), jumps, promotions, strict=True))
    return Legal(jnp.stack([low, high], -1).reshape(-1), checks > 0), (
        captures_in_passing[0] | captures_in_passing[1]
    ).any()


def _takes(rays: Bits, foe_sliders: Bits, taker: Bits, contact: Bits) -> Bits:
    """Return the pawn that takes in passing if its king is safe afterwards."""
    return taker.where(~((rays & foe_sliders).union() | contact).any())


def advance(position: Position, move: jax.Array) -> tuple[Position, Legal]:
    """Return the position after a legal move, seen by the other side, and the legal moves there."""
    after = make_move(position, move)
    legal, passes = legal_moves(after)
    return after._replace(passing=jnp.where(passes, after.passing, NO_PASSING)), legal


def make_move(position: Position, move: jax.Array) -> Position:
    """Return the position after a legal move, seen by the other side.

    Whoever ``passing`` names may be out of reach.
    """
    plane = move >> 6
    start = move & 63
    rank, file = (jnp.asarray(OFFSETS[:, axis], jnp.int32)[plane] for axis in (0, 1))
    end = start + 8 * rank + file
    departure, arrival = square_bit(start), square_bit(end)
    own_pieces = position.own_pieces
    kinds = position.kinds
    moving = (kinds & departure).any()  # one of the six
    pawn, king = moving[PAWN], moving[KING]
    captures = (kinds & ~own_pieces & arrival).any().any()
    promoted = jnp.arange(6) == jnp.asarray(PROMOTIONS, jnp.int32)[plane]
    becomes = jnp.where(pawn & (end >= 56), promoted, moving)
    passed = pawn & (position.passing >= 0) & (end == 40 + position.passing) & (file != 0)
    victim = square_bit(end - 8).where(passed)
    kinds = (kinds & ~(departure | arrival | victim)) | arrival.where(becomes)
    castles = king & (file * file == 4)
    rook = (squares(5, 7).where(file > 0) | squares(0, 3).where(file < 0)).where(castles)
    kinds ^= rook.where(np.arange(6) == ROOK)
    own_pieces = ((own_pieces & ~departure) | arrival) ^ rook
    castling = position.castling
    for rights, corner in ((3, 4), (OWN_SHORT, 7), (OWN_LONG, 0), (FOE_SHORT, 63), (FOE_LONG, 56)):
        castling = jnp.where((start == corner) | (end == corner), castling & ~rights, castling)
    return Position(
        jnp.append(kinds.low, own_pieces.low),
        jnp.append(kinds.high, own_pieces.high),
        castling,
        jnp.where(pawn & (rank == 2), start & 7, NO_PASSING),
        jnp.where(pawn | captures, 0, position.clock + 1),
    ).swap_sides()


def cannot_mate(position: Position) -> jax.Array:
    """Return whether neither side can ever mate.

    Besides the kings there is then one knight or one bishop at most, or nothing but bishops on
    squares of one colour.
    """
    kinds = position.kinds
    heavy = (kinds.at(PAWN) | kinds.at(ROOK) | kinds.at(QUEEN)).any()
    knights = kinds.at(KNIGHT).size()
    bishops = kinds.at(BISHOP)
    one_colour = ~((bishops & _LIGHT).any() & (bishops & ~_LIGHT).any())
    return ~heavy & ((knights + bishops.size() <= 1) | ((knights == 0) & one_colour))


def count_occurrences(history: jax.Array, position: Position) -> jax.Array:
    """Return how often a position has occurred since the last capture or move of a pawn, int32.

    Args:
        history: fingerprints of the positions since then, by their ``clock``: uint32 ``(100, 2)``.
        position: the position; one with the other side to move is another one, even if it looks the
            same to that side.
    """
    number = np.arange(LIMIT)
    same_side = ((number ^ position.clock) & 1 == 0) & (number < position.clock)
    return (same_side & (history == fingerprint(position)).all(1)).sum(dtype=jnp.int32)


def record_position(history: jax.Array, position: Position) -> jax.Array:
    """Return a history with a position added."""
    return history.at[jnp.minimum(position.clock, LIMIT - 1)].set(fingerprint(position))


def fingerprint(position: Position) -> jax.Array:
    """Return 64 bits that tell positions apart, uint32 ``(2,)``; the clock does not count."""
    flags = jnp.stack([position.castling.astype(jnp.uint32), position.passing.astype(jnp.uint32)])
    words = jnp.concatenate([position.low, position.high, flags])
    salts = (np.arange(1, 33, dtype=np.uint32) * np.uint32(0x9E3779B9)).reshape(2, 16)
    return mix_bits(mix_bits(words + salts) * (salts | np.uint32(1))).sum(1, dtype=jnp.uint32)


def mix_bits(words: jax.Array) -> jax.Array:
    """Mix the bits of each word (Wellons 2018, lowbias32)."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        words = (words ^ words >> shift) * np.uint32(factor)
    return words ^ words >> 16
