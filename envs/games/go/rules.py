"""Rules of Go on a small square board, on words of bits.

Every point remembers the chain that its stone belongs to. A move only joins and removes chains, so
no chain is ever searched for, and one shift in each direction gives the liberties of all chains.

Suicide is illegal. A stone that has just captured a single stone, stands alone and has one liberty
may not be recaptured at once (simple ko). Two passes end the game, or a limit of three moves a
point; longer cycles run into that limit. A superko would depend on all earlier positions, which a
player would have to remember. Stones count as they stand (area scoring, no agreement on dead
stones).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.arrays import FlagArray, Int, UInt32Array
from rlbench_suite.numerics.reductions import sum_in_order, union

WORD_BITS = 32
BLACK, WHITE = range(2)
MOVES_PER_POINT = 3


class State(NamedTuple):
    """A position.

    Points are numbered along the rows. A set of points is uint32 ``(words,)``: bit
    ``row * (size + 1) + column``, where the bit after each row stays empty.
    """

    stones: UInt32Array
    """Stones of Black and White, ``(2, words)``."""
    chains: UInt32Array
    """The chain of the stone on each point, empty on an empty point, ``(words, points)``."""
    atari: UInt32Array
    """Stones of chains that have a single liberty."""
    ko: UInt32Array
    """Point that the side to move may not take; empty if there is none."""
    ply: Int
    """Number of moves so far, those of the opening included; Black makes the even ones."""
    passes: Int
    """Number of passes since the last stone."""
    margin: Int
    """Points of Black minus those of White once the game is over, 0 before."""


class Rules:
    """The rules on a board of ``size * size`` points. A move is a point, or ``points`` to pass."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.points = size * size
        self.limit = MOVES_PER_POINT * self.points
        self.words = -(-size * (size + 1) // WORD_BITS)
        rows, columns = np.divmod(np.arange(self.points), size)
        bits = rows * (size + 1) + columns
        self.word_of = bits // WORD_BITS
        self.bit_of = np.where(
            np.arange(self.words)[:, None] == self.word_of, 1 << (bits % WORD_BITS), 0
        ).astype(np.uint32)
        """Each point as a set, ``(words, points)``."""
        self.board = np.bitwise_or.reduce(self.bit_of, axis=1)
        on_edge = (np.minimum(rows, columns) == 0) | (np.maximum(rows, columns) == size - 1)
        self.edge = np.bitwise_or.reduce(self.bit_of * on_edge, axis=1).astype(np.uint32)

    # -- sets of points, with the words on the first axis ------------------------------------------

    def shift(self, points: jax.Array, count: int) -> jax.Array:
        """Move a set by ``count`` bits, up if positive; what leaves the board is dropped."""
        words, bits = divmod(abs(count), WORD_BITS)
        padding = [jnp.zeros_like(points[0])] * (words + 1)
        shifted = []
        for word in range(self.words):
            if count > 0:
                low, high = [*padding, *points][word : word + 2]
                value = high << np.uint32(bits) | low >> np.uint32(WORD_BITS - bits)
            else:
                low, high = [*points, *padding][word + words : word + words + 2]
                value = low >> np.uint32(bits) | high << np.uint32(WORD_BITS - bits)
            shifted.append(value & self.board[word])
        return jnp.stack(shifted)

    def neighbours(self, points: jax.Array) -> jax.Array:
        """Return the points beside a set, and perhaps some in it."""
        row = self.size + 1
        return (
            self.shift(points, 1) | self.shift(points, -1)
            | self.shift(points, row) | self.shift(points, -row)
        )  # fmt: skip

    def flags(self, points: jax.Array) -> jax.Array:
        """Return which points are in a set, bool ``(points,)``."""
        return (points[self.word_of] & self.bit_of.max(axis=0)) != 0

    def pack(self, flags: jax.Array) -> jax.Array:
        """Return the set of the points whose flag is true."""
        return union(jnp.where(flags, self.bit_of, np.uint32(0)), axis=1)

    def count(self, points: jax.Array) -> jax.Array:
        """Return the number of points in a set, int32."""
        return sum_in_order(jax.lax.population_count(points).astype(jnp.int32))

    def spread(self, points: jax.Array, region: jax.Array) -> jax.Array:
        """Return the points of a region that connect to a set within the region."""

        def grow(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            _, reached = carry
            return reached, reached | self.neighbours(reached) & region

        def is_growing(carry: tuple[jax.Array, jax.Array]) -> jax.Array:
            return (carry[0] != carry[1]).any()

        return jax.lax.while_loop(is_growing, grow, (jnp.zeros_like(points), points & region))[1]

    # -- the game ----------------------------------------------------------------------------------

    def empty_board(self) -> State:
        """Return the position before the first move."""
        nothing = jnp.zeros(self.words, jnp.uint32)
        zero = jnp.int32(0)
        return State(
            jnp.zeros((2, self.words), jnp.uint32),
            jnp.zeros((self.words, self.points), jnp.uint32),
            nothing,
            nothing,
            zero,
            zero,
            zero,
        )

    def empty_points(self, state: State) -> jax.Array:
        """Return the set of points without a stone."""
        return self.board & ~(state.stones[BLACK] | state.stones[WHITE])

    def legal_points(self, state: State) -> jax.Array:
        """Return the set of points where the side to move may place a stone."""
        mover_stones, opponent_stones = self.sides(state)
        empty = self.empty_points(state)
        breathing = empty | (mover_stones & ~state.atari) | (opponent_stones & state.atari)
        return empty & self.neighbours(breathing) & ~state.ko

    def sides(self, state: State) -> tuple[jax.Array, jax.Array]:
        """Return the stones of the side to move, and those of its opponent."""
        is_black = state.ply % 2 == BLACK
        black, white = state.stones
        return jnp.where(is_black, black, white), jnp.where(is_black, white, black)

    def is_over(self, state: State) -> jax.Array:
        """Return whether both sides have passed in turn, or the limit is reached."""
        return (state.passes >= 2) | (state.ply >= self.limit)

    def place(self, state: State, move: jax.Array) -> State:
        """Make a legal move, and count the points when it ends the game."""
        state = self.place_uncounted(state, move)
        return state._replace(margin=self.area_margin(state, self.is_over(state)))

    def place_uncounted(self, state: State, move: jax.Array) -> State:
        """Make a legal move."""
        mover_stones, opponent_stones = self.sides(state)
        is_move = np.arange(self.points) == move
        stone = self.pack(is_move)
        beside = self.neighbours(stone)
        touches = ((state.chains & beside[:, None]) != 0).any(axis=0)
        is_joined = touches & self.flags(mover_stones)
        is_captured = touches & self.flags(opponent_stones & state.atari)
        chain = self.pack(is_joined | is_move)
        captured = self.pack(is_captured)
        mover_stones = mover_stones | stone
        opponent_stones = opponent_stones & ~captured
        empty = self.board & ~(mover_stones | opponent_stones)

        chains = jnp.where(is_joined | is_move, chain[:, None], state.chains)
        chains = jnp.where(is_captured, np.uint32(0), chains)
        liberties = self.neighbours(chains) & empty[:, None]
        has_one = sum_in_order(jax.lax.population_count(liberties).astype(jnp.int32)) == 1
        atari = self.pack(has_one)

        may_be_ko = (self.count(captured) == 1) & (self.count(chain) == 1)
        is_ko = may_be_ko & ((atari & stone) != 0).any()
        is_black = state.ply % 2 == BLACK
        stones = [mover_stones, opponent_stones]
        return State(
            jnp.where(is_black, jnp.stack(stones), jnp.stack(stones[::-1])),
            chains,
            atari,
            jnp.where(is_ko, captured, np.uint32(0)),
            state.ply + 1,
            jnp.where(move == self.points, state.passes + 1, 0).astype(jnp.int32),
            state.margin,
        )

    def area_margin(self, state: State, counts: FlagArray | bool = True) -> jax.Array:
        """Return Black's stones and the empty points that only Black reaches, less White's.

        It is 0, and costs nothing, where ``counts`` is false.
        """
        empty = self.empty_points(state)
        stones = jnp.where(counts, state.stones, np.uint32(0))
        # Both colours spread in one loop, as two sets side by side.
        sides = stones.T
        reached = self.spread(self.neighbours(sides), empty[:, None])
        black, white = (sides | (reached & ~reached[:, ::-1])).T
        return self.count(black) - self.count(white)
