"""Players of chess: what a position is worth, and a reference player that searches three plies.

Scores are integers in hundredths of a pawn, so that they are the same in every program.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rlbench_suite.core.arrays import Int
from rlbench_suite.core.policy import View, no_memory, privileged_player
from rlbench_suite.core.task import Task

from .bitboards import LEAPS, RAYS, Bits, full_where, sliding_reach, squares, stack_sets
from .rules import (
    BISHOP,
    KING,
    KNIGHT,
    OFFSETS,
    PAWN,
    QUEEN,
    ROOK,
    SLIDES_STRAIGHT,
    Legal,
    Position,
    advance,
    by_direction,
    cannot_mate,
    count_occurrences,
    mix_bits,
)

VALUES = np.array([100, 320, 330, 500, 900, 0], np.int32)
"""Worth of a pawn, knight, bishop, rook, queen and king."""
FOE_PIECES = slice(64 * len(VALUES), 2 * 64 * len(VALUES))
"""Entries of the opponent's pieces in the observation, after the own ones: kind and square."""
ADVANCE = 8
"""Worth of a rank that a pawn has gone."""
SIGHT = 2
"""Worth of an attacked square."""
FREEDOM = 3
"""Worth of a legal move."""
MATE = 100_000
TIES = 64
"""Moves of equal score are told apart by a random number below this one."""
TARGETS = np.arange(64, dtype=np.int32) + (OFFSETS @ [8, 1]).astype(np.int32)[:, None]
TARGETS = (TARGETS & 63).ravel()
"""Square to which each move leads; of no meaning where that is off the board."""
_BEYOND = Bits(*np.array([squares(*range(8 * rank, 64)) for rank in range(2, 7)], np.uint32).T)
"""Ranks 3 to 8, 4 to 8, ... 7 and 8."""
_STRAIGHT = full_where(SLIDES_STRAIGHT)
_DIAGONAL = full_where(~SLIDES_STRAIGHT)
_PAWNS = full_where(np.isin(np.arange(8), (1, 7)))
_FOE_PAWNS = full_where(np.isin(np.arange(8), (3, 5)))


def material(position: Position) -> jax.Array:
    """Return the worth of own pieces minus that of the foe's, int32."""
    own_pieces = position.own_pieces
    kinds = position.kinds
    return (((kinds & own_pieces).size() - (kinds & ~own_pieces).size()) * VALUES).sum(
        dtype=jnp.int32
    )


def promise(position: Position) -> jax.Array:
    """Return what a position is worth to the side to move, int32.

    Material counts, ranks that pawns have advanced, attacked squares, and the best capture: a piece
    that is not defended wins its worth, one that is wins it less that of the cheapest attacker.
    Pins do not count.
    """
    own_pieces = position.own_pieces
    kinds = position.kinds
    everyone = kinds.union()
    foe = everyone & ~own_pieces
    sliders = by_direction(kinds.at(ROOK) | kinds.at(QUEEN), kinds.at(BISHOP) | kinds.at(QUEEN))
    sources = stack_sets(
        kinds.at(BISHOP).widen() & own_pieces & _DIAGONAL,
        kinds.at(ROOK).widen() & own_pieces & _STRAIGHT, kinds.at(QUEEN).widen() & own_pieces,
        sliders & foe,
    )  # fmt: skip
    through = ~everyone.widen()
    bishops, rooks, queens, defended = (
        sliding_reach(sources, stack_sets(*[through] * 4)).union().at(side) for side in range(4)
    )

    def near(side: Bits, pawns: Bits) -> list[Bits]:
        pawn, king = (RAYS(kinds.at(kind) & side) for kind in (PAWN, KING))
        return [(pawn & pawns).union(), LEAPS(kinds.at(KNIGHT) & side).union(), king.union()]

    by_pawns, by_knights, by_king = near(own_pieces, _PAWNS)
    for more in near(foe, _FOE_PAWNS):
        defended |= more
    minors = by_pawns | by_knights | bishops
    majors = minors | rooks
    everything = majors | queens | by_king
    loose = everything & ~defended
    wins = jnp.int32(0)
    for attacked, victims, cost in (
        (loose, (PAWN, KNIGHT, BISHOP, ROOK, QUEEN), 0),
        (by_pawns, (KNIGHT, BISHOP, ROOK, QUEEN), 100),
        (minors, (ROOK, QUEEN), 330),
        (majors, (QUEEN,), 500),
    ):
        hit = (kinds.at(np.array(victims, np.int32)) & foe & attacked).any()
        wins = jnp.maximum(wins, jnp.where(hit, VALUES[list(victims)] - cost, 0).max())
    pawns = kinds.at(PAWN) & own_pieces
    foe_pawns = (kinds.at(PAWN) & foe).flip()
    ranks_ahead = ((pawns & _BEYOND).size() - (foe_pawns & _BEYOND).size()).sum(dtype=jnp.int32)
    return (
        material(position)
        + wins
        + ADVANCE * ranks_ahead
        + SIGHT * (everything.size() - defended.size())
    )


