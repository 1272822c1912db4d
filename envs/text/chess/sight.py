"""Observations and actions of a side of chess: their entries."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from rlbench_suite.core.component import Component

from .rules import LIMIT, Position

KINDS = ("pawns", "knights", "bishops", "rooks", "queens", "king")
OBSERVATION_SIZE = 12 * 64 + 14
OBSERVATION_COMPONENTS = (
    *(
        Component(
            f"{side}_{kind}",
            f"where the {kind} of the {whose} stand; squares a1, b1, ..., h8",
            shape=(64,),
        )
        for side, whose in (("own", "agent"), ("foe", "opponent"))
        for kind in KINDS
    ),
    Component(
        "castling",
        "rights to castle: own short, own long, the opponent's short, long",
        shape=(4,),
    ),
    Component("passing", "file of the pawn that may be captured in passing, one-hot", shape=(8,)),
    Component("clock", "fraction of the 50 moves without capture or move of a pawn that has gone"),
    Component("repeats", "how often the position has occurred before, of 2"),
)
"""Meaning of the entries of :func:`observe`, in order."""
ACTION_COMPONENTS = (
    Component(
        "move",
        "[plane, square from which a piece moves]; plane 8 (k - 1) + d: by k squares in "
        "direction d (north, north-east, ... clockwise), 56 to 63: jumps of a knight, "
        "clockwise from north-north-east; 64 + 3 p + i: a pawn becomes a knight, bishop "
        "or rook (p) by a step north, north-east, north-west (i)",
        shape=(73, 64),
    ),
)
"""Meaning of a move; planes of ``rules.py``."""


def observe(position: Position, repeats: jax.Array, dtype: np.dtype) -> jax.Array:
    """Return pieces of both sides, rights, clock and repetitions, ``(OBSERVATION_SIZE,)``.

    Args:
        position: the position, seen by the side that observes it.
        repeats: number of earlier times that it has occurred.
        dtype: of the result.
    """
    own_pieces = position.own_pieces
    kinds = position.kinds
    pieces = [kinds & own_pieces, kinds & ~own_pieces]
    words = jnp.stack([jnp.concatenate(halves) for halves in zip(*pieces, strict=True)], -1)
    planes = (words.reshape(-1, 1) >> np.arange(32, dtype=np.uint32) & 1).reshape(-1)
    rights = position.castling >> np.arange(4) & 1
    passing = np.arange(8) == position.passing
    counters = [position.clock.astype(dtype) / LIMIT, repeats.astype(dtype) / 2]
    blocks = [
        *(block.astype(dtype) for block in (planes, rights, passing)),
        jnp.stack(counters),
    ]
    return jnp.concatenate(blocks)