def game_over_score(position: Position, legal: Legal) -> tuple[jax.Array, jax.Array]:
    """Return whether a game is over for want of moves or material, and its worth then.

    The worth is that for the side to move.
    """
    stuck = ~(legal.words != 0).any()
    return stuck | cannot_mate(position), jnp.where(stuck & legal.check, -MATE, 0)


class Search(NamedTuple):
    """State of the reference player's search."""

    move: Int
    """Number of own moves whose replies are tried."""
    reply: Int
    """Number of replies to the last of them that have been tried."""
    replies: Int
    """Number of its replies."""
    worst: Int
    """Least score over the replies that were tried."""
    position: Any
    legal: Any
    """Position after the move, and the replies."""
    best: Int
    """Best score so far, with its tie-break, and its move."""
    best_move: Int


@privileged_player
class ThreePlies(eqx.Module):
    """A player that tries each move and each reply, and weighs the position after them.

    It also counts the captures that it has in that position.

    It does not try the rest of the replies once one is bad enough (alpha-beta), takes a position
    that has occurred before as a draw, and breaks ties at random.
    """

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> ThreePlies:
        """Make the player."""
        return cls()

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return the move with the best score."""
        state = view.state
        legal_moves = state.legal
        count = legal_moves.size()
        salt = jax.random.bits(key, (), jnp.uint32)

        # Own moves and replies share one loop, so that its body, the rules of chess, is compiled
        # once.
        def step(search: Search) -> Search:
            fresh = search.reply >= search.replies
            move = jnp.where(fresh, legal_moves.nth(search.move), search.legal.nth(search.reply))
            source = jax.tree.map(
                lambda root_leaf, leaf: jnp.where(fresh, root_leaf, leaf),
                state.position,
                search.position,
            )
            position, legal = advance(source, move)
            ended, end_score = game_over_score(position, legal)
            again = fresh & (count_occurrences(state.history, position) > 0)
            ended = ended | again
            end_score = jnp.where(again, 0, end_score)
            score = jnp.where(ended, end_score, promise(position) + FREEDOM * legal.size())
            # A move that ends the game has no replies.
            replies = jnp.where(fresh, jnp.where(ended, 0, legal.size()), search.replies)
            worst = jnp.where(
                fresh, jnp.where(ended, -end_score, 2 * MATE), jnp.minimum(search.worst, score)
            )
            moves = search.move + fresh
            ties = (mix_bits(salt + moves.astype(jnp.uint32)) % TIES).astype(jnp.int32)
            total = TIES * worst + ties
            reply = jnp.where(fresh, 0, search.reply + 1)
            reply = jnp.where(total <= search.best, replies, reply)
            better = (reply >= replies) & (total > search.best)
            position, legal = jax.tree.map(
                lambda root_leaf, leaf: jnp.where(fresh, root_leaf, leaf),
                (position, legal),
                (search.position, search.legal),
            )
            best = jnp.where(better, total, search.best)
            best_move = jnp.where(better, legal_moves.nth(moves - 1), search.best_move)
            return Search(moves, reply, replies, worst, position, legal, best, best_move)

        def more(search: Search) -> jax.Array:
            return (search.move < count) | (search.reply < search.replies)

        zero = jnp.int32(0)
        begin = Search(
            zero, zero, zero, zero, state.position, legal_moves, jnp.int32(-(2**30)), zero
        )
        return lax.while_loop(more, step, begin).best_move, ()


class Captures(eqx.Module):
    """A heuristic player, which takes the piece that is worth most.

    It moves at random where it can take none.
    """

    @classmethod
    def for_task(cls, task: Task[Any, Any]) -> Captures:
        """Make the player."""
        return cls()

    initial = no_memory

    def act(self, memory: tuple[()], view: View, key: jax.Array) -> tuple[jax.Array, tuple[()]]:
        """Return a legal move onto the square of the piece that is worth most.

        Several such moves are equally likely.
        """
        foe = jnp.asarray(view.observation)[FOE_PIECES].reshape(-1, 64)
        worth = (foe.astype(jnp.int32) * VALUES[:, None]).sum(0, dtype=jnp.int32)[TARGETS]
        legal = jnp.asarray(view.action_mask)
        best = legal & (worth == jnp.where(legal, worth, -1).max())
        draws = jax.random.bits(key, best.shape, jnp.uint32) | 1
        return jnp.argmax(jnp.where(best, draws, 0)).astype(jnp.int32), memory
